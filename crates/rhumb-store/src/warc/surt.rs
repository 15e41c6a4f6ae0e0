//! Sort keys of URLs: `http://www.Example.com/B?y&x` becomes `com,example)/b?x&y`.
//!
//! The key is what archives look pages up by, so it must be the one their indexers make, oddities included: hosts
//! backwards, `www.` gone, default port gone, everything in lower case, escapes undone and redone once, parameters
//! sorted, well-known session ids cut out. It is coarser than our own canonical URL and used for nothing but the index.

use std::net::Ipv4Addr;

use super::idn;

/// The key of a URL; `-` for none. A URL that cannot be taken apart is its own key.
pub fn surt(url: &str) -> String {
    if url.is_empty() {
        return "-".to_owned();
    }
    if url.starts_with("filedesc") {
        return url.to_owned();
    }
    key_of(url.as_bytes()).unwrap_or_else(|| url.to_owned())
}

fn key_of(url: &[u8]) -> Option<String> {
    let is_space = |b: &u8| b.is_ascii_whitespace() || *b == 0x0b;
    let from = url.iter().position(|b| !is_space(b))?;
    let to = url.iter().rposition(|b| !is_space(b))? + 1;
    let mut url: Vec<u8> = url[from..to].iter().copied().filter(|b| !matches!(b, b'\n' | b'\r' | b'\t')).collect();
    if scheme_length(&url).is_none() {
        url.splice(0..0, *b"http://");
    }
    let url = after_repeated_schemes(&url);

    let scheme = &url[..scheme_length(url)?];
    let rest = &url[scheme.len() + 1..];
    let rest = &rest[..rest.iter().position(|&b| b == b'#').unwrap_or(rest.len())];
    let (rest, query) = cut(rest, b'?');
    let (authority, mut path) = match rest.strip_prefix(b"//") {
        Some(rest) => rest.split_at(rest.iter().position(|&b| b == b'/').unwrap_or(rest.len())),
        None => (&[][..], rest),
    };
    let (mut host, port) = host_and_port(authority)?;
    // `http:////host/path`: too many slashes, or none.
    let moved;
    if host.is_empty() && scheme.starts_with(b"http") && !path.is_empty() {
        let start = path.iter().position(|&b| b != b'/').unwrap_or(path.len());
        let (name, below) = cut(&path[start..], b'/');
        host = name.to_vec();
        moved = [b"/", below.unwrap_or_default()].concat();
        path = &moved;
    }

    let mut host = canonical_host(&host);
    let mut key = Vec::with_capacity(url.len());
    let path = if host.is_empty() {
        key.extend_from_slice(scheme);
        key.push(b':');
        path_key(&escape(&unescape(path)))
    } else {
        if scheme != b"dns" {
            host.drain(..www_length(&host));
        }
        let labels: Vec<&[u8]> = host.split(|&b| b == b'.').rev().collect();
        key.extend(labels.join(&b','));
        let default_port = match scheme.to_ascii_lowercase().as_slice() {
            b"http" => 80,
            b"https" => 443,
            _ => 0,
        };
        if port != 0 && port != default_port {
            key.extend_from_slice(format!(":{port}").as_bytes());
        }
        key.push(b')');
        path_key(&escape(&tidy_path(&unescape(path))))
    };
    let bare = path.is_empty();
    key.extend(path);
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        let query = query_key(&escape(&unescape(query)));
        if !query.is_empty() {
            key.extend_from_slice(if bare { b"/?" } else { b"?" });
            key.extend(query);
        }
    }
    String::from_utf8(key).ok()
}

/// Bytes before the colon of `scheme:`.
fn scheme_length(url: &[u8]) -> Option<usize> {
    let colon = url.iter().position(|&b| b == b':')?;
    let legal = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
    (url[0].is_ascii_alphabetic() && url[..colon].iter().all(legal)).then_some(colon)
}

