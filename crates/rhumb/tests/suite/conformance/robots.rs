//! robots.txt by RFC 9309, section by section.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::piped;

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
