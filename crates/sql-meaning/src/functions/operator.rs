//! Operators: functions that are called by symbols, whose operands of unknown type are resolved in a way of their own.
//!
//! Those of moments, JSON, arrays and patterns stand beside the functions of these; here are those of numbers, texts,
//! bits and comparisons.

use super::regular_expression::bytes_are_like;
use super::resolution::{Argument, Unresolved, best, takes_exactly};
use super::{Body, Definition, FUNCTIONS, declare, define, integer_at};
use crate::sql_type::SqlType;
use crate::type_rules::plain_name;
use fabius_value::{Error, SqlState, Value};

/// An operation of two numbers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`: integers are cut towards zero.
    Divide,
    /// `%`
    Remainder,
}

/// What an operator does that programs and queries have instructions for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// An operation of two numbers.
    Arithmetic(Operation),
    /// A number with the other sign.
    Negation,
    /// The operand itself.
    Identity,
    /// A comparison of two values, by its symbol.
    Comparison,
    /// A text behind another one.
    Concatenation,
    /// A match of a `LIKE` pattern.
    Like {
        /// Whether capital letters are as good as small ones.
        ignores_case: bool,
        /// Whether it is the question for no match.
        is_negated: bool,
    },
}

/// Symbols of functions that have names too, and the type of the first parameter if not all functions of the name have
/// the symbol.
pub(super) const SYMBOLS: &[(&str, &str, Option<SqlType>)] = &[
    ("^", "power", None),
    ("@", "abs", None),
    ("|/", "sqrt", Some(SqlType::Double)),
    ("||/", "cbrt", None),
    ("^@", "starts_with", None),
    ("||", "array_cat", None),
    ("||", "array_append", None),
    ("||", "array_prepend", None),
];

const INTEGERS: [&str; 3] = ["smallint", "int", "bigint"];

/// Pairs of types that have operators for both of them: the operators of arithmetic give the wider one.
const CROSSED: [(&str, &str, &str); 8] = [
    ("smallint", "int", "int"),
    ("int", "smallint", "int"),
    ("smallint", "bigint", "bigint"),
    ("bigint", "smallint", "bigint"),
    ("int", "bigint", "bigint"),
    ("bigint", "int", "bigint"),
    ("real", "float8", "float8"),
    ("float8", "real", "float8"),
];

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = numbers();
    all.extend(comparisons());
    all.extend(bits());
    let built_in = |signature: &str, does| declare(signature, Body::BuiltIn(does));
    for signature in ["||(text, text) text", "||(text, anynonarray) text", "||(anynonarray, text) text"] {
        all.push(built_in(signature, BuiltIn::Concatenation));
    }
    for (ignores_case, is_negated) in [(false, false), (true, false), (false, true), (true, true)] {
        let (symbol, does) =
            (like_symbol(ignores_case, is_negated), BuiltIn::Like { ignores_case, is_negated });
        all.push(built_in(&format!("{symbol}(text, text) bool"), does));
    }
    all.push(define("~~(bytea, bytea) bool", |a, _| bytes_are_like(a).map(Value::Boolean)));
    all.push(define("!~~(bytea, bytea) bool", |a, _| bytes_are_like(a).map(|are| Value::Boolean(!are))));
    all
}

fn numbers() -> Vec<Definition> {
    use Operation::{Add, Divide, Multiply, Remainder, Subtract};
    let mut all = Vec::new();
    let mut add = |signature: String, does| all.push(declare(&signature, Body::BuiltIn(does)));
    let plain = ["smallint", "int", "bigint", "numeric", "real", "float8"];
    for of in plain {
        add(format!("+({of}) {of}"), BuiltIn::Identity);
        add(format!("-({of}) {of}"), BuiltIn::Negation);
    }
    for (symbol, operation) in [("+", Add), ("-", Subtract), ("*", Multiply), ("/", Divide)] {
        for of in plain {
            add(format!("{symbol}({of}, {of}) {of}"), BuiltIn::Arithmetic(operation));
        }
        for (left, right, wider) in CROSSED {
            add(format!("{symbol}({left}, {right}) {wider}"), BuiltIn::Arithmetic(operation));
        }
    }
    for of in ["smallint", "int", "bigint", "numeric"] {
        add(format!("%({of}, {of}) {of}"), BuiltIn::Arithmetic(Remainder));
    }
    all
}

