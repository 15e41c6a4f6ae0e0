//! robots.txt by RFC 9309, URLs by the WHATWG standard, pages by the HTML and Encoding standards, and addresses by the
//! IANA registries: all through the command line, as suites written by others meet it.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rhumb_core::url::whatwg_parse;
use serde_json::{Value, json};

use crate::common::{json, rhumb, run};

/// A run of the program with `input` on stdin.
fn piped(args: &[&str], input: &[u8]) -> Value {
    let mut child = rhumb().args(args).arg("--json").stdin(Stdio::piped()).spawn().expect("start");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("wait");
    writer.join().expect("writer").expect("write");
    json(&output, 0)
}

fn verdict(file: impl AsRef<[u8]>, agent: &str, url: &str) -> Value {
    piped(&["robots", "check", "-", "--agent", agent, "--url", url], file.as_ref())
}

#[track_caller]
fn allowed(file: impl AsRef<[u8]>, agent: &str, url: &str, expected: bool) {
    let file = file.as_ref();
    let found = verdict(file, agent, url);
    assert_eq!(
        found["allowed"],
        expected,
        "{agent} {url} by {:?}: {found}",
        String::from_utf8_lossy(&file[..file.len().min(300)])
    );
}

/// Section 2.2: the grammar.
#[test]
fn robots_grammar() {
    let yes = |file: &str| allowed(file, "ExampleBot", "http://h.example/a/b", true);
    let no = |file: &str| allowed(file, "ExampleBot", "http://h.example/a/b", false);
    yes("");
    yes("\n\n\n");
    no("user-agent:ExampleBot\ndisallow:/a");
    no(" \tUSER-AGENT \t: \tExampleBot \t# us\n\tDisAllow\t:\t/a\t#that\n");
    no("user-agent: ExampleBot\rdisallow: /a\r");
    no("user-agent: ExampleBot\r\ndisallow: /a\r\n");
    no("user-agent: ExampleBot\n\r\ndisallow: /a");
    no("# begin\n\nuser-agent: ExampleBot\n\n# within\n\ndisallow: /a\n");
    no("\u{feff}user-agent: ExampleBot\ndisallow: /a");
    yes("user-agent: ExampleBot\ndisallow:\n");
    yes("user-agent: ExampleBot\ndisallow: # /a\n");
    yes("user-agent: ExampleBot\n#disallow: /a\n");
    no("user-agent: ExampleBot\ndisallow: /a#/c\n");
    yes("user-agent: ExampleBot\ndisallow: a\n");
    // Rules before any group are ignored; so are lines that nobody knows, wherever they stand.
    yes("disallow: /\nuser-agent: ExampleBot\nallow: /x");
    no("user-agent: ExampleBot\nfoo: bar\nnonsense\n: \ndisallow: /a\nHost: x\n");
    no("user-agent: ExampleBot\nSitemap: http://h.example/s.xml\ndisallow: /a");
    no("user-agent: ExampleBot\nSitemap: http://h.example/s.xml\nuser-agent: Other\ndisallow: /a");
    no("user-agent: ExampleBot\nCrawl-delay: 5\n\nuser-agent: Other\ndisallow: /a");
    no("Sitemap: http://h.example/s.xml\nuser-agent: ExampleBot\ndisallow: /a\nSitemap: http://h.example/t.xml\n");
    no("user-agent: ExampleBot\ndisallow: /x\nSitemap: s\ndisallow: /a");
    // Binary junk is a file like any other.
    allowed(b"\x00\xff\xfe\x80user\nuser-agent: ExampleBot\n\x80\xff: /\ndisallow: /a\n", "ExampleBot", "/a", false);
    yes("<html><body>Not found</body></html>");
    // The line is counted in each convention, and quoted as written.
    for end in ["\n", "\r", "\r\n"] {
        let file = ["# one", "user-agent: *", "", "Disallow:  /a  # why"].join(end);
        assert_eq!(verdict(&file, "x", "/a"), json!({"allowed": false, "rule": "Disallow:  /a", "line": 4}), "{end:?}");
    }
}

/// Section 2.2.1: which group is ours.
#[test]
fn robots_groups() {
    let merged = "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: ExampleBot\ndisallow: /baz\n";
    for (url, expected) in [("/foo", false), ("/bar", false), ("/baz", false), ("/qux", true)] {
        allowed(merged, "ExampleBot", url, expected);
        allowed(merged, "OtherBot", url, true);
    }
    let star = "user-agent: *\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: BazBot\ndisallow: /baz\n";
    for (agent, url, expected) in [
        ("ExampleBot", "/foo", false),
        ("ExampleBot", "/baz", true),
        ("BazBot", "/baz", false),
        ("BazBot", "/foo", true),
        ("bazbot", "/baz", false),
        ("BAZBOT", "/baz", false),
        ("BazBot/2.1", "/baz", false),
        ("BazBot/2.1 (+http://b.example/)", "/foo", true),
        ("Mozilla/5.0 (compatible; BazBot/0.1; https://b.example/bot.html)", "/baz", false),
        ("Mozilla/5.0 (compatible; BazBot/0.1; https://b.example/bot.html)", "/foo", true),
        ("BazBot-Images", "/baz", true),
        ("BazBot-Images", "/foo", false),
        ("Baz", "/foo", false),
        ("Baz", "/baz", true),
        ("NotBazBot", "/baz", true),
        ("", "/foo", false),
        ("*", "/foo", false),
    ] {
        allowed(star, agent, url, expected);
    }
    // Groups for everybody are merged as well; several agents share their rules; a later group begins a new one.
    allowed("user-agent: *\ndisallow: /a\nuser-agent: x\ndisallow: /\nuser-agent: *\ndisallow: /b", "q", "/b", false);
    let shared = "user-agent: a\nuser-agent: b\n\nuser-agent: c\nallow: /x\ndisallow: /\nuser-agent: d\ndisallow: /x\n";
    for agent in ["a", "b", "c"] {
        allowed(shared, agent, "/x", true);
        allowed(shared, agent, "/y", false);
    }
    allowed(shared, "d", "/x", false);
    allowed(shared, "d", "/y", true);
    // Our own group, even an empty one, keeps the others' rules away.
    allowed("user-agent: *\ndisallow: /\nuser-agent: us\n", "us", "/", true);
    allowed("user-agent: *\ndisallow: /\nuser-agent: us\ndisallow:\n", "us", "/", true);
    allowed("user-agent: us\ndisallow: /\nuser-agent: *\nallow: /\n", "us", "/", false);
    // No group of ours and none for everybody.
    allowed("user-agent: x\ndisallow: /", "us", "/", true);
    // Where the grammar is broken we take the name up to what cannot belong to it.
    allowed("user-agent: us/1.0\ndisallow: /", "us", "/", false);
    allowed("user-agent: us bot\ndisallow: /", "us", "/", false);
    allowed("user-agent us\ndisallow /", "us", "/", false);
}

