//! What each record action of a program runs, if they depend on each other (LADS, sections 3.1, 3.3.1 and 4.2.3).
//!
//! A slice is the program cut down to what one action does to its row, and what it takes to know that: pure steps and
//! conditions are computed again, from the arguments and from values that other actions read and *hand over*.
//!
//! ```text
//!                                              accounts[src]                   accounts[dst]
//! require accounts[src].balance >= amount      read balance, check
//! accounts[src].balance -= amount              write balance
//! accounts[dst].balance += amount                                              read, write balance
//! return accounts[src].balance                 read balance, hand it over
//! ```
//!
//! Actions that can abort the call *decide*: they check a condition, or compute what may not fit. They decide one
//! after the other, in the order of the text, so that the call ends with the error that the whole program ends with.
//! Nothing of the call is written before the last of them has decided.
//!
//! Invariants:
//! - an action comes after those whose values it takes, and after those that check what it computes too;
//! - what writes comes after all that decide, or *holds*: it runs before, and writes when the last has decided;
//! - whatever it takes has been handed over if it gets there: both go through the same conditions.

use super::TypesOnly;
use super::delta::delta_shapes;
use super::outline::{Outline, Part, draws_random, expressions, used_variables, variables};
use super::proof::{LONG, prove};
use crate::argument_tuple::ArgumentTuple;
use crate::catalog::Catalog;
use crate::ir::{Expression, Program, RowId, StepId, StepKind, VariableId};
use crate::key_plan::KeyPlan;
use crate::known_key::named_rows_of;
use crate::record_action::{Dependency, DependencyKind, RecordAction, record_actions};
use fabius_value::TableId;
use std::collections::{BTreeMap, BTreeSet};

/// Why a program is not taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indivisible {
    /// It has so many steps that it is rather run than analysed.
    Long,
    /// It has a loop.
    Loop,
    /// It builds a list.
    List,
    /// It draws random numbers.
    Random,
    /// Rows come or go.
    RowsComeOrGo,
    /// It writes a table that has indexes.
    Index,
    /// It accesses no row.
    Nothing,
    /// A key is not known before the call runs.
    UnknownKey,
    /// Two actions are on one record: what the second does needs values that are read after the first.
    Revisited,
    /// What can abort the call alternates between records.
    AlternatingChecks,
    /// Computing the results can abort the call.
    FailingResult,
    /// Actions would wait for each other.
    Circle,
}

/// A value on its way from one action to others: what a step reads into a variable.
type Handed = (StepId, VariableId);

/// What a part of a program runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// By step: whether it runs.
    pub steps: Vec<bool>,
    /// What its `Read` steps read.
    pub reads: BTreeSet<Handed>,
    /// What it takes from others of that, and by which number.
    pub takes: BTreeMap<Handed, u16>,
    /// What it hands over, likewise.
    pub gives: BTreeMap<Handed, u16>,
    /// Actions that come to nothing if an `If` goes this way.
    pub disables: Vec<(StepId, Part, u16)>,
}

/// A record action.
#[derive(Clone, Debug)]
pub struct ActionSlice {
    /// The record's table.
    pub table: TableId,
    /// The record's key, as a function of the arguments.
    pub key: ArgumentTuple,
    /// The actions that it comes after, and why.
    pub after: Vec<Dependency>,
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
    /// How many values are handed over.
    pub handed: usize,
    pub(crate) results: Slice,
}

/// Takes a program apart into record actions, one for each record that its arguments name. All rows have to be there.
///
/// # Errors
/// Why it cannot be.
pub fn take_apart(program: &Program, catalog: &Catalog) -> Result<ActionSlices, Indivisible> {
    if program.step_count > LONG {
        return Err(Indivisible::Long);
    }
    let outline = Outline::of(program);
    for &step in &outline.order {
        check_step(&outline, step)?;
    }
    let (actions, keys) = actions_by_key(&outline, catalog)?;
    let mut owner = vec![None; program.rows.len()];
    for (at, action) in actions.iter().enumerate() {
        for &step in &action.steps {
            owner[usize::from(row_of(&outline, step).expect("an action's steps have rows").0)] = Some(at);
        }
    }
    let slicing = Slicing { outline: &outline, owner };
    let checks = slicing.checks(catalog, actions.len())?;
    slicing.apart(&actions, keys, &checks)
}

