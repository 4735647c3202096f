//! Programs that are run without a name of the user's: statements, and transactions of them.
//!
//! A statement that only reads is never logged. One that writes is a procedure like any other, because the log
//! holds calls: it is defined the first time it runs by itself, under a name made of its text, so that whoever
//! defines the same text means the same procedure. It is dropped when it has not been used for long
//! ([`unnamed`](crate::unnamed)).

use crate::Database;
use crate::session::conventional::grain::Accesses;
use crate::session::conventional::waiting::{Guard, Waiter};
use crate::session::recall::{Recall, room};
use crate::session::recent::Recent;
use crate::session::requirement::Footing;
use crate::session::transaction_options::TransactionOptions;
use crate::session::wait::{Wait, waited_too_long};
use crate::session::wound_wait::{Age, Owner};
use crate::statement_id::StatementId;
use crate::unnamed::Use;
use fabius_engine::{Batch, BatchBuilder, Definitions, Priority, Procedure, entry};
use fabius_program::arguments;
use fabius_program::catalog::ProcedureId;
use fabius_program::ir::{Block, Program, StepKind};
use fabius_program::syntax::Source;
use fabius_program::syntax::tree::{Definition, DropDefinition, Dropped, Name, ProcedureDefinition};
use fabius_program::{compose, verify};
use fabius_value::{Error, Result, Seq, SqlState, TableId, Value};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

/// How often a task looks again for the lane, without sleeping, before it naps.
const LOOKS: u32 = 64;

/// How often a statement is defined again that other nodes drop.
const DEFINED_AGAIN: usize = 8;

/// How long it naps.
const NAP: Duration = Duration::from_micros(50);

/// A program, ready to be run.
pub struct Statement {
    id: StatementId,
    definition: ProcedureDefinition,
    text: String,
    /// Compiled under the definitions at that time; its number means nothing.
    procedure: Procedure,
    tables: BTreeSet<TableId>,
    writes: BTreeSet<TableId>,
    is_repeatable: bool,
    /// Which columns it may access, once somebody has asked.
    accesses: OnceLock<Accesses>,
    /// The procedure that the log knows, and that this statement stands for it.
    defined: RwLock<Option<(Arc<Procedure>, Use)>>,
}

/// Statements by their texts.
pub(crate) type Interned = Recent<String>;

/// What running a statement gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The statement's place in the order: a place of its own if it wrote, else that of the last call it has seen.
    pub seq: Seq,
    /// What it returned.
    pub results: Vec<Value>,
}

impl Statement {
    fn new(definition: &ProcedureDefinition, definitions: &Definitions) -> Result<Statement> {
        let mut definition = definition.clone();
        definition.name = Name::new("statement");
        let program = Arc::new(verify::procedure(&definition, &definitions.catalog)?);
        let procedure = Procedure::new(ProcedureId(u32::MAX), program, &definitions.catalog)?;
        let tables: BTreeSet<TableId> = procedure.program.rows.iter().map(|row| row.table).collect();
        // The same text may come to mean other tables of the same names.
        let meant = tables.iter().fold(definition.to_string(), |text, table| format!("{text} {}", table.0));
        let id = StatementId(fnv(meant.as_bytes()));
        definition.name = Name::new(id.name());
        let text = definition.to_string();
        let writes = written_tables(&procedure.program);
        let is_repeatable = compose::is_repeatable(&definition);
        let (accesses, defined) = (OnceLock::new(), RwLock::default());
        Ok(Statement { id, definition, text, procedure, tables, writes, is_repeatable, accesses, defined })
    }

    /// What tells it apart.
    pub fn id(&self) -> StatementId {
        self.id
    }

    /// What it was made of, under a name of its own.
    pub fn definition(&self) -> &ProcedureDefinition {
        &self.definition
    }

    /// The statement's text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The compiled program.
    pub fn procedure(&self) -> &Procedure {
        &self.procedure
    }

    /// Whether it writes nothing.
    pub fn is_read_only(&self) -> bool {
        self.procedure.is_read_only
    }

    /// Tables that it names.
    pub fn tables(&self) -> &BTreeSet<TableId> {
        &self.tables
    }

    /// Tables that it may write.
    pub fn writes(&self) -> &BTreeSet<TableId> {
        &self.writes
    }

    /// Whether runs of it, one after the other, can be a loop.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// Which columns it may access.
    pub(crate) fn accesses(&self, definitions: &Definitions) -> &Accesses {
        self.accesses.get_or_init(|| Accesses::of(&self.procedure.program, &definitions.catalog))
    }

    /// The encoded form of a call's arguments.
    ///
    /// # Errors
    /// Arguments that do not fit the parameters.
    pub(crate) fn encode(&self, arguments: &[Value]) -> Result<Vec<u8>> {
        arguments::encode(&self.procedure.program, arguments)
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("id", &format_args!("{}", self.id)).finish_non_exhaustive()
    }
}

