//! A client that speaks the protocol message by message.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that says exactly what it is told to.
pub struct Raw {
    pub stream: TcpStream,
}

/// A message: its kind and its body.
pub type Message = (u8, Vec<u8>);

impl Raw {
    pub fn new(address: impl Into<SocketAddr>) -> Raw {
        let stream = TcpStream::connect(address.into()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Raw { stream }
    }

    /// A session; what the server said on the way.
    pub fn begin(address: impl Into<SocketAddr>) -> (Raw, Vec<Message>) {
        Raw::begin_as(address, "tester", "fabius")
    }

    /// A session of a user on a database.
    pub fn begin_as(address: impl Into<SocketAddr>, user: &str, database: &str) -> (Raw, Vec<Message>) {
        let mut raw = Raw::new(address);
        raw.startup(196_608, &[("user", user), ("database", database)]);
        let greeting = raw.until(b'Z');
        (raw, greeting)
    }

    pub fn startup(&mut self, version: u32, parameters: &[(&str, &str)]) {
        let mut body = version.to_be_bytes().to_vec();
        parameters.iter().for_each(|(name, value)| body.extend(format!("{name}\0{value}\0").bytes()));
        body.push(0);
        self.send_opening(&body);
    }

    pub fn send_opening(&mut self, body: &[u8]) {
        let length = (body.len() as u32 + 4).to_be_bytes();
        self.stream.write_all(&[&length, body].concat()).expect("the opening is sent");
    }

    pub fn send(&mut self, messages: &[(u8, &[u8])]) {
        self.try_send(messages).expect("messages are sent");
    }

    pub fn try_send(&mut self, messages: &[(u8, &[u8])]) -> std::io::Result<()> {
        let bytes: Vec<u8> = messages.iter().flat_map(|(kind, body)| message(*kind, body)).collect();
        self.stream.write_all(&bytes)
    }

    pub fn query(&mut self, text: &str) -> Vec<Message> {
        self.send(&[(b'Q', format!("{text}\0").as_bytes())]);
        self.until(b'Z')
    }

    /// The next message; `None` when the server has closed the connection.
    pub fn receive(&mut self) -> Option<Message> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some((header[0], body))
    }

    /// Messages up to the next of a kind, or to the end.
    pub fn until(&mut self, kind: u8) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.receive() {
            let is_last = message.0 == kind;
            messages.push(message);
            if is_last {
                break;
            }
        }
        messages
    }

    /// Whether the server has closed the connection; what it said before is passed over.
    pub fn is_closed(&mut self) -> bool {
        while self.receive().is_some() {}
        true
    }
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// Kinds of messages, as text.
pub fn kinds(messages: &[Message]) -> String {
    messages.iter().filter(|(kind, _)| *kind != b'S').map(|(kind, _)| char::from(*kind)).collect()
}

/// The field of an error that has this code.
pub fn field(messages: &[Message], code: u8) -> String {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'E').expect("an error");
    let fields = body.split(|byte| *byte == 0).filter(|field| field.first() == Some(&code));
    fields.map(|field| String::from_utf8_lossy(&field[1..]).into_owned()).next().unwrap_or_default()
}
