//! Statements that are ready to run, and plans that connections share.

use super::bulk::WriteQuery;
use super::explanation::{Explanation, Wanted};
use super::listed::Listing;
use super::skip_locked::{SkipLocked, has_skips, waiting};
use super::with_writes::{WithWrites, has_writes, returning_apart};
use crate::bind::{self, Recipe};
use crate::catalog::{Catalog, ObjectName};
use crate::lock::{LockKey, LockMode};
use crate::lowered::{Lowered, OutputColumn, Shape};
use crate::parameter_types::ParameterTypes;
use crate::parse::Command;
use crate::parse::normal_form::{Literal, NormalForm};
use crate::parse::tokens;
use crate::planning;
use crate::query::{self, QueryPlan};
use crate::session_facts::SessionFacts;
use crate::sql_type::SqlType;
use fabius::{Database, Held, Statement};
use fabius_program::syntax::Source;
use fabius_value::{Error, Result, SqlState, Value};
use parking_lot::Mutex;
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Plans that are kept, at most.
const PLANS: usize = 4096;
/// Statements of one normal form that are kept, at most: programs that differ in what literals say.
const TEMPLATES: usize = 8;
/// Programs of one statement that are kept for parameters of which some are null, at most; those with yet other
/// nulls run as one.
const VARIANTS: usize = 16;
/// Bytes of a text whose plan is kept, at most: a long one hardly comes twice.
pub(super) const TEXT_BYTES: usize = 16 << 10;

/// A statement that is ready to run.
pub struct Prepared {
    /// Types of `$1`, `$2`, ...
    pub parameters: Vec<SqlType>,
    /// Columns of its result, if it gives rows.
    pub columns: Option<Vec<OutputColumn>>,
    pub(super) text: String,
    /// What it asks for; with other literals if it was found by its normal form.
    pub(super) command: Arc<Command>,
    /// The types that the client gave.
    pub(super) given: Vec<SqlType>,
    /// How it runs; found again when the catalog changes.
    ready: Mutex<Option<Ready>>,
    /// Whether somebody holds what it shares with others.
    is_held: AtomicBool,
}

/// Memory that a prepared statement takes, about: its tree and its plan, and for each token more.
const STATEMENT_BYTES: usize = 16 << 10;
const TOKEN_BYTES: usize = 1 << 10;

/// A statement that a session keeps; it may count as held.
pub struct KeptStatement {
    pub(super) prepared: Arc<Prepared>,
    pub(super) held: Held,
    /// It is in `pg_prepared_statements` as long as it is kept.
    pub(super) _listed: Option<Listing>,
}

impl KeptStatement {
    /// Whether it counts.
    pub fn is_counted(&self) -> bool {
        self.held.bytes() > 0
    }
}

impl From<Arc<Prepared>> for KeptStatement {
    /// One that does not count.
    fn from(prepared: Arc<Prepared>) -> KeptStatement {
        KeptStatement { prepared, held: Held::new(None), _listed: None }
    }
}

impl Deref for KeptStatement {
    type Target = Arc<Prepared>;

    fn deref(&self) -> &Arc<Prepared> {
        &self.prepared
    }
}

/// How a text runs, under one version of the catalog.
#[derive(Clone)]
pub(super) struct Ready {
    pub plan: Arc<Plan>,
    /// The text's literals as arguments: see [`Lowered::literals`].
    pub literals: Arc<[Value]>,
}

/// How a statement runs, under one version of the catalog.
pub(super) struct Plan {
    pub version: u64,
    pub parameters: Vec<SqlType>,
    pub columns: Option<Vec<OutputColumn>>,
    pub body: Body,
    /// Tables that it reads or writes, and how they are locked.
    pub tables: Vec<(LockKey, LockMode)>,
    /// Those tables by name.
    pub names: Vec<ObjectName>,
    pub writes: bool,
}

