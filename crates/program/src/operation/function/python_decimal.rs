//! What Python's `decimal` makes of numbers, digit by digit: quotients of 28 digits, and roundings of all eight kinds.
//!
//! Numbers come and go as the database writes them: `-12.50`, without an exponent. (Python's library reference,
//! "decimal", its default context.)

use fabius_value::{Error, Result, SqlState};
use std::cmp::Ordering;

/// Digits that a number of the default context has at most.
const PRECISION: i64 = 28;

/// Which of the two nearest numbers a number becomes that lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    HalfEven,
    HalfUp,
    HalfDown,
    Up,
    Down,
    Ceiling,
    Floor,
    /// Away from zero if the last digit would be 0 or 5.
    ZeroFiveUp,
}

impl Rounding {
    fn of_name(name: &str) -> Option<Rounding> {
        Some(match name {
            "ROUND_HALF_EVEN" => Rounding::HalfEven,
            "ROUND_HALF_UP" => Rounding::HalfUp,
            "ROUND_HALF_DOWN" => Rounding::HalfDown,
            "ROUND_UP" => Rounding::Up,
            "ROUND_DOWN" => Rounding::Down,
            "ROUND_CEILING" => Rounding::Ceiling,
            "ROUND_FLOOR" => Rounding::Floor,
            "ROUND_05UP" => Rounding::ZeroFiveUp,
            _ => return None,
        })
    }

    /// Whether the digits are followed by the next ones, away from zero. `rest` is what is dropped beside half a unit.
    fn is_up(self, is_negative: bool, last: u8, rest: Ordering, is_exact: bool) -> bool {
        !is_exact
            && match self {
                Rounding::HalfEven => rest.is_gt() || (rest.is_eq() && last % 2 == 1),
                Rounding::HalfUp => rest.is_ge(),
                Rounding::HalfDown => rest.is_gt(),
                Rounding::Up => true,
                Rounding::Down => false,
                Rounding::Ceiling => !is_negative,
                Rounding::Floor => is_negative,
                Rounding::ZeroFiveUp => last.is_multiple_of(5),
            }
    }
}

/// A number in digits.
#[derive(Clone, Copy)]
pub(super) struct Digits<'t> {
    pub is_negative: bool,
    /// Before the point.
    pub whole: &'t str,
    /// Behind it.
    pub fraction: &'t str,
}

impl<'t> Digits<'t> {
    /// `None` for what is not written so.
    pub fn parse(text: &'t str) -> Option<Digits<'t>> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (digits.len() > usize::from(digits.contains('.')) && are_digits(whole) && are_digits(fraction))
            .then(|| Digits { is_negative, whole: whole.trim_start_matches('0'), fraction })
    }

    /// With so many digits behind the point, without the sign.
    pub fn rounded(&self, places: i64, rounding: Rounding) -> String {
        let kept = usize::try_from(self.whole.len() as i64 + places).unwrap_or(0);
        let mut digits: Vec<u8> = self.whole.bytes().chain(self.fraction.bytes()).collect();
        // As many digits as are kept stand before the first that is not.
        let missing = usize::try_from(-(self.whole.len() as i64 + places)).unwrap_or(0);
        digits.splice(0..0, std::iter::repeat_n(b'0', missing));
        digits.resize(digits.len().max(kept), b'0');
        let rest = digits.split_off(kept);
        let is_exact = rest.iter().all(|digit| *digit == b'0');
        let half = match rest.split_first() {
            Some((first, others)) => first.cmp(&b'5').then(others.iter().any(|one| *one != b'0').cmp(&false)),
            None => Ordering::Less,
        };
        let last = digits.last().map_or(0, |digit| digit - b'0');
        if rounding.is_up(self.is_negative, last, half, is_exact) {
            let nines = digits.iter().rev().take_while(|digit| **digit == b'9').count();
            let at = digits.len() - nines;
            digits[at..].fill(b'0');
            match at.checked_sub(1) {
                Some(at) => digits[at] += 1,
                None => digits.insert(0, b'1'),
            }
        }
        let mut text: String = digits.into_iter().map(char::from).collect();
        match usize::try_from(places) {
            Ok(places) => {
                let text = format!("{text:0>width$}", width = places + 1);
                let (whole, fraction) = text.split_at(text.len() - places);
                if places == 0 { whole.into() } else { format!("{whole}.{fraction}") }
            }
            Err(_) => {
                text.extend(std::iter::repeat_n('0', usize::try_from(-places).unwrap_or(0)));
                text
            }
        }
    }

    /// All digits as a number, and how many of them stand behind the point.
    fn mantissa(&self) -> Option<(u128, i64)> {
        let digits = format!("0{}{}", self.whole, self.fraction);
        Some((digits.parse().ok()?, self.fraction.len() as i64))
    }
}

/// A number as the database writes it; `22023` for what is none.
pub(super) fn parsed(text: &str) -> Result<Digits<'_>> {
    Digits::parse(text)
        .ok_or_else(|| Error::new(SqlState::INVALID_PARAMETER, format!("'{text}' is no number in digits")))
}

fn with_sign(is_negative: bool, digits: String) -> String {
    if is_negative { format!("-{digits}") } else { digits }
}

