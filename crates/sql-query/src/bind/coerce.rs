//! Types that have to become others: of literals, of parameters, of operands that have to agree.

use super::{Binder, Flavor, Typed};
use crate::arrow_column::{arrow_type, scalar};
use crate::functions::cast::Conversion;
use datafusion::arrow::datatypes::Field;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Cast, Expr};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit};
use fabius_sql_meaning::type_rules::{self, ANY_CHAR, Candidate, Context, is_integer, is_text, rank};
use fabius_value::{Decimal, Error, Result, SqlState, Value};

/// The type that values of both have where they meet, with as many digits as either has.
pub(super) fn common_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    with_digits(type_rules::common(left, right)?, left, right)
}

/// The type of operands of both that are added or compared, with as many digits as either has.
pub(super) fn operand_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    with_digits(type_rules::operand(left, right)?, left, right)
}

/// Columns of numerics have a scale: the larger one; all digits may be before the point.
fn with_digits(common: SqlType, left: &SqlType, right: &SqlType) -> Option<SqlType> {
    let is_plain = |sql_type: &SqlType| matches!(sql_type, SqlType::Numeric(None)) || is_integer(sql_type);
    Some(match (common, left, right) {
        (SqlType::Array(_), SqlType::Array(left), SqlType::Array(right)) => {
            SqlType::Array(Box::new(common_type(left, right)?))
        }
        (SqlType::Numeric(None), left, right) if left != right && !(is_plain(left) && is_plain(right)) => {
            SqlType::computed(left.scale().max(right.scale()), left.is_free() || right.is_free())
        }
        (common, ..) => common,
    })
}

/// The type of columns beside a value whose type is unknown: of as many digits as its text has.
pub(super) fn beside_unknown(common: SqlType, value: &Candidate<'_>) -> SqlType {
    match (common, value.text) {
        (common, None) if value.is_null => common,
        (numeric @ SqlType::Numeric(Some((_, scale))), Some(text)) => {
            let digits = Decimal::parse(text).map_or(0, |number| number.scale);
            SqlType::computed(scale.max(digits), numeric.is_free())
        }
        (common, _) => type_rules::unbounded(&common),
    }
}

/// The type in which a column is compared with a value whose type is unknown: one in which the value is not cut.
pub(super) fn compared_with(column: SqlType, value: &Candidate<'_>) -> SqlType {
    let is_cut = |length: &u32| value.text.is_none_or(|text| text.chars().count() > *length as usize);
    match &column {
        _ if *value.sql_type != SqlType::Unknown || value.is_null => column,
        SqlType::Char(length) if is_cut(length) => ANY_CHAR,
        SqlType::Char(_) => column,
        _ => beside_unknown(column, value),
    }
}

