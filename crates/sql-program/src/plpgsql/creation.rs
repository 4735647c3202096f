//! `CREATE FUNCTION` and `CREATE PROCEDURE`: what the catalog gets.

use super::definition;
use super::definition::Definition;
use super::inline;
use crate::bind::Binder;
use fabius_sql_meaning::catalog::{Catalog, Function, FunctionParameter, Returns, input_types};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};
use std::sync::Arc;

/// A function to put into the catalog.
#[derive(Clone, Debug)]
pub struct Creation {
    /// The function; its number is 0, or that of the one it replaces.
    pub function: Function,
    /// Whether it takes the place of the one with the same name and arguments, if there is one.
    pub or_replace: bool,
}

/// Reads and checks a definition.
///
/// # Errors
/// What is wrong with it, with its line; `42723` if there is such a function already.
pub fn create(text: &str, catalog: &Catalog) -> Result<Creation> {
    let definition = definition::parse(text, catalog)?;
    let mut function = function(&definition, text);
    check(&definition, &function, catalog)?;
    if let Some(old) = same(catalog, &function) {
        replaceable(&definition, old)?;
        function.oid = old.oid;
    }
    Ok(Creation { function, or_replace: definition.or_replace })
}

/// Compiles a body with nothing given, for what is wrong with it whatever tables there are. As in PostgreSQL, what
/// it names may be created, and granted, later.
fn check(definition: &Definition, function: &Function, catalog: &Catalog) -> Result<()> {
    let mut types = ParameterTypes::default();
    let mut binder = Binder::new(catalog, "", &mut types);
    match inline::checked(&mut binder, definition, &function.parameters) {
        Err(error) if !matches!(&error.state().0, b"42P01" | b"42703" | b"42883" | b"42501") => Err(error),
        _ => Ok(()),
    }
}

fn function(definition: &Definition, text: &str) -> Function {
    Function {
        oid: 0,
        name: definition.name.clone(),
        parameters: definition.parameters.clone(),
        returns: definition.returns.clone(),
        language: definition.language.clone(),
        body: definition.source.text.clone(),
        is_procedure: definition.is_procedure,
        is_strict: definition.is_strict,
        volatility: definition.volatility,
        definition: text.to_string(),
    }
}

/// The function of the catalog with the same name and arguments.
fn same<'a>(catalog: &'a Catalog, function: &Function) -> Option<&'a Arc<Function>> {
    let plain = |sql_type: &SqlType| sql_type.internal_name();
    let wanted: Vec<String> = input_types(&function.parameters).map(plain).collect();
    let others = catalog.functions.get(&function.name)?;
    others.iter().find(|other| input_types(&other.parameters).map(plain).eq(wanted.iter().cloned()))
}

/// Whether a definition may take the place of a function.
fn replaceable(definition: &Definition, old: &Function) -> Result<()> {
    let name = &definition.name.name;
    let kind = |is_procedure: bool| if is_procedure { "procedure" } else { "function" };
    if !definition.or_replace {
        let message =
            format!("{} \"{name}\" already exists with same argument types", kind(definition.is_procedure));
        return Err(Error::new(SqlState(*b"42723"), message));
    }
    if definition.is_procedure != old.is_procedure {
        let detail = format!("\"{name}\" is a {}.", kind(old.is_procedure));
        return Err(Error::new(SqlState(*b"42809"), "cannot change routine kind").with_detail(detail));
    }
    let types: Vec<String> = input_types(&old.parameters).map(ToString::to_string).collect();
    let hint =
        format!("Use DROP {} {name}({}) first.", kind(old.is_procedure).to_uppercase(), types.join(","));
    let columns = |returns: &Returns| match returns {
        Returns::Scalar(sql_type) => vec![(String::new(), sql_type.clone())],
        Returns::Record(columns) | Returns::Table(columns) => columns.clone(),
    };
    let same_kind = std::mem::discriminant(&definition.returns) == std::mem::discriminant(&old.returns);
    if !same_kind || columns(&definition.returns) != columns(&old.returns) {
        let message = "cannot change return type of existing function";
        return Err(Error::new(SqlState::INVALID_DEFINITION, message).with_hint(hint));
    }
    let inputs = |parameters: &[FunctionParameter]| -> Vec<String> {
        parameters
            .iter()
            .filter(|parameter| parameter.is_input())
            .map(|parameter| parameter.name.clone())
            .collect()
    };
    for (was, is) in inputs(&old.parameters).iter().zip(&inputs(&definition.parameters)) {
        if !was.is_empty() && was != is {
            let message = format!("cannot change name of input parameter \"{was}\"");
            return Err(Error::new(SqlState::INVALID_DEFINITION, message).with_hint(hint));
        }
    }
    Ok(())
}
