//! Windows and their frames.

use super::{Binder, Typed, folded};
use crate::failure::unsupported;
use crate::functions::moving::moving;
use datafusion::logical_expr::expr::{Sort, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

impl Binder<'_> {
    /// A function over a window.
    pub(super) fn over(
        &mut self,
        function: WindowFunctionDefinition,
        arguments: Vec<Expr>,
        window: &ast::WindowType,
        filter: Option<Box<Expr>>,
        distinct: bool,
    ) -> Result<Expr> {
        let spec = self.window(window)?;
        let partition_by = spec
            .partition_by
            .iter()
            .map(|expression| self.sort_value(expression).map(|typed| typed.expr))
            .collect::<Result<Vec<_>>>()?;
        let mut order_by = Vec::with_capacity(spec.order_by.len());
        let mut has_distances = true;
        for key in &spec.order_by {
            let typed = self.sort_value(&key.expr)?;
            has_distances &= !matches!(
                typed.sql_type,
                SqlType::Uuid
                    | SqlType::Bytea
                    | SqlType::Boolean
                    | SqlType::JsonB
                    | SqlType::Inet
                    | SqlType::Cidr
                    | SqlType::Enumeration(_)
            );
            order_by.push(sort_of(typed, &key.options));
        }
        let has_offset = spec.window_frame.as_ref().is_some_and(has_offset);
        let mut window_frame = match &spec.window_frame {
            Some(frame) => frame_of(frame)?,
            None if order_by.is_empty() => WindowFrame::new(None),
            None => WindowFrame::new(Some(false)),
        };
        if window_frame.units == WindowFrameUnits::Range && !has_offset && !has_distances {
            window_frame = by_groups(window_frame);
        }
        window_frame.regularize_order_bys(&mut order_by).map_err(|error| {
            Error::new(SqlState(*b"42P20"), "this frame needs another ORDER BY")
                .with_detail(error.to_string())
        })?;
        let function = match function {
            WindowFunctionDefinition::AggregateUDF(aggregate) => {
                WindowFunctionDefinition::AggregateUDF(moving(aggregate))
            }
            other => other,
        };
        Ok(Expr::WindowFunction(Box::new(WindowFunction {
            fun: function,
            params: WindowFunctionParams {
                args: arguments,
                partition_by,
                order_by,
                window_frame,
                filter,
                null_treatment: None,
                distinct,
            },
        })))
    }

    /// A window's definition, with what it takes over from a named one.
    fn window(&self, window: &ast::WindowType) -> Result<ast::WindowSpec> {
        let named = |name: &ast::Ident| -> Result<ast::WindowSpec> {
            let name = folded(name);
            let windows = self.levels.last().map(|level| level.windows.as_slice()).unwrap_or_default();
            let found = windows.iter().find(|window| folded(&window.0) == name).ok_or_else(|| {
                Error::new(SqlState(*b"42704"), format!("window \"{name}\" does not exist"))
            })?;
            match &found.1 {
                ast::NamedWindowExpr::WindowSpec(spec) => Ok(spec.clone()),
                ast::NamedWindowExpr::NamedWindow(_) => {
                    Err(unsupported("a window that is another's name is not supported"))
                }
            }
        };
        match window {
            ast::WindowType::NamedWindow(name) => named(name),
            ast::WindowType::WindowSpec(spec) => match &spec.window_name {
                None => Ok(spec.clone()),
                Some(name) => {
                    let mut base = named(name)?;
                    if !spec.order_by.is_empty() {
                        base.order_by = spec.order_by.clone();
                    }
                    base.window_frame = spec.window_frame.clone();
                    Ok(base)
                }
            },
        }
    }

    /// Keys to sort by, as expressions.
    pub(super) fn sort_keys(&mut self, keys: &[ast::OrderByExpr]) -> Result<Vec<Sort>> {
        let mut sorts = Vec::with_capacity(keys.len());
        for key in keys {
            let value = self.sort_value(&key.expr)?;
            sorts.push(sort_of(value, &key.options));
        }
        Ok(sorts)
    }

    /// What the value of an expression is sorted by.
    fn sort_value(&mut self, expression: &ast::Expr) -> Result<Typed> {
        let typed = self.expression(expression)?;
        let typed = self.known(typed)?;
        self.sortable(typed)
    }

    /// What a value is sorted by.
    pub(super) fn sortable(&mut self, typed: Typed) -> Result<Typed> {
        match typed.sql_type {
            // Arrow tells zeros of both signs, and signs of what is no number.
            SqlType::Double | SqlType::Real => self.function("fabius_float_order", vec![typed]),
            SqlType::Interval => self.function("fabius_span", vec![typed]),
            SqlType::JsonB => self.function("fabius_json_order", vec![super::operator::as_text(typed)]),
            SqlType::Array(_) => self.function("fabius_array_order", vec![typed]),
            other => {
                require_order(&other)?;
                Ok(Typed { sql_type: other, ..typed })
            }
        }
    }
}

