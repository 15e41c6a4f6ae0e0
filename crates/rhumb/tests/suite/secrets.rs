//! What the user trusts the crawler with, and what a crawl's own key is good for.

use std::os::unix::fs::PermissionsExt;

use rhumb_sim::hostile::kind_of;
use rhumb_sim::{DnsConfig, HostileConfig, HostileServer, Server, ServerConfig, Web, WebConfig};

use crate::common::{Place, crawl, ends, json, rhumb, run, serve};

/// A host that sets cookies for everybody and redirects to another one, which looks for them.
#[test]
fn cookies_and_passwords_go_to_no_other_origin() {
    let web = HostileServer::start(HostileConfig::default()).expect("hostile server");
    let any = "127.0.0.1:0".parse().expect("address");
    let dns_config = DnsConfig { others: Some(web.names()), ..DnsConfig::default() };
    let config = ServerConfig { listen: any, dns: Some(any), dns_config, ..ServerConfig::default() };
    let names = Server::start(Web::new(WebConfig::default()).expect("web"), config).expect("server");
    let kind = kind_of("redirect-cookie-hostile.example").expect("a kind");
    let home = kind.url("/", web.place());

    let place = Place::new();
    let secrets =
        place.file("secrets.toml", &format!("[[credentials]]\norigin = {home:?}\nuser = \"u\"\npassword = \"hush\"\n"));
    std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).expect("permissions");
    let settings = format!("[fetch]\ncookies = true\n[net]\nallow = [\"127.1.0.0/16\"]\ncredentials = {secrets:?}\n");
    let settings = place.file("settings.toml", &settings);
    let dns = names.dns_addr().expect("DNS").to_string();
    let mut command = rhumb();
    command
        .args(["crawl", "--json", "--no-sitemaps", "--scope", "domain", "--delay", "0s", "--dns", &dns, "--config"])
        .arg(settings);
    let status = json(&run(command.arg("--dir").arg(&place.dir).arg(&home)), 0);
    assert_eq!(status["outcomes"]["redirect"], 1, "{status}");

    // The one origin that may know is told, the other is not.
    let told: Vec<(String, String)> = web.leaks().into_iter().map(|leak| (leak.host, leak.line)).collect();
    assert!(!told.is_empty() && told.iter().all(|(host, _)| host.starts_with("redirect-cookie-")), "{told:?}");
    assert!(told.iter().any(|(_, line)| line.contains("Basic dTpodXNo")), "{told:?}");
    // What the archive, the log and the settings hold may be given to others.
    for file in ["rhumb.toml", "log/00000001.log"] {
        let bytes = std::fs::read(place.dir.join(file)).expect(file);
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("hush") && !text.contains("dTpodXNo"), "{file}");
    }
    let listed = run(rhumb().args(["warc", "ls", "--json"]).arg(&place.dir));
    assert!(listed.status.success());
    for entry in std::fs::read_dir(place.dir.join("archive")).expect("archive").flatten() {
        let bytes = std::fs::read(entry.path()).expect("read");
        let mut plain = Vec::new();
        let _ = std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut plain);
        assert!(!String::from_utf8_lossy(&plain).contains("dTpodXNo"));
    }
}

/// Nobody can make up URLs with the fingerprint of another, because every crawl has a key of its own. Without its key a
/// directory is still whole: what depends on it is made anew.
#[test]
fn every_crawl_has_a_key_of_its_own() {
    let server = serve(WebConfig { hosts: 2, pages: 10, pages_exact: true, ..WebConfig::default() });
    let (one, other) = (Place::new(), Place::new());
    let key = |place: &Place| {
        let text = std::fs::read_to_string(place.dir.join("rhumb.toml")).expect("settings");
        text.lines().find(|l| l.starts_with("key = ")).expect("a key").to_string()
    };
    for place in [&one, &other] {
        let mut command = crawl(&server, &place.dir, &["--scope", "any", "--delay", "0s"]);
        json(&run(command.arg(server.web().url(0, 0))), 0);
    }
    assert_ne!(key(&one), key(&other));
    let before = ends(&one.dir);
    let path = one.dir.join("rhumb.toml");
    let text = std::fs::read_to_string(&path).expect("settings").replace(&key(&one), &key(&other));
    std::fs::write(&path, text).expect("write");
    let again = run(&mut crawl(&server, &one.dir, &["--delay", "0s"]));
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("another key"),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    json(&again, 0);
    assert_eq!(ends(&one.dir), before, "nothing is fetched twice");
}
