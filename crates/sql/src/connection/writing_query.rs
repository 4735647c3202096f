//! `WITH x AS (INSERT ... RETURNING ...) SELECT ...`: statements that write inside of one.
//!
//! They run one after the other, in one transaction; what each returns stands as `VALUES` where its name stood. In
//! PostgreSQL none of them sees what another writes: where one would, the statement is refused.

use super::bulk::WriteQuery;
use super::prepared::{Body, Plan, keys};
use super::run::Given;
use super::{Connection, Response};
use crate::catalog::{Catalog, ObjectName};
use crate::lock::LockMode;
use crate::lowered::OutputColumn;
use crate::parameter_types::ParameterTypes;
use crate::parse::tokens::Tokens;
use crate::query::SessionFacts;
use crate::sql_type::SqlType;
use crate::text_format::{self, TextStyle};
use fabius::Database;
use fabius_value::{Error, Result, SqlState, Value};
use futures::TryStreamExt;
use sqlparser::ast;
use std::sync::Arc;

/// A statement with others inside that write.
pub(super) struct WritingQuery {
    parts: Vec<ast::Cte>,
    main: ast::Query,
    /// The types of its parameters.
    types: Vec<SqlType>,
    mode: LockMode,
}

/// Where statements are planned.
struct Place<'p> {
    database: &'p Database,
    catalog: &'p Arc<Catalog>,
    session: &'p Arc<dyn SessionFacts>,
}

fn writes(query: &ast::Query) -> bool {
    use ast::SetExpr as S;
    matches!(&*query.body, S::Insert(_) | S::Update(_) | S::Delete(_) | S::Merge(_))
}

/// Whether a statement is one that writes behind a `WITH`, or inside of it.
pub(super) fn is_writing(statement: &ast::Statement) -> bool {
    let ast::Statement::Query(query) = statement else { return false };
    let inside = query.with.iter().flat_map(|with| &with.cte_tables).any(|part| writes(&part.query));
    inside || query.with.is_some() && writes(query)
}

impl Place<'_> {
    /// The plan of a query, or of a statement that stands for one, behind queries with names.
    async fn plan(&self, query: &ast::Query, before: &[ast::Cte], given: &[SqlType]) -> Result<Arc<Plan>> {
        let with = (!before.is_empty()).then(|| ast::With {
            with_token: ast::helpers::attached_token::AttachedToken::empty(),
            recursive: false,
            cte_tables: before.to_vec(),
        });
        let mut types = ParameterTypes::new(given);
        let write = match (&*query.body, with) {
            (ast::SetExpr::Insert(ast::Statement::Insert(insert)), Some(with)) => {
                let mut insert = insert.clone();
                if let Some(source) = &mut insert.source {
                    source.with = Some(with);
                }
                return self.statement(&ast::Statement::Insert(insert), given).await;
            }
            (ast::SetExpr::Update(ast::Statement::Update(update)), Some(with)) => {
                let Place { database, catalog, session } = self;
                WriteQuery::update(database, catalog, update, Some(&with), &mut types, session).await?
            }
            (ast::SetExpr::Delete(ast::Statement::Delete(delete)), Some(with)) => {
                let Place { database, catalog, session } = self;
                WriteQuery::delete(database, catalog, delete, Some(&with), &mut types, session).await?
            }
            (
                ast::SetExpr::Insert(statement)
                | ast::SetExpr::Update(statement)
                | ast::SetExpr::Delete(statement)
                | ast::SetExpr::Merge(statement),
                _,
            ) => return self.statement(statement, given).await,
            (_, with) => {
                let query = ast::Query { with, ..query.clone() };
                return self.statement(&ast::Statement::Query(Box::new(query)), given).await;
            }
        };
        Ok(Plan::of_write(self.catalog, write, types))
    }

    async fn statement(&self, statement: &ast::Statement, given: &[SqlType]) -> Result<Arc<Plan>> {
        // Places in errors are those of the text as it is read here.
        let text = statement.to_string();
        let plan = Plan::of(self.database, self.catalog, statement, (&text, None), given, self.session);
        Box::pin(plan).await
    }
}

impl WritingQuery {
    /// Plans it: what its parts return is known, its rows are not yet.
    ///
    /// # Errors
    /// What is wrong with one of the statements; `0A000` if one would have to see a table as it was before another.
    pub(super) async fn plan(
        database: &Database,
        catalog: &Arc<Catalog>,
        query: &ast::Query,
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        let place = Place { database, catalog, session };
        let with = query.with.as_ref();
        if with.is_some_and(|with| with.recursive) {
            let message = "WITH RECURSIVE with a statement that writes is not supported";
            return Err(Error::new(SqlState::NOT_SUPPORTED, message));
        }
        let parts: Vec<ast::Cte> = with.map(|with| with.cte_tables.clone()).unwrap_or_default();
        let main = ast::Query { with: None, ..query.clone() };
        let mut types = given.to_vec();
        let mut names: Vec<ObjectName> = Vec::new();
        let mut written: Vec<ObjectName> = Vec::new();
        let mut mode = LockMode::Shared;
        let mut before = Vec::new();
        let mut meet = |plan: &Plan| -> Result<()> {
            let own = plan.written();
            let seen = plan.names.iter().find(|name| written.contains(name) && !own.contains(name));
            if let Some(name) = seen {
                let message = "a statement that reads a table which another in it writes is not supported";
                return Err(Error::new(SqlState::NOT_SUPPORTED, message)
                    .with_detail(format!("It would have to see {} as it was before.", name.name))
                    .with_hint("Use several statements in a transaction."));
            }
            if plan.mode() == LockMode::Exclusive {
                mode = LockMode::Exclusive;
            }
            names.extend(plan.names.iter().cloned());
            written.extend(own);
            Ok(())
        };
        for part in &parts {
            if !writes(&part.query) {
                before.push(part.clone());
                continue;
            }
            let plan = place.plan(&part.query, &before, &types).await?;
            meet(&plan)?;
            types = merged(&types, &plan.parameters);
            before.push(values(
                part,
                plan.columns.as_deref().unwrap_or_default(),
                &[],
                &TextStyle::default(),
            )?);
        }
        let plan = place.plan(&main, &before, &types).await?;
        meet(&plan)?;
        let types = merged(&types, &plan.parameters);
        names.sort();
        names.dedup();
        let columns = plan.columns.clone();
        Ok(Arc::new(Plan {
            version: catalog.version,
            parameters: types.clone(),
            columns,
            tables: keys(catalog, &names),
            names,
            writes: true,
            body: Body::Writing(Box::new(WritingQuery { parts, main, types, mode })),
        }))
    }

