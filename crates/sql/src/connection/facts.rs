//! What functions and catalog relations ask about a session.

use super::advisory::AdvisoryLocks;
use super::listed::Listed;
use super::login::Login;
use super::sql_database::Perspective;
use super::sql_database::SqlDatabase;
use crate::lock::{LockKey, owner_of};
use crate::notification::Outbox;
use crate::settings::Settings;
use fabius::Database;
use fabius_sql_meaning::catalog::access::Access;
use fabius_sql_meaning::catalog::{Catalog, Oid, Sequence, Table};
use fabius_sql_meaning::session_facts::{
    Activity, HeldLock, ListedCursor, ListedStatement, LockedThing, SessionFacts, Setting, Waiting,
};
use fabius_sql_meaning::session_facts::{AdvisoryKey, AdvisoryLock};
use fabius_sql_meaning::text_format::TextStyle;
use fabius_sql_query::failure;
use fabius_sql_syntax::privilege::Class;
use fabius_value::{Error, Result, SqlState, TableId};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Handle, RuntimeFlavor};

/// A session as its queries see it.
pub(super) struct Facts {
    pub database: Arc<SqlDatabase>,
    /// The database's number, and its name.
    pub within: (Oid, String),
    pub login: Login,
    pub process: i32,
    pub now: Mutex<Now>,
    pub advisory: Mutex<AdvisoryLocks>,
    /// What the transaction tells others, or the statement outside of one, once it is committed.
    pub told: Mutex<Outbox>,
    /// Where the session listens.
    pub listening: Mutex<BTreeSet<String>>,
    /// The session's cursors and prepared statements.
    pub listed: Arc<Listed>,
}

/// What of it changes: set before a query is planned or run.
#[derive(Default)]
pub(super) struct Now {
    pub search_path: Vec<String>,
    /// The names of the role whose privileges count, and of the session's own.
    pub users: (String, String),
    pub transaction_us: i64,
    pub statement_us: i64,
    pub settings: Settings,
    /// The settings that are the transaction's own.
    pub transaction_settings: Vec<(&'static str, String)>,
    /// The values that sequences have given last, and which of them was the last.
    pub sequences: (BTreeMap<Oid, i64>, Option<Oid>),
    /// The values that sequences have given to queries since they were last asked for, in order.
    pub given: Vec<(Oid, i64)>,
    /// `set_config`: name, value, whether for the transaction only.
    pub set: Vec<(String, String, bool)>,
}

impl Now {
    fn give(&mut self, sequence: Oid, value: i64) {
        self.given.push((sequence, value));
        self.sequences.0.insert(sequence, value);
        self.sequences.1 = Some(sequence);
    }
}

/// Waits where nothing can be awaited: this thread's other tasks go to another one meanwhile.
fn waited_for<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| handle.block_on(future))
        }
        _ => Err(failure::unsupported("a sequence in this query is not supported")),
    }
}

impl Facts {
    /// The locks on tables, names and numbers.
    fn table_locks(&self) -> impl Iterator<Item = HeldLock> {
        self.database.locks.entries().into_iter().map(|entry| HeldLock {
            process: entry.owner,
            thing: match entry.key {
                LockKey::Relation(oid) => LockedThing::Relation(oid),
                LockKey::Name(_) => LockedThing::Name,
                LockKey::Advisory(key) => LockedThing::Advisory(key),
            },
            mode: entry.mode.name(),
            waits_since_us: entry.waits_since.map(wall_clock),
        })
    }

    /// What interactive transactions hold, and what waits for them.
    fn condition_locks(&self) -> Vec<HeldLock> {
        let database = self.database.database();
        let (locks, waits) = (database.condition_locks(), database.waits());
        if locks.is_empty() && waits.is_empty() {
            return Vec::new();
        }
        let tables = Tables::of(&self.database);
        let held = locks.into_iter().flat_map(|lock| {
            let process = owner_of(&lock.holder).unwrap_or_default();
            lock.tables.into_iter().map(move |table| (process, table, "ConditionLock", None))
        });
        let waiting = waits.into_iter().map(|wait| {
            let mode = if wait.writes { "RowExclusiveLock" } else { "ConditionLock" };
            (owner_of(&wait.waiting).unwrap_or_default(), wait.table, mode, Some(wall_clock(wait.since)))
        });
        let shown = held.chain(waiting).map(|(process, table, mode, waits_since_us)| {
            let thing = LockedThing::Condition(tables.oid(table));
            HeldLock { process, thing, mode, waits_since_us }
        });
        shown.collect()
    }
}

