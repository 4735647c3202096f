//! Whether the rows of an operator are what it claims, looked at as they pass.
//!
//! | claim | what is looked at |
//! |---|---|
//! | order | each row against the one before it in its partition, for each order that is claimed |
//! | constants | each value against the first |
//! | equal expressions | the values of each row |
//! | columns that are not null | each value |
//! | distinct rows: groups, and keys of tables | each against all before it |
//! | partitions | at the end of the query: whoever has read an operator to its end has read all of them |
//!
//! A claim that does not hold is an error of the query: something would be left out, or come in a wrong order,
//! because of it.

use super::Modest;
use crate::failure::{internal, outbound};
use crate::leaf::LeafScan;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::{OwnedRow, Row, RowConverter, SortField};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as FusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Rows of one operator that are kept to find equal ones among them, at most.
const DISTINCT_ROWS: usize = 100_000;

/// A plan whose operators' claims are checked, and what tells whether all partitions have been read.
pub(crate) struct CheckedPlan {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    reads: Vec<Arc<Reads>>,
}

impl CheckedPlan {
    /// Puts a check over every operator but those whose claims nobody sees.
    pub(crate) fn over(plan: Arc<dyn ExecutionPlan>) -> FusionResult<CheckedPlan> {
        let mut reads = Vec::new();
        let each = |plan: Arc<dyn ExecutionPlan>| {
            let inputs = inputs_of(&plan);
            let plan = match plan.is::<Modest>() {
                true => {
                    let hidden: Vec<_> = plan.children().into_iter().map(Checked::beneath).collect();
                    plan.replace_children(hidden, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))?
                }
                false => plan,
            };
            let (read, ended) = Default::default();
            let of = Arc::new(Reads { operator: plan.clone(), inputs, read, ended });
            reads.push(of.clone());
            Ok(Transformed::yes(Arc::new(Checked { input: plan, reads: of }) as _))
        };
        let plan = plan.transform_up(each)?.data;
        Ok(CheckedPlan { plan, reads })
    }

    /// The rows of a run of it, with an error at the end if some partitions have not been read.
    pub(crate) fn with_end_checked(self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = rows.schema();
        let end = move || self.reads.iter().try_for_each(|reads| reads.refuse_partial());
        let end = futures::stream::once(async move { end() });
        let failure = end.filter_map(|end| async move { end.err().map(Err) });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows.chain(failure)))
    }
}

/// What an operator reads from, as far as that is checked; what is beneath one whose claims nobody sees belongs to it.
fn inputs_of(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<Reads>> {
    let checked = |plan: &&Arc<dyn ExecutionPlan>| Some(plan.downcast_ref::<Checked>()?.reads.clone());
    let children = plan.children();
    let inputs = children.iter().filter_map(checked);
    match plan.is::<Modest>() {
        true => inputs.flat_map(|hidden| hidden.inputs.clone()).collect(),
        false => inputs.collect(),
    }
}

/// The operator whose claims another one hides.
fn hidden(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let beneath = plan.is::<Modest>().then(|| plan.children().into_iter().next())??;
    Some(beneath.downcast_ref::<Checked>().map_or(beneath, |checked| &checked.reads.operator))
}

/// Which partitions of an operator have been read, and which to their ends.
#[derive(Debug)]
struct Reads {
    operator: Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<Reads>>,
    read: Mutex<HashSet<usize>>,
    ended: Mutex<HashSet<usize>>,
}

impl Reads {
    fn partitions(&self) -> usize {
        self.operator.properties().partitioning.partition_count()
    }

    /// Refuses an operator that is at its end, having read some partitions of an input and left out others.
    fn refuse_partial(&self) -> FusionResult<()> {
        // One that has enough rows asks for no more, and what is beneath one whose claims nobody sees belongs to it.
        let mut operators = std::iter::successors(Some(&self.operator), |operator| hidden(operator));
        if self.ended.lock().len() < self.partitions() || operators.any(|operator| operator.fetch().is_some())
        {
            return Ok(());
        }
        for input in &self.inputs {
            let (read, all) = (input.read.lock().len(), input.partitions());
            if read > 0 && read < all {
                let claim = format!("{all} partitions, of which {} has read {read}", self.operator.name());
                return Err(broken(input.operator.name(), &claim));
            }
        }
        Ok(())
    }
}

/// An operator whose rows are looked at.
#[derive(Debug)]
struct Checked {
    input: Arc<dyn ExecutionPlan>,
    reads: Arc<Reads>,
}

impl Checked {
    /// The operator itself.
    fn beneath(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        plan.downcast_ref::<Checked>().map_or_else(|| plan.clone(), |checked| checked.input.clone())
    }
}

impl DisplayAs for Checked {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checked")
    }
}

