//! The text index, as people ask it: the right page first, only what may be found, as new as the crawl; the query language; how well it
//! ranks, measured.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use rhumb_sim::{Reply, Server, WebConfig};
use serde_json::{Value, json as value};

use crate::common::{Place, crawl, json, rhumb, run, serve};

/// Asks the program, which must answer: 0 if something was found, 1 if not.
pub fn search(dir: &Path, query: &str, more: &[&str]) -> Value {
    let output = run(rhumb().args(["search", "--json"]).args(more).arg(dir).args(["--", query]));
    answered(&output, query)
}

/// What a search answered that must have answered.
fn answered(output: &Output, query: &str) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("panicked"), "{query:?}: {told}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{query:?}: {e}: {told}"));
    let found = answer["results"].as_array().unwrap_or_else(|| panic!("{query:?}: {answer}"));
    assert_eq!(output.status.code(), Some(i32::from(found.is_empty())), "{query:?}: {told}");
    answer
}

fn urls(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().expect("results").iter();
    results.map(|r| r["url"].as_str().expect("a URL").to_string()).collect()
}

/// The paths of the pages found, best first.
fn paths(dir: &Path, query: &str) -> Vec<String> {
    let path = |url: &String| format!("/{}", url.splitn(4, '/').nth(3).unwrap_or_default());
    urls(&search(dir, query, &["--ungrouped", "--limit", "100"])).iter().map(path).collect()
}

fn page(lang: &str, title: &str, body: &str) -> Reply {
    let text = format!("<!doctype html><html lang={lang}><title>{title}</title><body>{body}");
    Reply::new(200, "text/html; charset=utf-8", &text)
}

/// A text of its own.
fn own(n: u64) -> Vec<String> {
    (0..200u64).map(|i| format!("word{}", (n * 7_919 + i * i * 31 + i) % 5_003)).collect()
}

fn sentences(words: &[String]) -> String {
    words.chunks(20).map(|s| format!("<p>{}.</p>", s.join(" "))).collect()
}

