//! Tables and properties of the normaliser.

use proptest::prelude::*;

use super::*;
use crate::url::Host;

fn with(change: impl FnOnce(&mut NormalizeOptions)) -> Normalizer {
    let mut options = NormalizeOptions::default();
    change(&mut options);
    Normalizer::new(&options)
}

#[test]
fn canonical_forms() {
    fn check(raw: &str, expected: &str) {
        let found = Normalizer::default().normalize(raw, None).map(String::from);
        assert_eq!(found.as_deref(), Ok(expected), "{raw}");
    }
    check("http://example.com", "http://example.com/");
    check("HTTP://EXAMPLE.com:80/#top", "http://example.com/");
    check("https://example.com:443/a/../b/./c", "https://example.com/b/c");
    check("http://example.com/a/%2e%2E/b", "http://example.com/b");
    check("http://example.com/%7Ejoe/%c3%a9?q=%2d%2f", "http://example.com/~joe/%C3%A9?q=-%2F");
    check("http://me:secret@example.com/", "http://example.com/");
    check("http://example.com./x", "http://example.com/x");
    check("http://example.com:8080/?", "http://example.com:8080/");
    check(" http://exa\nmple.com/ a ", "http://example.com/%20a");
    check("http://example.com\\a\\b", "http://example.com/a/b");
    check("http://B\u{fc}cher.example/", "http://xn--bcher-kva.example/");
    check("http://2130706433/", "http://127.0.0.1/");
    check("http://example.com/a//b/", "http://example.com/a//b/");
    check("http://example.com/a?utm_source=x&b=1&gclid=2", "http://example.com/a?b=1");
    check("http://example.com/a?utm%5Fsource=x", "http://example.com/a");
    check("http://example.com/a;jsessionid=9F?PHPSESSID=0&x", "http://example.com/a?x");
    check("http://example.com/?b=2&a=1", "http://example.com/?b=2&a=1");
    check("http://example.com/?a=1&&b", "http://example.com/?a=1&&b");
    check("http://example.com/^?^", "http://example.com/%5E?^");
    check("http:example.com/x", "http://example.com/x");
}

#[test]
fn switches() {
    fn check(change: impl FnOnce(&mut NormalizeOptions), raw: &str, expected: &str) {
        let found = with(change).normalize(raw, None).map(String::from);
        assert_eq!(found.as_deref(), Ok(expected), "{raw}");
    }
    let both = "http://a.test/x;jsessionid=1?utm_source=2&ref=3";
    check(|o| o.tracking = false, both, "http://a.test/x?utm_source=2&ref=3");
    check(|o| o.session_ids = false, both, "http://a.test/x;jsessionid=1?ref=3");
    check(|o| o.tracking_params = vec!["REF".into()], both, "http://a.test/x?utm_source=2");
    check(|o| *o = NormalizeOptions::plain(), both, both);
    check(|o| o.sort_query = true, "http://a.test/?b=2&a=1&b=1", "http://a.test/?a=1&b=1&b=2");
}

#[test]
fn links_of_a_page() {
    fn check(base: &str, raw: &str, expected: &str) {
        let normalizer = Normalizer::default();
        let base = normalizer.base(base, None).expect("base");
        let found = normalizer.normalize(raw, Some(&base)).map(String::from);
        assert_eq!(found.as_deref(), Ok(expected), "{raw} against {}", base.url());
    }
    let page = "https://a.test:8443/dir/page.html?q=1#f";
    check(page, "/x", "https://a.test:8443/x");
    check(page, "x", "https://a.test:8443/dir/x");
    check(page, "../x?y", "https://a.test:8443/x?y");
    check(page, "", "https://a.test:8443/dir/page.html?q=1");
    check(page, "#top", "https://a.test:8443/dir/page.html?q=1");
    check(page, "?p=2", "https://a.test:8443/dir/page.html?p=2");
    check(page, "//b.test/x", "https://b.test/x");
    check(page, "/\\b.test/x", "https://b.test/x");
    check(page, " ///b.test/x", "https://b.test/x");
    check(page, "https:x", "https://a.test:8443/dir/x");
    check(page, "http:x", "http://x/");
    check(page, "http://b.test", "http://b.test/");
    check(page, "http://b.test:80/", "http://b.test/");
    check(page, "http://b.test:080/", "http://b.test/");
    check("http://a.test/", "http://a.test.evil.test/", "http://a.test.evil.test/");
    check("http://a.test/", "http://a.test:81/", "http://a.test:81/");
    check("http://u@a.test./x;jsessionid=1/y", "z", "http://a.test/x/z");
}

