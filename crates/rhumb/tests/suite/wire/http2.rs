//! HTTP/2: floods, heads, streams.

use rhumb_core::outcome::Outcome;

use super::*;

/// More than the buffers of two sockets and less than a thirtieth of a flood.
const TAKEN_BYTES_MAX: u64 = 8 << 20;

#[test]
fn every_kind_has_its_outcome_at_a_bounded_cost() {
    block_on(async {
        let wild = Wild::new(limits());
        for kind in of_group(Group::Http2) {
            let (name, end) = (kind.name, kind.ends[0]);
            // Who allows no stream answers for no robots.txt either.
            if name != "h2-zero-window" {
                let rules = wild.fetch(kind, "/robots.txt").await;
                assert_eq!((rules.outcome, rules.http2, rules.kept), (Outcome::NotFound, true, true), "{name}");
            }
            let fetched = wild.fetch(kind, "/").await;
            assert_eq!((fetched.outcome, fetched.cut.is_some()), (end.outcome, end.cut), "{name}: {}", fetched.detail);
            assert!(fetched.detail.contains(end.detail), "{name}: {}", fetched.detail);
            assert_eq!(fetched.detail.is_empty(), end.outcome == Outcome::Ok, "{name}: people are told why");
            if end.outcome == Outcome::Ok {
                assert!(fetched.body.starts_with(b"<p>") && fetched.cut.is_none(), "{name}");
            } else {
                assert!(!fetched.kept, "{name}: such a connection is not used again");
            }
            wild.close(kind);
        }
        // No task of ours goes on behind a visit that has ended, even where the server reads nothing.
        wild.all_closed().await;
        let taken = wild.server.taken();
        println!("taken of 256 MiB each: {taken:?}");
        assert!(taken.len() >= 12, "{taken:?}");
        for (name, taken) in taken {
            assert!(taken < TAKEN_BYTES_MAX, "{name}: {taken} bytes");
        }
        let crumbs = wild.fetch(kind("h2-crumbs"), "/").await;
        assert_eq!(crumbs.body.len(), 200_000);
    });
}

/// Between two visits nothing is read from a connection, whatever the server sends; the next visit finds out.
#[test]
fn an_idle_connection_costs_nothing() {
    block_on(async {
        let wild = Wild::new(limits());
        let kind = kind("h2-idle-flood");
        let first = wild.fetch(kind, "/").await;
        assert_eq!((first.outcome, first.kept), (Outcome::Ok, true), "{}", first.detail);
        let taken = || wild.server.taken().get(kind.name).copied().unwrap_or(0);
        let mut before = u64::MAX;
        while before != taken() {
            before = taken();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(before < TAKEN_BYTES_MAX, "{before} bytes");
        let second = wild.fetch(kind, "/").await;
        assert_eq!((second.outcome, second.kept), (Outcome::BadHttp, false), "{}", second.detail);
        wild.all_closed().await;
    });
}
