//! From a link as written to a canonical [`Url`].
//!
//! On top of WHATWG parsing (whitespace and control characters, `\`, IDNA, IPv4 spellings, dot segments, default
//! ports) the following is done, always:
//! - the fragment goes: it never reaches the server;
//! - user name and password go: a link must not make us present credentials that nobody gave us, and with them one
//!   page would have as many URLs as there are names;
//! - the dot at the end of a host name goes, and an empty query with its `?`;
//! - percent-encoding gets one form (`clean.rs`).
//!
//! Switchable: session ids, tracking parameters, the order of query parameters.
//!
//! Nearly all links of real pages are paths or absolute URLs of plain characters. For them the canonical form is what
//! was written, appended to what the base already knows, so `short_cut` copies it; everything else takes the long way
//! through the `url` crate. That both ways agree is a property test below. URLs of other schemes (`other_way`) are rare.
//!
//! A page leads to another scheme only if that one is open to all (`scheme.rs`); the base that a link is resolved against says
//! whose page it is.

use std::cell::OnceCell;

use serde::{Deserialize, Serialize};

use super::clean::{self, ParamTable};
use super::scheme::{self, Scheme};
use super::{Url, UrlError, whatwg};

/// What is normalised beyond what always is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NormalizeOptions {
    /// Remove session ids from paths and queries.
    pub session_ids: bool,
    /// Remove the parameters named in `tracking_params`.
    pub tracking: bool,
    /// Names compared without regard to case; a `*` at the end stands for any continuation.
    pub tracking_params: Vec<String>,
    /// Sort query parameters. Off, because servers may give the order a meaning.
    pub sort_query: bool,
    /// Longer URLs are refused.
    pub url_bytes_max: usize,
}

impl Default for NormalizeOptions {
    fn default() -> NormalizeOptions {
        NormalizeOptions {
            session_ids: true,
            tracking: true,
            tracking_params: clean::TRACKING_PARAMS.iter().map(|name| name.to_string()).collect(),
            sort_query: false,
            url_bytes_max: 4096,
        }
    }
}

impl NormalizeOptions {
    /// Only what is always done; every query parameter is kept.
    pub fn plain() -> NormalizeOptions {
        NormalizeOptions { session_ids: false, tracking: false, tracking_params: Vec::new(), ..Default::default() }
    }
}

/// Makes canonical URLs under one set of options.
#[derive(Clone, Debug)]
pub struct Normalizer {
    rules: Rules,
    params: Option<ParamTable>,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    session_ids: bool,
    sort_query: bool,
    bytes_max: usize,
}

/// What links are resolved against: a page's own URL or its `<base href>`. Made once for a page, by the
/// [`Normalizer`] that will use it.
#[derive(Clone, Debug)]
pub struct Base {
    /// As parsed, for the long way: the canonical form may have lost what relative links build on. Of a page's own URL,
    /// which is canonical and lost nothing, only when the first link needs it.
    parsed: OnceCell<::url::Url>,
    canonical: Url,
    /// Origin and directory, if a plain relative path may simply be appended to them.
    directory: Option<Box<str>>,
}

impl Base {
    fn new(canonical: Url, path: &str) -> Base {
        let directory = &path[..path.rfind('/').map_or(0, |at| at + 1)];
        let plain = directory.bytes().all(|b| CLASS[usize::from(b)] & PATH != 0) && !directory.contains("/.");
        let directory = plain.then(|| [canonical.origin(), directory].concat().into());
        Base { parsed: OnceCell::new(), canonical, directory }
    }

    fn parsed(&self) -> Result<&::url::Url, UrlError> {
        if let Some(parsed) = self.parsed.get() {
            return Ok(parsed);
        }
        let parsed = parse(self.canonical.as_str(), None)?;
        Ok(self.parsed.get_or_init(|| parsed))
    }

    /// The base itself in canonical form.
    pub fn url(&self) -> &Url {
        &self.canonical
    }
}

impl Default for Normalizer {
    fn default() -> Normalizer {
        Normalizer::new(&NormalizeOptions::default())
    }
}

