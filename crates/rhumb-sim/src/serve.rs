//! The synthetic web for people: what `rhumb sim serve` runs.

use std::io;
use std::net::SocketAddr;

use crate::DnsConfig;
use crate::server::log::LogConfig;
use crate::server::{Server, ServerConfig};
use crate::web::Web;
use crate::web::config::WebConfig;

/// What `sim serve` was asked for.
#[derive(Clone, Debug)]
pub struct ServeArgs {
    /// The web to serve.
    pub web: WebConfig,
    /// Where and how. [`ServeArgs::new`] keeps nothing in memory, because such a server may run for days.
    pub server: ServerConfig,
}

impl ServeArgs {
    /// A web of this size and seed at these addresses, with everything else at its default.
    pub fn new(hosts: u64, pages: u64, seed: u64, listen: SocketAddr, dns: Option<SocketAddr>) -> Self {
        ServeArgs {
            web: WebConfig { hosts, pages, seed, ..WebConfig::default() },
            server: ServerConfig {
                listen,
                dns,
                dns_config: DnsConfig { count: false, ..DnsConfig::default() },
                log: LogConfig::off(),
                ..ServerConfig::default()
            },
        }
    }
}

/// Serves until the process is asked to end (Ctrl-C, SIGTERM). `on_ready` is called once the server answers, to tell
/// people where.
pub fn serve_blocking(args: ServeArgs, on_ready: impl FnOnce(&Server)) -> io::Result<()> {
    let web = Web::new(args.web).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut end = Ending::new()?;
        let mut server = Server::start(web, args.server)?;
        on_ready(&server);
        end.wait().await?;
        server.stop();
        Ok(())
    })
}

/// The signals that end the process, caught from before the server starts.
struct Ending {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Ending {
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Ending { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    #[cfg(unix)]
    async fn wait(&mut self) -> io::Result<()> {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Self> {
        Ok(Ending {})
    }

    #[cfg(not(unix))]
    async fn wait(&mut self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}
