//! Functions and aggregates.

use super::Lowered;
use super::form::{FOREIGN, FORMS};
use super::lowering::Lowering;
use super::typing::{Operand, as_numeric, assigned, convert, is_number, settled, unified};
use crate::ir::{
    Aggregate, BinaryOperator, Bits, Expression, ExpressionKind, Function, Rounding, ScalarType,
};
use crate::operation::function::{SIGNATURES, Signature};
use crate::syntax::tree::{self, Name};
use crate::syntax::{Diagnostic, Span};
use fabius_value::data_type::Family;
use fabius_value::{DataType, DateField, SqlState, Value, limit};

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
        if SIGNATURES.iter().any(|line| line.name == name) {
            return self.fixed(name, distinct, arguments, span);
        }
        let Some(&(_, form)) = FORMS.iter().find(|(known, _)| *known == name) else {
            let error = Diagnostic::new(
                SqlState::UNDEFINED_FUNCTION,
                function.span,
                format!("unknown function {name}"),
            );
            if self.catalog.find_procedure(name).is_some() {
                let hint = "it is a procedure; procedures do not call each other: write its statements here";
                return Err(error.with_hint(hint).into());
            }
            if let Some((_, form)) = FOREIGN.iter().find(|(foreign, _)| *foreign == name) {
                return Err(error.with_hint(format!("write {form}")).into());
            }
            let known = FORMS.iter().map(|(known, _)| *known).chain(SIGNATURES.iter().map(|line| line.name));
            let otherwise = || Some("docs/programs.md lists the functions".into());
            return Err(error.did_you_mean(name, known, otherwise).into());
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
            ("concat", _) => concatenated(operands),
            ("mod", 2) => self.binary(BinaryOperator::Modulo, &arguments[0], &arguments[1], span),
            ("div", 2) => whole_quotient(operands, form),
            ("round", 1 | 2) => rounded(Rounding::Nearest, operands, form),
            ("round_even", 2) => rounded(Rounding::NearestEven, operands, form),
            ("trunc", 1 | 2) => rounded(Rounding::TowardZero, operands, form),
            ("floor", 1) => rounded(Rounding::Down, operands, form),
            ("ceil", 1) => rounded(Rounding::Up, operands, form),
            ("sign", 1) => sign(operands, form),
            ("bitand", 2) => of_bits(Function::Bits(Bits::And), operands, form),
            ("bitor", 2) => of_bits(Function::Bits(Bits::Or), operands, form),
            ("bitxor", 2) => of_bits(Function::Bits(Bits::Xor), operands, form),
            ("bitnot", 1) => of_bits(Function::BitNot, operands, form),
            ("shift_left", 2) => shifted(Bits::Left, operands, form),
            ("shift_right", 2) => shifted(Bits::Right, operands, form),
            ("extract", 2) => extracted(operands, form),
            _ => Err(wrong().into()),
        }
    }

    /// A function of [`SIGNATURES`].
    fn fixed(
        &mut self,
        name: &str,
        distinct: bool,
        arguments: &[tree::Expression],
        span: Span,
    ) -> Lowered<Expression> {
        if distinct {
            let error = self.invalid(span, format!("{name} does not take distinct"));
            return Err(error.with_hint("only count does").into());
        }
        let Some(line) = Signature::find(name, arguments.len()) else {
            let forms: Vec<String> =
                SIGNATURES.iter().filter(|line| line.name == name).map(Signature::form).collect();
            let message = format!("wrong number of arguments for {name}");
            let error = Diagnostic::new(SqlState::UNDEFINED_FUNCTION, span, message);
            return Err(error.with_hint(format!("it is called {}", forms.join(" or "))).into());
        };
        let mut values = Vec::new();
        for (argument, data_type) in arguments.iter().zip(line.parameters) {
            let operand = self.operand(argument, Some(*data_type))?;
            values.push(as_argument(operand, *data_type, name)?);
        }
        let nullable = values.iter().any(|value| value.ty.nullable);
        Ok(function(line.function, values, ScalarType { data_type: line.result, nullable }))
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
                let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, argument.span, message);
                return Err(error.with_hint("min, max and count(distinct list.field) take any type").into());
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
            _ => Err(self.no_list(list).into()),
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

/// The operand as an argument of a type. Bounded texts need no conversion to text.
fn as_argument(operand: Operand, data_type: DataType, name: &str) -> Lowered<Expression> {
    let same = !operand.literal && operand.data_type().family() == data_type.family();
    if same && data_type.family() == Family::Text {
        return Ok(operand.value);
    }
    assigned(operand, data_type, &format!("an argument of {name}"))
}

/// A function whose result is null if an argument is.
fn strict(which: Function, arguments: Vec<Expression>, data_type: DataType) -> Expression {
    let nullable = arguments.iter().any(|argument| argument.ty.nullable);
    function(which, arguments, ScalarType { data_type, nullable })
}

fn concatenated(operands: Vec<Operand>) -> Lowered<Expression> {
    let arguments: Result<Vec<_>, _> =
        operands.into_iter().map(|operand| as_argument(operand, DataType::TEXT, "concat")).collect();
    let ty = ScalarType { data_type: DataType::TEXT, nullable: false };
    Ok(function(Function::Concat, arguments?, ty))
}

/// A number as one that rounding is for: integers as doubles, as in PostgreSQL.
fn numeric_or_double(operand: Operand, form: &str) -> Lowered<Expression> {
    let span = operand.span;
    let value = settled(operand)?;
    match value.ty.data_type.family() {
        Family::Numeric | Family::Double => Ok(value),
        Family::Integer => convert(value, DataType::Double, span),
        _ => Err(wrong_argument(span, value.ty.data_type, form).into()),
    }
}

