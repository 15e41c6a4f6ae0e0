//! Names that lead nowhere, or astray.
//!
//! Kinds without a server have only a name, and no request can ever reach them. Those that do lead to their page first
//! lead past something: an alias, a truncated answer, an address that must not be dialled. Addresses that are not for
//! anybody are given to sub-domains of two hosts ([`INSIDE_V4`], [`INSIDE_V6`]), whose own pages link to all of them.

use std::net::{IpAddr, Ipv4Addr};

use rhumb_core::frontier::Reason;
use rhumb_core::outcome::Outcome;

use super::names::{Question, Told};
use super::{Asked, End, FORBIDDEN, Group, Kind, Serve, address_of, kind_of, page};
use crate::web::respond::Reply;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
const REFUSED: u8 = 5;
const TTL_S: u32 = 300;

/// A name without an address: no request, ever.
const NOWHERE: Kind =
    Kind { group: Group::Dns, ends: &[End::of("/", Outcome::NoHost)], serve: Serve::Nothing, ..Kind::BARE };

/// A name that cannot be resolved now.
const FAILING: Kind = Kind { ends: &[End::of("/", Outcome::DnsFailed).held(Reason::DnsFailed)], ..NOWHERE };

/// A name that leads to a page in the end.
const FOUND: Kind = Kind {
    ends: &[End::of("/", Outcome::Ok)],
    requests_max: 4,
    serve: Serve::Reply(|asked| page::home(asked.host, 0, [])),
    ..NOWHERE
};

