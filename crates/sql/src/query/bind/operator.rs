//! Operators.

use super::{Binder, Flavor, Typed};
use crate::query::functions::operator::{Arithmetic, Operation, numeric_result};
use crate::sql_type::{QUOTIENT, SqlType};
use crate::type_rules::{is_integer, is_number, is_text};
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::BinaryOperator;

/// `42883` for operands that an operator does not take.
pub(super) fn no_operator(operator: &str, left: &SqlType, right: &SqlType) -> Error {
    Error::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {left} {operator} {right}"))
        .with_hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

/// `42725` for operands that several operators of a name take.
pub(super) fn not_unique(operands: &str) -> Error {
    Error::new(SqlState(*b"42725"), format!("operator is not unique: {operands}"))
        .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

impl Binder<'_> {
    /// A binary operator, except `AND` and `OR`.
    pub(super) fn binary(&mut self, left: Typed, operator: &BinaryOperator, right: Typed) -> Result<Typed> {
        use BinaryOperator as B;
        let name = match operator {
            B::PGCustomBinaryOperator(parts) => parts.last().cloned().unwrap_or_default(),
            B::Custom(name) => name.clone(),
            B::NotEq => "<>".into(),
            other => other.to_string(),
        };
        self.operator(left, &name, right)
    }

    /// A binary operator by its name.
    pub(super) fn operator(&mut self, left: Typed, name: &str, right: Typed) -> Result<Typed> {
        match name {
            "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" => self.comparison(left, name, right),
            "+" => self.arithmetic(left, Operation::Add, right),
            "-" => self.arithmetic(left, Operation::Subtract, right),
            "*" => self.arithmetic(left, Operation::Multiply, right),
            "/" => self.arithmetic(left, Operation::Divide, right),
            "%" => self.arithmetic(left, Operation::Remainder, right),
            "^" => self.function("power", vec![left, right]),
            "||" => self.concatenation(left, right),
            "~" | "~*" | "!~" | "!~*" => {
                let is_insensitive =
                    Typed::literal(ScalarValue::Boolean(Some(name.ends_with('*'))), SqlType::Boolean);
                let found = self.function("fabius_matches", vec![left, right, is_insensitive])?;
                Ok(if name.starts_with('!') { negated(found) } else { found })
            }
            "~~" | "~~*" | "!~~" | "!~~*" => {
                self.like(left, right, None, name.ends_with('*'), name.starts_with('!'))
            }
            "^@" => self.function("starts_with", vec![left, right]),
            "->" | "->>" => {
                let right = if is_integer(&right.sql_type) {
                    self.coerce(right, &SqlType::BigInt)?
                } else {
                    self.coerce(right, &SqlType::Text)?
                };
                self.json("fabius_json_get", left, right, name == "->>")
            }
            "#>" | "#>>" => {
                let right = self.coerce(right, &SqlType::Array(Box::new(SqlType::Text)))?;
                self.json("fabius_json_path", left, right, name == "#>>")
            }
            "@>" | "<@" | "&&" => {
                let (left, right) = if name == "<@" { (right, left) } else { (left, right) };
                if [&left, &right].iter().any(|typed| typed.sql_type == SqlType::JsonB) {
                    let left = self.coerce(left, &SqlType::JsonB)?;
                    let right = self.coerce(right, &SqlType::JsonB)?;
                    return self.function("fabius_json_contains", vec![as_text(left), as_text(right)]);
                }
                self.function(
                    if name == "&&" { "fabius_overlaps" } else { "fabius_contains" },
                    vec![left, right],
                )
            }
            "?" => {
                let right = self.coerce(right, &SqlType::Text)?;
                self.function("fabius_json_has", vec![as_text(left), right])
            }
            "?|" | "?&" | "#-" if left.sql_type == SqlType::JsonB => {
                let keys = self.coerce(right, &SqlType::Array(Box::new(SqlType::Text)))?;
                match name {
                    "#-" => self.function("fabius_json_without_path", vec![left, keys]),
                    "?|" => self.function("fabius_json_has_any", vec![as_text(left), keys]),
                    _ => self.function("fabius_json_has_all", vec![as_text(left), keys]),
                }
            }
            "&" | "|" | "#" | "<<" | ">>" => self.bits(left, name, right),
            other => Err(no_operator(other, &left.sql_type, &right.sql_type)),
        }
    }

    fn json(&mut self, function: &str, left: Typed, right: Typed, as_text_value: bool) -> Result<Typed> {
        let sql_type = if left.sql_type == SqlType::Unknown { SqlType::Json } else { left.sql_type.clone() };
        if !matches!(sql_type, SqlType::Json | SqlType::JsonB) {
            return Err(no_operator("->", &left.sql_type, &right.sql_type));
        }
        let left = self.coerce(left, &sql_type)?;
        let flag = Typed::literal(ScalarValue::Boolean(Some(as_text_value)), SqlType::Boolean);
        let found = self.function(function, vec![left, right, flag])?;
        Ok(if as_text_value { found } else { Typed::new(found.expr, sql_type) })
    }

    /// A comparison of two values that can be compared.
    pub(super) fn comparison(&mut self, left: Typed, name: &str, right: Typed) -> Result<Typed> {
        let (left, right) = (self.named_operand(left, &right)?, right);
        let (right, left) = (self.named_operand(right, &left)?, left);
        let types = (left.sql_type.clone(), right.sql_type.clone());
        let Some(both) = self.align(left, right) else {
            return Err(no_operator(if name == "!=" { "<>" } else { name }, &types.0, &types.1));
        };
        let (mut left, mut right, common) = both?;
        if common == SqlType::Json {
            return Err(no_operator(name, &types.0, &types.1));
        }
        if common == SqlType::Interval {
            left = self.function("fabius_span", vec![left])?;
            right = self.function("fabius_span", vec![right])?;
        }
        // DataFusion takes null for the least of elements.
        if let (SqlType::Array(_), "<" | "<=" | ">" | ">=") = (&common, name) {
            left = self.function("fabius_array_order", vec![left])?;
            right = self.function("fabius_array_order", vec![right])?;
        }
        if common == SqlType::JsonB {
            left = self.function("fabius_json_order", vec![as_text(left)])?;
            right = self.function("fabius_json_order", vec![as_text(right)])?;
        }
        let operator = match name {
            "=" => Operator::Eq,
            "<>" | "!=" => Operator::NotEq,
            "<" => Operator::Lt,
            "<=" => Operator::LtEq,
            ">" => Operator::Gt,
            ">=" => Operator::GtEq,
            "is distinct from" => Operator::IsDistinctFrom,
            _ => Operator::IsNotDistinctFrom,
        };
        Ok(Typed::new(plain_binary(left.expr, operator, right.expr), SqlType::Boolean))
    }

    /// An operand next to an object identifier that shows as a name: a literal is such a name, and next to a text
    /// it is its name.
    fn named_operand(&mut self, typed: Typed, other: &Typed) -> Result<Typed> {
        match (typed.flavor, other.flavor) {
            (Flavor::Plain, Flavor::Named(named)) if typed.unknown_text().is_some() => {
                self.function(named.reader(), vec![typed])
            }
            (Flavor::Named(_), _) if is_text(&other.sql_type) => self.cast(typed, &SqlType::Text),
            _ => Ok(typed),
        }
    }

    fn arithmetic(&mut self, left: Typed, operation: Operation, right: Typed) -> Result<Typed> {
        use SqlType as T;
        let symbol = match operation {
            Operation::Add => "+",
            Operation::Subtract => "-",
            Operation::Multiply => "*",
            Operation::Divide => "/",
            Operation::Remainder => "%",
        };
        let (mut left, mut right) = (left, right);
        let unknown = |typed: &Typed| typed.sql_type == T::Unknown;
        if unknown(&left) && unknown(&right) {
            return Err(not_unique(&format!("unknown {symbol} unknown")));
        }
        let is_time =
            |t: &SqlType| matches!(t, T::Date | T::Time | T::Timestamp | T::TimestampTz | T::Interval);
        if is_time(&left.sql_type) || is_time(&right.sql_type) {
            return self.time_arithmetic(left, operation, right, symbol);
        }
        if let (Operation::Subtract, T::JsonB) = (operation, &left.sql_type) {
            let right = if unknown(&right) { self.coerce(right, &T::Text)? } else { right };
            return self.function("fabius_json_without", vec![left, right]);
        }
        if unknown(&left) {
            let to =
                if let T::Numeric(_) = right.sql_type { T::Numeric(None) } else { right.sql_type.clone() };
            left = self.coerce(left, &to)?;
        } else if unknown(&right) {
            let to = if let T::Numeric(_) = left.sql_type { T::Numeric(None) } else { left.sql_type.clone() };
            right = self.coerce(right, &to)?;
        }
        let types = (left.sql_type.clone(), right.sql_type.clone());
        if !is_number(&types.0) || !is_number(&types.1) {
            return Err(no_operator(symbol, &types.0, &types.1));
        }
        let common = super::coerce::operand_type(&types.0, &types.1)
            .ok_or_else(|| no_operator(symbol, &types.0, &types.1))?;
        let (left, right, returns) = if let T::Numeric(_) = common {
            // Each keeps its own scale; integers have none.
            let numeric = |typed: &Typed| match typed.sql_type {
                T::Numeric(_) => T::Numeric(Some((38, typed.sql_type.scale()))),
                _ => T::Numeric(Some((38, 0))),
            };
            let (l, r) = (numeric(&left), numeric(&right));
            let is_quotient = left.sql_type == QUOTIENT || right.sql_type == QUOTIENT;
            let returns = match operation {
                // What a quotient mostly shows of its digits goes for sums with it.
                Operation::Add | Operation::Subtract if is_quotient => SqlType::Numeric(Some((38, 16))),
                _ => numeric_result(operation, l.scale(), r.scale()),
            };
            (self.coerce(left, &l)?, self.coerce(right, &r)?, returns)
        } else {
            if matches!(common, T::Real | T::Double) && operation == Operation::Remainder {
                return Err(no_operator(symbol, &types.0, &types.1));
            }
            (self.coerce(left, &common)?, self.coerce(right, &common)?, common)
        };
        Ok(Typed::new(Arithmetic::expression(operation, left.expr, right.expr, &returns), returns))
    }

    fn time_arithmetic(
        &mut self,
        left: Typed,
        operation: Operation,
        right: Typed,
        symbol: &str,
    ) -> Result<Typed> {
        use SqlType as T;
        let (mut left, mut right) = (left, right);
        // An unknown is what the other one is, if there is an operator of two such. Only an interval can be added to
        // a timestamp; to a date several types can.
        if [&left, &right].iter().any(|side| side.sql_type == T::Unknown) {
            let is_left = left.sql_type == T::Unknown;
            let to = match (operation, if is_left { &right.sql_type } else { &left.sql_type }) {
                (Operation::Add, T::Date) => {
                    let (left, right) = (&left.sql_type, &right.sql_type);
                    return Err(not_unique(&format!("{left} {symbol} {right}")));
                }
                (Operation::Subtract, moment) => moment.clone(),
                (Operation::Multiply | Operation::Divide, T::Interval) => T::Double,
                _ => T::Interval,
            };
            match is_left {
                true => left = self.coerce(left, &to)?,
                false => right = self.coerce(right, &to)?,
            }
        }
        if operation == Operation::Add
            && (left.sql_type == T::Interval && right.sql_type != T::Interval
                || (is_integer(&left.sql_type) || left.sql_type == T::Time) && right.sql_type == T::Date)
        {
            std::mem::swap(&mut left, &mut right);
        }
        if operation == Operation::Multiply && right.sql_type == T::Interval {
            std::mem::swap(&mut left, &mut right);
        }
        match (operation, &left.sql_type, &right.sql_type) {
            (Operation::Add, T::Date, T::Time) => {
                left = self.coerce(left, &T::Timestamp)?;
                right = self.cast(right, &T::Interval)?;
            }
            (Operation::Add | Operation::Subtract, T::Date, T::Interval) => {
                left = self.coerce(left, &T::Timestamp)?
            }
            (Operation::Subtract, T::Date, T::Timestamp | T::TimestampTz) => {
                let to = right.sql_type.clone();
                left = self.coerce(left, &to)?;
            }
            (Operation::Subtract, T::Timestamp | T::TimestampTz, T::Date | T::Timestamp) => {
                let to = left.sql_type.clone();
                right = self.coerce(right, &to)?;
            }
            (Operation::Multiply | Operation::Divide, T::Interval, _) => {
                right = self.cast(right, &T::Double)?
            }
            _ => {}
        }
        let types = (left.sql_type.clone(), right.sql_type.clone());
        let function = match operation {
            Operation::Add => "fabius_add",
            Operation::Subtract => "fabius_subtract",
            Operation::Multiply => "fabius_multiply",
            Operation::Divide => "fabius_divide",
            Operation::Remainder => return Err(no_operator(symbol, &types.0, &types.1)),
        };
        self.function(function, vec![left, right]).map_err(|error| {
            if error.state() == SqlState::UNDEFINED_FUNCTION {
                no_operator(symbol, &types.0, &types.1)
            } else {
                error
            }
        })
    }

    fn concatenation(&mut self, left: Typed, right: Typed) -> Result<Typed> {
        use SqlType as T;
        match (&left.sql_type, &right.sql_type) {
            (T::Array(_), T::Array(_) | T::Unknown) | (T::Unknown, T::Array(_)) => {
                self.function("array_cat", vec![left, right])
            }
            (T::Array(_), _) => self.function("array_append", vec![left, right]),
            (_, T::Array(_)) => self.function("array_prepend", vec![left, right]),
            (T::JsonB, _) | (_, T::JsonB) => self.function("fabius_json_concat", vec![left, right]),
            (T::Bytea, T::Bytea | T::Unknown) | (T::Unknown, T::Bytea) => {
                self.function("fabius_bytes", vec![left, right])
            }
            (a, b) if !is_text(a) && !is_text(b) && *a != T::Unknown && *b != T::Unknown => {
                Err(no_operator("||", a, b))
            }
            _ => {
                let left = self.cast(left, &T::Text)?;
                let right = self.cast(right, &T::Text)?;
                Ok(Typed::new(plain_binary(left.expr, Operator::StringConcat, right.expr), T::Text))
            }
        }
    }

    fn bits(&mut self, left: Typed, name: &str, right: Typed) -> Result<Typed> {
        let types = (left.sql_type.clone(), right.sql_type.clone());
        let Some(both) = self.align(left, right) else { return Err(no_operator(name, &types.0, &types.1)) };
        let (left, right, common) = both?;
        if !is_integer(&common) {
            return Err(no_operator(name, &types.0, &types.1));
        }
        let operator = match name {
            "&" => Operator::BitwiseAnd,
            "|" => Operator::BitwiseOr,
            // DataFusion takes x # x for 0, also of nulls.
            "#" => {
                let (left, right) = (Typed::new(left.expr, common.clone()), Typed::new(right.expr, common));
                return self.function("fabius_bit_xor", vec![left, right]);
            }
            "<<" => Operator::BitwiseShiftLeft,
            _ => Operator::BitwiseShiftRight,
        };
        Ok(Typed::new(plain_binary(left.expr, operator, right.expr), common))
    }

    /// `LIKE` and `ILIKE`.
    pub(super) fn like(
        &mut self,
        text: Typed,
        pattern: Typed,
        escape: Option<char>,
        is_insensitive: bool,
        is_negated: bool,
    ) -> Result<Typed> {
        let accepts = |typed: &Typed| is_text(&typed.sql_type) || typed.sql_type == SqlType::Unknown;
        if !accepts(&text) || !accepts(&pattern) {
            let symbol = match (is_insensitive, is_negated) {
                (false, false) => "~~",
                (false, true) => "!~~",
                (true, false) => "~~*",
                (true, true) => "!~~*",
            };
            return Err(no_operator(symbol, &text.sql_type, &pattern.sql_type));
        }
        let text = self.cast(text, &SqlType::Text)?;
        let mut pattern = self.cast(pattern, &SqlType::Text)?;
        if let Some(escape) = escape.filter(|escape| *escape != '\\') {
            let escape = if escape == '\0' { String::new() } else { escape.to_string() };
            let escape = Typed::literal(ScalarValue::Utf8(Some(escape)), SqlType::Text);
            pattern = self.function("like_escape", vec![pattern, escape])?;
        }
        let like = Like::new(is_negated, Box::new(text.expr), Box::new(pattern.expr), None, is_insensitive);
        Ok(Typed::new(Expr::Like(like), SqlType::Boolean))
    }

    /// A value as a truth, for conditions.
    pub(super) fn condition(&mut self, typed: Typed, place: &str) -> Result<Expr> {
        if !matches!(typed.sql_type, SqlType::Boolean | SqlType::Unknown) {
            return Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {place} must be type boolean, not type {}", typed.sql_type),
            ));
        }
        self.coerce(typed, &SqlType::Boolean).map(|typed| typed.expr)
    }
}

pub(in crate::query) fn plain_binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

pub(super) fn negated(typed: Typed) -> Typed {
    Typed::new(Expr::Not(Box::new(typed.expr)), SqlType::Boolean)
}

/// Json as the text that it is kept as.
pub(super) fn as_text(typed: Typed) -> Typed {
    match typed.sql_type {
        SqlType::Json | SqlType::JsonB => Typed::new(typed.expr, SqlType::Text),
        _ => typed,
    }
}
