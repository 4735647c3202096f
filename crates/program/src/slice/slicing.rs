//! Cutting a program into the slices of its record actions ([`super::action_slice`]).

use super::Assumptions;
use super::deciding::Checks;
use super::keyed_action::Indivisible;
use super::needs::{Handed, Slice, Slicing};
use super::outline::{Part, used_variables};
use crate::argument_tuple::ArgumentTuple;
use crate::catalog::Catalog;
use crate::ir::{StepId, StepKind, VariableId};
use crate::record_action::{Dependency, DependencyKind};
use fabius_value::TableId;
use std::collections::{BTreeMap, BTreeSet};

/// A record action.
#[derive(Clone, Debug)]
pub struct ActionSlice {
    /// The record's table.
    pub table: TableId,
    /// The record's key, as a function of the arguments. If it varies with a list's elements, there is an action for
    /// each turn.
    pub key: ArgumentTuple,
    /// The actions that it comes after, and why.
    pub after: Vec<Dependency>,
    /// Those of them of which a turn comes after one turn only, that about the same element; it comes after all turns
    /// of others.
    pub after_same_turn: BTreeSet<usize>,
    /// Whether its row has to be there before the call begins.
    pub needs_row: bool,
    /// Whether it can abort the call.
    pub decides: bool,
    /// Whether it writes its record.
    pub writes: bool,
    /// Whether it runs before the last that decides, and writes: what it writes has to wait for that one.
    pub holds: bool,
    pub(crate) slice: Slice,
}

impl ActionSlice {
    /// How many values it takes from other actions.
    pub fn takes(&self) -> usize {
        self.slice.takes.len()
    }

    /// How many values it hands over.
    pub fn gives(&self) -> usize {
        self.slice.gives.len()
    }

    /// The actions that it may find to come to nothing.
    pub fn disables(&self) -> impl Iterator<Item = u16> {
        self.slice.disables.iter().map(|(_, _, action)| *action)
    }
}

/// A program as record actions that depend on each other.
#[derive(Clone, Debug)]
pub struct ActionSlices {
    /// The actions, in the order of the program's [plan of keys](KeyPlan::prefixes).
    pub actions: Vec<ActionSlice>,
    /// Those that decide, in their order.
    pub deciding: Vec<usize>,
    /// The values that are handed over: which action reads them, in each of its turns.
    pub handed: Vec<usize>,
    /// How many loops there are.
    pub loops: usize,
    pub(crate) results: Slice,
}

/// A branch whose outcome one action finds out, and another that comes to nothing then.
struct Disabling {
    by: usize,
    branch: StepId,
    /// The way that is taken.
    taken: Part,
    action: usize,
}

/// What an action comes after: by action, whether that holds for the same turns only, and why.
type After = BTreeMap<usize, (bool, BTreeSet<DependencyKind>)>;

impl Slicing<'_, '_> {
    pub fn apart(
        &self,
        catalog: &Catalog,
        assumptions: &dyn Assumptions,
    ) -> Result<ActionSlices, Indivisible> {
        let outline = self.outline;
        let checks = self.checks(catalog, assumptions)?;
        let disablings = self.disablings(&checks);
        let roots = |action: usize| {
            let steps = self.actions[action].steps.iter().copied();
            let writes = |step: &StepId| {
                let kind = &outline.at(*step).step.kind;
                matches!(kind, StepKind::Insert { .. } | StepKind::Update { .. } | StepKind::Delete { .. })
            };
            let branches = disablings.iter().filter(move |found| found.by == action);
            steps
                .filter(writes)
                .chain(checks.of[action].iter().copied())
                .chain(branches.map(|found| found.branch))
        };
        let is_return = |step: &StepId| matches!(outline.at(*step).step.kind, StepKind::Return { .. });
        let returns = outline.order.iter().copied().filter(is_return);
        let mut results = self.slice(None, returns, &BTreeSet::new());
        let mut given = results.reads.clone();
        let mut slices: Vec<Slice>;
        loop {
            slices = (0..self.actions.len()).map(|at| self.slice(Some(at), roots(at), &given)).collect();
            let before = given.len();
            for (at, slice) in slices.iter().enumerate() {
                given.extend(slice.reads.iter().filter(|(step, _)| self.action_of(*step) != Some(at)));
            }
            if given.len() == before {
                break;
            }
        }
        self.check_turns(&slices, &given)?;
        let numbers: BTreeMap<Handed, u16> = given.iter().copied().zip(0..).collect();
        for (at, slice) in slices.iter_mut().enumerate() {
            for read in &slice.reads {
                if self.action_of(read.0) != Some(at) {
                    slice.takes.insert(*read, numbers[read]);
                } else if let Some(number) = numbers.get(read) {
                    slice.gives.insert(*read, *number);
                }
            }
            let own = disablings.iter().filter(|found| found.by == at);
            slice.disables.extend(own.map(|found| (found.branch, found.taken, found.action as u16)));
        }
        results.takes = results.reads.iter().map(|read| (*read, numbers[read])).collect();
        let mut after = self.after(&slices, &checks);
        let holds = self.hold_back(&mut after, &checks.deciding);
        if has_circle(&after) {
            return Err(Indivisible::Circle);
        }
        let is_free = |at: usize| !holds[at] && !self.adds_row(at);
        if holds.contains(&true) && !(0..holds.len()).any(is_free) {
            return Err(Indivisible::Held);
        }
        for (at, slice) in slices.iter_mut().enumerate() {
            // What does not wait for the word may have run already.
            slice.disables.retain(|(_, _, action)| after[usize::from(*action)].contains_key(&at));
        }
        let handed = given.iter().map(|(step, _)| self.action_of(*step).expect("values are read of rows"));
        let handed = handed.collect();
        let all = self.actions.iter().zip(slices).zip(after).enumerate();
        let all = all.map(|(at, ((action, slice), after))| {
            let kinds = |(on, (_, kinds)): (&usize, &(bool, BTreeSet<DependencyKind>))| {
                let on = *on;
                kinds.iter().map(move |kind| Dependency { on, kind: *kind }).collect::<Vec<_>>()
            };
            let in_turn = after.iter().filter(|(_, (is_same_turn, _))| *is_same_turn);
            ActionSlice {
                table: action.table,
                key: action.key.clone(),
                after_same_turn: in_turn.map(|(on, _)| *on).collect(),
                after: after.iter().flat_map(kinds).collect(),
                needs_row: action.has_row,
                decides: checks.deciding.contains(&at),
                writes: action.writes,
                holds: holds[at],
                slice,
            }
        });
        let actions = all.collect();
        let loops = outline.order.iter().filter(|step| outline.is_loop(**step)).count();
        Ok(ActionSlices { actions, deciding: checks.deciding, handed, loops, results })
    }