fn check_step(outline: &Outline<'_>, step: StepId) -> Result<(), Indivisible> {
    let node = outline.at(step).step;
    let mut draws = false;
    expressions(node, &mut |value| draws |= draws_random(value));
    if draws {
        return Err(Indivisible::Random);
    }
    match &node.kind {
        StepKind::ForList { .. } | StepKind::ForRange { .. } | StepKind::ForScan { .. } => {
            Err(Indivisible::Loop)
        }
        StepKind::Clear { .. } | StepKind::Append { .. } | StepKind::Sort { .. } => Err(Indivisible::List),
        StepKind::Insert { .. } | StepKind::Delete { .. } => Err(Indivisible::RowsComeOrGo),
        _ => Ok(()),
    }
}

/// The row that a step is about.
fn row_of(outline: &Outline<'_>, step: StepId) -> Option<RowId> {
    match &outline.at(step).step.kind {
        StepKind::RequireRow { row }
        | StepKind::Exists { row, .. }
        | StepKind::Read { row, .. }
        | StepKind::Update { row, .. } => Some(*row),
        _ => None,
    }
}

/// The program's actions in the order of its plan of keys, and the keys.
fn actions_by_key(
    outline: &Outline<'_>,
    catalog: &Catalog,
) -> Result<(Vec<RecordAction>, Vec<ArgumentTuple>), Indivisible> {
    let plan = KeyPlan::prefixes(outline.program, catalog);
    let named = named_rows_of(outline, catalog);
    let mut found: Vec<Option<(RecordAction, ArgumentTuple)>> = vec![None; plan.keys().count()];
    for action in record_actions(outline.program, catalog) {
        let schema = catalog.table(action.table);
        if !action.writes.is_empty() && !schema.indexes.is_empty() {
            return Err(Indivisible::Index);
        }
        let rows = action.steps.iter().filter_map(|step| row_of(outline, *step));
        let mut keys = named.iter().filter(|named| rows.clone().any(|row| row == named.row));
        let key = keys.next().ok_or(Indivisible::UnknownKey)?.prefix().clone();
        if key.len() != schema.primary_key.len() || keys.any(|other| *other.prefix() != key) {
            return Err(Indivisible::UnknownKey);
        }
        let place = plan.position(action.table, &key).ok_or(Indivisible::UnknownKey)?;
        if found[place].replace((action, key)).is_some() {
            return Err(Indivisible::Revisited);
        }
    }
    if found.is_empty() {
        return Err(Indivisible::Nothing);
    }
    // A row that nothing is done with has a key, and no action.
    let all: Option<Vec<_>> = found.into_iter().collect();
    Ok(all.ok_or(Indivisible::Nothing)?.into_iter().unzip())
}

/// What can abort the call, and where it is found out.
struct Checks {
    /// By action: the steps that it checks.
    of: Vec<Vec<StepId>>,
    /// By step: the action that checks it.
    by: BTreeMap<StepId, usize>,
    /// The actions that decide, in their order.
    deciding: Vec<usize>,
}

impl Checks {
    fn add(&mut self, step: StepId, action: usize) {
        if self.deciding.last() != Some(&action) {
            self.deciding.push(action);
        }
        self.of[action].push(step);
        self.by.insert(step, action);
    }
}

struct Slicing<'o, 'p> {
    outline: &'o Outline<'p>,
    /// By row handle: its action.
    owner: Vec<Option<usize>>,
}

impl Slicing<'_, '_> {
    /// The action that a step is part of.
    fn action_of(&self, step: StepId) -> Option<usize> {
        row_of(self.outline, step).and_then(|row| self.owner[usize::from(row.0)])
    }

