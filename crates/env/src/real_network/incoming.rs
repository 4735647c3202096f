//! The threads that accept connections of other nodes and read what they send.

use super::Station;
use super::hello::{Answer, Hello, HelloError};
use super::line::{ALIVE_EVERY, HELLO_WAIT, Line, LineError};
use super::status::Direction;
use super::transport::Incoming;
use crate::NodeId;
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How many connections are read at a time; further ones are closed at once.
const VISITORS_MAX: usize = 256;

/// How long to wait after a connection could not be accepted, for lack of something.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a read waits: short enough to send signs of life in between.
const READ_WAIT: Duration = Duration::from_millis(500);

/// The streams that are read now, held only to end them.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<u64, TcpStream>,
    number_next: u64,
    is_closed: bool,
}

impl Visitors {
    /// Takes a visitor in until the visit is dropped; none if there are too many.
    fn enter(self: &Arc<Self>, stream: TcpStream) -> Option<Visit> {
        let mut state = self.state.lock();
        if state.is_closed || state.streams.len() >= VISITORS_MAX {
            return None;
        }
        let number = state.number_next;
        state.number_next += 1;
        state.streams.insert(number, stream);
        Some(Visit { visitors: Arc::clone(self), number })
    }

    /// Ends all connections, and takes no more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for stream in state.streams.values() {
            // It fails only if the connection is over already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A place among the visitors.
struct Visit {
    visitors: Arc<Visitors>,
    number: u64,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.visitors.state.lock().streams.remove(&self.number);
    }
}

/// Accepts connections until the network stops.
pub(super) fn accept(station: &Arc<Station>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        if station.threads.is_stopping() {
            return;
        }
        if let Err(error) = accepted.and_then(|(stream, address)| welcome(station, stream, address)) {
            station.status.note(
                None,
                Direction::Incoming,
                format!("a connection could not be accepted: {error}"),
            );
            station.threads.pause(ACCEPT_PAUSE);
        }
    }
}

/// Begins a thread for a connection.
fn welcome(station: &Arc<Station>, stream: TcpStream, address: SocketAddr) -> io::Result<()> {
    let Some(visit) = station.visitors.enter(stream.try_clone()?) else {
        return Err(io::Error::other(format!("there are {VISITORS_MAX} already")));
    };
    let reader = Arc::clone(station);
    station.threads.spawn("fabius-receive".to_owned(), move || {
        let _visit = visit;
        read(&reader, stream, address);
    })
}

/// Reads one connection to its end, and notes what was wrong with it.
fn read(station: &Station, stream: TcpStream, address: SocketAddr) {
    let (peer, error) = match greet(station, stream) {
        Ok((mut line, peer)) => {
            station.status.count("accepted", 1);
            station.status.mended(peer, Direction::Incoming);
            let Err(error) = read_messages(station, &mut line, peer) else { return };
            (Some(peer), error.to_string())
        }
        Err(reason) => {
            station.status.count("refused", 1);
            (None, reason)
        }
    };
    if !station.threads.is_stopping() {
        station.status.note(peer, Direction::Incoming, format!("{address}: {error}"));
    }
}

/// Answers the hello of whoever connects; if it is refused, the reason.
fn greet(station: &Station, stream: TcpStream) -> Result<(Line, NodeId), String> {
    let failed = |error| LineError::Failed(error).to_string();
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_read_timeout(Some(HELLO_WAIT)).map_err(failed)?;
    stream.set_write_timeout(Some(ALIVE_EVERY)).map_err(failed)?;
    let settings = stream.try_clone().map_err(failed)?;
    let Incoming { connection, from: proven } = station.transport.incoming(stream).map_err(failed)?;
    let mut line = Line::over(connection);
    let hello = line.read_hello(Hello::decode);
    let judged = match &hello {
        Ok(hello) => match proven.filter(|proven| proven.seat() != hello.from.seat()) {
            Some(proven) => {
                Err(format!("it says that it is {}, and its certificate is {proven}'s", hello.from))
            }
            None => hello.judge(station.cluster, station.me, station.semantics),
        },
        Err(LineError::Hello(error @ HelloError::Version(_))) => Err(error.to_string()),
        // Whatever this is, it would not understand an answer.
        Err(error) => return Err(error.to_string()),
    };
    let answer = match &judged {
        Ok(()) => Answer::Accepted,
        Err(reason) => Answer::Refused { reason: reason.clone() },
    };
    line.write_short(&answer.encode()).map_err(|error| error.to_string())?;
    settings.set_read_timeout(Some(READ_WAIT)).map_err(failed)?;
    match (hello, judged) {
        (Ok(hello), Ok(())) => Ok((line, hello.from)),
        (Ok(hello), Err(reason)) => Err(format!("refused {}: {reason}", hello.from)),
        (Err(_), judged) => Err(judged.err().unwrap_or_default()),
    }
}

/// Reads messages as they come. While there is no room for one, the sender waits too, and hears that this node
/// is alive.
fn read_messages(station: &Station, line: &mut Line, from: NodeId) -> Result<(), LineError> {
    loop {
        line.read()?;
        while let Some(mut message) = line.message().inspect_err(|_| station.status.count("bad frames", 1))? {
            station.status.count("received", 1);
            while let Err(back) = station.inbox.put(from, message, READ_WAIT) {
                if station.threads.is_stopping() {
                    return Ok(());
                }
                message = back;
                line.show_life()?;
                line.listen_again();
            }
        }
        line.show_life()?;
    }
}
