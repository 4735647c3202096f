//! Dates and timestamps as text: `2026-11-20`, `2026-11-20 08:30:00.123456`.
//!
//! The calendar itself is `jiff`'s (proleptic Gregorian, years -9999 to 9999).

use jiff::{ToSpan, civil};

/// Microseconds in a day.
pub const DAY_MICROS: i64 = 86_400_000_000;

/// The first and last day the calendar has, as days since 1970-01-01.
pub const DATE_RANGE: (i32, i32) = (-4_371_587, 2_932_896);

const EPOCH: civil::Date = civil::date(1970, 1, 1);

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

/// Days since 1970-01-01; `None` if the text is not a date.
pub fn parse_date(text: &str) -> Option<i32> {
    let date: civil::Date = text.trim().parse().ok()?;
    Some(date.since(EPOCH).ok()?.get_days())
}

/// A date as text; days outside [`DATE_RANGE`] are shown as a number of days.
pub fn format_date(days: i32) -> String {
    // A span of more days than the calendar has does not exist.
    if !(DATE_RANGE.0..=DATE_RANGE.1).contains(&days) {
        return format!("epoch{days:+}d");
    }
    (EPOCH + i64::from(days).days()).to_string()
}

/// Microseconds since 1970-01-01 00:00:00; `None` if the text is not a timestamp.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let moment: civil::DateTime = text.trim().parse().ok()?;
    let days = i64::from(moment.date().since(EPOCH).ok()?.get_days());
    let time = moment.time();
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    Some(days * DAY_MICROS + seconds * 1_000_000 + i64::from(time.subsec_nanosecond() / 1000))
}

/// A timestamp as text, with a fraction only if it has one.
pub fn format_timestamp(micros: i64) -> String {
    let days = micros.div_euclid(DAY_MICROS);
    let rest = micros.rem_euclid(DAY_MICROS);
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let date = match i32::try_from(days) {
        Ok(days) => format_date(days),
        Err(_) => format!("epoch{days:+}d"),
    };
    let mut text = format!("{date} {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        text += format!(".{fraction:06}").trim_end_matches('0');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: our own calendar is jiff's, where that has one.
    #[test]
    fn civil_days_are_those_of_the_calendar() {
        for days in (DATE_RANGE.0..=DATE_RANGE.1).step_by(97) {
            let day = civil(days.into());
            let text = match day.year {
                0.. => format!("{:04}-{:02}-{:02}", day.year, day.month, day.day),
                year => format!("-{:06}-{:02}-{:02}", -year, day.month, day.day),
            };
            assert_eq!(text, format_date(days));
            assert_eq!(days_of(day), i64::from(days));
        }
    }

    #[test]
    fn dates_and_timestamps_round_trip() {
        for text in ["1970-01-01", "2026-11-20", "1969-12-31", "-9999-01-01", "9999-12-31", "2000-02-29"] {
            let text = if text.starts_with('-') { "-009999-01-01" } else { text };
            assert_eq!(format_date(parse_date(text).unwrap()), text);
        }
        assert_eq!(parse_date("2026-02-30"), None);
        assert_eq!(DATE_RANGE, (parse_date("-009999-01-01").unwrap(), parse_date("9999-12-31").unwrap()));
        let (first, last) = DATE_RANGE;
        assert_eq!([format_date(first), format_date(last)], ["-009999-01-01", "9999-12-31"]);
        assert_eq!(format_date(last + 1), "epoch+2932897d");
        assert_eq!(format_timestamp(i64::MAX), "epoch+106751991d 04:00:54.775807");
        for text in ["1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2026-11-20 08:30:00.5"] {
            assert_eq!(format_timestamp(parse_timestamp(text).unwrap()), text);
        }
    }
}
