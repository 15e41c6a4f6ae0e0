//! The HTML tokenizer: the WHATWG state machine, rewritten as scans between the few bytes that matter.
//!
//! The standard reads one character at a time through eighty states. Almost all of them only decide where a thing
//! ends, and that can be searched for: text ends at `<`, a quoted value at its quote, a comment at a `>` that follows
//! `--`, a script at `</script`. Tokens are slices of the page, undecoded; whoever wants the text of one decodes it
//! (see `charref.rs`), so the class lists and data attributes that nobody reads cost a search and nothing more.
//!
//! Invariant: every token lies behind the one before it and `at` never moves back, so a page costs time linear in its
//! length; and apart from decoding the tokens are those of the standard (a test compares them with html5gum's).

use memchr::{memchr, memchr_iter, memchr2};

use super::tag::{Content, Tag};

/// A piece of the page. Comments, doctypes and processing instructions are passed over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token<'a> {
    /// Text with its character references still in it.
    Text(&'a str),
    /// A CDATA section inside SVG or MathML: text as it stands.
    Cdata(&'a str),
    /// A start tag; its attributes are in [`Tokenizer::attributes`] when the tag wants them.
    Start { tag: Tag, self_closing: bool },
    /// An end tag.
    End { tag: Tag },
}

/// Where an attribute's name and undecoded value lie in the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute {
    name: (usize, usize),
    value: (usize, usize),
}

/// Which attributes to note down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    /// Those of the elements that the extractor reads, and only so many of one tag.
    Wanted(usize),
    /// Those of blocks, too, whose names say what is in them.
    WantedAndBlocks(usize),
    /// All of all tags, for comparing with another tokenizer.
    #[cfg(test)]
    All,
}

/// Reads a page token by token.
pub(super) struct Tokenizer<'a, 's> {
    html: &'a str,
    at: usize,
    keep: Keep,
    name: (usize, usize),
    attributes: &'s mut Vec<Attribute>,
    /// Set by the caller while inside SVG or MathML, where `<![CDATA[` is not a comment.
    pub(super) foreign: bool,
}

impl<'a, 's> Tokenizer<'a, 's> {
    /// Starts at the beginning of `html`; `attributes` is room to work in.
    pub(super) fn new(html: &'a str, keep: Keep, attributes: &'s mut Vec<Attribute>) -> Self {
        Tokenizer { html, at: 0, keep, name: (0, 0), attributes, foreign: false }
    }

