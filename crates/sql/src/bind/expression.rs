//! Expressions of programs.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::constant::Quoted;
use super::stop::{Bind, Place, Stop, beyond};
use super::tree;
use crate::analysis::{self, BackEnd, Like, Many, Sense};
use crate::interval::Interval;
use crate::number_literal;
use crate::sql_type::SqlType;
use crate::type_rules::{Category, Context, category};
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, ExpressionKind};
use fabius_value::{DataType, Error};
use sqlparser::ast::{self, Expr};
use sqlparser::tokenizer::Location;

/// Values of `IN` that no key is for, at most: each is compared by itself.
const VALUES: usize = 200;
/// Fields of rows that programs compare, at most.
const FIELDS: usize = 64;
/// Conditions of one chain, at most: each stands within the one before.
const CONDITIONS: usize = 200;

impl BackEnd for Binder<'_> {
    type Value = Bound;
    type Stop = Stop;

    fn wrong(&self, error: Error, whole: &Expr) -> Stop {
        self.error(error, Place::of(whole))
    }

    fn declined(&self, what: String) -> Stop {
        Stop::Beyond(what)
    }

    fn bounded(&self, many: Many, count: usize) -> Bind<()> {
        let (most, what) = match many {
            Many::Values => (VALUES, "values of IN that no key is for"),
            Many::Fields => (FIELDS, "fields of rows"),
            Many::Conditions => (CONDITIONS, "conditions"),
        };
        if count > most { beyond(format!("more than {most} {what}")) } else { Ok(()) }
    }

    fn deeper<T>(&mut self, analyse: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<T> {
        Binder::deeper(self, analyse)
    }

    fn type_of(value: &Bound) -> &SqlType {
        &value.sql_type
    }

    fn at_hand(&self, expression: &Expr) -> Option<Bound> {
        let found = self.replaced.iter().find(|(replaced, _)| replaced == expression);
        found.map(|(_, bound)| bound.clone())
    }

    fn column(&mut self, path: &[String], whole: &Expr) -> Bind<Option<Bound>> {
        self.column_or_variable(path, Place::of(whole))
    }

    fn no_column(&self, path: &[String], whole: &Expr) -> Stop {
        self.unknown_column(path, Place::of(whole))
    }

    fn literal(&mut self, literal: &ast::ValueWithSpan, whole: &Expr) -> Bind<Bound> {
        use ast::Value as V;
        let place = Place::of(whole);
        // What views and the catalog say stands in other texts.
        let is_of_text = !self.inline && self.following.is_empty();
        let start = if is_of_text { literal.span.start } else { Location { line: 0, column: 0 } };
        Ok(match &literal.value {
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
            | V::NationalStringLiteral(text) => self.text(text),
            V::DollarQuotedString(text) => self.text(&text.value),
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

    fn text(&mut self, text: &str) -> Bound {
        Bound::literal(Some(Quoted::new(text)))
    }

    fn interval(&mut self, interval: Interval, whole: &Expr) -> Bind<Bound> {
        Ok(Bound::interval(interval).at(Place::of(whole)))
    }

    fn typed(&mut self, value: Bound, to: &SqlType) -> Bind<Bound> {
        self.explicit_cast(value, to)
    }

    fn cast(&mut self, operand: &Expr, to: &ast::DataType, whole: &Expr) -> Bind<Bound> {
        let name = to.to_string().to_lowercase();
        if name.trim_start_matches("pg_catalog.").starts_with("reg") {
            return beyond(format!("a cast to {to}"));
        }
        let to = SqlType::from_ast(to).map_err(|error| self.wrong(error, whole))?;
        let bound = self.operand(operand)?;
        let cast = self.explicit_cast(bound, &to)?;
        Ok(cast.at(Place::of(whole)))
    }

    fn prefix(&mut self, symbol: &str, operand: Bound, whole: &Expr) -> Bind<Bound> {
        self.signed(symbol, operand, Place::of(whole))
    }

    fn infix(&mut self, left: Bound, symbol: &str, right: Bound, whole: &Expr) -> Bind<Bound> {
        let place = Place::of(whole);
        match symbol {
            "=" | "<>" | "<" | "<=" | ">" | ">=" => self.compare(left, symbol, right, place),
            "||" => self.concatenate(left, right, place),
            "+" | "-" | "*" | "/" | "%" => self.calculate(left, symbol, right, place),
            other => beyond(format!("operator {other}")),
        }
    }

    fn distinct(&mut self, left: Bound, right: Bound, negated: bool, whole: &Expr) -> Bind<Bound> {
        for (one, other) in [(&left, &right), (&right, &left)] {
            if one.is_null() {
                return self.is_null(other.clone(), !negated);
            }
        }
        let (left, right) = self.comparable(left, "=", right, Place::of(whole))?;
        let (left, right) = (self.settle(left)?, self.settle(right)?);
        let operator = match (left.nullable || right.nullable, negated) {
            (false, true) => Op::Equal,
            (false, false) => Op::NotEqual,
            (true, true) => Op::IsNotDistinct,
            (true, false) => Op::IsDistinct,
        };
        Ok(logic(tree::binary(operator, left.expression, right.expression), false))
    }

    fn like(&mut self, text: Bound, like: Like<Bound>, whole: &Expr) -> Bind<Bound> {
        self.matched(text, like, Place::of(whole))
    }

    fn in_list(&mut self, value: Bound, items: Vec<Bound>, negated: bool, whole: &Expr) -> Bind<Bound> {
        // Texts are read as the type that all of them have in common.
        let is_number = |item: &Bound| category(&item.sql_type) == Category::Number;
        if items.iter().any(is_number) && items.iter().any(Bound::is_unknown) {
            return beyond("IN of numbers and others");
        }
        let mut any = Vec::new();
        for item in items {
            any.push(self.compare(value.clone(), "=", item, Place::of(whole))?);
        }
        let any = self.joined(any, false)?;
        if negated { self.not(any) } else { Ok(any) }
    }

    fn not(&mut self, condition: Bound) -> Bind<Bound> {
        if let Some(value) = condition.truth() {
            return Ok(Bound::boolean(!value));
        }
        let nullable = condition.nullable;
        Ok(logic(tree::not(self.settled(condition)?), nullable))
    }

    fn joined(&mut self, conditions: Vec<Bound>, is_and: bool) -> Bind<Bound> {
        let operator = if is_and { Op::And } else { Op::Or };
        let mut conditions = conditions.into_iter();
        let first = conditions.next().unwrap_or_else(|| Bound::boolean(is_and));
        conditions.try_fold(first, |left, right| self.logical(operator, left, right))
    }

    fn is_null(&mut self, value: Bound, negated: bool) -> Bind<Bound> {
        if value.is_null() {
            return Ok(Bound::boolean(!negated));
        }
        let bound = self.settle(value)?;
        Ok(logic(tree::is_null(bound.expression, negated), false))
    }

    fn is_truth(&mut self, condition: Bound, truth: Option<bool>, negated: bool) -> Bind<Bound> {
        let Some(wanted) = truth else { return self.is_null(condition, negated) };
        let nullable = condition.nullable;
        let value = self.settled(condition)?;
        // `false` where it is null, `wanted` or not.
        let known = match nullable {
            true => tree::call("coalesce", vec![value, tree::boolean(!wanted)]),
            false => value,
        };
        let holds = if wanted == negated { tree::not(known) } else { known };
        Ok(logic(holds, false))
    }

    fn case(&mut self, arms: Vec<(Bound, Bound)>, otherwise: Option<Bound>) -> Bind<Bound> {
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        for (condition, value) in arms {
            conditions.push(self.settled(condition)?);
            values.push(value);
        }
        values.push(otherwise.unwrap_or_else(|| Bound::literal(None)));
        self.choice(conditions, values, "CASE")
    }

    fn function(&mut self, name: &str, arguments: Vec<Bound>, whole: &Expr) -> Bind<Bound> {
        self.named_function(name, arguments, Place::of(whole))
    }

    fn call(&mut self, call: &ast::Function, whole: &Expr) -> Bind<Bound> {
        self.written_call(call, Place::of(whole))
    }

    fn array(&mut self, _: Vec<Bound>) -> Bind<Bound> {
        beyond("an array that is made")
    }

    fn access(&mut self, root: &Expr, chain: &[ast::AccessExpr], whole: &Expr) -> Bind<Bound> {
        self.element(root, chain, Place::of(whole))
    }

    fn quantified(
        &mut self,
        left: &Expr,
        symbol: &str,
        array: &Expr,
        is_any: bool,
        whole: &Expr,
    ) -> Bind<Bound> {
        match array {
            Expr::Array(array) if is_any && symbol == "=" => {
                let list =
                    Expr::InList { expr: Box::new(left.clone()), list: array.elem.clone(), negated: false };
                self.operand(&list)
            }
            _ => self.any_element(left, symbol, array, is_any, whole),
        }
    }

    fn exists(&mut self, query: &ast::Query, negated: bool, _: &Expr) -> Bind<Bound> {
        self.any_row(query, negated)
    }

    fn scalar_subquery(&mut self, query: &ast::Query, _: &Expr) -> Bind<Bound> {
        self.one_value(query)
    }

    fn in_subquery(
        &mut self,
        left: &Expr,
        query: &ast::Query,
        (negated, _): (bool, Sense),
        whole: &Expr,
    ) -> Bind<Bound> {
        self.among_rows(left, query, negated, Place::of(whole))
    }

    fn equal_row(&mut self, _: &Expr, _: &ast::Query, _: &Expr) -> Bind<Bound> {
        beyond("a row that equals the row of a query")
    }

    fn quantified_subquery(&mut self, _: &Expr, _: &str, _: &ast::Query, _: bool, _: &Expr) -> Bind<Bound> {
        beyond("ANY of a query")
    }

    fn overlaps(&mut self, _: [Bound; 2], _: [Bound; 2]) -> Bind<Bound> {
        beyond("OVERLAPS")
    }
}

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
        analysis::expression(self, expression, Sense::Value)
    }

    /// A condition, as the program computes it.
    pub fn condition(&mut self, expression: &Expr, what: &str) -> Bind<Expression> {
        let bound = self.truth(expression, what)?;
        self.settled(bound)
    }

    /// A boolean operand.
    pub(super) fn truth(&mut self, expression: &Expr, what: &str) -> Bind<Bound> {
        analysis::truth(self, expression, Sense::Truth, what)
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
