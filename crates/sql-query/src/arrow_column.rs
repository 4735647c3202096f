//! Values as Arrow columns and back: one Arrow type for each SQL type.
//!
//! Arrow's types say less than SQL's: `uuid` is its bytes, `time` its microseconds, `json` its text. The binder
//! keeps the SQL types; here they only choose a representation.

use crate::failure::internal;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder, ListArray,
    NullArray, RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, SchemaRef, TimeUnit,
    TimestampMicrosecondType, UInt64Type,
};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit, TextStyle};
use fabius_value::interval::Interval;
use fabius_value::value_text::numeric_overflow;
use fabius_value::{Decimal, Result, Value};
use std::sync::Arc;

/// The Arrow type that a SQL type's values are kept in.
pub fn arrow_type(sql_type: &SqlType) -> DataType {
    match sql_type {
        SqlType::Boolean => DataType::Boolean,
        SqlType::SmallInt => DataType::Int16,
        SqlType::Int => DataType::Int32,
        SqlType::BigInt | SqlType::Oid | SqlType::Time | SqlType::Enumeration(_) => DataType::Int64,
        SqlType::Real | SqlType::Double => DataType::Float64,
        SqlType::Numeric(_) => DataType::Decimal128(38, sql_type.scale() as i8),
        SqlType::Bytea | SqlType::Uuid | SqlType::Inet | SqlType::Cidr => DataType::Binary,
        SqlType::Date => DataType::Date32,
        SqlType::Timestamp | SqlType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, None),
        SqlType::Rounded(of, _) => arrow_type(of),
        SqlType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        SqlType::Array(element) => DataType::List(Arc::new(Field::new("item", arrow_type(element), true))),
        _ => DataType::Utf8,
    }
}

macro_rules! build {
    ($builder:expr, $values:expr, $count:expr, $pattern:pat => $taken:expr) => {{
        let mut builder = $builder;
        for value in $values {
            match value {
                $pattern => builder.append_value($taken),
                _ => builder.append_null(),
            }
        }
        Arc::new(builder.finish()) as ArrayRef
    }};
}

/// A column of values; a value of another kind than the type's is converted, or null if that cannot be.
pub fn column<'a>(values: impl ExactSizeIterator<Item = &'a Value>, sql_type: &SqlType) -> Result<ArrayRef> {
    let n = values.len();
    Ok(match sql_type {
        SqlType::Rounded(of, _) => return column(values, of),
        SqlType::Boolean => {
            build!(BooleanBuilder::with_capacity(n), values, n, Value::Boolean(v) => *v)
        }
        SqlType::SmallInt => {
            let mut builder = Int16Builder::with_capacity(n);
            values.for_each(|value| {
                builder.append_option(value.as_integer().and_then(|v| i16::try_from(v).ok()))
            });
            Arc::new(builder.finish())
        }
        SqlType::Int => {
            let mut builder = Int32Builder::with_capacity(n);
            values.for_each(|value| {
                builder.append_option(value.as_integer().and_then(|v| i32::try_from(v).ok()))
            });
            Arc::new(builder.finish())
        }
        SqlType::BigInt | SqlType::Oid | SqlType::Time | SqlType::Enumeration(_) => {
            let mut builder = Int64Builder::with_capacity(n);
            values.for_each(|value| builder.append_option(value.as_integer()));
            Arc::new(builder.finish())
        }
        SqlType::Real | SqlType::Double => {
            let mut builder = Float64Builder::with_capacity(n);
            values.for_each(|value| {
                builder.append_option(value.as_double());
            });
            Arc::new(builder.finish())
        }
        SqlType::Numeric(_) => {
            let scale = sql_type.scale();
            let mut builder = Decimal128Builder::with_capacity(n).with_data_type(arrow_type(sql_type));
            for value in values {
                let decimal = match value {
                    Value::Numeric(decimal) => Some(*decimal),
                    other => other.as_integer().map(|v| Decimal { mantissa: v.into(), scale: 0 }),
                };
                match decimal.map(|decimal| decimal.rescale(scale)) {
                    None => builder.append_null(),
                    Some(Some(decimal)) => builder.append_value(decimal.mantissa),
                    Some(None) => return Err(numeric_overflow()),
                }
            }
            Arc::new(builder.finish())
        }
        SqlType::Bytea | SqlType::Uuid | SqlType::Inet | SqlType::Cidr => {
            build!(BinaryBuilder::with_capacity(n, n * 16), values, n, Value::Bytea(v) => v)
        }
        SqlType::Date => build!(Date32Builder::with_capacity(n), values, n, Value::Date(v) => *v),
        SqlType::Timestamp | SqlType::TimestampTz => {
            build!(TimestampMicrosecondBuilder::with_capacity(n), values, n, Value::Timestamp(v) => *v)
        }
        SqlType::Interval => {
            let mut builder = IntervalMonthDayNanoBuilder::with_capacity(n);
            for value in values {
                match Interval::of_value(value) {
                    Some(interval) => builder.append_value(native_interval(interval)?),
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        SqlType::Array(element) => {
            let (mut lengths, mut present, mut inner) =
                (Vec::with_capacity(n), Vec::with_capacity(n), Vec::new());
            for value in values {
                let stored = match value {
                    Value::Text(text) => {
                        text_format::read(text, sql_type, &TextStyle::default(), Fit::Store)?
                    }
                    _ => Value::Null,
                };
                let rows = match (value, &stored) {
                    (Value::List(rows), _) | (_, Value::List(rows)) => rows.as_slice(),
                    _ => &[],
                };
                present.push(!value.is_null());
                lengths.push(rows.len());
                inner.extend(rows.iter().map(|row| row.first().cloned().unwrap_or_default()));
            }
            let items = column(inner.iter(), element)?;
            Arc::new(
                ListArray::try_new(
                    Arc::new(Field::new("item", arrow_type(element), true)),
                    OffsetBuffer::from_lengths(lengths),
                    items,
                    Some(NullBuffer::from(present)),
                )
                .map_err(|error| internal(&error.to_string()))?,
            )
        }
        SqlType::Unknown if n == 0 => Arc::new(NullArray::new(0)),
        _ => build!(StringBuilder::with_capacity(n, n * 8), values, n, Value::Text(v) => v),
    })
}

/// One value as a literal.
pub fn scalar(value: &Value, sql_type: &SqlType) -> Result<ScalarValue> {
    let column = column(std::iter::once(value), sql_type)?;
    ScalarValue::try_from_array(&column, 0).map_err(|error| internal(&error.to_string()))
}

/// The value at one place of a column.
pub fn value_at(column: &ArrayRef, at: usize, sql_type: &SqlType) -> Value {
    if column.is_null(at) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => Value::Boolean(column.as_boolean().value(at)),
        DataType::Int16 => Value::SmallInt(column.as_primitive::<Int16Type>().value(at)),
        DataType::Int32 => Value::Int(column.as_primitive::<Int32Type>().value(at)),
        DataType::Int64 => Value::BigInt(column.as_primitive::<Int64Type>().value(at)),
        DataType::UInt64 => Value::BigInt(column.as_primitive::<UInt64Type>().value(at) as i64),
        DataType::Float64 => Value::Double(column.as_primitive::<Float64Type>().value(at)),
        DataType::Decimal128(_, scale) => Value::Numeric(Decimal {
            mantissa: column.as_primitive::<Decimal128Type>().value(at),
            scale: *scale as u8,
        }),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(at).to_string()),
        DataType::Utf8View => Value::Text(column.as_string_view().value(at).to_string()),
        DataType::LargeUtf8 => Value::Text(column.as_string::<i64>().value(at).to_string()),
        DataType::Binary => Value::Bytea(column.as_binary::<i32>().value(at).to_vec()),
        DataType::BinaryView => Value::Bytea(column.as_binary_view().value(at).to_vec()),
        DataType::Date32 => Value::Date(column.as_primitive::<Date32Type>().value(at)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Value::Timestamp(column.as_primitive::<TimestampMicrosecondType>().value(at))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            interval_of(column.as_primitive::<IntervalMonthDayNanoType>().value(at)).into_value()
        }
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(at);
            let element = if let SqlType::Array(element) = sql_type { element } else { sql_type };
            Value::List((0..items.len()).map(|at| vec![value_at(&items, at, element)]).collect())
        }
        _ => Value::Null,
    }
}

