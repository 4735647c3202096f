//! Fields of dates and timestamps.

use crate::ir::DateField;
use fabius_value::calendar::{self, Civil, DAY_MICROS};
use fabius_value::{DataType, Datum, Error, Result, SqlState, decimal};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;

/// Names of fields that PostgreSQL knows as units of time: plurals and the usual abbreviations.
const UNITS: &[(&str, DateField)] = &[
    ("microseconds", DateField::Microseconds),
    ("microsecond", DateField::Microseconds),
    ("us", DateField::Microseconds),
    ("usec", DateField::Microseconds),
    ("usecs", DateField::Microseconds),
    ("milliseconds", DateField::Milliseconds),
    ("millisecond", DateField::Milliseconds),
    ("ms", DateField::Milliseconds),
    ("msec", DateField::Milliseconds),
    ("msecs", DateField::Milliseconds),
    ("second", DateField::Second),
    ("seconds", DateField::Second),
    ("sec", DateField::Second),
    ("secs", DateField::Second),
    ("s", DateField::Second),
    ("minute", DateField::Minute),
    ("minutes", DateField::Minute),
    ("min", DateField::Minute),
    ("mins", DateField::Minute),
    ("m", DateField::Minute),
    ("hour", DateField::Hour),
    ("hours", DateField::Hour),
    ("hr", DateField::Hour),
    ("hrs", DateField::Hour),
    ("h", DateField::Hour),
    ("day", DateField::Day),
    ("days", DateField::Day),
    ("d", DateField::Day),
    ("week", DateField::Week),
    ("weeks", DateField::Week),
    ("w", DateField::Week),
    ("month", DateField::Month),
    ("months", DateField::Month),
    ("mon", DateField::Month),
    ("mons", DateField::Month),
    ("quarter", DateField::Quarter),
    ("qtr", DateField::Quarter),
    ("year", DateField::Year),
    ("years", DateField::Year),
    ("yr", DateField::Year),
    ("yrs", DateField::Year),
    ("y", DateField::Year),
    ("decade", DateField::Decade),
    ("decades", DateField::Decade),
    ("dec", DateField::Decade),
    ("century", DateField::Century),
    ("centuries", DateField::Century),
    ("c", DateField::Century),
    ("millennium", DateField::Millennium),
    ("millennia", DateField::Millennium),
    ("mil", DateField::Millennium),
    ("mils", DateField::Millennium),
];

/// Names of fields that are no units.
const PARTS: &[(&str, DateField)] = &[
    ("epoch", DateField::Epoch),
    ("dow", DateField::DayOfWeek),
    ("isodow", DateField::IsoDayOfWeek),
    ("doy", DateField::DayOfYear),
    ("isoyear", DateField::IsoYear),
];

fn named(table: &[(&str, DateField)], name: &str) -> Option<DateField> {
    table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, field)| *field)
}

impl DateField {
    /// A field by any of its names, whatever their case.
    pub fn parse(name: &str) -> Option<DateField> {
        named(UNITS, name).or_else(|| named(PARTS, name))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut all = UNITS.iter().chain(PARTS);
        all.find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }

    /// The type that `extract` gives it.
    pub fn extracted(self, from: DataType) -> DataType {
        let scale = match self {
            DateField::Epoch if from == DataType::Date => 0,
            DateField::Epoch | DateField::Second => 6,
            DateField::Milliseconds => 3,
            _ => 0,
        };
        DataType::Numeric { precision: 20, scale }
    }

    /// Whether it is a part of a day, which a date does not have.
    pub fn is_time(self) -> bool {
        use DateField::{Hour, Microseconds, Milliseconds, Minute, Second};
        matches!(self, Microseconds | Milliseconds | Second | Minute | Hour)
    }
}

/// The field of a timestamp (microseconds since 1970), times ten to the scale of
/// [`DateField::extracted`].
pub(super) fn extract(field: DateField, micros: i64) -> i64 {
    let time = micros.rem_euclid(DAY_MICROS);
    match field {
        DateField::Microseconds | DateField::Milliseconds | DateField::Second => time % (60 * SECOND),
        DateField::Minute => time / (60 * SECOND) % 60,
        DateField::Hour => time / HOUR,
        DateField::Epoch => micros,
        field => extract_from_day(field, micros.div_euclid(DAY_MICROS)),
    }
}

