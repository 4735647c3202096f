//! What the server sends: each function appends one message to a buffer.

use crate::wire::frontend::Formats;
use fabius_sql::connection::TransactionStatus;
use fabius_sql_meaning::output::OutputColumn;
use fabius_value::Error;

/// Appends a message of a kind; `body` appends what is in it.
fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = open(out, kind);
    body(out);
    close(out, begin);
}

/// Begins a message whose length is not known yet.
pub fn open(out: &mut Vec<u8>, kind: u8) -> usize {
    out.push(kind);
    out.extend([0; 4]);
    out.len() - 4
}

/// Ends the message that [`open`] has begun.
pub fn close(out: &mut [u8], begin: usize) {
    let length = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    // A zero would end the text early, and what follows would be read as something else.
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

fn put_i16(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u16).to_be_bytes());
}

/// `AuthenticationOk`.
pub fn authentication_ok(out: &mut Vec<u8>) {
    message(out, b'R', |out| out.extend(0u32.to_be_bytes()));
}

/// `AuthenticationSASL`: the mechanisms to choose from.
pub fn authentication_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    message(out, b'R', |out| {
        out.extend(10u32.to_be_bytes());
        mechanisms.iter().for_each(|name| put_text(out, name));
        out.push(0);
    });
}

/// `AuthenticationSASLContinue`.
pub fn authentication_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'R', |out| {
        out.extend(11u32.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// `AuthenticationSASLFinal`.
pub fn authentication_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'R', |out| {
        out.extend(12u32.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// `NegotiateProtocolVersion`: the version that is spoken, and the options that nobody here knows.
pub fn negotiate_protocol_version(out: &mut Vec<u8>, version: (u16, u16), unknown: &[&str]) {
    message(out, b'v', |out| {
        out.extend((u32::from(version.0) << 16 | u32::from(version.1)).to_be_bytes());
        out.extend((unknown.len() as u32).to_be_bytes());
        unknown.iter().for_each(|name| put_text(out, name));
    });
}

/// `ParameterStatus`.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |out| {
        put_text(out, name);
        put_text(out, value);
    });
}

/// `BackendKeyData`: what a cancel request has to say.
pub fn backend_key_data(out: &mut Vec<u8>, process: u32, secret: &[u8]) {
    message(out, b'K', |out| {
        out.extend(process.to_be_bytes());
        out.extend_from_slice(secret);
    });
}

/// `ReadyForQuery`.
pub fn ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    out.extend([b'Z', 0, 0, 0, 5, status_byte(status)]);
}

fn status_byte(status: TransactionStatus) -> u8 {
    match status {
        TransactionStatus::Idle => b'I',
        TransactionStatus::Open => b'T',
        TransactionStatus::Failed => b'E',
    }
}

/// `ParseComplete`.
pub fn parse_complete(out: &mut Vec<u8>) {
    out.extend([b'1', 0, 0, 0, 4]);
}

/// `BindComplete`.
pub fn bind_complete(out: &mut Vec<u8>) {
    out.extend([b'2', 0, 0, 0, 4]);
}

/// `CloseComplete`.
pub fn close_complete(out: &mut Vec<u8>) {
    out.extend([b'3', 0, 0, 0, 4]);
}

/// `NoData`.
pub fn no_data(out: &mut Vec<u8>) {
    out.extend([b'n', 0, 0, 0, 4]);
}

/// `PortalSuspended`.
pub fn portal_suspended(out: &mut Vec<u8>) {
    out.extend([b's', 0, 0, 0, 4]);
}

/// `EmptyQueryResponse`.
pub fn empty_query_response(out: &mut Vec<u8>) {
    out.extend([b'I', 0, 0, 0, 4]);
}

/// `CommandComplete`.
pub fn command_complete(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| put_text(out, tag));
}

/// `CommandComplete` with a count of rows, for those commands whose tags have one.
pub fn command_complete_rows(out: &mut Vec<u8>, tag: &str, rows: u64) {
    use std::io::Write;
    if matches!(tag, "SHOW" | "EXPLAIN" | "CALL") {
        return command_complete(out, tag);
    }
    message(out, b'C', |out| {
        // A Vec takes whatever is written.
        let _ = write!(out, "{tag} {rows}\0");
    });
}

