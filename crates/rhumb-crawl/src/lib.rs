//! Acts: names are resolved, hosts dialled, pages fetched, everything committed.
//!
//! [`engine`] owns a crawl and turns it; [`pipeline`] is one visit, step by step; [`protocol`] fetches, whatever the scheme; [`fetch`] and [`dns`] speak to the
//! network; [`pdf`] reads documents in a process of their own; [`bus`] hands URLs to the node that owns them. Decisions are made in `rhumb-core`.

mod background;
pub mod bus;
pub mod clock;
pub mod dns;
pub mod duplicates;
pub mod engine;
mod feeding;
pub mod fetch;
#[doc(hidden)]
pub mod fuzzing;
pub mod pdf;
pub mod pipeline;
pub mod protocol;
mod recover;
pub mod settings;
mod shard;
pub mod status;
mod templates;

pub use engine::{CrawlError, End, Engine};
pub use settings::Settings;