/// Section 2.2.2: the most specific rule, and one form of encoding for both sides.
#[test]
fn robots_rules() {
    let by = |rules: &str, url: &str, expected: bool| allowed(format!("user-agent: *\n{rules}\n"), "x", url, expected);
    // Longest match, in any order; allow wins a tie; case counts; the match begins at the first octet.
    by("allow: /a/b\ndisallow: /a", "/a/b/c", true);
    by("disallow: /a\nallow: /a/b", "/a/b/c", true);
    by("allow: /a\ndisallow: /a/b", "/a/b/c", false);
    by("disallow: /a\nallow: /a", "/a", true);
    by("allow: /a\ndisallow: /a", "/a", true);
    by("disallow: /A", "/a", true);
    by("disallow: /b", "/a/b", true);
    by("disallow: /a\ndisallow: /a", "/a", false);
    by("disallow: /", "/", false);
    by("disallow: /", "http://h.example", false);
    by("disallow: /", "http://h.example?q", false);
    by("disallow: /", "/robots.txt", true);
    by("disallow: /", "http://h.example/robots.txt", true);
    by("disallow: /", "/robots.txt.bak", false);
    by("disallow: /", "/a/robots.txt", false);
    by("disallow:\nallow:", "/a", true);
    by("disallow:\ndisallow: /a", "/a", false);
    by("disallow: /a?", "http://h.example/a?", false);
    by("disallow: /a?", "http://h.example/a", true);
    by("disallow: /*?", "http://h.example/a?#frag", false);
    by("disallow: /a", "http://u:p@h.example:8080/a#b", false);
    by("disallow: /b", "http://h.example/a/../b", false);
    by("disallow: /a", "h.example/a", false);
    by("disallow: /x#", "/x", false);
    // The RFC's table of encodings, each row from both sides.
    by("disallow: /foo/bar?baz=quz", "http://h.example/foo/bar?baz=quz", false);
    by("disallow: /foo/bar?baz=https://foo.bar", "http://h.example/foo/bar?baz=https%3A%2F%2Ffoo.bar", false);
    by("disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar", "http://h.example/foo/bar?baz=https://foo.bar", false);
    by("disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar", "http://h.example/foo/bar?baz=https%3A%2F%2Ffoo.bar", false);
    by("disallow: /foo/bar/\u{30c4}", "http://h.example/foo/bar/%E3%83%84", false);
    by("disallow: /foo/bar/\u{30c4}", "http://h.example/foo/bar/\u{30c4}", false);
    by("disallow: /foo/bar/%E3%83%84", "http://h.example/foo/bar/\u{30c4}", false);
    by("disallow: /foo/bar/%e3%83%84", "http://h.example/foo/bar/%E3%83%84", false);
    by("disallow: /foo/bar/%62%61%7A", "http://h.example/foo/bar/baz", false);
    by("disallow: /foo/bar/baz", "http://h.example/foo/bar/%62%61%7A", false);
    by("disallow: /foo/bar/%62%61%7A", "http://h.example/foo/bar/%62%61%7a", false);
    // Reserved characters in a path stay what they are.
    by("disallow: /a/b", "/a%2Fb", true);
    by("disallow: /a%2Fb", "/a/b", true);
    by("disallow: /a%2fb", "/a%2Fb", false);
    by("disallow: /a%3Fb", "/a?b", true);
    by("disallow: /%7Ejoe", "/~joe", false);
    by("disallow: /~joe", "/%7ejoe", false);
    by("disallow: /a b", "http://h.example/a%20b", false);
    // Lengths are compared in octets of that form: what is longer only by its escapes is not more specific.
    by("allow: /ab\ndisallow: /%61%62", "/ab", true);
    by("allow: /abc\ndisallow: /%61b", "/abc", true);
    by("disallow: /abc\nallow: /%61b", "/abc", false);
}

/// Section 2.2.3: the special characters.
#[test]
fn robots_wildcards() {
    let by = |pattern: &str, url: &str, matches: bool| {
        allowed(format!("user-agent: *\ndisallow: {pattern}\n"), "x", url, !matches)
    };
    for url in
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html", "/fish.php?id=anything"]
    {
        by("/fish", url, true);
        by("/fish*", url, true);
    }
    for url in ["/Fish.asp", "/catfish", "/?id=fish", "/fis", "/desert/fish"] {
        by("/fish", url, false);
        by("/fish*", url, false);
    }
    by("/fish/", "/fish/", true);
    by("/fish/", "/fish/?id=anything", true);
    by("/fish/", "/fish", false);
    by("/fish/", "/fish.html", false);
    for url in [
        "/index.php",
        "/filename.php",
        "/folder/filename.php?parameters",
        "/folder/any.php.file.html",
        "/filename.php/",
    ] {
        by("/*.php", url, true);
    }
    by("/*.php", "/", false);
    by("/*.php", "/windows.PHP", false);
    by("/*.php$", "/filename.php", true);
    by("/*.php$", "/folder/filename.php", true);
    for url in ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"] {
        by("/*.php$", url, false);
    }
    by("/fish*.php", "/fish.php", true);
    by("/fish*.php", "/fishheads/catfish.php?parameters", true);
    by("/fish*.php", "/Fish.PHP", false);
    by("/a*", "/a", true);
    by("/*", "/", true);
    by("*", "/", true);
    by("*.gif$", "/x/y.gif", true);
    by("**a**", "/xa", true);
    by("/$", "/", true);
    by("/$", "/x", false);
    by("/a$", "/a?b", false);
    by("/a$b", "/a$b", true);
    by("/a$b", "/a", false);
    by("/a*$", "/axyz", true);
    by("/*a*b*c$", "/xxaxxbxxc", true);
    by("/*a*b*c$", "/xxaxxcxxb", false);
    by("/a*a$", "/a", false);
    by("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true);
    by("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", false);
    by("/path/foo-%24", "/path/foo-$", true);
    by("/path/foo-%24", "/path/foo-", false);
    let rules = "user-agent: x\nallow: /page\ndisallow: /*.htm\nallow: /$\ndisallow: /\n";
    allowed(rules, "x", "http://example.com/page.htm", false);
    allowed(rules, "x", "http://example.com/page", true);
    allowed(rules, "x", "http://example.com/", true);
    allowed(rules, "x", "http://example.com/else", false);
}

/// Section 5: the RFC's own examples.
#[test]
fn robots_examples_of_the_rfc() {
    let simple = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
                  User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
                  User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
                  User-Agent: quxbot\n";
    for (agent, url, expected) in [
        ("anybot", "/x.gif", false),
        ("anybot", "/x.gif?y", true),
        ("anybot", "/example/x", false),
        ("anybot", "/publications/x", true),
        // The pattern of six octets is beaten by that of fourteen.
        ("anybot", "/publications/x.gif", true),
        ("foobot", "/", false),
        ("foobot", "/example/page.html", true),
        ("foobot", "/example/allowed.gif", true),
        ("foobot", "/publications/", false),
        ("barbot", "/example/page.html", false),
        ("bazbot", "/example/page.html", false),
        ("bazbot", "/example/x.gif", true),
        ("quxbot", "/example/page.html", true),
        ("quxbot", "/x.gif", true),
    ] {
        allowed(simple, agent, url, expected);
    }
    let longest = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n";
    allowed(longest, "foobot", "https://h.example/example/page/", true);
    allowed(longest, "foobot", "https://h.example/example/page/disallowed.gif", false);
    allowed(longest, "foobot", "https://h.example/example/page/x.gif", true);
}