/// What runs.
pub(super) enum Body {
    /// A program.
    Program(Arc<Program>),
    /// A query.
    Query(Arc<QueryPlan>),
    /// What a query gives is written.
    WriteQuery(Box<WriteQuery>),
    /// Common table expressions write first.
    WithWrites(Box<WithWrites>),
    /// Rows that are locked are passed over.
    SkipLocked(Box<SkipLocked>),
    /// What `EXPLAIN` shows.
    Explanation(Explanation),
    /// Something else: what [`Command`] says.
    Other,
}

/// A statement as a program.
pub(super) struct Program {
    pub lowered: Lowered,
    pub statement: Arc<Statement>,
    source: ast::Statement,
    text: Arc<Source>,
    types: Vec<SqlType>,
    /// See [`ParameterTypes::has_own_clock`].
    has_own_clock: bool,
    /// The programs for parameters of which some are null: which, as bits.
    variants: Mutex<HashMap<Vec<bool>, Arc<Program>>>,
}

impl Prepared {
    /// The statement as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn new(text: &str, command: Arc<Command>, given: &[SqlType], ready: Ready) -> Prepared {
        Prepared {
            parameters: ready.plan.parameters.clone(),
            columns: ready.plan.columns.clone(),
            text: text.to_string(),
            command,
            given: given.to_vec(),
            ready: Mutex::new(Some(ready)),
            is_held: AtomicBool::new(false),
        }
    }

    /// Whether going through it may take long.
    pub(super) fn is_long(&self) -> bool {
        self.text.len() > planning::SHORT_BYTES
    }

    /// Memory that it takes, about.
    pub fn bytes(&self) -> usize {
        self.own_bytes() + STATEMENT_BYTES + tokens::estimate(&self.text) * TOKEN_BYTES
    }

    /// Memory that it takes besides what is shared with others of its text or normal form.
    fn own_bytes(&self) -> usize {
        size_of::<Prepared>() + self.text.len()
    }

    /// What whoever keeps it holds: the first who does holds what is shared too.
    pub(super) fn bytes_to_keep(&self) -> usize {
        match self.is_held.swap(true, Relaxed) {
            true => self.own_bytes(),
            false => self.bytes(),
        }
    }

    /// How it runs under a version of the catalog, if that is known.
    pub(super) fn ready(&self, version: u64) -> Option<Ready> {
        self.ready.lock().as_ref().filter(|ready| ready.plan.version == version).cloned()
    }

    pub(super) fn keep(&self, ready: Ready) {
        *self.ready.lock() = Some(ready);
    }
}

/// What comes of lowering a statement that is right to a program.
enum Lowering {
    /// The program.
    Program(Box<Program>),
    /// No program can express the statement.
    Inexpressible,
    /// The program would be larger than programs may be; how, if queries cannot run the statement either.
    TooLarge(Error),
}

impl Program {
    fn lower(
        database: &Database,
        catalog: &Catalog,
        source: &ast::Statement,
        text: &Arc<Source>,
        types: &mut ParameterTypes,
        form: Option<&NormalForm>,
    ) -> Result<Lowering> {
        let lowered = match crate::plpgsql::lower_call(source, text, catalog, types, form)? {
            Some(call) => call,
            None => match bind::lower(source, text, catalog, types, form)? {
                Some(lowered) => lowered,
                None => return Ok(Lowering::Inexpressible),
            },
        };
        let statement = match database.statement(&lowered.definition) {
            // The text is right, so that this is one of the bounds that programs have and queries do not.
            Err(error) if error.state() == SqlState::PROGRAM_LIMIT => return Ok(Lowering::TooLarge(error)),
            statement => statement?,
        };
        Ok(Lowering::Program(Box::new(Program {
            lowered,
            statement,
            source: source.clone(),
            text: text.clone(),
            types: Vec::new(),
            has_own_clock: types.has_own_clock,
            variants: Mutex::default(),
        })))
    }

