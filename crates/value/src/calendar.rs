//! Dates and timestamps as text: `2026-11-20`, `2026-11-20 08:30:00.123456`.
//!
//! The calendar itself is `jiff`'s (proleptic Gregorian, years -9999 to 9999).

use jiff::{ToSpan, civil};

/// Microseconds in a day.
pub const DAY_MICROS: i64 = 86_400_000_000;

/// The first and last day the calendar has, as days since 1970-01-01.
pub const DATE_RANGE: (i32, i32) = (-4_371_587, 2_932_896);

const EPOCH: civil::Date = civil::date(1970, 1, 1);

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
