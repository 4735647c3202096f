//! `UPDATE` and `DELETE` that are no programs: a query finds the rows and their new values, a program writes them.

use super::bulk::{BulkWrite, WriteQuery};
use crate::bind::{RowsOf, lower_delete_rows, lower_update_rows};
use crate::catalog::{Catalog, Table, folded};
use crate::parameter_types::ParameterTypes;
use crate::query::{self, SessionFacts};
use crate::sql_type::SqlType;
use fabius::Database;
use fabius_program::syntax::Source;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::sync::Arc;

fn not_supported(what: &str) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported"))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The table that is changed, its other name, and the columns that tell its rows apart.
fn target<'c>(
    catalog: &'c Catalog,
    table: &ast::TableWithJoins,
) -> Result<(&'c Arc<Table>, Option<String>, Vec<String>)> {
    let ast::TableFactor::Table { name, alias, .. } = &table.relation else {
        return Err(not_supported("a change of other than a table"));
    };
    if !table.joins.is_empty() {
        return Err(not_supported("a change of joined tables"));
    }
    let found = catalog.table(name)?;
    let alias = alias.as_ref().map(|alias| folded(&alias.name));
    let called = alias.clone().unwrap_or_else(|| found.name.name.clone());
    let Some(key) = &found.primary_key else {
        return Err(not_supported("this form of UPDATE or DELETE of a table without a primary key"));
    };
    let key = key.columns.iter().map(|column| format!("{}.{}", quoted(&called), quoted(column))).collect();
    Ok((found, alias, key))
}

fn select(
    values: &[String],
    table: &ast::TableWithJoins,
    others: Option<&Vec<ast::TableWithJoins>>,
    selection: Option<&ast::Expr>,
    with: Option<&ast::With>,
) -> Result<ast::Query> {
    let from = std::iter::once(table).chain(others.into_iter().flatten()).map(ToString::to_string);
    let condition = selection.map_or_else(String::new, |condition| format!(" WHERE {condition}"));
    let with = with.map_or_else(String::new, |with| format!("{with} "));
    let from = from.collect::<Vec<_>>().join(", ");
    let text = format!("{with}SELECT {} FROM {from}{condition}", values.join(", "));
    match crate::parse::tokens::Tokens::of(&text)?.sql()? {
        ast::Statement::Query(query) => Ok(*query),
        _ => Err(not_supported("this form of UPDATE or DELETE")),
    }
}

impl WriteQuery {
    /// Plans an `UPDATE`; `with` are queries that it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub async fn update(
        database: &Database,
        catalog: &Arc<Catalog>,
        update: &ast::Update,
        with: Option<&ast::With>,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Result<WriteQuery> {
        let (table, alias, key) = target(catalog, &update.table)?;
        let mut values = key.clone();
        let mut columns = Vec::new();
        let mut assignments = Vec::new();
        for assignment in &update.assignments {
            match &assignment.target {
                ast::AssignmentTarget::ColumnName(name) => assignments.push((name, assignment.value.clone())),
                ast::AssignmentTarget::Tuple(names) => {
                    let parts = crate::bind::parts_of_row(&assignment.value);
                    let parts = parts.filter(|parts| parts.len() == names.len());
                    let parts = parts.ok_or_else(|| not_supported("this form of a row in SET"))?;
                    assignments.extend(names.iter().zip(parts));
                }
            }
        }
        for (name, value) in &assignments {
            let name = name.0.last().and_then(|part| part.as_ident()).map(folded).unwrap_or_default();
            let place = table.position(&name).ok_or_else(|| {
                Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" of relation \"{}\" does not exist", table.name.name),
                )
            })?;
            columns.push(place);
            values.push(crate::bind::typed(value, &table.columns[place]).to_string());
        }
        let others = match &update.from {
            None => None,
            Some(
                ast::UpdateTableFromKind::BeforeSet(tables) | ast::UpdateTableFromKind::AfterSet(tables),
            ) => Some(tables),
        };
        let query = select(&values, &update.table, others, update.selection.as_ref(), with)?;
        let query = query::plan(&query, catalog, types, session).await?;
        let given: Vec<SqlType> =
            query.columns.iter().skip(key.len()).map(|column| column.sql_type.clone()).collect();
        let rows = RowsOf {
            table,
            alias,
            columns: &columns,
            types: &given,
            conflict: None,
            returning: update.returning.as_deref(),
        };
        let source = Arc::new(Source::new("UPDATE", "statement"));
        let write = BulkWrite::of(database, lower_update_rows(&rows, &source, catalog)?, Vec::new(), &given)?;
        Ok(WriteQuery { write, query, table: table.name.clone(), tag: "UPDATE", key: key.len() })
    }

    /// Plans a `DELETE`; `with` are queries that it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub async fn delete(
        database: &Database,
        catalog: &Arc<Catalog>,
        delete: &ast::Delete,
        with: Option<&ast::With>,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Result<WriteQuery> {
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
        let [changed] = from.as_slice() else { return Err(not_supported("DELETE from several tables")) };
        let (table, alias, key) = target(catalog, changed)?;
        let query = select(&key, changed, delete.using.as_ref(), delete.selection.as_ref(), with)?;
        let query = query::plan(&query, catalog, types, session).await?;
        let rows = RowsOf {
            table,
            alias,
            columns: &[],
            types: &[],
            conflict: None,
            returning: delete.returning.as_deref(),
        };
        let source = Arc::new(Source::new("DELETE", "statement"));
        let write = BulkWrite::of(database, lower_delete_rows(&rows, &source, catalog)?, Vec::new(), &[])?;
        Ok(WriteQuery { write, query, table: table.name.clone(), tag: "DELETE", key: key.len() })
    }
}
