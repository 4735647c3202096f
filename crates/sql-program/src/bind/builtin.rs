//! PostgreSQL's functions that programs have under their own name.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::stop::{Bind, beyond, wrong};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_sql_meaning::functions::{Definition, Kind};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{Category, Context, category};
use fabius_value::interval::Interval;
use fabius_value::{DataType, DateField, Value, calendar};

impl Binder<'_> {
    /// A function of the table that programs have under a name of their own.
    pub(super) fn of_programs(&mut self, definition: &Definition, arguments: Vec<Bound>) -> Bind<Bound> {
        let name = &definition.name;
        let (Some(program), Kind::Is(returns)) = (definition.program, &definition.returns) else {
            return beyond(format!("function {name}"));
        };
        // What is cut off a moment with a time zone, or shown of it, depends on the session's.
        let is_of_zone = |sql_type: &SqlType| *sql_type == SqlType::TimestampTz;
        if is_of_zone(returns) || arguments.iter().any(|argument| is_of_zone(&argument.sql_type)) {
            self.in_utc()?;
        }
        // Logarithms and powers of exact numbers are exact in PostgreSQL.
        let is_exact = arguments.iter().any(|argument| matches!(argument.sql_type, SqlType::Numeric(_)));
        if *returns == SqlType::Double && is_exact {
            return beyond(format!("function {name} of exact numbers"));
        }
        let (mut values, mut nullable) = (Vec::new(), false);
        for (at, argument) in arguments.into_iter().enumerate() {
            let Some(Kind::Is(to)) = definition.parameter(at) else {
                return beyond(format!("function {name} of any type"));
            };
            let argument = self.convert(argument, to, Context::Implicit)?;
            nullable |= argument.nullable;
            values.push(self.settled(argument)?);
        }
        Ok(Bound::computed(tree::call(program, values), returns.clone(), nullable))
    }

    /// `round`, `trunc` and others, of the number that the definition takes.
    pub(super) fn rounded(&mut self, definition: &Definition, mut arguments: Vec<Bound>) -> Bind<Bound> {
        let function = match definition.name.as_str() {
            "ceiling" => "ceil",
            "fabius_python_rounded" => "round_even",
            other => other,
        };
        let digits = if arguments.len() == 2 { Some(arguments.remove(1)) } else { None };
        let value = self.as_operand(arguments.remove(0), &definition.parameters[0])?;
        let value = match &definition.parameters[0] {
            Kind::Is(SqlType::Numeric(_)) if matches!(value.sql_type, SqlType::Numeric(_)) => value,
            Kind::Is(to) => self.convert(value, to, Context::Implicit)?,
            _ => return beyond(format!("function {function} of any type")),
        };
        let value = self.settle(value)?;
        let is_double = value.data_type == DataType::Double;
        let Some(digits) = digits else {
            let data_type = match is_double {
                true => DataType::Double,
                false => DataType::Numeric { precision: 38, scale: 0 },
            };
            let sql_type = if is_double { SqlType::Double } else { SqlType::Numeric(None) };
            let rounded = tree::call(function, vec![value.expression]);
            return Ok(Bound::held_as(rounded, sql_type, value.nullable, data_type));
        };
        let Some(scale) = digits.value().and_then(Value::as_integer) else {
            return beyond("rounding to a number of digits that is not a literal");
        };
        let Ok(scale) = u8::try_from(scale) else { return beyond("rounding before the point") };
        let fits = match function {
            "round" | "trunc" => scale <= value.data_type.scale(),
            other => other == "round_even",
        };
        if !fits {
            return beyond("rounding to more digits than there are");
        }
        let rounded = tree::call(function, vec![value.expression, tree::integer(scale.into())]);
        let data_type = DataType::Numeric { precision: 38, scale };
        Ok(Bound::held_as(rounded, SqlType::Numeric(None), value.nullable, data_type))
    }

    /// `date_part(field, moment)`
    pub(super) fn date_part(&mut self, mut arguments: Vec<Bound>) -> Bind<Bound> {
        let moment = arguments.remove(1);
        // A date is its first moment.
        let moment = match moment.sql_type {
            SqlType::Date => self.convert(moment, &SqlType::Timestamp, Context::Implicit)?,
            _ => moment,
        };
        self.field(&arguments[0], moment, true)
    }

    /// `EXTRACT (field FROM moment)`
    pub(super) fn extract(&mut self, field: &Bound, moment: Bound) -> Bind<Bound> {
        self.field(field, moment, false)
    }

    /// The field of a moment, as double precision or exact.
    fn field(&mut self, field: &Bound, moment: Bound, is_double: bool) -> Bind<Bound> {
        let Known::Literal(Some(name)) = &field.known else { return beyond("a computed field") };
        let name = name.text().to_lowercase();
        if category(&moment.sql_type) != Category::Moment {
            return beyond("EXTRACT of this type");
        }
        if moment.sql_type == SqlType::TimestampTz {
            self.in_utc()?;
        }
        if moment.value().and_then(calendar::moment_of_value).is_some_and(calendar::is_infinite) {
            return beyond("a field of an infinite moment");
        }
        let Some(field) = DateField::parse(&name) else { return beyond(format!("EXTRACT of {name}")) };
        if field.is_time() && moment.sql_type == SqlType::Date {
            let message = format!("unit \"{name}\" not supported for type date");
            return Err(wrong(b"0A000", message).into());
        }
        let exact = DataType::Numeric { precision: 38, scale: field.extracted(moment.data_type).scale() };
        let moment = self.named(moment, "moment")?;
        let part = tree::call("extract", vec![tree::text(name), moment.expression.clone()]);
        let part = Bound::held_as(part, SqlType::Numeric(None), moment.nullable, exact);
        let to = if is_double { SqlType::Double } else { SqlType::Numeric(None) };
        let part = self.convert(part, &to, Context::Implicit)?;
        Ok(field_of_infinite(&moment, field, part))
    }

    /// A moment that the program computes, moved by an interval.
    pub(super) fn moved_later(&mut self, moment: Bound, interval: Interval, to: SqlType) -> Bind<Bound> {
        if to == SqlType::TimestampTz {
            self.in_utc()?;
        }
        let moment = self.convert(moment, &to, Context::Implicit)?;
        let nullable = moment.nullable;
        let mut value = self.settled(moment)?;
        if interval.months != 0 {
            value = tree::call("add_months", vec![value, tree::integer(interval.months.into())]);
        }
        let micros =
            i128::from(interval.days) * i128::from(calendar::DAY_MICROS) + i128::from(interval.micros);
        if micros != 0 || interval.months == 0 {
            value =
                tree::call("add_micros", vec![value, tree::cast(tree::integer(micros), DataType::BigInt)]);
        }
        Ok(Bound::computed(value, to, nullable))
    }

    /// LIKE and ILIKE of any pattern.
    pub(super) fn any_like(
        &mut self,
        value: Bound,
        pattern: Bound,
        escape: Option<Bound>,
        ignoring_case: bool,
    ) -> Bind<Bound> {
        let pattern = self.convert(pattern, &SqlType::Text, Context::Implicit)?;
        let nullable = value.nullable || pattern.nullable;
        let mut parts = vec![self.settled(value)?, self.settled(pattern)?];
        if let Some(escape) = escape {
            let Known::Literal(Some(escape)) = &escape.known else { return beyond("this ESCAPE") };
            parts.push(tree::text(escape.text()));
        }
        let function = if ignoring_case { "ilike" } else { "like" };
        Ok(super::expression::logic(tree::call(function, parts), nullable))
    }
}

