//! Days and moments by calendar field: the proleptic Gregorian calendar, of any year.
//!
//! Days are counted from 1970-01-01, moments in microseconds from its midnight. The first and last number of each
//! kind are `-infinity` and `infinity`.

use crate::{Error, Result, SqlState, Value};

/// Microseconds in a second.
pub const SECOND_MICROS: i64 = 1_000_000;
/// Microseconds in a minute.
pub const MINUTE_MICROS: i64 = 60 * SECOND_MICROS;
/// Microseconds in an hour.
pub const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;
/// Microseconds in a day.
pub const DAY_MICROS: i64 = 24 * HOUR_MICROS;

/// The first and last day that programs compute with, as days since 1970-01-01: those of the years -9999 to 9999.
pub const DATE_RANGE: (i32, i32) = (-4_371_587, 2_932_896);

/// The first day that a moment can be of, and that PostgreSQL has: 4714-11-24 BC, from which Julian days are counted.
const FIRST_DAY: i64 = -2_440_588;
/// More months than there are between any two moments.
const MONTHS: i64 = 12 * 1_000_000;

/// A day of the proleptic Gregorian calendar; the year before 1 is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// From 1 to 12.
    pub month: u8,
    /// From 1 to 31.
    pub day: u8,
}

/// Days in the 400 years after which the calendar begins again.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const MARCH_TO_EPOCH: i64 = 719_468;

/// The day that is so many days after 1970-01-01, of any year.
///
/// Years are counted from March, so that a leap day is the last of its year.
pub fn civil(days: i64) -> Civil {
    let shifted = days + MARCH_TO_EPOCH;
    let (cycle, day) = (shifted.div_euclid(CYCLE_DAYS), shifted.rem_euclid(CYCLE_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    // From March on, months have 153 days in every five.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Civil { year: 400 * cycle + year + later, month: month as u8, day: day as u8 }
}

/// The days from 1970-01-01 to a day.
pub fn days_of(day: Civil) -> i64 {
    let Civil { year, month, day } = day;
    let (year, month) = (year - i64::from(month <= 2), i64::from((month + 9) % 12));
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    cycle * CYCLE_DAYS + 365 * year + year / 4 - year / 100 + of_year - MARCH_TO_EPOCH
}

/// The days from 1970-01-01 to a date; the month may be any number, and so may the day.
pub fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) as u8 + 1);
    days_of(Civil { year, month, day: 1 }) + day - 1
}

/// The days from 1970-01-01 to a date; `None` if there is no such day.
pub fn checked_days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_there = (1..=12).contains(&month) && (1..=month_length(year, month)).contains(&day);
    is_there.then(|| days_of_date(year, month, day))
}

/// The days from 1970-01-01 to a date, whose year -1 is 1 BC: PostgreSQL's `make_date`.
///
/// # Errors
/// `22008` if there is no such day.
pub fn make_date(year: i64, month: i64, day: i64) -> Result<i64> {
    let counted = if year < 0 { year.checked_add(1) } else { Some(year).filter(|year| *year != 0) };
    let days = counted.filter(|year| year.abs() < MONTHS).and_then(|year| checked_days_of(year, month, day));
    days.ok_or_else(|| {
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        Error::new(SqlState::DATETIME_OVERFLOW, message)
    })
}

/// How many days a month has.
pub fn month_length(year: i64, month: i64) -> i64 {
    days_of_date(year, month + 1, 1) - days_of_date(year, month, 1)
}

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

/// The fields of a moment.
pub fn fields_of(moment: i64) -> Fields {
    let Civil { year, month, day } = civil(moment.div_euclid(DAY_MICROS));
    let time = moment.rem_euclid(DAY_MICROS);
    Fields {
        year,
        month: month.into(),
        day: day.into(),
        hour: time / HOUR_MICROS,
        minute: time / MINUTE_MICROS % 60,
        second: time / SECOND_MICROS % 60,
        micros: time % SECOND_MICROS,
    }
}

/// The moment of fields; `None` beyond what a timestamp holds.
pub fn moment_of(fields: &Fields) -> Option<i64> {
    let time = fields.hour * HOUR_MICROS
        + fields.minute * MINUTE_MICROS
        + fields.second * SECOND_MICROS
        + fields.micros;
    days_of_date(fields.year, fields.month, fields.day).checked_mul(DAY_MICROS)?.checked_add(time)
}

