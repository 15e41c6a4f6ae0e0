//! The web on real sockets: HTTP/1.1, HTTPS with HTTP/2, and DNS, on loopback.
//!
//! Sockets are bound before [`Server::start`] returns, so errors are the caller's and ports are known at once; then
//! one thread (or as many as configured) with a single-threaded runtime serves them. `http` is the hot path, written
//! by hand because the server must cost a small fraction of the crawler it is measured with. `tls` uses hyper,
//! because nobody measures with it. `dns` answers for the names of the web. `log` remembers everything.
//!
//! Links in pages carry the port that the page was served from: the web served here is [`Server::web`], a placed copy
//! of the one given; [`Server::tls_web`] is the same web as seen over HTTPS.

pub mod dns;
pub(crate) mod http;
pub mod log;
mod tls;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::web::config::Naming;
use crate::web::{Web, is_loopback};
use dns::{Dns, DnsConfig};
use log::{Log, LogConfig, LogView};
use tls::Authority;

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where to serve HTTP; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Where to serve HTTPS, if at all.
    pub tls: Option<SocketAddr>,
    /// Whether HTTPS offers HTTP/2 beside HTTP/1.1.
    pub http2: bool,
    /// Where to serve DNS (UDP and TCP), if at all.
    pub dns: Option<SocketAddr>,
    /// How the DNS server behaves.
    pub dns_config: DnsConfig,
    /// Serve on every address of 127/8 (needed for loopback naming and for more than one address): binds the wildcard
    /// address and turns away connections that came in elsewhere.
    pub all_loopback: bool,
    /// Threads that serve HTTP.
    pub threads: usize,
    /// Keep connections open between requests.
    pub keep_alive: bool,
    /// What to remember.
    pub log: LogConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        ServerConfig {
            listen: free,
            tls: None,
            http2: true,
            dns: None,
            dns_config: DnsConfig::default(),
            all_loopback: false,
            threads: 1,
            keep_alive: true,
            log: LogConfig::default(),
        }
    }
}

/// A running server; it stops when dropped.
pub struct Server {
    web: Web,
    tls_web: Web,
    addr: SocketAddr,
    tls_addr: Option<SocketAddr>,
    dns_addr: Option<SocketAddr>,
    ca_pem: Option<String>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// What all connections use.
pub(crate) struct Shared {
    pub(crate) log: Arc<Log>,
    pub(crate) dns: Dns,
    pub(crate) keep_alive: bool,
    pub(crate) handshakes: Handshakes,
    all_loopback: bool,
    /// How far the web's clock is ahead of the machine's.
    ahead_ms: AtomicI64,
}

/// TLS handshakes by kind.
#[derive(Default)]
pub(crate) struct Handshakes {
    pub(crate) full: AtomicU64,
    pub(crate) resumed: AtomicU64,
}

impl Shared {
    pub(crate) fn now_ms(&self) -> u64 {
        unix_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }

