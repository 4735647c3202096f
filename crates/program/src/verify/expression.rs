//! Expressions to IR, with the reads they need as steps before them.

use super::Lowered;
use super::lowering::{Lowering, type_text};
use super::scope::Binding;
use super::typing::{
    self, Operand, as_numeric, assigned, convert, convertible, is_castable, is_number, narrowed, settled,
    unified,
};
use crate::ir::{BinaryOperator, Expression, ExpressionKind, ScalarType, StepKind, Type, UnaryOperator};
use crate::syntax::expression::operator_form;
use crate::syntax::tree::{self, Literal, RowReference};
use crate::syntax::{Diagnostic, Span};
use fabius_value::data_type::Family;
use fabius_value::{DataType, Decimal, SqlState, Value, limit};

impl Lowering<'_> {
    /// An expression; `expected` is what its place would like, for a null that says no type itself.
    pub(super) fn operand(
        &mut self,
        expression: &tree::Expression,
        expected: Option<DataType>,
    ) -> Lowered<Operand> {
        let span = expression.span;
        let value = match &expression.kind {
            tree::ExpressionKind::Literal(literal) => return Ok(typing::literal(literal, span)),
            tree::ExpressionKind::Variable(name) => self.scalar_variable(name, span)?,
            tree::ExpressionKind::Column { row, optional, column } => {
                return self.column(row, *optional, column, span);
            }
            tree::ExpressionKind::Element { list, index } => {
                if self.scope.get(&list.text).is_none() && self.catalog.find_table(&list.text).is_some() {
                    let error = self.invalid(span, "a row is not a value");
                    return Err(error
                        .with_hint(format!("name one of its columns: {expression}.column"))
                        .into());
                }
                self.element(list, index, None)?
            }
            tree::ExpressionKind::Exists(row) => self.exists(row, span)?,
            tree::ExpressionKind::Call { function, distinct, arguments } => {
                self.call(function, *distinct, arguments, expected, span)?
            }
            tree::ExpressionKind::Negate(operand) => return self.negate(operand, expected, span),
            tree::ExpressionKind::Not(operand) => {
                let operand = self.condition(operand)?;
                unary(UnaryOperator::Not, operand)
            }
            tree::ExpressionKind::IsNull { operand, negated } => {
                let operand = self.operand(operand, None)?;
                // Whatever type a literal null has, it is null.
                let asked = unary(UnaryOperator::IsNull, operand.value);
                if *negated { unary(UnaryOperator::Not, asked) } else { asked }
            }
            tree::ExpressionKind::Between { operand, low, high, negated } => {
                self.between(operand, low, high, *negated, span)?
            }
            tree::ExpressionKind::Binary(operator, left, right) => {
                self.binary(*operator, left, right, span)?
            }
            tree::ExpressionKind::If { arms, otherwise } => self.case(arms, otherwise, expected)?,
            tree::ExpressionKind::Cast { operand, data_type } => self.cast(operand, *data_type, span)?,
            tree::ExpressionKind::EmptyList => {
                let error = self.invalid(span, "the empty list is not a value");
                return Err(error
                    .with_hint("it is assigned to a list variable: var x: list of int = []")
                    .into());
            }
        };
        Ok(Operand::typed(value, span))
    }

    /// An expression with a type of its own.
    pub(super) fn value(&mut self, expression: &tree::Expression) -> Lowered<Expression> {
        settled(self.operand(expression, None)?)
    }

    /// A boolean.
    pub(super) fn condition(&mut self, expression: &tree::Expression) -> Lowered<Expression> {
        let operand = self.operand(expression, Some(DataType::Boolean))?;
        if !operand.is_null_literal() && operand.data_type() != DataType::Boolean {
            let message = format!("a condition is boolean, this is {}", operand.data_type());
            let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, operand.span, message);
            return Err(match is_number(operand.data_type()) {
                true => error.with_hint("compare it: e <> 0").into(),
                false => error.with_hint("compare it with something, or ask whether it is null").into(),
            });
        }
        assigned(operand, DataType::Boolean, "a condition")
    }

    fn scalar_variable(&mut self, name: &str, span: Span) -> Lowered<Expression> {
        let hint = match self.lookup(name, span)? {
            Binding::Scalar { variable, .. } => return Ok(self.variable(*variable)),
            Binding::List { fields, .. } => {
                format!(
                    "it is a {}: take an element, or an aggregate",
                    type_text(&Type::List(fields.clone()))
                )
            }
            Binding::Record { .. } => format!("name one of its fields: {name}.field"),
            Binding::Row { .. } => format!("name one of its columns: {name}.column"),
            Binding::Refused => unreachable!("lookup refuses these"),
        };
        Err(self.invalid(span, format!("{name} is not a single value")).with_hint(hint).into())
    }

    fn exists(&mut self, reference: &RowReference, span: Span) -> Lowered<Expression> {
        let (row, _) = self.locate(reference)?;
        let boolean = ScalarType { data_type: DataType::Boolean, nullable: false };
        let variable = self.new_scalar(format!("exists {reference}"), boolean, span)?;
        self.emit(StepKind::Exists { variable, row }, span)?;
        Ok(self.variable(variable))
    }

    fn negate(
        &mut self,
        operand: &tree::Expression,
        expected: Option<DataType>,
        span: Span,
    ) -> Lowered<Operand> {
        // `-5` is a literal, so that the lowest integers can be written.
        let number = match &operand.kind {
            tree::ExpressionKind::Literal(Literal::Integer(mantissa)) => {
                Some(Decimal { mantissa: -mantissa, scale: 0 })
            }
            tree::ExpressionKind::Literal(Literal::Decimal(decimal)) => {
                Some(Decimal { mantissa: -decimal.mantissa, ..*decimal })
            }
            _ => None,
        };
        if let Some(number) = number {
            return Ok(Operand { value: typing::number(number), literal: true, span });
        }
        let operand = self.operand(operand, expected)?;
        if !is_number(operand.data_type()) {
            let message = format!("- does not take {}", operand.data_type());
            return Err(Diagnostic::new(SqlState::DATATYPE_MISMATCH, span, message).into());
        }
        Ok(Operand::typed(unary(UnaryOperator::Negate, operand.value), span))
    }

    fn between(
        &mut self,
        operand: &tree::Expression,
        low: &tree::Expression,
        high: &tree::Expression,
        negated: bool,
        span: Span,
    ) -> Lowered<Expression> {
        let operands =
            vec![self.operand(operand, None)?, self.operand(low, None)?, self.operand(high, None)?];
        let mut values = unified(operands, None)?.into_iter();
        let [Some(operand), Some(low), Some(high)] = [values.next(), values.next(), values.next()] else {
            unreachable!("three operands give three values")
        };
        let again = self.copy(&operand, span)?;
        let both = logic(
            BinaryOperator::And,
            logic(BinaryOperator::GreaterEqual, operand, low),
            logic(BinaryOperator::LessEqual, again, high),
        );
        Ok(if negated { unary(UnaryOperator::Not, both) } else { both })
    }

    fn case(
        &mut self,
        arms: &[(tree::Expression, tree::Expression)],
        otherwise: &tree::Expression,
        expected: Option<DataType>,
    ) -> Lowered<Expression> {
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        for (condition, value) in arms {
            conditions.push(self.condition(condition)?);
            values.push(self.operand(value, expected)?);
        }
        values.push(self.operand(otherwise, expected)?);
        let mut values = unified(values, expected)?;
        let nullable = values.iter().any(|value| value.ty.nullable);
        let otherwise = Box::new(values.pop().expect("the last arm was pushed"));
        let ty = ScalarType { data_type: otherwise.ty.data_type, nullable };
        let arms = conditions.into_iter().zip(values).collect();
        Ok(Expression { kind: ExpressionKind::Case { arms, otherwise }, ty })
    }

    fn cast(&mut self, operand: &tree::Expression, to: DataType, span: Span) -> Lowered<Expression> {
        let operand = self.operand(operand, Some(to))?;
        if operand.is_null_literal() {
            return assigned(operand, to, "null");
        }
        let from = operand.data_type();
        if !is_castable(from, to) {
            let message = format!("{from} does not convert to {to}");
            let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, span, message);
            let hint = match (from, to) {
                (DataType::Boolean, to) if is_number(to) => "choose the values: if e then 1 else 0".into(),
                (_, DataType::Boolean) => "compare it: e <> 0".into(),
                _ => format!("{from} converts to {}", convertible(from)),
            };
            return Err(error.with_hint(hint).into());
        }
        convert(operand.value, to, span)
    }

    /// `left operator right`.
    pub(super) fn binary(
        &mut self,
        operator: BinaryOperator,
        left: &tree::Expression,
        right: &tree::Expression,
        span: Span,
    ) -> Lowered<Expression> {
        use BinaryOperator::*;
        if matches!(operator, And | Or) {
            let left = self.condition(left)?;
            let right = self.condition(right)?;
            return Ok(logic(operator, left, right));
        }
        let left = self.operand(left, None)?;
        let right = self.operand(right, None)?;
        match operator {
            Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual => {
                let [left, right] = pair(left, right)?;
                Ok(logic(operator, left, right))
            }
            IsDistinct | IsNotDistinct => {
                // Two nulls without a type are the same whatever it is.
                let pair = unified(vec![left, right], Some(DataType::TEXT))?;
                let [left, right] = pair.try_into().expect("two operands give two values");
                let mut asked = logic(operator, left, right);
                asked.ty.nullable = false;
                Ok(asked)
            }
            Concatenate => concatenate(left, right, span),
            _ => arithmetic(operator, left, right, span),
        }
    }
}

