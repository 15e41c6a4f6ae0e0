//! What a page says about itself in attribute values: link relations, refreshes, image sets.
//!
//! Invariant: unknown words are passed over and never make a known one fail.

use serde::{Deserialize, Serialize};

/// The relations of a link that matter to a crawler, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rel(u16);

impl Rel {
    /// The author does not vouch for the target.
    pub const NOFOLLOW: Rel = Rel(1);
    /// Written by users of the site.
    pub const UGC: Rel = Rel(2);
    /// Paid for.
    pub const SPONSORED: Rel = Rel(4);
    /// The page's preferred address.
    pub const CANONICAL: Rel = Rel(8);
    /// The same in another language or form.
    pub const ALTERNATE: Rel = Rel(16);
    /// Something the page is built from (style sheet, icon, preloaded file), not a page to read.
    pub const RESOURCE: Rel = Rel(32);

    /// Reads the tokens of a `rel` attribute, in any case.
    pub fn parse(rel: &str) -> Rel {
        let mut bits = 0;
        for token in rel.split_ascii_whitespace() {
            let (name, bit) = match token.as_bytes()[0].to_ascii_lowercase() {
                b'n' => ("nofollow", Self::NOFOLLOW),
                b'u' => ("ugc", Self::UGC),
                b's' if token.len() == 9 => ("sponsored", Self::SPONSORED),
                b'c' => ("canonical", Self::CANONICAL),
                b'a' if token.len() == 9 => ("alternate", Self::ALTERNATE),
                _ if RESOURCES.iter().any(|r| r.eq_ignore_ascii_case(token)) => (token, Self::RESOURCE),
                _ => continue,
            };
            if name.eq_ignore_ascii_case(token) {
                bits |= bit.0;
            }
        }
        Rel(bits)
    }

    /// Whether any relation of `other` is among these.
    pub fn intersects(self, other: Rel) -> bool {
        self.0 & other.0 != 0
    }

    /// Only the three marks by which an author declines to vouch for a link.
    pub fn unvouched(self) -> Rel {
        Rel(self.0 & (Self::NOFOLLOW.0 | Self::UGC.0 | Self::SPONSORED.0))
    }

    /// These as bits: 1 nofollow, 2 ugc, 4 sponsored.
    pub fn unvouched_bits(self) -> u8 {
        self.unvouched().0 as u8
    }

    /// Reads what [`Rel::unvouched_bits`] gave.
    pub fn from_unvouched_bits(bits: u8) -> Rel {
        Rel(u16::from(bits)).unvouched()
    }

    /// The names of the three marks that it carries.
    pub fn unvouched_names(self) -> Vec<&'static str> {
        let marks = [(Self::NOFOLLOW, "nofollow"), (Self::UGC, "ugc"), (Self::SPONSORED, "sponsored")];
        marks.into_iter().filter(|(mark, _)| self.intersects(*mark)).map(|(_, name)| name).collect()
    }

    /// Whether the link carries any of the three marks by which an author declines to vouch for it.
    pub fn is_unvouched(self) -> bool {
        self.unvouched().0 != 0
    }
}

const RESOURCES: [&str; 15] = [
    "stylesheet",
    "icon",
    "mask-icon",
    "apple-touch-icon",
    "apple-touch-icon-precomposed",
    "apple-touch-startup-image",
    "fluid-icon",
    "image_src",
    "preload",
    "modulepreload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "manifest",
    "pingback",
];

/// A page's wish to be replaced by another after a while.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refresh {
    /// After how many seconds.
    pub delay_s: u32,
    /// By which page, as written.
    pub href: String,
}

impl Refresh {
    /// Reads `5; url=next.html` the way browsers do. A refresh of the page by itself is nothing to us.
    pub fn parse(content: &str) -> Option<Refresh> {
        let space = |c: char| c.is_ascii_whitespace();
        let rest = content.trim_start_matches(space);
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 && !rest.starts_with('.') {
            return None;
        }
        let delay_s = rest[..digits].parse().unwrap_or(if digits == 0 { 0 } else { u32::MAX });
        let rest = rest[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if !rest.starts_with(|c: char| c == ';' || c == ',' || space(c)) {
            return None;
        }
        let rest = rest.trim_start_matches(space);
        let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(space);
        let named = rest
            .get(..3)
            .filter(|word| word.eq_ignore_ascii_case("url"))
            .and_then(|_| rest[3..].trim_start_matches(space).strip_prefix('='))
            .map(|value| value.trim_start_matches(space));
        let value = named.unwrap_or(rest);
        let href = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or(""),
            _ => value,
        };
        let href = href.trim_matches(space);
        (!href.is_empty()).then(|| Refresh { delay_s, href: href.to_owned() })
    }
}

/// The addresses in a `srcset` attribute, without their descriptors.
pub(super) fn srcset(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let url = word.trim_end_matches(',');
        rest = if url.len() < word.len() {
            after
        } else {
            // Commas inside a descriptor's parentheses separate nothing.
            let mut depth = 0u32;
            let comma = after.bytes().position(|b| {
                match b {
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                b == b',' && depth == 0
            });
            comma.map_or("", |i| &after[i + 1..])
        };
        Some(url)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_tokens() {
        let check =
            |rel: &str, with: Rel, expected: bool| assert_eq!(Rel::parse(rel).intersects(with), expected, "{rel}");
        check("noopener NoFollow", Rel::NOFOLLOW, true);
        check("nofollowed", Rel::NOFOLLOW, false);
        check("ugc\tsponsored", Rel::SPONSORED, true);
        check("ugc", Rel::SPONSORED, false);
        check("shortcut icon", Rel::RESOURCE, true);
        check("alternate stylesheet", Rel::RESOURCE, true);
        check("Canonical", Rel::CANONICAL, true);
        check("next", Rel::RESOURCE, false);
        assert!(Rel::parse("ugc").is_unvouched() && !Rel::parse("author").is_unvouched());
    }

    #[test]
    fn refreshes_are_read_as_browsers_do() {
        let check = |content: &str, expected: Option<(u32, &str)>| {
            let read = Refresh::parse(content);
            assert_eq!(read.as_ref().map(|r| (r.delay_s, r.href.as_str())), expected, "{content}");
        };
        check("0;url=/a", Some((0, "/a")));
        check("5; URL='/a b'x", Some((5, "/a b")));
        check(" 1.5 , url = \"x\"", Some((1, "x")));
        check("0 /a", Some((0, "/a")));
        check("0;/a", Some((0, "/a")));
        check("0;url /a", Some((0, "url /a")));
        check("99999999999;x", Some((u32::MAX, "x")));
        check("5", None);
        check("0;url=", None);
        check("url=/a", None);
        check("5x;url=/a", None);
        check("", None);
        check("0;日本", Some((0, "日本")));
    }

    #[test]
    fn image_sets_are_split() {
        let check = |value: &str, expected: &[&str]| assert_eq!(srcset(value).collect::<Vec<_>>(), expected, "{value}");
        check("a.png 1x, b.png 2x", &["a.png", "b.png"]);
        check("a.png, b.png", &["a.png", "b.png"]);
        check("data:,x 1x, b", &["data:,x", "b"]);
        check(" , a (1,2) , b", &["a", "b"]);
        check(",,", &[]);
    }
}
