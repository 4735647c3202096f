//! Calls on their way to the lane, made ready for it.
//!
//! The lane is one thread's at a time, so whatever does not depend on the order is done before it is
//! taken: a thread that is about to take a turn decodes the arguments of its calls, looks the rows up
//! whose keys they give, and brings those near, while another thread may still be in the lane.
//!
//! ```text
//! thread 1   | make ready | lane            | deferred calls | make ready | wait | lane ...
//! thread 2         | make ready | wait      | lane             | deferred calls | make ready ...
//! ```
//!
//! A lookup is some cache misses in a row: the hash bucket, the record, its newest version, and what is
//! below it. They are made to overlap, as calls go through the stages one behind the other:
//!
//! ```text
//! call            n         n - 2      n - 4       n - 6
//! what is done    bucket    record     version     below
//! ```
//!
//! The records that were found on the way are the lane's to use ([`fabius_engine::expected`]).

use crate::awaited::Awaited;
use crossbeam_epoch::Guard;
use fabius_engine::entry::{self, Call};
use fabius_engine::expected::{ExpectedRow, expect};
use fabius_engine::{Batch, Definitions};
use fabius_program::arguments::{ArgumentPlace, Arguments, DecodedArguments};
use fabius_program::execute::emptied;
use fabius_storage::{Record, Version};
use fabius_value::{ColumnMask, Key, Result, TableId};
use std::ops::Range;
use std::sync::Arc;

/// Calls between one stage and the next.
const STRIDE: usize = 2;
/// Rows that are looked up per call.
const ROWS_MAX: usize = 64;
/// Rows of an intake that are looked for because a now-phase may wait for them.
const AWAITED_MAX: usize = 1 << 12;
/// Argument values whose buffer is kept: those of a few calls with very long lists are not.
const VALUES_KEPT: usize = 1 << 16;

struct Coming<'a> {
    call: Call<'a>,
    place: Result<ArgumentPlace>,
    rows: Range<u32>,
}

/// Calls made ready, in their order.
pub struct Intake<'a> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    calls: Vec<Coming<'a>>,
    decoded: DecodedArguments<'a>,
    rows: Vec<ExpectedRow<'a>>,
    key: Key,
    awaited: Vec<(&'a Record, ColumnMask)>,
}

