//! Searching: the field, the results, the copies, for people and for programs.

use serde_json::{Value, json};

use super::{Got, get, get_as, is_clean, query, serve, serve_graph};
use crate::serve::fake::{ALONE, EVIL, HOSTILE, HUB, SCRIPT};
use crate::serve::fake_index::{ARMED, NOARCHIVE, PDF};

const INERT: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                     frame-ancestors 'self'";

#[test]
fn queries_are_answered_in_json() {
    let server = serve();
    let check = |target: &str, pointer: &str, expected: Value| {
        let got = get(&server, target);
        assert_eq!(got.status, 200, "{target}: {}", got.body);
        assert_eq!(got.json().pointer(pointer), Some(&expected), "{target}: {}", got.body);
    };
    check("/api/search?q=sea+chart", "/results/0/url", HUB.into());
    check("/api/search?q=sea+chart&limit=1", "/results/0/highlights/0", json!([2, 5]));
    check("/api/search?q=sea+chart&limit=1", "/more", true.into());
    check("/api/search?q=sea+chart&limit=1&offset=4", "/results/0/type", "pdf".into());
    check("/api/search?q=sea+chart&limit=1&offset=1000&fresh=1&ungrouped=1", "/results", json!([]));
    check("/api/search?q=sea&limit=1&explain=true", "/results/0/explanation/0/what", "words".into());
    check("/api/search?q=chrat", "/suggestion", "chart".into());
    check("/api/search?q=sea+colour:red", "/notes/0", "colour: is not understood, and was left out".into());
    // As OpenSearch wants it: what was typed, then whole queries.
    check("/api/complete?q=harb", "", json!(["harb", ["harbour", "harbours"]]));
    check("/api/complete?q=sea+-harb", "", json!(["sea -harb", ["sea -harbour", "sea -harbours"]]));
    check("/api/complete?q=sea+", "", json!(["sea ", []]));
    check("/api/complete?q=site:harb", "", json!(["site:harb", []]));
}

#[test]
fn wrong_queries_are_named() {
    let server = serve();
    let check = |target: &str, error: &str| {
        let got = get(&server, target);
        assert_eq!((got.status, got.json()["error"].as_str()), (400, Some(error)), "{target}");
    };
    check("/api/search", "the parameter q is missing");
    check("/api/search?q=%22%22", "the query has no word to look for");
    check("/api/search?q=a&limit=101", "limit is a number from 1 to 100");
    check("/api/search?q=a&offset=1001", "offset is a number from 0 to 1000");
    check("/api/search?q=a&offset=-1", "offset is a number from 0 to 1000");
    check("/api/search?q=a&fresh=soon", "fresh is true or false");
    check("/api/search?q=a&page=2", "unknown parameter \"page\": one of q, limit, offset, fresh, ungrouped, explain");
    check("/api/complete?q=a&q=b", "q is given twice");
    let page = |target: &str, sentence: &str| {
        let got = get(&server, target);
        assert_eq!(got.status, 400, "{target}");
        assert!(got.body.contains(sentence), "{target}: {}", got.body);
    };
    page("/search?q=a&page=0", "Page is a number from 1 to 100</bdi>.");
    page("/search?q=a&page=101", "Page is a number from 1 to 100</bdi>.");
    page("/search?q=a&more=all", "More is true or false</bdi>.");
    page("/search?q=%22%22", "The query has no word to look for</bdi>.");
    page("/cached", "The parameter url is missing</bdi>.");
    page(&format!("/cached?url={}&as=pdf", query(HUB)), "As is text or page</bdi>.");
}

