//! What a page and its server ask of robots beside robots.txt: `<meta name=robots>`, the meta element with our agent's name, and
//! `X-Robots-Tag`. docs/robots.md says what each directive does to fetching, following, indexing and archiving.
//!
//! Invariant: unknown words are passed over and never make a known one fail; where channels disagree the stricter holds, and the
//! first channel that said so is remembered for `rhumb explain`.

use rhumb_store::Timestamp;
use rhumb_store::codec::{Malformed, Put, Take};

use crate::dates;

/// How a site spoke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Channel {
    /// `<meta name=robots>`.
    Meta = 0,
    /// `<meta name=…>` with our agent's name.
    MetaAgent = 1,
    /// `X-Robots-Tag` to all robots.
    Header = 2,
    /// `X-Robots-Tag` with our agent's name in front.
    HeaderAgent = 3,
}

impl Channel {
    /// As people know it.
    pub fn name(self) -> &'static str {
        match self {
            Channel::Meta => "meta robots",
            Channel::MetaAgent => "meta element for this agent",
            Channel::Header => "X-Robots-Tag",
            Channel::HeaderAgent => "X-Robots-Tag for this agent",
        }
    }

    fn from_code(code: u8) -> Result<Channel, Malformed> {
        use Channel::*;
        [Meta, MetaAgent, Header, HeaderAgent].get(usize::from(code)).copied().ok_or(Malformed("an unknown channel"))
    }
}

/// What was asked, and by which channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Directives {
    /// Keep the page out of the index.
    pub noindex: Option<Channel>,
    /// Do not follow the page's links.
    pub nofollow: Option<Channel>,
    /// Do not keep a copy.
    pub noarchive: Option<Channel>,
    /// Do not show an excerpt.
    pub nosnippet: Option<Channel>,
    /// From then on the page is not to be found any more.
    pub unavailable_after: Option<(Timestamp, Channel)>,
}

/// Which of the directives a crawl obeys. docs/robots.md says what that means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Obedience {
    /// Of a page: its links are not followed.
    pub nofollow: bool,
    /// Of a single link, by `rel=nofollow`: it is not followed.
    pub rel_nofollow: bool,
    /// No copy of the page is kept.
    pub noarchive: bool,
}

impl Default for Obedience {
    fn default() -> Self {
        Obedience { nofollow: true, rel_nofollow: true, noarchive: true }
    }
}

/// Directives that have a value behind a colon, and so are not the name of an agent.
const WITH_VALUE: [&str; 4] = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
/// Words of one header or meta element that are read.
const WORDS_MAX: usize = 64;

