//! Who answers which command.

use super::cursor::Declaration;
use super::plan::{Body, Plan};
use super::plan_cache::TEXT_BYTES;
use super::prepared::Prepared;
use super::result::rows_response;
use super::stance::Stance;
use super::{Connection, Response};
use fabius_sql_meaning::analysis::misplaced;
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_planning as planning;
use fabius_sql_syntax::normal_form::NormalForm;
use fabius_sql_syntax::{self as syntax, Command};
use fabius_value::{Result, Value};
use std::sync::Arc;

/// A column that comes from nowhere.
pub(super) fn text_column(name: &str) -> OutputColumn {
    OutputColumn { name: name.into(), sql_type: SqlType::Text, origin: (0, 0) }
}

impl Connection {
    /// Makes one statement ready to run. `types` are those that the client gives for `$1`, `$2`, ...;
    /// [`SqlType::Unknown`] leaves one to be found.
    ///
    /// # Errors
    /// What is wrong with the statement.
    pub async fn prepare(&mut self, text: &str, types: &[SqlType]) -> Result<Arc<Prepared>> {
        self.come_up_to_date(text).await?;
        let prepared = self.find_prepared(text, types).await;
        if prepared.is_err() {
            self.fail();
        }
        prepared
    }

    /// In a cluster, what a statement sees is the newest of the time when the client sent it, or what this node has
    /// if the session reads snapshots. In a transaction that has run something it is what the transaction sees, but
    /// for definitions and for numbers of sequences, which are the node's newest. Settings are the node's own:
    /// whether it leads is told also by one that is cut off.
    async fn come_up_to_date(&mut self, text: &str) -> Result<()> {
        if is_about_settings(text) {
            // It may be about what is read from here on.
            self.session.is_up_to_date = false;
            return Ok(());
        }
        let has_run = self.transaction.has_run();
        if !self.session.is_up_to_date {
            self.database.come_up_to_date(has_run || self.session.settings.reads_snapshot()).await?;
            // Behind the transaction's end, the same message may ask for the newest.
            self.session.is_up_to_date = !has_run;
        }
        Ok(())
    }

    async fn find_prepared(&mut self, text: &str, types: &[SqlType]) -> Result<Arc<Prepared>> {
        let text = text.trim();
        let catalog = self.catalog();
        let is_failed = self.transaction.refuse_if_failed().is_err();
        // A plan reads literals as the session does that has made it.
        let is_usual = self.session.settings.style().is_usual();
        let is_looked_for = is_usual && !is_failed;
        let plans = &self.database.plans;
        if let Some(found) = plans.get(catalog.version, types, text).filter(|_| is_looked_for) {
            return Ok(found);
        }
        let has_form = is_usual && types.is_empty() && text.len() <= TEXT_BYTES;
        let form = if has_form { NormalForm::of(text) } else { None };
        if let Some(form) = form.as_ref().filter(|_| is_looked_for)
            && let Some(found) = plans.get_alike(catalog.version, text, form)
        {
            return Ok(found);
        }
        let command = Arc::new(planning::read(&self.session.memory, text, parsed).await?);
        if !ends_transaction(&command) {
            self.transaction.refuse_if_failed()?;
        }
        let plan = Box::pin(self.plan(&command, (text, form.as_ref()), types)).await?;
        // Queries know the session that they were planned for.
        let knows_session = matches!(plan.body, Body::Query(_) | Body::WriteQuery(_) | Body::Merge(_));
        let is_shared = is_usual && Connection::is_of_rows(&command) && !knows_session;
        let prepared = Arc::new(Prepared::new(text, command, types, plan.into()));
        if is_shared {
            self.database.plans.put(catalog.version, &prepared, form);
        }
        Ok(prepared)
    }

    /// Finds how a command runs now.
    pub(super) async fn plan(
        &mut self,
        command: &Arc<Command>,
        (text, form): (&str, Option<&NormalForm>),
        given: &[SqlType],
    ) -> Result<Arc<Plan>> {
        let catalog = self.catalog();
        let other = |columns| Ok(Plan::other(catalog.version, Vec::new(), columns));
        match &**command {
            Command::Sql(statement) if self.session_function(statement).is_some() => {
                let columns = self.session_function(statement).map(|call| call.columns());
                Ok(Plan::other(catalog.version, given.to_vec(), columns))
            }
            Command::Sql(_) if Connection::is_of_rows(command) => {
                self.plan_rows(command, (text, form), given).await
            }
            Command::Do => self.plan_rows(command, (text, form), given).await,
            Command::Show(None) => {
                other(Some(vec![text_column("name"), text_column("setting"), text_column("description")]))
            }
            Command::Show(Some(name)) => {
                self.shown(name)?;
                other(Some(vec![text_column(&crate::settings::Settings::name(name))]))
            }
            // What is not there yet may be once it runs.
            Command::Execute { name, .. } => {
                other(self.session.prepared.get(name).and_then(|prepared| prepared.columns.clone()))
            }
            Command::Fetch { name, is_move: false, .. } => {
                other(self.session.cursors.get(name).map(|cursor| cursor.columns.clone()))
            }
            Command::Declare { text, .. } if text.contains('$') => {
                let query = Box::pin(self.prepare(text, given)).await?;
                Ok(Plan::other(catalog.version, query.parameters.clone(), None))
            }
            _ => other(None),
        }
    }

