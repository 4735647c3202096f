//! Expressions of a function: names, columns of rows, calls, and what they count for as conditions.

use super::class::Class;
use super::decimal::{self, ROUND_IT};
use super::hint;
use super::lowering::{Field, Lowering, column_variable, found_variable, variable};
use super::moment;
use super::presence::facts;
use super::row::parts_of_key;
use super::statement;
use super::value::{self, Value, boolean, cast, nested, number, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_planning::heed;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{Statement as Done, StatementKind as Kind};
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
        // What is `None` so far may become something else.
        let class = match (class, self.known.get(name)) {
            (Class::None, Some(known)) => known,
            (Class::None, None) if !self.is_last => &Class::Pending,
            (class, _) => class,
        };
        let mut value = Value::of(Expr::Identifier(part::quoted(&variable(name))), class.clone(), span);
        value.is_nullable = self.nullable.contains(name) && !self.present.contains(name);
        value.path = Some(name.to_string());
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
                let before = self.present.clone();
                let mut truths = Vec::new();
                for one in all {
                    truths.push(match truths.is_empty() {
                        true => self.truth(one)?,
                        false => self.perhaps(|lowering| lowering.truth(one))?,
                    });
                    // What comes behind is only computed where this leaves it open.
                    let (holds, fails) = facts(one);
                    self.present.extend(if *is_and { holds } else { fails });
                }
                self.present = before;
                let fails = truths.iter().any(|(_, fails)| *fails);
                Ok((value::joined(*is_and, truths), fails))
            }
            ExpressionKind::Name(name) if self.rows.contains_key(name) => {
                Ok((self.is_there(name, expression.span)?, false))
            }
            _ => {
                let value = self.value(expression)?;
                let truth = self.accepted(expression.span, value.truth())?;
                Ok((truth, value.can_fail))
            }
        }
    }

    pub(super) fn value(&mut self, expression: &Expression) -> Result<Value> {
        let value = self.unrounded(expression)?;
        self.rounded_value(value)
    }

    /// A value that is no quotient of `Decimal`, which has more digits than can be kept.
    fn rounded_value(&self, value: Value) -> Result<Value> {
        match value.class {
            Class::Quotient => {
                self.refused(value.span, "a quotient of Decimal that is not rounded", ROUND_IT)
            }
            _ => Ok(value),
        }
    }

    /// A value, or a quotient of `Decimal` that whoever asks for it rounds.
    pub(super) fn unrounded(&mut self, expression: &Expression) -> Result<Value> {
        heed()?;
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Constant(constant) => self.constant(constant, span),
            ExpressionKind::Name(name) => self.name(name, span),
            ExpressionKind::Attribute(object, column) => self.column(object, column, span),
            ExpressionKind::Subscript(row, place) => match self.element_of_row(row, place, span)? {
                Some(value) => Ok(value),
                None => {
                    self.refused(span, "a row within an expression", "give it a name: row = db.table[key]")
                }
            },
            ExpressionKind::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let (left, right) = (self.sure(left), self.sure(right));
                self.computed(*operator, left, right, span)
            }
            ExpressionKind::Negative(value) => {
                if let ExpressionKind::Constant(Constant::Whole(digits)) = &value.kind {
                    return self.constant(&Constant::Whole(format!("-{digits}")), span);
                }
                let is_literal = matches!(&value.kind, ExpressionKind::Constant(_));
                let value = self.value(value)?;
                let value = self.sure(value);
                let class = if value.class == Class::Span { Class::Span } else { Class::Whole };
                let zero = Value::of(number("0"), class, span);
                let own = value.tree.clone();
                let mut negative = self.calculated(Operator::Subtract, zero, value, span)?;
                if negative.class == Class::Float {
                    // Zero has a sign.
                    let minus = ast::UnaryOperator::Minus;
                    negative.tree = nested(Expr::UnaryOp { op: minus, expr: Box::new(nested(own)) });
                }
                Ok(Value { can_fail: negative.can_fail && !is_literal, ..negative })
            }
            ExpressionKind::Not(_) => {
                let (truth, can_fail) = self.truth(expression)?;
                Ok(Value { can_fail, ..Value::of(nested(truth), Class::Boolean, span) })
            }
            ExpressionKind::Joined(is_and, all) => {
                let mut are_truths = true;
                for part in all {
                    // Only what it is: it is computed below.
                    let (tests, present) = (std::mem::take(&mut self.tests), self.present.clone());
                    let value = self.value(part)?;
                    (self.tests, self.present) = (tests, present);
                    are_truths &= value.class == Class::Boolean && !value.is_nullable;
                }
                if !are_truths && let [first, rest @ ..] = all.as_slice() {
                    return self.chosen(*is_and, first, rest, span);
                }
                let (truth, can_fail) = self.truth(expression)?;
                Ok(Value { can_fail, ..Value::of(nested(truth), Class::Boolean, span) })
            }
            ExpressionKind::Compare(first, others) => self.comparison(first, others, span),
            ExpressionKind::Conditional(condition, then, otherwise) => {
                let (there, there_not) = facts(condition);
                let (condition, fails) = self.truth(condition)?;
                let part = |lowering: &mut Self, facts, part| {
                    lowering.knowing(facts, |lowering| lowering.perhaps(|lowering| lowering.value(part)))
                };
                let (then, otherwise) = (part(self, there, then)?, part(self, there_not, otherwise)?);
                let class = match (&then.class, &otherwise.class) {
                    (Class::None, class) | (class, Class::None) => class.clone(),
                    (one, other) if one == other => one.clone(),
                    (Class::Pending, class) | (class, Class::Pending) => class.clone(),
                    (one, other) => {
                        let what = format!("{} or {} by a condition", one.name(), other.name());
                        let said = self.text_of(otherwise.span).to_string();
                        let instead = hint::conversion(&said, other, one);
                        return self.refused(span, &what, &instead);
                    }
                };
                let is_nullable = [&then, &otherwise]
                    .into_iter()
                    .any(|value| value.is_nullable || value.class == Class::None);
                let can_fail = fails || then.can_fail || otherwise.can_fail;
                let tree = nested(value::case(condition, then.tree, otherwise.tree));
                Ok(Value { is_nullable, can_fail, ..Value::of(tree, class, span) })
            }
            ExpressionKind::Formatted(parts) => self.formatted(parts, span),
            ExpressionKind::Element(list, place) => self.element(list, place, span),
            ExpressionKind::Program(call) => self.called_value(call, span),
            ExpressionKind::Empty | ExpressionKind::Zero => {
                self.refused(span, "a list within an expression", "give it a name")
            }
            ExpressionKind::Tuple(_) => self.refused(span, "a tuple as a value", "give its parts names"),
            ExpressionKind::Query(_) => {
                self.refused(span, "rows as a value", "use one(), scalar(), rowcount, or a loop")
            }
            ExpressionKind::Call(function, arguments, named) => self.call(function, (arguments, named), span),
        }
    }

    /// `first or rest`, or `first and rest`: one of the two.
    fn chosen(&mut self, is_and: bool, first: &Expression, rest: &[Expression], span: Span) -> Result<Value> {
        let rest = match rest {
            [] => return self.value(first),
            [last] => last.clone(),
            _ => Expression { kind: ExpressionKind::Joined(is_and, rest.to_vec()), span },
        };
        let (then, otherwise) = if is_and { (rest, first.clone()) } else { (first.clone(), rest) };
        let [condition, then, otherwise] = [first.clone(), then, otherwise].map(Box::new);
        self.value(&Expression { kind: ExpressionKind::Conditional(condition, then, otherwise), span })
    }

    /// `left op right`
    pub(super) fn calculated(
        &self,
        operator: Operator,
        left: Value,
        right: Value,
        span: Span,
    ) -> Result<Value> {
        let value = self.computed(operator, left, right, span)?;
        self.rounded_value(value)
    }

    fn computed(&self, operator: Operator, left: Value, right: Value, span: Span) -> Result<Value> {
        // A truth is the number 1 or 0.
        let is_of_bits = matches!(operator, Operator::And | Operator::Or | Operator::ExclusiveOr);
        let counted = |value: Value| match value.class {
            Class::Boolean if !is_of_bits && !value.is_nullable => as_number(value),
            _ => Ok(value),
        };
        let (left, right) = (counted(left)?, counted(right)?);
        if !left.is_nullable
            && !right.is_nullable
            && let Some((tree, class)) = moment::calculated(operator, &left, &right)?
        {
            return Ok(Value { can_fail: true, ..Value::of(tree, class, span) });
        }
        if let Some((tree, class)) = decimal::divided(operator, &left, &right)? {
            return Ok(Value { can_fail: true, ..Value::of(tree, class, span) });
        }
        let value = value::calculated(operator, left, right, span);
        self.accepted(span, value)
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
        if let Some(fields) = self.results.get(name) {
            return self.field((name, fields), column, span);
        }
        if let Some(class) = self.variables.get(name).cloned() {
            return self.part(object, &class, column, span);
        }
        let Some(row) = self.rows.get(name).cloned() else {
            return self.refused(span, "an attribute of anything but a row", "write db.table[key].column");
        };
        self.require_assigned(name, object.span)?;
        self.require_present(name, object.span)?;
        let Some(definition) = row.table.column(column).filter(|column| !column.is_hidden) else {
            return self.no_column(&row.table, column, span);
        };
        let tree = Expr::Identifier(part::quoted(&column_variable(name, column)));
        if let SqlType::Array(_) = definition.sql_type.of_values() {
            let what = format!("{column}, a column that is an array");
            return self.refused(span, &what, "call the function with side=\"client\"");
        }
        let is_whole = type_rules::is_integer(&definition.sql_type);
        let tree = if is_whole { cast(tree, &SqlType::BigInt)? } else { tree };
        let is_nullable = definition.nullable && !self.present.contains(&format!("{name}.{column}"));
        let path = Some(format!("{name}.{column}"));
        Ok(Value { is_nullable, path, ..value::taken(tree, &definition.sql_type, span)? })
    }

    /// A column of what a statement gives.
    pub(super) fn field(&self, (name, fields): (&str, &[Field]), column: &str, span: Span) -> Result<Value> {
        self.require_assigned(name, span)?;
        let Some(field) = fields.iter().find(|field| field.column == column) else {
            let columns: Vec<&str> = fields.iter().map(|field| field.column.as_str()).collect();
            let message = format!("the statement gives no column '{column}', but {}", columns.join(", "));
            return self.wrong(span, b"42703", &message);
        };
        let tree = Expr::Identifier(part::quoted(&column_variable(name, column)));
        let is_nullable = field.may_be_null && !self.present.contains(&format!("{name}.{column}"));
        let path = Some(format!("{name}.{column}"));
        Ok(Value { is_nullable, path, ..value::taken(tree, &field.held, span)? })
    }

    /// Whether a row is there.
    fn is_there(&self, name: &str, span: Span) -> Result<Expr> {
        self.require_assigned(name, span)?;
        Ok(match self.rows.get(name).is_some_and(|row| row.is_optional) {
            true => Expr::Identifier(part::quoted(&found_variable(name))),
            false => boolean(true),
        })
    }

    /// `row is None`, `key in db.table`: comparisons about rows.
    fn about_rows(
        &mut self,
        first: &Expression,
        (comparison, other): (Comparison, &Expression),
        span: Span,
    ) -> Result<Option<Value>> {
        let truth = |tree: Expr| Some(Value::of(nested(tree), Class::Boolean, span));
        let not = |tree: Expr| Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(tree)) };
        if let ExpressionKind::Name(name) = &first.kind
            && self.rows.contains_key(name)
            && matches!(other.kind, ExpressionKind::Constant(Constant::None))
        {
            let there = self.is_there(name, first.span)?;
            return Ok(match comparison {
                Comparison::Is | Comparison::Equal => truth(not(there)),
                Comparison::IsNot | Comparison::NotEqual => truth(there),
                _ => None,
            });
        }
        if matches!(comparison, Comparison::In | Comparison::NotIn)
            && let Some(table) = self.table(other)?
        {
            let key = self.key_values(&table, parts_of_key(first), first.span)?;
            let there = statement::exists(&table, statement::has_key(&table, &key))?;
            let there = if comparison == Comparison::In { there } else { not(there) };
            return Ok(truth(there).map(|value| Value { can_fail: true, ..value }));
        }
        Ok(None)
    }

    pub(super) fn comparison(
        &mut self,
        first: &Expression,
        others: &[(Comparison, Expression)],
        span: Span,
    ) -> Result<Value> {
        if let [(comparison, other)] = others
            && let Some(value) = self.about_rows(first, (*comparison, other), span)?
        {
            return Ok(value);
        }
        let mut left = self.value(first)?;
        let mut truths = Vec::new();
        let mut can_fail = left.can_fail;
        for (at, (comparison, right)) in others.iter().enumerate() {
            let mut right = match at {
                _ if matches!(right.kind, ExpressionKind::Zero) => {
                    Value::of(number("0"), left.class.clone(), right.span)
                }
                0 => self.value(right)?,
                _ => self.perhaps(|lowering| lowering.value(right))?,
            };
            let is_ordered = !matches!(
                comparison,
                Comparison::Equal
                    | Comparison::NotEqual
                    | Comparison::Is
                    | Comparison::IsNot
                    | Comparison::In
                    | Comparison::NotIn
            );
            let is_of_texts =
                right.class == Class::Text && matches!(comparison, Comparison::In | Comparison::NotIn);
            if (is_ordered || is_of_texts) && at == 0 {
                (left, right) = (self.sure(left), self.sure(right));
            }
            let before = if at == 0 { first } else { &others[at - 1].1 };
            match (&left.class, &right.class) {
                (Class::Float, Class::Whole) if is_whole(&others[at].1) => right = as_float(right)?,
                (Class::Whole, Class::Float) if is_whole(before) => left = as_float(left)?,
                _ => {}
            }
            can_fail |= right.can_fail;
            let compared = value::compared(&left, *comparison, &right);
            truths.push((self.accepted(span, compared)?, left.can_fail || right.can_fail));
            left = right;
        }
        let tree = nested(value::joined(true, truths));
        Ok(Value { can_fail, ..Value::of(tree, Class::Boolean, span) })
    }

    /// Does something that only happens if a condition before it holds, or does not.
    pub(super) fn perhaps<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        self.conditions += 1;
        let done = act(self);
        self.conditions -= 1;
        done
    }

    /// A value that is not `None`, or the transaction ends before its statement, by `TypeError`. Where it is not known
    /// whether the value is computed at all, it stays as it is.
    pub(super) fn sure(&mut self, value: Value) -> Value {
        if !value.is_nullable || value.class == Class::None || self.conditions > 0 {
            return value;
        }
        let span = value.span;
        let message = text(&format!("{} is None", self.text_of(span)));
        let raise = self.exception(("TypeError", "TypeError"), message, span);
        let is_none = self.written(Expr::IsNull(Box::new(nested(value.tree.clone()))), span);
        let then = vec![Done { kind: raise, span }];
        self.tests.push(Done { kind: Kind::If { arms: vec![(is_none, then)], otherwise: None }, span });
        self.present.extend(value.path.clone());
        Value { is_nullable: false, ..value }
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
            Class::None | Class::Pending => text("None"),
            Class::Text => value.tree,
            Class::Boolean if value.is_nullable => {
                let not =
                    Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(value.tree.clone())) };
                let otherwise = nested(value::case(not, text("False"), text("None")));
                return Ok(nested(value::case(value.tree, text("True"), otherwise)));
            }
            Class::Boolean => value::case(value.tree, text("True"), text("False")),
            Class::Whole => cast(value.tree, &SqlType::Text)?,
            Class::Float => value::function("fabius_python_text", vec![value.tree]),
            Class::Span => value::function("fabius_python_timedelta_text", vec![value.tree]),
            Class::Other(SqlType::Uuid) => cast(value.tree, &SqlType::Text)?,
            ref other => {
                if let Some(shown) = moment::shown(&value)? {
                    return Ok(match value.is_nullable {
                        true => value::function("coalesce", vec![shown, text("None")]),
                        false => shown,
                    });
                }
                let what = format!("{} as text", other.name());
                let instead = match other {
                    Class::Decimal => "give it a format: f\"{x:.2f}\"",
                    _ => "make the text where the result is used",
                };
                return self.refused(value.span, &what, instead);
            }
        };
        Ok(if value.is_nullable { value::function("coalesce", vec![shown, text("None")]) } else { shown })
    }
}

/// What `int` makes of a truth.
pub(super) fn as_number(value: Value) -> Result<Value> {
    let number = value::case(value.tree, number("1"), number("0"));
    let tree = nested(cast(number, &SqlType::BigInt)?);
    Ok(Value { tree, class: Class::Whole, path: None, ..value })
}

/// Whether it is a whole number that is written out, and is one with a fraction too.
fn is_whole(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Constant(Constant::Whole(digits)) => {
            digits.parse::<i64>().is_ok_and(|value| value.unsigned_abs() <= 1 << 53)
        }
        ExpressionKind::Negative(value) => is_whole(value),
        _ => false,
    }
}

/// A whole number as one with a fraction.
fn as_float(value: Value) -> Result<Value> {
    Ok(Value { tree: cast(value.tree, &SqlType::Double)?, class: Class::Float, ..value })
}
