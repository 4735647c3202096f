//! What Python's `format`, `round`, `repr`, `/`, `**`, `<<`, `int` and `float` make of values, exactly: functions of
//! Python are lowered onto these where SQL means something else.
//!
//! A format is `[[fill]align][sign][0][width][grouping][.precision][kind]` (Python's library reference, "Format
//! Specification Mini-Language"). Doubles are rounded by their true value, as Python rounds them.

use super::python_decimal::{self, Digits, Rounding};
use super::python_text;
use crate::ir::Function;
use fabius_value::interval::{self, Interval};
use fabius_value::value::check_blob;
use fabius_value::{Datum, Error, Result, SqlState, calendar};

/// The most characters, and digits behind the point, that a format may ask for.
const WIDTH_MAX: usize = 1000;

/// What a double is rounded to: beyond these digits it stays as it is, or is nothing.
const DIGITS: std::ops::RangeInclusive<i64> = -308..=323;

/// Digits behind the point of the double that has most.
const DIGITS_OF_DOUBLES: usize = 1074;

/// The first and the last moment of Python, in microseconds.
const MOMENTS: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// How a value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    fill: Option<char>,
    align: Option<char>,
    /// `+`, `-` or a blank.
    sign: Option<char>,
    is_zero_filled: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

/// What is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formatted {
    /// `int`
    Whole,
    /// `float`
    Double,
    /// `Decimal`
    Decimal,
    /// `str`
    Text,
}

impl Format {
    /// A format as it is written, if it is one of those that are known here.
    pub fn parse(text: &str) -> Option<Format> {
        let mut format = Format::default();
        let all: Vec<char> = text.chars().collect();
        let mut rest = all.as_slice();
        let is_align = |character: &char| "<>=^".contains(*character);
        if let [fill, align, others @ ..] = rest
            && is_align(align)
        {
            (format.fill, format.align, rest) = (Some(*fill), Some(*align), others);
        } else if let [align, others @ ..] = rest
            && is_align(align)
        {
            (format.align, rest) = (Some(*align), others);
        }
        let one_of = |rest: &mut &[char], wanted: &str| {
            let first = rest.first().copied().filter(|first| wanted.contains(*first))?;
            *rest = &rest[1..];
            Some(first)
        };
        format.sign = one_of(&mut rest, "+- ");
        format.is_zero_filled = one_of(&mut rest, "0").is_some();
        let number = |rest: &mut &[char]| {
            let digits: String = rest.iter().take_while(|one| one.is_ascii_digit()).collect();
            *rest = &rest[digits.len()..];
            match digits.is_empty() {
                true => Some(None),
                false => digits.parse().ok().filter(|number| *number <= WIDTH_MAX).map(Some),
            }
        };
        format.width = number(&mut rest)?.unwrap_or(0);
        format.grouping = one_of(&mut rest, ",_");
        if one_of(&mut rest, ".").is_some() {
            format.precision = Some(number(&mut rest)??);
        }
        format.kind = one_of(&mut rest, "sdboxXfF%");
        rest.is_empty().then_some(format)
    }

    /// Whether Python knows it of such values, and what it says is said here.
    pub fn is_of(&self, formatted: Formatted) -> bool {
        let is_of_base = matches!(self.kind, Some('b' | 'o' | 'x' | 'X'));
        match (formatted, self.kind) {
            (Formatted::Text, None | Some('s')) => {
                self.sign.is_none()
                    && self.grouping.is_none()
                    && !self.is_zero_filled
                    && self.align != Some('=')
            }
            (Formatted::Whole, None | Some('d')) => self.precision.is_none(),
            (Formatted::Whole, _) if is_of_base => self.precision.is_none() && self.grouping != Some(','),
            (Formatted::Double, None) => self.precision.is_none(),
            (Formatted::Whole | Formatted::Double, Some('f' | 'F' | '%')) => true,
            // Zeros at the end of a `Decimal` are not known.
            (Formatted::Decimal, Some('f' | 'F' | '%')) => {
                // What is filled with zeros is so in other ways than numbers of other classes.
                let fills_zeros = self.fill_character() == '0' && self.align == Some('=');
                let is_filled_twice =
                    (self.is_zero_filled && self.align.is_some()) || (self.grouping.is_some() && fills_zeros);
                self.precision.is_some() && self.grouping != Some('_') && !is_filled_twice
            }
            _ => false,
        }
    }

