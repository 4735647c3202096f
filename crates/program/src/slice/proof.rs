//! What is proven about a program's values: which operations cannot fail, and what is written.
//!
//! An abstract run of the program over intervals. Straight code is followed step by step, conditions
//! narrow what follows them, branches are joined. Loops are repeated until nothing changes:
//!
//! ```text
//! var total = 0.00                       total in [0, 0]
//! for line in lines {                    at most 2^26 turns: an argument's elements take a byte each
//!     total += line.amount               adds [0.00, 9999.99] each turn
//! }                                      total in [0, 2^26 * 9999.99]: fits numeric(14, 2)
//! ```
//!
//! A cell that a loop changes only by adding to it is bounded by its turns times what one turn adds;
//! this is an induction over turns, with what a turn adds taken from a state that holds in all of
//! them. Any other cell is joined. After a few rounds it gets room to grow, in case what a turn does to it has a bound
//! (`counter % 1000`), and then is given up to its type's range, so that the analysis ends.

use super::Assumptions;
use super::delta::{DeltaShape, addend};
use super::expression_text::expression_text;
use super::interval::Interval;
use super::knowledge::{Cell, Cells, Knowledge, MOST_ROWS};
use super::outline::{Outline, expressions};
use crate::catalog::Catalog;
use crate::ir::{Expression, ExpressionKind, RowId, Scan, Step, StepId, StepKind, Type, VariableId};
use fabius_value::{ColumnId, DataType, TableId, limit};

/// Rounds of a loop before a cell that keeps changing gets room,
const PATIENCE: usize = 4;
/// and rounds of that kind before it is given up.
const ROUNDS_WITH_ROOM: usize = 2;
const GIVING_UP: usize = PATIENCE + ROUNDS_WITH_ROOM;
/// Nested loops that are repeated until stable; deeper ones give up what they change at once, so that
/// the work stays proportional to the program.
const DEPTH: usize = 3;
/// Steps of a program whose loops all give up at once: a transaction of hundreds of statements, which is
/// run once and must not take longer to analyse than to run.
pub(super) const LONG: usize = 300;
/// What a turn adds to a cell that it leaves alone.
const NOTHING: Interval = Interval { low: 0, high: 0 };

/// An operation that could fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The step that contains it.
    pub step: StepId,
    /// For an `Insert` or `Update`, the value; `None` elsewhere.
    pub value: Option<usize>,
    /// What could happen.
    pub reason: String,
}

/// What is proven.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Proofs {
    /// Everything that could fail, in the order of the text.
    pub failures: Vec<Failure>,
    /// The `Require` steps whose condition may not hold, in the order of the text.
    pub open_requires: Vec<StepId>,
    /// By step: the interval of each value an `Insert` or `Update` stores.
    pub values: Vec<Vec<Interval>>,
    /// By delta shape: the interval of its operand, and whether computing it could fail.
    pub operands: Vec<(Interval, bool)>,
    /// By step: how often it runs at most in one call.
    pub turns: Vec<u128>,
    /// Loops whose turns have to be counted: all over integers and lists, unless they are proven to
    /// stay within the bound together.
    pub counted_loops: Vec<StepId>,
}

impl Proofs {
    /// Whether computing this value of a write could fail.
    pub fn can_fail(&self, step: StepId, value: usize) -> bool {
        self.failures.iter().any(|failure| failure.step == step && failure.value == Some(value))
    }
}

/// Runs the analysis.
pub(super) fn prove(
    outline: &Outline<'_>,
    catalog: &Catalog,
    shapes: &[DeltaShape],
    assumptions: &dyn Assumptions,
) -> Proofs {
    let cells = Cells::of(outline, catalog);
    let mut known = cells.start(outline, assumptions);
    let steps = outline.program.step_count;
    let mut prover = Prover {
        outline,
        catalog,
        shapes,
        growth: vec![NOTHING; cells.tops.len()],
        changes: vec![Vec::new(); cells.tops.len()],
        cells,
        recording: true,
        place: (StepId(0), None),
        turns: 1,
        loop_turns: 0,
        depth: if steps > LONG { DEPTH } else { 0 },
        learning: LEARNING,
        proofs: Proofs {
            failures: Vec::new(),
            open_requires: Vec::new(),
            values: vec![Vec::new(); steps],
            operands: vec![(Interval::EMPTY, false); shapes.len()],
            turns: vec![0; steps],
            counted_loops: Vec::new(),
        },
    };
    prover.find_changes();
    prover.run(&mut known, &outline.program.body);
    if prover.loop_turns <= u128::from(limit::LOOP_TURNS) {
        prover.proofs.counted_loops.clear();
    }
    prover.proofs
}

