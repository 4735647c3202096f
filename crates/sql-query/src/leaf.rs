//! What a query reads: tables of the row source, relations of the catalog, sequences.

use crate::arrow_column::{arrow_type, batch};
use crate::bind::Flavor;
use crate::failure::{internal, outbound};
use crate::key_range::KeyRange;
use crate::noted_keys::{Fewness, Noted};
use crate::row_source::{RowSource, TableScan};
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::TableType;
use datafusion::error::Result as FusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use fabius::Allowance;
use fabius_sql_meaning::analysis::Named;
use fabius_sql_meaning::catalog::{ROW_NUMBER, Sequence, Table};
use fabius_sql_meaning::functions::Environment;
use fabius_sql_meaning::output::RowLock;
use fabius_sql_meaning::pg_catalog;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Result, Value};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::fmt;
use std::sync::Arc;

/// Ranges that are shown of a scan.
const RANGES_SHOWN: usize = 3;

/// What one run of a query reads from.
pub(super) struct Run {
    pub(super) source: Arc<dyn RowSource>,
    /// What it may hold.
    pub(super) memory: Arc<Allowance>,
    /// Plans and runs what an operator has found to be asked.
    pub(super) apart:
        for<'p> fn(&'p LogicalPlan, Arc<TaskContext>) -> BoxFuture<'p, FusionResult<RecordBatch>>,
}

impl Run {
    /// What operators of a context read from.
    pub(super) fn of(context: &TaskContext) -> FusionResult<Arc<Run>> {
        let run = context.session_config().get_extension::<Run>();
        run.ok_or_else(|| outbound(internal("a query of nobody")))
    }
}

/// What is read.
#[derive(Clone)]
pub(super) enum Leaf {
    /// A table.
    Table { table: Arc<Table>, row_lock: Option<RowLock> },
    /// A relation of the catalog.
    System(&'static pg_catalog::Relation),
    /// A sequence.
    Sequence(Arc<Sequence>),
    /// Rows that were found before, under a number.
    Given { number: u64, columns: Vec<(String, SqlType)> },
}

/// A leaf as DataFusion knows it.
#[derive(Clone)]
pub(super) struct LeafProvider {
    leaf: Leaf,
    environment: Arc<Environment>,
    types: Vec<SqlType>,
    schema: SchemaRef,
}

impl LeafProvider {
    pub(super) fn new(leaf: Leaf, environment: Arc<Environment>) -> LeafProvider {
        let columns = columns_of(&leaf);
        let fields: Vec<Field> =
            columns.iter().map(|(name, sql_type, _)| Field::new(name, arrow_type(sql_type), true)).collect();
        let types = columns.into_iter().map(|(_, sql_type, _)| sql_type).collect();
        LeafProvider { leaf, environment, types, schema: Arc::new(Schema::new(fields)) }
    }

    /// The rows' columns: name, type, and what else is known of them.
    pub(super) fn columns(&self) -> Vec<(String, SqlType, Flavor)> {
        columns_of(&self.leaf)
    }
}

fn columns_of(leaf: &Leaf) -> Vec<(String, SqlType, Flavor)> {
    match leaf {
        Leaf::Table { table, .. } => {
            let columns =
                table.columns.iter().map(|column| (column.name.clone(), column.sql_type.of_values()));
            // What tells rows apart where no key does comes last.
            let number = table.primary_key.is_none().then(|| (ROW_NUMBER.to_string(), SqlType::BigInt));
            columns.chain(number).map(|(name, sql_type)| (name, sql_type, Flavor::Plain)).collect()
        }
        Leaf::System(relation) => relation
            .columns
            .iter()
            .map(|column| {
                let flavor = if column.is_vector { Flavor::Vector } else { named_flavor(&column.type_name) };
                (column.name.clone(), column.sql_type.clone(), flavor)
            })
            .collect(),
        Leaf::Sequence(_) => vec![
            ("last_value".into(), SqlType::BigInt, Flavor::Plain),
            ("log_cnt".into(), SqlType::BigInt, Flavor::Plain),
            ("is_called".into(), SqlType::Boolean, Flavor::Plain),
        ],
        Leaf::Given { columns, .. } => {
            let columns = columns.iter().cloned();
            columns.map(|(name, sql_type)| (name, sql_type, Flavor::Plain)).collect()
        }
    }
}

/// Identifiers that show as names.
fn named_flavor(type_name: &str) -> Flavor {
    Named::of_name(type_name).map_or(Flavor::Plain, Flavor::Named)
}

impl fmt::Debug for LeafProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.leaf {
            Leaf::Table { table, .. } => write!(f, "{}", table.name.name),
            Leaf::System(relation) => write!(f, "{}", relation.name),
            Leaf::Sequence(sequence) => write!(f, "{}", sequence.name.name),
            Leaf::Given { .. } => write!(f, "rows found before"),
        }
    }
}