    /// The value, undecoded, of the first attribute of the last start tag that has this (lower case) name.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        let bytes = self.html.as_bytes();
        self.attributes
            .iter()
            .find(|a| bytes[a.name.0..a.name.1].eq_ignore_ascii_case(name.as_bytes()))
            .map(|a| &self.html[a.value.0..a.value.1])
    }

    /// The names and undecoded values of the noted attributes of the last start tag.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.attributes.iter().map(|a| (&self.html[a.name.0..a.name.1], &self.html[a.value.0..a.value.1]))
    }

    /// Where the last tag lies in the page, from its `<` to behind its `>`.
    pub(super) fn tag_span(&self) -> (usize, usize) {
        let start = self.name.0.saturating_sub(1);
        let is_end = start > 0 && self.html.as_bytes()[start] == b'/';
        (start - usize::from(is_end), self.at)
    }

    /// The next token, or nothing at the end of the page. A tag that the page ends in is dropped, as in browsers.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.html.as_bytes();
        loop {
            let start = self.at;
            if *bytes.get(start)? != b'<' {
                self.at = find_lt(bytes, start);
                return Some(Token::Text(&self.html[start..self.at]));
            }
            match bytes.get(start + 1) {
                Some(b) if b.is_ascii_alphabetic() => return self.tag(start + 1, false),
                Some(b'/') => match bytes.get(start + 2) {
                    Some(b) if b.is_ascii_alphabetic() => return self.tag(start + 2, true),
                    Some(_) => self.skip_past(b'>', start + 2),
                    None => {
                        self.at = bytes.len();
                        return Some(Token::Text(&self.html[start..]));
                    }
                },
                Some(b'!') => {
                    if let Some(token) = self.declaration(start + 2) {
                        return Some(token);
                    }
                }
                Some(b'?') => self.skip_past(b'>', start + 2),
                _ => {
                    self.at = find_lt(bytes, start + 1);
                    return Some(Token::Text(&self.html[start..self.at]));
                }
            }
        }
    }

    /// The contents of the element whose start tag was read last, when they are not markup. What follows is its end
    /// tag, or nothing.
    pub(super) fn contents(&mut self, content: Content) -> &'a str {
        let start = self.at;
        self.at = match content {
            Content::Markup => start,
            Content::Plain => self.html.len(),
            Content::Rcdata | Content::Raw => self.raw_end(start),
            Content::Script => self.script_end(start),
        };
        &self.html[start..self.at]
    }

    fn skip_past(&mut self, byte: u8, from: usize) {
        let bytes = self.html.as_bytes();
        self.at = memchr(byte, &bytes[from..]).map_or(bytes.len(), |i| from + i + 1);
    }

    /// `<!` has been read. Only a CDATA section in foreign content is a token to us.
    fn declaration(&mut self, from: usize) -> Option<Token<'a>> {
        const CDATA: &[u8] = b"[CDATA[";
        let rest = &self.html.as_bytes()[from..];
        if rest.starts_with(b"--") {
            self.at = from + 2 + comment_length(&rest[2..]);
        } else if self.foreign && rest.starts_with(CDATA) {
            let start = from + CDATA.len();
            let end = memchr_iter(b'>', &rest[CDATA.len()..])
                .map(|i| start + i)
                .find(|&i| i >= start + 2 && &self.html.as_bytes()[i - 2..i] == b"]]");
            self.at = end.map_or(self.html.len(), |i| i + 1);
            return Some(Token::Cdata(&self.html[start..end.map_or(self.html.len(), |i| i - 2)]));
        } else {
            self.skip_past(b'>', from);
        }
        None
    }

    /// A tag whose name begins at `from`.
    #[inline]
    fn tag(&mut self, from: usize, is_end: bool) -> Option<Token<'a>> {
        let bytes = self.html.as_bytes();
        let length = bytes[from..].iter().position(|&b| CLASS[b as usize] & NAME_END != 0)?;
        let end = from + length;
        let tag = Tag::of(&bytes[from..end]);
        self.attributes.clear();
        let keep = match self.keep {
            Keep::Wanted(most) if !is_end && tag.wants_attributes() => most,
            Keep::WantedAndBlocks(most) if !is_end && (tag.wants_attributes() || tag.is_node() || tag == Tag::Code) => {
                most
            }
            Keep::Wanted(_) | Keep::WantedAndBlocks(_) => 0,
            #[cfg(test)]
            Keep::All => usize::MAX,
        };
        let self_closing = if bytes[end] == b'>' {
            self.at = end + 1;
            false
        } else {
            self.attributes_from(end, keep)?
        };
        self.name = (from, end);
        Some(if is_end { Token::End { tag } } else { Token::Start { tag, self_closing } })
    }

    /// Reads attributes up to and including the `>`; nothing when the page ends first.
    fn attributes_from(&mut self, from: usize, keep: usize) -> Option<bool> {
        let bytes = self.html.as_bytes();
        let mut at = from;
        let ended = loop {
            at = skip_space(bytes, at);
            match bytes.get(at) {
                None => break None,
                Some(b'>') => break Some(false),
                Some(b'/') if bytes.get(at + 1) == Some(&b'>') => {
                    at += 1;
                    break Some(true);
                }
                Some(b'/') => {
                    at += 1;
                    continue;
                }
                Some(_) => {}
            }
            // A `=` in the first place is part of the name.
            let name = at;
            at += 1;
            while bytes.get(at).is_some_and(|&b| CLASS[b as usize] & ATTRIBUTE_END == 0) {
                at += 1;
            }
            let name = (name, at);
            at = skip_space(bytes, at);
            let mut value = (at, at);
            if bytes.get(at) == Some(&b'=') {
                at = skip_space(bytes, at + 1);
                value = match bytes.get(at) {
                    Some(&quote @ (b'"' | b'\'')) => {
                        let start = at + 1;
                        let Some(length) = memchr(quote, &bytes[start..]) else { break None };
                        at = start + length + 1;
                        (start, start + length)
                    }
                    Some(b'>') => (at, at),
                    _ => {
                        let start = at;
                        while bytes.get(at).is_some_and(|&b| CLASS[b as usize] & VALUE_END == 0) {
                            at += 1;
                        }
                        (start, at)
                    }
                };
            }
            if self.attributes.len() < keep {
                self.attributes.push(Attribute { name, value });
            }
        };
        self.at = if ended.is_some() { at + 1 } else { bytes.len() };
        ended
    }

    /// Where the end tag of the open raw text element begins.
    fn raw_end(&self, from: usize) -> usize {
        let bytes = self.html.as_bytes();
        let name = &bytes[self.name.0..self.name.1];
        memchr_iter(b'<', &bytes[from..])
            .map(|i| from + i)
            .find(|&i| bytes.get(i + 1) == Some(&b'/') && is_name_at(bytes, i + 2, name))
            .unwrap_or(bytes.len())
    }

    /// Where the end tag of the open script begins. Inside `<!--`, a `<script` must be closed before the end counts.
    fn script_end(&self, from: usize) -> usize {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            Plain,
            Escaped,
            Twice,
        }
        let bytes = self.html.as_bytes();
        let name = &bytes[self.name.0..self.name.1];
        let mut state = State::Plain;
        let mut at = from;
        loop {
            let found = match state {
                State::Plain => memchr(b'<', &bytes[at..]),
                _ => memchr2(b'<', b'-', &bytes[at..]),
            };
            let Some(i) = found else { return bytes.len() };
            at += i;
            let rest = &bytes[at..];
            let closes = rest.starts_with(b"</") && is_name_at(bytes, at + 2, name);
            match state {
                State::Plain | State::Escaped if closes => return at,
                State::Plain if rest.starts_with(b"<!--") => {
                    state = State::Escaped;
                    // Back to the dashes: `<!-->` both opens and closes.
                    at += 2;
                    continue;
                }
                State::Escaped if rest[0] == b'<' && is_name_at(bytes, at + 1, b"script") => state = State::Twice,
                State::Twice if rest.starts_with(b"</") && is_name_at(bytes, at + 2, b"script") => {
                    state = State::Escaped;
                }
                State::Escaped | State::Twice if rest.starts_with(b"-->") => state = State::Plain,
                _ => {}
            }
            at += 1;
        }
    }
}

