//! What a program accesses: read and write sets as functions of its arguments.
//!
//! ```text
//! procedure transfer(src, dst, amount)      accounts[src]  reads balance, writes balance
//!                                           accounts[dst]  reads balance, writes balance
//! ```
//!
//! An engine that locks or partitions before it runs a call needs to know which rows the call may
//! touch (Calvin; LADS, section 3.1). Where a key depends on arguments alone it is computed from
//! them; where it depends on what is read earlier ([`KeySource::EarlierReads`]) the engine runs the
//! reads that it depends on first (Calvin's reconnaissance).
//!
//! The list is an upper bound: an access under a condition is in it whether the condition holds or
//! not, and an access in a loop stands for one per turn.

use crate::catalog::Catalog;
use crate::ir::{
    BinaryOperator, Expression, ExpressionKind, Program, RowId, Scan, ScanBound, StepId, StepKind, VariableId,
};
use crate::known_key::{AccessKind, KnownKey, NamedRows, named_rows_of};
use crate::slice::expression_text::expression_text;
use crate::slice::outline::{Outline, scan_expressions, used_variables, variables};
use fabius_value::{ColumnMask, TableId, Value};
use std::collections::BTreeSet;

/// What the key of an access depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// Arguments and constants.
    Arguments,
    /// Values that these steps (reads, scans) give.
    EarlierReads(Vec<StepId>),
}

/// The rows that one step names, and what is done with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The `Locate`, `Insert` or `ForScan`; its expressions are the key.
    pub step: StepId,
    /// The handle that it sets.
    pub row: RowId,
    /// The table.
    pub table: TableId,
    /// How rows are named.
    pub kind: AccessKind,
    /// How much of their keys is known, the primary key's first ([`NamedRows::keys`]).
    pub keys: Vec<KnownKey>,
    /// What the key depends on; the loops around it included.
    pub source: KeySource,
    /// Loops around it, outermost first.
    pub loops: Vec<StepId>,
    /// Whether it may not happen: it stands in a branch.
    pub conditional: bool,
    /// Columns read.
    pub reads: ColumnMask,
    /// Columns written; all of them by an insert or delete.
    pub writes: ColumnMask,
    /// Whether the call aborts if the row is missing, whichever branches it takes from here.
    pub required: bool,
    /// Whether it deletes the row.
    pub deletes: bool,
    /// The key as text: `stock[line.supply, line.item]`.
    pub text: String,
}

impl Access {
    /// Whether it changes anything.
    pub fn writes_anything(&self) -> bool {
        self.kind == AccessKind::Insert || self.deletes || !self.writes.is_empty()
    }
}

/// Every access of a program, in the order of the text.
pub fn accesses(program: &Program, catalog: &Catalog) -> Vec<Access> {
    let outline = Outline::of(program);
    let origins = Origins::of(&outline);
    let mut all: Vec<Access> = Vec::new();
    for named in named_rows_of(&outline, catalog) {
        let NamedRows { step, row, table, kind, keys, .. } = named;
        let mut access = Access {
            step,
            row,
            table,
            kind,
            keys,
            source: origins.key_source(&outline, catalog, step),
            loops: outline.loops(step),
            conditional: !outline.branches(step).is_empty(),
            reads: ColumnMask::EMPTY,
            writes: ColumnMask::EMPTY,
            required: false,
            deletes: false,
            text: record_text(&outline, catalog, step),
        };
        if kind == AccessKind::Insert {
            access.writes = catalog.table(table).all_mask();
        }
        all.push(access);
    }
    for &step in &outline.order {
        add_use(&outline, catalog, step, &mut all);
    }
    all
}

/// The rows that are there if a condition holds: `exists a and exists b`.
fn required_rows(outline: &Outline<'_>, condition: &Expression) -> Vec<RowId> {
    match &condition.kind {
        ExpressionKind::Variable(asked) => outline.asked_row(*asked).into_iter().collect(),
        ExpressionKind::Binary(BinaryOperator::And, left, right) => {
            [left, right].into_iter().flat_map(|part| required_rows(outline, part)).collect()
        }
        _ => Vec::new(),
    }
}