    fn of_text(&self, text: &str) -> String {
        let shown: String = match self.precision {
            Some(most) => text.chars().take(most).collect(),
            None => text.into(),
        };
        let missing = self.width.saturating_sub(shown.chars().count());
        self.filled("", &shown, missing, self.align.unwrap_or('<'))
    }

    fn of_whole(&self, value: i64) -> String {
        let digits = match self.kind {
            Some('b') => format!("{:b}", value.unsigned_abs()),
            Some('o') => format!("{:o}", value.unsigned_abs()),
            Some('x') => format!("{:x}", value.unsigned_abs()),
            Some('X') => format!("{:X}", value.unsigned_abs()),
            Some('f' | 'F' | '%') => return self.of_double(value as f64),
            _ => value.unsigned_abs().to_string(),
        };
        let size = if matches!(self.kind, Some('b' | 'o' | 'x' | 'X')) { 4 } else { 3 };
        self.of_number(value < 0, &digits, "", size)
    }

    fn of_double(&self, value: f64) -> String {
        let (value, end) = match self.kind {
            Some('%') => (value * 100.0, "%"),
            _ => (value, ""),
        };
        let text = match self.kind {
            _ if !value.is_finite() => repr(value.abs()),
            None => repr(value.abs()),
            _ => format!("{:.*}", self.precision.unwrap_or(6), value.abs()),
        };
        let text = if self.kind == Some('F') { text.to_uppercase() } else { text };
        let count = text.bytes().take_while(u8::is_ascii_digit).count();
        let is_negative = value.is_sign_negative() && !value.is_nan();
        self.of_number(is_negative, &text[..count], &format!("{}{end}", &text[count..]), 3)
    }

    fn of_decimal(&self, number: Digits<'_>) -> String {
        let Digits { is_negative, whole, fraction } = number;
        let (moved, end) = if self.kind == Some('%') { (2, "%") } else { (0, "") };
        let fraction = format!("{fraction:0<moved$}");
        let whole = format!("{whole}{}", &fraction[..moved]);
        let (whole, fraction) = (whole.trim_start_matches('0'), &fraction[moved..]);
        let moved = Digits { is_negative, whole, fraction };
        let shown = moved.rounded(self.precision.unwrap_or(0) as i64, Rounding::HalfEven);
        let count = shown.bytes().take_while(u8::is_ascii_digit).count();
        self.of_number(is_negative, &shown[..count], &format!("{}{end}", &shown[count..]), 3)
    }

