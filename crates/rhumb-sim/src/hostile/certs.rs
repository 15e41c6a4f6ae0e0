//! Certificates good and bad, from an authority that lives as long as its server.
//!
//! A crawler is told to trust [`Certificates::authority_pem`]; what is wrong with a certificate is then only what its kind
//! made wrong. Each is made when it is first shown, because the large ones take a moment.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What a server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Showing {
    /// A certificate without fault.
    Good,
    /// One that ended long ago.
    Expired,
    /// One that begins long hence.
    Future,
    /// One that nobody vouches for.
    SelfSigned,
    /// One for somebody else.
    WrongName,
    /// One vouched for by somebody who is vouched for by somebody, twenty times over.
    LongChain,
    /// Issuers that vouch for each other in circles, so that there are many ways and none ends.
    Maze,
    /// One without fault, and three thousand tickets for later sessions.
    Tickets,
    /// One with a thousand names, about as large as rustls will take.
    ManyNames,
}

const CHAIN_LINKS: usize = 20;
const MAZE_ISSUERS: usize = 24;
const NAMES: usize = 1_000;
const TICKETS: usize = 3_000;

type Made<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
type Issuer = CertifiedIssuer<'static, KeyPair>;

/// The authority, and what it has signed.
pub struct Certificates {
    root: Issuer,
    made: Mutex<BTreeMap<(Showing, String, bool), Arc<rustls::ServerConfig>>>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

impl Certificates {
    pub(super) fn new() -> io::Result<Certificates> {
        let root = || Ok(CertifiedIssuer::self_signed(issuer("rhumb hostile web")?, KeyPair::generate()?)?);
        Ok(Certificates { root: root().map_err(as_io)?, made: Mutex::default() })
    }

    /// What a crawler must trust.
    pub(super) fn authority_pem(&self) -> String {
        self.root.pem()
    }

    /// Shakes hands as this host, over HTTP/2 or HTTP/1.1.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        host: &str,
        showing: Showing,
        http2: bool,
    ) -> io::Result<TlsStream<TcpStream>> {
        let config = self.config(host, showing, http2)?;
        stream.set_nodelay(true)?;
        tokio_rustls::TlsAcceptor::from(config).accept(stream).await
    }

    fn config(&self, host: &str, showing: Showing, http2: bool) -> io::Result<Arc<rustls::ServerConfig>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (showing, host.to_owned(), http2);
        if let Some(config) = made.get(&key) {
            return Ok(config.clone());
        }
        let (chain, leaf_key) = self.chain(host, showing).map_err(as_io)?;
        let leaf_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, leaf_key))
            .map_err(io::Error::other)?;
        if showing == Showing::Tickets {
            config.send_tls13_tickets = TICKETS;
        }
        config.alpn_protocols = vec![if http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        let config = Arc::new(config);
        made.insert(key, config.clone());
        Ok(config)
    }

    /// The certificates that are shown, the host's own first, and its key.
    fn chain(&self, host: &str, showing: Showing) -> Made<(Vec<CertificateDer<'static>>, KeyPair)> {
        let key = KeyPair::generate()?;
        let mut names = vec![host.to_owned()];
        match showing {
            Showing::WrongName => names = vec!["somebody-else.example".to_owned()],
            Showing::ManyNames => names.extend((0..NAMES).map(|n| format!("name-{n}.{host}"))),
            _ => {}
        }
        let mut leaf = CertificateParams::new(names)?;
        match showing {
            Showing::Expired => {
                (leaf.not_before, leaf.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
            }
            Showing::Future => leaf.not_before = date_time_ymd(2900, 1, 1),
            _ => {}
        }
        let mut chain = Vec::new();
        match showing {
            Showing::SelfSigned => chain.push(leaf.self_signed(&key)?.der().clone()),
            Showing::LongChain => {
                let mut above: Option<Issuer> = None;
                for n in 0..CHAIN_LINKS {
                    let params = issuer(&format!("link {n}"))?;
                    let next =
                        CertifiedIssuer::signed_by(params, KeyPair::generate()?, above.as_ref().unwrap_or(&self.root))?;
                    chain.insert(0, next.der().clone());
                    above = Some(next);
                }
                let last = above.as_ref().unwrap_or(&self.root);
                chain.insert(0, leaf.signed_by(&key, last)?.der().clone());
            }
            Showing::Maze => {
                // One name and many keys: each certificate may be the issuer of each, and no way leads to the root.
                let nobody = CertifiedIssuer::self_signed(issuer("maze")?, KeyPair::generate()?)?;
                chain.push(leaf.signed_by(&key, &nobody)?.der().clone());
                let mut above = nobody;
                for _ in 0..MAZE_ISSUERS {
                    let next = CertifiedIssuer::signed_by(issuer("maze")?, KeyPair::generate()?, &above)?;
                    chain.push(next.der().clone());
                    above = next;
                }
            }
            _ => chain.push(leaf.signed_by(&key, &self.root)?.der().clone()),
        }
        Ok((chain, key))
    }
}

fn issuer(name: &str) -> Made<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn as_io(error: Box<dyn std::error::Error + Send + Sync>) -> io::Error {
    io::Error::other(error)
}