#[async_trait]
impl TableProvider for LeafProvider {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> FusionResult<Vec<TableProviderFilterPushDown>> {
        // Filters choose the range; they stay, as a range may hold more.
        let push = match self.leaf {
            Leaf::Table { .. } => TableProviderFilterPushDown::Inexact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(vec![push; filters.len()])
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> FusionResult<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| (0..self.types.len()).collect());
        let schema = Arc::new(self.schema.project(&columns)?);
        let ranges = match &self.leaf {
            Leaf::Table { table, .. } => KeyRange::choose(table, filters).map_err(outbound)?,
            _ => vec![KeyRange::default()],
        };
        // A filter takes rows away after the scan.
        let limit = if filters.is_empty() { limit } else { None };
        Ok(Arc::new(LeafScan::new(self.clone(), columns, (ranges, filters.to_vec()), limit, schema)))
    }
}

/// A scan of a leaf.
pub(super) struct LeafScan {
    provider: LeafProvider,
    columns: Vec<usize>,
    ranges: Vec<KeyRange>,
    /// What the ranges were chosen for.
    filters: Vec<Expr>,
    /// What a join asks for, which is known when the scan begins.
    lookup: Option<Lookup>,
    limit: Option<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

/// Values that a join asks some columns of a table for.
#[derive(Clone)]
struct Lookup {
    /// The columns, and the places of their values among what is noted.
    columns: Vec<(String, usize)>,
    noted: Arc<Noted>,
}

impl LeafScan {
    fn new(
        provider: LeafProvider,
        columns: Vec<usize>,
        (ranges, filters): (Vec<KeyRange>, Vec<Expr>),
        limit: Option<usize>,
        schema: SchemaRef,
    ) -> LeafScan {
        let order = order_of(&provider, &columns, &ranges, &schema);
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema.clone(), order),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        LeafScan { provider, columns, ranges, filters, lookup: None, limit, schema, properties }
    }

    /// How many rows there are to choose from, about.
    pub(super) fn rows_about(&self) -> Option<usize> {
        match &self.provider.leaf {
            Leaf::Table { table, .. } => self.provider.environment.session.rows_about(table),
            _ => None,
        }
    }

    /// How few rows it gives.
    pub(super) fn fewness(&self) -> Fewness {
        match &self.provider.leaf {
            Leaf::Given { .. } => Fewness::Few,
            Leaf::Table { table, .. } => match self.ranges.iter().all(|range| range.is_of_one_row(table)) {
                true => Fewness::Few,
                false if self.ranges.iter().all(|range| !range.equal.is_empty()) => Fewness::Some,
                false if self.ranges.iter().all(KeyRange::is_bounded) => Fewness::Bounded,
                false => Fewness::Unknown,
            },
            Leaf::System(_) | Leaf::Sequence(_) => Fewness::Unknown,
        }
    }

