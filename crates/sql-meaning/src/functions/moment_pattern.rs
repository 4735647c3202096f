//! Moments by the patterns of `to_char`, `to_date` and `to_timestamp` (PostgreSQL's documentation, 9.8).

use fabius_value::calendar::{self, DAY_MICROS, Fields, HOUR_MICROS, SECOND_MICROS};
use fabius_value::interval::Interval;
use fabius_value::{Error, Result, SqlState};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const ROMAN_MONTHS: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The words of `to_char` patterns, longest first where one begins another.
const WORDS: &[&str] = &[
    "HH24", "HH12", "MONTH", "YYYY", "IYYY", "Y,YYY", "SSSSS", "SSSS", "DDD", "DAY", "MON", "YYY", "HH",
    "MI", "SS", "MS", "US", "MM", "DD", "DY", "YY", "IW", "WW", "AM", "PM", "A.M.", "P.M.", "TZH", "TZM",
    "TZ", "OF", "CC", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "RM", "BC", "AD", "B.C.", "A.D.", "FX", "Q",
    "D", "J", "Y", "W", "IDDD", "ID", "IYY", "IY", "I",
];

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'p> {
    /// A word that stands for a field.
    Field {
        /// The word, in capitals.
        word: &'static str,
        /// The word as it is written.
        written: &'p str,
        /// Without blanks and zeros that fill it: `FM`.
        is_short: bool,
        /// `TH` or `th` behind it: an ordinal.
        ordinal: Option<&'p str>,
    },
    /// A character that stands for itself.
    Text(char),
}

impl Part<'_> {
    /// Whether it is a field in digits.
    pub(super) fn is_number(self) -> bool {
        const NAMES: [&str; 18] = [
            "MONTH", "MON", "DAY", "DY", "RM", "AM", "PM", "A.M.", "P.M.", "BC", "AD", "B.C.", "A.D.", "TZ",
            "TZH", "TZM", "OF", "FX",
        ];
        match self {
            Part::Field { word, .. } => !NAMES.contains(&word),
            Part::Text(c) => c.is_ascii_digit(),
        }
    }
}

/// Takes a pattern apart. Words are written in capitals or small letters, those of names also as names are.
pub(super) fn parts_of(pattern: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut rest, mut prefix, mut is_quoted) = (pattern, "", false);
    while let Some(first) = rest.chars().next() {
        let escaped = rest.strip_prefix('\\').and_then(|behind| behind.chars().next());
        if let Some(c) = escaped.filter(|c| is_quoted || *c == '"') {
            parts.push(Part::Text(c));
            rest = &rest[1 + c.len_utf8()..];
            continue;
        }
        if first == '"' {
            is_quoted = !is_quoted;
            rest = &rest[1..];
            continue;
        }
        let begin = rest.get(..2).filter(|_| !is_quoted && prefix.is_empty()).unwrap_or_default();
        if matches!(begin, "FM" | "fm" | "TM" | "tm") {
            prefix = begin;
            rest = &rest[2..];
            continue;
        }
        let is_word = |word: &&&str| {
            rest.get(..word.len()).is_some_and(|written| {
                let is_name = matches!(**word, "MONTH" | "MON" | "DAY" | "DY")
                    && written.starts_with(|c: char| c.is_ascii_uppercase())
                    && written[1..].chars().all(|c| c.is_ascii_lowercase());
                written == **word
                    || written == word.to_ascii_lowercase()
                    || is_name && written.eq_ignore_ascii_case(word)
            })
        };
        match WORDS.iter().find(|word| !is_quoted && is_word(word)) {
            Some(word) => {
                let written = &rest[..word.len()];
                rest = &rest[word.len()..];
                let ordinal = rest.get(..2).filter(|suffix| matches!(*suffix, "TH" | "th"));
                rest = &rest[ordinal.map_or(0, str::len)..];
                // `TM`: names as they are elsewhere, which are not filled.
                let is_name = matches!(*word, "MONTH" | "MON" | "DAY" | "DY");
                let is_short = prefix.eq_ignore_ascii_case("FM") || is_name && !prefix.is_empty();
                parts.push(Part::Field { word, written, is_short, ordinal });
            }
            None => {
                parts.push(Part::Text(first));
                rest = &rest[first.len_utf8()..];
            }
        }
        prefix = "";
    }
    parts
}

