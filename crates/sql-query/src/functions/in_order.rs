//! The values that an aggregate has gathered, in an order of its own.
//!
//! DataFusion sorts a group once, so all its aggregates have to agree on the order. One that wants another order
//! gathers its values and what they are sorted by, and they are sorted here.

use super::row_function::{column_name, signature_of};
use crate::failure::{internal, outbound};
use datafusion::arrow::array::{Array, ArrayRef, ListArray, UInt32Array};
use datafusion::arrow::compute::{SortOptions, concat, take};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::cast::as_list_array;
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// An array of values in the order of its keys: arrays that are as long. For each key whether it descends, and whether
/// nulls come first.
pub fn in_order(values: Expr, keys: Vec<(Expr, SortOptions)>) -> Expr {
    let (keys, options): (Vec<Expr>, Vec<SortOptions>) = keys.into_iter().unzip();
    let signature = signature_of(keys.len() + 1, Volatility::Immutable);
    let arguments = std::iter::once(values).chain(keys).collect();
    ScalarUDF::new_from_impl(InOrder { options, signature }).call(arguments)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InOrder {
    options: Vec<SortOptions>,
    signature: Signature,
}

impl ScalarUDFImpl for InOrder {
    fn name(&self) -> &str {
        "in_order"
    }

    fn schema_name(&self, arguments: &[Expr]) -> FusionResult<String> {
        column_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> FusionResult<DataType> {
        types.first().cloned().ok_or_else(|| outbound(internal("values are ordered")))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> FusionResult<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let lists: Vec<&ListArray> =
            columns.iter().map(|column| as_list_array(column)).collect::<FusionResult<_>>()?;
        let Some((values, keys)) = lists.split_first() else {
            return Err(outbound(internal("values are ordered")));
        };
        let DataType::List(field) = values.data_type() else {
            return Err(outbound(internal("values are a list")));
        };
        let sorted =
            (0..values.len()).map(|row| self.sorted(values, keys, row)).collect::<FusionResult<Vec<_>>>()?;
        Ok(ColumnarValue::Array(Arc::new(list_of(field, values, &sorted)?)))
    }
}

impl InOrder {
    /// One row's values in order.
    fn sorted(&self, values: &ListArray, keys: &[&ListArray], row: usize) -> FusionResult<ArrayRef> {
        let values = values.value(row);
        let keys: Vec<ArrayRef> = keys.iter().map(|key| key.value(row)).collect();
        if values.len() < 2 || keys.iter().any(|key| key.len() != values.len()) {
            return Ok(values);
        }
        let fields = keys.iter().zip(&self.options);
        let fields =
            fields.map(|(key, options)| SortField::new_with_options(key.data_type().clone(), *options));
        let rows = RowConverter::new(fields.collect())?.convert_columns(&keys)?;
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        order.sort_by(|left, right| rows.row(*left as usize).cmp(&rows.row(*right as usize)));
        Ok(take(&values, &UInt32Array::from(order), None)?)
    }
}

/// A list of each row's values, null where the row was.
fn list_of(field: &FieldRef, like: &ListArray, rows: &[ArrayRef]) -> FusionResult<ListArray> {
    use datafusion::arrow::array::new_empty_array;
    use datafusion::arrow::buffer::OffsetBuffer;
    let parts: Vec<&dyn Array> = rows.iter().map(AsRef::as_ref).collect();
    let values = match parts.is_empty() {
        true => new_empty_array(field.data_type()),
        false => concat(&parts)?,
    };
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| row.len()));
    Ok(ListArray::try_new(field.clone(), offsets, values, like.nulls().cloned())?)
}
