//! `GROUP BY`: keys, grouping sets, and what a query says of its groups.

use super::scope::{Selected, has_column};
use super::{Binder, Typed};
use crate::failure::{inbound, no_aggregates_in, unsupported};
use crate::functions::operator::perhaps;
use crate::outer_reference::references;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::find_aggregate_exprs;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use fabius_sql_meaning::analysis::{ListItem, list_item, place_of_name};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::looks_different;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::HashMap;

/// Elements of `CUBE`, at most: each doubles the number of groupings.
const CUBE: usize = 12;
/// Groupings of one `SELECT`, at most.
const GROUPING_SETS: usize = 4096;

/// What `GROUP BY` says.
#[derive(Default)]
pub(super) struct Groups {
    pub keys: Vec<Expr>,
    /// The keys whose equal values may look different, with their types.
    unlike: Vec<(Expr, SqlType)>,
}

impl Binder<'_> {
    /// The grouping expressions; `None` without `GROUP BY`.
    pub(super) fn groups(
        &mut self,
        group_by: &ast::GroupByExpr,
        selected: &[Selected],
    ) -> Result<Option<Groups>> {
        let expressions = match group_by {
            ast::GroupByExpr::All(_) => return Err(unsupported("GROUP BY ALL is not supported")),
            ast::GroupByExpr::Expressions(expressions, modifiers) => {
                if !modifiers.is_empty() {
                    return Err(unsupported("this form of GROUP BY is not supported"));
                }
                expressions
            }
        };
        if expressions.is_empty() {
            return Ok(None);
        }
        self.set_clause(Some("GROUP BY"));
        let (mut groups, mut unlike) = (Vec::with_capacity(expressions.len()), Vec::new());
        for expression in expressions {
            groups.push(match expression {
                ast::Expr::Rollup(parts) => {
                    self.combined(parts, selected, GroupingSet::Rollup, &mut unlike)?
                }
                ast::Expr::Cube(sets) if sets.len() > CUBE => {
                    let message = format!("CUBE is limited to {CUBE} elements");
                    return Err(Error::new(SqlState(*b"54011"), message));
                }
                ast::Expr::Cube(parts) => self.combined(parts, selected, GroupingSet::Cube, &mut unlike)?,
                ast::Expr::GroupingSets(sets) => {
                    let sets = sets.iter().map(|set| {
                        let set =
                            set.iter().map(|expression| self.group_key(expression, selected, &mut unlike));
                        set.collect::<Result<Vec<_>>>()
                    });
                    Expr::GroupingSet(GroupingSet::GroupingSets(sets.collect::<Result<Vec<_>>>()?))
                }
                ast::Expr::Tuple(values) if values.is_empty() => continue,
                ast::Expr::Tuple(values) => {
                    for value in values {
                        groups.push(self.group_key(value, selected, &mut unlike)?);
                    }
                    continue;
                }
                expression => self.group_key(expression, selected, &mut unlike)?,
            });
        }
        self.set_clause(None);
        // Those of several clauses are combined, each with each.
        let sets = groups.iter().fold(1usize, |sets, group| {
            sets.saturating_mul(match group {
                Expr::GroupingSet(GroupingSet::Rollup(keys)) => keys.len() + 1,
                Expr::GroupingSet(GroupingSet::Cube(keys)) => 1 << keys.len(),
                Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.len(),
                _ => 1,
            })
        });
        if sets > GROUPING_SETS {
            return Err(too_many_sets());
        }
        Ok(Some(Groups { keys: groups, unlike }))
    }

    /// `ROLLUP` or `CUBE`; where several columns are one part of it, as the sets that it stands for.
    fn combined(
        &mut self,
        parts: &[Vec<ast::Expr>],
        selected: &[Selected],
        of: fn(Vec<Expr>) -> GroupingSet,
        unlike: &mut Vec<(Expr, SqlType)>,
    ) -> Result<Expr> {
        let mut keys = Vec::with_capacity(parts.len());
        for part in parts {
            let of_part = part.iter().map(|expression| self.group_key(expression, selected, unlike));
            keys.push(of_part.collect::<Result<Vec<_>>>()?);
        }
        if keys.iter().all(|part| part.len() == 1) {
            return Ok(Expr::GroupingSet(of(keys.concat())));
        }
        if keys.len() >= GROUPING_SETS {
            return Err(too_many_sets());
        }
        Ok(Expr::GroupingSet(GroupingSet::GroupingSets(sets_of(&keys, of))))
    }

    fn group_key(
        &mut self,
        expression: &ast::Expr,
        selected: &[Selected],
        unlike: &mut Vec<(Expr, SqlType)>,
    ) -> Result<Expr> {
        let typed = match list_item(expression, selected.len(), "GROUP BY")? {
            ListItem::Place(at) => of_list(&selected[at])?,
            ListItem::Name(name) => {
                // A column goes before the list's name, the other way round than in ORDER BY.
                let own = self.levels.last().map(|level| level.scope.clone()).unwrap_or_default();
                let is_column = !own.candidates(std::slice::from_ref(&name)).is_empty();
                let has_name = |entry: &Selected| entry.name == name;
                let are_same = |one: &Selected, other: &Selected| one.typed.expr == other.typed.expr;
                match is_column {
                    true => self.expression(expression)?,
                    false => match place_of_name(selected, has_name, are_same, (&name, "GROUP BY"))? {
                        Some(at) => of_list(&selected[at])?,
                        None => self.expression(expression)?,
                    },
                }
            }
            ListItem::Expression => self.expression(expression)?,
        };
        let typed = self.known(typed)?;
        if looks_different(&typed.sql_type) {
            unlike.push((typed.expr.clone(), typed.sql_type));
        }
        Ok(typed.expr)
    }

    /// A plan with computed keys as columns, which stand for them in all expressions.
    fn with_computed(
        &mut self,
        mut plan: LogicalPlan,
        computed: &[(Expr, Column)],
        all: &mut [&mut Expr],
    ) -> Result<LogicalPlan> {
        if computed.is_empty() {
            return Ok(plan);
        }
        let mut keys: Vec<Expr> = computed.iter().map(|(expr, _)| expr.clone()).collect();
        plan = self.spread_sets(plan, keys.iter_mut().collect())?;
        let mut expressions: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
        let columns = computed.iter().map(|(_, column)| column.name.clone());
        expressions.extend(keys.into_iter().zip(columns).map(|(key, name)| key.alias(name)));
        let columns = computed.iter().map(|(expr, column)| (expr, column)).collect();
        for expr in all {
            substitute(expr, &columns)?;
        }
        LogicalPlanBuilder::from(plan)
            .project(expressions)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)
    }

    /// Groups a plan; the expressions then are over its result.
    pub(super) fn group(
        &mut self,
        plan: LogicalPlan,
        Groups { keys: groups, unlike }: Groups,
        mut all: Vec<&mut Expr>,
        within: &[Column],
    ) -> Result<LogicalPlan> {
        let plan = super::input_order::order_aggregates(plan, &mut all)?;
        // Computed keys become columns first, so that they can be named.
        let mut computed: Vec<(Expr, Column)> = Vec::new();
        let mut settle = |binder: &mut Self, key: Expr| match key {
            Expr::Column(_) => key,
            other => match computed.iter().find(|(known, _)| *known == other) {
                Some((_, column)) => Expr::Column(column.clone()),
                None => {
                    let column = binder.fresh_column();
                    computed.push((other, column.clone()));
                    Expr::Column(column)
                }
            },
        };
        let mut keys = Vec::with_capacity(groups.len());
        for group in groups {
            keys.push(match group {
                Expr::GroupingSet(GroupingSet::Rollup(keys)) => {
                    grouping(keys.into_iter().map(|key| settle(self, key)).collect(), GroupingSet::Rollup)
                }
                Expr::GroupingSet(GroupingSet::Cube(keys)) => {
                    grouping(keys.into_iter().map(|key| settle(self, key)).collect(), GroupingSet::Cube)
                }
                Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                    let sets = sets
                        .into_iter()
                        .map(|set| once_each(set.into_iter().map(|key| settle(self, key)).collect()));
                    Expr::GroupingSet(GroupingSet::GroupingSets(sets.collect()))
                }
                key => {
                    let key = settle(self, key);
                    if keys.contains(&key) {
                        continue;
                    }
                    key
                }
            });
        }
        let settled = unlike.into_iter().map(|(key, sql_type)| (settle(self, key), sql_type));
        let unlike: Vec<(Column, SqlType)> = settled
            .filter_map(
                |(key, sql_type)| {
                    if let Expr::Column(column) = key { Some((column, sql_type)) } else { None }
                },
            )
            .collect();
        let plan = self.with_computed(plan, &computed, &mut all)?;
        let plan = self.represented(plan, &unlike)?;
        let aggregates = find_aggregate_exprs(all.iter().map(|expr| &**expr));
        // Each gets a name of its own: DataFusion's names leave conversions out, so that different ones meet.
        let mut named: Vec<(Expr, Column)> = Vec::with_capacity(aggregates.len());
        for aggregate in aggregates {
            let column = if is_grouping(&aggregate) {
                Column::new_unqualified(aggregate.schema_name().to_string())
            } else {
                self.fresh_column()
            };
            named.push((aggregate, column));
        }
        let columns = named.iter().map(|(expr, column)| (expr, column)).collect();
        for expr in &mut all {
            substitute(expr, &columns)?;
        }
        // Columns that are neither keys nor follow from them.
        let names: Vec<Column> = named.iter().map(|(_, column)| column.clone()).collect();
        let aggregates: Vec<Expr> = named
            .into_iter()
            .map(|(expr, column)| {
                let is_named_so = expr.schema_name().to_string() == column.name;
                if is_named_so { expr } else { expr.alias(column.name) }
            })
            .collect();
        let mut grouped: Vec<Column> = Vec::new();
        for key in &keys {
            grouped.extend(key.column_refs().into_iter().cloned());
        }
        if aggregates.iter().any(|aggregate| !groups_by(aggregate, &grouped)) {
            let message = "arguments to GROUPING must be grouping expressions of the associated query level";
            return Err(Error::new(SqlState(*b"42803"), message));
        }
        let scope = self.scope();
        for expr in &all {
            let asked = asked_within(expr);
            let asked = asked.iter().filter(|column| has_column(&scope, column));
            let own = expr.column_refs().into_iter().map(|column| (column, false));
            for (column, is_within) in own.chain(asked.map(|column| (column, true))) {
                if names.contains(column) || grouped.contains(column) || within.contains(column) {
                    continue;
                }
                let known = scope.columns.iter().find(|known| known.column.column == *column);
                let relation = known.map(|known| known.relation.clone()).unwrap_or_default();
                let mut of_key = scope
                    .columns
                    .iter()
                    .filter(|other| other.relation == relation && other.is_key)
                    .peekable();
                let follows =
                    of_key.peek().is_some() && of_key.all(|other| grouped.contains(&other.column.column));
                let has_sets = keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)));
                if !follows || has_sets {
                    let name = match known {
                        Some(known) => format!("\"{}.{}\"", relation, known.column.name),
                        None => format!("\"{}\"", column.name),
                    };
                    let message = match is_within {
                        true => format!("subquery uses ungrouped column {name} from outer query"),
                        false => format!(
                            "column {name} must appear in the GROUP BY clause or be used in an aggregate function"
                        ),
                    };
                    return Err(Error::new(SqlState(*b"42803"), message));
                }
                grouped.push(column.clone());
                keys.push(Expr::Column(column.clone()));
            }
        }
        let mut aggregates = aggregates;
        if keys.is_empty() && aggregates.is_empty() {
            // One group of all rows, of which nothing is asked.
            let one = Expr::Literal(datafusion::scalar::ScalarValue::Int64(Some(1)), None);
            let column = self.fresh_column();
            aggregates.push(datafusion::functions_aggregate::count::count(one).alias(column.name));
        }
        let groupings = groupings_among(&aggregates);
        let plan = LogicalPlanBuilder::from(plan).aggregate(keys, aggregates);
        apart(plan.and_then(LogicalPlanBuilder::build).map_err(inbound)?, &groupings)
    }
}

