//! Operators on two operands.

use super::arithmetic::{
    Digits, DoubleOperator, Width, divide_numerics, division_by_zero, doubles, modulo, multiply_numerics,
    out_of_range,
};
use super::{Comparison, compare, ill_typed, null_of};
use crate::ir::BinaryOperator;
use bumpalo::Bump;
use fabius_value::data_type::Family;
use fabius_value::{DataType, Datum, Result, calendar, value::check_blob};

/// A binary operator resolved for the types of its operands and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperation {
    /// `+` on integers.
    AddIntegers(Width),
    /// `-` on integers.
    SubtractIntegers(Width),
    /// `*` on integers.
    MultiplyIntegers(Width),
    /// `/` on integers: truncates toward zero.
    DivideIntegers(Width),
    /// `%` on integers.
    ModuloIntegers,
    /// `+` on numerics of the result's scale.
    AddNumerics(Digits),
    /// `-` likewise.
    SubtractNumerics(Digits),
    /// `*` on exact numbers whose scales add up to `scale`.
    MultiplyNumerics {
        /// The sum of the operands' scales.
        scale: u8,
        /// The result.
        to: Digits,
    },
    /// `/` on exact numbers.
    DivideNumerics {
        /// See [`divide_numerics`].
        shift: i8,
        /// The result.
        to: Digits,
    },
    /// `%` on numerics of one scale.
    ModuloNumerics,
    /// Arithmetic on doubles.
    Doubles(DoubleOperator),
    /// `date + int` or `int + date`.
    AddDays,
    /// `date - int`.
    SubtractDays,
    /// `date - date`.
    DaysBetween,
    /// A comparison.
    Compare(Comparison),
    /// `is distinct from` (true), `is not distinct from` (false).
    Distinct(bool),
    /// Three-valued `and` of two operands that were both evaluated.
    And,
    /// Three-valued `or` likewise.
    Or,
    /// `||` on text.
    ConcatenateText,
    /// `||` on bytea.
    ConcatenateBytes,
}

impl BinaryOperation {
    /// Resolves an operator.
    ///
    /// # Errors
    /// `42804` if the operator does not exist for these types; a verified program has no such.
    pub fn of(
        operator: BinaryOperator,
        left: DataType,
        right: DataType,
        result: DataType,
    ) -> Result<BinaryOperation> {
        use BinaryOperator as Op;
        use DoubleOperator as Double;
        if let Some(comparison) = Comparison::of(operator) {
            return Ok(BinaryOperation::Compare(comparison));
        }
        let families = (left.family(), right.family());
        let width = Width::of(result);
        let digits = Digits::of(result);
        let same_scale = left.scale() == right.scale() && left.scale() == result.scale();
        let operation = match (operator, families) {
            (Op::IsDistinct, _) => Some(BinaryOperation::Distinct(true)),
            (Op::IsNotDistinct, _) => Some(BinaryOperation::Distinct(false)),
            (Op::And, _) => Some(BinaryOperation::And),
            (Op::Or, _) => Some(BinaryOperation::Or),
            (Op::Add, (Family::Integer, Family::Integer)) => width.map(BinaryOperation::AddIntegers),
            (Op::Subtract, (Family::Integer, Family::Integer)) => {
                width.map(BinaryOperation::SubtractIntegers)
            }
            (Op::Multiply, (Family::Integer, Family::Integer)) if width.is_some() => {
                width.map(BinaryOperation::MultiplyIntegers)
            }
            (Op::Divide, (Family::Integer, Family::Integer)) if width.is_some() => {
                width.map(BinaryOperation::DivideIntegers)
            }
            (Op::Modulo, (Family::Integer, Family::Integer)) => Some(BinaryOperation::ModuloIntegers),
            (Op::Add, (Family::Numeric, Family::Numeric)) if same_scale => {
                digits.map(BinaryOperation::AddNumerics)
            }
            (Op::Subtract, (Family::Numeric, Family::Numeric)) if same_scale => {
                digits.map(BinaryOperation::SubtractNumerics)
            }
            (Op::Multiply, _) if left.is_exact() && right.is_exact() => {
                digits.map(|to| BinaryOperation::MultiplyNumerics { scale: left.scale() + right.scale(), to })
            }
            (Op::Divide, _) if left.is_exact() && right.is_exact() => {
                let shift = result.scale() as i8 + right.scale() as i8 - left.scale() as i8;
                digits.map(|to| BinaryOperation::DivideNumerics { shift, to })
            }
            (Op::Modulo, (Family::Numeric, Family::Numeric)) if same_scale => {
                Some(BinaryOperation::ModuloNumerics)
            }
            (Op::Add, (Family::Double, Family::Double)) => Some(BinaryOperation::Doubles(Double::Add)),
            (Op::Subtract, (Family::Double, Family::Double)) => {
                Some(BinaryOperation::Doubles(Double::Subtract))
            }
            (Op::Multiply, (Family::Double, Family::Double)) => {
                Some(BinaryOperation::Doubles(Double::Multiply))
            }
            (Op::Divide, (Family::Double, Family::Double)) => Some(BinaryOperation::Doubles(Double::Divide)),
            (Op::Modulo, (Family::Double, Family::Double)) => Some(BinaryOperation::Doubles(Double::Modulo)),
            (Op::Add, (Family::Date, Family::Integer) | (Family::Integer, Family::Date)) => {
                Some(BinaryOperation::AddDays)
            }
            (Op::Subtract, (Family::Date, Family::Integer)) => Some(BinaryOperation::SubtractDays),
            (Op::Subtract, (Family::Date, Family::Date)) => Some(BinaryOperation::DaysBetween),
            (Op::Concatenate, (Family::Text, Family::Text)) => Some(BinaryOperation::ConcatenateText),
            (Op::Concatenate, (Family::Bytea, Family::Bytea)) => Some(BinaryOperation::ConcatenateBytes),
            _ => None,
        };
        operation.ok_or_else(|| ill_typed(format_args!("{left} {operator:?} {right} giving {result}")))
    }

