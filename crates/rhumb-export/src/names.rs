//! File names for pages, made of what the web says and yet safe: crawled data names no file freely.
//!
//! `https://example.org/docs/setup` becomes `example.org/docs/setup.md`. A name is *plain* if the URL can be read back from it: only
//! `a-z 0-9 . _ -`, nothing cut, nothing that a file system gives a meaning. Everything else is made plain with loss,
//! and the file's name then ends in `~` and sixteen letters of the SHA-1 of the URL.
//!
//! Invariant: two URLs never have the same name, not even where case does not count, and none is a directory of another; no name
//! leaves its directory, is hidden, is reserved, or is longer than a file system takes.

use data_encoding::{BASE32_NOPAD, Encoding};
use rhumb_core::url::Url;
use sha1::{Digest as _, Sha1};

use crate::place::INDEX;

/// Bytes of one part of a path.
const PART_BYTES_MAX: usize = 80;
/// Directories below that of the host.
const DEPTH_MAX: usize = 16;
/// What every file ends in, and no directory.
const ENDING: &str = ".md";
/// Names of devices on some systems, whatever follows behind a dot.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The path of a page's file, parts divided by `/`.
pub(crate) fn of(url: &Url) -> String {
    let mut path = host(url);
    let mut lossy = url.query().is_some();
    let mut parts: Vec<&str> = url.path().split('/').skip(1).collect();
    let last = parts.pop().unwrap_or_default();
    lossy |= parts.len() > DEPTH_MAX;
    for part in parts.iter().take(DEPTH_MAX) {
        path.push('/');
        let mut safe = plain(part, &mut lossy);
        if safe.ends_with(ENDING) {
            safe.push('_');
            lossy = true;
        }
        path.push_str(&safe);
    }
    path.push('/');
    match (last, url.query()) {
        ("", None) => path.push_str("index"),
        (last, query) => {
            lossy |= last == "index";
            let whole = query.map_or(last.to_string(), |query| format!("{last}_{query}"));
            path.push_str(&plain(&whole, &mut lossy));
        }
    }
    if lossy {
        path.push('~');
        path.push_str(&hash(url.as_str()));
    }
    path.push_str(ENDING);
    path
}

/// The directory of a host: its name, for others than HTTPS at its own port with `+` and scheme or port. Files of this
/// machine have no host.
fn host(url: &Url) -> String {
    let mut lossy = false;
    let name = url.host_str();
    let mut directory = match name.strip_prefix('[').and_then(|n| n.strip_suffix(']')) {
        Some(address) => format!("[{}]", address.replace(':', "-")),
        None if name.is_empty() => String::new(),
        None => plain(name, &mut lossy),
    };
    if lossy || directory == INDEX {
        directory.push('~');
        directory.push_str(&hash(name));
    }
    if !url.is_https() {
        directory.push_str(&format!("+{}", url.scheme()));
    }
    // A canonical URL names its port only if it is not the scheme's own.
    if let Some((_, port)) = url.origin().rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
    {
        directory.push_str(&format!("+{port}"));
    }
    directory
}

/// A part of a path with nothing in it but what is harmless; `lossy` is set if that took anything.
fn plain(part: &str, lossy: &mut bool) -> String {
    let mut safe: String = part
        .chars()
        .take(PART_BYTES_MAX)
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '.' | '_' | '-' => c,
            'A'..='Z' => c.to_ascii_lowercase(),
            '=' | '%' | '+' => c,
            _ => '_',
        })
        .collect();
    if safe.is_empty() || safe.starts_with(['.', '-']) {
        safe.insert(0, '_');
    }
    if safe.ends_with('.') {
        safe.push('_');
    }
    let stem = safe.split('.').next().unwrap_or_default();
    let numbered = stem.len() == 4
        && (stem.starts_with("com") || stem.starts_with("lpt"))
        && stem.ends_with(|c: char| c.is_ascii_digit());
    if DEVICES.contains(&stem) || numbered {
        safe.insert(0, '_');
    }
    *lossy |= safe != part || safe.contains(['=', '%', '+']);
    safe
}

