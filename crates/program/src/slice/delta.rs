//! Updates that are commutative operations on a column (Doppel, section 4).
//!
//! `warehouse[w].ytd += amount` is, after lowering,
//!
//! ```text
//! Read   v := r.ytd
//! Update r { ytd: cast(v + amount) }
//! ```
//!
//! Whatever the old value is, the write can be stored as "+ amount" and folded into a value when
//! someone asks for one. If `v` is not used otherwise, the column need not be read at all; if it is
//! (`require accounts[src].balance >= amount` before `-= amount`), the write is a delta all the same.
//!
//! This module finds such updates by their shape. Whether one is stored as a delta is decided by the
//! slicer: all updates of the column must have the same operator, the operand must be at hand,
//! overflow must be ruled out, and where all old values are known anyway a plain value is better.

use super::outline::{Outline, WriteSite, mentions};
use crate::catalog::Catalog;
use crate::context::DeltaOperator;
use crate::ir::{
    BinaryOperator, Expression, ExpressionKind, Function, RowId, ScalarType, StepKind, UnaryOperator,
    VariableId,
};
use fabius_value::DataType;

/// An update that has the shape of a delta.
#[derive(Clone, Debug)]
pub(super) struct DeltaShape {
    /// The write.
    pub site: WriteSite,
    /// What the old value is read into.
    pub variable: VariableId,
    /// The operation.
    pub operator: DeltaOperator,
    /// The operand, of exactly the column's type.
    pub operand: Expression,
}

/// Every update that has the shape of a delta.
pub(super) fn delta_shapes(outline: &Outline<'_>, catalog: &Catalog) -> Vec<DeltaShape> {
    let updates = outline.writes.iter().filter(|site| !site.insert);
    updates.filter_map(|site| delta_shape(outline, catalog, *site)).collect()
}

fn delta_shape(outline: &Outline<'_>, catalog: &Catalog, site: WriteSite) -> Option<DeltaShape> {
    let is_nullable = catalog.table(site.table).columns[usize::from(site.column.0)].nullable;
    applied_to_old(outline, catalog, site, |value, variable, column| {
        let (operator, operand) = operation(value, variable, column)?;
        // Null plus anything is null, wherever it is folded; the greater of null and anything is not.
        let folds = !is_nullable || operator == DeltaOperator::Add;
        (folds && !operand.ty.nullable).then_some(DeltaShape { site, variable, operator, operand })
    })
}

/// What an update does to the old value of its column, if it reads that as it finds it, and `recognise` knows the
/// value that it writes: of an expression, the variable with the old value, and the column's type.
pub(super) fn applied_to_old<T>(
    outline: &Outline<'_>,
    catalog: &Catalog,
    site: WriteSite,
    recognise: impl Fn(&Expression, VariableId, DataType) -> Option<T>,
) -> Option<T> {
    let data_type = unindexed(catalog, site)?;
    let StepKind::Update { row, .. } = outline.at(site.step).step.kind else { return None };
    let value = outline.written_value(site);
    let mut candidates = Vec::new();
    super::outline::variables(value, &mut |variable| candidates.push(variable));
    candidates.into_iter().find_map(|variable| {
        let is_old = reads_undisturbed(outline, site, row, variable);
        is_old.then(|| recognise(value, variable, data_type)).flatten()
    })
}

/// The type of a column that is in no index.
fn unindexed(catalog: &Catalog, site: WriteSite) -> Option<DataType> {
    let schema = catalog.table(site.table);
    let column = &schema.columns[usize::from(site.column.0)];
    (!schema.indexed_mask().contains(site.column)).then_some(column.data_type)
}

/// The type of a column that has a value in every row, and is in no index.
pub(super) fn splittable(catalog: &Catalog, site: WriteSite) -> Option<DataType> {
    let is_nullable = catalog.table(site.table).columns[usize::from(site.column.0)].nullable;
    unindexed(catalog, site).filter(|_| !is_nullable)
}

/// Whether the variable holds the column's value as the update finds it: it is assigned by one read of
/// the same row and column, before the update in the same turn of the same loops, with nothing written
/// in between.
pub(super) fn reads_undisturbed(
    outline: &Outline<'_>,
    site: WriteSite,
    row: RowId,
    variable: VariableId,
) -> bool {
    let [read] = outline.assignments[usize::from(variable.0)][..] else { return false };
    let (read_at, update_at) = (outline.at(read), outline.at(site.step));
    let reads_it = match &read_at.step.kind {
        StepKind::Read { row: from, columns } => *from == row && columns.contains(&(site.column, variable)),
        _ => false,
    };
    let between = |position: usize| read_at.position < position && position < update_at.position;
    reads_it
        && !outline.is_parameter(variable)
        && outline.dominates(read, site.step)
        && outline.loops(read) == outline.loops(site.step)
        && !outline.writes.iter().any(|other| {
            (other.table, other.column) == (site.table, site.column)
                && between(outline.at(other.step).position)
        })
        && !outline.handles[usize::from(row.0)].iter().any(|step| between(outline.at(*step).position))
}