    /// A number of which the digits before the point, and what stands behind them, are known.
    fn of_number(&self, is_negative: bool, digits: &str, rest: &str, size: usize) -> String {
        let sign = match (is_negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let align = self.align.unwrap_or(if self.is_zero_filled { '=' } else { '>' });
        let fills_zeros = self.fill_character() == '0' && align == '=';
        let room = if fills_zeros { self.width.saturating_sub(sign.len() + rest.len()) } else { 0 };
        let digits = match self.grouping {
            Some(separator) if !digits.is_empty() => grouped(digits, size, separator, room),
            _ => digits.into(),
        };
        let missing = self.width.saturating_sub(sign.len() + digits.len() + rest.len());
        self.filled(sign, &format!("{digits}{rest}"), missing, align)
    }

    fn fill_character(&self) -> char {
        self.fill.unwrap_or(if self.is_zero_filled { '0' } else { ' ' })
    }

    fn filled(&self, sign: &str, text: &str, missing: usize, align: char) -> String {
        let fill = |count: usize| self.fill_character().to_string().repeat(count);
        match align {
            '<' => format!("{sign}{text}{}", fill(missing)),
            '^' => format!("{}{sign}{text}{}", fill(missing / 2), fill(missing - missing / 2)),
            '=' => format!("{sign}{}{text}", fill(missing)),
            _ => format!("{}{sign}{text}", fill(missing)),
        }
    }
}

/// Digits in groups from the end, with zeros before them until they take so much room.
fn grouped(digits: &str, size: usize, separator: char, room: usize) -> String {
    let (mut groups, mut left, mut room) = (Vec::new(), digits, room as i64);
    loop {
        let count = size.min(left.len().max(usize::try_from(room).unwrap_or(0)).max(1));
        let (before, group) = left.split_at(left.len().saturating_sub(count));
        groups.push(format!("{group:0>count$}"));
        left = before;
        room -= count as i64;
        if left.is_empty() && room <= 0 {
            break;
        }
        room -= 1;
    }
    groups.reverse();
    groups.join(&separator.to_string())
}

/// A double as Python shows it: the fewest digits that tell it apart.
fn repr(value: f64) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return format!("{}{name}", if value < 0.0 { "-" } else { "" });
    }
    // Of two that are as near, the even one.
    let count =
        format!("{value:e}").bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let shortest = format!("{value:.*e}", count - 1);
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    match exponent.parse::<i64>().unwrap_or(0) {
        exponent @ -4..16 => {
            let places = usize::try_from(count as i64 - 1 - exponent).unwrap_or(0).max(1);
            format!("{value:.places$}")
        }
        exponent @ 16.. => format!("{digits}e+{exponent:02}"),
        exponent => format!("{digits}e-{:02}", -exponent),
    }
}

/// A text as Python shows it: in quotes, with escapes for what cannot be seen.
fn repr_of_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut shown = String::from(quote);
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '\\' => shown.push_str("\\\\"),
            _ if character == quote => shown.extend(['\\', quote]),
            _ if is_seen(character) => shown.push(character),
            _ => shown.push_str(&match u32::from(character) {
                code @ ..0x100 => format!("\\x{code:02x}"),
                code @ ..0x1_0000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    shown.push(quote);
    shown
}

/// Whether Python shows a character as it is (`str.isprintable`).
fn is_seen(character: char) -> bool {
    // Behind another, a mark that goes above it is one that is seen.
    let mut behind = String::from('x');
    behind.push(character);
    behind.escape_debug().count() == 2 || matches!(character, '\'' | '"')
}

/// A whole number that `int(text)` reads, without what is not needed; `None` if it is none.
fn whole(text: &str) -> Option<String> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = joined(digits)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("{sign}{digits}"))
}

/// A number that `float(text)` reads, as [`repr`] shows it; `None` if it is none.
fn double(text: &str) -> Option<String> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_named = ["inf", "infinity", "nan"].iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    // Rust reads all that Python does but `_`, and nothing else that begins with a digit or point.
    let is_number = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let parts =
        || unsigned.split(['.', 'e', 'E', '+', '-']).all(|part| part.is_empty() || joined(part).is_some());
    let is_read = is_named || (is_number && parts());
    let value: f64 = text.replace('_', "").parse().ok().filter(|_| is_read)?;
    Some(if value.is_nan() { "nan".into() } else { repr(value) })
}

/// Digits without `_`, which may stand between two of them; `None` if it stands elsewhere, or there are none.
fn joined(digits: &str) -> Option<String> {
    let is_whole = digits.split('_').all(|part| !part.is_empty());
    is_whole.then(|| digits.replace('_', ""))
}

