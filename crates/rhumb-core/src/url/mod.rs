//! URLs: one canonical form for each, made in one place.
//!
//! Invariant: the text of a [`Url`] is canonical. It has a scheme that is known, a host (unless the scheme has none), a path that
//! begins with `/`, perhaps a query, and nothing else; parsing it again by the WHATWG rules or normalising it again under the same
//! options gives the same bytes. Equality of pages is therefore equality of strings, and a [`Fingerprint`] of the
//! string stands for the page everywhere else.
//!
//! Read next: `normalize.rs` (how a link becomes a `Url`, and the short cut that most links take), `clean.rs` (what is
//! decoded and what is thrown away), `scheme.rs` (what differs between `http`, `file` and others), `shape.rs` (URLs that look like traps), `whatwg.rs` (the plain standard, for all
//! schemes, as `rhumb url parse` prints it).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64_with_seed;

mod clean;
mod normalize;
pub mod scheme;
mod shape;
mod whatwg;

pub use clean::TRACKING_PARAMS;
pub(crate) use clean::{escape_at, is_unreserved};
pub use normalize::{Base, NormalizeOptions, Normalizer};
pub use scheme::Scheme;
pub use shape::{ShapeLimits, ShapeProblem, shape_problem};
pub use whatwg::whatwg_parse;

/// 64 bits that stand for a URL or a host: XXH3 of its canonical text, keyed.
///
/// Whoever knows how fingerprints are made can make up a URL, or a host name, with the fingerprint of somebody else's: the hash is
/// a sum of products, and two texts that agree in it are a matter of hours. With a key of the crawl's own nobody can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub u64);

/// The key of all fingerprints in this process, which has one crawl to do with.
static KEY: AtomicU64 = AtomicU64::new(0);

impl Fingerprint {
    /// Makes all fingerprints with this key from now on. To be called before there are any; without it the key is 0.
    pub fn set_key(key: u64) {
        KEY.store(key, Ordering::Relaxed);
    }

    /// The key in force.
    pub fn key() -> u64 {
        KEY.load(Ordering::Relaxed)
    }

