//! The Robots Exclusion Protocol (RFC 9309): what a host's robots.txt lets us fetch.
//!
//! Invariant: judging a URL takes time proportional to the length of the rules and of the URL, whatever wildcards the
//! file holds; and the verdict names the line that decided it.
//!
//! The way of a file: [`RobotsTxt::parse`] splits it into lines that mean something, [`RobotsTxt::for_agent`] picks the
//! groups that are ours, and [`Rules`] is what remains, one block of bytes that can be kept for many hosts and written
//! to disk (`rules.rs`, which also matches).
//!
//! Where the RFC leaves room, we do as Google's parser does: a line of exactly two words needs no colon
//! (`Disallow /x`); common misspellings of `Disallow` and `User-agent` are understood; lines are cut after
//! [`LINE_BYTES_MAX`] bytes. We go further in three places: names in a `User-agent` line may be several, separated by
//! commas or spaces; digits count as part of a product token where both sides have them (`bot1` is not `bot2`); a file
//! in UTF-16 with a byte order mark is read. We leave out that `/index.html` in an `Allow` line also allows `/`: the RFC
//! does not know it.

mod rules;

pub use rules::{Rules, RulesError, Verdict};

use rules::{Draft, RulesBuilder};

/// Bytes of a robots.txt that are read; RFC 9309 asks for at least 500 KiB.
pub const ROBOTS_BYTES_MAX: usize = 512 * 1024;

/// Bytes of a line that are read, as in Google's parser: eight times the longest URL that browsers of old accepted, less
/// one.
pub const LINE_BYTES_MAX: usize = 2083 * 8 - 1;

/// What the attempt to get a robots.txt came to, once redirects (at most five) have been followed.
#[derive(Clone, Copy, Debug)]
pub enum Fetched<'a> {
    /// The server answered: its status and the body.
    Answer(u16, &'a [u8]),
    /// No answer: no address, no connection, or it broke.
    Unreachable,
}

/// What a host lets us do, by RFC 9309 section 2.3.1.
#[derive(Clone, Debug)]
pub enum Access {
    /// There is a robots.txt and it decides.
    Parsed(RobotsTxt),
    /// There is none ("unavailable"): everything is allowed.
    AllowAll,
    /// We cannot know ("unreachable"): nothing is allowed for now.
    DisallowAll,
}

impl Access {
    /// Draws the conclusion. 429 belongs to the 4xx by its number, but a host that asks us to slow down has not said
    /// that it has no rules; more redirects than we follow count as "unavailable", as the RFC permits.
    pub fn judge(fetched: Fetched<'_>) -> Access {
        match fetched {
            Fetched::Answer(200..=299, body) => Access::Parsed(RobotsTxt::parse(body, ROBOTS_BYTES_MAX)),
            Fetched::Answer(429, _) | Fetched::Unreachable => Access::DisallowAll,
            Fetched::Answer(300..=499, _) => Access::AllowAll,
            Fetched::Answer(..) => Access::DisallowAll,
        }
    }

    /// The rules for one agent.
    pub fn rules(&self, agent: &str) -> Rules {
        match self {
            Access::Parsed(robots) => robots.for_agent(agent),
            Access::AllowAll => Rules::allow_all(),
            Access::DisallowAll => Rules::disallow_all(),
        }
    }
}

/// A robots.txt, split into the lines that mean something.
#[derive(Clone, Debug, Default)]
pub struct RobotsTxt {
    text: Vec<u8>,
    lines: Vec<Line>,
    sitemaps: Vec<String>,
}

/// One line: its number, what it is, and where line and value lie in the text.
#[derive(Clone, Debug)]
struct Line {
    number: u32,
    kind: Kind,
    whole: std::ops::Range<u32>,
    value: std::ops::Range<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Agent,
    Allow,
    Disallow,
    Delay,
    Sitemap,
}

