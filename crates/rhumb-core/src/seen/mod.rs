//! Content seen (SPEC C8): which pages say what another page has said.
//!
//! Two questions are asked of a page, and they have little to do with each other. Are the same *bytes* archived already? Then a
//! WARC revisit record will do (`archived.rs`). Has the same *text* been met before, word for word or nearly so, on whatever host? Then the page is
//! a duplicate: its links are known, and whoever searches wants one of the two.
//!
//! The second goes this way. Whoever reads a page has the words of its main text (`words.rs`) made into a [`Content`]: a fingerprint of all of them in their order and
//! a sketch of a few dozen bytes (`sketch.rs`). It stands in the page's record in the log. The set of known pages ([`Seen`], `store.rs`)
//! is offered it in the order of the log. In batches, on another thread, pages are looked up by the keys of their sketches (`check.rs`), candidates are
//! verified, and duplicates come out as [`Found`]. Like the sieve it keeps new pages in memory and the others in sorted runs on disk
//! (`level.rs`), merged now and then (`merge.rs`). Pairs of duplicates tell of whole hosts that are mirrors (`mirrors.rs`).
//!
//! Invariants:
//! - A page is a duplicate of a representative, never of a duplicate, and their own sketches agree: nobody is a duplicate by hearsay, so that a chain of small
//!   changes does not end at another text.
//! - A page is compared with older ones only, so what is found does not depend on how pages fall into batches, except where deletions come
//!   in between.
//! - A deleted page is never found. The duplicates of a deleted representative stand for themselves from then on, the oldest first.
//! - What is kept of a page takes 70 bytes at most, in files and memory together.

mod archived;
mod check;
mod checkpoint;
mod level;
mod merge;
mod mirrors;
mod sketch;
mod store;
mod words;

pub use archived::{Archived, First};
pub use mirrors::{Mirror, Mirrors};
pub use sketch::{Content, SHINGLE_WORDS, SIMILARITY_MIN, Sketch, Sketcher, similarity};
pub use store::{DIR, Found, Known, PageRef, Seen, SeenConfig, SeenDone, SeenWork};

#[cfg(test)]
mod tests;