/// A step that changes a cell, and whether all it does is to add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    step: StepId,
    adds: bool,
}

/// Cells that one proof copies at most to learn from conditions: a tenth of a second.
const LEARNING: usize = 10_000_000;

/// The analysis under way.
pub(super) struct Prover<'p> {
    outline: &'p Outline<'p>,
    catalog: &'p Catalog,
    shapes: &'p [DeltaShape],
    pub(super) cells: Cells,
    /// By cell: what the current turn of the innermost loop adds.
    growth: Vec<Interval>,
    /// By cell: what changes it.
    changes: Vec<Vec<Change>>,
    /// Whether failures and values are final: not while a loop is repeated.
    recording: bool,
    /// The step being run and which of its values.
    place: (StepId, Option<usize>),
    /// How often the current step runs at most.
    turns: u128,
    /// Turns that the loops over integers and lists so far take at most in one call.
    loop_turns: u128,
    /// Loops around the current step.
    depth: usize,
    /// Cells that may still be copied to learn from conditions.
    learning: usize,
    proofs: Proofs,
}

impl<'p> Prover<'p> {
    /// Whether one more copy of what is known may be made: to find out what follows from a condition, each `and`,
    /// `or` and `case` in it takes one, and a program of thousands of them has thousands of cells. Who learns nothing
    /// knows what was known before.
    pub(super) fn learns(&mut self) -> bool {
        let left = self.learning.checked_sub(self.cells.tops.len());
        self.learning = left.unwrap_or(0);
        left.is_some()
    }

    /// Notes a failure of the current step.
    pub(super) fn fails(&mut self, reason: impl Fn(&Prover<'p>) -> String) {
        if self.recording {
            let failure = Failure { step: self.place.0, value: self.place.1, reason: reason(self) };
            let mut same_step =
                self.proofs.failures.iter().rev().take_while(|other| other.step == failure.step);
            if !same_step.any(|other| *other == failure) {
                self.proofs.failures.push(failure);
            }
        }
    }

    /// The text of an expression, for reasons.
    pub(super) fn text(&self, expression: &Expression) -> String {
        expression_text(self.outline.program, expression)
    }

    /// The type of a list's field.
    pub(super) fn field_type(&self, list: VariableId, field: u16) -> DataType {
        match &self.outline.program.variables[usize::from(list.0)].ty {
            Type::List(fields) => fields[usize::from(field)].scalar.data_type,
            Type::Scalar(scalar) => scalar.data_type,
        }
    }

    /// Evaluates something a second time without noting its failures again.
    pub(super) fn silently<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        let recording = std::mem::replace(&mut self.recording, false);
        let result = evaluate(self);
        self.recording = recording;
        result
    }

    /// Whether a condition may be false or null.
    fn may_fail(&mut self, known: &Knowledge, condition: &Expression) -> bool {
        let mut otherwise = known.clone();
        self.silently(|prover| prover.assume_not_true(&mut otherwise, condition));
        condition.ty.nullable || otherwise.reachable
    }

    /// Notes that a loop over integers or a list takes at most so many turns each time it is entered.
    fn count_turns(&mut self, step: StepId, turns: u128) {
        if self.recording {
            self.proofs.counted_loops.push(step);
            self.loop_turns = self.loop_turns.saturating_add(self.turns.saturating_mul(turns));
        }
    }

    fn run(&mut self, known: &mut Knowledge, block: &'p [Step]) {
        for step in block {
            if !known.reachable {
                return;
            }
            self.place = (step.id, None);
            if self.recording {
                self.proofs.turns[usize::from(step.id.0)] = self.turns;
            }
            self.run_step(known, step);
        }
    }