impl Normalizer {
    /// Prepares the options for use.
    pub fn new(options: &NormalizeOptions) -> Normalizer {
        let tracking = if options.tracking { &options.tracking_params[..] } else { &[] };
        let params =
            (options.session_ids || !tracking.is_empty()).then(|| ParamTable::new(options.session_ids, tracking));
        // Offsets into a URL are 32 bits wide.
        let bytes_max = options.url_bytes_max.min(u32::MAX as usize);
        Normalizer {
            rules: Rules { session_ids: options.session_ids, sort_query: options.sort_query, bytes_max },
            params,
        }
    }

    /// The base that a page's links are resolved against; `outer` is the page's own when `raw` is a `<base href>`.
    pub fn base(&self, raw: &str, outer: Option<&Base>) -> Result<Base, UrlError> {
        if let Some(scheme) = other_scheme(raw, outer)? {
            let canonical = self.other_way(raw, outer, scheme)?;
            let path = canonical.path().to_owned();
            return Ok(Base::new(canonical, &path));
        }
        let parsed = parse(raw, outer)?;
        let canonical = canonical(&parsed, self.rules, self.params.as_ref())?;
        let base = Base::new(canonical, parsed.path());
        let _ = base.parsed.set(parsed);
        Ok(base)
    }

    /// The base that a page's own URL is for its links.
    pub fn own_base(&self, url: &Url) -> Base {
        Base::new(url.clone(), url.path())
    }

    /// Resolves `raw` against `base` and brings it into canonical form.
    pub fn normalize(&self, raw: &str, base: Option<&Base>) -> Result<Url, UrlError> {
        let url = match self.short_cut(raw, base) {
            Some(url) => url,
            None => self.long_way(raw, base)?,
        };
        match url.as_str().len() {
            bytes if bytes > self.rules.bytes_max => Err(UrlError::TooLong { bytes, max: self.rules.bytes_max }),
            _ => Ok(url),
        }
    }

    fn long_way(&self, raw: &str, base: Option<&Base>) -> Result<Url, UrlError> {
        // `javascript:`, `mailto:` and `data:` are common and may be huge: their scheme alone decides.
        let other = other_scheme(raw, base)?;
        // Escapes and removed parts can shorten a URL, but not without bound.
        let max = self.rules.bytes_max;
        if raw.len() / 16 > max {
            return Err(UrlError::TooLong { bytes: raw.len(), max });
        }
        match other {
            Some(scheme) => self.other_way(raw, base, scheme),
            None => canonical(&parse(raw, base)?, self.rules, self.params.as_ref()),
        }
    }

    /// A URL that is of neither `http` nor `https`; the caller has checked that the link may be one.
    fn other_way(&self, raw: &str, base: Option<&Base>, scheme: &'static Scheme) -> Result<Url, UrlError> {
        let base = base.filter(|base| base.canonical.rules() == scheme).map(|base| base.canonical.as_str());
        let unparsable = |_| UrlError::Unparsable("against the rules of the standard");
        let href = whatwg::whatwg_parse(raw, base).map_err(unparsable)?;
        // A scheme written with line breaks in it shows only now.
        if href.split(':').next() != Some(scheme.name) {
            return Err(UrlError::Scheme(href.split(':').next().unwrap_or_default().chars().take(32).collect()));
        }
        if scheme.has_authority {
            let parsed =
                ::url::Url::parse(&href).map_err(|_| UrlError::Unparsable("against the rules of the standard"))?;
            return canonical(&parsed, self.rules, self.params.as_ref());
        }
        let rest = href[scheme.name.len() + 1..].strip_prefix("//").ok_or(UrlError::Unparsable("it has no path"))?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        if !rest.starts_with('/') {
            return Err(UrlError::Host("a URL of this scheme has none"));
        }
        let mut text = String::with_capacity(href.len() + 8);
        text.push_str(scheme.name);
        text.push_str("://");
        // Several slashes are one to a file system.
        let mut path = String::with_capacity(rest.len());
        for (at, segment) in rest[1..].split('/').enumerate() {
            if at == 0 || !segment.is_empty() || path.is_empty() {
                let slash = if path.ends_with('/') { "" } else { "/" };
                path.push_str(slash);
                path.push_str(segment);
            }
        }
        if rest.ends_with('/') && !path.ends_with('/') {
            path.push('/');
        }
        clean::push_percent_normal(&path, true, &mut text);
        Ok(Url::index(text, scheme))
    }