    /// The fingerprint of a canonical text.
    pub fn of(text: &str) -> Fingerprint {
        Fingerprint(xxh3_64_with_seed(text.as_bytes(), Fingerprint::key()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Why a text is not a URL that we can fetch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The scheme is not one that we can fetch.
    #[error("the scheme {0:?} is neither http nor https")]
    Scheme(String),
    /// The scheme can be fetched, but not because a page of another scheme says so.
    #[error("the scheme {0:?} is not to be reached from a page of another")]
    Closed(&'static str),
    /// A relative reference, and nothing to resolve it against.
    #[error("a relative reference needs a base URL")]
    NoBase,
    /// The host is missing or no resolver could know it.
    #[error("not a usable host: {0}")]
    Host(&'static str),
    /// The canonical form is longer than the configured bound.
    #[error("{bytes} bytes are more than the {max} allowed")]
    TooLong {
        /// Length of what was refused.
        bytes: usize,
        /// The bound in force.
        max: usize,
    },
    /// The WHATWG parser refuses it.
    #[error("not a URL: {0}")]
    Unparsable(&'static str),
}

impl UrlError {
    /// A short stable name for counters and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            UrlError::Scheme(_) | UrlError::Closed(_) => "scheme",
            UrlError::NoBase => "no_base",
            UrlError::Host(_) => "host",
            UrlError::TooLong { .. } => "url_too_long",
            UrlError::Unparsable(_) => "unparsable",
        }
    }
}

/// A canonical URL: one string and where its parts end.
#[derive(Clone)]
pub struct Url {
    text: String,
    /// End of the host name, which begins after `://`.
    host_end: u32,
    /// End of the origin; here the path begins.
    origin_end: u32,
    /// End of the path; here the text ends or the `?` stands.
    path_end: u32,
    port: u16,
    /// Bytes of the scheme's name.
    scheme_len: u8,
    kind: Kind,
}

/// The schemes that nearly all URLs have, so that nobody need compare names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Http,
    Https,
    Other,
}

impl Kind {
    fn of(scheme: &Scheme) -> Kind {
        match scheme.name {
            "http" => Kind::Http,
            "https" => Kind::Https,
            _ => Kind::Other,
        }
    }
}

impl Url {
    /// Parses an absolute URL and brings it into canonical form, keeping every query parameter.
    ///
    /// What any [`Normalizer`] has made comes back unchanged, so this is also how a stored URL is read.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        normalize::parse_plain(text)
    }

    /// Reads back a URL that this program wrote, without making it canonical again. `None` if it cannot be one.
    pub fn from_canonical(text: &str) -> Option<Url> {
        let (scheme, rest) = scheme::split(text)?;
        let path = rest.find('/').filter(|&at| (at > 0) == scheme.has_authority)?;
        rest.as_bytes()[..path].is_ascii().then(|| Url::index(text.to_string(), scheme))
    }

    /// Finds the parts of a text that the caller has already made canonical.
    pub(crate) fn index(text: String, scheme: &Scheme) -> Url {
        let bytes = text.as_bytes();
        let host_start = scheme.name.len() + 3;
        let origin_end = memchr::memchr(b'/', &bytes[host_start..]).map_or(bytes.len(), |at| host_start + at);
        let authority = &bytes[host_start..origin_end];
        // The colons of an IPv6 address stand inside brackets, before the one that begins a port.
        let colon = memchr::memrchr(b':', authority).filter(|&at| memchr::memchr(b']', &authority[at..]).is_none());
        let host_end = host_start + colon.unwrap_or(authority.len());
        let path_end = memchr::memchr(b'?', &bytes[origin_end..]).map_or(bytes.len(), |at| origin_end + at);
        let port = text[host_end..origin_end].strip_prefix(':').and_then(|p| p.parse().ok());
        let port = port.unwrap_or(scheme.default_port);
        Url::from_parts(text, scheme, host_end, origin_end, path_end, port)
    }

    /// Puts a URL together from a canonical text whose parts are known.
    pub(crate) fn from_parts(
        text: String,
        scheme: &Scheme,
        host_end: usize,
        origin_end: usize,
        path_end: usize,
        port: u16,
    ) -> Url {
        let (scheme_len, kind) = (scheme.name.len() as u8, Kind::of(scheme));
        Url::put_together(text, (scheme_len, kind), host_end, origin_end, path_end, port)
    }

    /// The same, with what another URL knows of the scheme.
    fn put_together(
        text: String,
        (scheme_len, kind): (u8, Kind),
        host_end: usize,
        origin_end: usize,
        path_end: usize,
        port: u16,
    ) -> Url {
        debug_assert!(text.len() <= u32::MAX as usize, "the normaliser bounds the length of URLs");
        let (host_end, origin_end, path_end) = (host_end as u32, origin_end as u32, path_end as u32);
        Url { text, host_end, origin_end, path_end, port, scheme_len, kind }
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The scheme's name, such as `https`.
    pub fn scheme(&self) -> &str {
        &self.text[..usize::from(self.scheme_len)]
    }

    /// What holds for all URLs of the scheme.
    pub fn rules(&self) -> &'static Scheme {
        match self.kind {
            Kind::Http => &scheme::HTTP,
            Kind::Https => &scheme::HTTPS,
            Kind::Other => Scheme::of(self.scheme()).expect("no URL is made of a scheme that is not known"),
        }
    }

    /// Whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.kind == Kind::Https
    }

    /// Whether the scheme is `http` or `https`.
    pub fn is_web(&self) -> bool {
        self.kind != Kind::Other
    }

    /// The host as it stands in the URL: a lower-case ASCII name, an IPv4 address, an IPv6 address in brackets, or nothing if the
    /// scheme has no hosts.
    pub fn host_str(&self) -> &str {
        &self.text[self.host_start()..self.host_end as usize]
    }

    /// The port to connect to, the scheme's own if the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `scheme://host`, with `:port` if it is not the scheme's own.
    pub fn origin(&self) -> &str {
        &self.text[..self.origin_end as usize]
    }

    /// What is sent in the request line and what robots.txt is matched against; begins with `/`.
    pub fn path_and_query(&self) -> &str {
        &self.text[self.origin_end as usize..]
    }

    /// The path; begins with `/`.
    pub fn path(&self) -> &str {
        &self.text[self.origin_end as usize..self.path_end as usize]
    }

    /// The query without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.text.get(self.path_end as usize + 1..)
    }

