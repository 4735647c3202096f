//! An operator that claims less of its rows than the one beneath.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as FusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, Statistics};
use std::fmt;
use std::sync::Arc;

/// Puts [`Modest`] over operators that claim more than they keep: once joins are what they stay, and before any sort
/// is left out for such a claim.
#[derive(Debug)]
pub(crate) struct ModestClaims;

impl PhysicalOptimizerRule for ModestClaims {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> FusionResult<Arc<dyn ExecutionPlan>> {
        let each = |plan: Arc<dyn ExecutionPlan>| match Kept::of(plan.as_ref()) {
            Some(kept) => Ok(Transformed::yes(Arc::new(Modest::over(plan, kept)) as _)),
            None => Ok(Transformed::no(plan)),
        };
        plan.transform_up(each).map(|modest| modest.data)
    }

    fn name(&self) -> &str {
        "modest_claims"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What is left of an operator's claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Nothing,
    /// The order of its input, whose columns are its first.
    InputOrder,
    /// Of each order, what comes before the first column that is computed: that values grow with what they are made
    /// of is claimed also where some of them become null.
    OrderOfColumns,
    /// All. Of rows that an `OFFSET` leaves, which depend on their order, DataFusion would have others when what asks
    /// for another order is put beneath.
    All,
}

impl Kept {
    /// What is left of the claims of an operator that claims too much; `None` if it does not.
    fn of(plan: &dyn ExecutionPlan) -> Option<Kept> {
        let is_join = plan.is::<HashJoinExec>()
            || plan.is::<NestedLoopJoinExec>()
            || plan.is::<CrossJoinExec>()
            || plan.is::<SortMergeJoinExec>()
            || plan.is::<PiecewiseMergeJoinExec>();
        let is_union = plan.is::<UnionExec>() || plan.is::<InterleaveExec>();
        let is_window = plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>();
        let is_volatile = match (plan.downcast_ref::<ProjectionExec>(), plan.downcast_ref::<FilterExec>()) {
            (Some(projection), _) => projection.expr().iter().any(|column| is_volatile(&column.expr)),
            (_, Some(filter)) => is_volatile(filter.predicate()),
            _ => false,
        };
        let orders_what_is_computed = || {
            plan.downcast_ref::<ProjectionExec>().is_some_and(|projection| {
                let orders = plan.properties().equivalence_properties().oeq_class();
                let mut columns = orders.iter().flat_map(|order| order.iter());
                columns.any(|column| is_computed(projection, &column.expr))
            })
        };
        let passes_over = plan.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0);
        match () {
            () if passes_over => Some(Kept::All),
            () if is_join || is_volatile || is_union || plan.is::<AggregateExec>() => Some(Kept::Nothing),
            () if is_window || says_what_is_computed(plan) => Some(Kept::InputOrder),
            () if orders_what_is_computed() => Some(Kept::OrderOfColumns),
            () => None,
        }
    }
}

/// Whether a condition says that what is computed of columns is a constant: DataFusion leaves out a sort for that, and
/// forgets it when it lets the condition's operator pass on some columns only.
fn says_what_is_computed(plan: &dyn ExecutionPlan) -> bool {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return false };
    let is_computed = |side: &Arc<dyn PhysicalExpr>| !side.is::<Column>() && !side.is::<Literal>();
    filter.projection().is_none()
        && split_conjunction(filter.predicate()).into_iter().any(|condition| {
            condition.downcast_ref::<BinaryExpr>().is_some_and(|condition| {
                *condition.op() == Operator::Eq
                    && (is_computed(condition.left()) || is_computed(condition.right()))
            })
        })
}

/// Whether what a projection gives is ordered by more than columns of its input.
fn is_computed(projection: &ProjectionExec, by: &Arc<dyn PhysicalExpr>) -> bool {
    let made_of = by.downcast_ref::<Column>().and_then(|column| projection.expr().get(column.index()));
    made_of.is_none_or(|made_of| !made_of.expr.is::<Column>() && !made_of.expr.is::<Literal>())
}

/// The rows of an operator, without its claims.
#[derive(Debug)]
pub(crate) struct Modest {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Modest {
    fn over(input: Arc<dyn ExecutionPlan>, kept: Kept) -> Modest {
        let schema = input.schema();
        let mut claims = EquivalenceProperties::new(schema);
        if kept == Kept::InputOrder
            && let [below] = input.children().as_slice()
        {
            claims.add_orderings(below.properties().equivalence_properties().oeq_class().clone());
        }
        if kept == Kept::OrderOfColumns
            && let Some(projection) = input.downcast_ref::<ProjectionExec>()
        {
            claims = input.properties().equivalence_properties().clone();
            let orders: Vec<Vec<_>> = claims
                .oeq_class()
                .iter()
                .map(|order| {
                    order.iter().take_while(|by| !is_computed(projection, &by.expr)).cloned().collect()
                })
                .collect();
            claims.clear_orderings();
            claims.add_orderings(orders);
        }
        if kept == Kept::All {
            claims = input.properties().equivalence_properties().clone();
        }
        let properties = input.properties().as_ref().clone().with_eq_properties(claims);
        Modest { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Modest {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Modest")
    }
}

impl ExecutionPlan for Modest {
    fn name(&self) -> &str {
        "Modest"
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

    /// Nothing that is asked of its rows is put beneath it, where it would be in the claims' way.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
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
        if input.is::<Modest>() {
            return Ok(input);
        }
        let is_modest_itself = input.is::<ProjectionExec>() || input.is::<FilterExec>();
        Ok(Arc::new(match Kept::of(input.as_ref()) {
            Some(kept) => Modest::over(input, kept),
            // Above other rows it has nothing to claim that does not hold.
            None if is_modest_itself => Modest::over(input, Kept::All),
            // The same operator, beneath what only looks at its rows.
            None => Modest { input, properties: self.properties.clone() },
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> FusionResult<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> FusionResult<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.input.schema()));
        Ok(inputs.first().cloned().unwrap_or_else(unknown))
    }
}
