//! Going back to a point within a transaction.

use super::transaction::Transaction;

/// A point within a transaction. It means nothing to another transaction, nor after going back behind it.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    statements: usize,
}

impl Transaction {
    /// The point after everything run so far.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { statements: self.observations.len() - self.in_front }
    }

    /// Forgets all statements after a point.
    pub(super) fn truncate_to(&mut self, savepoint: &Savepoint) {
        self.truncate(self.in_front + savepoint.statements);
    }

    /// Forgets everything that was run after a point, what it has shown and locked included: whether that still
    /// holds does not matter to what is left. Does nothing for a point that was gone behind already.
    pub fn roll_back_to(&mut self, savepoint: &Savepoint) {
        self.truncate_to(savepoint);
        if let Some(owner) = &self.owner {
            self.database.set_locks(owner, &self.observations);
        }
    }
}
