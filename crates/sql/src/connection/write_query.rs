//! A write of what a query gives.

use super::assigned::stored_types;
use super::met_rows::MetRows;
use fabius::Database;
use fabius_sql_meaning::analysis::{self, InsertTargets};
use fabius_sql_meaning::catalog::Relation;
use fabius_sql_meaning::catalog::{Catalog, ObjectName, folded};
use fabius_sql_meaning::conversion;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{Fit, TextStyle};
use fabius_sql_program::bind;
use fabius_sql_program::bind::{Bind, RowsOf, Stop};
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_program::lowered::Shape;
use fabius_sql_query::{self as query, QueryPlan};
use fabius_sql_syntax::part;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A write of what a query gives that is not a program: `INSERT ... SELECT`, and changes of rows that it finds.
pub(crate) struct WriteQuery {
    pub(super) write: BulkWrite,
    pub(super) query: QueryPlan,
    /// What is asked of the rows that proposed ones meet, before they are written.
    pub(super) met: Option<MetRows>,
    pub(super) table: ObjectName,
    /// The tag's words before the count.
    pub(super) tag: &'static str,
    /// So many values at the beginning of a row tell it apart: each row is written once. 0 for rows that are new.
    pub(super) key: usize,
    /// Where in a row what `RETURNING` gives begins, if the query has found it with the rest.
    pub(super) returned: Option<usize>,
}

/// Gives queries the common table expressions of the statement around them.
struct Sharing<'w> {
    with: &'w ast::With,
    depth: usize,
}

impl VisitorMut for Sharing<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        if self.depth == 0 {
            // Those of its own see the others.
            let mut all = self.with.clone();
            all.cte_tables.extend(query.with.take().into_iter().flat_map(|own| own.cte_tables));
            query.with = Some(all);
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

impl WriteQuery {
    /// Plans a statement that writes, perhaps with common table expressions.
    ///
    /// # Errors
    /// What is wrong with it, or what no program can do of it.
    pub fn with(
        database: &Database,
        catalog: &Arc<Catalog>,
        with: Option<&ast::With>,
        write: &ast::Statement,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Bind<WriteQuery> {
        let planned = match write {
            ast::Statement::Insert(insert) => {
                let mut insert = insert.clone();
                if let Some(with) = with {
                    let mut queries = Sharing { with, depth: 0 };
                    let _ = insert.source.visit(&mut queries);
                    let _ = insert.on.visit(&mut queries);
                    let _ = insert.returning.visit(&mut queries);
                }
                WriteQuery::new(database, catalog, &insert, types, session)
            }
            ast::Statement::Update(update) => {
                WriteQuery::update(database, catalog, with, update, types, session)
            }
            ast::Statement::Delete(delete) => {
                WriteQuery::delete(database, catalog, with, delete, types, session)
            }
            _ => {
                Err(Error::new(SqlState::NOT_SUPPORTED, "this statement behind WITH is not supported").into())
            }
        };
        if planned.is_err() && with.is_some() {
            // What is wrong with what stands before is said first.
            query::plan(&part::select(with, Vec::new(), Vec::new(), None)?, catalog, types, session)?;
        }
        planned
    }

    /// Plans an `INSERT`.
    ///
    /// # Errors
    /// What is wrong with it, or what no program can do of it.
    pub fn new(
        database: &Database,
        catalog: &Arc<Catalog>,
        insert: &ast::Insert,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Bind<WriteQuery> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                "INSERT into other than a table is not supported",
            )
            .into());
        };
        let mut table = catalog.table(name)?.clone();
        for privilege in analysis::needs_of_insert(insert) {
            catalog.require(&Relation::Table(&table), privilege)?;
        }
        if insert.overwrite {
            // `OVERRIDING SYSTEM VALUE`, as `parse` spells it.
            Arc::make_mut(&mut table).columns.iter_mut().for_each(|column| column.identity = None);
        }
        let table = &table;
        let mut targets = InsertTargets::of(table, &insert.columns).map_err(|(error, _)| error)?;
        let mut source = match &insert.source {
            Some(source) => source.clone(),
            // `DEFAULT VALUES`: a row without columns.
            None => Box::new(part::select(None, Vec::new(), Vec::new(), None)?),
        };
        bind::type_items(&mut source.body, &targets.places, table);
        let query = query::plan(&source, catalog, types, session)?;
        targets.take(query.columns.len())?;
        let places = targets.places;
        bind::refuse_given(places.iter().map(|place| &table.columns[*place]))?;
        let stored = stored_types(&query.columns, &places, table);
        let rows = RowsOf {
            table,
            alias: insert.table_alias.as_ref().map(|alias| folded(&alias.alias)),
            columns: &places,
            types: &stored,
            conflict: insert.on.as_ref(),
            found: &[],
            returning: insert.returning.as_deref(),
        };
        let written = BulkWrite::insert(database, catalog, &rows, types);
        let (write, met) = match (written, &insert.on) {
            (Err(Stop::Beyond(what)), Some(ast::OnInsert::OnConflict(conflict))) => {
                let Some((met, on)) = MetRows::plan(catalog, conflict, &rows, types, session)? else {
                    return Err(Stop::Beyond(what));
                };
                let rows = RowsOf { conflict: Some(&on), found: &met.types, ..rows };
                (BulkWrite::insert(database, catalog, &rows, types)?, Some(met))
            }
            (written, _) => (written?, None),
        };
        let table = table.name.clone();
        Ok(WriteQuery { write, query, met, table, tag: "INSERT 0", key: 0, returned: None })
    }

    /// Converts the values of a row that the query has given to the types in which they are written, by the session's
    /// clock, which programs do not have.
    ///
    /// # Errors
    /// What PostgreSQL says of a value that does not fit.
    pub(super) fn convert(&self, row: &mut [Value], style: &TextStyle) -> Result<()> {
        convert(&mut row[self.key..], &self.query.columns[self.key..], &self.write.types, style)
    }

    /// Tables that it reads.
    pub fn reads(&self) -> impl Iterator<Item = &ObjectName> {
        self.found_in().chain(&self.write.lowered.reads)
    }

    /// Tables that its queries read.
    pub fn found_in(&self) -> impl Iterator<Item = &ObjectName> {
        self.query.reads.iter().chain(self.met.iter().flat_map(|met| &met.query.reads))
    }

    /// Tables that it writes.
    pub fn writes(&self) -> impl Iterator<Item = &ObjectName> {
        self.write.lowered.writes.iter().chain([&self.table])
    }

    /// The columns of `RETURNING`.
    pub fn columns(&self) -> Option<Vec<OutputColumn>> {
        if let Some(from) = self.returned {
            return Some(self.query.columns.iter().skip(from).cloned().collect());
        }
        match &self.write.lowered.shape {
            Shape::CountAndRows(columns) | Shape::Rows(columns) => Some(columns.clone()),
            _ => None,
        }
    }
}

/// Converts values that a query has given to the types in which they are written.
///
/// # Errors
/// What PostgreSQL says of a value that does not fit.
pub(super) fn convert(
    values: &mut [Value],
    given: &[OutputColumn],
    stored: &[SqlType],
    style: &TextStyle,
) -> Result<()> {
    for ((value, from), to) in values.iter_mut().zip(given).zip(stored) {
        if from.sql_type != *to {
            *value = conversion::convert(value, &from.sql_type, to, style, Fit::Store)?;
        }
    }
    Ok(())
}
