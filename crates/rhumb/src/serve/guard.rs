//! What every request must satisfy, and what every answer carries.
//!
//! A browser sends requests to loopback for any page that asks it to. Such a page must not read the answers: nothing is said
//! about other origins (no CORS), and the Host header must be one of ours, because a name that points elsewhere first and to
//! loopback later (DNS rebinding) would make the stranger's origin the same as ours.
//!
//! One policy is for all answers but two: the page about an archived copy may hold a frame of ours, and the copy itself, which
//! is a stranger's markup, may be in it, be laid out, and do nothing ([`Policy`]).

use std::net::{IpAddr, SocketAddr};

use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_DNS_PREFETCH_CONTROL,
};
use http::{HeaderMap, HeaderName, Method, Response, StatusCode, Uri};

/// A longer request target is refused; URLs themselves have at most 4 KiB.
pub const TARGET_BYTES_MAX: usize = 16 << 10;

/// What a browser may do with an answer. Who answers says so in the answer's extensions; who says nothing gets the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Our own files, and nobody may frame it.
    #[default]
    Usual,
    /// The same, and frames of our own.
    Framing,
    /// Nothing runs, nothing is loaded, nothing is sent, wherever it stands; only we may frame it.
    Inert,
}

const USUAL: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const FRAMING: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                       base-uri 'none'; form-action 'self'; frame-ancestors 'none'; frame-src 'self'";
const INERT: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                     form-action 'none'; frame-ancestors 'self'";

/// The names and addresses that we answer to.
#[derive(Clone, Debug)]
pub struct Hosts {
    listen: IpAddr,
    allowed: Vec<String>,
}

impl Hosts {
    /// Loopback, the address that is listened on, and what is `allowed` beside them.
    pub fn new(listen: SocketAddr, allowed: &[String]) -> Hosts {
        Hosts { listen: listen.ip(), allowed: allowed.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    fn answers_to(&self, authority: &str) -> bool {
        let Some(name) = without_port(authority) else { return false };
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
        if let Ok(address) = bare.parse::<IpAddr>() {
            // An address cannot be made to point elsewhere. If all of them are listened on, any may be ours.
            return address.is_loopback() || address == self.listen || self.listen.is_unspecified();
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        name == "localhost" || self.allowed.contains(&name)
    }
}

/// The host of an authority, or nothing if what follows it is no port.
fn without_port(authority: &str) -> Option<&str> {
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(end);
    let is_port = |text: &str| text.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    (!host.is_empty() && (port.is_empty() || is_port(port))).then_some(host)
}

/// Why a request is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status of the answer.
    pub status: StatusCode,
    /// What to say.
    pub why: &'static str,
}

/// Whether a request may pass.
pub fn judge(hosts: &Hosts, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    let refused = |status, why| Err(Refused { status, why });
    let mut named = headers.get_all(http::header::HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else {
        return refused(StatusCode::BAD_REQUEST, "one Host header is needed");
    };
    let ours = host.to_str().is_ok_and(|host| hosts.answers_to(host))
        && uri.authority().is_none_or(|a| hosts.answers_to(a.as_str()));
    if !ours {
        return refused(
            StatusCode::MISDIRECTED_REQUEST,
            "this server does not answer to that host name; --allow-host NAME adds one",
        );
    }
    if method != Method::GET && method != Method::HEAD {
        return refused(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are understood");
    }
    let target_bytes = uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target_bytes > TARGET_BYTES_MAX {
        return refused(StatusCode::URI_TOO_LONG, "the address is too long");
    }
    Ok(())
}

/// Puts the headers on an answer that all answers have.
pub fn dress<B>(response: &mut Response<B>) {
    let policy = response.extensions().get::<Policy>().copied().unwrap_or_default();
    let (status, headers) = (response.status(), response.headers_mut());
    let text = match policy {
        Policy::Usual => USUAL,
        Policy::Framing => FRAMING,
        Policy::Inert => INERT,
    };
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(text));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // The pages are full of links; nobody is to learn of them before one is followed.
    headers.insert(X_DNS_PREFETCH_CONTROL, HeaderValue::from_static("off"));
    // For browsers that would let a stranger's page embed an answer, if not read it.
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    match policy {
        // Its sandbox is an origin of its own, which this header would have browsers refuse altogether.
        Policy::Inert => drop(headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("inline"))),
        _ => drop(
            headers
                .insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        ),
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_answered_to() {
        let check = |listen: &str, host: &str, expected: bool| {
            let listen: SocketAddr = listen.parse().expect("an address");
            let hosts = Hosts::new(listen, &["graph.example".to_string()]);
            assert_eq!(hosts.answers_to(host), expected, "{host} at {listen}");
        };
        for host in
            ["localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1", "127.0.0.1:80", "127.9.9.9", "[::1]:8080"]
        {
            check("127.0.0.1:8080", host, true);
        }
        check("127.0.0.1:8080", "graph.example", true);
        check("127.0.0.1:8080", "Graph.Example:8080", true);
        for host in [
            "",
            ":80",
            "rebound.example",
            "localhost.rebound.example",
            "127.0.0.1.rebound.example",
            "localhost:80@rebound.example",
            "192.0.2.1",
            "[::2]",
            "[::1",
            "localhost:x",
            "user@localhost",
            "localhost/",
            "2130706433",
        ] {
            check("127.0.0.1:8080", host, false);
        }
        check("192.0.2.1:80", "192.0.2.1", true);
        check("192.0.2.1:80", "192.0.2.2", false);
        check("0.0.0.0:80", "192.0.2.2", true);
        check("0.0.0.0:80", "rebound.example", false);
    }
}
