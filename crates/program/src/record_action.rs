//! A program as record actions with their dependencies (LADS, sections 3.1 and 4.2.3).
//!
//! A record action is what a transaction does to one record without needing another in between:
//!
//! ```text
//! require accounts[src].balance >= amount     1  accounts[src]  reads balance, writes balance
//! accounts[src].balance -= amount
//! accounts[dst].balance += amount             2  accounts[dst]  reads balance, writes balance
//!                                                after 1 (condition)
//! ```
//!
//! LADS makes an action of *consecutive* operations on a record (definition 1); here operations on a
//! record join its last action as long as that closes no cycle of dependencies, which gives fewer
//! actions with the same order. An action in a loop stands for one per turn. A range scan, with what
//! is done to its rows, is one coarse action over its index (section 3.3.2).
//!
//! Logical dependencies (definition 2) say what must come first within the call: values, keys,
//! conditions. Temporal dependencies (definition 3) hold between calls, by record, in the order of
//! calls; within a call they order the actions of one record, which [`RecordAction::previous`] notes.

use crate::access::{Origins, record_text};
use crate::catalog::Catalog;
use crate::ir::{Program, RowId, StepId, StepKind};
use crate::slice::outline::{Outline, variables};
use fabius_value::{ColumnId, ColumnMask, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// Why one action comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DependencyKind {
    /// It uses a value that the other reads.
    Data,
    /// The action's key depends on what the other reads: the record is not known before.
    Key,
    /// Whether it happens depends on what the other reads.
    Condition,
}

/// A logical dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The action that comes first, by its place in the list.
    pub on: usize,
    /// Why.
    pub kind: DependencyKind,
}

/// What a program does to one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordAction {
    /// The record as a reader names it: `stock[line.supply, line.item]`.
    pub record: String,
    /// The action's table.
    pub table: TableId,
    /// The loops it is in, outermost first.
    pub loops: Vec<StepId>,
    /// Whether it is a range of an index rather than one record.
    pub coarse: bool,
    /// The action's steps, in the order of the text.
    pub steps: Vec<StepId>,
    /// Columns read.
    pub reads: ColumnMask,
    /// Columns written.
    pub writes: ColumnMask,
    /// Whether it adds the record.
    pub inserts: bool,
    /// Whether it deletes the record.
    pub deletes: bool,
    /// Whether the call may abort for what it finds: the record must be there, or a `require` uses it.
    pub decides: bool,
    /// Logical dependencies, by action and kind.
    pub dependencies: Vec<Dependency>,
    /// The action on the same record before this one.
    pub previous: Option<usize>,
}

impl RecordAction {
    /// Names of columns of its table.
    pub fn column_names(&self, catalog: &Catalog, columns: ColumnMask) -> Vec<String> {
        let schema = catalog.table(self.table);
        columns.iter().map(|column| schema.columns[usize::from(column.0)].name.clone()).collect()
    }
}

/// The record actions of a program, in the order in which the text first visits their records.
/// Dependencies are free of cycles but may point either way in the list: an action that the text
/// begins early may end with a value that is read later.
pub fn record_actions(program: &Program, catalog: &Catalog) -> Vec<RecordAction> {
    let outline = Outline::of(program);
    let origins = Origins::of(&outline);
    let mut grouping = Grouping {
        outline: &outline,
        catalog,
        origins,
        actions: Vec::new(),
        of_step: BTreeMap::new(),
        required: BTreeSet::new(),
    };
    for &step in &outline.order {
        grouping.add(step);
    }
    grouping.actions
}

struct Grouping<'a, 'p> {
    outline: &'a Outline<'p>,
    catalog: &'a Catalog,
    origins: Origins,
    actions: Vec<RecordAction>,
    /// Which action a read, scan or existence check belongs to.
    of_step: BTreeMap<StepId, usize>,
    /// Origins of the `require`s so far.
    required: BTreeSet<StepId>,
}

impl Grouping<'_, '_> {
    fn add(&mut self, step: StepId) {
        let outline = self.outline;
        match &outline.at(step).step.kind {
            StepKind::Require { .. } => {
                let origins = self.origins.of_step(outline, step);
                for origin in &origins {
                    if let Some(&action) = self.of_step.get(origin) {
                        self.actions[action].decides = true;
                    }
                }
                self.required.extend(origins);
            }
            StepKind::RequireRow { row }
            | StepKind::Exists { row, .. }
            | StepKind::Read { row, .. }
            | StepKind::Insert { row, .. }
            | StepKind::Update { row, .. }
            | StepKind::Delete { row }
            | StepKind::ForScan { row, .. } => {
                let action = self.action_for(step, *row);
                self.of_step.insert(step, action);
                self.note(step, action);
            }
            _ => {}
        }
    }

