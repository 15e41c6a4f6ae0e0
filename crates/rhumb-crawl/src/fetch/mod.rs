//! Fetching one URL: dial, TLS, request, response, within bounds on time and bytes.
//!
//! hyper's connection API is driven directly, without a pool: we resolve, judge the address, dial it, and own
//! the one connection of a host. The connection's future is polled by the visit that uses it, so a fetch costs no
//! further task, and an abandoned one is gone when its visit is. Bodies come as they were on the wire (transfer
//! coding removed); decoding happens later. Read `connect.rs` (dialling), `exchange.rs` (one request), `tee.rs` (the head's raw bytes),
//! `secrets.rs` (what one origin gets and no other), `http2.rs` and `frames.rs` (what HTTP/2 needs beside), `below.rs` (what TLS does), `budget.rs` (memory for bodies).

pub mod bare;
mod below;
pub mod budget;
mod connect;
mod exchange;
pub(crate) mod frames;
mod http2;
mod secrets;
pub(crate) mod tee;
#[cfg(test)]
mod tests;
pub mod tls;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rhumb_core::Timestamp;
use rhumb_core::net::Guard;
use rhumb_core::outcome::Outcome;
use rhumb_core::url::{Host, Url};
use rhumb_core::visit::Validators;
use rhumb_store::warc::Truncated;

use budget::{Held, PageBudget};
use connect::Link;
pub use secrets::Credential;
use secrets::Secrets;

use crate::protocol::Bounds;

/// Bounds of one fetch. DESIGN names the defaults.
#[derive(Clone, Debug)]
pub struct FetchLimits {
    /// TCP connection.
    pub connect: Duration,
    /// TLS handshake.
    pub tls: Duration,
    /// From the request to the end of the response head.
    pub head: Duration,
    /// The whole fetch.
    pub total: Duration,
    /// Slowest body, in bytes over `rate_window`.
    pub rate_bytes_min: u64,
    /// Over which time the rate is taken.
    pub rate_window: Duration,
    /// Response head.
    pub head_bytes_max: usize,
    /// Lines of the response head.
    pub head_lines_max: usize,
    /// Body on the wire.
    pub body_bytes_max: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        FetchLimits {
            connect: Duration::from_secs(10),
            tls: Duration::from_secs(10),
            head: Duration::from_secs(20),
            total: Duration::from_secs(120),
            rate_bytes_min: 30 << 10,
            rate_window: Duration::from_secs(30),
            head_bytes_max: 256 << 10,
            head_lines_max: 1_000,
            body_bytes_max: 16 << 20,
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The URL.
    pub url: &'a Url,
    /// Where its host lives; only the first address that the guard allows is dialled.
    pub addresses: &'a [IpAddr],
    /// For a conditional request.
    pub validators: &'a Validators,
    /// Cut the body here, if that is less than the general bound.
    pub body_bytes_max: usize,
}

/// What came back.
#[derive(Debug)]
pub struct Fetched {
    /// How it ended.
    pub outcome: Outcome,
    /// More about a failure, for people.
    pub detail: String,
    /// Status; 0 without a response.
    pub status: u16,
    /// Response headers as received.
    pub headers: http::HeaderMap,
    /// The response head's own bytes (made up for HTTP/2, which has none); nothing if it was not HTTP.
    pub head: Vec<u8>,
    /// The request head's bytes.
    pub request_head: Vec<u8>,
    /// The body as on the wire, transfer coding removed.
    pub body: Vec<u8>,
    /// Whether and why the body was cut.
    pub cut: Option<Truncated>,
    /// Who answered.
    pub address: Option<IpAddr>,
    /// Whether it was HTTP/2.
    pub http2: bool,
    /// When dialling began.
    pub started: Instant,
    /// When the last byte was here.
    pub ended: Instant,
    /// When it was, if it was not now: somebody else fetched it.
    pub at: Option<Timestamp>,
    /// Whether the connection is kept for the next request.
    pub kept: bool,
    /// The memory that the body was given.
    pub held: Held,
}

impl Fetched {
    /// An answer of a protocol that has no heads: what the status means is how it ended. A header that cannot be one is left out.
    pub fn answer(
        started: Instant,
        status: u16,
        headers: &[(&str, impl AsRef<str>)],
        body: Vec<u8>,
        held: Held,
    ) -> Fetched {
        let mut fetched = Fetched::failed(started, Outcome::of_status(status), String::new(), held);
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_str(value.as_ref())) {
                fetched.headers.append(name, value);
            }
        }
        fetched.status = status;
        fetched.body = body;
        fetched
    }

    /// Nothing came back.
    pub fn failed(started: Instant, outcome: Outcome, detail: String, held: Held) -> Fetched {
        Fetched {
            outcome,
            detail,
            status: 0,
            headers: http::HeaderMap::new(),
            head: Vec::new(),
            request_head: Vec::new(),
            body: Vec::new(),
            cut: None,
            address: None,
            http2: false,
            started,
            ended: Instant::now(),
            at: None,
            kept: false,
            held,
        }
    }

    /// The first value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|v| std::str::from_utf8(v.as_bytes()).ok()).map(str::trim)
    }
}

