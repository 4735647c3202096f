//! What functions and catalog relations ask about the session, and the few things they may change in it.

use crate::catalog::access::Access;
use crate::catalog::role::BOOTSTRAP;
use crate::catalog::store::MAIN_DATABASE;
use crate::catalog::{Oid, Sequence, Table};
use crate::text_format::TextStyle;
use fabius::Database;
use fabius_sql_syntax::lock_mode::LockMode;
use fabius_value::{Error, Result, SqlState};
use std::sync::Arc;

/// A number that clients lock, or a pair of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdvisoryKey {
    /// The number of the database whose clients agree on it.
    pub database: Oid,
    /// The first of a pair, or the upper half of a number.
    pub class: u32,
    /// The second of a pair, or the lower half of a number.
    pub object: u32,
    /// Whether it is a pair.
    pub is_pair: bool,
}

/// A lock that a function asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdvisoryLock {
    /// What is locked.
    pub key: AdvisoryKey,
    /// Whether others may have it too.
    pub is_shared: bool,
    /// Whether it ends with the transaction, or else with the session.
    pub is_of_transaction: bool,
}

impl AdvisoryLock {
    /// The mode of the lock.
    pub fn mode(&self) -> LockMode {
        if self.is_shared { LockMode::Share } else { LockMode::Exclusive }
    }
}

/// A setting, as `pg_settings` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The setting's name.
    pub name: String,
    /// The setting's value now.
    pub value: String,
    /// The setting's value without any `SET`.
    pub reset: String,
    /// What it is for.
    pub description: String,
}

/// A session, as `pg_stat_activity` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// The session's number, `pg_backend_pid()`.
    pub process: i32,
    /// The session's user.
    pub user: String,
    /// The session's database: its number and name.
    pub database: (u32, String),
    /// `application_name`
    pub application: String,
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: String,
    /// The text of its statement, or of the last one.
    pub query: String,
    /// When it connected, microseconds since 1970 in UTC.
    pub connected_us: i64,
    /// When its transaction began, likewise.
    pub transaction_us: Option<i64>,
    /// When its last statement began.
    pub query_us: Option<i64>,
    /// Since when it has its state.
    pub changed_us: i64,
    /// What it waits for.
    pub waiting: Option<Waiting>,
}

/// What a session waits for, in the words of `pg_stat_activity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// `Lock`, `Client`.
    pub kind: &'static str,
    /// `relation`, `condition`, `ClientRead`, ...
    pub event: &'static str,
}

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedThing {
    /// A table, by its number.
    Relation(u32),
    /// A name that something is to have.
    Name,
    /// Rows of a table, or what a statement has shown of them; the table's number.
    Condition(Option<u32>),
    /// A number that clients agree on.
    Advisory(AdvisoryKey),
}

impl LockedThing {
    /// What `pg_locks` calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            LockedThing::Relation(_) => "relation",
            LockedThing::Name => "object",
            LockedThing::Condition(_) => "condition",
            LockedThing::Advisory(_) => "advisory",
        }
    }
}

/// A lock that is held or waited for, as `pg_locks` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldLock {
    /// The session that has or wants it.
    pub process: i32,
    /// What is locked.
    pub thing: LockedThing,
    /// `AccessShareLock`, `AccessExclusiveLock`, `ConditionLock`, ...
    pub mode: &'static str,
    /// Since when it is waited for, microseconds since 1970 in UTC; `None` if it is held.
    pub waits_since_us: Option<i64>,
}

/// A cursor, as `pg_cursors` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedCursor {
    /// The cursor's name.
    pub name: String,
    /// The statement that declared it.
    pub text: String,
    /// Whether it outlives its transaction.
    pub is_held: bool,
    /// Whether it goes back.
    pub scrolls: bool,
    /// When it was declared, microseconds since 1970 in UTC.
    pub since_us: i64,
}

/// A prepared statement, as `pg_prepared_statements` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedStatement {
    /// The statement's name.
    pub name: String,
    /// What was written.
    pub text: String,
    /// When it was prepared, microseconds since 1970 in UTC.
    pub since_us: i64,
    /// The numbers of its parameters' types.
    pub parameters: Vec<u32>,
    /// Whether it was prepared by SQL, not by the protocol.
    pub is_of_sql: bool,
}

/// A session as queries see it. Every answer is about now, or the transaction that the query runs in.
pub trait SessionFacts: Send + Sync {
    /// The name of the role whose privileges count.
    fn user(&self) -> String;

    /// How many rows a table has, about.
    fn rows_about(&self, _table: &Table) -> Option<usize> {
        None
    }

    /// Who owns another database than the session's, and who may do what with it.
    fn access_of_database(&self, _database: Oid) -> Access {
        Access::of(BOOTSTRAP)
    }

