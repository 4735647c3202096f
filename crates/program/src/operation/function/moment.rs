//! Functions of dates and timestamps.

use fabius_value::{DateField, Datum, Error, Result, SqlState, calendar, decimal};

/// `date_part`: the field as a double.
///
/// # Errors
/// `22023` for a name of no field.
pub(super) fn date_part<'a>(name: &str, moment: i64) -> Result<Datum<'a>> {
    let field = DateField::parse(name).ok_or_else(|| unknown(name))?;
    Ok(Datum::Double(field.of_moment(moment) as f64 / decimal::power_of_ten(field.scale()) as f64))
}

/// `date_trunc`: the start of the unit of time that the timestamp is in.
///
/// # Errors
/// `22023` for a name of no unit, `22008` if the start is before the first timestamp.
pub(super) fn date_truncate<'a>(name: &str, moment: i64) -> Result<Datum<'a>> {
    let unit = DateField::parse_unit(name).ok_or_else(|| unknown(name))?;
    unit.start(moment).map(Datum::Int).ok_or_else(overflow)
}

/// A day that programs compute with.
///
/// # Errors
/// `22008` if there is no such day.
pub(super) fn make_date(year: i64, month: i64, day: i64) -> Result<i64> {
    let (first, last) = calendar::DATE_RANGE;
    let days = calendar::make_date(year, month, day)?;
    let is_of_programs = (first.into()..=last.into()).contains(&days);
    if is_of_programs { Ok(days) } else { Err(calendar::out_of_range("date")) }
}

/// Digits of a second, of which there are 0 to 6.
pub(super) fn second_digits(digits: i64) -> u8 {
    digits.clamp(0, 6) as u8
}

pub(super) fn overflow() -> Error {
    calendar::out_of_range("timestamp")
}

fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(80).collect::<String>().to_lowercase();
    let message = format!("unit \"{shown}\" not recognized for type timestamp without time zone");
    Error::new(SqlState::INVALID_PARAMETER, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: days that are not there are refused, and so are names of no field.
    #[test]
    fn wrong_arguments_are_refused() {
        assert_eq!(make_date(1970, 1, 2).unwrap(), 1);
        assert!(make_date(2023, 2, 29).is_err() && make_date(10_000, 1, 1).is_err());
        assert_eq!(date_part("foo", 0).unwrap_err().state(), SqlState::INVALID_PARAMETER);
        assert!(date_truncate("dow", 0).is_err());
        assert!(date_truncate("hour", i64::MIN + 1).is_err());
        assert!(date_truncate("millennium", i64::MIN + 1).is_err());
    }
}