    /// Copies links of plain characters; `None` means "not for sure", never "no".
    fn short_cut(&self, raw: &str, base: Option<&Base>) -> Option<Url> {
        let bytes = raw.as_bytes();
        // What follows holds for the web alone.
        let base = base.filter(|base| base.canonical.is_web());
        let known = base.map(|base| &base.canonical);
        match *bytes.first()? {
            b'/' if !matches!(bytes.get(1), Some(b'/' | b'\\')) => {
                let known = known?;
                self.append(known.origin(), known, raw)
            }
            b'h' if raw.starts_with("http://") || raw.starts_with("https://") => {
                if let Some(known) = known
                    && let Some(rest) = raw.strip_prefix(known.origin())
                    && rest.starts_with('/')
                {
                    return self.append(known.origin(), known, rest);
                }
                self.copy_absolute(raw)
            }
            b'/' if bytes.get(1) == Some(&b'/') => {
                let known = known?;
                self.copy_absolute(&[known.scheme(), ":", raw].concat())
            }
            b'.' if bytes.get(1) == Some(&b'/') => {
                let base = base?;
                self.append(base.directory.as_deref()?, &base.canonical, &raw[2..])
            }
            first if CLASS[usize::from(first)] & PATH != 0 && first != b'/' => {
                let base = base?;
                self.append(base.directory.as_deref()?, &base.canonical, raw)
            }
            _ => None,
        }
    }

    /// `prefix` is an origin, perhaps with a directory, that belongs to `known`.
    fn append(&self, prefix: &str, known: &Url, rest: &str) -> Option<Url> {
        let (path_len, len) = self.plain_lengths(rest.as_bytes())?;
        let mut text = String::with_capacity(prefix.len() + len);
        text.push_str(prefix);
        text.push_str(&rest[..len]);
        let path_end = prefix.len() + path_len;
        let scheme = (known.scheme_len, known.kind);
        Some(Url::put_together(text, scheme, known.host_end as usize, known.origin_end as usize, path_end, known.port))
    }

    fn copy_absolute(&self, raw: &str) -> Option<Url> {
        let bytes = raw.as_bytes();
        let scheme = if bytes[4] == b's' { &scheme::HTTPS } else { &scheme::HTTP };
        let (host_start, default_port) = (scheme.name.len() + 3, scheme.default_port);
        let host_end = host_start + plain_host_len(&bytes[host_start..])?;
        let (mut origin_end, mut port) = (host_end, default_port);
        if bytes.get(host_end) == Some(&b':') {
            let digits = bytes[host_end + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
            origin_end += 1 + digits;
            port = raw[host_end + 1..origin_end].parse().ok()?;
            if bytes[host_end + 1] == b'0' || port == default_port {
                return None;
            }
        }
        let rest = &raw[origin_end..];
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let (path_len, len) = self.plain_lengths(rest.as_bytes())?;
        let mut text = String::with_capacity(origin_end + len.max(1));
        text.push_str(&raw[..origin_end + len]);
        if len == 0 {
            text.push('/');
        }
        Some(Url::from_parts(text, scheme, host_end, origin_end, origin_end + path_len.max(1), port))
    }

    /// The lengths of the path and of path and query, if all their characters stay as they are.
    #[inline]
    fn plain_lengths(&self, rest: &[u8]) -> Option<(usize, usize)> {
        let mut segment_start = true;
        let mut path_len = rest.len();
        for (at, &b) in rest.iter().enumerate() {
            let class = CLASS[usize::from(b)];
            if class & PATH == 0 {
                match b {
                    b'?' => {
                        path_len = at;
                        break;
                    }
                    b'#' => return Some((at, at)),
                    _ => return None,
                }
            }
            // Hidden files are rare, dot segments are not plain: both take the long way.
            if segment_start && b == b'.' {
                return None;
            }
            segment_start = b == b'/';
        }
        if path_len == rest.len() {
            return Some((path_len, path_len));
        }
        let query = &rest[path_len + 1..];
        let query_len = query.iter().position(|&b| CLASS[usize::from(b)] & QUERY == 0).unwrap_or(query.len());
        if query_len < query.len() && query[query_len] != b'#' {
            return None;
        }
        let query = &query[..query_len];
        if query.is_empty() {
            return Some((path_len, path_len));
        }
        if self.rules.sort_query && query.contains(&b'&') {
            return None;
        }
        if let Some(params) = &self.params {
            let mut from = 0;
            loop {
                let to = memchr::memchr(b'&', &query[from..]).map_or(query.len(), |at| from + at);
                if params.drops(&query[from..to]) {
                    return None;
                }
                if to == query.len() {
                    break;
                }
                from = to + 1;
            }
        }
        Some((path_len, path_len + 1 + query_len))
    }
}

/// [`Url::parse`]: the same, with nothing switched on and no bound but that of the offsets.
pub(super) fn parse_plain(text: &str) -> Result<Url, UrlError> {
    const PLAIN: Rules = Rules { session_ids: false, sort_query: false, bytes_max: u32::MAX as usize };
    Normalizer { rules: PLAIN, params: None }.normalize(text, None)
}

const PATH: u8 = 1;
const QUERY: u8 = 2;
const HOST: u8 = 4;

/// Which bytes stay as they are in which part. Deliberately fewer than truly do: `;` and `(` may begin a session id,
/// a `:` in a relative path a scheme.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            class[b] |= PATH | QUERY;
        }
        if matches!(byte, b'=' | b'&' | b'+' | b',' | b';' | b':' | b'@' | b'!' | b'$' | b'*' | b'(' | b')' | b'?') {
            class[b] |= QUERY;
        }
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.') {
            class[b] |= HOST;
        }
        b += 1;
    }
    class
};

