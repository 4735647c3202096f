//! Many rows written at once: those of a query, or those that are copied in.

use super::held_rows::HeldRows;
use super::plan::Given;
use super::result::rows_response;
use super::write_query::WriteQuery;
use super::{Connection, Response};
use fabius_program::syntax::tree::TypeKind;
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::text_format;
use fabius_sql_program::bind;
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_program::lowered::Argument;
use fabius_value::{Error, Result, SqlState, Value};
use std::sync::Arc;

/// Rows of one call, at most.
const ROWS: usize = 10_000;
/// Bytes of one call's rows, about, at most.
const BYTES: usize = 8 << 20;

/// What writing rows gave.
#[derive(Default)]
pub(crate) struct Written {
    /// How many.
    pub count: i64,
    /// What `RETURNING` says of them.
    returned: Vec<Vec<Value>>,
}

/// The error of an array that is null where a program needs its elements.
fn null_array(index: usize) -> Error {
    let where_to = "in RETURNING or ON CONFLICT of rows that a query finds";
    Error::new(SqlState::NOT_SUPPORTED, format!("an array that is null is not supported {where_to}"))
        .with_detail(format!("${} is null", index + 1))
        .with_hint("write NULL instead of the parameter")
}

impl Connection {
    /// The rows are found first, then written.
    pub(super) async fn write_query(
        &mut self,
        catalog: &Arc<Catalog>,
        write: &WriteQuery,
        parameters: &[Value],
    ) -> Result<Response> {
        let is_alone = self.begin_alone();
        let outcome = self.write_query_rows(catalog, write, parameters).await;
        let written = self.end_alone(is_alone, outcome).await?;
        Ok(match write.columns() {
            Some(columns) => rows_response(columns, written.returned, write.tag),
            None => Response::Done { tag: format!("{} {}", write.tag, written.count) },
        })
    }

    async fn write_query_rows(
        &mut self,
        catalog: &Arc<Catalog>,
        write: &WriteQuery,
        parameters: &[Value],
    ) -> Result<Written> {
        // What is written is counted as the transaction's own.
        let HeldRows { mut rows, .. } = self.rows_of(&write.query, parameters).await?;
        if write.key > 0 {
            let mut seen = std::collections::HashSet::new();
            rows.retain(|row| seen.insert(format!("{:?}", row.get(..write.key))));
        }
        let style = self.text_style();
        rows.iter_mut().try_for_each(|row| write.convert(row, &style))?;
        if let Some(met) = &write.met {
            self.number_rows(catalog, &write.write, &mut rows).await?;
            self.meet(met, &mut rows, parameters).await?;
        }
        let returned = write.returned.map(|from| rows.iter_mut().map(|row| row.split_off(from)).collect());
        let written = self.write_rows(catalog, (&write.write, parameters), rows, false).await?;
        Ok(Written { returned: returned.unwrap_or(written.returned), ..written })
    }

    /// Writes rows, in calls of a bounded size, with the statement's parameters. `is_aside` into a table that nobody
    /// else sees yet.
    pub(crate) async fn write_rows(
        &mut self,
        catalog: &Catalog,
        (write, parameters): (&BulkWrite, &[Value]),
        rows: Vec<Vec<Value>>,
        is_aside: bool,
    ) -> Result<Written> {
        let mut written = Written::default();
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut part = Vec::new();
            let mut bytes = 0;
            while let Some(mut row) = rows.next_if(|_| part.len() < ROWS && bytes < BYTES) {
                bytes += row.iter().map(size).sum::<usize>();
                // What tells the row apart comes before its values.
                let first = row.len().saturating_sub(write.types.len());
                for (value, sql_type) in row.iter_mut().skip(first).zip(&write.types) {
                    *value = text_format::kept(std::mem::take(value), sql_type);
                }
                part.push(row);
            }
            if write.lowered.tag != "DELETE" {
                self.database.refuse_rows()?;
            }
            // Those that others may be met by have their numbers.
            if part.first().is_some_and(|row| row.len() < write.types.len()) {
                self.number_rows(catalog, write, &mut part).await?;
            }
            let mut part = Some(Value::List(part));
            let mut arguments = Vec::with_capacity(write.lowered.arguments.len());
            for (argument, parameter) in
                write.lowered.arguments.iter().zip(&write.lowered.definition.parameters)
            {
                let is_list = matches!(parameter.ty.kind, TypeKind::List(_));
                arguments.push(match argument {
                    Argument::Rows(_) => part.take().unwrap_or_default(),
                    Argument::Parameter(index)
                        if is_list && parameters.get(*index).is_none_or(Value::is_null) =>
                    {
                        return Err(null_array(*index));
                    }
                    other => {
                        let given = Given { parameters, ..Given::default() };
                        self.argument(catalog, other, given).await?
                    }
                });
            }
            let results =
                match is_aside && write.lowered.reserves.is_empty() && write.lowered.doubtful.is_empty() {
                    true => {
                        let results = self.submit_aside(&write.statement, &arguments).await;
                        results.map_err(|error| bind::wording::in_words(error, catalog))?
                    }
                    false => {
                        let program = (&write.lowered, &write.statement);
                        self.call(catalog, program, arguments).await?
                    }
                };
            let mut results = results.into_iter();
            written.count += results.next().and_then(|count| count.as_integer()).unwrap_or_default();
            if let Some(Value::List(rows)) = results.next() {
                written.returned.extend(rows);
            }
        }
        Ok(written)
    }

    /// Gives each row its numbers.
    async fn number_rows(
        &mut self,
        catalog: &Catalog,
        write: &BulkWrite,
        rows: &mut [Vec<Value>],
    ) -> Result<()> {
        for name in &write.counted {
            let one = Argument::NextValue(name.clone());
            let numbers = Argument::Rows(vec![vec![one]; rows.len()]);
            if let Value::List(numbers) = self.argument(catalog, &numbers, Given::default()).await? {
                rows.iter_mut().zip(numbers).for_each(|(row, number)| row.extend(number));
            }
        }
        Ok(())
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len() + 8,
        Value::Bytea(bytes) => bytes.len() + 8,
        _ => 16,
    }
}
