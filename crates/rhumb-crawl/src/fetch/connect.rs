//! Dialling: the address is judged in the moment it is dialled, on every hop, whatever was resolved before.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use rhumb_core::outcome::Outcome;
use rhumb_core::url::Host;
use rustls_pki_types::ServerName;
use tokio::net::TcpSocket;
use tokio::time::timeout_at;

use super::below::{Below, Gauge};
use super::tee::{Passed, Tee};
use super::{Failure, Fetcher, Request};

type Body = Empty<Bytes>;

/// An open connection and the future that moves its bytes.
pub(crate) struct Link {
    pub address: IpAddr,
    pub sender: Sender,
    pub passed: Arc<Mutex<Passed>>,
    driver: Option<Moving>,
    /// With which error the driver ended, if it did.
    ended: Option<hyper::Error>,
}

/// What moves the bytes of a connection, for as long as it is polled.
pub(crate) type Moving = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

pub(crate) enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

impl Link {
    /// Moves bytes while `work` waits for them. `Err` if the connection ended and `work` cannot.
    pub async fn drive<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Option<hyper::Error>> {
        let mut work = std::pin::pin!(work);
        let (driver, passed, end) = (&mut self.driver, &self.passed, &mut self.ended);
        std::future::poll_fn(move |cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            let ended = poll_driver(driver, passed, cx);
            // What the driver just did may be what the work waits for.
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                if let Poll::Ready(Err(e)) = ended {
                    *end = Some(e);
                }
                return Poll::Ready(Ok(done));
            }
            match ended {
                Poll::Ready(ended) => Poll::Ready(Err(ended.err())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Moves bytes once, without waiting.
    pub async fn nudge(&mut self) {
        let (driver, passed, ended) = (&mut self.driver, &self.passed, &mut self.ended);
        std::future::poll_fn(move |cx| {
            if let Poll::Ready(Err(e)) = poll_driver(driver, passed, cx) {
                *ended = Some(e);
            }
            Poll::Ready(())
        })
        .await
    }

    /// Whether bytes came behind the end of the response. The connection ends with them, so that nothing of them is taken for
    /// the next answer.
    pub fn has_left_over(&self) -> bool {
        // hyper tells this kind apart only by its text.
        self.ended.as_ref().is_some_and(|e| e.to_string().contains("unexpected message"))
    }

    /// Whether another request can be sent.
    pub fn is_reusable(&self) -> bool {
        self.driver.is_some()
            && match &self.sender {
                Sender::Http1(sender) => sender.is_ready(),
                Sender::Http2(sender) => sender.is_ready(),
            }
    }

    /// Whether the server has sent anything since the last request.
    pub fn answered(&self) -> bool {
        self.passed.lock().expect("nobody panics while copying a head").any()
    }
}

fn poll_driver(driver: &mut Option<Moving>, passed: &Mutex<Passed>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
    let Some(running) = driver else { return Poll::Ready(Ok(())) };
    passed.lock().expect("nobody panics while copying a head").make_room();
    let polled = running.as_mut().poll(cx);
    if polled.is_ready() {
        *driver = None;
    }
    polled
}

/// Opens a connection to the first address that may be dialled.
pub(crate) async fn dial(
    fetcher: &Fetcher,
    host: &Host,
    request: &Request<'_>,
    deadline: Instant,
) -> Result<Link, (Failure, Option<IpAddr>)> {
    let judged = |a: &&IpAddr| fetcher.guard.judge(host.name(), host.port(), **a).is_ok();
    let Some(&address) = request.addresses.iter().find(judged) else {
        // The class of the address stays out of what others may read: it would tell them of our network.
        return Err((Failure::new(Outcome::BlockedAddress, "no address of this host may be dialled"), None));
    };
    let failed = |outcome, detail: String| (Failure::new(outcome, detail), Some(address));
    let limits = &fetcher.limits;
    let target = SocketAddr::new(address, host.port());
    let socket = socket(target).await.map_err(|e| failed(Outcome::Refused, e.to_string()))?;
    let patience = (Instant::now() + limits.connect).min(deadline).into();
    let tcp = match timeout_at(patience, socket.connect(target)).await {
        Err(_) => return Err(failed(Outcome::ConnectTimeout, format!("no connection within {:?}", limits.connect))),
        Ok(Err(e)) if e.kind() == io::ErrorKind::TimedOut => {
            return Err(failed(Outcome::ConnectTimeout, e.to_string()));
        }
        // It was there, and is gone before we looked.
        Ok(Err(e)) if e.kind() == io::ErrorKind::ConnectionReset => return Err(failed(Outcome::Reset, e.to_string())),
        Ok(Err(e)) => return Err(failed(Outcome::Refused, e.to_string())),
        Ok(Ok(tcp)) => tcp,
    };
    // The request goes out as one small write; waiting to fill a packet would only cost time.
    let _ = tcp.set_nodelay(true);
    let mut passed = Arc::new(Mutex::new(Passed::default()));
    let gauge = Arc::new(Gauge::default());
    let shaken = if host.scheme() == "https" {
        let patience = (Instant::now() + limits.tls).min(deadline).into();
        let name = host.name().trim_start_matches('[').trim_end_matches(']').to_string();
        let name = ServerName::try_from(name).map_err(|e| failed(Outcome::TlsFailed, e.to_string()))?;
        let tls = match timeout_at(patience, fetcher.tls.connect(name, Below::new(tcp, gauge.clone()))).await {
            Err(_) => return Err(failed(Outcome::TlsFailed, format!("no TLS handshake within {:?}", limits.tls))),
            Ok(Err(e)) => return Err(failed(Outcome::TlsFailed, e.to_string())),
            Ok(Ok(tls)) => tls,
        };
        if tls.get_ref().1.alpn_protocol() == Some(b"h2") {
            passed = Arc::new(Mutex::new(Passed::of_http2()));
            let shaken = super::http2::shake(limits, Tee::new(tls, passed.clone(), gauge.clone())).await;
            shaken.map(|(sender, driver)| (Sender::Http2(sender), driver))
        } else {
            shake_http1(fetcher, Tee::new(tls, passed.clone(), gauge.clone())).await
        }
    } else {
        shake_http1(fetcher, Tee::new(tcp, passed.clone(), gauge.clone())).await
    };
    let (sender, driver) = shaken.map_err(|e| failed(Outcome::BadHttp, e.to_string()))?;
    Ok(Link { address, sender, passed, driver: Some(driver), ended: None })
}

/// A socket to connect with. A lack of file descriptors is our trouble, not the host's: others will be given back soon, and if
/// not, the crawl stops because it cannot open its own files either.
async fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    static TOLD: std::sync::Once = std::sync::Once::new();
    loop {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        match socket {
            Err(e) if matches!(e.raw_os_error(), Some(EMFILE | ENFILE)) => {
                TOLD.call_once(|| tracing::warn!("out of file descriptors; visits wait for one"));
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            other => return other,
        }
    }
}

async fn shake_http1<S>(fetcher: &Fetcher, stream: Tee<S>) -> hyper::Result<(Sender, Moving)>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::Builder::new()
        .max_headers(fetcher.limits.head_lines_max)
        .max_buf_size(fetcher.limits.head_bytes_max.max(8 << 10))
        .title_case_headers(true)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .handshake(stream)
        .await?;
    Ok((Sender::Http1(sender), Box::pin(connection)))
}
