//! Joins of few rows with a table: the rows that the few ask for are looked up by a key, and the others are not read.
//!
//! ```text
//! HashJoin                                HashJoin
//!   few rows                                Noting (few rows)      notes which values they ask for
//!   Scan of a table            -->          Scan of a table        of what has been noted by then
//! ```
//!
//! A hash join takes all rows of its left side before any of its right one. So the scan, when it begins, knows what can
//! have a partner. Where the left side turns out to be long, the scan is as it would have been. Joins whose right side
//! has fewer rows, as far as keys, limits and groups tell, are turned around first.

use crate::leaf::LeafScan;
use crate::noted_keys::{Fewness, KEYS, Noted};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result as FusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// Makes lookups of joins: once joins are what they stay, and before any sort is left out for an order of a scan.
#[derive(Debug)]
pub(super) struct LookupJoins;

impl PhysicalOptimizerRule for LookupJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> FusionResult<Arc<dyn ExecutionPlan>> {
        let each = |plan: Arc<dyn ExecutionPlan>| {
            let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(plan)) };
            if asks_whether(join) && is_longer(join) {
                let turned = join.swap_inputs(PartitionMode::CollectLeft)?;
                return Ok(Transformed::yes(with_lookups_beneath(&turned)?.unwrap_or(turned)));
            }
            // Bounds on a key may hold most of a table: only whether there is a partner costs as little either way.
            let least = match join.join_type() {
                JoinType::LeftSemi => Fewness::Bounded,
                _ => Fewness::Grouped,
            };
            let is_other_way = join.join_type().supports_swap()
                && !join.null_aware
                && fewness(join.right()) > fewness(join.left())
                && fewness(join.right()) >= least;
            if is_other_way
                && let Some(turned) = with_lookups_beneath(&join.swap_inputs(PartitionMode::CollectLeft)?)?
            {
                return Ok(Transformed::yes(turned));
            }
            Ok(with_lookups(join)?.map_or_else(|| Transformed::no(plan.clone()), Transformed::yes))
        };
        plan.transform_up(each).map(|made| made.data)
    }

    fn name(&self) -> &str {
        "lookup_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A join that was turned around, perhaps beneath what puts its columns in their order again, with lookups.
fn with_lookups_beneath(plan: &Arc<dyn ExecutionPlan>) -> FusionResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return with_lookups(join);
    }
    let [join] = plan.children()[..] else { return Ok(None) };
    with_lookups_beneath(join)?.map(|join| over(plan, join)).transpose()
}

/// An operator over another input with the same columns.
fn over(
    plan: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> FusionResult<Arc<dyn ExecutionPlan>> {
    let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.clone().replace_children(vec![input], anew)
}

/// Whether a join asks for rows of its left side whether they have a partner.
fn asks_whether(join: &HashJoinExec) -> bool {
    matches!(join.join_type(), JoinType::LeftSemi | JoinType::LeftAnti) && !join.null_aware
}

/// Whether a join's left side has more rows than its right one, as far as tables tell where nothing else does.
fn is_longer(join: &HashJoinExec) -> bool {
    let (left, right) = (join.left(), join.right());
    let sizes = (rows_about(left), rows_about(right));
    fewness(left) == fewness(right) && matches!(sizes, (Some(left), Some(right)) if left > right)
}

/// How many rows there are in the largest table beneath, about.
fn rows_about(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    match plan.downcast_ref::<LeafScan>() {
        Some(scan) => scan.rows_about(),
        None => plan.children().into_iter().map(rows_about).try_fold(0, |most, rows| Some(most.max(rows?))),
    }
}

fn fewness(plan: &Arc<dyn ExecutionPlan>) -> Fewness {
    if let Some(scan) = plan.downcast_ref::<LeafScan>() {
        return scan.fewness();
    }
    if plan.fetch().is_some_and(|rows| rows <= KEYS) {
        return Fewness::Few;
    }
    if let Some(groups) = plan.downcast_ref::<AggregateExec>() {
        return match groups.group_expr().is_true_no_grouping() {
            true => Fewness::Few,
            false => fewness(groups.input()).max(Fewness::Grouped),
        };
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        // Each of few rows finds some.
        let left = fewness(join.left());
        return if join.left().is::<Noting>() {
            left.min(Fewness::Some)
        } else {
            left.min(fewness(join.right()))
        };
    }
    let children = plan.children();
    if let Some(fewness) = children.iter().map(|child| fewness(child)).min() {
        return fewness;
    }
    let known = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    let rows = known.ok().and_then(|known| known.num_rows.get_value().copied());
    if rows.is_some_and(|rows| rows <= KEYS) { Fewness::Few } else { Fewness::Unknown }
}

/// A column that a join asks a side for: its place there, and that among what is noted.
type Wanted = (usize, usize);

/// A join whose right side looks up what its left side asks for; `None` if it has no key for that.
fn with_lookups(join: &HashJoinExec) -> FusionResult<Option<Arc<dyn ExecutionPlan>>> {
    // Rows without a partner are not left out if they are wanted, or if it matters that there are some.
    let (_, can_be_left_out) = join.join_type().on_lr_is_preserved();
    let is_usual = join.null_equality() == NullEquality::NullEqualsNothing && !join.null_aware;
    if !can_be_left_out || !is_usual || join.left().is::<Noting>() {
        return Ok(None);
    }
    let mut columns = Vec::new();
    let mut wanted: Vec<Wanted> = Vec::new();
    for (asks, asked) in join.on() {
        if let Some(at) = column_of(asked, &join.right().schema()) {
            wanted.push((at, columns.len()));
            columns.push(asks.clone());
        }
    }
    let noted = Arc::new(Noted::default());
    let Some(right) = asked_of(join.right(), &wanted, &noted)? else { return Ok(None) };
    let left = Arc::new(Noting::over(join.left().clone(), columns, noted));
    join.builder().with_new_children(vec![left, right])?.build_exec().map(Some)
}

/// The column that an expression is, perhaps one of whole numbers as a wider one: what the column's type does not have
/// is in no row.
fn column_of(expression: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<usize> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return Some(column.index());
    }
    let cast = expression.downcast_ref::<CastExpr>()?;
    let column = cast.expr().downcast_ref::<Column>()?;
    let types = (schema.fields().get(column.index())?.data_type(), cast.cast_type());
    let is_wider = matches!(types, (DataType::Int16, DataType::Int32 | DataType::Int64))
        || matches!(types, (DataType::Int32, DataType::Int64));
    is_wider.then_some(column.index())
}