    /// Whether a connection that came in at this address is ours to answer.
    pub(crate) fn welcomes(&self, local: SocketAddr) -> bool {
        !self.all_loopback || is_loopback(local.ip())
    }
}

/// Sockets of one kind, to be shared by the threads that serve them.
struct Sockets {
    http: TcpListener,
    tls: Option<(TcpListener, Arc<Authority>)>,
    dns: Option<(UdpSocket, TcpListener)>,
}

impl Server {
    /// Binds the sockets and begins to serve.
    pub fn start(web: Web, config: ServerConfig) -> io::Result<Server> {
        let spread = web.config().naming == Naming::Loopback || web.config().addresses > 1;
        if spread && !config.all_loopback {
            let reason = "hosts with addresses of their own need a server on all of 127/8 (all_loopback)";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let place = |wanted: SocketAddr| {
            if config.all_loopback { SocketAddr::from((Ipv4Addr::UNSPECIFIED, wanted.port())) } else { wanted }
        };
        let http = bind(place(config.listen), "HTTP")?;
        let addr = SocketAddr::new(config.listen.ip(), http.local_addr()?.port());
        let mut tls_addr = None;
        let mut tls = None;
        let mut ca_pem = None;
        if let Some(wanted) = config.tls {
            let listener = bind(place(wanted), "HTTPS")?;
            tls_addr = Some(SocketAddr::new(wanted.ip(), listener.local_addr()?.port()));
            let authority = Arc::new(Authority::new(config.http2)?);
            ca_pem = Some(authority.ca_pem());
            tls = Some((listener, authority));
        }
        let dns = config.dns.map(dns::bind).transpose()?;
        let dns_addr = dns.as_ref().map(|(udp, _)| udp.local_addr()).transpose()?;

        let address = match config.listen.ip().to_canonical() {
            IpAddr::V4(ip) if !ip.is_unspecified() => ip,
            _ => Ipv4Addr::LOCALHOST,
        };
        let placed = |https: bool| {
            web.placed(|c| {
                (c.port, c.tls_port, c.address) = (addr.port(), tls_addr.map_or(0, |a| a.port()), address);
                c.https = https;
            })
            .map_err(io::Error::other)
        };
        let (web, tls_web) = (placed(web.config().https && tls_addr.is_some())?, placed(tls_addr.is_some())?);

        let shared = Arc::new(Shared {
            log: Arc::new(Log::new(&config.log)?),
            dns: Dns::new(web.clone(), config.dns_config),
            keep_alive: config.keep_alive,
            handshakes: Handshakes::default(),
            all_loopback: config.all_loopback,
            ahead_ms: AtomicI64::new(0),
        });
        let (stop, stopped) = watch::channel(false);
        let mut server = Server { web, tls_web, addr, tls_addr, dns_addr, ca_pem, shared, stop, threads: Vec::new() };
        let first = Sockets { http, tls, dns };
        let mut all = Vec::new();
        for _ in 1..config.threads {
            all.push(Sockets { http: first.http.try_clone()?, tls: None, dns: None });
        }
        all.insert(0, first);
        for (i, sockets) in all.into_iter().enumerate() {
            let (web, tls_web) = (server.web.clone(), server.tls_web.clone());
            let (shared, stopped) = (server.shared.clone(), stopped.clone());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let thread = std::thread::Builder::new().name(format!("sim-web-{i}"));
            let run = move || runtime.block_on(serve(web, tls_web, sockets, shared, stopped));
            server.threads.push(thread.spawn(run)?);
        }
        Ok(server)
    }

    /// The web as served over HTTP: its URLs carry the server's port.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// The web as served over HTTPS.
    pub fn tls_web(&self) -> &Web {
        &self.tls_web
    }

    /// Where HTTP is served.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where HTTPS is served.
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls_addr
    }

    /// Where DNS is served.
    pub fn dns_addr(&self) -> Option<SocketAddr> {
        self.dns_addr
    }

    /// The certificate that HTTPS clients must trust, in PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// All requests so far, in the order in which they ended.
    pub fn log(&self) -> Vec<log::LogEntry> {
        self.shared.log.view().requests
    }

    /// Requests and connections so far, and the questions tests ask of them.
    pub fn log_view(&self) -> LogView {
        self.shared.log.view()
    }

    /// Forgets the requests and closed connections recorded so far.
    pub fn clear_log(&self) {
        self.shared.log.clear();
    }

    /// Number of requests answered, whether or not they are remembered.
    pub fn requests(&self) -> u64 {
        self.shared.log.requests()
    }

    /// TLS handshakes so far: full ones, and those that went on with an earlier session.
    pub fn tls_handshakes(&self) -> (u64, u64) {
        let Handshakes { full, resumed } = &self.shared.handshakes;
        (full.load(Ordering::Relaxed), resumed.load(Ordering::Relaxed))
    }

    /// How often each name was asked for over DNS.
    pub fn dns_queries(&self) -> BTreeMap<String, u64> {
        self.shared.dns.queries()
    }

    /// Moves the web's clock ahead, so that pages change without waiting.
    pub fn advance_ms(&self, ms: u64) {
        self.shared.ahead_ms.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Stops serving, closes all connections and finishes the log.
    pub fn stop(&mut self) {
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.shared.log.flush();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The life of one thread.
async fn serve(web: Web, tls_web: Web, sockets: Sockets, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let http = http::listen(sockets.http, web, shared.clone());
    let tls = async {
        match sockets.tls {
            Some((listener, authority)) => tls::listen(listener, tls_web, shared.clone(), authority).await,
            None => std::future::pending().await,
        }
    };
    let names = async {
        match sockets.dns {
            Some((udp, tcp)) => dns::listen(udp, tcp, shared.clone()).await,
            None => std::future::pending().await,
        }
    };
    // Leaving drops the runtime and with it every connection; each writes its end into the log as it goes.
    tokio::select! {
        _ = stopped.wait_for(|stop| *stop) => {}
        () = http => {}
        () = tls => {}
        () = names => {}
    }
}

fn bind(addr: SocketAddr, what: &str) -> io::Result<TcpListener> {
    let context = |e: io::Error| io::Error::new(e.kind(), format!("listen for {what} on {addr}: {e}"));
    let listener = TcpListener::bind(addr).map_err(context)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts for ever; a failed accept (too many open files) waits a little and goes on.
pub(crate) async fn accept(listener: &tokio::net::TcpListener) -> (tokio::net::TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    }
}

pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}
