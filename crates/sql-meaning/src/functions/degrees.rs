//! Trigonometry in degrees, exact where an angle's value is: `sind(30)` is 0.5.
//!
//! Each function divides by what the library's gives at the angle whose value is known, so that its error there is
//! divided out. The parts of a quadrant are 0 to 30 degrees for the sine and 0 to 60 for the cosine.

use super::{Definition, define, double_at};
use fabius_value::{Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    vec![
        define("sind(float8) float8", |a, _| {
            of_angle(double_at(a, 0), |angle| angle.sign * sine(angle.within))
        }),
        define("cosd(float8) float8", |a, _| {
            of_angle(double_at(a, 0), |angle| angle.sign_of_cosine * cosine(angle.within))
        }),
        define("tand(float8) float8", |a, _| {
            of_angle(double_at(a, 0), |angle| {
                let tangent = sine(angle.within) / cosine(angle.within) / (sine(45.0) / cosine(45.0));
                unsigned_zero(angle.sign * angle.sign_of_cosine * tangent)
            })
        }),
        define("cotd(float8) float8", |a, _| {
            of_angle(double_at(a, 0), |angle| {
                let cotangent = cosine(angle.within) / sine(angle.within) / (cosine(45.0) / sine(45.0));
                unsigned_zero(angle.sign * angle.sign_of_cosine * cotangent)
            })
        }),
        define("asind(float8) float8", |a, _| {
            let sine = double_at(a, 0);
            of_ratio(sine, if sine < 0.0 { -angle_of_sine(-sine) } else { angle_of_sine(sine) })
        }),
        define("acosd(float8) float8", |a, _| {
            let cosine = double_at(a, 0);
            of_ratio(
                cosine,
                if cosine < 0.0 { 90.0 + angle_of_sine(-cosine) } else { angle_of_cosine(cosine) },
            )
        }),
        define("atand(float8) float8", |a, _| Ok(Value::Double(eighths(double_at(a, 0).atan())))),
        define("atan2d(float8, float8) float8", |a, _| {
            Ok(Value::Double(eighths(double_at(a, 0).atan2(double_at(a, 1)))))
        }),
    ]
}

/// An angle in the first quadrant, with the signs that bring its values back.
struct Angle {
    /// From 0 to 90 degrees.
    within: f64,
    sign: f64,
    sign_of_cosine: f64,
}

/// A function of an angle; `22003` of an infinite one.
pub(super) fn of_finite(angle: f64, function: impl FnOnce(f64) -> f64) -> Result<Value> {
    match angle.is_infinite() {
        true => Err(Error::new(SqlState::OUT_OF_RANGE, "input is out of range")),
        false => Ok(Value::Double(function(angle))),
    }
}

/// A function of an angle in degrees; `22003` of an infinite one.
fn of_angle(degrees: f64, function: impl FnOnce(Angle) -> f64) -> Result<Value> {
    of_finite(degrees, |degrees| match degrees.is_nan() {
        true => degrees,
        false => function(Angle::of(degrees)),
    })
}

impl Angle {
    fn of(degrees: f64) -> Angle {
        let turned = degrees % 360.0;
        let (mut within, mut sign, mut sign_of_cosine) =
            (turned.abs(), if turned < 0.0 { -1.0 } else { 1.0 }, 1.0);
        if within > 180.0 {
            (within, sign) = (360.0 - within, -sign);
        }
        if within > 90.0 {
            (within, sign_of_cosine) = (180.0 - within, -1.0);
        }
        Angle { within, sign, sign_of_cosine }
    }
}

/// An angle of a sine or cosine; `22003` of one that is not from -1 to 1.
pub(super) fn of_ratio(ratio: f64, angle: f64) -> Result<Value> {
    if ratio.abs() > 1.0 {
        return Err(Error::new(SqlState::OUT_OF_RANGE, "input is out of range"));
    }
    Ok(Value::Double(angle))
}

/// The sine of 0 to 90 degrees.
fn sine(degrees: f64) -> f64 {
    if degrees <= 30.0 { low_sine(degrees) } else { low_cosine(90.0 - degrees) }
}

/// The cosine of 0 to 90 degrees.
fn cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 { low_cosine(degrees) } else { low_sine(90.0 - degrees) }
}

/// The sine of 0 to 30 degrees.
fn low_sine(degrees: f64) -> f64 {
    let sine = |degrees: f64| pxfm::f_sin(degrees.to_radians());
    sine(degrees) / sine(30.0) / 2.0
}

/// The cosine of 0 to 60 degrees.
fn low_cosine(degrees: f64) -> f64 {
    let left = |degrees: f64| 1.0 - pxfm::f_cos(degrees.to_radians());
    1.0 - left(degrees) / left(60.0) / 2.0
}

/// The angle whose sine is 0 to 1.
fn angle_of_sine(sine: f64) -> f64 {
    match sine <= 0.5 {
        true => sine.asin() / 0.5f64.asin() * 30.0,
        false => 90.0 - sine.acos() / 0.5f64.acos() * 60.0,
    }
}

/// The angle whose cosine is 0 to 1.
fn angle_of_cosine(cosine: f64) -> f64 {
    match cosine <= 0.5 {
        true => 90.0 - cosine.asin() / 0.5f64.asin() * 30.0,
        false => cosine.acos() / 0.5f64.acos() * 60.0,
    }
}

/// Radians in degrees, by those of the angle whose tangent is 1.
fn eighths(radians: f64) -> f64 {
    radians / 1f64.atan() * 45.0
}

/// PostgreSQL shows no sign before a zero.
fn unsigned_zero(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}
