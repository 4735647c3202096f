//! Fields of days and moments, which `extract`, `date_part` and `date_trunc` name.

use crate::DataType;
use crate::calendar::{
    self, Civil, DAY_MICROS, HOUR_MICROS, MINUTE_MICROS, SECOND_MICROS, civil, days_of_date, is_infinite,
};

/// A part of a date or timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateField {
    /// Microseconds of the minute.
    Microseconds,
    /// Milliseconds of the minute, with a fraction.
    Milliseconds,
    /// Seconds, with a fraction.
    Second,
    /// Minutes of the hour.
    Minute,
    /// Hours of the day.
    Hour,
    /// Days of the month.
    Day,
    /// The week of ISO 8601.
    Week,
    /// The month.
    Month,
    /// The quarter.
    Quarter,
    /// The year.
    Year,
    /// The year divided by ten.
    Decade,
    /// The century; the 21st began in 2001.
    Century,
    /// The millennium.
    Millennium,
    /// Seconds since 1970-01-01.
    Epoch,
    /// The day of the week, Sunday being 0.
    DayOfWeek,
    /// The day of the week, Sunday being 7.
    IsoDayOfWeek,
    /// The day of the year.
    DayOfYear,
    /// The year that the week of ISO 8601 belongs to.
    IsoYear,
}

/// Names of fields that PostgreSQL knows as units of time: plurals and the usual abbreviations.
const UNITS: &[(&str, DateField)] = &[
    ("microseconds", DateField::Microseconds),
    ("microsecond", DateField::Microseconds),
    ("us", DateField::Microseconds),
    ("usec", DateField::Microseconds),
    ("usecs", DateField::Microseconds),
    ("usecond", DateField::Microseconds),
    ("useconds", DateField::Microseconds),
    ("milliseconds", DateField::Milliseconds),
    ("millisecond", DateField::Milliseconds),
    ("ms", DateField::Milliseconds),
    ("msec", DateField::Milliseconds),
    ("msecs", DateField::Milliseconds),
    ("msecond", DateField::Milliseconds),
    ("mseconds", DateField::Milliseconds),
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
    ("decs", DateField::Decade),
    ("century", DateField::Century),
    ("centuries", DateField::Century),
    ("c", DateField::Century),
    ("cent", DateField::Century),
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
        DateField::parse_unit(name).or_else(|| named(PARTS, name))
    }

    /// A field that is a unit of time, which moments can be cut to.
    pub fn parse_unit(name: &str) -> Option<DateField> {
        named(UNITS, name)
    }

    /// The field's first name.
    pub fn name(self) -> &'static str {
        let mut all = UNITS.iter().chain(PARTS);
        all.find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }

    /// Digits after the point of the field of a moment.
    pub fn scale(self) -> u8 {
        match self {
            DateField::Epoch | DateField::Second => 6,
            DateField::Milliseconds => 3,
            _ => 0,
        }
    }

    /// The type that `extract` of the field gives.
    pub fn extracted(self, from: DataType) -> DataType {
        let scale = match self {
            DateField::Epoch if from == DataType::Date => 0,
            field => field.scale(),
        };
        DataType::Numeric { precision: 20, scale }
    }

    /// Whether it is a part of a day, which a date does not have.
    pub fn is_time(self) -> bool {
        use DateField::{Hour, Microseconds, Milliseconds, Minute, Second};
        matches!(self, Microseconds | Milliseconds | Second | Minute | Hour)
    }

    /// Whether the field of ever later moments grows without end.
    pub fn is_unbounded(self) -> bool {
        use DateField::{Century, Decade, Epoch, IsoYear, Millennium, Year};
        matches!(self, Year | Decade | Century | Millennium | IsoYear | Epoch)
    }

    /// The field of a moment, times ten to the power of [`DateField::scale`].
    pub fn of_moment(self, moment: i64) -> i64 {
        let time = moment.rem_euclid(DAY_MICROS);
        match self {
            DateField::Microseconds | DateField::Milliseconds | DateField::Second => time % MINUTE_MICROS,
            DateField::Minute => time / MINUTE_MICROS % 60,
            DateField::Hour => time / HOUR_MICROS,
            DateField::Epoch => moment,
            field => field.of_day(moment.div_euclid(DAY_MICROS)),
        }
    }

    /// The field of a day since 1970-01-01: 0 if it is a part of a day, seconds if it is [`DateField::Epoch`].
    pub fn of_day(self, days: i64) -> i64 {
        let Civil { year, month, day } = civil(days);
        // There is no year 0: 1 BC is -1.
        let counted = |year: i64| if year > 0 { year } else { year - 1 };
        match self {
            DateField::Day => day.into(),
            DateField::Week => calendar::iso_week(days).1,
            DateField::Month => month.into(),
            DateField::Quarter => i64::from((month - 1) / 3 + 1),
            DateField::Year => counted(year),
            DateField::Decade => year.div_euclid(10),
            DateField::Century => group(year, 100),
            DateField::Millennium => group(year, 1000),
            DateField::DayOfWeek => calendar::weekday(days),
            DateField::IsoDayOfWeek => calendar::iso_weekday(days),
            DateField::DayOfYear => days - days_of_date(year, 1, 1) + 1,
            DateField::IsoYear => counted(calendar::iso_week(days).0),
            DateField::Epoch => days * (DAY_MICROS / SECOND_MICROS),
            time => {
                debug_assert!(time.is_time());
                0
            }
        }
    }

    /// The moment at which the unit of time that a moment is in began: PostgreSQL's `date_trunc`. What is infinite
    /// stays so. `None` if it began before the first moment.
    pub fn start(self, moment: i64) -> Option<i64> {
        if is_infinite(moment) {
            return Some(moment);
        }
        let cut = |unit: i64| moment.checked_sub(moment.rem_euclid(unit));
        let days = moment.div_euclid(DAY_MICROS);
        let Civil { year, month, .. } = civil(days);
        let day = match self {
            DateField::Microseconds => return Some(moment),
            DateField::Milliseconds => return cut(1000),
            DateField::Second => return cut(SECOND_MICROS),
            DateField::Minute => return cut(MINUTE_MICROS),
            DateField::Hour => return cut(HOUR_MICROS),
            DateField::Week => days + 1 - calendar::iso_weekday(days),
            DateField::Month => days_of_date(year, month.into(), 1),
            DateField::Quarter => days_of_date(year, i64::from((month - 1) / 3 * 3 + 1), 1),
            DateField::Year => days_of_date(year, 1, 1),
            DateField::Decade => days_of_date(year.div_euclid(10) * 10, 1, 1),
            DateField::Century => days_of_date(first_year(year, 100), 1, 1),
            DateField::Millennium => days_of_date(first_year(year, 1000), 1, 1),
            _ => days,
        };
        day.checked_mul(DAY_MICROS)
    }
}