    /// The program for parameters of which these are null.
    pub fn for_nulls(
        self: &Arc<Self>,
        database: &Database,
        catalog: &Catalog,
        nulls: &[bool],
    ) -> Result<Arc<Program>> {
        if !nulls.contains(&true) {
            return Ok(self.clone());
        }
        let known = |nulls: &[bool]| {
            let variants = self.variants.lock();
            (variants.get(nulls).cloned(), variants.len())
        };
        let (found, count) = known(nulls);
        if let Some(found) = found {
            return Ok(found);
        }
        let any = vec![true; nulls.len()];
        if count < VARIANTS {
            return self.variant(database, catalog, nulls);
        }
        if let (Some(found), _) = known(&any) {
            return Ok(found);
        }
        // Not every statement can run without knowing: one that cannot is made again from time to time.
        self.variant(database, catalog, &any).or_else(|_| {
            self.variants.lock().clear();
            self.variant(database, catalog, nulls)
        })
    }

    /// Makes the program for parameters of which these may be null, and keeps it.
    fn variant(&self, database: &Database, catalog: &Catalog, nulls: &[bool]) -> Result<Arc<Program>> {
        let mut types = ParameterTypes::new(&self.types);
        for (index, _) in nulls.iter().enumerate().filter(|(_, is_null)| **is_null) {
            types.allow_null(index);
        }
        types.has_own_clock = self.has_own_clock;
        let made = match Program::lower(database, catalog, &self.source, &self.text, &mut types, None)? {
            Lowering::Program(made) => Arc::new(*made),
            Lowering::TooLarge(error) => return Err(error),
            Lowering::Inexpressible => {
                return Err(Error::new(SqlState::NOT_SUPPORTED, "null for this parameter is not supported"));
            }
        };
        self.variants.lock().insert(nulls.to_vec(), made.clone());
        Ok(made)
    }
}

impl From<Arc<Plan>> for Ready {
    /// For the text that the plan was made of.
    fn from(plan: Arc<Plan>) -> Ready {
        let literals = plan.recipes().iter().map(|recipe| recipe.value.clone()).collect();
        Ready { plan, literals }
    }
}

impl Plan {
    /// How arguments of its program come from literals of the text.
    fn recipes(&self) -> &[Recipe] {
        match &self.body {
            Body::Program(program) => &program.lowered.literals,
            _ => &[],
        }
    }

    /// A plan for what is neither program nor query.
    pub fn other(version: u64, parameters: Vec<SqlType>, columns: Option<Vec<OutputColumn>>) -> Arc<Plan> {
        Arc::new(Plan {
            version,
            parameters,
            columns,
            body: Body::Other,
            tables: Vec::new(),
            names: Vec::new(),
            writes: false,
        })
    }