fn comparisons() -> Vec<Definition> {
    const ALIKE: &str = "bool smallint int bigint numeric real float8 oid text name bpchar \
        bytea date time timestamp timestamptz interval uuid inet jsonb anyarray anyenum";
    let crossed = [
        ("name", "text"),
        ("text", "name"),
        ("date", "timestamp"),
        ("timestamp", "date"),
        ("date", "timestamptz"),
        ("timestamptz", "date"),
        ("timestamp", "timestamptz"),
        ("timestamptz", "timestamp"),
    ];
    let pairs: Vec<(&str, &str)> = (ALIKE.split_whitespace().map(|of| (of, of)))
        .chain(crossed)
        .chain(CROSSED.into_iter().map(|(left, right, _)| (left, right)))
        .collect();
    let mut all = Vec::new();
    for symbol in ["=", "<>", "<", "<=", ">", ">="] {
        for (left, right) in &pairs {
            let signature = format!("{symbol}({left}, {right}) bool");
            all.push(declare(&signature, Body::BuiltIn(BuiltIn::Comparison)));
        }
    }
    all
}

fn bits() -> Vec<Definition> {
    let mut all = Vec::new();
    for of in INTEGERS {
        all.extend([
            define(&format!("&({of}, {of}) {of}"), |a, _| {
                Ok(like(&a[0], integer_at(a, 0) & integer_at(a, 1)))
            })
            .in_programs("bitand"),
            define(&format!("|({of}, {of}) {of}"), |a, _| {
                Ok(like(&a[0], integer_at(a, 0) | integer_at(a, 1)))
            })
            .in_programs("bitor"),
            define(&format!("#({of}, {of}) {of}"), |a, _| {
                Ok(like(&a[0], integer_at(a, 0) ^ integer_at(a, 1)))
            })
            .in_programs("bitxor"),
            define(&format!("~({of}) {of}"), |a, _| Ok(like(&a[0], !integer_at(a, 0)))).in_programs("bitnot"),
            define(&format!("<<({of}, int) {of}"), |a, _| {
                Ok(shifted(a, i64::wrapping_shl, i32::wrapping_shl))
            })
            .in_programs("shift_left"),
            define(&format!(">>({of}, int) {of}"), |a, _| {
                Ok(shifted(a, i64::wrapping_shr, i32::wrapping_shr))
            })
            .in_programs("shift_right"),
        ]);
    }
    all
}

/// A number as an integer of the width of another one; what has no place there is lost.
fn like(of: &Value, number: i64) -> Value {
    match of {
        Value::SmallInt(_) => Value::SmallInt(number as i16),
        Value::Int(_) => Value::Int(number as i32),
        _ => Value::BigInt(number),
    }
}

/// Bits moved by a number of places, which counts modulo the width of a register, as in PostgreSQL.
fn shifted(a: &[Value], wide: fn(i64, u32) -> i64, narrow: fn(i32, u32) -> i32) -> Value {
    let by = integer_at(a, 1) as u32;
    match a[0] {
        Value::BigInt(number) => Value::BigInt(wide(number, by)),
        _ => like(&a[0], narrow(integer_at(a, 0) as i32, by).into()),
    }
}

/// The symbol of `LIKE`, `ILIKE` and their negations.
pub fn like_symbol(ignores_case: bool, is_negated: bool) -> &'static str {
    match (ignores_case, is_negated) {
        (false, false) => "~~",
        (false, true) => "!~~",
        (true, false) => "~~*",
        (true, true) => "!~~*",
    }
}