    /// A scan of the rows alone that have values which are noted by the time it begins, given the columns' places and
    /// those of the values among what is noted; `None` if there is no key for that. It is in no order.
    pub(super) fn asked(&self, wanted: &[(usize, usize)], noted: &Arc<Noted>) -> Option<LeafScan> {
        let Leaf::Table { table, .. } = &self.provider.leaf else { return None };
        let named = |(at, noted): &(usize, usize)| {
            let column = table.columns.get(*self.columns.get(*at)?)?;
            is_in_key_order(&column.sql_type).then(|| (column.name.clone(), *noted))
        };
        let columns: Vec<(String, usize)> = wanted.iter().filter_map(named).collect();
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let is_read = self.lookup.is_none() && self.limit.is_none() && self.fewness() != Fewness::Few;
        let known = self.ranges.iter().map(|range| range.equal.len()).max().unwrap_or_default();
        if !is_read || !KeyRange::can_look_up(table, &self.filters, &names, known) {
            return None;
        }
        let claims = EquivalenceProperties::new(self.schema.clone());
        Some(LeafScan {
            provider: self.provider.clone(),
            columns: self.columns.clone(),
            ranges: self.ranges.clone(),
            filters: self.filters.clone(),
            lookup: Some(Lookup { columns, noted: noted.clone() }),
            limit: None,
            schema: self.schema.clone(),
            properties: Arc::new(self.properties.as_ref().clone().with_eq_properties(claims)),
        })
    }

    /// The places among its columns of those of the table's key, if all of that are read.
    pub(super) fn key_columns(&self) -> Vec<usize> {
        let Leaf::Table { table, .. } = &self.provider.leaf else { return Vec::new() };
        let place = |name: &String| {
            let stored = table.columns.iter().position(|column| column.name == *name)?;
            self.columns.iter().position(|column| *column == stored)
        };
        let key = table.primary_key.iter().flat_map(|key| &key.columns);
        key.map(place).collect::<Option<_>>().unwrap_or_default()
    }
}

/// The order that rows of one range come in: that of its key, as far as its columns are read.
fn order_of(
    provider: &LeafProvider,
    columns: &[usize],
    ranges: &[KeyRange],
    schema: &SchemaRef,
) -> Option<Vec<PhysicalSortExpr>> {
    let (Leaf::Table { table, .. }, [range]) = (&provider.leaf, ranges) else { return None };
    let key = match &range.index {
        Some(name) => table.key(name)?,
        None => table.primary_key.as_ref()?,
    };
    let next = key.columns.iter().skip(range.equal.len()).map_while(|name| {
        let place = table.columns.iter().position(|column| column.name == *name)?;
        let at = columns.iter().position(|column| *column == place)?;
        is_in_key_order(provider.types.get(place)?).then(|| {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(at).name(), at));
            PhysicalSortExpr::new(column, SortOptions { descending: false, nulls_first: false })
        })
    });
    let order: Vec<PhysicalSortExpr> = next.collect();
    (!order.is_empty()).then_some(order)
}

/// Whether keys are in the order that sorting values of a type gives.
fn is_in_key_order(sql_type: &SqlType) -> bool {
    use SqlType as T;
    matches!(
        sql_type,
        T::SmallInt
            | T::Int
            | T::BigInt
            | T::Text
            | T::VarChar(_)
            | T::Date
            | T::Timestamp
            | T::TimestampTz
            | T::Uuid
            | T::Inet
            | T::Cidr
    )
}

impl fmt::Debug for LeafScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scan of {:?} {:?} limit {:?}", self.provider, self.ranges, self.limit)
    }
}

impl DisplayAs for LeafScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan of {:?}", self.provider)?;
        if let Leaf::Table { table, .. } = &self.provider.leaf
            && let Some(key) =
                self.ranges.first().and_then(|range| range.index.as_ref()).and_then(|name| table.key(name))
        {
            write!(f, " by {}", key.name)?;
            let shown: Vec<String> =
                self.ranges.iter().take(RANGES_SHOWN).map(|range| range.words(&key.columns)).collect();
            let more = if self.ranges.len() > RANGES_SHOWN { " or ..." } else { "" };
            write!(f, " ({}{more})", shown.join(" or "))?;
        }
        if let Some(lookup) = &self.lookup {
            let columns: Vec<&str> = lookup.columns.iter().map(|(name, _)| name.as_str()).collect();
            write!(f, " by the keys to look up ({})", columns.join(", "))?;
        }
        self.limit.iter().try_for_each(|limit| write!(f, " limit {limit}"))
    }
}