/// `http://https://host` means `https://host`.
fn after_repeated_schemes(mut url: &[u8]) -> &[u8] {
    let step = |url: &[u8]| {
        [&b"http://"[..], b"https://"].iter().find(|scheme| url.starts_with(scheme)).map(|scheme| scheme.len())
    };
    while let Some(n) = step(url).filter(|&n| step(&url[n..]).is_some()) {
        url = &url[n..];
    }
    url
}

fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&b| b == at) {
        Some(i) => (&text[..i], Some(&text[i + 1..])),
        None => (text, None),
    }
}

/// Host in lower case, and port (0 for none). `None` where the port is not a port.
fn host_and_port(authority: &[u8]) -> Option<(Vec<u8>, u16)> {
    let end = authority.iter().rposition(|&b| b != b':').map_or(0, |i| i + 1);
    let host = match authority[..end].iter().rposition(|&b| b == b'@') {
        Some(at) => &authority[at + 1..end],
        None => &authority[..end],
    };
    let (host, port) = match cut(host, b'[') {
        (_, Some(bracketed)) => {
            let (host, after) = cut(bracketed, b']');
            (host, cut(after.unwrap_or_default(), b':').1)
        }
        (plain, None) => cut(plain, b':'),
    };
    let port = match port {
        Some(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            // Zeros in front are harmless; five digits left say at most 99,999.
            let digits = &digits[digits.iter().position(|&b| b != b'0').unwrap_or(digits.len() - 1)..];
            std::str::from_utf8(digits).ok()?.parse().ok()?
        }
        Some(_) => return None,
        None => 0,
    };
    let zone = host.iter().position(|&b| b == b'%').unwrap_or(host.len());
    Some(([&host[..zone].to_ascii_lowercase(), &host[zone..]].concat(), port))
}

fn canonical_host(host: &[u8]) -> Vec<u8> {
    let mut host = unescape(host);
    if !host.is_ascii() {
        let text: String = host.utf8_chunks().map(|chunk| chunk.valid()).collect();
        if let Some(ascii) = idn::to_ascii(&text) {
            host = ascii.into_bytes();
        }
    }
    let mut single = Vec::with_capacity(host.len());
    let mut at = 0;
    while at < host.len() {
        single.push(host[at]);
        at += if host[at..].starts_with(b"..") { 2 } else { 1 };
    }
    let from = single.iter().position(|&b| b != b'.').unwrap_or(single.len());
    let to = single.iter().rposition(|&b| b != b'.').map_or(from, |i| i + 1);
    let host = &single[from..to];
    match ipv4(host) {
        Some(address) => address.to_string().into_bytes(),
        None => escape(&host.to_ascii_lowercase()).to_ascii_lowercase(),
    }
}

/// Addresses in the old ways of writing them: one to four numbers, octal after a leading zero, the last filling the rest.
fn ipv4(host: &[u8]) -> Option<Ipv4Addr> {
    if host.is_empty() || !host.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
        return None;
    }
    if !host.contains(&b'.') {
        // A bare number is taken modulo 2^32, zeros in front or not.
        let number = host.iter().fold(0_u32, |n, b| n.wrapping_mul(10).wrapping_add(u32::from(b - b'0')));
        return Some(Ipv4Addr::from_bits(number));
    }
    if host[0] == b'0' && host.iter().any(|b| matches!(b, b'8' | b'9')) {
        return None;
    }
    let mut numbers = Vec::with_capacity(4);
    for part in host.split(|&b| b == b'.') {
        let text = std::str::from_utf8(part).ok()?;
        let octal = part.len() > 1 && part[0] == b'0';
        numbers.push(u32::from_str_radix(text, if octal { 8 } else { 10 }).ok()?);
    }
    let (&last, leading) = numbers.split_last()?;
    if leading.len() > 3 || leading.iter().any(|&n| n > 255) {
        return None;
    }
    let room = 32 - 8 * leading.len() as u32;
    if room < 32 && last >> room != 0 {
        return None;
    }
    let high = leading.iter().enumerate().fold(0, |sum, (i, &n)| sum | n << (24 - 8 * i));
    Some(Ipv4Addr::from_bits(high | last))
}

