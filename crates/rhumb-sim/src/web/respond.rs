//! The answer to a request: page, redirect, error, robots.txt, or "not modified".
//!
//! [`Web::respond`] is the whole function in one call. [`Web::respond_into`] is the same for a server that reuses its
//! buffers: the body goes into the [`Scratch`], the rest comes back as a [`Head`].

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use super::links::Plan;
use super::path::{Target, put_number};
use super::{Page, Web};
use crate::hash::{Dice, Purpose};

/// What is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The `Host` header: name, with or without port.
    pub host: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The `If-None-Match` header.
    pub if_none_match: Option<&'a str>,
    /// The `If-Modified-Since` header.
    pub if_modified_since: Option<&'a str>,
    /// Whether gzip is accepted.
    pub gzip: bool,
    /// Now, in milliseconds since 1970.
    pub time_ms: u64,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Headers, without those that belong to the connection (`Content-Length`, `Date`, `Connection`).
    pub headers: Vec<(String, String)>,
    /// The body, encoded as `Content-Encoding` says.
    pub body: Vec<u8>,
    /// How long the answer takes; a document put in by a test may have its own.
    pub latency_ms: u64,
}

impl Reply {
    /// A reply with a body of this type, at once.
    pub fn new(status: u16, content_type: &str, body: &str) -> Self {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Reply { status, headers, body: body.as_bytes().to_vec(), latency_ms: 0 }
    }

    /// A redirect to this location.
    pub fn redirect(status: u16, location: &str) -> Self {
        Reply::new(status, "text/html", "").with_header("Location", location)
    }

    /// The reply with one more header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The reply after so many milliseconds.
    pub fn with_latency_ms(mut self, latency_ms: u64) -> Self {
        self.latency_ms = latency_ms;
        self
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// An answer without its body.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// How long the answer takes.
    pub latency_ms: u64,
    /// The host that answers, if the name was one of ours.
    pub host: Option<u64>,
    /// Header lines, each ended by CR LF, ready to be sent.
    pub lines: Vec<u8>,
}

impl Head {
    fn new(status: u16) -> Self {
        Head { status, lines: Vec::with_capacity(256), ..Head::default() }
    }

    fn line(&mut self, name: &str, value: &str) {
        for part in [name, ": ", value, "\r\n"] {
            self.lines.extend_from_slice(part.as_bytes());
        }
    }
}

/// Buffers that survive from request to request.
#[derive(Default)]
pub struct Scratch {
    /// The body of the last answer.
    pub body: Vec<u8>,
    plans: Vec<Plan>,
}

const HTML: &str = "text/html; charset=utf-8";

impl Web {
    /// The answer to a request.
    pub fn respond(&self, request: &Request<'_>) -> Reply {
        let mut scratch = Scratch::default();
        let head = self.respond_into(request, &mut scratch);
        let lines = String::from_utf8_lossy(&head.lines);
        let headers = lines.lines().filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Reply { status: head.status, headers, body: scratch.body, latency_ms: head.latency_ms }
    }

    /// The answer to a request, its body left in `scratch.body`.
    pub fn respond_into(&self, request: &Request<'_>, scratch: &mut Scratch) -> Head {
        scratch.body.clear();
        let Some(host) = self.host_index(request.host) else {
            return message(404, "no such host", &mut scratch.body);
        };
        let fixed = match request.path {
            "/robots.txt" => self.document(host, request.path).or_else(|| Some(self.robots_reply(host))),
            path => self.document(host, path),
        };
        let mut head = match fixed {
            Some(reply) => self.fixed(reply, request, &mut scratch.body),
            None => match self.target(host, request.path) {
                Some(target) => self.target_head(target, request, scratch),
                None => message(404, "no such page", &mut scratch.body),
            },
        };
        head.host = Some(host);
        head.latency_ms = head.latency_ms.max(self.latency_ms(host));
        if self.config.gzip && request.gzip && !scratch.body.is_empty() && head.status == 200 {
            compress(&mut head, &mut scratch.body);
        }
        head
    }

    /// The status with which a target answers an unconditional request.
    pub fn status_of(&self, target: Target) -> u16 {
        match target {
            Target::Page { .. } | Target::Print { .. } | Target::Private { .. } => 200,
            Target::Redirect { host, key } => {
                [301, 302, 307, 308][(self.draw(Purpose::Status, host, key) % 4) as usize]
            }
            Target::Missing { host, key } => {
                if self.draw(Purpose::Status, host, key).is_multiple_of(4) {
                    410
                } else {
                    404
                }
            }
            Target::Error { host, key } => {
                let draw = self.draw(Purpose::Status, host, key);
                if crate::hash::unit(draw) < self.config.unavailable_share { 503 } else { 500 }
            }
        }
    }