/// Whether `name` stands at `at`, in any case, and is a whole name there.
fn is_name_at(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len();
    bytes.get(at..end).is_some_and(|b| b.eq_ignore_ascii_case(name))
        && bytes.get(end).is_some_and(|&b| CLASS[b as usize] & NAME_END != 0)
}

/// How many bytes a comment has after its `<!--`, its end included.
fn comment_length(rest: &[u8]) -> usize {
    memchr_iter(b'>', rest)
        .find(|&i| {
            let body = &rest[..i];
            body.is_empty() || body == b"-" || body.ends_with(b"--") || body.ends_with(b"--!")
        })
        .map_or(rest.len(), |i| i + 1)
}

/// The next `<`. Much text is a line break and some spaces, for which calling the vectorised search costs more than
/// it saves.
#[inline]
fn find_lt(bytes: &[u8], from: usize) -> usize {
    const NEAR: usize = 8;
    let near = &bytes[from..bytes.len().min(from + NEAR)];
    if let Some(i) = near.iter().position(|&b| b == b'<') {
        return from + i;
    }
    let from = from + near.len();
    memchr(b'<', &bytes[from..]).map_or(bytes.len(), |i| from + i)
}

#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&b| CLASS[b as usize] & SPACE != 0) {
        at += 1;
    }
    at
}

const SPACE: u8 = 1;
const NAME_END: u8 = 2;
const ATTRIBUTE_END: u8 = 4;
const VALUE_END: u8 = 8;

/// What each byte ends.
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let space = b" \t\n\x0c\r";
    let mut i = 0;
    while i < space.len() {
        class[space[i] as usize] = SPACE | NAME_END | ATTRIBUTE_END | VALUE_END;
        i += 1;
    }
    class[b'/' as usize] = NAME_END | ATTRIBUTE_END;
    class[b'>' as usize] = NAME_END | ATTRIBUTE_END | VALUE_END;
    class[b'=' as usize] = ATTRIBUTE_END;
    class
};

#[cfg(test)]
#[path = "tokenize_tests.rs"]
mod tests;