impl Database {
    /// Verifies and compiles a program that is run without being stored under a name. Not logged.
    ///
    /// # Errors
    /// What the verifier finds wrong.
    pub fn statement(&self, definition: &ProcedureDefinition) -> Result<Arc<Statement>> {
        Ok(Arc::new(Statement::new(definition, &self.definitions())?))
    }

    /// A statement of a program that the database makes itself, again and again: it is kept.
    pub(crate) fn interned(&self, definition: &ProcedureDefinition) -> Result<Arc<Statement>> {
        let text = definition.to_string();
        let definitions = self.definitions();
        let known = self.sessions().interned.lock().get(&text);
        let means_the_same = |statement: &Arc<Statement>| {
            let mut tables = statement.tables.iter();
            tables.all(|table| {
                definitions.catalog.find_table(&definitions.table(*table).schema().name) == Some(*table)
            })
        };
        if let Some(statement) = known.filter(means_the_same) {
            return Ok(statement);
        }
        let statement = Arc::new(Statement::new(definition, &definitions)?);
        self.sessions().interned.lock().keep(text, statement.clone());
        Ok(statement)
    }

    /// A statement from the text form of its program: `procedure name(...) -> ... { ... }`; the name does not matter.
    ///
    /// # Errors
    /// What the parser and the verifier find wrong; `42601` if it is not one procedure.
    pub fn statement_text(&self, text: &str) -> Result<Arc<Statement>> {
        let definitions = fabius_program::syntax::parse(text, "statement")?;
        match definitions.as_slice() {
            [fabius_program::syntax::Definition::Procedure(definition)] => self.statement(definition),
            _ => Err(Error::new(SqlState::SYNTAX_ERROR, "a statement is one procedure")),
        }
    }

    /// Runs a statement as a transaction of its own: one that only reads on the newest promised state, one
    /// that writes as a call, with `key` as its idempotency key. Returns when its outcome is durable; what it
    /// returned is computed on this thread. Dropping the future does not take a call back that was handed in.
    ///
    /// # Errors
    /// Why it aborted: its own reasons, a constraint, its arguments; or why its outcome is not known.
    pub async fn run(
        &self,
        statement: &Statement,
        arguments: &[Value],
        key: Option<&[u8]>,
    ) -> Result<Outcome> {
        self.run_by(&Caller::default(), statement, arguments, key).await
    }

    /// Runs a statement by itself with a label, waiting for the locks of others as long as a transaction's settings
    /// say.
    ///
    /// # Errors
    /// As [`Database::run`]; `55P03` if others' locks were not gone in time: then it was not run.
    pub async fn run_as(
        &self,
        options: &TransactionOptions,
        statement: &Statement,
        arguments: &[Value],
        key: Option<&[u8]>,
    ) -> Result<Outcome> {
        self.run_by(&Caller::of(options), statement, arguments, key).await
    }

    pub(crate) async fn run_by(
        &self,
        caller: &Caller<'_>,
        statement: &Statement,
        arguments: &[Value],
        key: Option<&[u8]>,
    ) -> Result<Outcome> {
        if statement.is_read_only() {
            return self.read(statement, arguments, usize::MAX, caller.recall.as_ref()).await;
        }
        let Footing::State(requirement) = &caller.footing else {
            return self.call_statement(caller, statement, arguments, key).await;
        };
        let required = self.required(requirement, statement, arguments)?;
        let outcome = self.call_statement(caller, &required.program, &required.arguments, key).await;
        outcome.map_err(|error| required.of_statement(error))
    }

    /// Calls a statement that writes. Somebody else may have dropped its procedure, another node of a cluster above
    /// all, who had no use for it.
    async fn call_statement(
        &self,
        caller: &Caller<'_>,
        statement: &Statement,
        arguments: &[Value],
        key: Option<&[u8]>,
    ) -> Result<Outcome> {
        let bytes = statement.encode(arguments)?;
        for _ in 0..DEFINED_AGAIN {
            let procedure = self.define_statement(statement).await?;
            let outcome = self.call_encoded(caller, &procedure, &bytes, key).await;
            let is_gone = |error: &Error| {
                error.state() == SqlState::UNDEFINED_FUNCTION
                    && self.definitions().procedure(procedure.id).is_err_and(|gone| gone == *error)
            };
            match outcome {
                Err(error) if is_gone(&error) => *statement.defined.write() = None,
                outcome => return outcome,
            }
        }
        Err(Error::new(
            SqlState::UNDEFINED_FUNCTION,
            "the statement is dropped by others as often as it is defined",
        ))
    }

