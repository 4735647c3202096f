//! Calls of aggregates and of functions over windows: which is meant, and whether it has such clauses.

use super::back_end::BackEnd;
use super::written_call::WrittenCall;
use crate::functions::aggregate::Aggregate;
use crate::functions::resolution::{Argument, resolve};
use crate::functions::{Body, Definition, Kind};
use crate::sql_type::SqlType;
use fabius_value::{Error, SqlState};

/// The aggregate or function over a window that a call is of, by its arguments. What `WITHIN GROUP` orders counts as
/// the last of them.
///
/// # Errors
/// `42883` and `42725` for arguments that it does not take; `42804` for ones that leave a type open; `42809` and
/// `0A000` for clauses that it does not have.
pub fn call_of_rows<E: BackEnd>(
    end: &E,
    name: &str,
    call: &WrittenCall<'_>,
    arguments: &[E::Value],
) -> Result<&'static Definition, E::Stop> {
    let given: Vec<Argument<'_>> = arguments.iter().map(E::argument_of).collect();
    let definition = resolve(name, &given).map_err(|why| end.unresolved(name, why, arguments))?;
    refuse_clauses(definition, call)?;
    refuse_open_type(definition, &given)?;
    Ok(definition)
}

/// Refuses clauses that a function does not have, in the order in which PostgreSQL looks at them.
fn refuse_clauses(definition: &Definition, call: &WrittenCall<'_>) -> Result<(), Error> {
    let name = &definition.name;
    let wrong = |message: String| Err(Error::new(SqlState(*b"42809"), message));
    let missing = |message: String| Err(Error::new(SqlState::NOT_SUPPORTED, message));
    let is_window = matches!(definition.body, Body::OverWindow(_));
    let is_of_ordered = matches!(definition.body, Body::Aggregate(Aggregate::OfOrdered(_)));
    match () {
        () if call.is_distinct && !call.within_group.is_empty() => {
            Err(Error::new(SqlState::SYNTAX_ERROR, "cannot use DISTINCT with WITHIN GROUP"))
        }
        () if call.is_distinct && call.is_of_whole_rows() => {
            Err(Error::new(SqlState::SYNTAX_ERROR, format!("DISTINCT needs an argument of {name}")))
        }
        () if is_window && !call.within_group.is_empty() => {
            wrong(format!("window function {name} cannot have WITHIN GROUP"))
        }
        () if is_window && call.over.is_none() => {
            wrong(format!("window function {name} requires an OVER clause"))
        }
        () if is_of_ordered && call.within_group.is_empty() => {
            wrong(format!("WITHIN GROUP is required for ordered-set aggregate {name}"))
        }
        () if is_of_ordered && call.over.is_some() => {
            missing(format!("OVER is not supported for ordered-set aggregate {name}"))
        }
        () if !is_window && !is_of_ordered && !call.within_group.is_empty() => {
            wrong(format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"))
        }
        () if !is_window && !is_of_ordered && call.arguments.is_empty() => {
            wrong(format!("{name}(*) must be used to call a parameterless aggregate function"))
        }
        () if call.over.is_some() && call.is_distinct => {
            missing("DISTINCT is not implemented for window functions".into())
        }
        () if call.over.is_some() && !call.order_by.is_empty() => {
            missing("aggregate ORDER BY is not implemented for window functions".into())
        }
        () if is_window && call.filter.is_some() => {
            missing("FILTER is not implemented for non-aggregate window functions".into())
        }
        () => Ok(()),
    }
}

/// Refuses arguments none of which says what a type of any kind stands for.
fn refuse_open_type(definition: &Definition, given: &[Argument<'_>]) -> Result<(), Error> {
    let mut open = given.iter().enumerate().filter_map(|(at, argument)| {
        let is_any =
            matches!(definition.parameter(at), Some(Kind::Element | Kind::Array | Kind::Enumeration));
        is_any.then_some(*argument.sql_type == SqlType::Unknown)
    });
    match open.next() {
        Some(true) if open.all(|is_open| is_open) => Err(Error::new(
            SqlState::DATATYPE_MISMATCH,
            "could not determine polymorphic type because input has type unknown",
        )),
        _ => Ok(()),
    }
}
