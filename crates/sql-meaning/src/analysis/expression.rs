//! Expressions.

use super::back_end::{BackEnd, Like, Many, Sense};
use super::function::function;
use super::operator::truth;
use super::row_value::{compared, is_null_of_row, row_of};
use super::select_list::no_relation;
use super::{cast, chain, function_form, operator};
use crate::catalog::folded;
use crate::sql_type::SqlType;
use crate::type_rules::{is_text, plain_name};
use fabius_sql_planning::heed;
use fabius_sql_syntax::collation::require_known;
use fabius_sql_syntax::is_bare_function;
use fabius_value::calendar::rounded_micros;
use fabius_value::interval;
use fabius_value::{Error, SqlState};
use sqlparser::ast::{self, BinaryOperator as B, Expr, UnaryOperator as U};

/// What an expression is to a back end.
///
/// # Errors
/// What is wrong with it, or why the back end declines it.
pub fn expression<E: BackEnd>(end: &mut E, whole: &Expr, sense: Sense) -> Result<E::Value, E::Stop> {
    heed()?;
    match end.at_hand(whole) {
        Some(value) => Ok(value),
        None => match end.deeper(|end| computed(end, whole, sense)) {
            Ok(value) => Ok(end.placed(value, whole)),
            Err(stop) => Err(end.stopped_at(stop, whole)),
        },
    }
}

fn computed<E: BackEnd>(end: &mut E, whole: &Expr, sense: Sense) -> Result<E::Value, E::Stop> {
    match whole {
        Expr::Identifier(name) => identifier(end, name),
        Expr::CompoundIdentifier(names) => {
            let path: Vec<String> = names.iter().map(folded).collect();
            end.column(&path)?.ok_or_else(|| end.no_column(&path))
        }
        Expr::Nested(inner) => end.part(inner, sense),
        Expr::Collate { expr, collation } => {
            require_known(collation)?;
            let value = end.value(expr)?;
            match E::argument_of(&value).sql_type {
                SqlType::Unknown => Ok(value),
                of if is_text(of) => Ok(value),
                of => {
                    let message = format!("collations are not supported by type {}", plain_name(of));
                    Err(Error::new(SqlState::DATATYPE_MISMATCH, message).into())
                }
            }
        }
        Expr::Value(literal) => end.literal(literal),
        Expr::TypedString(literal) => {
            let to = end.catalog().type_of(&literal.data_type)?;
            let text = end.literal(&literal.value)?;
            end.converted(text, &to)
        }
        Expr::Interval(literal) => interval_literal(end, literal),
        Expr::Cast { expr, data_type, array: false, format: None, .. } => cast::cast(end, expr, data_type),

        Expr::BinaryOp { op: B::And, .. } => chain::conditions(end, whole, true, sense),
        Expr::BinaryOp { op: B::Or, .. } => chain::conditions(end, whole, false, sense),
        Expr::BinaryOp { .. } => chain::operators(end, whole),
        Expr::UnaryOp { op, expr } => unary(end, *op, expr, sense, whole),
        Expr::IsDistinctFrom(left, right) => distinct(end, left, right, false),
        Expr::IsNotDistinctFrom(left, right) => distinct(end, left, right, true),
        Expr::Between { expr, negated, low, high } => {
            let bounds = vec![compared(end, expr, ">=", low)?, compared(end, expr, "<=", high)?];
            let both = end.joined(bounds, true)?;
            if *negated { end.not(both) } else { Ok(both) }
        }
        Expr::InList { expr, list, negated } => in_list(end, expr, list, *negated),
        Expr::Like { negated, expr, pattern, escape_char, any: false } => {
            like(end, expr, pattern, escape_char.as_ref(), (false, *negated))
        }
        Expr::ILike { negated, expr, pattern, escape_char, any: false } => {
            like(end, expr, pattern, escape_char.as_ref(), (true, *negated))
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let (text, pattern) = (end.value(expr)?, end.value(pattern)?);
            let mut arguments = vec![operator::with_blanks(end, text)?, pattern];
            if let Some(escape) = escape_char {
                arguments.push(end.literal(escape)?);
            }
            let found = function(end, "fabius_similar", arguments)?;
            if *negated { end.not(found) } else { Ok(found) }
        }

        Expr::IsNull(inner) => is_null(end, inner, false),
        Expr::IsNotNull(inner) => is_null(end, inner, true),
        Expr::IsTrue(inner) => is_truth(end, inner, Some(true), "IS TRUE"),
        Expr::IsNotTrue(inner) => is_truth(end, inner, Some(true), "IS NOT TRUE"),
        Expr::IsFalse(inner) => is_truth(end, inner, Some(false), "IS FALSE"),
        Expr::IsNotFalse(inner) => is_truth(end, inner, Some(false), "IS NOT FALSE"),
        Expr::IsUnknown(inner) => is_truth(end, inner, None, "IS UNKNOWN"),
        Expr::IsNotUnknown(inner) => is_truth(end, inner, None, "IS NOT UNKNOWN"),
        Expr::Case { operand, conditions, else_result, .. } => {
            case(end, operand.as_deref(), conditions, else_result.as_deref())
        }

        Expr::Array(array) => {
            let elements = array.elem.iter().map(|element| end.value(element));
            let elements = elements.collect::<Result<_, _>>()?;
            end.array(elements)
        }
        Expr::CompoundFieldAccess { root, access_chain } => end.access(root, access_chain),
        Expr::InSubquery { expr, subquery, negated } => {
            end.in_subquery(expr, subquery, (*negated, sense), whole)
        }
        Expr::Exists { subquery, negated } => end.exists(subquery, *negated, whole),
        Expr::Subquery(query) => end.scalar_subquery(query, whole),
        Expr::AnyOp { left, compare_op, right, .. } => {
            quantified(end, left, compare_op, right, (true, sense), whole)
        }
        Expr::AllOp { left, compare_op, right } => {
            quantified(end, left, compare_op, right, (false, sense), whole)
        }

        Expr::Function(call) => end.call(call),
        other => function_form::analysed(end, other),
    }
}

