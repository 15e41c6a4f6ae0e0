//! The WHATWG URL standard as it is, for every scheme: what `rhumb url parse` prints.
//!
//! The `url` crate does the work, except where version 2.5 is known to fall short of the standard: `file:` URLs with
//! drive letters, hosts or empty segments (parsed here by the standard's own states), `///host` against a base, `^` in
//! paths, spaces before the query or fragment of an opaque path, and `\` where the scheme is not special.

use std::borrow::Cow;

/// Parses `input`, perhaps against `base`, and gives the serialised URL or the reason why there is none.
pub fn whatwg_parse(input: &str, base: Option<&str>) -> Result<String, String> {
    let base = match base {
        Some(base) => Some(whatwg_parse(base, None).map_err(|reason| format!("base: {reason}"))?),
        None => None,
    };
    let cleaned: String =
        input.trim_matches(|c: char| c <= ' ').chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let file_base = base.as_deref().and_then(FileUrl::from_serialised);
    match split_scheme(&cleaned) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => FileUrl::parse(rest, file_base.as_ref()),
        None if file_base.is_some() => FileUrl::parse(&cleaned, file_base.as_ref()),
        _ => {
            let invalid = |error: ::url::ParseError| error.to_string();
            let base = base.as_deref().map(::url::Url::parse).transpose().map_err(invalid)?;
            let is_special = |scheme: &str| matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp");
            let scheme = split_scheme(&cleaned).map(|(scheme, _)| scheme.to_ascii_lowercase());
            let by = scheme.as_deref().or(base.as_ref().map(|base| base.scheme()));
            let reference = match by {
                Some(by) if !is_special(by) => {
                    let after = if scheme.is_some() { &cleaned[by.len() + 1..] } else { &cleaned };
                    if is_bad_authority(after) {
                        return Err(::url::ParseError::EmptyHost.to_string());
                    }
                    if scheme.is_some() { (&cleaned).into() } else { with_plain_backslash(&cleaned) }
                }
                _ if base.as_ref().is_some_and(|base| is_special(base.scheme())) => without_extra_slashes(&cleaned),
                _ => (&cleaned).into(),
            };
            let parsed = ::url::Url::options().base_url(base.as_ref()).parse(&reference).map_err(invalid)?;
            Ok(mend(&parsed))
        }
    }
}

/// A reference that begins with three slashes or more, of either kind, means what it means with two: against a special
/// base the standard ignores the others ("special authority ignore slashes state"), the crate finds an empty host.
pub(super) fn without_extra_slashes(reference: &str) -> Cow<'_, str> {
    let text = reference.trim_start_matches(|c: char| c <= ' ');
    let rest = text.trim_start_matches(['/', '\\']);
    if text.len() - rest.len() > 2 { format!("//{rest}").into() } else { reference.into() }
}

/// A `\\` has no meaning where the scheme is not special; the crate takes it for a slash at the beginning of a reference.
/// After a segment that goes away again it is an ordinary character to the crate, too.
fn with_plain_backslash(reference: &str) -> Cow<'_, str> {
    match reference.as_bytes() {
        [b'\\', ..] => format!("./{reference}").into(),
        [b'/', b'\\', ..] => format!("/.{reference}").into(),
        _ => reference.into(),
    }
}

/// Whether what follows a scheme that is not special has an authority that the standard refuses and the crate does not:
/// a `\\` in the host or port, or nothing after the `@`.
fn is_bad_authority(after_scheme: &str) -> bool {
    let Some(rest) = after_scheme.strip_prefix("//") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((_, host)) => host.is_empty() || host.contains('\\'),
        None => authority.contains('\\'),
    }
}

/// Where the crate's serialisation lags behind the standard.
fn mend(parsed: &::url::Url) -> String {
    let href = parsed.as_str();
    let path_start = ::url::Position::BeforePath;
    let (head, path, tail) = (&parsed[..path_start], parsed.path(), &parsed[::url::Position::AfterPath..]);
    if parsed.cannot_be_a_base() {
        return match path.strip_suffix(' ') {
            Some(path) if !tail.is_empty() => [head, path, "%20", tail].concat(),
            _ => href.to_owned(),
        };
    }
    if !path.contains('^') {
        return href.to_owned();
    }
    [head, &path.replace('^', "%5E"), tail].concat()
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let valid = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    valid.then_some((scheme, rest))
}

/// A `file:` URL while it is being parsed; the fragment is appended at the end.
#[derive(Default)]
struct FileUrl {
    host: String,
    path: Vec<String>,
    query: Option<String>,
}

