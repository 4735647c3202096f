//! A program that writes many rows at a time: those of `COPY`, and those that a query gives.

use crate::bind::{Bind, RowsOf, Stop, counted, lower_insert_rows};
use crate::lowered::Lowered;
use fabius::{Database, Statement};
use fabius_program::syntax::Source;
use fabius_sql_meaning::catalog::{Catalog, ObjectName, Table};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::Result;
use std::sync::Arc;

/// A write of any number of rows, as one program with a list of them.
pub struct BulkWrite {
    /// The program: a list of rows, then what else it takes.
    pub lowered: Lowered,
    /// The program as the database has it.
    pub statement: Arc<Statement>,
    /// Sequences that each row takes a number of, behind the values that it is given.
    pub counted: Vec<ObjectName>,
    /// The types of a row's values, with numbers and what was found besides.
    pub types: Vec<SqlType>,
}

impl BulkWrite {
    /// Inserts values of the columns' own types; other columns get their defaults.
    ///
    /// # Errors
    /// What is wrong with the columns.
    pub fn new(
        database: &Database,
        catalog: &Catalog,
        table: &Table,
        columns: &[String],
    ) -> Result<BulkWrite> {
        let places: Vec<usize> = columns.iter().filter_map(|name| table.position(name)).collect();
        let types: Vec<SqlType> = places.iter().map(|at| table.columns[*at].sql_type.clone()).collect();
        let table = Arc::new(table.clone());
        let rows = RowsOf {
            table: &table,
            alias: None,
            columns: &places,
            types: &types,
            conflict: None,
            found: &[],
            returning: None,
        };
        BulkWrite::insert(database, catalog, &rows, &mut ParameterTypes::default()).map_err(Stop::into_error)
    }

    /// Inserts rows, as an `INSERT` says.
    ///
    /// # Errors
    /// As [`lower_insert_rows`].
    pub fn insert(
        database: &Database,
        catalog: &Catalog,
        rows: &RowsOf<'_>,
        parameters: &mut ParameterTypes,
    ) -> Bind<BulkWrite> {
        let source = Arc::new(Source::new("INSERT", "statement"));
        let lowered = lower_insert_rows(rows, &source, catalog, parameters)?;
        let counted: Vec<ObjectName> =
            counted(rows.table, rows.columns).into_iter().map(|(_, sequence)| sequence).collect();
        let numbers = counted.iter().map(|_| &SqlType::BigInt);
        let types: Vec<SqlType> = rows.types.iter().chain(numbers).chain(rows.found).cloned().collect();
        Ok(BulkWrite::of(database, lowered, counted, &types)?)
    }

    /// A program that takes a list of rows.
    pub fn of(
        database: &Database,
        lowered: Lowered,
        counted: Vec<ObjectName>,
        types: &[SqlType],
    ) -> Result<BulkWrite> {
        let statement = database.statement(&lowered.definition)?;
        Ok(BulkWrite { lowered, statement, counted, types: types.to_vec() })
    }
}
