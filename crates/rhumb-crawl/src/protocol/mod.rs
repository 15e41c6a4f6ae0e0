//! Protocols: how URLs of a scheme are fetched (SPEC C14). One trait, one file for each, one list of them.
//!
//! [`Protocol::fetch`] answers with a [`Fetched`], whatever the protocol: everything behind it (understanding, archive, log, recovery)
//! does not ask where it came from. What the frontier must know of a scheme before a visit (names to resolve, robots.txt,
//! pauses) is data, [`Scheme`].
//!
//! A protocol may also hold pages that somebody fetched before ([`Protocol::feeds`], `feed.rs`): nothing of it is fetched by URL, it is
//! read from one end to the other.
//!
//! To add a protocol: write its file here beside `file.rs`, and name it in [`Registry::default`]. From outside this crate:
//! [`Registry::add`] (`tests/toy_protocol.rs` does so). Nothing else changes.
//!
//! Invariant: whatever a protocol does, a fetch ends within [`FetchLimits::total`] and brings no more than the body's bound; and
//! `http` takes no detour: its fetcher is called as itself, without a box and without a look-up.

pub mod feed;
pub mod file;
mod http;
pub mod warc;

use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use rhumb_core::outcome::Outcome;
use rhumb_core::url::scheme::SchemeError;
use rhumb_core::url::{Host, Scheme, Url};
use rhumb_store::warc::Truncated;

use self::feed::{Feed, HowToRead};
use crate::fetch::budget::PageBudget;
use crate::fetch::{FetchLimits, Fetched, Fetcher, Request};

/// A fetch under way.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Fetched> + Send + 'a>>;

/// One way to fetch. Shared by all threads of a crawl.
pub trait Protocol: Send + Sync {
    /// The schemes that it fetches.
    fn schemes(&self) -> &'static [&'static Scheme];

    /// The user named this URL, for a crawl that lies in `crawl_dir`: it opens what is to be opened by it, and nothing else does.
    fn allow(&self, seed: &Url, crawl_dir: &Path) {
        let _ = (seed, crawl_dir);
    }

    /// Fetches one URL of one of its schemes. What goes wrong out there is part of the answer.
    fn fetch<'a>(&'a self, host: &'a Host, request: Request<'a>, bounds: &'a Bounds) -> Fetching<'a>;

    /// The name of sources that hold pages already: `warc` for those that are named `warc:PATH`.
    fn feeds(&self) -> Option<&'static str> {
        None
    }

    /// The sources that were meant by what followed the name and its colon, each in the one form that the log keeps.
    fn sources(&self, meant: &str) -> io::Result<Vec<String>> {
        let _ = meant;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens a source.
    fn open(&self, source: &str, how: &HowToRead) -> io::Result<Box<dyn Feed>> {
        let _ = (source, how);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The host will not be visited soon; what is kept open for it may go.
    fn close(&self, host: &Host) {
        let _ = host;
    }
}

/// What a fetch must keep to.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Time and bytes.
    pub limits: FetchLimits,
    /// Memory for bodies; a body of more than 64 KiB is to ask here first.
    pub budget: Arc<PageBudget>,
}

impl Bounds {
    /// The longest body that this request may bring.
    pub fn body_bytes_max(&self, request: &Request<'_>) -> usize {
        self.limits.body_bytes_max.min(request.body_bytes_max)
    }
}

/// The protocols beside `http`, which is always there: part of a crawl's settings.
#[derive(Clone)]
pub struct Registry {
    list: Vec<Arc<dyn Protocol>>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry { list: vec![Arc::new(file::Files::default()), Arc::new(warc::Warcs)] }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter().flat_map(|p| p.schemes()).map(|s| s.name)).finish()
    }
}

impl Registry {
    /// Adds a protocol, and makes its schemes known to everybody. To be called before the crawl is opened.
    pub fn add(&mut self, protocol: Arc<dyn Protocol>) -> Result<(), SchemeError> {
        for scheme in protocol.schemes() {
            if scheme.is_web() || self.find(scheme.name).is_some() {
                return Err(SchemeError::Taken(scheme.name));
            }
            Scheme::register(scheme)?;
        }
        self.list.push(protocol);
        Ok(())
    }

    /// The user named these URLs.
    pub fn allow(&self, seed: &Url, crawl_dir: &Path) {
        if let Some(protocol) = self.find(seed.scheme()) {
            protocol.allow(seed, crawl_dir);
        }
    }

    /// The sources that a seed such as `warc:PATH` stands for; `None` if it is no such seed.
    pub fn sources(&self, seed: &str) -> Option<io::Result<Vec<String>>> {
        let (protocol, meant) = self.feeding(seed)?;
        let name = protocol.feeds().unwrap_or_default();
        Some(protocol.sources(meant).map(|list| list.into_iter().map(|source| format!("{name}:{source}")).collect()))
    }

    /// Opens a source that [`Registry::sources`] named.
    pub(crate) fn open(&self, source: &str, how: &HowToRead) -> io::Result<Box<dyn Feed>> {
        let unknown = || io::Error::new(io::ErrorKind::Unsupported, "nobody here reads it");
        let (protocol, source) = self.feeding(source).ok_or_else(unknown)?;
        protocol.open(source, how)
    }

    fn feeding<'a>(&self, seed: &'a str) -> Option<(&Arc<dyn Protocol>, &'a str)> {
        let (name, meant) = seed.split_once(':')?;
        let protocol = self.list.iter().find(|p| p.feeds().is_some_and(|f| f.eq_ignore_ascii_case(name)))?;
        Some((protocol, meant))
    }

    fn find(&self, scheme: &str) -> Option<&Arc<dyn Protocol>> {
        self.list.iter().find(|protocol| protocol.schemes().iter().any(|s| s.name == scheme))
    }
}

/// All protocols, ready to fetch. One per thread of the crawl, because the web's connections belong to one.
pub struct Protocols {
    http: Fetcher,
    more: Registry,
    bounds: Bounds,
}

impl Protocols {
    /// The web by `http`, the rest by `more`, all within its bounds.
    pub fn new(http: Fetcher, more: Registry) -> Protocols {
        let bounds = http.bounds();
        Protocols { http, more, bounds }
    }

    /// Fetches one URL. Failures out there are part of the answer.
    pub async fn fetch(&self, host: &Host, request: Request<'_>) -> Fetched {
        if request.url.is_web() { self.http.fetch(host, request).await } else { self.fetch_other(host, request).await }
    }

    /// Closes what is kept open for a host.
    pub fn close(&self, host: &Host) {
        match self.more.find(host.scheme()) {
            Some(protocol) => protocol.close(host),
            None => self.http.close(host),
        }
    }

    async fn fetch_other(&self, host: &Host, request: Request<'_>) -> Fetched {
        let started = Instant::now();
        let failed = |outcome, detail: String| Fetched::failed(started, outcome, detail, self.bounds.budget.hold());
        let Some(protocol) = self.more.find(host.scheme()) else {
            return failed(Outcome::Refused, format!("nobody here fetches {}", host.scheme()));
        };
        let bytes_max = self.bounds.body_bytes_max(&request);
        let fetching = protocol.fetch(host, request, &self.bounds);
        let Ok(mut fetched) = tokio::time::timeout(self.bounds.limits.total, fetching).await else {
            return failed(Outcome::BodyTimeout, "it took longer than a fetch may".to_string());
        };
        if fetched.body.len() > bytes_max {
            fetched.body.truncate(bytes_max);
            fetched.cut = Some(Truncated::Length);
        }
        fetched
    }
}
