//! Values that are equal and look different: `1 day` and `24:00` are, `1` and `1.0` within `jsonb`, and zeros of both
//! signs. What groups rows compares values as they are kept, so one stands for all that are equal to it before.

use super::{Binder, Typed};
use crate::failure::inbound;
use datafusion::common::Column;
use datafusion::functions_window::nth_value::first_value_udwf;
use datafusion::logical_expr::expr::{Sort, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{is_float, looks_different};
use fabius_value::Result;

impl Binder<'_> {
    /// A plan with the same columns, in which equal values of some of them look the same.
    pub(super) fn represented(
        &mut self,
        plan: LogicalPlan,
        columns: &[(Column, SqlType)],
    ) -> Result<LogicalPlan> {
        let end = || ScalarValue::UInt64(None);
        let (start, end) = (WindowFrameBound::Preceding(end()), WindowFrameBound::Following(end()));
        let whole = WindowFrame::new_bounds(WindowFrameUnits::Rows, start, end);
        let mut windows: Vec<(Column, Expr)> = Vec::new();
        for (column, sql_type) in columns.iter().filter(|(_, sql_type)| looks_different(sql_type)) {
            if windows.iter().any(|(known, _)| known == column) {
                continue;
            }
            let value = Expr::Column(column.clone());
            let key = self.sortable(Typed::new(value.clone(), sql_type.clone()))?.expr;
            let least = value.clone();
            let first = WindowFunction {
                fun: WindowFunctionDefinition::WindowUDF(first_value_udwf()),
                params: WindowFunctionParams {
                    args: vec![value],
                    partition_by: vec![key],
                    // The same one wherever it is asked for.
                    order_by: vec![Sort::new(least, true, false)],
                    window_frame: whole.clone(),
                    filter: None,
                    null_treatment: None,
                    distinct: false,
                },
            };
            windows.push((column.clone(), Expr::WindowFunction(Box::new(first))));
        }
        if windows.is_empty() {
            return Ok(plan);
        }
        let shown: Vec<Expr> = plan
            .schema()
            .iter()
            .map(|(qualifier, field)| {
                let own = Column::new(qualifier.cloned(), field.name());
                match windows.iter().find(|(column, _)| *column == own) {
                    Some((_, window)) => {
                        Expr::Column(Column::new_unqualified(window.schema_name().to_string()))
                            .alias_qualified(qualifier.cloned(), field.name())
                    }
                    None => Expr::Column(own),
                }
            })
            .collect();
        let windows = windows.into_iter().map(|(_, window)| window).collect::<Vec<_>>();
        LogicalPlanBuilder::window_plan(plan, windows)
            .and_then(|plan| LogicalPlanBuilder::from(plan).project(shown))
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)
    }

    /// What a value is compared by where it is compared as it is kept.
    pub(super) fn compared_by(&mut self, value: Typed) -> Result<Typed> {
        let is_other = is_float(&value.sql_type) || looks_different(&value.sql_type);
        if is_other { self.sortable(value) } else { Ok(value) }
    }
}
