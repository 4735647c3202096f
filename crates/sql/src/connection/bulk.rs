//! Many rows inserted at once: those of a query, or those that are copied in.

use super::{Connection, Response};
use crate::catalog::{Catalog, ObjectName, Table, folded};
use crate::lowered::{Argument, Lowered};
use crate::parameter_types::ParameterTypes;
use crate::parse::Command;
use crate::query::{self, QueryPlan, SessionFacts};
use crate::sql_type::SqlType;
use crate::{bind, parse};
use fabius::{Database, Statement};
use fabius_program::syntax::Source;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::sync::Arc;

/// Rows of one call, at most.
const ROWS: usize = 10_000;
/// Bytes of one call's rows, about, at most.
const BYTES: usize = 8 << 20;

/// `INSERT` of any number of rows, as one program with a list of them.
pub(crate) struct BulkInsert {
    lowered: Lowered,
    statement: Arc<Statement>,
    /// The parameters' types: one for each column.
    pub types: Vec<SqlType>,
}

/// `INSERT ... SELECT` of a query that is not a program.
pub(crate) struct InsertQuery {
    insert: BulkInsert,
    query: QueryPlan,
    table: ObjectName,
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl BulkInsert {
    /// Inserts into these columns; the others get their defaults.
    ///
    /// # Errors
    /// What is wrong with the columns.
    pub fn new(
        database: &Database,
        catalog: &Catalog,
        table: &Table,
        columns: &[String],
    ) -> Result<BulkInsert> {
        let places = |from: usize| {
            let all: Vec<String> = (from..from + columns.len()).map(|at| format!("${}", at + 1)).collect();
            all.join(", ")
        };
        let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        // Two rows, so that the program takes a list of them.
        let text = format!(
            "INSERT INTO {}.{} ({}) OVERRIDING SYSTEM VALUE VALUES ({}), ({})",
            quoted(&table.name.schema),
            quoted(&table.name.name),
            names.join(", "),
            places(0),
            places(columns.len())
        );
        let text = text.replace(" OVERRIDING SYSTEM VALUE", "");
        let Command::Sql(statement) = parse::parse(&text)? else {
            return Err(Error::new(SqlState(*b"XX000"), "an insert was expected"));
        };
        let types: Vec<SqlType> = columns
            .iter()
            .map(|name| table.column(name).map_or(SqlType::Unknown, |column| column.sql_type.clone()))
            .collect();
        let mut parameters = ParameterTypes::new(&[types.clone(), types.clone()].concat());
        for index in 0..parameters.len() {
            parameters.allow_null(index);
        }
        let source = Arc::new(Source::new(text.as_str(), "statement"));
        let lowered = bind::lower(&statement, &source, catalog, &mut parameters)?
            .filter(|lowered| lowered.arguments.iter().any(|argument| matches!(argument, Argument::Rows(_))))
            .ok_or_else(|| {
                Error::new(SqlState::NOT_SUPPORTED, "many rows at once into this table are not supported")
            })?;
        let statement = database.statement(&lowered.definition)?;
        Ok(BulkInsert { lowered, statement, types })
    }
}

impl InsertQuery {
    /// Plans one.
    ///
    /// # Errors
    /// What is wrong with it; `0A000` for clauses that need a program.
    pub async fn new(
        database: &Database,
        catalog: &Arc<Catalog>,
        insert: &ast::Insert,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Result<InsertQuery> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                "INSERT into other than a table is not supported",
            ));
        };
        if insert.on.is_some() || insert.returning.is_some() {
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                "ON CONFLICT and RETURNING of an INSERT with this query are not supported",
            ));
        }
        let table = catalog.table(name)?;
        let Some(source) = &insert.source else {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "this form of INSERT is not supported"));
        };
        let query = query::plan(source, catalog, types, session).await?;
        let mut columns: Vec<String> = match insert.columns.is_empty() {
            true => table.columns.iter().map(|column| column.name.clone()).collect(),
            false => insert
                .columns
                .iter()
                .filter_map(|name| name.0.last().and_then(|part| part.as_ident()).map(folded))
                .collect(),
        };
        if query.columns.len() > columns.len() {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "INSERT has more expressions than target columns",
            ));
        }
        if query.columns.len() < columns.len() && !insert.columns.is_empty() {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "INSERT has more target columns than expressions",
            ));
        }
        columns.truncate(query.columns.len());
        let insert = BulkInsert::new(database, catalog, table, &columns)?;
        Ok(InsertQuery { insert, query, table: table.name.clone() })
    }

    /// Tables that it reads and writes.
    pub fn names(&self) -> Vec<ObjectName> {
        self.query.reads.iter().chain([&self.table]).cloned().collect()
    }
}

