//! Aggregates over all rows of a query, without groups.

use super::binder::Binder;
use super::bound::Bound;
use super::condition::{conditions, each_outside_queries};
use super::from::{self, From, Order};
use super::query_facts::QueryFacts;
use super::row_body::RowBody;
use super::scope::Found;
use super::stop::{Bind, Place, beyond};
use super::tree;
use fabius_program::syntax::tree::{Block, Expression};
use fabius_sql_meaning::analysis::{self, BackEnd, Called, WrittenCall};
use fabius_sql_meaning::catalog::column_path;
use fabius_sql_meaning::functions::aggregate::Aggregate;
use fabius_sql_meaning::functions::{Body, FUNCTIONS, Kind};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{self, Category, category, looks_different};
use fabius_value::DataType;
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr};
use std::ops::ControlFlow;

/// Whether an expression has an aggregate that is not a subquery's.
pub(super) fn has_aggregate(expression: &Expr) -> bool {
    let mut found = false;
    each_function(expression, &mut |function| found |= is_aggregate(function));
    found
}

fn is_aggregate(function: &ast::Function) -> bool {
    WrittenCall::of(function).is_ok_and(|call| call.is_of_rows())
}

/// Aggregates that a program collects at most: each is looked for among the others.
const CALLS: usize = 400;

/// Calls of functions outside subqueries.
fn each_function(expression: &Expr, act: &mut dyn FnMut(&ast::Function)) {
    each_outside_queries(expression, &mut |part| {
        if let Expr::Function(function) = part {
            act(function);
        }
    });
}

/// Adds the calls of aggregates in an expression that are not there yet.
pub(super) fn add_calls(expression: &Expr, calls: &mut Vec<ast::Function>) -> Bind<()> {
    each_function(expression, &mut |function| {
        if is_aggregate(function) && calls.len() <= CALLS && !calls.contains(function) {
            calls.push(function.clone());
        }
    });
    if calls.len() > CALLS { beyond("so many aggregates") } else { Ok(()) }
}

/// What collects an aggregate's value.
pub(super) struct Collector {
    pub(super) call: ast::Function,
    pub(super) aggregate: Aggregate,
    pub(super) is_distinct: bool,
    /// What it is of; all rows are counted without one.
    pub(super) argument: Option<Expr>,
    /// The variable, or the list of distinct values.
    name: String,
    pub(super) result: Option<Bound>,
    pub(super) declaration: Block,
}

impl<'a> Binder<'a> {
    pub(super) fn aggregated(
        &mut self,
        select: &ast::Select,
        window: super::row_body::Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<QueryFacts> {
        let mut calls: Vec<ast::Function> = Vec::new();
        for item in &select.projection {
            let (ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                return beyond("a wildcard beside aggregates");
            };
            add_calls(expr, &mut calls)?;
        }
        if let Some(having) = &select.having {
            add_calls(having, &mut calls)?;
        }
        let mut collectors = Vec::new();
        for call in calls {
            collectors.push(self.collector(call)?);
        }
        let (scope, joined) = self.relations(None, &select.from)?;
        let relations = scope.relations.clone();
        self.with_names(scope, |binder| {
            let mut from = binder.from(&joined, select.selection.as_ref());
            for argument in collectors.iter().filter_map(|collector| collector.argument.as_ref()) {
                binder.stop_if_of_outer_rows(argument)?;
            }
            let ends = match collectors.len() {
                1 => None,
                _ => binder.each_by_index_end(&from, &mut collectors, &relations)?,
            };
            let block = match ends {
                Some((block, found)) => {
                    from.found = found;
                    block
                }
                None => {
                    binder.by_index_end(&mut from, &collectors, &relations)?;
                    binder.nested(|binder| binder.collect_all(&mut from, &mut collectors))?.0
                }
            };
            for collector in &mut collectors {
                if collector.result.is_none() {
                    return beyond("an aggregate over no rows");
                }
                binder.block.append(&mut collector.declaration);
            }
            binder.block.extend(block);
            let before = binder.replaced.len();
            for collector in &collectors {
                if let Some(result) = &collector.result {
                    let call = Expr::Function(collector.call.clone());
                    binder.replaced.push((call, result.clone(), binder.scopes.len() - 1));
                }
            }
            let done = binder.aggregated_row(select, &window, body);
            binder.replaced.truncate(before);
            done?;
            Ok(QueryFacts { is_single: true, ..from.found.facts() })
        })
    }

    /// Stops at an aggregate whose argument names columns of queries around this one only: it is over the rows of
    /// those.
    pub(super) fn stop_if_of_outer_rows(&self, argument: &Expr) -> Bind<()> {
        if self.scopes.len() < 2 {
            return Ok(());
        }
        let mut innermost = None;
        let stopped = ast::visit_expressions(argument, |part| {
            if matches!(part, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. }) {
                return ControlFlow::Break(beyond("an aggregate of a subquery within a subquery"));
            }
            let Some(path) = column_path(part) else { return ControlFlow::Continue(()) };
            match self.lookup(&path, Place::of(part)) {
                Ok(Some(Found::Column { out, .. })) => {
                    innermost = Some(innermost.map_or(out, |least: usize| least.min(out)));
                    ControlFlow::Continue(())
                }
                Ok(_) => ControlFlow::Continue(()),
                Err(stop) => ControlFlow::Break(Err(stop)),
            }
        });
        match (stopped, innermost) {
            (ControlFlow::Break(stop), _) => stop,
            (_, Some(1..)) => beyond("an aggregate over the rows of a query around it"),
            _ => Ok(()),
        }
    }

