//! The hostile web on real sockets: every kind at a loopback address of its own, all on one port.
//!
//! The port is bound on every address of this machine, and connections from elsewhere are turned away. So a dial of an
//! address in 127/8 that belongs to no kind is seen too, and counted: the redirects to "this machine" lead there, and a
//! crawler that follows one gives itself away. So does one that sends a cookie it should not have.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::certs::Certificates;
use super::{Asked, Kind, Place, Serve, Wire, kind_at, kind_of, names, page};
use crate::server::accept;
use crate::server::dns::Others;
use crate::server::http::{head_length, put_status};
use crate::server::log::{Connection, Log, LogConfig, LogView};
use crate::web::is_loopback;
use crate::web::respond::Reply;

const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long a connection may be idle between two requests.
const IDLE: Duration = Duration::from_secs(60);

/// Where and how to serve.
#[derive(Clone, Debug, Default)]
pub struct HostileConfig {
    /// The port of HTTP; 0 picks a free one.
    pub port: u16,
    /// The port of HTTPS, if it is served; 0 picks a free one.
    pub tls_port: Option<u16>,
    /// What to remember.
    pub log: LogConfig,
}

/// A connection to an address that belongs to no kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dial {
    /// What was dialled.
    pub address: SocketAddr,
}

/// A header that a crawler should not have sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// Who it was sent to.
    pub host: String,
    /// The whole line.
    pub line: String,
}

/// A running server; it stops when dropped.
pub struct HostileServer {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    place: Arc<Place>,
    log: Arc<Log>,
    dials: Mutex<Vec<Dial>>,
    leaks: Mutex<Vec<Leak>>,
}

