//! The operator of [`Apply`]: a subquery for each row.

use crate::apply::{Apply, Wanted, has_outputs, named};
use crate::failure::outbound;
use crate::leaf::Run;
use crate::outer_reference::references;
use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::catalog::Session;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as FusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, UserDefinedLogicalNode};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, SqlState};
use futures::StreamExt;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::task::yield_now;

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
                let result = (Run::of(context)?.apart)(&plan, context.clone()).await?;
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
