//! Cuts the text of an XML file into start tags, end tags and text, a piece at a time.
//!
//! Invariant: every byte is looked at once; nothing is kept but one name, the attributes that were asked for, and as much text as was
//! asked for. Comments, processing instructions and all other attributes are passed over; a document type declaration is the end, but
//! for one of a feed that defines nothing, as RSS 0.91 demands it.

use std::io::Read;

use super::{Place, Source};
use crate::sitemap::{SitemapLimits, Trouble};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A start tag; its name is in [`Tokens::name`].
    Start {
        /// It ends in `/>`, or is of a kind that does.
        empty: bool,
    },
    /// An end tag; its name is in [`Tokens::name`].
    End,
    /// Text up to the next tag; if it was asked for it is in [`Tokens::text`].
    Text,
    /// Something is wrong here; reading goes on behind it.
    Trouble(Trouble),
    /// Something is wrong here that ends the reading.
    Fatal(Trouble),
    /// The text is over.
    Over,
}

/// The tokens of a text.
pub(crate) struct Tokens<'s, R: Read> {
    source: &'s mut Source<R>,
    limits: SitemapLimits,
    /// The attributes that are kept, and what the last start tag said in them, as written.
    wanted: &'static [&'static str],
    values: Vec<Vec<u8>>,
    /// The name of the tag, prefix and all.
    pub(crate) name: Vec<u8>,
    /// The text since it was last cleared, at most one byte more than the bound.
    pub(crate) text: Vec<u8>,
    /// Whether text is kept.
    pub(crate) keeps: bool,
    /// Most text that is kept.
    pub(crate) text_bytes_max: usize,
    /// Whether references stay as they are written, because the text is markup that somebody else will read.
    pub(crate) raw: bool,
    /// Where the token began.
    pub(crate) place: Place,
    /// What an unknown reference was called; for the message.
    pub(crate) found: String,
}

/// Longest reference: `&#x0010FFFF;` with some zeros to spare, and the names that people use by mistake.
const REFERENCE_BYTES_MAX: usize = 16;

impl<'s, R: Read> Tokens<'s, R> {
    /// Tokens of what is left of a source, with the attributes `wanted`.
    pub(crate) fn new(source: &'s mut Source<R>, limits: &SitemapLimits, wanted: &'static [&'static str]) -> Self {
        let place = source.place();
        Tokens {
            source,
            limits: *limits,
            wanted,
            values: vec![Vec::new(); wanted.len()],
            name: Vec::new(),
            text: Vec::new(),
            keeps: false,
            text_bytes_max: limits.loc_bytes_max,
            raw: false,
            place,
            found: String::new(),
        }
    }

    /// The text kept, without white space around it.
    pub(crate) fn trimmed(&self) -> String {
        String::from_utf8_lossy(self.text.trim_ascii()).into_owned()
    }

    /// What the last start tag said in a wanted attribute, references expanded; nothing if it said nothing.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let value = &self.values[self.wanted.iter().position(|wanted| *wanted == name)?];
        let value = unescape(value.trim_ascii());
        (!value.is_empty()).then(|| String::from_utf8_lossy(&value).into_owned())
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Token {
        self.place = self.source.place();
        match self.source.peek() {
            None => match self.source.trouble() {
                Some(trouble) => Token::Fatal(trouble),
                None => Token::Over,
            },
            Some(b'<') => {
                self.source.consume(1);
                self.tag()
            }
            Some(b'&') => self.reference(),
            Some(_) => {
                let some = self.source.fill();
                let n = memchr::memchr2(b'<', b'&', some).unwrap_or(some.len());
                if self.keeps {
                    keep(&mut self.text, &some[..n], self.text_bytes_max);
                }
                self.source.consume(n);
                Token::Text
            }
        }
    }

    fn tag(&mut self) -> Token {
        match self.source.peek() {
            Some(b'!') => {
                self.source.consume(1);
                self.declaration()
            }
            Some(b'?') => self.pass(b"?>"),
            Some(b'/') => {
                self.source.consume(1);
                if let Some(trouble) = self.read_name() {
                    return trouble;
                }
                match self.pass_tag() {
                    Some(_) if self.name.is_empty() => Token::Trouble(Trouble::BadMarkup),
                    Some(_) => Token::End,
                    None => Token::Fatal(self.ended()),
                }
            }
            _ => self.start_tag(),
        }
    }

    /// Behind `<!`: a comment, CDATA, or what we do not read.
    fn declaration(&mut self) -> Token {
        match self.source.peek() {
            Some(b'-') => {
                self.source.consume(1);
                if self.source.peek() != Some(b'-') {
                    return self.pass(b">");
                }
                self.source.consume(1);
                self.pass(b"-->")
            }
            Some(b'[') => {
                for &expected in b"[CDATA[" {
                    if self.source.peek() != Some(expected) {
                        return match self.pass(b">") {
                            Token::Text => Token::Trouble(Trouble::BadMarkup),
                            other => other,
                        };
                    }
                    self.source.consume(1);
                }
                self.pass_keeping(b"]]>", self.keeps)
            }
            Some(b'D' | b'd') => self.doctype(),
            Some(b'E' | b'e' | b'A' | b'a' | b'N' | b'n') => Token::Fatal(Trouble::Doctype),
            _ => match self.pass(b">") {
                Token::Text => Token::Trouble(Trouble::BadMarkup),
                other => other,
            },
        }
    }

    /// Behind `<!` of a document type declaration. One of a feed that defines nothing is passed over.
    fn doctype(&mut self) -> Token {
        if let Some(trouble) = self.read_name() {
            return trouble;
        }
        while self.source.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.source.consume(1);
        }
        if let Some(trouble) = self.read_name() {
            return trouble;
        }
        let (_, local) = super::split(&self.name);
        if !["rss", "rdf", "feed"].iter().any(|root| local.eq_ignore_ascii_case(root.as_bytes())) {
            return Token::Fatal(Trouble::Doctype);
        }
        while let Some(b) = self.source.next() {
            match b {
                b'>' => return Token::Text,
                b'[' | b'<' => return Token::Fatal(Trouble::Doctype),
                _ => {}
            }
        }
        Token::Fatal(self.ended())
    }

