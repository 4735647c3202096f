//! Days and moments to text and back, with time zones. The calendar is the proleptic Gregorian one.

use super::DateOrder;
use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{OffsetName, Tz};
use fabius_value::calendar::{Civil, civil, days_of};
use std::io::Write;

const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// A time zone by its name, whatever its case.
pub(super) fn zone(name: &str) -> Option<Tz> {
    let name = name.trim();
    let usual = match name.to_ascii_lowercase().as_str() {
        "utc" | "z" | "zulu" | "0" | "utc0" | "etc/utc" => {
            return Some(if name.contains('/') { Tz::Etc__UTC } else { Tz::UTC });
        }
        "gmt" => "GMT",
        _ => name,
    };
    // A number of hours east of Greenwich; the zones' names count west.
    if let Ok(hours) = usual.parse::<i32>() {
        return format!("Etc/GMT{}{}", if hours > 0 { "-" } else { "+" }, hours.abs()).parse().ok();
    }
    usual.parse().ok().or_else(|| {
        chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(usual)).copied()
    })
}

/// Where clocks show what.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Zone {
    /// In a zone with rules.
    Named(Tz),
    /// So many microseconds east of Greenwich.
    Offset(i64),
}

impl Zone {
    /// By a name, an abbreviation, or hours west of Greenwich, as POSIX counts them: `+3`, `-05:30`.
    pub(crate) fn of_name(name: &str) -> Option<Zone> {
        let named = zone(name).filter(|_| name.parse::<i32>().is_err()).map(Zone::Named);
        let short = || abbreviated(name).map(|seconds| Zone::Offset(seconds * SECOND));
        let digits =
            if name.starts_with(|c: char| c.is_ascii_digit()) { format!("+{name}") } else { name.into() };
        named.or_else(short).or_else(|| offset(&digits).map(|seconds| Zone::Offset(-seconds * SECOND)))
    }

    /// What its clocks show at a moment; both in microseconds since 1970.
    pub(crate) fn local(self, moment: i64) -> i64 {
        let listed = moment.saturating_sub(past_rules(moment));
        let seconds = match (self, DateTime::from_timestamp_micros(listed)) {
            _ if matches!(moment, i64::MAX | i64::MIN) => return moment,
            (Zone::Offset(micros), _) => return moment.saturating_add(micros),
            (Zone::Named(zone), Some(utc)) => {
                zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc()
            }
            (Zone::Named(_), None) => 0,
        };
        moment.saturating_add(i64::from(seconds) * SECOND)
    }

    /// When its clocks show this.
    pub(crate) fn moment(self, local: i64) -> i64 {
        let zone = match self {
            _ if matches!(local, i64::MAX | i64::MIN) => return local,
            Zone::Offset(micros) => return local.saturating_sub(micros),
            Zone::Named(zone) => zone,
        };
        let listed = local.saturating_sub(past_rules(local));
        let Some(shown) = DateTime::from_timestamp_micros(listed) else { return local };
        let shown: NaiveDateTime = shown.naive_utc();
        let seconds = match zone.offset_from_local_datetime(&shown) {
            LocalResult::Single(offset) => offset.fix().local_minus_utc(),
            // Shown twice: the second time, when it is no longer summer.
            LocalResult::Ambiguous(_, offset) => offset.fix().local_minus_utc(),
            // A time that the clock jumps over: as it would be without the jump.
            LocalResult::None => {
                zone.offset_from_utc_datetime(&(shown - TimeDelta::days(1))).fix().local_minus_utc()
            }
        };
        local.saturating_sub(i64::from(seconds) * SECOND)
    }
}

/// The years whose changes of clocks stand for those of all later years: among 28 there is one for each weekday with which a
/// year can begin, leap years and others. What is known of zones ends behind them.
const LAST_RULES: std::ops::RangeInclusive<i64> = 2068..=2095;