    /// Whether it can fail on operands of its types.
    pub fn can_fail(self) -> bool {
        use BinaryOperation as Op;
        !matches!(self, Op::Compare(_) | Op::Distinct(_) | Op::And | Op::Or)
    }

    /// Computes the operator.
    ///
    /// # Errors
    /// `22003` out of range, `22012` division by zero, `54000` text too long.
    #[inline]
    pub fn apply<'a>(self, left: Datum<'a>, right: Datum<'a>, arena: &'a Bump) -> Result<Datum<'a>> {
        use BinaryOperation as Op;
        match self {
            Op::AddIntegers(width) => match (left, right) {
                (Datum::Int(l), Datum::Int(r)) => width.add(l, r).map(Datum::Int),
                _ => Ok(null_of(&self, &[left, right])),
            },
            Op::SubtractIntegers(width) => match (left, right) {
                (Datum::Int(l), Datum::Int(r)) => width.subtract(l, r).map(Datum::Int),
                _ => Ok(null_of(&self, &[left, right])),
            },
            Op::MultiplyIntegers(width) => match (left, right) {
                (Datum::Int(l), Datum::Int(r)) => width.multiply(l, r).map(Datum::Int),
                _ => Ok(null_of(&self, &[left, right])),
            },
            Op::AddNumerics(to) => match (left, right) {
                (Datum::Numeric(l), Datum::Numeric(r)) => to.add(l, r).map(Datum::Numeric),
                _ => Ok(null_of(&self, &[left, right])),
            },
            Op::SubtractNumerics(to) => match (left, right) {
                (Datum::Numeric(l), Datum::Numeric(r)) => to.subtract(l, r).map(Datum::Numeric),
                _ => Ok(null_of(&self, &[left, right])),
            },
            Op::Compare(comparison) => Ok(comparison.holds(left, right).map_or(Datum::Null, Datum::Boolean)),
            Op::Distinct(wanted) => Ok(Datum::Boolean(distinct(left, right) == wanted)),
            Op::And | Op::Or => Ok(self.connect(left, right)),
            _ if left.is_null() || right.is_null() => Ok(Datum::Null),
            _ => self.apply_to_values(left, right, arena),
        }
    }

    /// The operators that are rare enough to be called, on operands that are not null.
    #[inline(never)]
    fn apply_to_values<'a>(self, left: Datum<'a>, right: Datum<'a>, arena: &'a Bump) -> Result<Datum<'a>> {
        use BinaryOperation as Op;
        match (self, left, right) {
            (Op::DivideIntegers(width), Datum::Int(l), Datum::Int(r)) => {
                if r == 0 {
                    return Err(division_by_zero());
                }
                width.fit(l.checked_div(r)).map(Datum::Int)
            }
            (Op::ModuloIntegers, Datum::Int(l), Datum::Int(r)) => {
                if r == 0 {
                    Err(division_by_zero())
                } else {
                    Ok(Datum::Int(l.wrapping_rem(r)))
                }
            }
            (Op::MultiplyNumerics { scale, to }, _, _) => {
                multiply_numerics(left.exact(), right.exact(), scale, to).map(Datum::Numeric)
            }
            (Op::DivideNumerics { shift, to }, _, _) => {
                divide_numerics(left.exact(), right.exact(), shift, to).map(Datum::Numeric)
            }
            (Op::ModuloNumerics, Datum::Numeric(l), Datum::Numeric(r)) => modulo(l, r).map(Datum::Numeric),
            (Op::Doubles(operator), Datum::Double(l), Datum::Double(r)) => {
                doubles(operator, l, r).map(Datum::Double)
            }
            (Op::AddDays, Datum::Int(l), Datum::Int(r)) => date(l.checked_add(r)),
            (Op::SubtractDays, Datum::Int(l), Datum::Int(r)) => date(l.checked_sub(r)),
            (Op::DaysBetween, Datum::Int(l), Datum::Int(r)) => {
                Width::Int.fit(l.checked_sub(r)).map(Datum::Int)
            }
            (Op::ConcatenateText, Datum::Text(l), Datum::Text(r)) => {
                check_blob(l.len() + r.len())?;
                Ok(Datum::Text(join_text(&[l, r], arena)))
            }
            (Op::ConcatenateBytes, Datum::Bytes(l), Datum::Bytes(r)) => {
                check_blob(l.len() + r.len())?;
                Ok(Datum::Bytes(join_bytes(&[l, r], arena)))
            }
            _ => panic!("{self:?} does not apply to {left:?} and {right:?}"),
        }
    }

    /// Three-valued logic: the value that decides alone wins over null.
    fn connect<'a>(self, left: Datum<'a>, right: Datum<'a>) -> Datum<'a> {
        let deciding = Datum::Boolean(self == BinaryOperation::Or);
        if left == deciding || right == deciding {
            deciding
        } else if left.is_null() || right.is_null() {
            Datum::Null
        } else {
            left
        }
    }
}