/// The length of a host name that needs no IDNA, or of an IPv4 address as it is written usually.
fn plain_host_len(bytes: &[u8]) -> Option<usize> {
    let len = bytes.iter().position(|&b| CLASS[usize::from(b)] & HOST == 0).unwrap_or(bytes.len());
    let host = &bytes[..len];
    let last = host.rsplit(|&b| b == b'.').next()?;
    if last.first().is_some_and(u8::is_ascii_digit) {
        return is_plain_ipv4(host).then_some(len);
    }
    // A last label that begins with a letter is no number in any notation, and no trailing dot either.
    let plain = last.first().is_some_and(u8::is_ascii_lowercase)
        && host[0] != b'.'
        && !host.windows(2).any(|pair| pair == b"..")
        && memchr::memmem::find(host, b"xn--").is_none();
    plain.then_some(len)
}

/// Four numbers without zeros in front: what IPv4 parsing would leave as it is.
fn is_plain_ipv4(host: &[u8]) -> bool {
    let number = |part: &[u8]| {
        let value =
            || part.iter().try_fold(0_u32, |value, b| b.is_ascii_digit().then(|| value * 10 + u32::from(b - b'0')));
        // The length comes first: what has more digits need not fit into the value.
        (1..=3).contains(&part.len()) && (part[0] != b'0' || part.len() == 1) && value().is_some_and(|v| v < 256)
    };
    let parts = host.split(|&b| b == b'.');
    parts.clone().count() == 4 && parts.into_iter().all(number)
}

/// The scheme that the text plainly begins with.
fn scheme_of(raw: &str) -> Option<&str> {
    let text = raw.trim_start_matches(|c: char| c <= ' ');
    let (scheme, _) = text.split_at_checked(text.bytes().position(|b| !is_scheme_byte(b))?)?;
    let colon = text.as_bytes()[scheme.len()] == b':';
    (colon && scheme.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(scheme)
}

/// The scheme that a link leads to, unless it is `http` or `https`; an error if the page, whose base this is, may not lead there.
fn other_scheme(raw: &str, base: Option<&Base>) -> Result<Option<&'static Scheme>, UrlError> {
    let from = base.map(|base| base.canonical.rules());
    let Some(name) = scheme_of(raw) else { return Ok(from.filter(|scheme| !scheme.is_web())) };
    if name.eq_ignore_ascii_case("http") || name.eq_ignore_ascii_case("https") {
        return Ok(None);
    }
    let name = name.chars().take(32).collect::<String>().to_ascii_lowercase();
    let Some(scheme) = Scheme::of(&name) else { return Err(UrlError::Scheme(name)) };
    if from.is_none_or(|from| scheme.may_be_reached_from(from)) {
        Ok(Some(scheme))
    } else {
        Err(UrlError::Closed(scheme.name))
    }
}