impl Directives {
    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        *self == Directives::default()
    }

    /// Whether the page is to be kept out of the index at `now`, and who said so.
    pub fn hides_at(&self, now: Timestamp) -> Option<Channel> {
        let expired = self.unavailable_after.filter(|(after, _)| *after <= now).map(|(_, channel)| channel);
        self.noindex.or(expired)
    }

    /// Reads the `content` of a meta element.
    pub fn read_meta(&mut self, content: &str, for_agent: bool) {
        let channel = if for_agent { Channel::MetaAgent } else { Channel::Meta };
        let mut rest = content;
        for _ in 0..WORDS_MAX {
            let Some(word) = next_word(&mut rest) else { break };
            self.read_word(word, channel);
        }
    }

    /// Reads one `X-Robots-Tag` value. Directives behind the name of an agent are for that agent alone, up to the next name.
    pub fn read_header(&mut self, value: &str, agent: &str) {
        let mut channel = Some(Channel::Header);
        let mut rest = value;
        for _ in 0..WORDS_MAX {
            let Some(mut word) = next_word(&mut rest) else { break };
            if let Some((name, behind)) = word.split_once(':')
                && !WITH_VALUE.iter().any(|w| name.trim().eq_ignore_ascii_case(w))
            {
                let name = name.trim();
                channel = match name {
                    "*" => Some(Channel::Header),
                    _ if name.eq_ignore_ascii_case(agent) => Some(Channel::HeaderAgent),
                    _ => None,
                };
                word = behind.trim();
            }
            if let Some(channel) = channel {
                self.read_word(word, channel);
            }
        }
    }

    fn read_word(&mut self, word: &str, channel: Channel) {
        let (name, value) = word.split_once(':').map_or((word, ""), |(n, v)| (n.trim(), v.trim()));
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        let set = |to: &mut Option<Channel>| *to = to.or(Some(channel));
        if is("noindex") || is("none") {
            set(&mut self.noindex);
        }
        if is("nofollow") || is("none") {
            set(&mut self.nofollow);
        }
        if is("noarchive") || is("nocache") {
            set(&mut self.noarchive);
        }
        if is("nosnippet") || (is("max-snippet") && value == "0") {
            set(&mut self.nosnippet);
        }
        if is("unavailable_after")
            && let Some(after) = dates::parse(value)
            && self.unavailable_after.is_none_or(|(known, _)| after < known)
        {
            self.unavailable_after = Some((after, channel));
        }
    }

    /// What was asked, by name, with the channel that asked it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Channel)> {
        let named = [
            ("noindex", self.noindex),
            ("nofollow", self.nofollow),
            ("noarchive", self.noarchive),
            ("nosnippet", self.nosnippet),
            ("unavailable_after", self.unavailable_after.map(|(_, channel)| channel)),
        ];
        named.into_iter().filter_map(|(name, channel)| Some((name, channel?)))
    }

    /// Appends the bytes: one for what was asked, one for each channel.
    pub fn put(&self, into: &mut Vec<u8>) {
        let all = [self.noindex, self.nofollow, self.noarchive, self.nosnippet, self.unavailable_after.map(|(_, c)| c)];
        let bits = all.iter().enumerate().fold(0u8, |bits, (i, c)| bits | u8::from(c.is_some()) << i);
        into.put_u8(bits);
        all.iter().flatten().for_each(|c| into.put_u8(*c as u8));
        if let Some((after, _)) = self.unavailable_after {
            into.put_u64(after.0);
        }
    }

    /// Reads what [`Directives::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Directives, Malformed> {
        let bits = from.u8()?;
        let mut all = [None; 5];
        for (i, channel) in all.iter_mut().enumerate() {
            if bits & 1 << i != 0 {
                *channel = Some(Channel::from_code(from.u8()?)?);
            }
        }
        let [noindex, nofollow, noarchive, nosnippet, after] = all;
        let unavailable_after = match after {
            Some(channel) => Some((Timestamp(from.u64()?), channel)),
            None => None,
        };
        Ok(Directives { noindex, nofollow, noarchive, nosnippet, unavailable_after })
    }
}

/// The next directive. Commas and semicolons separate, and so does white space where no colon is near; a date may have commas and
/// spaces of its own, so `unavailable_after` takes all that is not a directive again.
fn next_word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let separator = |c: char| c == ',' || c == ';' || c.is_ascii_whitespace();
    let text = rest.trim_start_matches(separator);
    if text.is_empty() {
        return None;
    }
    let end = text.find([',', ';']).unwrap_or(text.len());
    let piece = &text[..end];
    if let Some(colon) = piece.find(':') {
        // The word may begin with the name of an agent: `bot: unavailable_after: 25 Jun 2010`.
        if piece.to_ascii_lowercase().contains("unavailable_after") {
            let end = end_of_date(text, end);
            *rest = &text[end..];
            return Some(text[..end].trim_end());
        }
        let value = colon + 1 + piece[colon + 1..].find(|c: char| !c.is_ascii_whitespace()).unwrap_or(0);
        let end = value + piece[value..].find(|c: char| c.is_ascii_whitespace()).unwrap_or(piece.len() - value);
        // Words in front of the one with the colon, as in `noindex googlebot: nofollow`, come first.
        if let Some(space) = piece[..colon].trim_end().find(|c: char| c.is_ascii_whitespace()) {
            *rest = &text[space..];
            return Some(&text[..space]);
        }
        *rest = &text[end..];
        return Some(&text[..end]);
    }
    let end = piece.find(|c: char| c.is_ascii_whitespace()).unwrap_or(end);
    *rest = &text[end..];
    Some(&text[..end])
}

