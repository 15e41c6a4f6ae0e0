//! The connectivity server's own part: links, compressed, and what can be asked of them.
//!
//! It speaks of nodes and arcs. A node is the place of a URL among all URLs, sorted by host name read backwards ([`key`]);
//! so pages of a site are neighbours, and rows of neighbours are alike, which is what the coding lives on. Nothing here
//! knows what a visit or a page is; the program feeds it from the log.
//!
//! Read [`rows`] first (what a graph is), then [`sealed`] (what all files have in common).

pub mod error;
pub mod key;
pub mod rows;
pub mod sealed;

pub use error::{GraphError, Result};
pub use rows::{Csr, Node, Rows};
