//! What can be typed about serving.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  rhumb serve example.org.crawl                            then open http://127.0.0.1:8080/
  rhumb serve example.org.crawl --listen 127.0.0.1:0       on any free port
  curl 'http://127.0.0.1:8080/api/search?q=sea+charts'
  curl 'http://127.0.0.1:8080/api/links?to=https://example.org/&anchors=true'";

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Crawl directory, or what `rhumb graph build` made.
    pub dir: PathBuf,
    /// Where to listen; port 0 takes a free one. Whoever can reach it can ask.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Host name to answer to beside loopback's, for use behind a proxy.
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
}

#[derive(Debug, Args)]
pub struct BenchServeArgs {
    /// Crawl directory.
    pub dir: PathBuf,
    /// Requests.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: u64,
    /// Connections, each with a client that waits for its answer.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub connections: usize,
}
