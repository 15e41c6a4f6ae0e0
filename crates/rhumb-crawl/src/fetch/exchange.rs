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

use super::connect::{Link, Sender};
use super::{Failure, Fetched, Fetcher, Request};

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
    link.passed.lock().expect("nobody panics while copying a head").reset(limits.head_bytes_max);
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
        Ok(Err(ended)) => {
            return Err(ended.map_or_else(|| Failure::new(Outcome::Reset, "the connection was closed"), failure_of));
        }
        Ok(Ok(Err(e))) => return Err(failure_of(e)),
        Ok(Ok(Ok(response))) => response,
    };
    let (parts, incoming) = response.into_parts();
    let status = parts.status.as_u16();
    let body_max = limits.body_bytes_max.min(request.body_bytes_max);
    let (body, cut, trouble) = read_body(link, incoming, fetcher, body_max, deadline).await;
    link.nudge().await;
    let ended = Instant::now();
    let headers: Vec<(String, Vec<u8>)> =
        parts.headers.iter().map(|(n, v)| (n.as_str().to_string(), v.as_bytes().to_vec())).collect();
    let mut head = link.passed.lock().expect("nobody panics while copying a head").take_head();
    if http2 {
        head = synth_head(status, headers.iter().map(|(n, v)| (n.as_str(), v.as_slice())));
    }
    let mut outcome = Outcome::of_status(status);
    let mut detail = String::new();
    if let Some(trouble) = trouble {
        // What came before the trouble is a page all the same if it is more than nothing.
        if body.is_empty() || trouble.outcome == Outcome::BadHttp {
            outcome = trouble.outcome;
        }
        detail = trouble.detail;
    }
    Ok(Fetched {
        outcome,
        detail,
        status,
        headers,
        head,
        request_head,
        body,
        cut,
        address: Some(link.address),
        http2,
        started,
        ended,
        kept: false,
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
    let mut wanted: Vec<(header::HeaderName, &str)> = Vec::with_capacity(6);
    if !http2 {
        wanted.push((header::HOST, authority));
    }
    wanted.push((header::USER_AGENT, &fetcher.agent));
    wanted.push((header::ACCEPT, ACCEPT));
    wanted.push((header::ACCEPT_ENCODING, ACCEPT_ENCODING));
    if let Some(etag) = &request.validators.etag {
        wanted.push((header::IF_NONE_MATCH, etag));
    }
    if let Some(date) = &request.validators.last_modified {
        wanted.push((header::IF_MODIFIED_SINCE, date));
    }
    let mut raw = Vec::with_capacity(256);
    raw.extend_from_slice(format!("GET {} HTTP/1.1\r\n", url.path_and_query()).as_bytes());
    if http2 {
        raw.extend_from_slice(format!("Host: {authority}\r\n").as_bytes());
    }
    for (name, value) in wanted {
        // Validators come from a server: what cannot stand in a header is not sent back.
        let Ok(header) = HeaderValue::from_str(value) else { continue };
        raw.extend_from_slice(title_case(name.as_str()).as_bytes());
        raw.extend_from_slice(b": ");
        raw.extend_from_slice(header.as_bytes());
        raw.extend_from_slice(b"\r\n");
        message.headers_mut().insert(name, header);
    }
    raw.extend_from_slice(b"\r\n");
    Ok((message, raw))
}

/// Header names as hyper writes them.
fn title_case(name: &str) -> String {
    let mut up = true;
    name.chars()
        .map(|c| {
            let out = if up { c.to_ascii_uppercase() } else { c };
            up = c == '-';
            out
        })
        .collect()
}

async fn read_body(
    link: &mut Link,
    mut incoming: Incoming,
    fetcher: &Fetcher,
    body_max: usize,
    deadline: Instant,
) -> (Vec<u8>, Option<Truncated>, Option<Failure>) {
    let limits = &fetcher.limits;
    let announced = incoming.size_hint().exact().unwrap_or(0).min(body_max as u64);
    // A liar announces much and sends nothing: trust it for a quarter megabyte.
    let mut body = Vec::with_capacity((announced as usize).min(256 << 10));
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
            Ok(Err(ended)) => {
                let failure =
                    ended.map_or_else(|| Failure::new(Outcome::Reset, "the connection was closed"), failure_of);
                return (body, Some(Truncated::Disconnect), Some(failure));
            }
            Ok(Ok(None)) => return (body, None, None),
            Ok(Ok(Some(Err(e)))) => return (body, Some(Truncated::Disconnect), Some(failure_of(e))),
            Ok(Ok(Some(Ok(frame)))) => frame,
        };
        if let Some(data) = frame.data_ref() {
            window_bytes += data.len() as u64;
            let room = body_max - body.len();
            body.extend_from_slice(&data[..data.len().min(room)]);
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

/// What hyper's error means for us.
fn failure_of(error: hyper::Error) -> Failure {
    // hyper tells this kind apart only by its text.
    let outcome = if error.to_string().contains("too large") {
        Outcome::HeadTooLarge
    } else if error.is_parse() {
        Outcome::BadHttp
    } else {
        let mut cause = error.source();
        let mut outcome = Outcome::Reset;
        while let Some(e) = cause {
            if let Some(io) = e.downcast_ref::<io::Error>() {
                match io.kind() {
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => outcome = Outcome::BadHttp,
                    _ => outcome = Outcome::Reset,
                }
            }
            cause = e.source();
        }
        outcome
    };
    let detail = match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    Failure::new(outcome, detail)
}
