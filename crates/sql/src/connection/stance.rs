//! What statements and transactions stand on, where a database is a node of a cluster.
//!
//! On the node that leads they stand on its memory: locks, and what names mean. What they write is agreed on in the
//! term in which the node has led since before they were understood, or not at all.
//!
//! On another node statements run on the node's own newest state, as they would at the one that leads. What they
//! write is a call that is carried to the leader with what it stands on written into it: the catalog by which the
//! statement was understood, and that no table it writes is [closed](crate::closed_tables). What needs the leader's
//! memory (locks on rows and tables, pessimistic transactions, advisory locks, definitions) is refused with 25006 and
//! a hint that names the leader.
//!
//! A transaction keeps to what it stood on when it began, whoever leads by the time it commits.

use super::Connection;
use super::plan::{Body, Plan};
use super::sql_database::SqlDatabase;
use crate::closed_tables::{Ground, Standing};
use crate::lock::LockMode;
use fabius::{Concurrency, Footing, Requirement};
use fabius_sql_meaning::catalog::Catalog;
use fabius_value::{Error, Result, SqlState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a write looks whether a table that is closed has been opened.
const LOOKS: Duration = Duration::from_millis(10);

/// What a statement by itself, or a transaction, stands on.
#[derive(Clone, Debug)]
pub(super) enum Stance {
    /// The memory of this node, which leads its cluster in this term; in a database that is no node of one, in no term.
    Lead(Option<u64>),
    /// The state: this node did not lead.
    State(Ground),
}

impl Default for Stance {
    fn default() -> Stance {
        Stance::Lead(None)
    }
}

impl Stance {
    /// What is begun on a node now stands on this. Where it leads, it has everything that was agreed on before it did.
    ///
    /// # Errors
    /// As [`SqlDatabase::come_up_to_date`].
    pub async fn now(database: &SqlDatabase) -> Result<Stance> {
        if !database.database().is_replicated() {
            return Ok(Stance::Lead(None));
        }
        let Some(term) = database.database().term_of_lead() else {
            return Ok(Stance::State(Ground::default()));
        };
        database.know_all_before(term).await?;
        Ok(Stance::Lead(Some(term)))
    }

    /// The term in which it stands on this node's lead, if it stands on one.
    pub fn term(&self) -> Option<u64> {
        match self {
            Stance::Lead(term) => *term,
            Stance::State(_) => None,
        }
    }
}

impl Connection {
    /// What is run now stands on this.
    pub(super) fn stance(&self) -> &Stance {
        self.transaction.get().map_or(&self.execution.stance, |open| &open.stance)
    }

    /// What is run now stands on, if it is not the lead of this node.
    pub(super) fn ground(&mut self) -> Option<&mut Ground> {
        match self.transaction.get_mut().map_or(&mut self.execution.stance, |open| &mut open.stance) {
            Stance::Lead(_) => None,
            Stance::State(ground) => Some(ground),
        }
    }

    /// Whether what is run now does not stand on the lead of this node.
    pub(crate) fn stands_elsewhere(&self) -> bool {
        matches!(self.stance(), Stance::State(_))
    }

    /// Notes by which catalog a statement is understood.
    pub(crate) fn understand(&mut self, catalog: &Catalog) {
        if let Some(ground) = self.ground() {
            ground.token.get_or_insert_with(|| catalog.token.clone());
        }
    }

    /// What the calls of what is run now stand on.
    pub(super) fn footing(&self) -> Footing {
        match (&self.execution.requirement, self.stance()) {
            (Some(requirement), _) => Footing::State(requirement.clone()),
            (None, Stance::Lead(Some(term))) => Footing::Term(*term),
            // What writes has a requirement by then.
            (None, Stance::Lead(None) | Stance::State(_)) => Footing::Lead,
        }
    }

    /// Refuses what needs the memory of the node that leads, unless what is run now stands on that.
    ///
    /// # Errors
    /// `25006` with a hint that names the leader; `40001` if the lead has passed on since the transaction began.
    pub(crate) fn need_lead(&self, what: &str) -> Result<()> {
        match self.stance() {
            Stance::Lead(term) if *term == self.database.database().term_of_lead() => Ok(()),
            Stance::Lead(_) => Err(fabius::other_leader()),
            Stance::State(_) if self.database.is_standby() => Err(self.database.refuse_to_lead(what)),
            Stance::State(_) => Err(Error::new(
                SqlState::SERIALIZATION_FAILURE,
                format!("cannot {what} in a transaction that began before its node led the cluster"),
            )
            .with_hint("the transaction might succeed if retried")),
        }
    }

    /// Refuses to write beside advisory locks that what is run now does not stand on: who writes relies on them.
    ///
    /// # Errors
    /// `55000`
    pub(crate) fn refuse_void_locks(&self) -> Result<()> {
        if self.session.facts.advisory.lock().are_of(self.stance().term()) {
            return Ok(());
        }
        Err(Error::new(
            SqlState::NOT_IN_STATE,
            "the advisory locks of this session are of another lead of its node",
        )
        .with_detail("others may have taken them at the node that leads the cluster now")
        .with_hint("give them back (pg_advisory_unlock_all), or connect to the node that leads"))
    }

    /// Refuses what a plan needs of the memory of the node that leads, if what is run now does not stand on that.
    ///
    /// # Errors
    /// As [`Connection::need_lead`] and [`Connection::refuse_void_locks`].
    pub(super) fn refuse_elsewhere(&self, plan: &Plan) -> Result<()> {
        if plan.writes {
            self.refuse_void_locks()?;
        }
        if !self.stands_elsewhere() {
            return Ok(());
        }
        let locks_rows = plan.tables.iter().any(|(_, mode)| *mode == LockMode::RowShare);
        if locks_rows || matches!(plan.body, Body::SkipLocked(_)) {
            return self.need_lead("lock rows");
        }
        if plan.writes { self.refuse_pessimistic() } else { Ok(()) }
    }

    /// Refuses to write in a pessimistic transaction where that does not stand on the lead of this node.
    ///
    /// # Errors
    /// As [`Connection::need_lead`].
    pub(crate) fn refuse_pessimistic(&self) -> Result<()> {
        match self.stands_elsewhere() && self.options().concurrency == Concurrency::Pessimistic {
            true => self.need_lead("write in a pessimistic transaction"),
            false => Ok(()),
        }
    }

    /// Before a statement by itself writes, if it does not stand on the lead of this node: finds what its call stands
    /// on, once that is so. Whether it is: names may mean something else by now.
    ///
    /// # Errors
    /// `55P03` if a table stays closed for too long.
    pub(super) async fn find_requirement(&mut self) -> Result<bool> {
        let Some(ground) = self.ground().cloned() else { return Ok(true) };
        self.execution.requirement = self.requirement_of(&ground).await?;
        Ok(self.execution.requirement.is_some())
    }

    /// What a call that stands on this requires, once that is so; `None` if what names mean is not what it was.
    ///
    /// # Errors
    /// `55P03` if a table stays closed for too long.
    pub(super) async fn requirement_of(&mut self, ground: &Ground) -> Result<Option<Arc<Requirement>>> {
        let Some(closed) = &self.database.closed else { return Ok(None) };
        let deadline = self.session.settings.lock_timeout().map(|timeout| Instant::now() + timeout);
        loop {
            match closed.look(ground).await? {
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

    /// After a statement by itself has failed that a catalog has explained: whether it was not run because what it
    /// stood on is not so any more, so that it is to be understood anew.
    ///
    /// # Errors
    /// Why this node has stopped.
    pub(super) async fn has_lost_ground(&mut self, catalog: &Catalog, error: &Error) -> Result<bool> {
        let has_required = self.execution.requirement.take().is_some();
        if !self.database.database().is_replicated() {
            return Ok(false);
        }
        let is_lost = match self.execution.stance {
            Stance::Lead(_) => *error == fabius::other_leader(),
            Stance::State(_) => has_required && *error == fabius::lost_footing(),
        };
        // Tables that a statement names go when they are replaced; at the node that leads, locks keep them.
        let names_nothing = self.stands_elsewhere() && error.state().as_str().starts_with("42");
        if !is_lost && !names_nothing {
            return Ok(false);
        }
        self.database.come_up_to_date(false).await?;
        Ok(is_lost || self.catalog().version != catalog.version)
    }
}
