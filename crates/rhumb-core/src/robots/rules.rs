//! The rules of one host for one agent, in one block of bytes, and the matcher that reads them there.
//!
//! Layout, little-endian: version (1 byte), verdict when nothing matches (1: allowed), crawl delay in milliseconds
//! (4, all ones: none), number of rules (4); then for each rule flags (1), line (4), pattern length (2), text length (2),
//! pattern, text. Rules are sorted by pattern length, longest first, `Allow` before `Disallow`: the first that matches
//! is the one that RFC 9309 section 2.2.2 wants.

use memchr::memmem;

use crate::url::{escape_at, is_unreserved};

const VERSION: u8 = 1;
const HEAD: usize = 10;
const RULE_HEAD: usize = 9;
const NO_DELAY: u32 = u32::MAX;

const ALLOW: u8 = 1;
/// The pattern holds a `*`.
const WILDCARD: u8 = 2;
/// The pattern's end is the path's end.
const ANCHORED: u8 = 4;
/// The pattern's query holds an escaped `:` or `/`.
const FOLDS: u8 = 8;

/// What a host lets one agent fetch, and how fast. Small, and the same bytes in memory and on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules(Box<[u8]>);

/// The answer for one URL, and the line that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Whether we may fetch it.
    pub allowed: bool,
    /// The deciding line as written, without comment; none if no rule matched.
    pub rule: Option<&'a str>,
    /// Its number, from 1.
    pub line: Option<u32>,
}

/// Stored rules that are not what [`Rules::to_bytes`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored robots rules are damaged or of another version")]
pub struct RulesError;

impl Rules {
    /// No rules: everything is allowed.
    pub fn allow_all() -> Rules {
        RulesBuilder::default().build()
    }

    /// Nothing is allowed, except robots.txt itself.
    pub fn disallow_all() -> Rules {
        let mut rules = Rules::allow_all();
        rules.0[1] = 0;
        rules
    }

    /// The group's `Crawl-delay`.
    pub fn crawl_delay_ms(&self) -> Option<u32> {
        Some(u32_at(&self.0, 2)).filter(|&ms| ms != NO_DELAY)
    }

    /// Whether a URL's path and query may be fetched.
    pub fn allows(&self, path_and_query: &str) -> bool {
        self.verdict(path_and_query).allowed
    }

    /// Judges a URL's path and query, and says by which line.
    pub fn verdict(&self, path_and_query: &str) -> Verdict<'_> {
        let mut verdict = Verdict { allowed: self.0[1] == 1, rule: None, line: None };
        let path = path_and_query.split('#').next().unwrap_or_default();
        if path == "/robots.txt" {
            verdict.allowed = true;
            return verdict;
        }
        if self.is_empty() {
            return verdict;
        }
        let path = if path.starts_with('/') { Subject::new(path) } else { Subject::new(&format!("/{path}")) };
        if let Some(rule) = self.iter().find(|rule| path.matches(rule.pattern, rule.flags)) {
            verdict.allowed = rule.flags & ALLOW != 0;
            verdict.rule = std::str::from_utf8(rule.text).ok();
            verdict.line = Some(rule.line);
        }
        verdict
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        u32_at(&self.0, 6) as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that these rules take.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Rules>() + self.0.len()
    }

    /// For the disk.
    pub fn to_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From the disk; every length is checked, so that nothing later can go wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Rules, RulesError> {
        if bytes.len() < HEAD || bytes[0] != VERSION || bytes[1] > 1 {
            return Err(RulesError);
        }
        let rules = Rules(bytes.into());
        let mut end = HEAD;
        for _ in 0..rules.len() {
            let head = bytes.get(end..end + RULE_HEAD).ok_or(RulesError)?;
            end += RULE_HEAD + usize::from(u16_at(head, 5)) + usize::from(u16_at(head, 7));
        }
        if end != bytes.len() { Err(RulesError) } else { Ok(rules) }
    }

    fn iter(&self) -> impl Iterator<Item = Rule<'_>> {
        let mut rest = &self.0[HEAD..];
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_at_checked(RULE_HEAD)?;
            let (pattern, tail) = tail.split_at_checked(usize::from(u16_at(head, 5)))?;
            let (text, tail) = tail.split_at_checked(usize::from(u16_at(head, 7)))?;
            rest = tail;
            Some(Rule { flags: head[0], line: u32_at(head, 1), pattern, text })
        })
    }
}

struct Rule<'a> {
    flags: u8,
    line: u32,
    pattern: &'a [u8],
    text: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A rule as read from the file.
pub(super) struct Draft<'a> {
    pub(super) allow: bool,
    pub(super) line: u32,
    pub(super) value: &'a [u8],
    pub(super) text: String,
}

/// Gathers the rules of an agent's groups.
#[derive(Default)]
pub(super) struct RulesBuilder {
    rules: Vec<(u8, u32, Vec<u8>, String)>,
    delay_ms: Option<u32>,
}

impl RulesBuilder {
    /// Adds a rule; one without a pattern matches nothing and is left out.
    pub(super) fn push(&mut self, draft: Draft<'_>) {
        if draft.value.is_empty() {
            return;
        }
        let anchored = draft.value.ends_with(b"$");
        let value = draft.value.strip_suffix(b"$").unwrap_or(draft.value);
        let pattern = normal(value, true);
        let mut flags = if draft.allow { ALLOW } else { 0 };
        flags |= if anchored { ANCHORED } else { 0 };
        flags |= if pattern.contains(&b'*') { WILDCARD } else { 0 };
        flags |= if fold(&pattern).is_some() { FOLDS } else { 0 };
        self.rules.push((flags, draft.line, pattern, draft.text));
    }