/// A small web in which each page is there for a reason. Its front page leads everywhere.
fn library() -> Server {
    let server = serve(WebConfig::plain(3, 1));
    let web = server.web();
    let pages = [
        (
            "/crawler",
            "en",
            "How a web crawler works",
            "<h1>The crawler</h1><p>A crawler fetches pages, finds the links in them and follows these: it crawls the web. A polite one waits between two requests to the same host, and asks for robots.txt before anything else.</p>",
        ),
        (
            "/steam",
            "en",
            "Steam engines",
            "<h1>Steam</h1><p>Steam engines drove pumps, mills and ships for two centuries, long before anybody spoke of a crawler; boilers, pistons and condensers were made of iron and brass in workshops all over the country, by people who learned the trade from their parents.</p>",
        ),
        (
            "/notes",
            "en",
            "Notes",
            "<h1>Barometers</h1><p>They tell the pressure of the air. Falling mercury means a storm, rising mercury means a clear day, and a sailor taps the glass every morning.</p>",
        ),
        (
            "/attic",
            "en",
            "In the attic",
            "<p>We found two chairs, a box of letters, seven spoons, one of those old barometers and a rocking horse without a head, all under a thick layer of dust that nobody had touched since the war.</p>",
        ),
        (
            "/plain",
            "en",
            "Travel by air",
            "<p>Huge ships filled with hydrogen once crossed the ocean in three days, with a dining room and a piano on board.</p>",
        ),
        (
            "/gardens/hydrangea-care",
            "en",
            "What to do in March",
            "<p>Cut the dry heads above the first pair of buds, and water the plants with soft water as soon as the frost is over.</p>",
        ),
        (
            "/turm",
            "de",
            "Die Türme an der Küste",
            "<h1>Leuchttürme</h1><p>Ein Leuchtturm weist den Schiffen in der Nacht den Weg. Die ältesten Türme an unserer Küste wurden aus Holz gebaut, und der Wärter zündete jeden Abend das Feuer an.</p>",
        ),
        (
            "/toudai",
            "ja",
            "灯台の歴史",
            "<p>灯台は岬や港に建てられ、夜に光を出して船に位置を知らせる塔です。日本で最初の西洋式灯台は観音埼灯台です。</p>",
        ),
        (
            "/phrase/right",
            "en",
            "Cooking",
            "<p>The red kettle sings on the stove while the bread is in the oven, and the cat sleeps below the window.</p>",
        ),
        (
            "/phrase/wrong",
            "en",
            "Camping",
            "<p>A kettle hung over the fire; its handle was red, and our soup boiled in it until the stars came out over the lake.</p>",
        ),
    ];
    let links: String = pages.iter().map(|(path, _, title, _)| format!("<a href='{path}'>{title}</a> ")).collect();
    let other: String = [1, 2].iter().map(|host| format!("<a href='{}/'>Harbour</a> ", web.origin(*host))).collect();
    let front = format!(
        "<h1>The library</h1><p>Everything that is here, in one list. {links} <a href=/hidden>h</a> \
         <a href=/doc.txt>memo</a> <a href=/old>old</a> <a href=/new>new</a> {other}</p>"
    );
    web.set_document(0, "/", page("en", "The library", &front));
    for (path, lang, title, body) in pages {
        web.set_document(0, path, page(lang, title, body));
    }
    web.set_document(
        0,
        "/doc.txt",
        Reply::new(200, "text/plain", "A memorandum on penguins, to be read by everybody who feeds them."),
    );
    // What this page says is not found, but it leads where it leads.
    let hidden = "<meta name=robots content=noindex><p>Have a look at this <a href=/plain>zeppelin</a>.</p>";
    web.set_document(0, "/hidden", page("en", "Hidden", hidden));
    let dated = |title: &str, text: &str, date: &str| page("en", title, text).with_header("Last-Modified", date);
    web.set_document(
        0,
        "/old",
        dated(
            "Of old",
            "<p>Chronicle of the years when the mill was still turning.</p>",
            "Tue, 07 Mar 2017 10:00:00 GMT",
        ),
    );
    web.set_document(
        0,
        "/new",
        dated(
            "Of late",
            "<p>Chronicle of what happened since the flood took the bridge.</p>",
            "Thu, 06 Jun 2024 10:00:00 GMT",
        ),
    );
    for host in 1..3 {
        let links: String = (1..6).map(|n| format!("<a href=/pier/{n}>{n}</a> ")).collect();
        web.set_document(host, "/", page("en", "A quay", &format!("<p>Boats lie here in rows of {host}. {links}</p>")));
        for n in 1..6 {
            // What all pages of a host say is taken for furniture, so it is in the title.
            let text = sentences(&own(host * 100 + n));
            web.set_document(
                host,
                &format!("/pier/{n}"),
                page("en", &format!("A harbour with a pier of number {n}"), &text),
            );
        }
    }
    server
}

fn crawled(server: &Server, more: &[&str]) -> Place {
    let place = Place::new();
    let front = format!("{}/", server.web().origin(0));
    json(&run(&mut crawl(server, &place.dir, &[&[&*front, "--scope", "any", "--delay", "1ms"], more].concat())), 0);
    place
}

/// What is marked of a text.
fn marked(text: &Value, spans: &Value) -> Vec<String> {
    let chars: Vec<char> = text.as_str().expect("a text").chars().collect();
    let spans: Vec<(usize, usize)> = serde_json::from_value(spans.clone()).expect("spans");
    spans.into_iter().map(|(from, to)| chars[from..to].iter().collect()).collect()
}

