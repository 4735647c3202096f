//! `CALL` and `DO` as programs of their own.

use super::compile::Returned;
use super::{call, definition, inline};
use crate::bind::{Binder, Stop, tree as build};
use crate::lowered::{Lowered, Shape};
use fabius_program::syntax::Source;
use fabius_program::syntax::tree::{Parameter, Results, StatementKind};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_syntax::normal_form::NormalForm;
use fabius_sql_syntax::plpgsql::cursor::Cursor;
use fabius_value::Result;
use sqlparser::ast;
use std::sync::Arc;

/// `CALL p(...)` as a program; `None` if the statement is another.
///
/// # Errors
/// What is wrong with the call or the procedure.
pub fn lower_call(
    statement: &ast::Statement,
    source: &Arc<Source>,
    catalog: &Catalog,
    types: &mut ParameterTypes,
    form: Option<&NormalForm>,
) -> Result<Option<Lowered>> {
    let ast::Statement::Call(call) = statement else { return Ok(None) };
    let mut binder = Binder::new(catalog, &source.text, types).with_literals(form);
    let given = call::arguments(&mut binder, call).map_err(Stop::into_error)?;
    let inlined = inline::call(&mut binder, call, given).map_err(Stop::into_error)?;
    Ok(Some(finished(binder, inlined.returned, source, "CALL")))
}

/// Whether a statement is `DO`.
pub fn is_do(text: &str) -> bool {
    let source = Source::new(text, "");
    Cursor::new(&source).is_ok_and(|cursor| cursor.is_keyword("do"))
}

/// `DO $$ ... $$` as a program.
///
/// # Errors
/// What is wrong with the block.
pub fn lower_do(text: &str, catalog: &Catalog) -> Result<Lowered> {
    let definition = definition::parse_do(text)?;
    let mut types = ParameterTypes::default();
    let mut binder = Binder::new(catalog, "", &mut types);
    let returned = inline::compiled(&mut binder, &definition, &[]).map_err(Stop::into_error)?;
    let source = definition.source.clone();
    Ok(finished(binder, returned, &source, "DO"))
}

/// The program of a call whose body is in the binder's block.
fn finished(mut binder: Binder<'_>, returned: Returned, source: &Arc<Source>, tag: &'static str) -> Lowered {
    let row = match returned {
        Returned::Row(row) => row,
        Returned::Nothing | Returned::Table { .. } => Vec::new(),
    };
    let mut columns = Vec::new();
    let mut values = Vec::new();
    let mut results = Vec::new();
    for (at, (column, value)) in row.into_iter().enumerate() {
        results.push(Parameter { name: build::name(format!("c{}", at + 1)), ty: value.result_type() });
        values.push(value.expression);
        columns.push(column);
    }
    let results = if results.is_empty() { Results::None } else { Results::Named(results) };
    if !values.is_empty() {
        binder.emit(build::statement(StatementKind::Return { values }));
    }
    binder.finish(source, results, Shape::OneRow(columns), tag, None)
}
