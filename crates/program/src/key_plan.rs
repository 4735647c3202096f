//! Keys that are functions of a call's arguments alone, computed before the call runs.
//!
//! A scheduler that knows them can bring rows near before they are needed: the lazy engine prefetches
//! them into the cache for a whole batch. Other keys are found when the program runs.

use crate::argument_tuple::{ArgumentTuples, TuplePlanner};
use crate::ir::{Block, Program, StepKind};
use fabius_value::{Datum, TableId};

/// The lookups of a program whose keys are functions of its arguments.
#[derive(Clone, Debug, Default)]
pub struct KeyPlan {
    tables: Vec<TableId>,
    keys: ArgumentTuples,
}

impl KeyPlan {
    /// The plan of a program.
    pub fn of(program: &Program) -> KeyPlan {
        let mut search = Search { program, planner: TuplePlanner::new(program), tables: Vec::new() };
        search.block(&program.body);
        KeyPlan { tables: search.tables, keys: search.planner.finish() }
    }

    /// Whether there is nothing to compute.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The tables of the keys, one for each.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.tables.iter().copied()
    }

    /// Computes the keys of a call with these encoded arguments, as far as they decode.
    pub fn for_each(&self, arguments: &[u8], mut visit: impl FnMut(TableId, &[Datum<'_>])) {
        self.keys.for_each(arguments, |number, key| {
            if !key.iter().any(|part| part.is_null()) {
                visit(self.tables[number], key);
            }
        });
    }
}

struct Search<'p> {
    program: &'p Program,
    planner: TuplePlanner<'p>,
    tables: Vec<TableId>,
}

impl Search<'_> {
    fn block(&mut self, block: &Block) {
        for step in block {
            match &step.kind {
                StepKind::Locate { row, key } => {
                    let planned = self.planner.add(key);
                    self.tables.extend(planned.map(|_| self.program.rows[usize::from(row.0)].table));
                }
                StepKind::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                StepKind::ForList { body, .. }
                | StepKind::ForRange { body, .. }
                | StepKind::ForScan { body, .. } => self.block(body),
                _ => {}
            }
        }
    }
}