/// The kinds.
pub(super) const KINDS: &[Kind] = &[
    Kind { name: "dns-nxdomain", about: "a name that does not exist", dns: Some(|_| Told::Code(NXDOMAIN)), ..NOWHERE },
    Kind { name: "dns-no-data", about: "a name without an address", dns: Some(|_| addresses(&[], TTL_S)), ..NOWHERE },
    Kind { name: "dns-servfail", about: "a name server that fails", dns: Some(|_| Told::Code(SERVFAIL)), ..FAILING },
    Kind { name: "dns-refused", about: "a name server that refuses", dns: Some(|_| Told::Code(REFUSED)), ..FAILING },
    Kind {
        name: "dns-odd-code",
        about: "an answer with a code nobody knows",
        dns: Some(|_| Told::Code(13)),
        ..FAILING
    },
    Kind { name: "dns-silence", about: "a name server that never answers", dns: Some(|_| Told::Silence), ..FAILING },
    Kind { name: "dns-ttl-zero", about: "an address for no time at all", dns: Some(|q| own(q, 0)), ..FOUND },
    Kind { name: "dns-ttl-huge", about: "an address for 68 years", dns: Some(|q| own(q, i32::MAX as u32)), ..FOUND },
    Kind {
        name: "dns-ttl-negative",
        about: "an address for less than no time",
        dns: Some(|q| own(q, 1 << 31)),
        ..FOUND
    },
    Kind {
        name: "dns-alias-self",
        about: "an alias of itself",
        dns: Some(|q| Told::Message(answer(q, &[alias(&wire(q.name), &wire(q.name))]))),
        ..NOWHERE
    },
    Kind {
        name: "dns-alias-loop",
        about: "two aliases of each other",
        dns: Some(|q| {
            let (one, two) = (wire(q.name), wire(&format!("b.{}", q.name)));
            Told::Message(answer(q, &[alias(&one, &two), alias(&two, &one)]))
        }),
        ..NOWHERE
    },
    Kind {
        name: "dns-alias-endless",
        about: "an alias of an alias, one more with every answer",
        dns: Some(|q| Told::Message(answer(q, &[alias(&wire(q.name), &wire(&next_link(q.name)))]))),
        ..NOWHERE
    },
    Kind {
        name: "dns-alias-chain",
        about: "an address behind eight aliases, one in every answer",
        dns: Some(|q| match q.name.starts_with("l8.") {
            true => own(q, TTL_S),
            false => Told::Message(answer(q, &[alias(&wire(q.name), &wire(&next_link(q.name)))])),
        }),
        ..FOUND
    },
    Kind {
        name: "dns-odd-labels",
        about: "an alias whose labels hold zeros, dots, spaces and bytes that are no text",
        dns: Some(|q| {
            let odd = [b"\x08\x00.\x20\xff\x07\n\"\\\x03a/b"[..].to_vec(), wire(q.name)].concat();
            Told::Message(answer(q, &[alias(&wire(q.name), &odd), address(&odd, own_address(q.name))]))
        }),
        ..FOUND
    },
    Kind {
        name: "dns-truncated",
        about: "an answer that fits only into TCP",
        dns: Some(|q| if q.udp { truncated(q) } else { own(q, TTL_S) }),
        ..FOUND
    },
    Kind {
        name: "dns-truncated-mute",
        about: "an answer that does not fit, and TCP that stays silent",
        dns: Some(|q| if q.udp { truncated(q) } else { Told::Silence }),
        ..FAILING
    },
    Kind {
        name: "dns-truncated-shut",
        about: "an answer that does not fit, and TCP that hangs up",
        dns: Some(|q| if q.udp { truncated(q) } else { Told::Message(Vec::new()) }),
        ..FAILING
    },
    Kind {
        name: "dns-truncated-always",
        about: "an answer that does not fit into TCP either",
        dns: Some(truncated),
        ..FAILING
    },
    Kind {
        name: "dns-wrong-id",
        about: "answers to a question with another number",
        dns: Some(|q| {
            let mut bytes = answer(q, &[address(&wire(q.name), FORBIDDEN.into())]);
            bytes[1] ^= 1;
            Told::Message(bytes)
        }),
        ..FAILING
    },
    Kind {
        name: "dns-wrong-question",
        about: "answers to a question for another name",
        dns: Some(|q| {
            let mut bytes = answer(q, &[address(&wire(q.name), FORBIDDEN.into())]);
            // The first letter of the name in the question.
            bytes[13] ^= 2;
            Told::Message(bytes)
        }),
        ..FAILING
    },
    Kind {
        name: "dns-other-owner",
        about: "an address of a name that was not asked for",
        dns: Some(|q| Told::Message(answer(q, &[address(&wire("other-hostile.example"), FORBIDDEN.into())]))),
        ..NOWHERE
    },
    Kind {
        name: "dns-crowd",
        about: "300 addresses, all but the first not to be dialled",
        dns: Some(|q| match q.udp {
            true => truncated(q),
            false => {
                let crowd = (1..300_u16).map(|n| Ipv4Addr::new(127, 9, (n >> 8) as u8, n as u8).into());
                addresses(&[own_address(q.name)].into_iter().chain(crowd).collect::<Vec<_>>(), TTL_S)
            }
        }),
        ..FOUND
    },
    Kind {
        name: "dns-mixed",
        about: "an address that may not be dialled, and behind it one that may",
        dns: Some(|q| addresses(&[FORBIDDEN.into(), own_address(q.name)], TTL_S)),
        ..FOUND
    },
    Kind {
        name: "dns-rebinding",
        about: "a good address first, and one that may not be dialled from then on",
        dns: Some(|q| if q.earlier == 0 { own(q, 0) } else { addresses(&[FORBIDDEN.into()], 0) }),
        ..FOUND
    },
    Kind {
        name: "dns-forbidden",
        about: "an address that may not be dialled",
        ends: &[End::of("/", Outcome::BlockedAddress)],
        dns: Some(|_| Told::address(FORBIDDEN)),
        ..NOWHERE
    },
    Kind {
        name: "dns-pointer-loop",
        about: "a compressed name that points at itself",
        dns: Some(|q| {
            // The record's own name begins where the question ends.
            let here = (0xc000 | q.end as u16).to_be_bytes();
            Told::Message(answer(q, &[address(&here, FORBIDDEN.into())]))
        }),
        ..FAILING
    },
    Kind {
        name: "dns-pointer-ahead",
        about: "a compressed name that points behind the end of the message",
        dns: Some(|q| Told::Message(answer(q, &[address(&[0xff, 0xff], FORBIDDEN.into())]))),
        ..FAILING
    },
    Kind {
        name: "dns-short",
        about: "an answer that promises 65,535 records and ends in the first",
        dns: Some(|q| {
            let mut bytes = answer(q, &[address(&wire(q.name), FORBIDDEN.into())]);
            bytes.truncate(bytes.len() - 3);
            bytes[6..8].fill(0xff);
            Told::Message(bytes)
        }),
        ..FAILING
    },
    Kind {
        name: "dns-bad-length",
        about: "an address of three bytes",
        dns: Some(|q| Told::Message(answer(q, &[record(&wire(q.name), q.kind, &[127, 9, 9])]))),
        ..FAILING
    },
    Kind {
        name: "dns-noise",
        about: "bytes without sense in place of an answer",
        dns: Some(|q| Told::Message([&q.message[..2], &[0x5a; 300]].concat())),
        ..FAILING
    },
    Kind {
        name: "dns-echo",
        about: "sends the question back",
        dns: Some(|q| Told::Message(q.message.to_vec())),
        ..FAILING
    },
    Kind {
        name: "dns-inside",
        about: "links to names at every class of IPv4 address that is not global",
        ends: INSIDE_V4_ENDS,
        serve: Serve::Reply(|asked| inside_page(asked, &INSIDE_V4.map(|(label, _)| label))),
        dns: Some(inside),
        ..FOUND
    },
    Kind {
        name: "dns-inside-v6",
        about: "links to names at every class of IPv6 address that is not global or embeds such an IPv4 address",
        serve: Serve::Reply(|asked| inside_page(asked, &INSIDE_V6.map(|(label, _)| label))),
        dns: Some(inside),
        ..FOUND
    },
];

