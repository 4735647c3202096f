//! Functions of Python within expressions, and methods of texts.

use super::lowering::Lowering;
use super::value::{self, Class, Value, cast, nested, number, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::python::tree::{Constant, Expression, ExpressionKind};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{self, BinaryOperator, Expr};

/// Functions that are there.
const FUNCTIONS: [&str; 10] = ["abs", "len", "str", "min", "max", "bool", "int", "float", "Decimal", "round"];

/// Methods of texts that are there.
const METHODS: [&str; 9] =
    ["upper", "lower", "strip", "lstrip", "rstrip", "replace", "startswith", "endswith", "find"];

/// What `str.strip` takes away: white space of Unicode, as Python has it.
const WHITE: &str = "\t\n\u{b}\u{c}\r\u{1c}\u{1d}\u{1e}\u{1f} \u{85}\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\
\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}";

impl Lowering<'_> {
    /// A call within an expression.
    pub(super) fn call(
        &mut self,
        function: &Expression,
        (arguments, named): (&[Expression], &[(String, Expression)]),
        span: Span,
    ) -> Result<Value> {
        if let (ExpressionKind::Attribute(object, method), []) = (&function.kind, named)
            && (METHODS.contains(&method.as_str()) || method == "[:]")
        {
            return self.method(object, method, arguments, span);
        }
        let name = match &function.kind {
            ExpressionKind::Name(name) if named.is_empty() => name.as_str(),
            _ => "",
        };
        if !FUNCTIONS.contains(&name) {
            let instead =
                format!("these are there: {}; of texts {}", FUNCTIONS.join(", "), METHODS.join(", "));
            return self.refused(span, "a call of this", &instead);
        }
        if let ("bool", [value]) = (name, arguments) {
            let (truth, can_fail) = self.truth(value)?;
            return Ok(Value { can_fail, ..Value::of(nested(truth), Class::Boolean, span) });
        }
        let values = arguments.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>>>()?;
        if let Some(pending) = values.iter().find(|value| value.class.is_pending()) {
            let class = match name {
                "len" | "int" => Class::Whole,
                "str" => Class::Text,
                _ => pending.class.clone(),
            };
            return Ok(Value { can_fail: true, ..Value::of(Expr::value(ast::Value::Null), class, span) });
        }
        let values: Vec<Value> = match name {
            "str" => values,
            _ => values.into_iter().map(|value| self.sure(value)).collect(),
        };
        if let ("round", [value, _], [_, digits]) = (name, values.as_slice(), arguments)
            && let Some(rounded) = self.rounded(value, digits, span)?
        {
            return Ok(rounded);
        }
        match self.function(name, &values, span)? {
            Some(value) => Ok(value),
            None => {
                let classes: Vec<String> = values.iter().map(|value| value.class.name()).collect();
                let what = format!("{name}({})", classes.join(", "));
                self.refused(span, &what, "convert the values, or test them for None first")
            }
        }
    }

    /// A function of values that are there.
    fn function(&mut self, name: &str, values: &[Value], span: Span) -> Result<Option<Value>> {
        let can_fail = values.iter().any(|value| value.can_fail);
        let of = |tree: Expr, class: Class| Value { can_fail, ..Value::of(tree, class, span) };
        if let ("str", [value]) = (name, values) {
            return Ok(Some(of(nested(self.shown(value.clone())?), Class::Text)));
        }
        if values.iter().any(|value| value.is_nullable) {
            return Ok(None);
        }
        Ok(Some(match (name, values) {
            ("len", [value]) if value.class == Class::Text => {
                let length = value::function("char_length", vec![value.tree.clone()]);
                of(cast(length, &SqlType::BigInt)?, Class::Whole)
            }
            ("len", [value]) if matches!(value.class, Class::List(_)) => {
                let length = value::function("cardinality", vec![value.tree.clone()]);
                of(cast(length, &SqlType::BigInt)?, Class::Whole)
            }
            ("abs", [value]) if matches!(value.class, Class::Whole | Class::Decimal) => {
                let tree = value::function("abs", vec![value.tree.clone()]);
                Value { can_fail: true, ..Value::of(tree, value.class.clone(), span) }
            }
            ("min" | "max", [first, _, ..])
                if matches!(first.class, Class::Whole | Class::Decimal | Class::Text)
                    && values.iter().all(|value| value.class == first.class) =>
            {
                let name = if name == "min" { "least" } else { "greatest" };
                let trees = values.iter().map(|value| value.tree.clone()).collect();
                of(value::function(name, trees), first.class.clone())
            }
            ("int" | "round", [value]) if value.class == Class::Whole => of(value.tree.clone(), Class::Whole),
            ("int", [value]) if value.class == Class::Boolean => {
                let tree = value::case(value.tree.clone(), number("1"), number("0"));
                of(cast(tree, &SqlType::BigInt)?, Class::Whole)
            }
            ("int", [value]) if matches!(value.class, Class::Float | Class::Decimal) => {
                let whole = value::function("trunc", vec![value.tree.clone()]);
                Value { can_fail: true, ..Value::of(cast(whole, &SqlType::BigInt)?, Class::Whole, span) }
            }
            ("float", [value]) if matches!(value.class, Class::Whole | Class::Float | Class::Decimal) => {
                of(cast(value.tree.clone(), &SqlType::Double)?, Class::Float)
            }
            ("Decimal", [value]) if matches!(value.class, Class::Whole | Class::Decimal) => {
                of(cast(value.tree.clone(), &SqlType::Numeric(None))?, Class::Decimal)
            }
            _ => return Ok(None),
        }))
    }

    /// `round(decimal, digits)`: to the nearest, and of two as near to the even one.
    fn rounded(&self, value: &Value, digits: &Expression, span: Span) -> Result<Option<Value>> {
        let digits = match &digits.kind {
            ExpressionKind::Constant(Constant::Whole(digits)) => digits.parse::<u8>().ok(),
            _ => None,
        };
        let Some(digits) = digits.filter(|digits| *digits <= 20) else { return Ok(None) };
        if value.class != Class::Decimal || value.is_nullable {
            return Ok(None);
        }
        let own = || nested(value.tree.clone());
        let decimal = |text: String| cast(self::text(&text), &SqlType::Numeric(None));
        let call = |value: Expr| value::function("round", vec![value, number(&digits.to_string())]);
        // SQL rounds halves away from zero.
        let away = nested(call(own()));
        let unit = decimal(format!("1e-{digits}"))?;
        let off =
            value::function("abs", vec![nested(part::binary(own(), BinaryOperator::Minus, away.clone()))]);
        let is_half = part::binary(off, BinaryOperator::Eq, decimal(format!("5e-{}", digits + 1))?);
        let units = part::binary(away.clone(), BinaryOperator::Divide, unit.clone());
        let odd = part::binary(nested(units), BinaryOperator::Modulo, decimal("2".into())?);
        let is_odd = part::binary(nested(odd), BinaryOperator::NotEq, decimal("0".into())?);
        let is_negative = part::binary(own(), BinaryOperator::Lt, decimal("0".into())?);
        let back = value::case(
            is_negative,
            nested(part::binary(away.clone(), BinaryOperator::Plus, unit.clone())),
            nested(part::binary(away.clone(), BinaryOperator::Minus, unit)),
        );
        let is_back = part::binary(nested(is_half), BinaryOperator::And, nested(is_odd));
        let tree = nested(call(nested(value::case(is_back, back, away))));
        Ok(Some(Value { can_fail: true, ..Value::of(tree, Class::Decimal, span) }))
    }

    /// A method of a text.
    fn method(
        &mut self,
        object: &Expression,
        method: &str,
        arguments: &[Expression],
        span: Span,
    ) -> Result<Value> {
        let own = self.value(object)?;
        let own = self.sure(own);
        let values = arguments.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>>>()?;
        let is_pending = own.class.is_pending() || values.iter().any(|value| value.class.is_pending());
        if is_pending {
            return Ok(Value {
                can_fail: true,
                ..Value::of(Expr::value(ast::Value::Null), Class::Pending, span)
            });
        }
        let can_fail = own.can_fail || values.iter().any(|value| value.can_fail);
        let of = |tree: Expr, class: Class| Ok(Value { can_fail, ..Value::of(nested(tree), class, span) });
        let are_texts = own.class == Class::Text
            && !own.is_nullable
            && values.iter().all(|value| value.class == Class::Text && !value.is_nullable);
        let call = |name: &str, arguments: Vec<Expr>| value::function(name, arguments);
        let it = || own.tree.clone();
        if method == "[:]" {
            return self.part_of(&own, &values, span);
        }
        match (method, values.as_slice()) {
            ("upper" | "lower", []) if are_texts => of(call(method, vec![it()]), Class::Text),
            ("strip" | "lstrip" | "rstrip", [] | [_]) if are_texts => {
                let name = match method {
                    "strip" => "btrim",
                    "lstrip" => "ltrim",
                    _ => "rtrim",
                };
                let what = values.first().map_or_else(|| text(WHITE), |value| value.tree.clone());
                of(call(name, vec![it(), what]), Class::Text)
            }
            ("replace", [from, to]) if are_texts => {
                let is_something = matches!(
                    arguments.first().map(|argument| &argument.kind),
                    Some(ExpressionKind::Constant(Constant::Text(text)))
                        if !text.is_empty()
                );
                if !is_something {
                    let what = "replace of what is no literal, or empty";
                    return self.refused(from.span, what, "write the text out that is replaced");
                }
                of(call("replace", vec![it(), from.tree.clone(), to.tree.clone()]), Class::Text)
            }
            ("startswith", [with]) if are_texts => {
                of(call("starts_with", vec![it(), with.tree.clone()]), Class::Boolean)
            }
            ("endswith", [with]) if are_texts => {
                let length = call("char_length", vec![with.tree.clone()]);
                let end = call("right", vec![it(), length]);
                of(part::binary(end, BinaryOperator::Eq, with.tree.clone()), Class::Boolean)
            }
            ("find", [what]) if are_texts => {
                let place = cast(call("strpos", vec![it(), what.tree.clone()]), &SqlType::BigInt)?;
                of(part::binary(place, BinaryOperator::Minus, number("1")), Class::Whole)
            }
            _ => {
                let classes: Vec<String> = values.iter().map(|value| value.class.name()).collect();
                let what = format!("{}.{method}({})", own.class.name(), classes.join(", "));
                self.refused(span, &what, &format!("these are there, of texts: {}", METHODS.join(", ")))
            }
        }
    }

    /// `text[from:to]`
    fn part_of(&mut self, own: &Value, bounds: &[Value], span: Span) -> Result<Value> {
        let are_places = bounds
            .iter()
            .all(|value| value.class == Class::None || (value.class == Class::Whole && !value.is_nullable));
        let ([from, to], true) = (bounds, own.class == Class::Text && !own.is_nullable && are_places) else {
            let what = format!("a part of a {}", own.class.name());
            return self.refused(span, &what, "take parts of texts and lists, by places that are int");
        };
        let can_fail = own.can_fail || from.can_fail || to.can_fail;
        let length = || cast(value::function("char_length", vec![own.tree.clone()]), &SqlType::BigInt);
        let bound = |value: &Value, usual: Expr| -> Result<Expr> {
            if value.class == Class::None {
                return Ok(usual);
            }
            let is_negative = part::binary(nested(value.tree.clone()), BinaryOperator::Lt, number("0"));
            let from_end = part::binary(nested(value.tree.clone()), BinaryOperator::Plus, length()?);
            let from_end = value::function("greatest", vec![from_end, cast(number("0"), &SqlType::BigInt)?]);
            let place = value::case(is_negative, from_end, value.tree.clone());
            Ok(value::function("least", vec![place, length()?]))
        };
        let begin = bound(from, cast(number("0"), &SqlType::BigInt)?)?;
        let end = bound(to, length()?)?;
        let count = part::binary(nested(end), BinaryOperator::Minus, nested(begin.clone()));
        let count = value::function("greatest", vec![count, cast(number("0"), &SqlType::BigInt)?]);
        let first = part::binary(nested(begin), BinaryOperator::Plus, number("1"));
        let mut tree = Tokens::of("substring(x FROM 1 FOR 1)")?.read(|parser| parser.parse_expr())?;
        if let Expr::Substring { expr, substring_from, substring_for, .. } = &mut tree {
            **expr = own.tree.clone();
            *substring_from = Some(Box::new(cast(nested(first), &SqlType::Int)?));
            *substring_for = Some(Box::new(cast(count, &SqlType::Int)?));
        }
        Ok(Value { can_fail, ..Value::of(tree, Class::Text, span) })
    }
}
