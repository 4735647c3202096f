//! Finds how a statement runs: as a program, else as a query, in parts where it writes in parts.

use super::explain_options::Wanted;
use super::merge::Merge;
use super::plan::{Body, Explanation, Lowering, Plan, Program};
use super::skip_locked::{has_skips, waiting};
use super::with_writes::{has_writes, returning_apart};
use super::write_query::WriteQuery;
use crate::lock::{LockKey, LockMode};
use fabius::Database;
use fabius_program::syntax::Source;
use fabius_sql_meaning::catalog::{Catalog, ObjectName};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_program::bind::{Bind, Stop, wording};
use fabius_sql_program::lowered::{Lowered, Shape};
use fabius_sql_program::plpgsql;
use fabius_sql_query as query;
use fabius_sql_syntax::Command;
use fabius_sql_syntax::normal_form::NormalForm;
use fabius_value::{Error, Result, SqlState};
use parking_lot::Mutex;
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Plan {
    /// How `DO` runs.
    fn of_block(database: &Database, catalog: &Catalog, text: &str) -> Result<Arc<Plan>> {
        let lowered = plpgsql::lower_do(text, catalog)?;
        let statement = database.statement(&lowered.definition)?;
        let names: Vec<ObjectName> = lowered.reads.iter().chain(&lowered.writes).cloned().collect();
        let writes = !lowered.writes.is_empty();
        let program = Program {
            lowered,
            statement,
            // It has no parameters, so that it is not bound again.
            source: ast::Statement::Commit { chain: false, end: false, modifier: None },
            text: Arc::new(Source::new(text, "statement")),
            types: Vec::new(),
            has_own_clock: false,
            variants: Mutex::default(),
        };
        Ok(Arc::new(Plan {
            version: catalog.version,
            parameters: Vec::new(),
            columns: None,
            tables: locks_of(&program.lowered, catalog),
            names,
            writes,
            body: Body::Program(Arc::new(program)),
        }))
    }

    pub(super) fn of_write(catalog: &Catalog, write: WriteQuery, types: ParameterTypes) -> Arc<Plan> {
        let tables = (write.reads().cloned().collect(), write.writes().cloned().collect());
        let columns = write.columns();
        Plan::of_found(catalog, tables, columns, Body::WriteQuery(Box::new(write)), types)
    }

    fn of_merge(catalog: &Catalog, merge: Merge, types: ParameterTypes) -> Arc<Plan> {
        let tables = (merge.reads().cloned().collect(), merge.writes().cloned().collect());
        Plan::of_found(catalog, tables, None, Body::Merge(Box::new(merge)), types)
    }

    /// A plan whose query finds rows that programs write; which tables it reads and writes.
    fn of_found(
        catalog: &Catalog,
        (reads, writes): (Vec<ObjectName>, Vec<ObjectName>),
        columns: Option<Vec<OutputColumn>>,
        body: Body,
        types: ParameterTypes,
    ) -> Arc<Plan> {
        let read = reads.iter().map(|name| (name, LockMode::AccessShare));
        let written = writes.iter().map(|name| (name, LockMode::RowExclusive));
        Arc::new(Plan {
            version: catalog.version,
            parameters: types.finish(),
            columns,
            tables: lock_keys(catalog, read.chain(written)),
            names: reads.iter().chain(&writes).cloned().collect(),
            writes: true,
            body,
        })
    }

    /// `EXPLAIN`: the plan of what it is about, which runs only if that is asked for.
    fn of_explanation(
        catalog: &Arc<Catalog>,
        explain: &ast::Statement,
        subject: Arc<Plan>,
    ) -> Result<Arc<Plan>> {
        let wanted = Wanted::of(explain)?;
        let runs = wanted.analyze;
        Ok(Arc::new(Plan {
            version: catalog.version,
            parameters: subject.parameters.clone(),
            columns: Some(vec![wanted.column()]),
            tables: if runs { subject.tables.clone() } else { Vec::new() },
            names: if runs { subject.names.clone() } else { Vec::new() },
            writes: runs && subject.writes,
            body: Body::Explanation(Explanation { wanted, subject }),
        }))
    }

    /// Finds how a statement of rows or a block runs. With the normal form of its text, literals become arguments.
    pub fn of_command(
        database: &Database,
        catalog: &Arc<Catalog>,
        command: &Command,
        (text, form): (&str, Option<&NormalForm>),
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        match command {
            Command::Sql(statement) => Plan::of(database, catalog, statement, (text, form), given, session),
            _ => Plan::of_block(database, catalog, text),
        }
    }

    /// Finds how a statement of rows runs.
    pub fn of(
        database: &Database,
        catalog: &Arc<Catalog>,
        statement: &ast::Statement,
        (text, form): (&str, Option<&NormalForm>),
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        let waits;
        let statement = match (has_skips(statement), statement) {
            (false, _) => statement,
            (true, ast::Statement::Explain { .. }) => {
                waits = waiting(statement);
                &waits
            }
            (true, _) => {
                return Plan::of_skip_locked(database, catalog, (statement, text), given, session);
            }
        };
        if has_writes(statement) {
            return Plan::of_with_writes(database, catalog, (statement, text, None), given, session);
        }
        let statement = &*without_void(statement, given);
        let source = Arc::new(Source::new(text, "statement"));
        if let ast::Statement::Explain { statement: inner, .. } = statement {
            let subject = Plan::of(database, catalog, inner, (text, None), given, session)?;
            return Plan::of_explanation(catalog, statement, subject);
        }
        let mut types = ParameterTypes::new(given);
        types.has_own_clock = !session.text_style().is_usual();
        let program = Program::lower(database, catalog, statement, &source, &mut types, form)
            .map_err(|error| wording::in_words(error, catalog));
        let (program, too_large) = match program? {
            Lowering::Program(program) => (Some(program), None),
            Lowering::Inexpressible => (None, None),
            Lowering::TooLarge(error) => (None, Some(error)),
        };
        if let Some(mut program) = program {
            program.types = types.finish();
            let lowered = &program.lowered;
            let columns = match &lowered.shape {
                Shape::Count => None,
                // What `CALL` gives that gives nothing.
                Shape::OneRow(columns) if columns.is_empty() => None,
                Shape::Rows(columns) | Shape::CountAndRows(columns) | Shape::OneRow(columns) => {
                    Some(columns.clone())
                }
            };
            let names: Vec<ObjectName> = lowered.reads.iter().chain(&lowered.writes).cloned().collect();
            return Ok(Arc::new(Plan {
                version: catalog.version,
                parameters: program.types.clone(),
                columns,
                tables: locks_of(lowered, catalog),
                names,
                writes: !lowered.writes.is_empty(),
                body: Body::Program(Arc::new(*program)),
            }));
        }
        let stop = match Plan::of_query(database, catalog, statement, given, session) {
            Ok(plan) => return Ok(plan),
            Err(stop) => stop,
        };
        if let Stop::Beyond(_) = stop
            && let Some((apart, tag)) = returning_apart(statement)?
            && let Ok(plan) =
                Plan::of_with_writes(database, catalog, (&apart, text, Some(tag)), given, session)
        {
            return Ok(plan);
        }
        Err(too_large.unwrap_or_else(|| stop.into_error()))
    }

    /// Finds how a statement runs that no program can express: a query finds rows, and if it writes them, a program
    /// does that, which may be beyond it because of what the statement returns.
    fn of_query(
        database: &Database,
        catalog: &Arc<Catalog>,
        statement: &ast::Statement,
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Bind<Arc<Plan>> {
        let mut types = ParameterTypes::new(given);
        types.has_own_clock = !session.text_style().is_usual();
        match statement {
            ast::Statement::Query(select) if written(select).is_some() => {
                let (with, write) = (select.with.as_ref(), written(select).unwrap_or(statement));
                if let ast::Statement::Merge(merge) = write {
                    let merge = Merge::plan(database, catalog, (with, merge), &mut types, session)?;
                    return Ok(Plan::of_merge(catalog, merge, types));
                }
                let write = WriteQuery::with(database, catalog, with, write, &mut types, session)?;
                Ok(Plan::of_write(catalog, write, types))
            }
            ast::Statement::Query(select) => {
                let plan = query::plan(select, catalog, &mut types, session)?;
                let mode = if plan.locks_rows { LockMode::RowShare } else { LockMode::AccessShare };
                Ok(Arc::new(Plan {
                    version: catalog.version,
                    parameters: types.finish(),
                    columns: Some(plan.columns.clone()),
                    tables: lock_keys(catalog, plan.reads.iter().map(|name| (name, mode))),
                    names: plan.reads.clone(),
                    writes: false,
                    body: Body::Query(Arc::new(plan)),
                }))
            }
            ast::Statement::Insert(_) | ast::Statement::Update(_) | ast::Statement::Delete(_) => {
                let write = WriteQuery::with(database, catalog, None, statement, &mut types, session)?;
                Ok(Plan::of_write(catalog, write, types))
            }
            ast::Statement::Merge(merge) => {
                let merge = Merge::plan(database, catalog, (None, merge), &mut types, session)?;
                Ok(Plan::of_merge(catalog, merge, types))
            }
            other => {
                let words: Vec<String> =
                    other.to_string().split_whitespace().take(1).map(str::to_string).collect();
                Err(Error::new(
                    SqlState::NOT_SUPPORTED,
                    format!("this form of {} is not supported", words.join(" ")),
                )
                .into())
            }
        }
    }
}

/// How a program locks its tables.
fn locks_of(lowered: &Lowered, catalog: &Catalog) -> Vec<(LockKey, LockMode)> {
    let read = lowered.row_lock.map_or(LockMode::AccessShare, |_| LockMode::RowShare);
    let reads = lowered.reads.iter().map(|name| (name, read));
    lock_keys(catalog, reads.chain(lowered.writes.iter().map(|name| (name, LockMode::RowExclusive))))
}

/// A statement whose functions are not given parameters of type `void`: drivers pass these in the places of output
/// parameters, as PostgreSQL allows.
fn without_void<'s>(statement: &'s ast::Statement, given: &[SqlType]) -> Cow<'s, ast::Statement> {
    if !given.contains(&SqlType::Void) {
        return Cow::Borrowed(statement);
    }
    let mut statement = statement.clone();
    let _ = VisitMut::visit(&mut statement, &mut WithoutVoid(given));
    Cow::Owned(statement)
}

