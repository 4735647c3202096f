//! Conversions between types: [`Value::cast`] on [`Datum`]s.
//!
//! `Value::cast` is what a cast means. The conversions that programs make all the time (between
//! integers and numerics, text to bounded text) are computed here without a detour through owned
//! values; whatever they cannot do, errors included, is left to it.

use super::arithmetic::{Digits, Width, rescale};
use super::binary;
use bumpalo::Bump;
use fabius_value::data_type::Family;
use fabius_value::{DataType, Datum, Result, Value, calendar, value::fit_text};

/// A conversion resolved for its types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    from: DataType,
    to: DataType,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The value stays as it is.
    Same,
    /// An integer to a narrower one.
    Narrow(Width),
    /// An exact number to a numeric.
    Rescale { from: u8, to: Digits },
    /// A numeric to an integer.
    Round { from: u8, to: Width },
    /// Text to a type that bounds it.
    Fit,
    /// Days to microseconds.
    DateToTimestamp,
    /// `Value::cast`.
    General,
}

impl Cast {
    /// Resolves a conversion. One that does not exist fails when it is applied.
    pub fn of(from: DataType, to: DataType) -> Cast {
        let way = match (from.family(), to.family()) {
            _ if from == to => Way::Same,
            (Family::Integer | Family::Numeric, Family::Integer | Family::Numeric)
                if from.scale() == to.scale() && contains(to, from) && from.family() == to.family() =>
            {
                Way::Same
            }
            (Family::Integer | Family::Numeric, Family::Integer | Family::Numeric) => {
                match (Width::of(to), Digits::of(to)) {
                    (Some(to), _) if from.family() == Family::Integer => Way::Narrow(to),
                    (Some(to), _) => Way::Round { from: from.scale(), to },
                    (_, Some(to)) => Way::Rescale { from: from.scale(), to },
                    (None, None) => Way::General,
                }
            }
            (Family::Text, Family::Text) => match (characters(from), to) {
                (_, DataType::Text { limit: None }) => Way::Same,
                (Some(most), DataType::Text { limit: Some(limit) }) if most <= limit => Way::Same,
                (Some(most), DataType::Char { length })
                    if most <= length && matches!(from, DataType::Char { .. }) =>
                {
                    Way::Same
                }
                _ => Way::Fit,
            },
            (Family::Date, Family::Timestamp) => Way::DateToTimestamp,
            _ => Way::General,
        };
        Cast { from, to, way }
    }

    /// Whether every value stays as it is.
    pub fn is_identity(self) -> bool {
        self.way == Way::Same
    }

    /// Whether it can fail on a value of its source type.
    pub fn can_fail(self) -> bool {
        match self.way {
            Way::Same => false,
            Way::Rescale { from, to } => {
                let whole = |data_type: DataType| match data_type {
                    DataType::Numeric { precision, scale } => precision - scale,
                    DataType::SmallInt => 5,
                    DataType::Int => 10,
                    _ => 19,
                };
                // Rounding away digits can carry into one more digit before the point.
                whole(self.from) + u8::from(from > to.scale) > to.precision - to.scale
            }
            // There are more days than timestamps: those of far timestamps themselves, rounded down.
            Way::Narrow(_) | Way::Round { .. } | Way::Fit | Way::DateToTimestamp | Way::General => true,
        }
    }

    /// Whether a value stays as it is, converted: what most conversions come to.
    #[inline]
    pub fn keeps(self, operand: &Datum<'_>) -> bool {
        match (self.way, operand) {
            (_, Datum::Null) | (Way::Same, _) => true,
            (Way::Narrow(width), Datum::Int(v)) => width.has(*v),
            (Way::Rescale { from, to }, Datum::Numeric(v)) => from == to.scale && to.has(*v),
            _ => false,
        }
    }

