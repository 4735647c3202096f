//! Waiting for locks on objects, and calls that lock what they write.

use super::grain::{Accesses, Grain};
use super::lock_table::{Answer, Target, Wanted, Wish};
use crate::Database;
use crate::session::row_name::row_name;
use crate::session::wait::{Wait, waited_too_long};
use crate::session::wound_wait::{Age, Owner};
use fabius_engine::speculation::{KeyBytes, Overlay};
use fabius_engine::{Procedure, Room};
use fabius_value::{Result, TableId};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Someone whose call may have to wait.
#[derive(Clone, Copy)]
pub(crate) struct Waiter<'w> {
    /// What errors and listings call it.
    pub(crate) label: &'w str,
    /// How old it is, if it has locked anything already.
    pub(crate) age: Option<Age>,
    /// How long it waits.
    pub(crate) timeout: Option<Duration>,
}

impl Database {
    /// Locks an object, waiting for those who are in the way.
    ///
    /// # Errors
    /// `40001` if the owner has to give way itself; `55P03` if it would have to wait for too long.
    pub(crate) async fn lock(
        &self,
        owner: &Arc<Owner>,
        wanted: &Wanted,
        timeout: Option<Duration>,
    ) -> Result<()> {
        let table = &self.sessions().lock_table;
        let since = Instant::now();
        let deadline = timeout.map(|timeout| since + timeout);
        let mut place: Option<Place<'_>> = None;
        poll_fn(|context| {
            let wish = Wish { waker: context.waker(), since, waits: timeout != Some(Duration::ZERO) };
            match table.ask(owner, wanted, |target| self.target_name(target), wish) {
                Ok(Answer::Granted) => Poll::Ready(Ok(())),
                Ok(Answer::Blocked(holder)) => {
                    place.get_or_insert_with(|| Place {
                        database: self,
                        owner,
                        table: wanted.target.table(),
                    });
                    let Some(deadline) = deadline else { return Poll::Pending };
                    if Instant::now() >= deadline {
                        let wait = Wait {
                            waiting: owner.label.clone(),
                            holder: holder.label.clone(),
                            table: wanted.target.table(),
                            row: self.target_name(&wanted.target),
                            writes: false,
                            since,
                        };
                        return Poll::Ready(Err(waited_too_long(&wait)));
                    }
                    self.sessions().alarm.at(deadline, context.waker().clone());
                    Poll::Pending
                }
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// What messages call a target.
    pub(crate) fn target_name(&self, target: &Target) -> String {
        let definitions = self.definitions();
        match target {
            Target::Row(table, key) => row_name(&definitions, &(*table, key.clone())),
            Target::Range(range) => definitions.table(range.table).schema().name.clone(),
        }
    }

    /// Locks the rows that a call is going to write, or the columns of them that it may write.
    ///
    /// # Errors
    /// `40001` if the owner has to give way itself; `55P03` if it would have to wait for too long.
    pub(crate) async fn lock_written(
        &self,
        owner: &Arc<Owner>,
        procedure: &Procedure,
        arguments: &[u8],
        (grain, timeout): (Grain, Option<Duration>),
    ) -> Result<()> {
        let accesses = match grain {
            Grain::Row => Accesses::default(),
            Grain::Column => Accesses::of(&procedure.program, &self.definitions().catalog),
        };
        let mut locked: BTreeSet<(TableId, KeyBytes)> = BTreeSet::new();
        loop {
            let next = {
                let snapshot = self.foundation().begin_snapshot();
                let mut overlay = Overlay::default();
                let begin = overlay.mark();
                let (engine, room) = (self.engine(), Room::unbounded());
                // A call that aborts writes nothing.
                let _ = engine.speculate(snapshot.seq(), procedure, arguments, &mut overlay, room);
                let mut written = overlay.written_since(begin).map(|(table, key)| (table, key.clone()));
                written.find(|row| !locked.contains(row))
            };
            let Some((table, key)) = next else { return Ok(()) };
            let wanted =
                Wanted { target: Target::Row(table, key.clone()), access: accesses.blindly_writing(table) };
            self.lock(owner, &wanted, timeout).await?;
            locked.insert((table, key));
        }
    }

    /// Locks what a call is going to write, for one that is not a conventional transaction's, until the guard is
    /// dropped. Costs one load as long as no conventional transaction holds locks.
    ///
    /// # Errors
    /// `55P03` if it would have to wait for too long.
    pub(crate) async fn lock_for_call(
        &self,
        caller: Waiter<'_>,
        procedure: &Procedure,
        arguments: &[u8],
    ) -> Result<Option<Guard<'_>>> {
        if self.sessions().lock_table.is_free() {
            return Ok(None);
        }
        let mut age = caller.age;
        loop {
            let owner = self.sessions().admission.owner(caller.label, age);
            age = Some(Age(owner.age));
            let guard = Guard { database: self, owner };
            // Whoever depends on whole rows has locked all their columns.
            let how = (Grain::Column, caller.timeout);
            let granted = self.lock_written(&guard.owner, procedure, arguments, how).await;
            match granted {
                Ok(()) => return Ok(Some(guard)),
                // It has given way, and does not tell anybody: nothing was shown.
                Err(_) if guard.owner.wounded().is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A place among those who wait, which is given up when this is dropped.
struct Place<'d> {
    database: &'d Database,
    owner: &'d Arc<Owner>,
    table: TableId,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.database.sessions().lock_table.leave(self.owner, self.table);
    }
}

/// The locks of a call, which are given up when this is dropped.
pub(crate) struct Guard<'d> {
    database: &'d Database,
    owner: Arc<Owner>,
}

impl Guard<'_> {
    /// How old the call is wherever it has to wait.
    pub(crate) fn age(&self) -> Age {
        Age(self.owner.age)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.database.sessions().lock_table.release(&self.owner);
    }
}
