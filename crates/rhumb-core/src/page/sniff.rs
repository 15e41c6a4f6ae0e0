//! What kind of thing a body is: the declared type where it can be believed, the first bytes where it cannot.
//!
//! The essentials of the WHATWG MIME Sniffing standard, with two departures that serve a crawler rather than a browser's
//! security: a body declared as HTML or text that begins as a PDF, image or archive is taken for that (unless the server
//! said nosniff), and a byte order mark does not hide the markup behind it.
//!
//! Invariant: only the first [`HEADER_BYTES`] are looked at.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a body is, as far as we treat it differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// HTML.
    #[default]
    Html,
    /// HTML in XML's clothes.
    Xhtml,
    /// A feed: RSS, Atom or JSON Feed.
    Feed,
    /// A sitemap or an index of them.
    Sitemap,
    /// Any other XML, such as SVG.
    Xml,
    /// JSON that is no feed.
    Json,
    /// Text without markup, or with markup that we do not read: plain text, scripts, style sheets.
    Text,
    /// An image.
    Image,
    /// A PDF document.
    Pdf,
    /// Sound, video or a font.
    Media,
    /// Compressed files.
    Archive,
    /// Anything else.
    Binary,
}

impl MediaKind {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            MediaKind::Html => "html",
            MediaKind::Xhtml => "xhtml",
            MediaKind::Feed => "feed",
            MediaKind::Sitemap => "sitemap",
            MediaKind::Xml => "xml",
            MediaKind::Json => "json",
            MediaKind::Text => "text",
            MediaKind::Image => "image",
            MediaKind::Pdf => "pdf",
            MediaKind::Media => "media",
            MediaKind::Archive => "archive",
            MediaKind::Binary => "binary",
        }
    }
}

/// As many bytes as the standard lets a sniffer see.
pub const HEADER_BYTES: usize = 1445;

/// Decides what a body is. `nosniff`: the server forbade guessing, so what it declared holds.
pub fn sniff(body: &[u8], content_type: Option<&str>, nosniff: bool) -> MediaKind {
    sniff_declared(body, content_type, nosniff).0
}

/// The same, with the declared type in lower case and without parameters.
pub fn sniff_declared<'a>(body: &[u8], content_type: Option<&'a str>, nosniff: bool) -> (MediaKind, Cow<'a, str>) {
    let essence = content_type.map(essence_of).unwrap_or_default();
    (judge(body, content_type, &essence, nosniff), essence)
}

fn judge(body: &[u8], content_type: Option<&str>, essence: &str, nosniff: bool) -> MediaKind {
    let header = &body[..body.len().min(HEADER_BYTES)];
    match essence {
        "" | "unknown/unknown" | "application/unknown" | "*/*" => return guess(header, !nosniff),
        // Servers that know no better call everything this.
        "application/octet-stream" if !nosniff && content_type.is_some_and(|t| !t.contains(';')) => {
            return magic(header).unwrap_or(MediaKind::Binary);
        }
        _ => {}
    }
    let declared = declared(essence);
    if nosniff {
        return declared;
    }
    let plain = essence == "text/plain";
    match declared {
        MediaKind::Html | MediaKind::Text | MediaKind::Json => match magic(header) {
            Some(found) => found,
            None if declared == MediaKind::Json => {
                if is_json_feed(header) {
                    MediaKind::Feed
                } else {
                    MediaKind::Json
                }
            }
            None if declared == MediaKind::Html || plain => match root(header) {
                Some(found) => found,
                None if plain && looks_binary(header) => MediaKind::Binary,
                None => declared,
            },
            None => declared,
        },
        MediaKind::Feed | MediaKind::Xml => match root(header) {
            Some(found) => found,
            None if declared == MediaKind::Feed && is_page(header) => MediaKind::Html,
            None if memchr::memmem::find(header, b"<html").is_some() => MediaKind::Xhtml,
            None => declared,
        },
        other => other,
    }
}

/// The `charset` parameter of a Content-Type value.
pub fn charset_of(content_type: &str) -> Option<&str> {
    let mut rest = content_type.split_once(';')?.1;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        if rest.is_empty() {
            return None;
        }
        let name_end = rest.find([';', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(name_end);
        let Some(value) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        let value = value.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\'');
        if name.trim().eq_ignore_ascii_case("charset") && !value.is_empty() {
            return Some(value);
        }
        rest = after;
    }
}

