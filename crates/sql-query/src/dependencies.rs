//! Groups and elements of arrays claim only what their columns determine.
//!
//! DataFusion 55 carries what columns of an aggregate's input determine over it. If all columns that determine something
//! are grouped by, the aggregate claims that they determine all of its output, and are there once, whatever else is
//! grouped by: of `SELECT DISTINCT t.a, d.b FROM t CROSS JOIN (SELECT DISTINCT b FROM u) d` it says that `b` determines
//! `a`. So it does with what has a row for each element of an array: what was there once is said to be so still. Rules
//! believe it: they drop keys of `ORDER BY` and of `GROUP BY`, and `DISTINCT`. Such a column is computed here, by a
//! function that gives it back, and what is computed determines nothing.

use crate::functions::operator::perhaps;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// A rule that makes aggregates, of which none is seen, by this rule or another, before its claims are true.
#[derive(Debug)]
pub(super) struct TrueAtOnce(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for TrueAtOnce {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        self.0.rewrite(plan, config)?.transform_data(|plan| TrueDependencies.rewrite(plan, config))
    }
}

/// The rule that computes such keys.
#[derive(Debug)]
pub(super) struct TrueDependencies;

impl OptimizerRule for TrueDependencies {
    fn name(&self) -> &str {
        "true_dependencies"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let aggregate = match &plan {
            LogicalPlan::Aggregate(aggregate) => aggregate,
            LogicalPlan::Unnest(_) => return elements_of_modest(plan),
            _ => return Ok(Transformed::no(plan)),
        };
        let believed = believed_too_much(aggregate);
        if believed.is_empty() {
            return Ok(Transformed::no(plan));
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
        Ok(Transformed::yes(LogicalPlan::Projection(projection)))
    }
}

/// A row for each element of arrays in rows that determine nothing.
fn elements_of_modest(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let [input] = plan.inputs()[..] else { return Ok(Transformed::no(plan)) };
    let schema = input.schema();
    let claims = schema.functional_dependencies().iter();
    let firsts: Vec<usize> = claims.filter_map(|claim| claim.source_indices.first().copied()).collect();
    if firsts.is_empty() {
        return Ok(Transformed::no(plan));
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
    let elements = plan.with_new_exprs(plan.expressions(), vec![LogicalPlan::Projection(modest)])?;
    Ok(Transformed::yes(elements))
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
