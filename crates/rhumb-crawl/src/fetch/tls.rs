//! The client's side of TLS: which authorities are trusted, which protocols are offered, which sessions are remembered.
//!
//! A session that was resumed spares both sides the certificate and its signatures, which is most of what a small
//! page costs over HTTPS. The store is one for all threads, bounded, and kept by server name: what one host gave us is never
//! shown to another.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// rustls counts tickets and keeps eight of them for a server.
const TICKETS_PER_SERVER: usize = 8;

/// Intermediate certificates that are looked at. Chains have one to three; issuers of one name that vouch for each other
/// make ways that grow with the factorial of their number: of eight it takes a fifth of a second to find that none leads anywhere.
const INTERMEDIATES_MAX: usize = 5;

/// A configuration that trusts Mozilla's authorities and those in `extra` (a PEM file), offers HTTP/2 and 1.1, and
/// resumes the sessions of the last `hosts_max` hosts; none if that is 0.
pub fn client_config(extra: Option<&Path>, hosts_max: usize) -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = extra {
        let invalid = |e: String| io::Error::new(io::ErrorKind::InvalidData, e);
        let certificates = CertificateDer::pem_file_iter(path).map_err(|e| invalid(e.to_string()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|e| invalid(e.to_string()))?;
            roots.add(certificate).map_err(|e| invalid(e.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let verifier = Arc::new(Bounded(verifier.map_err(|e| io::Error::other(e.to_string()))?));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| io::Error::other(e.to_string()))?;
    // "Dangerous" because a verifier of one's own may verify nothing; this one leaves all of it to webpki.
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.resumption = match hosts_max {
        0 => Resumption::disabled(),
        hosts => Resumption::in_memory_sessions(hosts.saturating_mul(TICKETS_PER_SERVER)),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// webpki's verifier, shown a bounded number of intermediate certificates.
#[derive(Debug)]
struct Bounded(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for Bounded {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let intermediates = &intermediates[..intermediates.len().min(INTERMEDIATES_MAX)];
        self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