/// A column; else a word that is a function without parentheses.
fn identifier<E: BackEnd>(end: &mut E, ident: &ast::Ident) -> Result<E::Value, E::Stop> {
    let path = [folded(ident)];
    if let Some(column) = end.column(&path)? {
        return Ok(column);
    }
    let [name] = &path;
    match name.as_str() {
        _ if !is_bare_function(ident) => Err(end.no_column(&path)),
        "current_timestamp" => function(end, "now", Vec::new()),
        // There is no time with a time zone.
        "current_time" => function(end, "localtime", Vec::new()),
        name => function(end, name, Vec::new()),
    }
}

/// That there is no column of such a name; `sees` tells whether a relation is in sight, perhaps of a schema.
pub fn no_column(path: &[String], sees: impl Fn(Option<&str>, &str) -> bool) -> Error {
    let [schema @ .., relation, column] = path else {
        let message = format!("column \"{}\" does not exist", path.join("."));
        return Error::new(SqlState::UNDEFINED_COLUMN, message);
    };
    match schema {
        _ if sees(schema.last().map(String::as_str), relation) => {
            Error::new(SqlState::UNDEFINED_COLUMN, format!("column {relation}.{column} does not exist"))
        }
        [_, ..] if sees(None, relation) => Error::new(
            SqlState::UNDEFINED_TABLE,
            format!("invalid reference to FROM-clause entry for table \"{relation}\""),
        ),
        _ => no_relation(relation),
    }
}

fn interval_literal<E: BackEnd>(end: &mut E, literal: &ast::Interval) -> Result<E::Value, E::Stop> {
    let text = match &*literal.value {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    let Some(mut text) = text else {
        return Err(end.declined("an interval that is not written as a literal".into()));
    };
    if let Some(field) = &literal.leading_field
        && text.trim().parse::<f64>().is_ok()
    {
        text = format!("{text} {field}").to_lowercase();
    }
    let mut read = interval::read(&text)?;
    if let Some(field) = literal.last_field.as_ref().or(literal.leading_field.as_ref()) {
        read = read.cut(&field.to_string());
    }
    if let Some(digits) = literal.fractional_seconds_precision.or(literal.leading_precision) {
        read.micros = rounded_micros(read.micros, digits.min(6) as u8);
    }
    end.interval(read)
}

fn unary<E: BackEnd>(
    end: &mut E,
    operator: U,
    operand: &Expr,
    sense: Sense,
    whole: &Expr,
) -> Result<E::Value, E::Stop> {
    let symbol = match (operator, operand) {
        (U::Not, _) => {
            if let Some((left, query, negated)) = in_subquery_of(operand) {
                return end.in_subquery(left, query, (!negated, sense), whole);
            }
            let condition = truth(end, operand, Sense::Value, "NOT")?;
            return end.not(condition);
        }
        (U::Minus, Expr::Value(number)) if matches!(number.value, ast::Value::Number(..)) => {
            return end.negative(number);
        }
        (U::Plus, _) => "+",
        (U::Minus, _) => "-",
        (U::PGAbs, _) => "@",
        (U::PGSquareRoot, _) => "|/",
        (U::PGCubeRoot, _) => "||/",
        (U::BitwiseNot, _) => "~",
        (other, _) => return Err(end.declined(format!("the operator {other}"))),
    };
    let operand = end.value(operand)?;
    operator::prefix(end, symbol, operand)
}

/// `value [NOT] IN (SELECT ...)`, perhaps in parentheses: the value, the query, and whether there is a `NOT`.
fn in_subquery_of(expression: &Expr) -> Option<(&Expr, &ast::Query, bool)> {
    match expression {
        Expr::InSubquery { expr, subquery, negated } => Some((expr, subquery, *negated)),
        Expr::Nested(inner) => in_subquery_of(inner),
        _ => None,
    }
}

fn distinct<E: BackEnd>(end: &mut E, left: &Expr, right: &Expr, negated: bool) -> Result<E::Value, E::Stop> {
    for (one, other) in [(left, right), (right, left)] {
        if is_null_literal(one) {
            return is_null(end, other, !negated);
        }
    }
    let (left, right) = (end.value(left)?, end.value(right)?);
    operator::distinct(end, left, right, negated)
}

fn is_null_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_null_literal(inner),
        Expr::Value(literal) => literal.value == ast::Value::Null,
        _ => false,
    }
}

