//! Programs and queries: arguments in, rows out.

use super::numbers::row_numbers_of;
use super::open_transaction::{Moment, ended};
use super::plan::{Body, Given, Plan, Program, Ready};
use super::prepared::Prepared;
use super::result::Small;
use super::row_lock::submit_locking;
use super::stance::Stance;
use super::transaction::redefined;
use super::{Connection, Response};
use crate::lock::{LockKey, LockMode, Patience};
use fabius_sql_meaning::catalog::Table;
use fabius_sql_meaning::catalog::{Catalog, ObjectName};
use fabius_sql_meaning::conversion;
use fabius_sql_meaning::output::{OutputColumn, RowLock};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit};
use fabius_sql_planning as planning;
use fabius_sql_program::lowered::Argument;
use fabius_sql_query as query;
use fabius_sql_syntax::part;
use fabius_sql_syntax::{self as syntax, Command};
use fabius_value::{Error, Result, SqlState, Value};
use std::sync::Arc;

/// How often a statement is planned anew because what it uses was redefined while it waited.
const ATTEMPTS: usize = 20;

/// How often a statement by itself, whose rows a query finds, runs again because others were faster; then it keeps
/// others from writing.
const CONFLICTS: usize = 3;

/// How often it runs again on a node that does not lead its cluster.
const CONFLICTS_ELSEWHERE: usize = 30;

/// A session's small writes, of which one asks whether there is room for rows.
const WRITES_UNASKED: u32 = 16;

/// A materialized view has no rows to be read before it has been refreshed.
fn refuse_unpopulated(catalog: &Catalog, names: &[ObjectName]) -> Result<()> {
    if catalog.unpopulated.is_empty() {
        return Ok(());
    }
    match names.iter().find(|name| catalog.unpopulated.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("materialized view \"{}\" has not been populated", name.name);
            Err(Error::new(SqlState(*b"55000"), message)
                .with_hint("Use the REFRESH MATERIALIZED VIEW command."))
        }
    }
}

impl Connection {
    /// Runs a statement of rows.
    pub(super) async fn answer(
        &mut self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
    ) -> Result<Response> {
        let is_alone = self.session.reads_the_past() && self.begin_alone();
        let outcome = self.answer_until_settled(prepared, parameters).await;
        match self.end_alone(is_alone, outcome).await {
            Err(error) if !is_alone && self.is_of_deferred(&error) => {}
            outcome => return outcome,
        }
        Box::pin(self.answer_as_transaction(prepared, parameters)).await
    }

    /// Runs a statement whose parts hurt what it may not hurt at its end.
    async fn answer_as_transaction(
        &mut self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
    ) -> Result<Response> {
        self.begin_within();
        let outcome = self.answer_until_settled(prepared, parameters).await;
        self.end_alone(true, outcome).await
    }

