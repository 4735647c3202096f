//! Queries in `FROM`, `LATERAL` or not: what comes behind one stands within its loops.
//!
//! ```text
//! SELECT c.name, o.total                     for row_1 in customers {
//! FROM customers c, LATERAL (                    for row_2 in orders by orders_at[row_1.id] descending limit 1 {
//!     SELECT total FROM orders                       append result (row_1.name, row_2.total)
//!     WHERE customer_id = c.id                   }
//!     ORDER BY at DESC LIMIT 1) o            }
//! ```
//!
//! A query is bound so only if it reaches its tables by values of a key: of other queries, whose conditions move into
//! what they select from, a plan makes more.

use super::binder::Binder;
use super::bound::Bound;
use super::condition::Condition;
use super::from::{Body, From};
use super::query_facts::QueryFacts;
use super::scope::{Derived, Names, Relation, Row, Scope};
use super::stop::{Bind, Stop, beyond};
use super::tree;
use fabius_sql_meaning::analysis::Sight;
use fabius_sql_meaning::catalog::folded;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{DataType, Value};
use sqlparser::ast;
use std::sync::Arc;

/// Queries in the `FROM` of each other, at most: each is bound twice, once for its columns.
const NESTED: usize = 4;

/// What is known of a query in a `FROM` before it is reached.
struct Described {
    facts: QueryFacts,
    is_asked_around: bool,
    columns: Vec<(String, SqlType)>,
}

impl<'a> Binder<'a> {
    /// The relation that a query in a `FROM` is, behind other relations.
    pub(super) fn derived(
        &mut self,
        query: &ast::Query,
        is_lateral: bool,
        alias: &ast::TableAlias,
        names: Names,
        relations: &[Relation],
    ) -> Bind<Relation> {
        if !query.locks.is_empty() {
            return beyond("a subquery in FROM that locks rows");
        }
        let names = if is_lateral { names } else { Names::default() };
        let Described { facts, is_asked_around, mut columns } = self.described(query, &names, relations)?;
        if self.lifts && !facts.is_keyed {
            return beyond("a whole table in a subquery in FROM");
        }
        if alias.columns.len() > columns.len() {
            return beyond("more names than columns");
        }
        for (column, given) in columns.iter_mut().zip(&alias.columns) {
            column.0 = folded(&given.name);
        }
        let behind = if is_lateral { (1 << relations.len()) - 1 } else { 0 };
        let derived = Derived { query: query.clone(), names, behind, facts, is_asked_around };
        Ok(Relation {
            name: folded(&alias.name),
            schema: None,
            table: None,
            columns,
            sight: Sight::Everywhere,
            row: Row::Derived(Arc::new(derived)),
        })
    }

    /// What is known of a query behind relations, before they are reached.
    fn described(&mut self, query: &ast::Query, names: &Names, relations: &[Relation]) -> Bind<Described> {
        if self.deriving == NESTED {
            return beyond("so many queries in the FROM of each other");
        }
        let reached = relations
            .iter()
            .map(|relation| Relation { row: Row::Loop(relation.name.clone()), ..relation.clone() });
        let scope = Scope { relations: reached.collect(), names: names.clone() };
        let around = self.scopes.len();
        let mut columns = Vec::new();
        let (mark, before) = (self.mark(), self.before.replace(Vec::new()));
        self.deriving += 1;
        let described = self.noting_outer(|binder| {
            binder.nested(|binder| {
                binder.with_names(scope, |binder| {
                    binder.for_each_row(query, &mut |_, found, values| {
                        let of = |value: &Bound| {
                            if value.is_unknown() { SqlType::Text } else { value.sql_type.clone() }
                        };
                        let types = values.iter().map(of);
                        columns = found.iter().map(|column| column.name.clone()).zip(types).collect();
                        Ok(())
                    })
                })
            })
        });
        self.deriving -= 1;
        self.before = before;
        self.back_to(mark);
        debug_assert_eq!(self.scopes.len(), around);
        match described {
            Ok(((_, facts), is_outer)) => {
                Ok(Described { is_asked_around: is_outer && facts.is_selective, facts, columns })
            }
            // The other back end says what is wrong, in the place that it has among other errors.
            Err(Stop::Wrong(_)) if self.lifts => beyond("what is wrong in a subquery in FROM"),
            Err(stop) => Err(stop),
        }
    }

