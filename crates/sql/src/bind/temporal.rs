//! What can be computed of moments and intervals before a program runs.

use super::bound::Interval;
use crate::query::calendar::add_interval;
use crate::text_format::interval;
use fabius_value::Value;
use fabius_value::calendar::DAY_MICROS;

impl From<interval::Interval> for Interval {
    fn from(read: interval::Interval) -> Interval {
        Interval { months: read.months.into(), days: read.days.into(), micros: read.micros }
    }
}

/// An interval taken several times.
pub(super) fn scaled(interval: Interval, by: i64) -> Option<Interval> {
    Some(Interval {
        months: interval.months.checked_mul(by)?,
        days: interval.days.checked_mul(by)?,
        micros: interval.micros.checked_mul(by)?,
    })
}

/// Two intervals together.
pub(super) fn sum(left: Interval, right: Interval) -> Option<Interval> {
    Some(Interval {
        months: left.months.checked_add(right.months)?,
        days: left.days.checked_add(right.days)?,
        micros: left.micros.checked_add(right.micros)?,
    })
}

/// A moment moved by an interval: months keep the day of the month, or take the last there is. What is infinite stays so.
pub(super) fn moved(moment: i64, interval: Interval) -> Option<i64> {
    match moment {
        i64::MAX | i64::MIN => Some(moment),
        _ => add_interval(moment, interval.months, interval.days, interval.micros),
    }
}

/// The value of a `date` or `timestamp` in microseconds.
pub(super) fn micros_of(value: &Value) -> Option<i64> {
    match value {
        Value::Date(i32::MAX) => Some(i64::MAX),
        Value::Date(i32::MIN) => Some(i64::MIN),
        Value::Date(days) => i64::from(*days).checked_mul(DAY_MICROS),
        Value::Timestamp(micros) => Some(*micros),
        _ => None,
    }
}
