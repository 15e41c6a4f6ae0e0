//! Decides: what a URL is, whether we may and want to fetch it, in which order, and what a page says.
//!
//! Nothing here reads a clock, opens a socket or touches a file except through `rhumb_store::disk::Disk`;
//! everything can be replayed. In the order a URL meets them: [`url`] (what it is), [`filter`] (may we want
//! it?), [`splitter`] (whose is it?), [`sieve`] (is it new?), [`frontier`] (when is its turn?), [`robots`] and
//! [`net`] (may it be fetched?), [`page`], [`sitemap`] and [`feed`] (what
//! does it say?), [`record`] (what the log keeps of it) and [`cdx`] (what the archive's index does).

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod cdx;
pub mod crawl;
pub mod dates;
pub mod feed;
pub mod filter;
pub mod frontier;
pub mod handover;
pub mod net;
pub mod outcome;
pub mod page;
pub mod priority;
pub mod reading;
pub mod record;
pub mod robots;
pub mod seen;
pub mod sieve;
pub mod sitemap;
pub mod sketch;
mod skim;
pub mod splitter;
pub mod traps;
pub mod url;
pub mod visit;
mod xml;

pub use rhumb_store::Timestamp;