/// Section 2.5 and hostile files: at least 500 KiB are read, and time stays linear.
#[test]
fn robots_limits() {
    let padded =
        |bytes: usize| format!("user-agent: x\n{}disallow: /late\n", "# padding padding padding\n".repeat(bytes / 26));
    allowed(padded(500 * 1024 - 100), "x", "/late", false);
    allowed(padded(2 << 20), "x", "/late", true);
    let long = format!("user-agent: x\ndisallow: /{}\ndisallow: /after\n", "a".repeat(400_000));
    allowed(&long, "x", "/after", false);
    allowed(
        format!("user-agent: x\ndisallow: /{}\n", "b".repeat(2_000)),
        "x",
        &format!("http://h.example/{}c", "b".repeat(2_000)),
        false,
    );
    allowed("user-agent: x\ndisallow: /q", "x", &format!("http://h.example/q{}", "z".repeat(60_000)), false);
    let started = Instant::now();
    let path = format!("/{}", "a".repeat(60_000));
    allowed(format!("user-agent: x\ndisallow: /{}b$\n", "*a".repeat(8_000)), "x", &path, true);
    allowed(
        format!("user-agent: x\n{}", format!("disallow: /{}c\n", "a*".repeat(200)).repeat(1_000)),
        "x",
        &path[..3_000],
        true,
    );
    assert!(started.elapsed() < Duration::from_secs(10), "wildcards took {:?}", started.elapsed());
}

fn normalized(url: &str, base: Option<&str>) -> Option<String> {
    let mut command = rhumb();
    command.args(["url", "normalize", "--json", url]);
    if let Some(base) = base {
        command.args(["--base", base]);
    }
    let output = run(&mut command);
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(i32::from(value.get("error").is_some())), "{url}");
    value["url"].as_str().map(str::to_string)
}

/// What the crawler takes for one page: the documented normalisation, which is idempotent.
#[test]
fn url_normalisation() {
    let check = |url: &str, expected: Option<&str>| {
        assert_eq!(normalized(url, None).as_deref(), expected, "{url}");
        if let Some(expected) = expected {
            assert_eq!(normalized(expected, None).as_deref(), Some(expected), "again");
        }
    };
    check("HTTP://WWW.Example.COM:80/a/./b/../c", Some("http://www.example.com/a/c"));
    check("https://example.com:443", Some("https://example.com/"));
    check("https://example.com:80/", Some("https://example.com:80/"));
    check("http://example.com/#top", Some("http://example.com/"));
    check("http://example.com/?#", Some("http://example.com/"));
    check("http://example.com/?", Some("http://example.com/"));
    check("http://user:secret@example.com/", Some("http://example.com/"));
    check("http://example.com./", Some("http://example.com/"));
    check("http://example.com/%7euser/%41%2f%c3%a9", Some("http://example.com/~user/A%2F%C3%A9"));
    check("http://example.com/\u{e9}", Some("http://example.com/%C3%A9"));
    check("http://b\u{fc}cher.example/", Some("http://xn--bcher-kva.example/"));
    check("http://0x7f.1/", Some("http://127.0.0.1/"));
    check("http://example.com/a;jsessionid=0123456789ABCDEF?x=1", Some("http://example.com/a?x=1"));
    check("http://example.com/?PHPSESSID=0123456789abcdef0123456789abcdef&x=1", Some("http://example.com/?x=1"));
    check("http://example.com/?utm_source=a&x=1&fbclid=b", Some("http://example.com/?x=1"));
    check("http://example.com/?b=2&a=1", Some("http://example.com/?b=2&a=1"));
    check("  http://example.com/\n", Some("http://example.com/"));
    check("http:\\\\example.com\\a", Some("http://example.com/a"));
    check("ftp://example.com/", None);
    check("mailto:a@example.com", None);
    check("javascript:void(0)", None);
    check("/relative", None);
    check("http://", None);
    check("http://exa mple.com/", None);
    check(&format!("http://example.com/{}", "a".repeat(5_000)), None);
    assert_eq!(normalized("../x?y#z", Some("http://example.com/a/b/c")).as_deref(), Some("http://example.com/a/x?y"));
    assert_eq!(normalized("//other.example", Some("https://example.com/")).as_deref(), Some("https://other.example/"));
    assert_eq!(normalized("x", Some("mailto:a")), None);
}

