//! Queries that compute for long give way: to other sessions of the thread, and to whoever wants to end the query.
//!
//! Asynchronous operators hand on batches as long as there are any, and nobody else has a turn until one of them
//! waits. A query over rows that are there never waits by itself, and a join can go through all pairs of rows before
//! it has a batch. So every operator's output is [`Paced`]: it waits for a moment once it has run for long, and what
//! a join compares with its other side comes in portions whose size follows from how long the last ones took.
//!
//! ```text
//! rows --Portions--> pause? --> join (all of its left side with the portion) --> pause? --> ...
//! ```
//!
//! An operator that computes much of each row gets fewer rows at a time, so that what it computes of them fits the
//! memory, and does not take long. A batch that does not fit what the session may hold ends the query.

use crate::failure::outbound;
use crate::leaf::Run;
use crate::patience::working_for;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as FusionResult;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::task::yield_now;

/// Rows that operators pass on at a time: with wide rows these are much.
pub(super) const BATCH_ROWS: usize = 1024;

/// How long an operator runs before it gives way.
const TURN: Duration = Duration::from_millis(10);
/// How long a join runs with one portion: each row of its other side costs as much as several hundred pairs, once a
/// portion.
const PORTION_TURN: Duration = Duration::from_millis(50);
/// Rows of a join's first portion.
const PORTION_ROWS: usize = 8;
/// Parts of expressions times rows that an operator computes at a time, about.
const CELLS: usize = 256 << 10;
/// A portion has at most so many times the rows of the one before.
const PORTION_GROWTH: usize = 8;

/// The place of a join's side that its other side is compared with, of two.
const PROBED: usize = 1;

/// A plan whose operators give way now and then.
pub(super) fn paced(plan: Arc<dyn ExecutionPlan>) -> FusionResult<Arc<dyn ExecutionPlan>> {
    let each = |plan: Arc<dyn ExecutionPlan>| {
        if !is_mute(&plan) {
            return Ok(Transformed::yes(Paced::over(in_slices(plan)?, Role::Other)));
        }
        let mut beats = Beats::default();
        let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
        if let Some(probed) = children.get_mut(PROBED) {
            let partitions = probed.properties().output_partitioning().partition_count();
            beats = (0..partitions).map(|_| Arc::default()).collect();
            let input = match probed.downcast_ref::<Paced>() {
                Some(Paced { input, role: Role::Other }) => input,
                _ => &*probed,
            };
            *probed = Paced::over(input.clone(), Role::Probed(beats.clone()));
        }
        let plan =
            plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))?;
        Ok(Transformed::yes(Paced::over(plan, Role::Join(beats))))
    };
    plan.transform_up(each).map(|paced| paced.data)
}

/// A plan whose operator gets few rows at a time if it computes much of each.
fn in_slices(plan: Arc<dyn ExecutionPlan>) -> FusionResult<Arc<dyn ExecutionPlan>> {
    let mut parts = 0;
    plan.apply_expressions(&mut |expression| {
        let mut open = vec![expression.clone()];
        while let Some(part) = open.pop() {
            parts += 1;
            open.extend(part.children().into_iter().cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let rows = (CELLS / parts.max(1)).max(1);
    if rows >= BATCH_ROWS || plan.children().is_empty() {
        return Ok(plan);
    }
    let children = plan.children().into_iter().map(|child| {
        let input = match child.downcast_ref::<Paced>() {
            Some(Paced { input, role: Role::Other }) => input,
            _ => child,
        };
        Paced::over(input.clone(), Role::Sliced(rows))
    });
    let children = children.collect();
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}

/// Whether it is a join that may go through many pairs before it has a row.
fn is_mute(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) => {
            let gives_pairs =
                matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full);
            join.filter.is_some() || !gives_pairs
        }
        None => plan.is::<NestedLoopJoinExec>(),
    }
}

/// Those of a join's partitions, each of which may have a task of its own.
type Beats = Arc<[Arc<Beat>]>;

/// When a join was asked for a batch of a partition last: it computes since then.
#[derive(Debug)]
struct Beat {
    begun: Instant,
    asked_us: AtomicU64,
}

impl Default for Beat {
    fn default() -> Beat {
        Beat { begun: Instant::now(), asked_us: AtomicU64::new(0) }
    }
}

impl Beat {
    fn ask(&self, now: Instant) {
        let micros = u64::try_from(now.saturating_duration_since(self.begun).as_micros());
        self.asked_us.store(micros.unwrap_or(u64::MAX), Relaxed);
    }

    fn asked(&self) -> Instant {
        self.begun + Duration::from_micros(self.asked_us.load(Relaxed))
    }
}

/// What an operator is to the one above.
#[derive(Clone, Debug)]
enum Role {
    /// The side of a join that comes in portions.
    Probed(Beats),
    /// The join.
    Join(Beats),
    /// The side of an operator that gets so many rows at a time.
    Sliced(usize),
    Other,
}

/// An operator that gives way.
#[derive(Debug)]
struct Paced {
    input: Arc<dyn ExecutionPlan>,
    role: Role,
}

impl Paced {
    fn over(input: Arc<dyn ExecutionPlan>, role: Role) -> Arc<dyn ExecutionPlan> {
        Arc::new(Paced { input, role })
    }
}

impl DisplayAs for Paced {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paced")
    }
}

