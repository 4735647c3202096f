//! Filters as ranges of a key: which part of a table has to be read.

use crate::arrow_column::value_at;
use crate::row_source::Bound;
use datafusion::logical_expr::utils::{split_binary, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::catalog::{Key, Table};
use fabius_sql_meaning::functions::array;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Result, Value};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Most ranges that one scan is divided into: the values of an `IN` list.
const RANGES: usize = 1000;

/// A range of a key; by default all of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KeyRange {
    /// The key's name.
    pub(super) index: Option<String>,
    /// Values of its first columns.
    pub(super) equal: Vec<Value>,
    /// The lower end of the next.
    pub(super) lower: Option<Bound>,
    /// The upper end of the next.
    pub(super) upper: Option<Bound>,
}

/// What is known of a column.
#[derive(Clone, Debug, Default)]
struct Known {
    /// It is one of these.
    equal: Option<Vec<Value>>,
    lower: Option<Bound>,
    upper: Option<Bound>,
}

impl KeyRange {
    /// What it says of a key's columns, as a condition.
    pub(super) fn words(&self, columns: &[String]) -> String {
        let name = |at: usize| columns.get(at).map_or("", String::as_str);
        let equal = self.equal.iter().enumerate().map(|(at, value)| format!("{} = {value}", name(at)));
        let next = name(self.equal.len());
        let end = |bound: &Bound, sign: char| {
            let or_equal = if bound.is_inclusive { "=" } else { "" };
            format!("{next} {sign}{or_equal} {}", bound.value)
        };
        let lower = self.lower.iter().map(|bound| end(bound, '>'));
        let upper = self.upper.iter().map(|bound| end(bound, '<'));
        equal.chain(lower).chain(upper).collect::<Vec<_>>().join(" and ")
    }

    /// The ranges that hold every row that passes the filters, along the key that says most. No two have a row in
    /// common.
    pub(super) fn choose(table: &Table, filters: &[Expr]) -> Result<Vec<KeyRange>> {
        let facts = facts(table, filters);
        // `(a = 1 AND b = 2) OR (a = 3 AND b = 4)`: what a list of rows becomes.
        let mut branched: Vec<Vec<Facts>> = Vec::new();
        for filter in filters.iter().flat_map(split_conjunction) {
            let branches = split_binary(filter, Operator::Or);
            if !(2..=RANGES).contains(&branches.len()) {
                continue;
            }
            let of_branch = |branch: &Expr| {
                let mut facts = facts.clone();
                split_conjunction(branch).into_iter().for_each(|filter| learn(table, filter, &mut facts));
                facts
            };
            branched.push(branches.into_iter().map(of_branch).collect());
        }
        let mut best: Option<((usize, usize), Vec<KeyRange>)> = None;
        for key in keys(table) {
            let of_branches = branched.iter().filter_map(|branches| along_each(key, branches));
            for (score, ranges) in std::iter::once(along(key, &facts)).chain(of_branches) {
                if score > (0, 0) && best.as_ref().is_none_or(|(other, _)| score > *other) {
                    best = Some((score, ranges));
                }
            }
        }
        Ok(best.map_or_else(|| vec![KeyRange::default()], |(_, ranges)| ranges))
    }

