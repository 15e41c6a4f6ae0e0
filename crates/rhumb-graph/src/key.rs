//! The text by which URLs are sorted: the host name read backwards, then the rest.
//!
//! `https://www.example.com:8443/a?b` has the key `com,example,www)https:8443/a?b`. Pages of a host are neighbours, and so are
//! the hosts of a domain: comma and bracket come before everything that a label of the DNS holds. (URLs may have hosts such
//! as `a*b.example`; these stand between `a.example` and the hosts below it.) Addresses are not turned round:
//! `http://10.0.0.1/` is `10.0.0.1)http/`. A URL without a host, `file:///a`, is `)file/a`. Key and URL tell the same, so
//! only keys are kept.

/// Appends the key of a canonical URL to `into`. False, and nothing appended, for something that is no URL with a path.
pub fn put_key(url: &str, into: &mut Vec<u8>) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let path = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path);
    if !scheme.bytes().all(|b| b.is_ascii_alphanumeric()) || path.is_empty() || authority.contains([',', ')', '@']) {
        return false;
    }
    let port = authority.rfind(':').filter(|&at| !authority[at..].contains(']'));
    let (host, port) = authority.split_at(port.unwrap_or(authority.len()));
    if is_address(host) {
        into.extend_from_slice(host.as_bytes());
    } else {
        for (n, label) in host.rsplit('.').enumerate() {
            if n > 0 {
                into.push(b',');
            }
            into.extend_from_slice(label.as_bytes());
        }
    }
    into.push(b')');
    into.extend_from_slice(scheme.as_bytes());
    into.extend_from_slice(port.as_bytes());
    into.extend_from_slice(path.as_bytes());
    true
}

/// The key of a canonical URL.
pub fn key_of(url: &str) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(url.len());
    put_key(url, &mut key).then_some(key)
}

/// The URL that has this key; nothing if it is no key.
pub fn url_of(key: &[u8]) -> Option<String> {
    let key = std::str::from_utf8(key).ok()?;
    let (host, rest) = key.split_once(')')?;
    let path = rest.find('/')?;
    let (service, path) = rest.split_at(path);
    let (scheme, port) = service.split_at(service.find(':').unwrap_or(service.len()));
    let mut url = String::with_capacity(key.len() + 3);
    url.push_str(scheme);
    url.push_str("://");
    put_host(host, &mut url);
    url.push_str(port);
    url.push_str(path);
    Some(url)
}

/// The part of a key that all pages of its host share, bracket included.
pub fn host_part(key: &[u8]) -> &[u8] {
    let end = key.iter().position(|&b| b == b')').map_or(key.len(), |at| at + 1);
    &key[..end]
}

/// The host name of a key's host part, with or without the bracket.
pub fn host_name(part: &[u8]) -> Option<String> {
    let part = std::str::from_utf8(part).ok()?;
    let mut name = String::with_capacity(part.len());
    put_host(part.strip_suffix(')').unwrap_or(part), &mut name);
    Some(name)
}

/// The host part of the keys of a host, bracket included: where its pages begin.
pub fn host_key(name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 1);
    if is_address(name) {
        key.extend_from_slice(name.as_bytes());
    } else {
        for (n, label) in name.rsplit('.').enumerate() {
            if n > 0 {
                key.push(b',');
            }
            key.extend_from_slice(label.as_bytes());
        }
    }
    key.push(b')');
    key
}

fn put_host(host: &str, into: &mut String) {
    if is_address(host) {
        return into.push_str(host);
    }
    for (n, label) in host.rsplit(',').enumerate() {
        if n > 0 {
            into.push('.');
        }
        into.push_str(label);
    }
}

/// Whether a host is an address: names do not end in a label of digits (WHATWG), and have no bracket.
fn is_address(host: &str) -> bool {
    host.starts_with('[')
        || host.rsplit('.').next().is_some_and(|l| !l.is_empty() && l.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_urls_tell_the_same() {
        for (url, key) in [
            ("https://www.example.com/", "com,example,www)https/"),
            ("https://www.example.com:8443/a?b=/c", "com,example,www)https:8443/a?b=/c"),
            ("http://10.0.0.1:81/x", "10.0.0.1)http:81/x"),
            ("http://[::1]:81/x", "[::1])http:81/x"),
            ("http://[2001:db8::1]/", "[2001:db8::1])http/"),
            ("http://localhost/a)b,c", "localhost)http/a)b,c"),
            ("http://example.com./a", ",com,example)http/a"),
            ("file:///a/b", ")file/a/b"),
        ] {
            assert_eq!(key_of(url).as_deref(), Some(key.as_bytes()), "{url}");
            assert_eq!(url_of(key.as_bytes()).as_deref(), Some(url), "{key}");
        }
        for no_url in ["", "example.com/", "http://a", "http://a,b/", "http://a)b/"] {
            assert_eq!(key_of(no_url), None, "{no_url}");
        }
    }

    #[test]
    fn pages_of_a_host_and_hosts_of_a_domain_are_neighbours() {
        let mut keys: Vec<Vec<u8>> = [
            "https://example.com/z",
            "http://a.example.com/",
            "https://example-site.com/",
            "https://example.com:8443/",
            "https://a-b.example.com/",
            "http://b.a.example.com/",
            "https://examplea.com/",
        ]
        .iter()
        .filter_map(|url| key_of(url))
        .collect();
        keys.sort();
        let urls: Vec<String> = keys.iter().filter_map(|k| url_of(k)).collect();
        assert_eq!(
            urls,
            [
                "https://example.com/z",
                "https://example.com:8443/",
                "http://a.example.com/",
                "http://b.a.example.com/",
                "https://a-b.example.com/",
                "https://example-site.com/",
                "https://examplea.com/",
            ]
        );
        assert_eq!(host_part(b"com,example)https/a"), b"com,example)");
        assert_eq!(host_name(b"com,example)").as_deref(), Some("example.com"));
        assert_eq!(host_key("www.example.com"), b"com,example,www)");
    }
}