/// Length of `www.`, `www2.` and the like in front.
fn www_length(host: &[u8]) -> usize {
    let Some(rest) = host.strip_prefix(b"www") else { return 0 };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if rest.get(digits) == Some(&b'.') { 3 + digits + 1 } else { 0 }
}

/// Undoes percent-encoding until nothing changes.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    let hex = |b: u8| char::from(b).to_digit(16);
    loop {
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let pair = match text[at..] {
                [b'%', a, b, ..] => hex(a).zip(hex(b)),
                _ => None,
            };
            match pair {
                Some((a, b)) => out.push((a * 16 + b) as u8),
                None => out.push(text[at]),
            }
            at += if pair.is_some() { 3 } else { 1 };
        }
        if out.len() == text.len() {
            return out;
        }
        text = out;
    }
}

/// Percent-encodes what is not visible ASCII, and `#` and `%`.
fn escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &b in text {
        if b.is_ascii_graphic() && b != b'#' && b != b'%' {
            out.push(b);
        } else {
            out.extend_from_slice(format!("%{b:02X}").as_bytes());
        }
    }
    out
}

/// Dot segments resolved, doubled slashes made one, an empty path `/`.
fn tidy_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&b| b == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut out = vec![b'/'];
    if let Some((last, before)) = kept.split_last() {
        for segment in before.iter().filter(|segment| !segment.is_empty()) {
            out.extend_from_slice(segment);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

fn path_key(path: &[u8]) -> Vec<u8> {
    let mut path = path.to_ascii_lowercase();
    for nested in [true, false] {
        if let Some((from, to)) = aspx_session(&path, nested) {
            path.drain(from..to);
        }
    }
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    path
}

/// The last segment that is an ASP.NET session id with a page after it: `(24 letters)`, or nested `(s(24 letters))`.
fn aspx_session(path: &[u8], nested: bool) -> Option<(usize, usize)> {
    let token = |text: &[u8]| text.len() == 24 && text.iter().all(u8::is_ascii_alphanumeric);
    let is_session = |segment: &[u8]| {
        let Some(inner) = segment.strip_prefix(b"(").and_then(|s| s.strip_suffix(b")")) else { return false };
        if !nested {
            return token(inner);
        }
        // Each piece is a letter and 24 letters in brackets: 27 bytes.
        let piece = |p: &[u8]| p[0].is_ascii_alphabetic() && p[1] == b'(' && token(&p[2..26]) && p[26] == b')';
        !inner.is_empty() && inner.len() % 27 == 0 && inner.chunks_exact(27).all(piece)
    };
    let is_page = |rest: &[u8]| {
        let name = cut(rest, b'?').0;
        name.len() > 5 && name[1..].windows(5).any(|w| w == b".aspx")
    };
    let slashes: Vec<usize> = (0..path.len()).filter(|&i| path[i] == b'/').collect();
    slashes
        .windows(2)
        .rev()
        .find(|pair| is_session(&path[pair[0] + 1..pair[1]]) && is_page(&path[pair[1] + 1..]))
        .map(|pair| (pair[0] + 1, pair[1] + 1))
}

fn query_key(query: &[u8]) -> Vec<u8> {
    let mut query = query.to_ascii_lowercase();
    let alphanumeric = |n: usize| move |v: &[u8]| v.len() == n && v.iter().all(u8::is_ascii_alphanumeric);
    for name in [&b"jsessionid="[..], b"phpsessid=", b"sid="] {
        cut_parameter(&mut query, |text| text.strip_prefix(name).and_then(|v| value_end(v, alphanumeric(32))));
    }
    cut_parameter(&mut query, |text| {
        let (letters, value) = text.strip_prefix(b"aspsessionid")?.split_at_checked(8)?;
        let value = value.strip_prefix(b"=").filter(|_| letters.iter().all(u8::is_ascii_alphabetic))?;
        value_end(value, |v| v.len() == 24 && v.iter().all(u8::is_ascii_alphabetic))
    });
    cut_parameter(&mut query, |text| {
        let rest = value_end(text.strip_prefix(b"cfid=")?, |v| !v.is_empty())?;
        value_end(rest.strip_prefix(b"&cftoken=")?, |v| !v.is_empty())
    });
    if query.len() <= 1 {
        return query;
    }
    let mut pairs: Vec<(&[u8], Option<&[u8]>)> = query.split(|&b| b == b'&').map(|pair| cut(pair, b'=')).collect();
    pairs.sort_unstable();
    let mut out = Vec::with_capacity(query.len());
    for (i, (name, value)) in pairs.into_iter().enumerate() {
        if i > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        if let Some(value) = value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
    out
}

/// What follows a value that runs to the next `&` or the end, if the value is `right`.
fn value_end(text: &[u8], right: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    let value = cut(text, b'&').0;
    right(value).then(|| &text[value.len()..])
}

/// Cuts the last match of `rest_after` out of the query, with the `&` behind it. A match may begin inside a name.
fn cut_parameter(query: &mut Vec<u8>, rest_after: impl Fn(&[u8]) -> Option<&[u8]>) {
    let found = (0..query.len()).rev().find_map(|at| Some((at, rest_after(&query[at..])?.len())));
    if let Some((at, rest)) = found {
        let end = query.len() - rest;
        query.drain(at..if rest > 0 { end + 1 } else { end });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_urls() {
        let check = |url: &str, expected: &str| assert_eq!(surt(url), expected, "{url}");
        check("", "-");
        check("http://www.Example.COM/", "com,example)/");
        check("https://www2.example.com:443/A/B/", "com,example)/a/b");
        check("http://wwwx.example.com:8080", "com,example,wwwx:8080)/");
        check("http://example.com/?", "com,example)/");
        check("http://example.com?b=2&a=1&a", "com,example)/?a&a=1&b=2");
        check("http://example.com/a%2Fb%20c%2525?q=%41%26#frag", "com,example)/a/b%20c%25?&q=a");
        check("http://example.com/a/../b//c/./d", "com,example)/b/c/d");
        check("http://example.com/../x", "com,example)/../x");
        check("http://user:pw@example.com:/x", "com,example)/x");
        check("http://bücher.example/ü", "example,xn--bcher-kva)/%c3%bc");
        check("http://[::1]:81/x", "::1:81)/x");
        check("http://127.1/", "1,0,0,127)/");
        check("http://2130706433/", "1,0,0,127)/");
        check("http://010.0.0.1/", "1,0,0,8)/");
        check("http://300.1.1.1/", "1,1,1,300)/");
        check("http://https://example.com/", "com,example)/");
        check("example.com/x", "com,example)/x");
        check("http:////example.com/x", "com,example)/x");
        check("http://example.com:port/", "http://example.com:port/");
        check("mailto:A@B.c", "mailto:a@b.c");
        check("dns:www.example.com", "dns:www.example.com");
        let id = "0123456789abcdef0123456789ABCDEF";
        check(&format!("http://e.com/x?a=1&PHPSESSID={id}&b=2"), "com,e)/x?a=1&b=2");
        check(&format!("http://e.com/x?jsessionid={id}"), "com,e)/x");
        check(&format!("http://e.com/x?a=1&sid={id}"), "com,e)/x?&a=1");
        check("http://e.com/x?cfid=1&cftoken=2&z", "com,e)/x?z");
        check("http://e.com/(S(abcdefghijklmnopqrstuvwx))/p.aspx", "com,e)/p.aspx");
        check("http://e.com/(abcdefghijklmnopqrstuvwx)/p.aspx?x", "com,e)/p.aspx?x");
        check("http://e.com/(abcdefghijklmnopqrstuvwx)/p.html", "com,e)/(abcdefghijklmnopqrstuvwx)/p.html");
    }
}
