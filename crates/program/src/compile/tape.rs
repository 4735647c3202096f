//! The capture tape: what the now-phase hands to the later-phase, and where.
//!
//! Both phases ask this module at every step, so they agree on the order by construction:
//!
//! ```text
//! text                               now                      later
//! r0 := accounts[src]                locate, capture row      restore row
//! require r0.balance >= amount       read, check
//! for line in orders[c ..] {         scan; each row: capture  while restore row is not missing
//!     v := line.count                read, capture            restore
//!     ...                                                     ...
//! }                                  capture end
//! ```

use crate::ir::{Block, Program, RowId, Step, StepKind, VariableId};
use crate::slice::{Phases, StepPhase};

/// One thing on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Captured {
    Variable(VariableId),
    Row(RowId),
}

/// What is captured where, for one program and its phases.
pub(super) struct Tape<'p> {
    pub phases: &'p Phases,
    /// Whether the later-phase computes results.
    results: bool,
    variables: Vec<bool>,
    rows: Vec<bool>,
}

impl<'p> Tape<'p> {
    pub fn new(program: &Program, phases: &'p Phases, results: bool) -> Tape<'p> {
        let mut variables = vec![false; program.variables.len()];
        let mut rows = vec![false; program.rows.len()];
        phases.captured_variables.iter().for_each(|variable| variables[usize::from(variable.0)] = true);
        phases.captured_rows.iter().for_each(|row| rows[usize::from(row.0)] = true);
        Tape { phases, results, variables, rows }
    }

    pub fn phase(&self, step: &Step) -> StepPhase {
        self.phases.steps[usize::from(step.id.0)]
    }

    /// What a step itself captures, in order. A scan's rows are not in it: see
    /// [`replays`](Tape::replays).
    pub fn captures(&self, step: &Step) -> Vec<Captured> {
        if !self.phase(step).now {
            return Vec::new();
        }
        let variable = |variable: &VariableId| {
            self.variables[usize::from(variable.0)].then_some(Captured::Variable(*variable))
        };
        match &step.kind {
            StepKind::Assign { variable: assigned, .. } | StepKind::Exists { variable: assigned, .. } => {
                variable(assigned).into_iter().collect()
            }
            StepKind::Read { columns, .. } => {
                let now = self.phases.reads_now[usize::from(step.id.0)];
                columns
                    .iter()
                    .filter(|(column, _)| now.contains(*column))
                    .filter_map(|(_, read)| variable(read))
                    .collect()
            }
            StepKind::Locate { row, .. } | StepKind::Insert { row, .. } if self.rows[usize::from(row.0)] => {
                vec![Captured::Row(*row)]
            }
            _ => Vec::new(),
        }
    }

    /// Whether the later-phase has anything to do at the step or inside it: compute, or take things
    /// off the tape.
    pub fn concerns_later(&self, step: &Step) -> bool {
        self.computes_later(step)
            || !self.captures(step).is_empty()
            || self.replays(step)
            || self.inside(step, Tape::concerns_later)
    }

    fn computes_later(&self, step: &Step) -> bool {
        self.phase(step).later && (self.results || !self.phases.results_only[usize::from(step.id.0)])
    }

    /// Whether the now-phase has anything to do at the step or inside it.
    pub fn concerns_now(&self, step: &Step) -> bool {
        self.phase(step).now || self.inside(step, Tape::concerns_now)
    }

    /// Whether the later-phase replays the scan from rows that the now-phase captured. With or
    /// without results: the tape is the same.
    pub fn replays(&self, scan: &Step) -> bool {
        match &scan.kind {
            StepKind::ForScan { row, .. } => self.phase(scan).now && self.rows[usize::from(row.0)],
            _ => false,
        }
    }

    fn inside(&self, step: &Step, concerns: impl Fn(&Self, &Step) -> bool + Copy) -> bool {
        let any = |block: &Block| block.iter().any(|step| concerns(self, step));
        match &step.kind {
            StepKind::If { then, otherwise, .. } => any(then) || any(otherwise),
            StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => any(body),
            StepKind::ForScan { scan, body, .. } => {
                scan.filter.as_ref().is_some_and(|filter| any(&filter.steps)) || any(body)
            }
            _ => false,
        }
    }
}
