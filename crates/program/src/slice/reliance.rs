//! What the proofs relied on, and what a call may do to the columns they are about.
//!
//! The caller keeps an interval per exact column that every value in it is in, whether computed yet
//! or not. It widens the interval by what each promised call may write ([`Phases::written`],
//! [`Phases::added`]), and slices anew when an interval or an argument leaves what was relied on. To
//! make that rare, only what a proof needs is listed: assumptions are dropped, and stay dropped if
//! nothing changes. Fewer of them never prove more, so that those dropped together could be dropped in turn.

use super::interval::Interval;
use super::knowledge::{MOST_ELEMENTS, type_range};
use super::now_slice::NowSlice;
use super::proof::{LONG, Proofs, prove};
use super::{Assumptions, ColumnPhase, Phases, column_phase};
use crate::context::DeltaOperator;
use crate::ir::{StepId, Type, VariableId};
use fabius_value::{ColumnId, TableId};
use std::collections::BTreeMap;

/// Fills in what the proofs rely on and what the program may write.
pub(super) fn add(
    phases: &mut Phases,
    now: &NowSlice<'_, '_>,
    proofs: &Proofs,
    assumptions: &dyn Assumptions,
) {
    let effects = Effects::of(now, proofs);
    let mut fewer = Fewer { inner: assumptions, dropped: Vec::new() };
    // Most are not needed: those of a kind are dropped together, and halved where that changes something. Of a long
    // program, where a proof takes long, a kind is relied on as a whole.
    let is_long = now.outline.program.step_count > LONG;
    let all = all_assumed(now, assumptions);
    let kind = |wanted: fn(&Assumed) -> bool| all.iter().copied().filter(wanted).collect::<Vec<_>>();
    let mut groups = vec![
        kind(|assumed| matches!(assumed, Assumed::Column(..))),
        kind(|assumed| matches!(assumed, Assumed::Length(_))),
        kind(|assumed| matches!(assumed, Assumed::Parameter(..))),
    ];
    groups.retain(|group| !group.is_empty());
    while let Some(mut group) = groups.pop() {
        let kept = fewer.dropped.len();
        fewer.dropped.extend(&group);
        let weaker = prove(now.outline, now.catalog, now.shapes, &fewer);
        if Effects::of(now, &weaker) == effects {
            continue;
        }
        fewer.dropped.truncate(kept);
        if group.len() > 1 && !is_long {
            let behind = group.split_off(group.len() / 2);
            groups.extend([behind, group]);
            continue;
        }
        for assumed in group {
            rely(phases, assumed, assumptions);
        }
    }
    let list = |all: BTreeMap<(TableId, ColumnId), Interval>| {
        all.into_iter().map(|((table, column), interval)| (table, column, interval)).collect()
    };
    phases.written = list(effects.written);
    phases.added = list(effects.added);
}

/// Notes what is relied on.
fn rely(phases: &mut Phases, assumed: Assumed, assumptions: &dyn Assumptions) {
    match assumed {
        Assumed::Parameter(parameter, field) => {
            let interval = assumptions.parameter(parameter, field);
            phases.relied_on.extend(interval.map(|interval| (parameter, field, interval)));
        }
        Assumed::Length(parameter) => {
            let length = assumptions.length(parameter);
            phases.relied_on_lengths.extend(length.map(|length| (parameter, length)));
        }
        Assumed::Column(table, column) => {
            let interval = assumptions.column(table, column);
            phases.relied_on_columns.extend(interval.map(|interval| (table, column, interval)));
        }
    }
}

/// What matters of the proofs under the phases that were chosen.
#[derive(PartialEq)]
struct Effects {
    failures: Vec<(u16, Option<usize>)>,
    counted_loops: Vec<StepId>,
    failing_operands: Vec<bool>,
    written: BTreeMap<(TableId, ColumnId), Interval>,
    added: BTreeMap<(TableId, ColumnId), Interval>,
}

