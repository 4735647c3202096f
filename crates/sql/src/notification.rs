//! What sessions tell each other: `LISTEN` and `NOTIFY`.
//!
//! ```text
//! NOTIFY, pg_notify --> Outbox (a transaction's) --its commit--> Notifications (who listens) --> Mailbox (a session's)
//!                                                                                                   |
//!                                          the client, while it is in no transaction  <-------------+
//! ```
//!
//! A channel is a name that sessions of one database agree on. A transaction that is rolled back tells nobody, and
//! within one the same is told once. What is told is kept in memory, for those who listen when it is committed; it is
//! not in the log.

use fabius_sql_meaning::catalog::Oid;
use fabius_value::{Error, Result, SqlState};
use futures::task::AtomicWaker;
use indexmap::IndexSet;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::Waker;

/// A payload has fewer bytes than this, as in PostgreSQL.
const PAYLOAD_BYTES_END: usize = 8000;
/// The name of a channel has fewer bytes than this, as in PostgreSQL.
const NAME_BYTES_END: usize = 64;
/// Bytes that wait for a session, beyond which nobody begins to tell it more; and bytes that a transaction tells.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// What a notification takes in memory besides its texts.
const OVERHEAD_BYTES: usize = 64;

/// What a session is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The number of the session that tells it.
    pub process: i32,
    /// Where it is told.
    pub channel: Arc<str>,
    /// What.
    pub payload: Arc<str>,
}

impl Notification {
    fn bytes(&self) -> usize {
        bytes(&self.channel, &self.payload)
    }
}

/// What a notification takes in memory.
fn bytes(channel: &str, payload: &str) -> usize {
    channel.len() + payload.len() + OVERHEAD_BYTES
}

/// What a transaction has to tell once it is committed, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    all: IndexSet<(Arc<str>, Arc<str>)>,
    bytes: usize,
}

impl Outbox {
    /// Adds a notification.
    ///
    /// # Errors
    /// `22023` for a name or a payload that is too long; `54000` if there are too many.
    pub fn add(&mut self, channel: &str, payload: &str) -> Result<()> {
        let wrong = |message: &str| Err(Error::new(SqlState::INVALID_PARAMETER, message));
        match () {
            () if channel.is_empty() => return wrong("channel name cannot be empty"),
            () if channel.len() >= NAME_BYTES_END => return wrong("channel name too long"),
            () if payload.len() >= PAYLOAD_BYTES_END => return wrong("payload string too long"),
            () if self.bytes > WAITING_BYTES_MAX => return Err(full()),
            () => {}
        }
        if self.all.insert((channel.into(), payload.into())) {
            self.bytes += bytes(channel, payload);
        }
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets all but the first.
    pub fn truncate(&mut self, first: usize) {
        self.all.truncate(first);
        self.bytes = self.all.iter().map(|(channel, payload)| bytes(channel, payload)).sum();
    }
}

fn full() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT, "too many notifications in the NOTIFY queue").with_hint(
        "a session that listens does not take what waits for it: it is in a transaction, or does not read",
    )
}

/// What waits for a session.
#[derive(Default)]
pub struct Mailbox {
    waiting: Mutex<(Vec<Notification>, usize)>,
    waker: AtomicWaker,
}

impl Mailbox {
    fn put(&self, notification: Notification) {
        let mut waiting = self.waiting.lock();
        waiting.1 += notification.bytes();
        waiting.0.push(notification);
    }

    fn is_full(&self) -> bool {
        self.waiting.lock().1 > WAITING_BYTES_MAX
    }

    /// Takes all that waits.
    pub(crate) fn take(&self) -> Vec<Notification> {
        let mut waiting = self.waiting.lock();
        waiting.1 = 0;
        std::mem::take(&mut waiting.0)
    }

    /// Whether nothing waits; the waker is called when something does.
    pub fn is_empty(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.waiting.lock().0.is_empty()
    }
}

/// Who listens where, in all databases.
#[derive(Default)]
pub(crate) struct Notifications {
    listeners: Mutex<HashMap<(Oid, String), Listeners>>,
}

/// Sessions by their numbers.
type Listeners = BTreeMap<i32, Arc<Mailbox>>;