#[test]
fn the_right_page_comes_first() {
    let server = library();
    let place = crawled(&server, &[]);
    let dir = &place.dir;
    for (query, path) in [
        ("crawler", "/crawler"),
        // The same word in another form.
        ("crawlers", "/crawler"),
        ("crawling", "/crawler"),
        ("CRAWLER", "/crawler"),
        // In a heading, not in passing.
        ("barometers", "/notes"),
        ("barometer", "/notes"),
        // In nothing but a link to it.
        ("zeppelin", "/plain"),
        // In nothing but the address.
        ("hydrangea", "/gardens/hydrangea-care"),
        ("Leuchtturm", "/turm"),
        ("leuchtturme", "/turm"),
        ("灯台", "/toudai"),
        ("観音埼", "/toudai"),
        ("memorandum", "/doc.txt"),
    ] {
        assert_eq!(paths(dir, query).first().map(String::as_str), Some(path), "{query}");
    }
    let both = paths(dir, "barometers");
    assert_eq!(both, ["/notes", "/attic"]);

    let answer = search(dir, "crawlers robots", &["--explain"]);
    let first = &answer["results"][0];
    assert_eq!(marked(&first["title"], &first["title_highlights"]), ["crawler"]);
    let shown = marked(&first["snippet"], &first["highlights"]);
    assert!(shown.iter().any(|w| w == "crawler") && shown.iter().any(|w| w == "robots"), "{first}");
    assert_eq!(
        (&answer["total"], &answer["total_exact"], &answer["more"]),
        (&value!(3), &value!(true), &value!(false))
    );
    assert_eq!((&first["language"], &first["type"], &first["cached"]), (&value!("en"), &value!("html"), &value!(true)));
    assert!(first["links_in"].as_u64() >= Some(1), "{first}");
    let pages = answer["pages"].as_u64();
    assert_eq!(pages, Some(1 + 10 + 3 + 12), "{answer}");

    // Every score is the sum of its parts, whatever is asked.
    for (query, more) in [
        ("crawlers robots", &[][..]),
        ("zeppelin air", &[]),
        ("harbour pier", &["--fresh"]),
        ("the boats and ships that cross the ocean with steam engines and a piano on board", &[]),
        ("\"red kettle\" intitle:cooking", &[]),
        ("site:", &[]),
        ("lang:de", &[]),
    ] {
        let answer = search(dir, query, &[&["--explain", "--ungrouped"], more].concat());
        for result in answer["results"].as_array().expect("results") {
            let parts = result["explanation"].as_array().expect("an explanation").iter();
            let sum: f64 = parts.map(|part| part["score"].as_f64().expect("a number")).sum();
            let score = result["score"].as_f64().expect("a number");
            assert!((sum - score).abs() <= 1e-9 * score.abs().max(1.0), "{query}: {sum} is not {score}: {result}");
        }
    }
    // Japanese pages are shown by their own words.
    let answer = search(dir, "灯台 船", &[]);
    let first = &answer["results"][0];
    assert!(marked(&first["snippet"], &first["highlights"]).contains(&"船".to_string()), "{first}");
    // For people: one line says how many there are.
    let told = run(rhumb().arg("search").arg(dir).arg("barometers"));
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.starts_with("2 pages of 26\n") && told.contains("1. Notes"), "{told}");
}