/// What `grouping` gives is computed from a number of the set, a column of which DataFusion loses track where an
/// expression of several of them is put into a window: they are computed before that.
fn apart(plan: LogicalPlan, groupings: &[String]) -> Result<LogicalPlan> {
    if groupings.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().map(|column| {
        match column.relation.is_none() && groupings.contains(&column.name) {
            true => {
                let name = column.name.clone();
                perhaps(Expr::Column(column), DataType::Int32).alias(name)
            }
            false => Expr::Column(column),
        }
    });
    let columns: Vec<Expr> = columns.filter(|column| !is_number_of_set(column)).collect();
    LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build).map_err(inbound)
}

fn groupings_among(aggregates: &[Expr]) -> Vec<String> {
    let groupings = aggregates.iter().filter(|aggregate| is_grouping(aggregate));
    groupings.map(|grouping| grouping.schema_name().to_string()).collect()
}

fn is_grouping(aggregate: &Expr) -> bool {
    match aggregate {
        Expr::Alias(alias) => is_grouping(&alias.expr),
        Expr::AggregateFunction(call) => call.func.name() == "grouping",
        _ => false,
    }
}

fn is_number_of_set(column: &Expr) -> bool {
    matches!(column, Expr::Column(column) if column.name == Aggregate::INTERNAL_GROUPING_ID)
}

