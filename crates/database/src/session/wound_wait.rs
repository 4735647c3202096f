//! Who waits for whom: wound-wait by age.
//!
//! ```text
//! older wants what younger holds      the younger is wounded: it gives up what it holds, and gets 40001
//! younger wants what older holds      it waits
//! ```
//!
//! So waiting always leads to something older, and never in a circle; the oldest is never wounded. A
//! transaction's age counts from its first lock: one that has not locked anything is in nobody's way. Who has given
//! way and tries again can do so at the age it had ([`Age`]), so that its turn comes.

use fabius_value::{Error, Result, SqlState};
use parking_lot::Mutex;

/// How old a transaction is among those that lock: the lower the number, the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(pub(crate) u64);

/// Someone who holds locks, or wants to write past them. Numbers go up: the lower, the older.
pub(crate) struct Owner {
    /// The owner's place in the order of ages.
    pub(crate) age: u64,
    /// What errors call it.
    pub(crate) label: String,
    standing: Mutex<Standing>,
}

/// What becomes of an owner.
///
/// ```text
/// Active ---an older one wants what it holds--> Wounded
///    \------its call goes to the engine-------> Committing
/// ```
enum Standing {
    Active,
    Wounded(Error),
    Committing,
}

impl Owner {
    /// An owner of this age.
    pub(crate) fn new(age: u64, label: &str) -> Owner {
        let label = if label.is_empty() { format!("transaction {age}") } else { label.to_string() };
        Owner { age, label, standing: Mutex::new(Standing::Active) }
    }

    /// Makes it give up; `what` it held that the culprit wanted. Whether it does: one that commits is waited for.
    pub(crate) fn wound(&self, culprit: &Owner, what: &str) -> bool {
        let mut standing = self.standing.lock();
        if let Standing::Active = *standing {
            let error = Error::new(
                SqlState::SERIALIZATION_FAILURE,
                "could not serialize access due to concurrent update",
            )
            .with_detail(format!(
                "{} gave way to {}, which is older and wanted {what}",
                self.label, culprit.label
            ))
            .with_hint("the transaction might succeed if retried");
            *standing = Standing::Wounded(error);
        }
        !matches!(*standing, Standing::Committing)
    }

    /// From here on it gives way to nobody: it waits for nothing but the engine, which does not wait for locks.
    ///
    /// # Errors
    /// Why it has to give up, if it has.
    pub(crate) fn begin_commit(&self) -> Result<()> {
        let mut standing = self.standing.lock();
        match &*standing {
            Standing::Wounded(error) => Err(error.clone()),
            _ => {
                *standing = Standing::Committing;
                Ok(())
            }
        }
    }

    /// Why it has to give up, if it has.
    pub(crate) fn wounded(&self) -> Option<Error> {
        match &*self.standing.lock() {
            Standing::Wounded(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Whether its call is with the engine.
    pub(crate) fn is_committing(&self) -> bool {
        matches!(*self.standing.lock(), Standing::Committing)
    }
}
