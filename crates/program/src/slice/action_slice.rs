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
//! Where keys vary with the elements of an argument list, there is an action for each *turn*. All turns run one slice,
//! which knows its own element only: what is computed from other turns is computed from all of them, when all have
//! handed over what that takes. Turns decide in any order, and the error of the first of them counts.
//!
//! ```text
//!                                        records[keys[1]]   records[keys[2]]   ...   totals[id]
//! for key in keys {
//!     require records[key].left > 0      read left, check   read left, check
//!     total += records[key].left         hand it over       hand it over             take each turn's
//!     records[key].left -= 1             write left         write left
//! }
//! totals[id].sum = total                                                             write sum
//! ```
//!
//! Invariants:
//! - an action comes after those whose values it takes, and after those that check what it computes too;
//! - a turn needs nothing that another turn of its slice has read or computed;
//! - what writes comes after all that decide, or *holds*: it runs before, and writes when the last has decided;
//! - whatever it takes has been handed over if it gets there: both go through the same conditions.

use super::Assumptions;
use super::independence::lists_stand_together;
use super::outline::{Outline, Part, draws_random, expressions};
use super::proof::LONG;
use super::slicing::Slicing;
use crate::argument_tuple::ArgumentTuple;
use crate::catalog::Catalog;
use crate::ir::{Program, RowId, StepId, StepKind, VariableId};
use crate::key_plan::KeyPlan;
use crate::known_key::named_rows_of;
use crate::record_action::{Dependency, record_actions};
use fabius_value::TableId;
use std::collections::{BTreeMap, BTreeSet};

/// Why a program is not taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indivisible {
    /// It has so many steps that it is rather run than analysed.
    Long,
    /// Scalars stand between lists among its parameters.
    Parameters,
    /// It has a loop over something else than an argument, or in another loop.
    Loop,
    /// A turn of a loop needs what other turns have computed.
    Carried,
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
    /// What can abort the call alternates between records.
    AlternatingChecks,
    /// All actions would hold what they write until each has decided, and with that their queues, like a whole call.
    Held,
    /// Computing the results can abort the call.
    FailingResult,
    /// Actions would wait for each other, or one for itself.
    Circle,
}

/// A value on its way from one action to others: what a step reads into a variable.
pub(super) type Handed = (StepId, VariableId);

/// What a part of a program runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// By step: whether it runs.
    pub steps: Vec<bool>,
    /// Loops of which it runs one turn.
    pub own_loops: BTreeSet<StepId>,
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
    /// The record's key, as a function of the arguments. If it varies with a list's elements, there is an action for
    /// each turn.
    pub key: ArgumentTuple,
    /// The actions that it comes after, and why.
    pub after: Vec<Dependency>,
    /// Those of them of which a turn comes after one turn only, that about the same element; it comes after all turns
    /// of others.
    pub after_same_turn: BTreeSet<usize>,
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

/// Takes a program apart into record actions, one for each record that its arguments name. All rows have to be there,
/// and columns to have values that are assumed.
///
/// # Errors
/// Why it cannot be.
pub fn take_apart(
    program: &Program,
    catalog: &Catalog,
    assumptions: &dyn Assumptions,
) -> Result<ActionSlices, Indivisible> {
    if program.step_count > LONG {
        return Err(Indivisible::Long);
    }
    if !lists_stand_together(program) {
        return Err(Indivisible::Parameters);
    }
    let outline = Outline::of(program);
    for &step in &outline.order {
        check_step(&outline, step)?;
    }
    let actions = actions_by_key(&outline, catalog)?;
    Slicing::new(&outline, &actions).apart(catalog, assumptions)
}

fn check_step(outline: &Outline<'_>, step: StepId) -> Result<(), Indivisible> {
    let node = outline.at(step).step;
    let mut draws = false;
    expressions(node, &mut |value| draws |= draws_random(value));
    if draws {
        return Err(Indivisible::Random);
    }
    match &node.kind {
        StepKind::ForList { list, fields, .. } => {
            let is_argument =
                outline.is_parameter(*list) && outline.assignments[usize::from(list.0)].is_empty();
            let is_steady = |field: &VariableId| outline.assignments[usize::from(field.0)].len() == 1;
            let is_plain = is_argument && fields.iter().all(is_steady) && outline.loops(step).is_empty();
            if is_plain { Ok(()) } else { Err(Indivisible::Loop) }
        }
        StepKind::ForRange { .. } | StepKind::ForScan { .. } => Err(Indivisible::Loop),
        StepKind::Insert { .. } | StepKind::Delete { .. } => Err(Indivisible::RowsComeOrGo),
        _ => Ok(()),
    }
}

/// The row that a step is about.
pub(super) fn row_of(outline: &Outline<'_>, step: StepId) -> Option<RowId> {
    match &outline.at(step).step.kind {
        StepKind::RequireRow { row }
        | StepKind::Exists { row, .. }
        | StepKind::Read { row, .. }
        | StepKind::Update { row, .. } => Some(*row),
        _ => None,
    }
}

/// What a program does to the record of one key, or to that of each element.
pub(super) struct KeyedAction {
    pub table: TableId,
    pub key: ArgumentTuple,
    /// Its steps, in the order of the text.
    pub steps: Vec<StepId>,
    /// If its key varies: the loops whose elements that varies with.
    pub loops: BTreeSet<StepId>,
    pub writes: bool,
}

impl KeyedAction {
    /// Whether it has turns.
    pub fn has_turns(&self) -> bool {
        self.key.list().is_some()
    }
}

/// The program's actions in the order of its plan of keys.
fn actions_by_key(outline: &Outline<'_>, catalog: &Catalog) -> Result<Vec<KeyedAction>, Indivisible> {
    let plan = KeyPlan::prefixes(outline.program, catalog);
    let named = named_rows_of(outline, catalog);
    let mut found: Vec<Option<KeyedAction>> = plan.keys().map(|_| None).collect();
    for action in record_actions(outline.program, catalog) {
        let schema = catalog.table(action.table);
        if schema
            .indexes
            .iter()
            .flat_map(|index| &index.columns)
            .any(|column| action.writes.contains(*column))
        {
            return Err(Indivisible::Index);
        }
        let rows = action.steps.iter().filter_map(|step| row_of(outline, *step));
        let mut keys = named.iter().filter(|named| rows.clone().any(|row| row == named.row));
        let key = keys.next().ok_or(Indivisible::UnknownKey)?.prefix().clone();
        if key.len() != schema.primary_key.len() || keys.any(|other| *other.prefix() != key) {
            return Err(Indivisible::UnknownKey);
        }
        let place = plan.position(action.table, &key).ok_or(Indivisible::UnknownKey)?;
        let has_turns = key.list().is_some();
        let is_of_loop = |step: &StepId| outline.loops(*step) == action.loops;
        if has_turns && !(action.loops.len() == 1 && action.steps.iter().all(is_of_loop)) {
            return Err(Indivisible::UnknownKey);
        }
        let keyed = found[place].get_or_insert_with(|| KeyedAction {
            table: action.table,
            key,
            steps: Vec::new(),
            loops: BTreeSet::new(),
            writes: false,
        });
        if has_turns {
            keyed.loops.extend(&action.loops);
        }
        keyed.steps.extend(action.steps);
        keyed.steps.sort_by_key(|step| outline.at(*step).position);
        keyed.writes |= !action.writes.is_empty();
    }
    if found.is_empty() {
        return Err(Indivisible::Nothing);
    }
    // A row that nothing is done with has a key, and no action.
    let all: Option<Vec<_>> = found.into_iter().collect();
    all.ok_or(Indivisible::Nothing)
}
