//! The client's side of TLS: which authorities are trusted, which protocols are offered.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// A configuration that trusts Mozilla's authorities and those in `extra` (a PEM file), and offers HTTP/2 and 1.1.
pub fn client_config(extra: Option<&Path>) -> io::Result<Arc<ClientConfig>> {
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
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| io::Error::other(e.to_string()))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