    /// Whether an action adds its row: then hardly anybody waits behind it.
    fn adds_row(&self, action: usize) -> bool {
        let first = self.actions[action].steps.first();
        first.is_some_and(|step| matches!(self.outline.at(*step).step.kind, StepKind::Insert { .. }))
    }

    /// Sees to it that a turn needs no other turn of its slice, and that a value which is handed over is read once.
    fn check_turns(&self, slices: &[Slice], given: &BTreeSet<Handed>) -> Result<(), Indivisible> {
        let outline = self.outline;
        let is_once = |(step, _): &Handed| {
            let action = self.action_of(*step).expect("values are read of rows");
            outline.loops(*step).is_empty() || self.own_loop(action, *step).is_some()
        };
        if !given.iter().all(is_once) {
            return Err(Indivisible::Carried);
        }
        for (at, slice) in slices.iter().enumerate().filter(|(at, _)| self.actions[*at].has_turns()) {
            for step in outline.order.iter().filter(|step| slice.steps[usize::from(step.0)]) {
                let node = outline.at(*step).step;
                let mut used = used_variables(node);
                if let StepKind::Append { list, .. } | StepKind::Sort { list, .. } = &node.kind {
                    used.push(*list);
                }
                if !used.into_iter().all(|variable| self.is_of_turn(at, *step, variable)) {
                    return Err(Indivisible::Carried);
                }
            }
        }
        Ok(())
    }

    /// Whether a variable has the value here that the same turn has given it, if any turn of the action's has.
    fn is_of_turn(&self, action: usize, step: StepId, variable: VariableId) -> bool {
        let outline = self.outline;
        let own = self.own_loop(action, step);
        let mut inside = outline.assignments[usize::from(variable.0)]
            .iter()
            .filter_map(|assignment| Some((*assignment, self.loop_of(action, *assignment)?)))
            .peekable();
        let is_plain = inside.peek().is_none();
        let all: Vec<(StepId, StepId)> = inside.collect();
        is_plain
            || all.iter().all(|(_, of)| Some(*of) == own)
                && all.iter().any(|(assignment, of)| assignment == of || outline.dominates(*assignment, step))
    }

    /// The loop of an action's that a step stands in, or is.
    fn loop_of(&self, action: usize, step: StepId) -> Option<StepId> {
        let is_one = self.actions[action].loops.contains(&step);
        if is_one { Some(step) } else { self.own_loop(action, step) }
    }

