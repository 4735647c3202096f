//! Calls: what is given, and which function is meant.

use super::type_name::identifier;
use crate::bind::{Bind, Binder, Bound, Stop};
use fabius_sql_meaning::catalog::{
    Catalog, Function, FunctionParameter, ObjectName, ParameterMode, input_types,
};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::sync::Arc;

/// What a call gives for a parameter.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The parameter's name, of `name => value`.
    pub name: Option<String>,
    /// The value.
    pub value: ast::Expr,
}

/// A call's argument with its type.
#[derive(Clone, Debug)]
pub struct Given {
    /// The parameter's name, of `name => value`.
    pub name: Option<String>,
    /// The value.
    pub value: Bound,
}

/// The arguments of a call as they are written.
///
/// # Errors
/// Forms that only aggregates and window functions have.
pub fn expressions(call: &ast::Function) -> Bind<Vec<Argument>> {
    let list = match &call.args {
        ast::FunctionArguments::None => return Ok(Vec::new()),
        ast::FunctionArguments::Subquery(_) => return Err(Stop::Beyond("a subquery as an argument".into())),
        ast::FunctionArguments::List(list) => list,
    };
    let mut arguments = Vec::new();
    for argument in &list.args {
        let (name, value) = match argument {
            ast::FunctionArg::Unnamed(value) => (None, value),
            ast::FunctionArg::Named { name, arg, .. } => (Some(identifier(name)), arg),
            ast::FunctionArg::ExprNamed { name: ast::Expr::Identifier(name), arg, .. } => {
                (Some(identifier(name)), arg)
            }
            ast::FunctionArg::ExprNamed { .. } => {
                return Err(Stop::Beyond("an argument of this form".into()));
            }
        };
        let ast::FunctionArgExpr::Expr(value) = value else {
            return Err(Stop::Beyond("an argument of this form".into()));
        };
        arguments.push(Argument { name, value: value.clone() });
    }
    Ok(arguments)
}

/// The arguments of a call with their types; what they need first goes to the binder's block.
///
/// # Errors
/// What is wrong with them.
pub fn arguments(binder: &mut Binder<'_>, call: &ast::Function) -> Bind<Vec<Given>> {
    let mut given = Vec::new();
    for argument in expressions(call)? {
        let value = binder.argument(&argument.value)?;
        given.push(Given { name: argument.name, value });
    }
    Ok(given)
}

/// For each parameter of a function, where its value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The argument at this place.
    Argument(usize),
    /// The arguments from this place on, as an array.
    Rest(usize),
    /// The parameter's default.
    Default,
    /// Nowhere: it only goes out.
    None,
}

/// The function that a call means, and where its parameters come from.
///
/// # Errors
/// `42883` if none fits, `42725` if several do.
pub fn resolve<'c>(
    binder: &Binder<'_>,
    functions: &'c [Arc<Function>],
    given: &[Given],
    procedures: bool,
) -> Result<(&'c Arc<Function>, Vec<Origin>)> {
    let mut best: Vec<(usize, &Arc<Function>, Vec<Origin>)> = Vec::new();
    for function in functions.iter().filter(|function| function.is_procedure == procedures) {
        let Some(sources) = matched(function, given) else { continue };
        let Some(score) = score(binder, function, &sources, given) else { continue };
        if best.first().is_none_or(|(most, ..)| score > *most) {
            best.clear();
        }
        if best.first().is_none_or(|(most, ..)| score == *most) {
            best.push((score, function, sources));
        }
    }
    let kind = if procedures { "procedure" } else { "function" };
    let shown = || {
        let name = functions.first().map_or("", |function| function.name.name.as_str());
        let types: Vec<String> = given.iter().map(|given| given.value.sql_type.to_string()).collect();
        format!("{kind} {name}({})", types.join(", "))
    };
    if best.len() > 1 {
        let hint =
            format!("Could not choose a best candidate {kind}. You might need to add explicit type casts.");
        return Err(Error::new(SqlState(*b"42725"), format!("{} is not unique", shown())).with_hint(hint));
    }
    best.pop().map(|(_, function, sources)| (function, sources)).ok_or_else(|| {
        let hint = format!(
            "No {kind} matches the given name and argument types. You might need to add explicit type casts."
        );
        let wrong_kind = functions.iter().all(|function| function.is_procedure != procedures);
        if wrong_kind && !functions.is_empty() {
            let (other, hint) = match procedures {
                false => ("procedure", "To call a procedure, use CALL."),
                true => ("function", "To call a function, use SELECT."),
            };
            let _ = other;
            let is_not = if procedures { "is not a procedure" } else { "is a procedure" };
            let message = format!("{} {is_not}", shown().trim_start_matches(kind).trim_start());
            return Error::new(SqlState(*b"42809"), message).with_hint(hint);
        }
        Error::new(SqlState::UNDEFINED_FUNCTION, format!("{} does not exist", shown())).with_hint(hint)
    })
}