    fn pass(&mut self, until: &[u8]) -> Token {
        self.pass_keeping(until, false)
    }

    /// Passes over everything to the end of `until`, which ends in `>` and repeats its first byte at most once before it.
    fn pass_keeping(&mut self, until: &[u8], keeps: bool) -> Token {
        // How much of `until` has just been seen.
        let mut seen = 0;
        while let Some(byte) = self.source.next() {
            if byte == until[seen] {
                seen += 1;
                if seen == until.len() {
                    return Token::Text;
                }
                continue;
            }
            // `--->` and `]]]>`: one more of the first byte leaves as many seen as before.
            let again = byte == until[0] && seen + 1 == until.len() && until.len() > 2;
            if keeps {
                let held = if again { 1 } else { seen };
                keep(&mut self.text, &until[..held], self.text_bytes_max);
            }
            if !again {
                seen = usize::from(byte == until[0]);
                if keeps && seen == 0 {
                    keep(&mut self.text, &[byte], self.text_bytes_max);
                }
            }
        }
        Token::Fatal(self.ended())
    }

    fn start_tag(&mut self) -> Token {
        if let Some(trouble) = self.read_name() {
            return trouble;
        }
        self.values.iter_mut().for_each(Vec::clear);
        if self.name.is_empty() {
            // A bare `<`: text, strictly speaking forbidden.
            return Token::Trouble(Trouble::BadMarkup);
        }
        let mut attributes = 0;
        let mut attribute = Vec::new();
        loop {
            match self.source.next() {
                None => return Token::Fatal(self.ended()),
                Some(b'>') => return Token::Start { empty: false },
                Some(b'/') if self.source.peek() == Some(b'>') => {
                    self.source.consume(1);
                    return Token::Start { empty: true };
                }
                Some(b'<') => return Token::Trouble(Trouble::BadMarkup),
                Some(b) if b.is_ascii_whitespace() || matches!(b, b'/' | b'=') => {}
                Some(quote @ (b'"' | b'\'')) => {
                    let wanted = self.wanted.iter().position(|wanted| wanted.as_bytes() == attribute);
                    let into = wanted.map(|at| &mut self.values[at]).filter(|value| value.is_empty());
                    if !value(self.source, quote, into, self.limits.loc_bytes_max) {
                        return Token::Fatal(self.ended());
                    }
                    attribute.clear();
                }
                Some(first) => {
                    attributes += 1;
                    if attributes > self.limits.attributes_max {
                        return Token::Fatal(Trouble::TooManyAttributes);
                    }
                    attribute.clear();
                    attribute.push(first);
                    while let Some(b) = self.source.peek().filter(|&b| is_name(b)) {
                        self.source.consume(1);
                        attribute.push(b);
                        if attribute.len() > self.limits.name_bytes_max {
                            return Token::Fatal(Trouble::NameTooLong);
                        }
                    }
                }
            }
        }
    }