/// Addresses of every class of IPv4 that is not global, by the label of the name that leads there.
pub const INSIDE_V4: [(&str, &str); 16] = [
    ("unspecified", "0.0.0.0"),
    ("this-network", "0.1.2.3"),
    ("loopback", "127.9.0.1"),
    ("private-10", "10.0.0.1"),
    ("private-172", "172.16.0.1"),
    ("private-192", "192.168.0.1"),
    ("link-local", "169.254.169.254"),
    ("carrier", "100.64.0.1"),
    ("benchmark", "198.18.0.1"),
    ("example", "192.0.2.1"),
    ("example-three", "203.0.113.1"),
    ("ietf", "192.0.0.1"),
    ("relay", "192.88.99.1"),
    ("multicast", "224.0.0.1"),
    ("reserved", "240.0.0.1"),
    ("broadcast", "255.255.255.255"),
];

/// The same of IPv6, and every form in which an IPv4 address hides in an IPv6 address.
pub const INSIDE_V6: [(&str, &str); 23] = [
    ("unspecified", "::"),
    ("loopback", "::1"),
    ("unique-local", "fd00::1"),
    ("link-local", "fe80::1"),
    ("site-local", "fec0::1"),
    ("multicast", "ff02::1"),
    ("example", "2001:db8::1"),
    ("example-long", "3fff::1"),
    ("discard", "100::1"),
    ("benchmark", "2001:2::1"),
    ("ietf", "2001:10::1"),
    ("srv6", "5f00::1"),
    ("unassigned", "4000::1"),
    ("mapped", "::ffff:127.9.0.1"),
    ("mapped-private", "::ffff:10.0.0.1"),
    ("compatible", "::127.9.0.1"),
    ("translated", "::ffff:0:127.9.0.1"),
    ("nat64", "64:ff9b::127.9.0.1"),
    ("nat64-link-local", "64:ff9b::169.254.169.254"),
    ("nat64-local", "64:ff9b:1::7f09:1"),
    ("six-to-four", "2002:7f09:1::1"),
    ("teredo", "2001:0:7f09:1::f7f7:f7f7"),
    ("isatap", "2606:4700::5efe:127.9.0.1"),
];

/// Both hosts' ends, with the addresses of IPv4: those of IPv6 are looked up only where that is asked for.
const INSIDE_V4_ENDS: &[End] = &[
    End::of("/", Outcome::Ok),
    blocked("http://unspecified.dns-inside-hostile.example:{port}/"),
    blocked("http://this-network.dns-inside-hostile.example:{port}/"),
    blocked("http://loopback.dns-inside-hostile.example:{port}/"),
    blocked("http://private-10.dns-inside-hostile.example:{port}/"),
    blocked("http://private-172.dns-inside-hostile.example:{port}/"),
    blocked("http://private-192.dns-inside-hostile.example:{port}/"),
    blocked("http://link-local.dns-inside-hostile.example:{port}/"),
    blocked("http://carrier.dns-inside-hostile.example:{port}/"),
    blocked("http://benchmark.dns-inside-hostile.example:{port}/"),
    blocked("http://example.dns-inside-hostile.example:{port}/"),
    blocked("http://example-three.dns-inside-hostile.example:{port}/"),
    blocked("http://ietf.dns-inside-hostile.example:{port}/"),
    blocked("http://relay.dns-inside-hostile.example:{port}/"),
    blocked("http://multicast.dns-inside-hostile.example:{port}/"),
    blocked("http://reserved.dns-inside-hostile.example:{port}/"),
    blocked("http://broadcast.dns-inside-hostile.example:{port}/"),
];