#[test]
fn only_what_may_be_found_is_found_and_only_what_may_be_shown_is_shown() {
    let server = serve(WebConfig::plain(2, 1));
    let web = server.web();
    let copy = format!("{}/copy", web.origin(1));
    let front = format!(
        "<a href=/meta>1</a> <a href=/header>2</a> <a href=/nosnippet>3</a> <a href=/noarchive>4</a> <a href=/one>5</a> \
         <a href=/nearly>6</a> <a href='{copy}'>7</a> <a href=/missing>8</a> <a href=/moved>9</a>"
    );
    web.set_document(0, "/", page("en", "Front", &front));
    let quiet = "<meta name=robots content=noindex>";
    web.set_document(0, "/meta", page("en", "Hidden", &format!("{quiet}<p>The walrus hides behind a rock.</p>")));
    let hidden = page("en", "Hidden too", "<p>Another walrus hides below the ice.</p>");
    web.set_document(0, "/header", hidden.with_header("X-Robots-Tag", "noindex"));
    let text = "<p>An ocelot is a cat with spots that lives in the forest.</p>";
    web.set_document(0, "/nosnippet", page("en", "Ocelots", &format!("<meta name=robots content=nosnippet>{text}")));
    let text = "<p>A lynx is a cat with brushes on its ears.</p>";
    web.set_document(0, "/noarchive", page("en", "Lynxes", text).with_header("X-Robots-Tag", "noarchive"));
    let one = own(1);
    let mut nearly = one.clone();
    nearly[100] = "changed".to_string();
    web.set_document(0, "/one", page("en", "One", &sentences(&one)));
    web.set_document(0, "/nearly", page("en", "One", &sentences(&nearly)));
    web.set_document(1, "/copy", page("en", "One", &sentences(&one)));
    web.set_document(0, "/missing", Reply::new(404, "text/html", "<title>Walrus</title><p>There is no walrus here."));
    web.set_document(0, "/moved", Reply::redirect(301, "/noarchive"));
    let place = crawled(&server, &[]);
    let dir = &place.dir;
    assert_eq!(paths(dir, "walrus"), [] as [&str; 0]);
    let answer = search(dir, "ocelot forest", &[]);
    let first = &answer["results"][0];
    assert_eq!((&first["title"], &first["snippet"]), (&value!("Ocelots"), &value!("")));
    assert_eq!((&first["highlights"], &first["cached"]), (&value!([]), &value!(true)), "{first}");
    let first = &search(dir, "lynx", &[])["results"][0];
    assert_eq!(
        (first["url"].as_str().map(|u| u.ends_with("/noarchive")), &first["cached"]),
        (Some(true), &value!(false))
    );
    assert!(first["snippet"].as_str().is_some_and(|s| s.contains("brushes")), "{first}");
    // What a link to a page that moved says is said of where it moved to.
    assert!(paths(dir, "site: 9").is_empty() || paths(dir, "9").contains(&"/noarchive".to_string()));

    // One page stands for all that say the same.
    let word = one[50].as_str();
    let alone = search(dir, word, &["--ungrouped"]);
    assert_eq!((urls(&alone).len(), &alone["total"]), (1, &value!(1)), "{alone}");
    let standing = urls(&alone).remove(0);
    let all = search(dir, &format!("{word} dup:"), &["--ungrouped"]);
    assert_eq!((urls(&all).len(), &all["total"]), (3, &value!(3)), "{all}");
    for result in all["results"].as_array().expect("results") {
        let of = if result["url"] == *standing { Value::Null } else { value!(standing) };
        assert_eq!(result["duplicate_of"], of, "{result}");
    }
    let others = search(dir, &format!("dup:{standing}"), &["--ungrouped"]);
    assert_eq!(others["total"], 2, "{others}");
    assert!(!urls(&others).contains(&standing));
}

/// Waits until a query finds what is wanted.
fn until(dir: &Path, query: &str, wanted: &[&str], bound: Duration) {
    let deadline = Instant::now() + bound;
    loop {
        let output = run(rhumb().args(["search", "--json"]).arg(dir).args(["--", query]));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!told.contains("panicked"), "{told}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let found = answer["results"].as_array().is_some_and(|_| {
            let urls = urls(&answer);
            urls.len() == wanted.len() && urls.iter().zip(wanted).all(|(url, path)| url.ends_with(path))
        });
        if found {
            return;
        }
        assert!(Instant::now() < deadline, "{query}: {answer} {told}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_page_is_found_as_what_it_is_now() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/", page("en", "Front", "<p>All of them. <a href=/a>first</a> <a href=/b>second</a>"));
    web.set_document(0, "/a", page("en", "A", "<p>Once there was a giraffe in this place.</p>"));
    web.set_document(0, "/b", page("en", "B", "<p>Here lives a hippopotamus, and it is not leaving.</p>"));
    let place = Place::new();
    let settings = place.file("settings.toml", "[crawl]\nrevisit = \"300ms\"\n[traps]\nlearn = false\n");
    let front = format!("{}/", web.origin(0));
    let mut command = crawl(&server, &place.dir, &[&front, "--continuous", "--delay", "20ms", "--max-time", "60s"]);
    let mut running = command.arg("--config").arg(settings).spawn().expect("started");
    let bound = Duration::from_secs(30);
    until(&place.dir, "giraffe", &["/a"], bound);
    until(&place.dir, "hippopotamus", &["/b"], bound);
    web.set_document(0, "/a", page("en", "A", "<p>By now there is a rhinoceros in this place.</p>"));
    until(&place.dir, "rhinoceros", &["/a"], bound);
    until(&place.dir, "giraffe", &[], bound);
    web.set_document(0, "/b", Reply::new(404, "text/html", "<p>Gone."));
    until(&place.dir, "hippopotamus", &[], bound);
    web.set_document(0, "/a", page("en", "A", "<meta name=robots content=noindex><p>A rhinoceros that hides.</p>"));
    until(&place.dir, "rhinoceros", &[], bound);
    assert!(running.try_wait().expect("a process").is_none(), "the crawl goes on");
    running.kill().expect("killed");
    let _ = running.wait();
    // After its end it is the same, and so it is for an index that was made anew.
    let ask =
        || ["giraffe", "rhinoceros", "hippopotamus", "front", "rhinocerus"].map(|q| facts(&search(&place.dir, q, &[])));
    let kept = ask();
    assert_eq!(paths(&place.dir, "front"), ["/"]);
    assert_eq!(paths(&place.dir, "rhinoceros giraffe hippopotamus"), [] as [&str; 0]);
    json(&run(rhumb().args(["rebuild", "--json"]).arg(&place.dir)), 0);
    assert_eq!(ask(), kept);
}

