//! Intervals: their text, their arithmetic, and how values hold them.
//!
//! An interval has three parts, since months have no fixed number of days and days none of hours. What a text says in
//! fractions of a unit goes into the smaller parts: half a month is 15 days, half a day is 12 hours, half a year six
//! months.

use crate::calendar::{self, DAY_MICROS, HOUR_MICROS, MINUTE_MICROS, SECOND_MICROS};
use crate::{DateField, Error, Result, SqlState, Value};

/// A span of time by its three parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months; twelve are a year.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds; any number of hours.
    pub micros: i64,
}

impl Interval {
    /// One with these parts; `None` if a part is too large.
    pub fn of_parts(months: i64, days: i64, micros: i64) -> Option<Interval> {
        Some(Interval { months: months.try_into().ok()?, days: days.try_into().ok()?, micros })
    }

    /// What a value is that functions of queries see, stored or given by a client: one row of months, days and
    /// microseconds, or text.
    pub fn of_value(value: &Value) -> Option<Interval> {
        match value {
            Value::List(rows) => match rows.first()?.as_slice() {
                [Value::Int(months), Value::Int(days), Value::BigInt(micros)] => {
                    Some(Interval { months: *months, days: *days, micros: *micros })
                }
                _ => None,
            },
            Value::Text(text) => read(text).ok(),
            _ => None,
        }
    }

    /// The value that functions of queries see: one row of months, days and microseconds.
    pub fn into_value(self) -> Value {
        Value::List(vec![vec![Value::Int(self.months), Value::Int(self.days), Value::BigInt(self.micros)]])
    }

    /// Both together, part by part; `None` if a part becomes too large.
    pub fn checked_add(self, other: Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    /// The moment this much later, as PostgreSQL counts: months first, then days. `None` if there is no such moment.
    pub fn after(self, moment: i64) -> Option<i64> {
        calendar::moved(moment, self.months.into(), self.days.into(), self.micros)
    }

    /// The interval back; `None` if a part becomes too large.
    pub fn checked_neg(self) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }

    /// Each part scaled for itself: what is no whole month becomes days, what is no whole day time, so that parts may
    /// have other signs. `None` if a part becomes too large.
    pub fn scaled(self, scale: impl Fn(f64) -> f64) -> Option<Interval> {
        const DAY_SECONDS: f64 = 86_400.0;
        let in_millionths = |number: f64| (number * 1e6).round_ties_even() / 1e6;
        let (all_months, all_days) = (scale(self.months.into()), scale(self.days.into()));
        let month_days = in_millionths(all_months.fract() * 30.0);
        let seconds = in_millionths((all_days.fract() + month_days.fract()) * DAY_SECONDS);
        let days = all_days.trunc() + (seconds / DAY_SECONDS).trunc() + month_days.trunc();
        let micros = (scale(self.micros as f64) + seconds % DAY_SECONDS * 1e6).round_ties_even();
        let fits = all_months.abs() <= 2e9 && days.abs() <= 2e9 && micros.abs() <= 9e18;
        fits.then_some(Interval {
            months: all_months.trunc() as i32,
            days: days as i32,
            micros: micros as i64,
        })
    }

    /// Microseconds, for comparisons: a month is 30 days, a day 24 hours.
    pub fn span(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY_MICROS)
            + i128::from(self.micros)
    }

    /// The days as clients in Python count them: a year is 365, a month 30, as in psycopg.
    pub fn timedelta_days(self) -> i64 {
        i64::from(self.months / 12) * 365 + i64::from(self.months % 12) * 30 + i64::from(self.days)
    }

    /// The microseconds of the `timedelta` that clients in Python make of it.
    ///
    /// # Errors
    /// `22008` for more than 64 bits.
    pub fn timedelta(self) -> Result<i64> {
        let days = self.timedelta_days().checked_mul(DAY_MICROS);
        let micros = days.and_then(|days| days.checked_add(self.micros));
        micros.ok_or_else(|| calendar::out_of_range("interval"))
    }

    /// What a `timedelta` of so many microseconds is: whole days, rounded down, and the rest of a day.
    pub fn of_timedelta(micros: i64) -> Interval {
        // Days of 64 bits of microseconds fit in 32.
        Interval {
            months: 0,
            days: micros.div_euclid(DAY_MICROS) as i32,
            micros: micros.rem_euclid(DAY_MICROS),
        }
    }

    /// An interval of a literal with a field behind it, `interval '1.5' month`: what is smaller than the field goes.
    pub fn cut(self, field: &str) -> Interval {
        match DateField::parse_unit(field) {
            // A fraction of a second stays.
            None | Some(DateField::Second) => self,
            Some(field) => self.truncated(field).unwrap_or(self),
        }
    }

    /// Without what is smaller than a field; `None` if intervals have no such field.
    pub fn truncated(self, field: DateField) -> Option<Interval> {
        let Interval { months, days, micros } = self;
        let years =
            |count: i32| Interval { months: months / (12 * count) * (12 * count), days: 0, micros: 0 };
        let time = |unit: i64| Interval { months, days, micros: micros / unit * unit };
        Some(match field {
            DateField::Millennium => years(1000),
            DateField::Century => years(100),
            DateField::Decade => years(10),
            DateField::Year => years(1),
            DateField::Quarter => Interval { months: months / 3 * 3, days: 0, micros: 0 },
            DateField::Month => Interval { months, days: 0, micros: 0 },
            DateField::Day => Interval { months, days, micros: 0 },
            DateField::Hour => time(HOUR_MICROS),
            DateField::Minute => time(MINUTE_MICROS),
            DateField::Second => time(SECOND_MICROS),
            DateField::Milliseconds => time(SECOND_MICROS / 1000),
            DateField::Microseconds => self,
            _ => return None,
        })
    }
}