/// How far behind a moment is of the one in the years of [`LAST_RULES`] at which clocks show the same but for the year.
fn past_rules(moment: i64) -> i64 {
    let Civil { year, .. } = civil(moment.div_euclid(DAY));
    if year <= *LAST_RULES.end() || matches!(moment, i64::MAX | i64::MIN) {
        return 0;
    }
    let start = |year| days_of(Civil { year, month: 1, day: 1 });
    let length = |year| start(year + 1) - start(year);
    let is_alike = |other: &i64| length(*other) == length(year) && (start(year) - start(*other)) % 7 == 0;
    LAST_RULES.into_iter().find(is_alike).map_or(0, |other| (start(year) - start(other)) * DAY)
}

/// What a zone is called at a moment.
pub(super) fn abbreviation(moment: i64, zone: Tz) -> String {
    let utc = DateTime::from_timestamp_micros(moment - past_rules(moment)).unwrap_or_default();
    zone.offset_from_utc_datetime(&utc.naive_utc()).abbreviation().unwrap_or_default().to_string()
}

/// Seconds east of Greenwich of the abbreviations that PostgreSQL takes for zones in America and Europe.
fn abbreviated(name: &str) -> Option<i64> {
    let hours = match name.to_ascii_lowercase().as_str() {
        "akst" => -9,
        "akdt" | "pst" => -8,
        "pdt" | "mst" => -7,
        "mdt" | "cst" => -6,
        "cdt" | "est" => -5,
        "edt" | "ast" => -4,
        "adt" => -3,
        "wet" => 0,
        "bst" | "west" | "cet" | "met" => 1,
        "cest" | "mest" | "eet" => 2,
        "eest" | "msk" => 3,
        "jst" | "kst" => 9,
        _ => return None,
    };
    Some(hours * 3600)
}

/// The number of days since 1970-01-01 of a day that there is.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let day = Civil { year, month: u8::try_from(month).ok()?, day: u8::try_from(day).ok()? };
    if !(1..=12).contains(&day.month) || day.day < 1 {
        return None;
    }
    let number = days_of(day);
    (civil(number) == day).then_some(number)
}

/// The digits of a day; the year 0 is 1 BC.
fn write_day(number: i64, out: &mut Vec<u8>) -> bool {
    let Civil { year, month, day } = civil(number);
    let (year, is_bc) = if year <= 0 { (1 - year, true) } else { (year, false) };
    drop(write!(out, "{year:04}-{month:02}-{day:02}"));
    is_bc
}

fn write_end(is_bc: bool, out: &mut Vec<u8>) {
    if is_bc {
        out.extend_from_slice(b" BC");
    }
}

pub(super) fn write_date(number: i32, out: &mut Vec<u8>) {
    match number {
        i32::MAX => out.extend_from_slice(b"infinity"),
        i32::MIN => out.extend_from_slice(b"-infinity"),
        _ => {
            let is_bc = write_day(number.into(), out);
            write_end(is_bc, out);
        }
    }
}

pub(super) fn write_time(micros: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (micros.div_euclid(SECOND), micros.rem_euclid(SECOND));
    drop(write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        out.extend_from_slice(format!(".{fraction:06}").trim_end_matches('0').as_bytes());
    }
}

fn write_moment(micros: i64, out: &mut Vec<u8>) -> bool {
    let is_bc = write_day(micros.div_euclid(DAY), out);
    out.push(b' ');
    write_time(micros.rem_euclid(DAY), out);
    is_bc
}

pub(super) fn write_timestamp(micros: i64, out: &mut Vec<u8>) {
    match micros {
        i64::MAX => out.extend_from_slice(b"infinity"),
        i64::MIN => out.extend_from_slice(b"-infinity"),
        _ => {
            let is_bc = write_moment(micros, out);
            write_end(is_bc, out);
        }
    }
}

