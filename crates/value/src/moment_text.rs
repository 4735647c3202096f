//! Days and moments as text: `2026-11-20`, `08:30:00.5`, `2026-11-20 08:30:00.123456`, as PostgreSQL reads and writes
//! them.
//!
//! Time zones are not known here: what a text says of one is handed on, to those who know them.

use crate::calendar::{Civil, DAY_MICROS, HOUR_MICROS, SECOND_MICROS, checked_days_of, civil};
use std::io::Write;

/// In which order day, month and year are read where they do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateOrder {
    /// Month, day, year.
    #[default]
    MonthDay,
    /// Day, month, year.
    DayMonth,
    /// Year, month, day.
    Year,
}

/// Appends the digits of a day; returns whether ` BC` has to follow: the year 0 is 1 BC.
fn write_day(number: i64, out: &mut Vec<u8>) -> bool {
    let Civil { year, month, day } = civil(number);
    let (year, is_bc) = if year <= 0 { (1 - year, true) } else { (year, false) };
    drop(write!(out, "{year:04}-{month:02}-{day:02}"));
    is_bc
}

/// Appends ` BC` if it is to be.
pub fn write_era(is_bc: bool, out: &mut Vec<u8>) {
    if is_bc {
        out.extend_from_slice(b" BC");
    }
}

/// Appends a day.
pub fn write_date(number: i32, out: &mut Vec<u8>) {
    match number {
        i32::MAX => out.extend_from_slice(b"infinity"),
        i32::MIN => out.extend_from_slice(b"-infinity"),
        _ => {
            let is_bc = write_day(number.into(), out);
            write_era(is_bc, out);
        }
    }
}

/// Appends a time of the day, with a fraction only if it has one.
pub fn write_time(micros: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (micros.div_euclid(SECOND_MICROS), micros.rem_euclid(SECOND_MICROS));
    drop(write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        out.extend_from_slice(format!(".{fraction:06}").trim_end_matches('0').as_bytes());
    }
}

/// Appends a moment; returns whether ` BC` has to follow, perhaps behind a time zone.
pub fn write_moment(micros: i64, out: &mut Vec<u8>) -> bool {
    let is_bc = write_day(micros.div_euclid(DAY_MICROS), out);
    out.push(b' ');
    write_time(micros.rem_euclid(DAY_MICROS), out);
    is_bc
}

/// Appends a timestamp.
pub fn write_timestamp(micros: i64, out: &mut Vec<u8>) {
    match micros {
        i64::MAX => out.extend_from_slice(b"infinity"),
        i64::MIN => out.extend_from_slice(b"-infinity"),
        _ => {
            let is_bc = write_moment(micros, out);
            write_era(is_bc, out);
        }
    }
}

/// What a text says of a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Days since 1970-01-01.
    pub day: Option<i64>,
    /// Microseconds of the day.
    pub time: Option<i64>,
    /// Seconds east of Greenwich.
    pub offset: Option<i64>,
    /// What stands where a time zone's name belongs, in lower case.
    pub zone: Option<String>,
}

