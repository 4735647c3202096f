//! What a program does to the columns of each table, seen from outside: which it only applies an operation
//! to (Doppel's splittable operations), and which it reads or writes otherwise.
//!
//! ```text
//! pages[p].likes += 1                              applies add to likes
//! require pages[p].likes < 10                      reads likes, whatever else is done to it
//! items[i].max_bid = greatest(items[i].max_bid, b) applies max to max_bid
//! if b > items[i].max_bid {                        puts max_bid and bidder, in the order of max_bid
//!     update items[i] { max_bid: b, bidder: u }
//! }
//! ```
//!
//! A column counts as applied to if every update of it is one operation with an operand that does not
//! depend on it, always the same operation, and the program looks at its value for nothing else. Then
//! neither outcome nor results depend on the value, but for an operation that leaves the column's range.

use super::delta::{self, applied_to_old, is_variable};
use super::knowledge::type_range;
use super::outline::{Outline, WriteSite, draws_random, mentions, used_variables};
use crate::catalog::Catalog;
use crate::context::DeltaOperator;
use crate::ir::{BinaryOperator, Expression, ExpressionKind, Program, RowId, Step, StepKind, VariableId};
use fabius_value::data_type::Family;
use fabius_value::{ColumnId, ColumnMask, DataType, TableId};

/// An operation on a column, whose results in any order are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds to it, or subtracts.
    Add,
    /// Raises it.
    Max,
    /// Lowers it.
    Min,
    /// Multiplies it, an integer.
    Multiply,
    /// Raises it, and puts other columns with it (Doppel's ordered put): all of these columns, its own among them.
    Order(ColumnMask),
    /// Is put with the column that gives the order.
    Put(ColumnId),
}

impl From<DeltaOperator> for Operation {
    fn from(operator: DeltaOperator) -> Operation {
        match operator {
            DeltaOperator::Add => Operation::Add,
            DeltaOperator::Max => Operation::Max,
            DeltaOperator::Min => Operation::Min,
        }
    }
}

/// What a program does to a table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOperations {
    /// The table.
    pub table: TableId,
    /// Columns that it only applies this operation to: of exact numbers or times, but for those that are put.
    pub applied: Vec<(ColumnId, Operation)>,
    /// Columns that it reads otherwise.
    pub read: ColumnMask,
    /// Columns that it updates otherwise.
    pub written: ColumnMask,
    /// Whether it deletes rows.
    pub deletes: bool,
}

impl TableOperations {
    /// Whether cores can do aside what the program does to a row.
    pub fn is_splittable(&self) -> bool {
        !self.applied.is_empty() && self.written.is_empty() && !self.deletes
    }
}

/// An update that applies an operation to a column.
struct Applied {
    site: WriteSite,
    /// What the old value is read into, if it is read.
    old: Option<VariableId>,
    operation: Operation,
}

/// What a program does to the tables that it looks at or changes, in no particular order.
pub fn operations(program: &Program, catalog: &Catalog) -> Vec<TableOperations> {
    let outline = Outline::of(program);
    let applied = pure(&outline, applied(&outline, catalog));
    let mut tables: Vec<TableOperations> = Vec::new();
    for site in outline.writes.iter().filter(|site| !site.insert) {
        let table = of(&mut tables, site.table);
        match applied.iter().find(|applied| applied.site == *site) {
            None => table.written.insert(site.column),
            Some(_) if table.applied.iter().any(|(known, _)| *known == site.column) => {}
            Some(applied) => table.applied.push((site.column, applied.operation)),
        }
    }
    let serves = |variable: VariableId| applied.iter().any(|applied| applied.old == Some(variable));
    let uses = uses(&outline);
    for step in &outline.order {
        match &outline.at(*step).step.kind {
            StepKind::Read { row, columns } => {
                let looked_at =
                    |variable: &VariableId| uses[usize::from(variable.0)] > 0 && !serves(*variable);
                for (column, _) in columns.iter().filter(|(_, variable)| looked_at(variable)) {
                    of(&mut tables, outline.table(*row)).read.insert(*column);
                }
            }
            StepKind::Delete { row } => of(&mut tables, outline.table(*row)).deletes = true,
            _ => {}
        }
    }
    tables
}

