//! Rows in an order that no index gives, and distinct ones: collected in a list, sorted, and gone over again.
//!
//! ```text
//! SELECT DISTINCT n, v FROM t           var sorted: list of (c1: int, c2: text) = []
//! WHERE id BETWEEN 1 AND 100            for row in t[1 .. 100] { append sorted (row.n, row.v) }
//! ORDER BY v DESC                       sort sorted by c2 descending, c1
//!                                       for each in sorted { if each differs from the last { ... } }
//! ```
//!
//! A statement is bound so only if its range is bounded: a query sorts better what is much, and need not hold all of
//! it.

use super::binder::Binder;
use super::bound::Bound;
use super::from::{Body, From};
use super::query_facts::QueryFacts;
use super::row_body::{Gathered, RowBody, Window};
use super::stop::{Bind, Place, beyond};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, SortKey, StatementKind};
use fabius_sql_meaning::analysis::{ListItem, list_item};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use sqlparser::ast::{self, Expr};

/// What a `SELECT` says of the order of its rows.
pub(super) struct Sorting<'s> {
    pub(super) select: &'s ast::Select,
    pub(super) order: &'s [ast::OrderByExpr],
    pub(super) is_distinct: bool,
}

/// What is sorted by: a column of the result, or an expression besides.
enum Key {
    Column(usize),
    Besides(Box<Expr>),
}

