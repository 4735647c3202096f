//! The now-phase: what decides the outcome, the keys and the branches, and all that depends on.
//!
//! A backward slice at the grain of variables and columns, from these roots:
//!
//! - `require` and "this row must exist";
//! - every insert, update and delete itself: the now-phase places it, so the row and whether the step
//!   is reached at all must be known, though not the values (lazy evaluation, section 2.3);
//! - inserted key columns and written indexed columns: indexes are maintained in the now-phase;
//! - every operation that is not proven unable to fail: a hidden `require`;
//! - entering loops whose turns are not proven to stay within the bound of a call, likewise;
//! - random numbers, which must be drawn in the order of the text.
//!
//! A step that is needed pulls in its inputs and the conditions and loops around it. A variable that
//! is needed pulls in every step that assigns it. A column that is read now pulls in the values this
//! program may have written to it before, unless they are deltas, which reading folds.

use super::delta::DeltaShape;
use super::outline::{
    Outline, WriteSite, draws_random, expressions, scan_expressions, used_variables, variables,
};
use super::proof::Proofs;
use crate::catalog::Catalog;
use crate::ir::{Expression, Failure, Message, RowId, StepId, StepKind, VariableId};
use fabius_value::{ColumnId, ColumnMask, SqlState, limit};
use std::rc::Rc;

/// What is said of steps that need nothing but what the now-phase has anyway.
pub(crate) const AT_HAND: &str = "depends on what is at hand now";

/// Why something is needed: what is said of it, and of the conditions around it.
#[derive(Clone, Debug)]
pub(super) struct Why {
    own: Rc<str>,
    around: Rc<str>,
}

impl Why {
    /// One reason for the step and for the conditions around it.
    pub fn new(reason: impl Into<Rc<str>>) -> Why {
        let own = reason.into();
        Why { around: own.clone(), own }
    }

    fn with_around(own: impl Into<Rc<str>>, around: impl Into<Rc<str>>) -> Why {
        Why { own: own.into(), around: around.into() }
    }
}

/// Choices that outlive one attempt at slicing; see [`conflict`](super::conflict).
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    /// By delta shape: stored as an ordinary value after all.
    pub ordinary: Vec<bool>,
    /// By step: columns that must be read now.
    pub reads: Vec<ColumnMask>,
    /// By step: columns whose written values must be known now.
    pub writes: Vec<ColumnMask>,
    /// By step: lookups and scans that must be done now.
    pub steps: Vec<bool>,
    /// By step: columns that are not stored now although they could be.
    pub postponed: Vec<ColumnMask>,
    /// Nothing is left for later.
    pub everything: bool,
}

/// The slice under construction, and when it is done.
pub(super) struct NowSlice<'a, 'p> {
    pub outline: &'a Outline<'p>,
    pub catalog: &'a Catalog,
    pub shapes: &'a [DeltaShape],
    pub choices: &'a Choices,
    /// By step: whether it has a part now.
    pub steps: Vec<bool>,
    /// By variable: whether its value is known now.
    pub variables: Vec<bool>,
    /// By step: columns read now.
    pub reads: Vec<ColumnMask>,
    /// By step: columns whose written values are known now.
    pub writes: Vec<ColumnMask>,
    /// By step: why it is now.
    pub reasons: Vec<Option<Rc<str>>>,
    /// What could fail and is now for that: the step and what could happen.
    pub hidden_requires: Vec<(StepId, String)>,
    pending: Vec<(StepId, Why)>,
}

impl<'a, 'p> NowSlice<'a, 'p> {
    /// The slice from all roots.
    pub fn of(
        outline: &'a Outline<'p>,
        catalog: &'a Catalog,
        shapes: &'a [DeltaShape],
        proofs: &Proofs,
        choices: &'a Choices,
    ) -> NowSlice<'a, 'p> {
        let steps = outline.program.step_count;
        let mut slice = NowSlice {
            outline,
            catalog,
            shapes,
            choices,
            steps: vec![false; steps],
            variables: vec![false; outline.program.variables.len()],
            reads: vec![ColumnMask::EMPTY; steps],
            writes: vec![ColumnMask::EMPTY; steps],
            reasons: vec![None; steps],
            hidden_requires: Vec::new(),
            pending: Vec::new(),
        };
        slice.add_roots();
        slice.add_hidden_requires(proofs);
        slice.add_choices();
        slice.close();
        slice.add_counted_loops(proofs);
        slice
    }

