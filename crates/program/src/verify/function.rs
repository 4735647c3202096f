//! Functions and aggregates.

use super::Lowered;
use super::lowering::Lowering;
use super::typing::{Operand, assigned, is_number, settled, unified};
use crate::ir::{Aggregate, Expression, ExpressionKind, Function, ScalarType};
use crate::syntax::tree::{self, Name};
use crate::syntax::{Diagnostic, Span};
use fabius_value::data_type::Family;
use fabius_value::{DataType, SqlState, Value, limit};

/// Every function and aggregate, and how it is called.
const FORMS: &[(&str, &str)] = &[
    ("abs", "abs(number)"),
    ("avg", "avg(list.field)"),
    ("coalesce", "coalesce(value, value, ...)"),
    ("count", "count(list) or count(distinct list.field)"),
    ("greatest", "greatest(value, value, ...)"),
    ("least", "least(value, value, ...)"),
    ("length", "length(text or bytea)"),
    ("lower", "lower(text)"),
    ("max", "max(list.field)"),
    ("min", "min(list.field)"),
    ("now", "now()"),
    ("overlay", "overlay(text or bytea, replacement, from)"),
    ("random", "random()"),
    ("substring", "substring(text or bytea, from, count)"),
    ("sum", "sum(list.field)"),
    ("upper", "upper(text)"),
];

/// Digits after the point that an average has more than its values, as far as 16.
const AVERAGE_SCALE: u8 = 6;

impl Lowering<'_> {
    /// `function(arguments)`.
    pub(super) fn call(
        &mut self,
        function: &Name,
        distinct: bool,
        arguments: &[tree::Expression],
        expected: Option<DataType>,
        span: Span,
    ) -> Lowered<Expression> {
        let name = function.text.as_str();
        let Some(&(_, form)) = FORMS.iter().find(|(known, _)| *known == name) else {
            let error = Diagnostic::new(
                SqlState::UNDEFINED_FUNCTION,
                function.span,
                format!("unknown function {name}"),
            );
            return Err(match name {
                "ceil" | "floor" | "round" | "trunc" => {
                    error.with_hint("rounding is a cast: (...)::int or (...)::numeric(12, 2)").into()
                }
                _ => error.did_you_mean(name, FORMS.iter().map(|(known, _)| *known), || None).into(),
            });
        };
        let wrong = || {
            let message = format!("wrong number of arguments for {name}");
            Diagnostic::new(SqlState::UNDEFINED_FUNCTION, span, message)
                .with_hint(format!("it is called {form}"))
        };
        let aggregate = match name {
            "count" if distinct => Some(Aggregate::CountDistinct),
            "count" => Some(Aggregate::Count),
            "sum" => Some(Aggregate::Sum),
            "min" => Some(Aggregate::Min),
            "max" => Some(Aggregate::Max),
            "avg" => Some(Aggregate::Average),
            _ => None,
        };
        if distinct && aggregate != Some(Aggregate::CountDistinct) {
            let error = self.invalid(span, format!("{name} does not take distinct"));
            return Err(error.with_hint("only count does").into());
        }
        if let Some(aggregate) = aggregate {
            return match arguments {
                [argument] => self.aggregate(aggregate, argument, form),
                [_, _, ..] if matches!(name, "min" | "max") => {
                    let other = if name == "min" { "least" } else { "greatest" };
                    Err(wrong().with_hint(format!("of several values: {other}(a, b)")).into())
                }
                _ => Err(wrong().into()),
            };
        }
        let plain = |kind, data_type| Expression { kind, ty: ScalarType { data_type, nullable: false } };
        let mut operands = Vec::new();
        for argument in arguments {
            operands.push(self.operand(argument, expected)?);
        }
        match (name, operands.len()) {
            ("now", 0) => Ok(plain(ExpressionKind::Now, DataType::Timestamp)),
            ("random", 0) => Ok(plain(ExpressionKind::Random, DataType::Double)),
            ("coalesce", 1..) => one_of(Function::Coalesce, operands, expected),
            ("least", 1..) => one_of(Function::Least, operands, expected),
            ("greatest", 1..) => one_of(Function::Greatest, operands, expected),
            ("abs", 1) => of_number(operands, form),
            ("length", 1) => of_text(Function::Length, operands, Some(DataType::Int), true, form),
            ("lower", 1) => of_text(Function::Lower, operands, None, false, form),
            ("upper", 1) => of_text(Function::Upper, operands, None, false, form),
            ("substring", 2) => {
                // Without a count: as many as there can be.
                let most = super::typing::constant(Value::BigInt(limit::BLOB_BYTES as i64), DataType::BigInt);
                operands.push(Operand::typed(most, span));
                of_text(Function::Substring, operands, None, true, form)
            }
            ("substring", 3) => of_text(Function::Substring, operands, None, true, form),
            ("overlay", 3) => of_text(Function::Overlay, operands, None, true, form),
            _ => Err(wrong().into()),
        }
    }

    fn aggregate(
        &mut self,
        aggregate: Aggregate,
        argument: &tree::Expression,
        form: &str,
    ) -> Lowered<Expression> {
        let (list, field) = match &argument.kind {
            tree::ExpressionKind::Variable(text) => (Name { text: text.clone(), span: argument.span }, None),
            tree::ExpressionKind::Column { row, optional: false, column } if row.key.is_none() => {
                (row.name.clone(), Some(column))
            }
            _ => {
                let error = self.invalid(argument.span, "an aggregate is over a list variable");
                return Err(error.with_hint(format!("it is called {form}")).into());
            }
        };
        if self.scope.get(&list.text).is_none() && self.catalog.find_table(&list.text).is_some() {
            let error = self.invalid(argument.span, format!("{list} is a table, not a list"));
            return Err(error.with_hint("append what is wanted of its rows to a list in a for").into());
        }
        let bigint = ScalarType { data_type: DataType::BigInt, nullable: false };
        if aggregate == Aggregate::Count && field.is_none() {
            let list = self.list_variable(&list)?;
            return Ok(Expression {
                kind: ExpressionKind::Aggregate { aggregate, list, field: 0 },
                ty: bigint,
            });
        }
        if aggregate == Aggregate::Count {
            let error = self.invalid(argument.span, "count counts elements, nulls too");
            return Err(error.with_hint("write count(list) or count(distinct list.field)").into());
        }
        let (list, field, scalar) = self.list_field(&list, field, argument.span)?;
        let data_type = match (aggregate, scalar.data_type) {
            (Aggregate::CountDistinct, _) => DataType::BigInt,
            (Aggregate::Min | Aggregate::Max, same) => same,
            (_, other) if !is_number(other) => {
                let message = format!("sum and avg take numbers, this is {other}");
                return Err(Diagnostic::new(SqlState::DATATYPE_MISMATCH, argument.span, message).into());
            }
            (_, DataType::Double) => DataType::Double,
            (Aggregate::Sum, exact) if exact.family() == Family::Integer => DataType::BigInt,
            (Aggregate::Sum, exact) => {
                DataType::Numeric { precision: limit::NUMERIC_PRECISION, scale: exact.scale() }
            }
            (_, exact) => {
                // An average never has fewer digits after the point than its values.
                let scale = (exact.scale() + AVERAGE_SCALE).min(16).max(exact.scale());
                DataType::Numeric { precision: limit::NUMERIC_PRECISION, scale }
            }
        };
        let ty = ScalarType { data_type, nullable: aggregate != Aggregate::CountDistinct };
        Ok(Expression { kind: ExpressionKind::Aggregate { aggregate, list, field }, ty })
    }

    fn list_variable(&self, list: &Name) -> Lowered<crate::ir::VariableId> {
        match self.lookup(&list.text, list.span)? {
            super::scope::Binding::List { variable, .. } => Ok(*variable),
            _ => Err(self.invalid(list.span, format!("{list} is not a list")).into()),
        }
    }
}