/// A moment by a pattern; its zone by its name and its seconds east of Greenwich, if it has one.
pub(super) fn format_moment(moment: i64, pattern: &str, zone: Option<(String, i64)>) -> String {
    format_fields(&calendar::fields_of(moment), Some(moment.div_euclid(DAY_MICROS)), pattern, zone)
}

/// An interval by a pattern.
///
/// # Errors
/// `22007` for fields of days of the calendar.
pub(super) fn format_interval(interval: Interval, pattern: &str) -> Result<String> {
    const OF_CALENDARS: [&str; 14] =
        ["MONTH", "MON", "DAY", "DY", "D", "ID", "BC", "AD", "B.C.", "A.D.", "TZ", "TZH", "TZM", "OF"];
    let is_of_calendars =
        |part: &Part<'_>| matches!(part, Part::Field { word, .. } if OF_CALENDARS.contains(word));
    if parts_of(pattern).iter().any(is_of_calendars) {
        return Err(Error::new(
            SqlState::INVALID_DATETIME,
            "invalid format specification for an interval value",
        )
        .with_hint("Intervals are not tied to specific calendar dates."));
    }
    let Interval { months, days, micros } = interval;
    let fields = Fields {
        year: (months / 12).into(),
        month: (months % 12).into(),
        day: days.into(),
        hour: micros / HOUR_MICROS,
        minute: micros / (60 * SECOND_MICROS) % 60,
        second: micros / SECOND_MICROS % 60,
        micros: micros % SECOND_MICROS,
    };
    Ok(format_fields(&fields, None, pattern, None))
}

/// Fields by a pattern, and their day; those of an interval have none.
fn format_fields(f: &Fields, day: Option<i64>, pattern: &str, zone: Option<(String, i64)>) -> String {
    let (is_interval, days) = (day.is_none(), day.unwrap_or_default());
    let mut result = String::new();
    for part in parts_of(pattern) {
        let (word, written, fill, ordinal) = match part {
            Part::Text(c) => {
                result.push(c);
                continue;
            }
            Part::Field { word: "FX", .. } => continue,
            Part::Field { word, written, is_short, ordinal } => (word, written, !is_short, ordinal),
        };
        // There is no year 0, but in an interval: before 1 comes 1 BC.
        let year = if f.year > 0 || is_interval { f.year } else { 1 - f.year };
        let number = |value: i64, width: usize| {
            let width = width + usize::from(value < 0);
            if fill { format!("{value:0width$}") } else { value.to_string() }
        };
        let name = |name: &str, width: usize| {
            let cased = if written.chars().nth(1).is_some_and(|c| c.is_uppercase()) {
                name.to_uppercase()
            } else if written.starts_with(|c: char| c.is_uppercase()) {
                name.to_string()
            } else {
                name.to_lowercase()
            };
            if fill { format!("{cased:width$}") } else { cased }
        };
        let month = MONTHS[(f.month - 1).clamp(0, 11) as usize];
        let day = DAYS[calendar::weekday(days) as usize];
        let half = if f.hour < 12 { "am" } else { "pm" };
        let era = if f.year > 0 { "ad" } else { "bc" };
        let is_upper = written.starts_with(|c: char| c.is_uppercase());
        let cased = |word: &str| if is_upper { word.to_uppercase() } else { word.to_string() };
        let shown = match word {
            "YYYY" => number(year, 4),
            "Y,YYY" => format!("{},{:03}", year / 1000, year % 1000),
            "YYY" => number(year % 1000, 3),
            "YY" => number(year % 100, 2),
            "Y" => number(year % 10, 1),
            "CC" if is_interval => number(f.year / 100, 2),
            "CC" if f.year > 0 => number((f.year - 1) / 100 + 1, 2),
            "CC" => number(f.year / 100 - 1, 2),
            "MONTH" => name(month, 9),
            "MON" => name(&month[..3], 3),
            "MM" => number(f.month, 2),
            "RM" => {
                let roman = ROMAN_MONTHS[(f.month - 1).clamp(0, 11) as usize];
                let cased = if is_upper { roman.to_string() } else { roman.to_lowercase() };
                if fill { format!("{cased:4}") } else { cased }
            }
            "DD" if fill => format!("{:02}", f.day),
            "DD" => f.day.to_string(),
            "DDD" if is_interval => number((f.year * 12 + f.month) * 30 + f.day, 3),
            "DDD" => number(days - calendar::days_of_date(f.year, 1, 1) + 1, 3),
            "DAY" => name(day, 9),
            "DY" => name(&day[..3], 3),
            "D" => number(calendar::weekday(days) + 1, 1),
            "IYYY" | "IYY" | "IY" | "I" | "IDDD" | "ID" | "IW" => {
                let (value, width) = of_iso_week(word, days);
                number(value, width)
            }
            "WW" => number((days - calendar::days_of_date(f.year, 1, 1)) / 7 + 1, 2),
            "W" => number((f.day - 1) / 7 + 1, 1),
            "Q" => number((f.month - 1) / 3 + 1, 1),
            "J" => number(days + 2_440_588, 7),
            "HH24" => number(f.hour, 2),
            "HH" | "HH12" => number((f.hour + 11) % 12 + 1, 2),
            "MI" => number(f.minute, 2),
            "SS" => number(f.second, 2),
            "SSSS" | "SSSSS" => number((f.hour * 60 + f.minute) * 60 + f.second, 1),
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let digits = digits_of_fraction(word);
                format!("{:0digits$}", f.micros / 10i64.pow(6 - digits as u32))
            }
            "AM" | "PM" => cased(half),
            "A.M." | "P.M." => cased(&format!("{}.m.", &half[..1])),
            "BC" | "AD" => cased(era),
            "B.C." | "A.D." => cased(&format!("{}.{}.", &era[..1], &era[1..])),
            _ => of_zone(word, zone.as_ref(), is_upper),
        };
        result += &shown;
        if let (Some(suffix), Some(number)) = (ordinal.filter(|_| part.is_number()), trailing_number(&shown))
        {
            let ending = ordinal_ending(number);
            result += &if suffix == "TH" { ending.to_uppercase() } else { ending.to_string() };
        }
    }
    result
}