    /// How `DO` runs.
    fn of_block(database: &Database, catalog: &Catalog, text: &str) -> Result<Arc<Plan>> {
        let lowered = crate::plpgsql::lower_do(text, catalog)?;
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
            tables: program.lowered.locks(catalog),
            names,
            writes,
            body: Body::Program(Arc::new(program)),
        }))
    }

    pub(super) fn of_write(catalog: &Catalog, write: WriteQuery, types: ParameterTypes) -> Arc<Plan> {
        let names = write.reads().chain(write.writes()).cloned().collect();
        let reads = write.reads().map(|name| (name, LockMode::AccessShare));
        let writes = write.writes().map(|name| (name, LockMode::RowExclusive));
        let tables = lock_keys(catalog, reads.chain(writes));
        Arc::new(Plan {
            version: catalog.version,
            parameters: types.finish(),
            columns: write.columns(),
            tables,
            names,
            writes: true,
            body: Body::WriteQuery(Box::new(write)),
        })
    }

    /// Whether it writes rows, and does not only delete some.
    pub(super) fn adds_rows(&self) -> bool {
        self.writes
            && match &self.body {
                Body::Program(program) => program.lowered.tag != "DELETE",
                Body::WriteQuery(write) => write.tag != "DELETE",
                // Their parts are looked at when they run.
                Body::WithWrites(_) | Body::SkipLocked(_) => false,
                _ => true,
            }
    }

    /// Tables that it reads.
    pub(super) fn reads(&self) -> Vec<ObjectName> {
        match &self.body {
            // What an INSERT reads are keys that it refers to.
            Body::Program(program) if program.lowered.tag == "INSERT" => Vec::new(),
            Body::Program(program) => program.lowered.reads.clone(),
            Body::Query(query) => query.reads.clone(),
            Body::WriteQuery(write) => {
                let found = write.query.reads.iter().filter(|name| write.key == 0 || **name != write.table);
                found.cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Tables that it changes.
    pub(super) fn changes(&self) -> Vec<ObjectName> {
        match &self.body {
            Body::Program(program) => program.lowered.writes.clone(),
            Body::WriteQuery(write) => vec![write.table.clone()],
            _ => Vec::new(),
        }
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
                return Plan::of_skip_locked(database, catalog, statement, given, session);
            }
        };
        if has_writes(statement) {
            return Plan::of_with_writes(database, catalog, (statement, None), given, session);
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
            .map_err(|error| crate::bind::wording::in_words(error, catalog));
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
                tables: lowered.locks(catalog),
                names,
                writes: !lowered.writes.is_empty(),
                body: Body::Program(Arc::new(*program)),
            }));
        }
        let error = match Plan::of_query(database, catalog, statement, given, session) {
            Ok(plan) => return Ok(plan),
            Err(error) => too_large.unwrap_or(error),
        };
        let is_beyond = [SqlState::NOT_SUPPORTED, SqlState::UNDEFINED_FUNCTION].contains(&error.state());
        if is_beyond && let Some((apart, tag)) = returning_apart(statement)? {
            let plan = Plan::of_with_writes(database, catalog, (&apart, Some(tag)), given, session);
            return plan.map_err(|_| error);
        }
        Err(error)
    }

    /// Finds how a statement runs that no program can express.
    fn of_query(
        database: &Database,
        catalog: &Arc<Catalog>,
        statement: &ast::Statement,
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        let mut types = ParameterTypes::new(given);
        types.has_own_clock = !session.text_style().is_usual();
        match statement {
            ast::Statement::Query(select) if written(select).is_some() => {
                let (with, write) = (select.with.as_ref(), written(select).unwrap_or(statement));
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
            ast::Statement::Merge(_) => Err(Error::new(SqlState::NOT_SUPPORTED, "MERGE is not supported")
                .with_hint("INSERT ... ON CONFLICT DO UPDATE and UPDATE ... FROM do most of what it does")),
            other => {
                let words: Vec<String> =
                    other.to_string().split_whitespace().take(1).map(str::to_string).collect();
                Err(Error::new(
                    SqlState::NOT_SUPPORTED,
                    format!("this form of {} is not supported", words.join(" ")),
                ))
            }
        }
    }
}

impl Lowered {
    /// How it locks its tables.
    fn locks(&self, catalog: &Catalog) -> Vec<(LockKey, LockMode)> {
        let read = self.row_lock.map_or(LockMode::AccessShare, |_| LockMode::RowShare);
        let reads = self.reads.iter().map(|name| (name, read));
        lock_keys(catalog, reads.chain(self.writes.iter().map(|name| (name, LockMode::RowExclusive))))
    }
}

/// The locks of tables by their names, each in its strongest mode, always in the same order.
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
            let index = crate::parameter_types::index_of(name).ok();
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

/// The `INSERT`, `UPDATE` or `DELETE` that stands behind a `WITH`.
fn written(query: &ast::Query) -> Option<&ast::Statement> {
    match query.body.as_ref() {
        ast::SetExpr::Insert(write) | ast::SetExpr::Update(write) | ast::SetExpr::Delete(write) => {
            Some(write)
        }
        _ => None,
    }
}

/// Statements that are ready to run: shared by connections whose catalogs say the same.
#[derive(Default)]
pub(super) struct PlanCache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_text: HashMap<String, Vec<Arc<Prepared>>>,
    by_form: HashMap<String, Vec<Arc<Template>>>,
    count: usize,
}

/// A statement that others of its normal form run as, if they differ in its free literals only.
struct Template {
    prepared: Arc<Prepared>,
    plan: Arc<Plan>,
    literals: Vec<Literal>,
}

impl PlanCache {
    /// A statement of this text under a version of the catalog.
    pub fn get(&self, version: u64, types: &[SqlType], text: &str) -> Option<Arc<Prepared>> {
        let kept = self.kept.lock();
        let mut found = kept.by_text.get(text)?.iter();
        found.find(|prepared| prepared.given == types && prepared.ready(version).is_some()).cloned()
    }