    /// Runs a statement that writes nothing on the newest state.
    ///
    /// # Errors
    /// Why it aborted; `53200` if its result would take more bytes than are allowed; what `recall` says if nobody waits
    /// for it any more.
    pub async fn read(
        &self,
        statement: &Statement,
        arguments: &[Value],
        bytes_max: usize,
        recall: Option<&Arc<Recall>>,
    ) -> Result<Outcome> {
        let encoded = statement.encode(arguments)?;
        let room = room(bytes_max, recall);
        let (seq, results) = self.engine().query_unanswered(statement.procedure(), &encoded, room);
        self.durable(seq).await?;
        Ok(Outcome { seq, results: results? })
    }

    /// The procedure that the log knows for a statement; defines it if there is none yet. In a cluster whoever leads
    /// does.
    ///
    /// # Errors
    /// What ended the log.
    pub(crate) async fn define_statement(&self, statement: &Statement) -> Result<Arc<Procedure>> {
        if let Some((procedure, _)) = &*statement.defined.read() {
            return Ok(procedure.clone());
        }
        let used = self.sessions().unnamed.hold(statement.id);
        let procedure = match self.defined(statement) {
            Some(procedure) => procedure,
            None => {
                let defined = self.define_unnamed(&statement.text).await;
                // Another thread, or another node, may have been faster.
                let not_defined = || Error::new(SqlState::UNDEFINED_FUNCTION, "a statement was not defined");
                self.defined(statement).ok_or_else(|| defined.err().unwrap_or_else(not_defined))?
            }
        };
        let drops = self.drops(&self.sessions().unnamed.take_tired());
        if !drops.is_empty() && self.define_unnamed(&drops.concat()).await.is_err() {
            // Some of them have gone meanwhile, with a table or by another node.
            for drop in &drops {
                let _ = self.define_unnamed(drop).await;
            }
        }
        *statement.defined.write() = Some((procedure.clone(), used));
        Ok(procedure)
    }

    /// The procedure that a statement is defined as, if it is.
    fn defined(&self, statement: &Statement) -> Option<Arc<Procedure>> {
        let definitions = self.definitions();
        let id = definitions.catalog.find_procedure(&statement.definition.name.text)?;
        let procedure = definitions.procedure(id).ok()?;
        (*procedure.program.text == *statement.text).then(|| procedure.clone())
    }

    /// The definitions that drop procedures of statements, as far as they are there: with a table go those that name
    /// it.
    fn drops(&self, statements: &[StatementId]) -> Vec<String> {
        let definitions = self.definitions();
        let names = statements.iter().map(|statement| statement.name());
        let there = names.filter(|name| definitions.catalog.find_procedure(name).is_some());
        there.map(|name| drop_procedure(&name)).collect()
    }

    /// Defines, or drops, what has no name of the user's; in a cluster whoever leads may have it agreed on.
    async fn define_unnamed(&self, definition: &str) -> Result<()> {
        let Some(agreed) = &self.agreed else { return self.engine().define(definition) };
        let batch = agreed.amend_anywhere(&entry::encode_definition(definition));
        self.complete(&batch).await;
        batch.outcome(0)
    }

    /// Lets the procedures rest that statements were defined as before the database was opened.
    pub(crate) fn recall_unnamed(&self) {
        let definitions = self.definitions();
        let named = definitions.catalog.procedures().map(|(_, program)| &program.name);
        for statement in named.filter_map(|name| StatementId::of_name(name)) {
            drop(self.sessions().unnamed.hold(statement));
        }
    }

    /// Calls a procedure with encoded arguments; its results come with the outcome.
    pub(crate) async fn call_encoded(
        &self,
        caller: &Caller<'_>,
        procedure: &Procedure,
        arguments: &[u8],
        key: Option<&[u8]>,
    ) -> Result<Outcome> {
        let locks = match caller.is_conventional || caller.footing.is_anywhere() {
            true => None,
            false => self.lock_for_call(caller.waiter(), procedure, arguments).await?,
        };
        let mut builder = BatchBuilder::with_capacity(arguments.len() + 64).with_priority(caller.priority);
        let wants_result = !procedure.program.results.is_empty();
        builder.push(procedure.id, arguments, key, wants_result)?;
        let batch = builder.build();
        if self.admit(batch.clone(), caller, locks.as_ref().map(Guard::age)) {
            self.complete(&batch).await;
        } else {
            self.admitted(&batch, caller.lock_timeout).await;
        }
        if let Some(recall) = &caller.recall {
            recall.settle();
        }
        batch.outcome(0)?;
        let seq = batch.outcomes().first_seq.unwrap_or_default();
        if !caller.label.is_empty() {
            self.sessions().committers.lock().note(seq, caller.label);
        }
        let results = match batch.ticket(0) {
            Some(ticket) => self.resolve(&ticket)?,
            None => Vec::new(),
        };
        Ok(Outcome { seq, results })
    }

