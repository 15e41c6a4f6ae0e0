//! Pages that say what others say: found on and across hosts, told by `status` and `explain`, counted once whatever happens; mirrors of hosts.

use rhumb_core::record::Record;
use rhumb_sim::{Reply, WebConfig};
use serde_json::Value;

use crate::common::{Place, crawl, json, records, rhumb, run, serve};

/// A text of its own.
fn text(n: u64) -> Vec<String> {
    (0..200u64).map(|i| format!("word{}", (n * 7_919 + i * i * 31 + i) % 5_003)).collect()
}

fn page(words: &[String], links: &str) -> Reply {
    let sentences: Vec<String> = words.chunks(20).map(|s| format!("<p>{}.</p>", s.join(" "))).collect();
    let body = format!("<title>A page</title><main>{}</main>{links}", sentences.join("\n"));
    Reply::new(200, "text/html", &body)
}

fn explain(place: &Place, url: &str) -> Value {
    json(&run(rhumb().args(["explain", "--json"]).arg(&place.dir).arg(url)), 0)
}

#[test]
fn near_duplicates_are_found_on_and_across_hosts() {
    let server = serve(WebConfig::plain(2, 1));
    let web = server.web();
    let at = |host: u64, path: &str| format!("{}{path}", web.origin(host));
    let one = text(1);
    let mut nearly = one.clone();
    nearly[100] = "changed".to_string();
    let other = at(1, "/copy");
    web.set_document(
        0,
        "/",
        page(&text(0), &format!("<a href=/one>x</a><a href=/nearly>x</a><a href=/two>x</a><a href='{other}'>x</a>")),
    );
    web.set_document(0, "/one", page(&one, ""));
    web.set_document(0, "/nearly", page(&nearly, "<a href=/one>back</a>"));
    web.set_document(0, "/two", page(&text(2), ""));
    web.set_document(1, "/copy", page(&one, "<b>elsewhere</b>"));
    let place = Place::new();
    let status = json(&run(&mut crawl(&server, &place.dir, &[&at(0, "/"), "--scope", "any", "--delay", "5ms"])), 0);
    assert_eq!((&status["pages"], &status["near_duplicates"]), (&5.into(), &2.into()), "{status}");
    // Whichever of the three came first stands for the others.
    let found: Vec<_> = records(&place.dir)
        .into_iter()
        .filter_map(|r| match r {
            Record::Duplicate(d, _) => Some(*d),
            _ => None,
        })
        .collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].of, found[1].of);
    for duplicate in &found {
        let story = explain(&place, duplicate.url.as_str());
        assert_eq!(story["near_duplicate_of"]["of"], duplicate.of.as_str());
        assert!(story["near_duplicate_of"]["similarity"].as_f64().is_some_and(|s| s >= 0.9), "{story}");
    }
    assert!(explain(&place, &at(0, "/two")).get("near_duplicate_of").is_none());
    // A log that is read anew says the same, and nothing is found twice.
    std::fs::remove_dir_all(place.dir.join("state")).expect("remove the state");
    let again = json(&run(&mut crawl(&server, &place.dir, &[])), 0);
    assert_eq!(again["near_duplicates"], 2, "{again}");
}

#[test]
fn a_mirror_is_recognised_and_its_links_lead_nowhere_new() {
    let server = serve(WebConfig::plain(2, 1));
    let web = server.web();
    for host in 0..2 {
        let links: String = (0..20).map(|n| format!("<a href=/{n}>page</a>")).collect();
        web.set_document(host, "/", page(&text(99), &links));
        (0..20).for_each(|n| web.set_document(host, &format!("/{n}"), page(&text(n), "")));
    }
    let seeds = [0, 1].map(|host| format!("{}/", web.origin(host)));
    web.set_document(
        0,
        "/start",
        page(&text(77), &format!("<a href='{}'>x</a><a href='{}'>x</a>", seeds[0], seeds[1])),
    );
    let start = format!("{}/start", web.origin(0));
    // The same page with the same links on another host leads to the same pages, which need not be fetched twice.
    let place = Place::new();
    let status = json(&run(&mut crawl(&server, &place.dir, &[&start, "--scope", "any", "--delay", "1ms"])), 0);
    assert_eq!((&status["pages"], &status["near_duplicates"]), (&23.into(), &1.into()), "{status}");
    let copied = status["mirrors"].as_array().is_some_and(Vec::is_empty);
    assert!(copied, "one page is no mirror: {status}");
    let fetched = |host: u64| server.log().iter().any(|e| web.host_index(&e.host) == Some(host) && e.path == "/3");
    let (of, copy) = if fetched(0) { (0, 1) } else { (1, 0) };
    let story = explain(&place, &format!("{}/3", web.origin(copy)));
    let because = format!("a copy of {}", seeds[of as usize]);
    assert_eq!((&story["state"], &story["found_on"][0]["because"]), (&"not wanted".into(), &because.into()), "{story}");
    // Whoever asks for all of them gets all of them, and is told.
    let place = Place::new();
    let deep: Vec<String> = (0..20).map(|n| format!("{}/{n}", web.origin(1))).collect();
    // The hosts are of one domain, where a rule may be learned before all is fetched.
    let settings = place.file("settings.toml", "[traps]\nlearn = false\n");
    let mut command = crawl(&server, &place.dir, &[&seeds[0], &seeds[1], "--delay", "1ms"]);
    command.arg("--config").arg(settings);
    let status = json(&run(command.args(&deep)), 0);
    assert_eq!(status["near_duplicates"], 21, "{status}");
    let mirrors = status["mirrors"].as_array().expect("mirrors");
    assert_eq!(mirrors.len(), 1, "{status}");
    assert_eq!((&mirrors[0]["pages_same"], &mirrors[0]["share"]), (&21.into(), &1.0.into()));
}