const fn blocked(url: &'static str) -> End {
    End::of(url, Outcome::BlockedAddress)
}

fn inside_page(asked: &Asked<'_>, labels: &[&str]) -> Reply {
    let url = |label: &&str| format!("http://{label}.{}:{}/", asked.host, asked.place.port);
    page::home(asked.host, 0, labels.iter().map(url))
}

/// Every label has its address, of whichever family that is.
fn inside(question: &Question<'_>) -> Told {
    let Some((label, host)) = question.name.split_once('.').filter(|(_, host)| host.contains('.')) else {
        return own(question, TTL_S);
    };
    let classes: &[(&str, &str)] = if host.starts_with("dns-inside-v6") { &INSIDE_V6 } else { &INSIDE_V4 };
    let found = classes.iter().find(|(known, _)| *known == label).and_then(|(_, address)| address.parse().ok());
    found.map_or(Told::Code(NXDOMAIN), |address| addresses(&[address], TTL_S))
}

fn addresses(addresses: &[IpAddr], ttl_s: u32) -> Told {
    Told::Addresses { addresses: addresses.to_vec(), ttl_s }
}

/// The address of the kind whose name was asked for.
fn own_address(name: &str) -> IpAddr {
    kind_of(name).map_or(FORBIDDEN, address_of).into()
}

fn own(question: &Question<'_>, ttl_s: u32) -> Told {
    addresses(&[own_address(question.name)], ttl_s)
}

/// `l1` in front of the name, or the next number.
fn next_link(name: &str) -> String {
    let numbered = name.split_once('.').and_then(|(label, rest)| Some((label.strip_prefix('l')?, rest)));
    match numbered.and_then(|(number, rest)| Some((number.parse::<u32>().ok()?, rest))) {
        Some((number, rest)) => format!("l{}.{rest}", number + 1),
        None => format!("l1.{name}"),
    }
}

/// A name as length-prefixed labels. Characters beyond ASCII stand for single bytes, as the server reads them.
fn wire(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(label.chars().count() as u8);
        bytes.extend(label.chars().map(|c| c as u8));
    }
    bytes.push(0);
    bytes
}

fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = owner.to_vec();
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&1_u16.to_be_bytes());
    bytes.extend_from_slice(&TTL_S.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn alias(owner: &[u8], target: &[u8]) -> Vec<u8> {
    record(owner, CNAME, target)
}

fn address(owner: &[u8], address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => record(owner, A, &v4.octets()),
        IpAddr::V6(v6) => record(owner, AAAA, &v6.octets()),
    }
}

/// The message that repeats the question and gives these records.
fn answer(question: &Question<'_>, records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = question.message[..question.end].to_vec();
    (bytes[2], bytes[3]) = (0x84, 0x80);
    for (at, count) in [(4, 1), (6, records.len() as u16), (8, 0), (10, 0)] {
        bytes[at..at + 2].copy_from_slice(&count.to_be_bytes());
    }
    bytes.extend(records.iter().flatten());
    bytes
}

fn truncated(question: &Question<'_>) -> Told {
    let mut bytes = answer(question, &[]);
    bytes[2] |= 2;
    Told::Message(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::SUFFIX;
    use rhumb_core::net::classify;

    #[test]
    fn no_inside_address_is_global_and_each_has_its_end() {
        for (label, address) in INSIDE_V4.into_iter().chain(INSIDE_V6) {
            let class = classify(address.parse().unwrap());
            assert!(!class.is_global(), "{label} {address} {class}");
        }
        let urls: Vec<String> =
            INSIDE_V4.map(|(label, _)| format!("http://{label}.dns-inside{SUFFIX}:{{port}}/")).to_vec();
        let ends: Vec<&str> = INSIDE_V4_ENDS.iter().skip(1).map(|end| end.url).collect();
        assert_eq!(ends, urls);
    }

    #[test]
    fn chains_count_on() {
        assert_eq!(next_link("a-hostile.example"), "l1.a-hostile.example");
        assert_eq!(next_link("l1.a-hostile.example"), "l2.a-hostile.example");
        assert_eq!(next_link("l19.a-hostile.example"), "l20.a-hostile.example");
    }
}
