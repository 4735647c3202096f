//! The later-phase: what the values that are not stored now, and the results, depend on.
//!
//! A backward slice like the now-phase's, which stops at what the now-phase knows: such variables and
//! row handles are *captured*. The steps that assign them stay in the later-phase as the places where
//! the tape is read, so the conditions and loops around them are walked again, with the same turns
//! and branches, because what decides those is captured too.
//!
//! Lists are not captured: the steps that build one run again. Loop counters and the fields of list
//! elements come from the loop itself, which runs again.

use super::now_slice::NowSlice;
use super::outline::{WriteSite, scan_expressions, used_variables, variables};
use crate::ir::{Expression, RowId, StepId, StepKind, Type, VariableId};
use fabius_value::{ColumnId, ColumnMask};
use std::rc::Rc;

/// The later part of a program.
pub(super) struct LaterSlice<'s, 'a, 'p> {
    now: &'s NowSlice<'a, 'p>,
    /// By step: whether it has a part later (restoring captured values is one).
    pub steps: Vec<bool>,
    /// By variable: whether the later-phase uses it.
    pub variables: Vec<bool>,
    /// By step: columns read later.
    pub reads: Vec<ColumnMask>,
    /// By row handle: whether the now-phase hands it over.
    pub captured_rows: Vec<bool>,
    /// By step: whether its later part exists only for the results.
    pub results_only: Vec<bool>,
    /// By step: what its later part is for.
    pub reasons: Vec<Option<Rc<str>>>,
    /// Whether the later-phase stores anything.
    pub has_writes: bool,
    for_results: bool,
    pending: Vec<(StepId, Rc<str>)>,
}

