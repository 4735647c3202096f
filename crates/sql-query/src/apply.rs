//! Subqueries that depend on the row around them, where no join can take their place.
//!
//! DataFusion turns most correlated subqueries into joins. What it cannot turn is run here once for each row of the
//! outer query, with the row's values in the place of references to them; rows with the same values share one run.
//!
//! ```text
//! Filter: a.x > (SELECT ... WHERE b.y < a.y LIMIT 1)      Filter: a.x > c7
//!   Scan a                                          =>      Apply c7 := (SELECT ... b.y < ?)
//!                                                             Scan a
//! ```

use crate::failure::{outbound, unsupported};
use crate::membership;
use crate::outer_reference::references;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, JoinType};
use datafusion::error::{DataFusionError, Result as FusionResult};
use datafusion::logical_expr::{
    Expr, Extension, InvariantLevel, Join, LogicalPlan, LogicalPlanBuilder, Operator, UserDefinedLogicalNode,
};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What is wanted of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub(super) enum Wanted {
    /// The subquery's one value, or null.
    Value,
    /// Whether it has rows.
    Existence,
    /// All of its rows, each with the outer row before it; `true` keeps an outer row without any.
    Rows(bool),
}

/// The node of the logical plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Apply {
    pub(super) input: LogicalPlan,
    pub(super) subquery: LogicalPlan,
    pub(super) wanted: Wanted,
    /// A column of the input that says of which rows the answer is asked for.
    pub(super) guard: Option<Column>,
    pub(super) schema: DFSchemaRef,
}

impl Hash for Apply {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.subquery.hash(state);
        self.wanted.hash(state);
        self.guard.hash(state);
    }
}

impl Apply {
    fn node(
        input: LogicalPlan,
        subquery: LogicalPlan,
        (wanted, guard): (Wanted, Option<Column>),
        column: &str,
    ) -> FusionResult<LogicalPlan> {
        let mut fields: Vec<(Option<datafusion::common::TableReference>, Arc<Field>)> =
            input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect();
        match wanted {
            Wanted::Value => {
                let data_type =
                    subquery.schema().fields().first().map_or(DataType::Null, |f| f.data_type().clone());
                fields.push((None, Arc::new(Field::new(column, data_type, true))));
            }
            Wanted::Existence => fields.push((None, Arc::new(Field::new(column, DataType::Boolean, true)))),
            Wanted::Rows(_) => fields.extend(
                subquery
                    .schema()
                    .iter()
                    .map(|(q, field)| (q.cloned(), Arc::new(field.as_ref().clone().with_nullable(true)))),
            ),
        }
        let schema = Arc::new(DFSchema::new_with_metadata(fields, HashMap::new())?);
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(Apply { input, subquery, wanted, guard, schema }),
        }))
    }
}

impl UserDefinedLogicalNode for Apply {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> &str {
        "Apply"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn check_invariants(&self, _: InvariantLevel) -> FusionResult<()> {
        Ok(())
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// Conditions on the input's own columns go below: what they leave out is not asked about.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let own = self.input.schema().fields().len();
        self.schema.fields().iter().skip(own).map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply: {:?}", self.wanted)
    }

    fn with_exprs_and_inputs(
        &self,
        _: Vec<Expr>,
        inputs: Vec<LogicalPlan>,
    ) -> FusionResult<Arc<dyn UserDefinedLogicalNode>> {
        let mut changed = self.clone();
        if let Some(input) = inputs.into_iter().next() {
            changed.input = input;
        }
        Ok(Arc::new(changed))
    }