/// A value of a query as a column takes it.
fn assigned(
    value: Value,
    from: &SqlType,
    to: &SqlType,
    style: &crate::text_format::TextStyle,
) -> Result<Value> {
    let is_same =
        from.storage() == to.storage() && matches!(to, SqlType::Char(_)) == matches!(from, SqlType::Char(_));
    if value.is_null() || is_same {
        return Ok(value);
    }
    match (&value, to) {
        (Value::Text(text), _) if !matches!(to, SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_)) => {
            crate::text_format::read(text, to, style)
        }
        (_, SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_)) if !matches!(value, Value::Text(_)) => {
            let text = crate::text_format::text(&value, from, style).unwrap_or_default();
            crate::text_format::read(&text, to, style)
        }
        _ => match to.storage() {
            Some(storage) => value.cast(storage),
            None => Ok(value),
        },
    }
}

impl Connection {
    /// Runs `INSERT ... SELECT`: the rows are found first, then written.
    pub(super) async fn insert_query(
        &mut self,
        catalog: &Arc<Catalog>,
        insert: &InsertQuery,
        parameters: &[Value],
    ) -> Result<Response> {
        let is_alone = self.transaction.is_none();
        if is_alone {
            self.begin_implicit().await?;
        }
        let outcome = self.insert_query_rows(catalog, insert, parameters).await;
        if is_alone {
            self.end_implicit(outcome.is_ok()).await?;
        }
        outcome.map(|count| Response::Done { tag: format!("INSERT 0 {count}") })
    }

    async fn insert_query_rows(
        &mut self,
        catalog: &Arc<Catalog>,
        insert: &InsertQuery,
        parameters: &[Value],
    ) -> Result<usize> {
        let rows = self.rows_of(&insert.query, parameters).await?;
        let style = self.settings.style().clone();
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let fields = row.into_iter().zip(&insert.query.columns).zip(&insert.insert.types);
            let row: Result<Vec<Value>> =
                fields.map(|((value, column), to)| assigned(value, &column.sql_type, to, &style)).collect();
            values.push(row?);
        }
        self.insert_rows(catalog, &insert.insert, values).await
    }

    /// Inserts rows, in calls of a bounded size; how many.
    pub(crate) async fn insert_rows(
        &mut self,
        catalog: &Catalog,
        insert: &BulkInsert,
        rows: Vec<Vec<Value>>,
    ) -> Result<usize> {
        let count = rows.len();
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut part = Vec::new();
            let mut bytes = 0;
            while let Some(row) = rows.next_if(|_| part.len() < ROWS && bytes < BYTES) {
                bytes += row.iter().map(size).sum::<usize>();
                part.push(row);
            }
            self.insert_part(catalog, insert, part).await?;
        }
        Ok(count)
    }

    async fn insert_part(
        &mut self,
        catalog: &Catalog,
        insert: &BulkInsert,
        rows: Vec<Vec<Value>>,
    ) -> Result<()> {
        let mut arguments = Vec::new();
        for argument in &insert.lowered.arguments {
            arguments.push(match argument {
                Argument::Rows(template) => {
                    let fields = template.first().cloned().unwrap_or_default();
                    let expanded = Argument::Rows(
                        rows.iter()
                            .map(|row| {
                                let filled = fields.iter().map(|field| match field {
                                    Argument::Parameter(index) => {
                                        Argument::Constant(row.get(*index).cloned().unwrap_or_default())
                                    }
                                    other => other.clone(),
                                });
                                filled.collect()
                            })
                            .collect(),
                    );
                    self.argument(catalog, &expanded, &[]).await?
                }
                other => self.argument(catalog, other, &[]).await?,
            });
        }
        let results = self.run_statement(&insert.statement, &arguments, fabius::Hold::Observe).await;
        results.map(drop).map_err(|error| crate::wording::in_words(error, catalog))
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len() + 8,
        Value::Bytea(bytes) => bytes.len() + 8,
        _ => 16,
    }
}
