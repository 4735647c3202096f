//! Built-in functions.
//!
//! Text is measured, cut and overlaid by characters, bytea by bytes. `coalesce` is not here: it
//! evaluates its arguments one by one, so it is control and belongs to whoever runs a program.
//!
//! | module | functions |
//! |---|---|
//! | `signature` | the table of those with fixed types |
//! | `text` | of texts |
//! | [`pattern`] | `like` |
//! | [`regular_expression`] | `regexp_like` |
//! | `number` | rounding, bits, doubles |
//! | `moment` | fields of dates and timestamps |
//! | [`python`] | what Python makes of values, where SQL means something else |
//! | [`python_decimal`] | what it makes of `Decimal`: quotients and roundings |
//! | [`python_text`] | what it says of all characters of a text |
//! | `random` | what looks random, from a seed |

mod moment;
pub mod number;
pub mod pattern;
pub mod python;
mod python_decimal;
mod python_text;
mod random;
pub mod regular_expression;
mod signature;
mod text;

pub use number::round_single;
pub use signature::{SIGNATURES, Signature};

use super::arithmetic::{Width, division_by_zero};
use super::{binary, compare, ill_typed};
use crate::ir::{Bits, Function, Rounding};
use bumpalo::Bump;
use fabius_value::calendar::is_infinite;
use fabius_value::data_type::Family;
use fabius_value::value::check_blob;
use fabius_value::{
    DataType, DateField, Datum, Error, Result, SqlState, Value, calendar, letter_case, moment_text,
    value_text,
};
use std::cmp::Ordering;

/// A function resolved for the type of its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionOperation {
    /// `abs` of an integer; overflows at the lowest.
    AbsInteger(Width),
    /// `abs` of a numeric or double.
    Abs,
    /// `length`.
    Length,
    /// `lower`.
    Lower,
    /// `upper`.
    Upper,
    /// `substring`.
    Substring,
    /// `overlay`.
    Overlay,
    /// `least`.
    Least,
    /// `greatest`.
    Greatest,
    /// `concat`.
    Concat,
    /// `round` and its like, of a numeric.
    RoundNumeric {
        /// Which way.
        rounding: Rounding,
        /// The operand's scale.
        from: u8,
        /// The result's scale.
        to: u8,
    },
    /// `round` and its like, of a double.
    RoundDouble(Rounding),
    /// `sign`.
    Sign,
    /// `div` of numerics of one scale.
    DivideWhole,
    /// Operators on bits.
    Bits(Bits, Width),
    /// `bitnot`.
    BitNot,
    /// `extract` of a timestamp.
    Extract(DateField),
    /// `extract` of a date.
    ExtractFromDate(DateField),
    /// A function of [`SIGNATURES`].
    Fixed(Function),
}

/// Computes a function of [`SIGNATURES`] of owned values, for those who are no programs.
///
/// # Errors
/// What the function refuses.
pub fn of_values(line: &Signature, arguments: &[Value]) -> Result<Value> {
    let arena = Bump::new();
    let arguments: Vec<Datum<'_>> = arguments.iter().map(Datum::from_value).collect();
    Ok(FunctionOperation::Fixed(line.function).apply(&arguments, &arena)?.to_value(line.result))
}

impl FunctionOperation {
    /// Resolves a function by the types of its first argument and its result.
    ///
    /// # Errors
    /// `42804` for a function that is not one of values (`coalesce`) or not of this type.
    pub fn of(function: Function, first: DataType, result: DataType) -> Result<FunctionOperation> {
        Ok(match function {
            Function::Abs if first.family() == Family::Integer => {
                FunctionOperation::AbsInteger(Width::of(first).ok_or_else(|| ill_typed(first))?)
            }
            Function::Abs => FunctionOperation::Abs,
            Function::Length => FunctionOperation::Length,
            Function::Lower => FunctionOperation::Lower,
            Function::Upper => FunctionOperation::Upper,
            Function::Substring => FunctionOperation::Substring,
            Function::Overlay => FunctionOperation::Overlay,
            Function::Least => FunctionOperation::Least,
            Function::Greatest => FunctionOperation::Greatest,
            Function::Coalesce => return Err(ill_typed("coalesce of values")),
            Function::Concat => FunctionOperation::Concat,
            Function::Round(rounding) if first == DataType::Double => {
                FunctionOperation::RoundDouble(rounding)
            }
            Function::Round(rounding) => {
                FunctionOperation::RoundNumeric { rounding, from: first.scale(), to: result.scale() }
            }
            Function::Sign => FunctionOperation::Sign,
            Function::DivideWhole => FunctionOperation::DivideWhole,
            Function::Bits(operator) => {
                FunctionOperation::Bits(operator, Width::of(first).ok_or_else(|| ill_typed(first))?)
            }
            Function::BitNot => FunctionOperation::BitNot,
            Function::Extract(field) if first == DataType::Date => FunctionOperation::ExtractFromDate(field),
            Function::Extract(field) => FunctionOperation::Extract(field),
            fixed => FunctionOperation::Fixed(fixed),
        })
    }

