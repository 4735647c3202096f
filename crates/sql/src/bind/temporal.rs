//! Moments, times and intervals: their texts, and what can be computed of them ahead.

use super::bound::Interval;
use fabius_value::Value;
use fabius_value::calendar::{self, DAY_MICROS};

const SECOND: i64 = 1_000_000;

/// A time of the day, in microseconds.
pub(super) fn time(text: &str) -> Option<i64> {
    let lower = text.trim().to_ascii_lowercase();
    let (clock, half) = match (lower.strip_suffix("am"), lower.strip_suffix("pm")) {
        (Some(clock), _) => (clock.trim(), Some(false)),
        (_, Some(clock)) => (clock.trim(), Some(true)),
        _ => (lower.as_str(), None),
    };
    let mut parts = clock.split(':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let second = parts.next().unwrap_or("0");
    let mut hour: i64 = hour.parse().ok()?;
    let minute: i64 = minute.parse().ok()?;
    let micros = seconds(second)?;
    match half {
        Some(afternoon) if (1..=12).contains(&hour) => hour = hour % 12 + if afternoon { 12 } else { 0 },
        Some(_) => return None,
        None => {}
    }
    let fits = (0..60).contains(&minute) && (0..=60 * SECOND).contains(&micros) && parts.next().is_none();
    let total = hour.checked_mul(3600)?.checked_add(minute * 60)?.checked_mul(SECOND)?.checked_add(micros)?;
    (fits && (0..=DAY_MICROS).contains(&total)).then_some(total)
}

/// Seconds with a fraction, in microseconds.
fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    whole.checked_mul(SECOND)?.checked_add(digits.parse::<i64>().ok()?)
}

/// `1 day`, `2 hours 30 minutes`, `1-2`, `01:30:00`, `P1DT2H`, `-3 days ago`.
pub(super) fn interval(text: &str) -> Option<Interval> {
    let lower = text.trim().to_ascii_lowercase();
    let mut interval = Interval::default();
    let words: Vec<&str> = lower.split_whitespace().filter(|word| *word != "@").collect();
    if words.is_empty() {
        return None;
    }
    let mut at = 0;
    let mut negate = false;
    while at < words.len() {
        let word = words[at];
        at += 1;
        if word == "ago" && at == words.len() {
            negate = true;
            continue;
        }
        if let Some(clock) = word.contains(':').then_some(word) {
            let (sign, clock) = match clock.strip_prefix('-') {
                Some(clock) => (-1, clock),
                None => (1, clock.strip_prefix('+').unwrap_or(clock)),
            };
            interval.micros = interval.micros.checked_add(sign * time(clock)?)?;
            continue;
        }
        let split = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
        let (number, unit) = match word.split_at(split) {
            (number, "") => {
                let unit = words.get(at).copied().unwrap_or("seconds");
                at += 1;
                (number, unit)
            }
            (number, unit) => (number, unit),
        };
        add(&mut interval, number, unit)?;
    }
    if negate {
        interval = scaled(interval, -1)?;
    }
    Some(interval)
}

fn add(interval: &mut Interval, number: &str, unit: &str) -> Option<()> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let millionths = sign * seconds(digits)?;
    let whole = millionths / SECOND;
    let part = millionths % SECOND;
    let unit = unit.strip_suffix('s').filter(|unit| unit.len() > 1).unwrap_or(unit);
    let months = |each: i64| whole.checked_mul(each)?.checked_add(part.checked_mul(each)? / SECOND);
    let micros = |seconds: i64| millionths.checked_mul(seconds);
    match unit {
        "millennium" | "millennia" => interval.months = interval.months.checked_add(months(12_000)?)?,
        "century" | "centurie" | "c" => interval.months = interval.months.checked_add(months(1200)?)?,
        "decade" => interval.months = interval.months.checked_add(months(120)?)?,
        "year" | "yr" | "y" => interval.months = interval.months.checked_add(months(12)?)?,
        "month" | "mon" => interval.months = interval.months.checked_add(months(1)?)?,
        "week" | "w" => {
            interval.days = interval.days.checked_add(whole.checked_mul(7)?)?;
            interval.micros = interval.micros.checked_add(part.checked_mul(7 * 86_400)?)?;
        }
        "day" | "d" => {
            interval.days = interval.days.checked_add(whole)?;
            interval.micros = interval.micros.checked_add(part.checked_mul(86_400)?)?;
        }
        "hour" | "hr" | "h" => interval.micros = interval.micros.checked_add(micros(3600)?)?,
        "minute" | "min" | "m" => interval.micros = interval.micros.checked_add(micros(60)?)?,
        "second" | "sec" | "s" => interval.micros = interval.micros.checked_add(millionths)?,
        "millisecond" | "msec" | "ms" => interval.micros = interval.micros.checked_add(millionths / 1000)?,
        "microsecond" | "usec" | "us" => interval.micros = interval.micros.checked_add(whole)?,
        _ => return None,
    }
    Some(())
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

/// A moment moved by an interval: months keep the day of the month, or take the last there is.
pub(super) fn moved(micros: i64, interval: Interval) -> Option<i64> {
    let (days, time) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
    let days = if interval.months == 0 { days } else { add_months(days, interval.months)? };
    days.checked_add(interval.days)?.checked_mul(DAY_MICROS)?.checked_add(time)?.checked_add(interval.micros)
}

fn add_months(days: i64, months: i64) -> Option<i64> {
    let text = calendar::format_date(i32::try_from(days).ok()?);
    let mut parts = text.rsplitn(3, '-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let (day, month, year): (i64, i64, i64) = (day.parse().ok()?, month.parse().ok()?, year.parse().ok()?);
    let total = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(months)?;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    if !(0..=9999).contains(&year) {
        return None;
    }
    (0..4).find_map(|less| {
        let date = calendar::parse_date(&format!("{year:04}-{month:02}-{:02}", day - less))?;
        Some(i64::from(date))
    })
}

/// The value of a `date` or `timestamp` in microseconds.
pub(super) fn micros_of(value: &Value) -> Option<i64> {
    match value {
        Value::Date(days) => i64::from(*days).checked_mul(DAY_MICROS),
        Value::Timestamp(micros) => Some(*micros),
        _ => None,
    }
}