    /// A statement under a version of the catalog, by a text of a normal form that is known.
    pub fn get_alike(&self, version: u64, text: &str, form: &NormalForm) -> Option<Arc<Prepared>> {
        let templates = self.kept.lock().by_form.get(&form.text)?.clone();
        templates.iter().filter(|template| template.plan.version == version).find_map(|template| {
            let literals = bind::arguments(template.plan.recipes(), &template.literals, &form.literals)?;
            let ready = Ready { plan: template.plan.clone(), literals };
            let prepared = Prepared::new(text, template.prepared.command.clone(), &[], ready);
            // Its plan is the template's.
            prepared.is_held.store(true, Relaxed);
            Some(Arc::new(prepared))
        })
    }

    /// Keeps a statement: by its normal form if some of its literals are arguments, else by its text.
    pub fn put(&self, version: u64, prepared: &Arc<Prepared>, form: Option<NormalForm>) {
        let Some(Ready { plan, .. }) = prepared.ready(version) else { return };
        if prepared.text.len() > TEXT_BYTES {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.count >= PLANS {
            *kept = Kept::default();
        }
        kept.count += 1;
        let Some(form) = form.filter(|_| !plan.recipes().is_empty()) else {
            kept.by_text.entry(prepared.text.clone()).or_default().push(prepared.clone());
            return;
        };
        let prepared = prepared.clone();
        let templates = kept.by_form.entry(form.text).or_default();
        if templates.len() >= TEMPLATES {
            templates.remove(0);
        }
        templates.push(Arc::new(Template { prepared, plan, literals: form.literals }));
    }

    pub fn clear(&self) {
        *self.kept.lock() = Kept::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Connection, Response, SqlDatabase};
    use fabius::Options;
    use futures::StreamExt;

    /// Goal: however the nulls of its parameters change, a statement takes a bounded number of programs, and does
    /// what it says.
    #[tokio::test]
    async fn variants_are_bounded() {
        let database = Arc::new(Database::in_memory(Options::default()));
        let mut connection = Connection::new(SqlDatabase::open(database).await.unwrap(), "me");
        let types = vec![SqlType::Int; 7];
        let table = "CREATE TABLE t (k integer PRIMARY KEY, a integer, b integer, c integer, d integer, e integer, f integer)";
        let create = connection.prepare(table, &[]).await.unwrap();
        connection.execute(&create, &[]).await.map(drop).unwrap();
        let insert = "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let update = "UPDATE t SET a = $2, b = $3, c = $4, d = $5, e = $6, f = $7 WHERE k = $1";
        for text in [insert, update] {
            let prepared = connection.prepare(text, &types).await.unwrap();
            for pattern in 0..64 {
                let bit = |at: i32| if pattern >> at & 1 == 1 { Value::Null } else { Value::Int(at) };
                let parameters: Vec<Value> =
                    [Value::Int(pattern)].into_iter().chain((0..6).map(bit)).collect();
                connection.execute(&prepared, &parameters).await.map(drop).unwrap();
            }
            let version = connection.catalog().version;
            let ready = prepared.ready(version).expect("its plan");
            let Body::Program(program) = &ready.plan.body else { panic!("no program") };
            let count = program.variants.lock().len();
            assert!((1..=VARIANTS + 1).contains(&count), "{text}: {count}");
            let select = connection.prepare("SELECT a, b, c, d, e, f FROM t ORDER BY k", &[]).await.unwrap();
            let Response::Rows { rows, .. } = connection.execute(&select, &[]).await.unwrap() else {
                panic!("no rows")
            };
            let rows: Vec<_> = rows.map(|row| row.unwrap()).collect().await;
            for (pattern, row) in rows.iter().enumerate() {
                let bit = |at: i32| if pattern >> at & 1 == 1 { Value::Null } else { Value::Int(at) };
                assert_eq!(*row, (0..6).map(bit).collect::<Vec<_>>(), "{text}");
            }
            assert_eq!(rows.len(), 64);
        }
    }
}
