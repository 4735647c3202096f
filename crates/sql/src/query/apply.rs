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

use crate::query::failure::{internal, outbound, unsupported};
use crate::query::leaf::Run;
use crate::query::machine;
use crate::query::membership;
use crate::query::outer_reference::{
    asks_beneath_outer_join, groups_all_rows, has_own_distinct, has_own_windows, reaches_far, references,
};
use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, JoinType};
use datafusion::error::{DataFusionError, Result as FusionResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, InvariantLevel, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    UserDefinedLogicalNode,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, SqlState};
use futures::{StreamExt, TryStreamExt};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tokio::task::yield_now;

/// What is wanted of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
enum Wanted {
    /// The subquery's one value, or null.
    Value,
    /// Whether it has rows.
    Existence,
    /// All of its rows, each with the outer row before it; `true` keeps an outer row without any.
    Rows(bool),
}

/// The node of the logical plan.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Apply {
    input: LogicalPlan,
    subquery: LogicalPlan,
    wanted: Wanted,
    /// A column of the input that says of which rows the answer is asked for.
    guard: Option<Column>,
    schema: DFSchemaRef,
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

/// Whether anything is left in a plan that DataFusion's operators cannot run: references to outer rows, and
/// conditions on subqueries that no join has taken the place of.
fn is_left(plan: &LogicalPlan) -> bool {
    let mut found = false;
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
fn has_outputs(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_))
}

/// An expression under the name that it had.
fn named(expr: Expr, name: String) -> Expr {
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
    Ok(crate::query::bind::plain_binary(outer.data, Operator::Eq, inner.clone()))
}

/// Makes operators of [`Apply`].
pub(super) struct ApplyPlanner;

#[async_trait]
impl ExtensionPlanner for ApplyPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> FusionResult<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(apply), Some(input)) = (node.as_any().downcast_ref::<Apply>(), inputs.first()) else {
            return Ok(None);
        };
        let schema = Arc::new(apply.schema.as_arrow().clone());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Some(Arc::new(ApplyOperator {
            apply: apply.clone(),
            input: input.clone(),
            properties: Arc::new(properties),
        })))
    }
}

/// The operator.
#[derive(Debug)]
struct ApplyOperator {
    apply: Apply,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for ApplyOperator {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply: {:?}", self.apply.wanted)
    }
}