impl Facts {
    /// Adds to what is told once it is committed.
    ///
    /// # Errors
    /// As [`Outbox::add`]; `54000` if somebody who listens does not take what waits; `0A000` in a cluster.
    pub fn tell(&self, channel: &str, payload: &str) -> Result<()> {
        if self.database.database().member_status().is_some() {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "NOTIFY is not supported in a cluster"));
        }
        self.database.notifications.refuse_if_full(self.within.0, channel)?;
        self.told.lock().add(channel, payload)
    }

    /// Takes what is to be told.
    pub fn take_told(&self) -> Outbox {
        std::mem::take(&mut self.told.lock())
    }

    /// How much is to be told so far.
    pub fn told(&self) -> usize {
        self.told.lock().len()
    }

    /// Forgets what is to be told, but for the first so many.
    pub fn tell_only(&self, first: usize) {
        self.told.lock().truncate(first);
    }

    /// An advisory lock of the session's database.
    fn here(&self, lock: AdvisoryLock) -> AdvisoryLock {
        AdvisoryLock { key: AdvisoryKey { database: self.within.0, ..lock.key }, ..lock }
    }

    /// The session's advisory locks, to take some.
    fn advisory_locks(&self) -> Result<MutexGuard<'_, AdvisoryLocks>> {
        if self.database.is_standby() {
            return Err(self.database.refuse_to_lead("take advisory locks"));
        }
        let mut locks = self.advisory.lock();
        locks.lead_in(self.database.database().term_of_lead());
        Ok(locks)
    }
}

/// Tables of the storage as SQL knows them.
struct Tables<'d> {
    database: &'d SqlDatabase,
    catalogs: Vec<Arc<Catalog>>,
}

impl Tables<'_> {
    fn of(database: &SqlDatabase) -> Tables<'_> {
        Tables { database, catalogs: database.all_catalogs() }
    }

    fn oid(&self, table: TableId) -> Option<Oid> {
        let definitions = self.database.database().definitions();
        let storage = &definitions.table(table).schema().name;
        let mut tables = self.catalogs.iter().flat_map(|catalog| catalog.tables.values());
        tables.find(|table| table.storage == *storage).map(|table| table.oid)
    }
}

/// A moment as microseconds since 1970 in UTC.
fn wall_clock(moment: Instant) -> i64 {
    let ago = i64::try_from(moment.elapsed().as_micros()).unwrap_or(i64::MAX);
    super::clock::now_us().saturating_sub(ago)
}

impl SessionFacts for Facts {
    fn user(&self) -> String {
        self.now.lock().users.0.clone()
    }

    fn access_of_database(&self, database: Oid) -> Access {
        self.database.catalog(database, Perspective::along(&[])).access(Class::Database, database)
    }

    fn session_user(&self) -> String {
        self.now.lock().users.1.clone()
    }

    fn superuser(&self) -> String {
        self.login.superuser().to_string()
    }

    fn database(&self) -> String {
        self.within.1.clone()
    }

    fn databases(&self) -> Vec<(Oid, String)> {
        self.database.databases()
    }

    fn search_path(&self) -> Vec<String> {
        self.now.lock().search_path.clone()
    }

    fn is_standby(&self) -> bool {
        self.database.is_standby()
    }

    fn node(&self) -> Option<Arc<Database>> {
        Some(self.database.database().clone())
    }

    fn process(&self) -> i32 {
        self.process
    }

    fn transaction_us(&self) -> i64 {
        self.now.lock().transaction_us
    }

