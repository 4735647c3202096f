//! A session on a server of PostgreSQL's protocol: statements go out in the simple or the extended protocol, and all
//! that a client can see of an answer comes back. It outlives servers that do not answer.

use super::literal::Literal;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a statement may take: more is a hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// Rows of an answer that are kept, at most: what has more is not compared.
const ROWS: usize = 20_000;

/// How a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Simple,
    /// Values as text.
    Extended,
    /// The extended protocol, with results in binary.
    Binary,
}

/// A statement as it is sent.
#[derive(Clone, Debug)]
pub struct Message {
    pub sql: String,
    pub parameters: Vec<Literal>,
    pub protocol: Protocol,
}

impl Message {
    pub fn simple(sql: impl Into<String>) -> Message {
        Message { sql: sql.into(), parameters: Vec::new(), protocol: Protocol::Simple }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Done(Shown),
    /// An error, by its SQLSTATE.
    Refused {
        state: String,
        message: String,
    },
    /// More rows than are kept.
    Large,
    /// The server has closed the connection.
    Lost,
    /// It has not answered in time.
    Hangs,
}

/// Rows, or none, and the tag of the command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    pub columns: Vec<Column>,
    /// Values as text, what came in binary in hexadecimal digits but for numbers with a point; `None` is null.
    pub rows: Vec<Vec<Option<String>>>,
    pub tag: String,
}

impl Shown {
    /// Whether the statement has shown no row and changed none.
    pub fn is_of_nothing(&self) -> bool {
        self.rows.is_empty() && self.tag.split(' ').next_back() == Some("0")
    }
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// The number in `pg_type` of the column's type.
    pub oid: u32,
    /// Whether its values come in binary.
    pub is_binary: bool,
}

impl Answer {
    pub fn state(&self) -> Option<&str> {
        match self {
            Answer::Refused { state, .. } => Some(state),
            _ => None,
        }
    }

    pub fn shown(&self) -> Option<&Shown> {
        match self {
            Answer::Done(shown) => Some(shown),
            _ => None,
        }
    }
}

/// A session.
pub struct Session {
    stream: BufReader<TcpStream>,
}

impl Session {
    /// A session of a user on a database of this machine.
    ///
    /// # Errors
    /// If there is no server, or it refuses.
    pub fn begin(port: u16, user: &str, database: &str) -> std::io::Result<Session> {
        let stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut session = Session { stream: BufReader::with_capacity(1 << 16, stream) };
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for (name, value) in [("user", user), ("database", database)] {
            body.extend(format!("{name}\0{value}\0").bytes());
        }
        body.push(0);
        let length = (body.len() as u32 + 4).to_be_bytes();
        session.stream.get_mut().write_all(&[&length, body.as_slice()].concat())?;
        match session.read()? {
            Answer::Done(_) => Ok(session),
            other => Err(std::io::Error::other(format!("{other:?}"))),
        }
    }

    /// What a statement is answered with.
    pub fn ask(&mut self, message: &Message) -> Answer {
        let sent = self.stream.get_mut().write_all(&bytes_of(message));
        match sent.and_then(|()| self.read()) {
            Ok(answer) => answer,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Answer::Hangs
            }
            Err(_) => Answer::Lost,
        }
    }

    /// What a text is answered with, sent in the simple protocol.
    pub fn say(&mut self, sql: &str) -> Answer {
        self.ask(&Message::simple(sql))
    }

    /// Messages up to `ReadyForQuery`.
    fn read(&mut self) -> std::io::Result<Answer> {
        let mut shown = Shown::default();
        let mut refused = None;
        let mut is_large = false;
        loop {
            let mut header = [0; 5];
            self.stream.read_exact(&mut header)?;
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
            let mut body = vec![0; (length as usize).saturating_sub(4)];
            self.stream.read_exact(&mut body)?;
            let mut fields = Fields(&body);
            match header[0] {
                b'T' => shown.columns = fields.columns(),
                b'D' if shown.rows.len() == ROWS => is_large = true,
                b'D' => shown.rows.push(fields.values(&shown.columns)),
                b'C' => shown.tag = fields.text(),
                b'E' if refused.is_none() => refused = Some(fields.refusal()),
                b'R' if fields.number(4) != 0 => {
                    return Err(std::io::Error::other("a password is asked for"));
                }
                b'Z' if is_large => return Ok(refused.unwrap_or(Answer::Large)),
                b'Z' => return Ok(refused.unwrap_or(Answer::Done(shown))),
                _ => {}
            }
        }
    }
}

