//! The modes of locks on tables.
//!
//! Statements share a table, definitions have it to themselves; `LOCK TABLE` takes the mode that it names. The modes
//! and what each excludes are PostgreSQL's (its documentation, 13.3.1 "Table-Level Locks"):
//!
//! ```text
//!                          AS  RS  RE  SUE S   SRE E   AE
//! access share                                         x     reading
//! row share                                        x   x     reading for update
//! row exclusive                            x   x   x   x     writing
//! share update exclusive               x   x   x   x   x
//! share                            x   x       x   x   x
//! share row exclusive              x   x   x   x   x   x
//! exclusive                    x   x   x   x   x   x   x
//! access exclusive         x   x   x   x   x   x   x   x     defining anew
//! ```

/// How, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Reading.
    AccessShare,
    /// Reading for update.
    RowShare,
    /// Writing.
    RowExclusive,
    /// One at a time, while others write.
    ShareUpdateExclusive,
    /// Nobody writes.
    Share,
    /// One at a time, and nobody writes.
    ShareRowExclusive,
    /// Others only read.
    Exclusive,
    /// Alone.
    AccessExclusive,
}

use LockMode::{
    AccessExclusive, AccessShare, Exclusive, RowExclusive, RowShare, Share, ShareRowExclusive,
    ShareUpdateExclusive,
};

impl LockMode {
    /// All, from the weakest on.
    pub const ALL: [LockMode; 8] = [
        AccessShare,
        RowShare,
        RowExclusive,
        ShareUpdateExclusive,
        Share,
        ShareRowExclusive,
        Exclusive,
        AccessExclusive,
    ];

    /// The mode's name in `pg_locks`.
    pub fn name(self) -> &'static str {
        match self {
            AccessShare => "AccessShareLock",
            RowShare => "RowShareLock",
            RowExclusive => "RowExclusiveLock",
            ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            Share => "ShareLock",
            ShareRowExclusive => "ShareRowExclusiveLock",
            Exclusive => "ExclusiveLock",
            AccessExclusive => "AccessExclusiveLock",
        }
    }

    /// Whether others may not write beside it.
    pub fn excludes_writers(self) -> bool {
        self.excluded().has(RowExclusive)
    }

    /// The modes that others may not have beside it.
    pub fn excluded(self) -> Modes {
        let from = |weakest: LockMode| Modes::ALL.from(weakest);
        match self {
            AccessShare => from(AccessExclusive),
            RowShare => from(Exclusive),
            RowExclusive => from(Share),
            ShareUpdateExclusive => from(ShareUpdateExclusive),
            Share => from(RowExclusive).without(Share),
            ShareRowExclusive => from(RowExclusive),
            Exclusive => from(RowShare),
            AccessExclusive => Modes::ALL,
        }
    }
}

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(u8);

impl Modes {
    /// Every mode.
    pub const ALL: Modes = Modes(u8::MAX);

    /// Whether a mode is among them.
    pub fn has(self, mode: LockMode) -> bool {
        self.0 & (1 << mode as u8) != 0
    }

    /// They, and a mode.
    pub fn with(self, mode: LockMode) -> Modes {
        Modes(self.0 | (1 << mode as u8))
    }

    /// They without a mode.
    pub fn without(self, mode: LockMode) -> Modes {
        Modes(self.0 & !(1 << mode as u8))
    }

    /// Those among them from a mode on.
    pub fn from(self, weakest: LockMode) -> Modes {
        Modes(self.0 & (u8::MAX << weakest as u8))
    }

    /// Whether a mode is in both.
    pub fn meets(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, from the weakest on.
    pub fn each(self) -> impl Iterator<Item = LockMode> {
        LockMode::ALL.into_iter().filter(move |mode| self.has(*mode))
    }
}