    /// Finds how a statement of rows or a block runs. One that cannot is looked at again if names mean something else
    /// by then: tables of the storage that a catalog names go when they are replaced.
    async fn plan_rows(
        &mut self,
        command: &Arc<Command>,
        text: (&str, Option<&NormalForm>),
        given: &[SqlType],
    ) -> Result<Arc<Plan>> {
        loop {
            let catalog = self.catalog();
            let planned = self.plan_by(&catalog, command, text, given).await;
            if planned.is_ok() {
                return planned;
            }
            self.database.come_up_to_date(true).await?;
            if self.catalog().version == catalog.version {
                return planned;
            }
        }
    }

    /// Finds how it runs by a catalog, on a thread of its own if that may take long.
    pub(super) async fn plan_by(
        &mut self,
        catalog: &Arc<Catalog>,
        command: &Arc<Command>,
        (text, form): (&str, Option<&NormalForm>),
        given: &[SqlType],
    ) -> Result<Arc<Plan>> {
        let session = self.session_facts();
        let database = self.database.database();
        if text.len() <= planning::SHORT_BYTES
            && let Some(plan) = planning::briefly(|| {
                Plan::of_command(database, catalog, command, (text, form), given, &session)
            })
        {
            return plan;
        }
        let (database, catalog, command) = (database.clone(), catalog.clone(), command.clone());
        let (text, form, given) = (text.to_string(), form.cloned(), given.to_vec());
        planning::apart(&self.session.memory, move || {
            Plan::of_command(&database, &catalog, &command, (&text, form.as_ref()), &given, &session)
        })
        .await
    }

    /// Runs it; parameters are in the storage types of [`Prepared::parameters`].
    ///
    /// # Errors
    /// Why it failed; in a transaction, that has then failed too.
    pub async fn execute(&mut self, prepared: &Arc<Prepared>, parameters: &[Value]) -> Result<Response> {
        let begun_us = self.transaction.get().map(|open| open.began_us);
        let now_us = super::clock::now_us();
        self.session.presence.begin(prepared, now_us, begun_us);
        self.come_up_to_date(prepared.text()).await?;
        if !ends_transaction(&prepared.command) {
            self.transaction.refuse_if_failed()?;
        }
        self.execution.begin(now_us);
        if self.transaction.is_idle() {
            self.execution.stance = Stance::now(&self.database).await?;
        }
        let outcome = self.dispatch(prepared, parameters).await;
        self.release_statement_locks();
        if outcome.is_err() {
            self.fail();
        }
        outcome
    }