#[test]
fn refusals() {
    fn check(raw: &str, name: &str) {
        let found = Normalizer::default().normalize(raw, None).map_err(|error| error.name());
        assert_eq!(found, Err(name), "{raw}");
    }
    check("mailto:a@b.test", "scheme");
    check(" JavaScript:void(0)", "scheme");
    check("java\nscript:x", "scheme");
    check("ftp://a.test/", "scheme");
    check("/x", "no_base");
    check("", "no_base");
    check("http://", "host");
    check("http://./", "host");
    check("http://a../", "host");
    check("http://1.2.3.256/", "host");
    check("http://[::g]/", "host");
    check("http://a b/", "host");
    check("http://a:99999/", "unparsable");
    check(&format!("http://a.test/{}", "x".repeat(5000)), "url_too_long");
}

/// Links as pages have them, and then some.
fn link() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z0-9_~.-]{1,6}",
        1 => "[A-Z;=()%^']{1,3}",
        1 => Just("%2e".to_owned()),
        1 => Just("%41".to_owned()),
        1 => Just("%%32".to_owned()),
        1 => Just(";jsessionid=1".to_owned()),
        1 => Just("(S(abc))".to_owned()),
        1 => Just("..".to_owned()),
        1 => Just("\u{e9} ".to_owned()),
    ];
    let path = prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.join("/"));
    let squeezed = prop::collection::vec("[%0-9a-f.;/]{0,4}", 0..4).prop_map(|pieces| pieces.concat());
    let query = prop_oneof![
        3 => Just(String::new()),
        1 => Just("?".to_owned()),
        2 => "\\?[a-c]=[a-z0-9+:/]{0,4}(&[a-c]=[0-9]{0,2}){0,2}",
        1 => "\\?(utm_[a-z]=1|sid=[0-9a-f]{32}|x=%[0-9a-f]{2}|&|%%3[0-9]|\\^|'){0,4}",
        1 => "\\?(utm_a=1&|b=2&|gclid&|&){0,3}(#.?)?",
    ];
    let head = prop_oneof![
        3 => Just("/".to_owned()),
        2 => Just(String::new()),
        1 => Just("http://a.test".to_owned()),
        1 => Just("http://a.test/".to_owned()),
        1 => Just("https://b.test:8080/".to_owned()),
        1 => "(http|https|HTTP)://[a-z0-9.-]{1,8}(:[0-9]{1,5})?/?",
        1 => "http://([0-9]{1,3}\\.){1,3}[0-9x]{0,2}/",
        1 => "(http:)?//([0-9]{1,3}\\.){3}[0-9]{1,3}(:[0-9]{1,5})?/?",
        1 => "//[a-z0-9.-]{1,8}(:[0-9]{1,5})?/?",
        1 => "\\.{1,2}/{0,2}",
        1 => "http://(u:p@)?(xn--)?[a-z0-9A-Z]{1,5}\\.?\\.?(test|9|0xf)?\\.?/",
        1 => "[#?/\\\\:]{0,2}",
    ];
    (head, prop_oneof![2 => path, 1 => squeezed], query).prop_map(|(head, path, query)| format!("{head}{path}{query}"))
}

