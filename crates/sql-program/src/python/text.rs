//! Methods of texts.

use super::class::Class;
use super::lowering::Lowering;
use super::value::{self, Value, cast, nested, number, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::python::tree::{Constant, Expression, ExpressionKind};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{self, BinaryOperator, Expr};

/// Methods of texts that are there.
pub const METHODS: [&str; 24] = [
    "upper",
    "lower",
    "strip",
    "lstrip",
    "rstrip",
    "replace",
    "startswith",
    "endswith",
    "find",
    "rfind",
    "count",
    "removeprefix",
    "removesuffix",
    "ljust",
    "rjust",
    "zfill",
    "isalpha",
    "isdecimal",
    "isdigit",
    "isalnum",
    "isspace",
    "isascii",
    "isupper",
    "islower",
];

/// What `str.strip` takes away: white space of Unicode, as Python has it.
const WHITE: &str = "\t\n\u{b}\u{c}\r\u{1c}\u{1d}\u{1e}\u{1f} \u{85}\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\
\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}";

impl Lowering<'_> {
    /// A method of a text.
    pub(super) fn method(
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
            (property, []) if are_texts && property.starts_with("is") => {
                let property = cast(text(property), &SqlType::Text)?;
                of(call("fabius_python_has", vec![it(), property]), Class::Boolean)
            }
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
                if !arguments.first().is_some_and(is_literal) {
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
            ("rfind" | "count" | "removeprefix" | "removesuffix", [what]) if are_texts => {
                let (tree, class) = self.about_part(method, &own, (what, &arguments[0]))?;
                of(tree, class)
            }
            ("ljust" | "rjust" | "zfill", [width, fill @ ..])
                if own.class == Class::Text && !own.is_nullable && width.class == Class::Whole =>
            {
                let fill = (fill, arguments.get(1));
                let tree = self.filled(method, &own, width, fill, span)?;
                Ok(Value { can_fail: true, ..Value::of(nested(tree), Class::Text, span) })
            }
            _ => {
                let classes: Vec<String> = values.iter().map(|value| value.class.name()).collect();
                let what = format!("{}.{method}({})", own.class.name(), classes.join(", "));
                self.refused(span, &what, &format!("these are there, of texts: {}", METHODS.join(", ")))
            }
        }
    }

    /// What is asked about a part of a text.
    fn about_part(
        &self,
        method: &str,
        own: &Value,
        (what, argument): (&Value, &Expression),
    ) -> Result<(Expr, Class)> {
        let call = |name: &str, arguments: Vec<Expr>| value::function(name, arguments);
        let (it, part) = (|| own.tree.clone(), || what.tree.clone());
        let length = |of: Expr| call("char_length", vec![of]);
        let minus = |one: Expr, other: Expr| part::binary(nested(one), BinaryOperator::Minus, nested(other));
        Ok(match method {
            "count" => {
                if !is_literal(argument) {
                    let what = "count of what is no literal, or empty";
                    return self.refused(argument.span, what, "write the text out that is counted");
                }
                let without = call("replace", vec![it(), part(), text("")]);
                let gone = nested(minus(length(it()), length(without)));
                let count = part::binary(gone, BinaryOperator::Divide, length(part()));
                (cast(nested(count), &SqlType::BigInt)?, Class::Whole)
            }
            "rfind" => {
                // The first from the end.
                let backwards = |of: Expr| call("reverse", vec![of]);
                let found = || call("strpos", vec![backwards(it()), backwards(part())]);
                let rest = minus(minus(length(it()), length(part())), minus(found(), number("1")));
                let is_there = part::binary(found(), BinaryOperator::Gt, number("0"));
                (cast(nested(value::case(is_there, rest, number("-1"))), &SqlType::BigInt)?, Class::Whole)
            }
            "removeprefix" => {
                // `right` of nothing would be nothing.
                let begins = call("starts_with", vec![it(), part()]);
                let is_part = part::binary(part(), BinaryOperator::NotEq, text(""));
                let begins = part::binary(begins, BinaryOperator::And, is_part);
                let rest = call("right", vec![it(), minus(number("0"), length(part()))]);
                (value::case(begins, rest, it()), Class::Text)
            }
            _ => {
                let end = call("right", vec![it(), length(part())]);
                let ends = part::binary(end, BinaryOperator::Eq, part());
                let kept = minus(length(it()), length(part()));
                (value::case(ends, call("left", vec![it(), kept]), it()), Class::Text)
            }
        })
    }

    /// A text filled up to a width.
    fn filled(
        &self,
        method: &str,
        own: &Value,
        width: &Value,
        (fill, written): (&[Value], Option<&Expression>),
        span: Span,
    ) -> Result<Expr> {
        let call = |name: &str, arguments: Vec<Expr>| value::function(name, arguments);
        let it = || own.tree.clone();
        let length = || cast(call("char_length", vec![it()]), &SqlType::BigInt);
        let fill = match (fill, written.map(|written| &written.kind)) {
            ([], _) => text(if method == "zfill" { "0" } else { " " }),
            ([_], Some(ExpressionKind::Constant(Constant::Text(one))))
                if method != "zfill" && one.chars().count() == 1 =>
            {
                text(one)
            }
            _ => {
                return self.refused(
                    span,
                    "this filling of a text",
                    "fill it with a literal of one character",
                );
            }
        };
        let most = cast(number("2147483647"), &SqlType::BigInt)?;
        let width = call("least", vec![call("greatest", vec![width.tree.clone(), length()?]), most]);
        if method != "zfill" {
            let name = if method == "ljust" { "rpad" } else { "lpad" };
            return Ok(call(name, vec![it(), cast(width, &SqlType::Int)?, fill]));
        }
        // Zeros stand behind a sign.
        let first = || call("left", vec![it(), number("1")]);
        let is = |sign: &str| part::binary(first(), BinaryOperator::Eq, text(sign));
        let is_signed = part::binary(is("-"), BinaryOperator::Or, is("+"));
        let rest = call("right", vec![it(), number("-1")]);
        let shorter = part::binary(nested(width.clone()), BinaryOperator::Minus, number("1"));
        let padded = call("lpad", vec![rest, cast(nested(shorter), &SqlType::Int)?, fill.clone()]);
        let signed = part::binary(first(), BinaryOperator::StringConcat, padded);
        let plain = call("lpad", vec![it(), cast(width, &SqlType::Int)?, fill]);
        Ok(value::case(is_signed, nested(signed), plain))
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

/// Whether it is a text that is written out, and is not empty.
fn is_literal(expression: &Expression) -> bool {
    matches!(&expression.kind, ExpressionKind::Constant(Constant::Text(text)) if !text.is_empty())
}