    /// Which of two ranges with values of the same columns comes first along their key.
    fn along_key(&self, other: &KeyRange) -> Ordering {
        let mut columns =
            self.equal.iter().zip(&other.equal).filter_map(|(one, two)| array::compare(one, two));
        columns.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Whether it is not the whole of its key.
    pub(super) fn is_bounded(&self) -> bool {
        !self.equal.is_empty() || self.lower.is_some() || self.upper.is_some()
    }

    /// Whether at most one row is in it.
    pub(super) fn is_of_one_row(&self, table: &Table) -> bool {
        let is_its = |key: &&Key| self.index.as_ref().is_some_and(|name| *name == key.name);
        let key = table.primary_key.iter().chain(&table.unique).find(is_its);
        key.is_some_and(|key| self.equal.len() == key.columns.len())
    }

    /// Whether a key of a table begins with more columns than so many that filters give one value each or that are
    /// among these.
    pub(super) fn can_look_up(table: &Table, filters: &[Expr], asked: &[&str], known: usize) -> bool {
        lookup_key(table, filters, asked).is_some_and(|(_, parts)| parts.len() > known)
    }

    /// The ranges of rows that have one of some rows of values in columns, each with its place in those, along the key
    /// that has most of the columns, in its order; `None` if there is no such key, or a value is none that it has.
    pub(super) fn look_up(
        table: &Table,
        filters: &[Expr],
        columns: &[(String, usize)],
        rows: &HashSet<Vec<ScalarValue>>,
    ) -> Option<Vec<KeyRange>> {
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let (key, parts) = lookup_key(table, filters, &names)?;
        let asked: Vec<usize> = parts.iter().filter_map(|part| part.as_ref().err().copied()).collect();
        let mut seen = HashSet::new();
        let mut ranges = Vec::new();
        for row in rows {
            let values: Vec<&ScalarValue> =
                asked.iter().map(|at| row.get(columns.get(*at)?.1)).collect::<Option<_>>()?;
            if !seen.insert(values.clone()) {
                continue;
            }
            let mut values = values.into_iter();
            let mut equal = Vec::with_capacity(parts.len());
            for (part, name) in parts.iter().zip(&key.columns) {
                let sql_type = &table.column(name)?.sql_type;
                equal.push(match part {
                    Ok(known) => Some(known.clone()),
                    Err(_) => match (value_of(values.next()?, sql_type), sql_type) {
                        // A number that the type does not have is in no row.
                        (None, SqlType::SmallInt | SqlType::Int | SqlType::BigInt) => None,
                        (value, _) => Some(value?),
                    },
                });
            }
            let Some(equal) = equal.into_iter().collect::<Option<Vec<Value>>>() else { continue };
            ranges.push(KeyRange { index: Some(key.name.clone()), equal, ..KeyRange::default() });
        }
        ranges.sort_by(KeyRange::along_key);
        Some(ranges)
    }
}

/// Of each of the first columns of a key the value, or the place among those that are asked for.
type Parts = Vec<std::result::Result<Value, usize>>;

/// The key that begins with most columns whose values are known or asked for, some of them asked for; of several the
/// first.
fn lookup_key<'t>(table: &'t Table, filters: &[Expr], asked: &[&str]) -> Option<(&'t Key, Parts)> {
    let facts = facts(table, filters);
    let part = |name: &String| {
        if let Some(at) = asked.iter().position(|asked| asked == name) {
            return Some(Err(at));
        }
        let (_, known) = facts.iter().find(|(column, _)| column == name)?;
        match known.equal.as_deref() {
            Some([value]) => Some(Ok(value.clone())),
            _ => None,
        }
    };
    let parts_of = |key: &'t Key| -> (&'t Key, Parts) { (key, key.columns.iter().map_while(part).collect()) };
    let fitting =
        keys(table).map(parts_of).filter(|(_, parts)| parts.iter().any(std::result::Result::is_err));
    fitting.reduce(|best, other| if other.1.len() > best.1.len() { other } else { best })
}

fn keys(table: &Table) -> impl Iterator<Item = &Key> {
    table.primary_key.iter().chain(&table.unique).chain(&table.indexes)
}

/// What filters say of columns.
fn facts(table: &Table, filters: &[Expr]) -> Facts {
    let mut facts = Facts::default();
    filters.iter().flat_map(split_conjunction).for_each(|filter| learn(table, filter, &mut facts));
    facts
}

/// What is known of columns, by their names.
type Facts = Vec<(String, Known)>;

/// The ranges of a key that facts leave, and how much they say: of how many columns the value, of how many ends of
/// the next.
fn along(key: &Key, facts: &Facts) -> ((usize, usize), Vec<KeyRange>) {
    let about = |column: &str| facts.iter().find(|(name, _)| name == column).map(|(_, known)| known);
    let mut ranges = vec![KeyRange { index: Some(key.name.clone()), ..KeyRange::default() }];
    let (mut equals, mut ends) = (0, 0);
    for column in &key.columns {
        let Some(known) = about(column) else { break };
        match &known.equal {
            Some(values) if values.len().saturating_mul(ranges.len()) <= RANGES => {
                equals += 1;
                ranges = ranges
                    .into_iter()
                    .flat_map(|range| {
                        values.iter().map(move |value| {
                            let mut range = range.clone();
                            range.equal.push(value.clone());
                            range
                        })
                    })
                    .collect();
            }
            _ => {
                ends = usize::from(known.lower.is_some()) + usize::from(known.upper.is_some());
                for range in &mut ranges {
                    range.lower = known.lower.clone();
                    range.upper = known.upper.clone();
                }
                break;
            }
        }
    }
    ((equals, ends), ranges)
}

/// The ranges of a key that are left if one or another of several facts holds, as far as all of them say the values
/// of its columns.
fn along_each(key: &Key, branches: &[Facts]) -> Option<((usize, usize), Vec<KeyRange>)> {
    let all: Vec<_> = branches.iter().map(|facts| along(key, facts)).collect();
    let equals = all.iter().map(|((equals, _), _)| *equals).min()?;
    let mut ranges: Vec<KeyRange> = Vec::new();
    for mut range in all.into_iter().flat_map(|(_, ranges)| ranges) {
        range.equal.truncate(equals);
        (range.lower, range.upper) = (None, None);
        if !ranges.contains(&range) {
            ranges.push(range);
        }
        if ranges.len() > RANGES {
            return None;
        }
    }
    Some(((equals, 0), ranges))
}

/// The column of a table that an expression is, and its type.
fn column_of<'t>(table: &'t Table, expression: &Expr) -> Option<(&'t str, &'t SqlType)> {
    let Expr::Column(column) = expression else { return None };
    table
        .columns
        .iter()
        .find(|known| known.name == column.name)
        .map(|known| (known.name.as_str(), &known.sql_type))
}

