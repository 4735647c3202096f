//! What functions and catalog relations ask about the session, and the few things they may change in it.

use crate::catalog::Oid;
use crate::text_format::TextStyle;
use fabius_value::{Error, Result, SqlState};

/// A setting, as `pg_settings` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value now.
    pub value: String,
    /// Its value without any `SET`.
    pub reset: String,
    /// What it is for.
    pub description: String,
}

/// A session, as `pg_stat_activity` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// Its number.
    pub process: i32,
    /// Its user.
    pub user: String,
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
}

/// A lock that is held or waited for, as `pg_locks` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldLock {
    /// The session that has or wants it.
    pub process: i32,
    /// `relation`, `condition`, `advisory`.
    pub kind: String,
    /// The table's number.
    pub relation: Option<u32>,
    /// `AccessShareLock`, `AccessExclusiveLock`, ...
    pub mode: String,
    /// Whether it is held, not waited for.
    pub is_granted: bool,
}

/// A session as queries see it. Every answer is about now, or the transaction that the query runs in.
pub trait SessionFacts: Send + Sync {
    /// The user.
    fn user(&self) -> String;

    /// The database's name.
    fn database(&self) -> String {
        "fabius".into()
    }

    /// Schemas that unqualified names are looked for in, in order.
    fn search_path(&self) -> Vec<String> {
        vec!["public".into()]
    }

    /// The session's number, as `pg_backend_pid` gives it.
    fn process(&self) -> i32 {
        1
    }

    /// When the transaction began: microseconds since 1970 in UTC.
    fn transaction_us(&self) -> i64 {
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

    /// Asks another session to give up its statement; whether there is such a session.
    fn cancel(&self, _process: i32) -> bool {
        false
    }
}
