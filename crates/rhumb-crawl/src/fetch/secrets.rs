//! What is sent to one origin and to no other: credentials that the user gave for it, and cookies that it set.
//!
//! Both are bound to scheme, name and port. A redirect, a link, a sub-domain or another port never gets them; `Domain=` in a
//! cookie is not honoured, so there is no public suffix to get wrong. Cookies are kept only if the user asked for them, in
//! memory, and are gone with the process. Values come from servers: what cannot stand in a header is not kept.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, HeaderValue, header};
use rhumb_core::url::{Host, Url};

/// Cookies of one origin.
const COOKIES_MAX: usize = 50;
/// Name and value of one.
const COOKIE_BYTES_MAX: usize = 4 << 10;
/// Bytes of a `Cookie` header, so that a server cannot make us send it kilobytes with every request.
const HEADER_BYTES_MAX: usize = 8 << 10;
/// Origins whose cookies are kept; the one that set its first one longest ago is forgotten.
const ORIGINS_MAX: usize = 4_096;
/// The longest a cookie is kept.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// An `Authorization` header for one origin.
#[derive(Clone)]
pub struct Credential {
    /// Who gets it.
    pub origin: Host,
    /// The value.
    pub authorization: HeaderValue,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential for {}", self.origin.as_str())
    }
}

/// See the module's header.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    credentials: Vec<Credential>,
    cookies: Option<Mutex<Jar>>,
}

impl Secrets {
    pub fn new(credentials: Vec<Credential>, cookies: bool) -> Secrets {
        Secrets { credentials, cookies: cookies.then(Mutex::default) }
    }

    /// The `Authorization` for this very origin.
    pub fn authorization(&self, url: &Url) -> Option<&HeaderValue> {
        let credential = self.credentials.iter().find(|c| c.origin.as_str() == url.origin());
        credential.map(|c| &c.authorization)
    }

    /// The `Cookie` header for a URL.
    pub fn cookie(&self, url: &Url) -> Option<HeaderValue> {
        let jar = self.cookies.as_ref()?.lock().expect("nobody panics while holding the cookies");
        jar.header(url, Instant::now())
    }

    /// Keeps what a response set, if cookies are wanted at all.
    pub fn learn(&self, url: &Url, headers: &HeaderMap) {
        let Some(jar) = &self.cookies else { return };
        let mut jar = jar.lock().expect("nobody panics while holding the cookies");
        for value in headers.get_all(header::SET_COOKIE).iter().take(COOKIES_MAX) {
            if let Ok(text) = value.to_str() {
                jar.set(url, text, Instant::now(), SystemTime::now());
            }
        }
    }
}

#[derive(Debug, Default)]
struct Jar {
    by_origin: HashMap<Host, Vec<Cookie>>,
    /// Origins in the order of their first cookie.
    order: VecDeque<Host>,
}

#[derive(Debug)]
struct Cookie {
    name: String,
    value: String,
    path: String,
    expires: Instant,
}

impl Jar {
    fn header(&self, url: &Url, now: Instant) -> Option<HeaderValue> {
        let cookies = self.by_origin.get(&url.host())?;
        let mut fit: Vec<&Cookie> =
            cookies.iter().filter(|c| c.expires > now && path_matches(url.path(), &c.path)).collect();
        // Longer paths first, as RFC 6265 wants it.
        fit.sort_by_key(|c| std::cmp::Reverse(c.path.len()));
        let mut text = String::new();
        for cookie in fit {
            if text.len() + cookie.name.len() + cookie.value.len() + 3 > HEADER_BYTES_MAX {
                break;
            }
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.extend([&cookie.name, "=", &cookie.value]);
        }
        HeaderValue::from_str(&text).ok().filter(|v| !v.is_empty())
    }

    /// Takes in one `Set-Cookie` value (RFC 6265, section 5.2, without `Domain`).
    fn set(&mut self, url: &Url, text: &str, now: Instant, clock: SystemTime) {
        let mut parts = text.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim(), value.trim());
        let plain = |text: &str| text.bytes().all(|b| (0x21..0x7f).contains(&b) && b != b';' && b != b',' || b == b' ');
        if name.is_empty() || name.len() + value.len() > COOKIE_BYTES_MAX || !plain(name) || !plain(value) {
            return;
        }
        let mut path = default_path(url.path());
        let (mut age, mut max_age) = (AGE_MAX, None);
        for part in parts.take(16) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            if key.eq_ignore_ascii_case("path") && value.starts_with('/') && plain(value) {
                path = value.to_string();
            } else if key.eq_ignore_ascii_case("max-age") {
                max_age = value.parse::<i64>().ok().map(|s| Duration::from_secs(s.max(0) as u64)).or(max_age);
            } else if key.eq_ignore_ascii_case("expires")
                && let Ok(at) = httpdate::parse_http_date(value)
            {
                age = at.duration_since(clock).unwrap_or_default();
            }
        }
        let age = max_age.unwrap_or(age).min(AGE_MAX);
        let host = url.host();
        if !self.by_origin.contains_key(&host) {
            if self.order.len() >= ORIGINS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_origin.remove(&oldest);
            }
            self.order.push_back(host.clone());
        }
        let cookies = self.by_origin.entry(host).or_default();
        cookies.retain(|c| c.expires > now && !(c.name == name && c.path == path));
        if !age.is_zero() && cookies.len() < COOKIES_MAX {
            cookies.push(Cookie { name: name.to_string(), value: value.to_string(), path, expires: now + age });
        }
    }
}

