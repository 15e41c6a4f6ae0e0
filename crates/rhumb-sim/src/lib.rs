//! The synthetic web: what the crawler is tested and measured against.
//!
//! [`Web`] is a pure function of (seed, URL, time). It holds no table of hosts or pages: the number of pages of host
//! 93,000,000, the path of its page 17, the links on it and the bytes of its body are all derived by hashing, so a web
//! of a hundred million hosts costs as much memory as a web of one. Everything the function decides is also available
//! as data (links, robots rules, what a URL is, what is reachable), so that a test knows the right answer without
//! parsing the HTML that it is testing a parser with.
//!
//! [`Server`] puts that function behind real sockets on loopback: HTTP/1.1, HTTPS with HTTP/2, and DNS. It records
//! every request and every connection, so that a crawler's manners are judged from the other side of the wire.
//!
//! Invariants:
//! - every page of a host is reachable from its `/` by followed, allowed links of the same host;
//! - when pages link to other hosts at all, every host is reachable from host 0;
//! - the same URL at the same time gives the same bytes, in any process, in any order.
//!
//! [`hostile`] is the web's other face: one host for every mistake and every attack, on sockets of its own.
//!
//! [`FailingDisk`] is the other adversary: a disk whose n-th write fails, tears or finds no space.
//!
//! Read [`web`] first, then [`web::links`](Web::links), then [`server`].
//!
//! ```
//! use rhumb_sim::{Truth, Web, WebConfig};
//!
//! let web = Web::new(WebConfig { hosts: 3, pages: 10, ..WebConfig::default() }).unwrap();
//! let url = web.url(2, 0);
//! assert_eq!(url, "http://h2.sim.test/");
//! assert!(matches!(web.classify(&url), Truth::Page { host: 2, page: 0, .. }));
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod failing_disk;
mod hash;
pub mod hostile;
mod serve;
pub mod server;
mod text;
mod truth;
pub mod virtual_time;
pub mod web;

pub use failing_disk::{FailingDisk, Failure};
pub use hostile::{HostileConfig, HostileServer};
pub use serve::{ServeArgs, serve_blocking};
pub use server::dns::{DnsConfig, Others};
pub use server::log::{ConnectionEntry, LogConfig, LogEntry, LogView};
pub use server::{Server, ServerConfig};
pub use truth::{Reached, Scope, Truth};
pub use web::config::{ConfigError, Latency, Naming, WebConfig};
pub use web::links::Link;
pub use web::outlinks::{Found, OutlinkScratch};
pub use web::path::Target;
pub use web::respond::{Head, Reply, Request, Scratch};
pub use web::robots::{Group, Robots, Rule};
pub use web::{Page, Web};
