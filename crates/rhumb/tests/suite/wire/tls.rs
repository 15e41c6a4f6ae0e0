//! TLS: certificates, handshakes, endings.

use rhumb_core::outcome::Outcome;

use super::*;

/// What people are told.
const DETAILS: &[(&str, &str)] = &[
    ("tls-expired", "certificate expired"),
    ("tls-future", "not valid yet"),
    ("tls-self-signed", "UnknownIssuer"),
    ("tls-wrong-name", "not valid for name"),
    ("tls-long-chain", "UnknownIssuer"),
    // Not "too many ways": the ways are so few that all of them can be tried.
    ("tls-maze", "UnknownIssuer"),
    ("tls-giant", "TooLarge"),
    ("tls-stalled", "no TLS handshake within"),
    ("tls-drip", "no TLS handshake within"),
    ("tls-not", "corrupt message"),
    ("tls-noise", "corrupt message"),
    ("tls-alert", "HandshakeFailure"),
    ("tls-hang-up", "eof"),
    ("tls-mute", "no response head within"),
    ("tls-cut-length", "broke off"),
    ("tls-cut", "broke off"),
    ("tls-cut-head", "broke off"),
    ("tls-new-keys", "TooManyKeyUpdateRequests"),
    ("tls-tickets", "message buffer full"),
    ("tls-many-names", ""),
];

#[test]
fn every_kind_has_its_outcome() {
    block_on(async {
        let wild = Wild::new(limits());
        let kinds = of_group(Group::Tls);
        assert_eq!(kinds.len(), DETAILS.len());
        for (name, detail) in DETAILS {
            let kind = kind(name);
            let end = kind.ends[0];
            let fetched = wild.fetch(kind, "/").await;
            assert_eq!((fetched.outcome, fetched.cut.is_some()), (end.outcome, end.cut), "{name}: {}", fetched.detail);
            assert!(fetched.detail.contains(detail), "{name}: {}", fetched.detail);
            assert!(end.outcome == Outcome::Ok || fetched.body.is_empty(), "{name}: no byte of it is a page");
            assert_eq!(fetched.address, Some(address_of(kind).into()), "{name}");
            wild.close(kind);
        }
        wild.all_closed().await;
        // Kinds that flood were stopped long before their end.
        for (name, taken) in wild.server.taken() {
            assert!(taken < 8 << 20, "{name}: {taken} bytes");
        }
    });
}

/// What a server says in the middle of a handshake never counts as an answer: there is no robots.txt of such a host.
#[test]
fn rules_are_taken_from_no_host_that_is_not_who_it_says() {
    block_on(async {
        let wild = Wild::new(limits());
        for kind in of_group(Group::Tls).into_iter().filter(|k| k.ends[0].outcome == Outcome::TlsFailed) {
            if !matches!(kind.name, "tls-stalled" | "tls-drip" | "tls-new-keys") {
                let fetched = wild.fetch(kind, "/robots.txt").await;
                assert_eq!((fetched.outcome, fetched.status), (Outcome::TlsFailed, 0), "{}", kind.name);
            }
        }
    });
}