/// How many digits of a second's fraction a word of a pattern stands for.
pub(super) fn digits_of_fraction(word: &str) -> usize {
    match word {
        "MS" => 3,
        "US" => 6,
        _ => word[2..].parse().unwrap_or(6),
    }
}

/// A field of the weeks of ISO 8601, and its digits.
fn of_iso_week(word: &str, days: i64) -> (i64, usize) {
    let ((year, week), weekday) = (calendar::iso_week(days), calendar::iso_weekday(days));
    let year = if year > 0 { year } else { 1 - year };
    match word {
        "IYYY" => (year, 4),
        "IYY" => (year % 1000, 3),
        "IY" => (year % 100, 2),
        "I" => (year % 10, 1),
        "IDDD" => ((week - 1) * 7 + weekday, 3),
        "IW" => (week, 2),
        _ => (weekday, 1),
    }
}

/// A zone by a word of a pattern: by its name, or by its hours and minutes east of Greenwich.
fn of_zone(word: &str, zone: Option<&(String, i64)>, is_upper: bool) -> String {
    let seconds = zone.map_or(0, |(_, seconds)| *seconds);
    let hours = format!("{}{:02}", if seconds < 0 { '-' } else { '+' }, seconds.abs() / 3600);
    let minutes = seconds.abs() / 60 % 60;
    match word {
        "TZ" => {
            let name = zone.map(|(name, _)| name.clone()).unwrap_or_default();
            if is_upper { name } else { name.to_lowercase() }
        }
        "TZH" => hours,
        "TZM" => format!("{minutes:02}"),
        _ if minutes > 0 => format!("{hours}:{minutes:02}"),
        _ => hours,
    }
}

/// The number that a text ends with.
fn trailing_number(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    text[text.len() - digits..].parse().ok()
}

/// `st`, `nd`, `rd`, `th`.
pub(super) fn ordinal_ending(number: u64) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}
