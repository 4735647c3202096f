//! DataFusion as it is used here: its optimizer and operators, one partition, none of its own functions' names.

use crate::apply::{is_left, unfold};
use crate::apply_operator::ApplyPlanner;
use crate::claims::check::CheckedPlan;
use crate::extent::Extent;
use crate::failure::{inbound, outbound, unsupported};
use crate::heeding::{last_rule, operator_rules, rules};
use crate::leaf::Run;
use crate::operator_memory::OperatorMemory;
use crate::outer_reference::{
    asks_beneath_outer_join, counts_rows, has_own_distinct, has_own_windows, reaches_far,
};
use crate::pace::{BATCH_ROWS, paced};
use crate::row_source::RowSource;
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::catalog::Session;
use datafusion::error::Result as FusionResult;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;
use fabius::Allowance;
use fabius_sql_planning as planning;
use fabius_value::Result;
use futures::TryStreamExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use tokio::task::coop::unconstrained;

/// What a sort keeps back for merging what it has put into temporary files.
const SPILL_BYTES: usize = 1 << 20;

static STATE: LazyLock<SessionState> = LazyLock::new(|| {
    let mut config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(1)
        .with_information_schema(false);
    {
        let options = config.options_mut();
        options.execution.collect_statistics = false;
        // `x IS TRUE` is never null to a plan, but may be to what computes it: the weaker claim does no harm.
        options.execution.skip_physical_aggregate_schema_check = true;
        options.execution.sort_spill_reservation_bytes = SPILL_BYTES;
        options.optimizer.max_passes = 2;
        options.optimizer.repartition_joins = false;
        options.optimizer.enable_dynamic_filter_pushdown = false;
        options.optimizer.enable_topk_dynamic_filter_pushdown = false;
        options.optimizer.enable_join_dynamic_filter_pushdown = false;
    }
    SessionStateBuilder::new()
        .with_config(config)
        .with_query_planner(Arc::new(Planner))
        .with_optimizer_rules(rules())
        .with_physical_optimizer_rules(operator_rules())
        .build()
});

#[derive(Debug)]
struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> FusionResult<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(ApplyPlanner)])
            .create_physical_plan(plan, session)
            .await
    }
}

/// What DataFusion's optimizer makes of a plan.
fn optimize(plan: &LogicalPlan) -> FusionResult<LogicalPlan> {
    let plan = STATE.optimize(plan)?;
    last_rule().optimize(plan, &*STATE, |_, _| {})
}

/// Optimizes a plan; what DataFusion cannot make joins of is applied row by row.
fn optimized(plan: &LogicalPlan) -> FusionResult<LogicalPlan> {
    if !reaches_far(plan)
        && !asks_beneath_outer_join(plan)
        && !has_own_windows(plan)
        && !counts_rows(plan)
        && !has_own_distinct(plan)
        && let Ok(optimized) = optimize(plan)
        && !is_left(&optimized)
    {
        return Ok(optimized);
    }
    let optimized = optimize(&unfold(plan.clone())?)?;
    if is_left(&optimized) {
        return Err(outbound(unsupported("a subquery of this form is not supported here")));
    }
    Ok(optimized)
}

/// Makes operators of a plan, on a thread of its own if that may take long.
///
/// # Errors
/// What cannot be planned; `54001` and others if it is too much.
pub(super) async fn operators(plan: &LogicalPlan, memory: &Arc<Allowance>) -> Result<Arc<dyn ExecutionPlan>> {
    let brief = planning::briefly(|| match Extent::of(plan)?.is_small() {
        true => make_operators(plan).map(Some),
        false => Ok(None),
    });
    if let Some(Some(operators)) = brief.transpose()? {
        return Ok(operators);
    }
    let plan = plan.clone();
    planning::apart(memory, move || {
        Extent::of(&plan)?;
        make_operators(&plan)
    })
    .await
}

fn make_operators(plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let optimized = optimized(plan).map_err(inbound)?;
    // Conditions have come together: that has not made it too high.
    Extent::of(&optimized)?;
    // Nothing in there waits, unless the thread's task has used up its turn: a lock of tokio would then ask for
    // another one, which does not come before this is done.
    let planned = unconstrained(STATE.query_planner().create_physical_plan(&optimized, &*STATE));
    block_on(planned).map_err(inbound)
}

/// What operators run in; they hold what the session may.
pub(super) fn context(source: Arc<dyn RowSource>, memory: &Arc<Allowance>) -> Arc<TaskContext> {
    let usual = STATE.runtime_env();
    let runtime = RuntimeEnv {
        memory_pool: Arc::new(OperatorMemory::new(memory.clone())),
        disk_manager: usual.disk_manager.clone(),
        cache_manager: usual.cache_manager.clone(),
        object_store_registry: usual.object_store_registry.clone(),
    };
    let config = STATE.config().clone().with_extension(Arc::new(Run {
        source,
        memory: memory.clone(),
        apart: run_apart,
    }));
    Arc::new(TaskContext::new(
        None,
        String::new(),
        config,
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        Arc::new(runtime),
    ))
}

/// Runs operators; they give way. In builds with assertions, what they claim of their rows is checked.
pub(super) fn run(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let run = || {
        if !cfg!(debug_assertions) {
            return execute_stream(paced(plan)?, context);
        }
        let checked = CheckedPlan::over(plan)?;
        let rows = execute_stream(paced(checked.plan.clone())?, context)?;
        Ok(checked.with_end_checked(rows))
    };
    run().map_err(inbound)
}

/// Plans and runs what an operator has found to be asked.
fn run_apart(plan: &LogicalPlan, context: Arc<TaskContext>) -> BoxFuture<'_, FusionResult<RecordBatch>> {
    Box::pin(async move {
        let operators = operators(plan, &Run::of(&context)?.memory).await.map_err(outbound)?;
        let schema = operators.schema();
        let batches: Vec<RecordBatch> =
            self::run(operators, context).map_err(outbound)?.try_collect().await?;
        Ok(concat_batches(&schema, &batches)?)
    })
}
