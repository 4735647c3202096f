//! Operators, with PostgreSQL's rules for their operands' types.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::constant::Step;
use super::held;
use super::stop::{Bind, Place, beyond, wrong};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, ExpressionKind};
use fabius_sql_meaning::analysis;
use fabius_sql_meaning::functions::operator::Operation;
use fabius_sql_meaning::functions::{Definition, Kind};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{self, Category, Context, category};
use fabius_value::interval::Interval;
use fabius_value::{DataType, Value, calendar};
use sqlparser::ast::BinaryOperator as B;

impl Binder<'_> {
    /// `- operand`
    pub(super) fn minus(&mut self, bound: Bound) -> Bind<Bound> {
        match &bound.known {
            Known::Interval(interval) => {
                return match interval.checked_neg() {
                    Some(interval) => Ok(Bound::interval(interval)),
                    None => Err(wrong(b"22008", "interval out of range").into()),
                };
            }
            Known::Constant(value) => {
                if let Ok(Some(negated)) = value.then(Step::Negate) {
                    // 2147483648 is a bigint, its negative an integer.
                    let sql_type = bound.sql_type.clone();
                    return Ok(Bound::of_constant(negated, sql_type, bound.data_type));
                }
            }
            _ => {}
        }
        if category(&bound.sql_type) == Category::Interval {
            return beyond("an interval that is computed");
        }
        let bound = self.settle(bound)?;
        let negated = tree::expression(ExpressionKind::Negate(Box::new(bound.expression)));
        let sql_type = type_rules::without_modifiers(&bound.sql_type);
        Ok(Bound::held_as(negated, sql_type, bound.nullable, bound.data_type))
    }

    // ---- comparison ----

    /// Two values in types that compare with each other.
    pub(super) fn comparable(
        &mut self,
        left: Bound,
        symbol: &str,
        right: Bound,
        place: Place,
    ) -> Bind<(Bound, Bound)> {
        let operator = analysis::resolved::<Self>(symbol, &[&left, &right]);
        self.aligned(operator.map_err(|error| self.error(error, place))?, left, right)
    }

    /// Two values in the types in which an operator compares them.
    pub(super) fn aligned(
        &mut self,
        operator: &'static Definition,
        left: Bound,
        right: Bound,
    ) -> Bind<(Bound, Bound)> {
        let [Kind::Is(of_left), Kind::Is(_)] = operator.parameters.as_slice() else {
            let of = [&left, &right].into_iter().find(|bound| !bound.is_unknown());
            return match of.map(|bound| bound.sql_type.clone()) {
                Some(of @ SqlType::Enumeration(_)) => {
                    let left = self.convert(left, &of, Context::Implicit)?;
                    Ok((left, self.convert(right, &of, Context::Implicit)?))
                }
                _ => beyond("comparing arrays"),
            };
        };
        if matches!(of_left, SqlType::Interval | SqlType::JsonB) {
            return beyond(format!("comparing values of type {of_left}"));
        }
        let left = self.as_operand(left, &operator.parameters[0])?;
        let right = self.as_operand(right, &operator.parameters[1])?;
        if category(&left.sql_type) == Category::Moment && left.sql_type != right.sql_type {
            let to = type_rules::common(&left.sql_type, &right.sql_type).unwrap_or(SqlType::TimestampTz);
            let left = self.convert(left, &to, Context::Implicit)?;
            return Ok((left, self.convert(right, &to, Context::Implicit)?));
        }
        // Beside each other both are `character`, whose blanks at the end do not count.
        match (&left.sql_type, &right.sql_type) {
            (SqlType::Char(_), SqlType::VarChar(_)) => Ok((left, self.without_blanks(right)?)),
            (SqlType::VarChar(_), SqlType::Char(_)) => Ok((self.without_blanks(left)?, right)),
            _ => Ok((left, right)),
        }
    }

    fn without_blanks(&mut self, bound: Bound) -> Bind<Bound> {
        if let Known::Constant(text) = &bound.known
            && let Some(trimmed) = text.then(Step::TrimEnd)?
        {
            return Ok(Bound { known: Known::Constant(trimmed), ..bound });
        }
        let (nullable, place) = (bound.nullable, bound.place);
        let trimmed = tree::call("rtrim", vec![self.settled(bound)?, tree::text(" ")]);
        Ok(Bound::computed(trimmed, SqlType::Text, nullable).at(place))
    }

    /// An operand, which has the parameter's type if it had none.
    pub(super) fn as_operand(&mut self, bound: Bound, parameter: &Kind) -> Bind<Bound> {
        if !bound.is_unknown() {
            return Ok(bound);
        }
        match parameter {
            // Blanks at the end of a character do not count, which is held without them.
            Kind::Is(SqlType::Char(_)) => {
                if let Known::Parameter(_) = bound.known {
                    return self.resolve(bound, &type_rules::ANY_CHAR);
                }
                let bound = self.resolve(bound, &SqlType::Text)?;
                match &bound.known {
                    Known::Constant(_) => self.without_blanks(bound),
                    _ => Ok(bound),
                }
            }
            Kind::Is(SqlType::Name) => self.resolve(bound, &SqlType::Text),
            Kind::Is(sql_type) => self.resolve(bound, sql_type),
            _ => self.resolve(bound, &SqlType::Text),
        }
    }

    // ---- arithmetic ----

    /// An operation on two numbers.
    pub(super) fn numbers(
        &mut self,
        definition: &Definition,
        left: Bound,
        operation: Operation,
        right: Bound,
    ) -> Bind<Bound> {
        let Kind::Is(sql_type) = definition.returns.clone() else { return beyond("a number of any type") };
        let is_double = matches!(sql_type, SqlType::Real | SqlType::Double);
        let (symbol, operator) = match operation {
            Operation::Add => ('+', Op::Add),
            Operation::Subtract => ('-', Op::Subtract),
            Operation::Multiply => ('*', Op::Multiply),
            Operation::Divide => ('/', Op::Divide),
            Operation::Remainder => ('%', Op::Modulo),
        };
        if symbol == '/' && matches!(sql_type, SqlType::Numeric(_)) && self.lifts && self.writes.is_empty() {
            return beyond("a quotient that is shown: queries have more of its digits");
        }
        let nullable = left.nullable || right.nullable;
        let (left, right) = (self.settle(left)?, self.settle(right)?);
        let mut operands = [left, right];
        if !is_double && symbol == '*' {
            // A product has as many digits as fit.
            let scales: u8 =
                operands.iter().map(|operand| operand.data_type.scale()).fold(0, u8::saturating_add);
            if scales > 30 {
                for operand in &mut operands {
                    let data_type =
                        DataType::Numeric { precision: 38, scale: operand.data_type.scale().min(10) };
                    operand.expression = tree::cast(operand.expression.clone(), data_type);
                    operand.data_type = data_type;
                }
            }
        }
        let [left, right] = operands;
        let data_type = match is_double {
            true => DataType::Double,
            false => held::result_type(symbol, left.data_type, right.data_type),
        };
        let value = tree::binary(operator, left.expression, right.expression);
        let value = if sql_type == SqlType::Real { tree::single(value) } else { value };
        Ok(Bound::held_as(value, sql_type, nullable, data_type))
    }

    pub(super) fn moments(&mut self, left: Bound, symbol: &str, right: Bound) -> Bind<Bound> {
        use Category as C;
        let nullable = left.nullable || right.nullable;
        match (category(&left.sql_type), symbol, category(&right.sql_type)) {
            (C::Interval, "+", C::Moment) => self.moments(right, symbol, left),
            (C::Moment, "+" | "-", C::Interval) => {
                let Known::Interval(interval) = right.known else {
                    return beyond("an interval that is computed");
                };
                let moved = if symbol == "-" { interval.checked_neg() } else { Some(interval) };
                let Some(interval) = moved else {
                    return Err(wrong(b"22008", "interval out of range").into());
                };
                self.moved(left, interval)
            }
            (C::Interval, "+" | "-", C::Interval) => match (left.known, right.known) {
                (Known::Interval(left), Known::Interval(right)) => {
                    let right = if symbol == "-" { right.checked_neg() } else { Some(right) };
                    let sum = right.and_then(|right| left.checked_add(right));
                    match sum {
                        Some(sum) => Ok(Bound::interval(sum)),
                        None => Err(wrong(b"22008", "interval out of range").into()),
                    }
                }
                _ => beyond("an interval that is computed"),
            },
            (C::Interval, "*", C::Number) => match (left.known, right.value().and_then(Value::as_integer)) {
                (Known::Interval(interval), Some(by)) => match interval.scaled(|part| part * by as f64) {
                    Some(interval) => Ok(Bound::interval(interval)),
                    None => Err(wrong(b"22008", "interval out of range").into()),
                },
                _ => beyond("an interval that is computed"),
            },
            (C::Number, "*", C::Interval) => self.moments(right, symbol, left),
            (C::Moment, "+" | "-", C::Number) => {
                let (left, right) = (self.settled(left)?, self.settled(right)?);
                let operator = if symbol == "+" { Op::Add } else { Op::Subtract };
                let value = tree::binary(operator, left, right);
                Ok(Bound::computed(value, SqlType::Date, nullable))
            }
            (C::Number, "+", C::Moment) => self.moments(right, symbol, left),
            (C::Moment, "-", C::Moment)
                if left.sql_type == SqlType::Date && right.sql_type == SqlType::Date =>
            {
                let (left, right) = (self.settled(left)?, self.settled(right)?);
                let days = tree::binary(Op::Subtract, left, right);
                Ok(Bound::computed(days, SqlType::Int, nullable))
            }
            _ => beyond(format!("{} {symbol} {}", left.sql_type, right.sql_type)),
        }
    }

    /// A moment moved by an interval; by whole days a program does it, else it must be known.
    fn moved(&mut self, bound: Bound, interval: Interval) -> Bind<Bound> {
        if bound.sql_type == SqlType::TimestampTz {
            self.in_utc()?;
        }
        let sql_type = match bound.sql_type {
            SqlType::Date => SqlType::Timestamp,
            ref other => other.clone(),
        };
        if let Some(micros) = bound.value().and_then(calendar::moment_of_value) {
            return match interval.after(micros) {
                Some(micros) => Ok(Bound::constant(Value::Timestamp(micros), sql_type, DataType::Timestamp)),
                None => Err(wrong(b"22008", "timestamp out of range").into()),
            };
        }
        self.moved_later(bound, interval, sql_type)
    }

    // ---- texts ----

    /// Texts or bytes as one, end to end.
    pub(super) fn joined_end_to_end(&mut self, left: Bound, right: Bound, to: &SqlType) -> Bind<Bound> {
        let mut sides = Vec::new();
        for side in [left, right] {
            let side = if side.is_unknown() { self.resolve(side, to)? } else { side };
            sides.push(self.convert(side, to, Context::Assignment)?);
        }
        let nullable = sides.iter().any(|side| side.nullable);
        let mut joined: Option<Expression> = None;
        for side in sides {
            let side = self.settled(side)?;
            joined = Some(match joined {
                None => side,
                Some(left) => tree::binary(Op::Concatenate, left, side),
            });
        }
        Ok(Bound::computed(joined.unwrap_or_else(tree::null), to.clone(), nullable))
    }
}

/// The operator that says the same with its sides exchanged.
pub(super) fn exchanged(operator: &B) -> B {
    match operator {
        B::Lt => B::Gt,
        B::LtEq => B::GtEq,
        B::Gt => B::Lt,
        B::GtEq => B::LtEq,
        other => other.clone(),
    }
}
