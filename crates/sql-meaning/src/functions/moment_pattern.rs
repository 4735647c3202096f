//! Moments by the patterns of `to_char`, `to_date` and `to_timestamp` (PostgreSQL's documentation, 9.8).

use fabius_value::calendar::{self, DAY_MICROS, Fields};
use fabius_value::{Error, Result, SqlState};

const MONTHS: [&str; 12] = [
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
const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The words of `to_char` patterns, longest first where one begins another.
const WORDS: &[&str] = &[
    "HH24", "HH12", "MONTH", "YYYY", "IYYY", "Y,YYY", "SSSSS", "SSSS", "DDD", "DAY", "MON", "YYY", "HH",
    "MI", "SS", "MS", "US", "MM", "DD", "DY", "YY", "IW", "WW", "AM", "PM", "A.M.", "P.M.", "TZH", "TZM",
    "TZ", "OF", "CC", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "RM", "BC", "AD", "B.C.", "A.D.", "Q", "D",
    "J", "Y", "W", "IDDD", "ID", "IYY", "IY", "I",
];

/// A moment by a pattern; its zone by its name and its seconds east of Greenwich, if it has one.
pub(super) fn format_moment(moment: i64, pattern: &str, zone: Option<(String, i64)>) -> String {
    format_fields(&calendar::fields_of(moment), moment.div_euclid(DAY_MICROS), pattern, zone)
}

pub(super) fn format_fields(f: &Fields, days: i64, pattern: &str, zone: Option<(String, i64)>) -> String {
    let mut result = String::new();
    let mut rest = pattern;
    let mut fill = true;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            result += &quoted[..end];
            rest = quoted.get(end + 1..).unwrap_or_default();
            continue;
        }
        let upper = rest.to_ascii_uppercase();
        if upper.starts_with("FM") || upper.starts_with("TM") {
            fill = !upper.starts_with("FM");
            rest = &rest[2..];
            continue;
        }
        let Some(word) = WORDS.iter().find(|word| upper.starts_with(**word)) else {
            result.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let written = &rest[..word.len()];
        // There is no year 0: before 1 comes 1 BC.
        let year = if f.year > 0 { f.year } else { 1 - f.year };
        let number =
            |value: i64, width: usize| if fill { format!("{value:0width$}") } else { value.to_string() };
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
        result += &match *word {
            "YYYY" => number(year, 4),
            "Y,YYY" => format!("{},{:03}", year / 1000, year % 1000),
            "YYY" => number(year % 1000, 3),
            "YY" => number(year % 100, 2),
            "Y" => number(year % 10, 1),
            "CC" => number((f.year - 1).div_euclid(100) + 1, 2),
            "MONTH" => name(month, 9),
            "MON" => name(&month[..3], 3),
            "MM" => number(f.month, 2),
            "RM" => {
                let roman = ROMAN_MONTHS[(f.month - 1).clamp(0, 11) as usize];
                let cased = if is_upper { roman.to_string() } else { roman.to_lowercase() };
                if fill { format!("{cased:4}") } else { cased }
            }
            "DD" => number(f.day, 2),
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
                number(f.micros / 10i64.pow(6 - digits as u32), digits)
            }
            "AM" | "PM" => cased(half),
            "A.M." | "P.M." => cased(&format!("{}.m.", &half[..1])),
            "BC" | "AD" => cased(era),
            "B.C." | "A.D." => cased(&format!("{}.{}.", &era[..1], &era[1..])),
            _ => of_zone(word, zone.as_ref(), is_upper),
        };
        rest = &rest[word.len()..];
        // `FM` is about one word.
        fill = true;
        // `DDth`: an ordinal.
        let ordinal = rest.get(..2).filter(|suffix| suffix.eq_ignore_ascii_case("th"));
        if let (Some(suffix), Some(number)) = (ordinal, trailing_number(&result)) {
            let ending = ordinal_ending(number);
            result += &if suffix == "TH" { ending.to_uppercase() } else { ending.to_string() };
            rest = &rest[2..];
        }
    }
    result
}

/// How many digits of a second's fraction a word of a pattern stands for.
fn digits_of_fraction(word: &str) -> usize {
    match word {
        "MS" => 3,
        "US" => 6,
        _ => word[2..].parse().unwrap_or(6),
    }
}

