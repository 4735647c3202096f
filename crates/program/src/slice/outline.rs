//! A program laid out flat: where each step stands, what assigns what, and which steps can follow
//! which.
//!
//! Analyses ask questions across the tree ("can this write come before that read?"), so the tree is
//! walked once and every step gets its place:
//!
//! ```text
//! 0 for line in lines {              position 0, parent none
//! 1     if line.count > 0 {          position 1, parent (0, Body)
//! 2         a := ...                 position 2, parent (1, Then)
//!       } else {
//! 3         b := ...                 position 3, parent (1, Otherwise)
//!       }
//!   }
//! ```
//!
//! Step 3 can run after step 2 although they exclude each other in one turn: a later turn of the loop
//! that both stand in may take the other branch.

use crate::ir::{
    Expression, ExpressionKind, Program, Returned, RowId, Scan, Step, StepId, StepKind, VariableId,
};
use fabius_value::{ColumnId, TableId};

/// The part of a parent that a step stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The first block of an `If`.
    Then,
    /// The second block of an `If`.
    Otherwise,
    /// The body of a loop.
    Body,
    /// The filter of a scan: part of the loop, before its body.
    Filter,
}

/// One step and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'p> {
    /// The step.
    pub step: &'p Step,
    /// The control step around it and the part of that; `None` in the program's body.
    pub parent: Option<(StepId, Part)>,
    /// The step's rank in the order of the text.
    pub position: usize,
}

/// A column of a table that a step writes: the `index`th value of an `Insert` or `Update`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteSite {
    /// The `Insert` or `Update`.
    pub step: StepId,
    /// Which of its values.
    pub index: usize,
    /// The table.
    pub table: TableId,
    /// The column.
    pub column: ColumnId,
    /// Whether it is an `Insert`.
    pub insert: bool,
}

/// A program laid out flat.
pub(crate) struct Outline<'p> {
    /// The program.
    pub program: &'p Program,
    places: Vec<Option<Placed<'p>>>,
    /// Step numbers in the order of the text.
    pub order: Vec<StepId>,
    /// By variable: the steps that assign it (for lists: clear it or append to it).
    pub assignments: Vec<Vec<StepId>>,
    /// By row handle: the steps that set it.
    pub handles: Vec<Vec<StepId>>,
    /// Every column that is written, in the order of the text.
    pub writes: Vec<WriteSite>,
    /// Inserts and deletes: what changes which rows there are.
    pub existence_changes: Vec<(StepId, TableId, bool)>,
}