/// What must not depend on how an index came about.
pub fn facts(answer: &Value) -> Value {
    let result = |r: &Value| value!([r["url"], r["score"], r["title"], r["snippet"], r["links_in"], r["duplicate_of"]]);
    let results: Vec<Value> = answer["results"].as_array().expect("results").iter().map(result).collect();
    value!({
        "query": answer["query"], "results": results, "total": answer["total"], "exact": answer["total_exact"],
        "suggestion": answer["suggestion"], "pages": answer["pages"], "more": answer["more"],
    })
}

#[test]
fn what_is_typed_means_what_it_should() {
    let server = library();
    let place = crawled(&server, &[]);
    let dir = &place.dir;
    let host = |n: u64| server.web().host_name(n);
    let front = format!("{}/", server.web().origin(0));
    let sorted = |query: &str| -> Vec<String> {
        let mut found = paths(dir, query);
        found.sort();
        found
    };
    assert_eq!(sorted("red kettle"), ["/phrase/right", "/phrase/wrong"]);
    assert_eq!(paths(dir, "\"red kettle\""), ["/phrase/right"]);
    assert_eq!(paths(dir, "kettle -bread"), ["/phrase/wrong"]);
    assert_eq!(paths(dir, "kettle +stars"), ["/phrase/wrong"]);
    assert_eq!(paths(dir, "kettle -\"red kettle\""), ["/phrase/wrong"]);
    assert_eq!(paths(dir, "barometers -pressure-of-the-air"), ["/attic"]);
    assert_eq!(paths(dir, "kettle NOT bread"), ["/phrase/wrong"]);
    assert_eq!(paths(dir, "bread AND kettle"), ["/phrase/right"]);
    assert_eq!(paths(dir, "intitle:cooking"), ["/phrase/right"]);
    assert_eq!(paths(dir, "kettle inurl:wrong"), ["/phrase/wrong"]);
    assert_eq!(sorted("inurl:phrase"), ["/phrase/right", "/phrase/wrong"]);
    assert_eq!(paths(dir, "hydrang*"), ["/gardens/hydrangea-care"]);
    assert_eq!(paths(dir, "memorand*"), ["/doc.txt"]);
    assert_eq!(paths(dir, "lang:ja"), ["/toudai"]);
    assert_eq!(paths(dir, "lang:de küste"), ["/turm"]);
    assert_eq!(paths(dir, "type:text"), ["/doc.txt"]);
    assert_eq!(paths(dir, "penguins -type:text"), [] as [&str; 0]);
    assert_eq!(paths(dir, "chronicle after:2024"), ["/new"]);
    assert_eq!(paths(dir, "chronicle before:2020-01-01"), ["/old"]);
    assert_eq!(sorted("chronicle after:2017-03 before:2025"), ["/new", "/old"]);
    assert_eq!(paths(dir, "before:2018"), ["/old"]);
    let piers = sorted("harbour");
    assert_eq!(piers.iter().filter(|path| path.starts_with("/pier/")).count(), 10, "{piers:?}");
    let of_one = sorted(&format!("harbour pier site:{}", host(1)));
    assert!(of_one.len() >= 5 && of_one.iter().all(|path| path.starts_with("/pier/") || path == "/"), "{of_one:?}");
    assert_eq!(paths(dir, &format!("chronicle site:{}", host(1))), [] as [&str; 0]);
    let deep = sorted(&format!("site:{}/phrase", host(0)));
    assert_eq!(deep, ["/phrase/right", "/phrase/wrong"]);
    let above = host(0).split_once('.').map(|(_, above)| above.to_string()).expect("a domain");
    assert_eq!(sorted(&format!("site:{above}/phrase")), deep);
    assert_eq!(paths(dir, &format!("bread stars boilers -site:{}/phrase", host(0))), ["/steam"]);
    assert_eq!(paths(dir, &format!("link:{front}crawler")), ["/"]);
    assert_eq!(paths(dir, &format!("link:{front}nowhere")), [] as [&str; 0]);
    // A page that links to itself or to others is not asked for its words.
    assert_eq!(paths(dir, &format!("library link:{front}crawler")), ["/"]);
}

