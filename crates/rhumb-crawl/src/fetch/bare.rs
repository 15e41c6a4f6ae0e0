//! The floor that `rhumb bench crawl` compares a crawl with: hyper fetching a list of URLs, and nothing around it.
//!
//! One thread, one connection for each host, no bounds, no deadlines, no copy of the head. Over HTTPS a handshake comes
//! before; where asked for, links and title are taken out of each page, too.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rhumb_core::page::{self, Extractor, Page, ParseOptions};
use rhumb_core::url::Url;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;

/// What a list of URLs is fetched with.
#[derive(Clone)]
pub struct Bare {
    /// For URLs that are https.
    pub tls: Arc<rustls::ClientConfig>,
    /// Whether connections are used again.
    pub keep_alive: bool,
    /// Whether pages are parsed.
    pub parse: Option<ParseOptions>,
}

impl Bare {
    /// Fetches each host's URLs in turn, all hosts at once; the number of pages (200) and of body bytes. Hosts must be
    /// addresses. Runs on the current tokio runtime.
    pub async fn fetch(&self, hosts: Vec<Vec<Url>>) -> io::Result<(u64, u64)> {
        let mut tasks = tokio::task::JoinSet::new();
        for urls in hosts {
            tasks.spawn(self.clone().fetch_host(urls));
        }
        let (mut pages, mut bytes) = (0, 0);
        while let Some(done) = tasks.join_next().await {
            let (more_pages, more_bytes) = done.map_err(io::Error::other)??;
            pages += more_pages;
            bytes += more_bytes;
        }
        Ok((pages, bytes))
    }

    async fn fetch_host(self, urls: Vec<Url>) -> io::Result<(u64, u64)> {
        let (mut extractor, mut page) = (Extractor::default(), Page::default());
        let (mut pages, mut bytes) = (0, 0);
        let mut open: Option<http1::SendRequest<Empty<Bytes>>> = None;
        for url in urls {
            let mut sender = match open.take().filter(http1::SendRequest::is_ready) {
                Some(sender) => sender,
                None => self.dial(&url).await?,
            };
            let authority = &url.origin()[url.scheme().len() + 3..];
            let request = http::Request::get(url.path_and_query()).header(http::header::HOST, authority);
            let request = request.body(Empty::new()).map_err(io::Error::other)?;
            let response = sender.send_request(request).await.map_err(io::Error::other)?;
            let content_type = response.headers().get(http::header::CONTENT_TYPE).cloned();
            pages += u64::from(response.status() == http::StatusCode::OK);
            let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
            bytes += body.len() as u64;
            if let Some(options) = &self.parse {
                let content_type = content_type.as_ref().and_then(|v| v.to_str().ok());
                page::parse_page_into(&mut extractor, &body, content_type, options, &mut page);
            }
            if self.keep_alive {
                open = Some(sender);
            }
        }
        Ok((pages, bytes))
    }

    async fn dial(&self, url: &Url) -> io::Result<http1::SendRequest<Empty<Bytes>>> {
        let address = url.ip_literal().ok_or_else(|| io::Error::other("the host is not an address"))?;
        let tcp = TcpStream::connect(SocketAddr::new(address, url.port())).await?;
        tcp.set_nodelay(true)?;
        if !url.is_https() {
            let (sender, connection) = http1::handshake(TokioIo::new(tcp)).await.map_err(io::Error::other)?;
            tokio::spawn(connection);
            return Ok(sender);
        }
        let tls = tokio_rustls::TlsConnector::from(self.tls.clone());
        let tls = tls.connect(ServerName::from(address), tcp).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
