//! A TCP link between two processes of this machine that can be cut, and be as slow as a long one: while it is cut
//! nothing arrives and nobody is told.

use fabius::{Error, Result, SqlState};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How often it is looked whether a link was cut, mended or ended.
const LOOK: Duration = Duration::from_millis(10);

/// Bytes that are carried at a time.
const PART_BYTES: usize = 64 << 10;

/// Parts that may be on their way in one direction; whoever sends more waits.
const PARTS: usize = 256;

/// Bytes, and when they arrive.
type Part = (Instant, Vec<u8>);

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
    /// How long bytes are on their way, in either direction.
    delay_us: AtomicU64,
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

    /// Has bytes be on their way for so long, in either direction: those that are sent from now on. To the microsecond.
    pub fn delay(&self, delay: Duration) {
        self.state.delay_us.store(delay.as_micros() as u64, Relaxed);
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
            let (Ok(from), Ok(to)) = (from, to) else { continue };
            carry(from, to, state);
        }
    }
}

/// Carries bytes one way until either end is closed.
fn carry(from: TcpStream, to: TcpStream, state: &Arc<State>) {
    let (sender, receiver) = sync_channel(PARTS);
    let Ok(source) = from.try_clone() else { return };
    let (taking, giving) = (state.clone(), state.clone());
    std::thread::spawn(move || take(source, &sender, &taking));
    std::thread::spawn(move || {
        give(&to, &receiver, &giving);
        // Whichever is closed already stays so; who still takes finds its end closed.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Takes what one end sends until it is closed, or the link is.
fn take(mut from: TcpStream, parts: &SyncSender<Part>, state: &State) {
    let mut part = vec![0; PART_BYTES];
    let prepared = from.set_nonblocking(false).and_then(|()| from.set_read_timeout(Some(LOOK)));
    while prepared.is_ok() && state.is_whole() {
        let taken = match from.read(&mut part) {
            Ok(0) => false,
            Ok(count) => {
                let due = Instant::now() + Duration::from_micros(state.delay_us.load(Relaxed));
                parts.send((due, part[..count].to_vec())).is_ok()
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        if !taken {
            break;
        }
    }
}

/// Gives to the other end what is due, in order, until nothing more comes.
fn give(mut to: &TcpStream, parts: &Receiver<Part>, state: &State) {
    if to.set_nodelay(true).is_err() {
        return;
    }
    for (due, part) in parts {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if !state.is_whole() || to.write_all(&part).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: bytes arrive, both ways; not while the link is cut, and then all of them; an end that is closed closes
    /// the other.
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

    /// Goal: bytes are on their way for as long as they shall be, and an end is seen behind all that was sent before
    /// it.
    #[test]
    fn what_is_delayed_arrives_later() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, fabius_env::free_port().expect("a port")));
        let listener = listener.expect("it listens");
        let link = Link::to(listener.local_addr().expect("an address").port()).expect("a link");
        let delay = 5 * LOOK;
        link.delay(delay);
        let mut near = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).expect("it connects");
        let (mut far, _) = listener.accept().expect("it connects on");
        let begun = Instant::now();
        near.write_all(b"all that").expect("written");
        near.write_all(b" was sent").expect("written");
        drop(near);
        let mut heard = String::new();
        far.read_to_string(&mut heard).expect("it arrives");
        assert_eq!(heard, "all that was sent");
        assert!(begun.elapsed() >= delay, "after {:?}", begun.elapsed());
    }
}
