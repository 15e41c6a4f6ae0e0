//! Turns pages into a text index and answers queries.
//!
//! The index of a crawl is a list of *parts*, each a tantivy index of one segment that never changes, with what became known of its
//! pages later beside it: anchor texts and ranks of in-links, duplicates, pages that were replaced. New pages become small parts,
//! small parts are merged, and when a crawl rests there is one part for each *tier*: the pages that are likely to answer, and the rest.
//!
//! Invariant: what is found, and in which order, follows from the pages alone, never from how they are spread over parts.

pub mod query;
pub mod snippet;
pub mod words;
