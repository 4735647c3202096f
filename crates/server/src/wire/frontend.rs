//! What clients send.
//!
//! A message is a byte that says its kind, an `i32` with its length (itself included), and a body. The first
//! message of a connection has no kind. Bodies are not trusted: each read is checked, and what does not fit is
//! `08P01`.

use fabius_sql_meaning::binary_format;
use fabius_value::{Error, Result, SqlState};

/// What a client does that the protocol does not allow.
pub const PROTOCOL_VIOLATION: SqlState = SqlState(*b"08P01");

/// An error of the protocol.
pub fn violation(message: impl Into<String>) -> Error {
    Error::new(PROTOCOL_VIOLATION, message)
}

/// A message's body, read from the front.
pub struct Body<'b> {
    rest: &'b [u8],
}

impl<'b> Body<'b> {
    /// The body with these bytes.
    pub fn new(bytes: &'b [u8]) -> Body<'b> {
        Body { rest: bytes }
    }

    /// So many bytes.
    ///
    /// # Errors
    /// `08P01` if there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(insufficient)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(insufficient)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// `08P01` at the end.
    pub fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// A count: 16 bits without a sign.
    ///
    /// # Errors
    /// `08P01` at the end.
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// 32 bits without a sign.
    ///
    /// # Errors
    /// `08P01` at the end.
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// 32 bits with a sign.
    ///
    /// # Errors
    /// `08P01` at the end.
    pub fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Text up to a zero.
    ///
    /// # Errors
    /// `08P01` without a zero, `22021` if it is not UTF-8.
    pub fn text(&mut self) -> Result<&'b str> {
        let end = self.rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| violation("invalid string in message"))?;
        let text = self.bytes(end)?;
        self.byte()?;
        binary_format::text(text)
    }

    /// A value with its length before it; `None` is null.
    ///
    /// # Errors
    /// `08P01` if it is not all there.
    pub fn value(&mut self) -> Result<Option<&'b [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.bytes(usize::try_from(length).map_err(|_| insufficient())?).map(Some),
        }
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// `08P01` if something is.
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
}

fn insufficient() -> Error {
    violation("insufficient data left in message")
}

/// `Parse`: a statement to be made ready.
#[derive(Debug, PartialEq, Eq)]
pub struct Parse<'b> {
    /// The prepared statement's name; empty for the one without.
    pub name: &'b str,
    /// The statement's text.
    pub query: &'b str,
    /// Numbers of the types of `$1`, `$2`, ...; 0 where the client leaves one open.
    pub types: Vec<u32>,
}

impl<'b> Parse<'b> {
    /// Reads the body.
    ///
    /// # Errors
    /// `08P01`, `22021`.
    pub fn read(bytes: &'b [u8]) -> Result<Parse<'b>> {
        let mut body = Body::new(bytes);
        let (name, query) = (body.text()?, body.text()?);
        let count = body.u16()?;
        let types = (0..count).map(|_| body.u32()).collect::<Result<_>>()?;
        body.end()?;
        Ok(Parse { name, query, types })
    }
}

/// Formats of values, as `Bind` gives them: none (all text), one for all, or one for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// All text.
    #[default]
    Text,
    /// All binary.
    Binary,
    /// Whether each is binary.
    Each(Vec<bool>),
}

impl Formats {
    fn read(body: &mut Body<'_>) -> Result<Formats> {
        let count = body.u16()?;
        let mut format = || match body.u16()? {
            0 => Ok(false),
            1 => Ok(true),
            other => {
                Err(Error::new(SqlState::INVALID_PARAMETER, format!("unsupported format code: {other}")))
            }
        };
        match count {
            0 => Ok(Formats::Text),
            1 => Ok(if format()? { Formats::Binary } else { Formats::Text }),
            count => (0..count).map(|_| format()).collect::<Result<_>>().map(Formats::Each),
        }
    }

    /// Whether the value at a place (from 0) is binary.
    pub fn is_binary(&self, at: usize) -> bool {
        match self {
            Formats::Text => false,
            Formats::Binary => true,
            Formats::Each(each) => each.get(at).copied().unwrap_or(false),
        }
    }

    /// For how many values it is meant, if it says.
    pub fn count(&self) -> Option<usize> {
        match self {
            Formats::Each(each) => Some(each.len()),
            _ => None,
        }
    }
}

/// `Bind`: a statement with its parameters, as a portal.
#[derive(Debug, PartialEq, Eq)]
pub struct Bind<'b> {
    /// The portal's name; empty for the one without.
    pub portal: &'b str,
    /// The statement's.
    pub statement: &'b str,
    /// Formats of the parameters.
    pub parameter_formats: Formats,
    /// The parameters; `None` is null.
    pub parameters: Vec<Option<&'b [u8]>>,
    /// Formats of the result's columns.
    pub result_formats: Formats,
}

