//! What record actions need: the steps that compute what they check, write and hand over, and the values that they take
//! from other actions.

use super::keyed_action::{KeyedAction, row_of};
use super::outline::{Outline, Part, used_variables, variables};
use crate::ir::{Expression, RowId, StepId, StepKind, VariableId};
use std::collections::{BTreeMap, BTreeSet};

/// A value on its way from one action to others: what a step reads into a variable.
pub(super) type Handed = (StepId, VariableId);

/// What a part of a program runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// By step: whether it runs.
    pub steps: Vec<bool>,
    /// Loops of which it runs one turn.
    pub own_loops: BTreeSet<StepId>,
    /// What it reads: columns, and whether a row is there where that is not known.
    pub reads: BTreeSet<Handed>,
    /// What it takes from others of that, and by which number.
    pub takes: BTreeMap<Handed, u16>,
    /// What it hands over, likewise.
    pub gives: BTreeMap<Handed, u16>,
    /// Actions that come to nothing if an `If` goes this way.
    pub disables: Vec<(StepId, Part, u16)>,
}

/// A program's actions, and whose rows are whose.
pub(super) struct Slicing<'o, 'p> {
    pub outline: &'o Outline<'p>,
    pub actions: &'o [KeyedAction],
    /// By row handle: its action.
    owner: Vec<Option<usize>>,
}

impl<'o, 'p> Slicing<'o, 'p> {
    pub fn new(outline: &'o Outline<'p>, actions: &'o [KeyedAction]) -> Slicing<'o, 'p> {
        let mut owner = vec![None; outline.program.rows.len()];
        for (at, action) in actions.iter().enumerate() {
            for &step in &action.steps {
                owner[usize::from(row_of(outline, step).expect("an action's steps have rows").0)] = Some(at);
            }
        }
        Slicing { outline, actions, owner }
    }

    /// Whether a step gives a value that is the row's own: of a column, or that it is there.
    pub fn is_read(&self, step: StepId) -> bool {
        match self.outline.at(step).step.kind {
            StepKind::Read { .. } => true,
            StepKind::Exists { .. } => {
                self.action_of(step).is_some_and(|action| !self.actions[action].has_row)
            }
            _ => false,
        }
    }

    /// The action that a step is part of.
    pub fn action_of(&self, step: StepId) -> Option<usize> {
        row_of(self.outline, step).and_then(|row| self.owner[usize::from(row.0)])
    }

    /// The actions whose values a step depends on, conditions included.
    pub fn origins(&self, step: StepId) -> BTreeSet<usize> {
        let slice = self.slice(None, [step], &BTreeSet::new());
        slice.reads.iter().filter_map(|(read, _)| self.action_of(*read)).collect()
    }

    /// The loop around a step of which an action runs one turn.
    pub fn own_loop(&self, action: usize, step: StepId) -> Option<StepId> {
        let mut around = self.outline.around(step).map(|(parent, _)| parent);
        around.find(|parent| self.actions[action].loops.contains(parent))
    }

    /// What an action, or nobody, needs to run these steps, and to hand over what is given of its own.
    pub fn slice(
        &self,
        own: Option<usize>,
        roots: impl IntoIterator<Item = StepId>,
        given: &BTreeSet<Handed>,
    ) -> Slice {
        let outline = self.outline;
        let own_loops = own.map(|own| self.actions[own].loops.clone()).unwrap_or_default();
        let mut need = Need {
            slicing: self,
            own,
            slice: Slice { steps: vec![false; outline.program.step_count], own_loops, ..Slice::default() },
            variables: vec![false; outline.program.variables.len()],
            pending: Vec::new(),
        };
        roots.into_iter().for_each(|step| need.step(step));
        let own = given.iter().filter(|(step, _)| own.is_some() && self.action_of(*step) == own);
        own.for_each(|read| need.read(*read));
        need.close();
        need.slice
    }
}

/// A slice under construction.
struct Need<'s, 'o, 'p> {
    slicing: &'s Slicing<'o, 'p>,
    own: Option<usize>,
    slice: Slice,
    variables: Vec<bool>,
    pending: Vec<StepId>,
}

impl Need<'_, '_, '_> {
    fn step(&mut self, step: StepId) {
        let needed = &mut self.slice.steps[usize::from(step.0)];
        if !std::mem::replace(needed, true) {
            self.pending.push(step);
        }
    }

    fn read(&mut self, (step, variable): Handed) {
        self.slice.reads.insert((step, variable));
        self.step(step);
    }

    fn variable(&mut self, variable: VariableId) {
        if std::mem::replace(&mut self.variables[usize::from(variable.0)], true) {
            return;
        }
        let outline = self.slicing.outline;
        for &step in &outline.assignments[usize::from(variable.0)] {
            match self.slicing.is_read(step) {
                true => self.read((step, variable)),
                false => self.step(step),
            }
        }
    }

    fn expression(&mut self, expression: &Expression) {
        variables(expression, &mut |variable| self.variable(variable));
    }

    /// Follows needs until there are no new ones.
    fn close(&mut self) {
        let Slicing { outline, .. } = self.slicing;
        while let Some(step) = self.pending.pop() {
            outline.around(step).for_each(|(parent, _)| self.step(parent));
            match &outline.at(step).step.kind {
                StepKind::Exists { row, .. } | StepKind::RequireRow { row } | StepKind::Read { row, .. } => {
                    if self.own.is_some() && self.slicing.action_of(step) == self.own {
                        self.row(*row);
                    }
                }
                StepKind::Insert { values, .. } => values.iter().for_each(|value| self.expression(value)),
                StepKind::Update { row, sets } => {
                    self.row(*row);
                    sets.iter().for_each(|(_, value)| self.expression(value));
                }
                StepKind::Delete { row } => self.row(*row),
                _ => used_variables(outline.at(step).step).into_iter().for_each(|used| self.variable(used)),
            }
        }
    }

    fn row(&mut self, row: RowId) {
        let handles = &self.slicing.outline.handles[usize::from(row.0)];
        handles.iter().for_each(|step| self.step(*step));
    }
}
