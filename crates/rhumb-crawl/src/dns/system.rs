//! What is known of names without asking a server: their grammar, the reserved ones, and the system's two files.
//!
//! **Invariant**: a name that reaches the cache or the wire has passed [`canonical_name`]; equal names are equal bytes.
//! Read next: `cache.rs`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use super::DnsError;

/// Servers taken from `resolv.conf`; the C library's own limit.
const SERVERS_MAX: usize = 3;
/// Dotted text of the longest name, without its final dot (RFC 1035: 255 bytes on the wire).
const NAME_CHARS_MAX: usize = 253;
const LABEL_CHARS_MAX: usize = 63;
const DNS_PORT: u16 = 53;

/// A canonical name on the stack: the cached path of a look-up allocates nothing for it.
pub(super) struct CanonicalName {
    len: usize,
    bytes: [u8; NAME_CHARS_MAX + 1],
}

impl CanonicalName {
    pub(super) fn as_str(&self) -> &str {
        // Only ASCII is ever copied in, so the fallback is never taken.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// Lower-cases a name, removes its final dot and checks its grammar: labels of 1 to 63 visible ASCII characters, 253 in
/// all. More than host names may hold is let through (underscores, leading hyphens): such hosts exist and answer.
/// International names come here in their `xn--` form.
pub(super) fn canonical_name(name: &str) -> Result<CanonicalName, DnsError> {
    let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
    let mut canonical = CanonicalName { len: name.len(), bytes: [0; NAME_CHARS_MAX + 1] };
    if name.is_empty() || name.len() > NAME_CHARS_MAX {
        return Err(DnsError::BadName);
    }
    let mut label_chars = 0;
    for (to, &byte) in canonical.bytes.iter_mut().zip(name) {
        if byte == b'.' {
            if label_chars == 0 {
                return Err(DnsError::BadName);
            }
            label_chars = 0;
        } else {
            label_chars += 1;
            if !byte.is_ascii_graphic() || label_chars > LABEL_CHARS_MAX {
                return Err(DnsError::BadName);
            }
        }
        *to = byte.to_ascii_lowercase();
    }
    if label_chars == 0 { Err(DnsError::BadName) } else { Ok(canonical) }
}

/// An address written where a name could stand, with or without the brackets of a URL.
pub(super) fn literal(name: &str) -> Option<IpAddr> {
    let first = *name.as_bytes().first()?;
    if first == b'[' {
        return name.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    // No address begins with a letter beyond f, and most names do not begin with a digit.
    if first.is_ascii_digit() || name.contains(':') { name.parse().ok() } else { None }
}

/// Names whose answer is fixed by RFC 6761 and RFC 7686 and which no server should ever be asked for.
pub(super) fn reserved(name: &str, ipv6: bool) -> Option<Result<Arc<[IpAddr]>, DnsError>> {
    let top = name.rsplit('.').next().unwrap_or(name);
    match top {
        "localhost" if ipv6 => Some(Ok(Arc::new([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]))),
        "localhost" => Some(Ok(Arc::new([Ipv4Addr::LOCALHOST.into()]))),
        "invalid" | "onion" => Some(Err(DnsError::NxDomain)),
        _ => None,
    }
}

/// The name servers of a `resolv.conf`, in its order. Lines that cannot be read are passed over, as the C library does.
pub(super) fn parse_resolv_conf(text: &str) -> Vec<SocketAddr> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            (words.next()? == "nameserver").then(|| words.next()?.parse::<IpAddr>().ok())?
        })
        .take(SERVERS_MAX)
        .map(|ip| SocketAddr::new(ip, DNS_PORT))
        .collect()
}

/// The system's name servers; the loopback address where it names none.
pub(super) fn system_servers() -> Vec<SocketAddr> {
    let servers = std::fs::read_to_string("/etc/resolv.conf").map(|text| parse_resolv_conf(&text)).unwrap_or_default();
    if servers.is_empty() { vec![SocketAddr::from((Ipv4Addr::LOCALHOST, DNS_PORT))] } else { servers }
}

/// Names and their addresses by decree.
pub(super) type Hosts = HashMap<Box<str>, Arc<[IpAddr]>>;

/// Reads a hosts file; one that is missing is empty.
pub(super) fn read_hosts(path: &Path, ipv6: bool) -> Hosts {
    std::fs::read(path).map(|bytes| parse_hosts(&String::from_utf8_lossy(&bytes), ipv6)).unwrap_or_default()
}