impl ExecutionPlan for ApplyOperator {
    fn name(&self) -> &str {
        "Apply"
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> FusionResult<TreeNodeRecursion>,
    ) -> FusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// One partition of the input: the subquery's results are kept for all rows.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> FusionResult<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(ApplyOperator { apply: self.apply.clone(), input, properties: self.properties.clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> FusionResult<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        let apply = Arc::new(self.apply.clone());
        let schema = self.properties.equivalence_properties().schema().clone();
        let results: HashMap<Vec<ScalarValue>, RecordBatch> = HashMap::new();
        let stream = futures::stream::try_unfold((input, results), move |(mut input, mut results)| {
            let (apply, context) = (apply.clone(), context.clone());
            async move {
                let Some(batch) = input.next().await else { return Ok(None) };
                let batch = apply_batch(&apply, batch?, &context, &mut results).await?;
                FusionResult::Ok(Some((batch, (input, results))))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

/// How many results are kept for rows with the same values.
const KEPT: usize = 100_000;

async fn apply_batch(
    apply: &Apply,
    batch: RecordBatch,
    context: &Arc<TaskContext>,
    results: &mut HashMap<Vec<ScalarValue>, RecordBatch>,
) -> FusionResult<RecordBatch> {
    let outer = apply.input.schema();
    let mut wanted = references(&apply.subquery);
    wanted.retain(|column| outer.has_column(column));
    let places: Vec<usize> =
        wanted.iter().map(|column| outer.index_of_column(column)).collect::<FusionResult<_>>()?;
    let guard = match &apply.guard {
        Some(column) => Some(batch.column(outer.index_of_column(column)?).as_boolean().clone()),
        None => None,
    };
    let (mut pieces, mut rows_of) = (Vec::with_capacity(batch.num_rows()), Vec::new());
    for at in 0..batch.num_rows() {
        if guard.as_ref().is_some_and(|guard| guard.is_null(at) || !guard.value(at)) {
            rows_of.push(0);
            pieces.push(RecordBatch::new_empty(Arc::new(apply.subquery.schema().as_arrow().clone())));
            continue;
        }
        let values: Vec<ScalarValue> = places
            .iter()
            .map(|place| ScalarValue::try_from_array(batch.column(*place), at))
            .collect::<FusionResult<_>>()?;
        let result = match results.get(&values) {
            Some(result) => result.clone(),
            None => {
                let plan = bound(&apply.subquery, &wanted, &values)?;
                let plan = if apply.wanted == Wanted::Existence {
                    LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()?
                } else {
                    plan
                };
                // Each is a query of its own: others have their turn between them.
                yield_now().await;
                let result = rows(&plan, context).await?;
                if results.len() < KEPT {
                    results.insert(values, result.clone());
                }
                result
            }
        };
        rows_of.push(result.num_rows());
        pieces.push(result);
    }
    let schema: Arc<Schema> = Arc::new(apply.schema.as_arrow().clone());
    let assemble = |columns: Vec<ArrayRef>| RecordBatch::try_new(schema.clone(), columns).map_err(Into::into);
    match apply.wanted {
        Wanted::Existence => {
            let existence: BooleanArray = rows_of.iter().map(|count| Some(*count > 0)).collect();
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(existence));
            assemble(columns)
        }
        Wanted::Value => {
            let data_type = schema.fields().last().map_or(DataType::Null, |field| field.data_type().clone());
            let values = pieces.iter().map(|piece| match piece.num_rows() {
                0 => ScalarValue::try_from(&data_type),
                1 => ScalarValue::try_from_array(piece.column(0), 0),
                _ => Err(outbound(Error::new(
                    SqlState(*b"21000"),
                    "more than one row returned by a subquery used as an expression",
                ))),
            });
            let values = values.collect::<FusionResult<Vec<_>>>()?;
            let mut columns = batch.columns().to_vec();
            columns.push(if values.is_empty() {
                datafusion::arrow::array::new_empty_array(&data_type)
            } else {
                ScalarValue::iter_to_array(values)?
            });
            assemble(columns)
        }
        Wanted::Rows(keep) => {
            let inner_schema: Arc<Schema> = Arc::new(Schema::new(
                schema.fields().iter().skip(batch.num_columns()).cloned().collect::<Vec<_>>(),
            ));
            let mut indexes: Vec<u32> = Vec::new();
            let mut inner: Vec<RecordBatch> = Vec::new();
            for (at, piece) in pieces.into_iter().enumerate() {
                let piece = if piece.num_rows() == 0 && keep {
                    let nulls = inner_schema
                        .fields()
                        .iter()
                        .map(|field| datafusion::arrow::array::new_null_array(field.data_type(), 1))
                        .collect();
                    RecordBatch::try_new(inner_schema.clone(), nulls)?
                } else {
                    RecordBatch::try_new(inner_schema.clone(), piece.columns().to_vec())?
                };
                indexes.extend(std::iter::repeat_n(at as u32, piece.num_rows()));
                inner.push(piece);
            }
            let inner = concat_batches(&inner_schema, &inner)?;
            let indexes = UInt32Array::from(indexes);
            let mut columns: Vec<ArrayRef> = batch
                .columns()
                .iter()
                .map(|column| take(column, &indexes, None))
                .collect::<Result<_, _>>()?;
            columns.extend(inner.columns().iter().cloned());
            assemble(columns)
        }
    }
}

/// The subquery with a row's values in place of the references to it.
fn bound(plan: &LogicalPlan, columns: &[Column], values: &[ScalarValue]) -> FusionResult<LogicalPlan> {
    let value_of = |expr: &Expr| match expr {
        Expr::OuterReferenceColumn(_, column) => {
            columns.iter().zip(values).find(|(known, _)| *known == column).map(|(_, value)| value)
        }
        _ => None,
    };
    // Subqueries within know what they are about; no more of this row.
    let settle = |subquery: &mut Subquery| subquery.outer_ref_columns.retain(|expr| value_of(expr).is_none());
    let changed = plan.clone().transform_up_with_subqueries(|node| {
        let keeps_names = has_outputs(&node);
        node.map_expressions(|expr| {
            let name = keeps_names.then(|| expr.schema_name().to_string());
            let changed = expr.transform_up(|mut expr| {
                if let Some(value) = value_of(&expr) {
                    return Ok(Transformed::yes(Expr::Literal(value.clone(), None)));
                }
                match &mut expr {
                    Expr::ScalarSubquery(subquery) => settle(subquery),
                    Expr::Exists(exists) => settle(&mut exists.subquery),
                    Expr::InSubquery(within) => settle(&mut within.subquery),
                    _ => return Ok(Transformed::no(expr)),
                }
                Ok(Transformed::yes(expr))
            })?;
            Ok(match name {
                Some(name) if changed.transformed => changed.update_data(|expr| named(expr, name)),
                _ => changed,
            })
        })
    })?;
    Ok(changed.data)
}

/// Runs a plan that stands by itself now.
async fn rows(plan: &LogicalPlan, context: &Arc<TaskContext>) -> FusionResult<RecordBatch> {
    let run = context.session_config().get_extension::<Run>();
    let memory = run.map(|run| run.memory.clone()).ok_or_else(|| outbound(internal("a query of nobody")))?;
    let operators = machine::operators(plan, &memory).await.map_err(outbound)?;
    let schema = operators.schema();
    let stream = machine::run(operators, context.clone()).map_err(outbound)?;
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    Ok(concat_batches(&schema, &batches)?)
}

/// Optimizes a plan; what DataFusion cannot make joins of is applied row by row.
pub(super) fn optimized(plan: &LogicalPlan) -> FusionResult<LogicalPlan> {
    if !reaches_far(plan)
        && !asks_beneath_outer_join(plan)
        && !has_own_windows(plan)
        && !groups_all_rows(plan)
        && !has_own_distinct(plan)
        && let Ok(optimized) = machine::optimize(plan)
        && !is_left(&optimized)
    {
        return Ok(optimized);
    }
    let optimized = machine::optimize(&unfold(plan.clone())?)?;
    if is_left(&optimized) {
        return Err(outbound(unsupported("a subquery of this form is not supported here")));
    }
    Ok(optimized)
}