impl ExecutionPlan for Checked {
    fn name(&self) -> &str {
        "Checked"
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
        Ok(Arc::new(Checked { input, reads: self.reads.clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> FusionResult<SendableRecordBatchStream> {
        self.reads.read.lock().insert(partition);
        let mut claims = Claims::of(self.reads.operator.as_ref())?;
        let rows = self.input.execute(partition, context)?;
        let schema = rows.schema();
        let rows = rows.map(move |batch| {
            let batch = batch?;
            claims.refuse_broken(&batch)?;
            Ok(batch)
        });
        let reads = self.reads.clone();
        let end = futures::stream::once(async move { reads.ended.lock().insert(partition) });
        let rows = rows.chain(end.filter_map(|_| async { None }));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// What is claimed of the values of some expressions.
enum Claim {
    /// Rows come in their order.
    Order,
    /// All rows have the same.
    Constant,
    /// No two rows have the same; rows so far.
    Distinct(HashSet<OwnedRow>),
}

/// A claim about expressions that are compared row by row.
struct RowClaim {
    claim: Claim,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    rows: RowConverter,
    last: Option<OwnedRow>,
}

/// What an operator claims of the rows of one partition.
pub(crate) struct Claims {
    operator: String,
    of_rows: Vec<RowClaim>,
    /// Expressions that have the same value in each row.
    equal: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    /// Places and names of columns without nulls.
    not_null: Vec<(usize, String)>,
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claims of {}", self.operator)
    }
}

impl Claims {
    /// The claims of an operator.
    pub(crate) fn of(plan: &dyn ExecutionPlan) -> FusionResult<Claims> {
        let (properties, schema) = (plan.properties().equivalence_properties(), plan.schema());
        let mut of_rows = Vec::new();
        let mut add = |claim: Claim, keys: Vec<(Arc<dyn PhysicalExpr>, SortOptions)>| -> FusionResult<()> {
            let mut fields = Vec::with_capacity(keys.len());
            for (key, options) in &keys {
                fields.push(SortField::new_with_options(key.data_type(&schema)?, *options));
            }
            if RowConverter::supports_fields(&fields) {
                let keys = keys.into_iter().map(|(key, _)| key).collect();
                of_rows.push(RowClaim { claim, keys, rows: RowConverter::new(fields)?, last: None });
            }
            Ok(())
        };
        for order in properties.oeq_class().iter() {
            add(Claim::Order, order.iter().map(|sort| (sort.expr.clone(), sort.options)).collect())?;
        }
        for constant in properties.constants() {
            add(Claim::Constant, vec![(constant.expr, SortOptions::default())])?;
        }
        let distinct = distinct_columns(plan);
        if !distinct.is_empty() {
            let key = |at: usize| -> (Arc<dyn PhysicalExpr>, SortOptions) {
                (Arc::new(Column::new(schema.field(at).name(), at)), SortOptions::default())
            };
            add(Claim::Distinct(HashSet::new()), distinct.into_iter().map(key).collect())?;
        }
        let equal = properties.eq_group().iter().map(|class| class.iter().cloned().collect()).collect();
        let columns = schema.fields().iter().enumerate().filter(|(_, field)| !field.is_nullable());
        let not_null = columns.map(|(at, field)| (at, field.name().clone())).collect();
        Ok(Claims { operator: plan.name().to_string(), of_rows, equal, not_null })
    }

    /// Refuses rows that are not what is claimed.
    pub(crate) fn refuse_broken(&mut self, batch: &RecordBatch) -> FusionResult<()> {
        for (at, name) in &self.not_null {
            if batch.column(*at).null_count() > 0 {
                return Err(broken(&self.operator, &format!("no nulls in {name}")));
            }
        }
        for class in &self.equal {
            let mut first: Option<ArrayRef> = None;
            for expression in class {
                let values = expression.evaluate(batch)?.into_array(batch.num_rows())?;
                match &first {
                    None => first = Some(values),
                    Some(first) if first.data_type() != values.data_type() => {}
                    Some(first) if first == &values => {}
                    Some(_) => {
                        let others: Vec<String> = class.iter().map(ToString::to_string).collect();
                        return Err(broken(&self.operator, &format!("{} are equal", others.join(", "))));
                    }
                }
            }
        }
        for claim in &mut self.of_rows {
            if !claim.holds(batch)? {
                return Err(broken(&self.operator, &claim.words()));
            }
        }
        Ok(())
    }
}

/// The columns of which no two rows of an operator have the same values; none if nothing is said of that.
fn distinct_columns(plan: &dyn ExecutionPlan) -> Vec<usize> {
    if let Some(scan) = plan.downcast_ref::<LeafScan>() {
        return scan.key_columns();
    }
    match plan.downcast_ref::<AggregateExec>() {
        Some(groups) if !matches!(groups.mode(), AggregateMode::Partial | AggregateMode::PartialReduce) => {
            // Of several grouping sets, two may be the same.
            let keys = groups.group_expr();
            if keys.is_single() { (0..keys.expr().len()).collect() } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

impl RowClaim {
    fn holds(&mut self, batch: &RecordBatch) -> FusionResult<bool> {
        let columns: Vec<ArrayRef> = self
            .keys
            .iter()
            .map(|key| key.evaluate(batch)?.into_array(batch.num_rows()))
            .collect::<FusionResult<_>>()?;
        let rows = self.rows.convert_columns(&columns)?;
        if let Claim::Distinct(seen) = &mut self.claim {
            let is_new = |row: Row<'_>| seen.len() >= DISTINCT_ROWS || seen.insert(row.owned());
            return Ok(rows.iter().all(is_new));
        }
        let mut last = self.last.as_ref().map(OwnedRow::row);
        for row in rows.iter() {
            if let Some(last) = last
                && match self.claim {
                    Claim::Constant => last != row,
                    _ => last > row,
                }
            {
                return Ok(false);
            }
            last = Some(row);
        }
        let last = last.map(|row| row.owned());
        self.last = last;
        Ok(true)
    }

    fn words(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let what = match &self.claim {
            Claim::Order => "rows in the order of",
            Claim::Constant => "one value of",
            Claim::Distinct(_) => "no two rows alike in",
        };
        format!("{what} {}", keys.join(", "))
    }
}

fn broken(operator: &str, claim: &str) -> datafusion::error::DataFusionError {
    outbound(internal(&format!("{operator} claims what does not hold: {claim}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int32Array;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
    use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
    use datafusion::physical_plan::sorts::sort::SortExec;
    use datafusion::physical_plan::{Partitioning, execute_stream};
    use futures::TryStreamExt;
    use futures::executor::block_on;

    /// Numbers in so many partitions, with whatever is claimed of them.
    #[derive(Debug)]
    struct Numbers {
        partitions: Vec<Vec<i32>>,
        properties: Arc<PlanProperties>,
    }

    impl Numbers {
        fn new(partitions: &[&[i32]], claim: impl FnOnce(&mut EquivalenceProperties)) -> Numbers {
            let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, true)]));
            let mut claims = EquivalenceProperties::new(schema);
            claim(&mut claims);
            let partitioning = Partitioning::UnknownPartitioning(partitions.len());
            let properties =
                PlanProperties::new(claims, partitioning, EmissionType::Incremental, Boundedness::Bounded);
            let partitions = partitions.iter().map(|numbers| numbers.to_vec()).collect();
            Numbers { partitions, properties: Arc::new(properties) }
        }
    }

    impl DisplayAs for Numbers {
        fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Numbers")
        }
    }

    impl ExecutionPlan for Numbers {
        fn name(&self) -> &str {
            "Numbers"
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
            Vec::new()
        }

        fn with_new_children(
            self: Arc<Self>,
            _: Vec<Arc<dyn ExecutionPlan>>,
        ) -> FusionResult<Arc<dyn ExecutionPlan>> {
            Ok(self)
        }

        fn execute(&self, partition: usize, _: Arc<TaskContext>) -> FusionResult<SendableRecordBatchStream> {
            let schema = self.schema();
            let batches: Vec<_> = self.partitions[partition]
                .chunks(2)
                .map(|rows| {
                    let column = Arc::new(Int32Array::from(rows.to_vec()));
                    RecordBatch::try_new(self.schema(), vec![column]).map_err(Into::into)
                })
                .collect();
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches))))
        }
    }

    fn number() -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new("n", 0))
    }