fn add_use(outline: &Outline<'_>, catalog: &Catalog, step: StepId, all: &mut [Access]) {
    let mut add = |row: RowId, note: &mut dyn FnMut(&mut Access)| {
        all.iter_mut().filter(|access| access.row == row).for_each(note);
    };
    let mut require = |access: &mut Access| {
        access.required |= outline.around(step).eq(outline.around(access.step));
    };
    match &outline.at(step).step.kind {
        StepKind::RequireRow { row } => add(*row, &mut require),
        StepKind::Require { condition, .. } => {
            for row in required_rows(outline, condition) {
                add(row, &mut require);
            }
        }
        StepKind::Read { row, columns } => {
            add(*row, &mut |access| columns.iter().for_each(|(column, _)| access.reads.insert(*column)));
        }
        StepKind::Update { row, sets } => {
            add(*row, &mut |access| sets.iter().for_each(|(column, _)| access.writes.insert(*column)));
        }
        StepKind::Delete { row } => {
            let all_columns = catalog.table(outline.table(*row)).all_mask();
            add(*row, &mut |access| {
                access.deletes = true;
                access.writes = all_columns;
            });
        }
        _ => {}
    }
}

/// A row as a reader writes it: `stock[line.item]`, `orders by name[w, d]`.
pub(crate) fn record_text(outline: &Outline<'_>, catalog: &Catalog, step: StepId) -> String {
    let text = |expression: &Expression| expression_text(outline.program, written(outline, expression));
    match &outline.at(step).step.kind {
        StepKind::Locate { row, key } => {
            let key: Vec<String> = key.iter().map(text).collect();
            format!("{}[{}]", catalog.table(outline.table(*row)).name, key.join(", "))
        }
        StepKind::Insert { row, values } => {
            let schema = catalog.table(outline.table(*row));
            let key: Vec<String> =
                schema.primary_key.iter().map(|column| text(&values[usize::from(column.0)])).collect();
            format!("{}[{}]", schema.name, key.join(", "))
        }
        StepKind::ForScan { row, scan, .. } => scan_text(outline, catalog, *row, scan),
        other => unreachable!("{other:?} names no row"),
    }
}

/// A part of a key as a reader knows it: a variable that is only ever a copy of another stands for that.
fn written<'e>(outline: &'e Outline<'_>, expression: &'e Expression) -> &'e Expression {
    let computed_once = |variable: VariableId| match outline.assignments[usize::from(variable.0)].as_slice() {
        [step] => match &outline.at(*step).step.kind {
            StepKind::Assign { value, .. } => Some(essence(value)),
            _ => None,
        },
        _ => None,
    };
    let mut written = expression;
    loop {
        let ExpressionKind::Variable(variable) = essence(written).kind else { return written };
        let Some(value) = computed_once(variable) else { return written };
        let ExpressionKind::Variable(other) = value.kind else { return written };
        if !outline.is_parameter(other) && computed_once(other).is_none() {
            return written;
        }
        written = value;
    }
}

/// An expression without what makes a value fit the type of a column.
fn essence(expression: &Expression) -> &Expression {
    let is_null = |expression: &Expression| matches!(expression.kind, ExpressionKind::Constant(Value::Null));
    match &expression.kind {
        ExpressionKind::Cast(operand) => essence(operand),
        ExpressionKind::Case { arms, otherwise } if is_null(otherwise) => match arms.as_slice() {
            [(_, only)] => essence(only),
            _ => expression,
        },
        _ => expression,
    }
}

