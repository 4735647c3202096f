//! Functions of dates, times and intervals.

use super::moment_pattern::{format_interval, format_moment};
use super::moment_reading::read_moment;
use super::{Call, Definition, define, double_at, integer_at, text_at};
use crate::sql_type::SqlType;
use crate::text_format::Zone;
use fabius_value::calendar::{
    self, DAY_MICROS, HOUR_MICROS, MINUTE_MICROS, SECOND_MICROS, is_infinite, rounded_micros, rounded_moment,
};
use fabius_value::interval::Interval;
use fabius_value::{DataType, DateField, Decimal, Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let others = vec![
        define("extract(text, timestamp) numeric", extract),
        define("extract(text, timestamptz) numeric", extract),
        define("extract(text, date) numeric", extract),
        define("extract(text, time) numeric", extract),
        define("extract(text, interval) numeric", extract),
        define("date_part(text, timestamp) float8", date_part),
        define("date_part(text, timestamptz) float8", date_part),
        define("date_part(text, date) float8", date_part),
        define("date_part(text, time) float8", date_part),
        define("date_part(text, interval) float8", date_part),
        define("date_trunc(text, timestamp) timestamp", date_trunc).in_programs("date_trunc"),
        define("date_trunc(text, timestamptz) timestamptz", date_trunc).in_programs("date_trunc"),
        define("date_trunc(text, timestamptz, text) timestamptz", date_trunc),
        define("date_trunc(text, interval) interval", |a, _| {
            let name = text_at(a, 0).to_lowercase();
            let field = DateField::parse_unit(&name);
            if field == Some(DateField::Week) {
                return Err(Error::new(
                    SqlState::NOT_SUPPORTED,
                    "unit \"week\" not supported for type interval",
                )
                .with_detail("Months usually have fractional weeks."));
            }
            let truncated = field.and_then(|field| interval_at(a, 1).truncated(field));
            truncated.map(Interval::into_value).ok_or_else(|| {
                let message = format!("unit \"{name}\" not recognized for type interval");
                Error::new(SqlState::INVALID_PARAMETER, message)
            })
        }),
        define("to_char(timestamp, text) text", |a, _| Ok(shown(moment_at(a, 0), text_at(a, 1), None))),
        define("to_char(timestamptz, text) text", |a, c| {
            let (style, moment) = (&c.environment.style, moment_at(a, 0));
            let local = style.local(moment);
            let zone = (style.zone_at(moment), (local - moment) / SECOND_MICROS);
            Ok(shown(local, text_at(a, 1), Some(zone)))
        }),
        define("to_char(interval, text) text", |a, _| {
            format_interval(interval_at(a, 0), text_at(a, 1)).map(Value::Text)
        }),
        define("to_date(text, text) date", |a, _| {
            let moment = read_moment(text_at(a, 0), text_at(a, 1))?;
            Ok(Value::Date(moment.div_euclid(DAY_MICROS) as i32))
        }),
        define("to_timestamp(text, text) timestamptz", |a, c| {
            let local = read_moment(text_at(a, 0), text_at(a, 1))?;
            Ok(Value::Timestamp(c.environment.style.moment(local)))
        }),
        define("to_timestamp(float8) timestamptz", |a, _| {
            // The seconds from 1970 to 2000, which PostgreSQL counts from; its first day, in 4714 BC.
            const EPOCH: i64 = 946_684_800;
            const FIRST: f64 = -210_866_803_200.0;
            let seconds = double_at(a, 0);
            if seconds.is_nan() {
                return Err(Error::new(SqlState::DATETIME_OVERFLOW, "timestamp cannot be NaN"));
            }
            if seconds.is_infinite() {
                return Ok(Value::Timestamp(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
            }
            let micros = ((seconds - EPOCH as f64) * 1e6).round_ties_even();
            let moment = (micros as i64).checked_add(EPOCH * calendar::SECOND_MICROS);
            let moment = moment.filter(|_| seconds >= FIRST && micros.abs() < i64::MAX as f64);
            moment.map(Value::Timestamp).ok_or_else(|| calendar::out_of_range("timestamp"))
        }),
        define("make_date(int, int, int) date", |a, _| {
            let days = calendar::make_date(integer_at(a, 0), integer_at(a, 1), integer_at(a, 2))?;
            i32::try_from(days).map(Value::Date).map_err(|_| calendar::out_of_range("date"))
        }),
        define("make_time(int, int, float8) time", |a, _| {
            made_time(integer_at(a, 0), integer_at(a, 1), double_at(a, 2)).map(Value::BigInt)
        }),
        define("make_timestamp(int, int, int, int, int, float8) timestamp", |a, _| {
            made_moment(a).map(Value::Timestamp)
        }),
        define("make_timestamptz(int, int, int, int, int, float8) timestamptz", |a, c| {
            Ok(Value::Timestamp(c.environment.style.moment(made_moment(a)?)))
        }),
        define("make_timestamptz(int, int, int, int, int, float8, text) timestamptz", |a, _| {
            Ok(Value::Timestamp(zone(text_at(a, 6))?.moment(made_moment(a)?)))
        }),
        define("make_interval(int?, int?, int?, int?, int?, int?, float8?) interval", |a, _| {
            let months = integer_at(a, 0) * 12 + integer_at(a, 1);
            let days = integer_at(a, 2) * 7 + integer_at(a, 3);
            let micros = integer_at(a, 4) * HOUR_MICROS
                + integer_at(a, 5) * MINUTE_MICROS
                + (double_at(a, 6) * 1e6).round() as i64;
            or_out_of_range(Interval::of_parts(months, days, micros))
        }),
        define("justify_days(interval) interval", |a, _| {
            let Interval { months, days, micros } = interval_at(a, 0);
            let (months, days) = carried(months.into(), days.into(), 30);
            or_out_of_range(Interval::of_parts(months, days, micros))
        }),
        define("justify_hours(interval) interval", |a, _| {
            let Interval { months, days, micros } = interval_at(a, 0);
            let (days, micros) = carried(days.into(), micros, DAY_MICROS);
            or_out_of_range(Interval::of_parts(months.into(), days, micros))
        }),
        define("justify_interval(interval) interval", |a, _| {
            // A month is 30 days, and all parts have one sign.
            let all = interval_at(a, 0).span();
            let (days, micros) = (all / i128::from(DAY_MICROS), all % i128::from(DAY_MICROS));
            or_out_of_range(Interval::of_parts((days / 30) as i64, (days % 30) as i64, micros as i64))
        }),
        define("isfinite(date) bool", |a, _| Ok(Value::Boolean(!is_infinite(moment_at(a, 0))))),
        define("isfinite(timestamp) bool", |a, _| Ok(Value::Boolean(!is_infinite(moment_at(a, 0))))),
        define("isfinite(timestamptz) bool", |a, _| Ok(Value::Boolean(!is_infinite(moment_at(a, 0))))),
        define("isfinite(interval) bool", |_, _| Ok(Value::Boolean(true))),
        define("date_bin(interval, timestamp, timestamp) timestamp", date_bin),
        define("date_bin(interval, timestamptz, timestamptz) timestamptz", date_bin),
        define("timezone(text, timestamp) timestamptz", |a, _| {
            Ok(Value::Timestamp(zone(text_at(a, 0))?.moment(moment_at(a, 1))))
        }),
        define("timezone(text, timestamptz) timestamp", |a, _| {
            Ok(Value::Timestamp(zone(text_at(a, 0))?.local(moment_at(a, 1))))
        }),
        define("fabius_span(interval) numeric", |a, _| {
            Ok(Value::Numeric(Decimal { mantissa: interval_at(a, 0).span(), scale: 0 }))
        }),
        define("fabius_series(timestamp, timestamp, interval) timestamp[]", series),
        define("fabius_series(timestamptz, timestamptz, interval) timestamptz[]", series),
    ];
    clocks().into_iter().chain(ages()).chain(others).collect()
}

/// What the time is.
fn clocks() -> Vec<Definition> {
    vec![
        define("now() timestamptz stable", |_, c| {
            Ok(Value::Timestamp(c.environment.session.transaction_us()))
        }),
        define("transaction_timestamp() timestamptz stable", |_, c| {
            Ok(Value::Timestamp(c.environment.session.transaction_us()))
        }),
        define("statement_timestamp() timestamptz stable", |_, c| {
            Ok(Value::Timestamp(c.environment.session.statement_us()))
        }),
        define("clock_timestamp() timestamptz volatile", |_, c| {
            Ok(Value::Timestamp(c.environment.session.now_us()))
        }),
        define("timeofday() text volatile", |_, c| {
            Ok(Value::Text(Value::Timestamp(c.environment.session.now_us()).to_string()))
        }),
        define("current_timestamp() timestamptz stable", |_, c| {
            Ok(Value::Timestamp(c.environment.session.transaction_us()))
        }),
        define("current_timestamp(int) timestamptz stable", |a, c| {
            Ok(Value::Timestamp(rounded_moment(c.environment.session.transaction_us(), digits(a))))
        }),
        define("localtimestamp(int) timestamp stable", |a, c| {
            Ok(Value::Timestamp(rounded_moment(local_now(c), digits(a))))
        }),
        define("localtime(int) time stable", |a, c| {
            Ok(Value::BigInt(rounded_micros(local_now(c).rem_euclid(DAY_MICROS), digits(a))))
        }),
        define("current_date() date stable", |_, c| {
            Ok(Value::Date(local_now(c).div_euclid(DAY_MICROS) as i32))
        }),
        define("localtimestamp() timestamp stable", |_, c| Ok(Value::Timestamp(local_now(c)))),
        define("localtime() time stable", |_, c| Ok(Value::BigInt(local_now(c).rem_euclid(DAY_MICROS)))),
    ]
}

/// The operators of dates, times and intervals.
pub fn operators() -> Vec<Definition> {
    vec![
        define("+(timestamp, interval) timestamp", |a, _| moved(moment_at(a, 0), interval_at(a, 1))),
        define("+(interval, timestamp) timestamp", |a, _| moved(moment_at(a, 1), interval_at(a, 0))),
        define("+(date, interval) timestamp", |a, _| moved(moment_at(a, 0), interval_at(a, 1))),
        define("+(interval, date) timestamp", |a, _| moved(moment_at(a, 1), interval_at(a, 0))),
        define("-(date, interval) timestamp", |a, _| moved(moment_at(a, 0), back_at(a, 1)?)),
        define("+(date, time) timestamp", |a, _| moved(moment_at(a, 0), of_time(integer_at(a, 1)))),
        define("+(time, date) timestamp", |a, _| moved(moment_at(a, 1), of_time(integer_at(a, 0)))),
        define("+(interval, timestamptz) timestamptz", |a, c| {
            moved_in_zone(moment_at(a, 1), interval_at(a, 0), c)
        }),
        define("+(timestamptz, interval) timestamptz", |a, c| {
            moved_in_zone(moment_at(a, 0), interval_at(a, 1), c)
        }),
        define("-(timestamp, interval) timestamp", |a, _| moved(moment_at(a, 0), back_at(a, 1)?)),
        define("-(timestamptz, interval) timestamptz", |a, c| {
            moved_in_zone(moment_at(a, 0), back_at(a, 1)?, c)
        }),
        define("+(time, interval) time", |a, _| {
            let Interval { micros, .. } = interval_at(a, 1);
            Ok(Value::BigInt((integer_at(a, 0) + micros).rem_euclid(DAY_MICROS)))
        }),
        define("+(interval, time) time", |a, _| {
            let Interval { micros, .. } = interval_at(a, 0);
            Ok(Value::BigInt((integer_at(a, 1) + micros).rem_euclid(DAY_MICROS)))
        }),
        define("-(time, interval) time", |a, _| {
            let Interval { micros, .. } = interval_at(a, 1);
            Ok(Value::BigInt((integer_at(a, 0) - micros).rem_euclid(DAY_MICROS)))
        }),
        define(
            "-(time, time) interval",
            |a, _| Ok(of_time(integer_at(a, 0) - integer_at(a, 1)).into_value()),
        ),
        define("+(date, int) date", |a, _| shifted(&a[0], integer_at(a, 1))),
        define("+(int, date) date", |a, _| shifted(&a[1], integer_at(a, 0))),
        define("-(date, int) date", |a, _| shifted(&a[0], -integer_at(a, 1))),
        define("-(date, date) int", |a, _| match (&a[0], &a[1]) {
            (Value::Date(i32::MAX | i32::MIN), _) | (_, Value::Date(i32::MAX | i32::MIN)) => {
                Err(Error::new(SqlState::DATETIME_OVERFLOW, "cannot subtract infinite dates"))
            }
            (Value::Date(later), Value::Date(earlier)) => Ok(Value::Int(later - earlier)),
            _ => Ok(Value::Null),
        }),
        define("-(timestamp, timestamp) interval", between),
        define("-(timestamptz, timestamptz) interval", between),
        define("+(interval, interval) interval", |a, _| {
            or_out_of_range(interval_at(a, 0).checked_add(interval_at(a, 1)))
        }),
        define("-(interval, interval) interval", |a, _| {
            or_out_of_range(interval_at(a, 0).checked_add(back_at(a, 1)?))
        }),
        define("*(interval, float8) interval", |a, _| {
            or_out_of_range(interval_at(a, 0).scaled(|part| part * double_at(a, 1)))
        }),
        define("*(float8, interval) interval", |a, _| {
            or_out_of_range(interval_at(a, 1).scaled(|part| part * double_at(a, 0)))
        }),
        define("-(interval) interval", |a, _| back_at(a, 0).map(Interval::into_value)),
        define("/(interval, float8) interval", |a, _| match double_at(a, 1) {
            0.0 => Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")),
            divisor => or_out_of_range(interval_at(a, 0).scaled(|part| part / divisor)),
        }),
    ]
}

/// What is larger than a unit of what is above it goes there; what is left has the sign of that.
fn carried(above: i64, below: i64, unit: i64) -> (i64, i64) {
    let (above, below) = (above + below / unit, below % unit);
    match (above.signum(), below.signum()) {
        (1, -1) => (above - 1, below + unit),
        (-1, 1) => (above + 1, below - unit),
        _ => (above, below),
    }
}

fn moment_at(a: &[Value], at: usize) -> i64 {
    match a.get(at) {
        Some(Value::BigInt(micros)) => *micros,
        Some(value) => calendar::moment_of_value(value).unwrap_or_default(),
        None => 0,
    }
}

/// What the session's clock shows when the transaction begins.
/// Microseconds since midnight; `22008` for parts that no day has.
fn made_time(hours: i64, minutes: i64, seconds: f64) -> Result<i64> {
    let micros = (seconds * 1e6).round_ties_even();
    let fits = (0..=24).contains(&hours) && (0..60).contains(&minutes) && (0.0..=60e6).contains(&micros);
    let time = if fits { hours * HOUR_MICROS + minutes * MINUTE_MICROS + micros as i64 } else { i64::MAX };
    if time > DAY_MICROS {
        let message = format!("time field value out of range: {hours}:{minutes:02}:{seconds}");
        return Err(Error::new(SqlState::DATETIME_OVERFLOW, message));
    }
    Ok(time)
}

/// The moment of a year, month, day, hour, minute and second.
fn made_moment(a: &[Value]) -> Result<i64> {
    let days = calendar::make_date(integer_at(a, 0), integer_at(a, 1), integer_at(a, 2))?;
    let time = made_time(integer_at(a, 3), integer_at(a, 4), double_at(a, 5))?;
    Ok(days.saturating_mul(DAY_MICROS).saturating_add(time))
}

/// The digits of a second that the first argument says.
fn digits(a: &[Value]) -> u8 {
    a.first().and_then(Value::as_integer).unwrap_or(6).clamp(0, 6) as u8
}

fn local_now(call: &Call) -> i64 {
    call.environment.style.local(call.environment.session.transaction_us())
}

fn date_bin(a: &[Value], _: &Call) -> Result<Value> {
    let Interval { months, days, micros } = interval_at(a, 0);
    let width = i128::from(days) * i128::from(DAY_MICROS) + i128::from(micros);
    if months != 0 {
        return Err(Error::new(
            SqlState::NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    if width <= 0 {
        return Err(Error::new(SqlState::DATETIME_OVERFLOW, "stride must be greater than zero"));
    }
    let (moment, origin) = (i128::from(moment_at(a, 1)), i128::from(moment_at(a, 2)));
    Ok(Value::Timestamp((origin + (moment - origin).div_euclid(width) * width) as i64))
}

fn zone(name: &str) -> Result<Zone> {
    Zone::of_name(name).ok_or_else(|| {
        Error::new(SqlState::INVALID_PARAMETER, format!("time zone \"{name}\" not recognized"))
    })
}

/// Days and months go by the session's clock, hours by all.
fn moved_in_zone(moment: i64, interval: Interval, call: &Call) -> Result<Value> {
    let style = &call.environment.style;
    if style.is_utc() || (interval.months == 0 && interval.days == 0) {
        return moved(moment, interval);
    }
    let by_days = Interval { micros: 0, ..interval };
    let Value::Timestamp(local) = moved(style.local(moment), by_days)? else { return Ok(Value::Null) };
    moved(style.moment(local), Interval { micros: interval.micros, ..Interval::default() })
}

fn moved(moment: i64, interval: Interval) -> Result<Value> {
    let moved = interval.after(moment);
    moved.map(Value::Timestamp).ok_or_else(|| calendar::out_of_range("timestamp"))
}

/// The interval that an argument is.
fn interval_at(a: &[Value], at: usize) -> Interval {
    a.get(at).and_then(Interval::of_value).unwrap_or_default()
}

/// The interval that an argument is, back.
fn back_at(a: &[Value], at: usize) -> Result<Interval> {
    interval_at(a, at).checked_neg().ok_or_else(|| calendar::out_of_range("interval"))
}

/// # Errors
/// `22008` if a part was too large.
pub(super) fn or_out_of_range(interval: Option<Interval>) -> Result<Value> {
    interval.map(Interval::into_value).ok_or_else(|| calendar::out_of_range("interval"))
}

/// The time from one moment to another.
fn between(a: &[Value], _: &Call) -> Result<Value> {
    let (later, earlier) = (moment_at(a, 0), moment_at(a, 1));
    if is_infinite(later) || is_infinite(earlier) {
        return Err(Error::new(SqlState::DATETIME_OVERFLOW, "cannot subtract infinite timestamps"));
    }
    let micros = later.checked_sub(earlier).ok_or_else(|| calendar::out_of_range("interval"))?;
    or_out_of_range(Interval::of_parts(0, micros / DAY_MICROS, micros % DAY_MICROS))
}

fn shifted(date: &Value, days: i64) -> Result<Value> {
    let date = match date {
        Value::Date(i32::MAX | i32::MIN) => return Ok(date.clone()),
        Value::Date(date) => i64::from(*date),
        _ => return Ok(Value::Null),
    };
    i32::try_from(date + days).map(Value::Date).map_err(|_| calendar::out_of_range("date"))
}

/// A time of day, or what is between two, as an interval.
fn of_time(micros: i64) -> Interval {
    Interval { micros, ..Interval::default() }
}

fn series(a: &[Value], call: &Call) -> Result<Value> {
    let is_zoned = call.types.first() == Some(&SqlType::TimestampTz) && !call.environment.style.is_utc();
    let (mut at, to) = (moment_at(a, 0), moment_at(a, 1));
    let interval = interval_at(a, 2);
    let step = interval.span();
    if step == 0 {
        return Err(Error::new(SqlState::INVALID_PARAMETER, "step size cannot equal zero"));
    }
    let mut moments = Vec::new();
    while (step > 0 && at <= to) || (step < 0 && at >= to) {
        moments.push(Value::Timestamp(at));
        if moments.len() > 10_000_000 {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "array size exceeds the maximum allowed"));
        }
        let next = if is_zoned { moved_in_zone(at, interval, call)? } else { moved(at, interval)? };
        at = moment_at(&[next], 0);
    }
    Ok(super::array_of(moments))
}

/// The scale that `extract` of a field of a date, or of another moment or interval, has.
pub fn extract_scale(field: &str, is_date: bool) -> u8 {
    let from = if is_date { DataType::Date } else { DataType::Timestamp };
    DateField::parse(field).map_or(0, |field| field.extracted(from).scale())
}

fn extract(a: &[Value], call: &Call) -> Result<Value> {
    let micros = match field(a, call)? {
        Field::Millionths(micros) => micros,
        Field::Unknown => return Ok(Value::Null),
        Field::Infinite { .. } => {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "a numeric cannot be infinite here")
                .with_hint("date_part gives a double precision, which can."));
        }
    };
    let decimal = Decimal { mantissa: micros, scale: 6 };
    decimal
        .rescale(call.returns.scale())
        .map(Value::Numeric)
        .ok_or_else(fabius_value::value_text::numeric_overflow)
}

fn date_part(a: &[Value], call: &Call) -> Result<Value> {
    Ok(match field(a, call)? {
        Field::Millionths(micros) => Value::Double(micros as f64 / 1e6),
        Field::Unknown => Value::Null,
        Field::Infinite { is_negative: false } => Value::Double(f64::INFINITY),
        Field::Infinite { is_negative: true } => Value::Double(f64::NEG_INFINITY),
    })
}

/// What a field of a moment or interval is.
enum Field {
    Millionths(i128),
    /// A month or an hour of an infinite moment.
    Unknown,
    /// A year of an infinite moment.
    Infinite {
        is_negative: bool,
    },
}

fn field(a: &[Value], call: &Call) -> Result<Field> {
    let sql_type = call.types.get(1).unwrap_or(&SqlType::Timestamp);
    let moment = moment_at(a, 1);
    let field = DateField::parse(text_at(a, 0));
    if *sql_type == SqlType::Date && call.returns != SqlType::Double && field.is_some_and(DateField::is_time)
    {
        let message = format!("unit \"{}\" not supported for type date", text_at(a, 0).to_lowercase());
        return Err(Error::new(SqlState::NOT_SUPPORTED, message));
    }
    let is_moment = matches!(sql_type, SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz);
    if is_moment && is_infinite(moment) {
        // A wrong name is wrong for an infinite moment too.
        millionths(&[a[0].clone(), Value::Timestamp(0)], call)?;
        let grows = field.is_none_or(DateField::is_unbounded);
        return Ok(if grows { Field::Infinite { is_negative: moment < 0 } } else { Field::Unknown });
    }
    millionths(a, call).map(Field::Millionths)
}

/// A field of a finite moment or an interval, in millionths.
fn millionths(a: &[Value], call: &Call) -> Result<i128> {
    let name = text_at(a, 0).to_lowercase();
    let sql_type = call.types.get(1).unwrap_or(&SqlType::Timestamp);
    let unknown = || {
        Error::new(SqlState::INVALID_PARAMETER, format!("unit \"{name}\" not recognized for type {sql_type}"))
    };
    // A day's end is its hour 24.
    if *sql_type == SqlType::Time && DateField::parse(&name) == Some(DateField::Hour) {
        return Ok(i128::from(integer_at(a, 1) / HOUR_MICROS) * 1_000_000);
    }
    if let SqlType::Interval = sql_type {
        let Interval { months, days, micros } = interval_at(a, 1);
        let whole = |value: i64| i128::from(value) * 1_000_000;
        return Ok(match DateField::parse(&name).ok_or_else(unknown)? {
            DateField::Millennium => whole((months / 12_000).into()),
            DateField::Century => whole((months / 1200).into()),
            DateField::Decade => whole((months / 120).into()),
            DateField::Year => whole((months / 12).into()),
            DateField::Month => whole((months % 12).into()),
            DateField::Quarter => whole((months % 12 / 3 + 1).into()),
            DateField::Day => whole(days.into()),
            DateField::Hour => whole(micros / HOUR_MICROS),
            DateField::Minute => whole(micros / MINUTE_MICROS % 60),
            DateField::Second => i128::from(micros % MINUTE_MICROS),
            DateField::Milliseconds => i128::from(micros % MINUTE_MICROS) * 1000,
            DateField::Microseconds => whole(micros % MINUTE_MICROS),
            DateField::Epoch => {
                let years = i128::from(months / 12) * 31_557_600_000_000;
                years
                    + i128::from(months % 12) * 2_592_000_000_000
                    + i128::from(days) * i128::from(DAY_MICROS)
                    + i128::from(micros)
            }
            _ => return Err(unknown()),
        });
    }
    let utc = moment_at(a, 1);
    let moment = match sql_type {
        SqlType::TimestampTz => call.environment.style.local(utc),
        _ => utc,
    };
    let whole = |value: i64| i128::from(value) * 1_000_000;
    if let Some(field) = DateField::parse(&name) {
        let moment = if field == DateField::Epoch { utc } else { moment };
        return Ok(whole(field.of_moment(moment)) / 10i128.pow(field.scale().into()));
    }
    let is_zoned = *sql_type == SqlType::TimestampTz;
    Ok(match name.as_str() {
        "julian" => whole(moment.div_euclid(DAY_MICROS) + 2_440_588),
        "timezone" if is_zoned => i128::from(moment - utc),
        "timezone_hour" if is_zoned => whole((moment - utc) / HOUR_MICROS),
        "timezone_minute" if is_zoned => whole((moment - utc) / MINUTE_MICROS % 60),
        _ => return Err(unknown()),
    })
}

fn date_trunc(a: &[Value], call: &Call) -> Result<Value> {
    let moment = moment_at(a, 1);
    if call.returns == SqlType::TimestampTz {
        let clock = match a.get(2) {
            Some(Value::Text(name)) => zone(name)?,
            _ => Zone::Named(call.environment.style.zone),
        };
        return truncated(clock.local(moment), text_at(a, 0)).map(|at| Value::Timestamp(clock.moment(at)));
    }
    truncated(moment, text_at(a, 0)).map(Value::Timestamp)
}

/// The beginning of the unit that a moment is in.
fn truncated(moment: i64, unit: &str) -> Result<i64> {
    let field = DateField::parse_unit(unit).ok_or_else(|| {
        let unit = unit.to_lowercase();
        let message = format!("unit \"{unit}\" not recognized for type timestamp without time zone");
        Error::new(SqlState::INVALID_PARAMETER, message)
    })?;
    field.start(moment).ok_or_else(|| calendar::out_of_range("timestamp"))
}

/// `age`.
fn ages() -> Vec<Definition> {
    vec![
        define("age(timestamp, timestamp) interval", |a, _| age(moment_at(a, 0), moment_at(a, 1))),
        define("age(timestamptz, timestamptz) interval", |a, c| {
            age(c.environment.style.local(moment_at(a, 0)), c.environment.style.local(moment_at(a, 1)))
        }),
        define("age(timestamp) interval stable", |a, c| {
            age(local_now(c).div_euclid(DAY_MICROS) * DAY_MICROS, moment_at(a, 0))
        }),
        define("age(timestamptz) interval stable", |a, c| {
            let today = local_now(c).div_euclid(DAY_MICROS) * DAY_MICROS;
            age(today, c.environment.style.local(moment_at(a, 0)))
        }),
    ]
}

/// A moment by a pattern: null if it is infinite, or the pattern is empty.
fn shown(local: i64, pattern: &str, zone: Option<(String, i64)>) -> Value {
    match is_infinite(local) || pattern.is_empty() {
        true => Value::Null,
        false => Value::Text(format_moment(local, pattern, zone)),
    }
}

/// The difference in years, months, days and time.
fn age(later: i64, earlier: i64) -> Result<Value> {
    if later < earlier {
        return or_out_of_range(back_at(&[age(earlier, later)?], 0).ok());
    }
    let (a, b) = (calendar::fields_of(later), calendar::fields_of(earlier));
    let mut months = (a.year - b.year) * 12 + a.month - b.month;
    let mut days = a.day - b.day;
    let mut micros = later.rem_euclid(DAY_MICROS) - earlier.rem_euclid(DAY_MICROS);
    if micros < 0 {
        micros += DAY_MICROS;
        days -= 1;
    }
    if days < 0 {
        days += calendar::month_length(b.year, b.month);
        months -= 1;
    }
    or_out_of_range(Interval::of_parts(months, days, micros))
}
