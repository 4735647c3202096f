//! One connection, both ends of which watch that the other is alive.
//!
//! Whoever opened it sends messages; whoever accepted it only answers the hello. Both send a sign of life each
//! [`ALIVE_EVERY`], and give the connection up when they hear nothing for [`DEAD_AFTER`]: TCP alone would take
//! many minutes to notice a machine that is gone without a word.

use super::frame::{self, Frame, FrameError};
use super::hello::{Decode, HelloError};
use super::transport::Connection;
use std::fmt::{self, Display};
use std::io::{self, IoSlice, Read, Write};
use std::time::{Duration, Instant};

/// How often both ends of a connection say that they are alive.
pub(super) const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// How long the other end may say nothing.
const DEAD_AFTER: Duration = Duration::from_secs(5);

/// How long a hello, or the answer to it, may take.
pub(super) const HELLO_WAIT: Duration = Duration::from_secs(5);

const READ_BYTES: usize = 64 << 10;

/// How much memory a connection keeps when it has nothing to read.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum LineError {
    Failed(io::Error),
    Closed,
    /// Nothing was heard for [`DEAD_AFTER`].
    Silent,
    /// No hello, or no answer to it, within [`HELLO_WAIT`].
    NoHello,
    Hello(HelloError),
    Frame(FrameError),
}

impl Display for LineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(formatter),
            Self::Closed => formatter.write_str("the other side closed the connection"),
            Self::Silent => write!(formatter, "nothing was heard for {} s", DEAD_AFTER.as_secs()),
            Self::NoHello => write!(formatter, "no hello within {} s", HELLO_WAIT.as_secs()),
            Self::Hello(error) => error.fmt(formatter),
            Self::Frame(error) => error.fmt(formatter),
        }
    }
}

/// One end of a connection.
pub(super) struct Line {
    connection: Box<dyn Connection>,
    chunk: Box<[u8]>,
    /// What was read; before `start`, it was decoded too.
    received: Vec<u8>,
    start: usize,
    heard: Instant,
    life_shown: Instant,
}

impl Line {
    pub(super) fn over(connection: Box<dyn Connection>) -> Self {
        let now = Instant::now();
        let chunk = vec![0; READ_BYTES].into_boxed_slice();
        Self { connection, chunk, received: Vec::new(), start: 0, heard: now, life_shown: now }
    }

    /// Reads what is there, as long as the time limit of the connection allows; whether something was.
    pub(super) fn read(&mut self) -> Result<bool, LineError> {
        self.received.drain(..self.start);
        self.start = 0;
        if self.received.is_empty() {
            self.received.shrink_to(KEPT_BYTES_MAX);
        }
        match self.connection.read(&mut self.chunk) {
            Ok(0) => Err(LineError::Closed),
            Ok(count) => {
                self.received.extend_from_slice(&self.chunk[..count]);
                self.heard = Instant::now();
                Ok(true)
            }
            Err(error) if !is_temporary(&error) => Err(LineError::Failed(error)),
            Err(_) if self.heard.elapsed() >= DEAD_AFTER => Err(LineError::Silent),
            Err(_) => Ok(false),
        }
    }

    /// The next message of what was read.
    pub(super) fn message(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        while let Some((frame, len)) =
            frame::decode(&self.received[self.start..]).map_err(LineError::Frame)?
        {
            self.start += len;
            match frame {
                Frame::Message(message) => return Ok(Some(message.to_vec())),
                Frame::SignOfLife => {}
            }
        }
        Ok(None)
    }

    /// Reads until a hello, or the answer to one, is there.
    pub(super) fn read_hello<T>(&mut self, decode: Decode<T>) -> Result<T, LineError> {
        let began = Instant::now();
        loop {
            let decoded = decode(&self.received[self.start..]).map_err(LineError::Hello)?;
            if let Some((hello, len)) = decoded {
                self.start += len;
                return Ok(hello);
            }
            if began.elapsed() >= HELLO_WAIT {
                return Err(LineError::NoHello);
            }
            self.read()?;
        }
    }

    /// Writes a few bytes, which never wait long unless the connection is dead.
    pub(super) fn write_short(&mut self, bytes: &[u8]) -> Result<(), LineError> {
        self.connection.write_all(bytes).and_then(|()| self.connection.flush()).map_err(LineError::Failed)
    }

