//! `to_date` and `to_timestamp`: moments read by a pattern (PostgreSQL 15, 9.8).
//!
//! Blanks before a field do not count, and a separator of the pattern stands for any one of the text, or for none. A
//! field in digits takes as many as its word has letters, or all that come where the pattern goes on with something
//! else. Where the text ends, the rest of the pattern says nothing.

use super::moment_pattern::{DAYS, MONTHS, Part, ROMAN_MONTHS, digits_of_fraction, parts_of};
use fabius_value::calendar::{self, DAY_MICROS, Fields};
use fabius_value::{Error, Result, SqlState};

/// What a text has said so far; nothing of it twice in two ways.
#[derive(Default)]
struct Said {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    second_of_day: Option<i64>,
    micros: Option<i64>,
    is_afternoon: Option<bool>,
    is_bc: bool,
    /// Whether hours are those of a clock with twelve.
    is_half_day: bool,
}

/// Reads a moment by a pattern.
///
/// # Errors
/// `22007` for a text that the pattern does not fit, `22008` for a moment that there is not, `0A000` for fields that
/// are not read.
pub(super) fn read_moment(text: &str, pattern: &str) -> Result<i64> {
    let parts = parts_of(pattern);
    let is_strict = parts.iter().any(|part| matches!(part, Part::Field { word: "FX", .. }));
    let mut said = Said::default();
    let (mut rest, mut skipped) = (text, 0usize);
    for (at, part) in parts.iter().enumerate() {
        if !is_strict && (at == 0 || matches!(part, Part::Field { .. })) {
            let behind = rest.trim_start();
            skipped += rest.len() - behind.len();
            rest = behind;
        }
        let Some(next) = rest.chars().next() else { break };
        match part {
            Part::Field { word: "FX", .. } => {}
            Part::Field { word, .. } if !part.is_number() => rest = said.name(word, rest)?,
            Part::Field { word, is_short, ordinal, .. } => {
                let is_last = parts[at + 1..].first().is_none_or(|next| !next.is_number());
                let takes_all = *is_short || ordinal.is_some() || is_last;
                rest = said.number(word, rest, takes_all)?;
                // `1st`
                rest = if ordinal.is_some() { rest.get(2..).unwrap_or_default() } else { rest };
            }
            // A separator or blank of the pattern is one of the text, or none.
            Part::Text(c) if !is_strict && !c.is_alphanumeric() => {
                match next.is_alphanumeric() || !next.is_ascii() {
                    true => skipped = skipped.saturating_sub(1),
                    false => rest = &rest[next.len_utf8()..],
                }
            }
            // What has been passed over already may have been it.
            Part::Text(_) if !is_strict && skipped > 0 => skipped -= 1,
            Part::Text(_) => rest = &rest[next.len_utf8()..],
        }
    }
    said.moment(text)
}

/// `22007`
fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_DATETIME, message)
}

/// Notes what a field says.
fn set<T: PartialEq + Copy>(field: &mut Option<T>, value: T, word: &str) -> Result<()> {
    match field.replace(value) {
        Some(before) if before != value => {
            Err(invalid(format!("conflicting values for \"{word}\" field in formatting string"))
                .with_detail("This value contradicts a previous setting for the same field type."))
        }
        _ => Ok(()),
    }
}