    fn aggregated_row(
        &mut self,
        select: &ast::Select,
        window: &super::row_body::Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<()> {
        let having = match &select.having {
            Some(having) => Some(self.condition(having, "HAVING")?),
            None => None,
        };
        let (row, ()) = self.nested(|binder| {
            let (columns, values) = binder.projection(select)?;
            body(binder, &columns, values)
        })?;
        let zero = || tree::integer(0);
        let mut conditions: Vec<Expression> = having.into_iter().collect();
        if let Some(limit) = &window.limit {
            let some = tree::binary(fabius_program::ir::BinaryOperator::Greater, limit.clone(), zero());
            conditions.push(tree::call("coalesce", vec![some, tree::boolean(true)]));
        }
        if let Some(offset) = &window.offset {
            let none = tree::binary(fabius_program::ir::BinaryOperator::LessEqual, offset.clone(), zero());
            conditions.push(tree::call("coalesce", vec![none, tree::boolean(true)]));
        }
        if conditions.is_empty() {
            self.block.extend(row);
        } else {
            self.emit(tree::when(tree::all(conditions), row, None));
        }
        Ok(())
    }

    pub(super) fn collector(&mut self, call: ast::Function) -> Bind<Collector> {
        let written = WrittenCall::of(&call)?;
        let name = written.path().pop().unwrap_or_default();
        let is_plain = written.called() == Some(Called::Aggregate)
            && written.over.is_none()
            && written.filter.is_none()
            && written.within_group.is_empty()
            && written.order_by.is_empty();
        let argument = match written.arguments {
            _ if is_plain && written.is_of_whole_rows() && !written.is_distinct => None,
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] if is_plain => Some(argument.clone()),
            _ => return beyond("an aggregate of this form"),
        };
        let overloads = FUNCTIONS.get(&name).map(Vec::as_slice).unwrap_or_default();
        let Some(Body::Aggregate(aggregate)) = overloads.first().map(|definition| definition.body) else {
            return beyond(format!("aggregate {name}"));
        };
        let is_there = match (aggregate, written.is_distinct) {
            (Aggregate::Count | Aggregate::Minimum | Aggregate::Maximum | Aggregate::Truth { .. }, _) => true,
            (Aggregate::Sum | Aggregate::Average, is_distinct) => !is_distinct,
            _ => false,
        };
        if !is_there || argument.is_none() && aggregate != Aggregate::Count {
            return beyond(format!("aggregate {name}"));
        }
        let (is_distinct, name) = (written.is_distinct, self.name("sum"));
        let declaration = Block::new();
        Ok(Collector { call, aggregate, is_distinct, argument, name, result: None, declaration })
    }