    /// Gives every step that can abort the call to an action, in the order of the text: to that whose row it writes; or
    /// else to the last that decides, as long as there is no need for another one.
    fn checks(&self, catalog: &Catalog, actions: usize) -> Result<Checks, Indivisible> {
        let outline = self.outline;
        let proofs = prove(outline, catalog, &delta_shapes(outline, catalog), &TypesOnly);
        let mut failing: BTreeSet<StepId> = proofs.failures.iter().map(|failure| failure.step).collect();
        let requires = outline
            .order
            .iter()
            .filter(|step| matches!(outline.at(**step).step.kind, StepKind::Require { .. }));
        failing.extend(requires);
        let mut checks = Checks { of: vec![Vec::new(); actions], by: BTreeMap::new(), deciding: Vec::new() };
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
                (Some(own), _) if Some(own) == last || !has_decided(&own) => own,
                (Some(_), _) => return Err(Indivisible::AlternatingChecks),
                (None, Some(last)) if origins.iter().all(has_decided) => last,
                (None, None) if origins.is_empty() => {
                    of_arguments.push(step);
                    continue;
                }
                (None, _) => *origins.iter().rfind(|action| !has_decided(action)).expect("one has not"),
            };
            of_arguments.drain(..).for_each(|step| checks.add(step, action));
            checks.add(step, action);
        }
        of_arguments.into_iter().for_each(|step| checks.add(step, 0));
        Ok(checks)
    }

    /// The actions whose values a step depends on, conditions included.
    fn origins(&self, step: StepId) -> BTreeSet<usize> {
        let slice = self.slice(None, [step], &BTreeSet::new());
        slice.reads.iter().filter_map(|(read, _)| self.action_of(*read)).collect()
    }

    fn apart(
        &self,
        actions: &[RecordAction],
        keys: Vec<ArgumentTuple>,
        checks: &Checks,
    ) -> Result<ActionSlices, Indivisible> {
        let outline = self.outline;
        let disables = self.disables(actions, checks);
        let roots = |action: usize| {
            let updates = actions[action].steps.iter().copied();
            let updates =
                updates.filter(|step| matches!(outline.at(*step).step.kind, StepKind::Update { .. }));
            let branches =
                disables.iter().filter(move |(by, ..)| *by == action).map(|(_, branch, ..)| *branch);
            updates.chain(checks.of[action].iter().copied()).chain(branches)
        };
        let is_return = |step: &StepId| matches!(outline.at(*step).step.kind, StepKind::Return { .. });
        let returns = outline.order.iter().copied().filter(is_return);
        let mut results = self.slice(None, returns, &BTreeSet::new());
        let mut given = results.reads.clone();
        let mut slices: Vec<Slice>;
        loop {
            slices = (0..actions.len()).map(|at| self.slice(Some(at), roots(at), &given)).collect();
            let before = given.len();
            for (at, slice) in slices.iter().enumerate() {
                given.extend(slice.reads.iter().filter(|(step, _)| self.action_of(*step) != Some(at)));
            }
            if given.len() == before {
                break;
            }
        }
        let numbers: BTreeMap<Handed, u16> = given.iter().copied().zip(0..).collect();
        for (at, slice) in slices.iter_mut().enumerate() {
            for read in &slice.reads {
                if self.action_of(read.0) != Some(at) {
                    slice.takes.insert(*read, numbers[read]);
                } else if let Some(number) = numbers.get(read) {
                    slice.gives.insert(*read, *number);
                }
            }
            let own = disables.iter().filter(|(by, ..)| *by == at);
            slice.disables.extend(own.map(|(_, branch, part, action)| (*branch, *part, *action as u16)));
        }
        results.takes = results.reads.iter().map(|read| (*read, numbers[read])).collect();
        let mut after = self.after(&slices, actions, checks);
        let held = hold_back(&mut after, actions, &checks.deciding);
        if has_circle(&after) {
            return Err(Indivisible::Circle);
        }
        for (at, slice) in slices.iter_mut().enumerate() {
            // What does not wait for the word may have run already.
            let waits = |action: u16| after[usize::from(action)].iter().any(|before| before.on == at);
            slice.disables.retain(|(_, _, action)| waits(*action));
        }
        let all = actions.iter().zip(keys).zip(slices).zip(after).enumerate();
        let all = all.map(|(at, (((action, key), slice), after))| ActionSlice {
            table: action.table,
            key,
            after: after.into_iter().collect(),
            decides: checks.deciding.contains(&at),
            writes: !action.writes.is_empty(),
            holds: held[at],
            slice,
        });
        let actions = all.collect();
        Ok(ActionSlices { actions, deciding: checks.deciding.clone(), handed: numbers.len(), results })
    }

    /// What an action, or nobody, needs to run these steps, and to hand over what is given of its own.
    fn slice(
        &self,
        own: Option<usize>,
        roots: impl IntoIterator<Item = StepId>,
        given: &BTreeSet<Handed>,
    ) -> Slice {
        let outline = self.outline;
        let mut need = Need {
            slicing: self,
            own,
            slice: Slice { steps: vec![false; outline.program.step_count], ..Slice::default() },
            variables: vec![false; outline.program.variables.len()],
            pending: Vec::new(),
        };
        roots.into_iter().for_each(|step| need.step(step));
        let own = given.iter().filter(|(step, _)| own.is_some() && self.action_of(*step) == own);
        own.for_each(|read| need.read(*read));
        need.close();
        need.slice
    }

    /// Which action finds out that another one comes to nothing: the one whose values alone decide about a branch that
    /// the other stands in.
    fn disables(&self, actions: &[RecordAction], checks: &Checks) -> Vec<(usize, StepId, Part, usize)> {
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
            for (at, action) in actions.iter().enumerate().filter(|(at, _)| *at != by) {
                for (part, other) in [(Part::Then, Part::Otherwise), (Part::Otherwise, Part::Then)] {
                    let is_inside =
                        |step: &StepId| outline.around(*step).any(|around| around == (branch, part));
                    if action.steps.iter().all(is_inside) {
                        all.push((by, branch, other, at));
                    }
                }
            }
        }
        all
    }

    /// What each action comes after, but for writing.
    fn after(
        &self,
        slices: &[Slice],
        actions: &[RecordAction],
        checks: &Checks,
    ) -> Vec<BTreeSet<Dependency>> {
        let mut after: Vec<BTreeSet<Dependency>> = vec![BTreeSet::new(); actions.len()];
        for (at, slice) in slices.iter().enumerate() {
            let mut add = |on: usize, kind: DependencyKind| {
                if on != at {
                    after[at].insert(Dependency { on, kind });
                }
            };
            for (step, variable) in slice.takes.keys() {
                let is_value = actions[at].steps.iter().any(|own| self.computes_with(*own, *variable));
                let kind = if is_value { DependencyKind::Data } else { DependencyKind::Condition };
                self.action_of(*step).into_iter().for_each(|on| add(on, kind));
            }
            for (step, by) in &checks.by {
                if slice.steps[usize::from(step.0)] {
                    add(*by, DependencyKind::Condition);
                }
            }
            let place = checks.deciding.iter().position(|deciding| *deciding == at);
            if let Some(place @ 1..) = place {
                add(checks.deciding[place - 1], DependencyKind::Condition);
            }
        }
        after
    }

    /// Whether what an update writes depends on a variable.
    fn computes_with(&self, step: StepId, variable: VariableId) -> bool {
        let outline = self.outline;
        let StepKind::Update { sets, .. } = &outline.at(step).step.kind else { return false };
        let mut seen = BTreeSet::new();
        let mut next = Vec::new();
        sets.iter().for_each(|(_, value)| variables(value, &mut |used| next.push(used)));
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
}

