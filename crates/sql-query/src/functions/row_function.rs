//! A function over values as DataFusion calls it.

use crate::arrow_column::{arrow_type, column, value_at};
use crate::failure::outbound;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::functions::{self, Call, Definition};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::Value;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A function of the table in one use.
pub struct RowFunction {
    definition: &'static Definition,
    call: Call,
    signature: Signature,
}

impl RowFunction {
    /// The expression that calls it.
    pub fn expression(definition: &'static Definition, call: Call, arguments: Vec<Expr>) -> Expr {
        let signature = signature_of(arguments.len(), volatility_of(definition));
        ScalarUDF::new_from_impl(RowFunction { definition, call, signature }).call(arguments)
    }
}

/// How often DataFusion may call a function instead of once for each row.
fn volatility_of(definition: &Definition) -> Volatility {
    match definition.volatility {
        functions::Volatility::Immutable => Volatility::Immutable,
        functions::Volatility::Stable => Volatility::Stable,
        functions::Volatility::Volatile => Volatility::Volatile,
    }
}

/// A signature of so many arguments whose types are settled already.
pub(super) fn signature_of(arguments: usize, volatility: Volatility) -> Signature {
    if arguments == 0 { Signature::nullary(volatility) } else { Signature::any(arguments, volatility) }
}

/// Parts of a call's arguments that its name says, at most.
const NAMED_PARTS: usize = 64;

/// What the column of a call is called. DataFusion asks for this at every level of an expression, and the name has
/// those of all levels below in it, so that one of hundreds of levels would take minutes: where there is much below,
/// a number stands for it.
pub(super) fn column_name(function: &str, arguments: &[Expr]) -> FusionResult<String> {
    let mut parts = 0;
    for argument in arguments {
        argument.apply(|_| {
            parts += 1;
            Ok(if parts > NAMED_PARTS { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
    }
    let inner = if parts > NAMED_PARTS {
        let mut hasher = DefaultHasher::new();
        arguments.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    } else {
        let names = arguments.iter().map(|argument| argument.schema_name().to_string());
        names.collect::<Vec<_>>().join(",")
    };
    Ok(format!("{function}({inner})"))
}

/// Calls a body once for each row, or once if all arguments are literals and nothing else can change the result.
pub(super) fn for_each_row(
    volatility: Volatility,
    arguments: &[ColumnarValue],
    types: &[SqlType],
    returns: &SqlType,
    rows: usize,
    mut body: impl FnMut(&[Value]) -> fabius_value::Result<Value>,
) -> FusionResult<ColumnarValue> {
    let is_constant = volatility != Volatility::Volatile
        && arguments.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    let count = if is_constant && !arguments.is_empty() { 1 } else { rows };
    let columns: Vec<(ArrayRef, bool)> = arguments
        .iter()
        .map(|argument| match argument {
            ColumnarValue::Array(array) => Ok((array.clone(), false)),
            ColumnarValue::Scalar(scalar) => Ok((scalar.to_array()?, true)),
        })
        .collect::<FusionResult<_>>()?;
    let mut values = vec![Value::Null; columns.len()];
    for ((column, _), (value, sql_type)) in
        columns.iter().zip(values.iter_mut().zip(types)).filter(|((_, is_scalar), _)| *is_scalar)
    {
        *value = value_at(column, 0, sql_type);
    }
    let mut results = Vec::with_capacity(count);
    for at in 0..count {
        for ((column, is_scalar), (value, sql_type)) in columns.iter().zip(values.iter_mut().zip(types)) {
            if !is_scalar {
                *value = value_at(column, at, sql_type);
            }
        }
        results.push(body(&values).map_err(outbound)?);
    }
    let array = column(results.iter(), returns).map_err(outbound)?;
    if count == 1 && is_constant && !arguments.is_empty() {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
    }
    Ok(ColumnarValue::Array(array))
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        &self.definition.name
    }

    fn schema_name(&self, arguments: &[Expr]) -> FusionResult<String> {
        column_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> FusionResult<DataType> {
        Ok(arrow_type(&self.call.returns))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> FusionResult<ColumnarValue> {
        let definition = self.definition;
        let (types, returns) = (&self.call.types, &self.call.returns);
        for_each_row(
            volatility_of(definition),
            &arguments.args,
            types,
            returns,
            arguments.number_rows,
            |values| definition.apply(values, &self.call),
        )
    }
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.definition.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &RowFunction) -> bool {
        std::ptr::eq(self.definition, other.definition)
            && self.call.types == other.call.types
            && self.call.returns == other.call.returns
            && Arc::ptr_eq(&self.call.environment, &other.call.environment)
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
        self.call.types.hash(state);
    }
}
