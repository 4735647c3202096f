//! A procedure sliced and compiled under the assumptions of the moment.
//!
//! How much of a program can wait depends on what is known of the data and the arguments
//! (see [`crate::interval`]): under narrow assumptions more arithmetic is proven not to fail, so more is
//! left for later. A [`Variant`] is a procedure's phases under one set of assumptions; when they no
//! longer hold, another is made. All variants of a procedure mean the same.

use crate::interval::Intervals;
use crossbeam_epoch::Guard;
use fabius_engine::{Definitions, Procedure};
use fabius_program::argument_range::{self, Reliance};
use fabius_program::arguments::Arguments;
use fabius_program::catalog::Catalog;
use fabius_program::compile::{Code, compile_later, compile_now};
use fabius_program::ir::{Program, Step, StepKind, Type, VariableId};
use fabius_program::slice::{Assumptions, Interval, Phases, TypesOnly, slice};
use fabius_value::{ColumnId, ColumnMask, Result, Seq, TableId};
use std::cell::Cell;
use std::collections::VecDeque;
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
    /// By table: columns that the later-phase may read.
    pub reads: Vec<ColumnMask>,
    /// Tables that the later-phase may read.
    pub tables_read: Vec<TableId>,
    /// Tables that it may look rows up in that the now-phase has not captured.
    pub tables_searched: Vec<TableId>,
    arguments: Reliance,
    columns: Vec<(TableId, ColumnId, Interval)>,
    added: Vec<(TableId, ColumnId, Interval)>,
    /// The version of the intervals under which `columns` were last seen to hold; the lane's alone.
    checked: Cell<u64>,
    /// How many more calls the intervals have room for, unless there is news of them beside this; the lane's alone.
    room: Cell<(u64, u32)>,
}

// SAFETY: `checked` and `room` are used by the lane alone; everything else is not changed once made.
unsafe impl Sync for Variant {}

impl Variant {
    /// Whether the proofs hold for the columns as they are.
    fn columns_hold(&self, intervals: &Intervals) -> bool {
        if self.checked.get() == intervals.version() {
            return true;
        }
        let hold = self.columns.iter().all(|&(table, column, relied)| {
            intervals.current(table, column).is_none_or(|current| relied.covers(current))
        });
        if hold {
            self.checked.set(intervals.version());
        }
        hold
    }

    /// Notes that columns move by what one more call adds to them; whether the proofs still hold.
    #[inline]
    fn make_room(&self, intervals: &mut Intervals) -> bool {
        if self.added.is_empty() {
            return true;
        }
        let (news, room) = self.room.get();
        if room > 0 && news == intervals.news() {
            self.room.set((news, room - 1));
        } else {
            for &(table, column, by) in &self.added {
                intervals.shift(table, column, by, ROOM_CALLS.into());
            }
            self.room.set((intervals.news(), ROOM_CALLS - 1));
        }
        self.columns_hold(intervals)
    }
}

/// Calls that the intervals are shifted for at a time.
const ROOM_CALLS: u32 = 16;

/// What is assumed of one parameter.
#[derive(Clone)]
struct Parameter {
    fields: Vec<Interval>,
    length: u64,
}

/// The current variant of each procedure, and those that deferred calls may still point to.
#[derive(Default)]
pub struct Variants {
    current: Vec<Option<NonNull<Variant>>>,
    parameters: Vec<Vec<Parameter>>,
    /// By procedure: how often it was sliced.
    sliced: Vec<u32>,
    /// Variants that are not current any more, oldest first, with the first seq that is not run with them.
    replaced: VecDeque<(Seq, NonNull<Variant>)>,
}

// SAFETY: variants are not changed once made, and freed only here.
unsafe impl Send for Variants {}

impl Drop for Variants {
    fn drop(&mut self) {
        let replaced = self.replaced.drain(..).map(|(_, variant)| variant);
        for variant in self.current.drain(..).flatten().chain(replaced) {
            // SAFETY: the lane goes with its engine, and with that all deferred calls.
            drop(unsafe { Box::from_raw(variant.as_ptr()) });
        }
    }
}

struct Moment<'m> {
    intervals: &'m Intervals,
    parameters: &'m [Parameter],
}

impl Assumptions for Moment<'_> {
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        self.intervals.assumed(table, column)
    }

    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval> {
        let assumed = *self.parameters.get(parameter.0 as usize)?.fields.get(field as usize)?;
        (!assumed.is_empty()).then_some(assumed)
    }

    fn length(&self, parameter: VariableId) -> Option<u64> {
        self.parameters.get(parameter.0 as usize).map(|known| known.length)
    }
}

/// Times a procedure is sliced before proofs about its data are given up for good: intervals grow in steps,
/// so a procedure with few columns and parameters stays far below.
const SLICES_MAX: u32 = 1000;

impl Variants {
    /// The variant to run the call at `seq` with, given its arguments.
    ///
    /// # Errors
    /// A program too large to compile.
    #[inline]
    pub fn choose(
        &mut self,
        seq: Seq,
        procedure: &Arc<Procedure>,
        definitions: &Definitions,
        intervals: &mut Intervals,
        arguments: Arguments<'_, '_>,
    ) -> Result<NonNull<Variant>> {
        let at = procedure.id.0 as usize;
        loop {
            if let Some(Some(pointer)) = self.current.get(at) {
                // SAFETY: current variants are not freed.
                let variant = unsafe { pointer.as_ref() };
                if argument_range::holds(&variant.arguments, arguments, &procedure.program)
                    && variant.columns_hold(intervals)
                    // The call's own additions may go beyond what its proof relied on.
                    && variant.make_room(intervals)
                {
                    return Ok(*pointer);
                }
            }
            self.slice_again(seq, procedure, definitions, intervals, arguments)?;
        }
    }