    fn ascending(claims: &mut EquivalenceProperties) {
        claims.add_ordering([PhysicalSortExpr::new(number(), SortOptions::default())]);
    }

    fn constant(claims: &mut EquivalenceProperties) {
        let constant = datafusion::physical_expr::ConstExpr::from(number());
        claims.add_constants([constant]).expect("a constant");
    }

    /// What is found wrong in a run of a plan.
    fn found(plan: Arc<dyn ExecutionPlan>) -> String {
        let checked = CheckedPlan::over(plan).expect("a plan");
        let rows = execute_stream(checked.plan.clone(), Arc::new(TaskContext::default()));
        let rows = checked.with_end_checked(rows.expect("rows")).try_collect::<Vec<_>>();
        block_on(rows).map_or_else(|error| error.to_string(), |_| String::new())
    }

    /// Goal: a claim that holds passes, one that does not is found, also where batches meet.
    #[test]
    fn claims_that_do_not_hold_are_found() {
        assert_eq!(found(Arc::new(Numbers::new(&[&[1, 2, 2, 3]], ascending))), "");
        assert!(found(Arc::new(Numbers::new(&[&[1, 2, 1]], ascending))).contains("rows in the order of n@0"));
        assert_eq!(found(Arc::new(Numbers::new(&[&[7, 7, 7]], constant))), "");
        assert!(found(Arc::new(Numbers::new(&[&[7, 7, 8]], constant))).contains("one value of n@0"));
    }

    /// Goal: an operator that reads some partitions of another only, to their ends, is found.
    #[test]
    fn partitions_that_nobody_reads_are_found() {
        // A sort of one partition, to which nobody has put several together.
        let sorted = |partitions: &[&[i32]]| -> Arc<dyn ExecutionPlan> {
            let order = LexOrdering::new([PhysicalSortExpr::new(number(), SortOptions::default())]);
            let numbers = Arc::new(Numbers::new(partitions, |_| {}));
            Arc::new(SortExec::new(order.expect("a key"), numbers))
        };
        assert_eq!(found(sorted(&[&[2, 1]])), "");
        let wrong = found(sorted(&[&[2, 1], &[3]]));
        assert!(wrong.contains("2 partitions, of which SortExec has read 1"), "{wrong}");
    }
}