    /// Takes the values of all rows in.
    fn collect_all(&mut self, from: &mut From, collectors: &mut [Collector]) -> Bind<()> {
        self.loops(from, &mut |binder| {
            collectors.iter_mut().try_for_each(|collector| binder.collect_value(collector))
        })
    }

    /// Several aggregates that are each at an end of an index, one after the other; `None` if one is not.
    fn each_by_index_end(
        &mut self,
        from: &From,
        collectors: &mut [Collector],
        relations: &[super::scope::Relation],
    ) -> Bind<Option<(Block, from::Found)>> {
        let mark = self.mark();
        let (mut all, mut found) = (Block::new(), None);
        for collector in collectors.chunks_mut(1) {
            let mut alone = from.clone();
            self.by_index_end(&mut alone, collector, relations)?;
            if alone.limit.is_none() {
                self.back_to(mark);
                return Ok(None);
            }
            let (block, ()) = self.nested(|binder| binder.collect_all(&mut alone, collector))?;
            if !alone.found.is_limited {
                self.back_to(mark);
                return Ok(None);
            }
            all.extend(block);
            found = Some(alone.found);
        }
        Ok(found.map(|found| (all, found)))
    }

    /// `min(x)` or `max(x)` alone goes along an index that begins with x: the least is first, the greatest last.
    fn by_index_end(
        &mut self,
        from: &mut From,
        collectors: &[Collector],
        relations: &[super::scope::Relation],
    ) -> Bind<()> {
        let [
            Collector {
                aggregate: aggregate @ (Aggregate::Minimum | Aggregate::Maximum),
                argument: Some(argument),
                ..
            },
        ] = collectors
        else {
            return Ok(());
        };
        let Some(path) = column_path(argument) else { return Ok(()) };
        let [relation] = relations else { return Ok(()) };
        if let Some(Found::Column { out: 0, relation: 0, column }) =
            self.lookup(&path, Place::of(argument))?
        {
            let nullable = relation.table.as_ref().is_none_or(|table| table.columns[column].nullable);
            let descending = *aggregate == Aggregate::Maximum;
            if nullable && descending {
                // Nulls are in front of the greatest.
                let names = self.scopes.last().map(|scope| scope.names.clone()).unwrap_or_default();
                from.conditions
                    .extend(conditions(Some(&Expr::IsNotNull(Box::new(argument.clone()))), &names));
            }
            from.order = Some(Order { relation: 0, columns: vec![column], descending });
            from.limit = Some(tree::cast(tree::integer(1), DataType::BigInt));
            from.only_ordered_limit = true;
        }
        Ok(())
    }

