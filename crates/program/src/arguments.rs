//! The encoded form of a call's arguments: what the log keeps and the wire carries.
//!
//! The bytes mean something only together with the program's parameter types, and nothing else:
//!
//! ```text
//! transfer(src: bigint, memo: text null, lines: list of (item: int, price: numeric(8, 2)))
//! transfer(7, null, [(1, 2.50)])
//!
//!   0e        src: zigzag varint
//!   00        memo: absent (01 comes before a value); only nullable types have this byte
//!   01        lines: one row
//!   02        item: zigzag varint
//!   f4 03     price: zigzag varint of 250, the scale is the type's
//! ```
//!
//! | type | bytes |
//! |---|---|
//! | boolean | one: 0 or 1 |
//! | integers, date, timestamp, numeric | zigzag varint (LEB128), the shortest form only |
//! | double precision | 8, little-endian |
//! | text, bytea | varint length, then the bytes |
//! | list | varint count, then its rows, field by field |
//!
//! Equal arguments have equal bytes. Decoding trusts nothing: whatever the bytes are, it gives values
//! of the parameters' types or an error, and allocates no more than the bytes themselves need.

mod decoded;
mod reader;
mod selection;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use decoded::EncodedType;
pub use decoded::{ArgumentPlace, Arguments, DecodedArguments, Signature};
pub use reader::ArgumentReader;
pub use selection::Selection;
pub use writer::ArgumentWriter;

use crate::ir::{Field, Program, ScalarType, Type};
use fabius_value::{DataType, Datum, Error, Result, SqlState, Value, calendar, limit};

/// A call's arguments are not the encoded form of any (PostgreSQL's `invalid_binary_representation`).
pub const INVALID_ENCODING: SqlState = SqlState(*b"22P03");

/// One decoded argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument<'a> {
    /// A scalar.
    Scalar(Datum<'a>),
    /// A list: its rows' values one after the other, `width` to a row.
    List {
        /// Fields of a row.
        width: usize,
        /// Row by row.
        values: Vec<Datum<'a>>,
    },
}

/// Encodes the arguments of a call, each converted to its parameter's type.
///
/// # Errors
/// `42883` for a wrong number of arguments, `23502` for null where it is not allowed, the errors of
/// [`Value::cast`] for a value that does not convert, `54000` above [`limit::ARGUMENT_BYTES`]. The
/// message names the parameter, the detail what was expected and given.
pub fn encode(program: &Program, values: &[Value]) -> Result<Vec<u8>> {
    let parameters = &program.variables[..program.parameter_count];
    if values.len() != parameters.len() {
        let expected: Vec<String> =
            parameters.iter().map(|p| format!("{}: {}", p.name, type_text(&p.ty))).collect();
        return Err(Error::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("{} takes {} arguments, {} given", program.name, parameters.len(), values.len()),
        )
        .with_detail(format!("parameters are ({})", expected.join(", "))));
    }
    let mut bytes = Vec::with_capacity(values.len() * 8);
    let mut writer = ArgumentWriter::new(&mut bytes);
    for (parameter, value) in parameters.iter().zip(values) {
        write_argument(&mut writer, &parameter.ty, value).map_err(|error| {
            let mut described =
                Error::new(error.state(), format!("argument {}: {}", parameter.name, error.message()))
                    .with_detail(match error.detail() {
                        Some(detail) => format!("expected {}; {detail}", type_text(&parameter.ty)),
                        None => format!("expected {}, given {}", type_text(&parameter.ty), value.type_name()),
                    });
            if let Some(hint) = error.hint() {
                described = described.with_hint(hint);
            }
            described
        })?;
    }
    check_size(&bytes)?;
    Ok(bytes)
}

fn write_argument(writer: &mut ArgumentWriter<'_>, ty: &Type, value: &Value) -> Result<()> {
    match (ty, value) {
        (Type::Scalar(scalar), value) => write_scalar(writer, *scalar, value),
        (Type::List(fields), Value::List(rows)) => {
            writer.list(rows.len());
            for (at, row) in rows.iter().enumerate() {
                let in_row = |error: Error| {
                    let detail = error.detail().map_or(String::new(), |detail| format!("; {detail}"));
                    Error::new(error.state(), error.message()).with_detail(format!("row {}{detail}", at + 1))
                };
                if row.len() != fields.len() {
                    let message = format!("{} values in a row of {} fields", row.len(), fields.len());
                    return Err(in_row(Error::new(SqlState::DATATYPE_MISMATCH, message)));
                }
                for (field, value) in fields.iter().zip(row) {
                    write_scalar(writer, field.scalar, value).map_err(in_row)?;
                }
            }
            Ok(())
        }
        (Type::List(_), value) => {
            Err(Error::new(SqlState::DATATYPE_MISMATCH, format!("{} is not a list", value.type_name())))
        }
    }
}