/// Reads the text of a hosts file: an address, then its names, `#` to the end of the line a remark. IPv4 addresses come
/// first; IPv6 addresses are left out where the resolver does not ask for them either.
pub(super) fn parse_hosts(text: &str, ipv6: bool) -> Hosts {
    let mut lists: HashMap<Box<str>, Vec<IpAddr>> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let Some(ip) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else { continue };
        if ip.is_ipv6() && !ipv6 {
            continue;
        }
        for name in words.filter_map(|word| canonical_name(word).ok()) {
            let list = lists.entry(name.as_str().into()).or_default();
            if !list.contains(&ip) {
                list.push(ip);
            }
        }
    }
    lists
        .into_iter()
        .map(|(name, mut list)| {
            list.sort_by_key(IpAddr::is_ipv6);
            (name, list.into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        let check = |name: &str, expected: Option<&str>| {
            let canonical = canonical_name(name);
            assert_eq!(canonical.as_ref().ok().map(CanonicalName::as_str), expected, "{name:?}");
        };
        check("Example.COM", Some("example.com"));
        check("example.com.", Some("example.com"));
        check("_sip.a-b.example", Some("_sip.a-b.example"));
        check("-odd-.example", Some("-odd-.example"));
        check("com", Some("com"));
        for bad in ["", ".", "..", "a..b", ".a", "a b", "a\0b", "b\u{fc}cher.example", "a.example.."] {
            check(bad, None);
        }
        check(&"a".repeat(63), Some(&"a".repeat(63)));
        check(&"a".repeat(64), None);
        let longest = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        check(&longest, Some(&longest));
        check(&format!("{longest}b"), None);
    }

    #[test]
    fn addresses_are_their_own_answer() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(literal(name), expected.map(|text| text.parse().expect("an address")), "{name:?}");
        };
        check("192.0.2.7", Some("192.0.2.7"));
        check("[2001:db8::7]", Some("2001:db8::7"));
        check("2001:db8::7", Some("2001:db8::7"));
        for name in ["", "[", "[]", "[192.0.2.7]", "1.example", "256.1.1.1", "example.com"] {
            check(name, None);
        }
    }

    #[test]
    fn reserved_names_are_answered_here() {
        let loopback: Arc<[IpAddr]> = Arc::new([Ipv4Addr::LOCALHOST.into()]);
        assert_eq!(reserved("localhost", false), Some(Ok(loopback.clone())));
        assert_eq!(reserved("web.localhost", false), Some(Ok(loopback)));
        assert_eq!(reserved("localhost", true).map(|answer| answer.map(|list| list.len())), Some(Ok(2)));
        assert_eq!(reserved("a.invalid", false), Some(Err(DnsError::NxDomain)));
        assert_eq!(reserved("abc.onion", false), Some(Err(DnsError::NxDomain)));
        assert_eq!(reserved("notlocalhost", false), None);
        assert_eq!(reserved("localhost.example", false), None);
    }

    #[test]
    fn resolv_conf_is_read_leniently() {
        let text = "# remark\n; remark\nnameserver 192.0.2.1\nnameserver\nnameserver nonsense\nsearch example.com\n\
                    nameserver 2001:db8::1\noptions ndots:2\n nameserver\t192.0.2.3 # tail\nnameserver 192.0.2.4\n";
        let servers: Vec<String> = parse_resolv_conf(text).iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]);
        assert!(parse_resolv_conf("").is_empty());
    }

    #[test]
    fn hosts_are_read_leniently() {
        let text = "::1 box\n192.0.2.1 Box box.example. # remark\n# all remark\nnonsense a b\n192.0.2.2 box\n\
                    192.0.2.2 box\n192.0.2.3\n\u{fffd}";
        let hosts = parse_hosts(text, true);
        let list = |hosts: &Hosts, name: &str| {
            hosts.get(name).map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(list(&hosts, "box").as_deref(), Some("192.0.2.1 192.0.2.2 ::1"));
        assert_eq!(list(&hosts, "box.example").as_deref(), Some("192.0.2.1"));
        assert_eq!(hosts.len(), 2);
        assert_eq!(list(&parse_hosts(text, false), "box").as_deref(), Some("192.0.2.1 192.0.2.2"));
        assert!(read_hosts(Path::new("/no/such/hosts/file"), true).is_empty());
    }
}
