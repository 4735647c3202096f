//! What lies between the bytes of a connection and TCP: nothing now, encryption where it is configured.

use crate::NodeId;
use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// The bytes of one connection. A read or write that takes longer than the time set for the TCP stream fails
/// with [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`] and can be tried again.
pub trait Connection: Read + Write + Send {}

impl<T: Read + Write + Send> Connection for T {}

/// Makes connections of TCP streams. What has to be agreed on first is agreed on before a connection is
/// returned; the streams have time limits for that, which change later and stay the caller's.
pub trait Transport: Debug + Send + Sync {
    /// Whether nobody on the way can read or change what is sent, so that it may leave the machine.
    fn is_protected(&self) -> bool;

    /// The connection over a stream that this node has opened to another, at an address as it was configured.
    ///
    /// # Errors
    /// When the other side is not who it should be, or the stream fails.
    fn outgoing(&self, stream: TcpStream, to: NodeId, address: &str) -> io::Result<Box<dyn Connection>>;

    /// The connection over a stream that another node has opened to this one.
    ///
    /// # Errors
    /// When the other side may not connect, or the stream fails.
    fn incoming(&self, stream: TcpStream) -> io::Result<Incoming>;
}

/// A connection that another node has opened.
pub struct Incoming {
    /// The bytes that go over the connection.
    pub connection: Box<dyn Connection>,
    /// The node that the other side has proven to be; none where nobody is asked for proof.
    pub from: Option<NodeId>,
}

/// TCP as it is, which does not leave the machine.
#[derive(Debug, Clone, Copy)]
pub struct PlainTransport;

impl Transport for PlainTransport {
    fn is_protected(&self) -> bool {
        false
    }

    fn outgoing(&self, stream: TcpStream, _to: NodeId, _address: &str) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(stream))
    }

    fn incoming(&self, stream: TcpStream) -> io::Result<Incoming> {
        Ok(Incoming { connection: Box::new(stream), from: None })
    }
}
