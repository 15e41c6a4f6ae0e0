//! Which addresses we may connect to.
//!
//! Invariant: an address passes only if it is globally routable, and so is every IPv4 address embedded in it; or if the
//! user said otherwise, by network or by naming that very host. A crawler is a machine that connects wherever strangers
//! tell it to, so this is judged on the address about to be dialled, at every hop, never on a name.
//!
//! Classes follow IANA's special-purpose registries (RFC 6890). Where these leave "globally reachable" open (6to4,
//! Teredo, the 6to4 relay anycast) the answer is no: no web server lives there.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::url::Url;

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AddressClass {
    /// Anyone on the Internet may reach it.
    Global,
    /// `0.0.0.0` and `::`; connecting there reaches this machine.
    Unspecified,
    /// The rest of `0.0.0.0/8`.
    ThisNetwork,
    /// This machine.
    Loopback,
    /// RFC 1918.
    Private,
    /// `169.254.0.0/16` (where clouds keep their credentials) and `fe80::/10`.
    LinkLocal,
    /// Carrier-grade NAT, `100.64.0.0/10`.
    CarrierNat,
    /// Benchmarking.
    Benchmark,
    /// Examples in books.
    Documentation,
    /// Protocol assignments of the IETF, `192.0.0.0/24` and `2001::/23`, but for their globally reachable exceptions.
    Ietf,
    /// Multicast.
    Multicast,
    /// `255.255.255.255`.
    Broadcast,
    /// Not assigned to anyone.
    Reserved,
    /// `fc00::/7`.
    UniqueLocal,
    /// `fec0::/10`, deprecated.
    SiteLocal,
    /// `100::/64`.
    Discard,
    /// `2001::/32`.
    Teredo,
    /// `2002::/16` and the relays at `192.88.99.0/24`.
    SixToFour,
    /// `64:ff9b:1::/48`, translation within one network.
    Nat64Local,
    /// `::/96`, deprecated.
    V4Compatible,
    /// Segment routing identifiers, `5f00::/16`.
    Srv6,
}

impl AddressClass {
    /// A stable name for JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            AddressClass::Global => "global",
            AddressClass::Unspecified => "unspecified",
            AddressClass::ThisNetwork => "this_network",
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::LinkLocal => "link_local",
            AddressClass::CarrierNat => "carrier_nat",
            AddressClass::Benchmark => "benchmark",
            AddressClass::Documentation => "documentation",
            AddressClass::Ietf => "ietf",
            AddressClass::Multicast => "multicast",
            AddressClass::Broadcast => "broadcast",
            AddressClass::Reserved => "reserved",
            AddressClass::UniqueLocal => "unique_local",
            AddressClass::SiteLocal => "site_local",
            AddressClass::Discard => "discard",
            AddressClass::Teredo => "teredo",
            AddressClass::SixToFour => "six_to_four",
            AddressClass::Nat64Local => "nat64_local",
            AddressClass::V4Compatible => "v4_compatible",
            AddressClass::Srv6 => "srv6",
        }
    }

    /// Whether anyone on the Internet may reach it.
    pub fn is_global(self) -> bool {
        self == AddressClass::Global
    }

    /// This class, unless the embedded address is of a worse one.
    fn unless(self, embedded: AddressClass) -> AddressClass {
        if embedded.is_global() { self } else { embedded }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Tells what an address is for. An embedded IPv4 address that is not global decides.
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [0, 0, 0, 0] => AddressClass::Unspecified,
        [0, ..] => AddressClass::ThisNetwork,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [169, 254, ..] => AddressClass::LinkLocal,
        [100, 64..=127, ..] => AddressClass::CarrierNat,
        [198, 18 | 19, ..] => AddressClass::Benchmark,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Documentation,
        // Port Control Protocol and TURN anycast.
        [192, 0, 0, 9 | 10] => AddressClass::Global,
        [192, 0, 0, _] => AddressClass::Ietf,
        [192, 88, 99, _] => AddressClass::SixToFour,
        [224..=239, ..] => AddressClass::Multicast,
        [255, 255, 255, 255] => AddressClass::Broadcast,
        [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Global,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let s = address.segments();
    let v4 = |high: u16, low: u16| classify_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    let class = match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // The kernel dials the IPv4 address, so nothing but that counts.
        [0, 0, 0, 0, 0, 0xffff, high, low] => v4(high, low),
        // RFC 2765's translated form differs from the mapped one by 16 bits.
        [0, 0, 0, 0, 0xffff, 0, high, low] => AddressClass::Reserved.unless(v4(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] => AddressClass::V4Compatible.unless(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x64, 0xff9b, 1, ..] => AddressClass::Nat64Local,
        [0x100, 0, 0, 0, ..] => AddressClass::Discard,
        // The server stands in clear, the client with all bits flipped.
        [0x2001, 0, high, low, _, _, c, d] => AddressClass::Teredo.unless(v4(high, low)).unless(v4(!c, !d)),
        [0x2001, 1, 0, 0, 0, 0, 0, 1..=3] | [0x2001, 3, ..] | [0x2001, 4, 0x112, ..] => AddressClass::Global,
        [0x2001, 2, 0, ..] => AddressClass::Benchmark,
        // ORCHIDv2 and drone identifiers.
        [0x2001, 0x20..=0x3f, ..] => AddressClass::Global,
        [0x2001, 0..=0x1ff, ..] => AddressClass::Ietf,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Documentation,
        [0x2002, high, low, ..] => AddressClass::SixToFour.unless(v4(high, low)),
        [0x2000..=0x3fff, ..] => AddressClass::Global,
        [0x5f00, ..] => AddressClass::Srv6,
        [0xfc00..=0xfdff, ..] => AddressClass::UniqueLocal,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xfec0..=0xfeff, ..] => AddressClass::SiteLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        _ => AddressClass::Reserved,
    };
    // ISATAP (RFC 5214) puts the IPv4 address into the interface identifier of any prefix.
    match s {
        [.., 0 | 0x200, 0x5efe, high, low] if class.is_global() => class.unless(v4(high, low)),
        _ => class,
    }
}

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

