//! The text index: what is within the seals of its files, and words of strangers on their way into it.
//!
//! Input: a byte that chooses by its remainder of 3. 0: the content of `index/parts`; 1: a line with a word, then the content of a `.words` file;
//! 2: a line with a language, then a text. Seals are left out, since a checksum stops every mutation.

use rhumb_index::analysis::language::Lang;
use rhumb_index::analysis::{Analyzer, term};
use rhumb_index::manifest::Manifest;
use rhumb_index::words::{SuggestOptions, WORD_BYTES_MAX, Words, merge, suggest};

use crate::{byte, line};

/// Nothing panics; what is accepted agrees with itself.
pub fn run(data: &[u8]) {
    let (choice, rest) = byte(data);
    match choice % 3 {
        0 => manifest(rest),
        1 => words(rest),
        _ => terms(rest),
    }
}

/// What is read is written as it was read, and is no larger than what it was read from.
fn manifest(data: &[u8]) {
    match Manifest::from_bytes(data) {
        Ok(list) => {
            assert_eq!(Manifest::from_bytes(&list.to_bytes()).ok().as_ref(), Some(&list));
            assert!(list.parts.iter().map(|part| part.dead.len() + part.duplicates.len()).sum::<usize>() <= data.len());
            assert!(list.parts.iter().all(|part| part.alive() <= part.documents));
        }
        Err(e) => assert!(!e.to_string().chars().any(char::is_control), "{e}"),
    }
}

/// Words are within their bounds, whatever the bytes say; a vocabulary made of it is one in order and has its words.
fn words(data: &[u8]) {
    let (asked, content) = line(data);
    let Ok(words) = Words::open(content.to_vec()) else { return };
    let asked = String::from_utf8_lossy(asked);
    words.count(&asked);
    assert!(words.starting_with(&asked, 9).iter().all(|(word, _)| word.starts_with(&*asked)));
    suggest(&[&words], &asked, &SuggestOptions::default());
    assert!(words.iter().take(1_000).all(|(word, _)| word.len() <= WORD_BYTES_MAX));
    let mut bytes = Vec::new();
    merge(&[&words, &words], usize::MAX, |piece| bytes.extend_from_slice(piece));
    let merged = Words::open(bytes).expect("what was written can be read");
    let all: Vec<(String, u64)> = merged.iter().collect();
    assert!(all.is_sorted_by(|a, b| a.0 < b.0) && all.len() == merged.len());
    for (word, count) in all.iter().take(100) {
        assert_eq!(merged.count(word), *count, "{word:?}");
    }
}

/// Terms have no white space and no control characters, and lie in the text in order; a word that is asked for is called as it is in the
/// text, also the second time.
fn terms(data: &[u8]) {
    let (code, text) = line(data);
    let (code, text) = (String::from_utf8_lossy(code), String::from_utf8_lossy(text));
    let lang = Lang::detect(&text, &code);
    let mut analyzer = Analyzer::default();
    let mut found = Vec::new();
    analyzer.terms(lang, &text, |term, piece| {
        assert!(!term.chars().any(|c| c.is_control() || c.is_whitespace()), "{term:?}");
        assert!(piece.end > piece.start && found.last().is_none_or(|(_, start, _)| *start < piece.start));
        found.push((term.to_string(), piece.start, &text[piece.start..piece.end]));
    });
    let mut again = found.iter();
    analyzer.terms(lang, &text, |term, _| assert_eq!(again.next().map(|(before, ..)| before.as_str()), Some(term)));
    for (called, _, word) in found.iter().take(200) {
        assert_eq!(term(lang, word).as_ref(), Some(called), "{word:?}");
    }
}