    /// Takes the current row's value in.
    pub(super) fn collect_value(&mut self, collector: &mut Collector) -> Bind<()> {
        let bigint = DataType::BigInt;
        let one = || tree::cast(tree::integer(1), DataType::BigInt);
        let name = collector.name.clone();
        let declare = |data_type: DataType, nullable: bool, value: Expression| {
            tree::declare(&name, true, Some(tree::scalar_type(data_type, nullable)), value)
        };
        let zero = || tree::cast(tree::integer(0), DataType::BigInt);
        let Some(argument) = &collector.argument else {
            self.emit(tree::add(&name, one()));
            collector.declaration = vec![declare(bigint, false, zero())];
            collector.result = Some(Bound::computed(tree::variable(&name), SqlType::BigInt, false));
            return Ok(());
        };
        let value = self.operand(argument)?;
        let written = WrittenCall::of(&collector.call)?;
        let called = written.path().pop().unwrap_or_default();
        let definition = analysis::call_of_rows(self, &called, &written, std::slice::from_ref(&value))
            .map_err(|stop| self.stopped_at(stop, argument))?;
        let value = self.as_operand(value, &definition.parameters[0])?;
        let value = self.settle(value)?;
        let (sql_type, held) = (value.sql_type.clone(), value.data_type);
        let (statement, declaration, result) = match collector.aggregate {
            Aggregate::Count if collector.is_distinct && looks_different(&sql_type) => {
                return beyond("DISTINCT of this type");
            }
            Aggregate::Count if !collector.is_distinct => {
                let add = tree::add(&name, one());
                let add = match value.nullable {
                    true => tree::when(tree::is_null(value.expression, true), vec![add], None),
                    false => add,
                };
                let result = Bound::computed(tree::variable(&name), SqlType::BigInt, false);
                (add, declare(bigint, false, zero()), result)
            }
            Aggregate::Count => {
                let values = tree::column(tree::loop_row(&name), "c1", false);
                let result = Bound::computed(tree::distinct_call("count", values), SqlType::BigInt, false);
                (
                    tree::append(&name, vec![value.expression.clone()]),
                    tree::declare_list(&name, vec![tree::field("c1", held, value.nullable)]),
                    result,
                )
            }
            Aggregate::Sum | Aggregate::Average if category(&sql_type) == Category::Interval => {
                return beyond("an interval that is computed");
            }
            Aggregate::Sum => {
                let Kind::Is(to) = definition.returns.clone() else { return beyond("this sum") };
                let wide = match &to {
                    SqlType::BigInt => bigint,
                    SqlType::Numeric(_) => DataType::Numeric { precision: 38, scale: held.scale() },
                    _ => DataType::Double,
                };
                let so_far =
                    tree::call("coalesce", vec![tree::variable(&name), tree::cast(tree::integer(0), wide)]);
                let term = tree::cast(value.expression.clone(), wide);
                let sum = tree::binary(fabius_program::ir::BinaryOperator::Add, so_far, term);
                let add = tree::assign(&name, tree::cast(sum, wide));
                let add = match value.nullable {
                    true => tree::when(tree::is_null(value.expression, true), vec![add], None),
                    false => add,
                };
                let result = Bound::held_as(tree::variable(&name), to, true, wide);
                (add, declare(wide, true, tree::null()), result)
            }
            Aggregate::Average => {
                let is_double = held == DataType::Double;
                if self.lifts && !is_double {
                    return beyond("an average of exact numbers");
                }
                let (to, wide) = match is_double {
                    true => (SqlType::Double, DataType::Double),
                    false => {
                        let scale = (held.scale() + 6).min(16).max(held.scale());
                        (SqlType::Numeric(None), DataType::Numeric { precision: 38, scale })
                    }
                };
                let values = tree::column(tree::loop_row(&name), "c1", false);
                let result = Bound::held_as(tree::call("avg", vec![values]), to, true, wide);
                let field = tree::field("c1", held, value.nullable);
                (tree::append(&name, vec![value.expression]), tree::declare_list(&name, vec![field]), result)
            }
            Aggregate::Minimum | Aggregate::Maximum => {
                if matches!(category(&sql_type), Category::Interval | Category::Array) {
                    return beyond(format!("the least or greatest value of type {sql_type}"));
                }
                let to = match &sql_type {
                    SqlType::VarChar(_) | SqlType::Name => SqlType::Text,
                    other => type_rules::without_modifiers(other),
                };
                let function = if collector.aggregate == Aggregate::Minimum { "least" } else { "greatest" };
                let best = tree::call(function, vec![tree::variable(&name), value.expression]);
                let result = Bound::held_as(tree::variable(&name), to, true, held);
                (tree::assign(&name, best), declare(held, true, tree::null()), result)
            }
            Aggregate::Truth { is_of_all: all } => {
                let so_far = tree::call("coalesce", vec![tree::variable(&name), tree::boolean(all)]);
                let both = if all {
                    tree::all([so_far, value.expression.clone()])
                } else {
                    tree::any([so_far, value.expression.clone()])
                };
                let take =
                    tree::when(tree::is_null(value.expression, true), vec![tree::assign(&name, both)], None);
                let result = Bound::computed(tree::variable(&name), SqlType::Boolean, true);
                (take, declare(DataType::Boolean, true, tree::null()), result)
            }
            _ => return beyond(format!("aggregate {called}")),
        };
        self.emit(statement);
        collector.declaration = vec![declaration];
        collector.result = Some(Bound { origin: (0, 0), ..result });
        Ok(())
    }
}