impl Parts {
    /// The moment that clocks show, in microseconds since 1970-01-01 00:00:00; midnight where no time is said. `None`
    /// if no day is.
    pub fn local(&self) -> Option<i64> {
        self.day?.checked_mul(DAY_MICROS)?.checked_add(self.time.unwrap_or_default())
    }
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Words that say nothing that the day does not.
const WEEKDAYS: [&str; 18] = [
    "sun",
    "sunday",
    "mon",
    "monday",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "weds",
    "wednesday",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "fri",
    "friday",
    "sat",
    "saturday",
];

/// A time of day: `08:30`, `08:30:00.5`, `083000`, `8 pm` apart, in microseconds.
fn time(text: &str) -> Option<i64> {
    if matches!(text.len(), 4 | 6) && number(text).is_some() {
        return time(&format!(
            "{}:{}:{}",
            &text[..2],
            &text[2..4],
            if text.len() > 4 { &text[4..] } else { "0" }
        ));
    }
    let mut fields = text.split(':');
    let hours: i64 = number(fields.next()?)?;
    let minutes: i64 = number(fields.next()?)?;
    let seconds = fields.next().unwrap_or("0");
    if fields.next().is_some() || minutes > 59 {
        return None;
    }
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let whole = number(whole)?;
    if whole > 60 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Six digits, the seventh rounds.
    let digits: String = fraction.chars().chain("0000000".chars()).take(7).collect();
    let fraction = (digits.parse::<i64>().ok()? + 5) / 10;
    let micros = ((hours * 60 + minutes) * 60 + whole) * SECOND_MICROS + fraction;
    (micros <= DAY_MICROS).then_some(micros)
}

/// A number of at most nine digits.
fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// `+02`, `-0330`, `+02:00:30`: seconds east of Greenwich.
pub fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => return None,
    };
    let fields: Vec<i64> = match rest.contains(':') {
        true => rest.split(':').map(number).collect::<Option<_>>()?,
        false if rest.len() <= 2 => vec![number(rest)?],
        false => vec![number(rest.get(..rest.len() - 2)?)?, number(rest.get(rest.len() - 2..)?)?],
    };
    let seconds = match fields.as_slice() {
        [h] => h * 3600,
        [h, m] if *m < 60 => h * 3600 + m * 60,
        [h, m, s] if *m < 60 && *s < 60 => h * 3600 + m * 60 + s,
        _ => return None,
    };
    (seconds < 16 * 3600).then_some(sign * seconds)
}

/// A day in digits: `2026-11-20`, `20261120`, `11/20/2026`, `20.11.2026`; whether it is before Christ.
fn day(text: &str, order: DateOrder, is_bc: bool) -> Option<i64> {
    if is_compact_day(text) {
        let (year, rest) = text.split_at(text.len() - 4);
        return in_era(century(year, is_bc)?, number(&rest[..2])?, number(&rest[2..])?, is_bc);
    }
    if let Some(number) = text.strip_prefix('j').and_then(number) {
        return Some(number - 2_440_588);
    }
    let fields: Vec<&str> = text.split(['-', '/', '.']).collect();
    if let [year, of_year] = fields.as_slice() {
        // The day of the year: `1999.008`, `1999-008`.
        let (year, of_year) = (number(year)?, number(of_year).filter(|_| of_year.len() == 3)?);
        let (first, last) = (in_era(year, 1, 1, is_bc)?, in_era(year, 12, 31, is_bc)?);
        return Some(first + of_year - 1).filter(|day| (first..=last).contains(day));
    }
    let [first, second, third] = fields.as_slice() else { return None };
    let month_name = |field: &str| {
        MONTHS.iter().position(|month| field.to_lowercase().starts_with(month)).map(|at| at as i64 + 1)
    };
    if let Some(month) = month_name(second) {
        return match first.len() > 2 {
            true => in_era(number(first)?, month, number(third)?, is_bc),
            false => in_era(century(third, is_bc)?, month, number(first)?, is_bc),
        };
    }
    if first.len() > 2 {
        return in_era(number(first)?, number(second)?, number(third)?, is_bc);
    }
    match order {
        DateOrder::MonthDay => in_era(century(third, is_bc)?, number(first)?, number(second)?, is_bc),
        DateOrder::DayMonth => in_era(century(third, is_bc)?, number(second)?, number(first)?, is_bc),
        DateOrder::Year => in_era(century(first, is_bc)?, number(second)?, number(third)?, is_bc),
    }
}

/// Whether a text may be a day without anything between its fields: `20261120`, `261120`.
fn is_compact_day(text: &str) -> bool {
    matches!(text.len(), 6 | 8) && number(text).is_some()
}

/// A year; two digits are of 1970 to 2069, but before Christ.
fn century(text: &str, is_bc: bool) -> Option<i64> {
    let year = number(text)?;
    Some(match text.len() {
        _ if is_bc => year,
        ..=2 if year < 70 => year + 2000,
        ..=2 => year + 1900,
        _ => year,
    })
}

fn in_era(year: i64, month: i64, day: i64, is_bc: bool) -> Option<i64> {
    if year == 0 {
        return None;
    }
    checked_days_of(if is_bc { 1 - year } else { year }, month, day)
}