/// The big table is judged in this process; a sample of it goes through the command line.
#[test]
fn url_parsing() {
    let count = std::cell::Cell::new(0);
    let check = |input: &str, base: Option<&str>, expected: Option<&str>| {
        assert_eq!(whatwg_parse(input, base).ok().as_deref(), expected, "{input:?} against {base:?}");
        count.set(count.get() + 1);
        if count.get() % 4 == 0 {
            let mut command = rhumb();
            command.args(["url", "parse", "--json", input]).args(base.iter().flat_map(|b| ["--base", b]));
            let output = run(&mut command);
            let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(
                (value["href"].as_str(), value["error"].is_string()),
                (expected, expected.is_none()),
                "{input:?}"
            );
        }
    };
    check("HTTP://Example.COM", None, Some("http://example.com/"));
    check("http://example.com:80/", None, Some("http://example.com/"));
    check("https://example.com:443/x", None, Some("https://example.com/x"));
    check("http://example.com:443/", None, Some("http://example.com:443/"));
    check("https://example.com:0443/", None, Some("https://example.com/"));
    check("http://example.com:65535/", None, Some("http://example.com:65535/"));
    check("http://example.com:65536/", None, None);
    check("http://example.com:8x/", None, None);
    check("http://example.com:/", None, Some("http://example.com/"));
    check("http://user:pa%20ss@h/", None, Some("http://user:pa%20ss@h/"));
    check("http://user@h/", None, Some("http://user@h/"));
    check("http://user:@h/", None, Some("http://user@h/"));
    check("http://:@h/", None, Some("http://h/"));
    check("http://@h/", None, Some("http://h/"));
    check("http://u:p@@h/", None, Some("http://u:p%40@h/"));
    check("http://u@/", None, None);
    check("http://a b/", None, None);
    check("http://a%20b/", None, None);
    check("http://a%41/", None, Some("http://aa/"));
    check("http://ex%2eample/", None, Some("http://ex.ample/"));
    check("http://[::1]/", None, Some("http://[::1]/"));
    check("http://[0:0:0:0:0:0:0:1]/", None, Some("http://[::1]/"));
    check("http://[::FFFF:1.2.3.4]/", None, Some("http://[::ffff:102:304]/"));
    check("http://[1::2::3]/", None, None);
    check("http://[::1", None, None);
    check("http://[::1%25eth0]/", None, None);
    check("http://[::127.0.0.1.]/", None, None);
    check("http://127.0.0.1./", None, Some("http://127.0.0.1/"));
    check("http://0x7f.1/", None, Some("http://127.0.0.1/"));
    check("http://0177.0.0.1/", None, Some("http://127.0.0.1/"));
    check("http://2130706433/", None, Some("http://127.0.0.1/"));
    check("http://4294967296/", None, None);
    check("http://256.1.1.1/", None, None);
    check("http://1.2.3/", None, Some("http://1.2.0.3/"));
    check("http://1.2.3.4.5/", None, None);
    check("http://09.1.1.1/", None, None);
    check("http://foo.09/", None, None);
    check("http://foo.0x/", None, None);
    check("http://1e3/", None, Some("http://1e3/"));
    check("http://faß.example/", None, Some("http://xn--fa-hia.example/"));
    check("http://Bücher.example/", None, Some("http://xn--bcher-kva.example/"));
    check("http://日本。example/", None, Some("http://xn--wgv71a.example/"));
    check("http://xn--/", None, None);
    check("http://a..b/", None, Some("http://a..b/"));
    check("http://-a-.example/", None, Some("http://-a-.example/"));
    check("http://a_b.example/", None, Some("http://a_b.example/"));
    check("http://a^b/", None, None);
    check("http://a|b/", None, None);
    check("http://a<b/", None, None);
    check("http://a*b/", None, Some("http://a*b/"));
    check("http://\u{ad}/", None, None);
    check("http://a\u{ad}b/", None, Some("http://ab/"));
    check("http://h/a/./b/../c", None, Some("http://h/a/c"));
    check("http://h/a/%2e/b/%2E%2e/c", None, Some("http://h/a/c"));
    check("http://h/../../x", None, Some("http://h/x"));
    check("http://h/a/..", None, Some("http://h/"));
    check("http://h/a/.", None, Some("http://h/a/"));
    check("http://h//a//b", None, Some("http://h//a//b"));
    check("http://h/a;b=c", None, Some("http://h/a;b=c"));
    check("http://h/^|`{}", None, Some("http://h/%5E|%60%7B%7D"));
    check("http://h/?^|`{}'\"<>", None, Some("http://h/?^|`{}%27%22%3C%3E"));
    check("http://h/#^|`{}'\"<>", None, Some("http://h/#^|%60{}'%22%3C%3E"));
    check("http://h/é?é#é", None, Some("http://h/%C3%A9?%C3%A9#%C3%A9"));
    check("http://h/%zz%4", None, Some("http://h/%zz%4"));
    check("http://h/a\\b", None, Some("http://h/a/b"));
    check("http:\\h\\a", None, Some("http://h/a"));
    check("http:/h", None, Some("http://h/"));
    check("http:h", None, Some("http://h/"));
    check("http:///h", None, Some("http://h/"));
    check("http:////h/x", None, Some("http://h/x"));
    check("  http://h/  ", None, Some("http://h/"));
    check("http://h/a\tb\nc", None, Some("http://h/abc"));
    check("ht\ntp://h/", None, Some("http://h/"));
    check("http://h?q", None, Some("http://h/?q"));
    check("http://h#f", None, Some("http://h/#f"));
    check("http://h/?", None, Some("http://h/?"));
    check("http://h/#", None, Some("http://h/#"));
    check("http://h/?#", None, Some("http://h/?#"));
    check("ws://h:80/", None, Some("ws://h/"));
    check("wss://h:443/a", None, Some("wss://h/a"));
    check("ftp://h:21/a\\b", None, Some("ftp://h/a/b"));
    check("mailto:A@b.C", None, Some("mailto:A@b.C"));
    check("data:text/plain,Hi there  ", None, Some("data:text/plain,Hi there"));
    check("data:a  ?q", None, Some("data:a %20?q"));
    check("data:a  #f", None, Some("data:a %20#f"));
    check("data:a b?c d#e f", None, Some("data:a b?c%20d#e%20f"));
    check("javascript:alert('x y')", None, Some("javascript:alert('x y')"));
    check("about:blank", None, Some("about:blank"));
    check("urn:ISBN:1-2", None, Some("urn:ISBN:1-2"));
    check("blob:https://h/1", None, Some("blob:https://h/1"));
    check("foo:bar", None, Some("foo:bar"));
    check("foo:/bar/../baz", None, Some("foo:/baz"));
    check("foo://h/p", None, Some("foo://h/p"));
    check("foo://H:80/", None, Some("foo://H:80/"));
    check("foo://h:x/", None, None);
    check("foo:///p", None, Some("foo:///p"));
    check("foo://", None, Some("foo://"));
    check("foo:/.//p", None, Some("foo:/.//p"));
    check("foo:/..//p", None, Some("foo:/.//p"));
    check("foo://a b/", None, None);
    check("foo://[::1]/", None, Some("foo://[::1]/"));
    check("foo://u@/", None, None);
    check("foo://h\\a", None, None);
    check("foo://h/^", None, Some("foo://h/%5E"));
    check("file:///C:/a/../..", None, Some("file:///C:/"));
    check("file:///C|/a", None, Some("file:///C:/a"));
    check("file:C:/x", None, Some("file:///C:/x"));
    check("file:/x", None, Some("file:///x"));
    check("file:x", None, Some("file:///x"));
    check("file://host/x", None, Some("file://host/x"));
    check("file://localhost/x", None, Some("file:///x"));
    check("file://a:80/", None, None);
    check("file:\\h\\x", None, Some("file:///h/x"));
    check("file:///a?b#c", None, Some("file:///a?b#c"));
    check(":x", None, None);
    check("1a:b", None, None);
    let base = Some("http://b.example/d/e/f?q#r");
    check("x", base, Some("http://b.example/d/e/x"));
    check("./x", base, Some("http://b.example/d/e/x"));
    check("../x", base, Some("http://b.example/d/x"));
    check("../../../x", base, Some("http://b.example/x"));
    check("/x", base, Some("http://b.example/x"));
    check("//o/x", base, Some("http://o/x"));
    check("///o/x", base, Some("http://o/x"));
    check("\\o\\x", base, Some("http://b.example/o/x"));
    check("\\x", base, Some("http://b.example/x"));
    check("?q", base, Some("http://b.example/d/e/f?q"));
    check("#f", base, Some("http://b.example/d/e/f?q#f"));
    check(".", base, Some("http://b.example/d/e/"));
    check("..", base, Some("http://b.example/d/"));
    check("http:x", base, Some("http://b.example/d/e/x"));
    check("http:/x", base, Some("http://b.example/x"));
    check("https:x", base, Some("https://x/"));
    check("x?y#z", base, Some("http://b.example/d/e/x?y#z"));
    check("x:y", base, Some("x:y"));
    check(":x", base, Some("http://b.example/d/e/:x"));
    check(" x ", base, Some("http://b.example/d/e/x"));
    check("%2e%2e/x", base, Some("http://b.example/d/x"));
    check(";p", base, Some("http://b.example/d/e/;p"));
    check("a//b", base, Some("http://b.example/d/e/a//b"));
    check("foo:", base, Some("foo:"));
    check("", base, Some("http://b.example/d/e/f?q"));
    let base = Some("https://b.example");
    check("x", base, Some("https://b.example/x"));
    check("./x", base, Some("https://b.example/x"));
    check("../x", base, Some("https://b.example/x"));
    check("../../../x", base, Some("https://b.example/x"));
    check("/x", base, Some("https://b.example/x"));
    check("//o/x", base, Some("https://o/x"));
    check("///o/x", base, Some("https://o/x"));
    check("\\o\\x", base, Some("https://b.example/o/x"));
    check("\\x", base, Some("https://b.example/x"));
    check("?q", base, Some("https://b.example/?q"));
    check("#f", base, Some("https://b.example/#f"));
    check(".", base, Some("https://b.example/"));
    check("..", base, Some("https://b.example/"));
    check("http:x", base, Some("http://x/"));
    check("http:/x", base, Some("http://x/"));
    check("https:x", base, Some("https://b.example/x"));
    check("x?y#z", base, Some("https://b.example/x?y#z"));
    check("x:y", base, Some("x:y"));
    check(":x", base, Some("https://b.example/:x"));
    check(" x ", base, Some("https://b.example/x"));
    check("%2e%2e/x", base, Some("https://b.example/x"));
    check(";p", base, Some("https://b.example/;p"));
    check("a//b", base, Some("https://b.example/a//b"));
    check("foo:", base, Some("foo:"));
    check("", base, Some("https://b.example/"));
    let base = Some("foo://h/d/f");
    check("x", base, Some("foo://h/d/x"));
    check("./x", base, Some("foo://h/d/x"));
    check("../x", base, Some("foo://h/x"));
    check("../../../x", base, Some("foo://h/x"));
    check("/x", base, Some("foo://h/x"));
    check("//o/x", base, Some("foo://o/x"));
    check("///o/x", base, Some("foo:///o/x"));
    check("\\o\\x", base, Some("foo://h/d/\\o\\x"));
    check("\\x", base, Some("foo://h/d/\\x"));
    check("?q", base, Some("foo://h/d/f?q"));
    check("#f", base, Some("foo://h/d/f#f"));
    check(".", base, Some("foo://h/d/"));
    check("..", base, Some("foo://h/"));
    check("http:x", base, Some("http://x/"));
    check("http:/x", base, Some("http://x/"));
    check("https:x", base, Some("https://x/"));
    check("x?y#z", base, Some("foo://h/d/x?y#z"));
    check("x:y", base, Some("x:y"));
    check(":x", base, Some("foo://h/d/:x"));
    check(" x ", base, Some("foo://h/d/x"));
    check("%2e%2e/x", base, Some("foo://h/x"));
    check(";p", base, Some("foo://h/d/;p"));
    check("a//b", base, Some("foo://h/d/a//b"));
    check("foo:", base, Some("foo:"));
    check("", base, Some("foo://h/d/f"));
    let base = Some("foo:/d/f");
    check("x", base, Some("foo:/d/x"));
    check("./x", base, Some("foo:/d/x"));
    check("../x", base, Some("foo:/x"));
    check("../../../x", base, Some("foo:/x"));
    check("/x", base, Some("foo:/x"));
    check("//o/x", base, Some("foo://o/x"));
    check("///o/x", base, Some("foo:///o/x"));
    check("\\o\\x", base, Some("foo:/d/\\o\\x"));
    check("\\x", base, Some("foo:/d/\\x"));
    check("?q", base, Some("foo:/d/f?q"));
    check("#f", base, Some("foo:/d/f#f"));
    check(".", base, Some("foo:/d/"));
    check("..", base, Some("foo:/"));
    check("http:x", base, Some("http://x/"));
    check("http:/x", base, Some("http://x/"));
    check("https:x", base, Some("https://x/"));
    check("x?y#z", base, Some("foo:/d/x?y#z"));
    check("x:y", base, Some("x:y"));
    check(":x", base, Some("foo:/d/:x"));
    check(" x ", base, Some("foo:/d/x"));
    check("%2e%2e/x", base, Some("foo:/x"));
    check(";p", base, Some("foo:/d/;p"));
    check("a//b", base, Some("foo:/d/a//b"));
    check("foo:", base, Some("foo:"));
    check("", base, Some("foo:/d/f"));
    let base = Some("file:///C:/d/f");
    check("x", base, Some("file:///C:/d/x"));
    check("./x", base, Some("file:///C:/d/x"));
    check("../x", base, Some("file:///C:/x"));
    check("../../../x", base, Some("file:///C:/x"));
    check("/x", base, Some("file:///C:/x"));
    check("//o/x", base, Some("file://o/x"));
    check("///o/x", base, Some("file:///o/x"));
    check("\\o\\x", base, Some("file:///C:/o/x"));
    check("\\x", base, Some("file:///C:/x"));
    check("?q", base, Some("file:///C:/d/f?q"));
    check("#f", base, Some("file:///C:/d/f#f"));
    check(".", base, Some("file:///C:/d/"));
    check("..", base, Some("file:///C:/"));
    check("http:x", base, Some("http://x/"));
    check("http:/x", base, Some("http://x/"));
    check("https:x", base, Some("https://x/"));
    check("x?y#z", base, Some("file:///C:/d/x?y#z"));
    check("x:y", base, Some("x:y"));
    check(":x", base, Some("file:///C:/d/:x"));
    check(" x ", base, Some("file:///C:/d/x"));
    check("%2e%2e/x", base, Some("file:///C:/x"));
    check(";p", base, Some("file:///C:/d/;p"));
    check("a//b", base, Some("file:///C:/d/a//b"));
    check("foo:", base, Some("foo:"));
    check("", base, Some("file:///C:/d/f"));
    let base = Some("mailto:a");
    check("x", base, None);
    check("./x", base, None);
    check("../x", base, None);
    check("../../../x", base, None);
    check("/x", base, None);
    check("//o/x", base, None);
    check("///o/x", base, None);
    check("\\o\\x", base, None);
    check("\\x", base, None);
    check("?q", base, None);
    check("#f", base, Some("mailto:a#f"));
    check(".", base, None);
    check("..", base, None);
    check("http:x", base, Some("http://x/"));
    check("http:/x", base, Some("http://x/"));
    check("https:x", base, Some("https://x/"));
    check("x?y#z", base, None);
    check("x:y", base, Some("x:y"));
    check(":x", base, None);
    check(" x ", base, None);
    check("%2e%2e/x", base, None);
    check(";p", base, None);
    check("a//b", base, None);
    check("foo:", base, Some("foo:"));
    check("", base, None);
}

