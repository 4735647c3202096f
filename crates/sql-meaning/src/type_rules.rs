//! Which types fit together, as PostgreSQL decides it (its documentation, chapter 10, and `pg_cast`).

use crate::sql_type::SqlType;
use fabius_value::{Error, SqlState};

/// `character` of any length.
pub const ANY_CHAR: SqlType = SqlType::Char(10_485_760);

/// What types have in common (`pg_type.typcategory`); moments, times, intervals and JSON are told apart more finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// `boolean`
    Boolean,
    /// Integers, `oid`, `numeric`, floats.
    Number,
    /// Character strings and names.
    Text,
    /// `date`, `timestamp` with and without time zone.
    Moment,
    /// `time`
    Time,
    /// `interval`
    Interval,
    /// `bytea`
    Bytea,
    /// `uuid`
    Uuid,
    /// `inet`, `cidr`
    Network,
    /// `json`, `jsonb`
    Json,
    /// Enumerations.
    Enumeration,
    /// Arrays of all types.
    Array,
    /// What has no type, or no value.
    Other,
}

/// When a value may become one of another type (`pg_cast.castcontext`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Wherever an operand is wanted.
    Implicit,
    /// Where it is stored.
    Assignment,
    /// Where the text says so.
    Explicit,
}

/// The category of a type.
pub fn category(sql_type: &SqlType) -> Category {
    match sql_type {
        SqlType::Boolean => Category::Boolean,
        SqlType::SmallInt
        | SqlType::Int
        | SqlType::BigInt
        | SqlType::Oid
        | SqlType::Real
        | SqlType::Double
        | SqlType::Numeric(_) => Category::Number,
        SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_) | SqlType::Name => Category::Text,
        SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz => Category::Moment,
        SqlType::Time => Category::Time,
        SqlType::Rounded(of, _) => category(of),
        SqlType::Interval => Category::Interval,
        SqlType::Bytea => Category::Bytea,
        SqlType::Uuid => Category::Uuid,
        SqlType::Inet | SqlType::Cidr => Category::Network,
        SqlType::Json | SqlType::JsonB => Category::Json,
        SqlType::Enumeration(_) => Category::Enumeration,
        SqlType::Array(_) => Category::Array,
        SqlType::Void | SqlType::Unknown => Category::Other,
    }
}

/// Whether it is a number; an `oid`, which is not computed with, is none.
pub fn is_number(sql_type: &SqlType) -> bool {
    rank(sql_type).is_some()
}

/// Whether it is `smallint`, `integer` or `bigint`.
pub fn is_integer(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::SmallInt | SqlType::Int | SqlType::BigInt)
}

/// Whether it is a string of characters.
pub fn is_text(sql_type: &SqlType) -> bool {
    category(sql_type) == Category::Text
}

/// The type without its modifiers: what an operator gives.
pub fn without_modifiers(sql_type: &SqlType) -> SqlType {
    match sql_type {
        SqlType::Numeric(_) => SqlType::Numeric(None),
        SqlType::VarChar(_) => SqlType::VarChar(None),
        SqlType::Rounded(of, _) => (**of).clone(),
        other => other.clone(),
    }
}

/// The type without modifiers, nor those of elements: what a value has that does not say.
pub fn unbounded(sql_type: &SqlType) -> SqlType {
    match sql_type {
        SqlType::Array(element) => SqlType::Array(Box::new(unbounded(element))),
        other => without_modifiers(other),
    }
}

/// A type's name without what stands in brackets behind it, of an array without that of its elements.
pub fn plain_name(sql_type: &SqlType) -> String {
    match sql_type {
        SqlType::Char(_) => "character".to_string(),
        SqlType::Array(element) => format!("{}[]", plain_name(element)),
        other => without_modifiers(other).to_string(),
    }
}

/// Whether equal values of a type may look different to what compares them as they are kept: intervals in other units,
/// numbers within `jsonb`, zeros within arrays.
pub fn looks_different(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Interval | SqlType::JsonB => true,
        SqlType::Array(element) => is_float(element) || looks_different(element),
        _ => false,
    }
}

