//! `http` and `https`: the front of the fetcher in `fetch/`.
//!
//! [`super::Protocols`] calls the fetcher itself, so that the hot path has neither a box nor a look-up; as a [`Protocol`] it is for
//! those who treat all alike.

use rhumb_core::url::{Host, Scheme, scheme};

use super::{Bounds, Fetching, Protocol};
use crate::fetch::{Fetcher, Request};

static SCHEMES: [&Scheme; 2] = [&scheme::HTTP, &scheme::HTTPS];

impl Protocol for Fetcher {
    fn schemes(&self) -> &'static [&'static Scheme] {
        &SCHEMES
    }

    /// Keeps to the bounds that it was made with, which are those of the crawl.
    fn fetch<'a>(&'a self, host: &'a Host, request: Request<'a>, _: &'a Bounds) -> Fetching<'a> {
        Box::pin(Fetcher::fetch(self, host, request))
    }

    fn close(&self, host: &Host) {
        Fetcher::close(self, host);
    }
}