impl<'b> Bind<'b> {
    /// Reads the body.
    ///
    /// # Errors
    /// `08P01`, `22021`; `22023` for a format that does not exist.
    pub fn read(bytes: &'b [u8]) -> Result<Bind<'b>> {
        let mut body = Body::new(bytes);
        let (portal, statement) = (body.text()?, body.text()?);
        let parameter_formats = Formats::read(&mut body)?;
        let count = body.u16()?;
        let parameters = (0..count).map(|_| body.value()).collect::<Result<Vec<_>>>()?;
        let result_formats = Formats::read(&mut body)?;
        body.end()?;
        match parameter_formats.count() {
            Some(formats) if formats != parameters.len() => Err(violation(format!(
                "bind message has {formats} parameter formats but {} parameters",
                parameters.len()
            ))),
            _ => Ok(Bind { portal, statement, parameter_formats, parameters, result_formats }),
        }
    }
}

/// `Describe` and `Close`: what they are about.
#[derive(Debug, PartialEq, Eq)]
pub enum Target<'b> {
    /// A statement.
    Statement(&'b str),
    /// A portal.
    Portal(&'b str),
}

impl<'b> Target<'b> {
    /// Reads the body.
    ///
    /// # Errors
    /// `08P01`, `22021`.
    pub fn read(bytes: &'b [u8]) -> Result<Target<'b>> {
        let mut body = Body::new(bytes);
        let kind = body.byte()?;
        let name = body.text()?;
        body.end()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            other => Err(violation(format!("invalid subtype {other} of a DESCRIBE or CLOSE message"))),
        }
    }
}

/// `Execute`: a portal to be run, or gone on with.
#[derive(Debug, PartialEq, Eq)]
pub struct Execute<'b> {
    /// The portal.
    pub portal: &'b str,
    /// How many rows at most; 0 for all.
    pub rows_max: u32,
}

impl<'b> Execute<'b> {
    /// Reads the body.
    ///
    /// # Errors
    /// `08P01`, `22021`.
    pub fn read(bytes: &'b [u8]) -> Result<Execute<'b>> {
        let mut body = Body::new(bytes);
        let portal = body.text()?;
        let rows_max = u32::try_from(body.i32()?).unwrap_or(0);
        body.end()?;
        Ok(Execute { portal, rows_max })
    }
}

/// A body that is one text: `Query`, `CopyFail`, a password.
///
/// # Errors
/// `08P01`, `22021`.
pub fn read_text(bytes: &[u8]) -> Result<&str> {
    let mut body = Body::new(bytes);
    let text = body.text()?;
    body.end()?;
    Ok(text)
}

/// The first message of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening<'b> {
    /// Asks whether the rest may be encrypted with TLS.
    Tls,
    /// Asks whether the rest may be encrypted with GSSAPI.
    Gss,
    /// Another connection's statement is to be given up.
    Cancel {
        /// The connection's number.
        process: u32,
        /// What only its client knows.
        secret: &'b [u8],
    },
    /// A session begins.
    Startup {
        /// The protocol's version: major and minor.
        version: (u16, u16),
        /// Names and values.
        parameters: Vec<(&'b str, &'b str)>,
    },
}

impl<'b> Opening<'b> {
    /// Reads the body, which begins with a code or the protocol's version.
    ///
    /// # Errors
    /// `08P01`, `22021`; `0A000` for another protocol.
    pub fn read(bytes: &'b [u8]) -> Result<Opening<'b>> {
        let mut body = Body::new(bytes);
        let (major, minor) = (body.u16()?, body.u16()?);
        match (major, minor) {
            (1234, 5678) => Ok(Opening::Cancel { process: body.u32()?, secret: body.rest() }),
            (1234, 5679) => Ok(Opening::Tls),
            (1234, 5680) => Ok(Opening::Gss),
            (3, _) => {
                let mut parameters = Vec::new();
                loop {
                    match body.text()? {
                        "" => break,
                        name => parameters.push((name, body.text()?)),
                    }
                }
                body.end().map_err(|_| {
                    violation("invalid startup packet layout: expected terminator as last byte")
                })?;
                Ok(Opening::Startup { version: (major, minor), parameters })
            }
            _ => Err(Error::new(
                SqlState::NOT_SUPPORTED,
                format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: messages are read whole, and any cut or addition is a violation.
    #[test]
    fn bodies_are_checked() {
        let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\0";
        let expected = Bind {
            portal: "p",
            statement: "s",
            parameter_formats: Formats::Binary,
            parameters: vec![Some(b"x"), None],
            result_formats: Formats::Text,
        };
        assert_eq!(Bind::read(bind), Ok(expected));
        for length in 0..bind.len() {
            let error = Bind::read(&bind[..length]).expect_err("it is cut");
            assert_eq!(error.state(), PROTOCOL_VIOLATION, "{length}");
        }
        assert!(Bind::read(&[&bind[..], b"\0"].concat()).is_err());
        assert!(Bind::read(b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0").is_err());
        assert!(Parse::read(b"\0\xff\0\0\0").is_err());
        assert_eq!(Execute::read(b"p\0\0\0\0\x05"), Ok(Execute { portal: "p", rows_max: 5 }));
        assert_eq!(Target::read(b"Sx\0"), Ok(Target::Statement("x")));
        assert!(Target::read(b"Zx\0").is_err());
    }

    /// Goal: the kinds of first messages are told apart.
    #[test]
    fn openings() {
        assert_eq!(Opening::read(&80877103u32.to_be_bytes()), Ok(Opening::Tls));
        assert_eq!(Opening::read(&80877104u32.to_be_bytes()), Ok(Opening::Gss));
        let startup = b"\0\x03\0\0user\0me\0\0";
        let expected = Opening::Startup { version: (3, 0), parameters: vec![("user", "me")] };
        assert_eq!(Opening::read(startup), Ok(expected));
        assert!(Opening::read(&startup[..startup.len() - 1]).is_err());
        assert!(Opening::read(b"\0\x02\0\0").is_err());
        assert!(Opening::read(b"GET / HTTP/1.1").is_err());
    }
}
