//! JSON as PostgreSQL reads and prints it: `json` is kept as it is written, `jsonb` in one canonical form.

use fabius_value::value_text::numeric_overflow;
use fabius_value::{Error, Result, SqlState};
use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value as Json};

/// Digits of a number before its point, and behind it, at most: those of `numeric`.
const MOST_WHOLE: i64 = 131_072;
const MOST_SCALE: i64 = 16_383;

/// Refuses text that is no JSON.
///
/// # Errors
/// `22P02`
pub fn check_json(text: &str) -> Result<()> {
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(json_failure)
}

/// JSON as a `jsonb` is stored and shown.
///
/// # Errors
/// `22P02` if it is none, `54001` if it is nested too deeply, and what [`print_json`] says of it.
pub fn jsonb(text: &str) -> Result<String> {
    print_json(&parse_json(text)?)
}

/// A document whose numbers have all their digits.
///
/// # Errors
/// `22P02` if it is none, `54001` if it is nested too deeply.
pub fn parse_json(text: &str) -> Result<Json> {
    serde_json::from_str(text).map_err(json_failure)
}

/// What is wrong with a text that should be JSON.
pub fn json_failure(error: serde_json::Error) -> Error {
    let detail = error.to_string();
    if detail.starts_with("recursion limit exceeded") {
        return Error::new(SqlState(*b"54001"), "the document is nested too deeply")
            .with_detail("A jsonb may be nested 127 levels deep.")
            .with_hint("Keep it as json, which is not taken apart.");
    }
    Error::new(SqlState::INVALID_TEXT, "invalid input syntax for type json").with_detail(detail)
}

/// JSON as `jsonb` prints it: blanks behind commas and colons, keys by length, then by bytes, each once, numbers as
/// those of `numeric`.
///
/// # Errors
/// `22003` for a number beyond `numeric`, `22P05` for a text with a zero character.
pub fn print_json(json: &Json) -> Result<String> {
    let mut printer = Printer { out: String::new(), indent: None };
    printer.value(json)?;
    Ok(printer.out)
}

/// JSON as `jsonb_pretty` prints it.
///
/// # Errors
/// As [`print_json`].
pub fn print_json_pretty(json: &Json) -> Result<String> {
    let mut printer = Printer { out: String::new(), indent: Some(0) };
    printer.value(json)?;
    Ok(printer.out)
}

/// Refuses a text with a zero character, which JSON may have and `text` may not.
///
/// # Errors
/// `22P05`
pub fn refuse_zero(text: &str) -> Result<()> {
    match text.contains('\0') {
        true => Err(Error::new(SqlState(*b"22P05"), "unsupported Unicode escape sequence")
            .with_detail("\\u0000 cannot be converted to text.")),
        false => Ok(()),
    }
}

/// A text as JSON.
pub fn quoted_json(text: &str) -> String {
    Json::String(text.into()).to_string()
}

/// Prints documents, each element on a line of its own where they are indented.
struct Printer {
    out: String,
    indent: Option<usize>,
}

impl Printer {
    fn value(&mut self, json: &Json) -> Result<()> {
        match json {
            Json::Array(items) => {
                self.elements(['[', ']'], items, |printer, item| printer.value(item))?;
            }
            Json::Object(members) => {
                let members = sorted_members(members);
                self.elements(['{', '}'], &members, |printer, (key, value)| {
                    printer.text(key)?;
                    printer.out.push_str(": ");
                    printer.value(value)
                })?;
            }
            Json::String(text) => self.text(text)?,
            Json::Number(number) => self.out.push_str(&plain(number)?),
            Json::Null | Json::Bool(_) => self.out.push_str(&json.to_string()),
        }
        Ok(())
    }

    fn elements<T>(
        &mut self,
        [open, close]: [char; 2],
        elements: &[T],
        print: impl Fn(&mut Printer, &T) -> Result<()>,
    ) -> Result<()> {
        self.out.push(open);
        self.indent = self.indent.map(|indent| indent + 1);
        for (at, element) in elements.iter().enumerate() {
            if at > 0 {
                self.out.push_str(if self.indent.is_some() { "," } else { ", " });
            }
            self.new_line();
            print(self, element)?;
        }
        self.indent = self.indent.map(|indent| indent - 1);
        self.new_line();
        self.out.push(close);
        Ok(())
    }

