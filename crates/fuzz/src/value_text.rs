//! Values from text, casts between all types, and keys.
//!
//! ```text
//! 3 bytes         the type to read
//! 3 bytes         the type to cast to
//! u64             a number, which is a bigint, timestamp, date and double too
//! rest            the text; bytes for bytea
//! ```

use crate::input::Input;
use bumpalo::Bump;
use fabius_program::operation::cast::Cast;
use fabius_program::operation::compare::compare;
use fabius_value::{DataType, Datum, Decimal, Key, Value};
use std::cmp::Ordering;

/// A type with any modifiers that it can have.
pub(crate) fn data_type(input: &mut Input<'_>) -> DataType {
    let (kind, first, second) = (input.byte(), input.byte(), input.byte());
    let precision = first % 38 + 1;
    match kind % 12 {
        0 => DataType::Boolean,
        1 => DataType::SmallInt,
        2 => DataType::Int,
        3 => DataType::BigInt,
        4 => DataType::Numeric { precision, scale: second % (precision + 1) },
        5 => DataType::Double,
        6 => DataType::TEXT,
        7 => DataType::Text { limit: Some(u32::from(first) + 1) },
        8 => DataType::Char { length: u32::from(first) + 1 },
        9 => DataType::Bytea,
        10 => DataType::Date,
        _ => DataType::Timestamp,
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (from, to) = (data_type(&mut input), data_type(&mut input));
    let number = input.u64();
    let text = String::from_utf8_lossy(input.rest());
    let mut values = vec![
        Value::BigInt(number as i64),
        Value::Timestamp(number as i64),
        Value::Date(number as i32),
        Value::Double(f64::from_bits(number)),
        Value::Numeric(Decimal { mantissa: (number as i128) << (number % 64), scale: number as u8 }),
        Value::Bytea(input.rest().to_vec()),
        Value::Text(text.to_string()),
    ];
    if let Ok(read) = Value::parse(&text, from) {
        let printed = read.to_string();
        let again = Value::parse(&printed, from).unwrap_or_else(|error| panic!("{error:?}: {printed}"));
        assert_eq!(again.to_string(), printed, "{text:?} as {from}");
        values.push(read);
    }
    let mut keys = Vec::new();
    for value in &values {
        let Ok(value) = value.cast(from) else { continue };
        check_cast(&value, from, to);
        keys.push(value);
    }
    for pair in keys.windows(2) {
        check_order(&pair[0], &pair[1], from);
    }
}

/// The programs' cast is the values' cast.
fn check_cast(value: &Value, from: DataType, to: DataType) {
    let arena = Bump::new();
    let (cast, expected) = (Cast::of(from, to), value.cast(to));
    let got = cast.apply(Datum::from_value(value), &arena).map(|datum| datum.to_value(to));
    assert!(cast.can_fail() || got.is_ok(), "{cast:?} failed on {value}");
    assert_eq!(format!("{got:?}"), format!("{expected:?}"), "{value} from {from} to {to}");
}

/// Keys order as values compare.
fn check_order(left: &Value, right: &Value, data_type: DataType) {
    let key = |value: &Value| {
        let mut key = Key::new();
        key.push(Datum::from_value(value), data_type, false).map(|()| key)
    };
    let (Ok(left_key), Ok(right_key)) = (key(left), key(right)) else { return };
    let ordering = compare(Datum::from_value(left), Datum::from_value(right));
    let nan = |value: &Value| matches!(value, Value::Double(number) if number.is_nan());
    if !nan(left) && !nan(right) {
        assert_eq!(Some(left_key.cmp(&right_key)), ordering, "{left} and {right} as {data_type}");
    }
    assert_eq!(left_key.hash() == right_key.hash(), left_key.cmp(&right_key) == Ordering::Equal);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "true",
        "-32768",
        "2147483647",
        "9223372036854775808",
        "-123456789.0123456789",
        "1e-310",
        "NaN",
        "-Infinity",
        "0.1",
        "\\x00ff",
        "2026-11-20",
        "10000-01-01 BC",
        "9999-12-31 23:59:59.999999",
        "it''s",
        "blanks   ",
        "\u{1F980}\u{0301}",
    ];
    let types = (0..12u8).flat_map(|from| (0..12u8).map(move |to| (from, to)));
    let seeds = types.zip(texts.iter().cycle()).map(|((from, to), text)| {
        let number = u64::MAX << (from * 5);
        [&[from, 12, 3, to, 9, 2], &number.to_le_bytes()[..], text.as_bytes()].concat()
    });
    seeds.collect()
}
