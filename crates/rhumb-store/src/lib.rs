//! Keeps bytes: the visit log, disk queues, sorted runs, the page archive, checkpoints.
//!
//! Everything durable goes through the small [`disk::Disk`] trait. Nothing here knows what a URL is.
//! Read [`log`] first (the crawl's truth), then [`fifo`], [`runs`], [`rows`], [`spool`] and [`table`] (what folds over it keep
//! on disk), [`checkpoint`], and [`archive`] with [`warc`] (where pages lie).
//! [`verify`] reads them all. [`map`], [`sealed`] and [`checked`] are for files that are read in place.

pub mod archive;
mod blocks;
pub mod checked;
pub mod checkpoint;
pub mod codec;
pub mod disk;
pub mod error;
pub mod fifo;
pub mod log;
pub mod map;
pub mod rows;
pub mod runs;
pub mod sealed;
pub mod spool;
pub mod table;
pub mod time;
pub mod verify;
pub mod warc;

pub use error::{Result, StoreError};
pub use time::Timestamp;
