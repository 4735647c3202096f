//! Which record action decides about what can abort its call, and in which order they decide (LADS, section 3.3.1).
//!
//! Actions decide one after the other, in the order of the text. The turns of one action decide in any order, so all
//! that is checked in a loop is checked by one action: then the first error of the text is that of the first turn.
//! That a row is there, or that a key is free, is checked by the action on the row.

use super::Assumptions;
use super::delta::delta_shapes;
use super::keyed_action::Indivisible;
use super::needs::Slicing;
use super::proof::prove;
use crate::catalog::Catalog;
use crate::ir::{StepId, StepKind};
use std::collections::{BTreeMap, BTreeSet};

/// What can abort the call, and where it is found out.
pub(super) struct Checks {
    /// By action: the steps that it checks.
    pub of: Vec<Vec<StepId>>,
    /// By step: the action that checks it.
    pub by: BTreeMap<StepId, usize>,
    /// The actions that decide, in their order.
    pub deciding: Vec<usize>,
    /// The loop around the last step that is checked.
    last_loop: Option<StepId>,
}

impl Checks {
    /// Lets an action check a step that comes after all others so far.
    fn add(&mut self, slicing: &Slicing<'_, '_>, step: StepId, action: usize) -> Result<(), Indivisible> {
        let around = slicing.outline.loops(step).first().copied();
        if self.deciding.last() != Some(&action) {
            let is_in_one_loop = around.is_some() && around == self.last_loop;
            if is_in_one_loop || self.deciding.contains(&action) {
                return Err(Indivisible::AlternatingChecks);
            }
            self.deciding.push(action);
        }
        self.last_loop = around;
        self.of[action].push(step);
        self.by.insert(step, action);
        Ok(())
    }
}

impl Slicing<'_, '_> {
    /// Whether a step can abort the call because a row is missing that has to be there, or the other way round.
    fn may_find_the_row_otherwise(&self, step: StepId) -> bool {
        let outline = self.outline;
        let Some(action) = self.action_of(step).map(|action| &self.actions[action]) else { return false };
        match outline.at(step).step.kind {
            StepKind::Insert { .. } => true,
            StepKind::RequireRow { .. } => {
                let kind = |step: StepId| &outline.at(step).step.kind;
                let goes = action.steps.iter().any(|step| matches!(kind(*step), StepKind::Delete { .. }));
                let says_so = |earlier: &StepId| {
                    matches!(kind(*earlier), StepKind::RequireRow { .. } | StepKind::Insert { .. })
                        && outline.dominates(*earlier, step)
                };
                !action.has_row && (goes || !action.steps.iter().any(says_so))
            }
            _ => false,
        }
    }

    /// Gives every step that can abort the call to an action, in the order of the text: to that whose row it writes; or
    /// else to the last that decides, as long as there is no need for another one.
    pub(super) fn checks(
        &self,
        catalog: &Catalog,
        assumptions: &dyn Assumptions,
    ) -> Result<Checks, Indivisible> {
        let outline = self.outline;
        let proofs = prove(outline, catalog, &delta_shapes(outline, catalog), assumptions);
        let mut failing: BTreeSet<StepId> = proofs.failures.iter().map(|failure| failure.step).collect();
        failing.extend(&proofs.open_requires);
        failing.extend(outline.order.iter().filter(|step| self.may_find_the_row_otherwise(**step)));
        let mut checks = Checks {
            of: vec![Vec::new(); self.actions.len()],
            by: BTreeMap::new(),
            deciding: Vec::new(),
            last_loop: None,
        };
        // Those that arguments decide wait for whoever comes first.
        let mut of_arguments = Vec::new();
        for &step in outline.order.iter().filter(|step| failing.contains(step)) {
            if let StepKind::Return { .. } = outline.at(step).step.kind {
                return Err(Indivisible::FailingResult);
            }
            let origins = self.origins(step);
            let last = checks.deciding.last().copied();
            let has_decided = |action: &usize| checks.deciding.contains(action);
            let action = match (self.action_of(step), last) {
                (Some(own), _) => own,
                (None, Some(last)) if origins.iter().all(has_decided) => last,
                (None, None) if origins.is_empty() => {
                    of_arguments.push(step);
                    continue;
                }
                (None, _) => *origins.iter().rfind(|action| !has_decided(action)).expect("one has not"),
            };
            of_arguments.drain(..).try_for_each(|step| checks.add(self, step, action))?;
            checks.add(self, step, action)?;
        }
        of_arguments.into_iter().try_for_each(|step| checks.add(self, step, 0))?;
        Ok(checks)
    }
}
