//! DataFusion's rules, which end when nobody waits for them any more.
//!
//! An optimizer goes through a plan once for each rule. Between two of its steps the work is asked whether it is to end
//! (`crates/sql-planning/src/lib.rs`): a rule that is applied to each part of a plan, at each part.

use crate::amended_rule::{Amended, Rule};
use crate::claims::ModestClaims;
use crate::comparisons::{make_keys_by_equality, see_one_form};
use crate::dependencies::{TrueDependencies, make_modest};
use crate::failure::outbound;
use crate::lookup_join::LookupJoins;
use crate::rows_of_nothing::move_down;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use fabius_sql_planning::heed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

type OperatorRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// A rule that heeds.
#[derive(Debug)]
struct Heeding<R>(R);

impl OptimizerRule for Heeding<Rule> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        heed().map_err(outbound)?;
        self.0.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for Heeding<OperatorRule> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        heed().map_err(outbound)?;
        self.0.optimize(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether plans run as they are written, as far as they can.
static AS_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Lets all queries of this process run as they are written, without an optimizer but for what makes plans that can
/// run: to be compared with those that it has seen. To be called before the first query.
pub fn plan_as_written() {
    AS_WRITTEN.store(true, Relaxed);
}

/// Rules without which a plan has nodes that no operator is made of.
const NEEDED: &[&str] = &[
    "rewrite_set_comparison",
    "replace_distinct_aggregate",
    "decorrelate_predicate_subquery",
    "decorrelate_lateral_join",
    "scalar_subquery_to_join",
];

/// The rules for logical plans.
pub(super) fn rules() -> Vec<Rule> {
    let is_wanted = |rule: &Rule| !AS_WRITTEN.load(Relaxed) || NEEDED.contains(&rule.name());
    let claims_anew = || Arc::new(Heeding(Arc::new(TrueDependencies) as Rule)) as Rule;
    let mut rules = vec![claims_anew()];
    for rule in Optimizer::new().rules.into_iter().filter(is_wanted) {
        let rule: Rule = match rule.name() {
            "extract_equijoin_predicate" => Amended::of(rule, make_keys_by_equality),
            "replace_distinct_aggregate" => Amended::of(rule, make_modest),
            "push_down_filter" => Amended::of(Amended::of(rule, move_down), see_one_form),
            _ => rule,
        };
        // Where there are new aggregates, or joins beneath them.
        let makes_joins = rule.name() == "decorrelate_lateral_join";
        rules.push(Arc::new(Heeding(rule)));
        if makes_joins {
            rules.push(claims_anew());
        }
    }
    rules
}

/// The rule for a plan that the others have been through, which makes keys of conditions that compare by `IS NOT
/// DISTINCT FROM`.
pub(super) fn last_rule() -> Optimizer {
    Optimizer::with_rules(vec![Arc::new(Heeding(Arc::new(ExtractEquijoinPredicate::new()) as Rule))])
}

/// The rules for plans of operators.
pub(super) fn operator_rules() -> Vec<OperatorRule> {
    let mut rules = Vec::new();
    for rule in PhysicalOptimizer::new().rules {
        // It takes what it is told of the values of a column, a constant, for what the column has: one value, without
        // a row too.
        if rule.name() == "aggregate_statistics" {
            continue;
        }
        let joins_are_chosen = rule.name() == "join_selection";
        // Before any rule that leaves out what is claimed to be so already, and over what is put below joins later.
        let claims_anew = ["join_selection", "ProjectionPushdown"].contains(&rule.name());
        rules.push(Arc::new(Heeding(rule)) as OperatorRule);
        if joins_are_chosen && !AS_WRITTEN.load(Relaxed) {
            let lookups: OperatorRule = Arc::new(LookupJoins);
            rules.push(Arc::new(Heeding(lookups)));
        }
        if claims_anew {
            let modest: OperatorRule = Arc::new(ModestClaims);
            rules.push(Arc::new(Heeding(modest)));
        }
    }
    rules
}
