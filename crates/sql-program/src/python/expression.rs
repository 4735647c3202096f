//! Expressions of a function: names, columns of rows, calls, and what they count for as conditions.

use super::lowering::{Lowering, column_variable, variable};
use super::value::{self, Class, Value, boolean, cast, nested, number, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_planning::heed;
use fabius_sql_syntax::part;
use fabius_sql_syntax::python::tree::{Comparison, Constant, Expression, ExpressionKind, Operator};
use fabius_value::Result;
use sqlparser::ast::{self, Expr};

impl Lowering<'_> {
    pub(super) fn require_assigned(&self, name: &str, span: Span) -> Result<()> {
        if self.assigned.contains(name) {
            return Ok(());
        }
        let what = format!("{name} where it may not have a value yet");
        self.refused(span, &what, "give it one before")
    }

    pub(super) fn name(&self, name: &str, span: Span) -> Result<Value> {
        let Some(class) = self.variables.get(name) else {
            return match self.rows.contains_key(name) {
                true => self.refused(span, "a row as a value", "use its columns"),
                false => self.refused(
                    span,
                    &format!("{name}, which is none of its names"),
                    "pass it as an argument",
                ),
            };
        };
        self.require_assigned(name, span)?;
        let mut value = Value::of(Expr::Identifier(part::quoted(&variable(name))), class.clone(), span);
        value.is_nullable = self.nullable.contains(name);
        Ok(value)
    }

    pub(super) fn condition(&mut self, expression: &Expression) -> Result<Expr> {
        self.truth(expression).map(|(truth, _)| truth)
    }

    /// Whether an expression counts as true, and whether finding out may fail.
    pub(super) fn truth(&mut self, expression: &Expression) -> Result<(Expr, bool)> {
        match &expression.kind {
            ExpressionKind::Not(value) => {
                let (truth, fails) = self.truth(value)?;
                Ok((Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(truth)) }, fails))
            }
            ExpressionKind::Joined(is_and, all) => {
                let truths = all.iter().map(|one| self.truth(one)).collect::<Result<Vec<_>>>()?;
                let fails = truths.iter().any(|(_, fails)| *fails);
                Ok((value::joined(*is_and, truths), fails))
            }
            _ => {
                let value = self.value(expression)?;
                let truth = self.accepted(expression.span, value.truth())?;
                Ok((truth, value.can_fail))
            }
        }
    }

    pub(super) fn value(&mut self, expression: &Expression) -> Result<Value> {
        heed()?;
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Constant(constant) => self.constant(constant, span),
            ExpressionKind::Name(name) => self.name(name, span),
            ExpressionKind::Attribute(object, column) => self.column(object, column, span),
            ExpressionKind::Subscript(..) => {
                self.refused(span, "a row within an expression", "give it a name: row = db.table[key]")
            }
            ExpressionKind::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let value = value::calculated(*operator, left, right, span);
                self.accepted(span, value)
            }
            ExpressionKind::Negative(value) => {
                let is_literal = matches!(&value.kind, ExpressionKind::Constant(_));
                let zero = Value::of(number("0"), Class::Whole, span);
                let value = self.value(value)?;
                let negative = value::calculated(Operator::Subtract, zero, value, span);
                let negative = self.accepted(span, negative)?;
                Ok(Value { can_fail: negative.can_fail && !is_literal, ..negative })
            }
            ExpressionKind::Not(_) => {
                let (truth, can_fail) = self.truth(expression)?;
                Ok(Value { can_fail, ..Value::of(nested(truth), Class::Boolean, span) })
            }
            ExpressionKind::Joined(_, all) => {
                for part in all {
                    let value = self.value(part)?;
                    if value.class != Class::Boolean || value.is_nullable {
                        let what = "and or or whose value is no bool";
                        return self.refused(part.span, what, "write `x if x else y`");
                    }
                }
                let (truth, can_fail) = self.truth(expression)?;
                Ok(Value { can_fail, ..Value::of(nested(truth), Class::Boolean, span) })
            }
            ExpressionKind::Compare(first, others) => self.comparison(first, others, span),
            ExpressionKind::Conditional(condition, then, otherwise) => {
                let (condition, fails) = self.truth(condition)?;
                let (then, otherwise) = (self.value(then)?, self.value(otherwise)?);
                let class = match (&then.class, &otherwise.class) {
                    (Class::None, class) | (class, Class::None) => class.clone(),
                    (one, other) if one == other => one.clone(),
                    (one, other) => {
                        let what = format!("{} or {} by a condition", one.name(), other.name());
                        return self.refused(span, &what, "convert one of the values");
                    }
                };
                let is_nullable = [&then, &otherwise]
                    .into_iter()
                    .any(|value| value.is_nullable || value.class == Class::None);
                let can_fail = fails || then.can_fail || otherwise.can_fail;
                let tree = nested(value::case(condition, then.tree, otherwise.tree));
                Ok(Value { tree, class, is_nullable, can_fail, span })
            }
            ExpressionKind::Formatted(parts) => self.formatted(parts, span),
            ExpressionKind::Call(function, arguments, named) => self.call(function, (arguments, named), span),
        }
    }

    pub(super) fn constant(&self, constant: &Constant, span: Span) -> Result<Value> {
        Ok(match constant {
            Constant::None => {
                let null = Value::of(Expr::value(ast::Value::Null), Class::None, span);
                Value { is_nullable: true, ..null }
            }
            Constant::Boolean(truth) => Value::of(boolean(*truth), Class::Boolean, span),
            Constant::Whole(digits) => {
                if digits.parse::<i64>().is_err() {
                    return self.refused(span, "an int of more than 64 bits", "use Decimal");
                }
                Value::of(cast(number(digits), &SqlType::BigInt)?, Class::Whole, span)
            }
            Constant::Float(value) => {
                let digits = format!("{value:e}");
                Value::of(cast(text(&digits), &SqlType::Double)?, Class::Float, span)
            }
            Constant::Text(value) => {
                if value.contains('\0') {
                    return self.refused(span, "a text with a character of code 0", "leave it out");
                }
                Value::of(cast(text(value), &SqlType::Text)?, Class::Text, span)
            }
        })
    }

    /// `row.column`
    pub(super) fn column(&mut self, object: &Expression, column: &str, span: Span) -> Result<Value> {
        let ExpressionKind::Name(name) = &object.kind else {
            let instead = "give the row a name: row = db.table[key]";
            return self.refused(span, "an attribute of anything but a named row", instead);
        };
        let Some(row) = self.rows.get(name).cloned() else {
            return self.refused(span, "an attribute of anything but a row", "write db.table[key].column");
        };
        self.require_assigned(name, object.span)?;
        let Some(definition) = row.table.column(column).filter(|column| !column.is_hidden) else {
            return self.no_column(&row.table, column, span);
        };
        let class = Class::of(&definition.sql_type);
        let tree = Expr::Identifier(part::quoted(&column_variable(name, column)));
        let tree = if class == Class::Whole { cast(tree, &SqlType::BigInt)? } else { tree };
        Ok(Value { is_nullable: definition.nullable, ..Value::of(tree, class, span) })
    }

    pub(super) fn comparison(
        &mut self,
        first: &Expression,
        others: &[(Comparison, Expression)],
        span: Span,
    ) -> Result<Value> {
        let mut left = self.value(first)?;
        let mut truths = Vec::new();
        let mut can_fail = left.can_fail;
        for (comparison, right) in others {
            let right = self.value(right)?;
            can_fail |= right.can_fail;
            let compared = value::compared(&left, *comparison, &right);
            truths.push((self.accepted(span, compared)?, left.can_fail || right.can_fail));
            left = right;
        }
        let tree = nested(value::joined(true, truths));
        Ok(Value { can_fail, ..Value::of(tree, Class::Boolean, span) })
    }

    pub(super) fn formatted(&mut self, parts: &[Expression], span: Span) -> Result<Value> {
        let mut texts = Vec::new();
        let mut can_fail = false;
        for part in parts {
            let value = match &part.kind {
                ExpressionKind::Formatted(inner) => match inner.as_slice() {
                    [only] => self.value(only)?,
                    _ => self.formatted(inner, part.span)?,
                },
                _ => self.value(part)?,
            };
            can_fail |= value.can_fail;
            let shown = self.shown(value)?;
            texts.push(nested(shown));
        }
        let all =
            texts.into_iter().reduce(|all, one| part::binary(all, ast::BinaryOperator::StringConcat, one));
        let tree = all.unwrap_or_else(|| text(""));
        Ok(Value { can_fail, ..Value::of(nested(cast(tree, &SqlType::Text)?), Class::Text, span) })
    }

    /// What `str` makes of a value.
    pub(super) fn shown(&self, value: Value) -> Result<Expr> {
        let shown = match value.class {
            Class::None => text("None"),
            Class::Text => value.tree,
            Class::Boolean => value::case(value.tree, text("True"), text("False")),
            Class::Whole => cast(value.tree, &SqlType::Text)?,
            ref other => {
                let what = format!("{} as text", other.name());
                return self.refused(value.span, &what, "make the text where the result is used");
            }
        };
        Ok(if value.is_nullable { value::function("coalesce", vec![shown, text("None")]) } else { shown })
    }

    /// A call within an expression.
    pub(super) fn call(
        &mut self,
        function: &Expression,
        (arguments, named): (&[Expression], &[(String, Expression)]),
        span: Span,
    ) -> Result<Value> {
        let name = match &function.kind {
            ExpressionKind::Name(name) if named.is_empty() => name.as_str(),
            _ => "",
        };
        let known = ["abs", "len", "str", "min", "max", "bool"];
        if !known.contains(&name) {
            return self.refused(span, "a call of this", &format!("these are there: {}", known.join(", ")));
        }
        let values = arguments.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>>>()?;
        let can_fail = values.iter().any(|value| value.can_fail);
        let of = |tree: Expr, class: Class| Value { can_fail, ..Value::of(tree, class, span) };
        match (name, values.as_slice()) {
            ("bool", [_]) => {
                let (truth, can_fail) = self.truth(&arguments[0])?;
                Ok(Value { can_fail, ..Value::of(nested(truth), Class::Boolean, span) })
            }
            ("str", [value]) => Ok(of(nested(self.shown(value.clone())?), Class::Text)),
            ("len", [value]) if value.class == Class::Text && !value.is_nullable => {
                let length = value::function("char_length", vec![value.tree.clone()]);
                Ok(of(cast(length, &SqlType::BigInt)?, Class::Whole))
            }
            ("abs", [value])
                if matches!(value.class, Class::Whole | Class::Decimal) && !value.is_nullable =>
            {
                let tree = value::function("abs", vec![value.tree.clone()]);
                Ok(Value { can_fail: true, ..Value::of(tree, value.class.clone(), span) })
            }
            ("min" | "max", [first, _, ..])
                if matches!(first.class, Class::Whole | Class::Decimal | Class::Text)
                    && values.iter().all(|value| value.class == first.class && !value.is_nullable) =>
            {
                let name = if name == "min" { "least" } else { "greatest" };
                let class = first.class.clone();
                let trees = values.iter().map(|value| value.tree.clone()).collect();
                Ok(of(value::function(name, trees), class))
            }
            _ => {
                let classes: Vec<String> = values.iter().map(|value| value.class.name()).collect();
                let what = format!("{name}({})", classes.join(", "));
                self.refused(span, &what, "convert the values, or test them for None first")
            }
        }
    }
}