/// The digits that a numeric has after rounding, `scale` of them after the point.
fn rounded_type(from: DataType, scale: u8) -> DataType {
    match from {
        DataType::Numeric { precision, scale: before } => {
            // Digits that go can make one more before the point.
            let whole = precision - before + u8::from(scale < before);
            DataType::Numeric { precision: (whole + scale).min(limit::NUMERIC_PRECISION), scale }
        }
        other => other,
    }
}

/// `round` and its like. With digits that are not known, a numeric keeps its scale.
fn rounded(rounding: Rounding, mut operands: Vec<Operand>, form: &str) -> Lowered<Expression> {
    let digits = if operands.len() == 2 { operands.pop() } else { None };
    let operand = operands.remove(0);
    let span = operand.span;
    let Some(digits) = digits else {
        let value = numeric_or_double(operand, form)?;
        let data_type = rounded_type(value.ty.data_type, 0);
        return Ok(strict(Function::Round(rounding), vec![value], data_type));
    };
    let value = settled(operand)?;
    if !value.ty.data_type.is_exact() {
        return Err(wrong_argument(span, value.ty.data_type, form).into());
    }
    let value = {
        let to = as_numeric(value.ty.data_type);
        convert(value, to, span)?
    };
    let digits = assigned(digits, DataType::BigInt, "the digits")?;
    let scale = match &digits.kind {
        ExpressionKind::Constant(Value::BigInt(known)) => (*known).clamp(0, 38) as u8,
        _ => value.ty.data_type.scale(),
    };
    let data_type = rounded_type(value.ty.data_type, scale);
    Ok(strict(Function::Round(rounding), vec![value, digits], data_type))
}

fn sign(mut operands: Vec<Operand>, form: &str) -> Lowered<Expression> {
    let value = numeric_or_double(operands.remove(0), form)?;
    let data_type = match value.ty.data_type {
        DataType::Double => DataType::Double,
        _ => DataType::Numeric { precision: 1, scale: 0 },
    };
    Ok(strict(Function::Sign, vec![value], data_type))
}

/// `div`: of integers too a numeric, as in PostgreSQL.
fn whole_quotient(operands: Vec<Operand>, form: &str) -> Lowered<Expression> {
    let spans: Vec<Span> = operands.iter().map(|operand| operand.span).collect();
    let mut values = Vec::new();
    for (value, span) in unified(operands, None)?.into_iter().zip(spans) {
        if !value.ty.data_type.is_exact() {
            return Err(wrong_argument(span, value.ty.data_type, form).into());
        }
        let to = as_numeric(value.ty.data_type);
        values.push(convert(value, to, span)?);
    }
    let data_type = DataType::Numeric { precision: limit::NUMERIC_PRECISION, scale: 0 };
    Ok(strict(Function::DivideWhole, values, data_type))
}

fn of_bits(which: Function, operands: Vec<Operand>, form: &str) -> Lowered<Expression> {
    let span = operands[0].span;
    let values = unified(operands, None)?;
    let data_type = values[0].ty.data_type;
    match data_type.family() {
        Family::Integer => Ok(strict(which, values, data_type)),
        _ => Err(wrong_argument(span, data_type, form).into()),
    }
}

fn shifted(operator: Bits, mut operands: Vec<Operand>, form: &str) -> Lowered<Expression> {
    let count = operands.pop().expect("a shift has two operands");
    let operand = operands.remove(0);
    let span = operand.span;
    let value = settled(operand)?;
    let data_type = value.ty.data_type;
    if data_type.family() != Family::Integer {
        return Err(wrong_argument(span, data_type, form).into());
    }
    let count = assigned(count, DataType::Int, "the count")?;
    Ok(strict(Function::Bits(operator), vec![value, count], data_type))
}

fn extracted(mut operands: Vec<Operand>, form: &str) -> Lowered<Expression> {
    let moment = operands.pop().expect("extract has two operands");
    let (field, span) = (operands.remove(0), moment.span);
    let value = settled(moment)?;
    let data_type = value.ty.data_type;
    let kind = match data_type {
        DataType::Date => "date",
        DataType::Timestamp => "timestamp without time zone",
        _ => return Err(wrong_argument(span, data_type, form).into()),
    };
    let ExpressionKind::Constant(Value::Text(name)) = &field.value.kind else {
        let error =
            Diagnostic::new(SqlState::INVALID_DEFINITION, field.span, "the field of extract is a literal");
        return Err(error.with_hint("date_part takes any text").into());
    };
    let refuse = |state, what| {
        let message = format!("unit \"{}\" {what} for type {kind}", name.to_lowercase());
        Err(Diagnostic::new(state, field.span, message).into())
    };
    match DateField::parse(name) {
        None => refuse(SqlState::INVALID_PARAMETER, "not recognized"),
        Some(field) if field.is_time() && data_type == DataType::Date => {
            refuse(SqlState::NOT_SUPPORTED, "not supported")
        }
        Some(field) => Ok(strict(Function::Extract(field), vec![value], field.extracted(data_type))),
    }
}

fn wrong_argument(span: Span, found: DataType, form: &str) -> Diagnostic {
    let name = form.split('(').next().unwrap_or(form);
    let message = format!("{name} does not take {found} here");
    Diagnostic::new(SqlState::DATATYPE_MISMATCH, span, message).with_hint(format!("it is called {form}"))
}