    /// The name of the session's role.
    fn session_user(&self) -> String {
        self.user()
    }

    /// What the superuser of the beginning is called.
    fn superuser(&self) -> String {
        self.user()
    }

    /// The database's name.
    fn database(&self) -> String {
        "fabius".into()
    }

    /// All databases: numbers and names.
    fn databases(&self) -> Vec<(u32, String)> {
        vec![(MAIN_DATABASE, self.database())]
    }

    /// Schemas that unqualified names are looked for in, in order.
    fn search_path(&self) -> Vec<String> {
        vec!["public".into()]
    }

    /// Whether this node of a cluster does not lead it, as `pg_is_in_recovery` gives it.
    fn is_standby(&self) -> bool {
        false
    }

    /// The database, which may be that of a cluster's node.
    fn node(&self) -> Option<Arc<Database>> {
        None
    }

    /// The session's number, as `pg_backend_pid` gives it.
    fn process(&self) -> i32 {
        1
    }

    /// When the transaction began: microseconds since 1970 in UTC.
    fn transaction_us(&self) -> i64 {
        self.now_us()
    }

    /// When the statement began: microseconds since 1970 in UTC.
    fn statement_us(&self) -> i64 {
        self.now_us()
    }

    /// The time: microseconds since 1970 in UTC.
    fn now_us(&self) -> i64;

    /// A setting's value.
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }

    /// How it reads and writes values.
    fn text_style(&self) -> TextStyle {
        TextStyle::default()
    }

    /// The value that a sequence has given last, if it has given any.
    fn sequence_value(&self, _sequence: Oid) -> Option<i64> {
        None
    }

    /// The sequence that has given a value last.
    fn last_sequence(&self) -> Option<Oid> {
        None
    }

    /// The next value of a sequence.
    ///
    /// # Errors
    /// `2200H` if it has come to its end; `0A000` where a query cannot wait for it.
    fn next_value(&self, _sequence: &Sequence) -> Result<i64> {
        Err(not_supported("nextval is not supported in this query"))
    }

    /// `setval`
    ///
    /// # Errors
    /// `22003` outside the sequence's bounds; `0A000` where a query cannot wait for it.
    fn set_sequence(&self, _sequence: &Sequence, _value: i64, _is_called: bool) -> Result<()> {
        Err(not_supported("setval is not supported in this query"))
    }

    /// What `set_config` does.
    ///
    /// # Errors
    /// As `SET`.
    fn set_setting(&self, name: &str, _value: &str, _is_local: bool) -> Result<String> {
        Err(Error::new(SqlState(*b"42704"), format!("unrecognized configuration parameter \"{name}\"")))
    }

    /// All settings.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// The session's cursors.
    fn cursors(&self) -> Vec<ListedCursor> {
        Vec::new()
    }

    /// The session's prepared statements.
    fn statements(&self) -> Vec<ListedStatement> {
        Vec::new()
    }

    /// All sessions.
    fn activity(&self) -> Vec<Activity> {
        Vec::new()
    }

    /// All locks.
    fn locks(&self) -> Vec<HeldLock> {
        Vec::new()
    }

    /// The transaction's number, if it has one.
    fn transaction(&self) -> i64 {
        1
    }

    /// For which sessions another one waits.
    fn blockers(&self, _process: i32) -> Vec<i32> {
        Vec::new()
    }

    /// Asks another session to give up its statement, or to end; whether there is such a session.
    fn interrupt(&self, _process: i32, _ends: bool) -> bool {
        false
    }

    /// Takes an advisory lock if it is free; whether it was.
    ///
    /// # Errors
    /// Where there are none: on nodes that do not lead their cluster.
    fn take_advisory(&self, _lock: AdvisoryLock) -> Result<bool> {
        Ok(true)
    }

    /// Takes an advisory lock.
    ///
    /// # Errors
    /// If it is not free: then the query is run again once it is.
    fn wait_for_advisory(&self, _lock: AdvisoryLock) -> Result<()> {
        Ok(())
    }

    /// Gives back an advisory lock of the session; whether it had it.
    fn give_back_advisory(&self, _lock: AdvisoryLock) -> bool {
        false
    }

    /// What `pg_notify` does.
    ///
    /// # Errors
    /// As `NOTIFY`.
    fn notify(&self, _channel: &str, _payload: &str) -> Result<()> {
        Err(not_supported("pg_notify is not supported here"))
    }

    /// Channels on which the session listens.
    fn channels(&self) -> Vec<String> {
        Vec::new()
    }

    /// Gives back all advisory locks of the session.
    fn give_back_all_advisory(&self) {}
}

fn not_supported(what: &str) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, what)
}