impl RobotsTxt {
    /// Reads at most `limit` bytes. There is no wrong robots.txt: what is not understood is skipped.
    pub fn parse(bytes: &[u8], limit: usize) -> RobotsTxt {
        let bytes = &bytes[..bytes.len().min(limit).min(u32::MAX as usize)];
        let mut robots = RobotsTxt { text: to_utf8(bytes), ..Default::default() };
        let (mut start, mut number) = (0, 0);
        while start < robots.text.len() {
            let rest = &robots.text[start..];
            let len = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            let crlf = rest[len..].starts_with(b"\r\n");
            number += 1;
            let line = start..start + len.min(LINE_BYTES_MAX);
            start += len + if crlf { 2 } else { 1 };
            robots.read_line(number, line);
        }
        robots
    }

    /// The sitemaps that the file names, as written; they belong to no group.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// The rules for an agent, given as a product token or a whole `User-Agent` header.
    ///
    /// All groups with the agent's own token count as one; if there is none, those for `*` do; if there are none of
    /// these either, everything is allowed.
    pub fn for_agent(&self, agent: &str) -> Rules {
        let wanted = Token::of(product_token(agent).as_bytes());
        let (mut own, mut others) = (RulesBuilder::default(), RulesBuilder::default());
        let (mut own_seen, mut in_own, mut in_others) = (false, false, false);
        let (mut delay_own, mut delay_others) = (false, false);
        let mut in_rules = true;
        for line in &self.lines {
            let value = self.slice(&line.value);
            match line.kind {
                Kind::Agent => {
                    if in_rules {
                        (in_own, in_others, in_rules) = (false, false, false);
                        (delay_own, delay_others) = (false, false);
                    }
                    if value.first() == Some(&b'*') && value.get(1).is_none_or(|b| b.is_ascii_whitespace()) {
                        (in_others, delay_others) = (true, true);
                    } else if names(value).any(|name| wanted.matches(name)) {
                        (in_own, delay_own, own_seen) = (true, true, true);
                    }
                }
                Kind::Allow | Kind::Disallow => {
                    in_rules = true;
                    let draft = || Draft {
                        allow: line.kind == Kind::Allow,
                        line: line.number,
                        value,
                        text: String::from_utf8_lossy(self.slice(&line.whole)).into_owned(),
                    };
                    if in_own {
                        own.push(draft());
                    }
                    if in_others {
                        others.push(draft());
                    }
                }
                // Not a rule, so it must not end a run of `User-agent` lines (RFC 9309 section 2.2.4). It binds the
                // agents named since the last one, so that `a, 10, b, 20` means what its author meant.
                Kind::Delay => {
                    if let Some(ms) = delay_ms(value) {
                        if std::mem::take(&mut delay_own) {
                            own.delay(ms);
                        }
                        if std::mem::take(&mut delay_others) {
                            others.delay(ms);
                        }
                    }
                }
                Kind::Sitemap => {}
            }
        }
        if own_seen { own.build() } else { others.build() }
    }

    fn slice(&self, range: &std::ops::Range<u32>) -> &[u8] {
        &self.text[range.start as usize..range.end as usize]
    }

    fn read_line(&mut self, number: u32, range: std::ops::Range<usize>) {
        let line = &self.text[range.clone()];
        let line = &line[..memchr::memchr(b'#', line).unwrap_or(line.len())];
        let line = line.trim_ascii();
        let Some((key, value)) = split_line(line) else { return };
        let Some(kind) = Kind::of(key) else { return };
        if kind == Kind::Sitemap {
            self.sitemaps.push(String::from_utf8_lossy(value).into_owned());
            return;
        }
        let place = |part: &[u8]| {
            let start = (part.as_ptr() as usize - self.text.as_ptr() as usize) as u32;
            start..start + part.len() as u32
        };
        let line = Line { number, kind, whole: place(line), value: place(value) };
        self.lines.push(line);
    }
}