    /// Of several delays in merged groups the longest counts.
    pub(super) fn delay(&mut self, ms: u32) {
        self.delay_ms = self.delay_ms.max(Some(ms));
    }

    pub(super) fn build(mut self) -> Rules {
        // The `$` is an octet of the pattern too.
        let octets = |flags: u8, pattern: &[u8]| pattern.len() + usize::from(flags & ANCHORED != 0);
        self.rules.sort_by_key(|(flags, line, pattern, _)| {
            (std::cmp::Reverse(octets(*flags, pattern)), flags & ALLOW == 0, *line)
        });
        let mut bytes = vec![VERSION, 1];
        bytes.extend_from_slice(&self.delay_ms.unwrap_or(NO_DELAY).to_le_bytes());
        bytes.extend_from_slice(&(self.rules.len() as u32).to_le_bytes());
        for (flags, line, pattern, text) in &self.rules {
            // Lines are cut long before either length could overflow: three octets for each of 16,663 at most.
            debug_assert!(pattern.len().max(text.len()) <= usize::from(u16::MAX), "a line was not cut");
            bytes.push(*flags);
            bytes.extend_from_slice(&line.to_le_bytes());
            bytes.extend_from_slice(&(pattern.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(pattern);
            bytes.extend_from_slice(text.as_bytes());
        }
        Rules(bytes.into_boxed_slice())
    }
}

/// A path and query in the form in which they are compared.
struct Subject {
    literal: Vec<u8>,
    folded: Option<Vec<u8>>,
}

impl Subject {
    fn new(path: &str) -> Subject {
        let literal = normal(path.as_bytes(), false);
        let folded = fold(&literal);
        Subject { literal, folded }
    }

    fn matches(&self, pattern: &[u8], flags: u8) -> bool {
        if pattern_matches(pattern, flags, &self.literal) {
            return true;
        }
        if self.folded.is_none() && flags & FOLDS == 0 {
            return false;
        }
        let folded = fold(pattern);
        let path = self.folded.as_deref().unwrap_or(&self.literal);
        pattern_matches(folded.as_deref().unwrap_or(pattern), flags, path)
    }
}

/// One form for the octets of paths and patterns (RFC 9309 section 2.2.2): escapes of unreserved characters are decoded,
/// other escapes get upper-case digits, and what may not stand in a URI is escaped. So is `'`, because the WHATWG
/// parser escapes it in queries. `*` and `$` are escaped where they stand for themselves, so that a rule can name them
/// as `%2A` and `%24` (section 2.2.3): everywhere in a path, and `$` in a pattern, whose anchor has been taken off.
fn normal(octets: &[u8], is_pattern: bool) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(octets.len());
    let mut at = 0;
    while at < octets.len() {
        let octet = octets[at];
        let escape = if octet == b'%' { escape_at(octets, at) } else { None };
        at += if escape.is_some() { 3 } else { 1 };
        let (octet, keep) = match escape {
            Some(octet) => (octet, is_unreserved(octet)),
            None if octet == b'*' => (octet, is_pattern),
            None => (octet, is_unreserved(octet) || b"/?:@!&()+,;=[]#%".contains(&octet)),
        };
        if keep {
            out.push(octet);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(octet >> 4)], HEX[usize::from(octet & 15)]]);
        }
    }
    out
}

/// The same with `%3A` and `%2F` decoded after the first `?`, if there are any. In a query both spellings mean the same
/// and the RFC's own table equates `?baz=https://foo.bar` with `?baz=https%3A%2F%2Ffoo.bar`; in a path they differ.
fn fold(octets: &[u8]) -> Option<Vec<u8>> {
    let query = memchr::memchr(b'?', octets)?;
    let escaped = |rest: &[u8]| rest.starts_with(b"%3A") || rest.starts_with(b"%2F");
    memchr::memchr_iter(b'%', octets).find(|&at| at > query && escaped(&octets[at..]))?;
    let mut out = octets[..query].to_vec();
    let mut rest = &octets[query..];
    while let Some(&octet) = rest.first() {
        let folds = escaped(rest);
        out.push(if !folds {
            octet
        } else if rest[1] == b'3' {
            b':'
        } else {
            b'/'
        });
        rest = &rest[if folds { 3 } else { 1 }..];
    }
    Some(out)
}

/// Whether the pattern matches the beginning of the path, or all of it.
///
/// Each piece between wildcards is sought once, from where the last one ended: the leftmost place is always as good as
/// a later one, except for the last piece of an anchored pattern, which can only stand at the end. So there is no
/// backtracking, and time is linear.
fn pattern_matches(pattern: &[u8], flags: u8, path: &[u8]) -> bool {
    let anchored = flags & ANCHORED != 0;
    if flags & WILDCARD == 0 {
        return if anchored { path == pattern } else { path.starts_with(pattern) };
    }
    let mut pieces = pattern.split(|&b| b == b'*');
    let Some(mut rest) = path.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let last = if anchored { pieces.next_back() } else { None };
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        let Some(at) = memmem::find(rest, piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    last.is_none_or(|last| rest.ends_with(last))
}