fn scan_text(outline: &Outline<'_>, catalog: &Catalog, row: RowId, scan: &Scan) -> String {
    let text = |expression: &Expression| expression_text(outline.program, written(outline, expression));
    let schema = catalog.table(outline.table(row));
    let mut key: Vec<String> = scan.equal.iter().map(text).collect();
    let bound = |bound: &Option<ScanBound>, exclusive: &str| match bound {
        Some(bound) if bound.inclusive => (text(&bound.value), String::new()),
        Some(bound) => (text(&bound.value), exclusive.to_string()),
        None => (String::new(), String::new()),
    };
    let ((low, above), (high, below)) = (bound(&scan.lower, "<"), bound(&scan.upper, "<"));
    if scan.lower.is_some() || scan.upper.is_some() {
        key.push(format!("{low} {above}..{below} {high}").trim().to_string());
    } else {
        key.push("..".into());
    }
    let index = scan
        .index
        .map_or(String::new(), |index| format!(" by {}", schema.indexes[usize::from(index.0)].name));
    format!("{}{index}[{}]", schema.name, key.join(", "))
}

/// By variable: the steps (reads, existence checks, scans) that its value can depend on, through
/// assignments, lists and conditions.
pub(crate) struct Origins(Vec<BTreeSet<StepId>>);

impl Origins {
    /// Finds the origins of every variable.
    pub fn of(outline: &Outline<'_>) -> Origins {
        let mut origins = Origins(vec![BTreeSet::new(); outline.program.variables.len()]);
        loop {
            let mut changed = false;
            for (at, assignments) in outline.assignments.iter().enumerate() {
                let mut found: BTreeSet<StepId> = BTreeSet::new();
                for &step in assignments {
                    match &outline.at(step).step.kind {
                        StepKind::Read { .. } | StepKind::Exists { .. } => {
                            found.insert(step);
                        }
                        _ => found.extend(origins.of_step(outline, step)),
                    }
                    found.extend(origins.of_control(outline, step));
                }
                changed |= found.len() > origins.0[at].len();
                origins.0[at] = found;
            }
            if !changed {
                return origins;
            }
        }
    }

    /// Origins of what a step itself uses.
    pub fn of_step(&self, outline: &Outline<'_>, step: StepId) -> BTreeSet<StepId> {
        let used = used_variables(outline.at(step).step);
        used.into_iter().flat_map(|variable| self.of_variable(variable)).collect()
    }

    /// Origins of the conditions and loops around a step.
    pub fn of_control(&self, outline: &Outline<'_>, step: StepId) -> BTreeSet<StepId> {
        let mut found = BTreeSet::new();
        for (parent, _) in outline.around(step) {
            if let StepKind::ForScan { .. } = outline.at(parent).step.kind {
                found.insert(parent);
            }
            found.extend(self.of_step(outline, parent));
        }
        found
    }

    /// Origins of a variable.
    pub fn of_variable(&self, variable: VariableId) -> impl Iterator<Item = StepId> + '_ {
        self.0[usize::from(variable.0)].iter().copied()
    }

    /// Origins of the key of a `Locate`, `Insert` or `ForScan`.
    pub fn of_key(&self, outline: &Outline<'_>, catalog: &Catalog, step: StepId) -> BTreeSet<StepId> {
        let mut used = Vec::new();
        let mut note = |expression: &Expression| variables(expression, &mut |variable| used.push(variable));
        match &outline.at(step).step.kind {
            StepKind::Locate { key, .. } => key.iter().for_each(note),
            StepKind::Insert { row, values } => {
                let key = &catalog.table(outline.table(*row)).primary_key;
                key.iter().for_each(|column| note(&values[usize::from(column.0)]));
            }
            StepKind::ForScan { scan, .. } => scan_expressions(scan, &mut |bound| note(bound)),
            _ => {}
        }
        used.into_iter().flat_map(|variable| self.of_variable(variable)).collect()
    }

    fn key_source(&self, outline: &Outline<'_>, catalog: &Catalog, step: StepId) -> KeySource {
        let mut origins = self.of_key(outline, catalog, step);
        // In a scan's body there is an access per row of the scan.
        for parent in outline.loops(step) {
            if let StepKind::ForScan { .. } = outline.at(parent).step.kind {
                origins.insert(parent);
            } else {
                origins.extend(self.of_step(outline, parent));
            }
        }
        if origins.is_empty() {
            KeySource::Arguments
        } else {
            KeySource::EarlierReads(origins.into_iter().collect())
        }
    }
}