/// Lets actions that write come after the last that decides; by action: whether that comes after it already, so that
/// its writes have to be held back.
fn hold_back(after: &mut [BTreeSet<Dependency>], actions: &[RecordAction], deciding: &[usize]) -> Vec<bool> {
    let mut comes_before = vec![false; actions.len()];
    let Some(&last) = deciding.last() else { return comes_before };
    let mut next = vec![last];
    while let Some(at) = next.pop() {
        for Dependency { on, .. } in &after[at] {
            if !std::mem::replace(&mut comes_before[*on], true) {
                next.push(*on);
            }
        }
    }
    let writes = (0..actions.len()).filter(|at| !actions[*at].writes.is_empty());
    for at in writes.filter(|at| !comes_before[*at] && *at != last) {
        after[at].insert(Dependency { on: last, kind: DependencyKind::Condition });
    }
    let writes = actions.iter().map(|action| !action.writes.is_empty());
    comes_before.into_iter().zip(writes).map(|(before, writes)| before && writes).collect()
}

/// Whether something comes after itself.
fn has_circle(after: &[BTreeSet<Dependency>]) -> bool {
    let mut has_ended = vec![false; after.len()];
    loop {
        let is_next = |at: &usize| !has_ended[*at] && after[*at].iter().all(|before| has_ended[before.on]);
        match (0..after.len()).find(is_next) {
            Some(next) => has_ended[next] = true,
            None => return has_ended.contains(&false),
        }
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
            match outline.at(step).step.kind {
                StepKind::Read { .. } => self.read((step, variable)),
                _ => self.step(step),
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
                // All rows are there.
                StepKind::Exists { .. } | StepKind::RequireRow { .. } => {}
                StepKind::Read { row, .. } => {
                    if self.own.is_some() && self.slicing.action_of(step) == self.own {
                        self.row(*row);
                    }
                }
                StepKind::Update { row, sets } => {
                    self.row(*row);
                    sets.iter().for_each(|(_, value)| self.expression(value));
                }
                _ => used_variables(outline.at(step).step).into_iter().for_each(|used| self.variable(used)),
            }
        }
    }

    fn row(&mut self, row: RowId) {
        let handles = &self.slicing.outline.handles[usize::from(row.0)];
        handles.iter().for_each(|step| self.step(*step));
    }
}