/// The unit by its name: all that moments can be cut to but quarters, which no number counts.
fn unit_of_word(word: &str) -> Option<DateField> {
    DateField::parse_unit(word).filter(|unit| *unit != DateField::Quarter)
}

/// The unit by the letter that ISO 8601 has for it.
fn unit_of_letter(letter: u8, is_time: bool) -> Option<DateField> {
    Some(match (letter, is_time) {
        (b'Y', false) => DateField::Year,
        (b'M', false) => DateField::Month,
        (b'W', false) => DateField::Week,
        (b'D', false) => DateField::Day,
        (b'H', true) => DateField::Hour,
        (b'M', true) => DateField::Minute,
        (b'S', true) => DateField::Second,
        _ => return None,
    })
}

/// A number with its sign: the whole and the part behind the point, both with that sign.
#[derive(Clone, Copy, Debug, Default)]
struct Number {
    whole: i64,
    part: f64,
}

impl Number {
    fn of_text(text: &str) -> Option<Number> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) || (whole.is_empty() && part.is_empty()) {
            return None;
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: f64 = if part.is_empty() { 0.0 } else { format!("0.{part}").parse().ok()? };
        Some(if is_negative { Number { whole: -whole, part: -part } } else { Number { whole, part } })
    }
}

/// An interval while it is read: `None` once a part is beyond what it holds.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
}

impl Sum {
    fn add(&mut self, number: Number, unit: DateField) -> Option<()> {
        match unit {
            DateField::Microseconds => self.add_micros(number, 1),
            DateField::Milliseconds => self.add_micros(number, 1000),
            DateField::Second => self.add_micros(number, SECOND_MICROS),
            DateField::Minute => self.add_micros(number, MINUTE_MICROS),
            DateField::Hour => self.add_micros(number, HOUR_MICROS),
            DateField::Day => {
                self.days = self.days.checked_add(number.whole)?;
                self.add_micros(Number { whole: 0, ..number }, DAY_MICROS)
            }
            DateField::Week => self.add_days(number, 7),
            DateField::Month => {
                self.months = self.months.checked_add(number.whole)?;
                self.add_days(Number { whole: 0, ..number }, 30)
            }
            DateField::Year => self.add_months(number, 12),
            DateField::Decade => self.add_months(number, 120),
            DateField::Century => self.add_months(number, 1200),
            DateField::Millennium => self.add_months(number, 12_000),
            _ => None,
        }
    }

    fn add_months(&mut self, number: Number, each: i64) -> Option<()> {
        let part = (number.part * each as f64).round() as i64;
        self.months = self.months.checked_add(number.whole.checked_mul(each)?)?.checked_add(part)?;
        Some(())
    }

    fn add_days(&mut self, number: Number, each: i64) -> Option<()> {
        let days = number.part * each as f64;
        self.days =
            self.days.checked_add(number.whole.checked_mul(each)?)?.checked_add(days.trunc() as i64)?;
        self.add_micros(Number { whole: 0, part: days.fract() }, DAY_MICROS)
    }

    fn add_micros(&mut self, number: Number, each: i64) -> Option<()> {
        let part = number.part * each as f64;
        // What is left of a microsecond rounds, half of one towards zero.
        let rest = part.fract();
        let part = part.trunc() as i64 + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        self.micros = self.micros.checked_add(number.whole.checked_mul(each)?)?.checked_add(part)?;
        Some(())
    }