    /// Reads a name; `Some` if it is too long.
    fn read_name(&mut self) -> Option<Token> {
        self.name.clear();
        while let Some(b) = self.source.peek().filter(|&b| is_name(b)) {
            self.source.consume(1);
            self.name.push(b);
            if self.name.len() > self.limits.name_bytes_max {
                return Some(Token::Fatal(Trouble::NameTooLong));
            }
        }
        None
    }

    /// To the end of an end tag; `None` if there is none.
    fn pass_tag(&mut self) -> Option<()> {
        while let Some(b) = self.source.next() {
            if b == b'>' {
                return Some(());
            }
        }
        None
    }

    /// `&…;` in text. What is no reference stays as it is: addresses are full of bare `&`.
    fn reference(&mut self) -> Token {
        self.source.consume(1);
        let mut name = Vec::with_capacity(REFERENCE_BYTES_MAX);
        while let Some(b) = self.source.peek().filter(|&b| b.is_ascii_alphanumeric() || b == b'#') {
            if name.len() == REFERENCE_BYTES_MAX {
                break;
            }
            self.source.consume(1);
            name.push(b);
        }
        let closed = self.source.peek() == Some(b';');
        let known = if closed && !self.raw { expand(&name) } else { None };
        let mut utf8 = [0; 4];
        let kept: &[u8] = match known {
            Some(c) => {
                self.source.consume(1);
                c.encode_utf8(&mut utf8).as_bytes()
            }
            None => {
                name.insert(0, b'&');
                &name
            }
        };
        if self.keeps {
            keep(&mut self.text, kept, self.text_bytes_max);
            if self.raw {
                return Token::Text;
            }
            if known.is_none() {
                self.found = String::from_utf8_lossy(kept).into_owned();
                return Token::Trouble(if closed { Trouble::UnknownEntity } else { Trouble::BadMarkup });
            }
        }
        Token::Text
    }

    fn ended(&self) -> Trouble {
        self.source.trouble().unwrap_or(Trouble::EndsEarly)
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':') || b >= 0x80
}

/// Passes over a quoted value, keeping it as written; false if the text ends before.
fn value<R: Read>(source: &mut Source<R>, quote: u8, mut into: Option<&mut Vec<u8>>, bytes_max: usize) -> bool {
    loop {
        let some = source.fill();
        if some.is_empty() {
            return false;
        }
        let end = memchr::memchr(quote, some);
        let n = end.unwrap_or(some.len());
        if let Some(into) = into.as_deref_mut() {
            keep(into, &some[..n], bytes_max);
        }
        source.consume(n);
        if end.is_some() {
            source.consume(1);
            return true;
        }
    }
}

/// Appends, but never more than one byte beyond the bound: that byte says that something is missing.
fn keep(text: &mut Vec<u8>, more: &[u8], bytes_max: usize) {
    let room = (bytes_max + 1).saturating_sub(text.len());
    text.extend_from_slice(&more[..more.len().min(room)]);
}

/// A value with its references expanded.
fn unescape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let end = memchr::memchr(b';', &rest[..rest.len().min(REFERENCE_BYTES_MAX)]);
        match end.and_then(|end| Some((end, expand(&rest[..end])?))) {
            Some((end, c)) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[end + 1..];
            }
            None => out.push(b'&'),
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The character that a reference stands for, without its `&` and `;`.
fn expand(name: &[u8]) -> Option<char> {
    Some(match name {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    })
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    let digits = std::str::from_utf8(digits).ok().filter(|d| !d.is_empty() && !d.starts_with('+'))?;
    char::from_u32(u32::from_str_radix(digits, radix).ok()?).filter(|&c| c != '\0')
}