    fn run_step(&mut self, known: &mut Knowledge, step: &'p Step) {
        match &step.kind {
            StepKind::Assign { variable, value } => self.assign(known, *variable, value),
            StepKind::Clear { list } => {
                known.set(self.cells.length(*list), Interval::only(0));
                self.clear_fields(known, *list);
                known.facts.retain(|(fact, _)| !super::outline::mentions(fact, *list));
            }
            StepKind::Sort { list, .. } => {
                known.facts.retain(|(fact, _)| !super::outline::mentions(fact, *list));
            }
            StepKind::Append { list, values } => {
                let ranges: Vec<Interval> = values.iter().map(|value| self.range(known, value)).collect();
                for (field, range) in ranges.into_iter().enumerate() {
                    known.add(self.cells.field(*list, field as u16), range);
                }
                let length = self.cells.length(*list);
                let longer = known.get(length).plus(Interval::only(1));
                known.set(length, longer.meet(self.cells.tops[length.0]));
                self.grow(length, Interval::only(1));
                known.facts.retain(|(fact, _)| !super::outline::mentions(fact, *list));
            }
            StepKind::Locate { row, key } => {
                self.evaluate_key(known, key.iter());
                known.forget_row(*row);
            }
            StepKind::RequireRow { .. } | StepKind::Delete { .. } => {}
            StepKind::Exists { variable, .. } => known.assign(&self.cells, *variable, Interval::EVERY),
            StepKind::Read { row, columns } => {
                let table = self.outline.table(*row);
                for (column, variable) in columns {
                    known.read(&self.cells, *variable, table, *row, *column);
                }
            }
            StepKind::Require { condition, .. } => {
                self.range(known, condition);
                if self.recording && self.may_fail(known, condition) {
                    self.proofs.open_requires.push(step.id);
                }
                self.assume_true(known, condition);
            }
            StepKind::If { condition, then, otherwise } => {
                self.range(known, condition);
                let mut other = known.clone();
                self.assume_true(known, condition);
                self.run(known, then);
                self.assume_not_true(&mut other, condition);
                self.run(&mut other, otherwise);
                *known = known.clone().join(other);
            }
            StepKind::ForList { list, fields, body } => {
                let turns = known.get(self.cells.length(*list)).high.max(0).cast_unsigned();
                self.count_turns(step.id, turns);
                let end = self.repeat(known, turns, step.id, &mut |prover, known| {
                    for (at, field) in fields.iter().enumerate() {
                        let values = known.get(prover.cells.field(*list, at as u16));
                        known.assign(&prover.cells, *field, values);
                    }
                    prover.run(known, body);
                });
                if let Some(end) = end {
                    self.narrow_list(known, &end, *list, fields);
                }
            }
            StepKind::ForRange { variable, from, to, body } => {
                let (from, to) = (self.range(known, from), self.range(known, to));
                let counter = Interval::new(from.low, to.high);
                let counter = if from.is_empty() || to.is_empty() { Interval::EMPTY } else { counter };
                self.count_turns(step.id, counter.width());
                self.repeat(known, counter.width(), step.id, &mut |prover, known| {
                    known.assign(&prover.cells, *variable, counter);
                    prover.run(known, body);
                });
            }
            StepKind::ForScan { row, scan, body } => self.run_scan(known, step, *row, scan, body),
            StepKind::Insert { row, values } => {
                let table = self.outline.table(*row);
                let sets = values.iter().enumerate().map(|(at, value)| (ColumnId(at as u8), value));
                self.write(known, step.id, table, &sets.collect::<Vec<_>>());
                known.forget_row(*row);
            }
            StepKind::Update { row, sets } => {
                let table = self.outline.table(*row);
                let sets: Vec<_> = sets.iter().map(|(column, value)| (*column, value)).collect();
                self.write(known, step.id, table, &sets);
            }
            StepKind::Return { .. } => {
                expressions(step, &mut |value| {
                    self.range(known, value);
                });
            }
        }
    }

    /// A loop over a list that has come to its end has seen every element: what its body requires of
    /// the elements holds for all of them from now on.
    fn narrow_list(&self, known: &mut Knowledge, end: &Knowledge, list: VariableId, fields: &[VariableId]) {
        for (at, field) in fields.iter().enumerate() {
            let only_here = self.outline.assignments[usize::from(field.0)].len() == 1;
            if only_here && end.reachable {
                let cell = self.cells.field(list, at as u16);
                known.set(cell, known.get(cell).meet(end.get(self.cells.variable(*field))));
            }
        }
    }

