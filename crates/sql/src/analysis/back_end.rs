//! What analysis asks of those who compute expressions.

use crate::interval::Interval;
use crate::sql_type::SqlType;
use fabius_value::Error;
use sqlparser::ast::{self, Expr};

/// What an expression's answer is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sense {
    /// The answer's value: true, false and null differ.
    #[default]
    Value,
    /// Whether it is true: null is as good as false.
    Truth,
}

/// Parts of which an expression may have many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    /// Values of `IN (...)`.
    Values,
    /// Fields of rows that are compared.
    Fields,
    /// Conditions that `AND` or `OR` joins.
    Conditions,
}

/// One way to compute expressions. Each method makes one kind of them of values that it has made before. `whole` is
/// the expression that is made, for its place in the text.
pub(crate) trait BackEnd: Sized {
    /// An expression that it computes.
    type Value: Clone;
    /// Why analysis stops: an error, or what the back end cannot compute.
    type Stop: From<Error>;

    // ---- what stops analysis ----

    /// An error in an expression.
    fn wrong(&self, error: Error, whole: &Expr) -> Self::Stop;

    /// An expression, in words, that is not among those of a back end.
    fn declined(&self, what: String) -> Self::Stop;

    /// Whether it takes so many parts.
    fn bounded(&self, many: Many, count: usize) -> Result<(), Self::Stop>;

    /// Analyses what stands one deeper.
    fn deeper<T>(
        &mut self,
        analyse: impl FnOnce(&mut Self) -> Result<T, Self::Stop>,
    ) -> Result<T, Self::Stop>;

    // ---- values ----

    /// The type of a value; unknown of literals and parameters that take it from where they stand.
    fn type_of(value: &Self::Value) -> &SqlType;

    /// The value of an expression that has been computed already.
    fn at_hand(&self, _: &Expr) -> Option<Self::Value> {
        None
    }

    /// A column or variable; `None` if there is none of this name.
    fn column(&mut self, path: &[String], whole: &Expr) -> Result<Option<Self::Value>, Self::Stop>;

    /// That there is no such column.
    fn no_column(&self, path: &[String], whole: &Expr) -> Self::Stop;

    /// A literal or parameter.
    fn literal(&mut self, literal: &ast::ValueWithSpan, whole: &Expr) -> Result<Self::Value, Self::Stop>;

    /// A number with a minus before it.
    fn negative(&mut self, number: &ast::ValueWithSpan, whole: &Expr) -> Result<Self::Value, Self::Stop> {
        let number = self.literal(number, whole)?;
        self.prefix("-", number, whole)
    }

    /// A literal of unknown type that no text has.
    fn text(&mut self, text: &str) -> Self::Value;

    /// An interval that is known.
    fn interval(&mut self, interval: Interval, whole: &Expr) -> Result<Self::Value, Self::Stop>;

    /// A value whose type is unknown as one of this type.
    fn typed(&mut self, value: Self::Value, to: &SqlType) -> Result<Self::Value, Self::Stop>;

    /// `CAST (operand AS to)`
    fn cast(&mut self, operand: &Expr, to: &ast::DataType, whole: &Expr) -> Result<Self::Value, Self::Stop>;

    // ---- operators ----

    /// `symbol operand`
    fn prefix(&mut self, symbol: &str, operand: Self::Value, whole: &Expr)
    -> Result<Self::Value, Self::Stop>;

    /// `left symbol right`
    fn infix(
        &mut self,
        left: Self::Value,
        symbol: &str,
        right: Self::Value,
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    /// `left IS [NOT] DISTINCT FROM right`
    fn distinct(
        &mut self,
        left: Self::Value,
        right: Self::Value,
        negated: bool,
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    /// `text [NOT] LIKE pattern`
    fn like(
        &mut self,
        text: Self::Value,
        like: Like<Self::Value>,
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    /// `value [NOT] IN (items)`
    fn in_list(
        &mut self,
        value: Self::Value,
        items: Vec<Self::Value>,
        negated: bool,
        whole: &Expr,
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

    // ---- functions ----

    /// A function that is no aggregate, by its name.
    fn function(
        &mut self,
        name: &str,
        arguments: Vec<Self::Value>,
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    /// A call as it is written: also of aggregates, and of functions over windows.
    fn call(&mut self, call: &ast::Function, whole: &Expr) -> Result<Self::Value, Self::Stop>;

    // ---- arrays ----

    /// `ARRAY [elements]`
    fn array(&mut self, elements: Vec<Self::Value>) -> Result<Self::Value, Self::Stop>;

    /// `root[index]`, `(root).field`
    fn access(
        &mut self,
        root: &Expr,
        chain: &[ast::AccessExpr],
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    /// `left symbol ANY (array)`, or `ALL`.
    fn quantified(
        &mut self,
        left: &Expr,
        symbol: &str,
        array: &Expr,
        is_any: bool,
        whole: &Expr,
    ) -> Result<Self::Value, Self::Stop>;

    // ---- subqueries ----

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
    fn equal_row(&mut self, left: &Expr, query: &ast::Query, whole: &Expr)
    -> Result<Self::Value, Self::Stop>;

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

/// What stands behind a text in `LIKE`.
pub(crate) struct Like<V> {
    pub(crate) pattern: V,
    /// What is said to be the escape, if that is not a backslash.
    pub(crate) escape: Option<V>,
    pub(crate) ignores_case: bool,
    pub(crate) is_negated: bool,
}
