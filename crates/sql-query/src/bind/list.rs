//! Values in lists: `IN (...)`, and `ANY` and `ALL` of arrays and subqueries.

use super::coerce::compared_with;
use super::{Binder, Flavor, Typed};
use crate::failure::unsupported;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::InList;
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::{self, BackEnd};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_meaning::type_rules::{Candidate, looks_different};
use fabius_value::{Error, Result, SqlState};

/// Operators that `ANY` and `ALL` take.
const QUANTIFIED: &[&str] =
    &["=", "<>", "<", "<=", ">", ">=", "~~", "~~*", "!~~", "!~~*", "~", "~*", "!~", "!~*"];

impl Binder<'_> {
    /// `value [NOT] IN (items)`
    pub(super) fn among(&mut self, value: Typed, items: Vec<Typed>, not: bool) -> Result<Typed> {
        let mut types = items.iter().map(|item| &item.sql_type);
        let common =
            types.try_fold(value.sql_type.clone(), |common, of| super::coerce::common_type(&common, of));
        let candidates = items.iter().chain([&value]).map(Typed::candidate);
        let common = common.map(|common| candidates.fold(common, |common, of| compared_with(common, &of)));
        let Some(mut common) = common.filter(|_| !matches!(value.flavor, Flavor::Named(_))) else {
            let equal = items.into_iter().map(|item| self.operator(value.clone(), "=", item));
            let equal = equal.collect::<Result<_>>()?;
            let any = self.joined(equal, false)?;
            return if not { self.not(any) } else { Ok(any) };
        };
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
                false => equal.push(self.operator(value.clone(), "=", item)?),
            }
        }
        let is_all = equal.is_empty();
        if is_all || !list.is_empty() {
            let list = InList::new(Box::new(value.expr), list, not && is_all);
            equal.push(Typed::new(Expr::InList(list), SqlType::Boolean));
        }
        let any = self.joined(equal, false)?;
        if not && !is_all { self.not(any) } else { Ok(any) }
    }

    /// `value name ANY (array)`, or `ALL`.
    pub(super) fn array_comparison(
        &mut self,
        value: Typed,
        name: &str,
        array: Typed,
        is_any: bool,
    ) -> Result<Typed> {
        let value = match (&value.flavor, &array.sql_type) {
            (Flavor::Named(_), SqlType::Array(element)) if type_rules::is_text(element) => {
                self.cast(value, &SqlType::Text)?
            }
            _ => value,
        };
        let element = match &array.sql_type {
            SqlType::Array(element) if value.sql_type == SqlType::Unknown => {
                compared_with(element.as_ref().clone(), &value.candidate())
            }
            SqlType::Unknown if value.sql_type == SqlType::Unknown => SqlType::Text,
            // What an array's text says of its elements is known when it is read.
            SqlType::Unknown => {
                compared_with(value.sql_type.clone(), &Candidate { text: None, ..array.candidate() })
            }
            SqlType::Array(element) => {
                let one = Typed::new(array.expr.clone(), element.as_ref().clone());
                analysis::resolved::<Self>(name, &[&value, &one])?;
                super::coerce::common_type(&value.sql_type, element).unwrap_or(one.sql_type)
            }
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
        if let (true, "=", Expr::Literal(ScalarValue::List(list), _)) = (is_any, name, &array.expr)
            && !looks_different(&element)
        {
            let column: datafusion::arrow::array::ArrayRef = list.clone();
            let rows = crate::arrow_column::value_at(&column, 0, &array.sql_type);
            if let fabius_value::Value::List(rows) = rows {
                let items = rows.iter().flatten().map(|item| {
                    crate::arrow_column::scalar(item, &element).map(|item| Expr::Literal(item, None))
                });
                let items: Vec<Expr> = items.collect::<Result<_>>()?;
                // Of nothing, whatever the value is.
                if items.is_empty() {
                    return Ok(Typed::new(super::scope::false_literal(), SqlType::Boolean));
                }
                let list = InList::new(Box::new(value.expr), items, false);
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
}

/// Whether an expression is a value that is known before the query runs.
fn is_constant(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Cast(cast) => is_constant(&cast.expr),
        _ => false,
    }
}