/// An interval as columns hold it, in nanoseconds; 22008 if it has too many.
pub fn native_interval(Interval { months, days, micros }: Interval) -> Result<IntervalMonthDayNano> {
    let nanos = micros.checked_mul(1000).ok_or_else(|| {
        fabius_value::Error::new(fabius_value::SqlState::DATETIME_OVERFLOW, "interval out of range")
    })?;
    Ok(IntervalMonthDayNano::new(months, days, nanos))
}

/// The interval that a column holds.
pub fn interval_of(native: IntervalMonthDayNano) -> Interval {
    Interval { months: native.months, days: native.days, micros: native.nanoseconds / 1000 }
}

/// Rows as a batch.
pub fn batch(rows: &[Vec<Value>], types: &[SqlType], schema: &SchemaRef) -> Result<RecordBatch> {
    const MISSING: Value = Value::Null;
    let columns = types
        .iter()
        .enumerate()
        .map(|(at, sql_type)| column(rows.iter().map(|row| row.get(at).unwrap_or(&MISSING)), sql_type))
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| internal(&error.to_string()))
}

/// The rows of a batch, as a client gets them: values of the columns' storage types.
pub fn rows(batch: &RecordBatch, types: &[SqlType]) -> Vec<Vec<Value>> {
    let mut rows = vec![Vec::with_capacity(types.len()); batch.num_rows()];
    for (column, sql_type) in batch.columns().iter().zip(types) {
        for (at, row) in rows.iter_mut().enumerate() {
            row.push(outward(value_at(column, at, sql_type), sql_type));
        }
    }
    rows
}

/// What leaves the query differently from how functions see it.
fn outward(value: Value, sql_type: &SqlType) -> Value {
    match (value, sql_type) {
        (Value::Numeric(decimal), numeric @ SqlType::Numeric(_)) => Value::Numeric(numeric.shown(decimal)),
        (value @ Value::List(_), SqlType::Interval) => {
            text_format::text(&value, sql_type, &TextStyle::default()).into()
        }
        (Value::List(rows), SqlType::Array(element)) => Value::List(
            rows.into_iter()
                .map(|row| row.into_iter().map(|value| outward(value, element)).collect())
                .collect(),
        ),
        (value, _) => value,
    }
}