/// How often each variable is used.
fn uses(outline: &Outline<'_>) -> Vec<u32> {
    let mut uses = vec![0u32; outline.program.variables.len()];
    for step in &outline.order {
        used_variables(outline.at(*step).step).iter().for_each(|used| uses[usize::from(used.0)] += 1);
    }
    uses
}

/// Every update that has the form of an operation.
fn applied(outline: &Outline<'_>, catalog: &Catalog) -> Vec<Applied> {
    let deltas = delta::delta_shapes(outline, catalog).into_iter();
    let keeps = |shape: &delta::DeltaShape| {
        let data_type = delta::splittable(catalog, shape.site);
        let value = outline.written_value(shape.site);
        data_type.is_some_and(|data_type| keeps_range(value, shape.variable, data_type))
    };
    let mut all: Vec<Applied> = deltas
        .filter(keeps)
        .map(|shape| Applied {
            site: shape.site,
            old: Some(shape.variable),
            operation: shape.operator.into(),
        })
        .collect();
    let updates = outline.writes.iter().filter(|site| !site.insert);
    all.extend(updates.filter_map(|site| {
        delta::splittable(catalog, *site)?;
        let old = applied_to_old(outline, catalog, *site, |value, variable, data_type| {
            let is_integer = data_type.family() == Family::Integer;
            (is_integer && multiplies(value, variable) && keeps_range(value, variable, data_type))
                .then_some(variable)
        })?;
        Some(Applied { site: *site, old: Some(old), operation: Operation::Multiply })
    }));
    for step in &outline.order {
        ordered_put(outline, catalog, outline.at(*step).step, &mut all);
    }
    all
}

/// Whether every type that the old value passes through has room for all that the column may have, so that no other
/// value of it aborts the call.
fn keeps_range(value: &Expression, old: VariableId, column: DataType) -> bool {
    let keeps = |part: &Expression| keeps_range(part, old, column);
    let within = match &value.kind {
        _ if !mentions(value, old) => return true,
        ExpressionKind::Variable(_) => true,
        ExpressionKind::Unary(_, part) | ExpressionKind::Cast(part) => keeps(part),
        ExpressionKind::Binary(_, left, right) => keeps(left) && keeps(right),
        ExpressionKind::Call(_, arguments) => arguments.iter().all(keeps),
        _ => false,
    };
    let (on_the_way, scale) = (value.ty.data_type, column.scale());
    let has_room = || type_range(on_the_way).covers(type_range(column).rescaled(scale, on_the_way.scale()));
    within && (on_the_way == column || on_the_way.is_exact() && on_the_way.scale() >= scale && has_room())
}

/// `v * e` or `e * v` under casts, of integers.
fn multiplies(value: &Expression, variable: VariableId) -> bool {
    let mut product = value;
    while let ExpressionKind::Cast(inner) = &product.kind {
        product = inner;
    }
    let ExpressionKind::Binary(BinaryOperator::Multiply, left, right) = &product.kind else { return false };
    let factor = match (is_variable(left, variable), is_variable(right, variable)) {
        (true, false) => right,
        (false, true) => left,
        _ => return false,
    };
    factor.ty.data_type.family() == Family::Integer && !factor.ty.nullable && !mentions(factor, variable)
}

