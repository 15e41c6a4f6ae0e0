//! What the DNS server says of hostile names.
//!
//! [`answer`] is the one hook: the server asks it before it looks into its own web. A kind with a `dns` function speaks
//! for itself; the others have their loopback address, and so have their sub-domains, whatever they are called.

use std::net::{IpAddr, Ipv4Addr};

use super::{FORBIDDEN, SUFFIX, address_of, kind_of};

/// A question for the DNS server.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The name asked for, lower case, without a dot at its end.
    pub name: &'a str,
    /// The type asked for: 1 is A, 28 is AAAA.
    pub kind: u16,
    /// How often this name was asked for before.
    pub earlier: u64,
    /// Whether it came as a datagram.
    pub udp: bool,
    /// The whole message.
    pub message: &'a [u8],
    /// Where the question ends in it.
    pub end: usize,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// These addresses, as far as they are of the type asked for.
    Addresses {
        /// IPv4 or IPv6.
        addresses: Vec<IpAddr>,
        /// How long they may be kept.
        ttl_s: u32,
    },
    /// No answer but a code: 2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED.
    Code(u8),
    /// Nothing at all; a connection over TCP stays open.
    Silence,
    /// This message as it stands. If it is empty, a connection over TCP ends.
    Message(Vec<u8>),
}

impl Told {
    /// One address, for as long as usual.
    pub fn address(address: Ipv4Addr) -> Told {
        Told::Addresses { addresses: vec![address.into()], ttl_s: 300 }
    }
}

/// A name that leads to the address that nobody may dial.
pub(super) const INSIDE: &str = "inside";

/// The answer for a name of the hostile web; `None` for all others.
pub(super) fn answer(question: &Question<'_>) -> Option<Told> {
    let name = question.name.strip_suffix(SUFFIX)?;
    if name == INSIDE {
        return Some(Told::address(FORBIDDEN));
    }
    Some(match kind_of(question.name) {
        Some(kind) => kind.dns.map_or_else(|| Told::address(address_of(kind)), |dns| dns(question)),
        None => Told::Code(3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::kinds;

    #[test]
    fn every_name_has_its_answer() {
        let ask = |name: &str| answer(&Question { name, kind: 1, earlier: 0, udp: true, message: &[], end: 0 });
        for kind in kinds().filter(|k| k.dns.is_none()) {
            assert_eq!(ask(&kind.host()), Some(Told::address(address_of(kind))));
            assert_eq!(ask(&format!("x.y.{}", kind.host())), Some(Told::address(address_of(kind))));
        }
        assert_eq!(ask("inside-hostile.example"), Some(Told::address(FORBIDDEN)));
        assert_eq!(ask("nobody-hostile.example"), Some(Told::Code(3)));
        assert_eq!(ask("h0.sim.test"), None);
    }
}