/// `text/html` of `Text/HTML; charset=x`; nothing when it is no type at all.
fn essence_of(content_type: &str) -> Cow<'_, str> {
    let essence = content_type.split(';').next().unwrap_or("").trim();
    let is_type = essence.split_once('/').is_some_and(|(t, s)| !t.is_empty() && !s.is_empty());
    match essence {
        _ if !is_type => Cow::Borrowed(""),
        lower if !lower.bytes().any(|b| b.is_ascii_uppercase()) => Cow::Borrowed(lower),
        mixed => Cow::Owned(mixed.to_ascii_lowercase()),
    }
}

fn declared(essence: &str) -> MediaKind {
    let (top, sub) = essence.split_once('/').unwrap_or((essence, ""));
    match (top, sub) {
        (_, "html") => MediaKind::Html,
        ("application", "xhtml+xml" | "vnd.wap.xhtml+xml") => MediaKind::Xhtml,
        ("application", "rss+xml" | "atom+xml" | "feed+json") => MediaKind::Feed,
        ("text" | "application", "xml") => MediaKind::Xml,
        (_, sub) if sub.ends_with("+xml") => MediaKind::Xml,
        (_, sub) if sub == "json" || sub.ends_with("+json") => MediaKind::Json,
        ("text", _) => MediaKind::Text,
        ("application", "javascript" | "ecmascript" | "x-javascript" | "x-ndjson" | "yaml" | "toml" | "rtf") => {
            MediaKind::Text
        }
        ("application", "pdf" | "x-pdf") => MediaKind::Pdf,
        ("image", _) => MediaKind::Image,
        ("audio" | "video" | "font", _) | ("application", "ogg") => MediaKind::Media,
        ("application", "zip" | "gzip" | "x-gzip" | "x-tar" | "x-bzip2" | "x-xz" | "zstd" | "x-7z-compressed") => {
            MediaKind::Archive
        }
        _ => MediaKind::Binary,
    }
}

/// Decides without a declared type. HTML and PDF can carry scripts, so they are only guessed when `scriptable`.
fn guess(header: &[u8], scriptable: bool) -> MediaKind {
    let body = skip_bom_and_space(header);
    if scriptable && is_html(body) {
        return MediaKind::Html;
    }
    if let Some(found) = root(header) {
        return found;
    }
    if starts_with(body, b"<?xml") {
        return if memchr::memmem::find(header, b"<html").is_some() { MediaKind::Xhtml } else { MediaKind::Xml };
    }
    match magic(header) {
        Some(MediaKind::Pdf) if !scriptable => MediaKind::Binary,
        Some(found) => found,
        None if is_json_feed(header) => MediaKind::Feed,
        None if looks_binary(header) => MediaKind::Binary,
        None => MediaKind::Text,
    }
}

fn is_html(body: &[u8]) -> bool {
    const TAGS: [&[u8]; 17] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<script",
        b"<iframe",
        b"<h1",
        b"<div",
        b"<font",
        b"<table",
        b"<a",
        b"<style",
        b"<title",
        b"<b",
        b"<body",
        b"<br",
        b"<p",
        b"<meta",
    ];
    let ends = |i: usize| body.get(i).is_some_and(|b| matches!(b, b' ' | b'>' | b'\t' | b'\n' | b'\r'));
    body.starts_with(b"<!--") || TAGS.iter().any(|tag| starts_with(body, tag) && ends(tag.len()))
}

/// Whether this is a page, and no comment in front of whatever it is.
fn is_page(header: &[u8]) -> bool {
    let body = skip_bom_and_space(header);
    !body.starts_with(b"<!--") && is_html(body)
}

