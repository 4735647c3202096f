//! Expressions of queries.

use super::call::given;
use super::operator::plain_binary;
use super::scope::unknown;
use super::subquery::nested;
use super::{Binder, Flavor, Typed, folded};
use crate::arrow_column::scalar;
use crate::failure::unsupported;
use datafusion::logical_expr::expr::{self, Case, Exists, Placeholder};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::{self, BackEnd, Choice, Comparison, Like, Many, Named, Sense};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::functions::Definition;
use fabius_sql_meaning::functions::operator::Operation;
use fabius_sql_meaning::functions::resolution::{Argument, Unresolved};
use fabius_sql_meaning::number_literal;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{self, Context, is_text};
use fabius_value::interval::{self, Interval};
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;

/// Dimensions of an array, at most.
const DIMENSIONS: usize = 6;

impl BackEnd for Binder<'_> {
    type Value = Typed;
    type Stop = Error;

    fn declined(&self, what: String) -> Error {
        unsupported(format!("{what} is not supported"))
    }

    fn catalog(&self) -> &Catalog {
        &self.environment.catalog
    }

    fn bounded(&self, _: Many, _: usize) -> Result<()> {
        Ok(())
    }

    fn part(&mut self, part: &ast::Expr, sense: Sense) -> Result<Typed> {
        analysis::expression(self, part, sense)
    }

    /// What nests deep goes on with more stack.
    #[recursive::recursive]
    fn deeper<T>(&mut self, analyse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        analyse(self)
    }

    fn argument_of(value: &Typed) -> Argument<'_> {
        Argument { sql_type: &value.sql_type, is_named: matches!(value.flavor, Flavor::Named(_)) }
    }

    fn column(&mut self, path: &[String]) -> Result<Option<Typed>> {
        self.find_column(path)
    }

    fn no_column(&self, path: &[String]) -> Error {
        Binder::no_column(self, path)
    }

    fn literal(&mut self, literal: &ast::ValueWithSpan) -> Result<Typed> {
        use ast::Value as V;
        Ok(match &literal.value {
            V::Null => self.unknown(None),
            V::Boolean(value) => Typed::literal(ScalarValue::Boolean(Some(*value)), SqlType::Boolean),
            V::Number(text, _) => return number(text),
            V::Placeholder(id) => {
                let index = parameter_types::index_of(id)?;
                match self.types.get(index)? {
                    SqlType::Unknown => {
                        let untyped = Placeholder { id: id.clone(), field: None };
                        Typed::new(Expr::Placeholder(untyped), SqlType::Unknown)
                    }
                    known => self.parameter(id.clone(), &known),
                }
            }
            V::HexStringLiteral(_) | V::SingleQuotedByteStringLiteral(_) => {
                return Err(unsupported("bit strings are not supported"));
            }
            other => match other.clone().into_string() {
                Some(text) => unknown(&text),
                None => return Err(unsupported(format!("the literal {other} is not supported"))),
            },
        })
    }

    fn negative(&mut self, literal: &ast::ValueWithSpan) -> Result<Typed> {
        match &literal.value {
            ast::Value::Number(text, _) => number(&format!("-{text}")),
            other => Err(unsupported(format!("the number {other} is not supported"))),
        }
    }

    fn unknown(&mut self, text: Option<&str>) -> Typed {
        Typed::literal(ScalarValue::Utf8(text.map(str::to_string)), SqlType::Unknown)
    }

    fn interval(&mut self, interval: Interval) -> Result<Typed> {
        self.coerce(unknown(&interval::write(interval)), &SqlType::Interval)
    }

    fn converted(&mut self, value: Typed, to: &SqlType) -> Result<Typed> {
        let typed = self.cast(value, to)?;
        // As a number it shows itself as one.
        Ok(if *to == SqlType::Oid { Typed { flavor: Flavor::Plain, ..typed } } else { typed })
    }

    fn named(&mut self, value: Typed, to: Named) -> Result<Typed> {
        let oid = if value.sql_type == SqlType::Unknown || is_text(&value.sql_type) {
            let text = self.cast(value, &SqlType::Text)?;
            self.function(to.reader(), vec![text])?
        } else {
            self.cast(value, &SqlType::Oid)?
        };
        Ok(Typed { flavor: Flavor::Named(to), ..oid })
    }

    fn paired(&mut self, left: Typed, right: Typed) -> Result<[Typed; 2]> {
        let left = self.named_operand(left, &right)?;
        let right = self.named_operand(right, &left)?;
        Ok([left, right])
    }

    fn compared(
        &mut self,
        operator: &'static Definition,
        left: Typed,
        comparison: Comparison,
        right: Typed,
    ) -> Result<Typed> {
        Binder::compared(self, operator, left, comparison, right)
    }

    fn calculated(
        &mut self,
        operator: &'static Definition,
        left: Typed,
        operation: Operation,
        right: Typed,
    ) -> Result<Typed> {
        self.arithmetic(operator, left, operation, right)
    }

    fn negated(&mut self, operand: Typed) -> Result<Typed> {
        let zero = match operand.sql_type {
            SqlType::Real | SqlType::Double => {
                return Ok(Typed::new(Expr::Negative(Box::new(operand.expr)), operand.sql_type));
            }
            SqlType::SmallInt => Typed::literal(ScalarValue::Int16(Some(0)), SqlType::SmallInt),
            _ => Typed::literal(ScalarValue::Int32(Some(0)), SqlType::Int),
        };
        analysis::infix(self, zero, "-", operand)
    }

    fn concatenated(&mut self, left: Typed, right: Typed) -> Result<Typed> {
        let (left, right) = (self.converted(left, &SqlType::Text)?, self.converted(right, &SqlType::Text)?);
        Ok(Typed::new(plain_binary(left.expr, Operator::StringConcat, right.expr), SqlType::Text))
    }

    fn like(&mut self, text: Typed, like: Like<Typed>) -> Result<Typed> {
        let (text, mut pattern) =
            (self.converted(text, &SqlType::Text)?, self.converted(like.pattern, &SqlType::Text)?);
        if let Some(escape) = like.escape {
            pattern = self.function("like_escape", vec![pattern, escape])?;
        }
        let (text, pattern) = (Box::new(text.expr), Box::new(pattern.expr));
        let like = expr::Like::new(like.is_negated, text, pattern, None, like.ignores_case);
        Ok(Typed::new(Expr::Like(like), SqlType::Boolean))
    }

    fn apply(&mut self, definition: &'static Definition, arguments: Vec<Typed>) -> Result<Typed> {
        Binder::apply(self, definition, arguments, None)
    }

    fn unresolved(&self, name: &str, why: Unresolved, arguments: &[Typed]) -> Error {
        match why {
            Unresolved::Missing => self.no_function(name, arguments),
            Unresolved::Ambiguous => why.error(name, &given(arguments)),
        }
    }

    fn choice(&mut self, choice: Choice, values: Vec<Typed>) -> Result<Typed> {
        self.chosen(choice, values)
    }

    fn call(&mut self, call: &ast::Function) -> Result<Typed> {
        Binder::call(self, call)
    }

    fn in_list(&mut self, value: Typed, items: Vec<Typed>, negated: bool) -> Result<Typed> {
        self.among(value, items, negated)
    }

    fn not(&mut self, condition: Typed) -> Result<Typed> {
        Ok(Typed::new(Expr::Not(Box::new(condition.expr)), SqlType::Boolean))
    }

    fn joined(&mut self, conditions: Vec<Typed>, is_and: bool) -> Result<Typed> {
        let operator = if is_and { Operator::And } else { Operator::Or };
        let conditions = conditions.into_iter().map(|condition| condition.expr).collect();
        Ok(Typed::new(self.chained(conditions, operator), SqlType::Boolean))
    }

    fn is_null(&mut self, value: Typed, negated: bool) -> Result<Typed> {
        let value = Box::new(self.known(value)?.expr);
        let is_null = if negated { Expr::IsNotNull(value) } else { Expr::IsNull(value) };
        Ok(Typed::new(is_null, SqlType::Boolean))
    }

    fn is_truth(&mut self, condition: Typed, truth: Option<bool>, negated: bool) -> Result<Typed> {
        let condition = Box::new(condition.expr);
        let is_truth = match (truth, negated) {
            (Some(true), false) => Expr::IsTrue(condition),
            (Some(true), true) => Expr::IsNotTrue(condition),
            (Some(false), false) => Expr::IsFalse(condition),
            (Some(false), true) => Expr::IsNotFalse(condition),
            (None, false) => Expr::IsUnknown(condition),
            (None, true) => Expr::IsNotUnknown(condition),
        };
        Ok(Typed::new(is_truth, SqlType::Boolean))
    }

    fn case(&mut self, arms: Vec<(Typed, Typed)>, otherwise: Option<Typed>) -> Result<Typed> {
        // The last result says most of the type, as in PostgreSQL, if it is that of ELSE.
        let results = otherwise.iter().chain(arms.iter().map(|(_, result)| result));
        let common = self.common_of(results, "CASE")?;
        let mut pairs = Vec::with_capacity(arms.len());
        for (condition, result) in arms {
            pairs.push((Box::new(condition.expr), Box::new(self.coerce(result, &common)?.expr)));
        }
        let otherwise = match otherwise {
            Some(otherwise) => Some(Box::new(self.coerce(otherwise, &common)?.expr)),
            None => None,
        };
        let parts = pairs.iter().flat_map(|(condition, result)| [&**condition, &**result]);
        super::call::refuse_sets(parts.chain(otherwise.as_deref()), "CASE")?;
        Ok(Typed::new(Expr::Case(Case::new(None, pairs, otherwise)), common))
    }

    fn empty_array(&mut self, to: &SqlType) -> Result<Typed> {
        Ok(Typed::literal(scalar(&Value::List(Vec::new()), to)?, to.clone()))
    }

    fn array(&mut self, elements: Vec<Typed>) -> Result<Typed> {
        Binder::array(self, elements)
    }

    fn access(&mut self, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Typed> {
        Binder::access(self, root, chain)
    }

    fn quantified(
        &mut self,
        left: &ast::Expr,
        symbol: &str,
        array: &ast::Expr,
        is_any: bool,
    ) -> Result<Typed> {
        let (value, array) = (self.expression(left)?, self.expression(array)?);
        self.array_comparison(value, symbol, array, is_any)
    }

    fn exists(&mut self, query: &ast::Query, negated: bool, whole: &ast::Expr) -> Result<Typed> {
        self.once(whole, Sense::Value, |binder| {
            let relation = binder.subquery(query)?;
            let exists = Exists { subquery: nested(relation.plan), negated };
            Ok(Typed::new(Expr::Exists(exists), SqlType::Boolean))
        })
    }

    fn scalar_subquery(&mut self, query: &ast::Query, whole: &ast::Expr) -> Result<Typed> {
        self.once(whole, Sense::Value, |binder| Binder::scalar_subquery(binder, query))
    }

    fn in_subquery(
        &mut self,
        left: &ast::Expr,
        query: &ast::Query,
        (negated, sense): (bool, Sense),
        whole: &ast::Expr,
    ) -> Result<Typed> {
        self.once(whole, sense, |binder| Binder::in_subquery(binder, left, query, negated, sense))
    }

    fn equal_row(&mut self, left: &ast::Expr, query: &ast::Query) -> Result<Typed> {
        Binder::in_subquery(self, left, query, false, Sense::Value)
    }

    fn quantified_subquery(
        &mut self,
        left: &ast::Expr,
        symbol: &str,
        query: &ast::Query,
        is_any: bool,
        whole: &ast::Expr,
    ) -> Result<Typed> {
        // The subquery's rows become an array.
        self.once(whole, Sense::Value, |binder| {
            let array = binder.array_subquery(query)?;
            let value = binder.expression(left)?;
            binder.array_comparison(value, symbol, array, is_any)
        })
    }

    fn overlaps(&mut self, left: [Typed; 2], right: [Typed; 2]) -> Result<Typed> {
        self.periods_overlap(left, right)
    }
}