    /// Writes messages, all at once if the connection takes them. It may take its time as long as the other
    /// side is alive: that one may have no room now.
    pub(super) fn write_messages(&mut self, messages: &[Vec<u8>]) -> Result<(), LineError> {
        let heads: Vec<[u8; frame::HEAD_BYTES]> =
            messages.iter().map(|message| frame::head(message)).collect();
        let mut slices: Vec<IoSlice<'_>> = heads
            .iter()
            .zip(messages)
            .flat_map(|(head, message)| [IoSlice::new(head), IoSlice::new(message)])
            .collect();
        let mut slices = slices.as_mut_slice();
        // Empty messages are empty slices, which must not be all that is left.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.connection.write_vectored(slices) {
                Ok(0) => return Err(LineError::Failed(io::ErrorKind::WriteZero.into())),
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if is_temporary(&error) => self.hear_life()?,
                Err(error) => return Err(LineError::Failed(error)),
            }
        }
        loop {
            match self.connection.flush() {
                Ok(()) => return Ok(()),
                Err(error) if is_temporary(&error) => self.hear_life()?,
                Err(error) => return Err(LineError::Failed(error)),
            }
        }
    }

    /// Reads the other side's signs of life, on a connection on which it sends nothing else.
    pub(super) fn hear_life(&mut self) -> Result<(), LineError> {
        self.read()?;
        while self.message()?.is_some() {}
        Ok(())
    }

    /// Sends a sign of life if it is time for one.
    pub(super) fn show_life(&mut self) -> Result<(), LineError> {
        if self.time_to_life().is_zero() {
            self.life_shown = Instant::now();
            self.write_short(&frame::sign_of_life())?;
        }
        Ok(())
    }

    /// How long until it is time for a sign of life.
    pub(super) fn time_to_life(&self) -> Duration {
        ALIVE_EVERY.saturating_sub(self.life_shown.elapsed())
    }

    /// Says that this side was the one who did not listen.
    pub(super) fn listen_again(&mut self) {
        self.heard = Instant::now();
    }
}

/// Whether the same can be tried again: a time limit is over, or a signal came.
fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// A connection that takes a few bytes at a time, waits now and then, and shows what was written.
    #[derive(Default, Clone)]
    struct Slow {
        written: Arc<Mutex<Vec<u8>>>,
        to_read: Arc<Mutex<VecDeque<Vec<u8>>>>,
        writes: usize,
    }

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let next = self.to_read.lock().pop_front().ok_or(io::ErrorKind::WouldBlock)?;
            buffer[..next.len()].copy_from_slice(&next);
            Ok(next.len())
        }
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            if self.writes.is_multiple_of(3) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(5);
            self.written.lock().extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Goal: messages come through a connection that takes and gives them in pieces, empty ones too.
    #[test]
    fn messages_pass_in_pieces() {
        let slow = Slow::default();
        let messages = [Vec::new(), b"hello".to_vec(), vec![7; 100], Vec::new()];
        Line::over(Box::new(slow.clone())).write_messages(&messages).expect("written");

        let pieces = slow.written.lock().chunks(3).map(<[u8]>::to_vec).collect();
        *slow.to_read.lock() = pieces;
        let mut line = Line::over(Box::new(slow));
        let mut arrived = Vec::new();
        while line.read().expect("open") {
            arrived.extend(std::iter::from_fn(|| line.message().expect("good")));
        }
        assert_eq!(arrived, messages);
    }

    /// Goal: a connection is given up when nothing was heard for long, also while something is written; not
    /// before.
    #[test]
    fn silence_is_noticed() {
        let mut line = Line::over(Box::new(Slow::default()));
        assert!(matches!(line.read(), Ok(false)));
        line.heard = Instant::now().checked_sub(DEAD_AFTER).expect("the machine runs for longer");
        assert!(matches!(line.write_messages(&[vec![0; 100]]), Err(LineError::Silent)));
        assert!(matches!(line.read(), Err(LineError::Silent)));
        line.listen_again();
        assert!(matches!(line.read(), Ok(false)));
    }

    /// Goal: a bad frame ends the connection after the good ones before it.
    #[test]
    fn a_bad_frame_is_an_error() {
        let slow = Slow::default();
        slow.to_read.lock().push_back([&frame::head(b"hi")[..], b"hi", &[0; 8]].concat());
        let mut line = Line::over(Box::new(slow));
        assert!(matches!(line.read(), Ok(true)));
        assert_eq!(line.message().expect("good").as_deref(), Some(&b"hi"[..]));
        assert!(matches!(line.message(), Err(LineError::Frame(FrameError::Checksum))));
    }
}
