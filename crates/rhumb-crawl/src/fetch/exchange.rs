//! One request and its response on an open connection, under deadlines and caps.

use std::error::Error as _;
use std::io;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body as _, Incoming};
use rhumb_core::outcome::Outcome;
use rhumb_store::warc::Truncated;
use rhumb_store::warc::http::synth_head;
use tokio::time::timeout_at;

use super::budget::{FREE_BYTES, Held};
use super::connect::{Link, Sender};
use super::{Failure, Fetched, Fetcher, Request};

/// What is made ready for a body because its sender said so.
const TRUSTED_BYTES: usize = 256 << 10;

/// What we can read. Order is preference.
const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";
const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Sends the request and reads the whole response.
pub(crate) async fn exchange(
    link: &mut Link,
    fetcher: &Fetcher,
    request: &Request<'_>,
    started: Instant,
    deadline: Instant,
) -> Result<Fetched, Failure> {
    let limits = &fetcher.limits;
    let content_bytes_max = limits.body_bytes_max + super::http2::CONNECTION_WINDOW_BYTES as usize;
    link.passed.lock().expect("nobody panics while copying a head").reset(limits.head_bytes_max, content_bytes_max);
    let http2 = matches!(link.sender, Sender::Http2(_));
    let (message, request_head) = build(fetcher, request, http2)?;
    let patience = (Instant::now() + limits.head).min(deadline).into();
    let sent: std::pin::Pin<Box<dyn Future<Output = hyper::Result<http::Response<Incoming>>> + Send>> =
        match &mut link.sender {
            Sender::Http1(sender) => Box::pin(sender.send_request(message)),
            Sender::Http2(sender) => Box::pin(sender.send_request(message)),
        };
    let response = match timeout_at(patience, link.drive(sent)).await {
        Err(_) => return Err(Failure::new(Outcome::HeadTimeout, format!("no response head within {:?}", limits.head))),
        Ok(Err(ended)) => return Err(failure_of(ended, link)),
        Ok(Ok(Err(e))) => return Err(failure_of(Some(e), link)),
        Ok(Ok(Ok(response))) => response,
    };
    let (parts, incoming) = response.into_parts();
    fetcher.secrets.learn(request.url, &parts.headers);
    let status = parts.status.as_u16();
    if parts.headers.contains_key(header::TRANSFER_ENCODING) && parts.headers.contains_key(header::CONTENT_LENGTH) {
        // Two answers to the question where the body ends: whoever believes the other one sees another response (RFC 9112,
        // section 6.3).
        return Err(Failure::new(Outcome::BadHttp, "Content-Length and Transfer-Encoding in one response"));
    }
    let body_max = limits.body_bytes_max.min(request.body_bytes_max);
    let mut held = fetcher.budget.hold();
    let (body, cut, trouble) = read_body(link, incoming, fetcher, body_max, deadline, &mut held).await;
    link.nudge().await;
    let ended = Instant::now();
    let mut head = link.passed.lock().expect("nobody panics while copying a head").take_head();
    if http2 {
        head = synth_head(status, parts.headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())));
    }
    let mut outcome = Outcome::of_status(status);
    let mut detail = String::new();
    if let Some(trouble) = trouble {
        // What came before the trouble is a page all the same if it is more than nothing.
        if body.is_empty() || matches!(trouble.outcome, Outcome::BadHttp | Outcome::TlsFailed) {
            outcome = trouble.outcome;
        }
        detail = trouble.detail;
    } else if cut == Some(Truncated::Length) {
        detail = format!("body cut at {} bytes", body.len());
    } else if link.has_left_over() {
        detail = "more came than the response announced".to_string();
    }
    if outcome == Outcome::NotModified && request.validators.is_empty() {
        (outcome, detail) = (Outcome::OddStatus, "304 without having been asked for it".to_string());
    }
    Ok(Fetched {
        outcome,
        detail,
        status,
        headers: parts.headers,
        head,
        request_head,
        body,
        cut,
        address: Some(link.address),
        http2,
        started,
        ended,
        kept: false,
        held,
        at: None,
    })
}

