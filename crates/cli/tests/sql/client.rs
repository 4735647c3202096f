//! A session for scripts: one statement at a time, values as text, in the simple or the extended protocol.
//!
//! | letter | type | letter | type | letter | type |
//! |---|---|---|---|---|---|
//! | `B` | boolean | `T` | text | `D` | date |
//! | `S` | smallint | `V` | varchar | `H` | time |
//! | `I` | integer | `C` | char(n) | `P` | timestamp |
//! | `L` | bigint | `Y` | bytea | `Z` | timestamp with time zone |
//! | `N` | numeric | `U` | uuid | `E` | interval |
//! | `F` | real | `J` | json | `A` | an array |
//! | `R` | double precision | `X` | jsonb | `?` | any other |

use crate::raw::{Message, Raw};
use sqllogictest::{ColumnType, DB, DBOutput};
use std::net::{Ipv4Addr, SocketAddr};

/// How statements are sent.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// `Query`.
    Simple,
    /// `Parse`, `Bind`, `Describe`, `Execute`, `Sync`.
    Extended,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
        }
    }
}

/// A session.
pub struct Client {
    raw: Raw,
    engine: &'static str,
    protocol: Protocol,
}

/// Why a statement has not run: an error by its SQLSTATE.
#[derive(Debug)]
pub struct Refused {
    pub state: String,
    pub message: String,
}

impl Refused {
    /// What is not the database's error, but ours.
    pub fn other(message: &str) -> Refused {
        Refused { state: String::new(), message: message.to_string() }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} {}", self.state, self.message)
    }
}

impl std::error::Error for Refused {}

impl Client {
    /// A session of a user on a database.
    pub fn begin(
        engine: &'static str,
        port: u16,
        user: &str,
        database: &str,
        protocol: Protocol,
    ) -> Result<Client, Refused> {
        let (raw, greeting) = Raw::begin_as(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), user, database);
        output(&greeting)?;
        Ok(Client { raw, engine, protocol })
    }

    /// What a statement gives.
    pub fn answer(&mut self, sql: &str) -> Result<DBOutput<Type>, Refused> {
        let text = format!("{sql}\0");
        let sent = match self.protocol {
            Protocol::Simple => self.raw.try_send(&[(b'Q', text.as_bytes())]),
            Protocol::Extended => self.raw.try_send(&[
                (b'P', format!("\0{text}\0\0").as_bytes()),
                (b'B', &[0; 8]),
                (b'D', b"P\0"),
                (b'E', &[0; 5]),
                (b'S', b""),
            ]),
        };
        sent.map_err(|error| Refused::other(&format!("the statement cannot be sent: {error}")))?;
        output(&self.raw.until(b'Z'))
    }
}

impl DB for Client {
    type Error = Refused;
    type ColumnType = Type;

    fn run(&mut self, sql: &str) -> Result<DBOutput<Type>, Refused> {
        self.answer(sql)
    }

    fn engine_name(&self) -> &str {
        self.engine
    }

    fn error_sql_state(error: &Refused) -> Option<String> {
        Some(error.state.clone())
    }
}

/// A column's type, as the letter of scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type(char);

impl ColumnType for Type {
    fn from_char(letter: char) -> Option<Type> {
        Some(Type(letter))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

impl Type {
    /// By the type's number in PostgreSQL's `pg_type`.
    fn of(oid: u32) -> Type {
        Type(match oid {
            16 => 'B',

            21 => 'S',
            23 => 'I',
            20 => 'L',
            1700 => 'N',
            700 => 'F',
            701 => 'R',
            25 => 'T',
            1043 => 'V',
            1042 => 'C',
            17 => 'Y',
            2950 => 'U',
            114 => 'J',
            3802 => 'X',
            1082 => 'D',
            1083 => 'H',
            1114 => 'P',
            1184 => 'Z',
            1186 => 'E',
            16_384.. => 'W',
            199
            | 1000..=1003
            | 1005
            | 1007
            | 1009
            | 1014..=1016
            | 1021
            | 1022
            | 1028
            | 1115
            | 1182
            | 1183 => 'A',
            1185 | 1187 | 1231 | 2951 | 3807 => 'A',
            _ => '?',
        })
    }
}

/// What messages say: the first error, else rows, else what the command's tag counts.
fn output(messages: &[Message]) -> Result<DBOutput<Type>, Refused> {
    if let Some((_, body)) = messages.iter().find(|(kind, _)| *kind == b'E') {
        return Err(refusal(body));
    }
    if messages.last().is_none_or(|(kind, _)| *kind != b'Z') {
        return Err(Refused::other("the server has closed the connection"));
    }
    if let Some((_, body)) = messages.iter().find(|(kind, _)| *kind == b'T') {
        let rows = messages.iter().filter(|(kind, _)| *kind == b'D').map(|(_, body)| values(body));
        return Ok(DBOutput::Rows { types: types(body), rows: rows.collect() });
    }
    let tag = messages.iter().find(|(kind, _)| *kind == b'C').map(|(_, body)| body.as_slice());
    let words = String::from_utf8_lossy(tag.unwrap_or_default()).into_owned();
    let count = words.trim_end_matches('\0').rsplit(' ').next().and_then(|word| word.parse().ok());
    Ok(DBOutput::StatementComplete(count.unwrap_or(0)))
}

/// Reads from the front of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
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
}

/// Types of the columns of `RowDescription`.
fn types(body: &[u8]) -> Vec<Type> {
    let mut reader = Reader(body);
    let column = |reader: &mut Reader<'_>| {
        reader.text();
        reader.take(6);
        let oid = reader.number(4);
        reader.take(8);
        Type::of(oid)
    };
    (0..reader.number(2)).map(|_| column(&mut reader)).collect()
}

/// Values of `DataRow`, each on one line.
fn values(body: &[u8]) -> Vec<String> {
    let mut reader = Reader(body);
    let value = |reader: &mut Reader<'_>| match reader.number(4) {
        u32::MAX => "NULL".to_string(),
        0 => "(empty)".to_string(),
        length => String::from_utf8_lossy(reader.take(length as usize)).replace('\n', "\\n"),
    };
    (0..reader.number(2)).map(|_| value(&mut reader)).collect()
}

/// `ErrorResponse`.
fn refusal(body: &[u8]) -> Refused {
    let mut reader = Reader(body);
    let mut refused = Refused::other("");
    while let [code] = *reader.take(1) {
        let text = reader.text();
        match code {
            b'C' => refused.state = text,
            b'M' => refused.message = text,
            _ => {}
        }
    }
    refused
}