/// The number of the group of so many years, from 1 (the years 1 to 100) or -1 (100 BC to 1 BC).
fn group(year: i64, years: i64) -> i64 {
    if year > 0 { (year + years - 1) / years } else { -((years - year) / years) }
}

/// The first year of its century or millennium.
fn first_year(year: i64, years: i64) -> i64 {
    (year - 1).div_euclid(years) * years + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment_text::{DateOrder, read_timestamp, timestamp_text};

    fn moment(text: &str) -> i64 {
        read_timestamp(text, DateOrder::MonthDay).unwrap()
    }

    /// Goal: what PostgreSQL 15 extracts.
    #[test]
    fn fields() {
        let part = |name: &str, text| {
            let field = DateField::parse(name).unwrap();
            field.of_moment(moment(text)) as f64 / 10f64.powi(field.scale().into())
        };
        for (field, expected) in [
            ("second", 30.5),
            ("Milliseconds", 30_500.0),
            ("microseconds", 30_500_000.0),
            ("minute", 20.0),
            ("hour", 10.0),
            ("week", 53.0),
            ("isoyear", 2020.0),
            ("dow", 0.0),
            ("isodow", 7.0),
            ("doy", 3.0),
            ("quarter", 1.0),
            ("decade", 202.0),
            ("century", 21.0),
            ("millennium", 3.0),
            ("epoch", 1_609_669_230.5),
        ] {
            assert_eq!(part(field, "2021-01-03 10:20:30.5"), expected, "{field}");
        }
        assert_eq!(part("century", "2000-06-01 00:00:00"), 20.0);
        assert_eq!(part("year", "0044-03-15 00:00:00 BC"), -44.0);
        assert_eq!(part("century", "0044-03-15 00:00:00 BC"), -1.0);
        assert_eq!(part("epoch", "1969-12-31 23:59:59"), -1.0);
        assert_eq!(DateField::parse("foo"), None);
        assert_eq!(DateField::parse_unit("dow"), None);
    }

    /// Goal: what PostgreSQL 15 truncates to.
    #[test]
    fn starts() {
        let start = |unit, text| {
            DateField::parse_unit(unit).unwrap().start(moment(text)).map(timestamp_text).unwrap()
        };
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
            assert_eq!(start(unit, "2021-06-03 10:20:30.123456"), expected, "{unit}");
        }
    }
}
