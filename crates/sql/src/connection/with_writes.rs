//! `WITH` whose common table expressions write.
//!
//! ```text
//! WITH gone AS (DELETE FROM a RETURNING id) INSERT INTO b SELECT id FROM gone
//!   1. DELETE FROM a RETURNING id                              --> rows
//!   2. WITH gone AS (VALUES of these rows) INSERT INTO b SELECT id FROM gone
//! ```
//!
//! All of it is one transaction. PostgreSQL's parts see the tables as they were before any of them. So what asks a
//! table that another part changes runs first (`asked_first`), and is refused if it needs rows of a part that writes; a
//! part that writes such a table leaves the rows that the earlier one has written (`written_rows`).

use super::asked_first::{AskedFirst, asked_first, writes};
use super::given_rows::query_of;
use super::plan::{Body, Plan, WithWrites};
use super::result::rows_response;
use super::{Connection, Response, written_rows};
use fabius::Database;
use fabius_sql_meaning::catalog::{Catalog, ConstraintId, ForeignKey, ObjectName, Table};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_query::WRITTEN;
use fabius_sql_syntax::part;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::{written, written_ident};
use fabius_value::{Error, Result, SqlState, Value};
use futures::TryStreamExt;
use sqlparser::ast;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows that a part may return.
const ROWS: usize = 100_000;

/// A statement with `RETURNING` as a query of the rows that it returns: `INSERT INTO t ... RETURNING f(a)` is `WITH
/// written AS (INSERT INTO t ... RETURNING *) SELECT f(a) FROM written AS t`. Its tag too. `None` if it names other
/// tables, or returns nothing but `*`: then nothing would be gained.
pub(super) fn returning_apart(statement: &ast::Statement) -> Result<Option<(ast::Statement, &'static str)>> {
    let mut statement = statement.clone();
    let own = |table: &ast::TableWithJoins| match &table.relation {
        ast::TableFactor::Table { name, alias, args: None, .. } if table.joins.is_empty() => {
            alias.as_ref().map(|alias| alias.name.clone()).or_else(|| name.0.last()?.as_ident().cloned())
        }
        _ => None,
    };
    let (called, returning, tag) = match &mut statement {
        ast::Statement::Insert(insert) => {
            let ast::TableObject::TableName(name) = &insert.table else { return Ok(None) };
            let alias = insert.table_alias.as_ref().map(|alias| alias.alias.clone());
            let last = || name.0.last()?.as_ident().cloned();
            (alias.or_else(last), &mut insert.returning, "INSERT 0")
        }
        ast::Statement::Update(update) if update.from.is_none() => {
            (own(&update.table), &mut update.returning, "UPDATE")
        }
        ast::Statement::Delete(delete) if delete.using.is_none() => {
            let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
            (from.first().and_then(own), &mut delete.returning, "DELETE")
        }
        _ => return Ok(None),
    };
    let (Some(called), Some(items)) = (called, returning.as_mut()) else { return Ok(None) };
    if let [ast::SelectItem::Wildcard(_)] = items.as_slice() {
        return Ok(None);
    }
    let shown: Vec<String> = items.iter().map(written).collect();
    *items = vec![ast::SelectItem::Wildcard(ast::WildcardAdditionalOptions::default())];
    let (called, statement) = (written_ident(&called), written(&statement));
    let text = format!(
        "WITH \"{WRITTEN}\" AS ({statement}) SELECT {} FROM \"{WRITTEN}\" AS {called}",
        shown.join(", ")
    );
    Ok(Some((Tokens::of(&text)?.sql()?, tag)))
}

/// Whether common table expressions of a statement write.
pub(super) fn has_writes(statement: &ast::Statement) -> bool {
    let ast::Statement::Query(query) = statement else { return false };
    query.with.iter().flat_map(|with| &with.cte_tables).any(|common| writes(&common.query))
}