    fn add_roots(&mut self) {
        for &step in &self.outline.order {
            match &self.outline.at(step).step.kind {
                StepKind::Require {
                    failure:
                        Failure { state: SqlState::NOT_NULL_VIOLATION, message: Message::Fixed(message), .. },
                    ..
                } => {
                    self.need_step(step, Why::new(format!("decides the outcome ({message})")));
                }
                StepKind::Require { .. } => self.need_step(step, Why::new("decides the outcome (require)")),
                StepKind::RequireRow { row } => {
                    let why = format!("{} must exist", self.row_name(*row));
                    self.need_step(step, Why::new(why));
                }
                StepKind::Insert { .. } | StepKind::Update { .. } | StepKind::Delete { .. } => {
                    self.need_step(step, self.placing(step));
                }
                _ => {}
            }
            self.add_indexed_columns(step);
            self.add_random(step);
        }
    }

    /// What is said of a write step and of what it stands in.
    fn placing(&self, step: StepId) -> Why {
        let (row, verb, written) = match &self.outline.at(step).step.kind {
            StepKind::Insert { row, .. } => (row, "places a row in", "an insert into"),
            StepKind::Update { row, .. } => (row, "places a write to", "a write to"),
            StepKind::Delete { row } => (row, "deletes from", "a delete from"),
            other => unreachable!("{other:?} does not write"),
        };
        let table = self.table_name(*row);
        Why::with_around(format!("{verb} {table}"), format!("decides {written} {table}"))
    }

    fn add_indexed_columns(&mut self, step: StepId) {
        let (row, insert) = match &self.outline.at(step).step.kind {
            StepKind::Insert { row, .. } => (*row, true),
            StepKind::Update { row, .. } => (*row, false),
            _ => return,
        };
        let schema = self.catalog.table(self.outline.table(row));
        let mut indexed = schema.indexed_mask();
        if insert {
            indexed = indexed.union(schema.key_mask());
        }
        for site in self.sites_of(step) {
            if indexed.contains(site.column) {
                let column = &schema.columns[usize::from(site.column.0)].name;
                let kind = if schema.key_mask().contains(site.column) { "key" } else { "indexed" };
                self.need_write(site, Why::new(format!("{kind} column {}.{column}", schema.name)));
            }
        }
    }

    fn add_random(&mut self, step: StepId) {
        let why = || Why::new("draws a random number, in order");
        let mut draws = false;
        expressions(self.outline.at(step).step, &mut |value| draws |= draws_random(value));
        if !draws {
            return;
        }
        self.need_step(step, why());
        for site in self.sites_of(step) {
            if draws_random(self.outline.written_value(site)) {
                self.need_write(site, why());
            }
        }
    }

    fn add_hidden_requires(&mut self, proofs: &Proofs) {
        for failure in &proofs.failures {
            self.hidden_requires.push((failure.step, failure.reason.clone()));
            let why = Why::new(failure.reason.as_str());
            match failure.value {
                Some(index) => {
                    let site = self.sites_of(failure.step).into_iter().find(|site| site.index == index);
                    self.need_write(site.expect("a failing value is written"), why);
                }
                None => self.need_step(failure.step, why),
            }
        }
    }

    /// Loops that nothing else needs now are entered now all the same if their turns have to be counted.
    fn add_counted_loops(&mut self, proofs: &Proofs) {
        for &step in &proofs.counted_loops {
            if !self.steps[usize::from(step.0)] {
                let reason = format!("loops could take more than {} turns", limit::LOOP_TURNS);
                self.hidden_requires.push((step, reason.clone()));
                self.need_step(step, Why::new(reason));
                self.close();
            }
        }
    }

    fn add_choices(&mut self) {
        let choices = self.choices;
        for &step in &self.outline.order {
            let at = usize::from(step.0);
            for column in choices.reads[at].iter() {
                self.need_read(step, column, Why::new("read before this call writes the column"));
            }
            for site in self.sites_of(step) {
                if choices.everything && self.delta(site).is_none() {
                    self.need_write(site, Why::new("a branch or list depends on random numbers"));
                } else if choices.writes[at].contains(site.column) {
                    self.need_write(site, Why::new("the column is also written now"));
                }
            }
            if choices.everything && matches!(self.outline.at(step).step.kind, StepKind::Return { .. }) {
                self.need_step(step, Why::new("a branch or list depends on random numbers"));
            }
            if choices.steps[at] {
                self.need_step(step, Why::new("looked up before this call adds or deletes rows"));
            }
        }
    }

