//! Which function of several with one name is called (PostgreSQL's documentation, 10.3).

use super::{Definition, FUNCTIONS, Kind};
use crate::sql_type::SqlType;
use crate::type_rules::{Category, Context, category, common, converts, plain_name, without_modifiers};
use fabius_value::{Error, SqlState};

/// An argument of a call, as far as it has a say in what is called.
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    /// The argument's type; [`SqlType::Unknown`] for a literal or parameter without one.
    pub sql_type: &'a SqlType,
    /// Whether it is a number that shows itself as a name, which is not a text.
    pub is_named: bool,
}

/// Why none is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// None takes such arguments.
    Missing,
    /// Several take them equally well.
    Ambiguous,
}

/// The function of a name that takes the arguments best.
pub fn resolve(name: &str, arguments: &[Argument<'_>]) -> Result<&'static Definition, Unresolved> {
    let all = FUNCTIONS.get(name).map(Vec::as_slice).unwrap_or_default();
    match best(all, arguments) {
        // Functions that nobody calls by name are there to take whatever comes.
        Err(Unresolved::Ambiguous) if name.starts_with("fabius_") => {
            all.iter().find(|it| takes(it, arguments)).ok_or(Unresolved::Missing)
        }
        found => found,
    }
}

/// The one of several that takes the arguments best.
pub(super) fn best(
    all: &'static [Definition],
    arguments: &[Argument<'_>],
) -> Result<&'static Definition, Unresolved> {
    let mut candidates: Vec<&Definition> = all.iter().filter(|it| takes(it, arguments)).collect();
    keep_best(&mut candidates, |it| count(it, arguments, is_exact));
    keep_best(&mut candidates, |it| {
        count(it, arguments, |kind, of| is_exact(kind, of) || is_preferred(kind, of))
    });
    if candidates.len() > 1 {
        settle_unknown(&mut candidates, arguments);
    }
    if candidates.len() > 1 {
        assume_alike(&mut candidates, arguments);
    }
    // Of `f()` and `f(any...)` without arguments, the former.
    keep_best(&mut candidates, |it| usize::from(!it.is_variadic));
    match candidates.as_slice() {
        [] => Err(Unresolved::Missing),
        [only] => Ok(only),
        _ => Err(Unresolved::Ambiguous),
    }
}

impl Unresolved {
    /// `42883` or `42725`, with the call's types.
    pub fn error(self, name: &str, arguments: &[Argument<'_>]) -> Error {
        let types: Vec<String> = arguments.iter().map(|argument| plain_name(argument.sql_type)).collect();
        let call = format!("{name}({})", types.join(", "));
        match self {
            Unresolved::Missing => Error::new(SqlState::UNDEFINED_FUNCTION, format!("function {call} does not exist"))
                .with_hint(
                    "No function matches the given name and argument types. You might need to add explicit type casts.",
                ),
            Unresolved::Ambiguous => Error::new(SqlState(*b"42725"), format!("function {call} is not unique"))
                .with_hint(
                    "Could not choose a best candidate function. You might need to add explicit type casts.",
                ),
        }
    }
}

impl Definition {
    /// What it takes at a place; the last parameter of a variadic function goes on.
    pub fn parameter(&self, at: usize) -> Option<&Kind> {
        self.parameters.get(at).or_else(|| self.parameters.last().filter(|_| self.is_variadic))
    }
}

/// Whether a function takes the arguments, perhaps converted implicitly.
fn takes(definition: &Definition, arguments: &[Argument<'_>]) -> bool {
    let least = definition.parameters.len() - if definition.is_variadic { 1 } else { definition.optional };
    if arguments.len() < least {
        return false;
    }
    let (mut element, mut compatible) = (SqlType::Unknown, SqlType::Unknown);
    arguments.iter().enumerate().all(|(at, argument)| {
        let Some(kind) = definition.parameter(at) else { return false };
        let (of, all) = match (kind, argument.sql_type) {
            (Kind::Is(SqlType::Text), _) if argument.is_named => return false,
            (Kind::Is(SqlType::Text), SqlType::Json | SqlType::JsonB) => {
                return definition.name.starts_with("fabius_");
            }
            (Kind::Is(to), from) => return converts(from, to, Context::Implicit),
            (Kind::Any, _) => return true,
            (Kind::NonArray, of) => return !matches!(of, SqlType::Array(_)),
            (Kind::Array | Kind::CompatibleArray, SqlType::Unknown) => return true,
            (Kind::Enumeration, of) if !matches!(of, SqlType::Enumeration(_) | SqlType::Unknown) => {
                return false;
            }
            (Kind::Element | Kind::Enumeration, of) => (of, &mut element),
            (Kind::Compatible, of) => (of, &mut compatible),
            (Kind::Array, SqlType::Array(of)) => (of.as_ref(), &mut element),
            (Kind::CompatibleArray, SqlType::Array(of)) => (of.as_ref(), &mut compatible),
            (Kind::Array | Kind::CompatibleArray, _) => return false,
        };
        let is_open = *all == SqlType::Unknown || *of == SqlType::Unknown;
        if !is_open && matches!(kind, Kind::Element | Kind::Enumeration | Kind::Array) && !is_exact(all, of) {
            return false;
        }
        match common(all, of) {
            Some(both) => *all = both,
            None => return false,
        }
        true
    })
}

/// Whether the parameters have the very types of the arguments.
pub(super) fn takes_exactly(definition: &Definition, arguments: &[Argument<'_>]) -> bool {
    let mut pairs = definition.parameters.iter().zip(arguments);
    definition.parameters.len() == arguments.len()
        && pairs.all(|(kind, argument)| matches!(kind, Kind::Is(kind) if is_exact(kind, argument.sql_type)))
}

fn keep_best(candidates: &mut Vec<&Definition>, score: impl Fn(&Definition) -> usize) {
    let best = candidates.iter().map(|it| score(it)).max().unwrap_or_default();
    candidates.retain(|it| score(it) == best);
}

/// How many arguments with a type meet a parameter of which something holds.
fn count(
    definition: &Definition,
    arguments: &[Argument<'_>],
    holds: impl Fn(&SqlType, &SqlType) -> bool,
) -> usize {
    let known = arguments.iter().enumerate().filter(|(_, argument)| *argument.sql_type != SqlType::Unknown);
    known
        .filter(|(at, argument)| {
            matches!(definition.parameter(*at), Some(Kind::Is(kind)) if holds(kind, argument.sql_type))
        })
        .count()
}

/// Whether two types are one, whatever their modifiers.
pub fn is_exact(kind: &SqlType, of: &SqlType) -> bool {
    matches!((kind, of), (SqlType::Char(_), SqlType::Char(_)))
        || without_modifiers(kind) == without_modifiers(of)
}

/// Whether it is the type that is preferred in a type's category (`pg_type.typispreferred`).
fn is_preferred(kind: &SqlType, of: &SqlType) -> bool {
    let is_first = matches!(
        kind,
        SqlType::Double
            | SqlType::Oid
            | SqlType::Text
            | SqlType::TimestampTz
            | SqlType::Boolean
            | SqlType::Interval
            | SqlType::Inet
    );
    is_first && coarse(kind) == coarse(of)
}

/// A type's category as PostgreSQL divides them: times are moments there, and `bytea`, `uuid` and JSON one category.
fn coarse(sql_type: &SqlType) -> Category {
    match category(sql_type) {
        Category::Time => Category::Moment,
        Category::Bytea | Category::Uuid | Category::Json => Category::Other,
        other => other,
    }
}

/// Leaves those whose parameters have, for each argument of unknown type, the category that it is taken for: text if
/// any has, else the one that all have; and of these the ones with the preferred type. If an argument is taken for
/// none, all are left.
fn settle_unknown(candidates: &mut Vec<&Definition>, arguments: &[Argument<'_>]) {
    let of = |it: &Definition, at: usize| match it.parameter(at) {
        Some(Kind::Is(sql_type)) => Some(sql_type.clone()),
        _ => None,
    };
    let mut chosen = Vec::new();
    for at in (0..arguments.len()).filter(|at| *arguments[*at].sql_type == SqlType::Unknown) {
        let categories: Vec<_> = candidates.iter().map(|it| of(it, at).as_ref().map(coarse)).collect();
        let category = match categories.as_slice() {
            all if all.contains(&Some(Category::Text)) => Category::Text,
            [Some(first), rest @ ..] if rest.iter().all(|category| *category == Some(*first)) => *first,
            _ => return,
        };
        let is_preferred = |it: &&Definition| {
            of(it, at)
                .is_some_and(|sql_type| coarse(&sql_type) == category && is_preferred(&sql_type, &sql_type))
        };
        chosen.push((at, category, candidates.iter().any(is_preferred)));
    }
    candidates.retain(|it| {
        chosen.iter().all(|(at, category, wants_preferred)| {
            of(it, *at).is_some_and(|sql_type| {
                coarse(&sql_type) == *category && (!wants_preferred || is_preferred(&sql_type, &sql_type))
            })
        })
    });
}

/// If all arguments that have a type have the same, leaves the one that takes it for the others too, if it is one.
fn assume_alike(candidates: &mut Vec<&Definition>, arguments: &[Argument<'_>]) {
    let mut known = arguments.iter().map(|it| it.sql_type).filter(|it| **it != SqlType::Unknown);
    let Some(first) = known.next() else { return };
    if known.any(|other| other != first) {
        return;
    }
    let alike = vec![Argument { sql_type: first, is_named: false }; arguments.len()];
    let fitting: Vec<&Definition> = candidates.iter().copied().filter(|it| takes(it, &alike)).collect();
    if let [only] = fitting.as_slice() {
        *candidates = vec![only];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(name: &str, types: &[SqlType]) -> Result<String, Unresolved> {
        let arguments: Vec<Argument<'_>> =
            types.iter().map(|sql_type| Argument { sql_type, is_named: false }).collect();
        resolve(name, &arguments).map(|definition| {
            let shown = |kind: &Kind| match kind {
                Kind::Is(sql_type) => sql_type.to_string(),
                other => format!("{other:?}").to_lowercase(),
            };
            definition.parameters.iter().map(shown).collect::<Vec<_>>().join(", ")
        })
    }

    /// Goal: the functions that PostgreSQL 15 takes, and what it finds not unique.
    #[test]
    fn overloads_are_resolved() {
        use SqlType as T;
        for (name, types, expected) in [
            ("abs", vec![T::SmallInt], Ok("smallint")),
            ("abs", vec![T::Unknown], Ok("double precision")),
            ("round", vec![T::Int], Ok("double precision")),
            ("mod", vec![T::SmallInt, T::BigInt], Ok("bigint, bigint")),
            ("power", vec![T::Numeric(None), T::Int], Ok("numeric, numeric")),
            ("length", vec![T::Unknown], Ok("text")),
            ("length", vec![T::Name], Ok("text")),
            ("pg_get_viewdef", vec![T::Unknown], Ok("text, boolean")),
            ("date_trunc", vec![T::Unknown, T::Date], Ok("text, timestamp with time zone")),
            ("date_trunc", vec![T::Unknown, T::Unknown], Err(Unresolved::Ambiguous)),
            ("date_part", vec![T::Unknown, T::Unknown], Err(Unresolved::Ambiguous)),
            ("quote_literal", vec![T::Int], Ok("element")),
            ("lower", vec![T::Int], Err(Unresolved::Missing)),
            ("concat", vec![T::Int, T::Text, T::Unknown], Ok("any")),
        ] {
            assert_eq!(resolved(name, &types), expected.map(String::from), "{name}");
        }
    }
}