/// A field that is no part of a day, of a day since 1970-01-01.
pub(super) fn extract_from_day(field: DateField, days: i64) -> i64 {
    let Civil { year, month, day } = calendar::civil(days);
    // There is no year 0: 1 BC is -1.
    let counted = |year: i64| if year > 0 { year } else { year - 1 };
    let weekday = (days + 4).rem_euclid(7);
    match field {
        DateField::Day => day.into(),
        DateField::Week => iso_week(days).1,
        DateField::Month => month.into(),
        DateField::Quarter => i64::from((month - 1) / 3 + 1),
        DateField::Year => counted(year),
        DateField::Decade => year.div_euclid(10),
        DateField::Century => group(year, 100),
        DateField::Millennium => group(year, 1000),
        DateField::DayOfWeek => weekday,
        DateField::IsoDayOfWeek => (weekday + 6) % 7 + 1,
        DateField::DayOfYear => days - calendar::days_of(Civil { year, month: 1, day: 1 }) + 1,
        DateField::IsoYear => counted(iso_week(days).0),
        time => unreachable!("{time:?} is a part of a day"),
    }
}

/// The number of the group of so many years, from 1 (the years 1 to 100) or -1 (100 BC to 1 BC).
fn group(year: i64, years: i64) -> i64 {
    if year > 0 { (year + years - 1) / years } else { -((years - year) / years) }
}

/// The year and number of the week that has the day: weeks begin on Mondays, and the first of a
/// year has its first Thursday (ISO 8601).
fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let year = calendar::civil(thursday).year;
    let first = calendar::days_of(Civil { year, month: 1, day: 1 });
    (year, (thursday - first) / 7 + 1)
}

/// `date_part`: the field as a double.
///
/// # Errors
/// `22023` for a name of no field.
pub(super) fn date_part<'a>(name: &str, micros: i64) -> Result<Datum<'a>> {
    let field = DateField::parse(name).ok_or_else(|| unknown(name))?;
    let scale = field.extracted(DataType::Timestamp).scale();
    Ok(Datum::Double(extract(field, micros) as f64 / decimal::power_of_ten(scale) as f64))
}

/// `date_trunc`: the start of the unit of time that the timestamp is in.
///
/// # Errors
/// `22023` for a name of no unit, `22008` if the start is before the first timestamp.
pub(super) fn date_truncate<'a>(name: &str, micros: i64) -> Result<Datum<'a>> {
    let unit = named(UNITS, name).ok_or_else(|| unknown(name))?;
    let days = micros.div_euclid(DAY_MICROS);
    let Civil { year, month, .. } = calendar::civil(days);
    let month_start = |year, month| calendar::days_of(Civil { year, month, day: 1 });
    let day = match unit {
        DateField::Microseconds => return Ok(Datum::Int(micros)),
        DateField::Milliseconds => return start_of(micros, 1000),
        DateField::Second => return start_of(micros, SECOND),
        DateField::Minute => return start_of(micros, 60 * SECOND),
        DateField::Hour => return start_of(micros, HOUR),
        DateField::Week => days - (days + 3).rem_euclid(7),
        DateField::Month => month_start(year, month),
        DateField::Quarter => month_start(year, (month - 1) / 3 * 3 + 1),
        DateField::Year => month_start(year, 1),
        DateField::Decade => month_start(year.div_euclid(10) * 10, 1),
        DateField::Century => month_start(first_year(year, 100), 1),
        DateField::Millennium => month_start(first_year(year, 1000), 1),
        _ => days,
    };
    day.checked_mul(DAY_MICROS).map(Datum::Int).ok_or_else(overflow)
}

/// The first year of its century or millennium.
fn first_year(year: i64, years: i64) -> i64 {
    (year - 1).div_euclid(years) * years + 1
}

fn start_of<'a>(micros: i64, unit: i64) -> Result<Datum<'a>> {
    micros.checked_sub(micros.rem_euclid(unit)).map(Datum::Int).ok_or_else(overflow)
}

/// The same time of the day so many months later; `None` if there is no such timestamp.
pub(super) fn add_months(micros: i64, months: i64) -> Option<i64> {
    let (days, time) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
    let Civil { year, month, day } = calendar::civil(days);
    let count = year.checked_mul(12)?.checked_add(i64::from(month) - 1)?.checked_add(months)?;
    // No timestamp is a million years away.
    let year = Some(count.div_euclid(12)).filter(|year| year.abs() < 1_000_000)?;
    let month = count.rem_euclid(12) as u8 + 1;
    let day = day.min(days_of_month(year, month));
    calendar::days_of(Civil { year, month, day }).checked_mul(DAY_MICROS)?.checked_add(time)
}

fn days_of_month(year: i64, month: u8) -> u8 {
    let start = |year, month| calendar::days_of(Civil { year, month, day: 1 });
    let next = if month == 12 { start(year + 1, 1) } else { start(year, month + 1) };
    (next - start(year, month)) as u8
}

