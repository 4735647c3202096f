//! `LISTEN`, `UNLISTEN`, `NOTIFY` of a session, which count once its transaction is committed.

use super::Connection;
use crate::notification::{Mailbox, Notification, Outbox};
use fabius_value::{Error, Result, SqlState};
use std::sync::Arc;

/// Channels on which a session listens, at most: they are in the memory of all.
const CHANNELS_MAX: usize = 1 << 12;

/// A change of where a session listens.
#[derive(Clone)]
pub(super) enum ListenChange {
    Listen(String),
    Unlisten(String),
    UnlistenAll,
}

impl Connection {
    /// `LISTEN`, `UNLISTEN`
    pub(super) fn change_listening(&mut self, change: ListenChange) -> Result<()> {
        if let ListenChange::Listen(_) = change {
            self.refuse_in_cluster("LISTEN")?;
            let open = self.transaction.get().map_or(0, |open| open.listening.len());
            if self.session.facts.listening.lock().len() + open >= CHANNELS_MAX {
                let message = format!("a session listens on {CHANNELS_MAX} channels at most");
                return Err(Error::new(SqlState::PROGRAM_LIMIT, message));
            }
        }
        match self.transaction.get_mut() {
            Some(open) => open.listening.push(change),
            None => self.listen_now(&change),
        }
        Ok(())
    }

    /// `NOTIFY`
    pub(super) fn notify(&mut self, channel: &str, payload: &str) -> Result<()> {
        self.session.facts.tell(channel, payload)?;
        self.tell_unless_open();
        Ok(())
    }

    /// What is told counts on one node, and clients of a cluster are at all of them.
    fn refuse_in_cluster(&self, what: &str) -> Result<()> {
        match self.database.database().member_status() {
            None => Ok(()),
            Some(_) => {
                Err(Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported in a cluster")))
            }
        }
    }

    fn listen_now(&self, change: &ListenChange) {
        let (within, process) = (self.within(), self.session.process);
        let notifications = &self.database.notifications;
        let mut channels = self.session.facts.listening.lock();
        match change {
            ListenChange::Listen(channel) => {
                notifications.listen(within, channel, process, &self.session.mailbox);
                channels.insert(channel.clone());
            }
            ListenChange::Unlisten(channel) => {
                notifications.unlisten(within, channel, process);
                channels.remove(channel);
            }
            ListenChange::UnlistenAll => {
                for channel in std::mem::take(&mut *channels) {
                    notifications.unlisten(within, &channel, process);
                }
            }
        }
    }

    /// A transaction has ended: what it had to tell is told if it was committed, and where it listens counts.
    pub(super) fn end_telling(&mut self, listening: &[ListenChange], is_committed: bool) {
        let outbox = self.session.facts.take_told();
        if is_committed {
            listening.iter().for_each(|change| self.listen_now(change));
            self.publish(outbox);
        }
    }

    /// A statement is done: what it had to tell is told, unless a transaction is open that it belongs to.
    pub(super) fn tell_unless_open(&self) {
        if self.transaction.is_idle() {
            self.publish(self.session.facts.take_told());
        }
    }

    /// A statement has failed: what it had to tell is told by nobody.
    pub(super) fn forget_told(&self) {
        if self.transaction.is_idle() {
            self.session.facts.take_told();
        }
    }

    fn publish(&self, outbox: Outbox) {
        self.database.notifications.publish(self.within(), self.session.process, outbox);
    }

    /// The session ends, or begins anew.
    pub(super) fn unlisten_all(&self) {
        self.listen_now(&ListenChange::UnlistenAll);
    }

    /// What others have told the session so far; nothing while a transaction is open.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        if self.transaction.is_idle() { self.session.mailbox.take() } else { Vec::new() }
    }

    /// Where what others tell the session waits until it is taken; none while a transaction is open.
    pub fn mailbox(&self) -> Option<Arc<Mailbox>> {
        self.transaction.is_idle().then(|| self.session.mailbox.clone())
    }
}