fn unary(operator: UnaryOperator, operand: Expression) -> Expression {
    let ty = match operator {
        UnaryOperator::Negate => operand.ty,
        UnaryOperator::Not => ScalarType { data_type: DataType::Boolean, nullable: operand.ty.nullable },
        UnaryOperator::IsNull => ScalarType { data_type: DataType::Boolean, nullable: false },
    };
    Expression { kind: ExpressionKind::Unary(operator, Box::new(operand)), ty }
}

/// `not (value is null)`.
pub(super) fn is_not_null(value: Expression) -> Expression {
    unary(UnaryOperator::Not, unary(UnaryOperator::IsNull, value))
}

fn apply(operator: BinaryOperator, left: Expression, right: Expression, data_type: DataType) -> Expression {
    let ty = ScalarType { data_type, nullable: left.ty.nullable || right.ty.nullable };
    Expression { kind: ExpressionKind::Binary(operator, Box::new(left), Box::new(right)), ty }
}

/// An operator with a boolean result.
fn logic(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    apply(operator, left, right, DataType::Boolean)
}

fn pair(left: Operand, right: Operand) -> Lowered<[Expression; 2]> {
    let mut values = unified(vec![left, right], None)?.into_iter();
    let [Some(left), Some(right)] = [values.next(), values.next()] else {
        unreachable!("two operands give two values")
    };
    Ok([left, right])
}