#[test]
fn a_host_has_two_results_unless_more_is_asked_for() {
    let server = library();
    let place = crawled(&server, &[]);
    let dir = &place.dir;
    let grouped = search(dir, "+pier", &["--limit", "100"]);
    let hosts: Vec<&str> =
        grouped["results"].as_array().expect("results").iter().filter_map(|r| r["host"].as_str()).collect();
    for host in [1, 2].map(|n| server.web().host_name(n)) {
        assert_eq!(hosts.iter().filter(|h| **h == host).count(), 2, "{grouped}");
        let of_host = grouped["results"].as_array().expect("results").iter().filter(|r| r["host"] == *host);
        assert_eq!(of_host.map(|r| r["more_from_host"] == true).collect::<Vec<_>>(), [false, true], "{grouped}");
    }
    let all = search(dir, "+pier", &["--limit", "100", "--ungrouped"]);
    assert_eq!((all["total"].as_u64(), urls(&all).len()), (Some(10), 10), "{all}");
    assert!(all["results"].as_array().expect("results").iter().all(|r| r["more_from_host"] == false), "{all}");
    // Page by page they are the same, each once, grouped or not.
    for more in [&[][..], &["--ungrouped"]] {
        let whole = urls(&search(dir, "pier harbour boats", &[&["--limit", "100"], more].concat()));
        let mut parts = Vec::new();
        loop {
            let offset = parts.len().to_string();
            let part = search(dir, "pier harbour boats", &[&["--limit", "3", "--offset", &offset], more].concat());
            parts.extend(urls(&part));
            assert_eq!(part["more"] == true, parts.len() < whole.len(), "{part}");
            if part["more"] != true {
                break;
            }
        }
        assert_eq!(parts, whole);
        assert_eq!(parts.iter().collect::<BTreeSet<_>>().len(), parts.len());
    }
    let beyond = search(dir, "pier", &["--offset", "900"]);
    assert_eq!((urls(&beyond).len(), &beyond["more"]), (0, &value!(false)));
}