/// The operator of a symbol that takes the operands best (PostgreSQL's documentation, 10.2).
///
/// # Errors
/// `42883` if there is none, `42725` if several take them equally well.
pub fn resolve(symbol: &str, operands: &[Argument<'_>]) -> Result<&'static Definition, Error> {
    let symbol = if symbol == "!=" { "<>" } else { symbol };
    let all = FUNCTIONS.get(symbol).map(Vec::as_slice).unwrap_or_default();
    // An operand of unknown type is what the other one is, if there is an operator of two such.
    let is_unknown = |operand: &Argument<'_>| *operand.sql_type == SqlType::Unknown;
    if let [left, right] = operands
        && is_unknown(left) != is_unknown(right)
    {
        let known = if is_unknown(left) { right } else { left };
        if let Some(alike) = all.iter().find(|it| takes_exactly(it, &[*known, *known])) {
            return Ok(alike);
        }
    }
    best(all, operands).map_err(|why| error(why, symbol, operands))
}

fn error(why: Unresolved, symbol: &str, operands: &[Argument<'_>]) -> Error {
    let shown: Vec<String> = operands.iter().map(|operand| plain_name(operand.sql_type)).collect();
    let (call, types, casts) = match shown.as_slice() {
        [left, right] => (format!("{left} {symbol} {right}"), "types", "casts"),
        all => (format!("{symbol} {}", all.join(", ")), "type", "cast"),
    };
    let add = if casts == "cast" { "an explicit type cast" } else { "explicit type casts" };
    match why {
        Unresolved::Missing => {
            Error::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {call}")).with_hint(
                format!(
                    "No operator matches the given name and argument {types}. You might need to add {add}."
                ),
            )
        }
        Unresolved::Ambiguous => Error::new(SqlState(*b"42725"), format!("operator is not unique: {call}"))
            .with_hint(format!("Could not choose a best candidate operator. You might need to add {add}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Kind;

    const TYPES: [&str; 27] = [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "numeric",
        "real",
        "double precision",
        "oid",
        "text",
        "name",
        "character varying",
        "character",
        "bytea",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "interval",
        "uuid",
        "inet",
        "cidr",
        "json",
        "jsonb",
        "integer[]",
        "bigint[]",
        "text[]",
        "unknown",
    ];

    fn type_of(name: &str) -> SqlType {
        match (name, name.strip_suffix("[]")) {
            ("unknown", _) => SqlType::Unknown,
            (_, Some(element)) => SqlType::Array(Box::new(type_of(element))),
            _ => SqlType::of_name(name).expect("a type"),
        }
    }

    /// What a symbol gives with a left operand, if there is one, and each right one: `bigint date, oid ?`.
    fn resolved(symbol: &str, left: &str) -> String {
        let left = Some(left).filter(|left| !left.is_empty()).map(type_of);
        let mut all = Vec::new();
        let mut rights = TYPES;
        rights.sort_unstable();
        for right in rights {
            let is_of_missing = ["@>", "<@", "&&", "?|"].contains(&symbol);
            if is_of_missing && right == "unknown" && left == Some(SqlType::Unknown) {
                continue;
            }
            let right_type = type_of(right);
            let operands = left.iter().chain([&right_type]);
            let operands: Vec<Argument<'_>> =
                operands.map(|sql_type| Argument { sql_type, is_named: false }).collect();
            let gives = match resolve(symbol, &operands) {
                Ok(operator) => match &operator.returns {
                    Kind::Is(SqlType::Timestamp) => "timestamp".to_string(),
                    Kind::Is(SqlType::TimestampTz) => "timestamptz".to_string(),
                    Kind::Is(SqlType::Time) => "time".to_string(),
                    Kind::Is(sql_type) => sql_type.to_string(),
                    _ => "an array".to_string(),
                },
                Err(error) if error.state() != SqlState(*b"42725") => continue,
                Err(_) if is_of_missing => continue,
                Err(_) => "?".to_string(),
            };
            all.push(format!("{right} {gives}"));
        }
        all.join(", ")
    }

    /// Goal: for each symbol and each two types, what PostgreSQL 15 gives: the type, `?` for 42725, nothing for 42883.
    /// Left out is what is ambiguous there because of ranges and shapes.
    #[test]
    fn operators_are_those_of_postgresql() {
        let expected = include_str!("operators_of_postgresql.txt");
        let mut differ = Vec::new();
        let mut symbols: Vec<&str> = expected.lines().filter_map(|line| line.split(' ').next()).collect();
        symbols.dedup();
        for symbol in symbols {
            for left in TYPES.into_iter().chain([""]) {
                let start = format!("{symbol} {left}: ");
                let line = expected.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default();
                let line = line.split(", ").map(|pair| match pair.rsplit_once(' ') {
                    Some((right, gives)) if gives.ends_with("[]") => {
                        format!(
                            "{} an array",
                            right.trim_end_matches(" double").trim_end_matches(" character")
                        )
                    }
                    _ => pair.to_string(),
                });
                let line = line.collect::<Vec<_>>().join(", ");
                let own = resolved(symbol, left);
                if own != line {
                    differ.push(format!("{start}\n  expected {line}\n  got      {own}"));
                }
            }
        }
        assert!(differ.is_empty(), "{}", differ.join("\n"));
    }
}