/// Formats known by their first bytes.
fn magic(header: &[u8]) -> Option<MediaKind> {
    const PATTERNS: [(&[u8], MediaKind); 25] = [
        (b"%PDF-", MediaKind::Pdf),
        (b"%!PS-Adobe-", MediaKind::Binary),
        (b"\x89PNG\r\n\x1a\n", MediaKind::Image),
        (b"\xff\xd8\xff", MediaKind::Image),
        (b"GIF87a", MediaKind::Image),
        (b"GIF89a", MediaKind::Image),
        (b"\0\0\x01\0", MediaKind::Image),
        (b"\0\0\x02\0", MediaKind::Image),
        (b"OggS\0", MediaKind::Media),
        (b"ID3", MediaKind::Media),
        (b"fLaC", MediaKind::Media),
        (b"MThd\0\0\0\x06", MediaKind::Media),
        (b"\x1aE\xdf\xa3", MediaKind::Media),
        (b"wOFF", MediaKind::Media),
        (b"wOF2", MediaKind::Media),
        (b"OTTO\0", MediaKind::Media),
        (b"\x1f\x8b\x08", MediaKind::Archive),
        (b"PK\x03\x04", MediaKind::Archive),
        (b"Rar!\x1a\x07", MediaKind::Archive),
        (b"7z\xbc\xaf\x27\x1c", MediaKind::Archive),
        (b"\x28\xb5\x2f\xfd", MediaKind::Archive),
        (b"\xfd7zXZ\0", MediaKind::Archive),
        (b"BZh91AY&SY", MediaKind::Archive),
        (b"\x7fELF", MediaKind::Binary),
        (b"II*\0", MediaKind::Image),
    ];
    let riff = |kind: &[u8]| header.starts_with(b"RIFF") && header.get(8..8 + kind.len()) == Some(kind);
    if riff(b"WEBP") {
        return Some(MediaKind::Image);
    }
    if riff(b"WAVE") || riff(b"AVI ") || header.get(4..8) == Some(b"ftyp") {
        let avif = header.get(8..12).is_some_and(|brand| brand == b"avif" || brand == b"heic");
        return Some(if avif { MediaKind::Image } else { MediaKind::Media });
    }
    PATTERNS.iter().find(|(bytes, _)| header.starts_with(bytes)).map(|(_, kind)| *kind)
}

/// What the root element, behind comments and declarations, makes of a body, if it is that of a feed or a sitemap.
fn root(header: &[u8]) -> Option<MediaKind> {
    // UTF-16 without its zeros is all that is needed to read names.
    let narrow: Vec<u8>;
    let mut rest = match header {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'<', 0, ..] | [0, b'<', ..] => {
            narrow = header.iter().copied().filter(|&b| b != 0 && b < 0x80).collect();
            narrow.trim_ascii_start()
        }
        _ => skip_bom_and_space(header),
    };
    loop {
        let end: &[u8] = match rest {
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            [b'<', b'!', ..] => b">",
            [b'<', b'?', ..] => b"?>",
            _ => break,
        };
        rest = rest[memchr::memmem::find(rest, end)? + end.len()..].trim_ascii_start();
    }
    let rest = rest.strip_prefix(b"<")?;
    let name = &rest[..rest.iter().position(|b| matches!(b, b'>' | b'/') || b.is_ascii_whitespace())?];
    let local = &name[memchr::memrchr(b':', name).map_or(0, |at| at + 1)..];
    match local.to_ascii_lowercase().as_slice() {
        b"rss" | b"feed" => Some(MediaKind::Feed),
        b"rdf" if memchr::memmem::find(header, b"purl.org/rss/").is_some() || is_rdf_feed(rest) => {
            Some(MediaKind::Feed)
        }
        b"urlset" | b"sitemapindex" => Some(MediaKind::Sitemap),
        _ => None,
    }
}

/// RDF is used for other things as well. Without the name space that everybody uses, the channel gives an RSS away.
fn is_rdf_feed(rest: &[u8]) -> bool {
    memchr::memmem::find(rest, b"<channel").is_some() || memchr::memmem::find(rest, b"channel.netscape.com").is_some()
}

/// Whether a JSON document says early that it is a feed.
fn is_json_feed(header: &[u8]) -> bool {
    skip_bom_and_space(header).starts_with(b"{") && memchr::memmem::find(header, b"jsonfeed.org").is_some()
}