impl Effects {
    fn of(now: &NowSlice<'_, '_>, proofs: &Proofs) -> Effects {
        let mut written = BTreeMap::new();
        let mut added = BTreeMap::new();
        for site in &now.outline.writes {
            let at = usize::from(site.step.0);
            let data_type = now.catalog.table(site.table).data_type(site.column);
            if !data_type.is_exact() {
                continue;
            }
            let key = (site.table, site.column);
            let mut widen = |interval: Interval| {
                let so_far = written.entry(key).or_insert(Interval::EMPTY);
                *so_far = so_far.hull(interval);
            };
            let shape = now.shapes.iter().position(|shape| shape.site == *site);
            match (column_phase(now, *site), shape) {
                (ColumnPhase::Now, _) => {}
                // A sum that is computed later moves the column by its operand, like a delta: said as
                // an interval of values, it would seem to grow with every call.
                (ColumnPhase::Delta(_) | ColumnPhase::Later, Some(shape))
                    if now.shapes[shape].operator == DeltaOperator::Add && !proofs.operands[shape].1 =>
                {
                    let per_call = proofs.operands[shape].0.repeated(proofs.turns[at]);
                    let so_far = added.entry(key).or_insert(Interval::only(0));
                    *so_far = so_far.plus(per_call).meet(type_range(data_type));
                }
                (ColumnPhase::Delta(_), Some(shape)) => widen(proofs.operands[shape].0),
                _ => widen(proofs.values[at].get(site.index).copied().unwrap_or(Interval::EMPTY)),
            }
        }
        written.retain(|_, interval| !interval.is_empty());
        // Those that are entered now anyway may be counted or not.
        let counted = proofs.counted_loops.iter().filter(|step| !now.steps[usize::from(step.0)]);
        Effects {
            failures: proofs.failures.iter().map(|failure| (failure.step.0, failure.value)).collect(),
            counted_loops: counted.copied().collect(),
            failing_operands: proofs.operands.iter().map(|(_, fails)| *fails).collect(),
            written,
            added,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assumed {
    Parameter(VariableId, u16),
    Length(VariableId),
    Column(TableId, ColumnId),
}

/// Everything that is assumed beyond types.
fn all_assumed(now: &NowSlice<'_, '_>, assumptions: &dyn Assumptions) -> Vec<Assumed> {
    let program = now.outline.program;
    let mut all = Vec::new();
    let narrower = |interval: Option<Interval>, top: Interval| interval.is_some_and(|i| !i.covers(top));
    for (at, variable) in program.variables[..program.parameter_count].iter().enumerate() {
        let parameter = VariableId(at as u16);
        let mut scalar = |field: u16, top: Interval| {
            if narrower(assumptions.parameter(parameter, field), top) {
                all.push(Assumed::Parameter(parameter, field));
            }
        };
        match &variable.ty {
            Type::Scalar(ty) => scalar(0, type_range(ty.data_type)),
            Type::List(fields) => {
                for (field, ty) in fields.iter().enumerate() {
                    scalar(field as u16, type_range(ty.scalar.data_type));
                }
                if assumptions.length(parameter).is_some_and(|length| i128::from(length) < MOST_ELEMENTS) {
                    all.push(Assumed::Length(parameter));
                }
            }
        }
    }
    for (table, schema) in now.catalog.tables() {
        for (at, column) in schema.columns.iter().enumerate() {
            let id = ColumnId(at as u8);
            if narrower(assumptions.column(table, id), type_range(column.data_type)) {
                all.push(Assumed::Column(table, id));
            }
        }
    }
    all
}

/// Some assumptions without others.
struct Fewer<'a> {
    inner: &'a dyn Assumptions,
    dropped: Vec<Assumed>,
}

impl Assumptions for Fewer<'_> {
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        let kept = !self.dropped.contains(&Assumed::Column(table, column));
        kept.then(|| self.inner.column(table, column)).flatten()
    }

    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval> {
        let kept = !self.dropped.contains(&Assumed::Parameter(parameter, field));
        kept.then(|| self.inner.parameter(parameter, field)).flatten()
    }

    fn length(&self, parameter: VariableId) -> Option<u64> {
        let kept = !self.dropped.contains(&Assumed::Length(parameter));
        kept.then(|| self.inner.length(parameter)).flatten()
    }
}