fn is_scheme_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')
}

fn parse(raw: &str, base: Option<&Base>) -> Result<::url::Url, UrlError> {
    use ::url::ParseError as E;
    let reference = if base.is_some() { whatwg::without_extra_slashes(raw) } else { raw.into() };
    let base = base.filter(|base| base.canonical.is_web()).map(Base::parsed).transpose()?;
    let parsed = ::url::Url::options().base_url(base).parse(&reference).map_err(|error| match error {
        E::RelativeUrlWithoutBase | E::RelativeUrlWithCannotBeABaseBase => UrlError::NoBase,
        E::EmptyHost => UrlError::Host("it is empty"),
        E::IdnaError => UrlError::Host("not a valid international name"),
        E::InvalidIpv4Address => UrlError::Host("not a valid IPv4 address"),
        E::InvalidIpv6Address => UrlError::Host("not a valid IPv6 address"),
        E::InvalidDomainCharacter => UrlError::Host("a character that no name may have"),
        E::InvalidPort => UrlError::Unparsable("invalid port"),
        _ => UrlError::Unparsable("against the rules of the standard"),
    })?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(UrlError::Scheme(other.to_owned())),
    }
}

fn canonical(parsed: &::url::Url, rules: Rules, params: Option<&ParamTable>) -> Result<Url, UrlError> {
    let scheme = Scheme::of(parsed.scheme()).ok_or_else(|| UrlError::Scheme(parsed.scheme().to_owned()))?;
    let mut host = parsed.host_str().unwrap_or_default();
    let lower;
    if !scheme.is_web() {
        // To the standard, hosts of other schemes are opaque.
        lower = host.to_ascii_lowercase();
        host = &lower;
        if !host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'[' | b':' | b']')) {
            return Err(UrlError::Host("a character that no name may have"));
        }
    } else if let Some(::url::Host::Domain(name)) = parsed.host() {
        host = name.strip_suffix('.').unwrap_or(name);
        // A second dot would be an empty label; and without it `1.2..` would turn into an address.
        if host.ends_with('.') {
            return Err(UrlError::Host("an empty label"));
        }
    }
    if host.is_empty() {
        return Err(UrlError::Host("it is empty"));
    }
    let mut text = String::with_capacity(parsed.as_str().len() + 8);
    text.push_str(parsed.scheme());
    text.push_str("://");
    text.push_str(host);
    if let Some(port) = parsed.port().filter(|port| *port != scheme.default_port) {
        text.push(':');
        text.push_str(&port.to_string());
    }
    let path_start = text.len();
    clean::push_percent_normal(if parsed.path().is_empty() { "/" } else { parsed.path() }, true, &mut text);
    if rules.session_ids
        && let Some(path) = clean::strip_path_sessions(&text[path_start..])
    {
        text.truncate(path_start);
        text.push_str(&path);
    }
    if let Some(query) = parsed.query() {
        let path_end = text.len();
        text.push('?');
        clean::push_percent_normal(query, false, &mut text);
        let dropped = |param: &&str| params.is_some_and(|params| params.drops(param.as_bytes()));
        let query = &text[path_end + 1..];
        if rules.sort_query || query.split('&').any(|param| dropped(&param)) {
            let mut kept: Vec<&str> = query.split('&').filter(|param| !dropped(param)).collect();
            if rules.sort_query {
                kept.sort_unstable();
            }
            let query = kept.join("&");
            text.truncate(path_end + 1);
            text.push_str(&query);
        }
        if text.len() == path_end + 1 {
            text.truncate(path_end);
        }
    }
    if text.len() > u32::MAX as usize {
        return Err(UrlError::TooLong { bytes: text.len(), max: u32::MAX as usize });
    }
    Ok(Url::index(text, scheme))
}

#[cfg(test)]
mod tests;