/// Whether there are bytes that text does not contain. UTF-16 announces itself.
fn looks_binary(header: &[u8]) -> bool {
    let is_marked = [&b"\xfe\xff"[..], b"\xff\xfe", b"\xef\xbb\xbf"].iter().any(|bom| header.starts_with(bom));
    !is_marked && header.iter().any(|b| matches!(b, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

fn skip_bom_and_space(header: &[u8]) -> &[u8] {
    header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header).trim_ascii_start()
}

fn starts_with(body: &[u8], lower: &[u8]) -> bool {
    body.get(..lower.len()).is_some_and(|b| b.eq_ignore_ascii_case(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let check = |body: &[u8], declared: Option<&str>, nosniff: bool, expected: MediaKind| {
            assert_eq!(sniff(body, declared, nosniff), expected, "{:?} {declared:?}", String::from_utf8_lossy(body));
        };
        use MediaKind::*;
        check(b"anything", Some("text/html"), false, Html);
        check(b"anything", Some("Text/HTML; charset=utf-8"), false, Html);
        check(b"<html>", Some("text/plain"), false, Text);
        check(b"a\0b", Some("text/plain"), false, Binary);
        check(b"a\0b", Some("text/plain"), true, Text);
        check(b"", Some("text/html"), false, Html);
        check(b"", None, false, Text);
        check(b" \n<!DOCTYPE html><p>", None, false, Html);
        check(b"\xef\xbb\xbf<html>", None, false, Html);
        check(b"<html>", None, true, Text);
        check(b"<htmlx>", None, false, Text);
        check(b"<?xml version='1.0'?><urlset>", None, false, Sitemap);
        check(b"<?xml version='1.0'?><s:sitemapindex>", Some("text/plain"), false, Sitemap);
        check(b"<?xml version='1.0'?><svg>", None, false, Xml);
        check(b"<?xml version='1.0'?><html>", None, false, Xhtml);
        check(b"<?xml version='1.0'?><!-- x --><rss>", Some("text/html"), false, Feed);
        check(b"<!DOCTYPE rss SYSTEM 'x'><rss version='0.91'>", Some("text/xml; charset=x"), false, Feed);
        check(b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>", Some("application/rdf+xml"), false, Feed);
        check(b"<rdf:RDF xmlns:foaf='x'>", Some("application/rdf+xml"), false, Xml);
        check(b"\xff\xfe<\0r\0s\0s\0>\0", Some("application/xml"), false, Feed);
        check(b"<!DOCTYPE html><html>", Some("application/rss+xml"), false, Html);
        check(b"<!-- long", Some("application/rss+xml"), false, Feed);
        check(b"<rss>", Some("text/x-thing"), false, Text);
        check(b"{\"version\":\"https:\\/\\/jsonfeed.org\\/version\\/1\"}", Some("application/json"), false, Feed);
        check(b"{\"version\": \"https://jsonfeed.org/version/1\"}", None, false, Feed);
        check(b"{}", Some("application/feed+json"), false, Feed);
        check(b"{}", Some("application/ld+json"), false, Json);
        check(b"{}", Some("text/json"), false, Json);
        check(b"<html>", Some("application/xhtml+xml"), false, Xhtml);
        check(b"<feed>", Some("application/atom+xml"), false, Feed);
        check(b"%PDF-1.7", Some("text/html"), false, Pdf);
        check(b"%PDF-1.7", Some("text/html"), true, Html);
        check(b"%PDF-1.7", Some("application/octet-stream"), false, Pdf);
        check(b"\x89PNG\r\n\x1a\n", None, false, Image);
        check(b"RIFF\0\0\0\0WEBP", None, false, Image);
        check(b"\0\0\0\x18ftypmp42", None, false, Media);
        check(b"PK\x03\x04", Some("application/zip"), false, Archive);
        check(b"{}", Some("application/json"), false, Json);
        check(b"x", Some("nonsense"), false, Text);
        check(b"x", Some("application/x-thing"), false, Binary);
        check(b"\x01\x02", None, false, Binary);
    }

    #[test]
    fn charset_parameters_are_found() {
        let check = |value: &str, expected: Option<&str>| assert_eq!(charset_of(value), expected, "{value}");
        check("text/html; charset=utf-8", Some("utf-8"));
        check("text/html;CHARSET=\"UTF-8\"", Some("UTF-8"));
        check("text/html; a=b; charset=x ; c=d", Some("x"));
        check("text/html; a=\"; charset=no\"; charset=yes", Some("yes"));
        check("text/html; charset='utf-8'", Some("utf-8"));
        check("text/html; charset", None);
        check("text/html; charset=", None);
        check("text/html", None);
        check("text/html;;;", None);
    }
}
