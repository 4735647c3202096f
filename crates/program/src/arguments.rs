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

use crate::ir::{Field, Program, ScalarType, Type};
use crate::operation::arithmetic::Digits;
use fabius_value::{DataType, Datum, Error, Result, SqlState, Value, calendar, limit, value::fit_text};

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

/// Writes arguments whose types the caller knows, without going through [`Value`]s.
///
/// The caller writes each parameter in order, in the representation of its type: nothing is checked
/// here, and what does not fit is refused when the call is decoded.
///
/// ```
/// use fabius_program::arguments::ArgumentWriter;
/// let mut bytes = Vec::new();
/// ArgumentWriter::new(&mut bytes).int(7).null_or(Some("rent"), |writer, memo| writer.text(memo)).list(1).int(1).numeric(250);
/// assert_eq!(bytes, [0x0e, 1, 4, b'r', b'e', b'n', b't', 1, 2, 0xf4, 3]);
/// ```
pub struct ArgumentWriter<'b> {
    bytes: &'b mut Vec<u8>,
}

impl<'b> ArgumentWriter<'b> {
    /// Appends to `bytes`.
    pub fn new(bytes: &'b mut Vec<u8>) -> ArgumentWriter<'b> {
        ArgumentWriter { bytes }
    }

    /// A `smallint`, `int`, `bigint`, `date` (days) or `timestamp` (microseconds).
    pub fn int(&mut self, value: i64) -> &mut Self {
        self.varint((value << 1 ^ value >> 63) as u64)
    }

    /// A `numeric`, as its value times ten to its type's scale.
    pub fn numeric(&mut self, mantissa: i128) -> &mut Self {
        let mut rest = (mantissa << 1 ^ mantissa >> 127) as u128;
        while rest > u128::from(u64::MAX >> 1) {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.varint(rest as u64)
    }

    /// A `boolean`.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.bytes.push(value.into());
        self
    }

    /// A `double precision`.
    pub fn double(&mut self, value: f64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A `text`, `varchar` or `char` (the latter without trailing blanks).
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// A `bytea`.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    /// A value of a nullable type, written by `write` if it is there.
    pub fn null_or<T>(
        &mut self,
        value: Option<T>,
        write: impl FnOnce(&mut Self, T) -> &mut Self,
    ) -> &mut Self {
        match value {
            Some(value) => write(self.present(), value),
            None => self.null(),
        }
    }

    /// Null, of a nullable type.
    pub fn null(&mut self) -> &mut Self {
        self.bytes.push(0);
        self
    }

    /// Says that the value of a nullable type follows.
    pub fn present(&mut self) -> &mut Self {
        self.bytes.push(1);
        self
    }

    /// Starts a list of this many rows; their values follow, row by row.
    pub fn list(&mut self, rows: usize) -> &mut Self {
        self.varint(rows as u64)
    }

    /// A value that is not null, in its representation.
    fn datum(&mut self, datum: Datum<'_>) -> &mut Self {
        match datum {
            Datum::Null => unreachable!("nulls are written as absence"),
            Datum::Boolean(v) => self.boolean(v),
            Datum::Int(v) => self.int(v),
            Datum::Numeric(v) => self.numeric(v),
            Datum::Double(v) => self.double(v),
            Datum::Text(v) => self.text(v),
            Datum::Bytes(v) => self.bytes(v),
        }
    }

    fn varint(&mut self, mut rest: u64) -> &mut Self {
        while rest > 0x7f {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        self
    }
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
                let scalars: Vec<ScalarType> = fields.iter().map(|field| field.scalar).collect();
                reader.list(&scalars, &mut values).map(|()| Argument::List { width: fields.len(), values })
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

/// Reads encoded arguments one parameter at a time.
pub(crate) struct ArgumentReader<'a> {
    rest: &'a [u8],
}

impl<'a> ArgumentReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> ArgumentReader<'a> {
        ArgumentReader { rest: bytes }
    }

    /// One scalar argument or field.
    #[inline]
    pub(crate) fn scalar(&mut self, scalar: ScalarType) -> Result<Datum<'a>> {
        if scalar.nullable && !self.boolean()? {
            return Ok(Datum::Null);
        }
        let data_type = scalar.data_type;
        match data_type {
            DataType::BigInt | DataType::Timestamp => self.integer().map(Datum::Int),
            DataType::Int => self.integer().and_then(|v| fitting(v, i32::try_from(v).is_ok(), data_type)),
            DataType::SmallInt => {
                self.integer().and_then(|v| fitting(v, i16::try_from(v).is_ok(), data_type))
            }
            DataType::Date => {
                let date = Datum::Int(self.integer()?);
                check_date(data_type, date)?;
                Ok(date)
            }
            DataType::Numeric { precision, scale } => {
                let mantissa = self.wide_varint()?;
                let mantissa = (mantissa >> 1) as i128 ^ -((mantissa & 1) as i128);
                match (Digits { precision, scale }).fit(Some(mantissa)) {
                    Ok(mantissa) => Ok(Datum::Numeric(mantissa)),
                    Err(_) => Err(invalid(format!("a number outside {data_type}"))),
                }
            }
            DataType::Boolean => self.boolean().map(Datum::Boolean),
            DataType::Double => {
                let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(cut_short)?;
                self.rest = rest;
                Ok(Datum::Double(f64::from_le_bytes(*bytes)))
            }
            DataType::Text { .. } | DataType::Char { .. } => {
                let text =
                    std::str::from_utf8(self.blob()?).map_err(|_| invalid("text that is not UTF-8"))?;
                match fit_text(text, data_type) {
                    Ok(fitted) if fitted.len() == text.len() => Ok(Datum::Text(text)),
                    _ => Err(invalid(format!("text that is not a {data_type}"))),
                }
            }
            DataType::Bytea => self.blob().map(Datum::Bytes),
        }
    }

    /// A list argument: appends its values, row by row.
    pub(crate) fn list(&mut self, fields: &[ScalarType], values: &mut Vec<Datum<'a>>) -> Result<()> {
        let rows = self.length()?;
        // Every field takes a byte at least, so a false count allocates no more than the bytes did.
        let total =
            rows.checked_mul(fields.len()).filter(|total| *total <= self.rest.len() && !fields.is_empty());
        match total {
            Some(total) => values.reserve(total),
            None if rows == 0 => {}
            None => return Err(cut_short()),
        }
        for _ in 0..rows {
            for field in fields {
                values.push(self.scalar(*field)?);
            }
        }
        Ok(())
    }

    /// Checks that nothing is left.
    pub(crate) fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(invalid(format!("{} bytes too many", self.rest.len())))
        }
    }

    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.rest.split_first().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn boolean(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(invalid(format!("a boolean that is {other}"))),
        }
    }

    fn integer(&mut self) -> Result<i64> {
        self.varint().map(|v| (v >> 1) as i64 ^ -((v & 1) as i64))
    }

    pub(crate) fn length(&mut self) -> Result<usize> {
        self.varint().and_then(|v| usize::try_from(v).map_err(|_| cut_short()))
    }

    fn blob(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        let (blob, rest) = self.rest.split_at_checked(length).ok_or_else(cut_short)?;
        fabius_value::value::check_blob(length)?;
        self.rest = rest;
        Ok(blob)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok((*byte).into())
            }
            _ => self.wide_varint().and_then(|v| u64::try_from(v).map_err(|_| overlong())),
        }
    }

    fn wide_varint(&mut self) -> Result<u128> {
        // Up to eight bytes in 64 bits: the usual case by far.
        let mut short = 0u64;
        for (at, byte) in self.rest.iter().take(8).enumerate() {
            short |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                if *byte == 0 && at > 0 {
                    return Err(overlong());
                }
                self.rest = &self.rest[at + 1..];
                return Ok(short.into());
            }
        }
        let mut value = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return Err(overlong());
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(overlong())
    }
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
    Err(Error::new(SqlState::PROGRAM_LIMIT, "arguments too large").with_detail(format!(
        "they have {} bytes, at most {} are allowed",
        bytes.len(),
        limit::ARGUMENT_BYTES
    )))
}

fn fitting<'a>(value: i64, fits: bool, data_type: DataType) -> Result<Datum<'a>> {
    if fits { Ok(Datum::Int(value)) } else { Err(invalid(format!("a number outside {data_type}"))) }
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

#[cold]
fn invalid(what: impl Into<String>) -> Error {
    Error::new(INVALID_ENCODING, "malformed arguments").with_detail(what)
}

#[cold]
fn cut_short() -> Error {
    invalid("the bytes end early")
}

#[cold]
fn overlong() -> Error {
    invalid("a number that is not in its shortest form, or too large")
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

#[cfg(test)]
mod tests;