/// Takes a text apart; `None` if it is neither a day nor a time, nor both.
pub fn parts(text: &str, order: DateOrder) -> Option<Parts> {
    let mut parts = Parts::default();
    let lower = text.trim().to_lowercase();
    let (body, is_bc) = match lower.strip_suffix(" bc") {
        Some(body) => (body, true),
        None => (lower.strip_suffix(" ad").unwrap_or(&lower), false),
    };
    let mut loose: Vec<String> = Vec::new();
    // A `T` between day and time is a blank.
    let joined = body
        .char_indices()
        .find(|(at, c)| *c == 't' && *at > 5 && body.as_bytes().get(at - 1).is_some_and(u8::is_ascii_digit));
    let body =
        joined.map_or_else(|| body.to_string(), |(at, _)| format!("{} {}", &body[..at], &body[at + 1..]));
    let mut afternoon = None;
    for word in body.split([' ', ',']).filter(|word| !word.is_empty() && !WEEKDAYS.contains(word)) {
        let has_day = parts.day.is_some() || loose.len() > 2;
        if word.contains(':') && word.as_bytes()[0].is_ascii_digit() {
            let end = word.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(word.len());
            parts.time = Some(time(&word[..end])?);
            match &word[end..] {
                "" => {}
                "am" | "pm" => afternoon = Some(word.ends_with("pm")),
                rest => zone_part(rest, &mut parts),
            }
        } else if let (true, None, Some(end)) = (has_day, parts.time, compact_time(word)) {
            parts.time = Some(time(&with_colons(&word[..end]))?);
            if end < word.len() {
                zone_part(&word[end..], &mut parts);
            }
        } else if parts.time.is_some() && matches!(word, "am" | "pm") {
            afternoon = Some(word == "pm");
        } else if parts.time.is_some() || (word.starts_with(['+', '-']) && has_day) {
            zone_part(word, &mut parts);
        } else if word.contains(['-', '/', '.'])
            || is_compact_day(word)
            || word.strip_prefix('j').is_some_and(|rest| number(rest).is_some())
        {
            // A day may have its offset behind it.
            parts.day = Some(day(word, order, is_bc)?);
        } else if parts.day.is_some() {
            parts.zone = Some(word.to_string());
        } else {
            loose.push(word.to_string());
        }
    }
    if let (Some(is_afternoon), Some(time)) = (afternoon, parts.time) {
        let hour = time / (HOUR_MICROS);
        let shift = match (is_afternoon, hour) {
            (true, 1..=11) => 12,
            (false, 12) => -12,
            (_, 1..=12) => 0,
            _ => return None,
        };
        parts.time = Some(time + shift * HOUR_MICROS);
    }
    match loose.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {}
        // Whatever time it says.
        ["epoch"] => parts = Parts { day: Some(0), ..Parts::default() },
        words @ [_, _, _] => {
            let at = words.iter().position(|word| MONTHS.iter().any(|month| word.starts_with(month)))?;
            let month = MONTHS.iter().position(|month| words[at].starts_with(month))? as i64 + 1;
            let numbers: Vec<&str> =
                words.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, word)| *word).collect();
            let (first, second) = (numbers.first()?, numbers.get(1)?);
            parts.day = Some(match first.len() > 2 {
                true => in_era(number(first)?, month, number(second)?, is_bc)?,
                false => in_era(century(second, is_bc)?, month, number(first)?, is_bc)?,
            });
        }
        _ => return None,
    }
    Some(parts)
}

/// Where the time ends that a text begins with, of six digits and perhaps more behind a point: `101112.5z`.
fn compact_time(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let whole = text[..end].split('.').next().unwrap_or_default();
    (whole.len() == 6).then_some(end)
}

/// `101112.5` as `10:11:12.5`
fn with_colons(digits: &str) -> String {
    format!("{}:{}:{}", &digits[..2], &digits[2..4], &digits[4..])
}

fn zone_part(text: &str, parts: &mut Parts) {
    match offset(text) {
        Some(seconds) => parts.offset = Some(seconds),
        None => parts.zone = Some(text.to_string()),
    }
}

/// Whether a text is `infinity` (true) or `-infinity` (false).
pub fn infinite(text: &str) -> Option<bool> {
    match text.trim().to_lowercase().as_str() {
        "infinity" | "+infinity" => Some(true),
        "-infinity" => Some(false),
        _ => None,
    }
}

