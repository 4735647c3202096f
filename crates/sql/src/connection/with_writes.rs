//! `WITH` whose common table expressions write.
//!
//! ```text
//! WITH gone AS (DELETE FROM a RETURNING id) INSERT INTO b SELECT id FROM gone
//!   1. DELETE FROM a RETURNING id                              --> rows
//!   2. WITH gone AS (SELECT id FROM these rows) INSERT INTO b SELECT id FROM gone
//! ```
//!
//! All of it is one transaction. PostgreSQL's parts see the tables as they were before any of them. So what asks a
//! table that another part changes runs first (`asked_first`), and is refused if it needs rows of a part that writes; a
//! part that writes such a table leaves the rows that the earlier one has written (`written_rows`).

use super::asked_first::{AskedFirst, asked_first, writes};
use super::given_rows;
use super::held_rows::HeldRows;
use super::plan::{Body, Given, Part, Plan, WithWrites};
use super::{Connection, Response, written_rows};
use fabius::Database;
use fabius_sql_meaning::catalog::{Catalog, ConstraintId, ForeignKey, ObjectName, Table, Until, folded};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_query::WRITTEN;
use fabius_sql_syntax::part;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// A statement with `RETURNING` as a query of the rows that it returns: `INSERT INTO t ... RETURNING f(a)` is `WITH
/// written AS (INSERT INTO t ... RETURNING *) SELECT f(a) FROM written AS t`, behind what its own `WITH` has. Its tag
/// too. `None` if it names other tables, or returns nothing but `*`: then nothing would be gained.
pub(super) fn returning_apart(statement: &ast::Statement) -> Result<Option<(ast::Statement, &'static str)>> {
    let (with, mut statement) = match statement {
        ast::Statement::Query(query) => {
            let mut query = (**query).clone();
            (query.with.take(), statement_of(query))
        }
        other => (None, other.clone()),
    };
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
    let shown = std::mem::replace(items, vec![part::all_columns()]);
    let mut written = part::table(WRITTEN);
    if let ast::TableFactor::Table { alias, .. } = &mut written {
        *alias = Some(ast::TableAlias { name: called, ..part::called(WRITTEN) });
    }
    let recursive = with.as_ref().is_some_and(|with| with.recursive);
    let before = with.into_iter().flat_map(|with| with.cte_tables);
    let commons = before.chain([part::common(WRITTEN, query_of(statement)?)]).collect();
    let with = part::with(recursive, commons);
    let query = part::select(with.as_ref(), shown, vec![part::alone(written)], None)?;
    Ok(Some((ast::Statement::Query(Box::new(query)), tag)))
}

/// Whether common table expressions of a statement write.
pub(super) fn has_writes(statement: &ast::Statement) -> bool {
    let ast::Statement::Query(query) = statement else { return false };
    query.with.iter().flat_map(|with| &with.cte_tables).any(|common| writes(&common.query))
}

/// A statement that writes as a query that is nothing else.
fn query_of(statement: ast::Statement) -> Result<ast::Query> {
    let body = match statement {
        insert @ ast::Statement::Insert(_) => ast::SetExpr::Insert(insert),
        update @ ast::Statement::Update(_) => ast::SetExpr::Update(update),
        other => ast::SetExpr::Delete(other),
    };
    Ok(ast::Query { body: Box::new(body), ..part::select(None, Vec::new(), Vec::new(), None)? })
}

/// A query that is nothing but a statement is that statement.
fn statement_of(query: ast::Query) -> ast::Statement {
    match (query.with.is_none(), *query.body) {
        (true, ast::SetExpr::Insert(own) | ast::SetExpr::Update(own) | ast::SetExpr::Delete(own)) => own,
        (_, body) => ast::Statement::Query(Box::new(ast::Query { body: Box::new(body), ..query })),
    }
}

/// A query with common table expressions before its own.
fn behind(before: &[ast::Cte], recursive: bool, mut query: ast::Query) -> ast::Query {
    let own = query.with.take();
    let recursive = recursive || own.as_ref().is_some_and(|own| own.recursive);
    let own = own.into_iter().flat_map(|own| own.cte_tables);
    query.with = part::with(recursive, before.iter().cloned().chain(own).collect());
    query
}