/// The messages of a statement.
fn bytes_of(message: &Message) -> Vec<u8> {
    let Message { sql, parameters, protocol } = message;
    let mut bytes = Vec::new();
    let mut add = |kind: u8, body: &[u8]| {
        bytes.push(kind);
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(body);
    };
    if *protocol == Protocol::Simple {
        add(b'Q', format!("{sql}\0").as_bytes());
        return bytes;
    }
    let count = (parameters.len() as u16).to_be_bytes();
    let mut parse = format!("\0{sql}\0").into_bytes();
    parse.extend(count);
    let mut bind = vec![0, 0, 0, 0];
    bind.extend(count);
    for parameter in parameters {
        parse.extend(parameter.of().oid().to_be_bytes());
        match parameter.value() {
            Some(value) => {
                bind.extend((value.len() as u32).to_be_bytes());
                bind.extend(value.as_bytes());
            }
            None => bind.extend(u32::MAX.to_be_bytes()),
        }
    }
    match protocol {
        Protocol::Binary => bind.extend([0, 1, 0, 1]),
        _ => bind.extend([0, 0]),
    }
    add(b'P', &parse);
    add(b'B', &bind);
    add(b'D', b"P\0");
    add(b'E', &[0; 5]);
    add(b'S', b"");
    bytes
}

/// A value in binary, so that two that are the same have the same text.
fn binary_value(oid: u32, bytes: &[u8]) -> String {
    let mut fields = Fields(bytes);
    match (oid, bytes.len()) {
        (700, 4) => f32::from_bits(fields.number(4)).to_string(),
        (701, 8) => {
            let bits = u64::from(fields.number(4)) << 32 | u64::from(fields.number(4));
            f64::from_bits(bits).to_string()
        }
        // Digits to the base of 10,000, the weight of the first one, the sign, digits that are shown.
        (1700, 8..) => {
            let (count, weight, sign) = (fields.number(2), fields.number(2) as u16 as i16, fields.number(2));
            fields.take(2);
            let mut exponent = i32::from(weight);
            let mut number = 0.0;
            for _ in 0..count {
                number += f64::from(fields.number(2)) * 10_000_f64.powi(exponent);
                exponent -= 1;
            }
            if sign == 0x4000 { (-number).to_string() } else { number.to_string() }
        }
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Reads from the front of a message.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn number(&mut self, bytes: usize) -> u32 {
        self.take(bytes).iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    fn text(&mut self) -> String {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = String::from_utf8_lossy(self.take(length)).into_owned();
        self.take(1);
        text
    }

    /// `RowDescription`.
    fn columns(&mut self) -> Vec<Column> {
        let count = self.number(2);
        let mut columns = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let name = self.text();
            self.take(6);
            let oid = self.number(4);
            self.take(6);
            let is_binary = self.number(2) == 1;
            columns.push(Column { name, oid, is_binary });
        }
        columns
    }

    /// `DataRow`.
    fn values(&mut self, columns: &[Column]) -> Vec<Option<String>> {
        let count = self.number(2);
        let mut values = Vec::with_capacity(count as usize);
        for at in 0..count as usize {
            let length = self.number(4);
            if length == u32::MAX {
                values.push(None);
                continue;
            }
            let bytes = self.take(length as usize);
            values.push(Some(match columns.get(at) {
                Some(column) if column.is_binary => binary_value(column.oid, bytes),
                _ => String::from_utf8_lossy(bytes).into_owned(),
            }));
        }
        values
    }

    /// `ErrorResponse`.
    fn refusal(&mut self) -> Answer {
        let (mut state, mut message) = (String::new(), String::new());
        while let [code] = *self.take(1) {
            match code {
                b'C' => state = self.text(),
                b'M' => message = self.text(),
                b'D' => message = format!("{message}; {}", self.text()),
                0 => break,
                _ => drop(self.text()),
            }
        }
        Answer::Refused { state, message }
    }
}
