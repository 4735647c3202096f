//! Rows, definitions and keys of one seq, for as long as somebody looks.
//!
//! A reader of whole tables: it holds a snapshot, so that its rows stay, but an epoch only for some rows
//! at a time, so that what calls leave behind meanwhile can be freed.

use crate::idempotency::KeyWalk;
use crate::{Definitions, Foundation};
use fabius_storage::snapshot::Snapshot;
use fabius_storage::{Cell, chain, checkpoint};
use fabius_value::{Datum, Result, Seq, TableId};
use std::sync::Arc;

/// Rows read under one epoch.
const ROWS_PER_EPOCH: usize = 256;

/// A seq with everything that belongs to it.
pub struct Standpoint<'f> {
    snapshot: Snapshot<'f>,
    definitions: Arc<Definitions>,
    keys: Option<KeyWalk<'f>>,
}

impl<'f> Standpoint<'f> {
    /// The newest promised seq. There may be newer definitions than those of that seq.
    pub fn newest(foundation: &'f Foundation) -> Standpoint<'f> {
        let snapshot = foundation.begin_snapshot();
        Standpoint { snapshot, definitions: foundation.definitions(), keys: None }
    }

    /// The same, with the keys. The caller sees to it that no definition comes in between.
    pub fn whole(foundation: &'f Foundation) -> Standpoint<'f> {
        // Nothing is forgotten from before the snapshot on, and what is remembered until after it counts.
        let mut keys = KeyWalk::new(&foundation.keys);
        let mut at = Standpoint::newest(foundation);
        keys.reach_now();
        at.keys = Some(keys);
        at
    }

    /// The seq.
    pub fn seq(&self) -> Seq {
        self.snapshot.seq()
    }

    /// The definitions in force.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// The walk over the keys, once.
    pub fn take_keys(&mut self) -> Option<KeyWalk<'f>> {
        self.keys.take()
    }

    /// Shows every row of a table; `substantiate` computes what a sticky stands for, given its address and
    /// under the epoch in which it was read.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub fn visit_rows(
        &self,
        table: TableId,
        substantiate: &mut dyn FnMut(*mut ()),
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<()>,
    ) -> Result<()> {
        let table = self.definitions.table(table);
        let records = checkpoint::present(table, self.seq(), &crossbeam_epoch::pin());
        for records in records.chunks(ROWS_PER_EPOCH) {
            let _guard = crossbeam_epoch::pin();
            let mut row: Vec<Datum<'_>> = Vec::with_capacity(table.types().len());
            for record in records {
                row.clear();
                // SAFETY: the snapshot keeps a record that is present at its seq (see `present`), and the
                // epoch is pinned for its versions.
                let version = unsafe { record.as_ref().visible(self.seq()) };
                for column in table.schema().all_mask().iter() {
                    let data_type = table.types()[usize::from(column.0)];
                    loop {
                        // SAFETY: as above.
                        match unsafe { chain::read(version, column, data_type, std::ptr::null_mut()) } {
                            Cell::Value(value) => break row.push(value),
                            Cell::Pending(source) => substantiate(source),
                            Cell::Absent => unreachable!("a present row has every column"),
                        }
                    }
                }
                visit(&row)?;
            }
        }
        Ok(())
    }
}