#[test]
fn whatever_is_typed_is_a_query() {
    let server = library();
    let place = crawled(&server, &[]);
    let long = "kettle ".repeat(3_000);
    let deep = format!("{}x{}", "(".repeat(2_000), ")".repeat(2_000));
    for rubbish in [
        "",
        " ",
        "\"",
        "\"\"",
        "-",
        "+",
        "*",
        "**",
        "a*",
        "-*",
        "+\"",
        "site:",
        "site:://",
        "intitle:",
        "intitle:\"\"",
        "inurl:%%%",
        "lang:klingon",
        "type:☃",
        "after:yesterday",
        "before:99999999999999999999",
        "after:-1",
        "link:",
        "link:\u{7f}",
        "dup:",
        "dup:nonsense",
        "AND",
        "AND AND",
        "NOT",
        "OR OR",
        "NOT NOT x",
        "+-+-x",
        "((((",
        "]]>><<&&||",
        "\\",
        "\u{202e}drawkcab",
        "\u{0}".trim_matches('\0'),
        "🦀🦀🦀",
        "e\u{301}\u{301}\u{301}",
        "ﷺ",
        "a\tb\nc\rd",
        "'; DROP TABLE pages; --",
        "{\"q\":1}",
        "%s%n",
        "site:[::1]",
        "site:xn--",
        "xn--ls8h",
        "灯台灯台灯台灯台灯台",
        "ก็ได้นะครับ",
        "한국어검색",
        "مرحبا",
        "İstanbul",
        "ß",
        "ŉ",
        "-site:x -lang:de",
        "9223372036854775808",
        "1e309",
        "the",
        "of the and",
        "--json",
        "-x",
        "site:a site:b site:c",
        "\"the of\"",
        "z* y* x* a* e* s*",
        &long,
        &deep,
    ] {
        search(&place.dir, rubbish, &[]);
    }
    // In several words, with options behind them.
    let output = run(rhumb().arg("search").arg(&place.dir).args(["kettle", "-bread", "--limit", "5", "--json"]));
    assert_eq!(urls(&answered(&output, "kettle -bread")).len(), 1);
    let notes = search(&place.dir, "kettle after:yesterday", &[]);
    assert!(notes["notes"][0].as_str().is_some_and(|note| note.contains("yesterday")), "{notes}");
    // A word that is there often enough is meant by one that is not there at all.
    let meant = search(&place.dir, "harbuor", &[]);
    assert_eq!((&meant["suggestion"], urls(&meant).len()), (&value!("harbour"), 0), "{meant}");
    assert_eq!(search(&place.dir, "+harbuor -kettle", &[])["suggestion"], "+harbour -kettle");
    assert!(search(&place.dir, "harbour", &[]).get("suggestion").is_none());
}