/// Days since 1970-01-01; `None` if the text is not a day.
pub fn read_date(text: &str, order: DateOrder) -> Option<i32> {
    if let Some(is_late) = infinite(text) {
        return Some(if is_late { i32::MAX } else { i32::MIN });
    }
    let days = i32::try_from(parts(text, order)?.day?).ok()?;
    (days != i32::MAX && days != i32::MIN).then_some(days)
}

/// Microseconds of the day; `None` if the text is no time.
pub fn read_time(text: &str, order: DateOrder) -> Option<i64> {
    if text.trim().eq_ignore_ascii_case("allballs") {
        return Some(0);
    }
    let text = text.trim();
    if compact_time(text) == Some(text.len()) {
        return time(&with_colons(text));
    }
    time(text).or_else(|| parts(text, order)?.time)
}

/// Microseconds since 1970-01-01 00:00:00, whatever the text says of zones; `None` if the text is no moment.
pub fn read_timestamp(text: &str, order: DateOrder) -> Option<i64> {
    match infinite(text) {
        Some(true) => Some(i64::MAX),
        Some(false) => Some(i64::MIN),
        None => parts(text, order)?.local(),
    }
}

/// A day as text.
pub fn date_text(days: i32) -> String {
    text(|out| write_date(days, out))
}

/// A time of the day as text.
pub fn time_text(micros: i64) -> String {
    text(|out| write_time(micros, out))
}

/// A timestamp as text.
pub fn timestamp_text(moment: i64) -> String {
    text(|out| write_timestamp(moment, out))
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::with_capacity(32);
    write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the forms that PostgreSQL reads.
    #[test]
    fn texts_are_read() {
        let day = |text: &str| read_date(text, DateOrder::MonthDay).map(date_text);
        for text in [
            "2026-11-20",
            "20261120",
            "11/20/2026",
            "20-Nov-2026",
            "Nov 20 2026",
            "J2461365",
            "2026.324",
            "2026-324",
            "Fri, 20 Nov 2026",
        ] {
            assert_eq!(day(text).as_deref(), Some("2026-11-20"), "{text}");
        }
        for text in ["infinity", "-infinity", "0044-03-15 BC", "12345-01-02", "0001-01-01"] {
            assert_eq!(day(text).as_deref(), Some(text));
        }
        for text in [
            "",
            "2026-02-30",
            "2026-13-01",
            "0000-01-01",
            "20",
            "epoch epoch",
            "1-2",
            "today",
            "-5",
            "2026-366",
        ] {
            assert_eq!(day(text), None, "{text}");
        }
        assert_eq!(read_date("3.4.2020", DateOrder::DayMonth), read_date("2020-04-03", DateOrder::Year));
        let moment = |text: &str| read_timestamp(text, DateOrder::MonthDay).map(timestamp_text);
        for (text, read) in [
            ("2026-11-20T08:30", "2026-11-20 08:30:00"),
            ("2026-11-20 8:30 pm", "2026-11-20 20:30:00"),
            ("2026-11-20 08:30:00.1234567", "2026-11-20 08:30:00.123457"),
            ("1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999"),
            ("0044-03-15 00:00:00 BC", "0044-03-15 00:00:00 BC"),
            ("1/2/03 00:00:00 BC", "0003-01-02 00:00:00 BC"),
            ("Nov 20 2026 083000", "2026-11-20 08:30:00"),
            ("Fri, 20 Nov 2026 08:30:00 GMT", "2026-11-20 08:30:00"),
            ("epoch", "1970-01-01 00:00:00"),
            ("epoch 08:30", "1970-01-01 00:00:00"),
            ("-infinity", "-infinity"),
        ] {
            assert_eq!(moment(text).as_deref(), Some(read), "{text}");
        }
        let zoned = parts("2026-11-20 08:30:00+02", DateOrder::MonthDay).unwrap();
        assert_eq!((zoned.offset, zoned.zone), (Some(7200), None));
        let zoned = parts("2026-11-20 08:30:00 Europe/Berlin", DateOrder::MonthDay).unwrap();
        assert_eq!((zoned.offset, zoned.zone.as_deref()), (None, Some("europe/berlin")));
        assert_eq!(read_time("083000", DateOrder::MonthDay), Some(30_600 * SECOND_MICROS));
    }
}
