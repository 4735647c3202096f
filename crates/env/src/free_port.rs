//! Ports for servers that are started for a moment, by tests, demonstrations and measurements.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below those that Linux gives to clients' ends of connections.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// How far apart processes begin; prime, so that they come to all ports.
const PORTS_OF_A_PROCESS: u32 = 211;

/// A port of this machine that nothing listens on. It is none of those that the system gives to clients' ends of
/// connections: one of them could have it by the time the server asks for it, or connect to itself on it.
///
/// # Errors
/// When every port is taken.
pub fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let width = u32::from(PORTS.end - PORTS.start);
    // Processes begin far from each other.
    let begin = std::process::id().wrapping_mul(PORTS_OF_A_PROCESS);
    let mut last = io::ErrorKind::AddrInUse.into();
    for _ in 0..width {
        let at = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % width;
        let port = PORTS.start + at as u16;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}