    /// Whether it can fail on arguments of its types.
    pub fn can_fail(self) -> bool {
        use FunctionOperation as Op;
        match self {
            Op::Abs | Op::Length | Op::Least | Op::Greatest | Op::Sign | Op::Bits(..) | Op::BitNot => false,
            Op::RoundDouble(_) | Op::Extract(_) | Op::ExtractFromDate(_) => false,
            Op::Fixed(function) => Signature::of(function).is_none_or(|line| line.can_fail),
            // Changing case can lengthen text, in principle beyond the largest allowed.
            _ => true,
        }
    }

    /// Computes the function.
    ///
    /// # Errors
    /// `22003` for `abs` of the lowest integer, `22023` for a position or count outside the
    /// function's domain, `22012` for `div` by zero, `54000` text too long; what else a function of
    /// [`SIGNATURES`] refuses.
    pub fn apply<'a>(self, arguments: &[Datum<'a>], arena: &'a Bump) -> Result<Datum<'a>> {
        use FunctionOperation as Op;
        match self {
            Op::Least => return Ok(extreme(arguments.iter().copied(), Ordering::Less)),
            Op::Greatest => return Ok(extreme(arguments.iter().copied(), Ordering::Greater)),
            Op::Concat => return text::concatenate(arguments, arena),
            _ if arguments.iter().any(|argument| argument.is_null()) => return Ok(Datum::Null),
            _ => {}
        }
        Ok(match (self, arguments) {
            (Op::AbsInteger(width), [Datum::Int(v)]) => Datum::Int(width.fit(v.checked_abs())?),
            (Op::Abs, [Datum::Numeric(v)]) => Datum::Numeric(v.abs()),
            (Op::Abs, [Datum::Double(v)]) => Datum::Double(v.abs()),
            (Op::Length, [Datum::Text(v)]) => Datum::Int(v.chars().count() as i64),
            (Op::Length, [Datum::Bytes(v)]) => Datum::Int(v.len() as i64),
            (Op::Lower, [Datum::Text(v)]) => made(&letter_case::lower(v), arena)?,
            (Op::Upper, [Datum::Text(v)]) => made(&letter_case::upper(v), arena)?,
            (Op::Substring, [Datum::Text(v), Datum::Int(from), Datum::Int(count)]) => {
                let (start, end) = window(*from, *count)?;
                Datum::Text(&v[byte_of(v, start)..byte_of(v, end)])
            }
            (Op::Substring, [Datum::Bytes(v), Datum::Int(from), Datum::Int(count)]) => {
                let (start, end) = window(*from, *count)?;
                Datum::Bytes(&v[start.min(v.len())..end.min(v.len())])
            }
            (Op::Overlay, [Datum::Text(v), Datum::Text(by), Datum::Int(from)]) => {
                let start = overlay_start(*from)?;
                let (start, end) = (byte_of(v, start), byte_of(v, start.saturating_add(by.chars().count())));
                check_blob(start + by.len() + (v.len() - end))?;
                Datum::Text(binary::join_text(&[&v[..start], by, &v[end..]], arena))
            }
            (Op::Overlay, [Datum::Bytes(v), Datum::Bytes(by), Datum::Int(from)]) => {
                let start = overlay_start(*from)?.min(v.len());
                let end = start + by.len();
                Datum::Bytes(if end <= v.len() {
                    let changed = arena.alloc_slice_copy(v);
                    changed[start..end].copy_from_slice(by);
                    changed
                } else {
                    check_blob(end)?;
                    binary::join_bytes(&[&v[..start], by], arena)
                })
            }
            (Op::RoundNumeric { rounding, from, to }, [Datum::Numeric(v), rest @ ..]) => {
                let digits = rest.first().map_or(0, |digits| digits.int());
                Datum::Numeric(number::round_numeric(rounding, *v, from, digits, to)?)
            }
            (Op::RoundDouble(rounding), [Datum::Double(v)]) => {
                Datum::Double(number::round_double(rounding, *v))
            }
            (Op::Sign, [Datum::Numeric(v)]) => Datum::Numeric(v.signum()),
            (Op::Sign, [Datum::Double(v)]) => {
                Datum::Double(f64::from(i8::from(*v > 0.0) - i8::from(*v < 0.0)))
            }
            (Op::DivideWhole, [Datum::Numeric(_), Datum::Numeric(0)]) => return Err(division_by_zero()),
            (Op::DivideWhole, [Datum::Numeric(l), Datum::Numeric(r)]) => Datum::Numeric(l / r),
            (Op::Bits(operator, width), [Datum::Int(l), Datum::Int(r)]) => {
                Datum::Int(number::bits(operator, width, *l, *r))
            }
            (Op::BitNot, [Datum::Int(v)]) => Datum::Int(!v),
            (Op::Extract(field), [Datum::Int(micros)]) => Datum::Numeric(field.of_moment(*micros).into()),
            (Op::ExtractFromDate(field), [Datum::Int(days)]) => Datum::Numeric(field.of_day(*days).into()),
            (Op::Fixed(Function::DatePart), [Datum::Text(field), Datum::Int(micros)]) => {
                moment::date_part(field, *micros)?
            }
            (Op::Fixed(Function::AddMicros), [Datum::Int(moment), Datum::Int(micros)]) => {
                // What is infinite stays so.
                let moved = if is_infinite(*moment) { Some(*moment) } else { moment.checked_add(*micros) };
                Datum::Int(moved.ok_or_else(moment::overflow)?)
            }
            (Op::Fixed(Function::MicrosBetween), [Datum::Int(l), Datum::Int(r)]) => {
                Datum::Int(l.checked_sub(*r).ok_or_else(moment::overflow)?)
            }
            (Op::Fixed(Function::AddMonths), [Datum::Int(micros), Datum::Int(months)]) => {
                Datum::Int(calendar::moved(*micros, *months, 0, 0).ok_or_else(moment::overflow)?)
            }
            (Op::Fixed(Function::RoundSingle), [Datum::Double(v)]) => {
                Datum::Double(number::round_single(*v)?)
            }
            (Op::Fixed(Function::RoundMicros), [Datum::Int(micros), Datum::Int(digits)]) => {
                Datum::Int(calendar::rounded_micros(*micros, moment::second_digits(*digits)))
            }
            (Op::Fixed(Function::RoundMoment), [Datum::Int(moment), Datum::Int(digits)]) => {
                Datum::Int(calendar::rounded_moment(*moment, moment::second_digits(*digits)))
            }
            (Op::Fixed(Function::MakeDate), [Datum::Int(year), Datum::Int(month), Datum::Int(day)]) => {
                Datum::Int(moment::make_date(*year, *month, *day)?)
            }
            (Op::Fixed(Function::DateTruncate), [Datum::Text(unit), Datum::Int(micros)]) => {
                moment::date_truncate(unit, *micros)?
            }
            (Op::Fixed(Function::NthRandom), [Datum::Int(seed), Datum::Int(n)]) => {
                Datum::Double(random::number(*seed, *n))
            }
            (Op::Fixed(Function::NthUuid), [Datum::Int(seed), Datum::Int(n)]) => {
                Datum::Bytes(arena.alloc(random::uuid(*seed, *n)))
            }
            (Op::Fixed(Function::UuidText), [Datum::Bytes(bytes)]) => {
                let mut text = Vec::with_capacity(36);
                value_text::write_uuid(bytes, &mut text);
                return made(&String::from_utf8_lossy(&text), arena);
            }
            (Op::Fixed(Function::TimeText), [Datum::Int(micros)]) => {
                return made(&moment_text::time_text(*micros), arena);
            }
            (Op::Fixed(Function::UnknownLabel), [Datum::Text(enumeration), Datum::Text(label)]) => {
                return Err(value_text::no_label(label, enumeration));
            }
            (Op::Fixed(function), _) => {
                match python::apply(function, arguments)? {
                    Some(python::Computed::Whole(whole)) => return Ok(Datum::Int(whole)),
                    Some(python::Computed::Double(double)) => return Ok(Datum::Double(double)),
                    Some(python::Computed::Boolean(boolean)) => return Ok(Datum::Boolean(boolean)),
                    Some(python::Computed::Text(text)) => return made(&text, arena),
                    None => {}
                }
                let computed = match text::apply(function, arguments, arena)? {
                    None => number::apply(function, arguments)?,
                    computed => computed,
                };
                computed.unwrap_or_else(|| panic!("{function:?} does not apply to {arguments:?}"))
            }
            _ => panic!("{self:?} does not apply to {arguments:?}"),
        })
    }
}