fn does_not_take(operator: BinaryOperator, left: &Operand, right: &Operand, span: Span) -> Diagnostic {
    let symbol = operator_form(operator).0;
    let message = format!("{symbol} does not take {} and {}", left.data_type(), right.data_type());
    Diagnostic::new(SqlState::DATATYPE_MISMATCH, span, message)
}

fn concatenate(left: Operand, right: Operand, span: Span) -> Lowered<Expression> {
    let family = |operand: &Operand| (!operand.literal).then(|| operand.data_type().family());
    let bytes = family(&left) == Some(Family::Bytea) || family(&right) == Some(Family::Bytea);
    let to = if bytes { DataType::Bytea } else { DataType::TEXT };
    for operand in [&left, &right] {
        if !operand.literal && operand.data_type().family() != to.family() {
            let error = does_not_take(BinaryOperator::Concatenate, &left, &right, span);
            let hint = match is_castable(operand.data_type(), DataType::TEXT) {
                true => "convert what is not text: (...)::text",
                false => "it joins two texts, or two byte strings",
            };
            return Err(error.with_hint(hint).into());
        }
    }
    // Bounded texts need no conversion: joined, they are text.
    let value = |operand: Operand| match operand.literal {
        true => assigned(operand, to, "an operand of ||"),
        false => Ok(operand.value),
    };
    let (left, right) = (value(left)?, value(right)?);
    Ok(apply(BinaryOperator::Concatenate, left, right, to))
}