/// Eighty bits of a SHA-1: nobody finds two URLs with the same by chance, nor anything else to do harm with.
fn hash(text: &str) -> String {
    let letters: &Encoding = &BASE32_NOPAD;
    letters.encode(&Sha1::digest(text.as_bytes())[..10]).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(url: &str) -> String {
        of(&Url::parse(url).expect(url))
    }

    #[test]
    fn plain_urls_keep_their_names_and_others_are_told_apart() {
        let check = |url: &str, expected: &str| {
            let name = name(url);
            match expected.split_once('~') {
                Some((before, after)) => {
                    let fits = name.len() == expected.len() + 16 && name.starts_with(&format!("{before}~"));
                    assert!(fits && name.ends_with(after), "{url}: {name}");
                }
                None => assert_eq!(name, expected),
            }
        };
        check("https://example.org/", "example.org/index.md");
        check("https://example.org/docs/setup", "example.org/docs/setup.md");
        check("https://example.org/docs/", "example.org/docs/index.md");
        check("https://example.org/docs/index", "example.org/docs/index~.md");
        check("https://example.org/a.html", "example.org/a.html.md");
        check("http://example.org/a", "example.org+http/a.md");
        check("http://127.0.0.1:8080/a", "127.0.0.1+http+8080/a.md");
        check("https://[2001:db8::1]:444/", "[2001-db8--1]+444/index.md");
        check("file:///usr/share/doc/x.html", "+file/usr/share/doc/x.html.md");
        check("https://example.org/About", "example.org/about~.md");
        check("https://example.org/a?page=2&x=%2F", "example.org/a_page=2_x=%2f~.md");
        check("https://example.org/?q", "example.org/_q~.md");
        check("https://example.org/a//b", "example.org/a/_/b~.md");
        check("https://example.org/.../x", "example.org/_..._/x~.md");
        check("https://example.org/.git/config", "example.org/_.git/config~.md");
        check("https://example.org/a.md/b", "example.org/a.md_/b~.md");
        check("https://example.org/con", "example.org/_con~.md");
        check("https://example.org/lpt1.txt/nul.x", "example.org/_lpt1.txt/_nul.x~.md");
        check("https://example.org/%E4%BD%A0", "example.org/%e4%bd%a0~.md");
        check("https://example.org/~user", "example.org/_user~.md");
        check("https://index.jsonl/", "index.jsonl~/index.md");
        let long = name(&format!("https://example.org/{}", "x".repeat(3_000)));
        assert_eq!(long.len(), "example.org/".len() + 80 + 17 + 3);
        let deep = name(&format!("https://example.org/{}", "x/".repeat(400)));
        assert_eq!(deep.matches('/').count(), 1 + DEPTH_MAX);
    }

    fn url() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            Just("index"),
            Just("a"),
            Just("A"),
            Just("a.md"),
            Just(""),
            Just("..."),
            Just("%2e%2e"),
            Just("con"),
            Just("~"),
            Just("%7e"),
            Just("a_b"),
            Just("a?b"),
            Just("b"),
            Just("%2F"),
            Just("ü"),
            Just("..%2f"),
        ];
        let parts = proptest::collection::vec(part, 0..5);
        (prop_oneof![Just("http"), Just("https")], parts, any::<bool>()).prop_map(|(scheme, parts, slash)| {
            format!("{scheme}://h.test/{}{}", parts.join("/"), if slash { "/" } else { "" })
        })
    }

    proptest! {
        #[test]
        fn no_two_urls_meet(a in url(), b in url()) {
            let (a, b) = (Url::parse(&a).expect("a URL"), Url::parse(&b).expect("a URL"));
            let (x, y) = (of(&a), of(&b));
            prop_assert_eq!(a == b, x == y, "{} {}", a, b);
            prop_assert!(!y.starts_with(&format!("{}/", x)), "{} is a directory of {}", x, y);
            for part in x.split('/') {
                prop_assert!(!part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && part.len() <= 255);
                prop_assert!(part.bytes().all(|b| !b.is_ascii_uppercase() && (b' '..b'\x7f').contains(&b)));
            }
        }
    }
}