impl WithWrites {
    /// The statement up to a place among its common table expressions, with what those before it have given; the
    /// whole of it behind the last.
    fn upto(&self, place: usize, given: &[Option<Vec<Vec<Value>>>]) -> Result<ast::Query> {
        let mut query = self.query.clone();
        let Some(with) = query.with.as_mut() else { return Ok(query) };
        let tables = std::mem::take(&mut with.cte_tables);
        let mut own = None;
        for (at, mut common) in tables.into_iter().enumerate() {
            match (at == place, self.parts.get(at).and_then(Option::as_deref)) {
                (true, _) if writes(&common.query) => {
                    own = Some(common);
                    break;
                }
                // It may name itself.
                (true, _) => {
                    let shown = format!("SELECT * FROM {}", written_ident(&common.alias.name));
                    with.cte_tables.push(common);
                    return Ok(ast::Query { with: query.with, ..part::query(&shown)? });
                }
                (false, Some(columns)) if self.own(at, columns).is_empty() => continue,
                (false, Some(columns)) => {
                    *common.query = query_of(self.own(at, columns), self.given(at, given))?;
                }
                (false, None) => {}
            }
            with.cte_tables.push(common);
        }
        if with.cte_tables.is_empty() {
            query.with = None;
        }
        let mut query = match own {
            Some(own) => ast::Query { with: query.with, ..*own.query },
            None => query,
        };
        if let Some(target) = self.targets.get(place).and_then(Option::as_ref) {
            let earlier = self.targets.iter().zip(&self.parts).enumerate().take(place);
            let written = earlier.filter_map(|(at, (target, columns))| {
                Some((target.as_ref()?, columns.as_deref()?, self.given(at, given)))
            });
            written_rows::leave(&mut query.body, target, written)?;
        }
        Ok(query)
    }

    /// The references that wait until all parts have run: those between tables that are written, and those that would
    /// change a table that the statement names.
    fn references(&self, catalog: &Catalog) -> BTreeSet<ConstraintId> {
        let written: BTreeSet<&ObjectName> =
            self.targets.iter().flatten().map(|target| &target.table).collect();
        let children = catalog.tables.values().filter(|child| !child.foreign_keys.is_empty());
        let keys = children.flat_map(|child| child.foreign_keys.iter().map(move |key| (child, key)));
        let mut keys = keys.filter(|(_, key)| written.contains(&key.parent)).peekable();
        if keys.peek().is_none() {
            return BTreeSet::new();
        }
        let named = written_rows::named_tables(catalog, &self.query);
        let acts = |key: &ForeignKey| key.on_delete.acts() || key.on_update.acts();
        let is_meant = |(child, key): &(&Arc<Table>, &ForeignKey)| match acts(key) {
            true => named.as_ref().is_none_or(|named| {
                let mut led_to = catalog.followers(&child.name, acts).into_iter();
                named.contains(&child.name) || led_to.any(|table| named.contains(&table.name))
            }),
            false => written.contains(&child.name),
        };
        keys.filter(is_meant).map(|(child, key)| (child.oid, key.name.clone())).collect()
    }

    /// A part's columns without those of keys that it gives for parts behind it.
    fn own<'c>(&self, place: usize, columns: &'c [OutputColumn]) -> &'c [OutputColumn] {
        let keys = self.targets.get(place).and_then(Option::as_ref).map_or(0, written_rows::Target::keys);
        columns.get(..columns.len().saturating_sub(keys)).unwrap_or_default()
    }

    fn given<'g>(&self, place: usize, given: &'g [Option<Vec<Vec<Value>>>]) -> &'g [Vec<Value>] {
        given.get(place).and_then(Option::as_deref).unwrap_or_default()
    }
}

/// A query that is nothing but a statement is that statement.
fn statement_of(query: ast::Query) -> ast::Statement {
    match (query.with.is_none(), *query.body) {
        (true, ast::SetExpr::Insert(own) | ast::SetExpr::Update(own) | ast::SetExpr::Delete(own)) => own,
        (_, body) => ast::Statement::Query(Box::new(ast::Query { body: Box::new(body), ..query })),
    }
}