impl Binder<'_> {
    /// The type that values have to have together, for a message that names the place.
    pub(super) fn common_of<'t>(
        &self,
        values: impl IntoIterator<Item = &'t Typed>,
        place: &str,
    ) -> Result<SqlType> {
        type_rules::common_of(values.into_iter().map(Typed::candidate), place, common_type, beside_unknown)
            .map_err(|(_, error)| error)
    }

    /// A value as another type, where that needs no cast to be written. A literal of unknown type is read as it,
    /// a parameter without a type gets it.
    pub(super) fn coerce(&mut self, typed: Typed, to: &SqlType) -> Result<Typed> {
        if typed.sql_type == SqlType::Unknown {
            return self.settle(typed, to);
        }
        if typed.sql_type == *to {
            return Ok(typed);
        }
        self.convert(typed, to)
    }

    /// Gives a literal or parameter of unknown type one.
    fn settle(&mut self, typed: Typed, to: &SqlType) -> Result<Typed> {
        if let SqlType::Rounded(of, _) = to {
            let settled = self.settle(typed, of)?;
            return self.convert(settled, to);
        }
        match typed.expr {
            Expr::Placeholder(Placeholder { id, field: None }) => {
                let index = parameter_types::index_of(&id)?;
                let settled = self.types.infer(index, &to.of_values())?;
                let parameter = self.parameter(id, &settled);
                if settled == *to { Ok(parameter) } else { self.convert(parameter, to) }
            }
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) => {
                if let Some(moment) = self.moment_of_now(&text, to)? {
                    return Ok(moment);
                }
                let value = text_format::read(&text, to, &self.environment.style, Fit::Cast)?;
                Ok(Typed::literal(scalar(&value, to)?, to.clone()))
            }
            Expr::Literal(value, _) if value.is_null() => {
                Ok(Typed::literal(scalar(&Value::Null, to)?, to.clone()))
            }
            // A column of unknown type: of a subquery with a bare literal.
            expr => self.convert(Typed::new(expr, SqlType::Text), to),
        }
    }

    /// What a text says by the time at which it is read: `now`, `today`.
    fn moment_of_now(&mut self, text: &str, to: &SqlType) -> Result<Option<Typed>> {
        if !matches!(to, SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz) {
            return Ok(None);
        }
        let days = match text.trim().to_lowercase().as_str() {
            "now" => {
                let now = self.function("now", Vec::new())?;
                return self.cast(now, to).map(Some);
            }
            "yesterday" => -1,
            "today" => 0,
            "tomorrow" => 1,
            _ => return Ok(None),
        };
        let today = self.function("current_date", Vec::new())?;
        let days = Typed::literal(ScalarValue::Int32(Some(days)), SqlType::Int);
        let day = self.operator(today, "+", days)?;
        if *to == SqlType::Time { Ok(None) } else { self.cast(day, to).map(Some) }
    }

    /// A parameter whose type is known.
    pub(super) fn parameter(&self, id: String, sql_type: &SqlType) -> Typed {
        let field = Field::new("", arrow_type(sql_type), true);
        Typed::new(Expr::Placeholder(Placeholder { id, field: Some(field.into()) }), sql_type.clone())
    }

    /// What is left unknown is text.
    pub(super) fn known(&mut self, typed: Typed) -> Result<Typed> {
        if typed.sql_type == SqlType::Unknown { self.settle(typed, &SqlType::Text) } else { Ok(typed) }
    }

    /// A value as another type, as `CAST` does.
    pub(crate) fn cast(&mut self, typed: Typed, to: &SqlType) -> Result<Typed> {
        if typed.sql_type == SqlType::Unknown {
            return self.settle(typed, to);
        }
        if let Flavor::Named(named) = typed.flavor
            && is_text(to)
        {
            let name = self.function(named.writer(), vec![Typed { flavor: Flavor::Plain, ..typed }])?;
            return self.convert(name, to);
        }
        if typed.flavor == Flavor::Vector && is_text(to) {
            let text = self.function("fabius_vector_text", vec![Typed { flavor: Flavor::Plain, ..typed }])?;
            return self.convert(text, to);
        }
        if !type_rules::converts(&typed.sql_type, to, Context::Explicit) {
            return Err(Error::new(
                SqlState(*b"42846"),
                format!("cannot cast type {} to {to}", typed.sql_type),
            ));
        }
        self.convert(typed, to)
    }

    fn convert(&mut self, typed: Typed, to: &SqlType) -> Result<Typed> {
        use SqlType as T;
        if let T::Rounded(of, _) = to {
            let typed = self.convert(typed, of)?;
            let rounded = Conversion::expression(typed.expr, of, to, &self.environment.style);
            return Ok(Typed::new(rounded, (**of).clone()));
        }
        let from = &typed.sql_type;
        if from == to {
            return Ok(typed);
        }
        // DataFusion has no infinite days.
        if let (
            T::Date,
            T::Timestamp | T::TimestampTz,
            Expr::Literal(ScalarValue::Date32(Some(day @ (i32::MAX | i32::MIN))), _),
        ) = (from, to, &typed.expr)
        {
            let moment = if *day == i32::MAX { i64::MAX } else { i64::MIN };
            return Ok(Typed::literal(scalar(&Value::Timestamp(moment), to)?, to.clone()));
        }
        // Where values are kept alike, or nothing can go wrong, DataFusion sees through the conversion.
        let is_same = match (from, to) {
            (a, T::Text | T::VarChar(None)) => is_text(a),
            (T::Timestamp, T::TimestampTz) | (T::TimestampTz, T::Timestamp) => {
                self.environment.style.is_utc()
            }
            (T::Oid, T::BigInt) => true,
            _ => false,
        };
        if is_same {
            return Ok(Typed {
                expr: typed.expr,
                sql_type: to.clone(),
                flavor: Flavor::Plain,
                origin: (0, 0),
            });
        }
        let is_wider = match (rank(from), rank(to)) {
            (Some(a), Some(b)) if is_integer(from) => {
                let fits =
                    !matches!(to, T::Numeric(Some((precision, scale))) if *precision < 38 || *scale > 19);
                a < b && *to != T::Real && fits
            }
            (Some(_), Some(_)) => {
                (matches!(from, T::Numeric(_) | T::Real) && *to == T::Double)
                    || (matches!((from, to), (T::Numeric(_), T::Numeric(None | Some((38.., _)))))
                        && from.scale() <= to.scale())
            }
            _ => {
                (is_integer(from) && *to == T::Oid)
                    || (*from == T::Date && *to == T::Timestamp)
                    || (*from == T::Date && *to == T::TimestampTz && self.environment.style.is_utc())
            }
        };
        let expr = if is_wider {
            if arrow_type(from) == arrow_type(to) {
                typed.expr
            } else {
                Expr::Cast(Cast::new(Box::new(typed.expr), arrow_type(to)))
            }
        } else {
            Conversion::expression(typed.expr, from, to, &self.environment.style)
        };
        Ok(Typed::new(expr, to.clone()))
    }
}