    fn statement_us(&self) -> i64 {
        self.now.lock().statement_us
    }

    fn now_us(&self) -> i64 {
        super::clock::now_us()
    }

    fn setting(&self, name: &str) -> Option<String> {
        let now = self.now.lock();
        let of_transaction = now.transaction_settings.iter().find(|(known, _)| *known == name);
        of_transaction.map(|(_, value)| value.clone()).or_else(|| now.settings.get(name))
    }

    fn text_style(&self) -> TextStyle {
        self.now.lock().settings.style().clone()
    }

    fn sequence_value(&self, sequence: Oid) -> Option<i64> {
        self.now.lock().sequences.0.get(&sequence).copied()
    }

    fn rows_about(&self, table: &Table) -> Option<usize> {
        self.database.database().rows_about(&table.storage)
    }

    fn last_sequence(&self) -> Option<Oid> {
        self.now.lock().sequences.1
    }

    fn next_value(&self, sequence: &Sequence) -> Result<i64> {
        let value = waited_for(self.database.sequences.next(sequence))?;
        self.now.lock().give(sequence.oid, value);
        Ok(value)
    }

    fn set_sequence(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<()> {
        waited_for(self.database.sequences.set(sequence, value, is_called))?;
        if is_called {
            self.now.lock().give(sequence.oid, value);
        }
        Ok(())
    }

    fn set_setting(&self, name: &str, value: &str, is_local: bool) -> Result<String> {
        if matches!(name.to_lowercase().as_str(), "role" | "session_authorization") {
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                format!("set_config of \"{name}\" is not supported"),
            )
            .with_hint("use SET ROLE or SET SESSION AUTHORIZATION"));
        }
        let mut now = self.now.lock();
        now.settings.set(name, Some(value), is_local)?;
        now.set.push((name.to_string(), value.to_string(), is_local));
        now.settings.show(name)
    }

    fn settings(&self) -> Vec<Setting> {
        let all = self.now.lock().settings.all();
        let all = all.into_iter().map(|(name, value, reset, description)| Setting {
            value: self.setting(&name).unwrap_or(value),
            name,
            reset,
            description,
        });
        all.collect()
    }

    fn cursors(&self) -> Vec<ListedCursor> {
        self.listed.cursors()
    }

    fn statements(&self) -> Vec<ListedStatement> {
        self.listed.statements()
    }

    fn activity(&self) -> Vec<Activity> {
        let waiting = self.locks().into_iter().filter(|lock| lock.waits_since_us.is_some());
        let waiting: HashMap<i32, Waiting> =
            waiting.map(|lock| (lock.process, Waiting { kind: "Lock", event: lock.thing.kind() })).collect();
        let sessions = self.database.sessions.lock();
        sessions.values().map(|presence| presence.shown(waiting.get(&presence.process).copied())).collect()
    }

    fn locks(&self) -> Vec<HeldLock> {
        self.table_locks().chain(self.condition_locks()).collect()
    }

    fn blockers(&self, process: i32) -> Vec<i32> {
        self.database.locks.blockers(process)
    }

    fn interrupt(&self, process: i32, ends: bool) -> bool {
        self.database.interrupt(process, ends)
    }

    fn take_advisory(&self, lock: AdvisoryLock) -> Result<bool> {
        Ok(self.advisory_locks()?.take(&self.database.locks, self.process, self.here(lock)))
    }

    fn wait_for_advisory(&self, lock: AdvisoryLock) -> Result<()> {
        self.advisory_locks()?.take_or_stop(&self.database.locks, self.process, self.here(lock))
    }

    fn give_back_advisory(&self, lock: AdvisoryLock) -> bool {
        self.advisory.lock().give_back(&self.database.locks, self.process, self.here(lock))
    }

    fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        self.tell(channel, payload)
    }

    fn channels(&self) -> Vec<String> {
        self.listening.lock().iter().cloned().collect()
    }

    fn give_back_all_advisory(&self) {
        self.advisory.lock().give_back_all(&self.database.locks, self.process, false);
    }
}