fn arithmetic(operator: BinaryOperator, left: Operand, right: Operand, span: Span) -> Lowered<Expression> {
    use BinaryOperator::*;
    let family = |operand: &Operand| operand.data_type().family();
    let is_date = |operand: &Operand| family(operand) == Family::Date;
    match operator {
        Subtract
            if is_date(&left) && (is_date(&right) || right.literal && family(&right) == Family::Text) =>
        {
            let [left, right] = pair(left, right)?;
            return Ok(apply(Subtract, left, right, DataType::Int));
        }
        Add | Subtract if is_date(&left) && family(&right) == Family::Integer => {
            let days = assigned(right, DataType::Int, "a number of days")?;
            return Ok(apply(operator, left.value, days, DataType::Date));
        }
        Add if is_date(&right) && family(&left) == Family::Integer => {
            let days = assigned(left, DataType::Int, "a number of days")?;
            return Ok(apply(Add, right.value, days, DataType::Date));
        }
        _ => {}
    }
    let is_numeric = |operand: &Operand| operand.is_null_literal() || is_number(operand.data_type());
    if !is_numeric(&left) || !is_numeric(&right) || left.is_null_literal() && right.is_null_literal() {
        let error = does_not_take(operator, &left, &right, span);
        let pairs = [(&left, &right), (&right, &left)];
        let quoted =
            pairs.iter().filter(|(number, _)| is_numeric(number)).find_map(|(_, text)| quoted_number(text));
        if let Some(quoted) = quoted {
            return Err(error.with_hint(format!("write {quoted} without quotes")).into());
        }
        return Err(match (operator, family(&left), family(&right)) {
            (Add, Family::Text, _) | (Add, _, Family::Text) => {
                error.with_hint("texts are joined with ||").into()
            }
            (Add | Subtract, Family::Timestamp, _) => {
                error.with_hint("whole days can be added to a date: (...)::date + 1").into()
            }
            _ => error.into(),
        });
    }
    let exact = |operand: &Operand| operand.is_null_literal() || operand.data_type().is_exact();
    let integer = |operand: &Operand| operand.is_null_literal() || family(operand) == Family::Integer;
    let scaled = exact(&left) && exact(&right) && !(integer(&left) && integer(&right));
    if scaled && matches!(operator, Multiply | Divide) {
        return product(operator, left, right, span);
    }
    let [left, right] = pair(left, right)?;
    let data_type = match (left.ty.data_type, operator) {
        (DataType::Double, Modulo) => {
            let error =
                Diagnostic::new(SqlState::DATATYPE_MISMATCH, span, "% does not take double precision");
            return Err(error.with_hint("convert both to numeric").into());
        }
        (DataType::Numeric { precision, scale }, Add | Subtract) => {
            DataType::Numeric { precision: (precision + 1).min(limit::NUMERIC_PRECISION), scale }
        }
        (same, _) => same,
    };
    Ok(apply(operator, left, right, data_type))
}

/// The number that a text literal shows.
fn quoted_number(operand: &Operand) -> Option<Decimal> {
    match &operand.value.kind {
        ExpressionKind::Constant(Value::Text(text)) if operand.literal => Decimal::parse(text),
        _ => None,
    }
}

/// `*` or `/` with a numeric: operands keep their own scales.
fn product(operator: BinaryOperator, left: Operand, right: Operand, span: Span) -> Lowered<Expression> {
    let numeric = |operand: Operand, other: DataType| {
        if operand.is_null_literal() {
            return assigned(operand, other, "null");
        }
        let to = as_numeric(narrowed(&operand));
        convert(operand.value, to, operand.span)
    };
    let (left_type, right_type) = (as_numeric(left.data_type()), as_numeric(right.data_type()));
    let (left, right) = (numeric(left, right_type)?, numeric(right, left_type)?);
    let (DataType::Numeric { precision: p1, scale: s1 }, DataType::Numeric { precision: p2, scale: s2 }) =
        (left.ty.data_type, right.ty.data_type)
    else {
        unreachable!("both were converted to numeric")
    };
    let data_type = match operator {
        BinaryOperator::Multiply if s1 + s2 > limit::NUMERIC_PRECISION => {
            let message = format!(
                "a product of scales {s1} and {s2} has more than {} digits",
                limit::NUMERIC_PRECISION
            );
            let error = Diagnostic::new(SqlState::OUT_OF_RANGE, span, message);
            return Err(error.with_hint("round an operand first: (...)::numeric(38, 6)").into());
        }
        BinaryOperator::Multiply => {
            DataType::Numeric { precision: (p1 + p2).min(limit::NUMERIC_PRECISION), scale: s1 + s2 }
        }
        _ => DataType::Numeric { precision: limit::NUMERIC_PRECISION, scale: s1.max(s2).max(6) },
    };
    Ok(apply(operator, left, right, data_type))
}