/// A date as days since 1970.
///
/// # Errors
/// `22008` if there is no such day.
pub(super) fn make_date(year: i64, month: i64, day: i64) -> Result<i64> {
    let refuse = || {
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        Error::new(SqlState::DATETIME_OVERFLOW, message)
    };
    let (first, last) = calendar::DATE_RANGE;
    let counted = if year < 0 { year + 1 } else { year };
    if year == 0 || !(-9999..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 {
        return Err(refuse());
    }
    if day > days_of_month(counted, month as u8).into() {
        return Err(refuse());
    }
    let days = calendar::days_of(Civil { year: counted, month: month as u8, day: day as u8 });
    if (first.into()..=last.into()).contains(&days) { Ok(days) } else { Err(refuse()) }
}

pub(super) fn overflow() -> Error {
    Error::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range")
}

fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(80).collect::<String>().to_lowercase();
    let message = format!("unit \"{shown}\" not recognized for type timestamp without time zone");
    Error::new(SqlState::INVALID_PARAMETER, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::calendar::{format_timestamp, parse_timestamp};

    /// Goal: what PostgreSQL 15 extracts.
    #[test]
    fn fields() {
        let part = |name, moment| match date_part(name, parse_timestamp(moment).unwrap()) {
            Ok(Datum::Double(part)) => part.to_string(),
            other => format!("{other:?}"),
        };
        let moment = "2021-01-03 10:20:30.5";
        for (field, expected) in [
            ("second", "30.5"),
            ("Milliseconds", "30500"),
            ("microseconds", "30500000"),
            ("minute", "20"),
            ("hour", "10"),
            ("week", "53"),
            ("isoyear", "2020"),
            ("dow", "0"),
            ("isodow", "7"),
            ("doy", "3"),
            ("quarter", "1"),
            ("decade", "202"),
            ("century", "21"),
            ("millennium", "3"),
            ("epoch", "1609669230.5"),
        ] {
            assert_eq!(part(field, moment), expected, "{field}");
        }
        assert_eq!(part("century", "2000-06-01 00:00:00"), "20");
        assert_eq!(part("year", "-000043-03-15 00:00:00"), "-44");
        assert_eq!(part("century", "-000043-03-15 00:00:00"), "-1");
        assert_eq!(part("epoch", "1969-12-31 23:59:59"), "-1");
        assert_eq!(date_part("foo", 0).unwrap_err().state(), SqlState::INVALID_PARAMETER);
    }

    /// Goal: months are added as PostgreSQL 15 adds them, and days that are not there are refused.
    #[test]
    fn months_and_days() {
        let later =
            |moment, months| add_months(parse_timestamp(moment).unwrap(), months).map(format_timestamp);
        assert_eq!(later("2024-01-31 10:00:00", 1).unwrap(), "2024-02-29 10:00:00");
        assert_eq!(later("2024-03-31 10:00:00", -13).unwrap(), "2023-02-28 10:00:00");
        assert_eq!(later("2024-12-15 00:00:00", 1).unwrap(), "2025-01-15 00:00:00");
        assert_eq!(later("2024-12-15 00:00:00", i64::MAX), None);
        assert_eq!(make_date(1970, 1, 2).unwrap(), 1);
        assert!(
            make_date(2023, 2, 29).is_err() && make_date(0, 1, 1).is_err() && make_date(1, 13, 1).is_err()
        );
        assert_eq!(calendar::civil(make_date(-44, 3, 15).unwrap()), Civil { year: -43, month: 3, day: 15 });
    }

    /// Goal: what PostgreSQL 15 truncates to.
    #[test]
    fn truncation() {
        let start = |unit, moment| match date_truncate(unit, parse_timestamp(moment).unwrap()) {
            Ok(Datum::Int(micros)) => format_timestamp(micros),
            other => format!("{other:?}"),
        };
        let moment = "2021-06-03 10:20:30.123456";
        for (unit, expected) in [
            ("microseconds", "2021-06-03 10:20:30.123456"),
            ("ms", "2021-06-03 10:20:30.123"),
            ("second", "2021-06-03 10:20:30"),
            ("minute", "2021-06-03 10:20:00"),
            ("hour", "2021-06-03 10:00:00"),
            ("day", "2021-06-03 00:00:00"),
            ("week", "2021-05-31 00:00:00"),
            ("month", "2021-06-01 00:00:00"),
            ("quarter", "2021-04-01 00:00:00"),
            ("YEARS", "2021-01-01 00:00:00"),
            ("decade", "2020-01-01 00:00:00"),
            ("century", "2001-01-01 00:00:00"),
            ("millennium", "2001-01-01 00:00:00"),
        ] {
            assert_eq!(start(unit, moment), expected, "{unit}");
        }
        assert_eq!(start("week", "2021-01-03 10:00:00"), "2020-12-28 00:00:00");
        assert_eq!(start("century", "2000-06-03 00:00:00"), "1901-01-01 00:00:00");
        assert!(date_truncate("dow", 0).is_err());
        assert!(date_truncate("hour", i64::MIN).is_err());
        assert!(date_truncate("millennium", i64::MIN).is_err());
    }
}
