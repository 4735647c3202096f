//! Looking ahead: bringing rows near before their calls run.
//!
//! A lookup is some cache misses in a row: the hash bucket, the record, its newest version, and what is
//! below it (which is folded when a version is put on top). The keys of calls that are still to come in
//! a turn are known from their arguments, so the misses of several calls are made to overlap:
//!
//! ```text
//! call            n + 4      n + 3       n + 2       n + 1      n
//! what is done    bucket     record      version     below      run
//! ```

use crate::Definitions;
use crossbeam_epoch::Guard;
use fabius_program::key_plan::KeyPlan;
use fabius_storage::{Record, index::prefetch};
use fabius_value::{Key, TableId};
use std::collections::VecDeque;

/// Calls between one stage and the next.
const STRIDE: usize = 2;
/// Rows that are followed per call.
const ROWS_MAX: usize = 64;

struct Row<'a> {
    table: TableId,
    hash: u64,
    record: Option<&'a Record>,
}

/// The calls of a run that have been looked at but not run.
pub struct Ahead<'a> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    /// By table: whether its rows are looked at.
    worth: Vec<bool>,
    calls: VecDeque<Vec<Row<'a>>>,
    spare: Vec<Vec<Row<'a>>>,
    key: Key,
}

impl<'a> Ahead<'a> {
    /// Nothing looked at yet.
    pub fn new(definitions: &'a Definitions, guard: &'a Guard) -> Ahead<'a> {
        let worth = definitions.tables.iter().map(|table| table.is_worth_prefetching()).collect();
        Ahead { definitions, guard, worth, calls: VecDeque::new(), spare: Vec::new(), key: Key::new() }
    }

    /// Looks at further calls, which `next` gives with their key plans and arguments, and moves those looked at
    /// before one stage on; to be called before each call is run.
    pub fn advance<'c>(&mut self, mut next: impl FnMut() -> Option<(Option<&'c KeyPlan>, &'c [u8])>) {
        if !self.worth.contains(&true) {
            return;
        }
        while self.calls.len() < 4 * STRIDE {
            let Some((plan, arguments)) = next() else { break };
            let mut rows = self.spare.pop().unwrap_or_default();
            let worth = |table: TableId| self.worth[table.0 as usize];
            if let Some(plan) = plan.filter(|plan| plan.tables().any(worth)) {
                plan.for_each(arguments, |table, values| {
                    let schema = self.definitions.table(table);
                    if worth(table)
                        && rows.len() < ROWS_MAX
                        && schema.encode_key(values, &mut self.key).is_ok()
                    {
                        let hash = self.key.hash();
                        if schema.prefetch(hash, self.guard) {
                            rows.push(Row { table, hash, record: None });
                        }
                    }
                });
            }
            self.calls.push_back(rows);
        }
        if let Some(rows) = self.calls.get_mut(3 * STRIDE - 1) {
            for row in rows {
                row.record = self.definitions.table(row.table).likely_record(row.hash, self.guard);
                if let Some(record) = row.record {
                    prefetch(record);
                }
            }
        }
        if let Some(rows) = self.calls.get(2 * STRIDE - 1) {
            for record in rows.iter().filter_map(|row| row.record) {
                prefetch(record.head());
            }
        }
        if let Some(rows) = self.calls.get(STRIDE - 1) {
            for record in rows.iter().filter_map(|row| row.record) {
                // SAFETY: linked versions stay readable while the epoch is pinned.
                if let Some(head) = unsafe { record.head().as_ref() } {
                    prefetch(head.next());
                    prefetch(head.base());
                }
            }
        }
        if let Some(mut rows) = self.calls.pop_front() {
            rows.clear();
            self.spare.push(rows);
        }
    }
}