/// The least (or greatest) of the values that are not null.
pub(super) fn extreme<'a>(values: impl Iterator<Item = Datum<'a>>, wanted: Ordering) -> Datum<'a> {
    values.fold(Datum::Null, |best, value| match compare(value, best) {
        Some(ordering) if ordering == wanted => value,
        None if best.is_null() => value,
        _ => best,
    })
}

fn made<'a>(text: &str, arena: &'a Bump) -> Result<Datum<'a>> {
    check_blob(text.len())?;
    Ok(Datum::Text(binary::join_text(&[text], arena)))
}

/// The byte at which the character numbered `at` (from 0) starts; the text's end if there is none.
fn byte_of(text: &str, at: usize) -> usize {
    // Characters are at least a byte, so short text needs no walk.
    if at >= text.len() {
        return text.len();
    }
    // Where all characters before it are single bytes, it is where it would be in bytes.
    if text.as_bytes()[..at].is_ascii() {
        return at;
    }
    text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte)
}

/// The characters `from .. from + count`, 1-based, as a 0-based range without what precedes the text.
fn window(from: i64, count: i64) -> Result<(usize, usize)> {
    if count < 0 {
        return Err(negative_length(format!("length is {count}")));
    }
    let place = |number: i64| usize::try_from(number.saturating_sub(1)).unwrap_or(0);
    Ok((place(from), place(from.saturating_add(count))))
}