/// A text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a network such as 10.0.0.0/8 or fd00::/8")]
pub struct CidrError(String);

impl Cidr {
    /// Whether the address lies in this network. An IPv4 address in IPv6 clothing (`::ffff:…`) counts as itself.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => mask_v4(address, self.prefix) == network,
            (IpAddr::V6(network), IpAddr::V6(address)) => mask_v6(address, self.prefix) == network,
            _ => false,
        }
    }
}

fn mask_v4(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(address.to_bits() & u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0))
}

fn mask_v6(address: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0))
}

impl FromStr for Cidr {
    type Err = CidrError;

    /// Bits beyond the prefix are cleared; an address alone is a network of one.
    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let error = || CidrError(text.to_owned());
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let mut address: IpAddr = address.parse().map_err(|_| error())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let mut prefix = match prefix {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| error())?,
            Some(_) => return Err(error()),
            None => bits,
        };
        if prefix > bits {
            return Err(error());
        }
        // A network of mapped addresses is the IPv4 network, as `contains` unwraps what it is asked about.
        if let (IpAddr::V6(_), IpAddr::V4(inner), 96..) = (address, address.to_canonical(), prefix) {
            (address, prefix) = (IpAddr::V4(inner), prefix - 96);
        }
        let address = match address {
            IpAddr::V4(address) => IpAddr::V4(mask_v4(address, prefix)),
            IpAddr::V6(address) => IpAddr::V6(mask_v6(address, prefix)),
        };
        Ok(Cidr { address, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cidr, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A connection that must not be made. The address itself is left out: error texts travel further than they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address is not globally routable ({class}); --allow-net permits a network")]
pub struct Refused {
    /// What the address is.
    pub class: AddressClass,
}

/// Decides about addresses: global ones, and what the user allowed beyond them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Networks that the user allowed.
    pub allow: Vec<Cidr>,
    /// Host names (an IPv6 address in brackets) and ports that the user named as seeds.
    pub allow_hosts: BTreeSet<(String, u16)>,
}

impl Guard {
    /// Lets a seed's host through if it is plainly meant to be local: an address that is not global, or a name that
    /// cannot be public. Other names are not let through, or whoever runs their DNS could point us inwards.
    pub fn allow_seed(&mut self, seed: &Url) {
        if !seed.rules().needs_dns {
            return;
        }
        let local = match seed.ip_literal() {
            Some(address) => !classify(address).is_global(),
            None => is_local_name(seed.host_str()),
        };
        if local {
            self.allow_hosts.insert((seed.host_str().to_owned(), seed.port()));
        }
    }

    /// Whether to connect to this address for this host. Judged on the very address that is dialled, on every hop.
    pub fn judge(&self, host_name: &str, port: u16, address: IpAddr) -> Result<(), Refused> {
        let class = classify(address);
        if class.is_global() || self.allow.iter().any(|network| network.contains(address)) {
            return Ok(());
        }
        // Few seeds are local, so the key is built only when there are any.
        if !self.allow_hosts.is_empty() && self.allow_hosts.contains(&(host_name.to_ascii_lowercase(), port)) {
            return Ok(());
        }
        Err(Refused { class })
    }
}

/// Names that no public resolver answers for: single labels and the domains set aside by RFC 6761, 6762, 8375 and ICANN.
fn is_local_name(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    !name.contains('.') || matches!(last, "localhost" | "local" | "internal" | "test") || name.ends_with(".home.arpa")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        fn check(address: &str, expected: &str) {
            assert_eq!(classify(address.parse().expect(address)).name(), expected, "{address}");
        }
        for global in ["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.0", "192.0.0.9", "192.0.1.1"]
        {
            check(global, "global");
        }
        for global in ["198.17.0.1", "198.20.0.1", "223.255.255.255", "192.31.196.1", "11.0.0.0", "128.0.0.1"] {
            check(global, "global");
        }
        check("0.0.0.0", "unspecified");
        check("0.1.2.3", "this_network");
        check("127.255.0.1", "loopback");
        for private in ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"] {
            check(private, "private");
        }
        check("169.254.169.254", "link_local");
        check("100.64.0.1", "carrier_nat");
        check("198.19.255.255", "benchmark");
        check("203.0.113.7", "documentation");
        check("192.0.0.170", "ietf");
        check("192.88.99.1", "six_to_four");
        check("239.1.2.3", "multicast");
        check("240.0.0.1", "reserved");
        check("255.255.255.255", "broadcast");

        for global in
            ["2606:4700::1111", "2001:4860:4860::8888", "2001:200::1", "2001:1::2", "2001:20::1", "2620:4f:8000::1"]
        {
            check(global, "global");
        }
        check("::", "unspecified");
        check("::1", "loopback");
        check("::ffff:8.8.8.8", "global");
        check("::ffff:127.0.0.1", "loopback");
        check("::ffff:a9fe:a9fe", "link_local");
        check("::ffff:0:10.0.0.1", "private");
        check("::ffff:0:8.8.8.8", "reserved");
        check("::10.0.0.1", "private");
        check("::8.8.8.8", "v4_compatible");
        check("64:ff9b::8.8.8.8", "global");
        check("64:ff9b::10.0.0.1", "private");
        check("64:ff9b::169.254.169.254", "link_local");
        check("64:ff9b:1::8.8.8.8", "nat64_local");
        check("100::1", "discard");
        check("2001:0:808:808::f7f7:f7f7", "teredo");
        check("2001:0:808:808::f5ff:fffe", "private");
        check("2001:0:7f00:1::f7f7:f7f7", "loopback");
        check("2001:2::1", "benchmark");
        check("2001:10::1", "ietf");
        check("2001:1ff::1", "ietf");
        check("2001:db8::1", "documentation");
        check("3fff:fff::1", "documentation");
        check("3fff:1000::1", "global");
        check("2002:0a00:0001::1", "private");
        check("2002:808:808::1", "six_to_four");
        check("2606:4700::5efe:192.168.0.1", "private");
        check("2606:4700::200:5efe:8.8.8.8", "global");
        check("5f00::1", "srv6");
        check("fd00::1", "unique_local");
        check("fe80::1", "link_local");
        check("fec0::1", "site_local");
        check("ff02::1", "multicast");
        check("4000::1", "reserved");
        check("1::1", "reserved");
    }

    #[test]
    fn networks() {
        fn check(network: &str, address: &str, inside: bool) {
            let network: Cidr = network.parse().expect(network);
            assert_eq!(network.contains(address.parse().expect(address)), inside, "{address} in {network}");
        }
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.1.2.3/8", "10.0.0.1", true);
        check("0.0.0.0/0", "1.2.3.4", true);
        check("0.0.0.0/0", "::1", false);
        check("127.0.0.1", "127.0.0.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("10.0.0.0/8", "::ffff:10.0.0.1", true);
        check("::ffff:10.0.0.0/104", "10.2.3.4", true);
        check("fd00::/8", "fdff::1", true);
        check("::/0", "::1", true);
        for bad in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/8/8", "x"] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
        assert_eq!("10.1.2.3/8".parse::<Cidr>().map(|c| c.to_string()), Ok("10.0.0.0/8".into()));
    }

    #[test]
    fn the_guard() {
        let mut guard = Guard { allow: vec!["192.168.7.0/24".parse().expect("network")], ..Default::default() };
        for seed in ["http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/", "http://rebinding.example/"] {
            guard.allow_seed(&Url::parse(seed).expect(seed));
        }
        let check = |host: &str, port, address: &str, expected: Result<(), &str>| {
            let found = guard.judge(host, port, address.parse().expect(address));
            assert_eq!(found.map_err(|refused| refused.class.name()), expected, "{host}:{port} at {address}");
        };
        check("a.example", 80, "8.8.8.8", Ok(()));
        check("a.example", 80, "127.0.0.1", Err("loopback"));
        check("a.example", 80, "192.168.7.9", Ok(()));
        check("a.example", 80, "::ffff:192.168.7.9", Ok(()));
        check("a.example", 80, "192.168.8.9", Err("private"));
        check("127.0.0.1", 8080, "127.0.0.1", Ok(()));
        check("127.0.0.1", 8081, "127.0.0.1", Err("loopback"));
        check("localhost", 80, "::1", Ok(()));
        check("[::1]", 80, "::1", Ok(()));
        check("rebinding.example", 80, "10.0.0.1", Err("private"));
    }
}