/// Whether an aggregate is not `grouping`, or one of keys.
fn groups_by(aggregate: &Expr, keys: &[Column]) -> bool {
    match aggregate {
        Expr::Alias(alias) => groups_by(&alias.expr, keys),
        Expr::AggregateFunction(call) if call.func.name() == "grouping" => {
            let mut arguments = call.params.args.iter();
            arguments.all(|argument| matches!(argument, Expr::Column(column) if keys.contains(column)))
        }
        _ => true,
    }
}

/// An entry of the list as a key.
fn of_list(entry: &Selected) -> Result<Typed> {
    if entry.has_aggregate { Err(no_aggregates_in("GROUP BY")) } else { Ok(entry.typed.clone()) }
}

/// Keys, each once.
fn once_each(keys: Vec<Expr>) -> Vec<Expr> {
    let mut once = Vec::with_capacity(keys.len());
    for key in keys {
        if !once.contains(&key) {
            once.push(key);
        }
    }
    once
}

/// `ROLLUP` or `CUBE` of keys; where some are the same, as the sets that it stands for, each with its keys once.
fn grouping(keys: Vec<Expr>, of: fn(Vec<Expr>) -> GroupingSet) -> Expr {
    if once_each(keys.clone()).len() == keys.len() {
        return Expr::GroupingSet(of(keys));
    }
    let parts: Vec<Vec<Expr>> = keys.into_iter().map(|key| vec![key]).collect();
    let sets = sets_of(&parts, of).into_iter().map(once_each).collect();
    Expr::GroupingSet(GroupingSet::GroupingSets(sets))
}

