//! Procedures whose now-phases meet stickies, so that what they wait for is run before they come to the lane.
//!
//! A now-phase that reads a sticky has to wait until the calls are run that it stands for (lazy evaluation, sections
//! 2.3 and 2.4). In the lane everybody would wait with it. Which procedures do so, and in which columns, is seen when
//! it happens: the next calls of such a procedure have these columns of the rows that their arguments name looked at
//! while they are made ready, and what is open there is run then, by the thread that brings them. What comes in between
//! is still run in the lane.
//!
//! ```text
//! thread 1   | make ready | run 1,000 deferred calls of a row | lane |
//! thread 2   | make ready | lane       | make ready | lane    |      | lane
//! ```
//!
//! A procedure that has not met one for a while is left alone again: running early what nobody waits for would be
//! eager evaluation.

use fabius_program::catalog::ProcedureId;
use fabius_value::{ColumnId, ColumnMask, TableId};
use parking_lot::{RwLock, RwLockReadGuard};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Calls of a procedure that are looked at once one of them has met a sticky.
const LOOKS: u32 = 32;

/// What is known of a procedure.
#[derive(Default)]
struct Met {
    /// Calls that are still to be looked at.
    looks: AtomicU32,
    /// Where now-phases have met stickies.
    columns: Vec<(TableId, ColumnMask)>,
}

/// By procedure: what its now-phases have waited for.
#[derive(Default)]
pub struct Awaited(RwLock<Vec<Met>>);

impl Awaited {
    /// Says that a now-phase of a procedure has met a sticky in a column.
    pub fn note(&self, procedure: ProcedureId, (table, column): (TableId, ColumnId)) {
        let mut all = self.0.write();
        let at = procedure.0 as usize;
        if at >= all.len() {
            all.resize_with(at + 1, Met::default);
        }
        let Met { looks, columns } = &mut all[at];
        *looks.get_mut() = LOOKS;
        match columns.iter_mut().find(|(own, _)| *own == table) {
            Some((_, columns)) => columns.insert(column),
            None => columns.push((table, ColumnMask::from_iter([column]))),
        }
    }

    /// What is known now, for the calls of an intake. Nothing can be noted while it is held.
    pub fn looks(&self) -> Looks<'_> {
        Looks(self.0.read())
    }
}

/// Calls that are still to be looked at, by procedure.
pub struct Looks<'a>(RwLockReadGuard<'a, Vec<Met>>);

impl Looks<'_> {
    /// Which columns are to be looked at for the next call of a procedure, by table.
    #[inline]
    pub fn take(&self, procedure: ProcedureId) -> &[(TableId, ColumnMask)] {
        let Some(Met { looks, columns }) = self.0.get(procedure.0 as usize) else { return &[] };
        let left = looks.load(Relaxed);
        if left == 0 {
            return &[];
        }
        // Two threads that count two calls as one look at one more.
        looks.store(left - 1, Relaxed);
        columns
    }
}
