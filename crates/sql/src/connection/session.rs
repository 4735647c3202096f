//! What a client has from its first message to its last: who it is, its settings, what it has prepared, made for
//! itself and been told.

use super::Notice;
use super::cursor::Cursors;
use super::facts::Facts;
use super::login::Login;
use super::prepared::KeptStatement;
use super::presence::Presence;
use crate::notification::Mailbox;
use crate::settings::Settings;
use fabius::{Allowance, Error, Recall, Seq, SqlState, Value};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Catalog, Oid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One client's session.
pub(crate) struct Session {
    pub(super) login: Login,
    /// The number that others know it by: `pg_backend_pid()`.
    pub(super) process: i32,
    pub(super) settings: Settings,
    /// Temporary tables and the like.
    pub(super) temporary: Vec<Change>,
    pub(super) prepared: BTreeMap<String, KeptStatement>,
    pub(super) cursors: Cursors,
    pub(super) numbers: Numbers,
    pub(super) notices: Vec<Notice>,
    /// Where it is told what others tell.
    pub(super) mailbox: Arc<Mailbox>,
    /// The place in the order of its last transaction.
    pub(super) last_seq: Option<Seq>,
    /// That place, if it is the transaction's own: it has written, so that the log has it as a call.
    pub(super) last_call: Option<Seq>,
    /// Transactions that the client has ended.
    pub(super) transactions_ended: u64,
    /// What it may hold: its transaction, rows for the client, operators of queries.
    pub(super) memory: Arc<Allowance>,
    /// Whether what runs can still be taken back.
    pub(super) recall: Arc<Recall>,
    /// Statements that wrote rows.
    pub(super) writes: u32,
    /// Whether what it reads is the newest of the time when the client last said something.
    pub(super) is_up_to_date: bool,
    pub(super) presence: Arc<Presence>,
    pub(super) facts: Arc<Facts>,
    /// What names mean to it, and the committed catalog that this was made of; `None` when something has changed.
    known: Option<(u64, Arc<Catalog>)>,
}

/// What sequences gave a session.
#[derive(Default)]
pub(super) struct Numbers {
    pub values: BTreeMap<Oid, i64>,
    /// The sequence that `lastval` is about.
    pub last: Option<Oid>,
}

impl Numbers {
    /// Notes the number that a sequence gave last.
    pub fn note(&mut self, sequence: Oid, number: i64) {
        self.values.insert(sequence, number);
        self.last = Some(sequence);
    }

    /// The number that a sequence gave last: `currval`.
    pub fn of(&self, sequence: Oid) -> Option<Value> {
        self.values.get(&sequence).map(|value| Value::BigInt(*value))
    }

    /// The number that was given last: `lastval`.
    pub fn last(&self) -> Option<Value> {
        self.of(self.last?)
    }
}

impl Session {
    pub(super) fn new(
        (login, facts): (Login, Facts),
        presence: Arc<Presence>,
        settings: Settings,
        memory: Arc<Allowance>,
    ) -> Session {
        Session {
            login,
            process: presence.process,
            settings,
            temporary: Vec::new(),
            prepared: BTreeMap::new(),
            cursors: Cursors::default(),
            numbers: Numbers::default(),
            notices: Vec::new(),
            mailbox: Arc::default(),
            last_seq: None,
            last_call: None,
            transactions_ended: 0,
            memory,
            recall: Arc::default(),
            writes: 0,
            is_up_to_date: false,
            presence,
            facts: Arc::new(facts),
            known: None,
        }
    }

    /// The session's last transaction has this place, or none as it has aborted.
    pub(super) fn note_place(&mut self, seq: Option<Seq>, is_call: bool) {
        self.last_seq = seq;
        self.last_call = seq.filter(|_| is_call);
    }

    /// What names mean, if it is known by a version of the committed catalog.
    pub(super) fn catalog(&self, version: u64) -> Option<Arc<Catalog>> {
        let (base, catalog) = self.known.as_ref()?;
        (*base == version).then(|| catalog.clone())
    }

    /// Notes what names mean by a version of the committed catalog.
    pub(super) fn know(&mut self, version: u64, catalog: &Arc<Catalog>) {
        self.known = Some((version, catalog.clone()));
    }

    /// Names may mean something else from now on.
    pub(super) fn forget_catalog(&mut self) {
        self.known = None;
    }

    /// Constraints may wait from now on, or wait no longer: names mean something else where there are such.
    pub(super) fn forget_deferrable(&mut self) {
        self.known.take_if(|(_, catalog)| !catalog.deferrable.is_empty());
    }

    /// Tables of the storage that hold its temporary tables.
    pub(super) fn temporary_storage(&self) -> impl Iterator<Item = &str> {
        self.temporary.iter().filter_map(|change| match &change.object {
            Some(Object::Table(table)) => Some(table.storage.as_str()),
            _ => None,
        })
    }

    pub(crate) fn warn(&mut self, code: &[u8; 5], message: &str) {
        self.notices.push(Notice { severity: "WARNING", error: Error::new(SqlState(*code), message) });
    }

    pub(crate) fn notice(&mut self, error: Error) {
        self.notices.push(Notice { severity: "NOTICE", error });
    }

    /// Notices since the last time that `client_min_messages` lets through.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        if self.notices.is_empty() {
            return Vec::new();
        }
        let rank = |severity: &str| match severity {
            "WARNING" => 2,
            "NOTICE" => 1,
            _ => 0,
        };
        let least = match self.settings.get("client_min_messages").as_deref() {
            Some("error") => 3,
            Some("warning") => 2,
            Some("notice") => 1,
            _ => 0,
        };
        let mut notices = std::mem::take(&mut self.notices);
        notices.retain(|notice| rank(notice.severity) >= least);
        notices
    }

    /// Passes on what functions said: the rows of [`Lowered::notices`](fabius_sql_program::lowered::Lowered::notices).
    pub(super) fn say(&mut self, notices: Option<Value>) {
        let Some(Value::List(notices)) = notices else { return };
        for notice in notices.iter() {
            let text = |at: usize| match notice.get(at) {
                Some(Value::Text(text)) => Some(text.to_string()),
                _ => None,
            };
            let severity = match text(0).as_deref() {
                Some("WARNING") => "WARNING",
                Some("INFO") => "INFO",
                _ => "NOTICE",
            };
            let state = text(1).and_then(|code| SqlState::parse(&code)).unwrap_or(SqlState(*b"00000"));
            let mut error = Error::new(state, text(2).unwrap_or_default());
            if let Some(detail) = text(3) {
                error = error.with_detail(detail);
            }
            if let Some(hint) = text(4) {
                error = error.with_hint(hint);
            }
            self.notices.push(super::Notice { severity, error });
        }
    }

    /// Keeps what sequences have given to queries, for `currval` and `lastval`.
    pub(super) fn keep_given(&mut self) {
        for (sequence, value) in std::mem::take(&mut self.facts.now.lock().given) {
            self.numbers.note(sequence, value);
        }
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.settings.idempotency_key().is_some()
    }
}