    /// Where the redirect `/go/{key}` of a host leads. Chains end, because keys fall along them.
    pub fn redirect_target(&self, host: u64, key: u64) -> Target {
        let mut dice = Dice::new(self.draw(Purpose::Redirect, host, key));
        match dice.below(16) {
            0 | 1 if key > 0 => Target::Redirect { host, key: dice.below(key) },
            2 if self.is_closed(host) => self.closed_target(host, &mut dice),
            3..6 if self.hosts() > 1 && self.config.foreign_share > 0.0 => self.foreign_target(host, &mut dice),
            _ => Target::Page { host, page: self.popular_page(&mut dice, self.pages_of(host)) },
        }
    }

    /// The version of a page at a time, and since when (seconds) it has stood.
    pub fn version(&self, host: u64, page: u64, time_ms: u64) -> (u64, u64) {
        let mut dice = Dice::new(self.draw(Purpose::Change, host, page));
        let period_ms = self.config.change_period_s.saturating_mul(1_000).saturating_mul(1 << dice.below(7)) / 4;
        if period_ms == 0 {
            const FIRST_S: u64 = 1_640_995_200; // 2022-01-01
            return (0, FIRST_S + dice.below(2 * 365 * 86_400));
        }
        let phase = dice.below(period_ms);
        let version = (time_ms + phase) / period_ms;
        (version, (version * period_ms).saturating_sub(phase) / 1_000)
    }

    fn target_head(&self, target: Target, request: &Request<'_>, scratch: &mut Scratch) -> Head {
        let status = self.status_of(target);
        match target {
            Target::Page { host, page } | Target::Print { host, page } => self.page_head(host, page, request, scratch),
            Target::Private { host, key } => {
                let out = &mut scratch.body;
                out.extend_from_slice(b"<!doctype html>\n<title>Private</title>\n<p>Number ");
                put_number(out, key);
                out.extend_from_slice(b". Robots are asked not to read this. <a href=\"");
                self.put_path(Target::Private { host, key: key + 1 }, "&amp;", out);
                out.extend_from_slice(b"\">Next</a>\n");
                let mut head = Head::new(status);
                head.line("Content-Type", HTML);
                head
            }
            Target::Redirect { host, key } => {
                let to = self.redirect_target(host, key);
                let mut location = Vec::new();
                if to.host() != host || self.draw(Purpose::Redirect, host, key) & 1 == 0 {
                    self.put_origin(to.host(), &mut location);
                }
                self.put_path(to, "&", &mut location);
                let mut head = message(status, "moved", &mut scratch.body);
                head.line("Location", &String::from_utf8_lossy(&location));
                head
            }
            Target::Missing { .. } => message(status, "not here", &mut scratch.body),
            Target::Error { .. } => {
                let mut head = message(status, "out of order", &mut scratch.body);
                if status == 503 {
                    head.line("Retry-After", "1");
                }
                head
            }
        }
    }

    fn page_head(&self, host: u64, page: u64, request: &Request<'_>, scratch: &mut Scratch) -> Head {
        let Page { host, page } = self.twin(host, page).unwrap_or(Page { host, page });
        let (version, since_s) = self.version(host, page, request.time_ms);
        // The tag of a compressed body is weak, because the bytes differ from those of the plain one.
        let weak = if self.config.gzip && request.gzip { "W/" } else { "" };
        let tag = format!("\"{:x}-{version:x}\"", self.draw(Purpose::Change, host, page ^ 1 << 60));
        let current = match (request.if_none_match, request.if_modified_since) {
            (Some(tags), _) => tags.split(',').map(str::trim).any(|t| t == "*" || t.trim_start_matches("W/") == tag),
            (None, Some(date)) => httpdate::parse_http_date(date)
                .ok()
                .and_then(|date| date.duration_since(UNIX_EPOCH).ok())
                .is_some_and(|date| date.as_secs() >= since_s),
            (None, None) => false,
        };
        let mut head = Head::new(if current { 304 } else { 200 });
        if !current {
            head.line("Content-Type", HTML);
            self.put_page(host, page, version, &mut scratch.plans, &mut scratch.body);
        }
        head.lines.extend_from_slice(b"ETag: ");
        head.line_rest(weak, &tag);
        let date = httpdate::HttpDate::from(UNIX_EPOCH + Duration::from_secs(since_s));
        // Writing into memory cannot fail.
        let _ = write!(head.lines, "Last-Modified: {date}\r\n");
        head
    }