    async fn dispatch(&mut self, prepared: &Arc<Prepared>, parameters: &[Value]) -> Result<Response> {
        let done = |tag: &str| Ok(Response::Done { tag: tag.to_string() });
        // Boxed as in `perform`.
        match &*prepared.command {
            Command::Empty => Ok(Response::Empty),
            Command::Sql(statement) => {
                if let Some(call) = self.session_function(statement) {
                    return Box::pin(self.call_session_function(call, parameters)).await;
                }
                if Connection::is_of_rows(&prepared.command) {
                    return self.answer(prepared, parameters).await;
                }
                let (patience, memory) = (self.session.recall.clone(), self.session.memory.clone());
                let define = Box::pin(self.define_sql(statement, &prepared.text));
                planning::here(patience, &memory, prepared.is_long(), define).await
            }
            Command::CreateFunction
            | Command::CreateSequence { .. }
            | Command::AddIdentity { .. }
            | Command::AlterSequence { .. }
            | Command::Rename { .. }
            | Command::RenameSchema { .. }
            | Command::CreateMaterializedView(_)
            | Command::Refresh { .. }
            | Command::Comment { .. }
            | Command::CreateDomain { .. }
            | Command::AlterDomain { .. }
            | Command::DropDomain { .. }
            | Command::CreateDatabase { .. }
            | Command::Role(_)
            | Command::Grant(_)
            | Command::Owner { .. }
            | Command::ChangeDatabase { .. }
            | Command::CreateExtension(..)
            | Command::DropExtension { .. } => {
                let (patience, memory) = (self.session.recall.clone(), self.session.memory.clone());
                let define = Box::pin(self.define_command(&prepared.command, &prepared.text));
                planning::here(patience, &memory, prepared.is_long(), define).await
            }
            Command::Do => self.answer(prepared, parameters).await,
            Command::Copy(copy) => Box::pin(self.copy(copy)).await,
            Command::Begin(characteristics) => {
                self.begin(characteristics)?;
                done(if prepared.text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("start")) {
                    "START TRANSACTION"
                } else {
                    "BEGIN"
                })
            }
            Command::Commit { chain } => done(self.end(true, *chain).await?),
            Command::Rollback { chain } => done(self.end(false, *chain).await?),
            Command::Savepoint(name) => {
                self.savepoint(name.clone()).await?;
                done("SAVEPOINT")
            }
            Command::RollbackTo(name) => {
                self.roll_back_to(name).await?;
                done("ROLLBACK")
            }
            Command::Release(name) => {
                self.transaction.release(name)?;
                done("RELEASE")
            }
            Command::Show(name) => self.show(name.as_deref()),
            Command::Execute { name, arguments } => Box::pin(self.execute_named(name, arguments)).await,
            Command::Declare { name, is_held, scroll, text } => {
                let declaration = Declaration { name, is_held: *is_held, scroll: *scroll, query: text };
                let given = (prepared.parameters.as_slice(), parameters);
                Box::pin(self.declare(declaration, &prepared.text, given)).await
            }
            Command::Fetch { name, step, is_move } => {
                Box::pin(self.session.cursors.fetch(name, *step, *is_move, self.session.holding())).await
            }
            Command::Close(name) => self.session.cursors.close(name.as_deref()),
            Command::Prepare { name, types, text } => {
                let catalog = self.catalog();
                let types = types.iter().map(|data_type| catalog.type_of(data_type));
                let types: Vec<SqlType> = types.collect::<Result<_>>()?;
                self.prepare_named(name, &types, text, &prepared.text).await?;
                done("PREPARE")
            }
            other => Box::pin(self.session_command(other)).await,
        }
    }

    /// `SHOW`
    fn show(&mut self, name: Option<&str>) -> Result<Response> {
        let text = |value: String| Value::Text(value);
        match name {
            Some(name) => {
                let value = self.shown(name)?;
                let column = text_column(&crate::settings::Settings::name(name));
                Ok(rows_response(vec![column], vec![vec![text(value)]], "SHOW"))
            }
            None => {
                let own = self.transaction_settings();
                let rows = self.session.settings.all().into_iter();
                let rows = rows.map(|(name, value, _, description)| {
                    let of_transaction = own.iter().find(|(known, _)| *known == name);
                    let value = of_transaction.map_or(value, |(_, value)| value.clone());
                    vec![text(name), text(value), text(description)]
                });
                let columns = vec![text_column("name"), text_column("setting"), text_column("description")];
                Ok(rows_response(columns, rows.collect(), "SHOW"))
            }
        }
    }

    /// A setting's value; those of the transaction are its own.
    fn shown(&self, name: &str) -> Result<String> {
        let lower = name.to_lowercase();
        let of_transaction = self.transaction_settings().into_iter().find(|(known, _)| *known == lower);
        of_transaction.map_or_else(|| self.session.settings.show(name), |(_, value)| Ok(value))
    }

    /// The settings that are the transaction's own. Outside of one they are what the next begins with.
    pub(super) fn transaction_settings(&self) -> Vec<(&'static str, String)> {
        let switch = |on: bool| if on { "on".to_string() } else { "off".to_string() };
        let open = self.transaction.get();
        let usual = |name| self.session.settings.get(name).unwrap_or_default();
        let isolation = open.and_then(|open| open.characteristics.isolation).map(str::to_string);
        let deferrable = open.and_then(|open| open.characteristics.is_deferrable).map(switch);
        let roles = self.database.roles();
        let is_superuser = roles.is_superuser(self.session.role_among(&roles));
        vec![
            ("transaction_isolation", isolation.unwrap_or_else(|| usual("default_transaction_isolation"))),
            (
                "transaction_read_only",
                open.map_or_else(
                    || {
                        if self.database.is_standby() {
                            "on".into()
                        } else {
                            usual("default_transaction_read_only")
                        }
                    },
                    |open| switch(open.is_read_only),
                ),
            ),
            ("is_superuser", switch(is_superuser)),
            ("transaction_deferrable", deferrable.unwrap_or_else(|| usual("default_transaction_deferrable"))),
        ]
    }
}

/// The statement of a text, in which every call stands where it may.
fn parsed(text: &str) -> Result<Command> {
    let command = syntax::parse(text)?;
    match &command {
        Command::Sql(statement) if let Some(error) = misplaced(&**statement) => Err(error),
        _ => Ok(command),
    }
}

/// Whether a statement shows or changes settings, and nothing else.
fn is_about_settings(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    ["SHOW", "SET", "RESET"].iter().any(|about| word.eq_ignore_ascii_case(about))
}

/// Whether a command is of use in a transaction that has failed.
fn ends_transaction(command: &Command) -> bool {
    matches!(
        command,
        Command::Commit { .. } | Command::Rollback { .. } | Command::RollbackTo(_) | Command::Empty
    )
}
