//! Aggregates over one field of a list.

use super::arithmetic::{Digits, DoubleOperator, Width, divide_numerics, doubles, out_of_range};
use super::function::extreme;
use super::{compare, ill_typed};
use crate::ir::Aggregate;
use bumpalo::Bump;
use fabius_value::{DataType, Datum, Result};
use std::cmp::Ordering;

/// Computes an aggregate over the values of a field, whose type is `field`, giving a `result`.
///
/// Nulls are ignored (except by `count`, which counts elements); over no values all but the counts
/// are null. Sums are exact until the end, so their order does not matter except for doubles.
///
/// # Errors
/// `22003` for a sum or average that its type cannot hold.
pub fn aggregate<'a>(
    aggregate: Aggregate,
    field: DataType,
    result: DataType,
    values: impl Iterator<Item = Datum<'a>>,
    arena: &Bump,
) -> Result<Datum<'a>> {
    if aggregate == Aggregate::Count {
        return Ok(Datum::Int(values.count() as i64));
    }
    let values = values.filter(|value| !value.is_null());
    match aggregate {
        Aggregate::Count => unreachable!("counted above"),
        Aggregate::CountDistinct => {
            let mut all = bumpalo::collections::Vec::from_iter_in(values, arena);
            let order = |l: &Datum<'_>, r: &Datum<'_>| compare(*l, *r).unwrap_or(Ordering::Equal);
            all.sort_unstable_by(order);
            all.dedup_by(|l, r| order(l, r).is_eq());
            Ok(Datum::Int(all.len() as i64))
        }
        Aggregate::Min => Ok(extreme(values, Ordering::Less)),
        Aggregate::Max => Ok(extreme(values, Ordering::Greater)),
        Aggregate::Sum | Aggregate::Average if field == DataType::Double => {
            let (sum, count) = values.map(double).try_fold((0.0, 0u32), |(sum, count), value| {
                doubles(DoubleOperator::Add, sum, value).map(|sum| (sum, count + 1))
            })?;
            match (count, aggregate) {
                (0, _) => Ok(Datum::Null),
                (_, Aggregate::Sum) => Ok(Datum::Double(sum)),
                _ => Ok(Datum::Double(sum / f64::from(count))),
            }
        }
        Aggregate::Sum | Aggregate::Average => {
            let (sum, count) = values.fold((Some(0i128), 0i128), |(sum, count), value| {
                (sum.and_then(|sum| sum.checked_add(value.exact())), count + 1)
            });
            match (Width::of(result), Digits::of(result)) {
                _ if count == 0 => Ok(Datum::Null),
                (Some(width), _) if aggregate == Aggregate::Sum => {
                    width.fit(sum.and_then(|sum| i64::try_from(sum).ok())).map(Datum::Int)
                }
                (_, Some(digits)) if aggregate == Aggregate::Sum => digits.fit(sum).map(Datum::Numeric),
                (_, Some(digits)) => {
                    let sum = sum.ok_or_else(|| out_of_range(result))?;
                    let shift = result.scale() as i8 - field.scale() as i8;
                    divide_numerics(sum, count, shift, digits).map(Datum::Numeric)
                }
                _ => Err(ill_typed(format_args!("{aggregate:?} of {field} giving {result}"))),
            }
        }
    }
}

fn double(value: Datum<'_>) -> f64 {
    match value {
        Datum::Double(v) => v,
        other => panic!("expected a double, found {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONEY: DataType = DataType::Numeric { precision: 6, scale: 2 };
    const SUM: DataType = DataType::Numeric { precision: 38, scale: 2 };
    const AVERAGE: DataType = DataType::Numeric { precision: 38, scale: 8 };

    fn all(field: DataType, sum: DataType, average: DataType, values: &[Datum<'static>]) -> Vec<String> {
        [
            (Aggregate::Count, DataType::BigInt),
            (Aggregate::CountDistinct, DataType::BigInt),
            (Aggregate::Sum, sum),
            (Aggregate::Min, field),
            (Aggregate::Max, field),
            (Aggregate::Average, average),
        ]
        .into_iter()
        .map(|(which, result)| match aggregate(which, field, result, values.iter().copied(), &Bump::new()) {
            Ok(datum) => datum.to_value(result).to_string(),
            Err(error) => error.state().as_str().into(),
        })
        .collect()
    }

    /// Goal: count, distinct, sum, min, max, average of each family, with and without values.
    #[test]
    fn of_each_family() {
        use Datum::{Double, Int, Null, Numeric};
        assert_eq!(
            all(MONEY, SUM, AVERAGE, &[Numeric(100), Null, Numeric(250), Numeric(100)]),
            ["4", "2", "4.50", "1.00", "2.50", "1.50000000"]
        );
        let average = DataType::Numeric { precision: 38, scale: 6 };
        assert_eq!(
            all(DataType::Int, DataType::BigInt, average, &[Int(1), Int(2), Int(2)]),
            ["3", "2", "5", "1", "2", "1.666667"]
        );
        let double = DataType::Double;
        assert_eq!(
            all(double, double, double, &[Double(1.5), Double(f64::NAN)]),
            ["2", "2", "NaN", "1.5", "NaN", "NaN"]
        );
        let none = ["0", "0", "null", "null", "null", "null"];
        assert_eq!(all(MONEY, SUM, AVERAGE, &[]), none);
        assert_eq!(
            all(DataType::Int, DataType::BigInt, average, &[Null]),
            ["1", "0", "null", "null", "null", "null"]
        );
        let big = [Int(i64::MAX), Int(1)];
        assert_eq!(all(DataType::BigInt, DataType::BigInt, average, &big)[2], "22003");
    }
}