/// A field of the weeks of ISO 8601, and its digits.
fn of_iso_week(word: &str, days: i64) -> (i64, usize) {
    let ((year, week), weekday) = (calendar::iso_week(days), calendar::iso_weekday(days));
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

/// Reads a moment as a `to_char` pattern shows it.
pub(super) fn read_moment(text: &str, pattern: &str) -> Result<i64> {
    let mut f = Fields { year: 0, month: 1, day: 1, ..Fields::default() };
    let (mut rest, mut pattern) = (text.trim_start(), pattern);
    let (mut is_afternoon, mut is_before_christ, mut day_of_year, mut day) = (None, false, None, None);
    let invalid =
        || Error::new(SqlState::INVALID_DATETIME, format!("invalid value for the pattern: \"{text}\""));
    while let Some(first) = pattern.chars().next() {
        let upper = pattern.to_ascii_uppercase();
        if upper.starts_with("FM") || upper.starts_with("TM") {
            pattern = &pattern[2..];
            continue;
        }
        if let Some(quoted) = pattern.strip_prefix('"') {
            // As many characters are passed over as stand between the quotes.
            let end = quoted.find('"').unwrap_or(quoted.len());
            let count = quoted[..end].chars().count();
            rest = rest.char_indices().nth(count).map_or("", |(at, _)| &rest[at..]);
            pattern = quoted.get(end + 1..).unwrap_or_default();
            continue;
        }
        let Some(word) = WORDS.iter().find(|word| upper.starts_with(**word)) else {
            pattern = &pattern[first.len_utf8()..];
            let mut characters = rest.chars();
            if characters.next().is_some_and(|c| !c.is_alphanumeric()) {
                rest = characters.as_str();
            }
            continue;
        };
        pattern = &pattern[word.len()..];
        if matches!(*word, "MONTH" | "MON") {
            let lower = rest.to_lowercase();
            let found = MONTHS.iter().position(|name| lower.starts_with(&name[..3].to_lowercase()));
            f.month = found.ok_or_else(invalid)? as i64 + 1;
            rest = rest.trim_start_matches(|c: char| c.is_alphabetic());
            continue;
        }
        if matches!(
            *word,
            "AM" | "PM" | "A.M." | "P.M." | "BC" | "AD" | "B.C." | "A.D." | "DAY" | "DY" | "RM"
        ) {
            let read = rest.trim_start_matches(|c: char| c.is_alphabetic() || c == '.' && word.contains('.'));
            let said = rest[..rest.len() - read.len()].to_uppercase();
            match *word {
                "AM" | "PM" | "A.M." | "P.M." => is_afternoon = Some(said.starts_with('P')),
                "BC" | "AD" | "B.C." | "A.D." => is_before_christ = said.starts_with('B'),
                "RM" => {
                    let month = ROMAN_MONTHS.iter().position(|month| *month == said);
                    f.month = month.ok_or_else(invalid)? as i64 + 1;
                }
                _ => {}
            }
            rest = read;
            continue;
        }
        if matches!(
            *word,
            "WW" | "W"
                | "CC"
                | "IYYY"
                | "IYY"
                | "IY"
                | "I"
                | "IDDD"
                | "ID"
                | "IW"
                | "TZ"
                | "OF"
                | "TZH"
                | "TZM"
        ) {
            let message = format!("reading {word} of a pattern is not supported");
            return Err(Error::new(SqlState::NOT_SUPPORTED, message));
        }
        let width = match *word {
            "YYYY" => 4,
            "Y,YYY" | "SSSS" | "SSSSS" => 5,
            "YYY" | "DDD" => 3,
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => digits_of_fraction(word),
            "J" => 7,
            "Y" | "Q" | "D" => 1,
            _ => 2,
        };
        let is_part = |c: &char| c.is_ascii_digit() || *c == ',' && *word == "Y,YYY";
        let written: String = rest.chars().take(width).take_while(is_part).collect();
        rest = &rest[written.len()..];
        let digits = written.replace(',', "");
        let value: i64 = digits.parse().map_err(|_| invalid())?;
        let in_micros = || value * 10i64.pow(6 - digits.len().min(6) as u32);
        match *word {
            "YYYY" | "Y,YYY" => f.year = value,
            // Without its beginning a year is the one that is nearest to 2020.
            "YYY" => f.year = value + if value < 520 { 2000 } else { 1000 },
            "YY" => f.year = value + if value < 70 { 2000 } else { 1900 },
            "Y" => f.year = value + 2000,
            "DDD" => day_of_year = Some(value),
            "J" => day = Some(value - 2_440_588),
            "SSSS" | "SSSSS" => {
                (f.hour, f.minute, f.second) = (value / 3600, value / 60 % 60, value % 60);
            }
            "MM" => f.month = value,
            "DD" => f.day = value,
            "HH24" | "HH" | "HH12" => f.hour = value,
            "MI" => f.minute = value,
            "SS" => f.second = value,
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => f.micros = in_micros(),
            _ => {}
        }
    }
    match is_afternoon {
        Some(true) if f.hour < 12 => f.hour += 12,
        Some(false) if f.hour == 12 => f.hour = 0,
        _ => {}
    }
    if is_before_christ {
        f.year = 1 - f.year;
    }
    let first_day = calendar::days_of_date(f.year, 1, 1);
    if let Some(day) = day.or(day_of_year.map(|day: i64| first_day + day - 1)) {
        let on = calendar::fields_of(day.saturating_mul(DAY_MICROS));
        (f.year, f.month, f.day) = (on.year, on.month, on.day);
    }
    if !(1..=12).contains(&f.month) || !(1..=calendar::month_length(f.year, f.month)).contains(&f.day) {
        return Err(Error::new(
            SqlState::DATETIME_OVERFLOW,
            format!("date/time field value out of range: \"{text}\""),
        ));
    }
    calendar::moment_of(&f).ok_or_else(|| calendar::out_of_range("timestamp"))
}