    fn finish(self) -> Option<Interval> {
        let months = i32::try_from(self.months).ok()?;
        let days = i32::try_from(self.days).ok()?;
        Some(Interval { months, days, micros: self.micros })
    }
}

/// Why a text is no interval.
enum Refusal {
    Syntax,
    Range,
}

/// Reads `1 day 02:03:04`, `2 hours ago`, `1-2`, `1.5 months`, `P1DT2H`, `P0001-02-03T04:05:06`.
///
/// # Errors
/// `22007` for text that is no interval, `22015` for one that is too long.
pub fn read(text: &str) -> Result<Interval> {
    let sum = match text.trim().strip_prefix('P') {
        Some(iso) => iso_sum(iso),
        None => worded_sum(&text.trim().to_ascii_lowercase()),
    };
    match sum.and_then(|sum| sum.finish().ok_or(Refusal::Range)) {
        Ok(interval) => Ok(interval),
        Err(Refusal::Syntax) => Err(Error::new(
            SqlState::INVALID_DATETIME,
            format!("invalid input syntax for type interval: \"{text}\""),
        )),
        Err(Refusal::Range) => {
            Err(Error::new(SqlState(*b"22015"), format!("interval field value out of range: \"{text}\"")))
        }
    }
}

/// The words of an interval: numbers, with their signs, and units.
fn words(text: &str) -> std::result::Result<Vec<&str>, Refusal> {
    let (bytes, mut words, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        let run = |from: usize, takes: fn(&u8) -> bool| {
            from + bytes[from..].iter().take_while(|byte| takes(byte)).count()
        };
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'@' | b',' => at += 1,
            b'a'..=b'z' => {
                at = run(at, u8::is_ascii_lowercase);
                words.push(&text[start..at]);
            }
            b'0'..=b'9' | b'.' | b'+' | b'-' => {
                // A date and a time have signs and colons within.
                at = run(at + 1, |byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'-' | b'+'));
                words.push(&text[start..at]);
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    Ok(words)
}

fn worded_sum(text: &str) -> std::result::Result<Sum, Refusal> {
    let mut words = words(text)?;
    let mut sum = Sum::default();
    let is_before = words.len() > 1 && words.last() == Some(&"ago");
    if is_before {
        words.pop();
    }
    if words.is_empty() {
        return Err(Refusal::Syntax);
    }
    let mut seen: Vec<DateField> = Vec::new();
    let mut note = |unit: DateField| {
        let is_new = !seen.contains(&unit);
        seen.push(unit);
        if is_new { Ok(()) } else { Err(Refusal::Syntax) }
    };
    let mut rest = words.as_slice();
    while let [word, tail @ ..] = rest {
        rest = tail;
        let digits = word.trim_start_matches(['-', '+']);
        if digits.contains(':') {
            [DateField::Hour, DateField::Minute, DateField::Second].into_iter().try_for_each(&mut note)?;
            add_clock(&mut sum, word)?;
        } else if let Some((years, months)) = digits.split_once('-') {
            note(DateField::Year)?;
            note(DateField::Month)?;
            add_years_and_months(&mut sum, word.starts_with('-'), years, months)?;
        } else {
            let number = Number::of_text(word).ok_or(Refusal::Syntax)?;
            let unit = match rest {
                // What a number counts if it does not say: days before a time, else seconds.
                [] => DateField::Second,
                [next, ..] if next.contains(':') => DateField::Day,
                [next, ..] => {
                    rest = &rest[1..];
                    unit_of_word(next).ok_or(Refusal::Syntax)?
                }
            };
            note(unit)?;
            sum.add(number, unit).ok_or(Refusal::Range)?;
        }
    }
    if is_before { sum.negated().ok_or(Refusal::Range) } else { Ok(sum) }
}

impl Sum {
    fn negated(self) -> Option<Sum> {
        Some(Sum {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }
}

/// `1-2`: a year and two months.
fn add_years_and_months(
    sum: &mut Sum,
    is_negative: bool,
    years: &str,
    months: &str,
) -> std::result::Result<(), Refusal> {
    let whole = |text: &str| text.parse::<u32>().map(i64::from).map_err(|_| Refusal::Syntax);
    let (years, months) = (whole(years)?, whole(months)?);
    if months > 11 {
        return Err(Refusal::Range);
    }
    let all = years * 12 + months;
    sum.months = sum.months.checked_add(if is_negative { -all } else { all }).ok_or(Refusal::Range)?;
    Ok(())
}

/// `04:05`, `04:05:06.7`, `05:06.7`, with a sign for all of it.
fn add_clock(sum: &mut Sum, word: &str) -> std::result::Result<(), Refusal> {
    let (is_negative, clock) = match word.strip_prefix('-') {
        Some(clock) => (true, clock),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let fields: Vec<&str> = clock.split(':').collect();
    let (hours, minutes, seconds) = match fields.as_slice() {
        [minutes, seconds] if seconds.contains('.') => ("0", *minutes, *seconds),
        [hours, minutes] => (*hours, *minutes, "0"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return Err(Refusal::Syntax),
    };
    let read = |text: &str| {
        let is_unsigned = text.starts_with(|c: char| c.is_ascii_digit());
        Number::of_text(text).filter(|_| is_unsigned).ok_or(Refusal::Syntax)
    };
    let (hours, minutes, seconds) = (read(hours)?, read(minutes)?, read(seconds)?);
    if hours.part != 0.0 || minutes.part != 0.0 {
        return Err(Refusal::Syntax);
    }
    if minutes.whole > 59 || seconds.whole > 60 {
        return Err(Refusal::Range);
    }
    let mut clock = Sum::default();
    let total = clock
        .add(hours, DateField::Hour)
        .and_then(|()| clock.add(minutes, DateField::Minute))
        .and_then(|()| clock.add(seconds, DateField::Second))
        .and_then(|()| sum.micros.checked_add(if is_negative { -clock.micros } else { clock.micros }));
    sum.micros = total.ok_or(Refusal::Range)?;
    Ok(())
}

/// What follows the `P` of ISO 8601: `1Y2M3DT4H5M6S`, or `0001-02-03T04:05:06`.
fn iso_sum(text: &str) -> std::result::Result<Sum, Refusal> {
    let mut sum = Sum::default();
    let (days, time) = match text.split_once('T') {
        Some((days, time)) => (days, Some(time)),
        None => (text, None),
    };
    if days.is_empty() && time.is_none_or(str::is_empty) {
        return Err(Refusal::Syntax);
    }
    let dashed: Vec<&str> = days.split('-').collect();
    match dashed.as_slice() {
        [years, months, of_month] if days.as_bytes().iter().all(|b| b.is_ascii_digit() || *b == b'-') => {
            for (field, unit) in
                [(years, DateField::Year), (months, DateField::Month), (of_month, DateField::Day)]
            {
                let number = Number::of_text(field).ok_or(Refusal::Syntax)?;
                sum.add(number, unit).ok_or(Refusal::Range)?;
            }
        }
        _ => add_designated(&mut sum, days, false)?,
    }
    match time {
        Some(clock) if clock.contains(':') => add_clock(&mut sum, clock)?,
        Some(time) => add_designated(&mut sum, time, true)?,
        None => {}
    }
    Ok(sum)
}

fn add_designated(sum: &mut Sum, text: &str, is_time: bool) -> std::result::Result<(), Refusal> {
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or(Refusal::Syntax)?;
        let number = Number::of_text(&rest[..at]).ok_or(Refusal::Syntax)?;
        let unit = unit_of_letter(rest.as_bytes()[at], is_time).ok_or(Refusal::Syntax)?;
        sum.add(number, unit).ok_or(Refusal::Range)?;
        rest = &rest[at + 1..];
    }
    Ok(())
}

/// An interval as PostgreSQL shows it: `1 year 2 mons -3 days +04:05:06.7`. What follows a negative part says its sign.
pub fn write(interval: Interval) -> String {
    let Interval { months, days, micros } = interval;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what PostgreSQL 15 reads and shows.
    #[test]
    fn intervals() {
        for (text, shown) in [
            ("1.5 months", "1 mon 15 days"),
            ("-1.5 months", "-1 mons -15 days"),
            ("1.25 years", "1 year 3 mons"),
            ("1.5 weeks", "10 days 12:00:00"),
            ("1.5 days 2:03", "1 day 14:03:00"),
            ("3 4:05:06", "3 days 04:05:06"),
            ("1-2", "1 year 2 mons"),
            ("-1-2", "-1 years -2 mons"),
            ("1y2mon3d", "1 year 2 mons 3 days"),
            ("2 hours ago", "-02:00:00"),
            ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("90", "00:01:30"),
            ("05:06.7", "00:05:06.7"),
            ("-0:30", "-00:30:00"),
        ] {
            assert_eq!(read(text).map(write), Ok(shown.to_string()), "{text}");
        }
        for text in ["", "month", "p1y", "1 fortnight", "1 day 2 days", "1:2:3:4", "P", "1 2 3"] {
            assert_eq!(read(text).unwrap_err().state(), SqlState::INVALID_DATETIME, "{text}");
        }
        assert_eq!(read("3000000000 days").unwrap_err().state(), SqlState(*b"22015"));
    }
}
