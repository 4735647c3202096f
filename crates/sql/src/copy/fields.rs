//! A line's fields, and fields as a line.

use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit, TextStyle};
use fabius_sql_syntax::copy::{CopyFormat, CopyOptions};
use fabius_value::{Error, Result, SqlState, Value};

fn malformed(message: impl Into<String>) -> Error {
    Error::new(SqlState(*b"22P04"), message)
}

/// The fields of a line; `None` for null.
fn split(line: &[u8], options: &CopyOptions) -> Vec<(Option<Vec<u8>>, bool)> {
    if options.format == CopyFormat::Csv { split_csv(line, options) } else { split_text(line, options) }
}

fn split_text(line: &[u8], options: &CopyOptions) -> Vec<(Option<Vec<u8>>, bool)> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let start = at;
        let mut field = Vec::new();
        while at < line.len() && line[at] != options.delimiter {
            if line[at] != b'\\' || at + 1 == line.len() {
                field.push(line[at]);
                at += 1;
                continue;
            }
            at += 1;
            let digits = |most: usize, is_digit: fn(u8) -> bool, from: usize| {
                line[from..].iter().take(most).take_while(|byte| is_digit(**byte)).count()
            };
            match line[at] {
                b'b' => field.push(8),
                b'f' => field.push(12),
                b'n' => field.push(b'\n'),
                b'r' => field.push(b'\r'),
                b't' => field.push(b'\t'),
                b'v' => field.push(11),
                b'0'..=b'7' => {
                    let count = digits(3, |byte| (b'0'..=b'7').contains(&byte), at);
                    let value = line[at..at + count]
                        .iter()
                        .fold(0u32, |value, byte| value * 8 + u32::from(byte - b'0'));
                    field.push(value as u8);
                    at += count - 1;
                }
                b'x' if digits(2, |byte| byte.is_ascii_hexdigit(), at + 1) > 0 => {
                    let count = digits(2, |byte| byte.is_ascii_hexdigit(), at + 1);
                    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default();
                    let value =
                        line[at + 1..at + 1 + count].iter().fold(0, |value, byte| value * 16 + digit(byte));
                    field.push(value as u8);
                    at += count;
                }
                other => field.push(other),
            }
            at += 1;
        }
        let is_null = &line[start..at] == options.null.as_bytes();
        fields.push((if is_null { None } else { Some(field) }, false));
        if at >= line.len() {
            return fields;
        }
        at += 1;
    }
}

fn split_csv(line: &[u8], options: &CopyOptions) -> Vec<(Option<Vec<u8>>, bool)> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let mut field = Vec::new();
        let mut was_quoted = false;
        let mut in_quotes = false;
        while at < line.len() {
            let byte = line[at];
            if in_quotes {
                let next = line.get(at + 1);
                if byte == options.escape
                    && next.is_some_and(|next| *next == options.quote || *next == options.escape)
                {
                    field.extend(next);
                    at += 2;
                    continue;
                }
                if byte == options.quote {
                    in_quotes = false;
                } else {
                    field.push(byte);
                }
            } else if byte == options.quote {
                in_quotes = true;
                was_quoted = true;
            } else if byte == options.delimiter {
                break;
            } else {
                field.push(byte);
            }
            at += 1;
        }
        let is_null = !was_quoted && field == options.null.as_bytes();
        fields.push((if is_null { None } else { Some(field) }, was_quoted));
        if at >= line.len() {
            return fields;
        }
        at += 1;
    }
}

/// A line as a row.
pub(super) fn row(
    line: &[u8],
    options: &CopyOptions,
    columns: &[String],
    types: &[SqlType],
    style: &TextStyle,
) -> Result<Vec<Value>> {
    let fields = split(line, options);
    if fields.len() < columns.len() {
        return Err(malformed(format!("missing data for column \"{}\"", columns[fields.len()])));
    }
    if fields.len() > columns.len() {
        return Err(malformed("extra data after last expected column"));
    }
    let mut values = Vec::with_capacity(fields.len());
    for (((field, was_quoted), name), sql_type) in fields.into_iter().zip(columns).zip(types) {
        let field = match field {
            None if options.force_not_null.contains(name) => Some(options.null.clone().into_bytes()),
            Some(text)
                if was_quoted && options.force_null.contains(name) && text == options.null.as_bytes() =>
            {
                None
            }
            other => other,
        };
        values.push(match field {
            None => Value::Null,
            Some(bytes) => {
                let text = String::from_utf8(bytes).map_err(|_| {
                    Error::new(SqlState(*b"22021"), "invalid byte sequence for encoding \"UTF8\"")
                })?;
                text_format::read(&text, sql_type, style, Fit::Store).map_err(|error| {
                    let column = format!("{name}: \"{text}\"");
                    error.with_context(column)
                })?
            }
        });
    }
    Ok(values)
}

/// Checks the names of a header, if they have to match.
pub(super) fn check_header(line: &[u8], options: &CopyOptions, columns: &[String]) -> Result<()> {
    if !options.header_matches {
        return Ok(());
    }
    let fields = split(line, options);
    if fields.len() != columns.len() {
        return Err(malformed(format!(
            "wrong number of fields in header line: got {}, expected {}",
            fields.len(),
            columns.len()
        )));
    }
    for (at, ((field, _), name)) in fields.iter().zip(columns).enumerate() {
        let found = String::from_utf8_lossy(field.as_deref().unwrap_or_default()).into_owned();
        if found != *name {
            return Err(malformed(format!(
                "column name mismatch in header line field {}: got \"{found}\", expected \"{name}\"",
                at + 1
            )));
        }
    }
    Ok(())
}

/// The names of columns as a line.
pub(super) fn header(columns: &[OutputColumn], options: &CopyOptions) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            out.push(options.delimiter);
        }
        field(column.name.as_bytes(), false, options, &mut out);
    }
    out.push(b'\n');
    out
}

/// A row as a line.
pub(super) fn write(
    row: &[Value],
    columns: &[OutputColumn],
    options: &CopyOptions,
    style: &TextStyle,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut text = Vec::new();
    for (at, (value, column)) in row.iter().zip(columns).enumerate() {
        if at > 0 {
            out.push(options.delimiter);
        }
        if value.is_null() {
            out.extend_from_slice(options.null.as_bytes());
            continue;
        }
        text.clear();
        text_format::write(value, &column.sql_type, style, &mut text);
        let is_alone = row.len() == 1 && text == b"\\.";
        field(&text, options.force_quote.contains(&column.name) || is_alone, options, &mut out);
    }
    out.push(b'\n');
    out
}

fn field(text: &[u8], is_forced: bool, options: &CopyOptions, out: &mut Vec<u8>) {
    if options.format == CopyFormat::Csv {
        let special =
            |byte: &u8| *byte == options.delimiter || *byte == options.quote || matches!(byte, b'\n' | b'\r');
        if !is_forced && text != options.null.as_bytes() && !text.iter().any(special) {
            out.extend_from_slice(text);
            return;
        }
        out.push(options.quote);
        for byte in text {
            if *byte == options.quote || *byte == options.escape {
                out.push(options.escape);
            }
            out.push(*byte);
        }
        out.push(options.quote);
        return;
    }
    for byte in text {
        match byte {
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            11 => out.extend_from_slice(b"\\v"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            other if *other == options.delimiter => out.extend([b'\\', *other]),
            other => out.push(*other),
        }
    }
}
