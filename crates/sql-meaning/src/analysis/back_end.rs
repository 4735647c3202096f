//! What analysis asks of those who compute expressions.

use super::named::Named;
use crate::catalog::Catalog;
use crate::functions::Definition;
use crate::functions::operator::Operation;
use crate::functions::resolution::{Argument, Unresolved};
use crate::sql_type::SqlType;
use fabius_value::Error;
use fabius_value::interval::Interval;
use sqlparser::ast::{self, Expr};

/// What an expression's answer is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// The answer's value: true, false and null differ.
    #[default]
    Value,
    /// Whether it is true: null is as good as false.
    Truth,
}

/// Parts of which an expression may have many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// Values of `IN (...)`.
    Values,
    /// Fields of rows that are compared.
    Fields,
}

/// One way to compute expressions. Each method makes one kind of them of values that it has made before.
pub trait BackEnd: Sized {
    /// An expression that it computes.
    type Value: Clone;
    /// Why analysis stops: an error, or what the back end cannot compute.
    type Stop: From<Error>;

    // ---- the way of analysis ----

    /// An expression, in words, that is not among those of a back end.
    fn declined(&self, what: String) -> Self::Stop;

    /// What is defined.
    fn catalog(&self) -> &Catalog;

    /// Whether it takes so many parts.
    fn bounded(&self, many: Many, count: usize) -> Result<(), Self::Stop>;

    /// What [`expression`](super::expression) makes of an expression: parts of others are asked for here.
    fn part(&mut self, part: &Expr, sense: Sense) -> Result<Self::Value, Self::Stop>;

    /// A part that is used for its value.
    fn value(&mut self, part: &Expr) -> Result<Self::Value, Self::Stop> {
        self.part(part, Sense::Value)
    }

    /// Analyses what stands one deeper.
    fn deeper<T>(
        &mut self,
        analyse: impl FnOnce(&mut Self) -> Result<T, Self::Stop>,
    ) -> Result<T, Self::Stop>;

    /// A value with the place in the text of the expression that it is of.
    fn placed(&self, value: Self::Value, _: &Expr) -> Self::Value {
        value
    }

    /// Why analysis stopped, at the place of the innermost expression around.
    fn stopped_at(&self, stop: Self::Stop, _: &Expr) -> Self::Stop {
        stop
    }

    // ---- values ----

    /// What a value says, as an operand or argument, of which operator or function is called.
    fn argument_of(value: &Self::Value) -> Argument<'_>;

    /// The value of an expression that has been computed already.
    fn at_hand(&self, _: &Expr) -> Option<Self::Value> {
        None
    }

    /// A column or variable; `None` if there is none of this name.
    fn column(&mut self, path: &[String]) -> Result<Option<Self::Value>, Self::Stop>;

    /// That there is no such column.
    fn no_column(&self, path: &[String]) -> Self::Stop;

    /// A literal or parameter.
    fn literal(&mut self, literal: &ast::ValueWithSpan) -> Result<Self::Value, Self::Stop>;

    /// A number with a minus before it.
    fn negative(&mut self, number: &ast::ValueWithSpan) -> Result<Self::Value, Self::Stop>;

    /// A literal of unknown type that no text has; null without a text.
    fn unknown(&mut self, text: Option<&str>) -> Self::Value;

    /// An interval that is known.
    fn interval(&mut self, interval: Interval) -> Result<Self::Value, Self::Stop>;

    /// A value as one of this type, as `CAST` makes it.
    fn converted(&mut self, value: Self::Value, to: &SqlType) -> Result<Self::Value, Self::Stop>;

    /// A value, or its text, as an object identifier that shows as a name.
    fn named(&mut self, value: Self::Value, to: Named) -> Result<Self::Value, Self::Stop>;

    // ---- operators and functions ----

    /// Operands next to each other, before it is known of which operator.
    fn paired(&mut self, left: Self::Value, right: Self::Value) -> Result<[Self::Value; 2], Self::Stop> {
        Ok([left, right])
    }

    /// A comparison, of values that its operator takes.
    fn compared(
        &mut self,
        operator: &'static Definition,
        left: Self::Value,
        comparison: Comparison,
        right: Self::Value,
    ) -> Result<Self::Value, Self::Stop>;

    /// An operation on two numbers.
    fn calculated(
        &mut self,
        operator: &'static Definition,
        left: Self::Value,
        operation: Operation,
        right: Self::Value,
    ) -> Result<Self::Value, Self::Stop>;

    /// `- operand`
    fn negated(&mut self, operand: Self::Value) -> Result<Self::Value, Self::Stop>;

    /// `left || right`, as texts.
    fn concatenated(&mut self, left: Self::Value, right: Self::Value) -> Result<Self::Value, Self::Stop>;

    /// `text [NOT] LIKE pattern`
    fn like(&mut self, text: Self::Value, like: Like<Self::Value>) -> Result<Self::Value, Self::Stop>;

