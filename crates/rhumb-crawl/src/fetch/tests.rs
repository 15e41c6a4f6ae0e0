//! Fetching under a memory budget that is far too small for what comes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rhumb_core::net::Guard;
use rhumb_core::outcome::Outcome;
use rhumb_core::url::Url;
use rhumb_core::visit::Validators;

use super::budget::PageBudget;
use super::{FetchLimits, Fetcher, Request, tls};

/// A server that sends `body_bytes` to everybody, with or without saying so beforehand.
fn serve(body_bytes: usize, announced: bool) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let length = if announced { format!("Content-Length: {body_bytes}\r\n") } else { String::new() };
                let _ = write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n{length}\r\n");
                let piece = vec![b'x'; 64 << 10];
                let mut sent = 0;
                while sent < body_bytes && stream.write_all(&piece[..piece.len().min(body_bytes - sent)]).is_ok() {
                    sent += piece.len();
                }
            });
        }
    });
    port
}

/// 48 bodies of 2 MiB at once in 3 MiB, each kept for a while after its end. What waits longer than the whole fetch may take
/// must not be called slow.
#[test]
fn many_huge_bodies_in_little_memory_all_arrive_in_time() {
    const BODY_BYTES: usize = 2 << 20;
    for announced in [true, false] {
        let port = serve(BODY_BYTES, announced);
        let (total, rate_window) = (Duration::from_millis(900), Duration::from_millis(300));
        let limits = FetchLimits { total, rate_window, body_bytes_max: 4 << 20, ..FetchLimits::default() };
        let guard = Arc::new(Guard { allow: vec!["127.0.0.0/8".parse().expect("a network")], ..Guard::default() });
        let tls = tls::client_config(None, 0).expect("TLS");
        let budget = PageBudget::new(3 << 20);
        let fetcher = Arc::new(Fetcher::new(limits, "test", guard, tls).with_budget(budget.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let began = Instant::now();
        runtime.block_on(async {
            let mut visits = tokio::task::JoinSet::new();
            for n in 0..48 {
                let fetcher = fetcher.clone();
                visits.spawn(async move {
                    let url = Url::parse(&format!("http://127.0.0.1:{port}/{n}")).expect("a URL");
                    let validators = Validators::default();
                    let addresses = [Ipv4Addr::LOCALHOST.into()];
                    let request = Request {
                        url: &url,
                        addresses: &addresses,
                        validators: &validators,
                        body_bytes_max: usize::MAX,
                    };
                    let fetched = fetcher.fetch(&url.host(), request).await;
                    assert_eq!((fetched.outcome, fetched.body.len()), (Outcome::Ok, BODY_BYTES), "{}", fetched.detail);
                    // As the engine would hold on to it.
                    tokio::time::sleep(Duration::from_millis(40)).await;
                });
            }
            while let Some(ended) = visits.join_next().await {
                ended.expect("no visit fails");
            }
        });
        assert!(began.elapsed() > total, "they had to wait for each other");
        // The budget, and one body while it moves to a larger place.
        assert!(budget.used_most() <= (3 << 20) + 2 * BODY_BYTES, "{}", budget.used_most());
    }
}