    /// Runs a statement; one by itself that others were faster than runs again.
    async fn answer_until_settled(
        &mut self,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
    ) -> Result<Response> {
        let mut conflicts = 0;
        loop {
            let is_alone = self.transaction.is_idle();
            let least = match conflicts < CONFLICTS {
                true => LockMode::AccessShare,
                false => LockMode::ShareRowExclusive,
            };
            let (catalog, ready) = self.hold_plan(prepared, least).await?;
            let given = Given { parameters, literals: &ready.literals, text: Some(&prepared.text) };
            let outcome = self.perform(&catalog, &ready.plan, given).await;
            self.release_statement_locks();
            let error = match outcome {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if self.has_lost_ground(&catalog, &error).await? {
                match is_alone {
                    true => continue,
                    false => return Err(redefined()),
                }
            }
            // Where a node does not lead it cannot keep the others from writing, and tries more often instead.
            let conflicts_max = if self.stands_elsewhere() { CONFLICTS_ELSEWHERE } else { CONFLICTS };
            let is_found_by_query = matches!(
                ready.plan.body,
                Body::WriteQuery(_) | Body::Merge(_) | Body::WithWrites(_) | Body::SkipLocked(_)
            );
            if !(is_alone
                && is_found_by_query
                && error.state() == SqlState::SERIALIZATION_FAILURE
                && conflicts < conflicts_max)
            {
                return Err(error);
            }
            if self.stands_elsewhere() {
                self.database.come_up_to_date(false).await?;
            }
            conflicts += 1;
        }
    }

    /// Finds a statement's plan, and takes the locks that it needs, in no weaker mode than `least`.
    pub(super) async fn hold_plan(
        &mut self,
        prepared: &Arc<Prepared>,
        least: LockMode,
    ) -> Result<(Arc<Catalog>, Ready)> {
        for _ in 0..ATTEMPTS {
            let is_alone = self.transaction.is_idle();
            if is_alone {
                self.execution.stance = Stance::now(&self.database).await?;
            }
            let catalog = self.catalog();
            let ready = match prepared.ready(catalog.version) {
                Some(ready) => ready,
                None => {
                    // Its command may have the literals of another text.
                    let command = planning::read(&self.session.memory, &prepared.text, syntax::parse).await?;
                    let command = Arc::new(command);
                    let plan = Box::pin(self.plan(&command, (&prepared.text, None), &prepared.given)).await?;
                    let types = |columns: &Option<Vec<OutputColumn>>| {
                        columns
                            .as_ref()
                            .map(|columns| columns.iter().map(|c| c.sql_type.clone()).collect::<Vec<_>>())
                    };
                    if types(&plan.columns) != types(&prepared.columns) {
                        return Err(Error::new(
                            SqlState::NOT_SUPPORTED,
                            "cached plan must not change result type",
                        ));
                    }
                    let ready = Ready::from(plan);
                    prepared.keep(ready.clone());
                    ready
                }
            };
            self.refuse_elsewhere(&ready.plan)?;
            // Who does not lead keeps nobody from anything.
            let least = if self.stands_elsewhere() { LockMode::AccessShare } else { least };
            for (key, mode) in &ready.plan.tables {
                self.lock_all(std::slice::from_ref(key), least.max(*mode)).await?;
            }
            let stands = if is_alone && ready.plan.writes {
                self.understand(&catalog);
                self.find_requirement().await?
            } else {
                true
            };
            if !stands {
                self.database.come_up_to_date(false).await?;
            } else if self.catalog().version == catalog.version {
                self.stand_in_the_past(&catalog, &ready.plan.names).await?;
                self.refuse_redefined(&catalog, &ready.plan.names)?;
                refuse_unpopulated(&catalog, &ready.plan.names)?;
                return Ok((catalog, ready));
            }
            self.release_statement_locks();
        }
        Err(Error::new(SqlState(*b"40001"), "the tables are being redefined").with_hint("try again"))
    }

    /// A transaction reads at one moment: what others have redefined since cannot be read there.
    fn refuse_redefined(&mut self, catalog: &Arc<Catalog>, names: &[ObjectName]) -> Result<()> {
        self.understand(catalog);
        let Some(open) = self.transaction.get_mut() else { return Ok(()) };
        let before = match &open.moment {
            Moment::Open => {
                open.moment = Moment::Fixed(Some(catalog.clone()));
                return Ok(());
            }
            Moment::Fixed(None) => return Ok(()),
            Moment::Fixed(Some(before)) => before,
        };
        for name in names {
            let (then, now) = (before.tables.get(name), catalog.tables.get(name));
            let is_own =
                now.is_some_and(|table| open.changes.iter().any(|change| change.row == i64::from(table.oid)));
            let storage = |table: Option<&Arc<Table>>| table.map(|table| table.storage.clone());
            if storage(then) != storage(now) && !is_own && !name.schema.starts_with("pg_temp") {
                return Err(Error::new(
                    SqlState::SERIALIZATION_FAILURE,
                    "could not serialize access due to a concurrent change of the table's definition",
                )
                .with_detail(format!("table {name} was redefined after the transaction began"))
                .with_hint("the transaction might succeed if retried"));
            }
        }
        Ok(())
    }

    /// Takes locks in one mode: until the transaction ends, or else the statement.
    pub(crate) async fn lock_all(&mut self, keys: &[LockKey], mode: LockMode) -> Result<()> {
        let patience = self.session.settings.lock_timeout().map_or(Patience::Unbounded, Patience::For);
        for key in keys {
            self.lock(key, mode, patience).await?;
        }
        Ok(())
    }

    /// Takes a lock.
    pub(crate) async fn lock(&mut self, key: &LockKey, mode: LockMode, patience: Patience) -> Result<bool> {
        if mode.excludes_writers() {
            self.need_lead("lock tables so that others wait")?;
        }
        if let Some(ground) = self.ground() {
            ground.lock(key, mode);
            return Ok(false);
        }
        let waited = self.database.locks.acquire(self.session.process, key, mode, patience).await?;
        let locks = self.transaction.get_mut().map_or(&mut self.execution.locks, |open| &mut open.locks);
        if !locks.contains(key) {
            locks.push(key.clone());
        }
        if let (Some(closed), Some(term)) = (&self.database.closed, self.stance().term()) {
            closed.close(key, mode, self.session.process, term).await?;
        }
        Ok(waited)
    }

    pub(super) fn release_statement_locks(&mut self) {
        if !self.execution.locks.is_empty() {
            self.database.release_locks(self.session.process, &self.execution.locks);
            self.execution.locks.clear();
        }
    }

    pub(super) async fn perform(
        &mut self,
        catalog: &Arc<Catalog>,
        plan: &Plan,
        given: Given<'_>,
    ) -> Result<Response> {
        let parameters = given.parameters;
        let reads_only = || self.session.settings.reads_only();
        if plan.writes && self.transaction.get().map_or_else(reads_only, |open| open.is_read_only) {
            let what = match &plan.body {
                Body::Program(program) => program.lowered.tag,
                Body::WriteQuery(write) => write.tag.trim_end_matches(" 0"),
                Body::Merge(_) => "MERGE",
                _ => "INSERT",
            };
            return Err(self.refuse_to_write(what));
        }
        if plan.adds_rows() {
            self.refuse_rows(given)?;
        }
        if parameters.len() < plan.parameters.len() {
            let message = format!("there is no parameter ${}", parameters.len() + 1);
            return Err(Error::new(SqlState(*b"42P02"), message));
        }
        // What is large is boxed: a session that waits has room for the largest of what stands in line here.
        match &plan.body {
            Body::Program(program) => {
                let nulls: Vec<bool> = parameters.iter().map(Value::is_null).collect();
                let program = program.for_nulls(self.database.database(), catalog, &nulls)?;
                let mut results =
                    match self.call_if_small(catalog, &program, (&plan.parameters, given)).await? {
                        Small::Results(results) => results,
                        Small::Rows(response) => return Ok(response),
                        Small::Unknown => self.call_program(catalog, &program, given).await?,
                    };
                if program.lowered.notices {
                    self.session.say(results.pop());
                }
                self.session.respond(&program.lowered, results)
            }
            Body::Query(query) => {
                let rows = Box::pin(self.rows_as_they_come(query, parameters)).await?;
                Ok(Response::Rows { columns: query.columns.clone(), rows, tag: "SELECT" })
            }
            Body::WriteQuery(write) => Box::pin(self.write_query(catalog, write, parameters)).await,
            Body::Merge(merge) => Box::pin(self.merge(catalog, merge, parameters)).await,
            Body::WithWrites(all) => Box::pin(self.perform_with_writes(all, parameters)).await,
            Body::SkipLocked(skipping) => Box::pin(self.perform_skip_locked(catalog, skipping, given)).await,
            Body::Explanation(explanation) => Box::pin(self.explain(catalog, explanation, given)).await,
            Body::Other => Err(Error::new(SqlState(*b"XX000"), "a statement without a plan")),
        }
    }

    /// Refuses a write where rows take too much memory. Finding out how much costs as much as a small write does: not
    /// each of them asks.
    ///
    /// # Errors
    /// `53200`
    fn refuse_rows(&mut self, given: Given<'_>) -> Result<()> {
        self.session.writes = self.session.writes.wrapping_add(1);
        let parameters = given.parameters.iter().map(Value::bytes).sum::<usize>();
        let is_large = given.text.map_or(0, str::len) + parameters > planning::SHORT_BYTES;
        match is_large || self.session.writes % WRITES_UNASKED == 1 {
            true => self.database.refuse_rows(),
            false => Ok(()),
        }
    }

    /// Runs a program in the transaction, or as one.
    pub(super) async fn call_program(
        &mut self,
        catalog: &Catalog,
        program: &Program,
        given: Given<'_>,
    ) -> Result<Vec<Value>> {
        let arguments = self.arguments(catalog, program, given).await?;
        self.call(catalog, (&program.lowered, &program.statement), arguments).await
    }

    pub(super) async fn arguments(
        &mut self,
        catalog: &Catalog,
        program: &Program,
        given: Given<'_>,
    ) -> Result<Vec<Value>> {
        let mut arguments = Vec::with_capacity(program.lowered.arguments.len());
        for argument in &program.lowered.arguments {
            arguments.push(self.argument(catalog, argument, given).await?);
        }
        Ok(arguments)
    }

    /// Runs a statement of the database beneath in the transaction, or as one.
    pub(crate) async fn submit(
        &mut self,
        statement: &Arc<fabius::Statement>,
        arguments: &[Value],
        row_lock: Option<RowLock>,
    ) -> Result<Vec<Value>> {
        if statement.is_read_only() && row_lock.is_none() && self.transaction.is_idle() {
            let (database, room) = (self.database.database(), self.session.memory.left());
            let outcome = database.read(statement, arguments, room, Some(&self.session.recall)).await;
            self.session.note_place(outcome.as_ref().ok().map(|outcome| outcome.seq), false);
            let outcome = outcome.map_err(|error| self.session.refusal(error))?;
            return Ok(outcome.results);
        }
        let options = self.options();
        if let Some(open) = self.transaction.get_mut() {
            open.fix_moment();
            let running = open.running.clone();
            let mut running = running.lock().await;
            let transaction = running.as_mut().ok_or_else(ended)?;
            *transaction.options_mut() = options;
            return submit_locking(transaction, statement, arguments, (row_lock, usize::MAX)).await;
        }
        if row_lock.is_some() {
            // Nothing is held when it is over, but what others hold is waited for.
            let mut transaction = self.database.database().begin(options);
            let results =
                submit_locking(&mut transaction, statement, arguments, (row_lock, usize::MAX)).await;
            self.session.note_place(transaction.seq(), false);
            return results;
        }
        let key = self.session.settings.idempotency_key();
        let key = key.as_deref().map(str::as_bytes);
        let outcome = self.database.database().run_as(&options, statement, arguments, key).await;
        let seq = outcome.as_ref().ok().map(|outcome| outcome.seq);
        self.session.note_place(seq, !statement.is_read_only());
        let outcome = outcome?;
        self.execution.has_committed = true;
        Ok(outcome.results)
    }

    pub(super) async fn argument(
        &mut self,
        catalog: &Catalog,
        argument: &Argument,
        given: Given<'_>,
    ) -> Result<Value> {
        Ok(match argument {
            Argument::Rows(rows) => {
                let width = rows.first().map_or(0, Vec::len);
                let mut values = vec![Vec::with_capacity(width); rows.len()];
                for field in 0..width {
                    if let Some(Argument::NextValue(name)) = rows.first().and_then(|row| row.get(field))
                        && let Some(table) = row_numbers_of(name)
                    {
                        let first = self.database.sequences.row_numbers(table, rows.len()).await?;
                        for (at, row) in values.iter_mut().enumerate() {
                            row.push(Value::BigInt(first + at as i64));
                        }
                        continue;
                    }
                    for (row, arguments) in values.iter_mut().zip(rows) {
                        let argument = arguments.get(field).unwrap_or(&Argument::Constant(Value::Null));
                        row.push(self.scalar(catalog, argument, given).await?);
                    }
                }
                Value::List(values)
            }
            Argument::Set(rows) => {
                let mut values = Vec::with_capacity(rows.len());
                for row in rows {
                    let mut fields = Vec::with_capacity(row.len());
                    for argument in row {
                        fields.push(self.scalar(catalog, argument, given).await?);
                    }
                    values.push(fields);
                }
                Value::List(as_set(values))
            }
            Argument::Elements(index) => match given.parameters.get(*index) {
                Some(Value::List(elements)) => Value::List(as_set(elements.clone())),
                _ => Value::List(Vec::new()),
            },
            scalar => self.scalar(catalog, scalar, given).await?,
        })
    }

    async fn scalar(&mut self, catalog: &Catalog, argument: &Argument, given: Given<'_>) -> Result<Value> {
        Ok(match argument {
            Argument::Parameter(index) => given.parameters.get(*index).cloned().unwrap_or_default(),
            Argument::Literal(index) => given.literals.get(*index).cloned().unwrap_or_default(),
            Argument::Constant(value) => value.clone(),
            Argument::TransactionTime => Value::Timestamp(self.transaction_us()),
            Argument::NextValue(name) => Value::BigInt(match row_numbers_of(name) {
                Some(table) => self.database.sequences.row_numbers(table, 1).await?,
                None => self.next_value(catalog, name).await?,
            }),
            Argument::Random => {
                let bits = uuid::Uuid::new_v4().as_u128() as u64 & ((1 << 53) - 1);
                Value::Double(bits as f64 / (1u64 << 53) as f64)
            }
            Argument::RandomUuid => Value::Bytea(uuid::Uuid::new_v4().into_bytes().to_vec()),
            Argument::Computed(text, sql_type) => Box::pin(self.computed(text, sql_type)).await?,
            Argument::Seed => Value::BigInt(uuid::Uuid::new_v4().as_u128() as i64),
            // Given when the program runs.
            Argument::Reserved => Value::BigInt(0),
            Argument::Rows(_) | Argument::Set(_) | Argument::Elements(_) => {
                return Err(Error::new(SqlState(*b"XX000"), "a list within a list of arguments"));
            }
        })
    }

    /// What an expression of the catalog gives.
    async fn computed(&mut self, text: &str, sql_type: &SqlType) -> Result<Value> {
        let (catalog, session) = (self.catalog(), self.session_facts());
        let select = part::query(&format!("SELECT {text}"))?;
        let query = query::plan(&select, &catalog, &mut ParameterTypes::default(), &session)?;
        let rows = self.rows_of(&query, &[]).await?.rows;
        let value = rows.into_iter().flatten().next().unwrap_or_default();
        let value = match query.columns.first() {
            Some(column) if column.sql_type != *sql_type => {
                conversion::convert(&value, &column.sql_type, sql_type, &self.text_style(), Fit::Store)?
            }
            _ => value,
        };
        Ok(text_format::kept(value, sql_type))
    }

    /// `nextval`
    pub(super) async fn next_value(&mut self, catalog: &Catalog, name: &ObjectName) -> Result<i64> {
        let sequence = catalog.sequences.get(name).cloned().ok_or_else(|| {
            Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", name.name))
        })?;
        if !self.transaction.is_idle() {
            // Its statements see its snapshot; numbers are the newest all the same.
            self.database.come_up_to_date(false).await?;
        }
        let value = self.database.sequences.next(&sequence).await?;
        self.session.numbers.note(sequence.oid, value);
        Ok(value)
    }

    /// When the transaction began, or the statement if there is none.
    pub(super) fn transaction_us(&self) -> i64 {
        self.transaction.get().map_or(self.execution.began_us, |open| open.began_us)
    }

    /// What queries ask about the session, as it is now.
    pub(crate) fn session_facts(&mut self) -> Arc<dyn SessionFacts> {
        self.session.keep_given();
        let transaction_settings = self.transaction_settings();
        let roles = self.roles();
        let name = |role| self.session.login.name(role, &roles);
        let users = (name(self.session.role_among(&roles)), name(self.session.session_role(&roles)));
        let mut now = self.session.facts.now.lock();
        now.search_path = self.session.settings.search_path(&users.0);
        now.users = users;
        (now.transaction_us, now.statement_us) = (self.transaction_us(), self.execution.began_us);
        now.settings = self.session.settings.clone();
        now.transaction_settings = transaction_settings;
        now.sequences = (self.session.numbers.values.clone(), self.session.numbers.last);
        drop(now);
        self.session.facts.clone()
    }

    /// Whether a command is a statement of rows.
    pub(super) fn is_of_rows(command: &Command) -> bool {
        use sqlparser::ast::Statement as S;
        match command {
            Command::Sql(statement) => matches!(
                **statement,
                S::Query(_)
                    | S::Insert(_)
                    | S::Update(_)
                    | S::Delete(_)
                    | S::Merge(_)
                    | S::Explain { .. }
                    | S::Call(_)
            ),
            _ => false,
        }
    }
}

/// Rows without nulls, in order, each once.
fn as_set(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.retain(|row| !row.iter().any(Value::is_null));
    rows.sort_by(|a, b| {
        let fields = a.iter().zip(b);
        fields.map(|(a, b)| order(a, b)).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    rows.dedup();
    rows
}

fn order(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bytea(a), Value::Bytea(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (Value::Numeric(a), Value::Numeric(b)) if a.scale == b.scale => a.mantissa.cmp(&b.mantissa),
        _ => match (a.as_integer(), b.as_integer()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.to_string().cmp(&b.to_string()),
        },
    }
}