    fn table_name(&self, row: RowId) -> &'a str {
        &self.catalog.table(self.outline.table(row)).name
    }

    fn row_name(&self, row: RowId) -> &'p str {
        &self.outline.program.rows[usize::from(row.0)].name
    }

    /// The columns a step writes.
    pub fn sites_of(&self, step: StepId) -> Vec<WriteSite> {
        let outline = self.outline;
        let start =
            outline.writes.partition_point(|site| outline.at(site.step).position < outline.at(step).position);
        outline.writes[start..].iter().take_while(|site| site.step == step).copied().collect()
    }

    /// The delta that a write is stored as, if it is.
    pub fn delta(&self, site: WriteSite) -> Option<&'a DeltaShape> {
        let at = self.shapes.iter().position(|shape| shape.site == site)?;
        (!self.choices.ordinary[at]).then(|| &self.shapes[at])
    }

    /// Whether a write's value or operand is known now.
    pub fn is_known(&self, site: WriteSite) -> bool {
        self.writes[usize::from(site.step.0)].contains(site.column) || self.delta(site).is_some()
    }

    /// A step is needed now.
    pub fn need_step(&mut self, step: StepId, why: Why) {
        let at = usize::from(step.0);
        if !self.steps[at] {
            self.steps[at] = true;
            self.reasons[at] = Some(why.own.clone());
            self.pending.push((step, why));
        }
    }

    /// A written value is needed now.
    pub fn need_write(&mut self, site: WriteSite, why: Why) {
        let at = usize::from(site.step.0);
        if !self.writes[at].contains(site.column) {
            self.writes[at].insert(site.column);
            self.need_expression(self.outline.written_value(site), &why);
        }
    }

    /// An expression is evaluated now.
    pub fn need_expression(&mut self, expression: &Expression, why: &Why) {
        variables(expression, &mut |variable| self.need_variable(variable, why));
    }

    fn need_variable(&mut self, variable: VariableId, why: &Why) {
        let at = usize::from(variable.0);
        if self.variables[at] || self.outline.is_parameter(variable) {
            return;
        }
        self.variables[at] = true;
        let outline = self.outline;
        for &step in &outline.assignments[at] {
            match &outline.at(step).step.kind {
                StepKind::Read { columns, .. } => {
                    let all = columns.iter().filter(|(_, into)| *into == variable);
                    all.for_each(|(column, _)| self.need_read(step, *column, why.clone()));
                }
                _ => self.need_step(step, why.clone()),
            }
        }
    }

    /// A column is read now.
    fn need_read(&mut self, step: StepId, column: ColumnId, why: Why) {
        let outline = self.outline;
        let at = usize::from(step.0);
        if self.reads[at].contains(column) {
            return;
        }
        self.reads[at].insert(column);
        self.need_step(step, why.clone());
        let StepKind::Read { row, columns } = &outline.at(step).step.kind else { return };
        for (read, variable) in columns {
            if *read == column {
                self.need_variable(*variable, &why);
            }
        }
        let table = outline.table(*row);
        for site in &outline.writes {
            let seen = (site.table, site.column) == (table, column) && outline.can_follow(site.step, step);
            if seen && self.delta(*site).is_none() {
                self.need_write(*site, Why::new("read again now by this call"));
            }
        }
    }

    fn need_row(&mut self, row: RowId, why: &Why) {
        let outline = self.outline;
        for &step in &outline.handles[usize::from(row.0)] {
            self.need_step(step, why.clone());
        }
    }

    /// Follows needs until there are no new ones.
    pub fn close(&mut self) {
        let outline = self.outline;
        while let Some((step, why)) = self.pending.pop() {
            for (parent, _) in outline.around(step) {
                self.need_step(parent, Why::new(why.around.clone()));
            }
            self.need_inputs(step, &why);
        }
    }

    fn need_inputs(&mut self, step: StepId, why: &Why) {
        let node = self.outline.at(step).step;
        let inputs = Why::new(why.own.clone());
        match &node.kind {
            StepKind::Insert { .. } | StepKind::Read { .. } | StepKind::Update { .. } => {}
            StepKind::ForScan { scan, .. } => {
                scan_expressions(scan, &mut |bound| self.need_expression(bound, &inputs));
                scan.filter.iter().for_each(|filter| self.need_expression(&filter.condition, &inputs));
            }
            _ => used_variables(node).into_iter().for_each(|used| self.need_variable(used, &inputs)),
        }
        match &node.kind {
            StepKind::Assign { variable, .. } | StepKind::Exists { variable, .. } => {
                self.need_variable(*variable, &inputs);
            }
            StepKind::Clear { list } | StepKind::Append { list, .. } | StepKind::Sort { list, .. } => {
                self.need_variable(*list, &inputs);
            }
            _ => {}
        }
        match &node.kind {
            StepKind::RequireRow { row } => {
                self.need_row(
                    *row,
                    &Why::new(format!("key of {}, which must be there", self.table_name(*row))),
                );
            }
            StepKind::Update { row, .. } | StepKind::Delete { row } => {
                self.need_row(*row, &Why::new(format!("key of a write to {}", self.table_name(*row))));
            }
            StepKind::Exists { row, .. } | StepKind::Read { row, .. } => self.need_row(*row, &inputs),
            _ => {}
        }
    }
}