impl Said {
    /// Takes a name; gives what is behind it.
    fn name<'t>(&mut self, word: &str, text: &'t str) -> Result<&'t str> {
        let begins =
            |name: &str| text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        let short =
            |names: &[&'static str]| names.iter().position(|name| begins(&name[..3])).map(|at| (at, 3));
        // The longest first: VIII before VII.
        let long = |names: &[&'static str]| {
            let found = names.iter().enumerate().filter(|(_, name)| begins(name));
            found.max_by_key(|(_, name)| name.len()).map(|(at, name)| (at, name.len()))
        };
        let found = match word {
            "MONTH" => long(&MONTHS),
            "MON" => short(&MONTHS),
            "DAY" => long(&DAYS),
            "DY" => short(&DAYS),
            "RM" => long(&ROMAN_MONTHS),
            "AM" | "PM" => long(&["AM", "PM"]),
            "A.M." | "P.M." => long(&["A.M.", "P.M."]),
            "AD" | "BC" => long(&["AD", "BC"]),
            "A.D." | "B.C." => long(&["A.D.", "B.C."]),
            _ => return Err(not_read(word)),
        };
        let (at, length) = found.ok_or_else(|| {
            let given: String = text.chars().take_while(|c| !c.is_whitespace()).take(40).collect();
            invalid(format!("invalid value \"{given}\" for \"{word}\""))
                .with_detail("The given value did not match any of the allowed values for this field.")
        })?;
        match word {
            "MONTH" | "MON" | "RM" => set(&mut self.month, at as i64 + 1, word)?,
            "AM" | "PM" | "A.M." | "P.M." => {
                set(&mut self.is_afternoon, at == 1, word)?;
                self.is_half_day = true;
            }
            "AD" | "BC" | "A.D." | "B.C." => self.is_bc = at == 1,
            _ => {}
        }
        Ok(&text[length..])
    }

    /// Takes a number of as many digits as a word has letters, or of all that there are; gives what is behind it.
    fn number<'t>(&mut self, word: &'static str, text: &'t str, takes_all: bool) -> Result<&'t str> {
        let width = match word {
            "YYYY" => 4,
            "Y,YYY" | "SSSS" | "SSSSS" => 5,
            "YYY" | "DDD" => 3,
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => digits_of_fraction(word),
            "J" => 7,
            "Y" | "Q" | "D" => 1,
            "YY" | "MM" | "DD" | "HH24" | "HH12" | "HH" | "MI" | "SS" => 2,
            _ => return Err(not_read(word)),
        };
        if word == "Y,YYY" {
            let (thousands, rest) = text.split_once(',').ok_or_else(|| no_integer(word, text))?;
            let (units, rest) = rest.split_at_checked(3).ok_or_else(|| no_integer(word, text))?;
            let year = thousands.parse::<i64>().ok().zip(units.parse::<i64>().ok());
            let (thousands, units) = year.ok_or_else(|| no_integer(word, text))?;
            set(&mut self.year, thousands * 1000 + units, word)?;
            return Ok(rest);
        }
        let text = text.trim_start();
        let sign = usize::from(text.starts_with(['+', '-']));
        let most = if takes_all { 18 } else { width };
        let end = text[sign..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| end + sign);
        let end = end.min(if takes_all { end } else { most });
        let value: i64 = text[..end].parse().map_err(|_| no_integer(word, text))?;
        if !takes_all && end < width {
            let detail = format!("Field requires {width} characters, but only {end} could be parsed.");
            return Err(no_integer(word, &text[..end]).with_detail(detail));
        }
        self.take(word, value, end - sign)?;
        Ok(&text[end..])
    }

    fn take(&mut self, word: &'static str, value: i64, digits: usize) -> Result<()> {
        match word {
            "YYYY" => set(&mut self.year, value, word),
            // Without its beginning a year is the one that is nearest to 2020.
            "YYY" | "YY" | "Y" if digits < 4 => set(
                &mut self.year,
                match value {
                    0..70 => value + 2000,
                    70..100 => value + 1900,
                    100..520 => value + 2000,
                    520..1000 => value + 1000,
                    _ => value,
                },
                word,
            ),
            "YYY" | "YY" | "Y" => set(&mut self.year, value, word),
            "MM" => set(&mut self.month, value, word),
            "DD" => set(&mut self.day, value, word),
            "DDD" => set(&mut self.day_of_year, value, word),
            "J" => set(&mut self.julian, value, word),
            "HH24" => set(&mut self.hour, value, word),
            "HH" | "HH12" => {
                self.is_half_day = true;
                set(&mut self.hour, value, word)
            }
            "MI" => set(&mut self.minute, value, word),
            "SS" => set(&mut self.second, value, word),
            "SSSS" | "SSSSS" => set(&mut self.second_of_day, value, word),
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                // `.25` is a quarter of a second, however many digits the word stands for.
                let scale = 10_i64.checked_pow(6_u32.saturating_sub(digits as u32)).unwrap_or(1);
                set(&mut self.micros, value.saturating_mul(scale), word)
            }
            _ => Ok(()),
        }
    }

    /// The moment of all that is said; what is not said is the beginning of 1 BC.
    fn moment(self, text: &str) -> Result<i64> {
        let beyond = || {
            let message = format!("date/time field value out of range: \"{text}\"");
            Err(Error::new(SqlState::DATETIME_OVERFLOW, message))
        };
        let mut f = Fields { year: 0, month: 1, day: 1, ..Fields::default() };
        if let Some(of_day) = self.second_of_day {
            (f.hour, f.minute, f.second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        }
        f.hour = self.hour.unwrap_or(f.hour);
        f.minute = self.minute.unwrap_or(f.minute);
        f.second = self.second.unwrap_or(f.second);
        f.micros = self.micros.unwrap_or_default();
        if self.is_half_day {
            if !(1..=12).contains(&f.hour) {
                return Err(invalid(format!("hour \"{}\" is invalid for the 12-hour clock", f.hour))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            match self.is_afternoon {
                Some(true) if f.hour < 12 => f.hour += 12,
                Some(true) => {}
                _ if f.hour == 12 => f.hour = 0,
                _ => {}
            }
        }
        f.year = match self.year {
            Some(year) if self.is_bc || year < 0 => 1 - year.saturating_abs(),
            Some(year) => year,
            None => 0,
        };
        f.month = self.month.filter(|month| *month != 0).unwrap_or(1);
        f.day = self.day.filter(|day| *day != 0).unwrap_or(1);
        if !(-4713..=300_000).contains(&f.year) {
            return beyond();
        }
        let mut day = self.julian.map(|julian| julian - 2_440_588);
        if let Some(of_year) = self.day_of_year.filter(|_| day.is_none() && (f.month <= 1 || f.day <= 1)) {
            if self.year.is_none() && !self.is_bc {
                return Err(invalid("cannot calculate day of year without year information".into()));
            }
            let (first, last) =
                (calendar::days_of_date(f.year, 1, 1), calendar::days_of_date(f.year, 12, 31));
            let on = first.saturating_add(of_year - 1);
            if !(first..=last).contains(&on) {
                return beyond();
            }
            day = Some(on);
        }
        if let Some(day) = day {
            let on = calendar::fields_of(day.saturating_mul(DAY_MICROS));
            (f.year, f.month, f.day) = (on.year, on.month, on.day);
        }
        let is_day =
            (1..=12).contains(&f.month) && (1..=calendar::month_length(f.year, f.month)).contains(&f.day);
        let is_time = (0..24).contains(&f.hour) && (0..60).contains(&f.minute) && (0..60).contains(&f.second);
        if !is_day || !is_time || !(0..1_000_000).contains(&f.micros) {
            return beyond();
        }
        calendar::moment_of(&f).ok_or_else(|| calendar::out_of_range("timestamp"))
    }
}

/// `0A000`
fn not_read(word: &str) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, format!("reading {word} of a pattern is not supported"))
}

fn no_integer(word: &str, text: &str) -> Error {
    let given: String = text.chars().take(20).collect();
    invalid(format!("invalid value \"{given}\" for \"{word}\"")).with_detail("Value must be an integer.")
}