pub(super) fn write_zoned(micros: i64, zone: Tz, out: &mut Vec<u8>) {
    if micros == i64::MAX || micros == i64::MIN {
        return write_timestamp(micros, out);
    }
    let offset = Zone::Named(zone).local(micros).saturating_sub(micros) / SECOND;
    let is_bc = write_moment(micros.saturating_add(offset * SECOND), out);
    let (sign, size) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
    drop(write!(out, "{sign}{:02}", size / 3600));
    if size % 3600 != 0 {
        drop(write!(out, ":{:02}", size / 60 % 60));
    }
    if size % 60 != 0 {
        drop(write!(out, ":{:02}", size % 60));
    }
    write_end(is_bc, out);
}

/// A text taken apart: what of it is there.
#[derive(Default)]
struct Parts {
    day: Option<i64>,
    time: Option<i64>,
    /// Seconds east of Greenwich, or a zone.
    offset: Option<i64>,
    zone: Option<Tz>,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

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
    let micros = ((hours * 60 + minutes) * 60 + whole) * SECOND + fraction;
    (micros <= DAY).then_some(micros)
}

fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// `+02`, `-0330`, `+02:00:30`: seconds east of Greenwich.
fn offset(text: &str) -> Option<i64> {
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
    if text.len() == 8 && number(text).is_some() {
        return in_era(number(&text[..4])?, number(&text[4..6])?, number(&text[6..])?, is_bc);
    }
    if let Some(number) = text.strip_prefix('j').and_then(number) {
        return Some(number - 2_440_588);
    }
    let fields: Vec<&str> = text.split(['-', '/', '.']).collect();
    if let ([year, of_year], true) = (fields.as_slice(), text.contains('.')) {
        // The day of the year: `1999.008`.
        let (year, of_year) = (number(year)?, number(of_year).filter(|_| of_year.len() == 3)?);
        return in_era(year, 1, 1, is_bc).map(|first| first + of_year - 1);
    }
    let [first, second, third] = fields.as_slice() else { return None };
    let month_name = |field: &str| {
        MONTHS.iter().position(|month| field.to_lowercase().starts_with(month)).map(|at| at as i64 + 1)
    };
    if let Some(month) = month_name(second) {
        return match first.len() > 2 {
            true => in_era(number(first)?, month, number(third)?, is_bc),
            false => in_era(century(third)?, month, number(first)?, is_bc),
        };
    }
    if first.len() > 2 {
        return in_era(number(first)?, number(second)?, number(third)?, is_bc);
    }
    match order {
        DateOrder::MonthDay => in_era(century(third)?, number(first)?, number(second)?, is_bc),
        DateOrder::DayMonth => in_era(century(third)?, number(second)?, number(first)?, is_bc),
        DateOrder::Year => in_era(century(first)?, number(second)?, number(third)?, is_bc),
    }
}

/// A year; two digits are of 1970 to 2069.
fn century(text: &str) -> Option<i64> {
    let year = number(text)?;
    Some(match text.len() {
        ..=2 if year < 70 => year + 2000,
        ..=2 => year + 1900,
        _ => year,
    })
}

fn in_era(year: i64, month: i64, day: i64, is_bc: bool) -> Option<i64> {
    if year == 0 {
        return None;
    }
    days(if is_bc { 1 - year } else { year }, month, day)
}