    fn assign(&mut self, known: &mut Knowledge, variable: VariableId, value: &Expression) {
        let range = self.range(known, value);
        if let ExpressionKind::Variable(from) = value.kind
            && self.outline.program.variables[usize::from(from.0)].ty
                == self.outline.program.variables[usize::from(variable.0)].ty
        {
            return known.assign_variable(&self.cells, variable, from);
        }
        if let Some(added) = self.added(known, value, variable, value.ty.data_type) {
            self.grow(self.cells.variable(variable), added);
        }
        known.assign(&self.cells, variable, range);
    }

    fn clear_fields(&self, known: &mut Knowledge, list: VariableId) {
        if let Type::List(fields) = &self.outline.program.variables[usize::from(list.0)].ty {
            for field in 0..fields.len() as u16 {
                known.set(self.cells.field(list, field), Interval::EMPTY);
            }
        }
    }

    fn write(
        &mut self,
        known: &mut Knowledge,
        step: StepId,
        table: TableId,
        sets: &[(ColumnId, &'p Expression)],
    ) {
        let mut ranges = Vec::with_capacity(sets.len());
        for (at, (column, value)) in sets.iter().enumerate() {
            self.place = (step, Some(at));
            ranges.push(self.range(known, value));
            if value.ty.nullable && !self.catalog.table(table).columns[usize::from(column.0)].nullable {
                self.fails(|p| format!("{} may be null", p.text(value)));
            }
            self.evaluate_operand(known, step, at);
        }
        self.place = (step, None);
        for ((column, value), range) in sets.iter().zip(&ranges) {
            let cell = self.cells.column(table, *column);
            if let Some(added) = self.added_to_column(known, step, *column, value) {
                self.grow(cell, added);
            }
            known.add(cell, *range);
            known.forget_column(self.outline, table, *column);
        }
        if self.recording {
            self.proofs.values[usize::from(step.0)] = ranges;
        }
    }

    /// The operand of a delta is what the now-phase computes instead of the value.
    fn evaluate_operand(&mut self, known: &Knowledge, step: StepId, at: usize) {
        let found = self.shapes.iter().position(|shape| (shape.site.step, shape.site.index) == (step, at));
        let (Some(shape), true) = (found, self.recording) else { return };
        let before = std::mem::take(&mut self.proofs.failures);
        let interval = self.range(known, &self.shapes[shape].operand);
        let fails = !std::mem::replace(&mut self.proofs.failures, before).is_empty();
        self.proofs.operands[shape] = (interval, fails);
    }

    fn run_scan(
        &mut self,
        known: &mut Knowledge,
        step: &'p Step,
        row: RowId,
        scan: &'p Scan,
        body: &'p [Step],
    ) {
        let bounds = scan.equal.iter().chain(scan.lower.iter().chain(&scan.upper).map(|bound| &bound.value));
        self.evaluate_key(known, bounds);
        let mut turns = self.most_rows(known, row, scan);
        if let Some(limit) = &scan.limit {
            let limit_range = self.range(known, limit);
            if limit_range.low < 0 && !limit_range.is_empty() {
                self.fails(|p| format!("limit {} could be negative", p.text(limit)));
            }
            if !limit_range.is_empty() && !limit.ty.nullable {
                turns = turns.min(limit_range.high.max(0).cast_unsigned());
            }
        }
        // The filter runs for more rows than the body does; only what it assigns matters, and it
        // assigns afresh for each row.
        self.repeat(known, turns, step.id, &mut |prover, known| {
            known.forget_row(row);
            if let Some(filter) = &scan.filter {
                prover.run(known, &filter.steps);
                prover.place = (step.id, None);
                prover.range(known, &filter.condition);
                prover.assume_true(known, &filter.condition);
            }
            prover.run(known, body);
        });
    }

    /// How many rows a scan gives at most: all rows with the same leading key columns differ in the
    /// others.
    fn most_rows(&mut self, known: &Knowledge, row: RowId, scan: &Scan) -> u128 {
        let table = self.outline.table(row);
        let schema = self.catalog.table(table);
        let ordered = |column: ColumnId| {
            let data_type = schema.data_type(column);
            data_type.is_exact() || matches!(data_type, DataType::Date | DataType::Timestamp)
        };
        if let Some(index) = scan.index {
            let index = &schema.indexes[usize::from(index.0)];
            return if index.unique && scan.equal.len() == index.columns.len() { 1 } else { MOST_ROWS };
        }
        let rest = schema.primary_key.iter().enumerate().skip(scan.equal.len());
        rest.fold(1, |rows: u128, (at, column)| {
            let mut values = known.get(self.cells.column(table, *column));
            if at == scan.equal.len() {
                let mut bound = |bound: &Option<crate::ir::ScanBound>| match bound {
                    Some(bound) => self.silently(|prover| prover.range(known, &bound.value)),
                    None => Interval::EVERY,
                };
                let (lower, upper) = (bound(&scan.lower), bound(&scan.upper));
                values = values.meet(Interval::new(lower.low, upper.high));
            }
            if ordered(*column) { rows.saturating_mul(values.width()) } else { MOST_ROWS }
        })
        .min(MOST_ROWS)
    }

    /// A key with long text may exceed [`limit::KEY_BYTES`]; texts take up to two bytes per byte.
    fn evaluate_key(&mut self, known: &Knowledge, values: impl Iterator<Item = &'p Expression>) {
        const MOST: u128 = limit::BLOB_BYTES as u128;
        let mut bytes = 0u128;
        for value in values {
            let length = self.range(known, value).high.max(0).cast_unsigned();
            bytes += match value.ty.data_type {
                DataType::Bytea => 2 * length.min(MOST) + 3,
                DataType::Text { .. } | DataType::Char { .. } => 2 * (4 * length.min(MOST)).min(MOST) + 3,
                _ => 17,
            };
        }
        if bytes > limit::KEY_BYTES as u128 {
            self.fails(|_| format!("its key could be longer than {} bytes", limit::KEY_BYTES));
        }
    }

    /// Runs a loop's body until what is known at its head holds for every turn; what is known at the
    /// end of a turn, unless there is none.
    fn repeat(
        &mut self,
        known: &mut Knowledge,
        turns: u128,
        step: StepId,
        body: &mut dyn FnMut(&mut Self, &mut Knowledge),
    ) -> Option<Knowledge> {
        if turns == 0 {
            return None;
        }
        let entry = known.clone();
        let outer_growth = std::mem::take(&mut self.growth);
        let (recording, outer_turns) = (self.recording, self.turns);
        self.turns = outer_turns.saturating_mul(turns);
        self.recording = false;
        self.depth += 1;
        let head = if self.depth > DEPTH {
            self.give_up(&entry, step)
        } else {
            self.stable_head(&entry, turns, step, body)
        };
        self.recording = recording;
        let end = self.turn(&head, body);
        self.depth -= 1;
        self.turns = outer_turns;
        let inner = std::mem::replace(&mut self.growth, outer_growth);
        for (outer, inner) in self.growth.iter_mut().zip(inner).filter(|(_, inner)| *inner != NOTHING) {
            *outer = outer.plus(inner.repeated(turns));
        }
        *known = head;
        Some(end)
    }

    /// What is known at the head of every turn.
    fn stable_head(
        &mut self,
        entry: &Knowledge,
        turns: u128,
        step: StepId,
        body: &mut dyn FnMut(&mut Self, &mut Knowledge),
    ) -> Knowledge {
        let mut head = entry.clone();
        head.forget_relations();
        for round in 0.. {
            let end = self.turn(&head, body);
            let next = self.next_head(entry, &head, &end, turns, step, round);
            if next == head {
                break;
            }
            head = next;
        }
        head
    }

    /// What holds at the head of every turn whatever a turn does: nothing of what it changes.
    fn give_up(&self, entry: &Knowledge, step: StepId) -> Knowledge {
        let mut head = entry.clone();
        head.forget_relations();
        for (at, changes) in self.changes.iter().enumerate() {
            if changes.iter().any(|change| self.outline.contains(step, change.step)) {
                head.set(Cell(at), self.cells.tops[at]);
            }
        }
        head
    }

    fn turn(&mut self, head: &Knowledge, body: &mut dyn FnMut(&mut Self, &mut Knowledge)) -> Knowledge {
        self.growth = vec![NOTHING; self.cells.tops.len()];
        let mut end = head.clone();
        body(self, &mut end);
        end
    }

    fn next_head(
        &self,
        entry: &Knowledge,
        head: &Knowledge,
        end: &Knowledge,
        turns: u128,
        step: StepId,
        round: usize,
    ) -> Knowledge {
        let mut next = head.clone();
        for (at, top) in self.cells.tops.iter().enumerate() {
            let cell = Cell(at);
            let inside = |change: &&Change| self.outline.contains(step, change.step);
            let before = entry.get(cell);
            let joined = if self.changes[at].iter().filter(inside).all(|change| change.adds) {
                match self.growth[at] {
                    NOTHING => before,
                    added => before.plus(added.repeated(turns)).meet(*top),
                }
            } else if end.reachable {
                before.hull(end.get(cell))
            } else {
                before
            };
            let joined = joined.hull(head.get(cell));
            next.set(
                cell,
                match round {
                    _ if joined == head.get(cell) => joined,
                    ..PATIENCE => joined,
                    PATIENCE..GIVING_UP => joined.with_room(*top),
                    _ => *top,
                },
            );
        }
        next
    }

    fn grow(&mut self, cell: Cell, added: Interval) {
        self.growth[cell.0] = self.growth[cell.0].plus(added.hull(Interval::only(0)));
    }

    /// What an assignment adds to its variable, if that is all it does.
    fn added(
        &mut self,
        known: &Knowledge,
        value: &Expression,
        variable: VariableId,
        target: DataType,
    ) -> Option<Interval> {
        let addend = addend(value, variable, target)?;
        let range = self.silently(|prover| prover.range(known, addend.operand));
        let range = range.rescaled(addend.operand.ty.data_type.scale(), target.scale());
        Some(if addend.negative { range.negated() } else { range })
    }

    fn added_to_column(
        &mut self,
        known: &Knowledge,
        step: StepId,
        column: ColumnId,
        value: &Expression,
    ) -> Option<Interval> {
        let source = column_source(self.outline, step, column, value)?;
        self.added(known, value, source, value.ty.data_type)
    }

    /// Finds what changes each cell.
    fn find_changes(&mut self) {
        let outline = self.outline;
        for &step in &outline.order {
            let (cells, changes) = (&self.cells, &mut self.changes);
            let mut note = |cell: Cell, adds: bool| changes[cell.0].push(Change { step, adds });
            match &outline.at(step).step.kind {
                StepKind::Assign { variable, value } => {
                    let adds = addend(value, *variable, value.ty.data_type).is_some();
                    note(cells.variable(*variable), adds);
                }
                StepKind::Clear { list } | StepKind::Append { list, .. } | StepKind::Sort { list, .. } => {
                    let clear = matches!(outline.at(step).step.kind, StepKind::Clear { .. });
                    note(cells.length(*list), !clear);
                    if let Type::List(fields) = &outline.program.variables[usize::from(list.0)].ty {
                        (0..fields.len()).for_each(|at| note(cells.field(*list, at as u16), false));
                    }
                }
                StepKind::Exists { variable, .. } | StepKind::ForRange { variable, .. } => {
                    note(cells.variable(*variable), false);
                }
                StepKind::Read { columns, .. } => {
                    columns.iter().for_each(|(_, variable)| note(cells.variable(*variable), false));
                }
                StepKind::ForList { fields, .. } => {
                    fields.iter().for_each(|field| note(cells.variable(*field), false));
                }
                _ => {}
            }
        }
        for site in &outline.writes {
            let value = outline.written_value(*site);
            let adds = !site.insert
                && column_source(outline, site.step, site.column, value)
                    .is_some_and(|source| addend(value, source, value.ty.data_type).is_some());
            let cell = self.cells.column(site.table, site.column);
            self.changes[cell.0].push(Change { step: site.step, adds });
        }
    }
}

/// The variable in a value that holds the very column the value is stored to.
fn column_source(
    outline: &Outline<'_>,
    step: StepId,
    column: ColumnId,
    value: &Expression,
) -> Option<VariableId> {
    let StepKind::Update { row, .. } = outline.at(step).step.kind else { return None };
    let mut source = None;
    super::outline::variables(value, &mut |variable| {
        if let [read] = outline.assignments[usize::from(variable.0)][..]
            && let StepKind::Read { row: from, columns } = &outline.at(read).step.kind
            && outline.table(*from) == outline.table(row)
            && columns.contains(&(column, variable))
        {
            source = Some(variable);
        }
    });
    source
}
