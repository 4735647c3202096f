//! Functions that only functions of Python call, which are lowered onto them where SQL means something else.

use super::number::decimal_at;
use super::{Definition, define, integer_at, of_programs};
use fabius_program::ir::{Function, Rounding};
use fabius_program::operation::function::number::round_numeric;
use fabius_value::{Decimal, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    vec![
        of_programs("fabius_python_power(bigint, bigint) bigint", Function::PythonPower),
        of_programs("fabius_python_shift(bigint, bigint) bigint", Function::PythonShift),
        of_programs("fabius_python_moved(timestamp, bigint) timestamp", Function::PythonMoved),
        of_programs("fabius_python_between(timestamp, timestamp) bigint", Function::MicrosBetween),
        of_programs("fabius_python_timedelta(interval) bigint", Function::PythonTimedelta),
        of_programs("fabius_python_timedelta_text(bigint) text", Function::PythonTimedeltaText),
        of_programs("fabius_python_interval(bigint) interval", Function::PythonInterval),
        // Of a time as it is, by six digits of a second.
        of_programs("fabius_python_micros(time, bigint) bigint", Function::RoundMicros),
        of_programs("fabius_python_round(float8, bigint) float8", Function::PythonRound),
        // Of two as near the even one.
        define("fabius_python_rounded(numeric, int) numeric", |a, _| {
            let (Decimal { mantissa, scale }, digits) = (decimal_at(a), integer_at(a, 1).clamp(0, 38));
            let mantissa = round_numeric(Rounding::NearestEven, mantissa, scale, digits, digits as u8)?;
            Ok(Value::Numeric(Decimal { mantissa, scale: digits as u8 }))
        }),
        of_programs("fabius_python_divide(bigint, bigint) float8", Function::PythonDivide),
        of_programs("fabius_python_quotient(text, text) text", Function::PythonQuotient),
        of_programs("fabius_python_quantize(text, bigint, text) text", Function::PythonQuantize),
        of_programs("fabius_python_has(text, text) boolean", Function::PythonHas),
        of_programs("fabius_python_text(float8) text", Function::PythonText),
        of_programs("fabius_python_repr(text) text", Function::PythonRepr),
        of_programs("fabius_python_whole(text) text", Function::PythonWhole),
        of_programs("fabius_python_double(text) text", Function::PythonDouble),
        of_programs("fabius_python_format_int(bigint, text) text", Function::PythonFormatInt),
        of_programs("fabius_python_format_double(float8, text) text", Function::PythonFormatDouble),
        of_programs("fabius_python_format_decimal(text, text) text", Function::PythonFormatDecimal),
        of_programs("fabius_python_format_text(text, text) text", Function::PythonFormatText),
    ]
}
