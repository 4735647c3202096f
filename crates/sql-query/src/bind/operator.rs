//! Operators.

use super::coerce::operand_type;
use super::{Binder, Flavor, Typed};
use crate::failure::internal;
use crate::functions::operator::{Arithmetic, numeric_scale};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use fabius_sql_meaning::analysis::{self, Comparison};
use fabius_sql_meaning::functions::operator::Operation;
use fabius_sql_meaning::functions::{Definition, Kind};
use fabius_sql_meaning::sql_type::{QUOTIENT, SqlType};
use fabius_sql_meaning::type_rules::{ANY_CHAR, common, is_number, is_text, looks_different, unbounded};
use fabius_value::Result;

impl Binder<'_> {
    /// A binary operator by its symbol.
    pub(super) fn operator(&mut self, left: Typed, symbol: &str, right: Typed) -> Result<Typed> {
        analysis::infix(self, left, symbol, right)
    }

    /// Two values as the type in which they are equal or not.
    pub(super) fn aligned(&mut self, left: Typed, right: Typed) -> Result<(Typed, Typed)> {
        let operator = analysis::resolved::<Self>("=", &[&left, &right])?;
        let common = compared_as(operator, &left.sql_type, &right.sql_type);
        Ok((self.coerce(left, &common)?, self.coerce(right, &common)?))
    }

    /// A comparison by its operator.
    pub(super) fn compared(
        &mut self,
        operator: &Definition,
        left: Typed,
        comparison: Comparison,
        right: Typed,
    ) -> Result<Typed> {
        use Comparison as C;
        let common = compared_as(operator, &left.sql_type, &right.sql_type);
        let (mut left, mut right) = (self.coerce(left, &common)?, self.coerce(right, &common)?);
        if common == SqlType::Interval {
            left = self.function("fabius_span", vec![left])?;
            right = self.function("fabius_span", vec![right])?;
        }
        // DataFusion takes null for the least of elements.
        let is_of_order = matches!(comparison, C::Less | C::LessOrEqual | C::Greater | C::GreaterOrEqual);
        if matches!(common, SqlType::Array(_)) && (is_of_order || looks_different(&common)) {
            left = self.function("fabius_array_order", vec![left])?;
            right = self.function("fabius_array_order", vec![right])?;
        }
        if common == SqlType::JsonB {
            left = self.function("fabius_json_order", vec![as_text(left)])?;
            right = self.function("fabius_json_order", vec![as_text(right)])?;
        }
        let operator = match comparison {
            C::Equal => Operator::Eq,
            C::NotEqual => Operator::NotEq,
            C::Less => Operator::Lt,
            C::LessOrEqual => Operator::LtEq,
            C::Greater => Operator::Gt,
            C::GreaterOrEqual => Operator::GtEq,
            C::Distinct => Operator::IsDistinctFrom,
            C::NotDistinct => Operator::IsNotDistinctFrom,
        };
        Ok(Typed::new(plain_binary(left.expr, operator, right.expr), SqlType::Boolean))
    }

    /// An operand next to an object identifier that shows as a name: a literal is such a name, and next to a text
    /// it is its name.
    pub(super) fn named_operand(&mut self, typed: Typed, other: &Typed) -> Result<Typed> {
        match (typed.flavor, other.flavor) {
            (Flavor::Plain, Flavor::Named(named)) if typed.unknown_text().is_some() => {
                self.function(named.reader(), vec![typed])
            }
            (Flavor::Named(_), _) if is_text(&other.sql_type) => self.cast(typed, &SqlType::Text),
            _ => Ok(typed),
        }
    }

    /// An operation on two numbers.
    pub(super) fn arithmetic(
        &mut self,
        operator: &Definition,
        left: Typed,
        operation: Operation,
        right: Typed,
    ) -> Result<Typed> {
        use SqlType as T;
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
                Operation::Divide => QUOTIENT,
                _ => {
                    let is_free = left.sql_type.is_free() || right.sql_type.is_free();
                    SqlType::computed(numeric_scale(operation, l.scale(), r.scale()), is_free)
                }
            };
            (self.coerce(left, &l)?, self.coerce(right, &r)?, returns)
        } else {
            (self.coerce(left, common)?, self.coerce(right, common)?, common.clone())
        };
        Ok(Typed::new(Arithmetic::expression(operation, left.expr, right.expr, &returns), returns))
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
        // The text of an array does not have the length or digits of another's elements.
        _ if *left == T::Unknown || *right == T::Unknown => {
            operand_type(left, right).map_or(T::Text, |common| unbounded(&common))
        }
        _ => operand_type(left, right).unwrap_or(T::Text),
    }
}

pub(crate) fn plain_binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

/// Json as the text that it is kept as.
pub(super) fn as_text(typed: Typed) -> Typed {
    match typed.sql_type {
        SqlType::Json | SqlType::JsonB => Typed::new(typed.expr, SqlType::Text),
        _ => typed,
    }
}