fn build(
    fetcher: &Fetcher,
    request: &Request<'_>,
    http2: bool,
) -> Result<(http::Request<Empty<Bytes>>, Vec<u8>), Failure> {
    let url = request.url;
    let authority = &url.origin()[url.scheme().len() + 3..];
    let target = if http2 { url.as_str() } else { url.path_and_query() };
    let unusable = |what: &str| Failure::new(Outcome::BadHttp, format!("cannot be asked for: {what}"));
    let mut message = http::Request::new(Empty::new());
    *message.uri_mut() = target.parse().map_err(|e: http::uri::InvalidUri| unusable(&e.to_string()))?;
    let headers = message.headers_mut();
    let mut raw = Vec::with_capacity(256);
    for part in ["GET ", url.path_and_query(), " HTTP/1.1\r\n", "Host: ", authority, "\r\n"] {
        raw.extend_from_slice(part.as_bytes());
    }
    if !http2 {
        headers.insert(header::HOST, HeaderValue::from_str(authority).map_err(|e| unusable(&e.to_string()))?);
    }
    for (name, written, value) in &fetcher.usual {
        raw.extend_from_slice(written.as_bytes());
        raw.extend_from_slice(value.as_bytes());
        raw.extend_from_slice(b"\r\n");
        headers.insert(name, value.clone());
    }
    let validators = [
        (header::IF_NONE_MATCH, "If-None-Match: ", &request.validators.etag),
        (header::IF_MODIFIED_SINCE, "If-Modified-Since: ", &request.validators.last_modified),
    ];
    for (name, written, value) in validators {
        // Validators come from a server: what cannot stand in a header is not sent back.
        let Some(Ok(value)) = value.as_deref().map(HeaderValue::from_str) else { continue };
        raw.extend_from_slice(written.as_bytes());
        raw.extend_from_slice(value.as_bytes());
        raw.extend_from_slice(b"\r\n");
        headers.insert(name, value);
    }
    if let Some(cookie) = fetcher.secrets.cookie(url) {
        raw.extend_from_slice(b"Cookie: ");
        raw.extend_from_slice(cookie.as_bytes());
        raw.extend_from_slice(b"\r\n");
        headers.insert(header::COOKIE, cookie);
    }
    if let Some(authorization) = fetcher.secrets.authorization(url) {
        // The archive is for others to read; what the user trusted us with is not.
        raw.extend_from_slice(b"Authorization: ***\r\n");
        headers.insert(header::AUTHORIZATION, authorization.clone());
    }
    raw.extend_from_slice(b"\r\n");
    Ok((message, raw))
}

/// Headers that every request carries, with their names as hyper writes them.
pub(crate) fn usual(agent: &str) -> Vec<(header::HeaderName, &'static str, HeaderValue)> {
    // The configuration lets no agent pass that a header cannot hold.
    let agent = HeaderValue::from_str(agent).unwrap_or(HeaderValue::from_static("rhumb"));
    vec![
        (header::USER_AGENT, "User-Agent: ", agent),
        (header::ACCEPT, "Accept: ", HeaderValue::from_static(ACCEPT)),
        (header::ACCEPT_ENCODING, "Accept-Encoding: ", HeaderValue::from_static(ACCEPT_ENCODING)),
    ]
}

async fn read_body(
    link: &mut Link,
    mut incoming: Incoming,
    fetcher: &Fetcher,
    body_max: usize,
    mut deadline: Instant,
    held: &mut Held,
) -> (Vec<u8>, Option<Truncated>, Option<Failure>) {
    let limits = &fetcher.limits;
    let announced = incoming.size_hint().exact().unwrap_or(0).min(body_max as u64);
    // A liar announces much and sends nothing: trust it for a quarter megabyte.
    let trusted = (announced as usize).min(TRUSTED_BYTES);
    let asked = Instant::now();
    if held.grow_to(trusted).await {
        deadline += asked.elapsed();
    }
    let mut body = Vec::with_capacity(trusted);
    let mut window_end = Instant::now() + limits.rate_window;
    let mut window_bytes = 0u64;
    loop {
        let frame = match timeout_at(window_end.min(deadline).into(), link.drive(incoming.frame())).await {
            Err(_) if Instant::now() >= deadline => {
                let detail = format!("the body did not end within {:?}", limits.total);
                return (body, Some(Truncated::Time), Some(Failure::new(Outcome::BodyTimeout, detail)));
            }
            Err(_) if window_bytes < limits.rate_bytes_min => {
                let detail = format!("{window_bytes} bytes within {:?}", limits.rate_window);
                return (body, Some(Truncated::Time), Some(Failure::new(Outcome::TooSlow, detail)));
            }
            Err(_) => {
                window_end = Instant::now() + limits.rate_window;
                window_bytes = 0;
                continue;
            }
            Ok(Err(ended)) => return (body, Some(Truncated::Disconnect), Some(failure_of(ended, link))),
            Ok(Ok(None)) => return (body, None, None),
            Ok(Ok(Some(Err(e)))) => return (body, Some(Truncated::Disconnect), Some(failure_of(Some(e), link))),
            Ok(Ok(Some(Ok(frame)))) => frame,
        };
        if let Some(data) = frame.data_ref() {
            window_bytes += data.len() as u64;
            let room = body_max - body.len();
            let fits = &data[..data.len().min(room)];
            if body.len() + fits.len() > body.capacity() {
                let asked = Instant::now();
                if make_room(&mut body, fits.len(), announced as usize, body_max, held).await {
                    // The host is not to blame for our lack of memory.
                    let waited = asked.elapsed();
                    deadline += waited;
                    window_end += waited;
                }
            }
            body.extend_from_slice(fits);
            if data.len() > room {
                return (body, Some(Truncated::Length), None);
            }
        }
        if Instant::now() >= window_end && window_bytes >= limits.rate_bytes_min {
            window_end = Instant::now() + limits.rate_window;
            window_bytes = 0;
        }
    }
}

