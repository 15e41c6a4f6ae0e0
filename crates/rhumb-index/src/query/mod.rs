//! The query language: what a person typed, as clauses that a searcher can act on.
//!
//! | typed | means |
//! | --- | --- |
//! | `word` | pages with it are better than pages without |
//! | `+word`, `a AND b` | only pages with it, with both |
//! | `-word`, `NOT word` | only pages without it |
//! | `wor*` | any word that begins so |
//! | `"two words"` | these words, one after the other |
//! | `intitle:word`, `inurl:"two words"` | the same in the title, in the address |
//! | `site:example.org`, `site:example.org/docs` | pages of a host or of the domain below it, of a part of it |
//! | `lang:de`, `type:pdf` | pages in a language, of a kind |
//! | `after:2024-05`, `before:7d` | by date; `7d`, `3w`, `2m`, `1y` and `12h` are counted back from now |
//! | `link:URL` | pages that link there |
//! | `dup:`, `dup:URL` | duplicates too; those of one page |
//!
//! Signs go before all of them. Whatever else is typed is words: which parts of them are looked up is for the analyser to say.
//!
//! Invariant: every text is a query. Nothing is an error; what cannot be used is left out and told in [`Query::notes`], and the time
//! that takes grows with the text and no faster. [`Query::display`] gives the same query in one way of writing it:
//! reading that again gives the same clauses.
//!
//! `parse.rs` finds the clauses, `values.rs` reads what stands behind `site:`, `lang:` and `type:`, `date.rs` what stands behind `after:`.

mod date;
mod parse;
#[cfg(test)]
mod tests;
mod values;

use std::fmt::Write;
use std::ops::Range;

use rhumb_store::Timestamp;

/// Clauses in a query.
pub const CLAUSES_MAX: usize = 64;
/// Words in a phrase.
pub const PHRASE_WORDS_MAX: usize = 32;
/// Bytes of a word.
pub const WORD_BYTES_MAX: usize = 512;
/// Bytes of an address, behind `link:`, `dup:` or as the path behind `site:`.
pub const URL_BYTES_MAX: usize = 2048;
/// Notes on a query; further ones would not be read.
pub const NOTES_MAX: usize = 16;

/// What was typed, and what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What was typed.
    pub text: String,
    /// What it means, in the order in which it was typed.
    pub clauses: Vec<Clause>,
    /// What of it could not be used, a sentence each.
    pub notes: Vec<String>,
}

/// One thing that is asked of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Whether pages should, must or must not be so.
    pub occur: Occur,
    /// What they should be like.
    pub what: What,
    /// The bytes of [`Query::text`] that say it, without sign, operator, quotes and `*`: what is put in their place is asked in the
    /// same way.
    pub span: Range<usize>,
}

/// Whether pages should, must or must not be as a clause says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Occur {
    /// Without a sign. For words this is a wish; the other clauses are conditions with or without `+`.
    Wanted,
    /// `+`, or beside `AND`.
    Required,
    /// `-`, or behind `NOT`.
    Excluded,
}

/// What pages should be like. Words are spelled as they were typed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The page has this word.
    Word(String),
    /// It has a word that begins so.
    Prefix(String),
    /// It has these words one after the other. There is at least one.
    Phrase(Vec<String>),
    /// Its title has them, one after the other if there are several.
    InTitle(Vec<String>),
    /// Its address has them.
    InUrl(Vec<String>),
    /// It is of this host or of one below it; in lower case, in Unicode if it was typed so.
    Site(String),
    /// It is of this host or of one below it, and its path begins so.
    SitePath {
        /// The host, as in [`What::Site`].
        host: String,
        /// The path, with its slash in front, as typed.
        path: String,
    },
    /// It is in this language: a code of two letters, of three where there is none of two, in lower case.
    Lang(String),
    /// It is of this kind: html, pdf, text, feed and what other formats are called.
    Type(String),
    /// It is from this instant or a later one, in milliseconds since 1970.
    After(i64),
    /// It is from before this instant.
    Before(i64),
    /// It links to this address, which is as it was typed.
    Link(String),
    /// Duplicates are shown too; or if there is an address, as typed, the duplicates of that page.
    Duplicate(Option<String>),
}

impl Query {
    /// Reads a query; dates such as `7d` are counted from now.
    pub fn parse(text: &str) -> Query {
        Query::parse_at(text, i64::try_from(Timestamp::now().0).unwrap_or(i64::MAX))
    }

    /// Reads a query that was asked at this time.
    pub fn parse_at(text: &str, now_ms: i64) -> Query {
        parse::parse(text, now_ms)
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// Whether both ask the same, however they were typed.
    pub fn asks_same(&self, other: &Query) -> bool {
        let asked = |query: &Query| query.clauses.iter().map(|c| (c.occur, c.what.clone())).collect::<Vec<_>>();
        asked(self) == asked(other)
    }

    /// The query in its one way of writing: it reads as the same clauses.
    pub fn display(&self) -> String {
        let mut text = String::new();
        for clause in &self.clauses {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(match clause.occur {
                Occur::Wanted => "",
                Occur::Required => "+",
                Occur::Excluded => "-",
            });
            clause.what.write(&mut text);
        }
        text
    }

    /// What was typed, with something else in place of one clause.
    pub fn with_replaced(&self, span: Range<usize>, with: &str) -> String {
        self.with_all_replaced(&[(span, with)])
    }

    /// What was typed, with something else in some places. They are ascending and do not overlap; one that does not fit is left as it is.
    pub fn with_all_replaced(&self, replacements: &[(Range<usize>, &str)]) -> String {
        let (mut text, mut done) = (String::with_capacity(self.text.len() + 16), 0);
        for (span, with) in replacements {
            if let (Some(before), Some(_)) = (self.text.get(done..span.start), self.text.get(span.clone())) {
                text.push_str(before);
                text.push_str(with);
                done = span.end;
            }
        }
        text + self.text.get(done..).unwrap_or_default()
    }
}

impl What {
    fn write(&self, into: &mut String) {
        let written = match self {
            What::Word(word) => write!(into, "{word}"),
            What::Prefix(word) => write!(into, "{word}*"),
            What::Phrase(words) => write!(into, "\"{}\"", words.join(" ")),
            What::InTitle(words) => write!(into, "intitle:{}", quoted(words)),
            What::InUrl(words) => write!(into, "inurl:{}", quoted(words)),
            What::Site(host) => write!(into, "site:{host}"),
            What::SitePath { host, path } => write!(into, "site:{host}{path}"),
            What::Lang(code) => write!(into, "lang:{code}"),
            What::Type(kind) => write!(into, "type:{kind}"),
            What::After(ms) => write!(into, "after:{}", date::display(*ms)),
            What::Before(ms) => write!(into, "before:{}", date::display(*ms)),
            What::Link(url) => write!(into, "link:{url}"),
            What::Duplicate(url) => write!(into, "dup:{}", url.as_deref().unwrap_or_default()),
        };
        written.expect("a string takes everything");
    }
}

/// One word stands for itself; several need quotes to stay together.
fn quoted(words: &[String]) -> String {
    if let [word] = words { word.clone() } else { format!("\"{}\"", words.join(" ")) }
}
