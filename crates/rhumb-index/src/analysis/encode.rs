//! How the terms of a page get to tantivy: as one string, in which they are separated and weighted already.
//!
//! Terms are separated by spaces. A control character in front of one sets how often it and those that follow count (1 to 15), or
//! leaves a gap, so that no phrase reaches from one part of a page into another. Counting a title's words several times *is* BM25F
//! in its simple form (Robertson, Zaragoza and Taylor, 2004): one list of occurrences per term, weighted before it saturates.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The name of the tokenizer in the schema.
pub const NAME: &str = "terms";
/// Terms have more weight than this nowhere.
pub const WEIGHT_MAX: u8 = 15;
/// Stands for a gap.
const GAP: u8 = 0x1f;
/// Positions that a gap is wide.
const GAP_POSITIONS: usize = 16;

/// The terms of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    text: String,
    weight: u8,
}

impl Terms {
    /// Forgets all but its memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.weight = 1;
    }

    /// What follows is another part of the page.
    pub fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push(GAP as char);
        }
    }

    /// Adds a term of so much weight.
    pub fn push(&mut self, term: &str, weight: u8) {
        if weight != self.weight || self.text.is_empty() {
            self.weight = weight.clamp(1, WEIGHT_MAX);
            self.text.push(self.weight as char);
        }
        self.text.push_str(term);
        self.text.push(' ');
    }

    /// The string that the tokenizer reads.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Reads what [`Terms`] wrote.
#[derive(Clone, Debug, Default)]
pub struct TermsTokenizer {
    token: Token,
}

impl Tokenizer for TermsTokenizer {
    type TokenStream<'a> = TermsStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermsStream<'a> {
        self.token.reset();
        TermsStream { rest: text, token: &mut self.token, weight: 1, left: 0, position: 0 }
    }
}

/// The terms of one page.
pub struct TermsStream<'a> {
    rest: &'a str,
    token: &'a mut Token,
    weight: u8,
    /// How often the current term comes again.
    left: u8,
    position: usize,
}

impl TokenStream for TermsStream<'_> {
    fn advance(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        loop {
            let Some(&first) = self.rest.as_bytes().first() else { return false };
            match first {
                1..=WEIGHT_MAX => self.weight = first,
                GAP => self.position += GAP_POSITIONS,
                b' ' => {}
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
        let end = self.rest.bytes().position(|b| b == b' ').unwrap_or(self.rest.len());
        self.token.text.clear();
        self.token.text.push_str(&self.rest[..end]);
        self.token.position = self.position;
        self.position += 1;
        self.left = self.weight - 1;
        self.rest = &self.rest[end..];
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut terms = Terms::default();
        terms.clear();
        terms.push("title", 3);
        terms.gap();
        terms.push("one", 1);
        terms.push("東京", 1);
        terms.push("bold", 2);
        let mut tokenizer = TermsTokenizer::default();
        let mut stream = tokenizer.token_stream(terms.as_str());
        let mut read = Vec::new();
        while stream.advance() {
            read.push((stream.token().text.clone(), stream.token().position));
        }
        let expected =
            [("title", 0), ("title", 0), ("title", 0), ("one", 17), ("東京", 18), ("bold", 19), ("bold", 19)];
        assert_eq!(read, expected.map(|(text, at)| (text.to_string(), at)));
    }
}