/// Whether a statement has a parameter, by its place.
fn has_parameter(statement: &ast::Statement, at: usize) -> bool {
    let found = ast::visit_expressions(statement, |expression| match expression {
        ast::Expr::Value(value)
            if matches!(&value.value, ast::Value::Placeholder(name)
                if parameter_types::index_of(name).is_ok_and(|index| index == at)) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// The references that wait until all parts have run: those between tables that are written, and those that would
/// change a table that the statement names. None if the statement is a part of one for which some wait already.
fn waiting_references(
    catalog: &Catalog,
    query: &ast::Query,
    targets: &[Option<written_rows::Target>],
) -> BTreeSet<ConstraintId> {
    let written: BTreeSet<&ObjectName> = targets.iter().flatten().map(|target| &target.table).collect();
    let children = catalog.tables.values().filter(|child| !child.foreign_keys.is_empty());
    let keys = children.flat_map(|child| child.foreign_keys.iter().map(move |key| (child, key)));
    let mut keys = keys.filter(|(_, key)| written.contains(&key.parent)).peekable();
    let is_part = catalog.waiting.values().any(|until| *until == Until::Statement);
    if is_part || keys.peek().is_none() {
        return BTreeSet::new();
    }
    let named = written_rows::named_tables(catalog, query);
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

/// Plans the parts of a statement, one after the other.
struct Planning<'p> {
    database: &'p Database,
    catalog: &'p Arc<Catalog>,
    text: &'p str,
    session: &'p Arc<dyn SessionFacts>,
    types: Vec<SqlType>,
    parts: Vec<Part>,
    /// Tables that parts before have changed, and the relations of those whose keys they give.
    changed: Vec<ObjectName>,
    left: Vec<(ObjectName, ast::Query)>,
    reads: Vec<ObjectName>,
}

impl Planning<'_> {
    /// Plans a part; gives its columns.
    fn part(
        &mut self,
        mut query: ast::Query,
        target: Option<&written_rows::Target>,
    ) -> Result<Option<Vec<OutputColumn>>> {
        if let Some(target) = target {
            let others = self.left.iter().filter(|(table, _)| target.table == *table);
            written_rows::leave(&mut query.body, target, others.map(|(_, keys)| keys.clone()));
        }
        let statement = statement_of(query);
        let text = (self.text, None);
        let plan = Plan::of(self.database, self.catalog, &statement, text, &self.types, self.session)?;
        let mut reads = plan.reads();
        if let Some(target) = target {
            reads.retain(|table| target.asks(self.catalog, &statement, table));
        }
        if reads.iter().any(|name| self.changed.contains(name)) {
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                "reading a table that the same statement changes is not supported",
            ));
        }
        self.changed.extend(target.map(|target| target.table.clone()));
        self.reads.extend(reads);
        for (at, sql_type) in plan.parameters.iter().enumerate() {
            if self.types.len() <= at {
                self.types.resize(at + 1, SqlType::Unknown);
            }
            if self.types[at] == SqlType::Unknown && has_parameter(&statement, at) {
                self.types[at] = sql_type.clone();
            }
        }
        let columns = plan.columns.clone();
        self.parts.push(Part { plan, number: given_rows::next_number() });
        Ok(columns)
    }

    /// Some columns of the rows that the last part gives, as a query.
    fn given(&self, columns: &[OutputColumn], shown: Range<usize>) -> Result<ast::Query> {
        let number = self.parts.last().map_or(0, |part| part.number);
        given_rows::query_of(number, columns, shown)
    }
}