/// Refuses a type whose values have no order.
pub(super) fn require_order(sql_type: &SqlType) -> Result<()> {
    match sql_type {
        SqlType::Json => Err(Error::new(
            SqlState::UNDEFINED_FUNCTION,
            "could not identify an ordering operator for type json",
        )),
        _ => Ok(()),
    }
}

/// A frame as the query library has it.
fn frame_of(frame: &ast::WindowFrame) -> Result<WindowFrame> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    let units = match frame.units {
        ast::WindowFrameUnits::Rows => WindowFrameUnits::Rows,
        ast::WindowFrameUnits::Range => WindowFrameUnits::Range,
        ast::WindowFrameUnits::Groups => WindowFrameUnits::Groups,
    };
    let start = bound_of(&frame.start_bound, units)?;
    let end = frame.end_bound.as_ref().map_or(Ok(CurrentRow), |bound| bound_of(bound, units))?;
    let refuse = |message: &str| Err(Error::new(SqlState(*b"42P20"), message));
    match (&start, &end) {
        (Following(offset), _) if offset.is_null() => refuse("frame start cannot be UNBOUNDED FOLLOWING"),
        (_, Preceding(offset)) if offset.is_null() => refuse("frame end cannot be UNBOUNDED PRECEDING"),
        (CurrentRow, Preceding(_)) => refuse("frame starting from current row cannot have preceding rows"),
        (Following(_), Preceding(_)) => {
            refuse("frame starting from following row cannot have preceding rows")
        }
        (Following(_), CurrentRow) => refuse("frame starting from following row cannot end with current row"),
        _ => Ok(WindowFrame::new_bounds(units, start, end)),
    }
}

/// Whether a frame begins or ends at a distance.
fn has_offset(frame: &ast::WindowFrame) -> bool {
    let is_offset = |bound: &ast::WindowFrameBound| {
        matches!(bound, ast::WindowFrameBound::Preceding(Some(_)) | ast::WindowFrameBound::Following(Some(_)))
    };
    is_offset(&frame.start_bound) || frame.end_bound.as_ref().is_some_and(is_offset)
}

/// A frame by range without distances as one by groups, which is the same rows: groups need no arithmetic of their
/// keys.
fn by_groups(frame: WindowFrame) -> WindowFrame {
    let bound = |bound: WindowFrameBound| match bound {
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
    };
    WindowFrame::new_bounds(WindowFrameUnits::Groups, bound(frame.start_bound), bound(frame.end_bound))
}

fn bound_of(bound: &ast::WindowFrameBound, units: WindowFrameUnits) -> Result<WindowFrameBound> {
    Ok(match bound {
        ast::WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        ast::WindowFrameBound::Preceding(offset) => WindowFrameBound::Preceding(offset_of(offset, units)?),
        ast::WindowFrameBound::Following(offset) => WindowFrameBound::Following(offset_of(offset, units)?),
    })
}

/// How far a bound is: a count of rows or groups, or, as text, a distance in the type of the key; null without a bound.
fn offset_of(offset: &Option<Box<ast::Expr>>, units: WindowFrameUnits) -> Result<ScalarValue> {
    let is_range = units == WindowFrameUnits::Range;
    let Some(offset) = offset else {
        return Ok(if is_range { ScalarValue::Utf8(None) } else { ScalarValue::UInt64(None) });
    };
    let text = match &**offset {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) | ast::Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        ast::Expr::Interval(interval) if is_range => match &*interval.value {
            ast::Expr::Value(value) => match (&value.value, &interval.leading_field) {
                (ast::Value::SingleQuotedString(text), None) => Some(text.clone()),
                (ast::Value::SingleQuotedString(text), Some(field)) => Some(format!("{text} {field}")),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let text =
        text.ok_or_else(|| unsupported("a bound of a frame that is not a literal is not supported"))?;
    if is_range {
        return Ok(ScalarValue::Utf8(Some(text)));
    }
    let rows = text.parse().map_err(|_| {
        Error::new(SqlState(*b"22P02"), format!("invalid input syntax for type bigint: \"{text}\""))
    })?;
    Ok(ScalarValue::UInt64(Some(rows)))
}

/// What a key of `ORDER BY` sorts by.
pub(super) fn sort_of(key: Typed, options: &ast::OrderByOptions) -> Sort {
    let asc = options.asc.unwrap_or(true);
    Sort::new(key.expr, asc, options.nulls_first.unwrap_or(!asc))
}