fn base() -> impl Strategy<Value = String> {
    let plain = "http://a\\.test(:81)?/([a-z]{1,3}/){0,3}[a-z]{0,3}(\\?[a-z])?";
    let odd = "https?://(u@)?[aB]\\.test\\.?/(%41/|\\(S\\(a\\)\\)/|x;jsessionid=1/|\\.a/|b/){0,3}p?(#f)?";
    prop_oneof![2 => plain, 1 => odd]
}

fn options() -> impl Strategy<Value = NormalizeOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(session_ids, tracking, sort_query)| NormalizeOptions {
        session_ids,
        tracking,
        sort_query,
        ..Default::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn short_cut_agrees_with_the_long_way(base in base(), link in link(), options in options()) {
        let normalizer = Normalizer::new(&options);
        let base = normalizer.base(&base, None).expect("bases are valid");
        // What a page's own URL is as a base, its text parsed or not.
        let own = normalizer.own_base(base.url());
        let parsed = normalizer.base(base.url().as_str(), None).expect("canonical is valid");
        prop_assert_eq!(normalizer.normalize(&link, Some(&own)), normalizer.normalize(&link, Some(&parsed)));
        for base in [Some(&base), None] {
            if let Some(short) = normalizer.short_cut(&link, base) {
                let long = normalizer.long_way(&link, base);
                prop_assert_eq!(Ok(&short), long.as_ref(), "{}", link);
                let indexed = Url::index(short.as_str().to_owned(), short.rules());
                prop_assert_eq!(
                    (short.host_end, short.origin_end, short.path_end, short.port),
                    (indexed.host_end, indexed.origin_end, indexed.path_end, indexed.port)
                );
            }
        }
    }

    #[test]
    fn once_is_enough(base in base(), link in link(), options in options()) {
        let normalizer = Normalizer::new(&options);
        let base = normalizer.base(&base, None).expect("bases are valid");
        if let Ok(url) = normalizer.normalize(&link, Some(&base)) {
            prop_assert_eq!(normalizer.normalize(url.as_str(), None), Ok(url.clone()));
            prop_assert_eq!(normalizer.long_way(url.as_str(), Some(&base)), Ok(url.clone()));
            prop_assert_eq!(Url::parse(url.as_str()), Ok(url.clone()));
            let again = ::url::Url::parse(url.as_str()).expect("canonical URLs parse");
            prop_assert_eq!(again.as_str(), url.as_str());
        }
    }

    #[test]
    fn anything_goes_in(link in ".{0,40}", base in base()) {
        let normalizer = Normalizer::default();
        let base = normalizer.base(&base, None).expect("bases are valid");
        let _ = normalizer.normalize(&link, Some(&base));
    }
}

/// `cargo test --release -p rhumb-core link_cost -- --ignored --nocapture` prints nanoseconds per link.
#[test]
#[ignore = "a measurement, run by hand"]
#[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn link_cost() {
    let normalizer = Normalizer::default();
    let base = normalizer.base("http://www17.example.test:8080/section/page-4.html", None).expect("base");
    let links = |kind: &str| -> Vec<String> {
        (0..25)
            .map(|i| match kind {
                "absolute path" => format!("/section/{i}/page-{i}.html"),
                "relative" => format!("page-{i}.html"),
                "with query" => format!("/list?page={i}&sort=name"),
                "same origin" => format!("http://www17.example.test:8080/p/{i}.html"),
                "other host" => format!("http://www{i}.example.test:8080/page/{i}.html"),
                "dot segments" => format!("../p/{i}.html"),
                _ => format!("/p/{i}.html?utm_source=feed&id={i}"),
            })
            .collect()
    };
    for kind in ["absolute path", "relative", "with query", "same origin", "other host", "dot segments", "tracking"] {
        let links = links(kind);
        let best = (0..5)
            .map(|_| {
                let start = std::time::Instant::now();
                for _ in 0..4_000 {
                    for link in &links {
                        std::hint::black_box(normalizer.normalize(std::hint::black_box(link), Some(&base)).is_ok());
                    }
                }
                start.elapsed().as_nanos() / 100_000
            })
            .min();
        println!("{kind:>14}: {} ns/link", best.unwrap_or_default());
    }
}