fn function(function: Function, arguments: Vec<Expression>, ty: ScalarType) -> Expression {
    Expression { kind: ExpressionKind::Call(function, arguments), ty }
}

/// `coalesce`, `least`, `greatest`: null only if every argument is.
fn one_of(which: Function, operands: Vec<Operand>, expected: Option<DataType>) -> Lowered<Expression> {
    let arguments = unified(operands, expected)?;
    let nullable = arguments.iter().all(|argument| argument.ty.nullable);
    let ty = ScalarType { data_type: arguments[0].ty.data_type, nullable };
    Ok(function(which, arguments, ty))
}

fn of_number(mut operands: Vec<Operand>, form: &str) -> Lowered<Expression> {
    let operand = operands.remove(0);
    let span = operand.span;
    let value = settled(operand)?;
    if !is_number(value.ty.data_type) {
        return Err(wrong_argument(span, value.ty.data_type, form).into());
    }
    let ty = value.ty;
    Ok(function(Function::Abs, vec![value], ty))
}

/// A function of a text (or also of a bytea): what it gives is unbounded text, bytea, or `result`.
fn of_text(
    which: Function,
    operands: Vec<Operand>,
    result: Option<DataType>,
    bytes: bool,
    form: &str,
) -> Lowered<Expression> {
    let mut arguments = Vec::new();
    for (at, operand) in operands.into_iter().enumerate() {
        let span = operand.span;
        let is_position = at == 2 || at == 1 && which == Function::Substring;
        let argument = if is_position {
            assigned(operand, DataType::BigInt, "a position or count")?
        } else if at == 1 {
            let first: &Expression = &arguments[0];
            let family = if first.ty.data_type == DataType::Bytea { DataType::Bytea } else { DataType::TEXT };
            // Bounded texts need no conversion.
            let same = !operand.literal && operand.data_type().family() == family.family();
            if same { operand.value } else { assigned(operand, family, "the replacement")? }
        } else {
            settled(operand)?
        };
        let family = argument.ty.data_type.family();
        if !is_position && family != Family::Text && !(bytes && family == Family::Bytea) {
            return Err(wrong_argument(span, argument.ty.data_type, form).into());
        }
        arguments.push(argument);
    }
    let unbounded = match arguments[0].ty.data_type {
        DataType::Bytea => DataType::Bytea,
        _ => DataType::TEXT,
    };
    let nullable = arguments.iter().any(|argument| argument.ty.nullable);
    Ok(function(which, arguments, ScalarType { data_type: result.unwrap_or(unbounded), nullable }))
}

fn wrong_argument(span: Span, found: DataType, form: &str) -> Diagnostic {
    let name = form.split('(').next().unwrap_or(form);
    let message = format!("{name} does not take {found} here");
    Diagnostic::new(SqlState::DATATYPE_MISMATCH, span, message).with_hint(format!("it is called {form}"))
}
