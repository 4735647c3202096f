//! `fabius cluster certificates`: what the nodes of a cluster show each other, for who has no authority of their own.

use crate::message::out;
use clap::Args;
use fabius::{Certificates, Error, NodeId, Result, SqlState, certificate_name};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use time::{Duration, OffsetDateTime};

const AUTHORITY: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority-key.pem";

/// How long an authority is valid.
const AUTHORITY_DAYS: i64 = 3650;

/// What clocks of machines may differ by.
const BEFORE_NOW: Duration = Duration::DAY;

/// `fabius cluster certificates ...`
#[derive(Args)]
#[command(
    after_help = "The directory gets a certificate and a key for each node, node-1.pem and node-1-key.pem, and those of the
authority that vouches for them, authority.pem and authority-key.pem. Give each node its own two and authority.pem;
keep authority-key.pem where no node is: who has it can make nodes. Run it again with other numbers for nodes
that come later, or with --renew for those that are there: a served node takes renewed files for its next connections.

Certificates of another authority serve too, if they carry the name node-1 for node 1 (subject alternative name,
DNS) and may be used by servers and clients.

Example:
  fabius cluster certificates certs --nodes 1,2,3
  fabius serve n1 --peer-authority certs/authority.pem --peer-certificate certs/node-1.pem --peer-key certs/node-1-key.pem
"
)]
pub struct Make {
    /// Where the files are put; the authority that is there already is taken
    dir: PathBuf,
    /// The numbers of the nodes
    #[arg(long, value_name = "NODE,...", value_delimiter = ',', required = true, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    nodes: Vec<u64>,
    /// How long they are valid
    #[arg(long, default_value_t = 1825, value_parser = clap::value_parser!(u16).range(1..))]
    days: u16,
    /// Replace the certificates of these nodes
    #[arg(long)]
    renew: bool,
}

/// Makes the files.
///
/// # Errors
/// Certificates that are there already; as the disk fails.
pub fn run(arguments: &Make) -> Result<ExitCode> {
    let dir = &arguments.dir;
    fs::create_dir_all(dir).map_err(|error| failed(dir, &error))?;
    let kept = |node: &&u64| dir.join(format!("{}.pem", certificate_name(NodeId(**node)))).exists();
    if let Some(node) = arguments.nodes.iter().find(kept).filter(|_| !arguments.renew) {
        return Err(Error::new(SqlState::NOT_IN_STATE, format!("node {node} has a certificate already"))
            .with_detail(dir.display().to_string())
            .with_hint("--renew replaces it"));
    }
    let authority = authority(dir)?;
    for node in &arguments.nodes {
        let name = certificate_name(NodeId(*node));
        let key = KeyPair::generate().map_err(|error| failed(dir, &error))?;
        let mut params = CertificateParams::new([name.clone()]).map_err(|error| failed(dir, &error))?;
        params.distinguished_name = called(&name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params, i64::from(arguments.days));
        let certificate = params.signed_by(&key, &authority).map_err(|error| failed(dir, &error))?;
        let files = Certificates {
            authority: dir.join(AUTHORITY),
            certificate: dir.join(format!("{name}.pem")),
            key: dir.join(format!("{name}-key.pem")),
        };
        write(&files.key, &key.serialize_pem(), true)?;
        write(&files.certificate, &certificate.pem(), false)?;
        files.check(NodeId(*node)).map_err(|error| failed(dir, &error))?;
        out(&format!("node {node}: {}, {}\n", files.certificate.display(), files.key.display()));
    }
    out(&format!("every node needs {} too\n", dir.join(AUTHORITY).display()));
    Ok(ExitCode::SUCCESS)
}

/// The authority of a directory: made, if there is none.
fn authority(dir: &Path) -> Result<Issuer<'static, KeyPair>> {
    let (certificate_path, key_path) = (dir.join(AUTHORITY), dir.join(AUTHORITY_KEY));
    match fs::read_to_string(&key_path) {
        Ok(pem) => {
            let key = KeyPair::from_pem(&pem).map_err(|error| failed(&key_path, &error))?;
            return Ok(Issuer::new(authority_of(&key), key));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&key_path, &error)),
        Err(_) if certificate_path.exists() => {
            return Err(Error::new(SqlState::NOT_IN_STATE, "the authority is here, and its key is not")
                .with_detail(key_path.display().to_string())
                .with_hint("put its key beside it, or name another directory for a new authority"));
        }
        Err(_) => {}
    }
    let key = KeyPair::generate().map_err(|error| failed(dir, &error))?;
    let params = authority_of(&key);
    let certificate = params.self_signed(&key).map_err(|error| failed(dir, &error))?;
    write(&key_path, &key.serialize_pem(), true)?;
    write(&certificate_path, &certificate.pem(), false)?;
    Ok(Issuer::new(params, key))
}

/// What an authority's certificate says. Its name has a part of its key, so that two authorities are not taken for one.
fn authority_of(key: &KeyPair) -> CertificateParams {
    let part: String = key.public_key_raw().iter().rev().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    params.distinguished_name = called(&format!("Fabius cluster authority {part}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut params, AUTHORITY_DAYS);
    params
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn valid(params: &mut CertificateParams, days: i64) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - BEFORE_NOW;
    params.not_after = now + Duration::days(days);
}

/// Puts a file in its place as a whole; a secret one is for its owner alone.
fn write(path: &Path, text: &str, is_secret: bool) -> Result<()> {
    let unfinished = path.with_extension("new");
    let mode = if is_secret { 0o600 } else { 0o644 };
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &dyn Display) -> Error {
    Error::new(SqlState::IO_ERROR, "the certificates cannot be made")
        .with_detail(format!("{}: {error}", path.display()))
}
