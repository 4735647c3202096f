//! A TCP link between two processes of this machine that can be cut: while it is, nothing arrives and nobody is told.

use fabius::{Error, Result, SqlState};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How often it is looked whether a link was cut, mended or ended.
const LOOK: Duration = Duration::from_millis(10);

/// Bytes that are carried at a time.
const PART_BYTES: usize = 64 << 10;

/// A link to a port of this machine. It ends when it is dropped.
pub struct Link {
    /// Where to connect to instead.
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_cut: AtomicBool,
    has_ended: AtomicBool,
}

impl Link {
    /// Makes one to a port, on which somebody may listen later.
    ///
    /// # Errors
    /// If there is no port to listen on.
    pub fn to(port: u16) -> Result<Link> {
        let (at, listener) = listen().map_err(|error| {
            Error::new(SqlState::IO_ERROR, "a link cannot be made").with_detail(error.to_string())
        })?;
        let state = Arc::new(State::default());
        let accepting = state.clone();
        std::thread::spawn(move || accept(&listener, port, &accepting));
        Ok(Link { port: at, state })
    }

    /// Cuts it, or mends it: then what was on its way arrives.
    pub fn cut(&self, is_cut: bool) {
        self.state.is_cut.store(is_cut, Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.state.has_ended.store(true, Relaxed);
    }
}

impl State {
    /// Returns once the link is whole; whether it has not ended.
    fn is_whole(&self) -> bool {
        while self.is_cut.load(Relaxed) && !self.has_ended.load(Relaxed) {
            std::thread::sleep(LOOK);
        }
        !self.has_ended.load(Relaxed)
    }
}

fn listen() -> std::io::Result<(u16, TcpListener)> {
    let at = fabius_env::free_port()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, at))?;
    listener.set_nonblocking(true)?;
    Ok((at, listener))
}

fn accept(listener: &TcpListener, port: u16, state: &Arc<State>) {
    while state.is_whole() {
        let Ok((from, _)) = listener.accept() else {
            std::thread::sleep(LOOK);
            continue;
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let Ok(to) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else { continue };
        for (from, to) in [(from.try_clone(), to.try_clone()), (Ok(to), Ok(from))] {
            let (Ok(from), Ok(to), state) = (from, to, state.clone()) else { continue };
            std::thread::spawn(move || carry(from, to, &state));
        }
    }
}

/// Carries bytes one way until either end is closed.
fn carry(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut part = vec![0; PART_BYTES];
    let prepared = from
        .set_nonblocking(false)
        .and_then(|()| from.set_read_timeout(Some(LOOK)))
        .and_then(|()| to.set_nodelay(true));
    while prepared.is_ok() && state.is_whole() {
        let carried = match from.read(&mut part) {
            Ok(0) => break,
            Ok(count) => state.is_whole() && to.write_all(&part[..count]).is_ok(),
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        if !carried {
            break;
        }
    }
    // Whichever is closed already stays so.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: bytes arrive, both ways; not while the link is cut, and then all of them; an end that is closed closes the other.
    #[test]
    fn what_is_cut_carries_nothing_until_it_is_mended() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, fabius_env::free_port().expect("a port")));
        let listener = listener.expect("it listens");
        let link = Link::to(listener.local_addr().expect("an address").port()).expect("a link");
        let mut near = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).expect("it connects");
        let (mut far, _) = listener.accept().expect("it connects on");
        let mut heard = [0; 5];
        near.write_all(b"there").expect("written");
        far.read_exact(&mut heard).expect("it arrives");
        far.write_all(b"again").expect("written");
        near.read_exact(&mut heard).expect("it arrives");
        assert_eq!(&heard, b"again");
        link.cut(true);
        near.write_all(b"later").expect("written");
        far.set_read_timeout(Some(10 * LOOK)).expect("a time");
        assert!(far.read(&mut heard).is_err(), "nothing arrives");
        link.cut(false);
        far.set_read_timeout(None).expect("no time");
        far.read_exact(&mut heard).expect("it arrives");
        assert_eq!(&heard, b"later");
        drop(near);
        assert_eq!(far.read(&mut heard).expect("an end"), 0);
    }
}