/// Where a date that begins in `text` ends: at a comma or semicolon behind which a directive stands, or at the end.
fn end_of_date(text: &str, from: usize) -> usize {
    const KNOWN: [&str; 12] = [
        "noindex",
        "nofollow",
        "noarchive",
        "nocache",
        "nosnippet",
        "none",
        "all",
        "index",
        "follow",
        "max-",
        "noimageindex",
        "notranslate",
    ];
    let mut at = from;
    while at < text.len() {
        let next = text[at + 1..].trim_start();
        let is_known = |w: &&str| next.get(..w.len()).is_some_and(|start| start.eq_ignore_ascii_case(w));
        // Behind a comma comes a directive, the name of an agent, or the rest of the date.
        let is_agent = next.split([',', ';']).next().is_some_and(|piece| {
            piece
                .split_once(':')
                .is_some_and(|(name, _)| !name.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_digit()))
        });
        if KNOWN.iter().any(is_known) || is_agent {
            return at;
        }
        at = text[at + 1..].find([',', ';']).map_or(text.len(), |i| at + 1 + i);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(d: &Directives) -> String {
        d.iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn meta_elements_are_read_in_any_case() {
        let check = |content: &str, expected: &str| {
            let mut d = Directives::default();
            d.read_meta(content, false);
            assert_eq!(names(&d), expected, "{content}");
        };
        check("noindex, nofollow", "noindex nofollow");
        check("NoIndex,NOARCHIVE", "noindex noarchive");
        check("none", "noindex nofollow");
        check("index, follow", "");
        check("all", "");
        check("noindexing", "");
        check("max-snippet:-1, nosnippet", "nosnippet");
        check("max-snippet: 0", "nosnippet");
        check("max-snippet: 10 noindex", "noindex");
        check("noindex nofollow;noarchive", "noindex nofollow noarchive");
        check("unavailable_after: 25-Jun-10 15:00:00 EST", "unavailable_after");
        check("", "");
    }

    #[test]
    fn headers_may_speak_to_one_agent() {
        let check = |value: &str, expected: &str, channel: Option<Channel>| {
            let mut d = Directives::default();
            d.read_header(value, "rhumb");
            assert_eq!(names(&d), expected, "{value}");
            assert_eq!(d.iter().next().map(|(_, c)| c), channel, "{value}");
        };
        check("noindex", "noindex", Some(Channel::Header));
        check("*: noindex", "noindex", Some(Channel::Header));
        check("otherbot: noindex, nofollow", "", None);
        check("Rhumb: noindex, nofollow", "noindex nofollow", Some(Channel::HeaderAgent));
        check("otherbot: noindex, rhumb: nofollow", "nofollow", Some(Channel::HeaderAgent));
        check("nofollow, otherbot: noindex", "nofollow", Some(Channel::Header));
        check("noarchive otherbot: noindex", "noarchive", Some(Channel::Header));
        check("rhumbus: noindex", "", None);
        check("otherbot: noindex, *: noarchive", "noarchive", Some(Channel::Header));
        check(": , :: noindex", "", None);
        let twice: String = "otherbot: noindex, ".repeat(10_000);
        check(&twice, "", None);
    }

    #[test]
    fn an_end_date_hides_a_page_from_then_on() {
        let check = |value: &str, expected: Option<&str>, more: &str| {
            let mut d = Directives::default();
            d.read_header(value, "rhumb");
            assert_eq!(d.unavailable_after.map(|(t, _)| t.iso_seconds()).as_deref(), expected, "{value}");
            assert_eq!(names(&Directives { unavailable_after: None, ..d }), more, "{value}");
        };
        check("unavailable_after: 25 Jun 2010 15:00:00 PST", Some("2010-06-25T23:00:00Z"), "");
        check(
            "unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noarchive",
            Some("2010-06-25T15:00:00Z"),
            "noarchive",
        );
        check("nosnippet, unavailable_after: 2010-06-25", Some("2010-06-25T00:00:00Z"), "nosnippet");
        check("rhumb: unavailable_after: 2010-06-25T10:00:00+01:00", Some("2010-06-25T09:00:00Z"), "");
        check("otherbot: unavailable_after: 2010-06-25", None, "");
        check("unavailable_after: 2010-06-25, otherbot: noindex", Some("2010-06-25T00:00:00Z"), "");
        check("unavailable_after: whenever, noindex", None, "noindex");
        let mut d = Directives::default();
        d.read_header("unavailable_after: 2010-06-25", "rhumb");
        assert_eq!(d.hides_at(Timestamp(0)), None);
        assert_eq!(d.hides_at(Timestamp(u64::MAX)), Some(Channel::Header));
    }

    #[test]
    fn directives_survive_their_bytes() {
        let mut d = Directives::default();
        d.read_meta("noindex", true);
        d.read_header("noarchive, unavailable_after: 2030-01-01", "rhumb");
        let mut bytes = Vec::new();
        d.put(&mut bytes);
        assert_eq!(Directives::take(&mut Take::new(&bytes)), Ok(d));
    }
}