fn parsed(html: impl AsRef<[u8]>, content_type: Option<&str>) -> Value {
    let mut args = vec!["parse", "-", "--base", "http://h.example/d/p?q"];
    if let Some(content_type) = content_type {
        args.extend(["--content-type", content_type]);
    }
    piped(&args, html.as_ref())
}

fn links(html: &str) -> Vec<(String, String)> {
    let value = parsed(html, Some("text/html; charset=utf-8"));
    let text = |v: &Value| v.as_str().expect("text").to_string();
    value["links"].as_array().expect("links").iter().map(|l| (text(&l["url"]), text(&l["text"]))).collect()
}

#[track_caller]
fn check_links(html: &str, expected: &[(&str, &str)]) {
    let found = links(html);
    let found: Vec<_> =
        found.iter().map(|(url, text)| (url.strip_prefix("http://h.example").unwrap_or(url), text.as_str())).collect();
    assert_eq!(found, expected, "{html}");
}

#[test]
fn page_links() {
    check_links(
        "<a href=x>one</a> <A HREF='/y'>two</A><a\thref\n=\r\"z?a&amp;b#c\" >three</a>",
        &[("/d/x", "one"), ("/y", "two"), ("/d/z?a&b#c", "three")],
    );
    check_links("<a href=\" \n x y \t\">  a \n\t b&nbsp;c<br>d </a>", &[("/d/x%20y", "a b\u{a0}c d")]);
    check_links("<a name=x>no</a><a href>self</a><a href=''>self</a>", &[("/d/p?q", "self"), ("/d/p?q", "self")]);
    check_links("<a href=#f>f</a>", &[("/d/p?q#f", "f")]);
    check_links(
        "<a href=//o.example/x>o</a><a href=https:/y>y</a>",
        &[("http://o.example/x", "o"), ("https://y/", "y")],
    );
    check_links(
        "<a href='javascript:x()'>j</a><a href=mailto:a@b.c>m</a><a href=tel:1>t</a><a href=data:,x>d</a><a href=ftp://f/>f</a><a href=JavaScript:y>j</a>",
        &[],
    );
    check_links("<a href='http://[bad'>b</a><a href='http://a b/'>c</a><a href=ok>ok</a>", &[("/d/ok", "ok")]);
    // A link ends where the next begins; what is open at the end is closed.
    check_links("<a href=1>one<a href=2>two</a>three</a>", &[("/d/1", "one"), ("/d/2", "two")]);
    check_links("<a href=1>one", &[("/d/1", "one")]);
    check_links("<a href=1><b>bo<i>ld</b>er</i></a>", &[("/d/1", "bolder")]);
    check_links("<a href=1><img alt='a picture'><p>and text</p></a>", &[("/d/1", "a picture and text")]);
    check_links("<map><area href=1 alt=north><area alt=none></map>", &[("/d/1", "north")]);
    check_links("<frameset><frame src=1></frameset><iframe src=2>no</iframe>", &[("/d/1", ""), ("/d/2", "")]);
    // Images and scripts are not followed unless asked for.
    check_links(
        "<img src=1 srcset='2 1x, 3 2x'><script src=4></script><source srcset=5><video src=6></video><embed src=7><link rel=stylesheet href=8>",
        &[],
    );
    // Not part of the page, or not markup.
    check_links("<!-- <a href=1>x</a> --><!--><a href=2>y</a>-->", &[("/d/2", "y")]);
    check_links(
        "<script>'<a href=1>x</a>'</script><style><a href=2></style><textarea><a href=3></textarea><title><a href=4></title><noembed><a href=5></noembed><xmp><a href=6></xmp>",
        &[],
    );
    check_links("<script><!-- <script> </script> <a href=1> --></script><a href=2>after</a>", &[("/d/2", "after")]);
    check_links("<template><a href=1>x</a></template><a href=2>y</a>", &[("/d/2", "y")]);
    check_links("<![CDATA[<a href=1>x</a>]]>", &[]);
    check_links("<noscript><a href=1>x</a></noscript>", &[("/d/1", "x")]);
    check_links("<svg><a href=1><text>in svg</text></a></svg>", &[("/d/1", "in svg")]);
    check_links("<plaintext><a href=1>x</a>", &[]);
    // Broken markup.
    check_links("<a href=\"1>x</a><p>", &[]);
    check_links("<a href='1'title=t>x</a>", &[("/d/1", "x")]);
    check_links("<a href=1/>x</a>", &[("/d/1/", "x")]);
    check_links("<a href=1 href=2>x</a>", &[("/d/1", "x")]);
    check_links("<a/href=1>x</a>", &[("/d/1", "x")]);
    check_links("< a href=1>x</a><a href=2>y</a>", &[("/d/2", "y")]);
    check_links("<a href=1 <b>x</a>", &[("/d/1", "x")]);
    check_links("</a><a href=1>x</div></a>", &[("/d/1", "x")]);
    check_links("<a href=1>x</a", &[("/d/1", "x")]);
    check_links("<a href=1", &[]);
    // Character references in attributes follow their own rule.
    check_links(
        "<a href='?a=1&copy=2&amp;d=3&#x26;e&lt;f&notit;=4'>x</a>",
        &[("/d/p?a=1&copy=2&d=3&e%3Cf&notit;=4", "x")],
    );
    check_links(
        "<a href='&#47;x&#x2F;y&sol;z'>&lt;b&gt; &eacute;&amp;&#8364;&#128;&#0;&notin;&notit;&AMP</a>",
        &[("/x/y/z", "<b> \u{e9}&\u{20ac}\u{20ac}\u{fffd}\u{2209}\u{ac}it;&")],
    );
    check_links("<a href=\"a\tb\nc\">x</a><a href='\\w'>y</a>", &[("/d/abc", "x"), ("/w", "y")]);
    let rel = parsed("<a href=1 rel='NoFollow UGC'>x</a><link rel='next' href=2>", Some("text/html"));
    assert_eq!(
        rel["links"],
        json!([
            {"url": "http://h.example/d/1", "text": "x", "rel": "NoFollow UGC", "tag": "a"},
            {"url": "http://h.example/d/2", "text": "", "rel": "next", "tag": "link"},
        ])
    );
}

