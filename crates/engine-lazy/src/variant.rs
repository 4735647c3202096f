//! A procedure sliced and compiled under the assumptions of the moment.
//!
//! How much of a program can wait depends on what is known of the data and the arguments
//! (see [`crate::interval`]): under narrow assumptions more arithmetic is proven not to fail, so more is
//! left for later. A [`Variant`] is a procedure's phases under one set of assumptions; when they no
//! longer hold, another is made. All variants of a procedure mean the same.

use crate::interval::{Intervals, lower_step, upper_step};
use fabius_engine::{Definitions, Procedure};
use fabius_program::compile::{Code, compile_later, compile_now};
use fabius_program::ir::{StepKind, Type, VariableId};
use fabius_program::slice::{Assumptions, Interval, Phases, TypesOnly, slice};
use fabius_program::{catalog::Catalog, ir::Program};
use fabius_value::{ColumnId, ColumnMask, Datum, TableId};
use std::ptr::NonNull;
use std::sync::Arc;

/// A procedure sliced and compiled under some assumptions.
pub struct Variant {
    /// The procedure.
    pub procedure: Arc<Procedure>,
    /// What runs before the promise.
    pub now: Code,
    /// What runs after it.
    pub later: Code,
    /// What runs after it if the caller wants the returned values.
    pub later_with_results: Code,
    /// Whether there is anything to do later but computing results.
    pub has_later_writes: bool,
    /// By table: columns that the later-phase may read.
    pub reads: Vec<ColumnMask>,
    /// Tables that the later-phase may read.
    pub tables_read: Vec<TableId>,
    /// Tables that it may look rows up in that the now-phase has not captured.
    pub tables_searched: Vec<TableId>,
    relied_on: Vec<(VariableId, u16, Interval)>,
    added: Vec<(TableId, ColumnId, Interval)>,
    version: u64,
}

/// The current variant of each procedure, and all that were ever made (deferred calls point to them).
#[derive(Default)]
pub struct Variants {
    current: Vec<Option<NonNull<Variant>>>,
    parameters: Vec<Vec<Vec<Interval>>>,
    #[allow(clippy::vec_box, reason = "addresses must not move")]
    all: Vec<Box<Variant>>,
}

// SAFETY: the pointers lead into `all`, whose variants are not changed once made.
unsafe impl Send for Variants {}

struct Moment<'m> {
    intervals: &'m Intervals,
    parameters: &'m [Vec<Interval>],
}

impl Assumptions for Moment<'_> {
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        self.intervals.assumed(table, column)
    }

    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval> {
        self.parameters.get(parameter.0 as usize)?.get(field as usize).copied()
    }
}

/// Times a procedure is sliced again before its proofs are given up for good.
const SLICES_MAX: usize = 400;

impl Variants {
    /// The variant to run a call with, given its arguments; `arguments` gives the least and greatest
    /// value of a parameter's field in this call.
    pub fn choose(
        &mut self,
        procedure: &Arc<Procedure>,
        definitions: &Definitions,
        intervals: &mut Intervals,
        arguments: &dyn Fn(VariableId, u16) -> Option<Interval>,
    ) -> NonNull<Variant> {
        let at = procedure.id.0 as usize;
        if self.current.len() <= at {
            self.current.resize(at + 1, None);
            self.parameters.resize_with(at + 1, Vec::new);
        }
        for attempt in 0.. {
            if let Some(pointer) = self.current[at] {
                // SAFETY: variants are never freed before the engine.
                let variant = unsafe { pointer.as_ref() };
                if variant.version == intervals.version() || variant.version == u64::MAX {
                    let outside = variant.relied_on.iter().any(|&(parameter, field, assumed)| {
                        arguments(parameter, field).is_some_and(|given| given.low < assumed.low || given.high > assumed.high)
                    });
                    if !outside {
                        for &(table, column, by) in &variant.added {
                            intervals.shift(table, column, by);
                        }
                        if variant.version == intervals.version() || variant.version == u64::MAX {
                            return pointer;
                        }
                        // The shift went beyond what the proof assumed: prove again for this call.
                        continue;
                    }
                }
            }
            self.learn(at, &procedure.program, arguments);
            let gives_up = attempt > 8 || self.all.len() > SLICES_MAX * (at + 1);
            let variant = build(procedure, definitions, intervals, &self.parameters[at], gives_up);
            self.all.push(Box::new(variant));
            self.current[at] = self.all.last().map(|variant| NonNull::from(&**variant));
        }
        unreachable!("a variant without proofs suits every call")
    }

