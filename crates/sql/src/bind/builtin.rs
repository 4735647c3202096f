//! PostgreSQL's functions that programs have under their own name.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::stop::{Bind, Place, beyond, wrong};
use super::tree;
use crate::functions::resolution::{self, Argument, Unresolved};
use crate::functions::{FUNCTIONS, Kind};
use crate::interval::Interval;
use crate::sql_type::SqlType;
use crate::type_rules::{Category, Context, category, is_integer, is_number};
use fabius_value::{DataType, DateField, Value, calendar};

impl Binder<'_> {
    /// A function that programs have.
    pub(super) fn builtin(&mut self, name: &str, mut arguments: Vec<Bound>, place: Place) -> Bind<Bound> {
        match (name, arguments.len()) {
            ("round" | "trunc" | "floor" | "ceil" | "ceiling" | "sign", 1 | 2) => {
                return self.rounded(name, arguments, place);
            }
            ("date_part", 2) => {
                let moment = arguments.remove(1);
                let Known::Literal(Some(field)) = &arguments[0].known else {
                    return beyond("a computed field");
                };
                let field = field.text().to_string();
                // A date is its first moment.
                let moment = match moment.sql_type {
                    SqlType::Date => self.convert(moment, &SqlType::Timestamp, Context::Implicit)?,
                    _ => moment,
                };
                let part = self.extract(&field, moment, place)?;
                return self.convert(part, &SqlType::Double, Context::Implicit);
            }
            _ => {}
        }
        self.of_table(name, arguments, place)
    }

    /// A function of the table that programs have too.
    fn of_table(&mut self, name: &str, arguments: Vec<Bound>, place: Place) -> Bind<Bound> {
        let given = arguments.iter().map(|bound| Argument { sql_type: &bound.sql_type, is_named: false });
        let given: Vec<Argument<'_>> = given.collect();
        let definition = match resolution::resolve(name, &given) {
            Ok(definition) => definition,
            Err(Unresolved::Missing) if !FUNCTIONS.contains_key(name) => {
                return beyond(format!("function {name}"));
            }
            Err(why) => return Err(self.error(why.error(name, &given), place)),
        };
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

    fn rounded(&mut self, name: &str, mut arguments: Vec<Bound>, place: Place) -> Bind<Bound> {
        let function = if name == "ceiling" { "ceil" } else { name };
        let digits = if arguments.len() == 2 { Some(arguments.remove(1)) } else { None };
        let value = arguments.remove(0);
        let value = if value.is_unknown() { self.resolve(value, &SqlType::Double)? } else { value };
        if !is_number(&value.sql_type) {
            let message = format!("function {name}({}) does not exist", value.sql_type);
            return self.fail(b"42883", message, place);
        }
        let value = match (&value.sql_type, &digits) {
            (sql_type, None) if is_integer(sql_type) => {
                self.convert(value, &SqlType::Double, Context::Implicit)?
            }
            (SqlType::Numeric(_), _) | (_, None) => value,
            (SqlType::Real | SqlType::Double, Some(_)) => {
                let message = format!("function {name}({}, integer) does not exist", value.sql_type);
                let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
                return Err(self.error(wrong(b"42883", message).with_hint(hint), place));
            }
            _ => self.convert(value, &SqlType::Numeric(None), Context::Implicit)?,
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
        if scale > value.data_type.scale() || !matches!(function, "round" | "trunc") {
            return beyond("rounding to more digits than there are");
        }
        let rounded = tree::call(function, vec![value.expression, tree::integer(scale.into())]);
        let data_type = DataType::Numeric { precision: 38, scale };
        Ok(Bound::held_as(rounded, SqlType::Numeric(None), value.nullable, data_type))
    }

    /// `EXTRACT (field FROM moment)`.
    pub(super) fn extract(&mut self, name: &str, moment: Bound, place: Place) -> Bind<Bound> {
        if category(&moment.sql_type) != Category::Moment {
            return beyond("EXTRACT of this type");
        }
        if moment.sql_type == SqlType::TimestampTz {
            self.in_utc()?;
        }
        if moment.value().and_then(calendar::moment_of_value).is_some_and(calendar::is_infinite) {
            return beyond("a field of an infinite moment");
        }
        let Some(field) = DateField::parse(name) else { return beyond(format!("EXTRACT of {name}")) };
        if field.is_time() && moment.sql_type == SqlType::Date {
            let message = format!("unit \"{name}\" not supported for type date");
            return self.fail(b"0A000", message, place);
        }
        let scale = field.extracted(moment.data_type).scale();
        let nullable = moment.nullable;
        let parts = vec![tree::text(name), self.settled(moment)?];
        let data_type = DataType::Numeric { precision: 38, scale };
        Ok(Bound::held_as(tree::call("extract", parts), SqlType::Numeric(None), nullable, data_type))
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