impl Notifications {
    /// A session listens from now on.
    pub fn listen(&self, database: Oid, channel: &str, process: i32, mailbox: &Arc<Mailbox>) {
        let mut listeners = self.listeners.lock();
        listeners.entry((database, channel.to_string())).or_default().insert(process, mailbox.clone());
    }

    /// A session does not listen any more.
    pub fn unlisten(&self, database: Oid, channel: &str, process: i32) {
        let mut listeners = self.listeners.lock();
        let place = (database, channel.to_string());
        if let Some(sessions) = listeners.get_mut(&place) {
            sessions.remove(&process);
            if sessions.is_empty() {
                listeners.remove(&place);
            }
        }
    }

    /// Refuses to tell more to sessions that do not take what waits for them.
    ///
    /// # Errors
    /// `54000`
    pub fn refuse_if_full(&self, database: Oid, channel: &str) -> Result<()> {
        let listeners = self.listeners.lock();
        let sessions = listeners.get(&(database, channel.to_string()));
        match sessions.is_some_and(|sessions| sessions.values().any(|mailbox| mailbox.is_full())) {
            true => Err(full()),
            false => Ok(()),
        }
    }

    /// Tells what a transaction of a session had to tell.
    pub fn publish(&self, database: Oid, process: i32, outbox: Outbox) {
        if outbox.all.is_empty() {
            return;
        }
        let listeners = self.listeners.lock();
        let mut told: BTreeMap<i32, &Arc<Mailbox>> = BTreeMap::new();
        for (channel, payload) in outbox.all {
            let Some(sessions) = listeners.get(&(database, channel.to_string())) else { continue };
            for (session, mailbox) in sessions {
                mailbox.put(Notification { process, channel: channel.clone(), payload: payload.clone() });
                told.insert(*session, mailbox);
            }
        }
        told.values().for_each(|mailbox| mailbox.waker.wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(told: &[(&str, &str)]) -> Outbox {
        let mut outbox = Outbox::default();
        told.iter().for_each(|(channel, payload)| outbox.add(channel, payload).unwrap());
        outbox
    }

    /// Goal: each listener of a channel and a database is told what was told there, once and in order, as long as it
    /// listens.
    #[test]
    fn listeners_are_told() {
        let (notifications, one, other) = (Notifications::default(), Arc::default(), Arc::default());
        notifications.listen(1, "news", 7, &one);
        notifications.listen(1, "prices", 8, &other);
        notifications.listen(2, "news", 9, &other);
        notifications.publish(1, 5, outbox(&[("news", "b"), ("news", "a"), ("none", "c"), ("news", "b")]));
        let told = |mailbox: &Arc<Mailbox>| {
            let all = mailbox.take().into_iter();
            all.map(|one| format!("{} {} {}", one.process, one.channel, one.payload)).collect::<Vec<_>>()
        };
        assert_eq!(told(&one), ["5 news b", "5 news a"]);
        assert!(told(&one).is_empty() && told(&other).is_empty());
        notifications.unlisten(1, "news", 7);
        notifications.publish(1, 5, outbox(&[("news", "b"), ("prices", "")]));
        assert_eq!((told(&one), told(&other)), (vec![], vec!["5 prices ".to_string()]));
    }

    /// Goal: what a savepoint takes back can be told again; who does not take what waits stops others, not memory.
    #[test]
    fn what_waits_is_bounded() {
        let mut outbox = outbox(&[("news", "a"), ("news", "b")]);
        outbox.truncate(1);
        assert_eq!(outbox.len(), 1);
        outbox.add("news", "b").unwrap();
        assert_eq!(outbox.len(), 2);
        let long = "x".repeat(PAYLOAD_BYTES_END - 10);
        let (notifications, mailbox) = (Notifications::default(), Arc::new(Mailbox::default()));
        notifications.listen(1, "news", 7, &mailbox);
        let mut number = 0;
        let refused = loop {
            match outbox.add("news", &format!("{number:06}{long}")) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((refused.state(), number * 8000 / WAITING_BYTES_MAX), (SqlState::PROGRAM_LIMIT, 0));
        notifications.publish(1, 5, outbox);
        let refused = |channel| notifications.refuse_if_full(1, channel).is_err();
        assert!(refused("news") && !refused("prices"));
        assert_eq!(mailbox.take().len(), number + 2);
        assert!(!refused("news"));
    }
}