fn write_scalar(writer: &mut ArgumentWriter<'_>, scalar: ScalarType, value: &Value) -> Result<()> {
    let value = value.cast(scalar.data_type)?;
    match (value.is_null(), scalar.nullable) {
        (true, true) => {
            writer.null();
            return Ok(());
        }
        (true, false) => return Err(Error::new(SqlState::NOT_NULL_VIOLATION, "null is not allowed")),
        (false, true) => {
            writer.present();
        }
        (false, false) => {}
    }
    check_date(scalar.data_type, Datum::from_value(&value))
        .map_err(|error| error.with_detail(format!("value is {value}")))?;
    writer.datum(Datum::from_value(&value));
    Ok(())
}

/// Decodes the arguments of a call to `program`.
///
/// # Errors
/// [`INVALID_ENCODING`] for bytes that are not the arguments of this program, `54000` if there are
/// too many of them; errors name the parameter.
pub fn decode<'a>(program: &Program, bytes: &'a [u8]) -> Result<Vec<Argument<'a>>> {
    check_size(bytes)?;
    let mut reader = ArgumentReader::new(bytes);
    let arguments = program.variables[..program.parameter_count].iter().map(|parameter| {
        let decoded = match &parameter.ty {
            Type::Scalar(scalar) => reader.scalar(*scalar).map(Argument::Scalar),
            Type::List(fields) => {
                let mut values = Vec::new();
                let types: Vec<EncodedType> =
                    fields.iter().map(|field| EncodedType::new(field.scalar)).collect();
                let read = reader.length().and_then(|rows| reader.rows(&types, rows, &mut values));
                read.map(|()| Argument::List { width: fields.len(), values })
            }
        };
        decoded.map_err(|error| in_parameter(error, &parameter.name))
    });
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    reader.finish()?;
    Ok(arguments)
}

/// The arguments of a call to `program` as values, for printing.
///
/// # Errors
/// Those of [`decode`].
pub fn to_values(program: &Program, bytes: &[u8]) -> Result<Vec<Value>> {
    let values = decode(program, bytes)?.into_iter().zip(&program.variables).map(|(argument, parameter)| {
        match (argument, &parameter.ty) {
            (Argument::Scalar(datum), Type::Scalar(scalar)) => datum.to_value(scalar.data_type),
            (Argument::List { values, .. }, Type::List(fields)) => list_value(fields, &values),
            _ => unreachable!("decoded by the same types"),
        }
    });
    Ok(values.collect())
}

/// A list's rows as a value.
pub(crate) fn list_value(fields: &[Field], values: &[Datum<'_>]) -> Value {
    let row = |row: &[Datum<'_>]| {
        fields.iter().zip(row).map(|(field, datum)| datum.to_value(field.scalar.data_type)).collect()
    };
    Value::List(values.chunks(fields.len().max(1)).map(row).collect())
}

/// Adds the parameter's name to a decoding error.
#[cold]
pub(crate) fn in_parameter(error: Error, name: &str) -> Error {
    let named = Error::new(error.state(), format!("argument {name}: {}", error.message()));
    match error.detail() {
        Some(detail) => named.with_detail(detail),
        None => named,
    }
}

/// Checks [`limit::ARGUMENT_BYTES`].
pub(crate) fn check_size(bytes: &[u8]) -> Result<()> {
    if bytes.len() <= limit::ARGUMENT_BYTES {
        return Ok(());
    }
    Err(Error::new(SqlState::PROGRAM_LIMIT, "arguments too large")
        .with_detail(format!(
            "they have {} bytes, at most {} are allowed",
            bytes.len(),
            limit::ARGUMENT_BYTES
        ))
        .with_hint("divide the work among several calls"))
}

/// Dates are days of the calendar, so that nothing after this has to ask.
fn check_date(data_type: DataType, datum: Datum<'_>) -> Result<()> {
    let (first, last) = calendar::DATE_RANGE;
    match (data_type, datum) {
        (DataType::Date, Datum::Int(days)) if !(first.into()..=last.into()).contains(&days) => {
            Err(Error::new(SqlState::OUT_OF_RANGE, "date out of range"))
        }
        _ => Ok(()),
    }
}

fn type_text(ty: &Type) -> String {
    let scalar =
        |scalar: &ScalarType| format!("{}{}", scalar.data_type, if scalar.nullable { " null" } else { "" });
    match ty {
        Type::Scalar(ty) => scalar(ty),
        Type::List(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| scalar(&field.scalar)).collect();
            format!("list of ({})", fields.join(", "))
        }
    }
}
