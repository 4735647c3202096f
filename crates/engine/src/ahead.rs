//! Looking ahead: bringing rows near before their calls run.
//!
//! A lookup is some cache misses in a row: the hash bucket, the record, its newest version, and its long values (and of
//! what is below it, what is read or folded). The keys of calls that are still to come in a turn are known from their
//! arguments, so the misses of several calls are made to overlap:
//!
//! ```text
//! call            n + 4      n + 3       n + 2       n + 1      n
//! what is done    bucket     record      version     values,    run
//!                                                   below
//! ```
//!
//! A call's arguments are decoded when it is first looked at, and kept until it runs; so are the records that were
//! found, which its program most often looks up in that order ([`crate::expected`]).

use crate::Definitions;
use crate::entry::Call;
use crate::expected::{ExpectedRow, ExpectedRows, expect};
use crossbeam_epoch::Guard;
use fabius_program::arguments::{ArgumentPlace, Arguments, DecodedArguments};
use fabius_storage::index::prefetch;
use fabius_value::{Key, Result, TableId};
use std::collections::VecDeque;

/// Calls that are looked at before the first of them runs, one for each stage: the rows of more would push those of the
/// next ones out of the cache again.
const CALLS: usize = 5;
/// Rows that are followed per call.
const ROWS_MAX: usize = 64;

/// A call that has been looked at.
pub struct Coming<'a> {
    /// The call.
    pub call: Call<'a>,
    decoded: DecodedArguments<'a>,
    place: Result<ArgumentPlace>,
    expected: ExpectedRows<'a>,
}

impl<'a> Coming<'a> {
    /// The call's arguments, if there is such a procedure.
    ///
    /// # Errors
    /// They do not decode.
    pub fn arguments(&self) -> Result<Arguments<'_, 'a>> {
        self.place.clone().map(|place| self.decoded.at(place))
    }

    /// Exchanges the decoded arguments and what is expected with others.
    pub(crate) fn swap(
        &mut self,
        decoded: &mut DecodedArguments<'a>,
        place: &mut Result<ArgumentPlace>,
        expected: &mut ExpectedRows<'a>,
    ) {
        std::mem::swap(&mut self.decoded, decoded);
        std::mem::swap(&mut self.place, place);
        std::mem::swap(&mut self.expected, expected);
    }
}

/// The calls of a run that have been looked at but not run.
pub struct Ahead<'a> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    /// By table: whether its rows are looked at.
    worth: Vec<bool>,
    /// Calls that are looked at before the first of them runs.
    depth: usize,
    calls: VecDeque<Coming<'a>>,
    spare: Vec<(DecodedArguments<'a>, ExpectedRows<'a>)>,
    key: Key,
    /// Whether a call was run.
    has_begun: bool,
}

impl<'a> Ahead<'a> {
    /// Nothing looked at yet.
    pub fn new(definitions: &'a Definitions, guard: &'a Guard) -> Ahead<'a> {
        let worth: Vec<bool> = definitions.tables.iter().map(|table| table.is_worth_prefetching()).collect();
        Ahead {
            definitions,
            guard,
            depth: if worth.contains(&true) { CALLS } else { 1 },
            worth,
            calls: VecDeque::new(),
            spare: Vec::new(),
            key: Key::new(),
            has_begun: false,
        }
    }

    /// Whether any table is so large that looking ahead is worth while.
    pub fn is_worth_while(&self) -> bool {
        self.worth.contains(&true)
    }

    /// Whether further calls are to be looked at before the next one is run.
    pub fn is_short(&self) -> bool {
        self.calls.len() < self.depth
    }

    /// Looks at one call more.
    pub fn look(&mut self, call: Call<'a>) {
        let (mut decoded, mut expected) = self.spare.pop().unwrap_or_default();
        let rows = &mut expected.rows;
        let procedure = self.definitions.procedure(call.procedure);
        let place = match procedure {
            Ok(procedure) => decoded.push(&procedure.signature, call.arguments),
            // Whoever runs it asks again, and says so.
            Err(_) => Ok(ArgumentPlace::default()),
        };
        let worth = |table: TableId| self.worth[table.0 as usize];
        if let Ok(place) = place
            && let Ok(procedure) = procedure
            && procedure.keys.tables().any(worth)
        {
            procedure.keys.for_each(decoded.at(place), |table, values| {
                let schema = self.definitions.table(table);
                if worth(table) && rows.len() < ROWS_MAX {
                    expect(rows, schema, values, &mut self.key, self.guard);
                }
            });
        }
        self.calls.push_back(Coming { call, decoded, place, expected });
    }

    /// The next call to run, the others moved one stage on; `None` if there is none that was looked at.
    pub fn proceed(&mut self) -> Option<Coming<'a>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            // Calls that no other comes before go through their stages together.
            (0..3).for_each(|at| self.find_records(at));
            (0..2).for_each(|at| self.fetch_versions(at));
            self.fetch_values(0);
        }
        self.find_records(3);
        self.fetch_versions(2);
        self.fetch_values(1);
        self.calls.pop_front()
    }

    /// From the buckets to the records of a call.
    #[inline]
    fn find_records(&mut self, at: usize) {
        let Some(coming) = self.calls.get_mut(at) else { return };
        for row in &mut coming.expected.rows {
            row.find_record(self.definitions, self.guard);
        }
    }

    /// From the records to their newest versions.
    #[inline]
    fn fetch_versions(&mut self, at: usize) {
        let Some(coming) = self.calls.get_mut(at) else { return };
        coming.expected.rows.iter_mut().for_each(ExpectedRow::find_version);
    }

    /// From the newest versions to their long values; to the whole row below, if the program reads what they do not
    /// have; and to what is in between, which is folded when a version is put on top.
    #[inline]
    fn fetch_values(&self, at: usize) {
        let Some(coming) = self.calls.get(at) else { return };
        let Ok(procedure) = self.definitions.procedure(coming.call.procedure) else { return };
        for row in &coming.expected.rows {
            let Some(head) = row.newest_version() else { continue };
            let table = self.definitions.table(row.table);
            head.prefetch_values(table.long_columns());
            if head.next() != head.base() {
                prefetch(head.next());
            }
            if !head.columns().covers(procedure.keys.reads(row.table)) {
                prefetch(head.base());
            }
        }
    }

    /// Takes the buffers of a call that has run.
    pub fn recycle(&mut self, coming: Coming<'a>) {
        let Coming { mut decoded, mut expected, .. } = coming;
        decoded.clear();
        expected.clear();
        self.spare.push((decoded, expected));
    }
}
