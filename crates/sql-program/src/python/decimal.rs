//! Decimals: how they are divided and rounded; and what is written in a format.

use super::class::Class;
use super::lowering::Lowering;
use super::value::{self, Value, cast, nested, number, text};
use fabius_program::operation::function::python::{Format, Formatted};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::python::tree::{Constant, Expression, ExpressionKind, Operator};
use fabius_value::Result;
use sqlparser::ast::{BinaryOperator, Expr};

/// Methods of `Decimal` that are there.
pub const METHODS: [&str; 4] = ["quantize", "is_zero", "copy_abs", "to_integral_value"];

/// Digits behind the point that a `Decimal` keeps.
const SCALE: u8 = 10;

/// The way to round that is meant where none is named.
const HALF_EVEN: &str = "ROUND_HALF_EVEN";

/// Ways to round that `decimal` has, by the names of its constants.
const ROUNDINGS: [&str; 8] = [
    HALF_EVEN,
    "ROUND_HALF_UP",
    "ROUND_HALF_DOWN",
    "ROUND_UP",
    "ROUND_DOWN",
    "ROUND_CEILING",
    "ROUND_FLOOR",
    "ROUND_05UP",
];

/// What to do with a quotient that is not rounded.
pub const ROUND_IT: &str =
    "round it at once: round(x / y, 2), (x / y).quantize(Decimal(\"0.01\")) or f\"{x / y:.2f}\"";

/// The digits of a `Decimal`, or of a quotient, as a text.
fn digits_of(value: &Value) -> Result<Expr> {
    match value.class {
        Class::Quotient => Ok(value.tree.clone()),
        _ => cast(value.tree.clone(), &SqlType::Text),
    }
}

/// `/`, `//` and `%` of values that are there, of which one at least is a `Decimal`; `None` for others.
pub fn divided(operator: Operator, left: &Value, right: &Value) -> Result<Option<(Expr, Class)>> {
    let are_decimals = matches!(
        (&left.class, &right.class),
        (Class::Decimal, Class::Decimal | Class::Whole) | (Class::Whole, Class::Decimal)
    );
    if !are_decimals || left.is_nullable || right.is_nullable {
        return Ok(None);
    }
    let rest = || part::binary(nested(left.tree.clone()), BinaryOperator::Modulo, nested(right.tree.clone()));
    let (tree, class) = match operator {
        Operator::Divide => {
            let digits = vec![digits_of(left)?, digits_of(right)?];
            (value::function("fabius_python_quotient", digits), Class::Quotient)
        }
        // Cut towards zero, unlike those of `int`.
        Operator::FloorDivide => {
            let divided = part::binary(nested(left.tree.clone()), BinaryOperator::Minus, nested(rest()));
            (
                part::binary(nested(divided), BinaryOperator::Divide, nested(right.tree.clone())),
                Class::Decimal,
            )
        }
        Operator::Modulo => (rest(), Class::Decimal),
        _ => return Ok(None),
    };
    Ok(Some((nested(tree), class)))
}

/// A `Decimal`, or a quotient, with so many digits behind the point, as `decimal` rounds to them.
fn quantized(value: &Value, digits: u8, rounding: &str) -> Result<Expr> {
    let places = cast(number(&digits.to_string()), &SqlType::BigInt)?;
    let rounding = cast(text(rounding), &SqlType::Text)?;
    let rounded = value::function("fabius_python_quantize", vec![digits_of(value)?, places, rounding]);
    Ok(nested(cast(rounded, &SqlType::Numeric(None))?))
}

/// A `Decimal`, or a quotient, with fewer digits: to the nearest, and of two as near to the even one.
fn half_even(value: &Value, digits: u8) -> Result<Expr> {
    if value.class == Class::Quotient {
        return quantized(value, digits, HALF_EVEN);
    }
    let places = number(&digits.to_string());
    let rounded = value::function("fabius_python_rounded", vec![value.tree.clone(), places]);
    Ok(nested(cast(rounded, &SqlType::Numeric(None))?))
}

