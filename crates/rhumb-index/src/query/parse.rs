//! Finds the clauses of a query, from left to right in one pass.
//!
//! A sign counts only at the start of a word, and only alone: `e-mail`, `C++` and `--verbose` are words. Double quotes of all
//! countries are alike, and one that is never closed reaches to the end. A quote at the very end of a word that was not
//! opened (`5" pipe`) is nothing.

use std::ops::Range;

use super::{
    CLAUSES_MAX, Clause, NOTES_MAX, Occur, PHRASE_WORDS_MAX, Query, URL_BYTES_MAX, WORD_BYTES_MAX, What, date, values,
};

/// Characters of what was typed that a note repeats.
const NOTE_CHARS_MAX: usize = 40;

/// Reads a query that was asked at this time.
pub(super) fn parse(text: &str, now_ms: i64) -> Query {
    let query = Query { text: text.to_string(), ..Query::default() };
    let mut parser = Parser { text, at: 0, now_ms, query, negated: false, joined: false };
    parser.run();
    parser.query
}

/// What stands before a colon and means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Site,
    InTitle,
    InUrl,
    Lang,
    Type,
    After,
    Before,
    Link,
    Duplicate,
}

const OPERATORS: [(&str, Operator); 11] = [
    ("site", Operator::Site),
    ("intitle", Operator::InTitle),
    ("inurl", Operator::InUrl),
    ("lang", Operator::Lang),
    ("language", Operator::Lang),
    ("type", Operator::Type),
    ("filetype", Operator::Type),
    ("after", Operator::After),
    ("before", Operator::Before),
    ("link", Operator::Link),
    ("dup", Operator::Duplicate),
];

/// Control characters and marks that nobody sees come along when text is copied; between words they are as good as a space.
fn is_space(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '＂')
}

/// Minus, plus, and what keyboards and text processors make of them.
fn sign(c: char) -> Option<Occur> {
    match c {
        '-' | '–' | '−' | '－' => Some(Occur::Excluded),
        '+' | '＋' => Some(Occur::Required),
        _ => None,
    }
}

/// Without a letter or a digit there is nothing to look up.
fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    now_ms: i64,
    query: Query,
    /// `NOT` stood before this.
    negated: bool,
    /// `AND` stood before this.
    joined: bool,
}