/// `if e > r.c { update r { c: e, d: f, ... } }`: the update's columns are put in the order of `c`.
fn ordered_put(outline: &Outline<'_>, catalog: &Catalog, step: &Step, all: &mut Vec<Applied>) {
    let StepKind::If { condition, then, otherwise } = &step.kind else { return };
    let ([finding @ .., update], []) = (&then[..], &otherwise[..]) else { return };
    let (StepKind::Update { row, .. }, ExpressionKind::Binary(operator, left, right)) =
        (&update.kind, &condition.kind)
    else {
        return;
    };
    let finds_row = |step: &Step| match &step.kind {
        StepKind::Locate { row: found, .. } | StepKind::RequireRow { row: found } => found == row,
        _ => false,
    };
    if !finding.iter().all(finds_row) {
        return;
    }
    let (greater, less) = match operator {
        BinaryOperator::Greater => (left, right),
        BinaryOperator::Less => (right, left),
        _ => return,
    };
    let ExpressionKind::Variable(old) = less.kind else { return };
    let sites: Vec<WriteSite> =
        outline.writes.iter().filter(|site| site.step == update.id).copied().collect();
    let gives_order = |site: &&WriteSite| {
        let data_type = delta::splittable(catalog, **site);
        data_type.is_some_and(|data_type| data_type.exact_range().is_some())
            && outline.written_value(**site) == &**greater
            && !greater.ty.nullable
            && reads(outline, old).is_some_and(|read| {
                is_same_row(outline, read, *row) && delta::reads_undisturbed(outline, **site, read, old)
            })
    };
    let Some(order) = sites.iter().find(gives_order) else { return };
    let is_put = |site: &WriteSite| {
        !catalog.table(site.table).indexed_mask().contains(site.column)
            && !mentions(outline.written_value(*site), old)
    };
    if !sites.iter().all(is_put) {
        return;
    }
    let columns: ColumnMask = sites.iter().map(|site| site.column).collect();
    all.extend(sites.iter().map(|site| match site == order {
        true => Applied { site: *site, old: Some(old), operation: Operation::Order(columns) },
        false => Applied { site: *site, old: None, operation: Operation::Put(order.column) },
    }));
}

/// The row that a variable is read from, if that is all that it is assigned.
fn reads(outline: &Outline<'_>, variable: VariableId) -> Option<RowId> {
    let [read] = outline.assignments[usize::from(variable.0)][..] else { return None };
    match outline.at(read).step.kind {
        StepKind::Read { row, .. } => Some(row),
        _ => None,
    }
}

/// Whether two handles are of one row: each is set once, by the same key, whose variables stay as they are. A random
/// key is another one each time.
fn is_same_row(outline: &Outline<'_>, one: RowId, other: RowId) -> bool {
    let located = |row: RowId| match outline.handles[usize::from(row.0)][..] {
        [set] => match &outline.at(set).step.kind {
            StepKind::Locate { key, .. } => Some((outline.at(set).position, key)),
            _ => None,
        },
        _ => None,
    };
    let (Some((first, key)), Some((_, same))) = (located(one), located(other)) else { return false };
    let mut variables = Vec::new();
    key.iter().for_each(|value| super::outline::variables(value, &mut |variable| variables.push(variable)));
    let stays = |variable: &VariableId| {
        let mut assignments = outline.assignments[usize::from(variable.0)].iter();
        assignments.all(|step| outline.at(*step).position < first && outline.loops(*step).is_empty())
    };
    one == other
        || outline.table(one) == outline.table(other)
            && key == same
            && variables.iter().all(stays)
            && !key.iter().any(draws_random)
}

/// Those of columns to which the program does nothing else, and whose old values it does not look at.
fn pure(outline: &Outline<'_>, mut all: Vec<Applied>) -> Vec<Applied> {
    let uses = uses(outline);
    all.retain(|applied| applied.old.is_none_or(|old| uses[usize::from(old.0)] == 1));
    loop {
        let is_pure = |applied: &Applied| {
            let column = (applied.site.table, applied.site.column);
            let is_alone =
                outline.writes.iter().filter(|site| (site.table, site.column) == column).all(|site| {
                    if site.insert {
                        return !outline.can_follow(site.step, applied.site.step);
                    }
                    all.iter().any(|other| other.site == *site && other.operation == applied.operation)
                });
            let is_whole = |columns: &ColumnMask| {
                let of_step = all.iter().filter(|other| other.site.step == applied.site.step);
                columns.iter().all(|column| of_step.clone().any(|other| other.site.column == column))
            };
            is_alone
                && match applied.operation {
                    Operation::Order(columns) => is_whole(&columns),
                    Operation::Put(order) => is_whole(&ColumnMask::of(order)),
                    _ => true,
                }
        };
        let keeps: Vec<bool> = all.iter().map(is_pure).collect();
        if keeps.iter().all(|keep| *keep) {
            return all;
        }
        let mut keeps = keeps.into_iter();
        all.retain(|_| keeps.next().unwrap_or_default());
    }
}