/// `ParameterDescription`.
pub fn parameter_description(out: &mut Vec<u8>, types: impl ExactSizeIterator<Item = u32>) {
    message(out, b't', |out| {
        put_i16(out, types.len());
        types.for_each(|oid| out.extend(oid.to_be_bytes()));
    });
}

/// `RowDescription`.
pub fn row_description(out: &mut Vec<u8>, columns: &[OutputColumn], formats: &Formats) {
    message(out, b'T', |out| {
        put_i16(out, columns.len());
        for (at, column) in columns.iter().enumerate() {
            put_text(out, &column.name);
            out.extend(column.origin.0.to_be_bytes());
            out.extend(column.origin.1.to_be_bytes());
            out.extend(column.sql_type.oid().to_be_bytes());
            out.extend(column.sql_type.length().to_be_bytes());
            out.extend(column.sql_type.modifier().to_be_bytes());
            put_i16(out, usize::from(formats.is_binary(at)));
        }
    });
}

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    /// From the client: `CopyInResponse`.
    In,
    /// To the client: `CopyOutResponse`.
    Out,
}

/// `CopyInResponse` or `CopyOutResponse`.
pub fn copy_response(out: &mut Vec<u8>, direction: CopyDirection, columns: usize, is_binary: bool) {
    let kind = if direction == CopyDirection::In { b'G' } else { b'H' };
    message(out, kind, |out| {
        out.push(u8::from(is_binary));
        put_i16(out, columns);
        (0..columns).for_each(|_| put_i16(out, usize::from(is_binary)));
    });
}

/// `CopyData`.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(data));
}

/// `CopyDone`.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend([b'c', 0, 0, 0, 4]);
}

/// `ErrorResponse`. After a `FATAL` one the connection ends.
pub fn error_response(out: &mut Vec<u8>, severity: &str, error: &Error) {
    message(out, b'E', |out| put_error(out, severity, error));
}

/// `NotificationResponse`.
pub fn notification_response(out: &mut Vec<u8>, process: i32, channel: &str, payload: &str) {
    message(out, b'A', |out| {
        out.extend_from_slice(&process.to_be_bytes());
        put_text(out, channel);
        put_text(out, payload);
    });
}

/// `NoticeResponse`.
pub fn notice_response(out: &mut Vec<u8>, severity: &str, notice: &Error) {
    message(out, b'N', |out| put_error(out, severity, notice));
}

fn put_error(out: &mut Vec<u8>, severity: &str, error: &Error) {
    let mut field = |code: u8, text: &str| {
        out.push(code);
        put_text(out, text);
    };
    field(b'S', severity);
    field(b'V', severity);
    field(b'C', error.state().as_str());
    field(b'M', error.message());
    error.detail().into_iter().for_each(|detail| field(b'D', detail));
    error.hint().into_iter().for_each(|hint| field(b'H', hint));
    error.position().into_iter().for_each(|position| field(b'P', &position.to_string()));
    let place = error.place();
    if let Some(place) = place {
        // The line of an error is that of the program, which the client has never seen; functions give a context.
        place.context.iter().for_each(|context| field(b'W', context));
        let named =
            [(b's', &place.schema), (b't', &place.table), (b'c', &place.column), (b'n', &place.constraint)];
        named.into_iter().for_each(|(code, name)| name.iter().for_each(|name| field(code, name)));
    }
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::SqlState;

    /// Goal: lengths are counted, and text cannot break out of its field.
    #[test]
    fn messages_have_their_length() {
        let mut out = Vec::new();
        command_complete_rows(&mut out, "SELECT", 12);
        assert_eq!(out, b"C\0\0\0\x0eSELECT 12\0");
        out.clear();
        error_response(&mut out, "ERROR", &Error::new(SqlState::SYNTAX_ERROR, "a\0b").at_position(3));
        assert_eq!(out, b"E\0\0\0\x21SERROR\0VERROR\0C42601\0Mab\0P3\0\0");
    }
}