fn parts(text: &str, order: DateOrder) -> Option<Parts> {
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
    for word in body.split([' ', ',']).filter(|word| !word.is_empty()) {
        if word.contains(':') && word.as_bytes()[0].is_ascii_digit() {
            let end = word.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(word.len());
            parts.time = Some(time(&word[..end])?);
            match &word[end..] {
                "" => {}
                "am" | "pm" => afternoon = Some(word.ends_with("pm")),
                rest => zone_part(rest, &mut parts)?,
            }
        } else if parts.time.is_some() && matches!(word, "am" | "pm") {
            afternoon = Some(word == "pm");
        } else if parts.time.is_some() || (word.starts_with(['+', '-']) && parts.day.is_some()) {
            zone_part(word, &mut parts)?;
        } else if word.contains(['-', '/', '.'])
            || (word.len() == 8 && number(word).is_some())
            || word.strip_prefix('j').is_some_and(|rest| number(rest).is_some())
        {
            // A day may have its offset behind it.
            parts.day = Some(day(word, order, is_bc)?);
        } else if let Some(known) = zone(word).filter(|_| parts.day.is_some()) {
            parts.zone = Some(known);
        } else {
            loose.push(word.to_string());
        }
    }
    if let (Some(is_afternoon), Some(time)) = (afternoon, parts.time) {
        let hour = time / (3600 * SECOND);
        let shift = match (is_afternoon, hour) {
            (true, 1..=11) => 12,
            (false, 12) => -12,
            (_, 1..=12) => 0,
            _ => return None,
        };
        parts.time = Some(time + shift * 3600 * SECOND);
    }
    match loose.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {}
        ["epoch"] => parts.day = Some(0),
        words @ [_, _, _] => {
            let at = words.iter().position(|word| MONTHS.iter().any(|month| word.starts_with(month)))?;
            let month = MONTHS.iter().position(|month| words[at].starts_with(month))? as i64 + 1;
            let numbers: Vec<&str> =
                words.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, word)| *word).collect();
            let (first, second) = (numbers.first()?, numbers.get(1)?);
            parts.day = Some(match first.len() > 2 {
                true => in_era(number(first)?, month, number(second)?, is_bc)?,
                false => in_era(century(second)?, month, number(first)?, is_bc)?,
            });
        }
        _ => return None,
    }
    Some(parts)
}

fn zone_part(text: &str, parts: &mut Parts) -> Option<()> {
    match offset(text) {
        Some(seconds) => parts.offset = Some(seconds),
        None => match abbreviated(text) {
            Some(seconds) => parts.offset = Some(seconds),
            None => parts.zone = Some(zone(text)?),
        },
    }
    Some(())
}

fn infinite(text: &str) -> Option<bool> {
    match text.trim().to_lowercase().as_str() {
        "infinity" | "+infinity" => Some(true),
        "-infinity" => Some(false),
        _ => None,
    }
}

/// Days since 1970-01-01; `None` if the text is not a day.
pub(super) fn read_date(text: &str, order: DateOrder) -> Option<i32> {
    if let Some(is_late) = infinite(text) {
        return Some(if is_late { i32::MAX } else { i32::MIN });
    }
    i32::try_from(parts(text, order)?.day?).ok()
}

/// Microseconds of the day.
pub(super) fn read_time(text: &str, order: DateOrder) -> Option<i64> {
    if text.trim().eq_ignore_ascii_case("allballs") {
        return Some(0);
    }
    time(text.trim()).or_else(|| parts(text, order)?.time)
}

/// Microseconds since 1970-01-01 00:00:00; a zone in the text says nothing.
pub(super) fn read_timestamp(text: &str, order: DateOrder) -> Option<i64> {
    if let Some(is_late) = infinite(text) {
        return Some(if is_late { i64::MAX } else { i64::MIN });
    }
    let parts = parts(text, order)?;
    parts.day?.checked_mul(DAY)?.checked_add(parts.time.unwrap_or_default())
}

/// Microseconds since 1970-01-01 00:00:00 in UTC; the session's zone where the text says none.
pub(super) fn read_zoned(text: &str, order: DateOrder, session: Tz) -> Option<i64> {
    if infinite(text).is_some() {
        return read_timestamp(text, order);
    }
    let parts = parts(text, order)?;
    let local = parts.day?.checked_mul(DAY)?.checked_add(parts.time.unwrap_or_default())?;
    if let Some(seconds) = parts.offset {
        return local.checked_sub(seconds * SECOND);
    }
    Some(Zone::Named(parts.zone.unwrap_or(session)).moment(local))
}
