//! HTTPS: the same web over TLS, HTTP/1.1 and HTTP/2, by hyper.
//!
//! One certificate authority per server; a leaf for each name is issued when the name is first asked for, and for the
//! local address when a client sends no name. All names share one key for session tickets, as those of a content delivery
//! network do: only the client's care keeps sessions apart. Tests give the authority's certificate to their client.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use hyper::body::{Body, Frame, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::LazyConfigAcceptor;

use super::http::has_token;
use super::log::{Answering, Connection, Log, LogEntry};
use super::{Shared, accept};
use crate::web::Web;
use crate::web::respond::{Request, Scratch};

/// Leaves kept ready; a test web has few hosts, and beyond this a leaf is simply issued again.
const LEAVES_MAX: usize = 10_000;

/// The certificate authority of one server.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    leaf_key: KeyPair,
    tickets: Arc<dyn rustls::server::ProducesTickets>,
    http2: bool,
    leaves: Mutex<BTreeMap<String, Arc<rustls::ServerConfig>>>,
}

impl Authority {
    pub(crate) fn new(http2: bool) -> io::Result<Self> {
        Self::make(http2).map_err(io::Error::other)
    }

    fn make(http2: bool) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "rhumb-sim");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let tickets = rustls::crypto::ring::Ticketer::new()?;
        Ok(Authority { issuer, leaf_key: KeyPair::generate()?, tickets, http2, leaves: Mutex::default() })
    }

    pub(crate) fn ca_pem(&self) -> String {
        self.issuer.pem()
    }

    /// The TLS configuration with a certificate for this name or address.
    fn config_for(&self, name: &str) -> io::Result<Arc<rustls::ServerConfig>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = leaves.get(name) {
            return Ok(config.clone());
        }
        let params = CertificateParams::new(vec![name.to_owned()]).map_err(io::Error::other)?;
        let leaf = params.signed_by(&self.leaf_key, &self.issuer).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key))
            .map_err(io::Error::other)?;
        let offered: &[&[u8]] = if self.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        config.ticketer = self.tickets.clone();
        config.alpn_protocols = offered.iter().map(|protocol| protocol.to_vec()).collect();
        let config = Arc::new(config);
        if leaves.len() >= LEAVES_MAX {
            leaves.clear();
        }
        leaves.insert(name.to_owned(), config.clone());
        Ok(config)
    }
}

/// Serves connections for ever.
pub(crate) async fn listen(listener: TcpListener, web: Web, shared: Arc<Shared>, authority: Arc<Authority>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let (stream, peer) = accept(&listener).await;
        let (web, shared, authority) = (web.clone(), shared.clone(), authority.clone());
        tokio::spawn(async move {
            let Ok(local) = stream.local_addr() else { return };
            if shared.welcomes(local) {
                // A failed handshake or a client that goes away is no failure of ours.
                let _ = converse(stream, local, peer, web, shared, &authority).await;
            }
        });
    }
}

async fn converse(
    stream: tokio::net::TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
    web: Web,
    shared: Arc<Shared>,
    authority: &Authority,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let connection = Arc::new(Log::open(&shared.log, local, peer, "https"));
    let hello = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let name = hello.client_hello().server_name().map_or_else(|| local.ip().to_string(), str::to_owned);
    let stream = hello.into_stream(authority.config_for(&name)?).await?;
    let (session, server) = (stream.get_ref().1, &shared.handshakes);
    let resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    if resumed { &server.resumed } else { &server.full }.fetch_add(1, Ordering::Relaxed);
    let http2 = session.alpn_protocol() == Some(b"h2");
    let (stream, keep_alive) = (TokioIo::new(stream), shared.keep_alive);
    let service = service_fn(move |request| answer(request, web.clone(), shared.clone(), connection.clone()));
    if http2 {
        hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await?;
    } else {
        let server =
            hyper::server::conn::http1::Builder::new().keep_alive(keep_alive).serve_connection(stream, service);
        server.await?;
    }
    Ok(())
}

