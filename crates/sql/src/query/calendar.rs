//! Dates, times and intervals by calendar field: the proleptic Gregorian calendar.
//!
//! Days are counted from 1970-01-01, microseconds from its midnight.

use fabius_value::calendar::{self, Civil};
use fabius_value::{Error, Result, SqlState};

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

/// Adds months, then days, then microseconds, as PostgreSQL does: the day of the month is cut to the month's end.
pub fn add_interval(micros: i64, months: i64, days: i64, more: i64) -> Option<i64> {
    let (day, time) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let day = if months == 0 {
        day
    } else {
        let (year, month, of_month) = date_of(day);
        let (year, month) =
            (year + (month - 1 + months).div_euclid(12), (month - 1 + months).rem_euclid(12) + 1);
        days_of(year, month, of_month.min(month_length(year, month)))
    };
    day.checked_add(days)?.checked_mul(DAY)?.checked_add(time)?.checked_add(more)
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

/// Reads an interval: `1 day 02:03:04`, `2 hours ago`, `P1DT2H`, `1-2`. Months, days, microseconds.
///
/// # Errors
/// `22007` for text that is no interval, `22008` for one that is too long.
pub fn parse_interval(text: &str) -> Result<(i32, i32, i64)> {
    let invalid = || {
        Error::new(SqlState::INVALID_DATETIME, format!("invalid input syntax for type interval: \"{text}\""))
    };
    let lower = text.trim().to_lowercase();
    let (lower, negate) = match lower.strip_suffix("ago") {
        Some(rest) => (rest.trim().to_string(), true),
        None => (lower, false),
    };
    let (mut months, mut days, mut micros) = (0f64, 0f64, 0f64);
    let mut any = false;
    let mut add = |number: f64, unit: &str| -> Option<()> {
        if matches!(unit, "ms" | "msecs") {
            micros += number * 1e3;
            return Some(());
        }
        let unit = unit.trim_end_matches('s');
        match unit {
            "microsecond" | "u" | "us" | "usec" => micros += number,
            "millisecond" | "msec" | "milli" => micros += number * 1e3,
            "" | "second" | "sec" => micros += number * 1e6,
            "minute" | "min" | "m" => micros += number * 6e7,
            "hour" | "hr" | "h" => micros += number * 3.6e9,
            "day" | "d" => {
                days += number.trunc();
                micros += number.fract() * 8.64e10;
            }
            "week" | "w" => {
                days += (number * 7.0).trunc();
                micros += (number * 7.0).fract() * 8.64e10;
            }
            "month" | "mon" => {
                months += number.trunc();
                days += number.fract() * 30.0;
            }
            "year" | "yr" | "y" => months += (number * 12.0).round(),
            "decade" => months += number * 120.0,
            "century" | "centurie" | "c" => months += number * 1200.0,
            "millennium" | "millennia" => months += number * 12_000.0,
            _ => return None,
        }
        Some(())
    };
    if let Some(iso) = lower.strip_prefix('p') {
        let mut in_time = false;
        let mut number = String::new();
        for character in iso.chars() {
            match character {
                't' => in_time = true,
                '0'..='9' | '.' | '-' | '+' => number.push(character),
                unit => {
                    let value: f64 = number.parse().map_err(|_| invalid())?;
                    number.clear();
                    let unit = match (unit, in_time) {
                        ('m', false) => "month",
                        ('m', true) => "minute",
                        ('s', true) => "second",
                        ('h', true) => "hour",
                        ('d', _) => "day",
                        ('w', _) => "week",
                        ('y', _) => "year",
                        _ => return Err(invalid()),
                    };
                    add(value, unit).ok_or_else(invalid)?;
                    any = true;
                }
            }
        }
    } else {
        let mut tokens: Vec<String> = Vec::new();
        for word in lower.split_whitespace() {
            // `2hours` is two words, `1y2mon` is four.
            let mut token = String::new();
            for character in word.chars() {
                let is_unit = character.is_ascii_alphabetic();
                if token.ends_with(|c: char| c.is_ascii_alphabetic() != is_unit) {
                    tokens.push(std::mem::take(&mut token));
                }
                token.push(character);
            }
            tokens.push(token);
        }
        let mut tokens = tokens.iter().peekable();
        while let Some(token) = tokens.next() {
            any = true;
            if token == "@" {
                continue;
            }
            let (sign, digits) = match token.strip_prefix('-') {
                Some(digits) => (-1.0, digits),
                None => (1.0, token.strip_prefix('+').unwrap_or(token)),
            };
            if digits.contains(':') {
                let mut total = 0.0;
                let parts: Vec<f64> = digits
                    .split(':')
                    .map(|part| part.parse().map_err(|_| invalid()))
                    .collect::<Result<_>>()?;
                for (part, unit) in parts.iter().zip([3.6e9, 6e7, 1e6]) {
                    total += part * unit;
                }
                add(sign * total, "us").ok_or_else(invalid)?;
            } else if let Some((years, rest)) = digits.split_once('-') {
                let years: f64 = years.parse().map_err(|_| invalid())?;
                let rest: f64 = rest.parse().map_err(|_| invalid())?;
                add(sign * (years * 12.0 + rest), "month").ok_or_else(invalid)?;
            } else {
                let number: f64 = digits.parse().map_err(|_| invalid())?;
                let is_before_time = tokens.peek().is_some_and(|next| next.contains(':'));
                let unit = tokens
                    .next_if(|next| next.starts_with(|c: char| c.is_ascii_alphabetic()))
                    .map_or(if is_before_time { "day" } else { "second" }, String::as_str);
                add(sign * number, unit).ok_or_else(invalid)?;
            }
        }
    }
    if !any {
        return Err(invalid());
    }
    let sign = if negate { -1.0 } else { 1.0 };
    let whole = days.trunc();
    let (months, days, micros) =
        (sign * months.round(), sign * whole, sign * (micros + (days - whole) * 8.64e10).round());
    if months.abs() > f64::from(i32::MAX) || days.abs() > f64::from(i32::MAX) || micros.abs() > 9.2e18 {
        return Err(Error::new(
            SqlState(*b"22015"),
            format!("interval field value out of range: \"{text}\""),
        ));
    }
    Ok((months as i32, days as i32, micros as i64))
}

/// An interval as PostgreSQL shows it: `1 year 2 mons -3 days +04:05:06.7`. What follows a negative part says its sign.
pub fn format_interval(months: i32, days: i32, micros: i64) -> String {
    let mut words = Vec::new();
    let mut is_negative = false;
    let mut word = |count: i32, unit: &str| {
        if count != 0 {
            let sign = if is_negative && count > 0 { "+" } else { "" };
            words.push(format!("{sign}{count} {unit}{}", if count == 1 { "" } else { "s" }));
            is_negative = count < 0;
        }
    };
    word(months / 12, "year");
    word(months % 12, "mon");
    word(days, "day");
    if micros != 0 || words.is_empty() {
        let sign = match micros {
            ..0 => "-",
            _ if is_negative => "+",
            _ => "",
        };
        let (rest, fraction) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
        let mut text = format!("{sign}{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
        if fraction != 0 {
            text += format!(".{fraction:06}").trim_end_matches('0');
        }
        words.push(text);
    }
    words.join(" ")
}

/// An interval as one number for comparisons: a month is 30 days, a day 24 hours.
pub fn interval_span(months: i32, days: i32, micros: i64) -> i128 {
    (i128::from(months) * 30 + i128::from(days)) * i128::from(DAY) + i128::from(micros)
}
