//! Dates and times by calendar field: the proleptic Gregorian calendar.
//!
//! Days are counted from 1970-01-01, microseconds from its midnight.

use crate::interval::Interval;
use fabius_value::calendar::{self, Civil};
use fabius_value::{Error, SqlState, Value};

/// Microseconds of a second, an hour and a day.
pub const SECOND: i64 = 1_000_000;
/// See [`SECOND`].
pub const HOUR: i64 = 3600 * SECOND;
/// See [`SECOND`].
pub const DAY: i64 = 24 * HOUR;

/// A moment by its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fields {
    /// Year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
    /// 0 to 999,999.
    pub micros: i64,
}

/// `22008`
pub fn out_of_range(what: &str) -> Error {
    Error::new(SqlState::DATETIME_OVERFLOW, format!("{what} out of range"))
}

/// Days since 1970-01-01 of a date; the month may be any number, the day too.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) as u8 + 1);
    calendar::days_of(Civil { year, month, day: 1 }) + day - 1
}

/// Year, month and day of days since 1970-01-01.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let Civil { year, month, day } = calendar::civil(days);
    (year, month.into(), day.into())
}

/// How many days a month has.
pub fn month_length(year: i64, month: i64) -> i64 {
    days_of(year, month + 1, 1) - days_of(year, month, 1)
}

/// The fields of a moment.
pub fn fields_of(micros: i64) -> Fields {
    let (year, month, day) = date_of(micros.div_euclid(DAY));
    let rest = micros.rem_euclid(DAY);
    Fields {
        year,
        month,
        day,
        hour: rest / HOUR,
        minute: rest / (60 * SECOND) % 60,
        second: rest / SECOND % 60,
        micros: rest % SECOND,
    }
}

/// The moment of fields; `None` beyond what a timestamp holds.
pub fn moment_of(fields: &Fields) -> Option<i64> {
    let time = fields.hour * HOUR + fields.minute * 60 * SECOND + fields.second * SECOND + fields.micros;
    days_of(fields.year, fields.month, fields.day).checked_mul(DAY)?.checked_add(time)
}

/// The first day that a moment can be of: the first of the Julian calendar.
const FIRST_DAY: i64 = -2_440_588;
/// More months than there are between any two moments.
const MONTHS: i64 = 12 * 1_000_000;

/// A moment moved by months, then days, then microseconds, as PostgreSQL does: the day of the month is cut to the month's end. What is
/// infinite stays so. `None` if there is no such moment.
pub fn add_interval(micros: i64, interval: Interval) -> Option<i64> {
    if is_infinite(micros) {
        return Some(micros);
    }
    let months = i64::from(interval.months);
    if !(-MONTHS..=MONTHS).contains(&months) {
        return None;
    }
    let (day, time) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let day = if months == 0 {
        day
    } else {
        let (year, month, of_month) = date_of(day);
        let (year, month) =
            (year + (month - 1 + months).div_euclid(12), (month - 1 + months).rem_euclid(12) + 1);
        days_of(year, month, of_month.min(month_length(year, month)))
    };
    let moment = day.checked_add(interval.days.into())?.checked_mul(DAY)?;
    let moment = moment.checked_add(time)?.checked_add(interval.micros)?;
    (moment >= FIRST_DAY * DAY && moment != i64::MAX).then_some(moment)
}

/// Whether a moment is `infinity` or `-infinity`.
pub fn is_infinite(moment: i64) -> bool {
    matches!(moment, i64::MAX | i64::MIN)
}

/// The value of a `date` or `timestamp` in microseconds.
pub fn micros_of(value: &Value) -> Option<i64> {
    match value {
        Value::Date(i32::MAX) => Some(i64::MAX),
        Value::Date(i32::MIN) => Some(i64::MIN),
        Value::Date(days) => i64::from(*days).checked_mul(DAY),
        Value::Timestamp(micros) => Some(*micros),
        _ => None,
    }
}

/// Day of the week, Sunday 0.
pub fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// ISO 8601 year and week of a day.
pub fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (weekday(days) + 6) % 7 + 3;
    let (year, ..) = date_of(thursday);
    (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
}
