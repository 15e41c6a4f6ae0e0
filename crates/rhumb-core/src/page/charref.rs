//! Character references: `&amp;`, `&#233;`, `&copy` and everything else a browser would turn into text.
//!
//! Invariant: [`reference()`] looks at a bounded number of bytes past the `&` unless they are digits, and never at a
//! byte twice for the same `&`; so decoding is linear however the input was made.

use super::entities::{LEGACY, NAMED};

/// Where a reference was found. In an attribute, `&copy=1` stays as written, because query strings look like that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Between tags.
    Text,
    /// Inside an attribute's value.
    Attribute,
}

/// What a reference stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// One code point, from a number.
    Char(char),
    /// One or two code points, from a name.
    Text(&'static str),
}

impl Meaning {
    pub(super) fn push_to(self, out: &mut String) {
        match self {
            Meaning::Char(c) => out.push(c),
            Meaning::Text(s) => out.push_str(s),
        }
    }
}

/// Reads the reference whose `&` stands just before `rest`. Returns its meaning and how many bytes of `rest` it took,
/// or nothing when the `&` is only an ampersand.
pub(super) fn reference(rest: &[u8], place: Place) -> Option<(Meaning, usize)> {
    match rest.first()? {
        b'#' => numeric(rest),
        b if b.is_ascii_alphanumeric() => named(rest, place),
        _ => None,
    }
}

/// The longest name in the standard's list is 31 letters.
const NAME_BYTES_MAX: usize = 31;
const LEGACY_BYTES_MAX: usize = 6;

fn named(rest: &[u8], place: Place) -> Option<(Meaning, usize)> {
    let run = rest.iter().take(NAME_BYTES_MAX + 1).take_while(|b| b.is_ascii_alphanumeric()).count();
    if rest.get(run) == Some(&b';')
        && let Some(text) = lookup(&rest[..run])
    {
        return Some((Meaning::Text(text), run + 1));
    }
    // Without its `;` a name may be a prefix of what was written: `&notit` is `¬it`.
    for len in (2..=run.min(LEGACY_BYTES_MAX)).rev() {
        let name = &rest[..len];
        if LEGACY.binary_search_by(|n| n.as_bytes().cmp(name)).is_ok() {
            let next = rest.get(len).copied().unwrap_or(b' ');
            if place == Place::Attribute && next != b';' && (next == b'=' || next.is_ascii_alphanumeric()) {
                return None;
            }
            let took = len + usize::from(next == b';');
            return lookup(name).map(|text| (Meaning::Text(text), took));
        }
    }
    None
}

fn lookup(name: &[u8]) -> Option<&'static str> {
    match name {
        b"amp" => return Some("&"),
        b"nbsp" => return Some("\u{a0}"),
        b"quot" => return Some("\""),
        b"lt" => return Some("<"),
        b"gt" => return Some(">"),
        _ => {}
    }
    NAMED.binary_search_by(|(n, _)| n.as_bytes().cmp(name)).ok().map(|i| NAMED[i].1)
}

fn numeric(rest: &[u8]) -> Option<(Meaning, usize)> {
    let (radix, start) = if matches!(rest.get(1), Some(b'x' | b'X')) { (16, 2) } else { (10, 1) };
    let mut at = start;
    let mut code: u32 = 0;
    while let Some(digit) = rest.get(at).and_then(|&b| (b as char).to_digit(radix)) {
        // Saturating just above the last code point keeps a thousand digits from wrapping around.
        code = (code * radix + digit).min(0x11_0000);
        at += 1;
    }
    if at == start {
        return None;
    }
    at += usize::from(rest.get(at) == Some(&b';'));
    Some((Meaning::Char(code_point(code)), at))
}

/// The standard's repair of numbers that are no characters: NUL, surrogates and beyond become U+FFFD, and the C1
/// range means what windows-1252 says.
fn code_point(code: u32) -> char {
    const C1: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match code {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9f => C1[(code - 0x80) as usize],
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// Appends an attribute's value with references decoded, line ends as `\n` and NULs as U+FFFD.
pub(super) fn push_attribute(raw: &str, out: &mut String) {
    push_decoded(raw, Place::Attribute, "\u{fffd}", out);
}

/// Appends `raw` with references decoded, line ends as `\n`, and each NUL as `nul`.
pub(super) fn push_decoded(raw: &str, place: Place, nul: &str, out: &mut String) {
    let bytes = raw.as_bytes();
    let mut done = 0;
    while let Some(i) = memchr::memchr3(b'&', b'\r', 0, &bytes[done..]) {
        let at = done + i;
        out.push_str(&raw[done..at]);
        done = at + 1;
        match bytes[at] {
            b'&' => match reference(&bytes[done..], place) {
                Some((meaning, took)) => {
                    meaning.push_to(out);
                    done += took;
                }
                None => out.push('&'),
            },
            b'\r' => {
                if bytes.get(done) != Some(&b'\n') {
                    out.push('\n');
                }
            }
            _ => out.push_str(nul),
        }
    }
    out.push_str(&raw[done..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, text: &str, attribute: &str) {
        let mut out = String::new();
        push_decoded(raw, Place::Text, "", &mut out);
        assert_eq!(out, text, "as text: {raw:?}");
        out.clear();
        push_attribute(raw, &mut out);
        assert_eq!(out, attribute, "as attribute: {raw:?}");
    }

    #[test]
    fn references_mean_what_browsers_say() {
        check("a &amp; b", "a & b", "a & b");
        check("&lt;&gt;&quot;&nbsp;", "<>\"\u{a0}", "<>\"\u{a0}");
        check("?a=1&copy=2", "?a=1©=2", "?a=1&copy=2");
        check("?a=1&copy;=2", "?a=1©=2", "?a=1©=2");
        check("&copy", "©", "©");
        check("&notit;", "¬it;", "&notit;");
        check("&notin;", "∉", "∉");
        check("&ampamp", "&amp", "&ampamp");
        check("&#65;&#x42;&#X43", "ABC", "ABC");
        check(
            "&#0;&#xD800;&#x110000;&#99999999999999;",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        );
        check("&#150;&#x80;", "–€", "–€");
        check("&#;&#x;&;&&", "&#;&#x;&;&&", "&#;&#x;&;&&");
        check("&NotEqualTilde;", "≂\u{338}", "≂\u{338}");
        check("&CounterClockwiseContourIntegral;", "∳", "∳");
        check("&é", "&é", "&é");
        check("a\r\nb\rc", "a\nb\nc", "a\nb\nc");
        check("a\0b", "ab", "a\u{fffd}b");
    }

    #[test]
    fn tables_are_sorted_and_agree() {
        assert!(NAMED.is_sorted_by(|a, b| a.0 < b.0), "lookups search by bisection");
        assert!(LEGACY.is_sorted(), "lookups search by bisection");
        assert!(NAMED.iter().all(|(n, _)| n.len() <= NAME_BYTES_MAX), "longest name");
        for name in LEGACY {
            assert!(name.len() <= LEGACY_BYTES_MAX && lookup(name.as_bytes()).is_some(), "{name}");
        }
    }
}