/// `left / right` of whole numbers: the double that is nearest to what it is.
fn quotient(left: i64, right: i64) -> Result<f64> {
    if right == 0 {
        return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    let (above, below) = (u128::from(left.unsigned_abs()), u128::from(right.unsigned_abs()));
    // As many binary digits as there are: more than 60, and one that says whether there would be more.
    let shift = above.leading_zeros().min(127);
    let (digits, rest) = ((above << shift) / below, (above << shift) % below);
    let nearest = (digits | u128::from(rest != 0)) as f64 / 2f64.powi(shift as i32);
    Ok(if (left < 0) != (right < 0) && left != 0 { -nearest } else { nearest })
}

/// `round(value, digits)`
fn round(value: f64, digits: i64) -> Result<f64> {
    if !value.is_finite() || digits > *DIGITS.end() {
        return Ok(value);
    }
    if digits < *DIGITS.start() {
        return Ok(0.0 * value);
    }
    let text = match usize::try_from(digits) {
        Ok(digits) => format!("{:.digits$}", value.abs()),
        Err(_) => {
            let exact = format!("{:.DIGITS_OF_DOUBLES$}", value.abs());
            let (whole, fraction) = exact.split_once('.').unwrap_or((&exact, ""));
            let whole = whole.trim_start_matches('0');
            Digits { is_negative: false, whole, fraction }.rounded(digits, Rounding::HalfEven)
        }
    };
    let rounded: f64 = text.parse().unwrap_or(f64::INFINITY);
    match rounded.is_finite() {
        true => Ok(rounded.copysign(value)),
        false => Err(Error::new(SqlState::OUT_OF_RANGE, "rounded value too large to represent")),
    }
}

fn too_large() -> Error {
    Error::new(SqlState::OUT_OF_RANGE, "bigint out of range")
}

/// Computes one of these functions; `None` for others. `22012` for a division by zero, `22003` for what leaves 64 bits,
/// `22008` for moments that Python has not, `22023` for a format that is none of the value.
pub(super) fn apply<'a>(function: Function, arguments: &[Datum<'a>]) -> Result<Option<Computed>> {
    use Datum::{Double, Int, Text};
    let text = match (function, arguments) {
        (Function::PythonPower, [Int(base), Int(exponent)]) => {
            let exponent = u32::try_from(*exponent).map_err(|_| too_large())?;
            return base
                .checked_pow(exponent)
                .map(|power| Some(Computed::Whole(power)))
                .ok_or_else(too_large);
        }
        (Function::PythonShift, [Int(0), Int(_)]) => return Ok(Some(Computed::Whole(0))),
        (Function::PythonShift, [Int(value), Int(count)]) => {
            let count = u32::try_from(*count).ok().filter(|count| *count < i64::BITS);
            let shifted = count.map(|count| i128::from(*value) << count).map(i64::try_from);
            let Some(Ok(shifted)) = shifted else { return Err(too_large()) };
            return Ok(Some(Computed::Whole(shifted)));
        }
        (Function::PythonMoved, [Int(moment), Int(micros)]) => {
            let moved = moment.checked_add(*micros).filter(|moved| MOMENTS.contains(moved));
            let beyond = || Error::new(calendar::out_of_range("date").state(), "date value out of range");
            return moved.map(|moved| Some(Computed::Whole(moved))).ok_or_else(beyond);
        }
        (Function::PythonTimedelta, [Text(interval)]) => {
            return interval::read(interval)?.timedelta().map(|micros| Some(Computed::Whole(micros)));
        }
        (Function::PythonTimedeltaText, [Int(micros)]) => timedelta_text(*micros),
        (Function::PythonInterval, [Int(micros)]) => interval::write(Interval::of_timedelta(*micros)),
        (Function::PythonRound, [Double(value), Int(digits)]) => {
            return round(*value, *digits).map(|rounded| Some(Computed::Double(rounded)));
        }
        (Function::PythonDivide, [Int(left), Int(right)]) => {
            return quotient(*left, *right).map(|quotient| Some(Computed::Double(quotient)));
        }
        (Function::PythonHas, [Text(value), Text(property)]) => {
            return python_text::has_property(value, property).map(|has| Some(Computed::Boolean(has)));
        }
        (Function::PythonQuotient, [Text(left), Text(right)]) => python_decimal::quotient(left, right)?,
        (Function::PythonQuantize, [Text(value), Int(places), Text(rounding)]) => {
            python_decimal::quantize(value, *places, rounding)?
        }
        (Function::PythonText, [Double(value)]) => repr(*value),
        (Function::PythonRepr, [Text(value)]) => repr_of_text(value),
        (Function::PythonWhole, [Text(value)]) => whole(value).unwrap_or_default(),
        (Function::PythonDouble, [Text(value)]) => double(value).unwrap_or_default(),
        (Function::PythonFormatInt, [Int(value), Text(format)]) => {
            of(format, Formatted::Whole)?.of_whole(*value)
        }
        (Function::PythonFormatDouble, [Double(value), Text(format)]) => {
            of(format, Formatted::Double)?.of_double(*value)
        }
        (Function::PythonFormatDecimal, [Text(value), Text(format)]) => {
            let format = of(format, Formatted::Decimal)?;
            format.of_decimal(python_decimal::parsed(value)?)
        }
        (Function::PythonFormatText, [Text(value), Text(format)]) => {
            of(format, Formatted::Text)?.of_text(value)
        }
        _ => return Ok(None),
    };
    check_blob(text.len())?;
    Ok(Some(Computed::Text(text)))
}

