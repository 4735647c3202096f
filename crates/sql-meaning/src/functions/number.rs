//! Functions of numbers.

use super::array::compare;
use super::degrees;
use super::{Definition, define, double_at, elements_at, integer_at, of_programs, text_at};
use fabius_program::ir::Function;
use fabius_value::value_text::numeric_overflow;
use fabius_value::{Decimal, Error, Result, SqlState, Value};
use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        define("abs(int) int", |a, _| {
            i32::try_from(integer_at(a, 0).abs()).map(Value::Int).map_err(|_| out_of_range("integer"))
        }),
        define("abs(bigint) bigint", |a, _| {
            integer_at(a, 0).checked_abs().map(Value::BigInt).ok_or_else(|| out_of_range("bigint"))
        }),
        define("abs(smallint) smallint", |a, _| {
            i16::try_from(integer_at(a, 0).abs()).map(Value::SmallInt).map_err(|_| out_of_range("smallint"))
        }),
        define("abs(real) real", |a, _| Ok(Value::Double(double_at(a, 0).abs()))),
        define("abs(numeric) numeric", |a, _| Ok(Value::Numeric(map(a, |m, s| (m.abs(), s))))),
        define("abs(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).abs()))),
        define("fabius_float_order(real) real", |a, _| Ok(Value::Double(in_float_order(double_at(a, 0))))),
        define("fabius_float_order(float8) float8", |a, _| {
            Ok(Value::Double(in_float_order(double_at(a, 0))))
        }),
        define("sign(numeric) numeric", |a, _| Ok(Value::Numeric(map(a, |m, _| (m.signum(), 0))))),
        define("sign(float8) float8", |a, _| {
            let value = double_at(a, 0);
            // What is no number has none.
            Ok(Value::Double(f64::from(i8::from(value > 0.0) - i8::from(value < 0.0))))
        }),
        define("ceil(numeric) numeric", |a, _| {
            Ok(Value::Numeric(map(a, |m, s| (-(-m).div_euclid(power(s)), 0))))
        }),
        define("ceil(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).ceil()))),
        define("ceiling(numeric) numeric", |a, _| {
            Ok(Value::Numeric(map(a, |m, s| (-(-m).div_euclid(power(s)), 0))))
        }),
        define("ceiling(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).ceil()))),
        define("floor(numeric) numeric", |a, _| {
            Ok(Value::Numeric(map(a, |m, s| (m.div_euclid(power(s)), 0))))
        }),
        define("floor(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).floor()))),
        define("round(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).round_ties_even()))),
        define("round(numeric, int?) numeric", |a, call| {
            let digits = integer_at(a, 1);
            let decimal = if digits >= 0 {
                decimal_at(a).rescale(digits.min(38) as u8)
            } else {
                to_tens(decimal_at(a), digits, fabius_value::decimal::divide_rounded)
            };
            decimal
                .and_then(|decimal| decimal.rescale(call.returns.scale()))
                .map(Value::Numeric)
                .ok_or_else(numeric_overflow)
        }),
        define("trunc(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).trunc()))),
        define("trunc(numeric, int?) numeric", |a, call| {
            if integer_at(a, 1) < 0 {
                return to_tens(decimal_at(a), integer_at(a, 1), |number, unit| number / unit)
                    .and_then(|decimal| decimal.rescale(call.returns.scale()))
                    .map(Value::Numeric)
                    .ok_or_else(numeric_overflow);
            }
            let digits = integer_at(a, 1).clamp(0, 38) as u8;
            Ok(Value::Numeric(map(
                a,
                |m, s| if s > digits { (m / power(s - digits), digits) } else { (m, s) },
            )))
        }),
        define("mod(smallint, smallint) smallint", |a, _| remainder(a).map(|v| Value::SmallInt(v as i16))),
        define("mod(int, int) int", |a, _| remainder(a).map(|v| Value::Int(v as i32))),
        define("mod(bigint, bigint) bigint", |a, _| remainder(a).map(Value::BigInt)),
        define("mod(numeric, numeric) numeric", |a, _| {
            let (left, right) = at_one_scale(a)?;
            let mantissa = left.mantissa.checked_rem(right.mantissa).ok_or_else(zero)?;
            Ok(Value::Numeric(Decimal { mantissa, scale: left.scale }))
        }),
        define("div(numeric, numeric) numeric", |a, _| {
            let (left, right) = at_one_scale(a)?;
            let mantissa = left.mantissa.checked_div(right.mantissa).ok_or_else(zero)?;
            Ok(Value::Numeric(Decimal { mantissa, scale: 0 }))
        }),
        define("gcd(int, int) int", |a, _| {
            i32::try_from(common_divisor(a)).map(Value::Int).map_err(|_| out_of_range("integer"))
        }),
        define("gcd(numeric, numeric) numeric", |a, _| {
            let (one, other) = at_one_scale(a)?;
            let divisor = divisor_of(one.mantissa.unsigned_abs(), other.mantissa.unsigned_abs());
            let mantissa = i128::try_from(divisor).map_err(|_| numeric_overflow())?;
            Ok(Value::Numeric(Decimal { mantissa, scale: one.scale }))
        }),
        define("gcd(bigint, bigint) bigint", |a, _| {
            i64::try_from(common_divisor(a)).map(Value::BigInt).map_err(|_| out_of_range("bigint"))
        }),
        of_programs("power(float8, float8) float8", Function::Power),
        of_programs("pow(float8, float8) float8", Function::Power),
        define("power(numeric, numeric) numeric", |a, call| {
            refuse_power(double_at(a, 0), double_at(a, 1))?;
            let result = pxfm::f_pow(double_at(a, 0), double_at(a, 1));
            Decimal::from_f64(result, call.returns.scale()).map(Value::Numeric).ok_or_else(numeric_overflow)
        }),
        of_programs("sqrt(float8) float8", Function::SquareRoot),
        of_programs("cbrt(float8) float8", Function::CubeRoot),
        of_programs("exp(float8) float8", Function::Exponential),
        of_programs("ln(float8) float8", Function::NaturalLogarithm),
        of_programs("log(float8) float8", Function::DecimalLogarithm),
        of_programs("log10(float8) float8", Function::DecimalLogarithm),
        define("log(float8, float8) float8", |a, _| {
            let (base, value) = (logarithm(double_at(a, 0))?, logarithm(double_at(a, 1))?);
            Ok(Value::Double(pxfm::f_log(value) / pxfm::f_log(base)))
        }),
        define("sin(float8) float8", |a, _| degrees::of_finite(double_at(a, 0), pxfm::f_sin)),
        define("cos(float8) float8", |a, _| degrees::of_finite(double_at(a, 0), pxfm::f_cos)),
        define("tan(float8) float8", |a, _| degrees::of_finite(double_at(a, 0), pxfm::f_tan)),
        define("asin(float8) float8", |a, _| degrees::of_ratio(double_at(a, 0), double_at(a, 0).asin())),
        define("acos(float8) float8", |a, _| degrees::of_ratio(double_at(a, 0), double_at(a, 0).acos())),
        define("atan(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).atan()))),
        define("atan2(float8, float8) float8", |a, _| {
            Ok(Value::Double(double_at(a, 0).atan2(double_at(a, 1))))
        }),
        define("sinh(float8) float8", |a, _| Ok(Value::Double(pxfm::f_sinh(double_at(a, 0))))),
        define("cosh(float8) float8", |a, _| Ok(Value::Double(pxfm::f_cosh(double_at(a, 0))))),
        define("tanh(float8) float8", |a, _| Ok(Value::Double(pxfm::f_tanh(double_at(a, 0))))),
        define("asinh(float8) float8", |a, _| Ok(Value::Double(pxfm::f_asinh(double_at(a, 0))))),
        define("acosh(float8) float8", |a, _| match double_at(a, 0) {
            value if value < 1.0 => Err(Error::new(SqlState::OUT_OF_RANGE, "input is out of range")),
            value => Ok(Value::Double(pxfm::f_acosh(value))),
        }),
        define("atanh(float8) float8", |a, _| match double_at(a, 0) {
            value if value.abs() > 1.0 => Err(Error::new(SqlState::OUT_OF_RANGE, "input is out of range")),
            value => Ok(Value::Double(pxfm::f_atanh(value))),
        }),
        define("cot(float8) float8", |a, _| {
            degrees::of_finite(double_at(a, 0), |angle| 1.0 / pxfm::f_tan(angle))
        }),
        define("degrees(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).to_degrees()))),
        define("radians(float8) float8", |a, _| Ok(Value::Double(double_at(a, 0).to_radians()))),
        define("pi() float8", |_, _| Ok(Value::Double(std::f64::consts::PI))),
        define("random() float8 volatile", |_, _| Ok(Value::Double(random()))),
        define("setseed(float8) void volatile", |_, _| Ok(Value::Text(String::new()))),
        define("scale(numeric) int", |a, _| Ok(Value::Int(decimal_at(a).scale.into()))),
        define("trim_scale(numeric) numeric", |a, _| Ok(a[0].clone())),
        define("min_scale(numeric) int", |a, _| Ok(Value::Int(decimal_at(a).trimmed().scale.into()))),
        define("lcm(numeric, numeric) numeric", |a, _| {
            let (one, other) = at_one_scale(a)?;
            let (x, y) = (one.mantissa.unsigned_abs(), other.mantissa.unsigned_abs());
            let multiple = x.checked_div(divisor_of(x, y)).unwrap_or(0).checked_mul(y);
            let mantissa = multiple.and_then(|multiple| i128::try_from(multiple).ok());
            let mantissa = mantissa.ok_or_else(numeric_overflow)?;
            Ok(Value::Numeric(Decimal { mantissa, scale: one.scale }))
        }),
        define("lcm(int, int) int", |a, _| {
            let multiple = common_multiple(a).and_then(|multiple| i32::try_from(multiple).ok());
            multiple.map(Value::Int).ok_or_else(|| out_of_range("integer"))
        }),
        define("lcm(bigint, bigint) bigint", |a, _| {
            let multiple = common_multiple(a).and_then(|multiple| i64::try_from(multiple).ok());
            multiple.map(Value::BigInt).ok_or_else(|| out_of_range("bigint"))
        }),
        define("factorial(bigint) numeric", |a, _| {
            let n = integer_at(a, 0);
            if n < 0 {
                return Err(Error::new(
                    SqlState::OUT_OF_RANGE,
                    "factorial of a negative number is undefined",
                ));
            }
            let product = (1..=n).try_fold(1i128, |product, factor| product.checked_mul(factor.into()));
            product
                .map(|mantissa| Value::Numeric(Decimal { mantissa, scale: 0 }))
                .ok_or_else(numeric_overflow)
        }),
        define("num_nulls(any...) int null", |a, _| {
            Ok(Value::Int(a.iter().filter(|value| value.is_null()).count() as i32))
        }),
        define("num_nonnulls(any...) int null", |a, _| {
            Ok(Value::Int(a.iter().filter(|value| !value.is_null()).count() as i32))
        }),
        define("hashtext(text) int", |a, _| {
            // FNV-1a: stable, though not PostgreSQL's.
            let hash = super::text_at(a, 0)
                .bytes()
                .fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(16_777_619));
            Ok(Value::Int(hash as i32))
        }),
        define("pg_size_pretty(bigint) text", |a, _| {
            let mut size = integer_at(a, 0);
            for unit in ["bytes", "kB", "MB", "GB", "TB"] {
                if size.abs() < 10_240 || unit == "TB" {
                    return Ok(Value::Text(format!("{size} {unit}")));
                }
                size = (size + 512) / 1024;
            }
            Ok(Value::Null)
        }),
        define("pg_size_bytes(text) bigint", |a, _| bytes_of_size(text_at(a, 0)).map(Value::BigInt)),
    ];
    all.extend(buckets());
    all
}

/// In which of several buckets a value falls.
fn buckets() -> Vec<Definition> {
    vec![
        define("width_bucket(float8, float8, float8, int) int", |a, _| {
            let (value, low, high, count) =
                (double_at(a, 0), double_at(a, 1), double_at(a, 2), double_at(a, 3));
            if count <= 0.0 || low == high {
                return Err(Error::new(SqlState(*b"2201G"), "count must be greater than zero"));
            }
            let place = ((value - low) / (high - low) * count).floor() + 1.0;
            Ok(Value::Int(place.clamp(0.0, count + 1.0) as i32))
        }),
        define("width_bucket(anyelement, anyarray) int", |a, _| {
            let bounds = elements_at(a, 1);
            if bounds.iter().any(Value::is_null) {
                return Err(Error::new(SqlState(*b"22004"), "thresholds array must not contain NULLs"));
            }
            let below = bounds.iter().filter(|bound| compare(bound, &a[0]).is_some_and(Ordering::is_le));
            Ok(Value::Int(below.count() as i32))
        }),
    ]
}

/// The bytes of a size with a unit: `1.5 MB`.
fn bytes_of_size(text: &str) -> Result<i64> {
    let invalid = || Error::new(SqlState::INVALID_PARAMETER, format!("invalid size: \"{text}\""));
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let number = Decimal::parse(number).ok_or_else(invalid)?;
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 0,
        "kb" => 1,
        "mb" => 2,
        "gb" => 3,
        "tb" => 4,
        "pb" => 5,
        _ => {
            return Err(invalid()
                .with_detail(format!("Invalid size unit: \"{}\".", unit.trim()))
                .with_hint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."));
        }
    };
    let bytes = number.mantissa.checked_mul(1 << (10 * power));
    let whole = bytes.and_then(|mantissa| Decimal { mantissa, ..number }.rescale(0));
    whole.and_then(|whole| i64::try_from(whole.mantissa).ok()).ok_or_else(|| out_of_range("bigint"))
}

/// The one value that stands for all that are equal to a number in SQL, in an order that tells bits apart.
fn in_float_order(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number + 0.0 }
}

fn out_of_range(name: &str) -> Error {
    Error::new(SqlState::OUT_OF_RANGE, format!("{name} out of range"))
}

fn zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

pub(super) fn decimal_at(a: &[Value]) -> Decimal {
    match a.first() {
        Some(Value::Numeric(decimal)) => *decimal,
        other => Decimal { mantissa: other.and_then(Value::as_integer).unwrap_or(0).into(), scale: 0 },
    }
}

fn power(exponent: u8) -> i128 {
    10i128.pow(exponent.min(38).into())
}

/// A number without its last digits before the point: to tens (-1), hundreds (-2), ...
fn to_tens(decimal: Decimal, digits: i64, divide: fn(i128, i128) -> i128) -> Option<Decimal> {
    let places = u32::try_from(digits.unsigned_abs()).unwrap_or(u32::MAX);
    // What is divided by more than it can be is nothing.
    let Some(unit) = places.checked_add(decimal.scale.into()).and_then(|places| 10i128.checked_pow(places))
    else {
        return Some(Decimal { mantissa: 0, scale: 0 });
    };
    let mantissa = divide(decimal.mantissa, unit).checked_mul(10i128.checked_pow(places)?)?;
    Some(Decimal { mantissa, scale: 0 })
}

/// Applies a function of mantissa and scale to the first argument.
fn map(a: &[Value], change: impl Fn(i128, u8) -> (i128, u8)) -> Decimal {
    let decimal = decimal_at(a);
    let (mantissa, scale) = change(decimal.mantissa, decimal.scale);
    Decimal { mantissa, scale }
}

fn remainder(a: &[Value]) -> Result<i64> {
    match integer_at(a, 1) {
        0 => Err(zero()),
        divisor => Ok(integer_at(a, 0).checked_rem(divisor).unwrap_or(0)),
    }
}

/// # Errors
/// `2201F` where a power is no number.
fn refuse_power(base: f64, exponent: f64) -> Result<()> {
    let reason = if base == 0.0 && exponent < 0.0 {
        "zero raised to a negative power is undefined"
    } else if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        "a negative number raised to a non-integer power yields a complex result"
    } else {
        return Ok(());
    };
    Err(Error::new(SqlState(*b"2201F"), reason))
}

/// Two numerics with as many digits after the point.
fn at_one_scale(a: &[Value]) -> Result<(Decimal, Decimal)> {
    let (left, right) = (decimal_at(a), decimal_at(&a[1..]));
    let scale = left.scale.max(right.scale);
    left.rescale(scale).zip(right.rescale(scale)).ok_or_else(numeric_overflow)
}

/// The greatest number that divides both.
fn divisor_of(mut x: u128, mut y: u128) -> u128 {
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

fn common_divisor(a: &[Value]) -> u64 {
    let (x, y) = (integer_at(a, 0).unsigned_abs(), integer_at(a, 1).unsigned_abs());
    // It is no greater than either.
    divisor_of(x.into(), y.into()) as u64
}

fn common_multiple(a: &[Value]) -> Option<u64> {
    let (x, y) = (integer_at(a, 0).unsigned_abs(), integer_at(a, 1).unsigned_abs());
    x.checked_div(common_divisor(a)).unwrap_or(0).checked_mul(y)
}

fn logarithm(value: f64) -> Result<f64> {
    match value {
        0.0 => Err(Error::new(SqlState(*b"2201E"), "cannot take logarithm of zero")),
        value if value < 0.0 => {
            Err(Error::new(SqlState(*b"2201E"), "cannot take logarithm of a negative number"))
        }
        value => Ok(value),
    }
}

/// A number in [0, 1).
fn random() -> f64 {
    thread_local!(static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1));
    STATE.with(|state| {
        // xorshift64*
        let mut x = state.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        state.set(x);
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    })
}