/// A literal as a value that the column's storage holds exactly.
fn value_of(literal: &ScalarValue, sql_type: &SqlType) -> Option<Value> {
    if literal.is_null() {
        return None;
    }
    let column = literal.to_array().ok()?;
    let value = value_at(&column, 0, sql_type);
    let stored = value.cast(sql_type.storage()?).ok()?;
    array::compare(&value, &stored)
        .or_else(|| (value == stored).then_some(Ordering::Equal))
        .filter(|order| order.is_eq())
        .map(|_| stored)
}

fn learn(table: &Table, filter: &Expr, known: &mut Facts) {
    let mut about = |name: &str| -> usize {
        match known.iter().position(|(other, _)| other == name) {
            Some(at) => at,
            None => {
                known.push((name.to_string(), Known::default()));
                known.len() - 1
            }
        }
    };
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, literal, operator) = match (left.as_ref(), right.as_ref()) {
                (column, Expr::Literal(literal, _)) => (column, literal, *op),
                (Expr::Literal(literal, _), column) => match op.swap() {
                    Some(operator) => (column, literal, operator),
                    None => return,
                },
                _ => return,
            };
            let Some((name, sql_type)) = column_of(table, column) else { return };
            let Some(value) = value_of(literal, sql_type) else { return };
            let at = about(name);
            let Some((_, entry)) = known.get_mut(at) else { return };
            let bound = |is_inclusive| Some(Bound { value: value.clone(), is_inclusive });
            match operator {
                Operator::Eq => entry.equal = Some(vec![value]),
                Operator::Gt | Operator::GtEq => {
                    tighten(&mut entry.lower, bound(operator == Operator::GtEq), Ordering::Greater)
                }
                Operator::Lt | Operator::LtEq => {
                    tighten(&mut entry.upper, bound(operator == Operator::LtEq), Ordering::Less)
                }
                _ => {}
            }
        }
        Expr::Between(between) if !between.negated => {
            let Some((name, sql_type)) = column_of(table, &between.expr) else { return };
            let (Expr::Literal(low, _), Expr::Literal(high, _)) =
                (between.low.as_ref(), between.high.as_ref())
            else {
                return;
            };
            let (low, high) = (value_of(low, sql_type), value_of(high, sql_type));
            let at = about(name);
            let Some((_, entry)) = known.get_mut(at) else { return };
            let bound = |value: Option<Value>| value.map(|value| Bound { value, is_inclusive: true });
            tighten(&mut entry.lower, bound(low), Ordering::Greater);
            tighten(&mut entry.upper, bound(high), Ordering::Less);
        }
        Expr::InList(list) if !list.negated && list.list.len() <= RANGES => {
            let Some((name, sql_type)) = column_of(table, &list.expr) else { return };
            let mut values = Vec::with_capacity(list.list.len());
            for item in &list.list {
                let Expr::Literal(literal, _) = item else { return };
                if literal.is_null() {
                    continue;
                }
                let Some(value) = value_of(literal, sql_type) else { return };
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let at = about(name);
            if let Some((_, entry)) = known.get_mut(at)
                && entry.equal.is_none()
            {
                entry.equal = Some(values);
            }
        }
        // What `IN` becomes when it is short.
        Expr::Column(_) | Expr::IsTrue(_) => {
            if let Some((name, SqlType::Boolean)) = column_of(table, filter) {
                let at = about(name);
                if let Some((_, entry)) = known.get_mut(at) {
                    entry.equal = Some(vec![Value::Boolean(true)]);
                }
            }
        }
        _ => {
            if let Some((name, values)) = alternatives(table, filter) {
                let at = about(&name);
                if let Some((_, entry)) = known.get_mut(at)
                    && entry.equal.is_none()
                {
                    entry.equal = Some(values);
                }
            }
        }
    }
    // `a = 1 OR a = 2`: what a short `IN` becomes.
    if let Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) = filter
        && let Some((name, values)) = alternatives(table, filter)
    {
        match known.iter_mut().find(|(other, _)| *other == name) {
            Some((_, entry)) if entry.equal.is_none() => entry.equal = Some(values),
            Some(_) => {}
            None => known.push((name, Known { equal: Some(values), ..Known::default() })),
        }
    }
}

fn alternatives(table: &Table, filter: &Expr) -> Option<(String, Vec<Value>)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
    match op {
        Operator::Eq => {
            let Expr::Literal(literal, _) = right.as_ref() else { return None };
            let (name, sql_type) = column_of(table, left)?;
            Some((name.to_string(), vec![value_of(literal, sql_type)?]))
        }
        Operator::Or => {
            let (name, mut values) = alternatives(table, left)?;
            let (other, more) = alternatives(table, right)?;
            if name != other {
                return None;
            }
            for value in more {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            Some((name, values))
        }
        _ => None,
    }
}

/// Keeps the tighter of two ends: `side` is where the tighter value lies.
fn tighten(end: &mut Option<Bound>, new: Option<Bound>, side: Ordering) {
    let Some(new) = new else { return };
    let is_tighter = match end {
        None => true,
        Some(old) => match array::compare(&new.value, &old.value) {
            Some(Ordering::Equal) => !new.is_inclusive,
            Some(order) => order == side,
            None => false,
        },
    };
    if is_tighter {
        *end = Some(new);
    }
}
