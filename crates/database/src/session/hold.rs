//! What becomes of what a statement has shown.

/// What becomes of what a statement shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// It is checked at commit; in a pessimistic transaction it is locked.
    #[default]
    Observe,
    /// It stays as it is until the transaction ends (`FOR SHARE`).
    Lock,
    /// Besides, nobody else writes or locks the rows it has looked at (`FOR UPDATE`).
    LockForUpdate,
}