impl<'a> Parser<'a> {
    fn run(&mut self) {
        loop {
            self.skip(is_space);
            if self.rest().is_empty() {
                break;
            }
            if self.query.clauses.len() == CLAUSES_MAX {
                self.note(format!("Only the first {CLAUSES_MAX} parts of the query are used."));
                break;
            }
            let signs = self.skip(|c| sign(c).is_some());
            let mut signs = self.text[signs].chars();
            let occur = match (signs.next().and_then(sign), signs.next()) {
                (Some(occur), None) => occur,
                _ => Occur::Wanted,
            };
            if let Some(c) = self.rest().chars().next().filter(|c| is_quote(*c)) {
                self.at += c.len_utf8();
                let span = self.quoted();
                self.phrase(span, occur, What::Phrase);
            } else if let Some((name, operator)) = self.operator() {
                self.operate(name, operator, occur);
            } else {
                let span = self.bare();
                self.word(span, occur);
            }
        }
        if self.negated {
            self.note("There is nothing behind NOT.".to_string());
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, is: impl Fn(char) -> bool) -> Range<usize> {
        let rest = self.rest();
        let start = self.at;
        self.at += rest.find(|c| !is(c)).unwrap_or(rest.len());
        start..self.at
    }

    /// What is left up to a space or a quote.
    fn bare(&mut self) -> Range<usize> {
        let span = self.skip(|c| !is_space(c) && !is_quote(c));
        let mut next = self.rest().chars();
        if let Some(quote) = next.next().filter(|c| is_quote(*c))
            && next.next().is_none_or(is_space)
        {
            self.at += quote.len_utf8();
        }
        span
    }

    /// What is left up to a quote, which is passed over.
    fn quoted(&mut self) -> Range<usize> {
        let span = self.skip(|c| !is_quote(c));
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        span
    }

    /// The operator that comes next, with its name as typed, if one does.
    fn operator(&mut self) -> Option<(&'a str, Operator)> {
        let rest = self.rest();
        // Names are short, so that a long word is not searched for a colon once more.
        let len = rest.bytes().take(16).take_while(u8::is_ascii_alphabetic).count();
        let (name, behind) = rest.split_at(len);
        let colon = behind.chars().next().filter(|c| matches!(c, ':' | '：'))?;
        let (_, operator) = OPERATORS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
        self.at += len + colon.len_utf8();
        Some((name, *operator))
    }

    fn operate(&mut self, name: &str, operator: Operator, occur: Occur) {
        let quote = self.rest().chars().next().filter(|c| is_quote(*c));
        let span = match quote {
            Some(c) => {
                self.at += c.len_utf8();
                self.quoted()
            }
            None => self.bare(),
        };
        let value = self.text[span.clone()].trim_matches(is_space);
        if value.is_empty() && operator != Operator::Duplicate {
            return self.leave(format!("There is nothing behind {}:, which was left out.", name.to_lowercase()));
        }
        match operator {
            Operator::InTitle => return self.phrase(span, occur, What::InTitle),
            Operator::InUrl => return self.phrase(span, occur, What::InUrl),
            _ => {}
        }
        let address = url(value);
        if address.len() > URL_BYTES_MAX {
            return self.too_long(value, URL_BYTES_MAX);
        }
        let expected = match operator {
            Operator::Lang => "language",
            Operator::Type => "kind of page",
            Operator::After | Operator::Before => "date",
            _ => "host",
        };
        let what = match operator {
            Operator::Site => match values::site(&address) {
                Some((host, Some(path))) if host.len() + path.len() > URL_BYTES_MAX => {
                    return self.too_long(value, URL_BYTES_MAX);
                }
                Some((host, Some(path))) => Some(What::SitePath { host, path }),
                Some((host, None)) => Some(What::Site(host)),
                None => None,
            },
            Operator::Lang => values::language(value).map(What::Lang),
            Operator::Type => values::kind(value).map(What::Type),
            Operator::After => date::parse(value, self.now_ms).map(What::After),
            Operator::Before => date::parse(value, self.now_ms).map(What::Before),
            Operator::Link => Some(What::Link(address)),
            _ => Some(What::Duplicate(Some(address).filter(|a| !a.is_empty()))),
        };
        match what {
            Some(what) => self.push(occur, what, span),
            None => {
                let name = name.to_lowercase();
                self.leave(format!("“{}” is no {expected} that is known; {name}: was left out.", short(value)));
            }
        }
    }

    /// The words between two quotes, or the one behind an operator.
    fn phrase(&mut self, span: Range<usize>, occur: Occur, what: impl Fn(Vec<String>) -> What) {
        let mut words = Vec::new();
        for word in self.text[span.clone()].split(is_space).filter(|w| has_words(w)) {
            if word.len() > WORD_BYTES_MAX {
                self.too_long(word, WORD_BYTES_MAX);
            } else if words.len() == PHRASE_WORDS_MAX {
                self.note(format!("Only the first {PHRASE_WORDS_MAX} words of a phrase are used."));
                break;
            } else {
                words.push(word.to_string());
            }
        }
        if words.is_empty() { self.forget() } else { self.push(occur, what(words), span) }
    }

    /// What has neither quotes nor an operator.
    fn word(&mut self, span: Range<usize>, occur: Occur) {
        let word = &self.text[span.clone()];
        match (word, occur) {
            ("AND", Occur::Wanted) => {
                self.joined = !self.query.clauses.is_empty();
                return;
            }
            ("OR", Occur::Wanted) => {
                return self.note("OR is not needed: pages with any of the words are found.".to_string());
            }
            ("NOT", Occur::Wanted) => {
                self.negated = true;
                return;
            }
            _ => {}
        }
        let stem = word.trim_end_matches('*');
        if !has_words(stem) {
            if !word.chars().all(|c| c.is_ascii_punctuation() || matches!(c, '–'..='—' | '…')) {
                self.note(format!("“{}” has neither letters nor digits.", short(word)));
            }
            return self.forget();
        }
        if stem.len() > WORD_BYTES_MAX {
            return self.too_long(stem, WORD_BYTES_MAX);
        }
        if stem.contains('*') {
            self.note(format!("In “{}”, * stands for other letters only at the end.", short(word)));
        }
        let what = if stem.len() < word.len() { What::Prefix } else { What::Word };
        self.push(occur, what(stem.to_string()), span.start..span.start + stem.len());
    }

    fn push(&mut self, occur: Occur, what: What, span: Range<usize>) {
        let mut occur = if self.negated { Occur::Excluded } else { occur };
        if self.joined {
            for occur in self.query.clauses.last_mut().map(|c| &mut c.occur).into_iter().chain([&mut occur]) {
                if *occur == Occur::Wanted {
                    *occur = Occur::Required;
                }
            }
        }
        self.forget();
        self.query.clauses.push(Clause { occur, what, span });
    }

    /// Something was left out, and with it what `AND` and `NOT` before it would have said of it.
    fn forget(&mut self) {
        (self.negated, self.joined) = (false, false);
    }

    fn leave(&mut self, note: String) {
        self.note(note);
        self.forget();
    }

    fn too_long(&mut self, what: &str, bytes_max: usize) {
        self.leave(format!("“{}” is longer than {bytes_max} bytes and was left out.", short(what)));
    }

    fn note(&mut self, note: String) {
        if self.query.notes.len() < NOTES_MAX && !self.query.notes.contains(&note) {
            self.query.notes.push(note);
        }
    }
}

/// An address that was typed between quotes may have spaces in it.
fn url(typed: &str) -> String {
    if typed.contains(is_space) { typed.replace(is_space, "%20") } else { typed.to_string() }
}

fn short(text: &str) -> String {
    let mut short = text.chars().take(NOTE_CHARS_MAX).collect::<String>();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