/// Whether callers give a parameter: those of procedures are all given.
fn is_given(function: &Function, parameter: &FunctionParameter) -> bool {
    function.is_procedure || parameter.is_input()
}

fn matched(function: &Function, given: &[Given]) -> Option<Vec<Origin>> {
    let mut sources: Vec<Option<Origin>> = function
        .parameters
        .iter()
        .map(|parameter| (!is_given(function, parameter)).then_some(Origin::None))
        .collect();
    let places: Vec<usize> =
        (0..sources.len()).filter(|&at| is_given(function, &function.parameters[at])).collect();
    for (at, argument) in given.iter().enumerate() {
        let place = match &argument.name {
            Some(name) => *places.iter().find(|&&place| function.parameters[place].name == *name)?,
            None => match places.get(at) {
                Some(&place) => place,
                None => {
                    let last = *places.last()?;
                    match sources.get(last)? {
                        Some(Origin::Rest(_)) => continue,
                        _ => return None,
                    }
                }
            },
        };
        if sources[place].is_some() {
            return None;
        }
        let is_variadic = function.parameters[place].mode == ParameterMode::Variadic;
        let is_array = matches!(argument.value.sql_type, SqlType::Array(_));
        sources[place] = Some(match is_variadic && !is_array && argument.name.is_none() {
            true => Origin::Rest(at),
            false => Origin::Argument(at),
        });
    }
    let filled = sources.into_iter().zip(&function.parameters).map(|(source, parameter)| match source {
        Some(source) => Some(source),
        None if parameter.default.is_some() => Some(Origin::Default),
        None if parameter.mode == ParameterMode::Variadic => Some(Origin::Rest(given.len())),
        None => None,
    });
    filled.collect()
}

/// How well arguments fit; `None` if they do not.
fn score(binder: &Binder<'_>, function: &Function, sources: &[Origin], given: &[Given]) -> Option<usize> {
    let mut score = 0;
    for (source, parameter) in sources.iter().zip(&function.parameters) {
        let range = match source {
            Origin::Argument(at) => *at..*at + 1,
            Origin::Rest(at) => *at..given.len(),
            Origin::Default | Origin::None => continue,
        };
        let to = match (&parameter.sql_type, source) {
            (SqlType::Array(element), Origin::Rest(_)) => element,
            (sql_type, _) => sql_type,
        };
        if parameter.mode == ParameterMode::Out {
            continue;
        }
        for argument in given.get(range)? {
            let from = &argument.value.sql_type;
            score += match () {
                () if from.internal_name() == to.internal_name() => 3,
                () if *from == SqlType::Unknown => 1 + usize::from(matches!(to, SqlType::Text)),
                () if binder.accepts(from, to) => 1,
                () => return None,
            };
        }
    }
    // One without defaults left to fill fits better.
    Some(score * 2 + usize::from(!sources.contains(&Origin::Default)))
}

/// The function of a name with exactly these arguments: what `DROP FUNCTION` means.
///
/// # Errors
/// `42883` if there is none, `42725` if no arguments are given and there are several.
pub fn resolve_signature<'c>(
    catalog: &'c Catalog,
    name: &ObjectName,
    types: Option<&[SqlType]>,
) -> Result<&'c Arc<Function>> {
    let functions = catalog.functions.get(name).map(Vec::as_slice).unwrap_or_default();
    let Some(types) = types else {
        return match functions {
            [only] => Ok(only),
            [] => {
                let message = format!("could not find a function named \"{}\"", name.name);
                Err(Error::new(SqlState::UNDEFINED_FUNCTION, message))
            }
            _ => {
                let message = format!("function name \"{}\" is not unique", name.name);
                let hint = "Specify the argument list to select the function unambiguously.";
                Err(Error::new(SqlState(*b"42725"), message).with_hint(hint))
            }
        };
    };
    let wanted: Vec<String> = types.iter().map(SqlType::internal_name).collect();
    let found = functions.iter().find(|function| {
        let inputs = input_types(&function.parameters).map(SqlType::internal_name);
        let all = function.parameters.iter().map(|parameter| parameter.sql_type.internal_name());
        inputs.eq(wanted.iter().cloned()) || function.is_procedure && all.eq(wanted.iter().cloned())
    });
    found.ok_or_else(|| {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        let message = format!("function {}({}) does not exist", name.name, types.join(", "));
        Error::new(SqlState::UNDEFINED_FUNCTION, message)
    })
}