    /// Returns when a batch is complete. This thread lends itself to the engine until the batch is decided;
    /// for the log it does not wait.
    pub(crate) async fn complete(&self, batch: &Batch) {
        // What is agreed on elsewhere this thread cannot hurry.
        if self.agreed.is_none() {
            self.decide(batch);
        }
        poll_fn(|context| match batch.poll_complete(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Returns when a batch is complete that may have been held back; whoever admits it runs it. It is taken
    /// back after the timeout, and when the future is dropped, if it is still held back.
    pub(crate) async fn admitted(&self, batch: &Arc<Batch>, timeout: Option<Duration>) {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let waiting = HeldBack { database: self, batch };
        let mut is_set = false;
        poll_fn(|context| {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.withdraw(batch, waited_too_long);
            } else if let Some(deadline) = deadline.filter(|_| !is_set) {
                is_set = true;
                self.sessions().alarm.at(deadline, context.waker().clone());
            }
            if batch.poll_complete(context.waker()) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        drop(waiting);
    }

    /// Lends this thread to the engine until a batch is decided, which somebody else may be doing.
    pub(crate) fn decide(&self, batch: &Batch) {
        let mut looks = 0;
        while !batch.is_decided() {
            if self.engine().admit() {
                looks = 0;
            } else if looks < LOOKS {
                looks += 1;
                std::thread::yield_now();
            } else {
                batch.wait(NAP);
            }
        }
    }

    /// Returns when callers may be told of what has this seq.
    ///
    /// # Errors
    /// What ended the log.
    pub(crate) async fn durable(&self, seq: Seq) -> Result<()> {
        if self.foundation().is_durable(seq) {
            return Ok(());
        }
        // A batch without calls is complete as soon as the log is that far.
        let nothing = BatchBuilder::new().build();
        self.foundation().decided(seq, nothing.clone());
        self.complete(&nothing).await;
        let failure = nothing.outcomes().failure.clone();
        failure.map_or(Ok(()), Err)
    }
}

/// Who runs a statement.
#[derive(Default)]
pub(crate) struct Caller<'c> {
    /// What errors and listings call it.
    pub(crate) label: &'c str,
    /// How long it waits for the locks of others.
    pub(crate) lock_timeout: Option<Duration>,
    /// What its own locks are held as.
    pub(crate) owner: Option<Arc<Owner>>,
    /// Whether it has locked what it writes as a conventional transaction does.
    pub(crate) is_conventional: bool,
    /// Whether its call can still be taken back.
    pub(crate) recall: Option<Arc<Recall>>,
    /// What its calls stand on.
    pub(crate) footing: Footing,
    /// How urgent they are.
    pub(crate) priority: Priority,
}

impl<'c> Caller<'c> {
    /// How it waits for the locks of conventional transactions.
    fn waiter(&self) -> Waiter<'_> {
        let age = self.owner.as_ref().map(|owner| Age(owner.age));
        Waiter { label: self.label, age, timeout: self.lock_timeout }
    }

    /// Who has these settings.
    pub(crate) fn of(options: &'c TransactionOptions) -> Caller<'c> {
        Caller {
            label: &options.label,
            lock_timeout: options.lock_timeout,
            owner: None,
            is_conventional: false,
            recall: options.recall.clone(),
            footing: options.footing.clone(),
            priority: options.priority,
        }
    }
}

/// A batch that somebody waits for.
struct HeldBack<'d> {
    database: &'d Database,
    batch: &'d Arc<Batch>,
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        if !self.batch.is_complete() {
            let reason = |_: &Wait| Error::new(SqlState::CANCELED, "gave up waiting for a lock");
            self.database.withdraw(self.batch, reason);
        }
    }
}

fn drop_procedure(name: &str) -> String {
    let source = Arc::new(Source::new("", ""));
    Definition::Drop(DropDefinition { source, what: Dropped::Procedure, name: Name::new(name) }).to_string()
}

/// FNV-1a with 128 bits: the same in every build, because names of procedures are made of it.
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// The tables that a program may write.
pub(crate) fn written_tables(program: &Program) -> BTreeSet<TableId> {
    fn walk(program: &Program, block: &Block, tables: &mut BTreeSet<TableId>) {
        for step in block {
            match &step.kind {
                StepKind::Insert { row, .. } | StepKind::Update { row, .. } | StepKind::Delete { row } => {
                    tables.extend(program.rows.get(usize::from(row.0)).map(|row| row.table));
                }
                StepKind::If { then, otherwise, .. } => {
                    walk(program, then, tables);
                    walk(program, otherwise, tables);
                }
                StepKind::ForList { body, .. }
                | StepKind::ForRange { body, .. }
                | StepKind::ForScan { body, .. } => walk(program, body, tables),
                _ => {}
            }
        }
    }
    let mut tables = BTreeSet::new();
    walk(program, &program.body, &mut tables);
    tables
}
