//! What functions and catalog relations ask about a session.

use super::sql_database::SqlDatabase;
use crate::catalog::Oid;
use crate::lock::{LockKey, LockMode};
use crate::query::session_facts::{Activity, HeldLock, SessionFacts, Setting};
use crate::settings::Settings;
use crate::text_format::TextStyle;
use fabius_value::Result;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A session as its queries see it.
pub(super) struct Facts {
    pub database: Arc<SqlDatabase>,
    pub user: String,
    pub process: i32,
    pub now: Mutex<Now>,
}

/// What of it changes: set before a query is planned or run.
#[derive(Default)]
pub(super) struct Now {
    pub search_path: Vec<String>,
    pub transaction_us: i64,
    pub settings: Settings,
    /// What the transaction has asked for.
    pub isolation: Option<&'static str>,
    /// The values that sequences have given last, and which of them was the last.
    pub sequences: (BTreeMap<Oid, i64>, Option<Oid>),
    /// `set_config`: name, value, whether for the transaction only.
    pub set: Vec<(String, String, bool)>,
}

impl SessionFacts for Facts {
    fn user(&self) -> String {
        self.user.clone()
    }

    fn search_path(&self) -> Vec<String> {
        self.now.lock().search_path.clone()
    }

    fn process(&self) -> i32 {
        self.process
    }

    fn transaction_us(&self) -> i64 {
        self.now.lock().transaction_us
    }

    fn now_us(&self) -> i64 {
        super::transaction::now_us()
    }

    fn setting(&self, name: &str) -> Option<String> {
        let now = self.now.lock();
        match (name, now.isolation) {
            ("transaction_isolation", Some(isolation)) => Some(isolation.to_string()),
            ("transaction_isolation", None) => now.settings.get("default_transaction_isolation"),
            _ => now.settings.get(name),
        }
    }

    fn text_style(&self) -> TextStyle {
        self.now.lock().settings.style().clone()
    }

    fn sequence_value(&self, sequence: Oid) -> Option<i64> {
        self.now.lock().sequences.0.get(&sequence).copied()
    }

    fn last_sequence(&self) -> Option<Oid> {
        self.now.lock().sequences.1
    }

    fn set_setting(&self, name: &str, value: &str, is_local: bool) -> Result<String> {
        let mut now = self.now.lock();
        now.settings.set(name, Some(value), is_local)?;
        now.set.push((name.to_string(), value.to_string(), is_local));
        now.settings.show(name)
    }

    fn settings(&self) -> Vec<Setting> {
        let all = self.now.lock().settings.all().into_iter();
        all.map(|(name, value, reset, description)| Setting { name, value, reset, description }).collect()
    }

    fn activity(&self) -> Vec<Activity> {
        self.database.sessions.lock().values().cloned().collect()
    }

    fn locks(&self) -> Vec<HeldLock> {
        let entries = self.database.locks.entries().into_iter();
        let shown = entries.map(|entry| HeldLock {
            process: entry.owner,
            kind: "relation".into(),
            relation: match entry.key {
                LockKey::Relation(oid) => Some(oid),
                LockKey::Name(_) => None,
            },
            mode: match entry.mode {
                LockMode::Shared => "AccessShareLock".into(),
                LockMode::Exclusive => "AccessExclusiveLock".into(),
            },
            is_granted: entry.is_granted,
        });
        shown.collect()
    }
}