/// `left / right` of 28 digits, the last of them rounded to the nearest, and of two as near to the even one.
pub(super) fn quotient(left: &str, right: &str) -> Result<String> {
    let (left, right) = (parsed(left)?, parsed(right)?);
    let too_long = || Error::new(SqlState::OUT_OF_RANGE, "a number of more than 38 digits");
    let (dividend, behind_dividend) = left.mantissa().ok_or_else(too_long)?;
    let (divisor, behind_divisor) = right.mantissa().ok_or_else(too_long)?;
    if divisor == 0 {
        return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    let whole = (dividend / divisor).to_string();
    let (mut digits, mut rest) = (whole.trim_start_matches('0').to_string(), dividend % divisor);
    let mut point = digits.len() as i64;
    // One digit more than are kept; of what is left then, only whether it is nothing counts.
    while rest != 0 && digits.len() as i64 <= PRECISION {
        let digit;
        (digit, rest) = next_digit(rest, divisor);
        match (digits.is_empty(), digit) {
            (true, 0) => point -= 1,
            _ => digits.push(char::from(b'0' + digit)),
        }
    }
    digits.extend((rest != 0).then_some('1'));
    let first = point - behind_dividend + behind_divisor;
    let before = usize::try_from(first).unwrap_or(0);
    let padded = format!("{}{digits:0<before$}", "0".repeat(usize::try_from(-first).unwrap_or(0)));
    let (whole, fraction) = padded.split_at(before);
    let is_negative = left.is_negative != right.is_negative;
    let rounded = Digits { is_negative, whole, fraction }.rounded(PRECISION - first, Rounding::HalfEven);
    Ok(with_sign(is_negative, rounded))
}

/// The next digit of `rest / divisor`, and what is left. Ten times the rest may not fit, so it is added up.
fn next_digit(rest: u128, divisor: u128) -> (u8, u128) {
    let (mut digit, mut sum) = (0, 0u128);
    for _ in 0..10 {
        let room = divisor - sum;
        (sum, digit) = if rest >= room { (rest - room, digit + 1) } else { (sum + rest, digit) };
    }
    (digit, sum)
}

/// A number with so many digits behind the point, rounded in the way that a constant of `decimal` names.
pub(super) fn quantize(text: &str, places: i64, rounding: &str) -> Result<String> {
    let number = parsed(text)?;
    let refuse = |what: String| Error::new(SqlState::INVALID_PARAMETER, what);
    let rounding = Rounding::of_name(rounding)
        .ok_or_else(|| refuse(format!("'{rounding}' is no rounding of Python's decimal")))?;
    if !(0..=PRECISION).contains(&places) {
        return Err(refuse(format!(
            "{places} digits behind the point: at most {PRECISION} can be asked for"
        )));
    }
    let rounded = number.rounded(places, rounding);
    let digits = rounded.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    if digits as i64 > PRECISION {
        let what = format!("a number of {digits} digits, where a Decimal has at most {PRECISION}");
        return Err(Error::new(SqlState::OUT_OF_RANGE, what));
    }
    Ok(with_sign(number.is_negative, rounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(computed: Result<String>) -> String {
        computed.unwrap_or_else(|error| error.state().to_string())
    }

    /// Goal: quotients are those of Python 3.11, which has them with 28 digits.
    #[test]
    fn quotients() {
        let cases = [
            ("1", "3", "0.3333333333333333333333333333"),
            ("-2", "3", "-0.6666666666666666666666666667"),
            ("100.00", "8", "12.50000000000000000000000000"),
            ("1", "0.0000000003", "3333333333.333333333333333333"),
            (
                "0.0000000001",
                "9999999999999999999999999999",
                "0.00000000000000000000000000000000000001000000000000000000000000000",
            ),
            ("9999999999999999999999999999.9999999999", "1", "10000000000000000000000000000"),
            ("99999999999999999999999999999999999999", "0.7", "142857142857142857142857142900000000000"),
            ("0", "-7", "0"),
            ("5", "0.0", "22012"),
            ("x", "1", "22023"),
        ];
        for (left, right, expected) in cases {
            let found = text(quotient(left, right));
            let same =
                found == expected || (found.trim_matches(['-', '0', '.']).is_empty() && expected == "0");
            assert!(same, "{left} / {right}: {found}, not {expected}");
        }
    }

    /// Goal: each rounding is that of the constant of Python's `decimal` that it is called by.
    #[test]
    fn roundings() {
        let numbers = ["2.5", "-2.5", "3.5", "2.51", "-2.49", "0.1", "-0.1", "10.2"];
        let cases = [
            ("ROUND_HALF_EVEN", "2 -2 4 3 -2 0 -0 10"),
            ("ROUND_HALF_UP", "3 -3 4 3 -2 0 -0 10"),
            ("ROUND_HALF_DOWN", "2 -2 3 3 -2 0 -0 10"),
            ("ROUND_UP", "3 -3 4 3 -3 1 -1 11"),
            ("ROUND_DOWN", "2 -2 3 2 -2 0 -0 10"),
            ("ROUND_CEILING", "3 -2 4 3 -2 1 -0 11"),
            ("ROUND_FLOOR", "2 -3 3 2 -3 0 -1 10"),
            ("ROUND_05UP", "2 -2 3 2 -2 1 -1 11"),
        ];
        for (rounding, expected) in cases {
            assert_eq!(
                numbers.map(|number| text(quantize(number, 0, rounding))).join(" "),
                expected,
                "{rounding}"
            );
        }
        assert_eq!(text(quantize("1.005", 2, "ROUND_HALF_UP")), "1.01");
        assert_eq!(text(quantize("7", 3, "ROUND_DOWN")), "7.000");
        assert_eq!(text(quantize("99999999999999999999999999.995", 2, "ROUND_HALF_UP")), "22003");
        assert_eq!(text(quantize("7", 3, "UP")), "22023");
    }
}