    fn new_line(&mut self) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("    ", indent));
        }
    }

    fn text(&mut self, text: &str) -> Result<()> {
        refuse_zero(text)?;
        self.out.push_str(&quoted_json(text));
        Ok(())
    }
}

/// The members of an object in the order of `jsonb`: by the lengths of their keys, then by their bytes.
pub fn sorted_members(members: &Map<String, Json>) -> Vec<(&String, &Json)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(key, _)| (key.len(), *key));
    members
}

/// The parts of a number: whether it is negative, its digits, and how many of them are behind the point (before it
/// follow zeros if that is negative).
fn parts(number: &Number) -> (bool, String, i64) {
    let text = number.as_str();
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // An exponent with more digits than fit is beyond what a number may have, whichever it is.
    let limit = if exponent.starts_with('-') { -i64::from(i32::MAX) } else { i64::from(i32::MAX) };
    let exponent = exponent.trim_start_matches('+').parse().unwrap_or(limit).clamp(-limit.abs(), limit.abs());
    (is_negative, format!("{whole}{fraction}"), fraction.len() as i64 - exponent)
}

/// A number without an exponent, with the digits behind the point that it is written with.
///
/// # Errors
/// `22003` if it has more digits than a `numeric` may have.
fn plain(number: &Number) -> Result<String> {
    let (is_negative, digits, scale) = parts(number);
    let significant = digits.trim_start_matches('0');
    let is_zero = significant.is_empty();
    if scale > MOST_SCALE || !is_zero && significant.len() as i64 - scale > MOST_WHOLE {
        return Err(numeric_overflow());
    }
    let (whole, fraction) = if scale <= 0 {
        let zeros = if is_zero { 0 } else { scale.unsigned_abs() as usize };
        (format!("{significant}{}", "0".repeat(zeros)), String::new())
    } else {
        let padded = format!("{significant:0>width$}", width = scale as usize);
        let (whole, fraction) = padded.split_at(padded.len() - scale as usize);
        (whole.to_string(), format!(".{fraction}"))
    };
    let sign = if is_negative && !is_zero { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { &whole };
    Ok(format!("{sign}{whole}{fraction}"))
}

/// Appends bytes that compare as numbers do, however they are written.
pub fn order_json_number(number: &Number, key: &mut Vec<u8>) {
    let (is_negative, digits, scale) = parts(number);
    let leading = digits.trim_start_matches('0');
    let significant = leading.trim_end_matches('0');
    if significant.is_empty() {
        return key.push(1);
    }
    // Where the first digit stands, then the digits, then an end that is less than any.
    let weight = leading.len() as i64 - scale;
    let mut bytes = (weight as u64 ^ 1 << 63).to_be_bytes().to_vec();
    bytes.extend(significant.bytes());
    bytes.push(0);
    if is_negative {
        key.push(0);
        key.extend(bytes.into_iter().map(|byte| !byte));
    } else {
        key.push(2);
        key.extend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        order_json_number(&serde_json::from_str(text).unwrap(), &mut key);
        key
    }

    #[test]
    fn numbers_are_printed_without_exponents() {
        for (written, shown) in [
            ("1.50", "1.50"),
            ("1e2", "100"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("1E-3", "0.001"),
            ("0e5", "0"),
            ("100e-2", "1.00"),
            ("-12.5e1", "-125"),
            ("12345678901234567890123456789.5", "12345678901234567890123456789.5"),
        ] {
            assert_eq!(jsonb(written).unwrap(), shown);
        }
        for beyond in ["1e131072", "1e-16384", "1e99999999999999999999"] {
            assert_eq!(jsonb(beyond).unwrap_err().state(), SqlState::OUT_OF_RANGE);
        }
    }

    #[test]
    fn numbers_compare_by_value() {
        let ascending =
            ["-1e9", "-10", "-1.55", "-1.5", "-0.001", "0", "1e-7", "0.09", "0.1", "1", "1.01", "9", "10"];
        assert!(ascending.map(key).is_sorted_by(|a, b| a < b));
        assert_eq!(key("1.00"), key("1"));
        assert_eq!(key("1e2"), key("100"));
        assert_eq!(key("-0.0"), key("0"));
    }

    #[test]
    fn what_is_nested_deeply_is_refused_by_its_depth() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(check_json(&deep).is_ok());
        assert_eq!(jsonb(&deep).unwrap_err().state(), SqlState(*b"54001"));
    }
}
