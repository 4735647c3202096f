//! Messages through a stream, with what waits to be taken in and to be sent.
//!
//! Whoever answers appends to `output`; it is sent when the client is waited for, or when there is much of it. So a
//! batch of messages is answered by one write.

use crate::wire::stream::Stream;
use bytes::{Buf, Bytes, BytesMut};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How much is read at once.
const READ_BYTES: usize = 8 << 10;
/// Output beyond this is sent while a statement is waited for: as much as PostgreSQL gathers.
const DUE_BYTES: usize = 8 << 10;
/// Output beyond this is sent before more is made.
pub const OUTPUT_BYTES: usize = 64 << 10;
/// Buffers larger than this are given back when the client is idle.
const KEPT_BYTES: usize = 64 << 10;
/// How long a client is read from after it was told why its connection ends.
const LINGER: Duration = Duration::from_millis(200);
/// Bytes before a message's body: its kind and its length.
const HEADER_BYTES: usize = 5;
/// The longest first message, and the longest of a client that has not shown who it is.
pub const OPENING_BYTES: usize = 10_000;

/// Why no message can be read.
#[derive(Debug)]
pub enum Broken {
    /// The client has closed the connection, or it failed.
    Gone,
    /// A message says that it is longer than is allowed, or shorter than it can be.
    Length {
        /// The message's length as it says.
        length: u32,
        /// What is allowed.
        most: usize,
    },
}

/// A message.
#[derive(Debug)]
pub struct Frame {
    /// The message's kind.
    pub kind: u8,
    /// The message's body.
    pub body: Bytes,
}

/// A stream of messages.
pub struct Socket {
    stream: Stream,
    input: BytesMut,
    /// What is to be sent.
    pub output: Vec<u8>,
    sent: usize,
    /// The longest body that is taken.
    pub message_bytes_max: usize,
}

impl Socket {
    /// Messages through this stream, short ones at first.
    pub fn new(stream: Stream) -> Socket {
        Socket {
            stream,
            input: BytesMut::new(),
            output: Vec::new(),
            sent: 0,
            message_bytes_max: OPENING_BYTES,
        }
    }

    /// Goes on with the stream that `replace` makes of this one.
    ///
    /// # Errors
    /// Its error, or if bytes have been read already that belong to nobody.
    pub async fn replace_stream(
        &mut self,
        replace: impl AsyncFnOnce(Stream) -> io::Result<Stream>,
    ) -> io::Result<()> {
        if !self.input.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes before the handshake"));
        }
        let stream = std::mem::replace(&mut self.stream, Stream::Closed);
        self.stream = replace(stream).await?;
        Ok(())
    }

    /// The connection with what waits to be sent; this one is closed then.
    pub fn detach(&mut self) -> Socket {
        std::mem::replace(self, Socket::new(Stream::Closed))
    }

    /// The first byte that comes, which stays.
    ///
    /// # Errors
    /// If the client is gone.
    pub async fn first_byte(&mut self) -> Result<u8, Broken> {
        self.stream.peek().await.map_err(|_| Broken::Gone)
    }

    /// Whether it is encrypted.
    pub fn is_tls(&self) -> bool {
        self.stream.is_tls()
    }

    /// The kind and the whole length of the message at `offset` of what has been read, if its header is there.
    fn header(&self, offset: usize) -> Option<(u8, Result<usize, Broken>)> {
        let header = self.input.get(offset..offset + HEADER_BYTES)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let most = self.message_bytes_max;
        let whole = match length {
            ..4 => Err(Broken::Length { length, most }),
            length if length as usize - 4 > most => Err(Broken::Length { length, most }),
            length => Ok(length as usize + 1),
        };
        Some((header[0], whole))
    }

    /// Whether a whole message, or a broken one, is there already.
    pub fn has_frame(&self) -> bool {
        match self.header(0) {
            Some((_, Ok(whole))) => self.input.len() >= whole,
            Some((_, Err(_))) => true,
            None => false,
        }
    }

    /// Takes the next message, waiting for it if need be. May be dropped and asked again.
    ///
    /// # Errors
    /// See [`Broken`].
    pub async fn frame(&mut self) -> Result<Frame, Broken> {
        loop {
            if let Some((kind, whole)) = self.header(0) {
                let whole = whole?;
                if self.input.len() >= whole {
                    let mut frame = self.input.split_to(whole);
                    frame.advance(HEADER_BYTES);
                    return Ok(Frame { kind, body: frame.freeze() });
                }
            }
            self.fill().await?;
        }
    }

    /// The kinds of the messages that follow, as far as `wanted` goes on asking: it is given each kind in turn and
    /// answers once it knows enough. Waits for messages that are not there yet.
    ///
    /// # Errors
    /// See [`Broken`].
    pub async fn look_ahead<T>(&mut self, mut wanted: impl FnMut(u8) -> Option<T>) -> Result<T, Broken> {
        let mut offset = 0;
        loop {
            match self.header(offset) {
                Some((kind, whole)) => {
                    if let Some(known) = wanted(kind) {
                        return Ok(known);
                    }
                    offset += whole?;
                }
                // More than two messages' worth of input is not gathered for a question.
                None if self.input.len() > 2 * self.message_bytes_max => {
                    return Err(Broken::Length { length: u32::MAX, most: self.message_bytes_max });
                }
                None => self.fill().await?,
            }
        }
    }

    /// Takes a connection's first message, which has no kind.
    ///
    /// # Errors
    /// See [`Broken`].
    pub async fn opening(&mut self) -> Result<Bytes, Broken> {
        loop {
            if let Some(header) = self.input.get(..4) {
                let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
                if !(8..=OPENING_BYTES as u32).contains(&length) {
                    return Err(Broken::Length { length, most: OPENING_BYTES });
                }
                if self.input.len() >= length as usize {
                    let mut opening = self.input.split_to(length as usize);
                    opening.advance(4);
                    return Ok(opening.freeze());
                }
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), Broken> {
        // No more is reserved than what has come doubles: a length alone takes no memory.
        self.input.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.input).await {
            Ok(0) | Err(_) => Err(Broken::Gone),
            Ok(_) => Ok(()),
        }
    }

    /// Gives back buffers that are empty and have grown.
    pub fn shrink(&mut self) {
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = BytesMut::new();
        }
        if self.output.is_empty() && self.output.capacity() > KEPT_BYTES {
            self.output = Vec::new();
        }
    }

    /// Whether so much waits to be sent that it should not wait for more. A client that has sent a batch wants one
    /// answer, not one part of it now and another when a commit is on the disk.
    pub fn is_full(&self) -> bool {
        self.sent > 0 || self.output.len() > DUE_BYTES
    }

    /// Sends what waits, as far as the client takes it; ready when nothing is left.
    ///
    /// # Errors
    /// If the client is gone.
    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.output.len() {
            let rest = &self.output[self.sent..];
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(sent)) => self.sent += sent,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.output.clear();
        self.sent = 0;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Sends all that waits.
    ///
    /// # Errors
    /// If the client is gone.
    pub async fn send(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        poll_fn(|cx| self.poll_send(cx)).await
    }

    /// Sends what waits and closes. What the client still sends is read for a moment: closed with unread bytes, the
    /// system would take back what was sent last.
    pub async fn close(mut self) {
        // A client that is gone needs no goodbye.
        let _ = self.send().await;
        let _ = self.stream.shutdown().await;
        let mut unread = [0; 512];
        let drained = async { while matches!(self.stream.read(&mut unread).await, Ok(1..)) {} };
        let _ = tokio::time::timeout(LINGER, drained).await;
    }
}