    fn dyn_hash(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn dyn_eq(&self, other: &dyn UserDefinedLogicalNode) -> bool {
        other.as_any().downcast_ref::<Apply>() == Some(self)
    }

    fn dyn_ord(&self, other: &dyn UserDefinedLogicalNode) -> Option<std::cmp::Ordering> {
        let other = other.as_any().downcast_ref::<Apply>()?;
        self.input.partial_cmp(&other.input)
    }
}

/// Whether anything is left in a plan that DataFusion's operators cannot run: references to outer rows, conditions on
/// subqueries that no join has taken the place of, and what is lateral, also if it turns out to have no rows.
pub(super) fn is_left(plan: &LogicalPlan) -> bool {
    let mut found = plan.exists(|node| Ok(matches!(node, LogicalPlan::Subquery(_)))).unwrap_or(true);
    let _ = plan.apply_with_subqueries(|node| {
        found |= node.contains_outer_reference();
        node.apply_expressions(|expr| {
            found |= expr.exists(|expr| {
                Ok(match expr {
                    Expr::Exists(_) | Expr::InSubquery(_) => true,
                    Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
                    _ => false,
                })
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    });
    found
}

/// Replaces subqueries by an [`Apply`]. Those within stay as they are: they may be about rows further out, and are
/// unfolded when their own turn comes.
pub(super) fn unfold(plan: LogicalPlan) -> FusionResult<LogicalPlan> {
    let mut next = 0;
    // What is lateral stands among a join's inputs, and is a subquery too.
    let pass_over = |node: LogicalPlan| {
        Ok(match node {
            LogicalPlan::Subquery(_) => Transformed::new(node, false, TreeNodeRecursion::Jump),
            _ => Transformed::no(node),
        })
    };
    plan.transform_down_up(pass_over, |node| unfold_node(node, &mut next)).map(|changed| changed.data)
}

fn unfold_node(node: LogicalPlan, next: &mut usize) -> FusionResult<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = &node
        && let Some(mut subquery) = lateral(&join.right)
        && matches!(join.join_type, JoinType::Inner | JoinType::Left)
    {
        let keep = join.join_type == JoinType::Left;
        // An outer join's condition belongs to the subquery, with the outer row's columns as references.
        if let Some(filter) = &join.filter {
            let left = join.left.schema().clone();
            let filter = filter.clone().transform(|expr| {
                Ok(match &expr {
                    Expr::Column(column) if left.has_column(column) => {
                        let field = Arc::clone(left.qualified_field_from_column(column)?.1);
                        Transformed::yes(Expr::OuterReferenceColumn(field, column.clone()))
                    }
                    _ => Transformed::no(expr),
                })
            })?;
            subquery = LogicalPlanBuilder::from(subquery).filter(filter.data)?.build()?;
        }
        let left = join.left.as_ref().clone();
        return Apply::node(left, subquery, (Wanted::Rows(keep), None), "").map(Transformed::yes);
    }
    let expressions = node.expressions();
    let mut found = Found::default();
    let changed: Vec<Expr> = expressions
        .into_iter()
        .map(|expr| {
            let name = expr.schema_name().to_string();
            let changed = take_all_out(expr, None, &mut found, next)?;
            Ok(if changed.transformed && has_outputs(&node) {
                named(changed.data, name)
            } else {
                changed.data
            })
        })
        .collect::<FusionResult<_>>()?;
    if found.applied.is_empty() && found.members.is_empty() {
        return Ok(Transformed::no(node));
    }
    let mut inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
    let Found { applied: mut found, members } = found;
    let mut beside = Vec::with_capacity(members.len());
    for (column, set, sought) in members {
        let columns = sought.column_refs();
        let has_all = |input: &LogicalPlan| columns.iter().all(|column| input.schema().has_column(column));
        match inputs.iter().position(has_all) {
            Some(side) => beside.push((side, column, set, sought)),
            None => found.push((column, equals(&set, &sought)?, Wanted::Existence, None)),
        }
    }
    if let (LogicalPlan::Join(join), [left, right]) = (&node, inputs.as_slice())
        && found.iter().any(|(_, subquery, ..)| is_about(subquery, left) && is_about(subquery, right))
    {
        return unfold_condition(join, next);
    }
    let before = match inputs.as_slice() {
        [input] => input.schema().clone(),
        _ => node.schema().clone(),
    };
    for (side, column, set, sought) in beside {
        if let Some(input) = inputs.get_mut(side) {
            *input = membership::beside(input.clone(), &set, sought, &column)?;
        }
    }
    for (column, subquery, wanted, guard) in found {
        // Of a join, the side whose rows it is about.
        let side = inputs.iter().position(|input| is_about(&subquery, input)).unwrap_or(0);
        let input = inputs
            .get_mut(side)
            .ok_or_else(|| outbound(unsupported("a subquery in a plan without input is not supported")))?;
        let guard = guard.filter(|guard| {
            let columns = guard.column_refs();
            columns.into_iter().all(|column| input.schema().has_column(column))
        });
        let (guarded, guard) = match guard {
            None => (input.clone(), None),
            Some(condition) => {
                let name = format!("if {column}");
                let mut columns: Vec<Expr> = input.schema().iter().map(Expr::from).collect();
                columns.push(condition.alias(name.clone()));
                let plan = LogicalPlanBuilder::from(input.clone()).project(columns)?.build()?;
                (plan, Some(Column::new_unqualified(name)))
            }
        };
        *input = Apply::node(guarded, subquery, (wanted, guard), &column)?;
    }
    let is_transparent = matches!(
        node,
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::Join(_)
    );
    let plan = node.with_new_exprs(changed, inputs)?;
    if !is_transparent {
        return Ok(Transformed::yes(plan));
    }
    let columns: Vec<Expr> = before.iter().map(Expr::from).collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build().map(Transformed::yes)
}

/// Whether a plan's expressions are columns of its result, which go by their names.
pub(super) fn has_outputs(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_))
}

/// An expression under the name that it had.
pub(super) fn named(expr: Expr, name: String) -> Expr {
    match expr {
        Expr::Alias(_) => expr,
        other => other.alias(name),
    }
}

/// Whether a subquery asks for columns of a plan's rows.
fn is_about(subquery: &LogicalPlan, plan: &LogicalPlan) -> bool {
    references(subquery).iter().any(|column| plan.schema().has_column(column))
}

/// An inner join whose condition has a subquery about rows of both sides: all pairs, filtered.
fn unfold_condition(join: &Join, next: &mut usize) -> FusionResult<Transformed<LogicalPlan>> {
    if join.join_type != JoinType::Inner {
        return Err(outbound(unsupported(
            "a subquery about both sides in the condition of an outer join is not supported",
        )));
    }
    let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let condition = equal.chain(join.filter.clone()).reduce(Expr::and);
    let pairs =
        LogicalPlanBuilder::from(join.left.as_ref().clone()).cross_join(join.right.as_ref().clone())?;
    let filter = match condition {
        Some(condition) => pairs.filter(condition)?,
        None => pairs,
    };
    unfold_node(filter.build()?, next)
}

fn lateral(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Subquery(subquery) => Some(subquery.subquery.as_ref().clone()),
        _ => None,
    }
}

/// A column for an answer, the subquery, what is wanted of it, and the condition under which it is asked.
type Applied = (String, LogicalPlan, Wanted, Option<Expr>);

/// What was taken out of expressions.
#[derive(Default)]
struct Found {
    applied: Vec<Applied>,
    /// A column for an answer, a subquery that asks nothing about the row, and what is looked for among its values.
    members: Vec<(String, LogicalPlan, Expr)>,
}

/// Takes all subqueries out of an expression. What stands in a branch of a `CASE` is asked only where its condition
/// holds.
fn take_all_out(
    expr: Expr,
    guard: Option<&Expr>,
    found: &mut Found,
    next: &mut usize,
) -> FusionResult<Transformed<Expr>> {
    let changed = match expr {
        Expr::Case(mut case) if case.expr.is_none() => {
            let mut is_changed = false;
            let mut settle = |part: &mut Expr, guard: Option<&Expr>| -> FusionResult<()> {
                let changed = take_all_out(std::mem::take(part), guard, found, next)?;
                *part = changed.data;
                is_changed |= changed.transformed;
                Ok(())
            };
            for (when, then) in &mut case.when_then_expr {
                let condition = when.as_ref().clone();
                settle(when.as_mut(), guard)?;
                settle(then.as_mut(), if is_of_row(&condition)? { Some(&condition) } else { guard })?;
            }
            if let Some(otherwise) = &mut case.else_expr {
                settle(otherwise.as_mut(), guard)?;
            }
            Transformed::new_transformed(Expr::Case(case), is_changed)
        }
        other => other.map_children(|part| take_all_out(part, guard, found, next))?,
    };
    changed.transform_data(|expr| take_out(expr, guard, found, next))
}

/// Whether an expression is computed of one row alone.
pub(super) fn is_of_row(expr: &Expr) -> FusionResult<bool> {
    let is_more = expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Unnest(_)
        ))
    })?;
    Ok(!is_more)
}