async fn answer(
    request: http::Request<hyper::body::Incoming>,
    web: Web,
    shared: Arc<Shared>,
    connection: Arc<Connection>,
) -> Result<http::Response<LoggedBody>, Infallible> {
    let text = |value: Option<&HeaderValue>| value.and_then(|v| v.to_str().ok()).map(str::to_owned);
    let authority = request.uri().authority().map(|a| a.as_str().to_owned());
    let host = authority.or_else(|| text(request.headers().get(HOST))).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |p| p.as_str());
    let mut entry = connection.request(request.method().as_str(), &host, path);
    let mut scratch = Scratch::default();
    let ask = Request {
        host: &host,
        path,
        if_none_match: request.headers().get(IF_NONE_MATCH).and_then(|v| v.to_str().ok()),
        if_modified_since: request.headers().get(IF_MODIFIED_SINCE).and_then(|v| v.to_str().ok()),
        gzip: text(request.headers().get(ACCEPT_ENCODING)).is_some_and(|v| has_token(&v, "gzip")),
        time_ms: shared.now_ms(),
    };
    let mut status = 405;
    let mut lines = Vec::new();
    if matches!(*request.method(), http::Method::GET | http::Method::HEAD) {
        let head = web.respond_into(&ask, &mut scratch);
        if head.latency_ms > 0 {
            tokio::time::sleep(Duration::from_millis(head.latency_ms)).await;
        }
        (status, lines) = (head.status, head.lines);
    }
    entry.status = status;
    entry.bytes = scratch.body.len() as u64;
    entry.end_us = connection.now_us();
    shared.log.count();
    let mut response = http::Response::new(LoggedBody {
        rest: Some(Bytes::from(scratch.body)).filter(|_| request.method() != http::Method::HEAD),
        entry: Some(entry),
        _answering: connection.answering(),
        connection,
    });
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for line in String::from_utf8_lossy(&lines).lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        if let (Ok(name), Ok(value)) = (http::HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    Ok(response)
}

/// A body that writes its request into the log when hyper has taken the last of it.
struct LoggedBody {
    rest: Option<Bytes>,
    entry: Option<LogEntry>,
    connection: Arc<Connection>,
    /// Given up behind everything else.
    _answering: Answering,
}

impl Body for LoggedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let now_us = self.connection.now_us();
        let rest = self.rest.take();
        if let Some(entry) = self.entry.as_mut().filter(|_| rest.is_some()) {
            entry.end_us = now_us;
        }
        Poll::Ready(rest.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl Drop for LoggedBody {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.complete = self.is_end_stream();
            self.connection.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Server, ServerConfig, WebConfig};
    use http_body_util::{BodyExt, Empty};
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, ServerName};

    async fn fetch(server: &Server, alpn: &[u8]) -> (http::Version, Vec<u8>) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(server.ca_pem().unwrap().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        let stream = tokio::net::TcpStream::connect(server.tls_addr().unwrap()).await.unwrap();
        let name = ServerName::try_from("h1.sim.test").unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let url = server.tls_web().url(1, 0);
        let request = http::Request::get(&url).header(HOST, "h1.sim.test").body(Empty::<Bytes>::new()).unwrap();
        let response = if alpn == b"h2" {
            let io = TokioIo::new(stream);
            let (mut send, task) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(task);
            send.send_request(request).await.unwrap()
        } else {
            let (mut send, task) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(task);
            send.send_request(request).await.unwrap()
        };
        assert_eq!(response.status(), 200);
        let version = response.version();
        (version, response.into_body().collect().await.unwrap().to_bytes().to_vec())
    }

    #[test]
    fn both_versions_of_http_over_tls() {
        let tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let web = Web::new(WebConfig::plain(3, 5)).unwrap();
        let server = Server::start(web, ServerConfig { tls, ..ServerConfig::default() }).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let expected = server.tls_web().respond(&Request { host: "h1.sim.test", path: "/", ..Request::default() }).body;
        let port = server.tls_addr().unwrap().port();
        assert!(String::from_utf8_lossy(&expected).contains(&format!("https://h0.sim.test:{port}/")));
        for (alpn, version) in [(&b"h2"[..], http::Version::HTTP_2), (b"http/1.1", http::Version::HTTP_11)] {
            assert_eq!(runtime.block_on(fetch(&server, alpn)), (version, expected.clone()));
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while server.log().len() < 2 && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let log = server.log();
        assert_eq!(log.len(), 2);
        assert!(log.iter().all(|e| e.scheme == "https" && e.status == 200 && e.complete), "{log:?}");
        assert!(log[0].host.starts_with("h1.sim.test"));
    }
}
