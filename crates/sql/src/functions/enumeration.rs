//! Functions of enumerations (PostgreSQL's documentation, 9.10). Of their arguments the types count, so that these may be
//! null.

use super::{Call, Definition, array_of, define};
use crate::sql_type::{Enumeration, Label, SqlType};
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
    let of = |sql_type: &SqlType| match sql_type {
        SqlType::Enumeration(of) => Enumeration::shown(of),
        other => other.to_string(),
    };
    label.map(|label| Value::BigInt(label.number)).ok_or_else(|| {
        let shown = call.types.first().map(of).unwrap_or_default();
        Error::new(SqlState(*b"55000"), format!("enum {shown} contains no values"))
    })
}