fn in_list<E: BackEnd>(
    end: &mut E,
    operand: &Expr,
    list: &[Expr],
    negated: bool,
) -> Result<E::Value, E::Stop> {
    end.bounded(Many::Values, list.len())?;
    if row_of(operand).is_some() {
        let equal = list.iter().map(|item| compared(end, operand, "=", item));
        let equal = equal.collect::<Result<_, _>>()?;
        let any = end.joined(equal, false)?;
        return if negated { end.not(any) } else { Ok(any) };
    }
    let operand = end.value(operand)?;
    let items = list.iter().map(|item| end.value(item)).collect::<Result<_, _>>()?;
    end.in_list(operand, items, negated)
}

fn like<E: BackEnd>(
    end: &mut E,
    text: &Expr,
    pattern: &Expr,
    escape: Option<&ast::ValueWithSpan>,
    (ignores_case, is_negated): (bool, bool),
) -> Result<E::Value, E::Stop> {
    let (text, pattern) = (end.value(text)?, end.value(pattern)?);
    let escape = match escape {
        Some(escape) => match escape.value.clone().into_string() {
            Some(said) if said == "\\" => None,
            Some(said) if said.chars().nth(1).is_some() => {
                let error = Error::new(SqlState(*b"22025"), "invalid escape string")
                    .with_hint("Escape string must be empty or one character.");
                return Err(error.into());
            }
            _ => Some(end.literal(escape)?),
        },
        None => None,
    };
    operator::like(end, text, Like { pattern, escape, ignores_case, is_negated })
}

// ---- truths ----

fn is_null<E: BackEnd>(end: &mut E, operand: &Expr, negated: bool) -> Result<E::Value, E::Stop> {
    if let Some(row) = row_of(operand) {
        return is_null_of_row(end, row, negated);
    }
    let value = end.value(operand)?;
    end.is_null(value, negated)
}

fn is_truth<E: BackEnd>(
    end: &mut E,
    operand: &Expr,
    wanted: Option<bool>,
    what: &str,
) -> Result<E::Value, E::Stop> {
    let condition = truth(end, operand, Sense::Value, what)?;
    end.is_truth(condition, wanted, what.starts_with("IS NOT"))
}

fn case<E: BackEnd>(
    end: &mut E,
    operand: Option<&Expr>,
    whens: &[ast::CaseWhen],
    otherwise: Option<&Expr>,
) -> Result<E::Value, E::Stop> {
    let mut arms = Vec::with_capacity(whens.len());
    for when in whens {
        let condition = match operand {
            Some(operand) => compared(end, operand, "=", &when.condition)
                .map_err(|stop| end.stopped_at(stop, &when.condition))?,
            None => truth(end, &when.condition, Sense::Truth, "CASE/WHEN")?,
        };
        arms.push((condition, end.value(&when.result)?));
    }
    let otherwise = otherwise.map(|otherwise| end.value(otherwise)).transpose()?;
    end.case(arms, otherwise)
}

// ---- ANY and ALL ----

fn quantified<E: BackEnd>(
    end: &mut E,
    left: &Expr,
    operator: &B,
    right: &Expr,
    (is_any, sense): (bool, Sense),
    whole: &Expr,
) -> Result<E::Value, E::Stop> {
    let symbol = chain::symbol_of(operator);
    let mut right = right;
    while let Expr::Nested(inner) = right {
        right = inner;
    }
    match (right, symbol.as_str(), is_any) {
        (Expr::Subquery(query), "=", true) => end.in_subquery(left, query, (false, sense), whole),
        (Expr::Subquery(query), "<>", false) => end.in_subquery(left, query, (true, sense), whole),
        (Expr::Subquery(query), ..) => end.quantified_subquery(left, &symbol, query, is_any, whole),
        _ => end.quantified(left, &symbol, right, is_any),
    }
}