    /// A function or operator of the table, which takes such arguments.
    fn apply(
        &mut self,
        definition: &'static Definition,
        arguments: Vec<Self::Value>,
    ) -> Result<Self::Value, Self::Stop>;

    /// That no function of the table is called.
    fn unresolved(&self, name: &str, why: Unresolved, arguments: &[Self::Value]) -> Self::Stop;

    /// `COALESCE` and others, of at least one value.
    fn choice(&mut self, choice: Choice, values: Vec<Self::Value>) -> Result<Self::Value, Self::Stop>;

    /// A call as it is written: also of aggregates, and of functions over windows.
    fn call(&mut self, call: &ast::Function) -> Result<Self::Value, Self::Stop>;

    /// `value [NOT] IN (items)`
    fn in_list(
        &mut self,
        value: Self::Value,
        items: Vec<Self::Value>,
        negated: bool,
    ) -> Result<Self::Value, Self::Stop>;

    // ---- truths ----

    /// `NOT condition`
    fn not(&mut self, condition: Self::Value) -> Result<Self::Value, Self::Stop>;

    /// All of the conditions, or any of them; at least one.
    fn joined(&mut self, conditions: Vec<Self::Value>, is_and: bool) -> Result<Self::Value, Self::Stop>;

    /// `value IS [NOT] NULL`
    fn is_null(&mut self, value: Self::Value, negated: bool) -> Result<Self::Value, Self::Stop>;

    /// `condition IS [NOT] TRUE`, `FALSE`, or `UNKNOWN`, which is `None`.
    fn is_truth(
        &mut self,
        condition: Self::Value,
        truth: Option<bool>,
        negated: bool,
    ) -> Result<Self::Value, Self::Stop>;

    /// `CASE`: the value of the first condition that is true. Without `otherwise` it may be null.
    fn case(
        &mut self,
        arms: Vec<(Self::Value, Self::Value)>,
        otherwise: Option<Self::Value>,
    ) -> Result<Self::Value, Self::Stop>;

    // ---- arrays ----

    /// `ARRAY [] :: to`
    fn empty_array(&mut self, to: &SqlType) -> Result<Self::Value, Self::Stop>;

    /// `ARRAY [elements]`
    fn array(&mut self, elements: Vec<Self::Value>) -> Result<Self::Value, Self::Stop>;

    /// `root[index]`, `(root).field`
    fn access(&mut self, root: &Expr, chain: &[ast::AccessExpr]) -> Result<Self::Value, Self::Stop>;

    /// `left symbol ANY (array)`, or `ALL`.
    fn quantified(
        &mut self,
        left: &Expr,
        symbol: &str,
        array: &Expr,
        is_any: bool,
    ) -> Result<Self::Value, Self::Stop>;

    // ---- subqueries: `whole` is the expression that each is ----

    /// `[NOT] EXISTS (query)`
    fn exists(&mut self, query: &ast::Query, negated: bool, whole: &Expr) -> Result<Self::Value, Self::Stop>;

    /// `(query)`
    fn scalar_subquery(&mut self, query: &ast::Query, whole: &Expr) -> Result<Self::Value, Self::Stop>;

    /// `left [NOT] IN (query)`, also of rows.
    fn in_subquery(
        &mut self,
        left: &Expr,
        query: &ast::Query,
        negated_in_sense: (bool, Sense),
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    /// `(a, b) = (query)`
    fn equal_row(&mut self, left: &Expr, query: &ast::Query) -> Result<Self::Value, Self::Stop>;

    /// `left symbol ANY (query)`, or `ALL`, which is no `IN`.
    fn quantified_subquery(
        &mut self,
        left: &Expr,
        symbol: &str,
        query: &ast::Query,
        is_any: bool,
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    /// `(start, end) OVERLAPS (start, end)`
    fn overlaps(
        &mut self,
        left: [Self::Value; 2],
        right: [Self::Value; 2],
    ) -> Result<Self::Value, Self::Stop>;
}

/// What is asked of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `IS DISTINCT FROM`
    Distinct,
    /// `IS NOT DISTINCT FROM`
    NotDistinct,
}

impl Comparison {
    /// The comparison that an operator is.
    pub(super) fn of_symbol(symbol: &str) -> Option<Comparison> {
        Some(match symbol {
            "=" => Comparison::Equal,
            "<>" | "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }
}

/// Which of several values is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first that is not null.
    Coalesce,
    /// The greatest that is not null.
    Greatest,
    /// The least that is not null.
    Least,
}

impl Choice {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Choice::Coalesce => "COALESCE",
            Choice::Greatest => "GREATEST",
            Choice::Least => "LEAST",
        }
    }
}

/// What stands behind a text in `LIKE`.
pub struct Like<V> {
    /// The text with `%` and `_`.
    pub pattern: V,
    /// What is said to be the escape, if that is not a backslash.
    pub escape: Option<V>,
    /// `ILIKE`
    pub ignores_case: bool,
    /// `NOT`
    pub is_negated: bool,
}
