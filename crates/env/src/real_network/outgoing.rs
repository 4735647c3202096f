//! The thread that connects to one peer and writes what is sent to it.
//!
//! ```text
//!   waiting for a message --> connecting --accepted--> writing --lost--> pausing --> waiting for a message
//!                                 |                                        ^
//!                                 +--failed: what waits is too old by then-+
//! ```

use super::Station;
use super::hello::{Answer, Hello};
use super::line::{ALIVE_EVERY, HELLO_WAIT, Line, LineError};
use super::outbox::{Batch, Outbox, Target};
use super::status::Direction::Outgoing;
use crate::NodeId;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long TCP may take to connect.
const CONNECT_WAIT: Duration = Duration::from_secs(1);

/// How many addresses that one name stands for are tried.
const ADDRESSES_MAX: usize = 4;

/// How long to look for a sign of life, while nothing can be written.
const LIFE_READ: Duration = Duration::from_millis(1);

/// Sends to one peer until its outbox is closed.
pub(super) fn run(station: &Station, peer: NodeId, outbox: &Outbox) {
    let mut pause = PAUSE_MIN;
    while let Some(target) = outbox.wait_for_message() {
        let mut was_long = false;
        match connect(station, peer, outbox, &target) {
            Ok(mut line) => {
                station.status.count("connected", 1);
                station.status.mended(peer, Outgoing);
                let began = Instant::now();
                if let Err(error) = write(station, &mut line, outbox, &target) {
                    station.status.note(Some(peer), Outgoing, format!("{}: {error}", target.address));
                }
                was_long = began.elapsed() >= PAUSE_MAX;
            }
            Err(reason) => {
                station.status.note(Some(peer), Outgoing, reason);
                station.status.count("unreachable", outbox.clear());
            }
        }
        outbox.release();
        pause = if was_long { PAUSE_MIN } else { pause };
        outbox.pause(&target, pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
    station.status.count("unreachable", outbox.clear());
}

/// A connection that the peer has accepted; or what was wrong, and where.
fn connect(station: &Station, peer: NodeId, outbox: &Outbox, target: &Target) -> Result<Line, String> {
    let name = &target.address;
    let addresses = name.to_socket_addrs().map_err(|error| format!("{name}: {error}"))?;
    let mut reason = format!("{name} stands for no address");
    for address in addresses.take(ADDRESSES_MAX) {
        station.check_protected(address).map_err(|error| error.to_string())?;
        match connect_to(station, peer, outbox, target, address) {
            Ok(line) => return Ok(line),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    Err(reason)
}

fn connect_to(
    station: &Station,
    peer: NodeId,
    outbox: &Outbox,
    target: &Target,
    address: SocketAddr,
) -> Result<Line, String> {
    let failed = |error| LineError::Failed(error).to_string();
    let stream = TcpStream::connect_timeout(&address, CONNECT_WAIT).map_err(failed)?;
    // Where nobody listens on a port that the system also gives to clients, a stream can come to be with itself.
    if stream.local_addr().is_ok_and(|local| local == address) {
        return Err("nobody listens".to_owned());
    }
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_read_timeout(Some(HELLO_WAIT)).map_err(failed)?;
    stream.set_write_timeout(Some(ALIVE_EVERY)).map_err(failed)?;
    let held = stream.try_clone().map_err(failed)?;
    let settings = stream.try_clone().map_err(failed)?;
    if !outbox.hold(target, held) {
        return Err("not wanted any more".to_owned());
    }
    let connection = station.transport.outgoing(stream, peer, &target.address).map_err(failed)?;
    let mut line = Line::over(connection);
    let hello = Hello { cluster: station.cluster, from: station.me, to: peer, semantics: station.semantics };
    line.write_short(&hello.encode()).map_err(|error| error.to_string())?;
    match line.read_hello(Answer::decode).map_err(|error| error.to_string())? {
        Answer::Accepted => {}
        Answer::Refused { reason } => return Err(format!("refused: {reason}")),
    }
    settings.set_read_timeout(Some(LIFE_READ)).map_err(failed)?;
    Ok(line)
}

/// Writes messages as they come, until the connection or the target is lost.
fn write(station: &Station, line: &mut Line, outbox: &Outbox, target: &Target) -> Result<(), LineError> {
    loop {
        match outbox.take(target, line.time_to_life()) {
            Batch::TargetLeft => return Ok(()),
            Batch::Nothing => {}
            Batch::Messages(messages) => match line.write_messages(&messages) {
                Ok(()) => station.status.count("sent", messages.len() as u64),
                Err(error) => {
                    station.status.count("lost with a connection", messages.len() as u64);
                    return Err(error);
                }
            },
        }
        if line.time_to_life().is_zero() {
            line.hear_life()?;
            line.show_life()?;
        }
    }
}
