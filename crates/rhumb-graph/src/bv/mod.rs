//! Graphs of the WebGraph framework: read and written, so that ours can be looked at with its tools and theirs with ours.
//!
//! A graph is three files with one base name: `.graph` (bits), `.properties` (what the bits mean) and `.offsets` (where the
//! row of every node begins; not needed to read from front to back). The format is of Boldi and Vigna, "The WebGraph
//! Framework I: Compression Techniques", WWW 2004; its Java and Rust programs agree on what is here.
//!
//! The row of a node `x` is, in this order:
//!
//! | what | code unless the properties say otherwise |
//! | --- | --- |
//! | how many successors; if none, the row ends | γ |
//! | how many nodes back the row is copied from, 0 for none; absent if the window is 0 | unary |
//! | if copied: how many blocks the row there is cut into | γ |
//! | their lengths, less one but for the first; every other is copied, and the rest if their number is even | γ |
//! | if not all are copied, and intervals are not switched off: how many intervals follow | γ |
//! | each: its left end, less `x` folded to positive, later ones less the end before and one; its length less the least | γ |
//! | what remains: the first less `x`, folded; later ones less the one before and one | ζ₃ |
//!
//! What is read is foreign. [`Reader`] gives rows until one is impossible, and then one line that says where; whoever keeps
//! the rows keeps them only after [`Reader::next_row`] has said that there are no more, which it says only if as many arcs were
//! read as the properties promise.
//!
//! Read `read.rs` first; `codes.rs` has the codes, `write.rs` chooses what to copy.

mod bits;
mod codes;
mod properties;
mod read;
mod write;

pub(crate) use codes::{fold, unfold};
pub use read::Reader;
pub use write::{BvOptions, BvStats, write};

/// The file of a graph that ends in `.extension`. Base names may hold dots, so it is appended.
fn file_of(basename: &std::path::Path, extension: &str) -> std::path::PathBuf {
    let mut name = basename.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}
