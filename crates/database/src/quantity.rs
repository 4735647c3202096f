//! Times and sizes as people write them: `30s`, `5min`, `64MB`.

use std::time::Duration;

const TIMES: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZES: &[(&str, u64)] = &[("B", 1), ("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1 << 40)];

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit.trim() {
        "" => Some(number),
        unit => {
            let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
            number.checked_mul(*factor)
        }
    }
}

fn format(number: u64, units: &[(&str, u64)]) -> String {
    let fitting = units.iter().rev().find(|(_, factor)| number >= *factor && number.is_multiple_of(*factor));
    match fitting {
        Some((unit, factor)) => format!("{}{unit}", number / factor),
        None => number.to_string(),
    }
}

/// A time; a bare number is milliseconds, as in PostgreSQL.
pub fn parse_time(text: &str) -> Option<Duration> {
    parse(text, TIMES).map(Duration::from_millis)
}

/// The shortest way to write a time.
pub fn format_time(time: Duration) -> String {
    format(time.as_millis() as u64, TIMES)
}

/// A size in bytes; a bare number is bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    parse(text, SIZES)
}

/// The shortest way to write a size.
pub fn format_size(bytes: u64) -> String {
    format(bytes, SIZES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is written reads back, units whatever their case, and nonsense is refused.
    #[test]
    fn quantities() {
        assert_eq!(parse_time("30s"), Some(Duration::from_secs(30)));
        assert_eq!(parse_time(" 250 MS"), Some(Duration::from_millis(250)));
        assert_eq!(parse_time("1500"), Some(Duration::from_millis(1500)));
        assert_eq!(format_time(Duration::from_secs(120)), "2min");
        assert_eq!(format_time(Duration::ZERO), "0");
        assert_eq!(parse_size("64MB"), Some(64 << 20));
        assert_eq!(format_size(64 << 20), "64MB");
        assert_eq!(format_size(1000), "1000B");
        assert!(
            ["", "s", "-1s", "1 fortnight", "99999999999999999999s"].iter().all(|t| parse_time(t).is_none())
        );
    }
}
