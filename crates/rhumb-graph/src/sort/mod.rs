//! Sorting more than memory holds: sorted runs on disk, merged as they are read.
//!
//! A sorter takes things in any order up to its memory, sorts them, writes them as a run that says only what differs from one
//! to the next, and begins again. At the end all runs are merged. While it takes, it has at most the memory it was given; while
//! it gives, half of that. What fits into memory twice never sees the disk. Runs are removed when sorter or result is dropped,
//! whatever happened.
//!
//! [`arcs`] sorts arcs, [`keys`] byte strings with a number each. `runs` has what both need.

pub mod arcs;
pub mod keys;
mod runs;

pub use arcs::{ArcSorter, SortedArcs};
pub use keys::{KeySorter, SortedKeys};
