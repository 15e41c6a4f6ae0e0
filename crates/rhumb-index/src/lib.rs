//! Turns pages into a text index and answers queries.
//!
//! The index of a crawl is a list of *parts*, each a tantivy index of one segment that never changes, with what became known of its
//! pages later beside it: anchor texts and ranks of in-links, duplicates, pages that were replaced. New pages become small parts,
//! small parts are merged, and when a crawl rests there is a part for each *band* of pages, from those that are likely to answer
//! to the rest.
//!
//! Read [`page`] first (what goes in), then [`analysis`] (how it becomes terms), [`part`] and [`store`] (how it is kept), [`late`] (what
//! becomes known later), [`query`] and [`search`] (how it is found). [`eval`] measures how well.
//!
//! Invariant: what is found in an index at rest, and in which order, follows from the log alone, never from when
//! and in how many parts it was read.

pub mod analysis;
pub mod arrange;
pub mod bare;
pub mod directory;
pub mod error;
pub mod eval;
pub mod late;
pub mod manifest;
pub mod page;
pub mod part;
pub mod query;
pub mod schema;
pub mod search;
pub mod snippet;
pub mod store;
pub mod words;

use std::sync::Arc;

use rhumb_store::StoreError;
use rhumb_store::disk::Disk;

pub use error::{IndexError, Result};

/// The beginning of a text, of so many bytes at most.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A stored text of a document.
pub(crate) fn shown(document: &tantivy::TantivyDocument, field: tantivy::schema::Field) -> &str {
    use tantivy::schema::Value;
    document.get_first(field).and_then(|value| value.as_str()).unwrap_or_default()
}

/// Bytes of the index on this disk.
pub fn bytes(disk: &dyn Disk) -> rhumb_store::Result<u64> {
    let mut bytes = 0;
    for name in disk.list(part::DIR)?.iter().filter(|name| *name != "lock") {
        bytes += disk.open(&format!("{}/{name}", part::DIR))?.len()?;
    }
    Ok(bytes)
}

/// Everything of the index that does not read.
pub fn verify(disk: &Arc<dyn Disk>) -> rhumb_store::Result<Vec<StoreError>> {
    let list = match manifest::Manifest::load(&**disk) {
        Ok(None) => return Ok(Vec::new()),
        Ok(Some(list)) => list,
        Err(e @ (StoreError::Corrupt { .. } | StoreError::Version { .. })) => return Ok(vec![e]),
        Err(e) => return Err(e),
    };
    let fields = Arc::new(schema::Fields::default());
    let mut damage = Vec::new();
    for listed in &list.parts {
        match part::verify(disk, &fields, listed) {
            Ok(()) => {}
            Err(IndexError::Store(e)) => damage.push(e),
            Err(other) => {
                damage.push(StoreError::corrupt(&format!("{}.meta", part::base(listed.number)), 0, other.to_string()))
            }
        }
    }
    Ok(damage)
}