    /// Reaches a query's rows; `on` says which of them are partners in an outer join.
    pub(super) fn reach_derived(
        &mut self,
        from: &mut From,
        at: usize,
        derived: &Arc<Derived>,
        on: Option<Vec<Condition>>,
        reached: u64,
        body: &mut Body<'_, 'a>,
    ) -> Bind<()> {
        let facts = &derived.facts;
        if self.lifts && derived.behind == 0 && !from.found.is_single {
            return beyond("a subquery in FROM for each row of another relation");
        }
        self.refuse_for_each_row(facts, true)?;
        from.found.is_single &= facts.is_single;
        from.found.is_keyed &= facts.is_keyed;
        from.found.is_asked |= derived.is_asked_around;
        from.found.is_ordered = false;
        from.found.others_are_unique &= facts.is_single;
        let limit = from.limit.take();
        let done = match on {
            None => {
                let done = self.each_derived(at, derived, &mut |binder| {
                    binder.repeated(|binder| binder.reach_next(from, reached | 1 << at, body))
                });
                done.map(|_| ())
            }
            Some(on) => self.derived_or_nulls(from, at, derived, &on, reached, body),
        };
        from.limit = limit;
        done
    }

    /// The far side of an outer join.
    fn derived_or_nulls(
        &mut self,
        from: &mut From,
        at: usize,
        derived: &Arc<Derived>,
        on: &[Condition],
        reached: u64,
        body: &mut Body<'_, 'a>,
    ) -> Bind<()> {
        let found = self.name("found");
        let boolean = Some(tree::scalar_type(DataType::Boolean, false));
        self.emit(tree::declare(&found, true, boolean, tree::boolean(false)));
        let values = self.each_derived(at, derived, &mut |binder| {
            binder.partner(on, &found, |binder| binder.reach_next(from, reached | 1 << at, body))
        })?;
        let null = |value: Bound| Bound::constant(Value::Null, value.sql_type, value.data_type);
        self.scope().relations[at].row = Row::Values(values.into_iter().map(null).collect());
        let nulls = self.nested(|binder| binder.reach_next(from, reached | 1 << at, body));
        self.scope().relations[at].row = Row::Derived(derived.clone());
        let (block, ()) = nulls?;
        self.emit(tree::when(tree::not(tree::variable(found)), block, None));
        Ok(())
    }

    /// Does something for each row of a query in the innermost `FROM`, whose names mean what they mean there; gives the
    /// values of such a row.
    fn each_derived(
        &mut self,
        at: usize,
        derived: &Arc<Derived>,
        act: &mut dyn FnMut(&mut Self) -> Bind<()>,
    ) -> Bind<Vec<Bound>> {
        let mut last = Vec::new();
        let (depth, replaced) = (self.scopes.len(), self.replaced.len());
        let names = std::mem::replace(&mut self.scope().names, derived.names.clone());
        let done = self.for_each_row(&derived.query, &mut |binder, _, values| {
            let values = values.into_iter().map(|value| match value.is_unknown() {
                true => binder.settle(value),
                false => Ok(value),
            });
            let values = values.collect::<Bind<Vec<Bound>>>()?;
            last.clone_from(&values);
            let within = (binder.scopes.split_off(depth), binder.replaced.split_off(replaced));
            let seen = std::mem::replace(&mut binder.scope().names, names.clone());
            binder.scope().relations[at].row = Row::Values(values);
            let done = act(binder);
            binder.scope().relations[at].row = Row::Derived(derived.clone());
            binder.scope().names = seen;
            binder.scopes.extend(within.0);
            binder.replaced.extend(within.1);
            done
        });
        self.scope().names = names;
        done.map(|_| last)
    }
}