impl FileUrl {
    fn from_serialised(href: &str) -> Option<FileUrl> {
        let rest = href.strip_prefix("file://")?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query.to_owned())));
        let (host, path) = rest.split_once('/')?;
        Some(FileUrl { host: host.to_owned(), path: path.split('/').map(str::to_owned).collect(), query })
    }

    /// The standard's states from "file state" on; `rest` follows the scheme, if there was one.
    fn parse(rest: &str, base: Option<&FileUrl>) -> Result<String, String> {
        let mut url = FileUrl::default();
        let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, fragment)| (rest, Some(fragment)));
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        url.query = query.map(|query| encode(query, b" \"#<>'"));
        let slash = |text: &str| text.starts_with(['/', '\\']);
        if slash(rest) && slash(&rest[1..]) {
            let rest = &rest[2..];
            let host_end = rest.find(['/', '\\']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(host_end);
            if is_drive_letter(host) {
                url.push_path(rest);
            } else {
                if !host.is_empty() {
                    let host = ::url::Host::parse(host).map_err(|error| error.to_string())?.to_string();
                    url.host = if host == "localhost" { String::new() } else { host };
                }
                url.push_path(path.get(1..).unwrap_or_default());
            }
        } else if slash(rest) {
            if let Some(base) = base {
                url.host.clone_from(&base.host);
                let drive = base.path.first().filter(|segment| is_normal_drive_letter(segment));
                if let Some(drive) = drive.filter(|_| !begins_with_drive_letter(&rest[1..])) {
                    url.path.push(drive.clone());
                }
            }
            url.push_path(&rest[1..]);
        } else if let Some(base) = base {
            url.host.clone_from(&base.host);
            if rest.is_empty() {
                url.path.clone_from(&base.path);
                url.query = url.query.or_else(|| base.query.clone());
            } else {
                if !begins_with_drive_letter(rest) {
                    url.path.clone_from(&base.path);
                    url.shorten();
                }
                url.push_path(rest);
            }
        } else {
            url.push_path(rest);
        }
        let mut href = format!("file://{}", url.host);
        for segment in &url.path {
            href.push('/');
            href.push_str(segment);
        }
        if let Some(query) = url.query {
            href.push('?');
            href.push_str(&query);
        }
        if let Some(fragment) = fragment {
            href.push('#');
            href.push_str(&encode(fragment, b" \"<>`"));
        }
        Ok(href)
    }

    /// The path state; segments are added to those already there.
    fn push_path(&mut self, text: &str) {
        let mut segments = text.split(['/', '\\']).peekable();
        while let Some(segment) = segments.next() {
            let last = segments.peek().is_none();
            match dots(segment) {
                2 => {
                    self.shorten();
                    if last {
                        self.path.push(String::new());
                    }
                }
                1 if last => self.path.push(String::new()),
                1 => {}
                _ if self.path.is_empty() && is_drive_letter(segment) => self.path.push(format!("{}:", &segment[..1])),
                _ => self.path.push(encode(segment, b" \"#<>?^`{}")),
            }
        }
    }

    fn shorten(&mut self) {
        if !matches!(&self.path[..], [only] if is_normal_drive_letter(only)) {
            self.path.pop();
        }
    }
}

/// 1 for `.`, 2 for `..` in any spelling, else 0.
fn dots(segment: &str) -> usize {
    let plain = segment.replace("%2e", ".").replace("%2E", ".");
    if matches!(&plain[..], "." | "..") { plain.len() } else { 0 }
}

fn is_drive_letter(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

fn is_normal_drive_letter(text: &str) -> bool {
    is_drive_letter(text) && text.ends_with(':')
}

fn begins_with_drive_letter(text: &str) -> bool {
    text.get(..2).is_some_and(is_drive_letter) && matches!(text.as_bytes().get(2), None | Some(b'/' | b'\\'))
}

/// Percent-encodes controls, everything beyond ASCII, and the listed characters.
fn encode(text: &str, set: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if b <= 0x1f || b >= 0x7f || set.contains(&b) {
            out.push_str(&format!("%{b:02X}"));
        } else {
            out.push(b as char);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard() {
        fn check(input: &str, base: Option<&str>, expected: Option<&str>) {
            assert_eq!(whatwg_parse(input, base).ok().as_deref(), expected, "{input:?} against {base:?}");
        }
        check("HTTP://ex.com:80/a b?'#^", None, Some("http://ex.com/a%20b?%27#^"));
        check("foo://h/^?^", None, Some("foo://h/%5E?^"));
        check("data:x  ?q", None, Some("data:x %20?q"));
        check("data:x^  ", None, Some("data:x^"));
        check("//x", None, None);
        check("/\\//x/y", Some("http://h/p"), Some("http://x/y"));
        check("///x/y", Some("foo://h/p"), Some("foo:///x/y"));
        check("x", Some("mailto:a"), None);
        check("\\x", Some("foo://h/d/f"), Some("foo://h/d/\\x"));
        check("/\\x", Some("foo:/d/f"), Some("foo:/\\x"));
        check("foo://h:\\x", None, None);
        check("//@", Some("foo:/d/f"), None);
        check("foo://u\\@h/\\x", None, Some("foo://u%5C@h/\\x"));
        check("foo:\\x", Some("foo:/d/f"), Some("foo:\\x"));
        check("http://a/b", Some("//bad"), None);
        check("non-spec:/.//p", None, Some("non-spec:/.//p"));
        check("file:////foo", None, Some("file:////foo"));
        check("file://localhost//a//../..//foo", None, Some("file://///foo"));
        check("file://example.net/C:/", None, Some("file://example.net/C:/"));
        check("/c:/foo/bar", Some("file://host/path"), Some("file://host/c:/foo/bar"));
        check("/", Some("file://h/C:/a/b"), Some("file://h/C:/"));
        check("C|\n/", Some("file://host/dir/file"), Some("file://host/C:/"));
        check("..", Some("file:///C:/"), Some("file:///C:/"));
        check("?q", Some("file:///d/f?x#y"), Some("file:///d/f?q"));
        check("#z", Some("file:///d/f?x#y"), Some("file:///d/f?x#z"));
        check("", Some("file:///d/f?x#y"), Some("file:///d/f?x"));
        check("file:", None, Some("file:///"));
        check("file:c|/x", None, Some("file:///c:/x"));
        check("file://%43%7C/", None, None);
        check("http:/x", Some("file:///d"), Some("http://x/"));
    }
}
