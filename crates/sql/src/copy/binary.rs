//! The binary format: a header, rows of fields with their lengths, a trailer.

use super::lines::Lines;
use fabius_sql_meaning::binary_format;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState, Value};

/// Signature, flags, and no extension.
pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// A row of -1 fields.
pub(super) const TRAILER: &[u8] = &[0xff, 0xff];

fn malformed(message: &str) -> Error {
    Error::new(SqlState(*b"22P04"), message)
}

fn number(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_be_bytes)
}

/// Goes past the header; whether it was there.
pub(super) fn begin(bytes: &mut Lines) -> Result<bool> {
    let Some(header) = bytes.look(0, HEADER.len()) else { return Ok(false) };
    if header[..11] != HEADER[..11] {
        return Err(malformed("COPY file signature not recognized"));
    }
    let flags = number(&header[11..15]).unwrap_or_default();
    if flags & !0xffff != 0 {
        return Err(malformed("unrecognized critical flags in COPY file header"));
    }
    let extension = usize::try_from(number(&header[15..19]).unwrap_or_default())
        .map_err(|_| malformed("invalid COPY file header (missing length)"))?;
    if bytes.look(0, HEADER.len() + extension).is_none() {
        return Ok(false);
    }
    bytes.skip(HEADER.len() + extension);
    Ok(true)
}

/// The next row; `None` if it is not there yet, or there is no more.
pub(super) fn row(bytes: &mut Lines, types: &[SqlType]) -> Result<Option<Vec<Value>>> {
    let Some(count) = bytes.look(0, 2) else { return Ok(None) };
    let count = i16::from_be_bytes([count[0], count[1]]);
    if count == -1 {
        return Ok(None);
    }
    if usize::try_from(count).ok() != Some(types.len()) {
        return Err(malformed(&format!("row field count is {count}, expected {}", types.len())));
    }
    let mut at = 2;
    let mut values = Vec::with_capacity(types.len());
    for sql_type in types {
        let Some(length) = bytes.look(at, 4).and_then(number) else { return Ok(None) };
        at += 4;
        if length == -1 {
            values.push(Value::Null);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| malformed("invalid field size"))?;
        let Some(field) = bytes.look(at, length) else { return Ok(None) };
        values.push(binary_format::read(field, sql_type)?);
        at += length;
    }
    bytes.skip(at);
    Ok(Some(values))
}

/// A row as bytes.
pub(super) fn write(row: &[Value], columns: &[OutputColumn]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    out.extend((columns.len() as u16).to_be_bytes());
    for (value, column) in row.iter().zip(columns) {
        if value.is_null() {
            out.extend((-1i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend([0; 4]);
        binary_format::write(value, &column.sql_type, &mut out)?;
        let length = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(out)
}
