//! The hostile web below HTTP: TLS that does not come about, HTTP/2 out of order, names that lead astray.
//!
//! Each kind meets the fetcher or the resolver itself, with bounds as short as a test can bear, and must end in its named
//! outcome; what it cost is read off on the server's side. That the same kinds leave a whole crawl and its other hosts
//! alone is for the crawl of the whole hostile web to show.

mod dns;
mod http2;
mod tls;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rhumb_core::net::Guard;
use rhumb_core::url::Url;
use rhumb_core::visit::Validators;
use rhumb_crawl::fetch::{FetchLimits, Fetched, Fetcher, Request, tls as client_tls};
use rhumb_sim::hostile::{Group, Kind, NETWORK, address_of, kinds};
use rhumb_sim::{HostileConfig, HostileServer};

use crate::common::Place;

/// Long enough for an answer on a crowded machine, short enough for those that never answer.
const PATIENCE: Duration = Duration::from_millis(1_500);

fn limits() -> FetchLimits {
    FetchLimits {
        connect: Duration::from_secs(10),
        tls: PATIENCE,
        head: PATIENCE,
        rate_window: PATIENCE,
        total: Duration::from_secs(20),
        ..FetchLimits::default()
    }
}

/// The hostile web and a fetcher that trusts its authority.
struct Wild {
    server: HostileServer,
    fetcher: Fetcher,
}

impl Wild {
    fn new(limits: FetchLimits) -> Wild {
        let config = HostileConfig { tls_port: Some(0), ..HostileConfig::default() };
        let server = HostileServer::start(config).expect("server");
        let place = Place::new();
        let authority = place.file("authority.pem", &server.ca_pem().expect("TLS is served"));
        let tls = client_tls::client_config(Some(&authority), 100).expect("TLS");
        let guard = Guard { allow: vec![NETWORK.parse().expect("network")], ..Guard::default() };
        Wild { server, fetcher: Fetcher::new(limits, "test", Arc::new(guard), tls) }
    }

    async fn fetch(&self, kind: &Kind, path: &str) -> Fetched {
        self.fetch_at(kind, path, &[address_of(kind).into()]).await
    }

    async fn fetch_at(&self, kind: &Kind, path: &str, addresses: &[IpAddr]) -> Fetched {
        let url = Url::parse(&kind.url(path, self.server.place())).expect("a URL");
        let validators = Validators::default();
        let request = Request { url: &url, addresses, validators: &validators, body_bytes_max: usize::MAX };
        self.fetcher.fetch(&url.host(), request).await
    }

    /// Closes the connection to a kind, if it is kept.
    fn close(&self, kind: &Kind) {
        let url = Url::parse(&kind.url("/", self.server.place())).expect("a URL");
        self.fetcher.close(&url.host());
    }

    /// Waits until the server has seen the end of every connection: an abandoned visit leaves nothing behind.
    async fn all_closed(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let open = self.server.log_view().connections.into_iter().filter(|c| c.closed_us.is_none()).count();
            if open == 0 {
                return;
            }
            assert!(Instant::now() < deadline, "{open} connections are still open");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn of_group(group: Group) -> Vec<&'static Kind> {
    kinds().filter(|kind| kind.group == group).collect()
}

fn kind(name: &str) -> &'static Kind {
    kinds().find(|kind| kind.name == name).unwrap_or_else(|| panic!("no kind is called {name}"))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}