fn default_path(path: &str) -> String {
    match path.rfind('/') {
        None | Some(0) => "/".to_string(),
        Some(at) => path[..at].to_string(),
    }
}

fn path_matches(path: &str, cookie: &str) -> bool {
    path.strip_prefix(cookie).is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect(text)
    }

    fn sent(set: &[(&str, &str)], to: &str) -> Option<String> {
        let secrets = Secrets::new(Vec::new(), true);
        for (from, value) in set {
            let mut headers = HeaderMap::new();
            headers.insert(header::SET_COOKIE, HeaderValue::from_str(value).expect("a header"));
            secrets.learn(&url(from), &headers);
        }
        secrets.cookie(&url(to)).map(|v| v.to_str().expect("text").to_string())
    }

    #[test]
    fn cookies_go_back_to_their_origin_alone() {
        let check = |set: &str, to: &str, expected: Option<&str>| {
            assert_eq!(sent(&[("https://a.example.org/x/y", set)], to).as_deref(), expected, "{set} to {to}");
        };
        check("n=1; Path=/", "https://a.example.org/", Some("n=1"));
        check("n=1; Path=/", "http://a.example.org/", None);
        check("n=1; Path=/", "https://a.example.org:8443/", None);
        check("n=1; Path=/; Domain=example.org", "https://b.example.org/", None);
        check("n=1; Path=/; Domain=org", "https://other.org/", None);
        check("n=1", "https://a.example.org/x/z", Some("n=1"));
        check("n=1", "https://a.example.org/xx", None);
        check("n=1; Path=/x/", "https://a.example.org/x/z", Some("n=1"));
        check("n=1; Path=/; Max-Age=0", "https://a.example.org/", None);
        check("n=1; Path=/; Expires=Wed, 21 Oct 2015 07:28:00 GMT", "https://a.example.org/", None);
        check("n=1; Path=/; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Max-Age=60", "https://a.example.org/", Some("n=1"));
        check("no pair", "https://a.example.org/x/y", None);
        check("n=\"a b\"; Path=/", "https://a.example.org/", Some("n=\"a b\""));
        check("=1; Path=/", "https://a.example.org/", None);
        check(&format!("n={}; Path=/", "x".repeat(5000)), "https://a.example.org/", None);
    }

    #[test]
    fn cookies_are_replaced_and_bounded() {
        let from = "http://a.test/";
        assert_eq!(sent(&[(from, "n=1"), (from, "n=2")], from).as_deref(), Some("n=2"));
        assert_eq!(sent(&[(from, "n=1"), (from, "n=2; max-age=0")], from), None);
        let many: Vec<String> = (0..500).map(|i| format!("n{i}={}", "x".repeat(1000))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|c| (from, c.as_str())).collect();
        assert!(sent(&many, from).is_some_and(|h| h.len() <= HEADER_BYTES_MAX));
    }

    #[test]
    fn nothing_is_kept_unless_it_was_asked_for() {
        let secrets = Secrets::new(Vec::new(), false);
        let mut headers = HeaderMap::new();
        headers.insert(header::SET_COOKIE, HeaderValue::from_static("n=1"));
        secrets.learn(&url("http://a.test/"), &headers);
        assert_eq!(secrets.cookie(&url("http://a.test/")), None);
    }

    #[test]
    fn credentials_are_for_one_origin() {
        let origin = Host::parse("https://a.test:8443").expect("an origin");
        let authorization = HeaderValue::from_static("Basic eDp5");
        let secrets = Secrets::new(vec![Credential { origin, authorization }], false);
        let check = |to: &str, expected: bool| assert_eq!(secrets.authorization(&url(to)).is_some(), expected, "{to}");
        check("https://a.test:8443/any", true);
        check("https://a.test/any", false);
        check("http://a.test:8443/any", false);
        check("https://b.a.test:8443/any", false);
        assert!(!format!("{secrets:?}").contains("eDp5"), "a secret is not printed");
    }
}
