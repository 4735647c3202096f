//! Expressions.

use super::operator::{negated, plain_binary};
use super::scope::Named;
use super::subquery::nested;
use super::{Binder, Flavor, Sense, Typed, name_of, parts_of};
use crate::parse::is_bare_function;
use crate::planning::heed;
use crate::query::failure::{inbound, unsupported};
use crate::sql_type::SqlType;
use crate::text_format::interval;
use datafusion::logical_expr::expr::{Case, Exists, InList};
use datafusion::logical_expr::{Expr, Operator, when};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

/// Operators that `ANY` and `ALL` take.
const QUANTIFIED: &[&str] =
    &["=", "<>", "<", "<=", ">", ">=", "~~", "~~*", "!~~", "!~~*", "~", "~*", "!~", "!~*"];

/// Fields of rows that are compared one by one.
const FEW_FIELDS: usize = 8;
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
            E::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, (true, sense))
            }
            E::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, (false, sense)),
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
            if matches!(typed.sql_type, SqlType::Unknown) || super::coerce::is_text(&typed.sql_type) {
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
            UnaryOperator::Plus => Ok(typed),
            UnaryOperator::Minus if typed.sql_type == SqlType::Interval => {
                let factor = Typed::literal(ScalarValue::Float64(Some(-1.0)), SqlType::Double);
                self.function("fabius_multiply", vec![typed, factor])
            }
            UnaryOperator::Minus => {
                let zero = match typed.sql_type {
                    SqlType::SmallInt => Typed::literal(ScalarValue::Int16(Some(0)), SqlType::SmallInt),
                    _ => Typed::literal(ScalarValue::Int32(Some(0)), SqlType::Int),
                };
                self.operator(zero, "-", typed)
            }
            UnaryOperator::PGAbs => self.function("abs", vec![typed]),
            UnaryOperator::PGSquareRoot => self.function("sqrt", vec![typed]),
            UnaryOperator::PGCubeRoot => self.function("cbrt", vec![typed]),
            UnaryOperator::BitwiseNot => {
                let ones = match typed.sql_type {
                    SqlType::SmallInt => Typed::literal(ScalarValue::Int16(Some(-1)), SqlType::SmallInt),
                    _ => Typed::literal(ScalarValue::Int32(Some(-1)), SqlType::Int),
                };
                self.operator(typed, "#", ones)
            }
            other => Err(unsupported(format!("the operator {other} is not supported"))),
        }
    }

    /// Whether all values of a row are null, or all are not.
    fn row_is_null(&mut self, row: &ast::Expr, wrap: fn(Box<Expr>) -> Expr) -> Result<Typed> {
        let mut all: Option<Expr> = None;
        for value in row_of(row).unwrap_or_default() {
            let typed = self.expression(value)?;
            let one = wrap(Box::new(self.known(typed)?.expr));
            all = Some(match all {
                None => one,
                Some(before) => plain_binary(before, Operator::And, one),
            });
        }
        Ok(Typed::new(all.unwrap_or(false_literal()), SqlType::Boolean))
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

    fn row_comparison(&mut self, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr) -> Result<Typed> {
        let name = if *op == BinaryOperator::NotEq { "<>".to_string() } else { op.to_string() };
        self.row_operator(left, &name, right)
    }

    /// A comparison of row values: `(a, b) < (c, d)`.
    fn row_operator(&mut self, left: &ast::Expr, name: &str, right: &ast::Expr) -> Result<Typed> {
        if name == "OVERLAPS" {
            return self.overlaps(left, right);
        }
        let (left, right) = match (row_of(left), row_of(right)) {
            (Some(left), Some(right)) => (left, right),
            (Some(left), None) if matches!(right, ast::Expr::Subquery(_)) && name == "=" => {
                let ast::Expr::Subquery(query) = right else { return Err(unsupported("row values")) };
                let tuple = ast::Expr::Tuple(left.to_vec());
                return self.in_subquery(&tuple, query, false, Sense::Value);
            }
            _ => return Err(unsupported("row values are supported in comparisons with row values only")),
        };
        if left.len() != right.len() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "unequal number of entries in row expressions"));
        }
        if left.is_empty() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "a row has no entries"));
        }
        Ok(Typed::new(self.rows_compared(left, name, right)?, SqlType::Boolean))
    }

    /// `a < c OR a = c AND b < d`: the same of halves, so that many fields nest little.
    fn rows_compared(&mut self, left: &[ast::Expr], name: &str, right: &[ast::Expr]) -> Result<Expr> {
        if let ([left], [right]) = (left, right) {
            let (left, right) = (self.expression(left)?, self.expression(right)?);
            return self.comparison(left, name, right).map(|typed| typed.expr);
        }
        if matches!(name, "=" | "<>") {
            let pairs = left.iter().zip(right).map(|(left, right)| {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                Ok(self.comparison(left, name, right)?.expr)
            });
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            return Ok(self.chained(pairs, if name == "=" { Operator::And } else { Operator::Or }));
        }
        // One field at a time as long as there are few: conditions on the first find their index.
        let first = if left.len() <= FEW_FIELDS { 1 } else { left.len() / 2 };
        let (left, left_rest) = left.split_at(first);
        let (right, right_rest) = right.split_at(first);
        let before = self.rows_compared(left, name.trim_end_matches('='), right)?;
        let equal = self.rows_compared(left, "=", right)?;
        let rest = self.rows_compared(left_rest, name, right_rest)?;
        Ok(plain_binary(before, Operator::Or, plain_binary(equal, Operator::And, rest)))
    }

    /// `(start, end) OVERLAPS (start, end)`: each begins before the other ends.
    fn overlaps(&mut self, left: &ast::Expr, right: &ast::Expr) -> Result<Typed> {
        let (Some([from, to]), Some([other_from, other_to])) = (row_of(left), row_of(right)) else {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "wrong number of parameters on OVERLAPS expression",
            ));
        };
        let mut period = |from: &ast::Expr, to: &ast::Expr| -> Result<(Typed, Typed)> {
            let start = self.expression(from)?;
            let end = self.expression(to)?;
            let start = if start.sql_type == SqlType::Unknown {
                self.coerce(start, &SqlType::TimestampTz)?
            } else {
                start
            };
            let end = match end.sql_type {
                SqlType::Interval => self.operator(start.clone(), "+", end)?,
                SqlType::Unknown => self.coerce(end, &start.sql_type.clone())?,
                _ => end,
            };
            // One that is known on one side only begins there and has no end.
            let is_null = |typed: &Typed| Expr::IsNull(Box::new(typed.expr.clone()));
            let is_open = plain_binary(is_null(&start), Operator::Or, is_null(&end));
            let first = self.choice("least", vec![start.clone(), end.clone()])?;
            let last = self.choice("greatest", vec![start, end])?;
            let last_if_closed = when(Expr::Not(Box::new(is_open)), last.expr).end().map_err(inbound)?;
            Ok((first, Typed { expr: last_if_closed, ..last }))
        };
        let (left, right) = (period(from, to)?, period(other_from, other_to)?);
        let truth = |value| Expr::Literal(ScalarValue::Boolean(value), None);
        let is_null = |typed: &Typed| Expr::IsNull(Box::new(typed.expr.clone()));
        let is_open = plain_binary(is_null(&left.1), Operator::Or, is_null(&right.1));
        // The one that begins later, if it begins before the other ends.
        let mut later = |begin: &Typed, end: &Typed| -> Result<Expr> {
            let before = self.comparison(begin.clone(), "<", end.clone())?.expr;
            when(before, truth(Some(true)))
                .when(is_open.clone(), truth(None))
                .otherwise(truth(Some(false)))
                .map_err(inbound)
        };
        let (left_later, right_later) = (later(&left.0, &right.1)?, later(&right.0, &left.1)?);
        let after = self.comparison(left.0.clone(), ">", right.0.clone())?.expr;
        let before = self.comparison(left.0.clone(), "<", right.0.clone())?.expr;
        let together = self.comparison(left.0, "=", right.0)?.expr;
        let both = when(is_open, truth(None)).otherwise(truth(Some(true))).map_err(inbound)?;
        let mut overlap = when(after, left_later).when(before, right_later).when(together, both);
        let overlap = overlap.otherwise(truth(None)).map_err(inbound)?;
        Ok(Typed::new(overlap, SqlType::Boolean))
    }

    fn in_list(&mut self, expression: &ast::Expr, list: &[ast::Expr], not: bool) -> Result<Typed> {
        if row_of(expression).is_some() {
            let equal = list.iter().map(|item| Ok(self.row_operator(expression, "=", item)?.expr));
            let equal = equal.collect::<Result<Vec<_>>>()?;
            let any = Typed::new(self.chained(equal, Operator::Or), SqlType::Boolean);
            return Ok(if not { negated(any) } else { any });
        }
        let value = self.expression(expression)?;
        let items: Vec<Typed> = list.iter().map(|item| self.expression(item)).collect::<Result<_>>()?;
        if let Flavor::Named(_) = value.flavor {
            let equal = items.into_iter().map(|item| Ok(self.comparison(value.clone(), "=", item)?.expr));
            let equal = equal.collect::<Result<Vec<_>>>()?;
            let any = Typed::new(self.chained(equal, Operator::Or), SqlType::Boolean);
            return Ok(if not { negated(any) } else { any });
        }
        let mut common = value.sql_type.clone();
        for item in &items {
            common = super::coerce::common_type(&common, &item.sql_type)
                .ok_or_else(|| super::operator::no_operator("=", &value.sql_type, &item.sql_type))?;
        }
        if common == SqlType::Unknown {
            common = SqlType::Text;
        }
        let value = self.coerce(value, &common)?;
        // DataFusion is wrong about a null in a list of which something is computed, and about intervals.
        let (mut list, mut equal) = (Vec::new(), Vec::new());
        for item in items {
            let item = self.coerce(item, &common)?;
            match is_constant(&item.expr) && common != SqlType::Interval {
                true => list.push(item.expr),
                false => equal.push(self.comparison(value.clone(), "=", item)?.expr),
            }
        }
        if equal.is_empty() {
            let list = InList::new(Box::new(value.expr), list, not);
            return Ok(Typed::new(Expr::InList(list), SqlType::Boolean));
        }
        if !list.is_empty() {
            equal.push(Expr::InList(InList::new(Box::new(value.expr), list, false)));
        }
        let any = Typed::new(self.chained(equal, Operator::Or), SqlType::Boolean);
        Ok(if not { negated(any) } else { any })
    }

    fn quantified(
        &mut self,
        left: &ast::Expr,
        operator: &BinaryOperator,
        right: &ast::Expr,
        (is_any, sense): (bool, Sense),
    ) -> Result<Typed> {
        let name = match operator {
            BinaryOperator::PGCustomBinaryOperator(parts) => parts.last().cloned().unwrap_or_default(),
            BinaryOperator::NotEq => "<>".into(),
            other => other.to_string(),
        };
        let inner = if let ast::Expr::Nested(inner) = right { inner } else { right };
        if let ast::Expr::Subquery(query) = inner {
            if is_any && name == "=" {
                return self.in_subquery(left, query, false, sense);
            }
            if !is_any && name == "<>" {
                return self.in_subquery(left, query, true, sense);
            }
            // Otherwise the subquery's rows become an array.
            let array = self.array_subquery(query)?;
            let value = self.expression(left)?;
            return self.array_comparison(value, &name, array, is_any);
        }
        let value = self.expression(left)?;
        let array = self.expression(inner)?;
        self.array_comparison(value, &name, array, is_any)
    }

    fn array_comparison(&mut self, value: Typed, name: &str, array: Typed, is_any: bool) -> Result<Typed> {
        let value = match (&value.flavor, &array.sql_type) {
            (Flavor::Named(_), SqlType::Array(element)) if super::coerce::is_text(element) => {
                self.cast(value, &SqlType::Text)?
            }
            _ => value,
        };
        let element = match &array.sql_type {
            SqlType::Array(element) if value.sql_type == SqlType::Unknown => element.as_ref().clone(),
            SqlType::Unknown if value.sql_type == SqlType::Unknown => SqlType::Text,
            SqlType::Unknown => value.sql_type.clone(),
            SqlType::Array(element) => super::coerce::common_type(&value.sql_type, element)
                .ok_or_else(|| super::operator::no_operator(name, &value.sql_type, element))?,
            _ => {
                return Err(Error::new(
                    SqlState(*b"42809"),
                    "op ANY/ALL (array) requires array on right side",
                ));
            }
        };
        let value = self.coerce(value, &element)?;
        let array = self.coerce(array, &SqlType::Array(Box::new(element.clone())))?;
        // An array that is known makes a list, which an index can serve.
        if let (true, "=", Expr::Literal(ScalarValue::List(list), _)) = (is_any, name, &array.expr) {
            let column: datafusion::arrow::array::ArrayRef = list.clone();
            let rows = crate::query::arrow_column::value_at(&column, 0, &array.sql_type);
            if let fabius_value::Value::List(rows) = rows {
                let items = rows.iter().flatten().map(|item| {
                    crate::query::arrow_column::scalar(item, &element).map(|item| Expr::Literal(item, None))
                });
                let list = InList::new(Box::new(value.expr), items.collect::<Result<_>>()?, false);
                return Ok(Typed::new(Expr::InList(list), SqlType::Boolean));
            }
        }
        if !QUANTIFIED.contains(&name) {
            return Err(unsupported(format!("{name} with ANY or ALL is not supported")));
        }
        let operator = Typed::literal(ScalarValue::Utf8(Some(name.to_string())), SqlType::Text);
        let function = if is_any { "fabius_any" } else { "fabius_all" };
        self.function(function, vec![value, operator, array])
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
        let common = self.common_of(results.iter().map(|typed| &typed.sql_type), "CASE")?;
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
    if let Ok(value) = text.parse::<i32>() {
        return Ok(Typed::literal(ScalarValue::Int32(Some(value)), SqlType::Int));
    }
    if let Ok(value) = text.parse::<i64>() {
        return Ok(Typed::literal(ScalarValue::Int64(Some(value)), SqlType::BigInt));
    }
    let Some(decimal) = crate::query::value_text::decimal(text) else {
        // Larger or smaller than a numeric is here. Digits say that all of them count; an exponent, how large it is.
        let is_exact = !text.contains(['e', 'E']);
        let fits = |value: &f64| value.is_finite() && !(is_exact && value.abs() >= 1e38);
        let value = text.parse().ok().filter(fits);
        let value = value.ok_or_else(crate::query::failure::numeric_overflow)?;
        return Ok(Typed::literal(ScalarValue::Float64(Some(value)), SqlType::Double));
    };
    let sql_type = SqlType::Numeric(Some((38, decimal.scale.min(38))));
    let value = crate::query::arrow_column::scalar(&fabius_value::Value::Numeric(decimal), &sql_type)?;
    Ok(Typed::literal(value, sql_type))
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

/// Whether an expression is a value that is known before the query runs.
fn is_constant(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Cast(cast) => is_constant(&cast.expr),
        _ => false,
    }
}

/// The parts of a row value.
pub(super) fn row_of(expression: &ast::Expr) -> Option<&[ast::Expr]> {
    match expression {
        ast::Expr::Tuple(values) => Some(values),
        ast::Expr::Nested(inner) => row_of(inner),
        _ => None,
    }
}