/// A moment's field, where the moment may be infinite: what grows with moments is infinite too, which an exact number
/// cannot be; other fields are null.
fn field_of_infinite(moment: &Bound, field: DateField, part: Bound) -> Bound {
    let (early, late) = match moment.data_type {
        DataType::Date => (Value::Date(i32::MIN), Value::Date(i32::MAX)),
        DataType::Timestamp => (Value::Timestamp(i64::MIN), Value::Timestamp(i64::MAX)),
        _ => return part,
    };
    let mut value = part.expression.clone();
    for (end, infinite) in [(early, f64::NEG_INFINITY), (late, f64::INFINITY)] {
        let is_infinite =
            tree::binary(Op::Equal, moment.expression.clone(), tree::literal(&end, moment.data_type));
        let infinite = tree::literal(&Value::Double(infinite), DataType::Double);
        let field = match (field.is_unbounded(), part.data_type) {
            (false, data_type) => tree::typed_null(data_type),
            (true, DataType::Double) => infinite,
            // It is computed of the moment, so that it fails only there.
            (true, exact) => {
                let years = tree::cast(part.expression.clone(), DataType::Double);
                let zero =
                    tree::binary(Op::Multiply, years, tree::literal(&Value::Double(0.0), DataType::Double));
                tree::cast(tree::binary(Op::Add, zero, infinite), exact)
            }
        };
        value = tree::choice(is_infinite, field, value);
    }
    let nullable = part.nullable || !field.is_unbounded();
    Bound { expression: value, nullable, ..part }
}
