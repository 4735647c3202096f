//! Nodes of different machines know each other by certificates, which `fabius cluster certificates` makes.

use crate::support::{PATIENCE, succeed};
use fabius::{Certificates, NodeId, certificate_name};
use fabius_env::{ClusterId, Network, NetworkSettings, RealNetwork};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);

/// How often messages are sent that must not arrive.
const IN_VAIN: u32 = 50;

/// Makes certificates for nodes, by the authority that is there or a new one.
pub fn make_certificates(dir: &Path, nodes: &str) {
    let mut make = Command::new(env!("CARGO_BIN_EXE_fabius"));
    succeed(make.args(["cluster", "certificates", "--nodes", nodes]).arg(dir));
}

pub fn certificates_of(dir: &Path, node: u64) -> Certificates {
    let name = certificate_name(NodeId(node));
    Certificates {
        authority: dir.join("authority.pem"),
        certificate: dir.join(format!("{name}.pem")),
        key: dir.join(format!("{name}-key.pem")),
    }
}

fn listen(me: NodeId, certificates: Option<Certificates>) -> RealNetwork {
    let mut settings = NetworkSettings { incoming_bytes_max: 1 << 20, ..NetworkSettings::default() };
    if let Some(certificates) = certificates {
        settings.transport = Arc::new(certificates);
    }
    RealNetwork::listen(me, ClusterId([7; 16]), "127.0.0.1:0", &[], settings).expect("a port is free")
}

/// Sends a message again and again, since it may get lost, until it arrives.
fn get_through(from: &RealNetwork, to: (NodeId, &RealNetwork), message: &[u8]) {
    from.set_peers(&[(to.0, to.1.address().to_string())]);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        from.send(to.0, message.to_vec());
        to.1.wait(Duration::from_millis(100));
        if std::iter::from_fn(|| to.1.receive()).any(|(_, arrived)| arrived == message) {
            return;
        }
    }
    panic!("nothing arrives: {:?}, {:?}", from.problems(), to.1.problems());
}

/// Sends in vain, and gives what both sides complain of.
fn is_refused(from: &RealNetwork, to: (NodeId, &RealNetwork)) -> String {
    from.set_peers(&[(to.0, to.1.address().to_string())]);
    for _ in 0..IN_VAIN {
        from.send(to.0, b"in vain".to_vec());
        to.1.wait(Duration::from_millis(20));
        assert_eq!(to.1.receive(), None);
    }
    format!("{:?} {:?}", from.complaints(), to.1.complaints())
}

/// Goal: nodes of one authority talk in both directions, also in messages that the receiver has no room for at once;
/// who has another's certificate, one of another authority, or none, is refused, and both sides say why.
#[test]
fn only_nodes_of_one_authority_talk() {
    let (ours, others) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    make_certificates(ours.path(), "1,2");
    make_certificates(ours.path(), "3");
    make_certificates(others.path(), "1,2");
    let one = listen(ONE, Some(certificates_of(ours.path(), 1)));
    let two = listen(TWO, Some(certificates_of(ours.path(), 2)));
    get_through(&one, (TWO, &two), b"hello");
    get_through(&two, (ONE, &one), b"hello to you");
    let long: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    get_through(&one, (TWO, &two), &long);

    let stranger = listen(TWO, Some(certificates_of(others.path(), 2)));
    let complaints = is_refused(&stranger, (ONE, &one));
    assert!(complaints.contains("UnknownIssuer") || complaints.contains("UnknownCA"), "{complaints}");
    let liar = listen(TWO, Some(certificates_of(ours.path(), 3)));
    let complaints = is_refused(&liar, (ONE, &one));
    assert!(
        complaints.contains("it says that it is node 2, and its certificate is node 3's"),
        "{complaints}"
    );
    let complaints = is_refused(&one, (TWO, &liar));
    assert!(complaints.contains("node-2"), "{complaints}");
    let plain = listen(TWO, None);
    let complaints = is_refused(&plain, (ONE, &one));
    assert!(complaints.contains("only one of the two is configured for TLS"), "{complaints}");
    let complaints = is_refused(&one, (TWO, &plain));
    assert!(complaints.contains("only one of the two is configured for TLS"), "{complaints}");
}

/// Goal: certificates that are renewed in their place serve the next connections, without a node that begins anew.
#[test]
fn certificates_are_renewed_in_place() {
    let (old, new) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    make_certificates(old.path(), "1,2");
    make_certificates(new.path(), "1,2");
    let one = listen(ONE, Some(certificates_of(old.path(), 1)));
    let renewed = listen(TWO, Some(certificates_of(new.path(), 2)));
    is_refused(&renewed, (ONE, &one));
    for file in ["authority.pem", "node-1.pem", "node-1-key.pem"] {
        fs::copy(new.path().join(file), old.path().join(file)).expect("copied");
    }
    get_through(&renewed, (ONE, &one), b"hello");
}

/// Goal: what other machines could reach is listened at only with certificates; those that are no use are refused in
/// words that name the file.
#[test]
fn beyond_the_machine_by_certificates_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    make_certificates(directory.path(), "1");
    let certificates = certificates_of(directory.path(), 1);
    let settings =
        NetworkSettings { transport: Arc::new(certificates.clone()), ..NetworkSettings::default() };
    let anywhere = |settings| RealNetwork::listen(ONE, ClusterId([7; 16]), "0.0.0.0:0", &[], settings);
    anywhere(settings).expect("it is protected");
    anywhere(NetworkSettings::default()).expect_err("it is not");

    certificates.check(ONE).expect("they are node 1's");
    let refused = |certificates: &Certificates, node| {
        certificates.check(NodeId(node)).expect_err("refused").to_string()
    };
    assert!(refused(&certificates, 2).contains("node-1.pem: the certificate is node 1's"));
    let key = Certificates { key: directory.path().join("authority-key.pem"), ..certificates.clone() };
    assert!(refused(&key, 1).contains("node-1.pem"), "{}", refused(&key, 1));
    let absent = Certificates { authority: directory.path().join("absent.pem"), ..certificates.clone() };
    assert!(refused(&absent, 1).contains("absent.pem"));
    let authority = Certificates { certificate: certificates.authority.clone(), ..key };
    assert!(refused(&authority, 1).contains("no name such as \"node-1\""), "{}", refused(&authority, 1));
    let mut again = Command::new(env!("CARGO_BIN_EXE_fabius"));
    let again = again.args(["cluster", "certificates", "--nodes", "1"]).arg(directory.path()).output();
    let said = String::from_utf8(again.expect("it runs").stderr).expect("text");
    assert!(said.contains("node 1 has a certificate already") && said.contains("--renew"), "{said}");
}