#[test]
fn page_base_title_text_and_meta() {
    let base = |html: &str, expected: &str| {
        let value = parsed(html, Some("text/html"));
        assert_eq!(value["base"], expected, "{html}");
    };
    base("<p>", "http://h.example/d/p?q");
    base("<base href=/x/>", "http://h.example/x/");
    base("<base target=_top><base href=y><base href=z>", "http://h.example/d/y");
    base("<body><p><BASE HREF='//o.example/z'>", "http://o.example/z");
    base("<base href='javascript:1'><base href=/late>", "http://h.example/d/p?q");
    base("<base href='data:,x'>", "http://h.example/d/p?q");
    base("<base href='http://[bad'>", "http://h.example/d/p?q");
    base("<base href=''>", "http://h.example/d/p?q");
    // The base counts for links that stand before it.
    check_links("<a href=1>x</a><base href=/b/><a href=2>y</a>", &[("/b/1", "x"), ("/b/2", "y")]);

    let title = |html: &str, expected: Value| assert_eq!(parsed(html, Some("text/html"))["title"], expected, "{html}");
    title("<title>\n A &amp; B\t&lt;b&gt; </title><title>second</title>", json!("A & B <b>"));
    title("<TITLE>x<b>y</b></TITLE>", json!("x<b>y</b>"));
    title("<svg><title>no</title></svg><title>yes</title>", json!("yes"));
    title("<title></title>", json!(""));
    title("<p>none", json!(null));
    title("<title>open", json!("open"));
    title("<!-- <title>no</title> --><title>yes</title>", json!("yes"));
    title("<title>a\0b</title>", json!("a\u{fffd}b"));

    let text = |html: &str, expected: &str| assert_eq!(parsed(html, Some("text/html"))["text"], expected, "{html}");
    text("<p>a  b\n c<p>d<br>e<div>f</div>g", "a b c\nd\ne\nf\ng");
    text("<script>x</script><style>y</style>z<!-- c --><template>t</template>", "z");
    text("in<b>li</b>ne <span>span</span>", "inline span");
    text("<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc");
    text("1 &lt 2 &amp;amp; &#x41;&#66; &bogus; &", "1 < 2 &amp; AB &bogus; &");
    text("a<![CDATA[b]]>c<svg><![CDATA[d]]></svg>", "acd");
    text("a < b <3 </> </ x><?pi?>c", "a < b <3 c");
    text("<ul><li>one<li>two</ul>", "one\ntwo");

    let all = parsed(
        "<html lang=de-AT><meta name=ROBOTS content='NoIndex, follow'><meta name=robots content=none><meta name=description content=' d  e '>\
         <link rel='x CANONICAL' href=c#f><link rel=canonical href=second><link rel=alternate hreflang=fr href=/fr>\
         <meta http-equiv=Refresh content=' 5 ; URL = \"/next\" '><h2>Kopf</h2>",
        Some("text/html"),
    );
    assert_eq!(all["meta_robots"], json!(["NoIndex, follow", "none"]));
    assert_eq!((&all["canonical"], &all["description"]), (&json!("http://h.example/d/c#f"), &json!("d e")));
    assert_eq!(all["refresh"], json!({"delay_s": 5, "href": "http://h.example/next"}));
    assert_eq!(all["hreflang"], json!([{"lang": "fr", "url": "http://h.example/fr"}]));
    assert_eq!(all["headings"], json!([{"level": 2, "text": "Kopf"}]));
    assert_eq!(all["language"], "de");

    let english = "<html lang=fr><p>The quick brown fox jumps over the lazy dog and then goes home, because it was getting late and \
                   there was nothing else that it wanted to do on such a rainy evening in the country.";
    assert_eq!(parsed(english, Some("text/html"))["language"], "en", "the text knows better than the attribute");
    assert_eq!(parsed("<p>42", Some("text/html"))["language"], json!(null));
}