/// Whether a type has zeros of both signs, which are equal.
pub fn is_float(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::Double | SqlType::Real)
}

/// Where a type stands among the numbers: each becomes a greater one implicitly.
pub fn rank(sql_type: &SqlType) -> Option<u8> {
    Some(match sql_type {
        SqlType::SmallInt => 1,
        SqlType::Int => 2,
        SqlType::BigInt => 3,
        SqlType::Numeric(_) => 4,
        SqlType::Real => 5,
        SqlType::Double => 6,
        _ => return None,
    })
}

/// The type that values of both have where they meet: in `CASE`, `COALESCE`, `IN`, `VALUES`, `UNION` (10.5). `None`
/// if there is none. Two kinds of text that become each other are the first of them.
pub fn common(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    use SqlType as T;
    Some(match (left, right) {
        (a, b) if a == b => a.clone(),
        (T::Unknown, other) | (other, T::Unknown) => other.clone(),
        (T::Oid, other) | (other, T::Oid) if is_integer(other) => T::Oid,
        (a, b) if is_number(a) && is_number(b) => without_modifiers(if rank(a) >= rank(b) { a } else { b }),
        (T::Text, other) if is_text(other) => T::Text,
        (T::Name, other) | (other, T::Name) if is_text(other) => T::Name,
        (T::VarChar(_), other) if is_text(other) => T::VarChar(None),
        // No type has characters of any length that are padded to none.
        (T::Char(_), other) if is_text(other) => T::Text,
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => T::Timestamp,
        (T::Date | T::Timestamp, T::TimestampTz) | (T::TimestampTz, T::Date | T::Timestamp) => T::TimestampTz,
        (T::Inet, T::Cidr) | (T::Cidr, T::Inet) => T::Inet,
        (T::Array(a), T::Array(b)) => T::Array(Box::new(common(a, b)?)),
        _ => return None,
    })
}

/// A value among those that become one.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'v> {
    /// The value's type.
    pub sql_type: &'v SqlType,
    /// What it says, if it is a literal of unknown type.
    pub text: Option<&'v str>,
    /// Whether it is a bare null.
    pub is_null: bool,
}

/// The type that all values of `what` have together (10.5): that of those whose type is known, text if there are none.
/// `meet` says it of two types; `open` which one it is beside a value of unknown type, which does not have the others'
/// length or digits.
///
/// # Errors
/// Which value has none together with those before, and why ([`no_common`]).
pub fn common_of<'v>(
    values: impl Iterator<Item = Candidate<'v>>,
    what: &str,
    meet: impl Fn(&SqlType, &SqlType) -> Option<SqlType>,
    open: impl Fn(SqlType, &Candidate<'v>) -> SqlType,
) -> Result<SqlType, (usize, Error)> {
    let mut unknown = Vec::new();
    let mut common: Option<SqlType> = None;
    for (at, value) in values.enumerate() {
        common = Some(match common {
            _ if *value.sql_type == SqlType::Unknown => {
                unknown.push(value);
                continue;
            }
            None => value.sql_type.clone(),
            Some(before) => {
                meet(&before, value.sql_type).ok_or_else(|| (at, no_common(what, &before, value.sql_type)))?
            }
        });
    }
    let Some(common) = common else { return Ok(SqlType::Text) };
    Ok(unknown.iter().fold(common, |common, value| match common {
        // No type has characters of any length that are padded to none.
        SqlType::Char(_) if !value.is_null => SqlType::Text,
        common => open(common, value),
    }))
}

/// Why two types have no common one: `42804`, or `42846` for types that are alike.
pub fn no_common(what: &str, left: &SqlType, right: &SqlType) -> Error {
    let is_alike = match (left, right) {
        (SqlType::Oid, other) | (other, SqlType::Oid) => is_number(other),
        _ => category(left) == category(right),
    };
    match is_alike {
        true => {
            let message = format!("{what} could not convert type {right} to {left}");
            Error::new(SqlState(*b"42846"), message)
        }
        false => {
            let message = format!("{what} types {left} and {right} cannot be matched");
            Error::new(SqlState::DATATYPE_MISMATCH, message)
        }
    }
}

