//! Names that lead nowhere, or astray.

use rhumb_core::outcome::Outcome;
use rhumb_crawl::dns::{Answer, DnsConfig, DnsError, Resolver};
use rhumb_sim::hostile::{INSIDE_V4, INSIDE_V6};
use rhumb_sim::{Server, ServerConfig, Web, WebConfig};

use super::*;

const ATTEMPTS: usize = 3;

/// The hostile web with its name server, and a resolver that asks it.
struct Named {
    wild: Wild,
    server: Server,
    resolver: Arc<Resolver>,
}

impl Named {
    fn new(change: impl FnOnce(&mut DnsConfig)) -> Named {
        let wild = Wild::new(limits());
        let dns_config = rhumb_sim::DnsConfig { others: Some(wild.server.names()), ..rhumb_sim::DnsConfig::default() };
        let any = "127.0.0.1:0".parse().expect("address");
        let config = ServerConfig { dns: Some(any), dns_config, ..ServerConfig::default() };
        let server = Server::start(Web::new(WebConfig::plain(1, 1)).expect("web"), config).expect("server");
        let mut config = DnsConfig::with_servers(vec![server.dns_addr().expect("DNS is served")]);
        config.schedule = vec![Duration::from_millis(300); ATTEMPTS];
        config.tcp_wait = Duration::from_millis(500);
        config.hosts_file = None;
        change(&mut config);
        let resolver = Resolver::new(config).expect("a resolver");
        Named { wild, server, resolver }
    }

    /// Looks a name up, and fetches `/` from where that leads; as a crawl would.
    async fn visit(&self, kind: &Kind, name: &str) -> (Outcome, Result<Answer, DnsError>) {
        let answer = self.resolver.lookup(name).await;
        let outcome = match &answer {
            Ok(answer) => self.wild.fetch_at(kind, "/", &answer.addresses).await.outcome,
            Err(error) if error.is_permanent() => Outcome::NoHost,
            Err(_) => Outcome::DnsFailed,
        };
        self.wild.close(kind);
        (outcome, answer)
    }

    fn nobody_was_dialled(&self) {
        assert_eq!(self.wild.server.dials(), [], "addresses that nobody may dial");
    }
}

#[test]
fn every_kind_has_its_outcome_at_a_bounded_cost() {
    const ERRORS: &[(&str, DnsError)] = &[
        ("dns-nxdomain", DnsError::NxDomain),
        ("dns-no-data", DnsError::NoData),
        ("dns-servfail", DnsError::ServFail),
        ("dns-odd-code", DnsError::ServFail),
        ("dns-refused", DnsError::Refused),
        ("dns-silence", DnsError::Timeout),
        ("dns-alias-self", DnsError::CnameLoop),
        ("dns-alias-loop", DnsError::CnameLoop),
        ("dns-alias-endless", DnsError::CnameLoop),
        ("dns-truncated-mute", DnsError::Timeout),
        ("dns-truncated-shut", DnsError::Timeout),
        ("dns-truncated-always", DnsError::Malformed),
        ("dns-wrong-id", DnsError::Timeout),
        ("dns-wrong-question", DnsError::Timeout),
        ("dns-other-owner", DnsError::NoData),
        ("dns-pointer-loop", DnsError::Malformed),
        ("dns-pointer-ahead", DnsError::Malformed),
        ("dns-short", DnsError::Malformed),
        ("dns-bad-length", DnsError::Malformed),
        ("dns-noise", DnsError::Timeout),
        ("dns-echo", DnsError::Timeout),
    ];
    block_on(async {
        let named = Named::new(|_| {});
        let mut failed = 0;
        for kind in of_group(Group::Dns) {
            let (outcome, answer) = named.visit(kind, &kind.host()).await;
            assert_eq!(outcome, kind.ends[0].outcome, "{}: {answer:?}", kind.name);
            let expected = ERRORS.iter().find(|(name, _)| *name == kind.name).map(|(_, error)| *error);
            assert_eq!(answer.as_ref().err().copied(), expected, "{}", kind.name);
            failed += usize::from(answer.is_err());
            if let Ok(answer) = answer {
                assert!(answer.addresses.len() <= 16, "{}: of many addresses a few are kept", kind.name);
                let lasts = answer.expires.saturating_duration_since(Instant::now());
                assert!((59..=86_400).contains(&lasts.as_secs()), "{}: believed for {lasts:?}", kind.name);
            }
            // Datagrams and TCP together; aliases are names of their own.
            let asked: u64 =
                named.server.dns_queries().iter().filter(|(n, _)| n.ends_with(&kind.host())).map(|(_, n)| n).sum();
            assert!(asked <= 12, "{}: asked {asked} times", kind.name);
            // What was found is remembered, bad news too.
            let _ = named.visit(kind, &kind.host()).await;
            let again: u64 =
                named.server.dns_queries().iter().filter(|(n, _)| n.ends_with(&kind.host())).map(|(_, n)| n).sum();
            assert_eq!(again, asked, "{}", kind.name);
        }
        assert_eq!(failed, ERRORS.len());
        named.nobody_was_dialled();
    });
}

#[test]
fn an_address_that_changes_between_two_look_ups_is_judged_again() {
    block_on(async {
        let named = Named::new(|config| config.ttl_min = Duration::ZERO);
        let kind = kind("dns-rebinding");
        assert_eq!(named.visit(kind, &kind.host()).await.0, Outcome::Ok);
        let (outcome, answer) = named.visit(kind, &kind.host()).await;
        assert_eq!(outcome, Outcome::BlockedAddress);
        assert_eq!(*answer.expect("addresses").addresses, [IpAddr::from([127, 9, 9, 9])]);
        named.nobody_was_dialled();
    });
}

#[test]
fn no_address_inside_is_ever_dialled() {
    block_on(async {
        let named = Named::new(|config| config.ipv6 = true);
        for (kind, labels) in [(kind("dns-inside"), &INSIDE_V4[..]), (kind("dns-inside-v6"), &INSIDE_V6)] {
            for (label, address) in labels {
                let (outcome, answer) = named.visit(kind, &format!("{label}.{}", kind.host())).await;
                assert_eq!(outcome, Outcome::BlockedAddress, "{label}");
                let address: IpAddr = address.parse().expect("an address");
                assert_eq!(*answer.expect("an address").addresses, [address], "the question reached the guard");
            }
        }
        named.nobody_was_dialled();
    });
}