/// Takes a subquery out of an expression, unless it is a value of its own; a column is left in its place.
fn take_out(
    expr: Expr,
    guard: Option<&Expr>,
    found: &mut Found,
    next: &mut usize,
) -> FusionResult<Transformed<Expr>> {
    let mut leave = |subquery: LogicalPlan, wanted: Wanted| {
        *next += 1;
        let name = format!("apply {next} {}", found.applied.len());
        found.applied.push((name.clone(), subquery, wanted, guard.cloned()));
        Expr::Column(Column::new_unqualified(name))
    };
    Ok(match expr {
        Expr::ScalarSubquery(subquery)
            if !subquery.outer_ref_columns.is_empty() || is_left(&subquery.subquery) =>
        {
            Transformed::yes(leave(subquery.subquery.as_ref().clone(), Wanted::Value))
        }
        Expr::Exists(exists) => {
            let column = leave(exists.subquery.subquery.as_ref().clone(), Wanted::Existence);
            Transformed::yes(if exists.negated { Expr::Not(Box::new(column)) } else { column })
        }
        Expr::InSubquery(within) => {
            let plan = within.subquery.subquery.as_ref();
            let is_set = guard.is_none() && references(plan).is_empty() && !is_left(plan);
            let column = if is_set && is_of_row(&within.expr)? && !within.expr.contains_outer() {
                *next += 1;
                let name = format!("member {next} {}", found.members.len());
                found.members.push((name.clone(), plan.clone(), within.expr.as_ref().clone()));
                Expr::Column(Column::new_unqualified(name))
            } else {
                leave(equals(plan, &within.expr)?, Wanted::Existence)
            };
            Transformed::yes(if within.negated { Expr::Not(Box::new(column)) } else { column })
        }
        other => Transformed::no(other),
    })
}

/// The rows of a subquery that are equal to a value.
fn equals(plan: &LogicalPlan, sought: &Expr) -> FusionResult<LogicalPlan> {
    let inner = plan
        .schema()
        .iter()
        .next()
        .map(Expr::from)
        .ok_or_else(|| DataFusionError::Plan("a subquery without columns".into()))?;
    LogicalPlanBuilder::from(plan.clone()).filter(outside(sought, &inner)?)?.build()
}

/// An equality of an outer expression and an inner column, as the subquery sees it.
fn outside(outer: &Expr, inner: &Expr) -> FusionResult<Expr> {
    let outer = outer.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let field = Field::new(column.name.clone(), DataType::Null, true);
                Transformed::yes(Expr::OuterReferenceColumn(Arc::new(field), column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(crate::bind::plain_binary(outer.data, Operator::Eq, inner.clone()))
}