    /// How it holds its tables.
    pub(super) fn mode(&self) -> LockMode {
        self.mode
    }
}

/// Types that are known by now.
fn merged(given: &[SqlType], found: &[SqlType]) -> Vec<SqlType> {
    let at = |types: &[SqlType], at: usize| types.get(at).cloned().unwrap_or(SqlType::Unknown);
    let both = (0..given.len().max(found.len())).map(|number| match at(given, number) {
        SqlType::Unknown => at(found, number),
        known => known,
    });
    both.collect()
}

/// What a part has returned, as a query under its name.
fn values(
    part: &ast::Cte,
    columns: &[OutputColumn],
    rows: &[Vec<Value>],
    style: &TextStyle,
) -> Result<ast::Cte> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let cell = |value: Option<&Value>, column: &OutputColumn| {
        let text = value.and_then(|value| text_format::text(value, &column.sql_type, style));
        match text {
            Some(text) => format!("CAST('{}' AS {})", text.replace('\'', "''"), column.sql_type),
            None => format!("CAST(NULL AS {})", column.sql_type),
        }
    };
    let row = |row: Option<&Vec<Value>>| -> String {
        let cells =
            columns.iter().enumerate().map(|(at, column)| cell(row.and_then(|row| row.get(at)), column));
        cells.collect::<Vec<_>>().join(", ")
    };
    let names: Vec<String> = match part.alias.columns.as_slice() {
        [] => columns.iter().map(|column| quoted(&column.name)).collect(),
        given => given.iter().map(|column| column.name.to_string()).collect(),
    };
    let text = match (columns, rows) {
        // Without `RETURNING` it has no columns, and nobody can ask for any.
        ([], _) => "SELECT 1 WHERE false".to_string(),
        (_, []) => format!("SELECT * FROM (VALUES ({})) AS v({}) WHERE false", row(None), names.join(", ")),
        (_, rows) => {
            let rows: Vec<String> = rows.iter().map(|values| format!("({})", row(Some(values)))).collect();
            format!("SELECT * FROM (VALUES {}) AS v({})", rows.join(", "), names.join(", "))
        }
    };
    let ast::Statement::Query(query) = Tokens::of(&text)?.sql()? else {
        return Err(Error::new(SqlState(*b"XX000"), "values that are no query"));
    };
    Ok(ast::Cte { query, ..part.clone() })
}

impl Connection {
    /// Runs it.
    pub(super) async fn run_writing(
        &mut self,
        catalog: &Arc<Catalog>,
        query: &WritingQuery,
        given: Given<'_>,
    ) -> Result<Response> {
        let is_alone = !self.is_in_transaction();
        if is_alone {
            self.begin_implicit().await?;
        }
        let outcome = self.run_parts(catalog, query, given).await;
        if is_alone {
            self.end_implicit(outcome.is_ok()).await?;
        }
        outcome
    }

    async fn run_parts(
        &mut self,
        catalog: &Arc<Catalog>,
        query: &WritingQuery,
        given: Given<'_>,
    ) -> Result<Response> {
        let mut before = Vec::new();
        for part in &query.parts {
            if !writes(&part.query) {
                before.push(part.clone());
                continue;
            }
            let (response, columns) =
                self.run_part(catalog, &part.query, &before, &query.types, given).await?;
            let rows = match response {
                Response::Rows { rows, .. } => rows.try_collect().await?,
                _ => Vec::new(),
            };
            before.push(values(part, &columns, &rows, &TextStyle::default())?);
        }
        let (response, _) = self.run_part(catalog, &query.main, &before, &query.types, given).await?;
        Ok(match response {
            Response::Rows { columns, rows, tag } => {
                let rows: Vec<Vec<Value>> = rows.try_collect().await?;
                super::run::rows_response(columns, rows, tag)
            }
            other => other,
        })
    }

    async fn run_part(
        &mut self,
        catalog: &Arc<Catalog>,
        query: &ast::Query,
        before: &[ast::Cte],
        types: &[SqlType],
        given: Given<'_>,
    ) -> Result<(Response, Vec<OutputColumn>)> {
        let session = self.session_facts();
        let database = self.database.clone();
        let place = Place { database: database.database(), catalog, session: &session };
        let plan = place.plan(query, before, types).await?;
        let response = Box::pin(self.run_plan(catalog, &plan, given)).await?;
        Ok((response, plan.columns.clone().unwrap_or_default()))
    }
}