impl<'s, 'a, 'p> LaterSlice<'s, 'a, 'p> {
    /// What is left when the slice `now` has been taken out.
    pub fn of(now: &'s NowSlice<'a, 'p>) -> LaterSlice<'s, 'a, 'p> {
        let slice = LaterSlice::with(now, &[]);
        match &slice.deciding_lists()[..] {
            [] => slice,
            lists => LaterSlice::with(now, lists),
        }
    }

    /// What is left when the slice `now` has been taken out, where these lists are needed without results too.
    fn with(now: &'s NowSlice<'a, 'p>, lists: &[VariableId]) -> LaterSlice<'s, 'a, 'p> {
        let program = now.outline.program;
        let mut slice = LaterSlice {
            now,
            steps: vec![false; program.step_count],
            variables: vec![false; program.variables.len()],
            reads: vec![ColumnMask::EMPTY; program.step_count],
            captured_rows: vec![false; program.rows.len()],
            results_only: vec![false; program.step_count],
            reasons: vec![None; program.step_count],
            has_writes: false,
            for_results: false,
            pending: Vec::new(),
        };
        for site in &now.outline.writes {
            if !now.is_known(*site) {
                slice.fill(*site);
            }
        }
        for list in lists {
            slice.need_variable(*list, &"decides which way is taken".into());
        }
        slice.close();
        slice.for_results = true;
        for &step in &now.outline.order {
            let results = matches!(now.outline.at(step).step.kind, StepKind::Return { .. });
            if results && !slice.is_now(step) {
                slice.need_step(step, &"result".into());
            }
        }
        slice.close();
        slice
    }

    /// Lists that decide which steps are walked again, and with that which captured values are taken off the tape:
    /// that has to be the same without results, and lists are not captured.
    fn deciding_lists(&self) -> Vec<VariableId> {
        let outline = self.now.outline;
        let is_local_list = |variable: &VariableId| {
            let ty = &outline.program.variables[usize::from(variable.0)].ty;
            !matches!(ty, Type::Scalar(_)) && !outline.is_parameter(*variable)
        };
        let decide = outline.order.iter().filter(|step| {
            let kind = &outline.at(**step).step.kind;
            let decides =
                matches!(kind, StepKind::If { .. } | StepKind::ForList { .. } | StepKind::ForRange { .. });
            decides && self.is_now(**step) && self.steps[usize::from(step.0)]
        });
        decide.flat_map(|step| used_variables(outline.at(*step).step)).filter(is_local_list).collect()
    }

    fn fill(&mut self, site: WriteSite) {
        let outline = self.now.outline;
        self.has_writes = true;
        let schema = self.now.catalog.table(site.table);
        let column = &schema.columns[usize::from(site.column.0)].name;
        let reason: Rc<str> = format!("value of {}.{column}", schema.name).into();
        self.need_step(site.step, &reason);
        self.need_expression(outline.written_value(site), &reason);
        match &outline.at(site.step).step.kind {
            StepKind::Insert { row, .. } | StepKind::Update { row, .. } => self.need_row(*row, &reason),
            other => unreachable!("{other:?} does not write"),
        }
    }

    fn is_now(&self, step: StepId) -> bool {
        self.now.steps[usize::from(step.0)]
    }

    fn need_step(&mut self, step: StepId, reason: &Rc<str>) {
        let at = usize::from(step.0);
        if !self.steps[at] {
            self.steps[at] = true;
            self.results_only[at] = self.for_results;
            self.reasons[at] = Some(reason.clone());
            self.pending.push((step, reason.clone()));
        }
    }

    fn need_expression(&mut self, expression: &Expression, reason: &Rc<str>) {
        variables(expression, &mut |variable| self.need_variable(variable, reason));
    }

    fn need_variable(&mut self, variable: VariableId, reason: &Rc<str>) {
        let outline = self.now.outline;
        let at = usize::from(variable.0);
        if self.variables[at] || outline.is_parameter(variable) {
            return;
        }
        self.variables[at] = true;
        for &step in &outline.assignments[at] {
            self.need_step(step, reason);
            // A variable that the now-phase knows is restored; another is computed again.
            if !self.is_captured(variable)
                && let StepKind::Read { row, columns } = &outline.at(step).step.kind
            {
                for (column, _) in columns.iter().filter(|(_, into)| *into == variable) {
                    self.need_read(step, *row, *column, reason);
                }
            }
        }
    }

    fn need_read(&mut self, step: StepId, row: RowId, column: ColumnId, reason: &Rc<str>) {
        self.reads[usize::from(step.0)].insert(column);
        self.need_row(row, reason);
    }

    /// Whether the now-phase hands the variable over.
    pub fn is_captured(&self, variable: VariableId) -> bool {
        let outline = self.now.outline;
        let at = usize::from(variable.0);
        let scalar = matches!(outline.program.variables[at].ty, Type::Scalar(_));
        let by_loops_only = outline.assignments[at].iter().all(|step| outline.is_loop(*step));
        scalar && self.variables[at] && self.now.variables[at] && !by_loops_only
    }

    fn need_row(&mut self, row: RowId, reason: &Rc<str>) {
        for &step in &self.now.outline.handles[usize::from(row.0)] {
            if self.is_now(step) {
                self.captured_rows[usize::from(row.0)] = true;
            }
            self.need_step(step, reason);
        }
    }

    fn close(&mut self) {
        let outline = self.now.outline;
        while let Some((step, reason)) = self.pending.pop() {
            for (parent, _) in outline.around(step) {
                self.need_step(parent, &reason);
            }
            self.need_inputs(step, &reason);
        }
    }

    /// What a step's later part uses. Restoring uses nothing.
    fn need_inputs(&mut self, step: StepId, reason: &Rc<str>) {
        let outline = self.now.outline;
        let node = outline.at(step).step;
        match &node.kind {
            StepKind::Insert { .. } | StepKind::Update { .. } | StepKind::Read { .. } => {}
            StepKind::Assign { variable, .. } | StepKind::Exists { variable, .. }
                if self.is_captured(*variable) => {}
            StepKind::Locate { .. } if self.is_now(step) => {}
            StepKind::ForScan { row, .. } if self.is_now(step) => {
                self.captured_rows[usize::from(row.0)] = true;
            }
            StepKind::ForScan { scan, .. } => {
                scan_expressions(scan, &mut |bound| self.need_expression(bound, reason));
                scan.filter.iter().for_each(|filter| self.need_expression(&filter.condition, reason));
            }
            StepKind::Exists { row, .. } => self.need_row(*row, reason),
            _ => used_variables(node).into_iter().for_each(|used| self.need_variable(used, reason)),
        }
        // A list needs all that builds it; loops over it then find it.
        if let StepKind::Clear { list } | StepKind::Append { list, .. } | StepKind::Sort { list, .. } =
            &node.kind
        {
            self.need_variable(*list, reason);
        }
    }
}