impl<'p> Outline<'p> {
    /// Lays a program out.
    pub fn of(program: &'p Program) -> Outline<'p> {
        let mut outline = Outline {
            program,
            places: vec![None; program.step_count],
            order: Vec::with_capacity(program.step_count),
            assignments: vec![Vec::new(); program.variables.len()],
            handles: vec![Vec::new(); program.rows.len()],
            writes: Vec::new(),
            existence_changes: Vec::new(),
        };
        outline.place(&program.body, None);
        outline
    }

    fn place(&mut self, block: &'p [Step], parent: Option<(StepId, Part)>) {
        for step in block {
            let position = self.order.len();
            self.order.push(step.id);
            self.places[usize::from(step.id.0)] = Some(Placed { step, parent, position });
            self.note(step);
            match &step.kind {
                StepKind::If { then, otherwise, .. } => {
                    self.place(then, Some((step.id, Part::Then)));
                    self.place(otherwise, Some((step.id, Part::Otherwise)));
                }
                StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => {
                    self.place(body, Some((step.id, Part::Body)));
                }
                StepKind::ForScan { scan, body, .. } => {
                    if let Some(filter) = &scan.filter {
                        self.place(&filter.steps, Some((step.id, Part::Filter)));
                    }
                    self.place(body, Some((step.id, Part::Body)));
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, step: &'p Step) {
        let id = step.id;
        let mut assigns = |variable: VariableId| self.assignments[usize::from(variable.0)].push(id);
        match &step.kind {
            StepKind::Assign { variable, .. }
            | StepKind::Exists { variable, .. }
            | StepKind::ForRange { variable, .. } => assigns(*variable),
            StepKind::Clear { list } | StepKind::Append { list, .. } | StepKind::Sort { list, .. } => {
                assigns(*list);
            }
            StepKind::Read { columns, .. } => columns.iter().for_each(|(_, variable)| assigns(*variable)),
            StepKind::ForList { fields, .. } => fields.iter().for_each(|field| assigns(*field)),
            StepKind::Locate { row, .. } | StepKind::ForScan { row, .. } => {
                self.handles[usize::from(row.0)].push(id);
            }
            StepKind::Insert { row, values } => {
                self.handles[usize::from(row.0)].push(id);
                let table = self.table(*row);
                self.existence_changes.push((id, table, true));
                for index in 0..values.len() {
                    let column = ColumnId(index as u8);
                    self.writes.push(WriteSite { step: id, index, table, column, insert: true });
                }
            }
            StepKind::Update { row, sets } => {
                let table = self.table(*row);
                for (index, (column, _)) in sets.iter().enumerate() {
                    self.writes.push(WriteSite { step: id, index, table, column: *column, insert: false });
                }
            }
            StepKind::Delete { row } => self.existence_changes.push((id, self.table(*row), false)),
            _ => {}
        }
    }

    /// A step and its place.
    pub fn at(&self, step: StepId) -> Placed<'p> {
        self.places[usize::from(step.0)].expect("every step number below the count is a step's")
    }

    /// The row that a variable says is there or not: `exists table[key]`.
    pub fn asked_row(&self, variable: VariableId) -> Option<RowId> {
        match self.assignments[usize::from(variable.0)].as_slice() {
            [step] => match &self.at(*step).step.kind {
                StepKind::Exists { row, .. } => Some(*row),
                _ => None,
            },
            _ => None,
        }
    }

    /// The table of a row handle.
    pub fn table(&self, row: RowId) -> TableId {
        self.program.rows[usize::from(row.0)].table
    }

    /// Whether a variable is a parameter.
    pub fn is_parameter(&self, variable: VariableId) -> bool {
        usize::from(variable.0) < self.program.parameter_count
    }

    /// The control steps around a step, innermost first, with the part the step stands in.
    pub fn around(&self, step: StepId) -> impl Iterator<Item = (StepId, Part)> + '_ {
        std::iter::successors(self.at(step).parent, |(parent, _)| self.at(*parent).parent)
    }

    /// Whether a step is a loop.
    pub fn is_loop(&self, step: StepId) -> bool {
        matches!(
            self.at(step).step.kind,
            StepKind::ForList { .. } | StepKind::ForRange { .. } | StepKind::ForScan { .. }
        )
    }

    /// The loops around a step, outermost first.
    pub fn loops(&self, step: StepId) -> Vec<StepId> {
        let mut loops: Vec<StepId> =
            self.around(step).map(|(parent, _)| parent).filter(|parent| self.is_loop(*parent)).collect();
        loops.reverse();
        loops
    }

    /// The steps that stand inside `outer`, in the order of the text.
    pub fn inside(&self, outer: StepId) -> impl Iterator<Item = StepId> {
        let behind = &self.order[self.at(outer).position + 1..];
        behind.iter().copied().take_while(move |&step| self.contains(outer, step))
    }

    /// The branches around a step, innermost first.
    pub fn branches(&self, step: StepId) -> Vec<(StepId, Part)> {
        self.around(step).filter(|(parent, _)| !self.is_loop(*parent)).collect()
    }

    /// Whether `inner` stands inside `outer`.
    pub fn contains(&self, outer: StepId, inner: StepId) -> bool {
        self.around(inner).any(|(parent, _)| parent == outer)
    }

    /// Whether `second` can run after `first` in one run of the program.
    pub fn can_follow(&self, first: StepId, second: StepId) -> bool {
        let share_loop = || self.around(first).any(|(p, _)| self.is_loop(p) && self.contains(p, second));
        if first == second {
            return share_loop();
        }
        let exclusive = || {
            self.around(first).any(|(parent, part)| {
                self.around(second).any(|(other, other_part)| other == parent && other_part != part)
                    && !self.is_loop(parent)
            })
        };
        let in_text_order = self.at(first).position < self.at(second).position && !exclusive();
        in_text_order || share_loop()
    }

    /// Whether `first` has run whenever `second` runs: it stands before it in the same block or in
    /// one around it.
    pub fn dominates(&self, first: StepId, second: StepId) -> bool {
        let before = self.at(first).position < self.at(second).position;
        let block = self.at(first).parent;
        before && (block.is_none() || self.around(second).any(|place| Some(place) == block))
    }

    /// The value that a write stores.
    pub fn written_value(&self, site: WriteSite) -> &'p Expression {
        match &self.at(site.step).step.kind {
            StepKind::Insert { values, .. } => &values[site.index],
            StepKind::Update { sets, .. } => &sets[site.index].1,
            other => unreachable!("{other:?} does not write"),
        }
    }
}

/// Calls `visit` with every expression of a step itself, not of the steps inside it.
pub(crate) fn expressions<'p>(step: &'p Step, visit: &mut dyn FnMut(&'p Expression)) {
    match &step.kind {
        StepKind::Assign { value, .. } => visit(value),
        StepKind::Append { values, .. } | StepKind::Insert { values, .. } => values.iter().for_each(visit),
        StepKind::Locate { key, .. } => key.iter().for_each(visit),
        StepKind::Require { condition, failure } => {
            visit(condition);
            failure.expressions().for_each(visit);
        }
        StepKind::If { condition, .. } => visit(condition),
        StepKind::ForRange { from, to, .. } => {
            visit(from);
            visit(to);
        }
        StepKind::ForScan { scan, .. } => {
            scan_expressions(scan, visit);
            scan.filter.iter().for_each(|filter| visit(&filter.condition));
        }
        StepKind::Update { sets, .. } => sets.iter().for_each(|(_, value)| visit(value)),
        StepKind::Return { values } => values.iter().for_each(|value| match value {
            Returned::Scalar(value) => visit(value),
            Returned::List(_) => {}
        }),
        StepKind::Clear { .. }
        | StepKind::Sort { .. }
        | StepKind::RequireRow { .. }
        | StepKind::Exists { .. }
        | StepKind::Read { .. }
        | StepKind::ForList { .. }
        | StepKind::Delete { .. } => {}
    }
}

/// Calls `visit` with the bounds and the limit of a scan: what is evaluated once, before it.
pub(crate) fn scan_expressions<'p>(scan: &'p Scan, visit: &mut dyn FnMut(&'p Expression)) {
    scan.equal.iter().for_each(&mut *visit);
    scan.lower.iter().chain(&scan.upper).for_each(|bound| visit(&bound.value));
    scan.limit.iter().for_each(visit);
}

/// The variables that a step itself uses, lists included, with repetitions.
pub(crate) fn used_variables(step: &Step) -> Vec<VariableId> {
    let mut used = Vec::new();
    expressions(step, &mut |expression| variables(expression, &mut |variable| used.push(variable)));
    match &step.kind {
        StepKind::ForList { list, .. } => used.push(*list),
        StepKind::Return { values } => used.extend(values.iter().filter_map(|value| match value {
            Returned::List(list) => Some(*list),
            Returned::Scalar(_) => None,
        })),
        _ => {}
    }
    used
}

/// Calls `visit` with every variable an expression uses, lists included, with repetitions.
pub(crate) fn variables(expression: &Expression, visit: &mut dyn FnMut(VariableId)) {
    walk(expression, &mut |part| match &part.kind {
        ExpressionKind::Variable(variable) => visit(*variable),
        ExpressionKind::Aggregate { list, .. } | ExpressionKind::Element { list, .. } => visit(*list),
        _ => {}
    });
}

/// Whether an expression uses a variable.
pub(crate) fn mentions(expression: &Expression, variable: VariableId) -> bool {
    let mut found = false;
    variables(expression, &mut |used| found |= used == variable);
    found
}

impl Program {
    /// Whether any of its expressions draws a random number.
    pub fn draws_random(&self) -> bool {
        let outline = Outline::of(self);
        let mut draws = false;
        for &step in &outline.order {
            expressions(outline.at(step).step, &mut |value| draws |= draws_random(value));
        }
        draws
    }
}

/// Whether an expression draws a random number.
pub(crate) fn draws_random(expression: &Expression) -> bool {
    let mut found = false;
    walk(expression, &mut |part| found |= matches!(part.kind, ExpressionKind::Random));
    found
}

fn walk<'e>(expression: &'e Expression, visit: &mut dyn FnMut(&'e Expression)) {
    visit(expression);
    match &expression.kind {
        ExpressionKind::Unary(_, operand) | ExpressionKind::Cast(operand) => walk(operand, visit),
        ExpressionKind::Element { index, .. } => walk(index, visit),
        ExpressionKind::Binary(_, left, right) => {
            walk(left, visit);
            walk(right, visit);
        }
        ExpressionKind::Case { arms, otherwise } => {
            for (condition, value) in arms {
                walk(condition, visit);
                walk(value, visit);
            }
            walk(otherwise, visit);
        }
        ExpressionKind::Call(_, arguments) => arguments.iter().for_each(|argument| walk(argument, visit)),
        ExpressionKind::Constant(_)
        | ExpressionKind::Variable(_)
        | ExpressionKind::Aggregate { .. }
        | ExpressionKind::Now
        | ExpressionKind::Random => {}
    }
}