/// A plan that leaves out rows which nobody asks for, if it ends in a scan that can.
fn asked_of(
    plan: &Arc<dyn ExecutionPlan>,
    wanted: &[Wanted],
    noted: &Arc<Noted>,
) -> FusionResult<Option<Arc<dyn ExecutionPlan>>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    if let Some(scan) = plan.downcast_ref::<LeafScan>() {
        return Ok(scan.asked(wanted, noted).map(|scan| Arc::new(scan) as _));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return asked_of_join(join, wanted, noted);
    }
    let beneath = |at: usize| -> Option<usize> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            // What is computed anew for each row, is computed of each.
            let mut columns = projection.expr().iter();
            if columns.any(|column| is_volatile(&column.expr)) {
                return None;
            }
            return Some(projection.expr().get(at)?.expr.downcast_ref::<Column>()?.index());
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            if is_volatile(filter.predicate()) {
                return None;
            }
            return match filter.projection() {
                Some(columns) => columns.get(at).copied(),
                None => Some(at),
            };
        }
        let groups = plan.downcast_ref::<AggregateExec>()?;
        let (key, _) = groups.group_expr().expr().get(at).filter(|_| groups.group_expr().is_single())?;
        Some(key.downcast_ref::<Column>()?.index())
    };
    let wanted: Vec<Wanted> = wanted.iter().filter_map(|(at, noted)| Some((beneath(*at)?, *noted))).collect();
    let [input] = plan.children()[..] else { return Ok(None) };
    asked_of(input, &wanted, noted)?.map(|input| over(plan, input)).transpose()
}

/// An inner join of which one side leaves out rows.
fn asked_of_join(
    join: &HashJoinExec,
    wanted: &[Wanted],
    noted: &Arc<Noted>,
) -> FusionResult<Option<Arc<dyn ExecutionPlan>>> {
    if *join.join_type() != JoinType::Inner {
        return Ok(None);
    }
    let columns = join.left().schema().fields().len();
    let within = |at: usize| join.projection.as_ref().map_or(Some(at), |places| places.get(at).copied());
    let of_side = |is_left: bool| -> Vec<Wanted> {
        let places = wanted.iter().filter_map(|(at, noted)| Some((within(*at)?, *noted)));
        let places = places.filter(|(at, _)| (*at < columns) == is_left);
        places.map(|(at, noted)| (if is_left { at } else { at - columns }, noted)).collect()
    };
    let (left, right) = (join.left().clone(), join.right().clone());
    let children = match asked_of(&left, &of_side(true), noted)? {
        Some(left) => vec![left, right],
        None => match asked_of(&right, &of_side(false), noted)? {
            Some(right) => vec![left, right],
            None => return Ok(None),
        },
    };
    join.builder().with_new_children(children)?.build_exec().map(Some)
}

/// Passes on rows and notes the values of some expressions in them.
#[derive(Debug)]
struct Noting {
    input: Arc<dyn ExecutionPlan>,
    columns: Vec<Arc<dyn PhysicalExpr>>,
    noted: Arc<Noted>,
    properties: Arc<PlanProperties>,
}

impl Noting {
    fn over(input: Arc<dyn ExecutionPlan>, columns: Vec<Arc<dyn PhysicalExpr>>, noted: Arc<Noted>) -> Noting {
        let properties = input.properties().clone();
        Noting { input, columns, noted, properties }
    }
}

impl DisplayAs for Noting {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys to look up: ")?;
        for (at, column) in self.columns.iter().enumerate() {
            write!(f, "{}{column}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl ExecutionPlan for Noting {
    fn name(&self) -> &str {
        "Noting"
    }

    fn apply_expressions(
        &self,
        see: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> FusionResult<TreeNodeRecursion>,
    ) -> FusionResult<TreeNodeRecursion> {
        for column in &self.columns {
            if see(column)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// When one partition has ended, nothing is known of the others.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> FusionResult<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Noting::over(input, self.columns.clone(), self.noted.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> FusionResult<SendableRecordBatchStream> {
        self.noted.begin();
        let (columns, noted) = (self.columns.clone(), self.noted.clone());
        let note = move |batch: FusionResult<RecordBatch>| {
            let batch = batch?;
            noted.note(&columns, &batch).map(|()| batch)
        };
        let noted = self.noted.clone();
        let end = stream::once(async move { noted.end() }).filter_map(|()| async { None });
        let rows = self.input.execute(partition, context)?.map(note).chain(end);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