    /// Lets go of what was made of procedures that are gone; `seq` is the first that does without them.
    pub fn follow(&mut self, seq: Seq, definitions: &Definitions) {
        for (at, current) in self.current.iter_mut().enumerate() {
            let is_gone = || definitions.procedures.get(at).is_some_and(|procedure| procedure.gone.is_some());
            if current.is_some() && is_gone() {
                self.replaced.extend(current.take().map(|variant| (seq, variant)));
                self.parameters[at] = Vec::new();
            }
        }
    }

    /// Frees variants that no call points to any more: all before `pending` are done, or dropped.
    pub fn collect(&mut self, pending: Seq, guard: &Guard) {
        while let Some((_, variant)) = self.replaced.pop_front_if(|(seq, _)| *seq <= pending) {
            // SAFETY: whoever has met a call that points to it has pinned an epoch; nobody else will.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(variant.as_ptr()))) };
        }
    }

    #[cold]
    fn slice_again(
        &mut self,
        seq: Seq,
        procedure: &Arc<Procedure>,
        definitions: &Definitions,
        intervals: &mut Intervals,
        arguments: Arguments<'_, '_>,
    ) -> Result<()> {
        let at = procedure.id.0 as usize;
        if self.current.len() <= at {
            self.current.resize(at + 1, None);
            self.parameters.resize(at + 1, Vec::new());
            self.sliced.resize(at + 1, 0);
        }
        self.learn(at, &procedure.program, arguments);
        self.sliced[at] += 1;
        let gives_up = self.sliced[at] > SLICES_MAX;
        let variant = build(procedure, definitions, intervals, &self.parameters[at], gives_up)?;
        let variant = NonNull::from(Box::leak(Box::new(variant)));
        if let Some(before) = self.current[at].replace(variant) {
            self.replaced.push_back((seq, before));
        }
        Ok(())
    }

    /// Widens what is assumed of a procedure's parameters so that this call fits.
    fn learn(&mut self, at: usize, program: &Program, arguments: Arguments<'_, '_>) {
        let known = &mut self.parameters[at];
        for (parameter, (given, length)) in argument_range::ranges(program, arguments).into_iter().enumerate()
        {
            if known.len() <= parameter {
                known.push(Parameter { fields: vec![Interval::EMPTY; given.len()], length: 0 });
            }
            let types = match &program.variables[parameter].ty {
                Type::Scalar(scalar) => vec![*scalar],
                Type::List(fields) => fields.iter().map(|field| field.scalar).collect(),
            };
            let known = &mut known[parameter];
            for ((assumed, given), scalar) in known.fields.iter_mut().zip(given).zip(types) {
                let Some((least, most)) = scalar.data_type.exact_range() else { continue };
                if !given.is_empty() && !assumed.covers(given) {
                    let both = assumed.hull(given);
                    *assumed = both.with_room(Interval::new(least, most));
                }
            }
            if length > known.length {
                known.length = length.next_power_of_two() * 2;
            }
        }
    }
}

/// Slices and compiles, widening intervals by what the later-phase may write until that is a fixpoint.
fn build(
    procedure: &Arc<Procedure>,
    definitions: &Definitions,
    intervals: &mut Intervals,
    parameters: &[Parameter],
    gives_up: bool,
) -> Result<Variant> {
    let catalog = &definitions.catalog;
    let program = &procedure.program;
    loop {
        let phases = if gives_up {
            slice(program, catalog, &TypesOnly)
        } else {
            slice(program, catalog, &Moment { intervals, parameters })
        };
        for &(table, column, interval) in &phases.written {
            intervals.include(table, column, interval);
        }
        let variant = compile(procedure, catalog, phases)?;
        if variant.columns_hold(intervals) {
            return Ok(variant);
        }
    }
}

fn compile(procedure: &Arc<Procedure>, catalog: &Catalog, phases: Phases) -> Result<Variant> {
    let program = &procedure.program;
    let mut reads = vec![ColumnMask::EMPTY; catalog.table_numbers().count()];
    let mut tables_read = Vec::new();
    let mut tables_searched = Vec::new();
    visit_steps(&program.body, &mut |step| {
        let table = match &step.kind {
            StepKind::Read { row, .. }
            | StepKind::Locate { row, .. }
            | StepKind::ForScan { row, .. }
            | StepKind::Exists { row, .. } => program.rows[row.0 as usize].table,
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
    Ok(Variant {
        procedure: procedure.clone(),
        now: compile_now(program, catalog, &phases)?,
        later: compile_later(program, catalog, &phases, false)?,
        later_with_results: compile_later(program, catalog, &phases, true)?,
        reads,
        tables_read,
        tables_searched,
        arguments: Reliance { intervals: phases.relied_on, lengths: phases.relied_on_lengths },
        columns: phases.relied_on_columns,
        added: phases.added,
        checked: Cell::new(u64::MAX),
        room: Cell::default(),
    })
}

/// Calls `visit` for every step, filters included.
fn visit_steps(block: &[Step], visit: &mut dyn FnMut(&Step)) {
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
