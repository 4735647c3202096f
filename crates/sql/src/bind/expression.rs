//! Expressions.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::constant::Quoted;
use super::operator::is_calculation;
use super::stop::{Bind, Place, Stop, beyond};
use super::tree;
use crate::interval;
use crate::number_literal;
use crate::planning::heed;
use crate::sql_type::SqlType;
use crate::type_rules::{Category, Context, category};
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, ExpressionKind};
use fabius_value::DataType;
use sqlparser::ast::{self, Expr};
use sqlparser::tokenizer::Location;

impl Binder<'_> {
    /// An expression, of a known type, as something that the program computes.
    ///
    /// # Errors
    /// What is wrong with it, or that programs have no such expression.
    pub fn expression(&mut self, expression: &Expr, expected: Option<&SqlType>) -> Bind<Bound> {
        let bound = self.operand(expression)?;
        let bound = match expected {
            Some(expected) if bound.is_unknown() => self.resolve(bound, expected)?,
            _ => bound,
        };
        self.settle(bound)
    }

    /// An expression, whose type may depend on where it stands.
    pub(crate) fn operand(&mut self, expression: &Expr) -> Bind<Bound> {
        heed()?;
        let place = Place::of(expression);
        self.deeper(|binder| binder.any_operand(expression, place))
    }

    fn any_operand(&mut self, expression: &Expr, place: Place) -> Bind<Bound> {
        if let Some((_, bound)) = self.replaced.iter().find(|(replaced, _)| replaced == expression) {
            return Ok(bound.clone());
        }
        match expression {
            Expr::Identifier(name) => self.name_or_word(name, place),
            Expr::CompoundIdentifier(parts) => self.column_reference(parts, place),
            Expr::Nested(inner) => self.operand(inner),
            Expr::Value(value) => self.literal(&value.value, value.span.start, place),
            Expr::TypedString(typed) => {
                let to = SqlType::from_ast(&typed.data_type).map_err(|error| self.error(error, place))?;
                let bound = self.literal(&typed.value.value, typed.value.span.start, place)?;
                self.explicit_cast(bound, &to)
            }
            Expr::Interval(interval) => self.interval(interval, place),
            Expr::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => self.cast_expression(expr, data_type, place),
            Expr::UnaryOp { op, expr } => self.unary(op, expr, place),
            Expr::BinaryOp { op, .. } if is_calculation(op) => self.calculation(expression),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, place),
            Expr::IsNull(operand) | Expr::IsUnknown(operand) => self.is_null(operand, false),
            Expr::IsNotNull(operand) | Expr::IsNotUnknown(operand) => self.is_null(operand, true),
            Expr::IsTrue(operand) => self.is_boolean(operand, true, false, "IS TRUE"),
            Expr::IsNotTrue(operand) => self.is_boolean(operand, true, true, "IS NOT TRUE"),
            Expr::IsFalse(operand) => self.is_boolean(operand, false, false, "IS FALSE"),
            Expr::IsNotFalse(operand) => self.is_boolean(operand, false, true, "IS NOT FALSE"),
            Expr::IsDistinctFrom(left, right) => self.distinct(left, right, false, place),
            Expr::IsNotDistinctFrom(left, right) => self.distinct(left, right, true, place),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated, place),
            Expr::InSubquery { expr, subquery, negated } => self.in_subquery(expr, subquery, *negated, place),
            Expr::Exists { subquery, negated } => self.exists(subquery, *negated),
            Expr::Subquery(query) => self.scalar_subquery(query),
            Expr::Between { expr, negated, low, high } => self.between(expr, low, high, *negated, place),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), *negated, false, place)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), *negated, true, place)
            }
            Expr::AnyOp { left, compare_op, right, .. } => self.any_of(left, compare_op, right, place),
            Expr::AllOp { left, compare_op, right } if !matches!(**right, Expr::Subquery(_)) => {
                self.any_element(left, compare_op, right, true, place)
            }
            Expr::CompoundFieldAccess { root, access_chain } => self.element(root, access_chain, place),
            Expr::Collate { expr, .. } => self.operand(expr),
            _ => self.function_form(expression, place),
        }
    }

    /// A column or variable; else a word that PostgreSQL reads as a function without parentheses.
    fn name_or_word(&mut self, name: &ast::Ident, place: Place) -> Bind<Bound> {
        let column = self.column_reference(std::slice::from_ref(name), place);
        let word = name.value.to_lowercase();
        let is_call = matches!(word.as_str(), "current_schema" | "current_role" | "current_time");
        match column {
            Err(Stop::Wrong(_)) if is_call && name.quote_style.is_none() => {
                beyond("a function without parentheses")
            }
            column => column,
        }
    }

    fn literal(&mut self, value: &ast::Value, start: Location, place: Place) -> Bind<Bound> {
        use ast::Value as V;
        // What views and the catalog say stands in other texts.
        let is_of_text = !self.inline && self.following.is_empty();
        let start = if is_of_text { start } else { Location { line: 0, column: 0 } };
        Ok(match value {
            V::Number(text, _) => match (number_literal::read(text), self.literals.number(text, start)) {
                (Some((_, sql_type)), Some(constant)) => {
                    let data_type = constant.data_type();
                    Bound::of_constant(constant, sql_type, data_type)
                }
                _ => return beyond("a number of more than 38 digits"),
            },
            V::SingleQuotedString(text) => Bound::literal(Some(self.literals.quoted(text, start))),
            V::EscapedStringLiteral(text)
            | V::UnicodeStringLiteral(text)
            | V::NationalStringLiteral(text) => Bound::literal(Some(Quoted::new(text))),
            V::DollarQuotedString(text) => Bound::literal(Some(Quoted::new(&text.value))),
            V::Boolean(value) => Bound::boolean(*value),
            V::Null => Bound::literal(None),
            V::Placeholder(name) => {
                let index =
                    crate::parameter_types::index_of(name).map_err(|error| self.error(error, place))?;
                self.own_parameter(index, place)?
            }
            other => return beyond(format!("the literal {other}")),
        }
        .at(place))
    }

    fn interval(&mut self, interval: &ast::Interval, place: Place) -> Bind<Bound> {
        let Expr::Value(value) = &*interval.value else { return beyond("an interval that is computed") };
        let ast::Value::SingleQuotedString(text) = &value.value else {
            return beyond("an interval that is not a literal");
        };
        let text = match &interval.leading_field {
            Some(field) if text.trim().parse::<f64>().is_ok() => format!("{text} {field}"),
            _ => text.clone(),
        };
        let mut read = interval::read(&text).map_err(|error| self.error(error, place))?;
        if let Some(field) = interval.last_field.as_ref().or(interval.leading_field.as_ref()) {
            read = read.cut(&field.to_string());
        }
        Ok(Bound::interval(read).at(place))
    }

    fn cast_expression(&mut self, operand: &Expr, to: &ast::DataType, place: Place) -> Bind<Bound> {
        if matches!(to, ast::DataType::Regclass)
            || to.to_string().to_lowercase().trim_start_matches("pg_catalog.").starts_with("reg")
        {
            return beyond(format!("a cast to {to}"));
        }
        let to = SqlType::from_ast(to).map_err(|error| self.error(error, place))?;
        let bound = self.operand(operand)?;
        let cast = self.explicit_cast(bound, &to)?;
        Ok(cast.at(place))
    }

    /// `operand::to`.
    pub(crate) fn explicit_cast(&mut self, bound: Bound, to: &SqlType) -> Bind<Bound> {
        let plain = match crate::type_rules::without_modifiers(to) {
            // It is cut to its length, as all text is.
            SqlType::Char(_) if matches!(bound.known, Known::Literal(Some(_))) => SqlType::Text,
            plain => plain,
        };
        let bound = if bound.is_unknown() { self.resolve(bound, &plain)? } else { bound };
        let cast = self.convert(bound, to, Context::Explicit)?;
        Ok(Bound { origin: (0, 0), ..cast })
    }

    // ---- conditions ----

    /// A condition, as the program computes it.
    pub fn condition(&mut self, expression: &Expr, what: &str) -> Bind<Expression> {
        let bound = self.truth(expression, what)?;
        self.settled(bound)
    }

    /// A boolean operand.
    pub(super) fn truth(&mut self, expression: &Expr, what: &str) -> Bind<Bound> {
        let bound = self.operand(expression)?;
        let bound = if bound.is_unknown() { self.resolve(bound, &SqlType::Boolean)? } else { bound };
        if bound.sql_type != SqlType::Boolean {
            let message = format!("argument of {what} must be type boolean, not type {}", bound.sql_type);
            return self.fail(b"42804", message, Place::of(expression));
        }
        Ok(bound)
    }

    fn is_null(&mut self, operand: &Expr, negated: bool) -> Bind<Bound> {
        if matches!(operand, Expr::Tuple(_)) {
            return beyond("IS NULL of a row");
        }
        let bound = self.operand(operand)?;
        if bound.is_null() {
            return Ok(Bound::boolean(!negated));
        }
        let bound = self.settle(bound)?;
        Ok(logic(tree::is_null(bound.expression, negated), false))
    }

    fn is_boolean(&mut self, operand: &Expr, wanted: bool, negated: bool, what: &str) -> Bind<Bound> {
        let bound = self.truth(operand, what)?;
        let nullable = bound.nullable;
        let value = self.settled(bound)?;
        // `false` where it is null, `wanted` or not.
        let known = match nullable {
            true => tree::call("coalesce", vec![value, tree::boolean(!wanted)]),
            false => value,
        };
        let holds = if wanted == negated { tree::not(known) } else { known };
        Ok(logic(holds, false))
    }

    fn distinct(&mut self, left: &Expr, right: &Expr, negated: bool, place: Place) -> Bind<Bound> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        for (one, other) in [(&left, &right), (&right, &left)] {
            if one.is_null() {
                let bound = self.settle(other.clone())?;
                return Ok(logic(tree::is_null(bound.expression, !negated), false));
            }
        }
        let (left, right) = self.comparable(left, "=", right, place)?;
        let (left, right) = (self.settle(left)?, self.settle(right)?);
        if !left.nullable && !right.nullable {
            let operator = if negated { Op::Equal } else { Op::NotEqual };
            return Ok(logic(tree::binary(operator, left.expression, right.expression), false));
        }
        let operator = if negated { Op::IsNotDistinct } else { Op::IsDistinct };
        Ok(logic(tree::binary(operator, left.expression, right.expression), false))
    }

    fn in_list(&mut self, operand: &Expr, list: &[Expr], negated: bool, place: Place) -> Bind<Bound> {
        if list.len() > 200 {
            return beyond("IN with more than 200 values that no key is for");
        }
        // Texts are read as the type that all of them have in common.
        let is = |wanted: fn(&ast::Value) -> bool| {
            list.iter().any(|value| matches!(value, Expr::Value(value) if wanted(&value.value)))
        };
        if is(|value| matches!(value, ast::Value::Number(..)))
            && is(|value| !matches!(value, ast::Value::Number(..)))
        {
            return beyond("IN of numbers and others");
        }
        let mut any: Option<Bound> = None;
        for value in list {
            let equal = self.binary(operand, &ast::BinaryOperator::Eq, value, place)?;
            any = Some(match any {
                None => equal,
                Some(any) => self.logical(Op::Or, any, equal)?,
            });
        }
        let any = any.unwrap_or_else(|| Bound::boolean(false));
        if negated { self.negated(any) } else { Ok(any) }
    }

    fn any_of(&mut self, left: &Expr, op: &ast::BinaryOperator, right: &Expr, place: Place) -> Bind<Bound> {
        match (op, right) {
            (ast::BinaryOperator::Eq, Expr::Array(array)) => self.in_list(left, &array.elem, false, place),
            (ast::BinaryOperator::Eq, Expr::Subquery(query)) => self.in_subquery(left, query, false, place),
            (_, Expr::Subquery(_)) => beyond("ANY of a query"),
            _ => self.any_element(left, op, right, false, place),
        }
    }

    fn between(
        &mut self,
        operand: &Expr,
        low: &Expr,
        high: &Expr,
        negated: bool,
        place: Place,
    ) -> Bind<Bound> {
        let least = self.binary(operand, &ast::BinaryOperator::GtEq, low, place)?;
        let most = self.binary(operand, &ast::BinaryOperator::LtEq, high, place)?;
        let both = self.logical(Op::And, least, most)?;
        if negated { self.negated(both) } else { Ok(both) }
    }

    pub(super) fn negated(&mut self, bound: Bound) -> Bind<Bound> {
        if let Some(value) = bound.truth() {
            return Ok(Bound::boolean(!value));
        }
        let nullable = bound.nullable;
        Ok(logic(tree::not(self.settled(bound)?), nullable))
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Bind<Bound> {
        let (mut arms, mut values) = (Vec::new(), Vec::new());
        for when in conditions {
            let condition = match operand {
                None => self.truth(&when.condition, "CASE/WHEN")?,
                Some(operand) => {
                    let place = Place::of(&when.condition);
                    self.binary(operand, &ast::BinaryOperator::Eq, &when.condition, place)?
                }
            };
            arms.push(self.settled(condition)?);
            values.push(self.operand(&when.result)?);
        }
        values.push(match otherwise {
            Some(otherwise) => self.operand(otherwise)?,
            None => Bound::literal(None),
        });
        self.choice(arms, values, "CASE")
    }

    /// The first value whose condition is true; there is one value more than conditions.
    pub(super) fn choice(&mut self, arms: Vec<Expression>, values: Vec<Bound>, what: &str) -> Bind<Bound> {
        // The last says most of the type, as in PostgreSQL.
        let mut values = values;
        values.rotate_right(1);
        let (mut values, sql_type) = self.unify(values, what)?;
        values.rotate_left(1);
        let nullable = values.iter().any(|value| value.nullable);
        let data_type = held_by_all(&values);
        let mut settled = Vec::new();
        for value in values {
            settled.push(self.settled(value)?);
        }
        let otherwise = settled.pop().unwrap_or_else(tree::null);
        if arms.is_empty() {
            return Ok(Bound::held_as(otherwise, sql_type, nullable, data_type));
        }
        let arms = arms.into_iter().zip(settled).collect();
        let choice = tree::expression(ExpressionKind::If { arms, otherwise: Box::new(otherwise) });
        Ok(Bound::held_as(choice, sql_type, nullable, data_type))
    }

    /// `and`, `or`, decided ahead where one side decides.
    pub(super) fn logical(&mut self, operator: Op, left: Bound, right: Bound) -> Bind<Bound> {
        let decides = operator == Op::Or;
        for (one, other) in [(&left, &right), (&right, &left)] {
            if let Some(value) = one.truth() {
                return Ok(if value == decides { Bound::boolean(decides) } else { other.clone() });
            }
        }
        let nullable = left.nullable || right.nullable;
        let (left, right) = (self.settled(left)?, self.settled(right)?);
        Ok(logic(tree::binary(operator, left, right), nullable))
    }
}

/// A boolean that the program computes.
pub(super) fn logic(expression: Expression, nullable: bool) -> Bound {
    Bound::held_as(expression, SqlType::Boolean, nullable, DataType::Boolean)
}

/// A type in which programs hold all of them.
pub(super) fn held_by_all(values: &[Bound]) -> DataType {
    let typed = values.iter().filter(|value| !value.is_null()).map(|value| value.data_type);
    typed
        .reduce(super::held::unified)
        .unwrap_or_else(|| values.first().map_or(DataType::TEXT, |v| v.data_type))
}

/// Whether values of the type can be compared.
pub(super) fn is_ordered(sql_type: &SqlType) -> bool {
    !matches!(category(sql_type), Category::Json | Category::Array | Category::Other | Category::Interval)
}
