//! TLS between the nodes of a cluster: each shows the other a certificate of the cluster's authority, in both
//! directions.
//!
//! A node's certificate carries the name of its number and no name of a machine, `node-2` for node 2, as a subject
//! alternative name (RFC 5280, section 4.2.1.6). So a node may move to another address, and one node's certificate
//! does not pass for another's. Only TLS 1.3 (RFC 8446) is spoken.
//!
//! Files are read for every connection: what is renewed in their place counts from the next connection on.

use fabius_env::{Connection, Incoming, NodeId, Transport};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::fmt::Display;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long two nodes may take to show each other their certificates.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);

/// How many encrypted bytes may wait until the stream takes them.
const UNSENT_BYTES_MAX: usize = 256 << 10;

/// What a node, and whoever has its seat after it, is called in its certificate.
pub fn name_of(node: NodeId) -> String {
    format!("node-{}", node.seat())
}

/// The files by which a node and the others of its cluster know each other, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The certificate of the authority that all nodes' certificates come from.
    pub authority: PathBuf,
    /// The node's certificate, and those that stand between it and the authority.
    pub certificate: PathBuf,
    /// The private key of the node's certificate.
    pub key: PathBuf,
}

impl Certificates {
    /// Makes sure that these can be shown by a node.
    ///
    /// # Errors
    /// A file that cannot be read or is not what it should be, a certificate that is for another node; named in the
    /// error.
    pub fn check(&self, node: NodeId) -> io::Result<()> {
        self.accepting()?;
        let own = self.chain()?;
        match node_of(&own) {
            Some(found) if found.seat() == node.seat() => Ok(()),
            Some(found) => Err(refused(&self.certificate, format!("the certificate is {found}'s"))),
            None => Err(refused(
                &self.certificate,
                format!("the certificate has no name such as {:?}", name_of(node)),
            )),
        }
    }

    fn chain(&self) -> io::Result<Vec<CertificateDer<'static>>> {
        certificates(&self.certificate)
    }

    fn key(&self) -> io::Result<PrivateKeyDer<'static>> {
        PrivateKeyDer::from_pem_file(&self.key).map_err(|error| refused(&self.key, error))
    }

    fn roots(&self) -> io::Result<Arc<RootCertStore>> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            roots.add(certificate).map_err(|error| refused(&self.authority, error))?;
        }
        Ok(Arc::new(roots))
    }

    fn connecting(&self) -> io::Result<Arc<ClientConfig>> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(self.roots()?)
            .with_client_auth_cert(self.chain()?, self.key()?);
        Ok(Arc::new(config.map_err(|error| refused(&self.certificate, error))?))
    }

    fn accepting(&self) -> io::Result<Arc<ServerConfig>> {
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots()?, provider()).build();
        let verifier = verifier.map_err(|error| refused(&self.authority, error))?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain()?, self.key()?);
        Ok(Arc::new(config.map_err(|error| refused(&self.certificate, error))?))
    }
}

impl Transport for Certificates {
    fn is_protected(&self) -> bool {
        true
    }

    fn outgoing(&self, stream: TcpStream, to: NodeId, _address: &str) -> io::Result<Box<dyn Connection>> {
        let name = ServerName::try_from(name_of(to)).map_err(io::Error::other)?;
        let tls = ClientConnection::new(self.connecting()?, name).map_err(io::Error::other)?;
        Ok(Box::new(Encrypted::begin(tls.into(), stream)?))
    }

    fn incoming(&self, stream: TcpStream) -> io::Result<Incoming> {
        let tls = ServerConnection::new(self.accepting()?).map_err(io::Error::other)?;
        let encrypted = Encrypted::begin(tls.into(), stream)?;
        let shown = encrypted.tls.peer_certificates().unwrap_or_default();
        let from = node_of(shown).ok_or_else(|| {
            io::Error::new(io::ErrorKind::PermissionDenied, "the certificate that was shown is no node's")
        })?;
        Ok(Incoming { connection: Box::new(encrypted), from: Some(from) })
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn refused(path: &Path, what: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {what}", path.display()))
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| refused(path, error))?;
    if read.is_empty() {
        return Err(refused(path, "there is no certificate in PEM"));
    }
    Ok(read)
}

/// The node that a certificate, the first of a chain, is for; none if it is for no node, or for several.
fn node_of(chain: &[CertificateDer<'_>]) -> Option<NodeId> {
    let certificate = webpki::EndEntityCert::try_from(chain.first()?).ok()?;
    let number = |name: &str| name.strip_prefix("node-")?.parse().ok();
    let mut nodes = certificate.valid_dns_names().filter_map(number);
    nodes.next().filter(|_| nodes.next().is_none()).map(NodeId)
}

/// A connection whose bytes are encrypted. Reading never waits for what is still to be written, so that who cannot
/// write now, as the other side has no room, still hears that it is alive.
struct Encrypted {
    tls: rustls::Connection,
    stream: TcpStream,
}

impl Encrypted {
    /// Goes through the handshake.
    fn begin(mut tls: rustls::Connection, stream: TcpStream) -> io::Result<Encrypted> {
        tls.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        let mut encrypted = Encrypted { tls, stream };
        let began = Instant::now();
        while encrypted.tls.is_handshaking() {
            if began.elapsed() >= HANDSHAKE_WAIT {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long"));
            }
            encrypted.send()?;
            if encrypted.tls.is_handshaking() && !encrypted.hear()? {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed during the TLS handshake"));
            }
        }
        encrypted.send()?;
        Ok(encrypted)
    }

    /// Writes what is encrypted and waits.
    fn send(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            if self.tls.write_tls(&mut self.stream)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Reads and decrypts what has come; false if the stream is over.
    fn hear(&mut self) -> io::Result<bool> {
        if self.tls.read_tls(&mut self.stream)? == 0 {
            return Ok(false);
        }
        match self.tls.process_new_packets() {
            Ok(_) => Ok(true),
            Err(error) => {
                // The other side is told why, if it still listens.
                let _ = self.send();
                Err(io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}")))
            }
        }
    }

    fn write_some(
        &mut self,
        write: impl FnOnce(&mut rustls::Writer<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.send()?;
        let taken = write(&mut self.tls.writer())?;
        // These bytes are taken now; what keeps them from being sent is the next call's error.
        let _ = self.send();
        Ok(taken)
    }
}

impl Read for Encrypted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            // Frames have their own ends: a stream that is cut needs no word of its own.
            if !self.hear()? {
                return Ok(0);
            }
        }
    }
}

impl Write for Encrypted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_some(|writer| writer.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_some(|writer| writer.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}
