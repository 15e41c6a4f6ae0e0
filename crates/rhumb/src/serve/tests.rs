//! The server over real sockets, with a graph that is known by heart; with a text index in [`search`].

mod search;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fake::{self, ALONE, EVIL, HEBREW, HOSTILE, HUB, SCRIPT};
use super::listen::Handle;
use super::start;

fn serve() -> Handle {
    start(fake::app(), TcpListener::bind("127.0.0.1:0").expect("listen")).expect("serve")
}

/// The same without a text index.
fn serve_graph() -> Handle {
    start(fake::without_index(), TcpListener::bind("127.0.0.1:0").expect("listen")).expect("serve")
}

/// An answer as it came: status, headers with names in lower case, body.
struct Got {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Got {
    fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

fn send(address: SocketAddr, request: &str) -> Got {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    // A server that refuses early may close before all was written.
    let _ = stream.write_all(request.as_bytes());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().and_then(|l| l.split(' ').nth(1)).and_then(|s| s.parse().ok()).expect("a status");
    let pair = |line: &str| line.split_once(": ").map(|(n, v)| (n.to_ascii_lowercase(), v.to_string()));
    Got { status, headers: lines.filter_map(pair).collect(), body: body.to_string() }
}

fn get_as(address: SocketAddr, host: &str, target: &str) -> Got {
    send(address, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

fn get(server: &Handle, target: &str) -> Got {
    get_as(server.address, &server.address.to_string(), target)
}

fn query(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[test]
fn questions_are_answered_in_json() {
    let server = serve();
    let check = |target: &str, pointer: &str, expected: Value| {
        let got = get(&server, target);
        assert_eq!(got.status, 200, "{target}: {}", got.body);
        assert_eq!(got.headers["cache-control"], "no-store");
        assert_eq!(got.json().pointer(pointer), Some(&expected), "{target}: {}", got.body);
    };
    let hub = query(HUB);
    check(&format!("/api/links?to={hub}&limit=2"), "/direction", "to".into());
    check(&format!("/api/links?to={hub}&limit=2"), "/next", "2".into());
    check(&format!("/api/links?to={hub}&limit=2&cursor=2&anchors=true"), "/links/0/anchors/0/kind", "a".into());
    check(&format!("/api/links?from={hub}"), "/url", HUB.into());
    check("/api/links?to=docs.example.org/guide/", "/url", HUB.into());
    check(&format!("/api/page?url={hub}"), "/host", "docs.example.org".into());
    check("/api/host?host=DOCS.example.org", "/domain", "example.org".into());
    check("/api/host?host=docs.example.org&limit=1", "/hosts_in/0/host", "blog.example.com".into());
    check(&format!("/api/cocited?url={hub}&limit=1"), "/cocited/0/url", "https://rfc.example/9110".into());
    check(&format!("/api/neighbourhood?url={hub}&nodes=3"), "/nodes/0/side", "centre".into());
    check(&format!("/api/neighbourhood?url={}", query(ALONE)), "/arcs", Value::Array(vec![]));
    check(&format!("/api/path?from={hub}&to={hub}"), "/hops", 0.into());
    check(&format!("/api/path?from=docs.example.org/guide/log.html&to={}", query(SCRIPT)), "/hops", 2.into());
    check(&format!("/api/path?from={hub}&to={}", query(ALONE)), "/hops", Value::Null);
    check("/api/overview", "/running", true.into());
    check(
        "/api/suggest?q=rhumb-lines&limit=1",
        "/urls/0",
        "https://blog.example.com/2023/05/a-post-about-rhumb-lines".into(),
    );
    check("/healthz", "/status", "ok".into());
}

#[test]
fn all_links_are_had_part_by_part() {
    let server = serve();
    let (mut cursor, mut seen) = (String::new(), Vec::new());
    loop {
        let got = get(&server, &format!("/api/links?to=many.example&limit=999{cursor}")).json();
        let part =
            got["links"].as_array().expect("links").iter().map(|l| l["url"].as_str().expect("a URL").to_string());
        seen.extend(part);
        assert_eq!(got["total"], 2_500);
        match got["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 2_500);
}

#[test]
fn wrong_questions_are_named() {
    let server = serve();
    let check = |target: &str, status: u16, error: &str| {
        let got = get(&server, target);
        assert_eq!((got.status, got.json()["error"].as_str()), (status, Some(error)), "{target}");
    };
    check("/api/links", 400, "either to=URL or from=URL is needed");
    check("/api/links?to=a&from=b", 400, "either to=URL or from=URL is needed");
    check("/api/links?to=nonsense", 400, "\"nonsense\" is not a URL");
    check("/api/links?to=javascript:alert(2)", 400, "\"javascript:alert(2)\" is not a URL");
    check("/api/links?to=http://%5B", 400, "\"http://[\" is not a URL");
    check("/api/links?to=https://unknown.example/", 404, "the graph does not know \"https://unknown.example/\"");
    check(&format!("/api/links?to={}&cursor=x", query(HUB)), 400, "this is no cursor of these links");
    check(&format!("/api/links?to={}&limit=1001", query(HUB)), 400, "limit is a number from 1 to 1000");
    check(
        &format!("/api/links?to={}&depth=2", query(HUB)),
        400,
        "unknown parameter \"depth\": one of to, from, anchors, limit, cursor",
    );
    check("/api/page", 400, "the parameter url is missing");
    check("/api/host?host=unknown.example", 404, "the graph does not know the host \"unknown.example\"");
    check(
        &format!("/api/path?from={}&to=unknown.example", query(HUB)),
        404,
        "the graph does not know \"unknown.example\"",
    );
    check(&format!("/api/neighbourhood?url={}&nodes=501", query(HUB)), 400, "nodes is a number from 1 to 500");
    check("/api/", 404, "there is no such question; /api/openapi.json lists them");
    check("/api/unheard/of", 404, "there is no such question; /api/openapi.json lists them");
    check(&format!("/api/page?url={}", "a".repeat(20_000)), 414, "the address is too long");
}

/// The words that begin a tag or an attribute in what was made: text of strangers must be among none of them.
fn is_clean(html: &str) -> bool {
    let tags = html.split('<').skip(1).map(|tag| tag.split('>').next().unwrap_or_default());
    let allowed = |tag: &str| !tag.starts_with("script") || tag.starts_with("script src=\"/assets/script.js?");
    let mut quoted = false;
    tags.clone().all(allowed)
        && !html.contains("<img src=x")
        && tags.clone().all(|tag| {
            // Attributes outside of quotes: none runs anything, none styles anything.
            let outside: String = tag
                .chars()
                .filter(|c| {
                    if *c == '"' {
                        quoted = !quoted;
                    }
                    !quoted
                })
                .collect();
            quoted = false;
            !outside.contains(" on") && !outside.contains(" style=")
        })
        && !html.contains("href=\"javascript:")
        && !html.contains("href=\"data:")
}

#[test]
fn text_of_strangers_stays_text() {
    assert!(
        !is_clean("<p><script>alert(1)</script>") && !is_clean("<a onclick=x>") && is_clean("<a title=\" onclick\">")
    );
    let server = serve();
    let evil = query(EVIL);
    for target in [
        "/".to_string(),
        "/graph".to_string(),
        format!("/page?url={}", query(HUB)),
        format!("/page?url={}", query(HOSTILE)),
        format!("/page?url={}", query(SCRIPT)),
        format!("/page?url={evil}"),
        format!("/page?url=https://a.example/{evil}"),
        format!("/page?url={}&in={evil}", query(HUB)),
        format!("/host?host={}", query("evil\"><script>alert(1)<")),
        format!("/host?host={evil}"),
        format!("/find?q={evil}"),
        "/find?q=evil".to_string(),
        format!("/path?from={evil}&to={evil}"),
        format!("/path?from={}&to={}", query(HOSTILE), query(HUB)),
        format!("/path?from={}&to={}", query(ALONE), query(HOSTILE)),
        format!("/?{evil}={evil}"),
        format!("/{evil}"),
    ] {
        let got = get(&server, &target);
        assert_eq!(got.headers["content-type"], "text/html; charset=utf-8", "{target}");
        assert!(is_clean(&got.body), "{target}: {}", got.body);
    }
    let page = get(&server, &format!("/page?url={}", query(HOSTILE))).body;
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "it is shown as it was written");
    let page = get(&server, &format!("/page?url={}", query("https://he.example/מדריך"))).body;
    assert!(page.contains(&format!("<h1 dir=\"auto\">{HEBREW}</h1>")), "{page}");
}

#[test]
fn nothing_is_answered_to_other_names_and_methods() {
    let server = serve();
    let port = server.address.port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "graph.example".to_string()] {
        assert_eq!(get_as(server.address, &host, "/healthz").status, 200, "{host}");
    }
    for host in ["rebound.example", "127.0.0.1.rebound.example", "", "localhost.rebound.example"] {
        for target in ["/healthz", "/", "/assets/style.css"] {
            let got = get_as(server.address, host, target);
            assert_eq!(got.status, 421, "{host}");
            assert!(got.json()["error"].as_str().is_some());
        }
    }
    let other = "GET http://rebound.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(send(server.address, other).status, 421);
    assert_eq!(send(server.address, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status, 400);
    assert_eq!(
        send(server.address, "GET / HTTP/1.1\r\nHost: localhost\r\nHost: a\r\nConnection: close\r\n\r\n").status,
        400
    );
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"] {
        let request = format!(
            "{method} /api/overview HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a.example\r\nConnection: close\r\n\r\n"
        );
        let got = send(server.address, &request);
        assert_eq!((got.status, got.headers["allow"].as_str()), (405, "GET, HEAD"), "{method}");
    }
    let head = send(server.address, "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn every_answer_carries_the_policy() {
    let server = serve();
    for target in
        ["/", "/api/overview", "/assets/style.css", "/assets/none", "/nowhere", "/api/page", "/find?q=", "/healthz"]
    {
        let got = get(&server, target);
        let policy = &got.headers["content-security-policy"];
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{target}");
        assert_eq!(got.headers["x-content-type-options"], "nosniff", "{target}");
        assert_eq!(got.headers["referrer-policy"], "no-referrer", "{target}");
        assert!(!got.headers.keys().any(|name| name.starts_with("access-control")), "{target}");
    }
}

#[test]
fn heads_are_bounded() {
    let server = serve();
    let big = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    assert_eq!(send(server.address, &big).status, 431);
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n", "X: y\r\n".repeat(500));
    assert_eq!(send(server.address, &many).status, 431);
    assert_eq!(send(server.address, "nonsense\r\n\r\n").status, 400);
}

#[test]
fn pages_are_found_by_what_is_typed() {
    let server = serve();
    let check = |target: &str, status: u16, place: Option<&str>| {
        let got = get(&server, target);
        assert_eq!((got.status, got.headers.get("location").map(String::as_str)), (status, place), "{target}");
    };
    check("/find?q=docs.example.org/guide/", 303, Some("/page?url=https%3A%2F%2Fdocs.example.org%2Fguide%2F"));
    check("/find?q=docs.example.org", 303, Some("/host?host=docs.example.org"));
    check("/find?q=guide", 200, None);
    check("/find?q=", 303, Some("/graph"));
    check("/find?q=zzzz", 404, None);
    check("/page?url=unknown.example", 404, None);
    check("/page", 400, None);
    check("/nowhere", 404, None);
    let found = get(&server, "/page?url=many.example");
    assert!(found.body.contains("&amp;in=50#in\">More</a>"), "the next part is a link");
    let next = get(&server, "/page?url=many.example&in=50");
    assert!(next.body.contains("To the first") && next.body.contains("/from/0050"));
    let alone = get(&server, &format!("/page?url={}", query(ALONE)));
    assert!(alone.body.contains("No links lead here or from here.") && alone.body.contains("It links to nothing."));
}

#[test]
fn the_description_is_of_what_there_is() {
    let server = serve();
    let document = get(&server, "/api/openapi.json").json();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let paths = document["paths"].as_object().expect("paths");
    let hub = query(HUB);
    let samples = [
        ("/api/search", "?q=sea+chart&explain=true".to_string()),
        ("/api/complete", "?q=sea".to_string()),
        ("/api/links", format!("?to={hub}&anchors=true&limit=3")),
        ("/api/page", format!("?url={hub}")),
        ("/api/host", "?host=docs.example.org".to_string()),
        ("/api/cocited", format!("?url={hub}")),
        ("/api/neighbourhood", format!("?url={hub}")),
        ("/api/path", format!("?from={hub}&to={hub}")),
        ("/api/overview", String::new()),
        ("/api/suggest", "?q=guide".to_string()),
        ("/healthz", String::new()),
    ];
    assert_eq!(paths.len(), samples.len(), "every path has a sample: {:?}", paths.keys());
    let page = include_str!("../../../../docs/api.md");
    for (path, question) in samples {
        let operation = &paths[path]["get"];
        // The page for people has a line for it, with all its parameters.
        let line =
            page.lines().find(|line| line.starts_with(&format!("| `{path}` |"))).unwrap_or_else(|| panic!("{path}"));
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = format!("`{}`", parameter["name"].as_str().expect("a name"));
            assert!(line.contains(&name), "docs/api.md does not name {name} of {path}");
        }
        let answer = get(&server, &format!("{path}{question}"));
        assert_eq!(answer.status, 200, "{path}");
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        is_described(&document, schema, &answer.json(), path);
        // Each parameter is one that the route knows: given twice, it is named.
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            let twice = get(&server, &format!("{path}?{name}=1&{name}=1"));
            assert_eq!(twice.json()["error"], format!("{name} is given twice"), "{path}");
        }
    }
}

/// Every field of a value is in its schema, down to the leaves.
fn is_described(document: &Value, schema: &Value, value: &Value, at: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(place) => document.pointer(&place[1..]).unwrap_or_else(|| panic!("{at}: no {place}")),
        None => schema,
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => panic!("{at}: no type in {schema}"),
    };
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(kinds.contains(&is), "{at}: {value} is no {kinds:?}");
    for (name, field) in value.as_object().into_iter().flatten() {
        let described = schema["properties"].get(name).unwrap_or_else(|| panic!("{at}: {name} is not described"));
        is_described(document, described, field, &format!("{at}/{name}"));
    }
    // Lists whose items are each of their own kind, or all of one.
    for (item, of_its_own) in
        value.as_array().into_iter().flatten().zip(schema["prefixItems"].as_array().into_iter().flatten())
    {
        is_described(document, of_its_own, item, &format!("{at}[]"));
    }
    for item in value.as_array().into_iter().flatten() {
        if schema["items"].is_object() {
            is_described(document, &schema["items"], item, &format!("{at}[]"));
        }
    }
}

/// The figures of this graph take milliseconds, and are kept for twenty times as long: of many who ask at once most get the same.
#[test]
fn figures_of_the_whole_graph_are_kept_for_a_while() {
    let app = fake::app();
    let asked: Vec<_> = (0..20).map(|_| app.overview().expect("figures")).collect();
    let again = asked.windows(2).filter(|two| std::sync::Arc::ptr_eq(&two[0], &two[1])).count();
    assert!(again >= 10, "{again} of 19 were kept");
}

#[test]
fn it_stops_while_connections_are_open() {
    let mut server = serve();
    let mut idle = TcpStream::connect(server.address).expect("connect");
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("ask");
    let mut first = [0; 15];
    idle.read_exact(&mut first).expect("an answer");
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
    assert!(TcpStream::connect(server.address).is_err());
}

/// Serves the graph of the tests for a while, to look at the pages: `RHUMB_SHOW=127.0.0.1:8099 cargo test -p rhumb show -- --ignored`.
#[test]
#[ignore = "for people to look at"]
fn show() {
    let address = std::env::var("RHUMB_SHOW").unwrap_or_else(|_| "127.0.0.1:8099".to_string());
    let _server = start(fake::app(), TcpListener::bind(address).expect("listen")).expect("serve");
    std::thread::sleep(Duration::from_secs(3_600));
}
