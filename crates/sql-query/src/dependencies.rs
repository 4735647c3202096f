//! Groups and elements of arrays claim only what their columns determine.
//!
//! DataFusion 55 carries what columns of an aggregate's input determine over it. If all columns that determine
//! something are grouped by, the aggregate claims that they determine all of its output, and are there once, whatever
//! else is grouped by: of `SELECT DISTINCT t.a, d.b FROM t CROSS JOIN (SELECT DISTINCT b FROM u) d` it says that `b`
//! determines `a`. So it does with what has a row for each element of an array: what was there once is said to be so
//! still. Rules believe it: they drop keys of `ORDER BY` and of `GROUP BY`, and `DISTINCT`. Such a column is computed
//! here, by a function that gives it back, and what is computed determines nothing.

use crate::amended_rule::Rule;
use crate::functions::operator::perhaps;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// A rule that makes aggregates, of which none is seen, by this rule or another, before its claims are true.
pub(super) fn make_modest(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    rule.rewrite(plan, config)?.transform_data(modest)
}

/// The rule that computes such columns.
#[derive(Debug)]
pub(super) struct TrueDependencies;

impl OptimizerRule for TrueDependencies {
    fn name(&self) -> &str {
        "true_dependencies"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        modest_within(plan)
    }
}

/// A plan all of whose nodes claim what holds: those above others that claim less do so too.
#[recursive::recursive]
fn modest_within(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let asked = plan.map_subqueries(modest_within)?;
    let inputs = asked.data.map_children(modest_within)?;
    let plan = match inputs.transformed {
        true => inputs.data.recompute_schema()?,
        false => inputs.data,
    };
    let own = modest(plan)?;
    let is_changed = asked.transformed || inputs.transformed || own.transformed;
    Ok(Transformed::new_transformed(own.data, is_changed))
}

/// A node that claims what holds, if its inputs do.
fn modest(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Aggregate(aggregate) => modest_groups(aggregate),
        LogicalPlan::Unnest(_) => modest_elements(&plan),
        _ => Ok(None),
    }
    .map(|modest| modest.map_or_else(|| Transformed::no(plan), Transformed::yes))
}

/// An aggregate whose groups claim what holds.
fn modest_groups(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let believed = believed_too_much(aggregate);
    if believed.is_empty() {
        return Ok(None);
    }
    let input = aggregate.input.schema();
    let mut keys = aggregate.group_expr.clone();
    for at in believed {
        let data_type = keys[at].to_field(input)?.1.data_type().clone();
        keys[at] = perhaps(keys[at].clone(), data_type);
    }
    let computed = Aggregate::try_new(aggregate.input.clone(), keys, aggregate.aggr_expr.clone())?;
    let shown = named_alike(&computed.schema, &aggregate.schema);
    let projection = Projection::try_new(shown, Arc::new(LogicalPlan::Aggregate(computed)))?;
    Ok(Some(LogicalPlan::Projection(projection)))
}

/// A row for each element of arrays, in rows that determine nothing.
fn modest_elements(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let [input] = plan.inputs()[..] else { return Ok(None) };
    let schema = input.schema();
    let claims = schema.functional_dependencies().iter();
    let firsts: Vec<usize> = claims.filter_map(|claim| claim.source_indices.first().copied()).collect();
    if firsts.is_empty() {
        return Ok(None);
    }
    let computed = schema.iter().enumerate().map(|(at, (relation, field))| {
        let column = Expr::Column(Column::from((relation, field)));
        match firsts.contains(&at) {
            true => {
                let given = perhaps(column, field.data_type().clone());
                given.alias_qualified(relation.cloned(), field.name())
            }
            false => column,
        }
    });
    let modest = Projection::try_new(computed.collect(), Arc::new(input.clone()))?;
    plan.with_new_exprs(plan.expressions(), vec![LogicalPlan::Projection(modest)]).map(Some)
}

/// The keys of an aggregate that it would say too much of, one for each claim.
fn believed_too_much(aggregate: &Aggregate) -> Vec<usize> {
    let keys = &aggregate.group_expr;
    if keys.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
        return Vec::new();
    }
    let input = aggregate.input.schema();
    let places: Vec<Option<usize>> = keys.iter().map(|key| place_in(input, key)).collect();
    let mut believed = Vec::new();
    for claim in input.functional_dependencies().iter() {
        let is_grouped = |place: &usize| places.contains(&Some(*place));
        let is_determined =
            |place: &Option<usize>| place.is_some_and(|place| claim.target_indices.contains(&place));
        if claim.source_indices.iter().all(is_grouped) && !places.iter().all(is_determined) {
            let first = claim.source_indices.first();
            believed.extend(places.iter().position(|place| place.as_ref() == first && first.is_some()));
        }
    }
    believed.sort_unstable();
    believed.dedup();
    believed
}

fn place_in(schema: &DFSchema, key: &Expr) -> Option<usize> {
    match key {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    }
}

/// All columns of a schema, with the names that they have in another.
fn named_alike(computed: &DFSchema, named: &DFSchema) -> Vec<Expr> {
    let columns = computed.columns().into_iter().zip(named.columns());
    let shown = columns.map(|(column, name)| {
        let is_same = column == name;
        let Column { relation, name, .. } = name;
        match is_same {
            true => Expr::Column(column),
            false => Expr::Column(column).alias_qualified(relation, name),
        }
    });
    shown.collect()
}