#[test]
fn a_crawl_without_an_index_says_so() {
    let server = library();
    let place = crawled(&server, &["--no-index"]);
    assert!(!place.dir.join("index/parts").exists());
    let output = run(rhumb().arg("search").arg(&place.dir).arg("kettle"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.lines().count() == 1 && told.contains("no text index") && told.contains("--no-index"), "{told}");
    let output = run(rhumb().arg("search").arg(place.dir.with_file_name("nowhere")).arg("kettle"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && told.lines().count() == 1, "{told}");
}

#[test]
fn a_page_is_found_within_seconds_of_its_fetch() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let links: String = (0..60).map(|n| format!("<a href=/page/{n}>page</a> ")).collect();
    web.set_document(0, "/", page("en", "Front", &links));
    for n in 0..60u64 {
        web.set_document(0, &format!("/page/{n}"), page("en", &format!("Page number{n}"), &sentences(&own(n))));
    }
    let place = Place::new();
    let front = format!("{}/", web.origin(0));
    let mut running = crawl(&server, &place.dir, &[&front, "--delay", "250ms"]).spawn().expect("started");
    let deadline = Instant::now() + Duration::from_secs(60);
    for n in [2u64, 11, 23] {
        let path = format!("/page/{n}");
        while server.log().iter().all(|entry| entry.path != path) {
            assert!(Instant::now() < deadline, "{path} was not fetched");
            std::thread::sleep(Duration::from_millis(5));
        }
        let fetched = Instant::now();
        until(&place.dir, &format!("number{n}"), &[&path], Duration::from_secs(5));
        println!("{path} was found after {:?}", fetched.elapsed());
        assert!(running.try_wait().expect("a process").is_none(), "the crawl goes on");
    }
    running.kill().expect("killed");
    let _ = running.wait();
}

#[test]
fn an_index_that_is_gone_is_made_anew() {
    let server = library();
    let place = crawled(&server, &[]);
    let ask =
        || ["kettle", "harbour", "灯台", "harbuor", "zeppelin", "-the"].map(|q| facts(&search(&place.dir, q, &[])));
    let before = ask();
    std::fs::remove_dir_all(place.dir.join("index")).expect("removed");
    assert_eq!(ask(), before);
    assert!(place.dir.join("index/parts").is_file());
    json(&run(rhumb().args(["rebuild", "--json"]).arg(&place.dir)), 0);
    assert_eq!(ask(), before);
    json(&run(rhumb().args(["status", "--check", "--json"]).arg(&place.dir)), 0);
}

#[test]
fn a_ranking_is_measured_as_by_hand() {
    let place = Place::new();
    let docs = place.file(
        "docs.jsonl",
        "{\"id\": \"a\", \"text\": \"apples apples apples\"}\n{\"id\": \"b\", \"text\": \"apples and a long list of other fruit that nobody asked for\"}\n\
         \n{\"id\": 3, \"text\": \"pears grow on trees\", \"title\": \"Pears\"}\n{\"id\": \"d\", \"text\": \"nothing at all\"}\n",
    );
    let queries = place.file("queries.jsonl", "{\"id\": 1, \"text\": \"apples\"}\n{\"id\": \"2\", \"text\": \"pears\"}\n{\"id\": 9, \"text\": \"unjudged\"}\n");
    // Of the first, the second result is relevant, and a document that is not found; of the second the only one.
    let qrels = place.file("qrels.txt", "1 0 b 1\n1 0 d 1\n1 0 a 0\n2 0 3 2\n");
    let run_file = place.dir.with_file_name("run.txt");
    let figures =
        json(&run(rhumb().args(["index", "eval"]).args([&docs, &queries, &qrels]).arg("--run").arg(&run_file)), 0);
    assert_eq!((&figures["queries"], &figures["documents"]), (&value!(2), &value!(4)));
    let near = |name: &str, expected: f64| {
        let is = figures[name].as_f64().expect("a number");
        assert!((is - expected).abs() < 1e-6, "{name} is {is}, not {expected}");
    };
    near("map", (0.5 / 2.0 + 1.0) / 2.0);
    let gained = 1.0 / 3f64.log2();
    near("ndcg10", (gained / (1.0 + gained) + 1.0) / 2.0);
    near("recall100", (0.5 + 1.0) / 2.0);
    let written = std::fs::read_to_string(&run_file).expect("written");
    let rows: Vec<Vec<&str>> = written.lines().map(|line| line.split(' ').collect()).collect();
    let rows: Vec<[&str; 4]> = rows.iter().map(|row| [row[0], row[1], row[2], row[3]]).collect();
    assert_eq!(rows, [["1", "Q0", "a", "1"], ["1", "Q0", "b", "2"], ["2", "Q0", "3", "1"]]);

    let refused = |files: [&std::path::PathBuf; 3], holds: &[&str]| {
        let output = run(rhumb().args(["index", "eval"]).args(files));
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.lines().count() == 1 && holds.iter().all(|h| told.contains(h)), "{told}");
    };
    let bad = place.file("bad.jsonl", "{\"id\": 1, \"text\": \"x\"}\n\n{\"id\": 2}\n");
    refused([&bad, &queries, &qrels], &["bad.jsonl", "line 3", "text"]);
    refused([&docs, &bad, &qrels], &["bad.jsonl", "line 3"]);
    let bad = place.file("bad.txt", "1 0 b 1\n1 b 1\n");
    refused([&docs, &queries, &bad], &["bad.txt", "line 2"]);
    let bad = place.file("worse.txt", "1 0 b much\n");
    refused([&docs, &queries, &bad], &["worse.txt", "line 1"]);
    let none = place.file("none", "");
    refused([&docs, &none, &qrels], &["at least one"]);
    refused([&docs, &queries, &place.dir.with_file_name("nowhere")], &["nowhere"]);
}