    /// The fingerprint of the whole URL.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.text)
    }

    /// The fingerprint of this URL's [`Host`], without making one.
    pub fn host_fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.origin())
    }

    /// Who we must be polite to when fetching this.
    pub fn host(&self) -> Host {
        Host(self.origin().into())
    }

    /// The address, if the host is one rather than a name.
    pub fn ip_literal(&self) -> Option<IpAddr> {
        ip_of(self.host_str())
    }

    /// The registrable domain by the public suffix list; the host itself for addresses, single labels and suffixes.
    pub fn registrable_domain(&self) -> &str {
        registrable_domain(self.host_str())
    }

    fn host_start(&self) -> usize {
        usize::from(self.scheme_len) + 3
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({})", self.text)
    }
}

impl AsRef<str> for Url {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<Url> for String {
    fn from(url: Url) -> String {
        url.text
    }
}

impl PartialEq for Url {
    fn eq(&self, other: &Url) -> bool {
        self.text == other.text
    }
}

impl Eq for Url {}

impl PartialOrd for Url {
    fn partial_cmp(&self, other: &Url) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Url {
    fn cmp(&self, other: &Url) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for Url {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl std::str::FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        Url::parse(text)
    }
}

impl Serialize for Url {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
        let text = String::deserialize(deserializer)?;
        Url::parse(&text).map_err(serde::de::Error::custom)
    }
}

fn registrable_domain(host: &str) -> &str {
    if ip_of(host).is_some() { host } else { psl::domain_str(host).unwrap_or(host) }
}

/// Who we are polite to: scheme, name and port, as one origin string; `file://` is the one host of all files. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Arc<str>);

impl Host {
    /// Reads back what [`Host::as_str`] gave.
    pub fn parse(origin: &str) -> Result<Host, UrlError> {
        let url = Url::parse(origin)?;
        if url.path_and_query() == "/" { Ok(url.host()) } else { Err(UrlError::Unparsable("an origin has no path")) }
    }

    /// Reads back a host that this program wrote. `None` if it cannot be one.
    pub fn from_canonical(origin: &str) -> Option<Host> {
        let (scheme, rest) = scheme::split(origin)?;
        let named = rest.is_empty() != scheme.has_authority;
        (rest.is_ascii() && named && !rest.contains('/')).then(|| Host(origin.into()))
    }

    /// `scheme://name`, with `:port` if it is not the scheme's own.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the host keeps its rules for robots.
    pub fn robots_url(&self) -> Url {
        Url::index(format!("{}/robots.txt", self.0), self.rules())
    }

    /// Where a host keeps its sitemap if it does not say otherwise.
    pub fn sitemap_url(&self) -> Url {
        Url::index(format!("{}/sitemap.xml", self.0), self.rules())
    }

    /// The address, if the host is one rather than a name.
    pub fn ip_literal(&self) -> Option<IpAddr> {
        ip_of(self.name())
    }

    /// The registrable domain, as [`Url::registrable_domain`] gives it.
    pub fn registrable_domain(&self) -> &str {
        registrable_domain(self.name())
    }

    /// The fingerprint of the origin.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.0)
    }

