//! What a connection is doing, as others see it: `pg_stat_activity`.

use super::TransactionStatus;
use super::prepared::Prepared;
use fabius_sql_meaning::catalog::Oid;
use fabius_sql_meaning::session_facts::{Activity, Waiting};
use parking_lot::Mutex;
use std::sync::Arc;

/// A connection, as others see it.
pub(super) struct Presence {
    pub process: i32,
    pub user: String,
    pub database: (Oid, String),
    connected_us: i64,
    now: Mutex<Doing>,
}

struct Doing {
    application: String,
    /// The statement that runs, or the last one.
    statement: Option<Arc<Prepared>>,
    statement_us: Option<i64>,
    transaction_us: Option<i64>,
    changed_us: i64,
    /// What it is while no statement runs; `None` while one does.
    rest: Option<TransactionStatus>,
}

impl Presence {
    /// A connection that begins now.
    pub fn new(process: i32, user: &str, database: (Oid, String), now_us: i64) -> Presence {
        let doing = Doing {
            application: String::new(),
            statement: None,
            statement_us: None,
            transaction_us: None,
            changed_us: now_us,
            rest: Some(TransactionStatus::Idle),
        };
        Presence { process, user: user.to_string(), database, connected_us: now_us, now: Mutex::new(doing) }
    }

    /// A statement begins, in a transaction that began then.
    pub fn begin(&self, statement: &Arc<Prepared>, now_us: i64, transaction_us: Option<i64>) {
        let mut now = self.now.lock();
        now.statement = Some(statement.clone());
        now.statement_us = Some(now_us);
        now.transaction_us = transaction_us.or(Some(now_us));
        now.changed_us = now_us;
        now.rest = None;
    }

    /// Nothing runs any more.
    pub fn rest(&self, status: TransactionStatus, now_us: i64) {
        let mut now = self.now.lock();
        if now.rest != Some(status) {
            now.rest = Some(status);
            now.changed_us = now_us;
        }
        if status == TransactionStatus::Idle {
            now.transaction_us = None;
        }
    }

    /// What the client calls itself.
    pub fn name(&self, application: &str) {
        self.now.lock().application = application.to_string();
    }

    /// What is shown of it; `waiting` for whom or what it waits.
    pub fn shown(&self, waiting: Option<Waiting>) -> Activity {
        let now = self.now.lock();
        let state = match now.rest {
            None => "active",
            Some(TransactionStatus::Idle) => "idle",
            Some(TransactionStatus::Open) => "idle in transaction",
            Some(TransactionStatus::Failed) => "idle in transaction (aborted)",
        };
        Activity {
            process: self.process,
            user: self.user.clone(),
            database: self.database.clone(),
            application: now.application.clone(),
            state: state.into(),
            query: now.statement.as_ref().map(|prepared| prepared.text.clone()).unwrap_or_default(),
            connected_us: self.connected_us,
            transaction_us: now.transaction_us,
            query_us: now.statement_us,
            changed_us: now.changed_us,
            waiting: waiting.or_else(|| now.rest.map(|_| Waiting { kind: "Client", event: "ClientRead" })),
        }
    }
}