    /// Widens what is assumed of a procedure's parameters so that this call fits.
    fn learn(&mut self, at: usize, program: &Program, arguments: &dyn Fn(VariableId, u16) -> Option<Interval>) {
        let known = &mut self.parameters[at];
        known.resize_with(program.parameter_count, Vec::new);
        for (parameter, variable) in program.variables[..program.parameter_count].iter().enumerate() {
            let scalars: Vec<_> = match &variable.ty {
                Type::Scalar(scalar) => vec![*scalar],
                Type::List(fields) => fields.iter().map(|field| field.scalar).collect(),
            };
            known[parameter].resize(scalars.len(), Interval { low: 0, high: 0 });
            for (field, scalar) in scalars.iter().enumerate() {
                let Some((least, most)) = scalar.data_type.exact_range() else {
                    known[parameter][field] = Interval { low: i128::MIN / 2, high: i128::MAX / 2 };
                    continue;
                };
                let Some(given) = arguments(VariableId(parameter as u16), field as u16) else { continue };
                let assumed = &mut known[parameter][field];
                if given.low < assumed.low {
                    assumed.low = lower_step(given.low).max(least);
                }
                if given.high > assumed.high {
                    assumed.high = upper_step(given.high).min(most);
                }
            }
        }
    }
}

/// Slices and compiles, widening intervals by what the later-phase may write until that is a fixpoint.
fn build(
    procedure: &Arc<Procedure>,
    definitions: &Definitions,
    intervals: &mut Intervals,
    parameters: &[Vec<Interval>],
    gives_up: bool,
) -> Variant {
    let catalog = &definitions.catalog;
    let program = &procedure.program;
    loop {
        let phases = if gives_up {
            slice(program, catalog, &TypesOnly)
        } else {
            slice(program, catalog, &Moment { intervals, parameters })
        };
        let before = intervals.version();
        for &(table, column, interval) in &phases.written {
            intervals.include(table, column, interval);
        }
        if intervals.version() == before || gives_up {
            let version = if gives_up { u64::MAX } else { before };
            return compile(procedure, catalog, phases, version);
        }
    }
}

fn compile(procedure: &Arc<Procedure>, catalog: &Catalog, phases: Phases, version: u64) -> Variant {
    let program = &procedure.program;
    let mut reads = vec![ColumnMask::EMPTY; catalog.tables().count()];
    let mut tables_read = Vec::new();
    let mut tables_searched = Vec::new();
    visit_steps(&program.body, &mut |step| {
        let table = match &step.kind {
            StepKind::Read { row, .. } | StepKind::Locate { row, .. } | StepKind::ForScan { row, .. } | StepKind::Exists { row, .. } => {
                program.rows[row.0 as usize].table
            }
            _ => return,
        };
        let phase = phases.steps[step.id.0 as usize];
        if phase.later {
            let searches = matches!(step.kind, StepKind::Locate { .. } | StepKind::ForScan { .. });
            if searches && !phase.now && !tables_searched.contains(&table) {
                tables_searched.push(table);
            }
            let mask = &mut reads[table.0 as usize];
            *mask = mask.union(phases.reads_later[step.id.0 as usize]);
            if !tables_read.contains(&table) {
                tables_read.push(table);
            }
        }
    });
    Variant {
        procedure: procedure.clone(),
        now: compile_now(program, catalog, &phases),
        later: compile_later(program, catalog, &phases, false),
        later_with_results: compile_later(program, catalog, &phases, true),
        has_later_writes: phases.has_later_writes,
        reads,
        tables_read,
        tables_searched,
        relied_on: phases.relied_on,
        added: phases.added,
        version,
    }
}

/// Calls `visit` for every step, filters included.
fn visit_steps(block: &[fabius_program::ir::Step], visit: &mut dyn FnMut(&fabius_program::ir::Step)) {
    for step in block {
        visit(step);
        match &step.kind {
            StepKind::If { then, otherwise, .. } => {
                visit_steps(then, visit);
                visit_steps(otherwise, visit);
            }
            StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => visit_steps(body, visit),
            StepKind::ForScan { scan, body, .. } => {
                if let Some(filter) = &scan.filter {
                    visit_steps(&filter.steps, visit);
                }
                visit_steps(body, visit);
            }
            _ => {}
        }
    }
}

/// The interval of a scalar argument.
pub fn interval_of(datum: Datum<'_>) -> Option<Interval> {
    match datum {
        Datum::Int(number) => Some(Interval { low: number.into(), high: number.into() }),
        Datum::Numeric(number) => Some(Interval { low: number, high: number }),
        _ => None,
    }
}