fn of(tables: &mut Vec<TableOperations>, id: TableId) -> &mut TableOperations {
    if let Some(at) = tables.iter().position(|known| known.table == id) {
        return &mut tables[at];
    }
    tables.push(TableOperations {
        table: id,
        applied: Vec::new(),
        read: ColumnMask::EMPTY,
        written: ColumnMask::EMPTY,
        deletes: false,
    });
    tables.last_mut().expect("just added")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;

    /// What a procedure's body does to the table, which has five columns: `k`, `a`, `b`, `c`, `d`.
    fn does(body: &str) -> TableOperations {
        let text = format!(
            "table t {{ k: int, a: bigint, b: int, c: text null, d: int null, primary key (k) }}
             procedure p(k: int, n: bigint, m: int, s: text) {{ {body} }}"
        );
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("a program");
        let procedure = catalog.find_procedure("p").expect("the procedure");
        operations(catalog.procedure(procedure).expect("its program"), &catalog).pop().expect("the table")
    }

    fn columns(columns: &[u8]) -> ColumnMask {
        columns.iter().map(|column| ColumnId(*column)).collect()
    }

    #[test]
    fn operations_are_found() {
        let applied = |body: &str| does(body).applied;
        assert_eq!(applied("t[k].a += n"), [(ColumnId(1), Operation::Add)]);
        assert_eq!(applied("t[k].a = greatest(t[k].a, n)"), [(ColumnId(1), Operation::Max)]);
        assert_eq!(applied("t[k].a = t[k].a * n"), [(ColumnId(1), Operation::Multiply)]);
        assert_eq!(applied("t[k].b = (m * t[k].b)::int"), [(ColumnId(2), Operation::Multiply)]);
        let put = [
            (ColumnId(2), Operation::Order(columns(&[2, 3, 4]))),
            (ColumnId(3), Operation::Put(ColumnId(2))),
            (ColumnId(4), Operation::Put(ColumnId(2))),
        ];
        assert_eq!(applied("if m > t[k].b { update t[k] { b: m, c: s, d: m + 1 } }"), put);
        assert_eq!(applied("if t[k].b < m { update t[k] { b: m, c: s, d: 0 } }"), put);
    }

    #[test]
    fn what_depends_on_the_value_is_no_operation() {
        for body in [
            // The put column is read.
            "if m > t[k].b { update t[k] { b: m, d: t[k].d } }",
            // The order is not what is stored.
            "if m > t[k].b { update t[k] { b: m + 1, c: s } }",
            // An equal one replaces.
            "if m >= t[k].b { update t[k] { b: m, c: s } }",
            // More happens when it is not higher.
            "if m > t[k].b { update t[k] { b: m, c: s } } else { update t[k] { d: 1 } }",
            // The rows are two.
            "if m > t[(random() * 9)::int].b { update t[(random() * 9)::int] { b: m, c: s } }",
            // One of the columns is written otherwise.
            "if m > t[k].b { update t[k] { b: m, c: s } } t[k].c = s",
            // The factor depends on the value.
            "t[k].a = t[k].a * t[k].a",
            // The value may be too large for what it passes through.
            "t[k].a = t[k].a::int + m",
            "t[k].a = (t[k].a + n)::int",
            "t[k].a = greatest(t[k].a::int, m)",
            "t[k].a = t[k].a::int * m",
        ] {
            let does = does(body);
            assert!(!does.written.is_empty() || !does.read.is_empty(), "{body}: {does:?}");
        }
        assert!(does("if m > t[k].b { update t[k] { b: m, d: t[k].d } }").read.contains(ColumnId(4)));
        assert!(does("if m > t[k].b { update t[k] { b: m, c: s } } t[k].c = s").written == columns(&[2, 3]));
    }
}