impl Kind {
    fn of(key: &[u8]) -> Option<Kind> {
        const KEYS: &[(&str, Kind)] = &[
            ("user-agent", Kind::Agent),
            ("disallow", Kind::Disallow),
            ("allow", Kind::Allow),
            ("sitemap", Kind::Sitemap),
            ("crawl-delay", Kind::Delay),
            ("useragent", Kind::Agent),
            ("user agent", Kind::Agent),
            ("dissallow", Kind::Disallow),
            ("dissalow", Kind::Disallow),
            ("disalow", Kind::Disallow),
            ("diasllow", Kind::Disallow),
            ("disallaw", Kind::Disallow),
            ("desallow", Kind::Disallow),
            ("site-map", Kind::Sitemap),
            ("crawldelay", Kind::Delay),
        ];
        KEYS.iter().find(|(name, _)| key.eq_ignore_ascii_case(name.as_bytes())).map(|&(_, kind)| kind)
    }
}

/// Key and value, separated by a colon, or by white space if there are just the two.
fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let (at, value) = match memchr::memchr(b':', line) {
        Some(at) => (at, line[at + 1..].trim_ascii()),
        None => {
            let at = line.iter().position(blank)?;
            let value = line[at..].trim_ascii();
            (at, Some(value).filter(|value| !value.iter().any(blank))?)
        }
    };
    Some((line[..at].trim_ascii(), value))
}

/// The names of a `User-agent` line.
fn names(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| b.is_ascii_whitespace() || *b == b',').filter(|name| !name.is_empty())
}

/// The part of a `User-Agent` header that robots.txt knows: its first word, or, where that claims to be a browser, the name
/// after `compatible;` (RFC 9309 section 2.2.1 has `Mozilla/5.0 (compatible; ExampleBot/0.1; …)` for `ExampleBot`).
pub fn product_token(user_agent: &str) -> &str {
    let agent = user_agent.trim();
    let named =
        agent.split_once("compatible;").filter(|_| agent.starts_with("Mozilla/")).map(|(_, rest)| rest.trim_start());
    let first = named.filter(|name| !Token::of(name.as_bytes()).strict.is_empty()).unwrap_or(agent);
    let token = &first[..Token::of(first.as_bytes()).with_digits.len()];
    if token.is_empty() { agent } else { token }
}

/// A product token: the RFC's letters, `-` and `_`, and the same with digits.
#[derive(Clone, Copy)]
struct Token<'a> {
    strict: &'a [u8],
    with_digits: &'a [u8],
}

impl<'a> Token<'a> {
    fn of(agent: &'a [u8]) -> Token<'a> {
        let prefix = |is: fn(&u8) -> bool| &agent[..agent.iter().position(|b| !is(b)).unwrap_or(agent.len())];
        Token {
            strict: prefix(|b| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_')),
            with_digits: prefix(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')),
        }
    }

    /// Whether a name in the file means this agent. An agent without digits is compared with the name cut to the RFC's
    /// characters; one with digits, which the RFC does not foresee, with the whole name or its own letters alone.
    fn matches(&self, name: &[u8]) -> bool {
        let name = Token::of(name);
        let equal = |a: &[u8], b: &[u8]| !a.is_empty() && a.eq_ignore_ascii_case(b);
        if self.strict.len() == self.with_digits.len() {
            return equal(self.strict, name.strict);
        }
        equal(self.with_digits, name.with_digits) || equal(self.strict, name.with_digits)
    }
}

/// Seconds, perhaps with a fraction, as milliseconds; what follows the number is overlooked.
fn delay_ms(value: &[u8]) -> Option<u32> {
    let len = value.iter().position(|b| !(b.is_ascii_digit() || *b == b'.')).unwrap_or(value.len());
    let seconds: f64 = std::str::from_utf8(&value[..len]).ok()?.parse().ok()?;
    // The cast saturates; the largest value is kept free to mean "none".
    Some(((seconds * 1000.0).round() as u32).min(u32::MAX - 1))
}

/// The bytes without a byte order mark (or the beginning of one, as Google overlooks it); UTF-16 is converted.
fn to_utf8(bytes: &[u8]) -> Vec<u8> {
    let utf16 = |from: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>().into_bytes()
    };
    match bytes {
        [0xff, 0xfe, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] | [0xef, 0xbb, rest @ ..] | [0xef, rest @ ..] => rest.to_vec(),
        _ => bytes.to_vec(),
    }
}

#[cfg(test)]
mod tests;