/// Whether two values differ, where null is the same as null and differs from every value.
fn distinct(left: Datum<'_>, right: Datum<'_>) -> bool {
    match compare(left, right) {
        Some(ordering) => ordering.is_ne(),
        None => left.is_null() != right.is_null(),
    }
}

fn date<'a>(days: Option<i64>) -> Result<Datum<'a>> {
    let (first, last) = calendar::DATE_RANGE;
    match days {
        Some(days) if (first.into()..=last.into()).contains(&days) => Ok(Datum::Int(days)),
        _ => Err(out_of_range(DataType::Date)),
    }
}

/// The parts one after the other, in the arena.
pub(super) fn join_bytes<'a>(parts: &[&[u8]], arena: &'a Bump) -> &'a [u8] {
    let mut joined =
        bumpalo::collections::Vec::with_capacity_in(parts.iter().map(|part| part.len()).sum(), arena);
    parts.iter().for_each(|part| joined.extend_from_slice_copy(part));
    joined.into_bump_slice()
}

/// The parts one after the other, in the arena.
pub(super) fn join_text<'a>(parts: &[&str], arena: &'a Bump) -> &'a str {
    let mut joined =
        bumpalo::collections::String::with_capacity_in(parts.iter().map(|part| part.len()).sum(), arena);
    parts.iter().for_each(|part| joined.push_str(part));
    joined.into_bump_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::SqlState;

    fn apply(operator: BinaryOperator, ty: DataType, l: Datum<'static>, r: Datum<'static>) -> String {
        let arena = Bump::new();
        let operation = BinaryOperation::of(operator, ty, ty, ty).unwrap();
        match operation.apply(l, r, &arena) {
            Ok(datum) => datum.to_value(ty).to_string(),
            Err(error) => error.state().as_str().into(),
        }
    }

    /// Goal: integers overflow at the edges of their own type, with PostgreSQL's exceptions.
    #[test]
    fn integer_edges() {
        use BinaryOperator::{Add, Divide, Modulo, Multiply, Subtract};
        let int = |operator, ty, l, r| apply(operator, ty, Datum::Int(l), Datum::Int(r));
        assert_eq!(int(Add, DataType::SmallInt, 32_767, 1), "22003");
        assert_eq!(int(Add, DataType::Int, 32_767, 1), "32768");
        assert_eq!(int(Subtract, DataType::Int, i64::from(i32::MIN), 1), "22003");
        assert_eq!(int(Multiply, DataType::BigInt, i64::MAX, 2), "22003");
        assert_eq!(int(Divide, DataType::BigInt, i64::MIN, -1), "22003");
        assert_eq!(int(Modulo, DataType::BigInt, i64::MIN, -1), "0");
        assert_eq!(int(Divide, DataType::Int, -7, 2), "-3");
        assert_eq!(int(Modulo, DataType::Int, -7, 2), "-1");
        assert_eq!(int(Modulo, DataType::Int, 1, 0), "22012");
        assert_eq!(apply(Add, DataType::Int, Datum::Null, Datum::Int(1)), "null");
    }

    /// Goal: numerics overflow at their precision.
    #[test]
    fn numeric_edges() {
        let ty = DataType::Numeric { precision: 4, scale: 2 };
        let numeric = |operator, l, r| apply(operator, ty, Datum::Numeric(l), Datum::Numeric(r));
        assert_eq!(numeric(BinaryOperator::Add, 9_998, 1), "99.99");
        assert_eq!(numeric(BinaryOperator::Add, 9_999, 1), "22003");
        assert_eq!(numeric(BinaryOperator::Multiply, 150, 35), "0.53");
        assert_eq!(numeric(BinaryOperator::Divide, 100, 300), "0.33");
        assert_eq!(numeric(BinaryOperator::Divide, 100, 0), "22012");
        assert_eq!(numeric(BinaryOperator::Modulo, -550, 200), "-1.50");
    }

    /// Goal: the truth tables of SQL:2016 part 2, 6.39.
    #[test]
    fn three_valued_logic() {
        let all = [Datum::Boolean(true), Datum::Boolean(false), Datum::Null];
        let table = |operator| {
            let row = |l| {
                all.map(|r| apply(operator, DataType::Boolean, l, r).remove(0)).iter().collect::<String>()
            };
            all.map(row).join(" ")
        };
        assert_eq!(table(BinaryOperator::And), "tfn fff nfn");
        assert_eq!(table(BinaryOperator::Or), "ttt tfn tnn");
    }

    /// Goal: null is a value like others to `is distinct from`.
    #[test]
    fn distinct_takes_null_for_a_value() {
        use BinaryOperator::{IsDistinct, IsNotDistinct};
        for (l, r, same) in [(Datum::Null, Datum::Null, true), (Datum::Int(1), Datum::Null, false)] {
            for (l, r) in [(l, r), (r, l)] {
                assert_eq!(apply(IsNotDistinct, DataType::Int, l, r).parse(), Ok(same));
                assert_eq!(apply(IsDistinct, DataType::Int, l, r).parse(), Ok(!same));
            }
        }
        assert_eq!(apply(IsDistinct, DataType::Int, Datum::Int(1), Datum::Int(1)), "false");
    }

    /// Goal: dates move by days within the calendar.
    #[test]
    fn days() {
        let (date, int) = (DataType::Date, DataType::Int);
        let arena = Bump::new();
        let of = |operator, l, r, result| BinaryOperation::of(operator, l, r, result).unwrap();
        let add = of(BinaryOperator::Add, date, int, date);
        assert_eq!(add.apply(Datum::Int(5), Datum::Int(3), &arena).unwrap(), Datum::Int(8));
        let far = add.apply(Datum::Int(5), Datum::Int(i64::from(i32::MAX)), &arena);
        assert_eq!(far.unwrap_err().state(), SqlState::OUT_OF_RANGE);
        let between = of(BinaryOperator::Subtract, date, date, int);
        assert_eq!(between.apply(Datum::Int(5), Datum::Int(8), &arena).unwrap(), Datum::Int(-3));
        assert!(BinaryOperation::of(BinaryOperator::Add, date, date, date).is_err());
    }
}