    /// A hand-made document; if it has an `ETag`, whoever has it already is told so.
    fn fixed(&self, reply: Reply, request: &Request<'_>, body: &mut Vec<u8>) -> Head {
        let known = |tag: &str| request.if_none_match.is_some_and(|tags| tags.split(',').any(|t| t.trim() == tag));
        let current = reply.status == 200 && reply.header("ETag").is_some_and(known);
        let mut head = Head::new(if current { 304 } else { reply.status });
        for (name, value) in &reply.headers {
            head.line(name, value);
        }
        head.latency_ms = reply.latency_ms;
        if !current {
            body.extend_from_slice(&reply.body);
        }
        head
    }
}

impl Head {
    /// Ends a line that has been begun by hand.
    fn line_rest(&mut self, prefix: &str, value: &str) {
        for part in [prefix, value, "\r\n"] {
            self.lines.extend_from_slice(part.as_bytes());
        }
    }
}

/// A short page that says what happened.
fn message(status: u16, text: &str, body: &mut Vec<u8>) -> Head {
    let _ = write!(body, "<!doctype html>\n<title>{status}</title>\n<p>{text}</p>\n");
    let mut head = Head::new(status);
    head.line("Content-Type", HTML);
    head
}

fn compress(head: &mut Head, body: &mut Vec<u8>) {
    if String::from_utf8_lossy(&head.lines).to_ascii_lowercase().contains("content-encoding:") {
        return;
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(body.len() / 2), flate2::Compression::fast());
    if encoder.write_all(body).is_err() {
        return;
    }
    if let Ok(compressed) = encoder.finish() {
        *body = compressed;
        head.line("Content-Encoding", "gzip");
        head.line("Vary", "Accept-Encoding");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WebConfig;
    use std::io::Read;

    fn ask<'a>(host: &'a str, path: &'a str) -> Request<'a> {
        Request { host, path, ..Request::default() }
    }

    #[test]
    fn unknown_hosts_and_paths_are_404() {
        let web = Web::new(WebConfig::plain(2, 5)).unwrap();
        for (host, path) in [("h9.sim.test", "/"), ("example.com", "/"), ("h0.sim.test", "/nothing"), ("", "")] {
            assert_eq!(web.respond(&ask(host, path)).status, 404, "{host}{path}");
        }
    }

    #[test]
    fn trouble_answers_as_it_should() {
        let web = Web::new(WebConfig { unavailable_share: 0.5, ..WebConfig::default() }).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for key in 0..40 {
            for path in
                [Target::Redirect { host: 3, key }, Target::Missing { host: 3, key }, Target::Error { host: 3, key }]
            {
                let url = web.target_url(path);
                let reply = web.respond(&ask("h3.sim.test:80", url.strip_prefix("http://h3.sim.test").unwrap()));
                assert_eq!(reply.status, web.status_of(path));
                seen.insert(reply.status);
                if let Target::Redirect { host, key } = path {
                    let to = web.target_url(web.redirect_target(host, key));
                    assert!(to.ends_with(reply.header("location").unwrap()), "{reply:?} {to}");
                }
            }
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [301, 302, 307, 308, 404, 410, 500, 503]);
    }

    #[test]
    fn pages_change_with_time_and_conditional_requests_notice() {
        let web = Web::new(WebConfig { change_period_s: 1_000, ..WebConfig::plain(1, 5) }).unwrap();
        let at = |time_ms| web.respond(&Request { time_ms, ..ask("h0.sim.test", "/") });
        let now = 1_700_000_000_000;
        let first = at(now);
        let (etag, modified) = (first.header("etag").unwrap(), first.header("last-modified").unwrap());
        let again = Request { time_ms: now, if_none_match: Some(etag), ..ask("h0.sim.test", "/") };
        assert_eq!(web.respond(&again).status, 304);
        assert!(web.respond(&again).body.is_empty());
        let since = Request { time_ms: now, if_modified_since: Some(modified), ..ask("h0.sim.test", "/") };
        assert_eq!(web.respond(&since).status, 304);
        let later = now + 17_000_000;
        assert_ne!(at(later).body, first.body);
        assert_eq!(web.respond(&Request { time_ms: later, ..again }).status, 200);
        assert_eq!(web.respond(&Request { time_ms: later, ..since }).status, 200);
        let (_, since_s) = web.version(0, 0, later);
        assert_eq!(web.version(0, 0, since_s * 1_000 + 1_000).0, web.version(0, 0, later).0);
        assert_ne!(web.version(0, 0, since_s * 1_000 - 1_000).0, web.version(0, 0, later).0);
    }

    #[test]
    fn gzip_when_asked() {
        let web = Web::new(WebConfig { gzip: true, ..WebConfig::plain(1, 5) }).unwrap();
        let plain = web.respond(&ask("h0.sim.test", "/"));
        let packed = web.respond(&Request { gzip: true, ..ask("h0.sim.test", "/") });
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        assert!(packed.body.len() < plain.body.len() * 2 / 3);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain.body);
    }

    #[test]
    fn documents_stand_in_front() {
        let web = Web::new(WebConfig::plain(1, 5)).unwrap();
        web.set_document(0, "/a?b=1", Reply::new(200, "text/plain", "hand-made").with_latency_ms(7));
        let reply = web.respond(&ask("h0.sim.test", "/a?b=1"));
        assert_eq!((reply.body.as_slice(), reply.latency_ms), (&b"hand-made"[..], 7));
        web.clear_document(0, "/a?b=1");
        assert_eq!(web.respond(&ask("h0.sim.test", "/a?b=1")).status, 404);
    }
}