/// Grows a body by half, or to what was announced if that is less; true if that had to wait for memory.
async fn make_room(body: &mut Vec<u8>, more: usize, announced: usize, body_max: usize, held: &mut Held) -> bool {
    let least = body.len() + more;
    let step = (body.capacity() + body.capacity() / 2).max(FREE_BYTES / 4);
    let most = if least <= announced { announced } else { body_max };
    let wanted = step.min(most).max(least);
    // While it moves, the body is there twice.
    let waited = held.grow_to(wanted + body.len()).await;
    body.reserve_exact(wanted - body.len());
    waited
}

/// What the end of a connection means for us.
fn failure_of(error: Option<hyper::Error>, link: &Link) -> Failure {
    let passed = link.passed.lock().expect("nobody panics while copying a head");
    // h2 passes on an error's text, not the error: what the meter found is asked of the meter.
    if let Some(excess) = passed.excess() {
        return Failure::new(excess.outcome(), excess.to_string());
    }
    match passed.broken() {
        // Sockets have no such error: TLS found something that is not TLS, or a flood of it.
        Some((io::ErrorKind::InvalidData, text)) => return Failure::new(Outcome::TlsFailed, text),
        // rustls' text has advice for programmers.
        Some((io::ErrorKind::UnexpectedEof, _)) => return Failure::new(Outcome::Reset, "the connection broke off"),
        Some((_, text)) => return Failure::new(Outcome::Reset, text),
        None => {}
    }
    let Some(error) = error else { return Failure::new(Outcome::Reset, "the connection was closed") };
    // hyper tells this kind apart only by its text: the method for it is there for servers alone.
    if error.to_string().contains("too large") {
        return Failure::new(Outcome::HeadTooLarge, error.to_string());
    }
    let mut outcome = if error.is_parse() { Outcome::BadHttp } else { Outcome::Reset };
    let mut cause = error.source();
    while let Some(e) = cause {
        if let Some(h2) = e.downcast_ref::<h2::Error>() {
            return failure_of_h2(h2);
        }
        if let Some(io) = e.downcast_ref::<io::Error>() {
            match io.kind() {
                io::ErrorKind::UnexpectedEof => return Failure::new(Outcome::Reset, "the connection broke off"),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => outcome = Outcome::BadHttp,
                _ => outcome = Outcome::Reset,
            }
        }
        cause = e.source();
    }
    let detail = match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    Failure::new(outcome, detail)
}

/// What h2's error means for us: the server broke off, or it broke the rules.
fn failure_of_h2(error: &h2::Error) -> Failure {
    let text = error.to_string();
    if error.is_remote() {
        return Failure::new(Outcome::Reset, format!("HTTP/2: {text}"));
    }
    // h2 tells these apart only by their text.
    if text.contains("header_list_way_too_large") || text.contains("too_many_continuations") {
        return Failure::new(Outcome::HeadTooLarge, format!("HTTP/2: {text}"));
    }
    // One name for many faults, and for a head that is larger than allowed but not by much.
    let malformed = error.is_reset() && error.reason() == Some(h2::Reason::PROTOCOL_ERROR);
    let text = if malformed { "the answer breaks the rules, or its head is larger than allowed" } else { &text };
    Failure::new(Outcome::BadHttp, format!("HTTP/2: {text}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rhumb_core::net::Guard;
    use rhumb_core::url::Url;
    use rhumb_core::visit::Validators;

    use super::*;
    use crate::fetch::{FetchLimits, tls};

    #[test]
    fn what_cannot_stand_in_a_header_is_not_sent() {
        let tls = tls::client_config(None, 0).expect("TLS");
        let fetcher = Fetcher::new(FetchLimits::default(), "te\r\nst", Arc::new(Guard::default()), tls);
        let url = Url::parse("http://a.test/x?y=%0d%0aInjected:%201").expect("a URL");
        for (etag, kept) in [("\"plain\"", true), ("a\r\nInjected: 1", false), ("a\0b", false), ("a\nb", false)] {
            let validators = Validators { etag: Some(etag.into()), ..Validators::default() };
            let request = Request { url: &url, addresses: &[], validators: &validators, body_bytes_max: 0 };
            for http2 in [false, true] {
                let (message, raw) = build(&fetcher, &request, http2).map_err(|f| f.detail).expect("a request");
                assert_eq!(message.headers().contains_key(header::IF_NONE_MATCH), kept, "{etag:?}");
                let raw = String::from_utf8(raw).expect("text");
                assert_eq!(raw.to_lowercase().contains("if-none-match"), kept, "{etag:?}");
                assert!(!raw.contains("\nInjected") && !raw.contains('\0'), "{raw:?}");
                assert!(raw.lines().all(|line| !line.contains('\r')), "{raw:?}");
            }
        }
    }
}
