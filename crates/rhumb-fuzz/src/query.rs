//! Queries: any text is one.
//!
//! Input: a byte, of which seven bits times 16 months are the time of asking; then the query.

use rhumb_index::query::{CLAUSES_MAX, NOTES_MAX, Occur, Query, What};

use crate::byte;

/// Sixteen months, so that 128 of them reach beyond the year 2140.
const STEP_MS: i64 = 16 * 30 * 86_400_000;

/// Nothing panics; bounds are kept; spans are pieces of what was typed; the one way of writing a query reads as the same query, and is its
/// own one way of writing; what is put in the place of a word is asked like it.
pub fn run(data: &[u8]) {
    let (time, rest) = byte(data);
    let now_ms = i64::from(time & 0x7f) * STEP_MS;
    let text = String::from_utf8_lossy(rest);
    let query = Query::parse_at(&text, now_ms);
    assert_eq!(query.text, text);
    assert!(query.clauses.len() <= CLAUSES_MAX && query.notes.len() <= NOTES_MAX);
    assert!(
        query.notes.iter().all(|note| !note.is_empty() && !note.chars().any(char::is_control)),
        "{:?}",
        query.notes
    );
    let mut end = 0;
    for clause in &query.clauses {
        assert!(text.get(clause.span.clone()).is_some() && clause.span.start >= end, "{:?}", clause.span);
        end = clause.span.end;
    }
    let written = query.display();
    let again = Query::parse_at(&written, now_ms);
    assert!(again.asks_same(&query), "{text:?} is written {written:?}, which asks {:?}", again.clauses);
    assert_eq!(again.display(), written);
    for clause in query.clauses.iter().filter(|clause| clause.occur != Occur::Excluded) {
        if let What::Word(word) = &clause.what {
            assert_eq!(
                query.with_replaced(clause.span.clone(), word).len(),
                text.len() + word.len() - clause.span.len()
            );
        }
    }
}
