//! `GROUP BY`: rows in a list, sorted by their keys, and gone over group by group.
//!
//! ```text
//! SELECT status, count(*)               for row in orders by orders_customer[p1] { append rows (row.status) }
//! FROM orders                           sort rows by c1
//! WHERE customer_id = $1                for each in rows {
//! GROUP BY status                           if each is of another key than the last {
//!                                               if it has one { append groups (last_1, sum) }
//!                                               sum = 0
//!                                           }
//!                                           sum += 1
//!                                       }
//!                                       if there is a last { append groups (last_1, sum) }
//!                                       for group in groups { append result (group.c1, group.c2) }
//! ```
//!
//! A statement is bound so only if its range is bounded, as those that are [`sorted`](super::sorted).

use super::aggregate::Collector;
use super::binder::Binder;
use super::bound::Bound;
use super::condition::has_subquery;
use super::expression::is_ordered;
use super::from::{Body, From};
use super::query_facts::QueryFacts;
use super::row_body::{Gathered, RowBody, Window};
use super::scope::Found;
use super::sorted::Sorting;
use super::stop::{Bind, Place, Stop, beyond};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Block, SortKey, Statement, StatementKind};
use fabius_sql_meaning::analysis::{ListItem, list_item};
use fabius_sql_meaning::catalog::{column_path, folded};
use fabius_sql_meaning::column_name;
use fabius_sql_meaning::functions::aggregate::Aggregate;
use fabius_sql_meaning::type_rules::{is_float, looks_different};
use sqlparser::ast::{self, Expr, SelectItem};
use std::ops::ControlFlow;

/// Keys of groups, at most.
const KEYS: usize = 64;

/// A query of groups.
struct Groups {
    /// The query, with columns that are keys written as the keys are.
    select: ast::Select,
    order: Vec<ast::OrderByExpr>,
    keys: Vec<Expr>,
    collectors: Vec<Collector>,
}

/// Groups in a list.
struct Listed {
    list: String,
    /// What was put into it, the last time.
    values: Vec<Bound>,
    gathered: Gathered,
}

