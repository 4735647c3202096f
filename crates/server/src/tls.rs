//! TLS: the certificate, and what accepts connections with it.

use crate::configuration::Configuration;
use fabius_value::{Error, Result, SqlState};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

/// How connections are encrypted.
pub struct Tls {
    /// Accepts a client's handshake.
    pub acceptor: TlsAcceptor,
    /// The certificates as they stand in the file: SCRAM binds a password to the first.
    pub certificate_pem: Vec<u8>,
}

/// Reads the certificate and its key, if the configuration names them.
///
/// # Errors
/// `58030` for files that cannot be read, `22023` for what is not a certificate or does not fit its key.
pub fn configure(configuration: &Configuration) -> Result<Option<Tls>> {
    let (Some(certificate), Some(key)) = (&configuration.tls_certificate, &configuration.tls_key) else {
        return Ok(None);
    };
    let (certificate_pem, key_pem) = (read(certificate)?, read(key)?);
    let refused = |what: &str, path: &Path| {
        Error::new(SqlState::INVALID_PARAMETER, what.to_string()).with_detail(path.display().to_string())
    };
    let certificates = CertificateDer::pem_slice_iter(&certificate_pem)
        .collect::<std::result::Result<Vec<_>, _>>()
        .ok()
        .filter(|certificates| !certificates.is_empty())
        .ok_or_else(|| refused("the file has no certificate in PEM", certificate))?;
    let private_key = PrivateKeyDer::from_pem_slice(&key_pem)
        .map_err(|_| refused("the file has no private key in PEM", key))?;
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, private_key))
        .map_err(|error| {
            refused("the certificate cannot be used", certificate).with_hint(error.to_string())
        })?;
    // What clients that begin with TLS at once have to offer (`sslnegotiation=direct`).
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Some(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), certificate_pem }))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::new(SqlState::IO_ERROR, "a file for TLS cannot be read")
            .with_detail(format!("{}: {error}", path.display()))
    })
}
