//! Floating-point numbers as text, as PostgreSQL's `float8out` and `float4out` write them.

use std::io::Write;

/// The shortest text that reads back as the same number.
pub fn text(value: f64) -> String {
    let mut out = Vec::with_capacity(24);
    write_double(value, 1, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends a binary64 number. With `digits` of 1 and more it is the shortest text that reads back as the same number;
/// with fewer, a number of 15 digits and so many more (`extra_float_digits`).
pub fn write_double(value: f64, digits: i32, out: &mut Vec<u8>) {
    if digits < 1 && value.is_finite() {
        let count = (15 + digits).max(1) as usize;
        return rounded(&format!("{:.*e}", count - 1, value), count as i32, out);
    }
    special(value, out, |out| shortest(&format!("{value:e}"), 15, out));
}

/// Appends a binary32 number; with fewer than 1 of `digits` it has six digits and so many more.
pub fn write_real(value: f32, digits: i32, out: &mut Vec<u8>) {
    if digits < 1 && value.is_finite() {
        let count = (6 + digits).max(1) as usize;
        return rounded(&format!("{:.*e}", count - 1, value), count as i32, out);
    }
    special(f64::from(value), out, |out| shortest(&format!("{value:e}"), 6, out));
}

fn special(value: f64, out: &mut Vec<u8>, finite: impl FnOnce(&mut Vec<u8>)) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    } else {
        finite(out);
    }
}

/// `%g`: of a number in scientific form with a fixed count of digits, without zeros at the end.
fn rounded(scientific: &str, count: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    shortest(&format!("{mantissa}e{exponent}"), count, out);
}

/// A number in Rust's scientific form (`1.5e-7`) as PostgreSQL shows it: with an exponent below -4, and from
/// `most` on (`float8out`).
fn shortest(scientific: &str, most: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= most {
        let sign = if exponent < 0 { '-' } else { '+' };
        drop(write!(out, "{mantissa}e{sign}{:02}", exponent.abs()));
        return;
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    out.extend_from_slice(sign.as_bytes());
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(digits.as_bytes());
        out.resize(out.len() + whole - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits.as_bytes()[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits.as_bytes()[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers look as in PostgreSQL 15.
    #[test]
    fn numbers_look_as_in_postgres() {
        for (value, shown) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e15, "1e+15"),
            (123456789012345.0, "123456789012345"),
            (1.5e-7, "1.5e-07"),
            (-0.0001, "-0.0001"),
            (-0.0, "-0"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(text(value), shown);
        }
        let mut out = Vec::new();
        write_real(0.1, 1, &mut out);
        out.push(b' ');
        write_double(1.0 / 3.0, 0, &mut out);
        out.push(b' ');
        write_double(1e20, 0, &mut out);
        assert_eq!(out, b"0.1 0.333333333333333 1e+20");
    }
}