impl<'a> Binder<'a> {
    /// A query with `GROUP BY`.
    pub(super) fn grouped(
        &mut self,
        wanted: &Sorting<'_>,
        window: &Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<QueryFacts> {
        match self.groups_of(wanted, window, body) {
            // The other back end says what is wrong, in the place that it has among other errors.
            Err(Stop::Wrong(_)) if self.lifts => beyond("what is wrong in a query of groups"),
            done => done,
        }
    }

    fn groups_of(
        &mut self,
        wanted: &Sorting<'_>,
        window: &Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<QueryFacts> {
        let (scope, joined) = self.relations(None, &wanted.select.from)?;
        self.with_names(scope, |binder| {
            let mut groups = binder.groups(wanted)?;
            let from = binder.from(&joined, wanted.select.selection.as_ref());
            let (list, facts) = binder.collected_groups(from, &mut groups)?;
            let before = binder.replaced.len();
            let done = binder.shown_groups(&groups, &list, wanted.is_distinct, window, body);
            binder.replaced.truncate(before);
            done.map(|()| facts)
        })
    }

    fn groups(&mut self, wanted: &Sorting<'_>) -> Bind<Groups> {
        let (mut select, mut order) = (wanted.select.clone(), wanted.order.to_vec());
        let ast::GroupByExpr::Expressions(items, modifiers) = &wanted.select.group_by else {
            return beyond("GROUP BY ALL");
        };
        if !modifiers.is_empty() {
            return beyond("groups of several sets");
        }
        if items.len() > KEYS {
            return beyond("groups by so many keys");
        }
        let mut keys =
            items.iter().map(|item| self.group_key(wanted.select, item)).collect::<Bind<Vec<_>>>()?;
        let mut places: Vec<((usize, usize), Expr)> = Vec::new();
        for key in &mut keys {
            self.write_keys(&places, key);
            places.extend(self.place_of_column(key).map(|place| (place, key.clone())));
        }
        let is_shown = |name: &str| {
            wanted.select.projection.iter().any(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => folded(alias) == name,
                SelectItem::UnnamedExpr(expr) => column_name::of(expr) == name,
                _ => false,
            })
        };
        let mut all: Vec<&mut Expr> = Vec::new();
        for item in &mut select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => all.push(expr),
                _ => return beyond("a wildcard beside groups"),
            }
        }
        all.extend(&mut select.having);
        // A name of the result comes before one of a table.
        let is_result = |expr: &Expr| matches!(expr, Expr::Identifier(name) if is_shown(&folded(name)));
        all.extend(order.iter_mut().map(|item| &mut item.expr).filter(|expr| !is_result(expr)));
        let mut calls = Vec::new();
        for expr in all {
            if has_subquery(expr) {
                return beyond("a subquery beside groups");
            }
            self.write_keys(&places, expr);
            super::aggregate::add_calls(expr, &mut calls)?;
        }
        let collectors = calls.into_iter().map(|call| self.collector(call)).collect::<Bind<Vec<_>>>()?;
        if collectors.iter().any(|of| of.is_distinct || of.aggregate == Aggregate::Average) {
            return beyond("an aggregate of groups that keeps a list");
        }
        Ok(Groups { select, order, keys, collectors })
    }

    /// What an item of `GROUP BY` stands for: a column of a table comes before one of the result.
    fn group_key(&mut self, select: &ast::Select, item: &Expr) -> Bind<Expr> {
        let named = |name: &str| {
            let mut named = select.projection.iter().filter_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if folded(alias) == name => Some(expr),
                _ => None,
            });
            (named.next(), named.next())
        };
        let stands_for = list_item(item, select.projection.len(), "GROUP BY");
        let key = match stands_for.map_err(|error| self.error(error, Place::of(item)))? {
            ListItem::Place(at) => match &select.projection[at] {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
                _ => return beyond("a wildcard beside groups"),
            },
            ListItem::Name(name) if self.place_of_column(item).is_none() => match named(&name) {
                (Some(expr), None) => expr,
                _ => return beyond("a group key that is no column"),
            },
            _ => item,
        };
        match key {
            _ if has_subquery(key) || super::aggregate::has_aggregate(key) => {
                beyond("a group key of this form")
            }
            Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) | Expr::Tuple(_) => {
                beyond("groups of several sets")
            }
            _ => Ok(key.clone()),
        }
    }

    /// The relation's column that an expression is.
    fn place_of_column(&self, expression: &Expr) -> Option<(usize, usize)> {
        match self.lookup(&column_path(expression)?, Place::none()) {
            Ok(Some(Found::Column { out: 0, relation, column })) => Some((relation, column)),
            _ => None,
        }
    }

    /// Writes columns that are keys as the keys are.
    fn write_keys(&self, keys: &[((usize, usize), Expr)], expression: &mut Expr) {
        let _ = ast::visit_expressions_mut(expression, |part| {
            if let Some(place) = self.place_of_column(part)
                && let Some((_, key)) = keys.iter().find(|(key, _)| *key == place)
            {
                part.clone_from(key);
            }
            ControlFlow::<()>::Continue(())
        });
    }

    /// The groups in a list: their keys, and what their aggregates are.
    fn collected_groups(&mut self, mut from: From, groups: &mut Groups) -> Bind<(Listed, QueryFacts)> {
        for argument in groups.collectors.iter().filter_map(|collector| collector.argument.as_ref()) {
            self.stop_if_of_outer_rows(argument)?;
        }
        let rows = self.name("rows");
        let (mut gathered, mut seen) = (Gathered::default(), Vec::new());
        let (block, ()) = self.nested(|binder| {
            binder.loops(&mut from, &mut |binder| {
                seen = binder.keys_and_arguments(groups)?;
                gathered.add(binder, &rows, &[], seen.clone())
            })
        })?;
        if self.lifts && !from.found.is_bounded {
            return beyond("groups of all rows of a table");
        }
        self.emit(tree::declare_list(&rows, gathered.fields()));
        self.block.extend(block);
        let by = (0..groups.keys.len()).map(|at| SortKey {
            field: Some(tree::name(format!("c{}", at + 1))),
            descending: false,
            nulls_first: false,
        });
        self.emit(tree::statement(StatementKind::Sort { list: tree::name(&rows), keys: by.collect() }));
        let each = self.name("each");
        let fields = gathered.elements(&each, seen);
        let list = self.each_group(groups, &rows, &each, fields)?;
        Ok((list, from.found.facts()))
    }

    /// What is kept of a row: the keys of its group, and what aggregates are of.
    fn keys_and_arguments(&mut self, groups: &Groups) -> Bind<Vec<Bound>> {
        let mut values = Vec::new();
        for key in &groups.keys {
            let value = self.expression(key, None)?;
            let of = &value.sql_type;
            if value.is_unknown() || !is_ordered(of) || is_float(of) || looks_different(of) {
                return beyond("a group key of this type");
            }
            values.push(self.settle(value)?);
        }
        for argument in groups.collectors.iter().filter_map(|collector| collector.argument.as_ref()) {
            let value = self.operand(argument)?;
            values.push(self.settle(value)?);
        }
        Ok(values)
    }

    /// Goes over rows in the order of their groups, and lists these.
    fn each_group(
        &mut self,
        groups: &mut Groups,
        rows: &str,
        each: &str,
        fields: Vec<Bound>,
    ) -> Bind<Listed> {
        let (before, scope) = (self.replaced.len(), self.scopes.len() - 1);
        let count = groups.keys.len();
        let arguments = groups.collectors.iter().filter_map(|collector| collector.argument.clone());
        let arguments = arguments.zip(fields[count..].iter().cloned());
        self.replaced.extend(arguments.map(|(argument, field)| (argument, field, scope)));
        let collect = self.nested(|binder| {
            groups.collectors.iter_mut().try_for_each(|collector| binder.collect_value(collector))
        });
        self.replaced.truncate(before);
        let (collect, ()) = collect?;

        let list = self.name("groups");
        let has_last = self.name("has_last");
        let (mut differs, mut begin) = (vec![tree::not(tree::variable(&has_last))], Block::new());
        let (mut group, mut gathered) = (Vec::new(), Gathered::default());
        for field in &fields[..count] {
            let last = self.name("last");
            let ty = tree::scalar_type(field.data_type, true);
            self.emit(tree::declare(&last, true, Some(ty), tree::typed_null(field.data_type)));
            differs.push(tree::binary(Op::IsDistinct, field.expression.clone(), tree::variable(&last)));
            begin.push(tree::assign(&last, field.expression.clone()));
            group.push(Bound { expression: tree::variable(last), nullable: true, ..field.clone() });
        }
        for collector in &mut groups.collectors {
            let Some(result) = collector.result.clone() else { return beyond("an aggregate over no rows") };
            begin.extend(collector.declaration.iter().filter_map(beginning));
            self.block.append(&mut collector.declaration);
            group.push(result);
        }
        begin.push(tree::assign(&has_last, tree::boolean(true)));
        let (end, ()) = self.nested(|binder| gathered.add(binder, &list, &[], group.clone()))?;
        self.emit(tree::declare(&has_last, true, None, tree::boolean(false)));
        self.emit(tree::declare_list(&list, gathered.fields()));
        let end = tree::when(tree::variable(&has_last), end, None);
        let next = std::iter::once(end.clone()).chain(begin).collect();
        let turn = std::iter::once(tree::when(tree::any(differs), next, None)).chain(collect).collect();
        self.emit(tree::for_list(each, rows, turn));
        self.emit(end);
        Ok(Listed { list, values: group, gathered })
    }

    /// What is done for each group that there is to be, in order.
    fn shown_groups(
        &mut self,
        groups: &Groups,
        listed: &Listed,
        is_distinct: bool,
        window: &Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<()> {
        let (element, scope) = (self.name("group"), self.scopes.len() - 1);
        let fields = listed.gathered.elements(&element, listed.values.clone());
        let calls = groups.collectors.iter().map(|collector| Expr::Function(collector.call.clone()));
        let written = groups.keys.iter().cloned().chain(calls).zip(fields);
        self.replaced.extend(written.map(|(written, field)| (written, field, scope)));
        let mut rows = |binder: &mut Binder<'a>, act: &mut Body<'_, 'a>| -> Bind<()> {
            let (block, ()) = binder.nested(|binder| {
                let having = groups.select.having.as_ref();
                let having = having.map(|having| binder.condition(having, "HAVING")).transpose()?;
                let (block, ()) = binder.nested(|binder| binder.repeated(|binder| act(binder)))?;
                match having {
                    Some(having) => binder.emit(tree::when(having, block, None)),
                    None => binder.block.extend(block),
                }
                Ok(())
            })?;
            binder.emit(tree::for_list(&element, &listed.list, block));
            Ok(())
        };
        if is_distinct || !groups.order.is_empty() {
            let wanted = Sorting { select: &groups.select, order: &groups.order, is_distinct };
            return self.in_order(&wanted, window, &mut rows, body);
        }
        let (taken, skipped) = (self.name("taken"), self.name("skipped"));
        let has_window = window.limit.is_some() || window.offset.is_some();
        if has_window {
            self.declare_window(window, &taken, &skipped);
        }
        rows(self, &mut |binder| {
            let (columns, values) = binder.projection(&groups.select)?;
            match has_window {
                false => body(binder, &columns, values),
                true => binder.windowed(window, &taken, &skipped, |binder| body(binder, &columns, values)),
            }
        })
    }
}

/// What a declaration gives its variable at first, as an assignment.
fn beginning(declaration: &Statement) -> Option<Statement> {
    match &declaration.kind {
        StatementKind::Let { name, value, .. } => Some(tree::assign(&name.text, value.clone())),
        _ => None,
    }
}