impl Plan {
    /// How a statement runs whose common table expressions write.
    pub(super) fn of_with_writes(
        database: &Database,
        catalog: &Arc<Catalog>,
        (statement, tag): (&ast::Statement, Option<&'static str>),
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        let ast::Statement::Query(query) = statement else {
            return Err(Error::new(SqlState(*b"XX000"), "a statement without WITH"));
        };
        let reads_alone = |query: &ast::Query| {
            let statement = ast::Statement::Query(Box::new(query.clone()));
            let plan = Plan::of(database, catalog, &statement, (&written(&statement), None), given, session);
            let gives_columns =
                |plan: &Arc<Plan>| plan.columns.as_ref().is_some_and(|columns| !columns.is_empty());
            plan.ok().filter(gives_columns).map(|plan| plan.reads())
        };
        let changed = written_rows::written_tables(catalog, query);
        let AskedFirst { query: mut whole, asked, answer } =
            asked_first(catalog, query, &changed, &reads_alone)?;
        let targets = written_rows::targets(catalog, &mut whole)?;
        let (commons, parts) = (asked.len(), vec![None; asked.len()]);
        let mut all = WithWrites {
            query: whole,
            types: given.to_vec(),
            parts,
            targets,
            reads: Vec::new(),
            answer,
            tag,
        };
        let (mut tables, mut names) = (Vec::new(), Vec::new());
        let mut changed: Vec<ObjectName> = Vec::new();
        let mut columns = None;
        for place in 0..=commons {
            let common = all.query.with.as_ref().and_then(|with| with.cte_tables.get(place));
            let is_part = common.map_or(answer.is_none(), |common| {
                writes(&common.query) || asked.get(place).is_some_and(|is_asked| *is_asked)
            });
            if !is_part {
                continue;
            }
            let statement = statement_of(all.upto(place, &[])?);
            let text = written(&statement);
            let plan = Plan::of(database, catalog, &statement, (&text, None), &all.types, session)?;
            let mut reads = plan.reads();
            if let Some(target) = all.targets.get(place).and_then(Option::as_ref) {
                reads.retain(|table| target.asks(catalog, &statement, table));
            }
            if reads.iter().any(|name| changed.contains(name)) {
                return Err(Error::new(
                    SqlState::NOT_SUPPORTED,
                    "reading a table that the same statement changes is not supported",
                ));
            }
            changed
                .extend(all.targets.get(place).and_then(Option::as_ref).map(|target| target.table.clone()));
            all.reads.extend(reads);
            tables.extend(plan.tables.iter().cloned());
            names.extend(plan.names.iter().cloned());
            for (at, sql_type) in plan.parameters.iter().enumerate() {
                if all.types.len() <= at {
                    all.types.resize(at + 1, SqlType::Unknown);
                }
                if all.types[at] == SqlType::Unknown && text.contains(&format!("${}", at + 1)) {
                    all.types[at] = sql_type.clone();
                }
            }
            match all.parts.get_mut(place) {
                Some(part) => *part = Some(plan.columns.clone().unwrap_or_default()),
                None => columns = plan.columns.clone(),
            }
        }
        if let Some(answer) = answer {
            columns = all.parts[answer].clone();
        }
        tables.dedup();
        let parameters = all.types.clone();
        let body = Body::WithWrites(Box::new(all));
        Ok(Arc::new(Plan {
            version: catalog.version,
            parameters,
            columns,
            body,
            tables,
            names,
            writes: true,
        }))
    }
}

impl Connection {
    /// Runs the parts that write, then the statement.
    pub(super) async fn perform_with_writes(
        &mut self,
        all: &WithWrites,
        parameters: &[Value],
    ) -> Result<Response> {
        let is_alone = self.begin_alone();
        let references = all.references(&self.catalog());
        let postpones = self.postpone(references);
        let mut outcome = self.perform_parts(all, parameters).await;
        if postpones {
            let ended = self.end_postponing(outcome.is_ok()).await;
            outcome = outcome.and_then(|response| ended.map(|()| response));
        }
        self.end_alone(is_alone, outcome).await
    }

    async fn perform_parts(&mut self, all: &WithWrites, parameters: &[Value]) -> Result<Response> {
        let mut given: Vec<Option<Vec<Vec<Value>>>> = vec![None; all.parts.len()];
        for (place, part) in all.parts.iter().enumerate() {
            if part.is_none() {
                continue;
            }
            let text = written(&statement_of(all.upto(place, &given)?));
            if let Response::Rows { rows, .. } = self.perform_part(&text, all, parameters).await? {
                let rows: Vec<Vec<Value>> = rows.try_collect().await?;
                if rows.len() > ROWS {
                    return Err(Error::new(
                        SqlState::PROGRAM_LIMIT,
                        "a statement in WITH returns too many rows",
                    )
                    .with_detail(format!("it returns {}, at most {ROWS} are allowed", rows.len())));
                }
                given[place] = Some(rows);
            }
        }
        if let Some(answer) = all.answer {
            let columns = all.parts[answer].clone().unwrap_or_default();
            return Ok(rows_response(columns, given[answer].take().unwrap_or_default(), "SELECT"));
        }
        let text = written(&statement_of(all.upto(all.parts.len(), &given)?));
        match self.perform_part(&text, all, parameters).await? {
            Response::Rows { columns, rows, tag } => {
                Ok(rows_response(columns, rows.try_collect().await?, all.tag.unwrap_or(tag)))
            }
            other => Ok(other),
        }
    }

    async fn perform_part(&mut self, text: &str, all: &WithWrites, parameters: &[Value]) -> Result<Response> {
        let prepared = Box::pin(self.prepare(text, &all.types)).await?;
        let count = prepared.parameters.len().min(parameters.len());
        Box::pin(self.execute(&prepared, &parameters[..count])).await
    }
}
