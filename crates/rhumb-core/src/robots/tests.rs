//! Tables after RFC 9309 and the public suites, and properties of the matcher.

use proptest::prelude::*;

use super::*;

fn allowed(file: &[u8], agent: &str, path: &str) -> bool {
    RobotsTxt::parse(file, ROBOTS_BYTES_MAX).for_agent(agent).allows(path)
}

#[test]
fn one_rule() {
    fn check(pattern: &str, path: &str, matches: bool) {
        let file = format!("User-agent: *\nDisallow: {pattern}\n");
        assert_eq!(!allowed(file.as_bytes(), "foobot", path), matches, "{pattern} on {path}");
    }
    check("/", "/", true);
    check("/", "", true);
    check("/", "/robots.txt", false);
    check("", "/x", false);
    check("/fish", "/fish.html", true);
    check("/fish", "/Fish", false);
    check("/fish", "/catfish", false);
    check("/fish", "/?id=fish", false);
    check("/fish*", "/fishheads/yummy.html", true);
    check("/fish/", "/fish", false);
    check("/fish/", "/fish/?x", true);
    check("/*.php", "/folder/filename.php?parameters", true);
    check("/*.php", "/", false);
    check("/*.php$", "/a.php", true);
    check("/*.php$", "/a.php.php", true);
    check("/*.php$", "/a.php5", false);
    check("/fish*.php", "/fishheads/catfish.php?p", true);
    check("/*fish*.php", "/fishheads/catfish.htm", false);
    check("*.pdf", "/a/b.pdf", true);
    check("*", "/", true);
    check("*/x$", "/a/x", true);
    check("*/x$", "/a/xy", false);
    check("/a*$", "/abc", true);
    check("$", "/", false);
    check("/$", "/", true);
    check("/$", "/a", false);
    check("/a$b", "/a$b", true);
    check("/a$b", "/a", false);
    check("/a$$", "/a$", true);
    check("/a*a$", "/a", false);
    check("/a*a$", "/aa", true);
    check("fish", "/fish", false);
    check("/a?b", "/a?b=1", true);
    check("/index.html", "/", false);
    // Percent-encoding on both sides.
    check("/~joe", "/%7Ejoe", true);
    check("/%7ejoe", "/~joe", true);
    check("/foo/bar/%62%61%7A", "/foo/bar/baz", true);
    check("/a%2fb", "/a%2Fb", true);
    check("/a%2fb", "/a/b", false);
    check("/a/b", "/a%2Fb", false);
    check("/\u{30c4}", "/%E3%83%84", true);
    check("/%E3%83%84", "/\u{30c4}", true);
    check("/a b", "/a%20b", true);
    check("/a%20b", "/a%20b", true);
    check("/a|b", "/a%7Cb", true);
    check("/?q='x'", "/?q=%27x%27", true);
    check("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true);
    check("/path/file-with-a-%2A.html", "/path/file-with-a-%2a.html", true);
    check("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", false);
    check("/path/foo-%24", "/path/foo-$", true);
    check("/100%", "/100%", true);
    check("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", true);
    check("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar", true);
    check("/*=https%3A%2F", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", true);
}

#[test]
fn precedence() {
    fn check(rules: &str, path: &str, expected: (bool, Option<&str>, Option<u32>)) {
        let robots = RobotsTxt::parse(format!("User-agent: *\n{rules}").as_bytes(), ROBOTS_BYTES_MAX);
        let rules = robots.for_agent("x");
        let verdict = rules.verdict(path);
        assert_eq!((verdict.allowed, verdict.rule, verdict.line), expected, "{path}");
        let again = Rules::from_bytes(rules.to_bytes()).expect("own bytes");
        assert_eq!(again.verdict(path), verdict);
    }
    check("Disallow: /x/page.html\nAllow: /x/", "/x/page.html", (false, Some("Disallow: /x/page.html"), Some(2)));
    check("allow: /x/ # why\n\ndisallow: /", "/x/y", (true, Some("allow: /x/"), Some(2)));
    check("Disallow: /folder\nAllow: /folder", "/folder/page", (true, Some("Allow: /folder"), Some(3)));
    check("Allow: /page\nDisallow: /*.htm", "/page.htm", (false, Some("Disallow: /*.htm"), Some(3)));
    check("Allow: /$\nDisallow: /", "/", (true, Some("Allow: /$"), Some(2)));
    check("Allow: /$\nDisallow: /", "/page.htm", (false, Some("Disallow: /"), Some(3)));
    check("Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "/example/page/x", {
        (true, Some("Allow: /example/page/"), Some(2))
    });
    check("Disallow:\nAllow:", "/x", (true, None, None));
    check("Disallow: /", "/robots.txt", (true, None, None));
}

#[test]
fn groups_and_agents() {
    fn check(file: &str, agent: &str, path: &str, expected: bool) {
        assert_eq!(allowed(file.as_bytes(), agent, path), expected, "{agent} {path} in {file:?}");
    }
    let merged = "allow: /foo/bar/\n\nuser-agent: FooBot\ndisallow: /\nallow: /x/\nuser-agent: BarBot\ndisallow: /\n\
                  allow: /y/\n\n\nallow: /w/\nuser-agent: BazBot\n\nuser-agent: FooBot\nallow: /z/\ndisallow: /\n";
    check(merged, "FooBot", "/x/b", true);
    check(merged, "FooBot", "/z/d", true);
    check(merged, "FooBot", "/y/c", false);
    check(merged, "BarBot", "/y/c", true);
    check(merged, "BarBot", "/w/a", true);
    check(merged, "BarBot", "/z/d", false);
    check(merged, "BazBot", "/z/d", true);
    check(merged, "BazBot", "/foo/bar/", false);
    check(merged, "Other", "/x", true);
    let star = "User-agent: *\nDisallow: /x\nUser-Agent: foobot\nDisallow: /y";
    check(star, "FOOBOT/2.1 (+http://f.test/)", "/x", true);
    check(star, "FooBot", "/y", false);
    check(star, "foobot-news", "/y", true);
    check(star, "foo", "/x", false);
    check(star, "", "/x", false);
    check(star, "Mozilla/5.0 (compatible; FooBot/0.1; https://f.test/bot.html)", "/y", false);
    check(star, "Mozilla/5.0 (Linux) AppleWebKit/1 (KHTML) (compatible; FooBot/2)", "/x", true);
    check(star, "Mozilla/5.0 (compatible; )", "/x", false);
    check(star, "Mozilla/5.0 (X11; Linux)", "/x", false);
    // A group of its own with no rules allows everything.
    check("User-agent: *\nDisallow: /\nUser-agent: a\nAllow:", "a", "/x", true);
    // Other lines do not end a run of agents, nor do blank ones.
    check(
        "User-agent: a\nSitemap: http://s.test/\nCrawl-delay: 3\n\nfoo: bar\nUser-agent: b\nDisallow: /",
        "a",
        "/",
        false,
    );
    // Two groups for `*` are one.
    check("User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: *\nDisallow: /b", "q", "/b", false);
    // Names cut to their token, and lists.
    check("User-agent: FooBot/1.2\nDisallow: /", "foobot", "/", false);
    check("User-agent: Foo Bar\nDisallow: /", "foo", "/", false);
    check("User-agent: One, Two, Three\nDisallow: /", "three", "/", false);
    check("User-agent: bot1\nDisallow: /", "bot2", "/", true);
    check("User-agent: bot1\nDisallow: /", "bot1", "/", false);
    check("User-agent: bot\nDisallow: /", "bot1/3.0", "/", false);
    check("User-agent: Foobot2\nDisallow: /", "foobot", "/", false);
    check("User-agent: * (all)\nDisallow: /", "x", "/", false);
    check("User-agent:\nDisallow: /", "x", "/", true);
}

#[test]
fn lines() {
    fn check(file: &[u8], expected: bool) {
        assert_eq!(allowed(file, "foobot", "/x/y"), expected, "{}", String::from_utf8_lossy(file));
    }
    check(b"", true);
    check(b"user-agent: FooBot\rdisallow: /\r", false);
    check(b"USER-AGENT : FooBot\r\n\tDISALLOW :\t/ \r\n", false);
    check(b"user-agent FooBot\ndisallow /\n", false);
    check(b"user-agent Foo Bot\ndisallow /\n", true);
    check(b"foo: FooBot\nbar: /\n", true);
    check(b"useragent: foobot\nDissallow: /", false);
    check(b"\xef\xbb\xbfUser-Agent: foobot\nDisallow: /", false);
    check(b"\xefUser-Agent: foobot\nDisallow: /", false);
    check(b"User-Agent: foobot\n\xef\xbb\xbfDisallow: /", true);
    check(b"\xff\xfeu\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0*\0\n\0d\0i\0s\0a\0l\0l\0o\0w\0:\0/\0", false);
    check(b"User-agent: foobot\nDisallow: /x\0\nDisallow: /\xff\n", true);
    check(b"User-agent: foobot # us\nDisallow: /x#y\n", false);
    check(b"User-agent: foobot\n: /\nDisallow\n", true);
    let long = format!("user-agent: *\ndisallow: /{}\ndisallow: /x", "a".repeat(100_000));
    check(long.as_bytes(), false);
    assert!(!allowed(long.as_bytes(), "x", &format!("/{}b", "a".repeat(LINE_BYTES_MAX))));
    let cut = format!("user-agent: *\n{}\ndisallow: /x", "#".repeat(ROBOTS_BYTES_MAX));
    check(cut.as_bytes(), true);
    let whole = format!("user-agent: *\n{}\ndisallow: /x", "#".repeat(500 * 1024));
    check(whole.as_bytes(), false);
}

#[test]
fn line_numbers_in_every_convention() {
    for file in [
        "a\n\nUser-agent: *\n\nDisallow: /",
        "a\r\rUser-agent: *\r\rDisallow: /",
        "a\r\n\nUser-agent: *\r\n\rDisallow: /\r\n",
    ] {
        let rules = RobotsTxt::parse(file.as_bytes(), ROBOTS_BYTES_MAX).for_agent("x");
        assert_eq!(rules.verdict("/").line, Some(5), "{file:?}");
    }
}

#[test]
fn delays_and_sitemaps() {
    fn check(file: &str, agent: &str, expected: Option<u32>) {
        assert_eq!(
            RobotsTxt::parse(file.as_bytes(), 1000).for_agent(agent).crawl_delay_ms(),
            expected,
            "{agent}: {file:?}"
        );
    }
    let chain = "User-agent: bixo\nCrawl-delay: 10\nUser-agent: foobot\nCrawl-delay: 20\nUser-agent: *\nDisallow:/baz";
    check(chain, "bixo", Some(10_000));
    check(chain, "foobot", Some(20_000));
    check(chain, "other", None);
    check("User-agent: *\nDisallow: /a\nCrawl-delay: 0.5\nAllow: /b", "x", Some(500));
    check("User-agent: *\nCrawl-delay: soon", "x", None);
    check("User-agent: *\nCrawl-delay: -1", "x", None);
    check("User-agent: *\nCrawl-delay: 99999999999", "x", Some(u32::MAX - 1));
    check("Crawl-delay: 5\nUser-agent: *\nDisallow:", "x", None);
    let robots = RobotsTxt::parse(b"Sitemap: http://a.test/S.xml\nUser-agent: *\nsite-map: /rel.xml # x", 1000);
    assert_eq!(robots.sitemaps(), ["http://a.test/S.xml", "/rel.xml"]);
}

#[test]
fn access_by_status() {
    fn check(fetched: Fetched<'_>, expected: bool) {
        assert_eq!(Access::judge(fetched).rules("x").allows("/x"), expected, "{fetched:?}");
    }
    check(Fetched::Answer(200, b"User-agent: *\nDisallow: /x"), false);
    check(Fetched::Answer(204, b""), true);
    check(Fetched::Answer(301, b"User-agent: *\nDisallow: /"), true);
    for status in [400, 401, 403, 404, 410] {
        check(Fetched::Answer(status, b"User-agent: *\nDisallow: /"), true);
    }
    for status in [429, 500, 503, 599, 999] {
        check(Fetched::Answer(status, b""), false);
    }
    check(Fetched::Unreachable, false);
    assert!(Rules::disallow_all().allows("/robots.txt"));
}

#[test]
fn hostile_wildcards_are_linear() {
    let file = format!("User-agent: *\nDisallow: /{}b$\n", "*a".repeat(8000));
    let rules = RobotsTxt::parse(file.as_bytes(), ROBOTS_BYTES_MAX).for_agent("x");
    assert!(rules.allows(&format!("/{}", "a".repeat(60_000))));
    assert!(!rules.allows(&format!("/{}b", "a".repeat(60_000))));
}

#[test]
fn damaged_bytes_are_refused() {
    let rules = RobotsTxt::parse(b"User-agent: *\nDisallow: /abc\nAllow: /a*c$", 1000).for_agent("x");
    let bytes = rules.to_bytes().to_vec();
    for len in 0..bytes.len() {
        assert_eq!(Rules::from_bytes(&bytes[..len]), Err(RulesError), "{len}");
    }
    assert_eq!(Rules::from_bytes(&[&bytes[..], &[0]].concat()), Err(RulesError));
    assert!(rules.memory_bytes() < 100);
}

/// The definition, with backtracking.
fn naive(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => true,
        b"$" => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|at| naive(rest, &path[at..])),
        [b, rest @ ..] => path.first() == Some(b) && naive(rest, &path[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn matcher_agrees_with_the_definition(pattern in "[/*]?[ab*]{0,8}\\$?", path in "/[ab]{0,10}") {
        let file = format!("User-agent: *\nDisallow: {pattern}\n");
        let expected = !pattern.is_empty() && naive(pattern.as_bytes(), path.as_bytes());
        prop_assert_eq!(!allowed(file.as_bytes(), "x", &path), expected, "{} on {}", pattern, path);
    }

    #[test]
    fn any_bytes_are_a_robots_txt(file in prop::collection::vec(any::<u8>(), 0..300), path in "/.{0,20}") {
        let rules = RobotsTxt::parse(&[b"User-agent: *\nDisallow:", &file[..]].concat(), 200).for_agent("x");
        let _ = rules.verdict(&path);
        prop_assert_eq!(Rules::from_bytes(rules.to_bytes()), Ok(rules));
    }

    #[test]
    fn damaged_bytes_never_panic(bytes in prop::collection::vec(0u8..12, 0..60)) {
        if let Ok(rules) = Rules::from_bytes(&[&[1u8, 1][..], &bytes].concat()) {
            let _ = rules.verdict("/a");
        }
    }
}
