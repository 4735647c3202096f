//! Functions of types that are defined. Those of enumerations (PostgreSQL's documentation, 9.10) ask for the types of
//! their arguments, which may be null.

use super::{Call, Definition, array_of, define, text_at};
use crate::sql_type::{Label, SqlType};
use fabius_value::{Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    vec![
        define("enum_first(anyenum) anyenum null", |_, call| end_of(labels(call)?.first(), call)),
        define("enum_last(anyenum) anyenum null", |_, call| end_of(labels(call)?.last(), call)),
        define("enum_range(anyenum) anyarray null", |_, call| Ok(values(labels(call)?.iter()))),
        define("enum_range(anyenum, anyenum) anyarray null", |a, call| {
            let (from, to) = (a[0].as_integer(), a[1].as_integer());
            let within = |label: &&Label| {
                from.is_none_or(|from| label.number >= from) && to.is_none_or(|to| label.number <= to)
            };
            Ok(values(labels(call)?.iter().filter(within)))
        }),
        // What a cast to a domain gives where the domain's condition does not hold: never a value. Without the name of
        // a condition, it is that nulls are not allowed.
        define("fabius_not_of_domain(text, text, anyelement) anyelement null volatile", |a, _| {
            Err(match (text_at(a, 0), text_at(a, 1)) {
                (domain, "") => {
                    let message = format!("domain {domain} does not allow null values");
                    Error::new(SqlState::NOT_NULL_VIOLATION, message)
                }
                (domain, check) => {
                    let message = format!("value for domain {domain} violates check constraint \"{check}\"");
                    Error::new(SqlState(*b"23514"), message)
                }
            })
        }),
    ]
}

fn labels(call: &Call) -> Result<&[Label]> {
    match call.types.first() {
        Some(SqlType::Enumeration(of)) => Ok(&of.labels),
        _ => Err(Error::new(SqlState::DATATYPE_MISMATCH, "could not determine actual enum type")),
    }
}

fn values<'l>(labels: impl Iterator<Item = &'l Label>) -> Value {
    array_of(labels.map(|label| Value::BigInt(label.number)))
}

fn end_of(label: Option<&Label>, call: &Call) -> Result<Value> {
    label.map(|label| Value::BigInt(label.number)).ok_or_else(|| {
        let shown = call.types.first().map(SqlType::to_string).unwrap_or_default();
        Error::new(SqlState(*b"55000"), format!("enum {shown} contains no values"))
    })
}
