//! How a statement runs, under one version of the catalog.

use super::explain_options::Wanted;
use super::merge::Merge;
use super::write_query::WriteQuery;
use crate::lock::{LockKey, LockMode};
use fabius::{Database, Statement};
use fabius_program::syntax::Source;
use fabius_sql_meaning::catalog::{Catalog, ConstraintId, ObjectName};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_program::bind::{self, Recipe};
use fabius_sql_program::lowered::Lowered;
use fabius_sql_program::plpgsql;
use fabius_sql_query::QueryPlan;
use fabius_sql_syntax::normal_form::NormalForm;
use fabius_value::{Error, Result, SqlState, Value};
use parking_lot::Mutex;
use sqlparser::ast;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Programs of one statement that are kept for parameters of which some are null, at most; those with yet other
/// nulls run as one.
pub(super) const VARIANTS: usize = 16;

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
    /// What a query gives is merged with a table.
    Merge(Box<Merge>),
    /// Common table expressions write first.
    WithWrites(Box<WithWrites>),
    /// Rows that are locked are passed over.
    SkipLocked(Box<SkipLocked>),
    /// What `EXPLAIN` shows.
    Explanation(Explanation),
    /// Something else: what [`Command`](fabius_sql_syntax::Command) says.
    Other,
}

/// A statement as a program.
pub(super) struct Program {
    pub lowered: Lowered,
    pub statement: Arc<Statement>,
    pub(super) source: ast::Statement,
    pub(super) text: Arc<Source>,
    pub(super) types: Vec<SqlType>,
    /// See [`ParameterTypes::has_own_clock`].
    pub(super) has_own_clock: bool,
    /// The programs for parameters of which some are null: which, as bits.
    pub(super) variants: Mutex<HashMap<Vec<bool>, Arc<Program>>>,
}

/// An `EXPLAIN` and what it is about.
pub(super) struct Explanation {
    pub wanted: Wanted,
    pub subject: Arc<Plan>,
}

/// A statement whose common table expressions write.
pub(super) struct WithWrites {
    /// What runs, one after the other.
    pub(super) parts: Vec<Part>,
    /// References that wait until all parts have run.
    pub(super) references: BTreeSet<ConstraintId>,
    /// Tables that its parts read.
    pub(super) reads: Vec<ObjectName>,
    /// The part whose rows are those of the statement, if that is not the last: it asks first what others change.
    pub(super) answering: Option<usize>,
    /// The tag, if not that of the last part.
    pub(super) tag: Option<&'static str>,
}

/// A part of a statement.
pub(super) struct Part {
    pub(super) plan: Arc<Plan>,
    /// What parts behind it know its rows by.
    pub(super) number: u64,
}

/// A statement with `SKIP LOCKED`.
pub(super) struct SkipLocked {
    /// How it runs when nothing that it wants is locked.
    pub(super) direct: Arc<Plan>,
    pub(super) how: How,
}

/// How rows are passed over.
pub(super) enum How {
    /// It is a query that skips.
    Query(Box<Choice>),
    /// Queries within it skip.
    Within(Box<Filled>),
}

/// A query that skips rows, taken apart.
pub(super) struct Choice {
    /// Keys of the rows in their order; how many at most is behind the statement's own parameters, if there is a bound.
    pub(super) candidates: Arc<Plan>,
    /// The query for one row; the key is behind the statement's own parameters.
    pub(super) row: Arc<Plan>,
    /// `SELECT limit, offset`
    pub(super) bounds: Option<Arc<Plan>>,
}

/// A statement within which queries skip rows. They run first.
pub(super) struct Filled {
    /// The queries in their order, and what their rows are to the statement.
    pub(super) queries: Vec<(Part, Rows)>,
    pub(super) statement: ast::Statement,
    pub(super) text: String,
    /// How the statement runs with their rows, by how many there are in lists.
    pub(super) plans: Mutex<HashMap<Vec<usize>, Arc<Plan>>>,
}

/// What rows that were found before are to a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// `(SELECT ...)`: a parameter.
    Value,
    /// `IN (SELECT ...)`: parameters.
    List,
    /// `FROM (SELECT ...)`, `WITH`: a relation.
    Relation,
}

/// What a statement's arguments are made of.
#[derive(Clone, Copy, Default)]
pub(super) struct Given<'a> {
    /// The client's parameters.
    pub parameters: &'a [Value],
    /// The text's literals, as far as they are arguments.
    pub literals: &'a [Value],
    /// The text, if a result that is large may come as that of a query.
    pub text: Option<&'a str>,
}

/// What comes of lowering a statement that is right to a program.
pub(super) enum Lowering {
    /// The program.
    Program(Box<Program>),
    /// No program can express the statement.
    Inexpressible,
    /// The program would be larger than programs may be; how, if queries cannot run the statement either.
    TooLarge(Error),
}

impl Program {
    pub(super) fn lower(
        database: &Database,
        catalog: &Catalog,
        source: &ast::Statement,
        text: &Arc<Source>,
        types: &mut ParameterTypes,
        form: Option<&NormalForm>,
    ) -> Result<Lowering> {
        let lowered = match plpgsql::lower_call(source, text, catalog, types, form)? {
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
    pub(super) fn recipes(&self) -> &[Recipe] {
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

    /// Whether it writes rows, and does not only delete some.
    pub(super) fn adds_rows(&self) -> bool {
        self.writes
            && match &self.body {
                Body::Program(program) => program.lowered.tag != "DELETE",
                Body::WriteQuery(write) => write.tag != "DELETE",
                Body::Merge(merge) => merge.adds_rows(),
                // Their parts are looked at when they run.
                Body::WithWrites(_) | Body::SkipLocked(_) => false,
                _ => true,
            }
    }

    /// Tables that it reads: to change their rows, or for keys that refer to them, too.
    pub(super) fn reads(&self) -> Vec<ObjectName> {
        match &self.body {
            Body::Program(program) => program.lowered.reads.clone(),
            Body::Query(query) => query.reads.clone(),
            Body::WriteQuery(write) => write.found_in().cloned().collect(),
            Body::Merge(merge) => merge.query.reads.clone(),
            Body::WithWrites(all) => all.reads.clone(),
            Body::SkipLocked(plan) => plan.direct.reads(),
            _ => Vec::new(),
        }
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