impl ExecutionPlan for LeafScan {
    fn name(&self) -> &str {
        "LeafScan"
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

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> FusionResult<SendableRecordBatchStream> {
        let run = context.session_config().get_extension::<Run>();
        let types: Vec<SqlType> =
            self.columns.iter().filter_map(|column| self.provider.types.get(*column).cloned()).collect();
        let (leaf, environment) = (self.provider.leaf.clone(), self.provider.environment.clone());
        let (columns, ranges, limit) = (self.columns.clone(), self.ranges.clone(), self.limit);
        let (lookup, filters) = (self.lookup.clone(), self.filters.clone());
        let schema = self.schema.clone();
        let batch_rows = context.session_config().batch_size();
        // What a join asks for is known when it wants the first row, not before.
        let rows = futures::stream::once(async move {
            match looked_up(&leaf, &filters, lookup) {
                Some(keys) => together(read(leaf, environment, run, columns, keys, limit), batch_rows),
                None => read(leaf, environment, run, columns, ranges, limit),
            }
        });
        let rows = rows.flatten();
        let batches = rows.flat_map(move |part| {
            let part = part.map(|rows| {
                let chunks = rows.chunks(batch_rows);
                chunks.map(|chunk| batch(chunk, &types, &schema).map_err(outbound)).collect::<Vec<_>>()
            });
            futures::stream::iter(part.unwrap_or_else(|error| vec![Err(outbound(error))]))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}

/// The ranges of what a join asks for, if that is known and there are not too many.
fn looked_up(leaf: &Leaf, filters: &[Expr], lookup: Option<Lookup>) -> Option<Vec<KeyRange>> {
    let (Leaf::Table { table, .. }, Lookup { columns, noted }) = (leaf, lookup?) else { return None };
    KeyRange::look_up(table, filters, &columns, &noted.keys()?)
}

/// Parts of few rows as parts of many.
fn together(
    parts: BoxStream<'static, Result<Vec<Vec<Value>>>>,
    rows: usize,
) -> BoxStream<'static, Result<Vec<Vec<Value>>>> {
    let more = move |mut parts: BoxStream<'static, Result<Vec<Vec<Value>>>>| async move {
        let mut whole = Vec::new();
        while let Some(part) = parts.next().await {
            match part {
                Ok(part) => whole.extend(part),
                Err(error) => return Some((Err(error), parts)),
            }
            if whole.len() >= rows {
                break;
            }
        }
        (!whole.is_empty()).then_some((Ok(whole), parts))
    };
    futures::stream::unfold(parts, more).boxed()
}

/// The rows of a leaf, some at a time.
fn read(
    leaf: Leaf,
    environment: Arc<Environment>,
    run: Option<Arc<Run>>,
    columns: Vec<usize>,
    ranges: Vec<KeyRange>,
    limit: Option<usize>,
) -> BoxStream<'static, Result<Vec<Vec<Value>>>> {
    let chosen = move |row: &[Value], columns: &[usize]| -> Vec<Value> {
        columns.iter().map(|at| row.get(*at).cloned().unwrap_or_default()).collect()
    };
    let source = run.map(|run| run.source.clone()).ok_or_else(|| internal("a scan without a source"));
    match (leaf, source) {
        (Leaf::Table { table, row_lock }, Ok(source)) => {
            let scans = ranges.into_iter().map(move |range| TableScan {
                table: table.clone(),
                index: range.index,
                equal: range.equal,
                lower: range.lower,
                upper: range.upper,
                columns: columns.clone(),
                limit,
                row_lock,
            });
            futures::stream::iter(scans).flat_map(move |scan| source.clone().scan(scan)).boxed()
        }
        (Leaf::System(relation), _) => {
            let rows = async move {
                let rows = relation.rows(&environment);
                Ok(rows.iter().map(|row| chosen(row, &columns)).collect())
            };
            futures::stream::once(rows).boxed()
        }
        (Leaf::Sequence(sequence), Ok(source)) => {
            let row = async move {
                let (last, is_called) = source.sequence(&sequence.name).await?;
                let row = [Value::BigInt(last), Value::BigInt(0), Value::Boolean(is_called)];
                Ok(vec![chosen(&row, &columns)])
            };
            futures::stream::once(row).boxed()
        }
        (Leaf::Given { number, .. }, Ok(source)) => {
            futures::stream::iter([source.given(number, &columns)]).boxed()
        }
        (_, Err(error)) => futures::stream::iter([Err(error)]).boxed(),
    }
}
