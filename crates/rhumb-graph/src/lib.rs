//! The connectivity server's own part: links, compressed, and what can be asked of them.
//!
//! It speaks of nodes and arcs. A node is the place of a URL among all URLs, sorted by host name read backwards ([`key`]);
//! so pages of a site are neighbours, and rows of neighbours are alike, which is what the coding lives on. Nothing here
//! knows what a visit or a page is; the program feeds it from the log.
//!
//! Read [`rows`] first (what a graph is), then [`store`] (a graph that grows) and [`query`] (asking it). Below them lie [`level`] with
//! [`urls`], [`nodes`] and [`code`] (links on disk), [`delta`] (links in memory), [`merge`] and [`manifest`]; below everything [`rhumb_store::sealed`].
//! [`algo`] computes over whole graphs, [`bv`], [`edges`] and [`sort`] bring graphs from elsewhere.

pub mod algo;
pub mod bv;
pub mod code;
pub mod delta;
pub mod edges;
pub mod error;
pub mod formats;
pub mod key;
pub mod level;
pub mod manifest;
pub mod merge;
pub mod nodes;
pub mod query;
pub mod rows;
pub mod sort;
pub mod store;
pub mod urls;

pub use error::{GraphError, Result};
pub use rows::{Csr, Node, Rows};
