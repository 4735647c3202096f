//! Rows and arguments, and keys as they are written in texts.

use super::KEYS;
use super::scope::Kind;
use fabius_env::Random;
use fabius_program::catalog::Catalog;
use fabius_program::ir::{Program, ScalarType, Type};
use fabius_value::data_type::Family;
use fabius_value::{ColumnId, DataType, Decimal, TableId, TableSchema, Value, calendar};
use std::collections::HashSet;

/// Arguments for a program.
pub(super) fn arguments(random: &mut Random, program: &Program) -> Vec<Value> {
    let parameters = &program.variables[..program.parameter_count];
    let argument = |parameter: &fabius_program::ir::Variable| match &parameter.ty {
        Type::Scalar(scalar) => value(random, *scalar),
        Type::List(fields) => {
            let rows = random.index(4);
            let mut row = || fields.iter().map(|field| value(random, field.scalar)).collect();
            Value::List((0..rows).map(|_| row()).collect())
        }
    };
    parameters.iter().map(argument).collect()
}

/// Rows for about two thirds of the keys.
pub(super) fn rows(random: &mut Random, catalog: &Catalog) -> Vec<(TableId, Vec<Value>)> {
    let mut rows = Vec::new();
    for (table, schema) in catalog.tables() {
        let mut taken = HashSet::new();
        for _ in 0..KEYS * 2 {
            let row = row(random, schema);
            if random.chance(2, 3) && claim(schema, &row, &mut taken) {
                rows.push((table, row));
            }
        }
    }
    rows
}

fn row(random: &mut Random, schema: &TableSchema) -> Vec<Value> {
    let key = schema.key_mask();
    let columns = schema.columns.iter().enumerate().map(|(at, column)| {
        if key.contains(ColumnId(at as u8)) {
            self::key(random, column.data_type)
        } else {
            value(random, ScalarType { data_type: column.data_type, nullable: column.nullable })
        }
    });
    columns.collect()
}

/// Whether nobody has the row's key or its values in a unique index; then it has them.
fn claim(schema: &TableSchema, row: &[Value], taken: &mut HashSet<String>) -> bool {
    let unique = schema.indexes.iter().filter(|index| index.unique).map(|index| &index.columns);
    let claims: Vec<String> = std::iter::once(&schema.primary_key)
        .chain(unique)
        .enumerate()
        .map(|(at, columns)| {
            let values: Vec<&Value> = columns.iter().map(|column| &row[usize::from(column.0)]).collect();
            format!("{at}: {values:?}")
        })
        .collect();
    let free = !claims.iter().any(|claim| taken.contains(claim));
    if free {
        taken.extend(claims);
    }
    free
}

fn key(random: &mut Random, data_type: DataType) -> Value {
    let number = random.below(KEYS);
    let value = match data_type.family() {
        Family::Boolean => Value::Boolean(number % 2 == 1),
        Family::Integer | Family::Numeric | Family::Double => Value::BigInt(number as i64),
        Family::Text => Value::Text(format!("k{number}")),
        Family::Bytea => Value::Bytea(vec![number as u8]),
        Family::Date => Value::Date(FIRST_DAY + number as i32),
        Family::Timestamp => Value::Timestamp(moment(number)),
    };
    value.cast(data_type).unwrap_or_default()
}

/// The key's value for a number, as a text has it.
pub(super) fn key_literal(kind: Kind, number: u64) -> String {
    match kind {
        Kind::Boolean => format!("{}", number % 2 == 1),
        Kind::Integer | Kind::Numeric | Kind::Double => format!("{number}"),
        Kind::Text => format!("'k{number}'"),
        Kind::Bytes => format!("x'{number:02x}'"),
        Kind::Date => format!("date '2026-11-{:02}'", number + 1),
        Kind::Timestamp => format!("timestamp '2026-11-01 00:00:{number:02}'"),
    }
}

/// 2026-11-01.
const FIRST_DAY: i32 = 20_758;

/// So many seconds after 2026-11-01 00:00:00.
fn moment(number: u64) -> i64 {
    i64::from(FIRST_DAY) * calendar::DAY_MICROS + number as i64 * 1_000_000
}

/// A value: usually small, one in a hundred as large as the type allows.
fn value(random: &mut Random, scalar: ScalarType) -> Value {
    if scalar.nullable && random.chance(1, 4) {
        return Value::Null;
    }
    let data_type = scalar.data_type;
    let large = random.chance(1, 100);
    let number = random.below(10) as i64;
    match data_type.family() {
        Family::Boolean => Value::Boolean(random.chance(1, 2)),
        Family::Integer | Family::Numeric if large => {
            let (low, high) = data_type.exact_range().unwrap_or_default();
            let mantissa = if random.chance(1, 2) { low } else { high };
            Value::Numeric(Decimal { mantissa, scale: data_type.scale() }).cast(data_type).unwrap_or_default()
        }
        Family::Integer => Value::BigInt(number).cast(data_type).unwrap_or_default(),
        Family::Numeric => {
            let cents = Decimal { mantissa: random.below(10_000).into(), scale: 2 };
            Value::Numeric(cents).cast(data_type).unwrap_or_default()
        }
        Family::Double => Value::Double(number as f64 / 4.0),
        Family::Text => Value::Text(format!("k{}", random.below(KEYS))).cast(data_type).unwrap_or_default(),
        Family::Bytea if random.chance(1, 2) => key(random, data_type),
        Family::Bytea => Value::Bytea(vec![number as u8; random.index(4)]),
        Family::Date if large => {
            let (first, last) = calendar::DATE_RANGE;
            Value::Date(if random.chance(1, 2) { first } else { last })
        }
        Family::Date => Value::Date(FIRST_DAY + number as i32),
        Family::Timestamp if large => Value::Timestamp(if random.chance(1, 2) { i64::MIN } else { i64::MAX }),
        Family::Timestamp => Value::Timestamp(moment(number as u64)),
    }
}