fn overlay_start(from: i64) -> Result<usize> {
    match usize::try_from(from) {
        Ok(from) if from > 0 => Ok(from - 1),
        _ => Err(negative_length(format!("position is {from}"))),
    }
}

/// PostgreSQL's error for both.
fn negative_length(detail: String) -> Error {
    Error::new(SqlState(*b"22011"), "negative substring length not allowed").with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(function: Function, arguments: &[Datum<'_>]) -> String {
        let first = match arguments[0] {
            Datum::Int(_) => DataType::BigInt,
            _ => DataType::TEXT,
        };
        let arena = Bump::new();
        let arguments: Vec<Datum<'_>> = arguments.to_vec();
        match FunctionOperation::of(function, first, first).unwrap().apply(&arguments, &arena) {
            Ok(Datum::Int(v)) => v.to_string(),
            Ok(Datum::Text(v)) => v.to_string(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.state().as_str().into(),
        }
    }

    /// Goal: positions count characters from 1, and windows are cut to the text as PostgreSQL does.
    #[test]
    fn text_is_cut_by_characters() {
        let substring = |text, from, count| {
            apply(Function::Substring, &[Datum::Text(text), Datum::Int(from), Datum::Int(count)])
        };
        assert_eq!(substring("héllo", 2, 3), "éll");
        assert_eq!(substring("héllo", 0, 2), "h");
        assert_eq!(substring("héllo", -5, 3), "");
        assert_eq!(substring("héllo", 4, i64::MAX), "lo");
        assert_eq!(substring("héllo", 9, 1), "");
        assert_eq!(substring("héllo", i64::MIN, i64::MAX), "");
        assert_eq!(substring("héllo", 1, -1), "22011");
        let overlay = |text, by, from| {
            apply(Function::Overlay, &[Datum::Text(text), Datum::Text(by), Datum::Int(from)])
        };
        assert_eq!(overlay("héllo", "üü", 2), "hüülo");
        assert_eq!(overlay("héllo", "XYZ", 5), "héllXYZ");
        assert_eq!(overlay("hé", "X", 10), "héX");
        assert_eq!(overlay("hé", "X", 0), "22011");
        assert_eq!(apply(Function::Length, &[Datum::Text("héllo")]), "5");
        assert_eq!(apply(Function::Upper, &[Datum::Text("héllo")]), "HÉLLO");
    }

    /// Goal: of a character that `translate` is given twice the first counts; long sets of characters take about as
    /// long as reading them.
    #[test]
    fn characters_are_found_in_long_sets() {
        let call = |function, arguments: &[&str]| {
            apply(function, &arguments.iter().map(|text| Datum::Text(text)).collect::<Vec<_>>())
        };
        assert_eq!(call(Function::Translate, &["12345é", "1435é1", "ax é"]), "a2 xé");
        assert_eq!(call(Function::Translate, &["abcb", "bbc", "xy"]), "axx");
        assert_eq!(call(Function::Trim, &["éxaxbé", "xé"]), "axb");
        let (text, set) = ("a".repeat(1 << 22), "é".repeat(1 << 21) + "a");
        assert_eq!(call(Function::Translate, &[&text, &set, ""]), "");
        assert_eq!(call(Function::Trim, &[&text, &set]), "");
    }

    /// Goal: null in, null out, except for the functions that choose among their arguments.
    #[test]
    fn nulls() {
        assert_eq!(apply(Function::Length, &[Datum::Null]), "Null");
        assert_eq!(apply(Function::Least, &[Datum::Null, Datum::Int(3), Datum::Int(2), Datum::Null]), "2");
        assert_eq!(apply(Function::Greatest, &[Datum::Int(2), Datum::Null, Datum::Int(3)]), "3");
        assert_eq!(apply(Function::Least, &[Datum::Null, Datum::Null]), "Null");
        assert_eq!(apply(Function::Abs, &[Datum::Int(i64::MIN)]), "22003");
    }
}