/// A moment moved by months, then days, then microseconds, as PostgreSQL does: the day of the month is cut to the
/// month's end. What is infinite stays so. `None` if there is no such moment.
pub fn moved(moment: i64, months: i64, days: i64, micros: i64) -> Option<i64> {
    if is_infinite(moment) {
        return Some(moment);
    }
    if !(-MONTHS..=MONTHS).contains(&months) {
        return None;
    }
    let (mut day, time) = (moment.div_euclid(DAY_MICROS), moment.rem_euclid(DAY_MICROS));
    if months != 0 {
        let Civil { year, month, day: of_month } = civil(day);
        let month = i64::from(month) + months;
        day = days_of_date(year, month, i64::from(of_month).min(month_length(year, month)));
    }
    let moved = day.checked_add(days)?.checked_mul(DAY_MICROS)?.checked_add(time)?.checked_add(micros)?;
    (moved >= FIRST_DAY * DAY_MICROS && moved != i64::MAX).then_some(moved)
}

/// The first moment of 2000, from which PostgreSQL counts.
const YEAR_2000: i64 = 10_957 * DAY_MICROS;

/// Microseconds, rounded to so many digits of a second; halves away from zero.
pub fn rounded_micros(micros: i64, digits: u8) -> i64 {
    let step = 10_i64.pow(6_u32.saturating_sub(digits.into()));
    let half = step / 2 * micros.signum();
    micros.saturating_add(half) / step * step
}

/// A moment, rounded to so many digits of a second; halves away from the year 2000. What is infinite stays so.
pub fn rounded_moment(moment: i64, digits: u8) -> i64 {
    match moment.checked_sub(YEAR_2000) {
        Some(since) if !is_infinite(moment) => rounded_micros(since, digits).saturating_add(YEAR_2000),
        _ => moment,
    }
}

/// Whether a moment is `infinity` or `-infinity`.
pub fn is_infinite(moment: i64) -> bool {
    matches!(moment, i64::MAX | i64::MIN)
}

/// The moment of a `timestamp`, or at which a `date` begins; `None` for other values, and days beyond all moments.
pub fn moment_of_value(value: &Value) -> Option<i64> {
    match value {
        Value::Date(i32::MAX) => Some(i64::MAX),
        Value::Date(i32::MIN) => Some(i64::MIN),
        Value::Date(days) => i64::from(*days).checked_mul(DAY_MICROS),
        Value::Timestamp(moment) => Some(*moment),
        _ => None,
    }
}

/// Day of the week, Sunday 0.
pub fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// Day of the week, Monday 1 (ISO 8601).
pub fn iso_weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// The year and number of the week that has the day: weeks begin on Mondays, and the first of a year has its first
/// Thursday (ISO 8601).
pub fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - iso_weekday(days) + 4;
    let Civil { year, .. } = civil(thursday);
    (year, (thursday - days_of_date(year, 1, 1)) / 7 + 1)
}

/// `22008`
pub fn out_of_range(what: &str) -> Error {
    Error::new(SqlState::DATETIME_OVERFLOW, format!("{what} out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every day has one date and comes after the day before it, over more than a cycle of leap years.
    #[test]
    fn days_and_dates_are_each_others() {
        let mut before = civil(-200_000);
        for days in -199_999..=200_000 {
            let day = civil(days);
            assert_eq!(days_of(day), days);
            let next = match (before.month, before.day) {
                (12, 31) => (before.year + 1, 1, 1),
                (month, day) if i64::from(day) == month_length(before.year, month.into()) => {
                    (before.year, month + 1, 1)
                }
                (month, day) => (before.year, month, day + 1),
            };
            assert_eq!((day.year, day.month, day.day), next);
            before = day;
        }
        let lengths = |year| (1..=12).map(|month| month_length(year, month)).collect::<Vec<_>>();
        assert_eq!(lengths(2023), [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]);
        assert_eq!([2000, 1900, 2024, 0].map(|year| month_length(year, 2)), [29, 28, 29, 29]);
        assert_eq!(civil(0), Civil { year: 1970, month: 1, day: 1 });
        assert_eq!(DATE_RANGE, (days_of_date(-9999, 1, 1) as i32, days_of_date(9999, 12, 31) as i32));
        assert_eq!(checked_days_of(2023, 2, 29), None);
        assert_eq!(make_date(1970, 1, 2).unwrap(), 1);
        assert_eq!(make_date(-44, 3, 15).unwrap(), days_of_date(-43, 3, 15));
        assert!(
            make_date(0, 1, 1).is_err() && make_date(1, 13, 1).is_err() && make_date(i64::MIN, 1, 1).is_err()
        );
    }
}