    /// The action that a step joins, or a new one.
    fn action_for(&mut self, step: StepId, row: RowId) -> usize {
        let outline = self.outline;
        let source = outline.handles[usize::from(row.0)].first().copied().unwrap_or(step);
        let record = record_text(outline, self.catalog, source);
        let loops = outline.loops(source);
        let scan = matches!(outline.at(source).step.kind, StepKind::ForScan { .. });
        let dependencies = self.dependencies(step, source);
        let same = |action: &RecordAction| {
            action.record == record
                && action.loops == loops
                && (!scan || action.steps.first() == Some(&source))
        };
        let last = self.actions.iter().rposition(same);
        let joins = last.filter(|last| {
            dependencies
                .iter()
                .all(|dependency| dependency.on == *last || !self.reaches(dependency.on, *last))
        });
        let at = joins.unwrap_or(self.actions.len());
        if joins.is_none() {
            self.actions.push(RecordAction {
                record,
                table: outline.table(row),
                loops,
                coarse: scan,
                steps: Vec::new(),
                reads: ColumnMask::EMPTY,
                writes: ColumnMask::EMPTY,
                inserts: false,
                deletes: false,
                decides: false,
                dependencies: Vec::new(),
                previous: last,
            });
        }
        let action = &mut self.actions[at];
        action.dependencies.extend(dependencies.into_iter().filter(|dependency| dependency.on != at));
        action.dependencies.sort_unstable();
        action.dependencies.dedup();
        at
    }

    /// What must come before a step: of its values, its key, its conditions.
    fn dependencies(&self, step: StepId, source: StepId) -> BTreeSet<Dependency> {
        let outline = self.outline;
        let mut values = BTreeSet::new();
        match &outline.at(step).step.kind {
            StepKind::Insert { .. } | StepKind::Update { .. } => {
                crate::slice::outline::expressions(outline.at(step).step, &mut |value| {
                    variables(value, &mut |variable| values.extend(self.origins.of_variable(variable)));
                });
            }
            _ => {}
        }
        let writes = matches!(
            outline.at(step).step.kind,
            StepKind::Insert { .. } | StepKind::Update { .. } | StepKind::Delete { .. }
        );
        let keys = self.origins.of_key(outline, self.catalog, source);
        let mut conditions = self.origins.of_control(outline, step);
        conditions.remove(&source);
        if writes {
            conditions.extend(&self.required);
        }
        let mut all = BTreeSet::new();
        for (origins, kind) in [
            (values, DependencyKind::Data),
            (keys, DependencyKind::Key),
            (conditions, DependencyKind::Condition),
        ] {
            let known = origins.iter().filter_map(|origin| self.of_step.get(origin));
            all.extend(known.map(|on| Dependency { on: *on, kind }));
        }
        all
    }

    /// Whether `from` depends on `on`, directly or not.
    fn reaches(&self, from: usize, on: usize) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            let action = &self.actions[at];
            let before = action.dependencies.iter().map(|dependency| dependency.on).chain(action.previous);
            for earlier in before {
                if earlier == on {
                    return true;
                }
                if seen.insert(earlier) {
                    next.push(earlier);
                }
            }
        }
        false
    }

    fn note(&mut self, step: StepId, at: usize) {
        let outline = self.outline;
        let action = &mut self.actions[at];
        action.steps.push(step);
        let all = self.catalog.table(action.table).all_mask();
        match &outline.at(step).step.kind {
            StepKind::RequireRow { .. } => action.decides = true,
            StepKind::Read { columns, .. } => {
                columns.iter().for_each(|(column, _)| action.reads.insert(*column))
            }
            StepKind::Update { sets, .. } => {
                action.writes =
                    action.writes.union(sets.iter().map(|(column, _): &(ColumnId, _)| *column).collect());
            }
            StepKind::Insert { .. } => {
                action.inserts = true;
                action.decides = true;
                action.writes = all;
            }
            StepKind::Delete { .. } => {
                action.deletes = true;
                action.writes = all;
            }
            _ => {}
        }
    }
}
