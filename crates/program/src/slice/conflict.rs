//! Where the two phases would get in each other's way, and what gives.
//!
//! The later-phase runs when all of the now-phase has run, so it sees what the now-phase stored, even
//! where the text reads first and writes afterwards. And a row's column is either filled later or
//! known now. So, by column of a table (rows are not told apart):
//!
//! | the text | would be | what gives |
//! |---|---|---|
//! | reads a column later, then writes it now | reading its own future | the write is postponed, or if it must be now, the read moves to now |
//! | writes a column now and later in one run | a sticky over a value | likewise |
//! | looks up or scans a table later, then inserts or deletes there | a phantom of its own | the lookup moves to now |
//! | reads a row later, then deletes rows of the table | reading a tombstone | the read moves to now |
//! | writes a value later, then deletes rows of the table | filling a tombstone | the value moves to now |
//! | draws random numbers for a branch, range or list of both phases | drawing them twice | all moves to now |
//!
//! Each rule moves something in one direction only, so trying again ends.

use super::later_slice::LaterSlice;
use super::now_slice::{Choices, NowSlice};
use super::outline::{Outline, WriteSite, draws_random, expressions};
use crate::ir::{RowId, StepId, StepKind};
use fabius_value::{ColumnId, ColumnMask, TableId};

/// Revises the choices; whether there was anything to revise.
///
/// `required` are the columns by step whose values are known now for another reason than that they
/// are free.
pub(super) fn revise(
    now: &NowSlice<'_, '_>,
    later: &LaterSlice<'_, '_, '_>,
    required: &[ColumnMask],
) -> Option<Choices> {
    let mut revision = Revision { now, required, choices: now.choices.clone(), changed: false };
    for &step in &now.outline.order {
        let at = usize::from(step.0);
        match &now.outline.at(step).step.kind {
            StepKind::Read { row, .. } => {
                for column in later.reads[at].iter() {
                    revision.check_read(step, *row, column);
                }
            }
            StepKind::Locate { row, .. } | StepKind::ForScan { row, .. } | StepKind::Exists { row, .. }
                if later.steps[at] && !now.steps[at] =>
            {
                revision.check_lookup(step, *row);
            }
            _ => {}
        }
        // A scan is replayed, an assignment restored; other steps of both phases are evaluated twice.
        let once = matches!(
            now.outline.at(step).step.kind,
            StepKind::ForScan { .. }
                | StepKind::Assign { .. }
                | StepKind::Insert { .. }
                | StepKind::Update { .. }
        );
        if later.steps[at] && !once && draws(now.outline, step) {
            revision.changed |= !revision.choices.everything;
            revision.choices.everything = true;
        }
    }
    for site in &now.outline.writes {
        revision.check_write(*site);
    }
    revision.changed.then_some(revision.choices)
}

/// Whether a step itself draws random numbers.
fn draws(outline: &Outline<'_>, step: StepId) -> bool {
    let mut draws = false;
    expressions(outline.at(step).step, &mut |value| draws |= draws_random(value));
    draws
}

struct Revision<'s, 'a, 'p> {
    now: &'s NowSlice<'a, 'p>,
    required: &'s [ColumnMask],
    choices: Choices,
    changed: bool,
}

impl Revision<'_, '_, '_> {
    fn check_read(&mut self, step: StepId, row: RowId, column: ColumnId) {
        let outline = self.now.outline;
        let table = outline.table(row);
        for site in &outline.writes {
            let overtakes = (site.table, site.column) == (table, column)
                && self.now.is_known(*site)
                && outline.can_follow(step, site.step);
            // A row that this run inserts cannot be one that was found there before.
            if overtakes && !(site.insert && self.is_there(row, step)) && !self.postpone(*site) {
                self.read_now(step, column);
            }
        }
        let vanishes = |(change, of, insert): &(StepId, TableId, bool)| {
            *of == table && outline.can_follow(step, *change) && !(*insert && self.is_there(row, step))
        };
        if outline.existence_changes.iter().any(vanishes) {
            self.read_now(step, column);
        }
    }

    /// Whether a row handle surely stands for a row that is there when a step runs, not for one that
    /// was not found or that this call has deleted.
    fn is_there(&self, row: RowId, step: StepId) -> bool {
        let outline = self.now.outline;
        let table = outline.table(row);
        let required = outline.order.iter().any(|earlier| {
            matches!(outline.at(*earlier).step.kind, StepKind::RequireRow { row: r } if r == row)
                && outline.dominates(*earlier, step)
        });
        let bound = outline.handles[usize::from(row.0)].iter().all(|handle| {
            matches!(outline.at(*handle).step.kind, StepKind::ForScan { .. } | StepKind::Insert { .. })
        });
        let deleted = outline
            .existence_changes
            .iter()
            .any(|(change, of, insert)| !insert && *of == table && outline.can_follow(*change, step));
        (required || bound) && !deleted
    }

    fn check_lookup(&mut self, step: StepId, row: RowId) {
        let outline = self.now.outline;
        let table = outline.table(row);
        let phantom = outline
            .existence_changes
            .iter()
            .any(|(change, of, _)| *of == table && outline.can_follow(step, *change));
        let scanned = match &outline.at(step).step.kind {
            StepKind::ForScan { scan, .. } => scan.index,
            _ => None,
        };
        let moves = scanned.is_some_and(|index| {
            let columns = &self.now.catalog.table(table).indexes[usize::from(index.0)].columns;
            outline.writes.iter().any(|site| {
                site.table == table && columns.contains(&site.column) && outline.can_follow(step, site.step)
            })
        });
        if (phantom || moves) && !self.choices.steps[usize::from(step.0)] {
            self.choices.steps[usize::from(step.0)] = true;
            self.changed = true;
        }
    }

    fn check_write(&mut self, site: WriteSite) {
        let outline = self.now.outline;
        if self.now.is_known(site) {
            return;
        }
        let buried = |(change, table, insert): &(StepId, TableId, bool)| {
            !insert && *table == site.table && outline.can_follow(site.step, *change)
        };
        if outline.existence_changes.iter().any(buried) {
            return self.write_now(site);
        }
        for other in &outline.writes {
            let together = *other != site
                && (other.table, other.column) == (site.table, site.column)
                && self.now.is_known(*other)
                && (outline.can_follow(site.step, other.step) || outline.can_follow(other.step, site.step));
            if together && !self.postpone(*other) {
                self.write_now(site);
            }
        }
    }

    /// Stores a value later although it could be now; whether that is possible.
    fn postpone(&mut self, site: WriteSite) -> bool {
        let at = usize::from(site.step.0);
        if self.now.delta(site).is_some() {
            for (shape, ordinary) in self.now.shapes.iter().zip(&mut self.choices.ordinary) {
                if (shape.site.table, shape.site.column) == (site.table, site.column) {
                    *ordinary = true;
                }
            }
            self.choices.postponed[at].insert(site.column);
        } else if self.required[at].union(self.choices.postponed[at]).contains(site.column) {
            return false;
        } else {
            self.choices.postponed[at].insert(site.column);
        }
        self.changed = true;
        true
    }

    fn read_now(&mut self, step: StepId, column: ColumnId) {
        self.changed |= !self.choices.reads[usize::from(step.0)].contains(column);
        self.choices.reads[usize::from(step.0)].insert(column);
    }

    fn write_now(&mut self, site: WriteSite) {
        self.changed |= !self.choices.writes[usize::from(site.step.0)].contains(site.column);
        self.choices.writes[usize::from(site.step.0)].insert(site.column);
    }
}
