//! Decimals: how they are rounded; and what is written in a format.

use super::lowering::Lowering;
use super::value::{self, Class, Value, cast, nested, number, text};
use fabius_program::operation::function::python::{Format, Formatted};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::python::tree::{Constant, Expression, ExpressionKind};
use fabius_value::Result;
use sqlparser::ast::{BinaryOperator, Expr};

/// Methods of `Decimal` that are there.
pub const METHODS: [&str; 4] = ["quantize", "is_zero", "copy_abs", "to_integral_value"];

/// Digits behind the point that a `Decimal` keeps.
const SCALE: u8 = 10;

fn decimal(digits: &str) -> Result<Expr> {
    cast(text(digits), &SqlType::Numeric(None))
}

/// A value with all digits that it could have, so that it can be rounded to any of them.
fn with_all_digits(value: &Expr) -> Result<Expr> {
    let zero = decimal(&format!("0.{}", "0".repeat(SCALE.into())))?;
    Ok(nested(part::binary(nested(value.clone()), BinaryOperator::Plus, zero)))
}

/// A value with fewer digits: to the nearest, and of two as near to the even one.
pub fn half_even(value: &Expr, digits: u8) -> Result<Expr> {
    let own = || with_all_digits(value);
    let call = |value: Expr| value::function("round", vec![value, number(&digits.to_string())]);
    // SQL rounds halves away from zero.
    let away = nested(call(own()?));
    let unit = decimal(&format!("1e-{digits}"))?;
    let off = value::function("abs", vec![nested(part::binary(own()?, BinaryOperator::Minus, away.clone()))]);
    let is_half = part::binary(off, BinaryOperator::Eq, decimal(&format!("5e-{}", digits + 1))?);
    let units = part::binary(away.clone(), BinaryOperator::Divide, unit.clone());
    let odd = part::binary(nested(units), BinaryOperator::Modulo, decimal("2")?);
    let is_odd = part::binary(nested(odd), BinaryOperator::NotEq, decimal("0")?);
    let is_negative = part::binary(own()?, BinaryOperator::Lt, decimal("0")?);
    let back = value::case(
        is_negative,
        nested(part::binary(away.clone(), BinaryOperator::Plus, unit.clone())),
        nested(part::binary(away.clone(), BinaryOperator::Minus, unit)),
    );
    let is_back = part::binary(nested(is_half), BinaryOperator::And, nested(is_odd));
    Ok(nested(call(nested(value::case(is_back, back, away)))))
}

/// Digits behind the point that are written out.
fn digits_of(expression: &Expression) -> Option<u8> {
    match &expression.kind {
        ExpressionKind::Constant(Constant::Whole(digits)) => digits.parse().ok(),
        _ => None,
    }
}

impl Lowering<'_> {
    /// `round(value, digits)`, of digits that are written out.
    pub(super) fn rounded(&self, value: &Value, digits: &Expression, span: Span) -> Result<Option<Value>> {
        let Some(digits) = digits_of(digits).filter(|_| !value.is_nullable) else { return Ok(None) };
        let tree = match value.class {
            Class::Whole => value.tree.clone(),
            Class::Float => {
                let digits = cast(number(&digits.to_string()), &SqlType::BigInt)?;
                value::function("fabius_python_round", vec![value.tree.clone(), digits])
            }
            Class::Decimal if digits <= SCALE => half_even(&value.tree, digits)?,
            _ => return Ok(None),
        };
        Ok(Some(Value { can_fail: true, ..Value::of(tree, value.class.clone(), span) }))
    }

    /// A method of a `Decimal`.
    pub(super) fn method_of_decimal(
        &mut self,
        object: &Expression,
        method: &str,
        arguments: &[Expression],
        span: Span,
    ) -> Result<Value> {
        let own = self.value(object)?;
        let class = if method == "is_zero" { Class::Boolean } else { Class::Decimal };
        let of = |tree: Expr| Ok(Value { can_fail: true, ..Value::of(tree, class.clone(), span) });
        if own.class.is_pending() {
            return of(own.tree);
        }
        if own.class != Class::Decimal || own.is_nullable {
            let what = format!("{method} of a {}", own.class.name());
            return self.refused(
                span,
                &what,
                "it is there for Decimal: convert it, or test it for None first",
            );
        }
        match (method, arguments) {
            ("is_zero", []) => of(nested(part::binary(own.tree, BinaryOperator::Eq, number("0")))),
            ("copy_abs", []) => of(value::function("abs", vec![own.tree])),
            ("to_integral_value", []) => of(half_even(&own.tree, 0)?),
            ("quantize", [digits, rounding]) => {
                let digits = digits_of(digits).unwrap_or_default();
                let ExpressionKind::Constant(Constant::Text(rounding)) = &rounding.kind else {
                    return self.refused(span, "this rounding", "leave it out");
                };
                let plain = |name: &str| -> Result<Expr> {
                    let arguments = vec![with_all_digits(&own.tree)?, number(&digits.to_string())];
                    Ok(value::function(name, arguments))
                };
                match rounding.as_str() {
                    "ROUND_HALF_EVEN" => of(half_even(&own.tree, digits)?),
                    "ROUND_HALF_UP" => of(plain("round")?),
                    "ROUND_DOWN" => of(plain("trunc")?),
                    other => {
                        let instead = "these are there: ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_DOWN";
                        self.refused(span, &format!("the rounding {other}"), instead)
                    }
                }
            }
            _ => self.refused(span, &format!("this call of {method}"), "leave its arguments out"),
        }
    }

    /// `format(value, "...")`, of a format that is written out.
    pub(super) fn format(&self, value: &Value, format: &Expression, span: Span) -> Result<Value> {
        let (name, formatted) = match value.class {
            Class::Whole => ("fabius_python_format_int", Formatted::Whole),
            Class::Float => ("fabius_python_format_double", Formatted::Double),
            Class::Decimal => ("fabius_python_format_decimal", Formatted::Decimal),
            Class::Text => ("fabius_python_format_text", Formatted::Text),
            _ => {
                let what = format!("a format of a {}", value.class.name());
                return self.refused(span, &what, "convert it, or format it where the result is used");
            }
        };
        let ExpressionKind::Constant(Constant::Text(written)) = &format.kind else {
            return self.refused(span, "a format that is computed", "write it out");
        };
        let is_known = Format::parse(written).is_some_and(|format| format.is_of(formatted));
        if !is_known || value.is_nullable {
            let what = format!("the format '{written}' of a {}", value.class.name());
            let instead = match value.class {
                Class::Decimal => "say how many digits are behind the point: {x:.2f}",
                _ => "format it where the result is used",
            };
            return self.refused(span, &what, instead);
        }
        let own = match value.class {
            Class::Decimal => cast(value.tree.clone(), &SqlType::Text)?,
            _ => value.tree.clone(),
        };
        let tree = value::function(name, vec![own, cast(text(written), &SqlType::Text)?]);
        Ok(Value { can_fail: true, ..Value::of(tree, Class::Text, span) })
    }
}
