//! From text to terms: what a word of a page or of a query is called in the index.
//!
//! A term is a word in lower case, without its ending if the language has a stemmer ([`language`]), without marks above and below its
//! letters. Scripts that do not separate words become overlapping pairs of characters ([`mod@split`]). Pages and queries go through the
//! same code, so that they meet.
//!
//! Invariant: a term has no white space and no control characters; [`encode`] relies on it.

pub mod encode;
pub mod fold;
pub mod language;
pub mod split;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::words::WordsBuilder;
use language::Lang;
use split::{Piece, split};

/// Longer words are cut: they are no words.
const TERM_BYTES_MAX: usize = 64;
/// Words remembered per language.
const REMEMBERED_MAX: usize = 200_000;

/// Turns words into terms, and remembers what became of them: the words of pages are few, compared with how often they stand there.
#[derive(Default)]
pub struct Analyzer {
    known: HashMap<Lang, Known>,
    word: String,
}

/// The words of one language.
#[derive(Default)]
struct Known {
    words: HashMap<Box<str>, Remembered, BuildHasherDefault<WordHasher>>,
    /// With so many words, some are forgotten.
    full: usize,
}

/// What became of a word.
struct Remembered {
    term: Box<str>,
    /// How often it was met since the words were taken.
    met: u32,
}

impl Analyzer {
    /// Calls `each` with the terms of a text, in order, and where each lies in it.
    pub fn terms(&mut self, lang: Lang, text: &str, mut each: impl FnMut(&str, Piece)) {
        let Analyzer { known, word } = self;
        let known = known.entry(lang).or_default();
        split(text, |piece| {
            let raw = &text[piece.start..piece.end];
            let raw: &str = if is_plain(raw) {
                raw
            } else {
                word.clear();
                push_lower(raw, word);
                word
            };
            if let Some(remembered) = known.words.get_mut(raw) {
                remembered.met = remembered.met.saturating_add(1);
                each(&remembered.term, piece);
                return;
            }
            if known.words.len() >= known.full.max(REMEMBERED_MAX) {
                // What was not met since the words were taken last can be found out again.
                known.words.retain(|_, r| r.met > 0);
                known.full = known.words.len() * 2;
            }
            let term = term_of_lower(lang, raw, piece.is_pair);
            each(&term, piece);
            if raw.len() > TERM_BYTES_MAX {
                return;
            }
            let met = u32::from(!piece.is_pair);
            known.words.insert(raw.into(), Remembered { term: term.into(), met });
        });
    }

    /// About how many bytes it takes.
    pub fn memory_bytes(&self) -> usize {
        self.known.values().map(|known| known.words.capacity() * 64).sum()
    }

    /// Moves how often each word was met into `words`, and begins to count anew.
    pub fn take_words(&mut self, words: &mut WordsBuilder) {
        for known in self.known.values_mut() {
            for (word, remembered) in known.words.iter_mut().filter(|(_, r)| r.met > 0) {
                let met = std::mem::take(&mut remembered.met);
                if !split::is_pair_script(word) {
                    words.add(word, met);
                }
            }
        }
    }
}

/// The term of a single word of a query; nothing if it is none.
pub fn term(lang: Lang, word: &str) -> Option<String> {
    let mut lower = String::new();
    push_lower(word, &mut lower);
    let is_pair = split::is_pair_script(&lower);
    (!lower.is_empty()).then(|| term_of_lower(lang, &lower, is_pair).into_owned())
}

/// A word as it is counted: in lower case, without apostrophes.
pub fn plain(word: &str) -> Cow<'_, str> {
    if is_plain(word) {
        return Cow::Borrowed(word);
    }
    let mut lower = String::new();
    push_lower(word, &mut lower);
    Cow::Owned(lower)
}

fn is_plain(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn push_lower(raw: &str, into: &mut String) {
    for c in raw.chars() {
        match c {
            '\'' | '\u{2019}' => {}
            c if c.is_ascii() => into.push(c.to_ascii_lowercase()),
            c => into.extend(c.to_lowercase()),
        }
    }
}

fn term_of_lower(lang: Lang, lower: &str, is_pair: bool) -> Cow<'_, str> {
    let lower = crate::cut(lower, TERM_BYTES_MAX);
    if is_pair {
        return Cow::Borrowed(lower);
    }
    match lang.stem(lower) {
        Cow::Borrowed(stem) => fold::folded(stem),
        Cow::Owned(stem) => Cow::Owned(fold::folded(&stem).into_owned()),
    }
}

/// Words are short and looked up often: this costs a few nanoseconds. What a stranger could do with collisions is bounded by
/// [`REMEMBERED_MAX`] and a seed that he does not know.
struct WordHasher(u64);

impl Default for WordHasher {
    fn default() -> WordHasher {
        use std::hash::BuildHasher;
        static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        WordHasher(*SEED.get_or_init(|| std::collections::hash_map::RandomState::new().hash_one(0)))
    }
}

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u8(&mut self, _: u8) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(lang: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Analyzer::default().terms(Lang::of(lang), text, |term, _| found.push(term.to_string()));
        found
    }

    #[test]
    fn words_become_terms() {
        let check =
            |lang: &str, text: &str, expected: &[&str]| assert_eq!(terms(lang, text), expected, "{lang} {text}");
        check("en", "The Crawlers' running, ran!", &["the", "crawler", "run", "ran"]);
        check("en", "don't can\u{2019}t John's", &["dont", "cant", "john"]);
        check("de", "Häuser der Städte", &["haus", "der", "stadt"]);
        check("fr", "L'économie des hommes", &["l", "econom", "de", "homm"]);
        check("", "Running Häuser", &["running", "hauser"]);
        check("en", "C++ and C# are not C, nor is F#", &["c++", "and", "c#", "are", "not", "c", "nor", "is", "f#"]);
        check("ja", "東京都の天気", &["東京", "京都", "都の", "の天", "天気"]);
        check("zh", "我 abc 字典", &["我", "abc", "字典"]);
        check("ru", "Красивые дома", &["красив", "дом"]);
        check("en", "", &[]);
    }

    #[test]
    fn a_word_of_a_query_is_called_as_in_a_page() {
        for (lang, word) in [("en", "Running"), ("de", "Häuser"), ("fr", "économie"), ("", "x"), ("en", "c++")] {
            assert_eq!(term(Lang::of(lang), word), terms(lang, word).pop(), "{word}");
        }
        assert_eq!(term(Lang::of("en"), "'"), None);
    }

    #[test]
    fn words_are_counted_as_they_are_written() {
        let mut analyzer = Analyzer::default();
        for text in ["Running runs running", "runs 東京"] {
            analyzer.terms(Lang::of("en"), text, |_, _| {});
        }
        let mut words = WordsBuilder::default();
        analyzer.take_words(&mut words);
        analyzer.take_words(&mut words);
        let bytes = words.finish();
        let words = crate::words::Words::open(bytes).expect("words");
        assert_eq!(["running", "runs", "run", "東京"].map(|word| words.count(word)), [2, 2, 0, 0]);
    }
}