    /// The host name or address, an IPv6 address in brackets.
    pub fn name(&self) -> &str {
        self.split().0
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.split().1.parse().unwrap_or(self.rules().default_port)
    }

    /// The scheme's name, such as `https`.
    pub fn scheme(&self) -> &str {
        self.rules().name
    }

    /// What holds for all hosts of the scheme.
    pub fn rules(&self) -> &'static Scheme {
        scheme::split(&self.0).expect("no host is made of a scheme that is not known").0
    }

    fn split(&self) -> (&str, &str) {
        let authority = &self.0[self.scheme().len() + 3..];
        match authority.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port),
            _ => (authority, ""),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Host {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Host, D::Error> {
        let origin = String::deserialize(deserializer)?;
        Host::parse(&origin).map_err(serde::de::Error::custom)
    }
}

/// The address that a canonical host string spells, brackets or not.
pub(crate) fn ip_of(host: &str) -> Option<IpAddr> {
    match host.as_bytes() {
        [b'[', .., b']'] => host[1..host.len() - 1].parse().ok().map(IpAddr::V6),
        // A canonical name never begins with a digit and parses as an address, so letters need no attempt.
        [b'0'..=b'9', ..] => host.parse().ok().map(IpAddr::V4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        fn check(text: &str, parts: (&str, &str, u16, &str, &str, Option<&str>, &str)) {
            let url = Url::parse(text).expect(text);
            let domain = url.registrable_domain();
            let found = (url.scheme(), url.host_str(), url.port(), url.origin(), url.path(), url.query(), domain);
            assert_eq!(found, parts, "{text}");
            assert_eq!(url.path_and_query(), &url.as_str()[url.origin().len()..]);
            let host = url.host();
            assert_eq!((host.scheme(), host.name(), host.port()), (url.scheme(), url.host_str(), url.port()));
            assert_eq!(Host::parse(host.as_str()), Ok(host));
            assert_eq!(url.host_fingerprint(), url.host().fingerprint());
        }
        check("http://a.b.co.uk", ("http", "a.b.co.uk", 80, "http://a.b.co.uk", "/", None, "b.co.uk"));
        check("https://x.org:444/p?q", ("https", "x.org", 444, "https://x.org:444", "/p", Some("q"), "x.org"));
        check("http://[::1]/", ("http", "[::1]", 80, "http://[::1]", "/", None, "[::1]"));
        check("http://[::1]:81/?a", ("http", "[::1]", 81, "http://[::1]:81", "/", Some("a"), "[::1]"));
        check("https://10.0.0.1/a:b", ("https", "10.0.0.1", 443, "https://10.0.0.1", "/a:b", None, "10.0.0.1"));
        check("http://localhost:8080/", ("http", "localhost", 8080, "http://localhost:8080", "/", None, "localhost"));
        check("http://co.uk/", ("http", "co.uk", 80, "http://co.uk", "/", None, "co.uk"));
    }

    #[test]
    fn addresses_are_recognised() {
        let ip = |text: &str| Url::parse(text).expect(text).ip_literal().map(|ip| ip.to_string());
        assert_eq!(ip("http://0x7f.1/"), Some("127.0.0.1".into()));
        assert_eq!(ip("http://[::FFFF:127.0.0.1]/"), Some("::ffff:127.0.0.1".into()));
        assert_eq!(ip("http://1.example/"), None);
        assert_eq!(ip("http://abc/"), None);
    }

    #[test]
    fn serde_is_a_string_and_refuses_other_schemes() {
        let url: Url = serde_json::from_str("\"HTTP://A.test/#x\"").expect("parses");
        assert_eq!(serde_json::to_string(&url).expect("writes"), "\"http://a.test/\"");
        assert!(serde_json::from_str::<Url>("\"ftp://a.test/\"").is_err());
        assert_eq!(Fingerprint(0xab).to_string(), "00000000000000ab");
    }
}
