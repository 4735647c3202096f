//! Behind operators: arithmetic that fails instead of wrapping around, regular expressions, moments and intervals.

use super::row_function::{column_name, signature_of};
use crate::arrow_column::arrow_type;
use crate::failure::{internal, outbound};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, PrimitiveArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{and_kleene, or_kleene};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float64Type, Int16Type, Int32Type, Int64Type, i256,
};
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::functions::operator::Operation;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::value_text::numeric_overflow;
use fabius_value::{Error, Result, SqlState};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Arithmetic in a query: both operands and the result are integers of one width, doubles, or numerics.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Arithmetic {
    operation: Operation,
    returns: SqlType,
    signature: Signature,
}

impl Arithmetic {
    /// The expression of an operation.
    pub fn expression(operation: Operation, left: Expr, right: Expr, returns: &SqlType) -> Expr {
        let arithmetic = Arithmetic {
            operation,
            returns: returns.clone(),
            signature: signature_of(2, Volatility::Immutable),
        };
        ScalarUDF::new_from_impl(arithmetic).call(vec![left, right])
    }
}

/// Digits after the point of a sum, product or remainder of two numerics.
pub fn numeric_scale(operation: Operation, left: u8, right: u8) -> u8 {
    match operation {
        Operation::Multiply => (left + right).min(left.max(right).max(20)),
        _ => left.max(right),
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add => "+",
            Operation::Subtract => "-",
            Operation::Multiply => "*",
            Operation::Divide => "/",
            Operation::Remainder => "%",
        }
    }

    fn schema_name(&self, arguments: &[Expr]) -> FusionResult<String> {
        column_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> FusionResult<DataType> {
        Ok(arrow_type(&self.returns))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> FusionResult<ColumnarValue> {
        let is_constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let columns: Vec<ArrayRef> = arguments
            .args
            .iter()
            .map(|argument| argument.clone().into_array(rows))
            .collect::<FusionResult<_>>()?;
        let [left, right] = columns.as_slice() else {
            return Err(outbound(internal("an operation has two operands")));
        };
        let result = self.run(left, right).map_err(outbound)?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// A value of a type, of which DataFusion takes it that it may be null.
pub fn perhaps(value: Expr, data_type: DataType) -> Expr {
    // Not to be computed beforehand, when it would be known.
    let signature = signature_of(1, Volatility::Volatile);
    ScalarUDF::new_from_impl(Perhaps { signature, data_type }).call(vec![value])
}

/// See [`perhaps`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct Perhaps {
    signature: Signature,
    data_type: DataType,
}

impl ScalarUDFImpl for Perhaps {
    fn name(&self) -> &str {
        "perhaps"
    }

    fn schema_name(&self, arguments: &[Expr]) -> FusionResult<String> {
        column_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> FusionResult<DataType> {
        Ok(self.data_type.clone())
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> FusionResult<ColumnarValue> {
        arguments.args.pop().ok_or_else(|| outbound(internal("a subquery has a value")))
    }
}

/// Conditions as one, of which DataFusion does not look into: all of them, or one, has to hold.
pub fn together(conditions: Vec<Expr>, is_all: bool) -> Expr {
    let mut hasher = DefaultHasher::new();
    conditions.hash(&mut hasher);
    let signature = Signature::variadic_any(Volatility::Immutable);
    let together = Together { is_all, hash: hasher.finish(), signature };
    ScalarUDF::new_from_impl(together).call(conditions)
}

/// See [`together`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct Together {
    is_all: bool,
    /// Of the conditions, which would make a long name: names of expressions are put together again and again.
    hash: u64,
    signature: Signature,
}

impl ScalarUDFImpl for Together {
    fn name(&self) -> &str {
        if self.is_all { "all_of" } else { "one_of" }
    }

    fn schema_name(&self, _: &[Expr]) -> FusionResult<String> {
        Ok(format!("{} {:x}", self.name(), self.hash))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> FusionResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> FusionResult<ColumnarValue> {
        let rows = arguments.number_rows;
        let mut result: Option<BooleanArray> = None;
        for argument in arguments.args {
            let holds = argument.into_array(rows)?;
            let holds = holds.as_boolean();
            result = Some(match result {
                None => holds.clone(),
                Some(so_far) if self.is_all => and_kleene(&so_far, holds)?,
                Some(so_far) => or_kleene(&so_far, holds)?,
            });
        }
        let result = result.ok_or_else(|| outbound(internal("conditions without one")))?;
        Ok(ColumnarValue::Array(Arc::new(result)))
    }
}

fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

impl Arithmetic {
    fn run(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        let too_large = || Error::new(SqlState::OUT_OF_RANGE, format!("{} out of range", self.returns));
        macro_rules! integers {
            ($type:ty) => {
                binary::<$type>(left.as_primitive(), right.as_primitive(), |a, b| {
                    match self.operation {
                        Operation::Add => a.checked_add(b),
                        Operation::Subtract => a.checked_sub(b),
                        Operation::Multiply => a.checked_mul(b),
                        Operation::Divide | Operation::Remainder if b == 0 => return Err(division_by_zero()),
                        Operation::Divide => a.checked_div(b),
                        // The least number by -1 leaves nothing over, though it cannot be divided.
                        Operation::Remainder => Some(a.checked_rem(b).unwrap_or(0)),
                    }
                    .ok_or_else(too_large)
                })
            };
        }
        match (left.data_type(), right.data_type()) {
            (DataType::Int16, DataType::Int16) => integers!(Int16Type),
            (DataType::Int32, DataType::Int32) => integers!(Int32Type),
            (DataType::Int64, DataType::Int64) => integers!(Int64Type),
            (DataType::Float64, DataType::Float64) => {
                let is_single = self.returns == SqlType::Real;
                let result = binary::<Float64Type>(left.as_primitive(), right.as_primitive(), |a, b| {
                    let result = match self.operation {
                        Operation::Add => a + b,
                        Operation::Subtract => a - b,
                        Operation::Multiply => a * b,
                        Operation::Divide | Operation::Remainder if b == 0.0 => {
                            return Err(division_by_zero());
                        }
                        Operation::Divide => a / b,
                        Operation::Remainder => a % b,
                    };
                    let result = if is_single { f64::from(result as f32) } else { result };
                    if result.is_infinite() && a.is_finite() && b.is_finite() {
                        return Err(Error::new(SqlState::OUT_OF_RANGE, "value out of range: overflow"));
                    }
                    Ok(result)
                })?;
                Ok(Arc::new(
                    result
                        .as_any()
                        .downcast_ref::<Float64Array>()
                        .cloned()
                        .unwrap_or_else(|| Float64Array::new_null(left.len())),
                ))
            }
            (DataType::Decimal128(_, l), DataType::Decimal128(_, r)) => {
                let (l, r, scale) = (*l as u8, *r as u8, self.returns.scale());
                let result = binary::<Decimal128Type>(left.as_primitive(), right.as_primitive(), |a, b| {
                    self.decimal(a, l, b, r, scale)
                })?;
                let result = result.as_primitive::<Decimal128Type>().clone();
                Ok(Arc::new(result.with_data_type(DataType::Decimal128(38, scale as i8))))
            }
            (left, right) => Err(internal(&format!("an operation of {left} and {right}"))),
        }
    }

    fn decimal(&self, a: i128, left: u8, b: i128, right: u8, scale: u8) -> Result<i128> {
        let (wide_a, wide_b) = (i256::from_i128(a), i256::from_i128(b));
        let up = |value: i256, from: u8, to: u8| value.checked_mul(power(to.saturating_sub(from)));
        let common = left.max(right);
        let aligned = || Some((up(wide_a, left, common)?, up(wide_b, right, common)?));
        let (exact, exact_scale) = match self.operation {
            Operation::Add => (aligned().and_then(|(a, b)| a.checked_add(b)), common),
            Operation::Subtract => (aligned().and_then(|(a, b)| a.checked_sub(b)), common),
            Operation::Multiply => (wide_a.checked_mul(wide_b), left + right),
            Operation::Divide | Operation::Remainder if b == 0 => return Err(division_by_zero()),
            Operation::Remainder => (aligned().and_then(|(a, b)| a.checked_rem(b)), common),
            // One digit more than wanted, for rounding.
            Operation::Divide => {
                (aligned().and_then(|(a, b)| a.checked_mul(power(scale + 1))?.checked_div(b)), scale + 1)
            }
        };
        let exact = exact.ok_or_else(numeric_overflow)?;
        let rounded = if exact_scale > scale {
            let divisor = power(exact_scale - scale);
            let quotient = exact.checked_div(divisor).ok_or_else(numeric_overflow)?;
            let rest = exact.checked_rem(divisor).ok_or_else(numeric_overflow)?;
            let doubled = rest.wrapping_abs().checked_mul(i256::from_i128(2)).ok_or_else(numeric_overflow)?;
            match (doubled >= divisor, exact < i256::ZERO) {
                (false, _) => quotient,
                (true, false) => quotient.wrapping_add(i256::ONE),
                (true, true) => quotient.wrapping_sub(i256::ONE),
            }
        } else {
            up(exact, exact_scale, scale).ok_or_else(numeric_overflow)?
        };
        rounded.to_i128().filter(|value| value.unsigned_abs() < 10u128.pow(38)).ok_or_else(numeric_overflow)
    }
}

fn power(exponent: u8) -> i256 {
    // 10^76 is the greatest power that fits.
    i256::from_i128(10).checked_pow(exponent.min(76).into()).unwrap_or(i256::MAX)
}

fn binary<T: ArrowPrimitiveType>(
    left: &PrimitiveArray<T>,
    right: &PrimitiveArray<T>,
    operation: impl Fn(T::Native, T::Native) -> Result<T::Native>,
) -> Result<ArrayRef> {
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let mut values = Vec::with_capacity(left.len());
    for (at, (a, b)) in left.values().iter().zip(right.values().iter()).enumerate() {
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
        values.push(if is_null { T::Native::default() } else { operation(*a, *b)? });
    }
    let array =
        PrimitiveArray::<T>::try_new(values.into(), nulls).map_err(|error| internal(&error.to_string()))?;
    Ok(Arc::new(array))
}
