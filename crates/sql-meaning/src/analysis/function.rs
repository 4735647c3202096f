//! Functions by name: which of the table is meant, and those that choose among values.

use super::back_end::{BackEnd, Choice};
use super::operator::{infix, resolved, with_blanks};
use crate::functions::Kind;
use crate::functions::resolution::{self, is_exact};
use crate::sql_type::SqlType;
use crate::type_rules::{Context, converts};
use fabius_value::{Error, SqlState};

/// A function that is no aggregate, by its name.
pub fn function<E: BackEnd>(
    end: &mut E,
    name: &str,
    mut arguments: Vec<E::Value>,
) -> Result<E::Value, E::Stop> {
    if name == "octet_length" && arguments.len() == 1 {
        arguments = vec![with_blanks(end, arguments.remove(0))?];
    }
    let choice = match name {
        "coalesce" => Choice::Coalesce,
        "greatest" => Choice::Greatest,
        "least" => Choice::Least,
        "nullif" => return null_if(end, arguments),
        _ => {
            let given: Vec<_> = arguments.iter().map(E::argument_of).collect();
            return match (resolution::resolve(name, &given), arguments.as_slice(), SqlType::of_name(name)) {
                (Ok(definition), ..) => end.apply(definition, arguments),
                // `date(moment)`: a type's name before one value is a cast (PostgreSQL 15, 4.2.9).
                (Err(_), [value], Some(to))
                    if converts(E::argument_of(value).sql_type, &to, Context::Explicit) =>
                {
                    end.converted(value.clone(), &to)
                }
                (Err(why), ..) => Err(end.unresolved(name, why, &arguments)),
            };
        }
    };
    if arguments.is_empty() {
        return Err(Error::new(SqlState::SYNTAX_ERROR, format!("{name} needs an argument")).into());
    }
    end.choice(choice, arguments)
}

/// `NULLIF (value, other)`: of the type of the left side of `=`.
fn null_if<E: BackEnd>(end: &mut E, arguments: Vec<E::Value>) -> Result<E::Value, E::Stop> {
    let Ok([value, other]) = <[E::Value; 2]>::try_from(arguments) else {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "NULLIF has two arguments").into());
    };
    let operator = resolved::<E>("=", &[&value, &other])?;
    let own = E::argument_of(&value).sql_type;
    let value = match &operator.parameters[0] {
        Kind::Is(sql_type) if is_exact(sql_type, own) => value,
        // No type has characters of any length that are padded to none.
        Kind::Is(SqlType::Char(_)) => end.converted(value, &SqlType::Text)?,
        Kind::Is(sql_type) => end.converted(value, sql_type)?,
        Kind::Array | Kind::Enumeration if *own != SqlType::Unknown => value,
        Kind::Enumeration => {
            let of = E::argument_of(&other).sql_type.clone();
            end.converted(value, &of)?
        }
        _ => end.converted(value, &SqlType::Text)?,
    };
    let equal = infix(end, value.clone(), "=", other)?;
    let null = end.unknown(None);
    end.case(vec![(equal, null)], Some(value))
}