/// Takes parameters of type `void` out of calls; these are the parameters' types.
struct WithoutVoid<'t>(&'t [SqlType]);

impl WithoutVoid<'_> {
    fn strip(&self, arguments: &mut Vec<ast::FunctionArg>) {
        arguments.retain(|argument| {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value))) = argument
            else {
                return true;
            };
            let ast::Value::Placeholder(name) = &value.value else { return true };
            let index = parameter_types::index_of(name).ok();
            index.and_then(|index| self.0.get(index)) != Some(&SqlType::Void)
        });
    }
}

impl VisitorMut for WithoutVoid<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(call) = expression
            && let ast::FunctionArguments::List(list) = &mut call.args
        {
            self.strip(&mut list.args);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<()> {
        match factor {
            ast::TableFactor::Table { args: Some(arguments), .. } => self.strip(&mut arguments.args),
            ast::TableFactor::Function { args, .. } => self.strip(args),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The locks of tables by their names, each in its strongest mode, always in the same order.
fn lock_keys<'n>(
    catalog: &Catalog,
    names: impl Iterator<Item = (&'n ObjectName, LockMode)>,
) -> Vec<(LockKey, LockMode)> {
    let mut modes = BTreeMap::new();
    for (name, mode) in names {
        if let Some(table) = catalog.tables.get(name) {
            let strongest = modes.entry(table.oid).or_insert(mode);
            *strongest = mode.max(*strongest);
        }
    }
    modes.into_iter().map(|(oid, mode)| (LockKey::Relation(oid), mode)).collect()
}

/// The `INSERT`, `UPDATE`, `DELETE` or `MERGE` that stands behind a `WITH`.
fn written(query: &ast::Query) -> Option<&ast::Statement> {
    match query.body.as_ref() {
        ast::SetExpr::Insert(write)
        | ast::SetExpr::Update(write)
        | ast::SetExpr::Delete(write)
        | ast::SetExpr::Merge(write) => Some(write),
        _ => None,
    }
}
