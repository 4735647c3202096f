//! Joins that keep the number of rows: each row of one relation has exactly one partner in each of the others.
//!
//! ```text
//! FROM orders o JOIN customers c ON c.id = o.customer_id    along a reference: there is one, or the reference is null
//!               LEFT JOIN carriers r ON r.id = o.carrier    by a key: there is one at most, or nulls stand for it
//! ```
//!
//! So a limit on the join's rows is one on rows of the first relation, whose loop ends there.

use super::binder::Binder;
use super::condition::Condition;
use super::from::From;
use super::scope::{Relation, Scope};
use fabius_sql_meaning::catalog::{Deferral, ForeignKey, Table, column_path};
use sqlparser::ast::{BinaryOperator as B, Expr};

/// A relation that has one row for each of the first.
struct Sure {
    relation: usize,
    /// Whether nulls may stand for it.
    is_optional: bool,
}

/// A column of one relation that equals one of another.
struct Pair {
    own: usize,
    other: (usize, usize),
}

impl Binder<'_> {
    /// The columns of a relation that must not be null for each of its rows to have exactly one partner in each other
    /// relation of the innermost `FROM`; `None` if some may have none or several even then.
    pub(super) fn sole_partners(&self, from: &From, first: usize) -> Option<Vec<usize>> {
        let scope = self.scopes.last()?;
        let mut sure = vec![Sure { relation: first, is_optional: false }];
        let mut not_null = Vec::new();
        let mut waiting: Vec<usize> = (0..scope.relations.len()).filter(|at| *at != first).collect();
        // What follows from conditions along keys is so; nothing else may leave out rows.
        let joins = |condition: &&Condition| waiting.iter().any(|at| condition.uses & 1 << at != 0);
        if !from.conditions.iter().all(|condition| condition.is_met || joins(&condition)) {
            return None;
        }
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|&at| match partner(scope, from, at, &sure) {
                None => true,
                Some((next, nullable)) => {
                    sure.push(next);
                    not_null.extend(nullable);
                    false
                }
            });
            if waiting.len() == before {
                return None;
            }
        }
        let is_own = |(relation, _): &(usize, usize)| *relation == first;
        not_null.iter().all(is_own).then(|| not_null.into_iter().map(|(_, column)| column).collect())
    }
}

/// A relation that is sure as others are, and the columns of these that must not be null for it.
fn partner(scope: &Scope, from: &From, at: usize, sure: &[Sure]) -> Option<(Sure, Vec<(usize, usize)>)> {
    let table = scope.relations[at].table.as_ref()?;
    // Those about relations that come later are looked at then.
    let known = sure.iter().fold(1 << at, |known, sure| known | 1 << sure.relation);
    let is_about = |condition: &&Condition| condition.uses & 1 << at != 0 && condition.uses & !known == 0;
    let mut about = from.conditions.iter().filter(|condition| !condition.is_met).filter(is_about);
    if let Some(on) = &from.outer[at] {
        if about.next().is_some() {
            return None;
        }
        let pairs: Vec<Pair> = on.iter().filter_map(|condition| pair(scope, condition, at, sure)).collect();
        let is_covered = keys(table).any(|key| {
            let mut places = key.iter().map(|name| place(table, name));
            places.all(|place| place.is_some_and(|place| pairs.iter().any(|pair| pair.own == place)))
        });
        return is_covered.then_some((Sure { relation: at, is_optional: true }, Vec::new()));
    }
    let pairs: Vec<Pair> = about.map(|condition| pair(scope, condition, at, sure)).collect::<Option<_>>()?;
    let (other, _) = pairs.first()?.other;
    let is_there = sure.iter().any(|sure| sure.relation == other && !sure.is_optional);
    if !is_there || pairs.iter().any(|pair| pair.other.0 != other) {
        return None;
    }
    let referring = scope.relations[other].table.as_ref()?;
    let is_reference = |key: &&ForeignKey| {
        key.parent == table.name && key.deferral == Deferral::Never && refers(referring, key, table, &pairs)
    };
    referring.foreign_keys.iter().find(is_reference)?;
    let nullable =
        pairs.iter().map(|pair| pair.other).filter(|(_, column)| referring.columns[*column].nullable);
    Some((Sure { relation: at, is_optional: false }, nullable.collect()))
}

/// Whether pairs of columns are those of a reference, all of them.
fn refers(referring: &Table, key: &ForeignKey, parent: &Table, pairs: &[Pair]) -> bool {
    let mut columns = key.columns.iter().zip(&key.parent_columns);
    pairs.len() == key.columns.len()
        && columns.all(|(column, parent_column)| {
            let (column, own) = (place(referring, column), place(parent, parent_column));
            pairs.iter().any(|pair| Some(pair.own) == own && Some(pair.other.1) == column)
        })
}

/// Columns of keys that are one row's alone.
fn keys(table: &Table) -> impl Iterator<Item = &[String]> {
    let unique = table.unique.iter().filter(|key| key.deferral == Deferral::Never);
    let unique = unique.map(|key| key.columns.as_slice());
    table.primary_key.iter().map(|key| key.columns.as_slice()).chain(unique)
}

fn place(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|column| column.name == name)
}

/// `own = other`, of columns of one type, of which the other is of a relation that is sure.
fn pair(scope: &Scope, condition: &Condition, at: usize, sure: &[Sure]) -> Option<Pair> {
    let Expr::BinaryOp { left, op: B::Eq, right } = &condition.expression else { return None };
    let named = |expression: &Expr| match scope.names.candidates(&column_path(expression)?).as_slice() {
        [found] => Some(*found),
        _ => None,
    };
    let (left, right) = (named(left)?, named(right)?);
    let (own, other) = if left.0 == at { (left, right) } else { (right, left) };
    let sql_type = |(relation, column): (usize, usize)| {
        let relation: &Relation = &scope.relations[relation];
        relation.columns.get(column).map(|(_, sql_type)| sql_type)
    };
    let is_pair =
        own.0 == at && sure.iter().any(|sure| sure.relation == other.0) && sql_type(own) == sql_type(other);
    is_pair.then_some(Pair { own: own.1, other })
}
