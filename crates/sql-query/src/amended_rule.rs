//! A rule of DataFusion's with something done before it or behind it.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::fmt;
use std::sync::Arc;

/// A rule for logical plans.
pub(super) type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// What is done instead of a rule, which it is given.
type Rewrite = fn(&Rule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// A rule that keeps its name and the order in which it goes through a plan.
pub(super) struct Amended {
    rule: Rule,
    rewrite: Rewrite,
}

impl Amended {
    pub(super) fn of(rule: Rule, rewrite: Rewrite) -> Rule {
        Arc::new(Amended { rule, rewrite })
    }
}

impl fmt::Debug for Amended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Amended").field(&self.rule).finish()
    }
}

impl OptimizerRule for Amended {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(&self.rule, plan, config)
    }
}
