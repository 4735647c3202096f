//! Messages of PostgreSQL's protocol, and values in its binary format.
//!
//! ```text
//! byte 0          what it is: a kind of message, or a type
//! rest            a body, or a value
//! ```

use fabius_server::wire::frontend::{Bind, Execute, Opening, Parse, Target, read_text};
use fabius_sql_meaning::binary_format;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, TextStyle};
use fabius_value::{Error, Value};

pub(crate) fn run(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    match kind {
        b'P' => drop(told(Parse::read(body))),
        b'B' => bind(body),
        b'D' | b'C' => drop(told(Target::read(body))),
        b'E' => drop(told(Execute::read(body))),
        b'Q' | b'f' => drop(told(read_text(body))),
        0 => drop(told(Opening::read(body))),
        number => value(body, &TYPES[usize::from(*number) % TYPES.len()]),
    }
}

const TYPES: [SqlType; 20] = [
    SqlType::Boolean,
    SqlType::SmallInt,
    SqlType::Int,
    SqlType::BigInt,
    SqlType::Oid,
    SqlType::Real,
    SqlType::Double,
    SqlType::Numeric(None),
    SqlType::Numeric(Some((12, 3))),
    SqlType::Text,
    SqlType::VarChar(Some(5)),
    SqlType::Char(3),
    SqlType::Bytea,
    SqlType::Date,
    SqlType::Time,
    SqlType::Timestamp,
    SqlType::TimestampTz,
    SqlType::Interval,
    SqlType::Uuid,
    SqlType::JsonB,
];

/// Errors have their SQLSTATE and say something.
fn told<T>(read: Result<T, Error>) -> Option<T> {
    read.inspect_err(|error| assert!(error.state().as_str() != "XX000" && !error.message().is_empty())).ok()
}

fn bind(body: &[u8]) {
    let Some(bind) = told(Bind::read(body)) else { return };
    for (at, parameter) in bind.parameters.iter().enumerate() {
        let Some(parameter) = parameter else { continue };
        if bind.parameter_formats.is_binary(at) {
            value(parameter, &TYPES[at % TYPES.len()]);
        }
    }
}

/// What reads is written so that it reads back, in the array of one too.
fn value(bytes: &[u8], sql_type: &SqlType) {
    let array = SqlType::Array(Box::new(sql_type.clone()));
    let _ = told(binary_format::read(bytes, &array));
    let Some(value) = told(binary_format::read(bytes, sql_type)) else { return };
    let mut text = Vec::new();
    text_format::write(&value, sql_type, &TextStyle::default(), &mut text);
    let one = Value::List(vec![vec![value], vec![Value::Null]]);
    let mut written = Vec::new();
    binary_format::write(&one, &array, &mut written).expect("what was read is written");
    let again = binary_format::read(&written, &array).expect("what was written is read");
    let mut twice = Vec::new();
    binary_format::write(&again, &array, &mut twice).expect("it is written again");
    assert_eq!(written, twice, "{sql_type:?}");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let messages: [&[u8]; 7] = [
        b"Pname\0SELECT $1\0\0\x01\0\0\0\x17",
        b"Bp\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\x01",
        b"DSname\0",
        b"Eportal\0\0\0\0\x05",
        b"QSELECT 1\0",
        b"\0\0\x03\0\0user\0me\0database\0fabius\0\0",
        b"\0\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02",
    ];
    let values = (0..TYPES.len() as u8).map(|number| [&[number + 100][..], &[0; 16]].concat());
    messages.iter().map(|message| message.to_vec()).chain(values).collect()
}