impl Plan {
    /// How a statement runs whose common table expressions write.
    pub(super) fn of_with_writes(
        database: &Database,
        catalog: &Arc<Catalog>,
        (statement, text, tag): (&ast::Statement, &str, Option<&'static str>),
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        let ast::Statement::Query(query) = statement else {
            return Err(Error::new(SqlState(*b"XX000"), "a statement without WITH"));
        };
        let reads_alone = |query: &ast::Query| {
            let statement = ast::Statement::Query(Box::new(query.clone()));
            let plan = Plan::of(database, catalog, &statement, (text, None), given, session);
            let gives_columns =
                |plan: &Arc<Plan>| plan.columns.as_ref().is_some_and(|columns| !columns.is_empty());
            plan.ok().filter(gives_columns).map(|plan| plan.reads())
        };
        let changed = written_rows::written_tables(catalog, query);
        let AskedFirst { query: mut whole, asked, answer } =
            asked_first(catalog, query, &changed, &reads_alone)?;
        let targets = written_rows::targets(catalog, &mut whole)?;
        let references = waiting_references(catalog, &whole, &targets);
        let catalog = &catalog.with_waiting(&references);
        let with = whole.with.take();
        let recursive = with.as_ref().is_some_and(|with| with.recursive);
        let mut planning = Planning {
            database,
            catalog,
            text,
            session,
            types: given.to_vec(),
            parts: Vec::new(),
            changed: Vec::new(),
            left: Vec::new(),
            reads: Vec::new(),
        };
        let (mut before, mut columns, mut answering) = (Vec::<ast::Cte>::new(), None, None);
        let commons = with.into_iter().flat_map(|with| with.cte_tables);
        for ((at, mut common), target) in commons.enumerate().zip(&targets) {
            if matches!(*common.query.body, ast::SetExpr::Merge(_)) {
                return Err(Error::new(SqlState::NOT_SUPPORTED, "MERGE not supported in WITH query"));
            }
            let query = match (writes(&common.query), asked.get(at)) {
                (true, _) => behind(&before, recursive, *common.query.clone()),
                // It may name itself.
                (false, Some(true)) => {
                    let named = part::alone(part::table(&folded(&common.alias.name)));
                    let all = part::select(None, vec![part::all_columns()], vec![named], None)?;
                    before.push(common.clone());
                    let query = behind(&before, recursive, all);
                    before.pop();
                    query
                }
                _ => {
                    before.push(common);
                    continue;
                }
            };
            let given = planning.part(query, target.as_ref())?;
            if answer == Some(at) {
                (columns, answering) = (given.clone(), Some(planning.parts.len() - 1));
            }
            let given = given.unwrap_or_default();
            let keys = target.as_ref().map_or(0, written_rows::Target::keys);
            let own = given.len().saturating_sub(keys);
            if let Some(target) = target.as_ref().filter(|_| keys > 0) {
                planning.left.push((target.table.clone(), planning.given(&given, own..own + keys)?));
            }
            if own > 0 {
                *common.query = planning.given(&given, 0..own)?;
                before.push(common);
            }
        }
        if answering.is_none() {
            let target = targets.last().and_then(Option::as_ref);
            columns = planning.part(behind(&before, recursive, whole), target)?;
        }
        let Planning { types, parts, reads, .. } = planning;
        let mut tables: Vec<_> = parts.iter().flat_map(|part| part.plan.tables.iter().cloned()).collect();
        tables.dedup();
        let names = parts.iter().flat_map(|part| part.plan.names.iter().cloned()).collect();
        let body = WithWrites { parts, references, reads, answering, tag };
        Ok(Arc::new(Plan {
            version: catalog.version,
            parameters: types,
            columns,
            body: Body::WithWrites(Box::new(body)),
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
        let postpones = self.postpone(all.references.clone());
        let before = self.execution.given.clone();
        let outcome = self.perform_parts(all, parameters).await;
        self.execution.given = before;
        let outcome = self.end_postponing(postpones, outcome).await;
        self.end_alone(is_alone, outcome).await
    }

    async fn perform_parts(&mut self, all: &WithWrites, parameters: &[Value]) -> Result<Response> {
        // References wait in it.
        let catalog = self.catalog();
        let mut answer = None;
        for (at, part) in all.parts.iter().enumerate() {
            let given = Given { parameters, ..Given::default() };
            let response = Box::pin(self.perform(&catalog, &part.plan, given)).await?;
            let is_last = at + 1 == all.parts.len();
            match response {
                Response::Rows { columns, mut rows, tag } => {
                    let mut held = HeldRows::new(self.session.holding());
                    held.fill(&mut rows, (usize::MAX, usize::MAX)).await?;
                    if all.answering.map_or(is_last, |answering| answering == at) {
                        let tag = if all.answering.is_some() { "SELECT" } else { all.tag.unwrap_or(tag) };
                        answer = Some(Response::Rows { columns, rows: held.stream(), tag });
                    } else {
                        self.execution.given.insert(part.number, held);
                    }
                }
                done if is_last && answer.is_none() => answer = Some(done),
                _ => {}
            }
        }
        answer.ok_or_else(|| Error::new(SqlState(*b"XX000"), "a statement without parts"))
    }
}
