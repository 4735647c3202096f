//! Values between the session and the wire, each in the format that the client wants.

use crate::wire::backend;
use crate::wire::frontend::{Bind, Formats, violation};
use fabius_sql_meaning::binary_format;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit, TextStyle};
use fabius_value::{Result, Value};

/// Appends a `DataRow`.
///
/// # Errors
/// A value that its type's format cannot hold; nothing is appended then.
pub(super) fn write_row(
    out: &mut Vec<u8>,
    row: &[Value],
    columns: &[OutputColumn],
    formats: &Formats,
    style: &TextStyle,
) -> Result<()> {
    let before = out.len();
    let begin = backend::open(out, b'D');
    out.extend((columns.len() as u16).to_be_bytes());
    for (at, column) in columns.iter().enumerate() {
        let length_at = out.len();
        out.extend([0; 4]);
        let length = match row.get(at) {
            None | Some(Value::Null) => -1,
            Some(value) => {
                let written = match formats.is_binary(at) {
                    true => binary_format::write(value, &column.sql_type, out),
                    false => {
                        text_format::write(value, &column.sql_type, style, out);
                        Ok(())
                    }
                };
                if let Err(error) = written {
                    out.truncate(before);
                    return Err(error);
                }
                (out.len() - length_at - 4) as i32
            }
        };
        out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    }
    backend::close(out, begin);
    Ok(())
}

/// The parameters of a `Bind`, in the storage types of the statement's.
///
/// # Errors
/// `08P01` for a wrong number of them; what does not read as its type.
pub(super) fn read_parameters(bind: &Bind<'_>, types: &[SqlType], style: &TextStyle) -> Result<Vec<Value>> {
    if bind.parameters.len() != types.len() {
        return Err(violation(format!(
            "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
            bind.parameters.len(),
            bind.statement,
            types.len()
        )));
    }
    let read = |(at, (bytes, sql_type)): (usize, (&Option<&[u8]>, &SqlType))| match bytes {
        None => Ok(Value::Null),
        Some(bytes) if bind.parameter_formats.is_binary(at) => binary_format::read(bytes, sql_type),
        Some(bytes) => text_format::read(binary_format::text(bytes)?, sql_type, style, Fit::Store),
    };
    bind.parameters.iter().zip(types).enumerate().map(read).collect()
}