impl HostileServer {
    /// Binds the sockets and begins to serve.
    pub fn start(config: HostileConfig) -> io::Result<HostileServer> {
        let http = bind(Ipv4Addr::UNSPECIFIED.into(), config.port)?;
        let port = http.local_addr()?.port();
        let tls = config.tls_port.map(|port| bind(Ipv4Addr::UNSPECIFIED.into(), port)).transpose()?;
        let tls_port = tls.as_ref().map(TcpListener::local_addr).transpose()?.map_or(0, |a| a.port());
        // Nobody lives there; it is only watched. A machine without IPv6 has nothing to watch.
        let six = bind(Ipv6Addr::LOCALHOST.into(), port).ok();
        let certificates = tls.as_ref().map(|_| Certificates::new()).transpose()?.map(Arc::new);
        let shared = Arc::new(Shared {
            place: Arc::new(Place { port, tls_port, certificates, ..Place::default() }),
            log: Arc::new(Log::new(&config.log)?),
            dials: Mutex::default(),
            leaks: Mutex::default(),
        });
        let (stop, mut stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = shared.clone();
        let run = move || {
            runtime.block_on(async {
                let listening = async {
                    let (a, b) = (serving.clone(), serving.clone());
                    tokio::join!(
                        listen(Some(http), false, serving.clone()),
                        listen(tls, true, a),
                        listen(six, false, b)
                    );
                };
                tokio::select! {
                    _ = stopped.wait_for(|stop| *stop) => {}
                    () = listening => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("hostile-web".to_string()).spawn(run)?;
        Ok(HostileServer { shared, stop, thread: Some(thread) })
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.shared.place
    }

    /// The certificate that HTTPS clients must trust, in PEM; what is wrong with a host then is that host's own fault.
    pub fn ca_pem(&self) -> Option<String> {
        self.shared.place.certificates.as_ref().map(|c| c.authority_pem())
    }

    /// Bytes that clients took from each kind that floods them, before they had enough. What lies in the buffers of the
    /// sockets counts too.
    pub fn taken(&self) -> BTreeMap<&'static str, u64> {
        self.shared.place.taken.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the DNS server of [`crate::Server`] says of the hostile names; belongs into its configuration.
    pub fn names(&self) -> Others {
        Others::new(names::answer)
    }

    /// Requests and connections so far. A connection to a kind that reads no request counts as one with an empty path.
    pub fn log_view(&self) -> LogView {
        self.shared.log.view()
    }

    /// Requests so far by kind, those of its sub-domains included.
    pub fn requests(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for entry in self.log_view().requests {
            if let Some(kind) = kind_of(&entry.host) {
                *counts.entry(kind.name).or_default() += 1;
            }
        }
        counts
    }

    /// Connections to addresses that nobody may dial.
    pub fn dials(&self) -> Vec<Dial> {
        self.shared.dials.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Cookies and credentials that were sent.
    pub fn leaks(&self) -> Vec<Leak> {
        self.shared.leaks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops serving and closes all connections.
    pub fn stop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.log.flush();
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn bind(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((address, port))
        .map_err(|e| io::Error::new(e.kind(), format!("listen for the hostile web on port {port}: {e}")))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves connections for ever.
async fn listen(listener: Option<TcpListener>, tls: bool, shared: Arc<Shared>) {
    let Some(Ok(listener)) = listener.map(tokio::net::TcpListener::from_std) else {
        return std::future::pending().await;
    };
    loop {
        let (stream, peer) = accept(&listener).await;
        let shared = shared.clone();
        tokio::spawn(async move {
            let Ok(local) = stream.local_addr() else { return };
            if !is_loopback(local.ip()) {
                return;
            }
            let dialled = match local.ip().to_canonical() {
                IpAddr::V4(address) => kind_at(address),
                IpAddr::V6(_) => None,
            };
            let Some(kind) = dialled else {
                let dial = Dial { address: local };
                shared.dials.lock().unwrap_or_else(PoisonError::into_inner).push(dial);
                return;
            };
            let connection = Log::open(&shared.log, local, peer, if tls { "https" } else { "http" });
            // A client that goes away in the middle is no failure of ours, and the log shows it.
            let _ = match kind.serve {
                Serve::Raw(task) => {
                    connection.push(connection.request("", &kind.host(), ""));
                    let place = shared.place.clone();
                    task(Wire { stream, kind, path: String::new(), tls, place }).await
                }
                _ => converse(stream, kind, &shared, &connection).await,
            };
        });
    }
}

/// One connection from its first request to its last.
async fn converse(mut stream: TcpStream, kind: &'static Kind, shared: &Shared, to: &Connection) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = Vec::new();
    loop {
        let Some(length) = head_length(&input) else {
            if input.len() > HEAD_BYTES_MAX {
                return Ok(());
            }
            match tokio::time::timeout(IDLE, stream.read_buf(&mut input)).await {
                Ok(Ok(1..)) => continue,
                _ => return Ok(()),
            }
        };
        let head = String::from_utf8_lossy(&input[..length]).into_owned();
        input.drain(..length);
        let header = |name: &str| {
            let found =
                |line: &str| line.split_once(':').filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.len());
            head.lines().skip(1).find_map(|line| found(line).map(|len| line[line.len() - len..].trim()))
        };
        let path = head.split(' ').nth(1).unwrap_or("/");
        let host = header("host").unwrap_or_default();
        let mut entry = to.request(head.split(' ').next().unwrap_or_default(), host, path);
        for name in ["cookie", "authorization", "proxy-authorization"] {
            if let Some(value) = header(name) {
                let leak = Leak { host: host.to_owned(), line: format!("{name}: {value}") };
                shared.leaks.lock().unwrap_or_else(PoisonError::into_inner).push(leak);
            }
        }
        // A name of another kind at this address is answered as that name's owner would.
        let kind = kind_of(host).unwrap_or(kind);
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let asked = Asked { host: name, path, cookie: header("cookie"), place: &shared.place };
        let reply = match kind.serve {
            _ if path == "/robots.txt" && !kind.own_robots => page::not_found(),
            Serve::Reply(reply) => page::honest(&kind.host(), path, kind.honest).unwrap_or_else(|| reply(&asked)),
            Serve::Wire(task) => match page::honest(&kind.host(), path, kind.honest) {
                Some(reply) => reply,
                None => {
                    to.push(entry);
                    let (path, place) = (path.to_owned(), shared.place.clone());
                    return task(Wire { stream, kind, path, tls: false, place }).await;
                }
            },
            Serve::Raw(_) | Serve::Nothing => page::not_found(),
        };
        if reply.latency_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.latency_ms)).await;
        }
        let bytes = put_reply(&reply);
        let answering = to.answering();
        entry.end_us = to.now_us();
        let sent = stream.write_all(&bytes).await;
        (entry.status, entry.bytes, entry.complete) = (reply.status, bytes.len() as u64, sent.is_ok());
        to.push(entry);
        drop(answering);
        sent?;
    }
}

/// A reply as it goes over the wire.
pub(super) fn put_reply(reply: &Reply) -> Vec<u8> {
    let mut out = Vec::with_capacity(reply.body.len() + 256);
    put_status(reply.status, &mut out);
    for (name, value) in &reply.headers {
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", reply.body.len()).as_bytes());
    out.extend_from_slice(&reply.body);
    out
}
