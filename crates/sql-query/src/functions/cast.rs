//! Conversions of columns.

use super::row_function::{column_name, for_each_row, signature_of};
use crate::arrow_column::arrow_type;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use fabius_sql_meaning::conversion::convert;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{Fit, TextStyle};
use fabius_value::Value;

/// A conversion in a query.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Conversion {
    from: SqlType,
    to: SqlType,
    style: TextStyle,
    name: String,
    signature: Signature,
}

impl Conversion {
    /// The expression that converts another.
    pub fn expression(expression: Expr, from: &SqlType, to: &SqlType, style: &TextStyle) -> Expr {
        let conversion = Conversion {
            from: from.clone(),
            to: to.clone(),
            style: style.clone(),
            name: format!("as {to}"),
            signature: signature_of(1, Volatility::Immutable),
        };
        ScalarUDF::new_from_impl(conversion).call(vec![expression])
    }
}

impl ScalarUDFImpl for Conversion {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, arguments: &[Expr]) -> FusionResult<String> {
        column_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> FusionResult<DataType> {
        Ok(arrow_type(&self.to))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> FusionResult<ColumnarValue> {
        let types = std::slice::from_ref(&self.from);
        for_each_row(
            Volatility::Immutable,
            &arguments.args,
            types,
            &self.to,
            arguments.number_rows,
            |values| match values {
                [value] => convert(value, &self.from, &self.to, &self.style, Fit::Cast),
                _ => Ok(Value::Null),
            },
        )
    }
}
