//! Expressions.

use super::operator::{negated, plain_binary};
use super::row_value::row_of;
use super::scope::Named;
use super::subquery::nested;
use super::{Binder, Flavor, Sense, Typed, name_of, parts_of};
use crate::interval;
use crate::number_literal;
use crate::parse::is_bare_function;
use crate::planning::heed;
use crate::query::arrow_column::scalar;
use crate::query::failure::unsupported;
use crate::sql_type::SqlType;
use datafusion::logical_expr::expr::{Case, Exists};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

/// Dimensions of an array, at most.
const DIMENSIONS: usize = 6;

impl Binder<'_> {
    /// An expression. What nests deep goes on with more stack.
    #[recursive::recursive]
    pub(super) fn expression(&mut self, expression: &ast::Expr) -> Result<Typed> {
        use ast::Expr as E;
        let sense = std::mem::take(&mut self.sense);
        heed()?;
        match expression {
            E::BinaryOp { op: BinaryOperator::And, .. } => self.chain(expression, true, sense),
            E::BinaryOp { op: BinaryOperator::Or, .. } => self.chain(expression, false, sense),
            E::BinaryOp { .. } => self.binary_chain(expression),
            E::Identifier(ident) => self.identifier(ident),
            E::CompoundIdentifier(idents) => {
                let path: Vec<String> = idents.iter().map(name_of).collect();
                self.find_column(&path)?.ok_or_else(|| self.no_column(&path))
            }
            E::Value(value) => self.value(&value.value),
            E::Nested(inner) => self.expression_as(inner, sense),
            E::Collate { expr, .. } => self.expression(expr),
            E::Cast { expr, data_type, .. } => self.cast_to(expr, data_type),
            E::TypedString(typed) => {
                let text = typed.value.clone().into_string().unwrap_or_default();
                let to = SqlType::from_ast(&typed.data_type)?;
                self.coerce(unknown(&text), &to)
            }
            E::Interval(interval) => self.interval(interval),
            E::UnaryOp { op: UnaryOperator::Not, expr } if in_subquery_of(expr).is_some() => {
                let (expr, subquery, negated) = in_subquery_of(expr).ok_or_else(|| unsupported("NOT"))?;
                self.once(expression, sense, |binder| binder.in_subquery(expr, subquery, !negated, sense))
            }
            E::UnaryOp { op, expr } => self.unary(*op, expr),
            E::IsNull(inner) if row_of(inner).is_some() => self.row_is_null(inner, Expr::IsNull),
            E::IsNotNull(inner) if row_of(inner).is_some() => self.row_is_null(inner, Expr::IsNotNull),
            E::IsNull(inner) => {
                let typed = self.expression(inner)?;
                let typed = self.known(typed)?;
                Ok(Typed::new(Expr::IsNull(Box::new(typed.expr)), SqlType::Boolean))
            }
            E::IsNotNull(inner) => {
                let typed = self.expression(inner)?;
                let typed = self.known(typed)?;
                Ok(Typed::new(Expr::IsNotNull(Box::new(typed.expr)), SqlType::Boolean))
            }
            E::IsTrue(inner) => self.truth(inner, "IS TRUE", Expr::IsTrue),
            E::IsNotTrue(inner) => self.truth(inner, "IS NOT TRUE", Expr::IsNotTrue),
            E::IsFalse(inner) => self.truth(inner, "IS FALSE", Expr::IsFalse),
            E::IsNotFalse(inner) => self.truth(inner, "IS NOT FALSE", Expr::IsNotFalse),
            E::IsUnknown(inner) => self.truth(inner, "IS UNKNOWN", Expr::IsUnknown),
            E::IsNotUnknown(inner) => self.truth(inner, "IS NOT UNKNOWN", Expr::IsNotUnknown),
            E::IsDistinctFrom(left, right) => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                self.comparison(left, "is distinct from", right)
            }
            E::IsNotDistinctFrom(left, right) => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                self.comparison(left, "is not distinct from", right)
            }
            E::Between { expr, negated: not, low, high } => {
                let low = self.compare_parts(expr, ">=", low)?;
                let high = self.compare_parts(expr, "<=", high)?;
                let both = Typed::new(plain_binary(low.expr, Operator::And, high.expr), SqlType::Boolean);
                Ok(if *not { negated(both) } else { both })
            }
            E::InList { expr, list, negated: not } => self.in_list(expr, list, *not),
            E::InSubquery { expr, subquery, negated: not } => {
                self.once(expression, sense, |binder| binder.in_subquery(expr, subquery, *not, sense))
            }
            E::Exists { subquery, negated } => self.once(expression, Sense::Value, |binder| {
                let relation = binder.subquery(subquery)?;
                let exists = Exists { subquery: nested(relation.plan), negated: *negated };
                Ok(Typed::new(Expr::Exists(exists), SqlType::Boolean))
            }),
            E::Subquery(query) => self.once(expression, Sense::Value, |binder| binder.scalar_subquery(query)),
            E::AnyOp { left, compare_op, right, .. } => self
                .once(expression, sense, |binder| binder.quantified(left, compare_op, right, (true, sense))),
            E::AllOp { left, compare_op, right } => self
                .once(expression, sense, |binder| binder.quantified(left, compare_op, right, (false, sense))),
            E::Like { negated, expr, pattern, escape_char, any: false } => {
                let (text, pattern) = (self.expression(expr)?, self.expression(pattern)?);
                self.like(text, pattern, escape(escape_char)?, false, *negated)
            }
            E::ILike { negated, expr, pattern, escape_char, any: false } => {
                let (text, pattern) = (self.expression(expr)?, self.expression(pattern)?);
                self.like(text, pattern, escape(escape_char)?, true, *negated)
            }
            E::SimilarTo { negated: not, expr, pattern, escape_char } => {
                let mut arguments = vec![self.expression(expr)?, self.expression(pattern)?];
                if let Some(escape) = escape_char {
                    arguments.push(self.value(&escape.value)?);
                }
                let found = self.function("fabius_similar", arguments)?;
                Ok(if *not { negated(found) } else { found })
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            E::Function(function) => self.call(function),
            E::Extract { field, expr, .. } => {
                let field = unknown(&field.to_string().to_lowercase());
                let moment = self.expression(expr)?;
                self.function("extract", vec![field, moment])
            }
            E::Position { expr, r#in } => self.function_of("position", &[expr, r#in]),
            E::Substring { expr, substring_from, substring_for, .. } => {
                let one = ast::Expr::value(ast::Value::Number("1".into(), false));
                let mut arguments: Vec<&ast::Expr> = vec![expr];
                arguments.push(substring_from.as_deref().unwrap_or(&one));
                arguments.extend(substring_for.as_deref());
                self.function_of("substring", &arguments)
            }
            E::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut arguments: Vec<&ast::Expr> = vec![expr];
                arguments.extend(trim_what.as_deref());
                arguments.extend(trim_characters.iter().flatten());
                self.function_of(name, &arguments)
            }
            E::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments: Vec<&ast::Expr> = vec![expr, overlay_what, overlay_from];
                arguments.extend(overlay_for.as_deref());
                self.function_of("overlay", &arguments)
            }
            E::Ceil { expr, .. } => self.function_of("ceil", &[expr]),
            E::Floor { expr, .. } => self.function_of("floor", &[expr]),
            E::AtTimeZone { timestamp, time_zone } => self.function_of("timezone", &[time_zone, timestamp]),
            E::Array(array) => {
                let elements =
                    array.elem.iter().map(|element| self.expression(element)).collect::<Result<_>>()?;
                self.array(elements)
            }
            E::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            E::Tuple(_) => Err(unsupported("row values are supported in comparisons and IN only")),
            E::Prefixed { .. } => Err(unsupported("this kind of literal is not supported")),
            other => Err(unsupported(format!("the expression {other} is not supported"))),
        }
    }

    /// An expression that is used for what is said.
    pub(super) fn expression_as(&mut self, expression: &ast::Expr, sense: Sense) -> Result<Typed> {
        self.sense = sense;
        self.expression(expression)
    }

    /// A chain of operators without nesting the calls, as generated expressions are long.
    fn binary_chain(&mut self, expression: &ast::Expr) -> Result<Typed> {
        let (mut links, mut at) = (Vec::new(), expression);
        while let ast::Expr::BinaryOp { left, op, right } = at {
            if matches!((left.as_ref(), right.as_ref()), (ast::Expr::Tuple(_), _) | (_, ast::Expr::Tuple(_)))
            {
                break;
            }
            links.push((op, right.as_ref()));
            at = left;
        }
        let mut result = match at {
            ast::Expr::BinaryOp { left, op, right } => self.row_comparison(left, op, right)?,
            other => self.expression(other)?,
        };
        for (operator, right) in links.into_iter().rev() {
            let right = self.expression(right)?;
            result = self.binary(result, operator, right)?;
        }
        Ok(result)
    }

    fn identifier(&mut self, ident: &ast::Ident) -> Result<Typed> {
        let path = [name_of(ident)];
        if let Some(typed) = self.find_column(&path)? {
            return Ok(typed);
        }
        let [name] = &path;
        match name.as_str() {
            _ if !is_bare_function(ident) => Err(self.no_column(&path)),
            "current_timestamp" => self.function("now", Vec::new()),
            "current_time" => self.function("localtime", Vec::new()),
            name => self.function(name, Vec::new()),
        }
    }

    fn value(&mut self, value: &ast::Value) -> Result<Typed> {
        use ast::Value as V;
        Ok(match value {
            V::Null => Typed::literal(ScalarValue::Utf8(None), SqlType::Unknown),
            V::Boolean(value) => Typed::literal(ScalarValue::Boolean(Some(*value)), SqlType::Boolean),
            V::Number(text, _) => return number(text),
            V::Placeholder(id) => {
                let index = crate::parameter_types::index_of(id)?;
                match self.types.get(index)? {
                    SqlType::Unknown => Typed::new(
                        Expr::Placeholder(datafusion::logical_expr::expr::Placeholder {
                            id: id.clone(),
                            field: None,
                        }),
                        SqlType::Unknown,
                    ),
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

    fn cast_to(&mut self, expression: &ast::Expr, data_type: &ast::DataType) -> Result<Typed> {
        let name = match data_type {
            ast::DataType::Regclass => Some("regclass".to_string()),
            ast::DataType::Custom(name, _) => parts_of(name).last().cloned(),
            _ => None,
        };
        if let Some(named) = name.as_deref().and_then(Named::of_name) {
            let typed = self.expression(expression)?;
            if matches!(typed.sql_type, SqlType::Unknown) || crate::type_rules::is_text(&typed.sql_type) {
                let text = self.cast(typed, &SqlType::Text)?;
                let oid = self.function(named.reader(), vec![text])?;
                return Ok(Typed { flavor: Flavor::Named(named), ..oid });
            }
            let oid = self.cast(typed, &SqlType::Oid)?;
            return Ok(Typed { flavor: Flavor::Named(named), ..oid });
        }
        // `"char"` of the catalog and the vectors are kept as text and arrays.
        let to = match (name.as_deref(), data_type) {
            (Some("char"), _) => SqlType::Text,
            (Some("int2vector"), _) => SqlType::Array(Box::new(SqlType::SmallInt)),
            (Some("oidvector"), _) => SqlType::Array(Box::new(SqlType::Oid)),
            (Some("cstring" | "aclitem" | "pg_node_tree" | "pg_lsn" | "xid" | "inet" | "anyarray"), _) => {
                SqlType::Text
            }
            (Some("information_schema" | "sql_identifier" | "character_data"), _) => SqlType::Text,
            (_, ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _))) => {
                let inner = match element.as_ref() {
                    ast::DataType::Custom(name, _) => parts_of(name).last().cloned(),
                    ast::DataType::Regclass => Some("regclass".into()),
                    _ => None,
                };
                match inner.as_deref() {
                    Some("regclass" | "regtype" | "regproc") => SqlType::Array(Box::new(SqlType::Oid)),
                    Some("char") => SqlType::Array(Box::new(SqlType::Text)),
                    _ => SqlType::from_ast(data_type)?,
                }
            }
            _ => SqlType::from_ast(data_type)?,
        };
        if let (ast::Expr::Array(array), SqlType::Array(element)) = (expression, &to)
            && array.elem.is_empty()
        {
            let value = fabius_value::Value::List(Vec::new());
            let _ = element;
            return Ok(Typed::literal(crate::query::arrow_column::scalar(&value, &to)?, to));
        }
        let typed = self.expression(expression)?;
        let is_number = to == SqlType::Oid;
        let typed = self.cast(typed, &to)?;
        Ok(if is_number { Typed { flavor: Flavor::Plain, ..typed } } else { typed })
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Typed> {
        let typed = self.expression(&interval.value)?;
        let Some(text) = typed.unknown_text() else {
            return Err(unsupported("an interval is written as a literal"));
        };
        let text = match &interval.leading_field {
            Some(field) if text.trim().parse::<f64>().is_ok() => format!("{text} {field}").to_lowercase(),
            _ => text.to_string(),
        };
        let mut read = interval::read(&text)?;
        if let Some(field) = interval.last_field.as_ref().or(interval.leading_field.as_ref()) {
            read = read.cut(&field.to_string());
        }
        self.coerce(unknown(&interval::write(read)), &SqlType::Interval)
    }

    fn unary(&mut self, operator: UnaryOperator, inner: &ast::Expr) -> Result<Typed> {
        if let (UnaryOperator::Minus, ast::Expr::Value(value)) = (operator, inner)
            && let ast::Value::Number(text, _) = &value.value
        {
            return number(&format!("-{text}"));
        }
        let typed = self.expression(inner)?;
        match operator {
            UnaryOperator::Not => {
                let condition = self.condition(typed, "NOT")?;
                Ok(Typed::new(Expr::Not(Box::new(condition)), SqlType::Boolean))
            }
            UnaryOperator::Plus => self.prefix_operator("+", typed),
            UnaryOperator::Minus => self.prefix_operator("-", typed),
            UnaryOperator::PGAbs => self.prefix_operator("@", typed),
            UnaryOperator::PGSquareRoot => self.prefix_operator("|/", typed),
            UnaryOperator::PGCubeRoot => self.prefix_operator("||/", typed),
            UnaryOperator::BitwiseNot => self.prefix_operator("~", typed),
            other => Err(unsupported(format!("the operator {other} is not supported"))),
        }
    }

    fn truth(&mut self, inner: &ast::Expr, place: &str, wrap: fn(Box<Expr>) -> Expr) -> Result<Typed> {
        let typed = self.expression(inner)?;
        let condition = self.condition(typed, place)?;
        Ok(Typed::new(wrap(Box::new(condition)), SqlType::Boolean))
    }

    fn compare_parts(&mut self, left: &ast::Expr, operator: &str, right: &ast::Expr) -> Result<Typed> {
        if let (ast::Expr::Tuple(_), _) | (_, ast::Expr::Tuple(_)) = (left, right) {
            return self.row_operator(left, operator, right);
        }
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        self.comparison(left, operator, right)
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Typed> {
        let mut whens = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            let condition = match operand {
                Some(operand) => self.compare_parts(operand, "=", &when.condition)?,
                None => self.expression_as(&when.condition, Sense::Truth)?,
            };
            whens.push(self.condition(condition, "CASE/WHEN")?);
            results.push(self.expression(&when.result)?);
        }
        if let Some(otherwise) = otherwise {
            results.push(self.expression(otherwise)?);
        }
        // The last result says most of the type, as in PostgreSQL, if it is that of ELSE.
        let last = otherwise.and(results.last());
        let of_all = last.into_iter().chain(&results).map(|typed| &typed.sql_type);
        let common = self.common_of(of_all, "CASE")?;
        let mut results: Vec<Expr> = results
            .into_iter()
            .map(|typed| self.coerce(typed, &common).map(|typed| typed.expr))
            .collect::<Result<_>>()?;
        super::call::refuse_sets(results.iter().chain(&whens), "CASE")?;
        let otherwise = otherwise.and_then(|_| results.pop()).map(Box::new);
        let pairs = whens.into_iter().map(Box::new).zip(results.into_iter().map(Box::new)).collect();
        Ok(Typed::new(Expr::Case(Case::new(None, pairs, otherwise)), common))
    }

    /// An array of elements, as one type.
    pub(super) fn array(&mut self, elements: Vec<Typed>) -> Result<Typed> {
        let common = self.common_of(elements.iter().map(|typed| &typed.sql_type), "ARRAY")?;
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
                    Some(vec![crate::query::arrow_column::value_at(&column, 0, &element.sql_type)])
                }
                _ => None,
            })
            .collect();
        if let Some(rows) = known {
            let value = fabius_value::Value::List(rows);
            return Ok(Typed::literal(crate::query::arrow_column::scalar(&value, &sql_type)?, sql_type));
        }
        self.function_returning("fabius_array", elements, sql_type)
    }

    fn access(&mut self, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Typed> {
        // `alias.column[1]` is parsed as a field of an identifier.
        let mut path = Vec::new();
        if let ast::Expr::Identifier(ident) = root {
            path.push(name_of(ident));
        }
        let mut rest = chain;
        while let ([ast::AccessExpr::Dot(ast::Expr::Identifier(ident)), tail @ ..], false) =
            (rest, path.is_empty())
        {
            path.push(name_of(ident));
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
                    self.function("fabius_element", vec![typed, index])?
                }
                ast::AccessExpr::Subscript(ast::Subscript::Slice { lower_bound, upper_bound, .. }) => {
                    let end = |value: i64| Typed::literal(ScalarValue::Int64(Some(value)), SqlType::BigInt);
                    let lower = lower_bound.as_ref().map_or(Ok(end(1)), |bound| self.expression(bound))?;
                    let upper =
                        upper_bound.as_ref().map_or(Ok(end(i64::MAX - 1)), |bound| self.expression(bound))?;
                    self.function("fabius_slice", vec![typed, lower, upper])?
                }
                ast::AccessExpr::Dot(ast::Expr::Identifier(field)) if typed.flavor == Flavor::Expanded => {
                    match (name_of(field).as_str(), typed.expr) {
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

    fn function_of(&mut self, name: &str, arguments: &[&ast::Expr]) -> Result<Typed> {
        let arguments = arguments.iter().map(|argument| self.expression(argument)).collect::<Result<_>>()?;
        self.function(name, arguments)
    }
}

fn escape(value: &Option<ast::ValueWithSpan>) -> Result<Option<char>> {
    let Some(text) = value.as_ref().and_then(|value| value.value.clone().into_string()) else {
        return Ok(None);
    };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (None, _) => Ok(Some('\0')),
        (one, None) => Ok(one),
        _ => Err(Error::new(SqlState(*b"22025"), "invalid escape string")
            .with_hint("Escape string must be empty or one character.")),
    }
}

/// A literal of unknown type.
pub(super) fn unknown(text: &str) -> Typed {
    Typed::literal(ScalarValue::Utf8(Some(text.to_string())), SqlType::Unknown)
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

pub(super) fn false_literal() -> Expr {
    Expr::Literal(ScalarValue::Boolean(Some(false)), None)
}

/// `value [NOT] IN (SELECT ...)`, perhaps in parentheses: the value, the query, and whether there is a `NOT`.
fn in_subquery_of(expression: &ast::Expr) -> Option<(&ast::Expr, &ast::Query, bool)> {
    match expression {
        ast::Expr::InSubquery { expr, subquery, negated } => Some((expr, subquery, *negated)),
        ast::Expr::Nested(inner) => in_subquery_of(inner),
        _ => None,
    }
}