/// The operation that a value applies to a variable, if it is one, with its operand in the column's
/// type.
fn operation(
    value: &Expression,
    variable: VariableId,
    column: DataType,
) -> Option<(DeltaOperator, Expression)> {
    let scalar = ScalarType { data_type: column, nullable: false };
    if let ExpressionKind::Call(function, arguments) = &value.kind {
        let operator = match function {
            Function::Greatest => DeltaOperator::Max,
            Function::Least => DeltaOperator::Min,
            _ => return None,
        };
        let ordered = column.is_exact() || matches!(column, DataType::Date | DataType::Timestamp);
        let [a, b] = &arguments[..] else { return None };
        let operand = match (is_variable(a, variable), is_variable(b, variable)) {
            (true, false) => b,
            (false, true) => a,
            _ => return None,
        };
        let fits = ordered && operand.ty.data_type == column && !mentions(operand, variable);
        return fits.then(|| (operator, operand.clone()));
    }
    if !column.is_exact() {
        return None;
    }
    let addend = addend(value, variable, column)?;
    let operand = if addend.operand.ty.data_type == column {
        addend.operand.clone()
    } else {
        let ty = ScalarType { nullable: addend.operand.ty.nullable, ..scalar };
        Expression { kind: ExpressionKind::Cast(Box::new(addend.operand.clone())), ty }
    };
    let operand = if addend.negative {
        let ty = operand.ty;
        Expression { kind: ExpressionKind::Unary(UnaryOperator::Negate, Box::new(operand)), ty }
    } else {
        operand
    };
    Some((DeltaOperator::Add, operand))
}

/// What is added to a variable.
pub(super) struct Addend<'e> {
    /// Whether it is subtracted.
    pub negative: bool,
    /// The number, of at most the target's scale.
    pub operand: &'e Expression,
}

/// What `value`, as stored to a place of type `target`, adds to the exact variable `variable`, if
/// that is all it does: `v + e`, `e + v`, `v - e` under casts that lose no digits.
pub(super) fn addend(value: &Expression, variable: VariableId, target: DataType) -> Option<Addend<'_>> {
    let mut sum = value;
    while let ExpressionKind::Cast(inner) = &sum.kind {
        sum = inner;
    }
    if !target.is_exact() || !sum.ty.data_type.is_exact() || value.ty.data_type != target {
        return None;
    }
    let (negative, operand) = match &sum.kind {
        ExpressionKind::Binary(BinaryOperator::Add, left, right) if is_variable(left, variable) => {
            (false, right)
        }
        ExpressionKind::Binary(BinaryOperator::Add, left, right) if is_variable(right, variable) => {
            (false, left)
        }
        ExpressionKind::Binary(BinaryOperator::Subtract, left, right) if is_variable(left, variable) => {
            (true, right)
        }
        _ => return None,
    };
    let operand = without_widening(operand);
    // The sum has no more digits after the point than the target, so storing it does not round.
    let exact = operand.ty.data_type.is_exact() && operand.ty.data_type.scale() <= target.scale();
    let casts_keep = casts_keep_digits(value, target.scale());
    (exact && casts_keep && !mentions(operand, variable)).then_some(Addend { negative, operand })
}

/// Whether every cast around the sum is to an exact type with at least so many digits after the
/// point.
fn casts_keep_digits(value: &Expression, scale: u8) -> bool {
    let mut value = value;
    while let ExpressionKind::Cast(inner) = &value.kind {
        if !value.ty.data_type.is_exact() || value.ty.data_type.scale() < scale {
            return false;
        }
        value = inner;
    }
    true
}

pub(super) fn is_variable(expression: &Expression, variable: VariableId) -> bool {
    matches!(without_widening(expression).kind, ExpressionKind::Variable(found) if found == variable)
}

/// The expression under casts between exact types that lose no digits.
fn without_widening(expression: &Expression) -> &Expression {
    match &expression.kind {
        ExpressionKind::Cast(inner)
            if inner.ty.data_type.is_exact()
                && expression.ty.data_type.is_exact()
                && inner.ty.data_type.scale() <= expression.ty.data_type.scale() =>
        {
            without_widening(inner)
        }
        _ => expression,
    }
}

/// Whether a column's versions can be folded in any grouping: all its updates have the shape of a
/// delta with one operator, and none can meet a value that this call itself has inserted.
pub(super) fn uniform(outline: &Outline<'_>, shapes: &[DeltaShape], shape: &DeltaShape) -> bool {
    let column = (shape.site.table, shape.site.column);
    outline.writes.iter().filter(|site| (site.table, site.column) == column).all(|site| {
        if site.insert {
            return !outline.can_follow(site.step, shape.site.step);
        }
        shapes.iter().any(|other| other.site == *site && other.operator == shape.operator)
    })
}