/// The type in which two values are added or compared: beside another number a `real` counts as `double precision`,
/// which is preferred where no operator is of both types; `oid` counts as `bigint`. Arrays are compared with those of
/// the same elements.
pub fn operand(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    match (left, right) {
        (SqlType::Real, SqlType::Real) => Some(SqlType::Real),
        (SqlType::Real, other) | (other, SqlType::Real) if is_number(other) => Some(SqlType::Double),
        (SqlType::Oid, other) | (other, SqlType::Oid) if is_integer(other) => Some(SqlType::BigInt),
        (SqlType::Array(left), SqlType::Array(right))
            if without_modifiers(left) != without_modifiers(right)
                && !is_unknown(left)
                && !is_unknown(right) =>
        {
            None
        }
        _ => common(left, right),
    }
}

fn is_unknown(sql_type: &SqlType) -> bool {
    *sql_type == SqlType::Unknown
}

/// Whether a value of one type becomes one of another.
pub fn converts(from: &SqlType, to: &SqlType, context: Context) -> bool {
    use Category as C;
    use Context::{Assignment, Explicit, Implicit};
    use SqlType as T;
    if without_modifiers(from) == without_modifiers(to) {
        return true;
    }
    if let T::Rounded(of, _) = to {
        return converts(from, of, context);
    }
    match (category(from), category(to)) {
        (C::Number, C::Number) => match (from, to) {
            (T::Oid, other) | (other, T::Oid) => is_integer(other) && (context != Implicit || *to == T::Oid),
            _ => context != Implicit || rank(from) <= rank(to),
        },
        (C::Text, C::Text) => true,
        (C::Moment, C::Moment) => {
            context != Implicit || *from == T::Date || matches!((from, to), (T::Timestamp, T::TimestampTz))
        }
        (C::Moment, C::Time) => context != Implicit && *from != T::Date,
        (C::Json, C::Json) => context != Implicit,
        (C::Network, C::Network) => context != Implicit || *to == T::Inet,
        (C::Time, C::Interval) => true,
        (C::Interval, C::Time) => context != Implicit,
        (C::Boolean, C::Number) => context == Explicit && *to == T::Int,
        (C::Number, C::Boolean) => context == Explicit && *from == T::Int,
        (C::Json, C::Number | C::Boolean) => context == Explicit && *from == T::JsonB && *to != T::Oid,
        (C::Array, C::Array) => match (from, to) {
            (T::Array(from), T::Array(to)) => converts(from, to, context),
            _ => false,
        },
        (C::Other, _) | (_, C::Other) => *from == T::Unknown,
        (_, C::Text) => matches!(context, Assignment | Explicit),
        (C::Text, _) => context == Explicit,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what `coalesce` of each pair is in PostgreSQL 15.
    #[test]
    fn pairs_have_common_types() {
        use SqlType as T;
        let shown = |left, right| common(&left, &right).map(|sql_type| sql_type.to_string());
        for (left, right, expected) in [
            (T::SmallInt, T::BigInt, Some("bigint")),
            (T::BigInt, T::Oid, Some("oid")),
            (T::Oid, T::Numeric(None), None),
            (T::Numeric(Some((10, 2))), T::Int, Some("numeric")),
            (T::Real, T::Numeric(None), Some("real")),
            (T::Real, T::Double, Some("double precision")),
            (T::Text, T::Name, Some("text")),
            (T::Name, T::Text, Some("name")),
            (T::VarChar(Some(8)), T::Text, Some("character varying")),
            (T::VarChar(Some(8)), T::Name, Some("name")),
            (T::Char(4), T::Name, Some("name")),
            (T::Date, T::TimestampTz, Some("timestamp with time zone")),
            (T::Json, T::JsonB, None),
            (T::Array(Box::new(T::BigInt)), T::Array(Box::new(T::Int)), Some("bigint[]")),
            (T::Boolean, T::Int, None),
        ] {
            assert_eq!(shown(left, right).as_deref(), expected);
        }
        assert_eq!(operand(&T::Real, &T::Int), Some(T::Double));
    }
}