impl Binder<'_> {
    /// An expression that is used for its value.
    pub(super) fn expression(&mut self, expression: &ast::Expr) -> Result<Typed> {
        self.value(expression)
    }

    /// A condition of `what`.
    pub(super) fn truth(&mut self, expression: &ast::Expr, what: &str) -> Result<Expr> {
        analysis::truth(self, expression, Sense::Truth, what).map(|typed| typed.expr)
    }

    /// An array of elements, as one type.
    pub(super) fn array(&mut self, elements: Vec<Typed>) -> Result<Typed> {
        let common = self.common_of(&elements, "ARRAY")?;
        let inner = std::iter::successors(Some(&common), |inner| match inner {
            SqlType::Array(element) => Some(element.as_ref()),
            _ => None,
        });
        let dimensions = inner.count();
        if dimensions > DIMENSIONS {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT,
                format!(
                    "number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS})"
                ),
            ));
        }
        let elements = elements.into_iter().map(|element| match element.flavor {
            Flavor::Named(_) => Ok(element),
            _ => self.coerce(element, &common),
        });
        let elements: Vec<Typed> = elements.collect::<Result<_>>()?;
        let sql_type = SqlType::Array(Box::new(common));
        if elements.is_empty() {
            return Err(Error::new(SqlState(*b"42P18"), "cannot determine type of empty array")
                .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        // Known elements make a known array.
        let known: Option<Vec<Vec<fabius_value::Value>>> = elements
            .iter()
            .map(|element| match &element.expr {
                Expr::Literal(value, _) => {
                    let column = value.to_array().ok()?;
                    Some(vec![crate::arrow_column::value_at(&column, 0, &element.sql_type)])
                }
                _ => None,
            })
            .collect();
        if let Some(rows) = known {
            let value = fabius_value::Value::List(rows);
            return Ok(Typed::literal(crate::arrow_column::scalar(&value, &sql_type)?, sql_type));
        }
        self.function_returning("fabius_array", elements, sql_type)
    }

    /// A place in an array, which what may be assigned to an integer tells.
    fn subscript(&mut self, index: Typed) -> Result<Typed> {
        if index.sql_type != SqlType::Unknown
            && !type_rules::converts(&index.sql_type, &SqlType::Int, Context::Assignment)
        {
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, "array subscript must have type integer"));
        }
        self.coerce(index, &SqlType::Int)
    }

    fn access(&mut self, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Typed> {
        // `alias.column[1]` is parsed as a field of an identifier.
        let mut path = Vec::new();
        if let ast::Expr::Identifier(ident) = root {
            path.push(folded(ident));
        }
        let mut rest = chain;
        while let ([ast::AccessExpr::Dot(ast::Expr::Identifier(ident)), tail @ ..], false) =
            (rest, path.is_empty())
        {
            path.push(folded(ident));
            rest = tail;
        }
        let mut typed = if path.len() > 1 {
            self.find_column(&path)?.ok_or_else(|| self.no_column(&path))?
        } else {
            self.expression(root)?
        };
        for access in rest {
            typed = match access {
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => {
                    let mut index = self.expression(index)?;
                    if matches!(typed.sql_type, SqlType::JsonB) {
                        typed = self.operator(typed, "->", index)?;
                        continue;
                    }
                    if typed.sql_type == SqlType::Name {
                        // A name is an array of characters, from 0 on.
                        let one = Typed::literal(ScalarValue::Int32(Some(1)), SqlType::Int);
                        let place = self.operator(index, "+", one.clone())?;
                        typed = self.function("substr", vec![typed, place, one])?;
                        continue;
                    }
                    if typed.flavor == Flavor::Vector {
                        let one = Typed::literal(ScalarValue::Int32(Some(1)), SqlType::Int);
                        index = self.operator(index, "+", one)?;
                    }
                    let index = self.subscript(index)?;
                    self.function("fabius_element", vec![typed, index])?
                }
                ast::AccessExpr::Subscript(ast::Subscript::Slice { lower_bound, upper_bound, .. }) => {
                    let end = |value: i64| Typed::literal(ScalarValue::Int64(Some(value)), SqlType::BigInt);
                    let mut bound = |bound: &Option<ast::Expr>, all: i64| match bound {
                        Some(bound) => {
                            let bound = self.expression(bound)?;
                            self.subscript(bound)
                        }
                        None => Ok(end(all)),
                    };
                    let (lower, upper) = (bound(lower_bound, 1)?, bound(upper_bound, i64::MAX - 1)?);
                    self.function("fabius_slice", vec![typed, lower, upper])?
                }
                ast::AccessExpr::Dot(ast::Expr::Identifier(field)) if typed.flavor == Flavor::Expanded => {
                    match (folded(field).as_str(), typed.expr) {
                        // Its place is counted beside it.
                        ("n", Expr::Unnest(unnest)) => {
                            let array = Typed::new(*unnest.expr, SqlType::Array(Box::new(typed.sql_type)));
                            let places = self.set_returning("generate_subscripts", vec![array])?;
                            let unnest = datafusion::logical_expr::expr::Unnest::new(places.expr);
                            Typed::new(Expr::Unnest(unnest), SqlType::Int)
                        }
                        (_, expr) => Typed::new(expr, typed.sql_type),
                    }
                }
                ast::AccessExpr::Dot(_) => {
                    return Err(unsupported("fields of composite values are not supported"));
                }
            };
        }
        Ok(typed)
    }
}

fn number(text: &str) -> Result<Typed> {
    let Some((value, sql_type)) = number_literal::read(text) else {
        // Larger or smaller than a numeric is here. Digits say that all of them count; an exponent, how large it is.
        let is_exact = !text.contains(['e', 'E']);
        let fits = |value: &f64| value.is_finite() && !(is_exact && value.abs() >= 1e38);
        let value = text.parse().ok().filter(fits);
        let value = value.ok_or_else(fabius_value::value_text::numeric_overflow)?;
        return Ok(Typed::literal(ScalarValue::Float64(Some(value)), SqlType::Double));
    };
    let sql_type = match &value {
        Value::Numeric(decimal) => SqlType::Numeric(Some((38, decimal.scale))),
        _ => sql_type,
    };
    Ok(Typed::literal(scalar(&value, &sql_type)?, sql_type))
}
