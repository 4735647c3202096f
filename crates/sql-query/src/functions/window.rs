//! Functions over windows whose other arguments are computed row by row: DataFusion's own take literals only.

use crate::failure::outbound;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array, new_null_array};
use datafusion::arrow::compute::{concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type};
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, SqlState};
use std::ops::Range;
use std::sync::Arc;

/// What a function takes of its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// `ntile(int)`: the number of the row's part of so many.
    Tile,
    /// `lag(value, int, default)`: the value so many rows before.
    Lag,
    /// `lead(value, int, default)`: the value so many rows behind.
    Lead,
    /// `nth_value(value, int)`: the value at a place of the frame.
    Nth,
}

impl Window {
    /// The function of so many arguments.
    pub fn function(self, arguments: usize) -> Arc<WindowUDF> {
        let signature = Signature::any(arguments, Volatility::Immutable);
        Arc::new(WindowUDF::from(WindowFunction { window: self, signature }))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WindowFunction {
    window: Window,
    signature: Signature,
}

impl WindowUDFImpl for WindowFunction {
    fn name(&self) -> &str {
        match self.window {
            Window::Tile => "ntile",
            Window::Lag => "lag",
            Window::Lead => "lead",
            Window::Nth => "nth_value",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(
        &self,
        _: PartitionEvaluatorArgs<'_>,
    ) -> FusionResult<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator { window: self.window, row: 0 }))
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> FusionResult<FieldRef> {
        let data_type = match self.window {
            Window::Tile => DataType::Int32,
            _ => arguments.input_fields().first().map_or(DataType::Null, |field| field.data_type().clone()),
        };
        Ok(Field::new(arguments.name(), data_type, true).into())
    }
}

#[derive(Debug)]
struct Evaluator {
    window: Window,
    /// The row that comes next, where rows come one by one.
    row: usize,
}

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> FusionResult<ArrayRef> {
        match (self.window, values) {
            (Window::Tile, [tiles, ..]) => tiles_of(tiles, rows),
            (Window::Lag, [value, offset, default @ ..]) => shifted(value, offset, default.first(), -1),
            (_, [value, offset, default @ ..]) => shifted(value, offset, default.first(), 1),
            _ => Ok(new_null_array(&DataType::Null, rows)),
        }
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> FusionResult<ScalarValue> {
        let row = self.row;
        self.row += 1;
        let [value, places, ..] = values else { return Ok(ScalarValue::Null) };
        let Some(place) = integer(places, row) else { return ScalarValue::try_from(value.data_type()) };
        if place <= 0 {
            let message = "argument of nth_value must be greater than zero";
            return Err(outbound(Error::new(SqlState(*b"22016"), message)));
        }
        let at = range.start + place as usize - 1;
        if at < range.end {
            ScalarValue::try_from_array(value, at)
        } else {
            ScalarValue::try_from(value.data_type())
        }
    }

    fn uses_window_frame(&self) -> bool {
        self.window == Window::Nth
    }
}

/// An integer of a column; `None` if it is null.
fn integer(column: &ArrayRef, row: usize) -> Option<i64> {
    let integers = column.as_primitive_opt::<Int32Type>()?;
    integers.is_valid(row).then(|| integers.value(row).into())
}

/// The rows in as many parts as the first row says, the first parts with a row more.
fn tiles_of(tiles: &ArrayRef, rows: usize) -> FusionResult<ArrayRef> {
    let Some(count) = integer(tiles, 0) else { return Ok(new_null_array(&DataType::Int32, rows)) };
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
        let message = "argument of ntile must be greater than zero";
        return Err(outbound(Error::new(SqlState(*b"22014"), message)));
    };
    let (least, longer) = (rows / count, rows % count);
    let in_longer = longer * (least + 1);
    let tile = |row: usize| match row.checked_sub(in_longer) {
        Some(behind) => longer + behind / least.max(1),
        None => row / (least + 1),
    };
    Ok(Arc::new((0..rows).map(|row| tile(row) as i32 + 1).collect::<Int32Array>()))
}

/// Each row's value so many rows on in a direction, or the default beyond the partition.
fn shifted(
    value: &ArrayRef,
    offset: &ArrayRef,
    default: Option<&ArrayRef>,
    direction: i64,
) -> FusionResult<ArrayRef> {
    let rows = value.len();
    let source = match default {
        Some(default) => concat(&[value.as_ref(), default.as_ref()])?,
        None => value.clone(),
    };
    let place = |row: usize| -> Option<u32> {
        let at = row as i64 + direction * integer(offset, row)?;
        let within = usize::try_from(at).ok().filter(|at| *at < rows);
        within.or(default.map(|_| rows + row)).map(|at| at as u32)
    };
    Ok(take(&source, &(0..rows).map(place).collect::<UInt32Array>(), None)?)
}