    /// Converts a value.
    ///
    /// # Errors
    /// Those of [`Value::cast`].
    #[inline]
    pub fn apply<'a>(self, operand: Datum<'a>, arena: &'a Bump) -> Result<Datum<'a>> {
        if self.keeps(&operand) {
            return Ok(operand);
        }
        match (self.way, operand) {
            (Way::Rescale { from, to }, operand) => {
                if let Some(mantissa) = rescale(operand.exact(), from, to.scale)
                    && let Ok(mantissa) = to.fit(Some(mantissa))
                {
                    return Ok(Datum::Numeric(mantissa));
                }
            }
            (Way::Round { from, to }, Datum::Numeric(v)) => {
                let whole = rescale(v, from, 0).and_then(|v| i64::try_from(v).ok());
                if let Ok(v) = to.fit(whole) {
                    return Ok(Datum::Int(v));
                }
            }
            (Way::Fit, Datum::Text(v)) => return fit_text(v, self.to).map(Datum::Text),
            (Way::DateToTimestamp, Datum::Int(v)) => {
                if let Some(micros) = v.checked_mul(calendar::DAY_MICROS) {
                    return Ok(Datum::Int(micros));
                }
            }
            _ => {}
        }
        self.apply_generally(operand, arena)
    }

    /// What the cast means: through owned values.
    #[cold]
    fn apply_generally<'a>(self, operand: Datum<'a>, arena: &'a Bump) -> Result<Datum<'a>> {
        let value = operand.to_value(self.from).cast(self.to)?;
        Ok(match &value {
            Value::Text(text) => Datum::Text(binary::join_text(&[text], arena)),
            Value::Bytea(bytes) => Datum::Bytes(binary::join_bytes(&[bytes], arena)),
            Value::Boolean(v) => Datum::Boolean(*v),
            Value::Double(v) => Datum::Double(*v),
            Value::Numeric(v) => Datum::Numeric(v.mantissa),
            Value::Date(v) => Datum::Int((*v).into()),
            Value::Timestamp(v) => Datum::Int(*v),
            other => other.as_integer().map_or(Datum::Null, Datum::Int),
        })
    }
}

/// Whether every value of the exact number type `inner` is one of `outer`, scales aside.
fn contains(outer: DataType, inner: DataType) -> bool {
    match (outer.exact_range(), inner.exact_range()) {
        (Some(outer), Some(inner)) => outer.0 <= inner.0 && inner.1 <= outer.1,
        _ => false,
    }
}

fn characters(data_type: DataType) -> Option<u32> {
    match data_type {
        DataType::Text { limit } => limit,
        DataType::Char { length } => Some(length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn types() -> impl Strategy<Value = DataType> {
        prop_oneof![
            Just(DataType::Boolean),
            Just(DataType::SmallInt),
            Just(DataType::Int),
            Just(DataType::BigInt),
            (1u8..=38)
                .prop_flat_map(|precision| (Just(precision), 0..=precision))
                .prop_map(|(precision, scale)| DataType::Numeric { precision, scale }),
            Just(DataType::Double),
            proptest::option::of(1u32..6).prop_map(|limit| DataType::Text { limit }),
            (1u32..6).prop_map(|length| DataType::Char { length }),
            Just(DataType::Bytea),
            Just(DataType::Date),
            Just(DataType::Timestamp),
        ]
    }

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<bool>().prop_map(Value::Boolean),
            any::<i64>().prop_map(Value::BigInt),
            (-200_000i64..200_000).prop_map(Value::BigInt),
            any::<f64>().prop_map(Value::Double),
            (-1e6..1e6).prop_map(Value::Double),
            "[ a-zé]{0,8}".prop_map(Value::Text),
            "-?[0-9]{1,6}(\\.[0-9]{0,3})?".prop_map(Value::Text),
            "20[0-9]{2}-0[1-9]-[0-3][0-9]".prop_map(Value::Text),
            proptest::collection::vec(any::<u8>(), 0..5).prop_map(Value::Bytea),
            (-1_000_000i32..1_000_000).prop_map(Value::Date),
            any::<i32>().prop_map(Value::Date),
            any::<i64>().prop_map(Value::Timestamp),
            Just(Value::Timestamp(i64::MIN)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        /// Goal: the short ways give what `Value::cast` gives, and `can_fail` does not promise too much.
        #[test]
        fn agrees_with_value_cast(value in values(), from in types(), to in types()) {
            let Ok(value) = value.cast(from) else { return Ok(()) };
            let arena = Bump::new();
            let expected = value.cast(to);
            let cast = Cast::of(from, to);
            let got = cast.apply(Datum::from_value(&value), &arena).map(|datum| datum.to_value(to));
            prop_assert!(cast.can_fail() || got.is_ok(), "{:?} failed on {}", cast, value);
            prop_assert_eq!(format!("{got:?}"), format!("{expected:?}"));
        }
    }
}
