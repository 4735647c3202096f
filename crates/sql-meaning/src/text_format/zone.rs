//! Time zones: where clocks show what, by name, abbreviation or distance from Greenwich.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{OffsetName, Tz};
use fabius_value::calendar::{Civil, DAY_MICROS, SECOND_MICROS, civil, days_of, is_infinite};
use fabius_value::moment_text::{self, DateOrder};
use fabius_value::{Error, Result, SqlState};
use std::io::Write;

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
pub enum Zone {
    /// In a zone with rules.
    Named(Tz),
    /// So many microseconds east of Greenwich.
    Offset(i64),
}

impl Zone {
    /// By a name, an abbreviation, or hours west of Greenwich, as POSIX counts them, with letters before them or
    /// without: `+3`, `-05:30`, `UTC+04:43`.
    pub fn of_name(name: &str) -> Option<Zone> {
        let named = zone(name).filter(|_| name.parse::<i32>().is_err()).map(Zone::Named);
        let short = || abbreviated(name).map(|seconds| Zone::Offset(seconds * SECOND_MICROS));
        let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let digits = if digits.starts_with(|c: char| c.is_ascii_digit()) {
            format!("+{digits}")
        } else {
            digits.into()
        };
        named
            .or_else(short)
            .or_else(|| moment_text::offset(&digits).map(|seconds| Zone::Offset(-seconds * SECOND_MICROS)))
    }

    /// What its clocks show at a moment; both in microseconds since 1970.
    pub fn local(self, moment: i64) -> i64 {
        let listed = moment.saturating_sub(past_rules(moment));
        let seconds = match (self, DateTime::from_timestamp_micros(listed)) {
            _ if is_infinite(moment) => return moment,
            (Zone::Offset(micros), _) => return moment.saturating_add(micros),
            (Zone::Named(zone), Some(utc)) => {
                zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc()
            }
            (Zone::Named(_), None) => 0,
        };
        moment.saturating_add(i64::from(seconds) * SECOND_MICROS)
    }

    /// When its clocks show this.
    pub fn moment(self, local: i64) -> i64 {
        let zone = match self {
            _ if is_infinite(local) => return local,
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
        local.saturating_sub(i64::from(seconds) * SECOND_MICROS)
    }
}

/// The years whose changes of clocks stand for those of all later years: among 28 there is one for each weekday with
/// which a year can begin, leap years and others. What is known of zones ends behind them.
const LAST_RULES: std::ops::RangeInclusive<i64> = 2068..=2095;

/// How far behind a moment is of the one in the years of [`LAST_RULES`] at which clocks show the same but for the year.
fn past_rules(moment: i64) -> i64 {
    let Civil { year, .. } = civil(moment.div_euclid(DAY_MICROS));
    if year <= *LAST_RULES.end() || is_infinite(moment) {
        return 0;
    }
    let start = |year| days_of(Civil { year, month: 1, day: 1 });
    let length = |year| start(year + 1) - start(year);
    let is_alike = |other: &i64| length(*other) == length(year) && (start(year) - start(*other)) % 7 == 0;
    LAST_RULES.into_iter().find(is_alike).map_or(0, |other| (start(year) - start(other)) * DAY_MICROS)
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

/// Appends a moment as clocks of a zone show it, and how far they are from Greenwich.
pub(super) fn write_zoned(micros: i64, zone: Tz, out: &mut Vec<u8>) {
    if is_infinite(micros) {
        return moment_text::write_timestamp(micros, out);
    }
    let offset = Zone::Named(zone).local(micros).saturating_sub(micros) / SECOND_MICROS;
    let is_bc = moment_text::write_moment(micros.saturating_add(offset * SECOND_MICROS), out);
    let (sign, size) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
    drop(write!(out, "{sign}{:02}", size / 3600));
    if size % 3600 != 0 {
        drop(write!(out, ":{:02}", size / 60 % 60));
    }
    if size % 60 != 0 {
        drop(write!(out, ":{:02}", size % 60));
    }
    moment_text::write_era(is_bc, out);
}

/// Microseconds since 1970-01-01 00:00:00 in UTC; the session's zone where the text says none. `None` if the text is
/// no moment.
///
/// # Errors
/// `22023` for a zone that is not known.
pub(super) fn read_zoned(text: &str, order: DateOrder, session: Tz) -> Result<Option<i64>> {
    if moment_text::infinite(text).is_some() {
        return Ok(moment_text::read_timestamp(text, order));
    }
    let Some(parts) = moment_text::parts(text, order) else { return Ok(None) };
    let Some(local) = parts.local() else { return Ok(None) };
    let zone = match (parts.offset, parts.zone) {
        (Some(seconds), _) => Zone::Offset(seconds * SECOND_MICROS),
        (None, Some(name)) => within_text(&name)?,
        (None, None) => Zone::Named(session),
    };
    Ok(Some(zone.moment(local)))
}

/// What clocks show by a text that may name a zone, which has to be one but says nothing here.
///
/// # Errors
/// `22023` for a zone that is not known.
pub(super) fn read_unzoned(text: &str, order: DateOrder) -> Result<Option<i64>> {
    if let Some(name) = moment_text::parts(text, order).and_then(|parts| parts.zone) {
        within_text(&name)?;
    }
    Ok(moment_text::read_timestamp(text, order))
}

/// The zone that a moment's text names.
fn within_text(name: &str) -> Result<Zone> {
    if let Some(seconds) = abbreviated(name) {
        return Ok(Zone::Offset(seconds * SECOND_MICROS));
    }
    let unknown = || Error::new(SqlState::INVALID_PARAMETER, format!("time zone \"{name}\" not recognized"));
    zone(name).map(Zone::Named).ok_or_else(unknown)
}
