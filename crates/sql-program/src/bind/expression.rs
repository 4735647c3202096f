//! Expressions of programs.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::constant::Quoted;
use super::stop::{Bind, Place, Stop, beyond};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, ExpressionKind};
use fabius_sql_meaning::analysis::{self, BackEnd, Choice, Comparison, Like, Many, Named, Sense};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::functions::operator::Operation;
use fabius_sql_meaning::functions::resolution::{Argument, Unresolved};
use fabius_sql_meaning::functions::{Definition, FUNCTIONS};
use fabius_sql_meaning::number_literal;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_meaning::type_rules::{Category, Context, category};
use fabius_value::interval::Interval;
use fabius_value::{DataType, Value};
use sqlparser::ast::{self, Expr};
use sqlparser::tokenizer::Location;

/// Values of `IN` that no key is for, at most: each is compared by itself.
const VALUES: usize = 200;
/// Fields of rows that programs compare, at most.
const FIELDS: usize = 64;
/// Conditions of one chain of which each stands within the one behind it, at most.
const FEW: usize = 8;

impl BackEnd for Binder<'_> {
    type Value = Bound;
    type Stop = Stop;

    fn declined(&self, what: String) -> Stop {
        Stop::Beyond(what)
    }

    fn catalog(&self) -> &Catalog {
        self.catalog
    }

    fn bounded(&self, many: Many, count: usize) -> Bind<()> {
        let (most, what) = match many {
            Many::Values => (VALUES, "values of IN that no key is for"),
            Many::Fields => (FIELDS, "fields of rows"),
        };
        if count > most { beyond(format!("more than {most} {what}")) } else { Ok(()) }
    }

    fn part(&mut self, part: &Expr, sense: Sense) -> Bind<Bound> {
        analysis::expression(self, part, sense)
    }

    fn deeper<T>(&mut self, analyse: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<T> {
        Binder::deeper(self, analyse)
    }

    fn placed(&self, value: Bound, whole: &Expr) -> Bound {
        value.at(Place::of(whole))
    }

    fn stopped_at(&self, stop: Stop, whole: &Expr) -> Stop {
        match stop {
            Stop::Wrong(error) if error.position().is_none() => self.error(error, Place::of(whole)),
            stop => stop,
        }
    }

    fn argument_of(value: &Bound) -> Argument<'_> {
        Argument { sql_type: &value.sql_type, is_named: false }
    }

    fn at_hand(&self, expression: &Expr) -> Option<Bound> {
        let (_, bound, scope) = self.replaced.iter().rev().find(|(replaced, ..)| replaced == expression)?;
        self.outermost.set(self.outermost.get().min(*scope));
        Some(bound.clone())
    }

    fn column(&mut self, path: &[String]) -> Bind<Option<Bound>> {
        self.column_or_variable(path)
    }

    fn no_column(&self, path: &[String]) -> Stop {
        self.unknown_column(path)
    }

    fn literal(&mut self, literal: &ast::ValueWithSpan) -> Bind<Bound> {
        use ast::Value as V;
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
            | V::NationalStringLiteral(text) => self.unknown(Some(text)),
            V::DollarQuotedString(text) => self.unknown(Some(&text.value)),
            V::Boolean(value) => Bound::boolean(*value),
            V::Null => self.unknown(None),
            V::Placeholder(name) => {
                let index = parameter_types::index_of(name)?;
                self.own_parameter(index, Place::of(literal))?
            }
            other => return beyond(format!("the literal {other}")),
        })
    }

    fn negative(&mut self, number: &ast::ValueWithSpan) -> Bind<Bound> {
        if let ast::Value::Number(digits, _) = &number.value
            && number_literal::is_smallest(digits)
        {
            return beyond("the smallest integer");
        }
        let number = self.literal(number)?;
        analysis::prefix(self, "-", number)
    }

    fn unknown(&mut self, text: Option<&str>) -> Bound {
        Bound::literal(text.map(Quoted::new))
    }

    fn interval(&mut self, interval: Interval) -> Bind<Bound> {
        Ok(Bound::interval(interval))
    }

    fn converted(&mut self, value: Bound, to: &SqlType) -> Bind<Bound> {
        self.explicit_cast(value, to)
    }

    fn named(&mut self, _: Bound, _: Named) -> Bind<Bound> {
        beyond("an object identifier by its name")
    }

    fn compared(
        &mut self,
        operator: &'static Definition,
        left: Bound,
        comparison: Comparison,
        right: Bound,
    ) -> Bind<Bound> {
        let (left, right) = self.aligned(operator, left, right)?;
        let may_be_distinct = matches!(comparison, Comparison::Distinct | Comparison::NotDistinct);
        if !may_be_distinct && (left.is_null() || right.is_null()) {
            return Ok(Bound::constant(Value::Null, SqlType::Boolean, DataType::Boolean));
        }
        let nullable = left.nullable || right.nullable;
        let operator = match comparison {
            Comparison::Equal => Op::Equal,
            Comparison::NotEqual => Op::NotEqual,
            Comparison::Less => Op::Less,
            Comparison::LessOrEqual => Op::LessEqual,
            Comparison::Greater => Op::Greater,
            Comparison::GreaterOrEqual => Op::GreaterEqual,
            Comparison::Distinct if nullable => Op::IsDistinct,
            Comparison::Distinct => Op::NotEqual,
            Comparison::NotDistinct if nullable => Op::IsNotDistinct,
            Comparison::NotDistinct => Op::Equal,
        };
        let (left, right) = (self.settled(left)?, self.settled(right)?);
        Ok(logic(tree::binary(operator, left, right), nullable && !may_be_distinct))
    }

    fn calculated(
        &mut self,
        operator: &'static Definition,
        left: Bound,
        operation: Operation,
        right: Bound,
    ) -> Bind<Bound> {
        self.numbers(operator, left, operation, right)
    }

    fn negated(&mut self, operand: Bound) -> Bind<Bound> {
        self.minus(operand)
    }

    fn concatenated(&mut self, left: Bound, right: Bound) -> Bind<Bound> {
        if [&left, &right].iter().any(|side| side.sql_type == SqlType::Bytea) {
            return beyond("bytes as text");
        }
        self.joined_end_to_end(left, right, &SqlType::Text)
    }

    fn like(&mut self, text: Bound, like: Like<Bound>) -> Bind<Bound> {
        self.matched(text, like)
    }

    fn apply(&mut self, definition: &'static Definition, arguments: Vec<Bound>) -> Bind<Bound> {
        self.applied(definition, arguments)
    }

    fn unresolved(&self, name: &str, why: Unresolved, arguments: &[Bound]) -> Stop {
        if why == Unresolved::Missing && !FUNCTIONS.contains_key(name) {
            return Stop::Beyond(format!("function {name}"));
        }
        let given: Vec<_> = arguments.iter().map(Self::argument_of).collect();
        why.error(name, &given).into()
    }

    fn choice(&mut self, choice: Choice, values: Vec<Bound>) -> Bind<Bound> {
        self.chosen(choice, values)
    }

    fn call(&mut self, call: &ast::Function) -> Bind<Bound> {
        self.written_call(call)
    }

    fn in_list(&mut self, value: Bound, items: Vec<Bound>, negated: bool) -> Bind<Bound> {
        // Texts are read as the type that all of them have in common.
        let is_number = |item: &Bound| category(&item.sql_type) == Category::Number;
        if items.iter().any(is_number) && items.iter().any(Bound::is_unknown) {
            return beyond("IN of numbers and others");
        }
        let equal = items.into_iter().map(|item| analysis::infix(self, value.clone(), "=", item));
        let equal = equal.collect::<Bind<_>>()?;
        let any = self.joined(equal, false)?;
        if negated { self.not(any) } else { Ok(any) }
    }

    fn not(&mut self, condition: Bound) -> Bind<Bound> {
        if let Some(value) = condition.truth() {
            return Ok(Bound::boolean(!value));
        }
        let nullable = condition.nullable;
        Ok(logic(tree::not(self.settled(condition)?), nullable))
    }

    fn joined(&mut self, mut conditions: Vec<Bound>, is_and: bool) -> Bind<Bound> {
        let operator = if is_and { Op::And } else { Op::Or };
        // Many make a low tree.
        if conditions.len() > FEW {
            let rest = conditions.split_off(conditions.len() / 2);
            let (left, right) = (self.joined(conditions, is_and)?, self.joined(rest, is_and)?);
            return self.logical(operator, left, right);
        }
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
        self.arms(conditions, values, "CASE")
    }

    fn empty_array(&mut self, _: &SqlType) -> Bind<Bound> {
        beyond("an array that is made")
    }

    fn array(&mut self, _: Vec<Bound>) -> Bind<Bound> {
        beyond("an array that is made")
    }

    fn access(&mut self, root: &Expr, chain: &[ast::AccessExpr]) -> Bind<Bound> {
        self.element(root, chain)
    }

    fn quantified(&mut self, left: &Expr, symbol: &str, array: &Expr, is_any: bool) -> Bind<Bound> {
        match array {
            Expr::Array(array) if is_any && symbol == "=" => {
                let (expr, list) = (Box::new(left.clone()), array.elem.clone());
                self.operand(&Expr::InList { expr, list, negated: false })
            }
            _ => self.any_element(left, symbol, array, is_any),
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
        _: &Expr,
    ) -> Bind<Bound> {
        self.among_rows(left, query, negated)
    }

    fn equal_row(&mut self, _: &Expr, _: &ast::Query) -> Bind<Bound> {
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
        self.value(expression)
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
        let plain = match type_rules::without_modifiers(to) {
            // It is cut to its length, as all text is.
            SqlType::Char(_) if matches!(bound.known, Known::Literal(Some(_))) => SqlType::Text,
            plain => plain,
        };
        let bound = if bound.is_unknown() { self.resolve(bound, &plain)? } else { bound };
        let cast = self.convert(bound, to, Context::Explicit)?;
        Ok(Bound { origin: (0, 0), ..cast })
    }

    /// The first value whose condition is true; there is one value more than conditions.
    fn arms(&mut self, arms: Vec<Expression>, values: Vec<Bound>, what: &str) -> Bind<Bound> {
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