impl<'a> Intake<'a> {
    /// Makes the calls of runs of encoded calls ready to be run under these definitions.
    pub fn prepare(
        spare: Buffers,
        awaited: &Awaited,
        definitions: &'a Definitions,
        guard: &'a Guard,
        runs: impl Iterator<Item = &'a [u8]>,
    ) -> Intake<'a> {
        let Buffers { calls, decoded, rows, key, awaited: rows_awaited } = spare;
        let mut intake = Intake {
            definitions,
            guard,
            calls: emptied(calls),
            decoded: decoded.recycle(),
            rows: emptied(rows),
            key,
            awaited: emptied(rows_awaited),
        };
        let looks = awaited.looks();
        for mut run in runs {
            while !run.is_empty() {
                let Some(call) = entry::take_call(&mut run) else {
                    unreachable!("batches are encoded by their builder, and replayed ones are checked before")
                };
                intake.decode(call);
                intake.look_up();
                intake.look_for_awaited(looks.take(call.procedure));
                intake.bring_near(intake.calls.len() - 1);
            }
        }
        (0..3 * STRIDE).for_each(|behind| intake.bring_near(intake.calls.len() + behind));
        intake
    }

    /// The definitions that the calls were made ready for.
    pub fn definitions(&self) -> &'a Definitions {
        self.definitions
    }

    /// The epoch since before their rows were looked up.
    pub fn guard(&self) -> &'a Guard {
        self.guard
    }

    /// How many calls there are.
    pub fn count(&self) -> usize {
        self.calls.len()
    }

    /// A call, its arguments if there is such a procedure, and the rows that it is expected to look up; those of the
    /// calls after it are brought near.
    pub fn call(&self, at: usize) -> (&Call<'a>, Result<Arguments<'_, 'a>>, &[ExpectedRow<'a>]) {
        self.rows(at + 3 * STRIDE).iter().for_each(ExpectedRow::prefetch_record);
        let newest = self.rows(at + 2 * STRIDE).iter().filter_map(ExpectedRow::newest_version);
        newest.for_each(Version::prefetch);
        self.rows(at + STRIDE).iter().flat_map(below).for_each(Version::prefetch);
        let Coming { call, place, .. } = &self.calls[at];
        (call, place.clone().map(|place| self.decoded.at(place)), self.rows(at))
    }

    /// The records, and their columns, that now-phases may wait for.
    pub fn awaited(&self) -> &[(&'a Record, ColumnMask)] {
        &self.awaited
    }

    /// The emptied buffers, for another intake.
    pub fn into_buffers(self) -> Buffers {
        Buffers {
            calls: emptied(self.calls),
            decoded: match self.decoded.count() {
                0..=VALUES_KEPT => self.decoded.recycle(),
                _ => DecodedArguments::default(),
            },
            rows: emptied(self.rows),
            key: self.key,
            awaited: emptied(self.awaited),
        }
    }

    fn decode(&mut self, call: Call<'a>) {
        let place = match self.definitions.procedure(call.procedure) {
            Ok(procedure) => self.decoded.push(&procedure.signature, call.arguments),
            // Whoever runs it asks again, and says so.
            Err(_) => Ok(ArgumentPlace::default()),
        };
        let end = self.rows.len() as u32;
        self.calls.push(Coming { call, place, rows: end..end });
    }

    /// Begins to look up the rows of the last call.
    fn look_up(&mut self) {
        let Some(Coming { call, place: Ok(place), rows }) = self.calls.last_mut() else { return };
        let Ok(procedure) = self.definitions.procedure(call.procedure) else { return };
        procedure.keys.for_each(self.decoded.at(*place), |table, values| {
            let schema = self.definitions.table(table);
            if schema.is_worth_prefetching() && rows.len() < ROWS_MAX {
                expect(&mut self.rows, schema, values, &mut self.key, self.guard);
                rows.end = self.rows.len() as u32;
            }
        });
    }

    /// Finds the rows that the last call's now-phase may wait for in these columns.
    fn look_for_awaited(&mut self, columns: &[(TableId, ColumnMask)]) {
        let Some(Coming { call, place: Ok(place), .. }) = self.calls.last() else { return };
        let Ok(procedure) = self.definitions.procedure(call.procedure) else { return };
        if columns.is_empty() {
            return;
        }
        procedure.keys.for_each(self.decoded.at(*place), |table, values| {
            let Some((_, columns)) = columns.iter().find(|(own, _)| *own == table) else { return };
            let schema = self.definitions.table(table);
            // No row has a key that is too long.
            if self.awaited.len() < AWAITED_MAX && schema.encode_key(values, &mut self.key).is_ok() {
                self.awaited.extend(schema.find(&self.key, self.guard).map(|record| (record, *columns)));
            }
        });
    }

    /// Moves the calls behind the one at `newest` one stage on.
    fn bring_near(&mut self, newest: usize) {
        let (definitions, guard) = (self.definitions, self.guard);
        self.rows_mut(newest.checked_sub(STRIDE)).for_each(|row| row.find_record(definitions, guard));
        self.rows_mut(newest.checked_sub(2 * STRIDE)).for_each(ExpectedRow::find_version);
        if let Some(at) = newest.checked_sub(3 * STRIDE) {
            let rows = self.rows(at).iter();
            rows.flat_map(|row| row.newest_version().into_iter().chain(below(row)))
                .for_each(Version::prefetch);
        }
    }

    /// The rows of a call, if there is one at `at`.
    fn rows(&self, at: usize) -> &[ExpectedRow<'a>] {
        self.calls.get(at).map_or(&[], |coming| &self.rows[place(&coming.rows)])
    }

    fn rows_mut(&mut self, at: Option<usize>) -> impl Iterator<Item = &mut ExpectedRow<'a>> {
        let coming = at.and_then(|at| self.calls.get(at));
        self.rows[coming.map_or(0..0, |coming| place(&coming.rows))].iter_mut()
    }
}

/// What is read below a row's newest version.
fn below<'a>(row: &ExpectedRow<'a>) -> impl Iterator<Item = &'a Version> + use<'a> {
    let below = row.newest_version().map(|version| (version.next(), version.base()));
    let (next, base) = below.unwrap_or((std::ptr::null(), std::ptr::null()));
    let base = if base == next { std::ptr::null() } else { base };
    // SAFETY: linked versions stay readable while the epoch is pinned.
    [next, base].into_iter().filter_map(|below| unsafe { below.as_ref() })
}

fn place(rows: &Range<u32>) -> Range<usize> {
    rows.start as usize..rows.end as usize
}

/// What an intake is made of, kept warm from one to the next.
#[derive(Default)]
pub struct Buffers {
    calls: Vec<Coming<'static>>,
    decoded: DecodedArguments<'static>,
    rows: Vec<ExpectedRow<'static>>,
    key: Key,
    awaited: Vec<(&'static Record, ColumnMask)>,
}

/// The encoded calls of batches.
pub fn runs(batches: &[Arc<Batch>]) -> impl Iterator<Item = &[u8]> {
    batches.iter().map(|batch| batch.calls())
}
