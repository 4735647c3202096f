//! Operators.

use super::coerce::operand_type;
use super::{Binder, Flavor, Typed};
use crate::functions::operator::{self, BuiltIn, Operation};
use crate::functions::resolution::Argument;
use crate::functions::{Body, Definition, Kind};
use crate::query::failure::internal;
use crate::query::functions::operator::{Arithmetic, numeric_result};
use crate::sql_type::{QUOTIENT, SqlType};
use crate::type_rules::{ANY_CHAR, common, is_number, is_text};
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use datafusion::scalar::ScalarValue;
use fabius_value::Result;

impl Binder<'_> {
    /// A binary operator by its symbol.
    pub(super) fn operator(&mut self, left: Typed, symbol: &str, right: Typed) -> Result<Typed> {
        let (left, right) = self.named_operands(left, right)?;
        let operator = self.resolved(symbol, &[&left, &right])?;
        let Body::BuiltIn(does) = operator.body else {
            return self.apply(operator, vec![left, right], None);
        };
        match does {
            BuiltIn::Comparison => self.compared(operator, left, symbol, right),
            BuiltIn::Arithmetic(operation) => self.arithmetic(operator, left, operation, right),
            BuiltIn::Like { ignores_case, is_negated } => self.matched(left, right, ignores_case, is_negated),
            BuiltIn::Concatenation => {
                let (left, right) = (self.cast(left, &SqlType::Text)?, self.cast(right, &SqlType::Text)?);
                Ok(Typed::new(plain_binary(left.expr, Operator::StringConcat, right.expr), SqlType::Text))
            }
            BuiltIn::Negation | BuiltIn::Identity => Err(internal("an operator of one operand has two")),
        }
    }

    /// An operator before its operand, by its symbol.
    pub(super) fn prefix_operator(&mut self, symbol: &str, operand: Typed) -> Result<Typed> {
        let operator = self.resolved(symbol, &[&operand])?;
        let Body::BuiltIn(does) = operator.body else { return self.apply(operator, vec![operand], None) };
        let operand = self.settled(operand, &operator.parameters[0])?;
        let zero = match operand.sql_type {
            _ if does == BuiltIn::Identity => return Ok(operand),
            SqlType::Real | SqlType::Double => {
                return Ok(Typed::new(Expr::Negative(Box::new(operand.expr)), operand.sql_type));
            }
            SqlType::SmallInt => Typed::literal(ScalarValue::Int16(Some(0)), SqlType::SmallInt),
            _ => Typed::literal(ScalarValue::Int32(Some(0)), SqlType::Int),
        };
        self.operator(zero, "-", operand)
    }

    /// The operator that takes operands of such types.
    pub(super) fn resolved(&self, symbol: &str, operands: &[&Typed]) -> Result<&'static Definition> {
        let operands: Vec<Argument<'_>> = operands.iter().map(|typed| typed.argument()).collect();
        operator::resolve(symbol, &operands)
    }

    /// An operand, which has the operator's type if it had none.
    fn settled(&mut self, typed: Typed, kind: &Kind) -> Result<Typed> {
        match kind {
            Kind::Is(sql_type) if typed.sql_type == SqlType::Unknown => self.coerce(typed, sql_type),
            _ => Ok(typed),
        }
    }

    /// A comparison of two values that can be compared: also `is distinct from`.
    pub(super) fn comparison(&mut self, left: Typed, name: &str, right: Typed) -> Result<Typed> {
        let (left, right) = self.named_operands(left, right)?;
        let symbol = if name.starts_with("is ") { "=" } else { name };
        let operator = self.resolved(symbol, &[&left, &right])?;
        self.compared(operator, left, name, right)
    }

    /// Two values as the type in which they are equal or not.
    pub(super) fn aligned(&mut self, left: Typed, right: Typed) -> Result<(Typed, Typed)> {
        let operator = self.resolved("=", &[&left, &right])?;
        let common = compared_as(operator, &left.sql_type, &right.sql_type);
        Ok((self.coerce(left, &common)?, self.coerce(right, &common)?))
    }

    fn compared(&mut self, operator: &Definition, left: Typed, name: &str, right: Typed) -> Result<Typed> {
        let common = compared_as(operator, &left.sql_type, &right.sql_type);
        let (mut left, mut right) = (self.coerce(left, &common)?, self.coerce(right, &common)?);
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

    fn named_operands(&mut self, left: Typed, right: Typed) -> Result<(Typed, Typed)> {
        let left = self.named_operand(left, &right)?;
        let right = self.named_operand(right, &left)?;
        Ok((left, right))
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

    fn arithmetic(
        &mut self,
        operator: &Definition,
        left: Typed,
        operation: Operation,
        right: Typed,
    ) -> Result<Typed> {
        use SqlType as T;
        let left = self.settled(left, &operator.parameters[0])?;
        let right = self.settled(right, &operator.parameters[1])?;
        let Kind::Is(common) = &operator.returns else { return Err(internal("arithmetic gives a number")) };
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
            (self.coerce(left, common)?, self.coerce(right, common)?, common.clone())
        };
        Ok(Typed::new(Arithmetic::expression(operation, left.expr, right.expr, &returns), returns))
    }

    /// `LIKE` and `ILIKE`.
    pub(super) fn like(&mut self, text: Typed, like: crate::analysis::Like<Typed>) -> Result<Typed> {
        let symbol = operator::like_symbol(like.ignores_case, like.is_negated);
        self.resolved(symbol, &[&text, &like.pattern])?;
        let mut pattern = like.pattern;
        if let Some(escape) = like.escape {
            pattern = self.cast(pattern, &SqlType::Text)?;
            pattern = self.function("like_escape", vec![pattern, escape])?;
        }
        self.matched(text, pattern, like.ignores_case, like.is_negated)
    }

    fn matched(
        &mut self,
        text: Typed,
        pattern: Typed,
        is_insensitive: bool,
        is_negated: bool,
    ) -> Result<Typed> {
        let (text, pattern) = (self.cast(text, &SqlType::Text)?, self.cast(pattern, &SqlType::Text)?);
        let like = Like::new(is_negated, Box::new(text.expr), Box::new(pattern.expr), None, is_insensitive);
        Ok(Typed::new(Expr::Like(like), SqlType::Boolean))
    }
}

/// The type in which an operator compares values of two types, with as many digits as either has.
fn compared_as(operator: &Definition, left: &SqlType, right: &SqlType) -> SqlType {
    use SqlType as T;
    match operator.parameters.as_slice() {
        [Kind::Is(T::Name), Kind::Is(T::Text)] | [Kind::Is(T::Text), Kind::Is(T::Name)] => T::Text,
        // Literals lose blanks at their end, not characters.
        [Kind::Is(T::Char(_)), Kind::Is(T::Char(_))] => match (left, right) {
            (T::Char(a), T::Char(b)) if a == b => left.clone(),
            (T::Char(_), T::Char(_)) => T::Text,
            _ => ANY_CHAR,
        },
        [Kind::Is(a), Kind::Is(b)] if !is_number(a) && *a != T::Oid => common(a, b).unwrap_or(T::Text),
        [Kind::Is(a), Kind::Is(b)] => {
            let of = |operand: &SqlType, kind: &SqlType| match operand {
                T::Unknown => kind.clone(),
                known => known.clone(),
            };
            operand_type(&of(left, a), &of(right, b)).unwrap_or_else(|| a.clone())
        }
        _ => operand_type(left, right).unwrap_or(T::Text),
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