impl ExecutionPlan for Paced {
    fn name(&self) -> &str {
        "Paced"
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> FusionResult<TreeNodeRecursion>,
    ) -> FusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> FusionResult<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| self.input.clone());
        Ok(Paced::over(input, self.role.clone()))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> FusionResult<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context.clone())?;
        let (portions, join) = match &self.role {
            Role::Probed(beats) => (beats.get(partition).cloned().map(Portions::new), None),
            Role::Join(beats) => (None, beats.get(partition).cloned()),
            Role::Sliced(rows) => (Some(Portions::of(*rows)), None),
            Role::Other => (None, None),
        };
        let run = context.session_config().get_extension::<Run>();
        Ok(Box::pin(Pauses { rows, portions, join, run, since: None, pause: None }))
    }
}

/// Batches, with pauses.
struct Pauses {
    rows: SendableRecordBatchStream,
    portions: Option<Portions>,
    join: Option<Arc<Beat>>,
    /// Whom it is for.
    run: Option<Arc<Run>>,
    /// When others had their turn last; `None` once it is theirs.
    since: Option<Instant>,
    pause: Option<BoxFuture<'static, ()>>,
}

impl Stream for Pauses {
    type Item = FusionResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Pauses { rows, portions, join, run, since, pause } = &mut *self;
        let now = Instant::now();
        if let Some(portions) = portions {
            portions.adapt(now);
        }
        if let Some(pausing) = pause {
            ready!(pausing.poll_unpin(context));
            (*pause, *since) = (None, None);
        }
        if now.saturating_duration_since(*since.get_or_insert(now)) > TURN {
            ready!(pause.insert(yield_now().boxed()).poll_unpin(context));
        }
        if let Some(beat) = join {
            beat.ask(now);
        }
        let next = working_for(run.as_ref().map(|run| &run.source), || match portions {
            Some(portions) => portions.poll_next(rows, context),
            None => rows.poll_next_unpin(context),
        });
        if next.is_pending() {
            *since = None;
        }
        if let (Poll::Ready(Some(Ok(batch))), Some(run)) = (&next, run)
            && batch.get_array_memory_size() > run.memory.left()
        {
            return Poll::Ready(Some(Err(outbound(run.memory.refusal()))));
        }
        next
    }
}

impl RecordBatchStream for Pauses {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// Cuts batches into portions that a join is done with in time.
struct Portions {
    /// The join's, whose portions follow from how long they take.
    beat: Option<Arc<Beat>>,
    rest: Option<RecordBatch>,
    rows: usize,
    /// When the last portion was handed on, until the join asks for another.
    handed: Option<Instant>,
}

impl Portions {
    fn new(beat: Arc<Beat>) -> Portions {
        Portions { beat: Some(beat), rest: None, rows: PORTION_ROWS, handed: None }
    }

    /// So many rows each.
    fn of(rows: usize) -> Portions {
        Portions { beat: None, rest: None, rows, handed: None }
    }

    /// The join is done with the last portion: takes in how long it was busy without giving anybody else a turn.
    fn adapt(&mut self, now: Instant) {
        if let (Some(beat), Some(handed)) = (&self.beat, self.handed.take()) {
            let took = now.saturating_duration_since(handed.max(beat.asked()));
            self.rows = next_rows(self.rows, took);
        }
    }

    fn poll_next(
        &mut self,
        input: &mut SendableRecordBatchStream,
        context: &mut Context<'_>,
    ) -> Poll<Option<FusionResult<RecordBatch>>> {
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match ready!(input.poll_next_unpin(context)) {
                Some(Ok(batch)) => batch,
                other => return Poll::Ready(other),
            },
        };
        self.handed = Some(Instant::now());
        if batch.num_rows() <= self.rows {
            return Poll::Ready(Some(Ok(batch)));
        }
        self.rest = Some(batch.slice(self.rows, batch.num_rows() - self.rows));
        Poll::Ready(Some(Ok(batch.slice(0, self.rows))))
    }
}

/// The rows of the next portion, if those of the last took so long.
fn next_rows(rows: usize, took: Duration) -> usize {
    let took_us = took.as_micros().max(1);
    let fitting = (rows as u128).saturating_mul(PORTION_TURN.as_micros()) / took_us;
    usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, rows.saturating_mul(PORTION_GROWTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: portions grow while they take little time, shrink in proportion, and are never empty.
    #[test]
    fn portions_follow_the_time_they_take() {
        assert_eq!(next_rows(8, Duration::ZERO), 8 * PORTION_GROWTH);
        assert_eq!(next_rows(1000, PORTION_TURN), 1000);
        assert_eq!(next_rows(1000, PORTION_TURN * 4), 250);
        assert_eq!(next_rows(8, PORTION_TURN * 1000), 1);
        assert_eq!(next_rows(usize::MAX, Duration::ZERO), usize::MAX);
    }
}