/// The Encoding and MIME sniffing standards: mark, header, meta, guess.
#[test]
fn page_charsets() {
    let check = |bytes: &[u8], content_type: Option<&str>, charset: Value, title: Value| {
        let value = parsed(bytes, content_type);
        assert_eq!(
            (&value["charset"], &value["title"]),
            (&charset, &title),
            "{:?} {content_type:?}",
            String::from_utf8_lossy(bytes)
        );
    };
    let html = Some("text/html");
    check("<title>\u{e9}</title>".as_bytes(), Some("text/html; charset=utf-8"), json!("UTF-8"), json!("\u{e9}"));
    check(b"<title>\xe9</title>", Some("text/html;charset=ISO-8859-1"), json!("windows-1252"), json!("\u{e9}"));
    check(b"<title>\x80</title>", Some("text/html; charset=\"latin1\""), json!("windows-1252"), json!("\u{20ac}"));
    check(b"<title>\xd4</title>", Some("text/html; CHARSET='koi8-r'"), json!("KOI8-R"), json!("\u{442}"));
    check(b"<meta charset=koi8-r><title>\xd4</title>", html, json!("KOI8-R"), json!("\u{442}"));
    check(
        b"<meta http-equiv=content-type content='text/html; charset=koi8-r'><title>\xd4</title>",
        html,
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    check(
        b"<meta content='text/html; charset=koi8-r' http-equiv=Content-Type><title>\xd4</title>",
        html,
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    // The header beats meta; a mark beats both; the first meta counts; one inside a comment does not.
    check(
        b"<meta charset=utf-8><title>\xd4</title>",
        Some("text/html; charset=koi8-r"),
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    check(
        "\u{feff}<meta charset=koi8-r><title>\u{e9}</title>".as_bytes(),
        Some("text/html; charset=koi8-r"),
        json!("UTF-8"),
        json!("\u{e9}"),
    );
    check(
        b"<!-- <meta charset=utf-8> --><meta charset=koi8-r><meta charset=utf-8><title>\xd4</title>",
        html,
        json!("KOI8-R"),
        json!("\u{442}"),
    );
    check(b"<meta charset=nonsense><meta charset=koi8-r><title>\xd4</title>", html, json!("KOI8-R"), json!("\u{442}"));
    // UTF-16 in a meta element cannot be true; x-user-defined is windows-1252.
    check("<meta charset=utf-16><title>\u{e9}</title>".as_bytes(), html, json!("UTF-8"), json!("\u{e9}"));
    check(b"<meta charset=x-user-defined><title>\xe9</title>", html, json!("windows-1252"), json!("\u{e9}"));
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("<title>\u{e9}\u{4e2d}</title>".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    check(&utf16, html, json!("UTF-16LE"), json!("\u{e9}\u{4e2d}"));
    let utf16: Vec<u8> =
        [0xfe, 0xff].into_iter().chain("<title>\u{e9}</title>".encode_utf16().flat_map(u16::to_be_bytes)).collect();
    check(&utf16, Some("text/html; charset=utf-8"), json!("UTF-16BE"), json!("\u{e9}"));
    check(b"<meta charset=shift_jis><title>\x93\xfa\x96{</title>", html, json!("Shift_JIS"), json!("\u{65e5}\u{672c}"));
    check(b"<meta charset=gb2312><title>\xd6\xd0</title>", html, json!("GBK"), json!("\u{4e2d}"));
    check(b"<meta charset=euc-kr><title>\xc7\xd1</title>", html, json!("EUC-KR"), json!("\u{d55c}"));
    // Nothing said: UTF-8 if it can be that, else a guess that never fails.
    check("<title>d\u{e9}j\u{e0} vu</title>".as_bytes(), html, json!("UTF-8"), json!("d\u{e9}j\u{e0} vu"));
    assert!(parsed(b"<title>\xe9\xe8</title>", html)["title"].is_string());
    // Bad bytes become U+FFFD; nothing is lost around them.
    check(b"<title>a\xffb</title>", Some("text/html; charset=utf-8"), json!("UTF-8"), json!("a\u{fffd}b"));
    // Links are made of characters, not of bytes.
    let value = parsed(b"<meta charset=koi8-r><a href='/\xd4'>\xd4</a>", html);
    assert_eq!(value["links"][0]["url"], "http://h.example/%D1%82");

    // What is no text has none, whatever its label; what has no label is looked at.
    let kind = |bytes: &[u8], content_type: Option<&str>, expected: &str| {
        let value = parsed(bytes, content_type);
        assert_eq!(value["kind"], expected, "{content_type:?}: {value}");
        assert!(expected == "html" || expected == "xhtml" || value["links"] == json!([]));
    };
    kind(b"<!DOCTYPE html><a href=x>x</a>", None, "html");
    kind(b"  \n<HTML><a href=x>x</a>", None, "html");
    kind(b"<a href=x>x</a>", Some("application/xhtml+xml"), "xhtml");
    kind(b"plain <a href=x>x</a>", Some("text/plain"), "text");
    kind(b"%PDF-1.7\n<a href=x>x</a>", None, "pdf");
    kind(b"\x89PNG\r\n\x1a\n<a href=x>", Some("image/png"), "image");
    kind(b"\x00\x01\x02\x03", None, "binary");
    kind(b"", Some("text/html"), "html");
}

/// Pages made to hurt are pages of which less is understood.
#[test]
fn pages_that_hurt() {
    let started = Instant::now();
    for html in [
        "<div>".repeat(200_000),
        "<a href=x>".repeat(100_000),
        format!("<p {}>", "a=b ".repeat(200_000)),
        "<".repeat(500_000),
        "&".repeat(500_000),
        format!("<a href='{}'>x</a><a href=y>z</a>", "x".repeat(2_000_000)),
        "<!--".repeat(200_000),
        "<svg><title>".repeat(100_000),
        "<script><!--<script>".repeat(50_000),
        "\0".repeat(500_000),
    ] {
        let value = parsed(&html, Some("text/html"));
        assert!(value["links"].as_array().is_some_and(|l| l.len() <= 5_000), "{}", &html[..20]);
    }
    let many = parsed("<a href=x>y</a>".repeat(6_000), Some("text/html"));
    assert_eq!(
        (many["links"].as_array().map(Vec::len), &many["links_dropped"], &many["truncated"]),
        (Some(5_000), &json!(1_000), &json!(true))
    );
    let long = parsed(format!("<a href='{}'>x</a><a href=y>z</a>", "x".repeat(2_000_000)), Some("text/html"));
    assert_eq!((long["links"].as_array().map(Vec::len), &long["links_dropped"]), (Some(1), &json!(1)));
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
}

/// Every spelling of an address that is not for us.
#[test]
fn net_check() {
    let check = |target: &str, expected: bool, class: &str| {
        let value = json(&run(rhumb().args(["net", "check", "--json", target])), 0);
        assert_eq!((&value["allowed"], &value["class"]), (&json!(expected), &json!(class)), "{target}: {value}");
    };
    for loopback in [
        "127.0.0.1",
        "127.255.255.254",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "0177.0x0.0.01",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "http://127.0.0.1",
        "http://127.0.0.1:8080/x",
        "https://127.0.0.1./",
        "http://2130706433/",
        "http://0x7f.1/a",
        "http://0177.1",
        "http://example.com@127.0.0.1/",
        "http://example.com:80@127.0.0.1/",
        "http://127.0.0.1#@example.com/",
        "http://127.0.0.1?@example.com/",
        "http://127.0.0.1\\@example.com/",
        "http:\\\\127.0.0.1\\",
        "http:127.0.0.1",
        "http:/127.0.0.1/",
        "http:///127.0.0.1",
        " http://127.0.0.1/ ",
        "ht\ntp://127.0.\t0.1/",
        "HTTP://127.0.0.1/",
        "http://127.0.0.1:443/",
        "::1",
        "[::1]",
        "0:0:0:0:0:0:0:1",
        "[0000::1]",
        "http://[::1]/",
        "http://[::1]:99/",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "[::ffff:127.0.0.1]",
        "http://[::ffff:127.0.0.1]/",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "http://[2002:7f00:0001::1]/",
        "2001:0:7f00:1::f7f7:f7f7",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "http://localhost:8080/",
        "a.localhost",
        "http://x.localhost./",
    ] {
        check(loopback, false, "loopback");
    }
    for private in [
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.254",
        "192.168.0.1",
        "0xa000001",
        "012.0.0.1",
        "167772161",
        "http://192.168.1.1/",
        "192.168.257",
        "http://0300.0250.0.1/",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:0a00:0001::",
        "2002:c0a8:0101::1",
        "::ffff:0:192.168.0.1",
        "2001:0:808:808::f5ff:fffe",
        "http://good.example:80@10.0.0.1/",
    ] {
        check(private, false, "private");
    }
    for link_local in [
        "169.254.169.254",
        "http://169.254.169.254/latest/meta-data/",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "[::ffff:a9fe:a9fe]",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "169.254.170.2",
        "fe80::1",
        "http://[fe80::a9fe:a9fe]/",
    ] {
        check(link_local, false, "link_local");
    }
    for (target, class) in [
        ("0.0.0.0", "unspecified"),
        ("0", "unspecified"),
        ("http://0/", "unspecified"),
        ("::", "unspecified"),
        ("[::]", "unspecified"),
        ("0.1.2.3", "this_network"),
        ("100.64.0.1", "carrier_nat"),
        ("100.100.100.200", "carrier_nat"),
        ("198.18.0.1", "benchmark"),
        ("192.0.2.1", "documentation"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.9", "documentation"),
        ("192.0.0.192", "ietf"),
        ("224.0.0.1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("fd00:ec2::254", "unique_local"),
        ("fc00::1", "unique_local"),
        ("fec0::1", "site_local"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
        ("64:ff9b:1::1", "nat64_local"),
        ("100::1", "discard"),
    ] {
        check(target, false, class);
    }
    for global in [
        "8.8.8.8",
        "1.1.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.1.1",
        "11.0.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "169.253.0.1",
        "2606:4700::1111",
        "http://[2001:4860:4860::8888]/",
        "http://8.8.8.8:53/",
        "::ffff:8.8.8.8",
        "134744072",
    ] {
        check(global, true, "global");
    }
    for name in [
        "a.example",
        "http://a.example/x",
        "localhost.example",
        "notlocalhost",
        "127.0.0.1.example",
        "http://127.0.0.1@a.example/",
        "a.example:8080",
    ] {
        check(name, true, "name");
    }
    // What will never be fetched is not allowed, whatever it spells.
    for never in [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://a.example/",
        "javascript:alert(1)",
        "data:,x",
        "http://",
        "http://[",
        "http://[::1",
        "http://256.256.256.256/",
        "http://[::ffff:127.0.0.1",
        "http://1.2.3.4.5/",
        "",
        " ",
        "http://a b/",
        "http://127.0.0.1:99999/",
        "http://[fe80::1%25eth0]/",
        "::1%lo",
    ] {
        let value = json(&run(rhumb().args(["net", "check", "--json", never])), 0);
        assert_eq!(value["allowed"], false, "{never:?}: {value}");
    }
    let with = |target: &str, network: &str| {
        json(&run(rhumb().args(["net", "check", "--json", target, "--allow-net", network])), 0)["allowed"].clone()
    };
    assert_eq!(with("http://127.0.0.1/", "127.0.0.0/8"), true);
    assert_eq!(with("http://[::ffff:127.0.0.1]/", "127.0.0.0/8"), true);
    assert_eq!(with("localhost", "127.0.0.0/8"), true);
    assert_eq!(with("10.0.0.1", "127.0.0.0/8"), false);
    assert_eq!(with("fd00::1", "fc00::/7"), true);
}
