//! The search page as a person with a browser has it: `tests/browser/search.mjs` types, walks, looks and listens, while the program
//! serves a small web that it crawled.
//!
//! Chromium and playwright-core are installed by `make test`. Where they cannot be, nothing is tried and that is said, except in CI.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rhumb_sim::{Server, WebConfig};
use serde_json::json;

use crate::common::{Place, crawl, run, run_within, serve};
use crate::serve::{Served, page};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser")
}

/// What is missing for a browser to be driven.
fn missing() -> Option<&'static str> {
    let runs = |name: &str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    if !runs("/usr/bin/chromium") {
        Some("Chromium")
    } else if !runs("node") {
        Some("Node")
    } else if !folder().join("node_modules/playwright-core").is_dir() {
        Some("playwright-core (npm ci in tests/browser)")
    } else {
        None
    }
}

/// Two dozen pages about lighthouses, one with markup in its title, one that would do a lot if it could.
fn lighthouses() -> Server {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let links: String = (1..=24).map(|n| format!("<a href='/tower/{n}'>Tower {n}</a> ")).collect();
    web.set_document(
        0,
        "/",
        page(&format!("<html lang=en><title>Harbour</title><p>All the towers. {links}<a href='/hostile'>h</a> <a href='/armed'>a</a>")),
    );
    for n in 1..=24 {
        // Each says something of its own, so that none is taken for a copy of another.
        let words = ["granite", "brick", "timber", "iron", "slate", "marble"];
        let own: String = (0..40).map(|i| format!("{} {} ", words[(n * 5 + i * n) % 6], n * 1_000 + i * 7)).collect();
        let text = format!(
            "<html lang=en><title>Tower {n}</title><h1>Tower {n}</h1><p>The lighthouse number {n} was built of {own}</p>"
        );
        web.set_document(0, &format!("/tower/{n}"), page(&text));
    }
    web.set_document(
        0,
        "/tower/1",
        page("<html lang=en><title>The lighthouse of the lighthouse keepers</title><h1>The lighthouse</h1><p>A lighthouse is a tower with a light. Every lighthouse has a keeper, and every keeper a lighthouse.</p>"),
    );
    web.set_document(
        0,
        "/hostile",
        page("<html lang=en><title>&lt;script&gt;alert(1)&lt;/script&gt; quicksand</title><p>Quicksand &lt;img src=x onerror=alert(1)&gt; lies here, and nothing else does for miles.</p>"),
    );
    web.set_document(
        0,
        "/armed",
        page(
            "<html lang=en><title>Armed</title><base href='http://elsewhere.example/'><link rel=stylesheet href=/style.css>\
             <meta http-equiv=refresh content='0;url=http://elsewhere.example/gone'><link rel=preconnect href=http://elsewhere.example>\
             <style>h1 { background: url(http://elsewhere.example/b.png) }</style>\
             <body onload=\"document.getElementById('h').textContent='ran'\"><h1 id=h>Armed and harmless</h1><p>A page about gunpowder.</p>\
             <script>document.getElementById('h').textContent='ran'; alert(1); fetch('http://elsewhere.example/f')</script>\
             <script src=http://elsewhere.example/x.js></script>\
             <img src=http://elsewhere.example/i.png onerror=\"document.getElementById('h').textContent='ran'\">\
             <img src=x onerror=\"document.getElementById('h').textContent='ran'\"><iframe src=http://elsewhere.example/></iframe>\
             <p><a href=http://elsewhere.example/clicked>A link</a>",
        ),
    );
    server
}

#[test]
fn a_person_searches_with_a_browser() {
    if let Some(what) = missing() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{what} is missing, which CI must have");
        println!("{what} is missing: the search page is not tried in a browser");
        return;
    }
    let (server, place) = (lighthouses(), Place::new());
    let home = server.web().url(0, 0);
    let crawled = run(&mut crawl(&server, &place.dir, &[&home, "--delay", "1ms"]));
    assert!(crawled.status.success(), "{}", String::from_utf8_lossy(&crawled.stderr));
    let served = Served::start(&place.dir);
    let (status, answer) = served.get("/api/search?q=lighthouse&ungrouped=true");
    assert_eq!(status, 200, "{answer}");
    let expected = json!({
        // All on one host: without this operator two of them would be shown.
        "query": format!("lighthouse site:{}", served_host(&home)),
        "prefix": "lighth", "word": "lighthouse", "title": "The lighthouse of the lighthouse keepers",
        "hostile": { "query": "quicksand", "text": "<script>alert(1)</script> quicksand" },
        "armed": { "url": format!("{home}armed"), "heading": "Armed and harmless", "elsewhere": "elsewhere.example" },
    });
    let mut script = Command::new("node");
    script.arg(folder().join("search.mjs")).arg(format!("http://{}/", served.address)).arg(expected.to_string());
    if let Ok(folder) = std::env::var("RHUMB_PICTURES") {
        script.arg(folder);
    }
    let output =
        run_within(script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), Duration::from_secs(240));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
}

/// The host of a URL, without its port.
fn served_host(url: &str) -> String {
    url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_string)).expect("a host")
}