/// The sets that `ROLLUP` or `CUBE` of parts stands for.
fn sets_of(parts: &[Vec<Expr>], of: fn(Vec<Expr>) -> GroupingSet) -> Vec<Vec<Expr>> {
    match of(Vec::new()) {
        GroupingSet::Rollup(_) => (0..=parts.len()).rev().map(|most| parts[..most].concat()).collect(),
        _ => {
            let chosen = |set: usize| {
                let of_set = parts.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
                of_set.flat_map(|(_, part)| part.clone()).collect::<Vec<_>>()
            };
            (0..1 << parts.len()).map(chosen).collect()
        }
    }
}

fn too_many_sets() -> Error {
    Error::new(SqlState(*b"54001"), format!("too many grouping sets present (maximum {GROUPING_SETS})"))
}

/// The columns of this query's rows, and of those around it, that subqueries of an expression ask for.
pub(super) fn asked_within(expr: &Expr) -> Vec<Column> {
    let mut columns = Vec::new();
    let _ = expr.apply(|part| {
        let subquery = match part {
            Expr::ScalarSubquery(subquery) => Some(subquery),
            Expr::Exists(exists) => Some(&exists.subquery),
            Expr::InSubquery(within) => Some(&within.subquery),
            _ => None,
        };
        columns.extend(subquery.into_iter().flat_map(|subquery| references(&subquery.subquery)));
        Ok(TreeNodeRecursion::Continue)
    });
    columns
}

fn substitute(expr: &mut Expr, computed: &HashMap<&Expr, &Column>) -> Result<()> {
    let taken = std::mem::take(expr);
    let changed = taken.transform_down(|expr| {
        Ok(match computed.get(&expr) {
            Some(column) => Transformed::new(Expr::Column((*column).clone()), true, TreeNodeRecursion::Jump),
            None => Transformed::no(expr),
        })
    });
    *expr = changed.map_err(inbound)?.data;
    Ok(())
}