    /// Which action finds out that another one comes to nothing: the one whose values alone decide about a branch that
    /// the other stands in.
    fn disablings(&self, checks: &Checks) -> Vec<Disabling> {
        let outline = self.outline;
        let mut all = Vec::new();
        for &branch in &outline.order {
            if !matches!(outline.at(branch).step.kind, StepKind::If { .. }) {
                continue;
            }
            let origins = self.origins(branch);
            let by = origins.first().copied().filter(|_| origins.len() == 1);
            let is_checked_elsewhere = |by| checks.by.get(&branch).is_some_and(|checker| *checker != by);
            let Some(by) = by.filter(|by| !is_checked_elsewhere(*by)) else { continue };
            let around = outline.loops(branch).first().copied();
            // One turn finds out about that turn.
            let knows = if self.actions[by].has_turns() {
                around.is_some_and(|around| self.actions[by].loops.contains(&around))
            } else {
                around.is_none()
            };
            for action in (0..self.actions.len()).filter(|action| knows && *action != by) {
                let is_in_turn = around.is_none_or(|around| self.actions[action].loops.contains(&around));
                for (part, taken) in [(Part::Then, Part::Otherwise), (Part::Otherwise, Part::Then)] {
                    let is_inside =
                        |step: &StepId| outline.around(*step).any(|around| around == (branch, part));
                    if is_in_turn && self.actions[action].steps.iter().all(is_inside) {
                        all.push(Disabling { by, branch, taken, action });
                    }
                }
            }
        }
        all
    }

    /// What each action comes after, but for writing.
    fn after(&self, slices: &[Slice], checks: &Checks) -> Vec<After> {
        let mut all: Vec<After> = vec![After::new(); self.actions.len()];
        for (at, slice) in slices.iter().enumerate() {
            let after = &mut all[at];
            for (step, variable) in slice.takes.keys() {
                let mut own = self.actions[at].steps.iter();
                let is_value = own.any(|own| self.computes_with(*own, *variable));
                let kind = if is_value { DependencyKind::Data } else { DependencyKind::Condition };
                let on = self.action_of(*step).expect("values are read of rows");
                depend(after, on, kind, self.are_of_one_turn(at, on, *step));
            }
            for (step, by) in checks.by.iter().filter(|(step, _)| slice.steps[usize::from(step.0)]) {
                if *by != at {
                    depend(after, *by, DependencyKind::Condition, self.are_of_one_turn(at, *by, *step));
                }
            }
            let place = checks.deciding.iter().position(|deciding| *deciding == at);
            if let Some(place @ 1..) = place {
                depend(after, checks.deciding[place - 1], DependencyKind::Condition, false);
            }
        }
        all
    }

    /// Whether of what two actions do at a step each turn concerns the same turn of the other.
    fn are_of_one_turn(&self, one: usize, other: usize, step: StepId) -> bool {
        let own = self.own_loop(one, step);
        own.is_some() && own == self.own_loop(other, step)
    }

    /// Whether what an insert or update writes depends on a variable.
    fn computes_with(&self, step: StepId, variable: VariableId) -> bool {
        let outline = self.outline;
        let mut seen = BTreeSet::new();
        let mut next = match outline.at(step).step.kind {
            StepKind::Insert { .. } | StepKind::Update { .. } => used_variables(outline.at(step).step),
            _ => return false,
        };
        while let Some(used) = next.pop() {
            if used == variable {
                return true;
            }
            if seen.insert(used) {
                for step in &outline.assignments[usize::from(used.0)] {
                    next.extend(used_variables(outline.at(*step).step));
                }
            }
        }
        false
    }

    /// Lets actions that write come after the last that decides; by action: whether what it writes is held back,
    /// because the last that decides comes after it already, or is it, and other turns of it may decide later.
    fn hold_back(&self, after: &mut [After], deciding: &[usize]) -> Vec<bool> {
        let mut comes_before = vec![false; self.actions.len()];
        let Some(&last) = deciding.last() else { return comes_before };
        let mut next = vec![last];
        while let Some(at) = next.pop() {
            for on in after[at].keys() {
                if !std::mem::replace(&mut comes_before[*on], true) {
                    next.push(*on);
                }
            }
        }
        comes_before[last] = self.actions[last].has_turns();
        for (at, action) in self.actions.iter().enumerate() {
            if action.writes && !comes_before[at] && at != last {
                depend(&mut after[at], last, DependencyKind::Condition, false);
            }
        }
        comes_before.iter().zip(self.actions).map(|(before, action)| *before && action.writes).collect()
    }
}

fn depend(after: &mut After, on: usize, kind: DependencyKind, is_same_turn: bool) {
    let (same_turn, kinds) = after.entry(on).or_insert((true, BTreeSet::new()));
    *same_turn &= is_same_turn;
    kinds.insert(kind);
}

/// Whether something comes after itself.
fn has_circle(after: &[After]) -> bool {
    let mut has_ended = vec![false; after.len()];
    loop {
        let is_next = |at: &usize| !has_ended[*at] && after[*at].keys().all(|before| has_ended[*before]);
        match (0..after.len()).find(is_next) {
            Some(next) => has_ended[next] = true,
            None => return has_ended.contains(&false),
        }
    }
}
