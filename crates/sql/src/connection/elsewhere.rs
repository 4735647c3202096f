//! Statements on a node that does not lead its cluster.
//!
//! Such a node runs statements on its own newest state, as the one that leads does. What they write is a call that is carried to the
//! leader with what it stands on written into it: the catalog by which the statement was understood, and that no table it writes is
//! [closed](crate::closed_tables). What needs the leader's memory (locks on rows and tables, pessimistic transactions, advisory
//! locks, definitions) is refused with 25006 and a hint that names the leader.

use super::Connection;
use super::prepared::{Body, Plan};
use crate::catalog::{Catalog, Oid};
use crate::closed_tables::{Ground, Standing};
use crate::lock::{LockKey, LockMode};
use fabius::{Concurrency, Footing, Requirement};
use fabius_value::{Error, Result, SqlState};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a write looks whether a table that is closed has been opened.
const LOOKS: Duration = Duration::from_millis(10);

/// What a write stands on that does not stand on the lead of this node.
#[derive(Clone, Debug, Default)]
pub(super) struct Elsewhere {
    /// The token of the catalog by which its first statement was understood, once there is one.
    token: Option<String>,
    /// The tables that it writes.
    written: BTreeSet<Oid>,
}

impl Elsewhere {
    /// That of one statement.
    pub fn of(catalog: &Catalog, plan: &Plan) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        elsewhere.understand(catalog);
        plan.tables.iter().for_each(|(key, mode)| elsewhere.lock(key, *mode));
        elsewhere
    }

    /// A statement of a catalog is a part of it.
    pub fn understand(&mut self, catalog: &Catalog) {
        self.token.get_or_insert_with(|| catalog.token.clone());
    }

    /// It takes a lock.
    pub fn lock(&mut self, key: &LockKey, mode: LockMode) {
        if let LockKey::Relation(table) = key
            && mode >= LockMode::RowExclusive
        {
            self.written.insert(*table);
        }
    }
}

impl Connection {
    /// Refuses what needs the memory of the node that leads, if this is another, or was when it was needed.
    ///
    /// # Errors
    /// `25006`; `55000` if the session has advisory locks that went with a lead.
    pub(super) fn refuse_elsewhere(&self, plan: &Plan) -> Result<()> {
        if plan.writes && !self.facts.advisory.lock().are_of(self.database.database().term_of_lead()) {
            return Err(Error::new(
                SqlState::NOT_IN_STATE,
                "the advisory locks of this session went with the lead of its node",
            )
            .with_detail("others may have taken them at the node that leads the cluster now")
            .with_hint("give them back (pg_advisory_unlock_all), or connect to the node that leads"));
        }
        if !self.database.is_standby() {
            return Ok(());
        }
        let locks_rows = plan.tables.iter().any(|(_, mode)| *mode == LockMode::RowShare);
        if locks_rows || matches!(plan.body, Body::SkipLocked(_)) {
            return Err(self.database.refuse_to_lead("lock rows"));
        }
        if plan.writes && self.options().concurrency == Concurrency::Pessimistic {
            return Err(self.database.refuse_to_lead("write in a pessimistic transaction"));
        }
        Ok(())
    }

    /// Before a statement by itself writes on a node that does not lead: what its call stands on, once that is so. Whether it is: names
    /// may mean something else by now.
    ///
    /// # Errors
    /// `55P03` if a table stays closed for too long.
    pub(super) async fn stand_elsewhere(&mut self, elsewhere: Elsewhere) -> Result<bool> {
        let Some(requirement) = self.requirement(&elsewhere).await? else { return Ok(false) };
        self.footing = Footing::State(requirement);
        Ok(true)
    }

    /// What a call that stands on this requires, once that is so; `None` if what names mean is not what it was.
    ///
    /// # Errors
    /// `55P03` if a table stays closed for too long.
    pub(super) async fn requirement(&mut self, elsewhere: &Elsewhere) -> Result<Option<Arc<Requirement>>> {
        let Some(closed) = &self.database.closed else { return Ok(None) };
        let ground = Ground {
            token: elsewhere.token.clone().unwrap_or_else(|| self.database.token()),
            written: elsewhere.written.clone(),
        };
        let deadline = self.settings.lock_timeout().map(|timeout| Instant::now() + timeout);
        loop {
            match closed.look(&ground).await? {
                Standing::Firm(requirement) => return Ok(Some(requirement)),
                Standing::Redefined => return Ok(None),
                Standing::Closed => {}
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Error::new(SqlState(*b"55P03"), "canceling statement due to lock timeout")
                    .with_detail("the node that leads the cluster keeps others from writing the table"));
            }
            tokio::time::sleep(LOOKS).await;
        }
    }

    /// After a statement by itself has failed that required something: whether that may be why, so that it is to be understood anew.
    ///
    /// # Errors
    /// Why this node has stopped.
    pub(super) async fn has_lost_ground(&mut self, catalog: &Arc<Catalog>, error: &Error) -> Result<bool> {
        let Footing::State(required) = std::mem::take(&mut self.footing) else { return Ok(false) };
        // It was not run: it required something in vain, or its tables are not there any more.
        let was_not_run =
            error.state() == SqlState::SERIALIZATION_FAILURE || error.state().as_str().starts_with("42");
        if !was_not_run {
            return Ok(false);
        }
        self.database.come_up_to_date(false).await?;
        if self.catalog().version != catalog.version {
            return Ok(true);
        }
        let again =
            self.database.database().read(&required.statement, &required.arguments, usize::MAX, None).await?;
        Ok(again.results != required.results)
    }
}