/// `1 day, 2:03:04.500000`: whole days, rounded down, and the rest of a day.
fn timedelta_text(micros: i64) -> String {
    let (days, rest) = (micros.div_euclid(calendar::DAY_MICROS), micros.rem_euclid(calendar::DAY_MICROS));
    let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
    let mut text = match days {
        0 => String::new(),
        -1 | 1 => format!("{days} day, "),
        _ => format!("{days} days, "),
    };
    text += &format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if micros != 0 {
        text += &format!(".{micros:06}");
    }
    text
}

/// What a function gives.
pub(super) enum Computed {
    Whole(i64),
    Double(f64),
    Boolean(bool),
    Text(String),
}

fn of(format: &str, formatted: Formatted) -> Result<Format> {
    let refuse = || Error::new(SqlState::INVALID_PARAMETER, format!("'{format}' is no format of this"));
    Format::parse(format).filter(|format| format.is_of(formatted)).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: values are formatted as Python 3.11 formats them.
    #[test]
    fn formats() {
        let whole = |value, format| of(format, Formatted::Whole).unwrap().of_whole(value);
        assert_eq!(whole(-42, "05d"), "-0042");
        assert_eq!(whole(1_234_567, ","), "1,234,567");
        assert_eq!(whole(1234, "010,"), "00,001,234");
        assert_eq!(whole(1234, "08,"), "0,001,234");
        assert_eq!(whole(1234, "^+9"), "  +1234  ");
        assert_eq!(whole(-255, "x"), "-ff");
        assert_eq!(whole(i64::MIN, "_b").len(), 1 + 64 + 15);
        assert_eq!(whole(3, "<05"), "30000");
        let double = |value, format| of(format, Formatted::Double).unwrap().of_double(value);
        assert_eq!(double(0.125, ".2f"), "0.12");
        assert_eq!(double(0.375, ".2f"), "0.38");
        assert_eq!(double(2.5, ".0f"), "2");
        assert_eq!(double(2.675, ".2f"), "2.67");
        assert_eq!(double(-0.001, ".2f"), "-0.00");
        assert_eq!(double(1e22, ",.1f"), "10,000,000,000,000,000,000,000.0");
        assert_eq!(double(0.1234, ".1%"), "12.3%");
        assert_eq!(double(f64::NAN, "05.1f"), "00nan");
        assert_eq!(double(1.0, ">6"), "   1.0");
        let decimal = |value, format| {
            of(format, Formatted::Decimal).unwrap().of_decimal(python_decimal::parsed(value).unwrap())
        };
        assert_eq!(decimal("2.5000", ".0f"), "2");
        assert_eq!(decimal("-0.0010", ".2f"), "-0.00");
        assert_eq!(decimal("999.995", ",.2f"), "1,000.00");
        assert_eq!(decimal("0.125", ".1%"), "12.5%");
        assert_eq!(of("*^7.2s", Formatted::Text).unwrap().of_text("äöü"), "**äö***");
        assert!(of(".2d", Formatted::Whole).is_err() && of("05", Formatted::Text).is_err());
    }

    /// Goal: texts are shown, and read as numbers, as Python 3.11 does.
    #[test]
    fn texts() {
        let shown =
            ["it's", "a\"b'c", "\u{0}\u{7f}\u{ad}\n", "é\u{301}\u{200b}", "\u{e0001}😀"].map(repr_of_text);
        assert_eq!(
            shown,
            ["\"it's\"", "'a\"b\\'c'", "'\\x00\\x7f\\xad\\n'", "'é\u{301}\\u200b'", "'\\U000e0001😀'"]
        );
        let wholes = [" 1_000 ", "-007", "+5", "", "1__0", "_1", "1_", "0x1", "--1", "1.0", "- 1"].map(whole);
        assert_eq!(wholes.each_ref().map(Option::as_deref)[..3], [Some("1000"), Some("-007"), Some("5")]);
        assert!(wholes[3..].iter().all(Option::is_none));
        let doubles = [" 1_0.5e1_0 ", "-.5", "5.", "iNf", "-Infinity", "NAN", "1e400", "1e-400"].map(double);
        let doubles = doubles.map(Option::unwrap_or_default);
        assert_eq!(doubles, ["105000000000.0", "-0.5", "5.0", "inf", "-inf", "nan", "inf", "0.0"]);
        let wrong = ["", ".", "1_.5", "1e", "infinit", "0x1", "1 2", "e5", "1._5", "--1"].map(double);
        assert!(wrong.iter().all(Option::is_none), "{wrong:?}");
    }

    /// Goal: the quotient of whole numbers is rounded once, however large they are.
    #[test]
    fn quotients() {
        assert_eq!(quotient(1, 3).unwrap(), 1.0 / 3.0);
        assert_eq!(quotient(-7, 2).unwrap(), -3.5);
        assert_eq!(quotient(i64::MIN, -1).unwrap(), 9.223_372_036_854_776e18);
        assert_eq!(quotient(9_007_199_254_740_993, 9_007_199_254_740_992).unwrap(), 1.0);
        assert_eq!(quotient(i64::MAX, 3).unwrap(), 3.074_457_345_618_258_5e18);
        assert_eq!(quotient(1, i64::MIN).unwrap(), -(2f64.powi(-63)));
        assert!(quotient(0, -5).unwrap().is_sign_positive() && quotient(1, 0).is_err());
    }

    /// Goal: doubles are shown and rounded as Python 3.11 does.
    #[test]
    fn doubles() {
        let shown: Vec<String> =
            [1.0, -0.0, 0.1, 1e15, 1e16, 1.5e300, 1e-4, 1e-5, 97_980_058_614_689.62].map(repr).into();
        assert_eq!(
            shown.join(" "),
            "1.0 -0.0 0.1 1000000000000000.0 1e+16 1.5e+300 0.0001 1e-05 97980058614689.62"
        );
        assert_eq!(round(2.675, 2).unwrap(), 2.67);
        assert_eq!(round(0.125, 2).unwrap(), 0.12);
        assert_eq!(round(1250.0, -2).unwrap(), 1200.0);
        assert_eq!(round(1350.0, -2).unwrap(), 1400.0);
        assert_eq!(round(51.0, -2).unwrap(), 100.0);
        assert_eq!(round(50.0, -2).unwrap(), 0.0);
        assert_eq!(round(4.0, -2).unwrap(), 0.0);
        assert!(round(f64::MAX, -308).is_err());
    }
}
