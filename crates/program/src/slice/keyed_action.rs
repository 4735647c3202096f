//! The record actions of a program by the keys that its arguments name, or why it cannot be taken apart.

use super::Assumptions;
use super::outline::Outline;
use crate::argument_tuple::ArgumentTuple;
use crate::catalog::Catalog;
use crate::ir::{RowId, StepId, StepKind};
use crate::key_plan::KeyPlan;
use crate::known_key::named_rows_of;
use crate::record_action::record_actions;
use fabius_value::{ColumnId, TableId, TableSchema};
use std::collections::BTreeSet;

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
    /// It writes an indexed column of a row, or inserts into a table that has a unique index.
    Index,
    /// It accesses no row.
    Nothing,
    /// A key is not known before the call runs.
    UnknownKey,
    /// What can abort the call alternates between records.
    AlternatingChecks,
    /// All actions on rows that were there would hold what they write until others have decided, and with that their
    /// queues, like a whole call.
    Held,
    /// Computing the results can abort the call.
    FailingResult,
    /// Actions would wait for each other, or one for itself.
    Circle,
}

/// The row that a step is about.
pub(super) fn row_of(outline: &Outline<'_>, step: StepId) -> Option<RowId> {
    match &outline.at(step).step.kind {
        StepKind::RequireRow { row }
        | StepKind::Exists { row, .. }
        | StepKind::Read { row, .. }
        | StepKind::Insert { row, .. }
        | StepKind::Update { row, .. }
        | StepKind::Delete { row } => Some(*row),
        _ => None,
    }
}

/// What a program does to the record of one key, or to that of each element.
pub(super) struct KeyedAction {
    pub table: TableId,
    pub key: ArgumentTuple,
    /// What it consists of, in the order of the text.
    pub steps: Vec<StepId>,
    /// If its key varies: the loops whose elements that varies with.
    pub loops: BTreeSet<StepId>,
    pub writes: bool,
    /// Whether it is known that the row is there, whenever it runs.
    pub has_row: bool,
}

impl KeyedAction {
    /// Whether it has turns.
    pub fn has_turns(&self) -> bool {
        self.key.list().is_some()
    }
}

/// The program's actions in the order of its plan of keys.
pub(super) fn actions_by_key(
    outline: &Outline<'_>,
    catalog: &Catalog,
    assumptions: &dyn Assumptions,
) -> Result<Vec<KeyedAction>, Indivisible> {
    let plan = KeyPlan::prefixes(outline.program, catalog);
    let named = named_rows_of(outline, catalog);
    let mut found: Vec<Option<KeyedAction>> = plan.keys().map(|_| None).collect();
    for action in record_actions(outline.program, catalog) {
        let schema = catalog.table(action.table);
        if !action.steps.iter().all(|step| is_alone_in_indexes(&outline.at(*step).step.kind, schema)) {
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
            has_row: !assumptions.loses_rows(action.table),
        });
        if has_turns {
            keyed.loops.extend(&action.loops);
        }
        keyed.steps.extend(action.steps);
        keyed.steps.sort_by_key(|step| outline.at(*step).position);
        keyed.writes |= !action.writes.is_empty();
        keyed.has_row &= !action.inserts && !action.deletes;
    }
    if found.is_empty() {
        return Err(Indivisible::Nothing);
    }
    // A row that nothing is done with has a key, and no action.
    let all: Option<Vec<_>> = found.into_iter().collect();
    all.ok_or(Indivisible::Nothing)
}

/// Whether what a step does to a row, other rows do not meet in any index: it leaves indexed columns as they are, or
/// adds a row where all indexes take more rows of the same values.
fn is_alone_in_indexes(step: &StepKind, schema: &TableSchema) -> bool {
    let is_indexed = |column: &ColumnId| schema.indexes.iter().any(|index| index.columns.contains(column));
    match step {
        StepKind::Insert { .. } => schema.indexes.iter().all(|index| !index.unique),
        StepKind::Update { sets, .. } => !sets.iter().any(|(column, _)| is_indexed(column)),
        _ => true,
    }
}