static TOY: Scheme = Scheme { name: "toy-links", default_port: 7, needs_robots: false, open: false, ..scheme::HTTP };

#[test]
fn files_and_other_schemes() {
    Scheme::register(&TOY).expect("a new scheme");
    fn check(raw: &str, base: Option<&str>, expected: Result<&str, &str>) {
        let normalizer = Normalizer::default();
        let base = base.map(|base| normalizer.base(base, None).expect(base));
        let found = normalizer.normalize(raw, base.as_ref());
        assert_eq!(found.as_ref().map(Url::as_str).map_err(UrlError::name), expected, "{raw:?} against {base:?}");
        if let Ok(url) = found {
            assert_eq!(Url::parse(url.as_str()).as_ref(), Ok(&url), "again");
            assert_eq!(Url::from_canonical(url.as_str()), Some(url.clone()), "read back");
            let host = url.host();
            assert_eq!(Host::from_canonical(host.as_str()).as_ref(), Some(&host));
            assert_eq!((host.name(), host.port(), host.scheme()), (url.host_str(), url.port(), url.scheme()));
        }
    }
    check("file:///a/b.html", None, Ok("file:///a/b.html"));
    check("FILE:/a", None, Ok("file:///a"));
    check("file://localhost/a/?q#f", None, Ok("file:///a/"));
    check("file:///a//b/.././c%7e%e9 d", None, Ok("file:///a/c~%E9%20d"));
    check("file:////a", None, Ok("file:///a"));
    check("file:///", None, Ok("file:///"));
    check("file:///a//", None, Ok("file:///a/"));
    check("file://host/a", None, Err("host"));
    check("c.html?x=1#y", Some("file:///a/b.html"), Ok("file:///a/c.html"));
    check("../../../../etc/passwd", Some("file:///a/b/c.html"), Ok("file:///etc/passwd"));
    check("//x/y", Some("file:///a/b"), Err("host"));
    check("", Some("file:///a/b"), Ok("file:///a/b"));
    check("http://x.example/", Some("file:///a/b"), Ok("http://x.example/"));
    check("toy-links://h/", Some("file:///a/b"), Err("scheme"));
    // The web names no file, however it is spelt.
    for web in ["http://x.example/a", "https://x.example/"] {
        check("file:///etc/passwd", Some(web), Err("scheme"));
        check(" \tfi\nle:///etc/passwd", Some(web), Err("scheme"));
        check("FILE:etc/passwd", Some(web), Err("scheme"));
        check("toy-links://h/", Some(web), Err("scheme"));
        let normalizer = Normalizer::default();
        let base = normalizer.base(web, None).expect(web);
        assert!(normalizer.base("file:///etc/", Some(&base)).is_err(), "as a base");
    }
    check("Toy-Links://HOST:7", None, Ok("toy-links://host/"));
    check("toy-links://h:8/a/../b?utm_source=x&y=1#z", None, Ok("toy-links://h:8/b?y=1"));
    check("/x", Some("toy-links://h/a/b"), Ok("toy-links://h/x"));
    check("//g/x", Some("toy-links://h/a/b"), Ok("toy-links://g/x"));
    check("c", Some("toy-links://h/a/b"), Ok("toy-links://h/a/c"));
    check("http://w.example/", Some("toy-links://h/a/b"), Ok("http://w.example/"));
    check("toy-links://h%41/", None, Err("host"));
    check("toy-links:///x", None, Err("host"));
    check("toy-links:x", None, Err("host"));
    check("gopher://h/", None, Err("scheme"));
}
