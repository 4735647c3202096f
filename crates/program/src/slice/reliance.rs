//! What the proofs relied on, and what a call may do to the columns they are about.
//!
//! The caller keeps an interval per exact column that every value in it is in, whether computed yet
//! or not. It widens the interval by what each promised call may write ([`Phases::written`],
//! [`Phases::added`]), and slices anew when an interval or an argument leaves what was relied on. To
//! make that rare, only what a proof needs is listed: assumptions are dropped as long as nothing changes,
//! many at a time first, then fewer. (Proofs from less prove no more, so the order does not matter.)

use super::interval::Interval;
use super::knowledge::{Cells, MOST_ELEMENTS, type_range};
use super::now_slice::NowSlice;
use super::proof::{LONG, Proofs, prove};
use super::{Assumptions, ColumnPhase, Phases, column_phase};
use crate::context::DeltaOperator;
use crate::ir::{StepId, Type, VariableId};
use fabius_value::{ColumnId, TableId};
use std::collections::BTreeMap;

/// Assumptions beyond which they are not tried one by one: proofs of a wide statement take as many steps as it has
/// parts.
const MANY: usize = 256;

/// Fills in what the proofs rely on and what the program may write.
pub(super) fn add(
    phases: &mut Phases,
    now: &NowSlice<'_, '_>,
    proofs: &Proofs,
    assumptions: &dyn Assumptions,
) {
    let effects = Effects::of(now, proofs);
    let mut fewer = Fewer { inner: assumptions, dropped: Vec::new() };
    let mut relied_on = Vec::new();
    let mut still_proves =
        |fewer: &Fewer<'_>| Effects::of(now, &prove(now.outline, now.catalog, now.shapes, fewer)) == effects;
    let mut all = all_assumed(now, assumptions);
    if now.outline.program.step_count > LONG || all.len() > MANY {
        // A proof takes long here, or there would be many: each kind is needed as a whole or not at all.
        all.sort_by_key(Assumed::kind);
        for kind in all.chunk_by(|one, next| one.kind() == next.kind()) {
            let kept = fewer.dropped.len();
            fewer.dropped.extend_from_slice(kind);
            if !still_proves(&fewer) {
                fewer.dropped.truncate(kept);
                relied_on.extend_from_slice(kind);
            }
        }
    } else {
        drop_most(&all, &mut fewer, &mut relied_on, &mut still_proves);
    }
    for assumed in relied_on {
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
    let list = |all: BTreeMap<(TableId, ColumnId), Interval>| {
        all.into_iter().map(|((table, column), interval)| (table, column, interval)).collect()
    };
    phases.written = list(effects.written);
    phases.added = list(effects.added);
}

/// Drops all of `assumed` but those that are relied on, which it lists.
fn drop_most(
    assumed: &[Assumed],
    fewer: &mut Fewer<'_>,
    relied_on: &mut Vec<Assumed>,
    still_proves: &mut dyn FnMut(&Fewer<'_>) -> bool,
) {
    let kept = fewer.dropped.len();
    fewer.dropped.extend_from_slice(assumed);
    if assumed.is_empty() || still_proves(fewer) {
        return;
    }
    fewer.dropped.truncate(kept);
    match assumed {
        [one] => relied_on.push(*one),
        more => {
            let (first, rest) = more.split_at(more.len() / 2);
            drop_most(first, fewer, relied_on, still_proves);
            drop_most(rest, fewer, relied_on, still_proves);
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

impl Assumed {
    fn kind(&self) -> u8 {
        match self {
            Assumed::Parameter(..) => 0,
            Assumed::Length(_) => 1,
            Assumed::Column(..) => 2,
        }
    }
}

/// Everything that is assumed beyond types of what the program has to do with.
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
    let columns = Cells::of(now.outline, now.catalog);
    all.extend(columns.columns().filter_map(|(table, column)| {
        let top = type_range(now.catalog.table(table).data_type(column));
        narrower(assumptions.column(table, column), top).then_some(Assumed::Column(table, column))
    }));
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
