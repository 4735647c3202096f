//! Aggregates over frames that move.
//!
//! DataFusion takes the rows that leave a frame out of an aggregate's state. Sums of floats do not come back to what
//! they were by that: what is infinite or no number stays, and what a large value has swallowed is lost. `bit_xor` does
//! not come back to null, and others have no such step. All of these are computed anew for each frame here, as
//! PostgreSQL does (15, 38.12.1).

use crate::failure::{internal, outbound};
use crate::patience::heed;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Rows that are computed with between two questions whether anybody still waits: some hundred microseconds.
const ROWS_BETWEEN: usize = 1 << 18;

/// An aggregate whose frames may move.
pub fn moving(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(Moving(function)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Moving(Arc<AggregateUDF>);

impl AggregateUDFImpl for Moving {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> FusionResult<DataType> {
        self.0.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> FusionResult<FieldRef> {
        self.0.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.0.is_nullable()
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> FusionResult<Box<dyn Accumulator>> {
        self.0.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> FusionResult<Vec<FieldRef>> {
        self.0.state_fields(arguments)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> FusionResult<Box<dyn Accumulator>> {
        let is_float = |field: &FieldRef| matches!(field.data_type(), DataType::Float64 | DataType::Float32);
        let comes_back = match self.name() {
            "count" | "min" | "max" => true,
            "sum" | "avg" => !arguments.expr_fields.iter().any(is_float),
            _ => false,
        };
        if comes_back {
            let own = self.0.create_sliding_accumulator(arguments.clone())?;
            if own.supports_retract_batch() {
                return Ok(own);
            }
        }
        Ok(Box::new(Anew {
            function: self.0.clone(),
            arguments: Owned::of(&arguments),
            columns: Vec::new(),
            rows: 0,
        }))
    }

    fn coerce_types(&self, types: &[DataType]) -> FusionResult<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn default_value(&self, data_type: &DataType) -> FusionResult<ScalarValue> {
        self.0.default_value(data_type)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }
}

/// What an aggregate is called with.
#[derive(Debug)]
struct Owned {
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl Owned {
    fn of(arguments: &AccumulatorArgs<'_>) -> Owned {
        Owned {
            return_field: arguments.return_field.clone(),
            schema: arguments.schema.clone(),
            ignore_nulls: arguments.ignore_nulls,
            order_bys: arguments.order_bys.to_vec(),
            is_reversed: arguments.is_reversed,
            name: arguments.name.to_string(),
            is_distinct: arguments.is_distinct,
            exprs: arguments.exprs.to_vec(),
            expr_fields: arguments.expr_fields.to_vec(),
        }
    }

    fn arguments(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: self.return_field.clone(),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        }
    }
}

/// The rows of the frame, of which the aggregate is computed when it is asked for.
#[derive(Debug)]
struct Anew {
    function: Arc<AggregateUDF>,
    arguments: Owned,
    columns: Vec<ArrayRef>,
    /// How many rows it has computed with since it asked whether anybody waits.
    rows: usize,
}

impl Accumulator for Anew {
    fn update_batch(&mut self, values: &[ArrayRef]) -> FusionResult<()> {
        if self.columns.is_empty() {
            self.columns = values.to_vec();
            return Ok(());
        }
        for (column, more) in self.columns.iter_mut().zip(values) {
            *column = concat(&[column.as_ref(), more.as_ref()])?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> FusionResult<()> {
        let gone = values.first().map_or(0, |column| column.len());
        for column in &mut self.columns {
            let gone = gone.min(column.len());
            *column = column.slice(gone, column.len() - gone);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> FusionResult<ScalarValue> {
        self.rows += self.columns.first().map_or(0, |column| column.len());
        if self.rows >= ROWS_BETWEEN {
            self.rows = 0;
            heed().map_err(outbound)?;
        }
        let mut of_frame = self.function.accumulator(self.arguments.arguments())?;
        if !self.columns.is_empty() {
            of_frame.update_batch(&self.columns)?;
        }
        of_frame.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> FusionResult<Vec<ScalarValue>> {
        Err(outbound(internal("a frame has no state")))
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> FusionResult<()> {
        Err(outbound(internal("frames are not merged")))
    }
}