impl<'a> Binder<'a> {
    /// The rows of a `FROM` in the order that is wanted, each once if they are to be distinct.
    pub(super) fn sorted(
        &mut self,
        wanted: &Sorting<'_>,
        mut from: From,
        window: &Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<QueryFacts> {
        self.in_order(wanted, window, &mut |binder, act| binder.loops(&mut from, act), body)?;
        if self.lifts && !from.found.is_bounded {
            return beyond("sorting all rows of a table");
        }
        Ok(from.found.facts())
    }

    /// The rows of something in the order that is wanted; `rows` does something for each of them.
    pub(super) fn in_order(
        &mut self,
        wanted: &Sorting<'_>,
        window: &Window,
        rows: &mut dyn FnMut(&mut Self, &mut Body<'_, 'a>) -> Bind<()>,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<()> {
        let list = self.name("sorted");
        let mut gathered = Gathered::default();
        let mut outputs: Vec<Bound> = Vec::new();
        let mut keys: Vec<usize> = Vec::new();
        let (block, ()) = self.nested(|binder| {
            rows(binder, &mut |binder| {
                let (columns, mut values) = binder.projection(wanted.select)?;
                let places = binder.sort_keys(wanted, &columns, &mut values)?;
                let is_sorted = |at: usize| wanted.is_distinct || places.contains(&at);
                let is_ordered = |value: &Bound| super::expression::is_ordered(&value.sql_type);
                if values.iter().enumerate().any(|(at, value)| {
                    value.is_unknown()
                        || value.sql_type == SqlType::Interval
                        || is_sorted(at) && !is_ordered(value)
                }) {
                    return beyond("an order of values without one");
                }
                (outputs, keys) = (values.clone(), places);
                gathered.add(binder, &list, &columns, values)
            })
        })?;
        if outputs.is_empty() {
            return beyond("sorting no rows");
        }
        let columns = gathered.columns.clone();
        self.emit(tree::declare_list(&list, gathered.fields()));
        self.block.extend(block);
        let keys = wanted.all_keys(&keys, columns.len());
        self.emit(tree::statement(StatementKind::Sort { list: tree::name(&list), keys }));
        // As elements of the list.
        let each = self.name("each");
        let mut values = gathered.elements(&each, outputs);
        values.truncate(columns.len());
        let (taken, skipped) = (self.name("taken"), self.name("skipped"));
        let has_window = window.limit.is_some() || window.offset.is_some();
        if has_window {
            self.declare_window(window, &taken, &skipped);
        }
        let show = |binder: &mut Binder<'a>| match has_window {
            false => body(binder, &columns, values.clone()),
            true => {
                binder.windowed(window, &taken, &skipped, |binder| body(binder, &columns, values.clone()))
            }
        };
        let (rows, ()) = match wanted.is_distinct {
            false => self.nested(show)?,
            true => self.each_once(&values, show)?,
        };
        self.emit(tree::for_list(&each, &list, rows));
        Ok(())
    }

    /// What a row is sorted by, as places among its values, to which expressions besides are added.
    fn sort_keys(
        &mut self,
        wanted: &Sorting<'_>,
        columns: &[OutputColumn],
        values: &mut Vec<Bound>,
    ) -> Bind<Vec<usize>> {
        let mut places = Vec::new();
        for item in wanted.order {
            if item.with_fill.is_some() {
                return beyond("an order of this form");
            }
            places.push(match self.sort_key(wanted, &item.expr, columns)? {
                Key::Column(at) => at,
                Key::Besides(_) if wanted.is_distinct => return beyond("an order besides DISTINCT"),
                Key::Besides(expression) => {
                    let value = self.expression(&expression, None)?;
                    values.push(value);
                    values.len() - 1
                }
            });
        }
        Ok(places)
    }

    fn sort_key(&mut self, wanted: &Sorting<'_>, item: &Expr, columns: &[OutputColumn]) -> Bind<Key> {
        let stands_for = list_item(item, columns.len(), "ORDER BY");
        match stands_for.map_err(|error| self.error(error, Place::of(item)))? {
            ListItem::Place(at) => Ok(Key::Column(at)),
            // A name of the result comes before one of a table.
            ListItem::Name(name) => {
                let mut named = (0..columns.len()).filter(|at| columns[*at].name == name);
                match (named.next(), named.next()) {
                    (Some(at), None) => Ok(Key::Column(at)),
                    (Some(_), Some(_)) => beyond("an order by one of several columns of a name"),
                    _ => Ok(Key::Besides(Box::new(item.clone()))),
                }
            }
            ListItem::Expression => Ok(match wanted.place_of(item) {
                Some(at) => Key::Column(at),
                None => Key::Besides(Box::new(item.clone())),
            }),
        }
    }

    /// What is done for rows that differ from the one before.
    fn each_once(
        &mut self,
        values: &[Bound],
        show: impl FnOnce(&mut Self) -> Bind<()>,
    ) -> Bind<(fabius_program::syntax::tree::Block, ())> {
        let has_last = self.name("has_last");
        self.emit(tree::declare(&has_last, true, None, tree::boolean(false)));
        let mut differs: Vec<Expression> = vec![tree::not(tree::variable(&has_last))];
        let mut keep = vec![tree::assign(&has_last, tree::boolean(true))];
        for value in values {
            let last = self.name("last");
            let ty = tree::scalar_type(value.data_type, true);
            self.emit(tree::declare(&last, true, Some(ty), tree::typed_null(value.data_type)));
            differs.push(tree::binary(Op::IsDistinct, value.expression.clone(), tree::variable(&last)));
            keep.push(tree::assign(&last, value.expression.clone()));
        }
        let (shown, ()) = self.nested(show)?;
        keep.extend(shown);
        Ok((vec![tree::when(tree::any(differs), keep, None)], ()))
    }
}

impl Sorting<'_> {
    /// The column of the result that is written as this expression, where the list says so.
    fn place_of(&self, item: &Expr) -> Option<usize> {
        use ast::SelectItem as I;
        let items = &self.select.projection;
        if !items.iter().all(|item| matches!(item, I::UnnamedExpr(_) | I::ExprWithAlias { .. })) {
            return None;
        }
        items.iter().position(|of| match of {
            I::UnnamedExpr(expr) | I::ExprWithAlias { expr, .. } => expr == item,
            _ => false,
        })
    }

    /// The keys of the sort; equal rows come together if they are to be distinct.
    fn all_keys(&self, places: &[usize], columns: usize) -> Vec<SortKey> {
        let key = |at: usize, descending, nulls_first| SortKey {
            field: Some(tree::name(format!("c{}", at + 1))),
            descending,
            nulls_first,
        };
        let mut keys: Vec<SortKey> = self
            .order
            .iter()
            .zip(places)
            .map(|(item, at)| {
                let descending = item.options.asc == Some(false);
                key(*at, descending, item.options.nulls_first.unwrap_or(descending))
            })
            .collect();
        if self.is_distinct {
            keys.extend((0..columns).filter(|at| !places.contains(at)).map(|at| key(at, false, false)));
        }
        keys
    }
}