#[test]
fn results_are_shown_page_by_page() {
    let server = serve();
    let first = get(&server, "/search?q=sea+chart").body;
    assert!(
        first.contains("<a href=\"https://docs.example.org/guide/\" rel=\"noreferrer noopener nofollow\">"),
        "{first}"
    );
    assert!(first.contains("A <mark>sea</mark> <mark>chart</mark> is a map"), "{first}");
    assert!(first.contains("About 71 pages · 1.2 ms"), "{first}");
    assert!(first.contains("rel=\"next\" href=\"/search?q=sea+chart&amp;page=2\"") && !first.contains("rel=\"prev\""));
    assert!(
        first.contains("<span class=\"tag kind-of\">pdf</span>") && first.contains("<span class=\"tag\">German</span>")
    );
    assert!(first.contains("href=\"/search?q=sea+chart+site%3Ablog.example.com\""), "more of a host: {first}");
    assert!(
        first.contains(&format!("/cached?url={}", query(HUB))) && first.contains(&format!("/page?url={}", query(HUB)))
    );
    assert!(!first.contains(&format!("/cached?url={}", query(NOARCHIVE))), "of that page no copy is shown");
    assert!(first.contains("value=\"sea chart\""), "the field stays as it was");
    let next = get(&server, "/search?q=sea+chart&page=2&fresh=1").body;
    assert!(
        next.contains("start=\"11\"") && next.contains("rel=\"prev\" href=\"/search?q=sea+chart&amp;fresh=1\""),
        "{next}"
    );
    assert!(next.contains("<input type=\"hidden\" name=\"fresh\" value=\"1\">"));
    let beyond = get(&server, "/search?q=sea+chart&page=100");
    assert_eq!(beyond.status, 200);
    assert!(beyond.body.contains("There are no results this far"));
    let none = get(&server, "/search?q=chrat").body;
    assert!(
        none.contains("Nothing found for") && none.contains("<a href=\"/search?q=chart\"><bdi>chart</bdi></a>"),
        "{none}"
    );
    assert!(none.contains("<details class=\"help\" open>"), "{none}");
    let empty = get(&server, "/search?q=+");
    assert_eq!((empty.status, empty.headers["location"].as_str()), (303, "/"));
}

#[test]
fn the_first_page_is_a_field_and_the_graph_is_next_door() {
    let server = serve();
    let front = get(&server, "/").body;
    assert!(
        front.contains("<form class=\"ask\" action=\"/search\" role=\"search\">")
            && front.contains("72 pages can be found."),
        "{front}"
    );
    assert!(front.contains("href=\"/graph\""));
    // Each example finds something.
    let examples: Vec<&str> = front.split("<li><a href=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
    assert_eq!(examples.len(), 3, "{front}");
    for target in examples {
        assert!(get(&server, target).body.contains("<ol class=\"results\""), "{target}");
    }
    let graph = get(&server, "/graph").body;
    assert!(graph.contains("Pages at the top") && graph.contains("aria-current=\"page\">Graph</a>"), "{graph}");
}

#[test]
fn without_an_index_the_graph_is_all_there_is() {
    let server = serve_graph();
    assert!(get(&server, "/").body.contains("Pages at the top"));
    for target in ["/search?q=sea", "/search", &format!("/cached?url={}", query(HUB))] {
        let got = get(&server, target);
        assert_eq!(got.status, 404, "{target}");
        assert!(got.body.contains("There is no text index here: a crawl keeps one unless"), "{target}: {}", got.body);
        assert!(!got.body.contains("opensearch.xml"), "{target}");
    }
    for target in ["/api/search?q=sea", "/api/complete?q=sea", "/opensearch.xml"] {
        let got = get(&server, target);
        assert_eq!(got.status, 404, "{target}");
        assert!(got.json()["error"].as_str().is_some_and(|e| e.starts_with("there is no text index")), "{target}");
    }
    assert_eq!(get(&server, &format!("/cached/inert?url={}", query(HUB))).status, 404);
}

#[test]
fn browsers_learn_how_to_ask() {
    let server = serve();
    for target in ["/", "/search?q=sea", "/graph", "/path", "/nowhere", &format!("/cached?url={}", query(HUB))] {
        let link = "<link rel=\"search\" type=\"application/opensearchdescription+xml\" href=\"/opensearch.xml\" title=\"rhumb\">";
        assert!(get(&server, target).body.contains(link), "{target}");
    }
    for host in ["localhost:8080", "[::1]:99", "graph.example"] {
        let got = get_as(server.address, host, "/opensearch.xml");
        assert_eq!(got.headers["content-type"], "application/opensearchdescription+xml");
        assert!(got.body.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">"));
        for address in ["/search?q={searchTerms}", "/api/complete?q={searchTerms}"] {
            assert!(got.body.contains(&format!(" template=\"http://{host}{address}\"></Url>")), "{}", got.body);
        }
    }
    assert_eq!(get_as(server.address, "rebound.example", "/opensearch.xml").status, 421);
}

