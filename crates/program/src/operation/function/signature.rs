//! The table of functions that have fixed types: how each is called, and whether it can fail.
//!
//! The verifier, the printer of `explain` and the generator of programs all read it. Functions whose
//! types depend on their arguments (`coalesce`, `round`, `substring`, ...) are resolved in
//! `verify/function.rs`.

use crate::ir::Function;
use fabius_value::DataType;
use fabius_value::DataType::{BigInt, Boolean, Bytea, Date, Double, Int, Timestamp};

const TEXT: DataType = DataType::TEXT;

/// One way to call a function.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The function's name.
    pub name: &'static str,
    /// What it computes.
    pub function: Function,
    /// The types of its arguments; any text will do for `text`.
    pub parameters: &'static [DataType],
    /// The type of its result.
    pub result: DataType,
    /// Whether some arguments of these types make it fail.
    pub can_fail: bool,
}

const fn total(
    name: &'static str,
    function: Function,
    parameters: &'static [DataType],
    result: DataType,
) -> Signature {
    Signature { name, function, parameters, result, can_fail: false }
}

const fn partial(
    name: &'static str,
    function: Function,
    parameters: &'static [DataType],
    result: DataType,
) -> Signature {
    Signature { name, function, parameters, result, can_fail: true }
}

/// Every function of fixed types; one line for each number of arguments.
pub static SIGNATURES: &[Signature] = &[
    partial("like", Function::Like, &[TEXT, TEXT], Boolean),
    partial("like", Function::Like, &[TEXT, TEXT, TEXT], Boolean),
    partial("ilike", Function::ILike, &[TEXT, TEXT], Boolean),
    partial("ilike", Function::ILike, &[TEXT, TEXT, TEXT], Boolean),
    partial("regexp_like", Function::Matches, &[TEXT, TEXT], Boolean),
    partial("regexp_like", Function::Matches, &[TEXT, TEXT, TEXT], Boolean),
    total("starts_with", Function::StartsWith, &[TEXT, TEXT], Boolean),
    total("strpos", Function::Position, &[TEXT, TEXT], Int),
    total("position", Function::Position, &[TEXT, TEXT], Int),
    total("trim", Function::Trim, &[TEXT], TEXT),
    total("trim", Function::Trim, &[TEXT, TEXT], TEXT),
    total("ltrim", Function::TrimLeft, &[TEXT], TEXT),
    total("ltrim", Function::TrimLeft, &[TEXT, TEXT], TEXT),
    total("rtrim", Function::TrimRight, &[TEXT], TEXT),
    total("rtrim", Function::TrimRight, &[TEXT, TEXT], TEXT),
    partial("replace", Function::Replace, &[TEXT, TEXT, TEXT], TEXT),
    partial("translate", Function::Translate, &[TEXT, TEXT, TEXT], TEXT),
    total("left", Function::Left, &[TEXT, BigInt], TEXT),
    total("right", Function::Right, &[TEXT, BigInt], TEXT),
    partial("lpad", Function::PadLeft, &[TEXT, BigInt], TEXT),
    partial("lpad", Function::PadLeft, &[TEXT, BigInt, TEXT], TEXT),
    partial("rpad", Function::PadRight, &[TEXT, BigInt], TEXT),
    partial("rpad", Function::PadRight, &[TEXT, BigInt, TEXT], TEXT),
    partial("repeat", Function::Repeat, &[TEXT, BigInt], TEXT),
    total("reverse", Function::Reverse, &[TEXT], TEXT),
    partial("initcap", Function::Capitalise, &[TEXT], TEXT),
    total("ascii", Function::CodeOf, &[TEXT], Int),
    partial("chr", Function::CharacterOf, &[BigInt], TEXT),
    partial("split_part", Function::SplitPart, &[TEXT, TEXT, BigInt], TEXT),
    total("octet_length", Function::OctetLength, &[TEXT], Int),
    total("md5", Function::Md5, &[TEXT], TEXT),
    total("nth_random", Function::NthRandom, &[BigInt, BigInt], Double),
    total("nth_uuid", Function::NthUuid, &[BigInt, BigInt], Bytea),
    partial("power", Function::Power, &[Double, Double], Double),
    partial("sqrt", Function::SquareRoot, &[Double], Double),
    total("cbrt", Function::CubeRoot, &[Double], Double),
    partial("exp", Function::Exponential, &[Double], Double),
    partial("ln", Function::NaturalLogarithm, &[Double], Double),
    partial("log", Function::DecimalLogarithm, &[Double], Double),
    partial("date_part", Function::DatePart, &[TEXT, Timestamp], Double),
    partial("add_micros", Function::AddMicros, &[Timestamp, BigInt], Timestamp),
    partial("micros_between", Function::MicrosBetween, &[Timestamp, Timestamp], BigInt),
    partial("add_months", Function::AddMonths, &[Timestamp, BigInt], Timestamp),
    partial("round_single", Function::RoundSingle, &[Double], Double),
    total("round_micros", Function::RoundMicros, &[BigInt, BigInt], BigInt),
    total("round_moment", Function::RoundMoment, &[Timestamp, BigInt], Timestamp),
    partial("make_date", Function::MakeDate, &[BigInt, BigInt, BigInt], Date),
    partial("date_trunc", Function::DateTruncate, &[TEXT, Timestamp], Timestamp),
    total("uuid_text", Function::UuidText, &[Bytea], TEXT),
    total("time_text", Function::TimeText, &[BigInt], TEXT),
    partial("unknown_label", Function::UnknownLabel, &[TEXT, TEXT], BigInt),
    partial("python_power", Function::PythonPower, &[BigInt, BigInt], BigInt),
    partial("python_shift", Function::PythonShift, &[BigInt, BigInt], BigInt),
    partial("python_moved", Function::PythonMoved, &[Timestamp, BigInt], Timestamp),
    partial("python_timedelta", Function::PythonTimedelta, &[TEXT], BigInt),
    total("python_timedelta_text", Function::PythonTimedeltaText, &[BigInt], TEXT),
    total("python_interval", Function::PythonInterval, &[BigInt], TEXT),
    partial("python_round", Function::PythonRound, &[Double, BigInt], Double),
    partial("python_divide", Function::PythonDivide, &[BigInt, BigInt], Double),
    partial("python_quotient", Function::PythonQuotient, &[TEXT, TEXT], TEXT),
    partial("python_quantize", Function::PythonQuantize, &[TEXT, BigInt, TEXT], TEXT),
    partial("python_has", Function::PythonHas, &[TEXT, TEXT], Boolean),
    total("python_text", Function::PythonText, &[Double], TEXT),
    partial("python_repr", Function::PythonRepr, &[TEXT], TEXT),
    total("python_whole", Function::PythonWhole, &[TEXT], TEXT),
    total("python_double", Function::PythonDouble, &[TEXT], TEXT),
    partial("python_format_int", Function::PythonFormatInt, &[BigInt, TEXT], TEXT),
    partial("python_format_double", Function::PythonFormatDouble, &[Double, TEXT], TEXT),
    partial("python_format_decimal", Function::PythonFormatDecimal, &[TEXT, TEXT], TEXT),
    partial("python_format_text", Function::PythonFormatText, &[TEXT, TEXT], TEXT),
];

impl Signature {
    /// `name(text, bigint)`.
    pub fn form(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(DataType::to_string).collect();
        format!("{}({})", self.name, parameters.join(", "))
    }

    /// The line of a function by its name and number of arguments.
    pub fn find(name: &str, arguments: usize) -> Option<&'static Signature> {
        SIGNATURES.iter().find(|line| line.name == name && line.parameters.len() == arguments)
    }

    /// The first line of a function.
    pub fn of(function: Function) -> Option<&'static Signature> {
        SIGNATURES.iter().find(|line| line.function == function)
    }
}
