//! Other protocols than the web's: a local tree (`files`), other people's archives (`warcs`), and that no page leads there.

mod files;
mod warcs;

use rhumb_sim::{Reply, WebConfig};

use crate::common::{Place, crawl_with_sitemaps, json, run, serve, visits};

/// A page, a redirect, a sitemap, robots.txt, a refresh or a base of the web that names a file: nothing is read, also with the widest
/// scope, and also if the same tree was named as a seed. (Scrapy followed redirects to files: GHSA-23j4-mw76-5v7h.)
#[test]
fn the_web_names_no_file() {
    let place = Place::new();
    let secret = place.file("secret.html", "<title>secret</title>");
    let named = place.file("named.html", "<title>named</title>");
    let (secret, named) = (format!("file://{}", secret.display()), format!("file://{}", named.display()));
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let origin = web.origin(0);
    let html = |body: &str| Reply::new(200, "text/html", body);
    for target in [&secret, &named] {
        let tab = target.replace("file", "fi\tle");
        let relative = target.rsplit('/').next().expect("a name");
        let dir = target.trim_end_matches(relative);
        web.set_document(
            0,
            "/robots.txt",
            Reply::new(200, "text/plain", &format!("Sitemap: {target}\nSitemap: {origin}/map.xml\nSitemap: warc:/x\n")),
        );
        let listed = format!("<urlset><url><loc>{target}</loc></url><url><loc>{origin}/listed</loc></url></urlset>");
        web.set_document(0, "/map.xml", Reply::new(200, "application/xml", &listed));
        web.set_document(0, "/redirect", Reply::redirect(302, target));
        web.set_document(0, "/refresh", html(&format!("<meta http-equiv=refresh content='0;url={target}'>refresh")));
        web.set_document(0, "/base", html(&format!("<base href='{dir}'><a href='{relative}'>x</a>")));
        web.set_document(0, "/listed", html("listed"));
        let links = [target.as_str(), &tab, &target.to_uppercase(), &target.replace("//", "//localhost")];
        let list: String = links.iter().map(|l| format!("<a href='{l}'>x</a><iframe src='{l}'></iframe>")).collect();
        let more = "<a href=/redirect>x</a><a href=/refresh>x</a><a href=/base>x</a>";
        web.set_document(0, "/", html(&format!("{list}{more}<link rel=canonical href='{target}'>")));
        let place = Place::new();
        let mut command =
            crawl_with_sitemaps(&server, &place.dir, &[&format!("{origin}/"), "--delay", "5ms", "--scope", "any"]);
        // The tree may be read, but not because the web says so: only one file of it is named.
        let tree = tempfile::tempdir().expect("temporary directory");
        std::fs::write(tree.path().join("index.html"), "<title>mine</title>").expect("write");
        let status = json(&run(command.arg(tree.path())), 0);
        let seen = visits(&place.dir);
        let files: Vec<&str> = seen.iter().filter(|v| !v.entry.url.is_web()).map(|v| &*v.title).collect();
        assert_eq!(files, ["mine"], "{status}");
        let told: Vec<String> =
            seen.iter().map(|v| format!("{} {} {}", v.entry.url, v.outcome.name(), v.detail)).collect();
        assert!(seen.iter().any(|v| v.entry.url.path() == "/listed"), "the sitemap was read: {told:#?}");
        assert!(seen.iter().flat_map(|v| &v.links).all(|l| l.url.is_web() || !l.wanted), "no link to a file is wanted");
        assert_eq!(status["outcomes"]["bad_redirect"], 1, "{status}");
    }
}