#[test]
fn results_of_strangers_stay_text() {
    let server = serve();
    let evil = query(EVIL);
    let hostile = query(HOSTILE);
    for target in [
        "/search?q=sea+chart&more=1".to_string(),
        format!("/search?q={evil}"),
        format!("/search?q=sea+{evil}:x"),
        format!("/search?q=sea&page={evil}"),
        format!("/cached?url={hostile}"),
        format!("/cached?url={hostile}&as=page"),
        format!("/cached?url={evil}"),
        format!("/cached?url={}", query(SCRIPT)),
    ] {
        let got = get(&server, &target);
        assert_eq!(got.headers["content-type"], "text/html; charset=utf-8", "{target}");
        assert!(is_clean(&got.body), "{target}: {}", got.body);
    }
    let page = get(&server, "/search?q=sea+chart&more=1").body;
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "it is shown as it was written");
    assert!(page.contains(&format!("<a href=\"/page?url={}\">", query(SCRIPT))), "no address that would run: {page}");
    assert!(page.contains("<bdi>%E2%80%AEfdp.exe</bdi>"), "nothing turns an address round: {page}");
    let site = get(&server, &format!("/search?q=site:{}", query("alone.example"))).body;
    assert!(site.contains(&format!(">{ALONE}</a>")), "a page without a title has its address: {site}");
}

/// The headers that keep a document still, or let it be framed, stand on the two answers that need them and nowhere else.
#[test]
fn every_answer_has_the_policy_it_needs() {
    let server = serve();
    let policy = |got: &Got| got.headers["content-security-policy"].clone();
    let (copy, inert) = (format!("/cached?url={}", query(ARMED)), format!("/cached/inert?url={}", query(ARMED)));
    for target in [
        "/",
        "/search?q=sea",
        "/search?q=",
        "/search?q=zzzz",
        "/graph",
        "/opensearch.xml",
        "/api/search?q=sea",
        "/api/complete?q=s",
        "/api/search",
        "/cached",
        &copy,
        &format!("/cached?url={}&as=page", query(PDF)),
        &format!("/cached?url={}&as=page", query(NOARCHIVE)),
        "/cached/inert/",
        "/cached/%69nert?url=x",
    ] {
        let got = get(&server, target);
        let usual = policy(&got);
        assert!(
            usual.starts_with("default-src 'none'; script-src 'self';") && usual.ends_with("frame-ancestors 'none'"),
            "{target}: {usual}"
        );
        assert_eq!(got.headers["cross-origin-opener-policy"], "same-origin", "{target}");
        assert_eq!(got.headers["x-dns-prefetch-control"], "off", "{target}");
    }
    let framing = get(&server, &format!("{copy}&as=page"));
    assert!(
        policy(&framing).ends_with("frame-ancestors 'none'; frame-src 'self'") && !policy(&framing).contains("unsafe")
    );
    assert!(framing.body.contains("<iframe class=\"inert\" sandbox=\"\" "), "no permission: {}", framing.body);
    for target in [
        &inert,
        "/cached/inert",
        &format!("/cached/inert?url={}", query(NOARCHIVE)),
        &format!("/cached/inert?url={}", query(PDF)),
    ] {
        let got = get(&server, target);
        assert_eq!(policy(&got), INERT, "{target}");
        assert_eq!(got.headers["x-content-type-options"], "nosniff", "{target}");
        assert_eq!(got.headers["content-disposition"], "inline", "{target}");
        assert_eq!(got.headers["referrer-policy"], "no-referrer", "{target}");
        assert!(got.status == 200 || got.headers["content-type"] == "text/plain; charset=utf-8", "{target}");
    }
}

#[test]
fn copies_are_shown_where_they_may_be() {
    let server = serve();
    let copy = get(&server, &format!("/cached?url={}", query(HUB)));
    assert_eq!(copy.status, 200);
    assert!(copy.body.contains("This is a copy of") && copy.body.contains("2026-11-16 21:40:00 UTC"), "{}", copy.body);
    assert!(
        copy.body.contains("<p dir=\"auto\">This guide begins with the log and ends with ropes.</p>"),
        "{}",
        copy.body
    );
    assert!(!copy.body.contains("<iframe"));
    let document = get(&server, &format!("/cached?url={}&as=page", query(PDF))).body;
    assert!(!document.contains("<iframe") && document.contains("application/pdf"), "a PDF has its text: {document}");
    for target in [format!("/cached?url={}", query(NOARCHIVE)), "/cached?url=unknown.example".to_string()] {
        let none = get(&server, &target);
        assert_eq!(none.status, 404, "{target}");
        assert!(
            none.body.contains("it was not archived, or its site asks that no copy be shown</bdi>."),
            "{}",
            none.body
        );
    }
    let inert = get(&server, &format!("/cached/inert?url={}", query(ARMED)));
    assert!(inert.body.contains("<h1 id=h>Armed and harmless</h1>"), "the copy is what it was: {}", inert.body);
    for gone in ["<link", "<meta", "<base", "<iframe", "<a href=https"] {
        assert!(!inert.body.contains(gone), "{gone}: {}", inert.body);
    }
}