/// Something went wrong before there was a response.
#[derive(Debug)]
pub(crate) struct Failure {
    pub outcome: Outcome,
    pub detail: String,
}

impl Failure {
    pub fn new(outcome: Outcome, detail: impl Into<String>) -> Failure {
        Failure { outcome, detail: detail.into() }
    }
}

/// Fetches URLs and keeps idle connections. One per thread of the crawl.
pub struct Fetcher {
    limits: FetchLimits,
    usual: Vec<(http::HeaderName, &'static str, http::HeaderValue)>,
    guard: Arc<Guard>,
    tls: tokio_rustls::TlsConnector,
    budget: Arc<PageBudget>,
    secrets: Secrets,
    idle: Mutex<HashMap<Host, Link>>,
}

impl Fetcher {
    /// A fetcher that calls itself `agent` and dials what `guard` allows.
    pub fn new(limits: FetchLimits, agent: &str, guard: Arc<Guard>, tls: Arc<rustls::ClientConfig>) -> Fetcher {
        let budget = PageBudget::new(usize::MAX / 2);
        let (usual, secrets) = (exchange::usual(agent), Secrets::default());
        Fetcher { limits, usual, guard, tls: tls.into(), budget, secrets, idle: Mutex::default() }
    }

    /// The same, with credentials for some origins and, if they are wanted, cookies.
    #[must_use]
    pub fn with_secrets(mut self, credentials: Vec<Credential>, cookies: bool) -> Fetcher {
        self.secrets = Secrets::new(credentials, cookies);
        self
    }

    /// The same, with bodies that share this budget with those of other fetchers.
    #[must_use]
    pub fn with_budget(mut self, budget: Arc<PageBudget>) -> Fetcher {
        self.budget = budget;
        self
    }

    /// What every fetch keeps to.
    pub fn bounds(&self) -> Bounds {
        Bounds { limits: self.limits.clone(), budget: self.budget.clone() }
    }

    /// Fetches one URL. The web's failures are part of the answer.
    pub async fn fetch(&self, host: &Host, request: Request<'_>) -> Fetched {
        let started = Instant::now();
        let deadline = started + self.limits.total;
        let reused = self.idle.lock().expect("nobody panics while holding the idle connections").remove(host);
        if let Some(mut link) = reused {
            // A server that closed the connection meanwhile may have said goodbye (408, GOAWAY): that is no answer.
            link.nudge().await;
            if link.is_reusable() {
                match exchange::exchange(&mut link, self, &request, started, deadline).await {
                    Ok(fetched) => return self.keep(host, link, fetched),
                    // The server closed the idle connection before it saw the request: dial anew. One that is silent
                    // has seen it, and is not asked a second time.
                    Err(failure) if failure.outcome == Outcome::Reset && !link.answered() => {}
                    Err(failure) => {
                        let mut fetched = Fetched::failed(started, failure.outcome, failure.detail, self.budget.hold());
                        fetched.address = Some(link.address);
                        return fetched;
                    }
                }
            }
        }
        let dialled = connect::dial(self, host, &request, deadline).await;
        let mut link = match dialled {
            Ok(link) => link,
            Err((failure, address)) => {
                let mut fetched = Fetched::failed(started, failure.outcome, failure.detail, self.budget.hold());
                fetched.address = address;
                return fetched;
            }
        };
        match exchange::exchange(&mut link, self, &request, started, deadline).await {
            Ok(fetched) => self.keep(host, link, fetched),
            Err(failure) => {
                let mut fetched = Fetched::failed(started, failure.outcome, failure.detail, self.budget.hold());
                fetched.address = Some(link.address);
                fetched
            }
        }
    }

    fn keep(&self, host: &Host, link: Link, mut fetched: Fetched) -> Fetched {
        fetched.kept = fetched.cut.is_none() && link.is_reusable();
        if fetched.kept {
            self.idle.lock().expect("nobody panics while holding the idle connections").insert(host.clone(), link);
        }
        fetched
    }

    /// Closes a host's idle connection.
    pub fn close(&self, host: &Host) {
        self.idle.lock().expect("nobody panics while holding the idle connections").remove(host);
    }
}