/// A `Decimal`, or a quotient, without digits behind the point: cut off, or to the nearest.
pub fn whole(value: &Value, is_cut: bool) -> Result<Expr> {
    match (is_cut, &value.class) {
        (true, Class::Decimal) => Ok(value::function("trunc", vec![value.tree.clone()])),
        (true, _) => quantized(value, 0, "ROUND_DOWN"),
        (false, _) => half_even(value, 0),
    }
}

/// Digits behind the point that are written out.
fn places_of(expression: &Expression) -> Option<u8> {
    match &expression.kind {
        ExpressionKind::Constant(Constant::Whole(digits)) => digits.parse().ok(),
        _ => None,
    }
}

impl Lowering<'_> {
    /// `round(value, digits)`, of digits that are written out.
    pub(super) fn rounded(&self, value: &Value, digits: &Expression, span: Span) -> Result<Option<Value>> {
        let Some(digits) = places_of(digits).filter(|_| !value.is_nullable) else { return Ok(None) };
        let tree = match value.class {
            Class::Whole => value.tree.clone(),
            Class::Float => {
                let digits = cast(number(&digits.to_string()), &SqlType::BigInt)?;
                value::function("fabius_python_round", vec![value.tree.clone(), digits])
            }
            Class::Decimal | Class::Quotient if digits <= SCALE => half_even(value, digits)?,
            _ => return Ok(None),
        };
        let class = if value.class == Class::Quotient { Class::Decimal } else { value.class.clone() };
        Ok(Some(Value { can_fail: true, ..Value::of(tree, class, span) }))
    }

    /// A method of a `Decimal`.
    pub(super) fn method_of_decimal(
        &mut self,
        object: &Expression,
        method: &str,
        arguments: &[Expression],
        span: Span,
    ) -> Result<Value> {
        let own = self.unrounded(object)?;
        let class = if method == "is_zero" { Class::Boolean } else { Class::Decimal };
        let of = |tree: Expr| Ok(Value { can_fail: true, ..Value::of(tree, class.clone(), span) });
        if own.class.is_pending() {
            return of(own.tree);
        }
        let is_quotient = own.class == Class::Quotient && matches!(method, "quantize" | "to_integral_value");
        if !(own.class == Class::Decimal || is_quotient) || own.is_nullable {
            return self.not_of(&own, method, "it is there for a Decimal: Decimal(n) of an int", span);
        }
        match (method, arguments) {
            ("is_zero", []) => of(nested(part::binary(own.tree, BinaryOperator::Eq, number("0")))),
            ("copy_abs", []) => of(value::function("abs", vec![own.tree])),
            ("to_integral_value", []) => of(half_even(&own, 0)?),
            ("quantize", [digits, rounding]) => {
                let digits = places_of(digits).unwrap_or_default();
                let ExpressionKind::Constant(Constant::Text(rounding)) = &rounding.kind else {
                    return self.refused(span, "this rounding", "leave it out");
                };
                if !ROUNDINGS.contains(&rounding.as_str()) {
                    let instead = format!("these are there: {}", ROUNDINGS.join(", "));
                    return self.refused(span, &format!("the rounding {rounding}"), &instead);
                }
                of(match rounding.as_str() {
                    HALF_EVEN => half_even(&own, digits)?,
                    other => quantized(&own, digits, other)?,
                })
            }
            _ => self.refused(span, &format!("this call of {method}"), "leave its arguments out"),
        }
    }

    /// `format(value, "...")`, of a format that is written out.
    pub(super) fn format(&self, value: &Value, format: &Expression, span: Span) -> Result<Value> {
        let (name, formatted) = match value.class {
            Class::Whole => ("fabius_python_format_int", Formatted::Whole),
            Class::Float => ("fabius_python_format_double", Formatted::Double),
            Class::Decimal | Class::Quotient => ("fabius_python_format_decimal", Formatted::Decimal),
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
                Class::Decimal | Class::Quotient => "say how many digits are behind the point: {x:.2f}",
                _ => "format it where the result is used",
            };
            return self.refused(span, &what, instead);
        }
        let own = match value.class {
            Class::Decimal => digits_of(value)?,
            _ => value.tree.clone(),
        };
        let tree = value::function(name, vec![own, cast(text(written), &SqlType::Text)?]);
        Ok(Value { can_fail: true, ..Value::of(tree, Class::Text, span) })
    }
}
