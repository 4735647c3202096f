//! Calls of aggregates, and of functions over windows.

use super::call::WHOLE_ROW;
use super::grouping::asked_within;
use super::input_order::each_once;
use super::scope::outward;
use super::scope::unknown;
use super::{Binder, Flavor, Typed, parts_of};
use crate::failure::{inbound, no_aggregates_in, unsupported};
use crate::functions::in_order::in_order;
use crate::functions::interval::IntervalAggregate;
use crate::functions::operator::Arithmetic;
use crate::functions::window::Window;
use datafusion::arrow::compute::SortOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate as aggregate;
use datafusion::functions_window as window;
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::{AggregateUDF, Cast, Expr, WindowFunctionDefinition, WindowUDF};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::WrittenCall;
use fabius_sql_meaning::functions::operator::Operation;
use fabius_sql_meaning::sql_type::{QUOTIENT, SqlType};
use fabius_sql_meaning::type_rules::{is_integer, is_number};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::sync::Arc;

fn nested_aggregates() -> Error {
    Error::new(SqlState(*b"42803"), "aggregate function calls cannot be nested")
}

impl Binder<'_> {
    /// A call of an aggregate.
    pub(super) fn aggregate(&mut self, name: &str, call: &WrittenCall<'_>) -> Result<Typed> {
        let is_window = call.over.is_some();
        if !is_window && let Some(outer) = self.level_of_aggregate(call)? {
            return self.aggregate_within(outer, name, call);
        }
        if let Some(level) = self.levels.last_mut()
            && !is_window
        {
            if let Some(clause) = level.clause {
                return Err(no_aggregates_in(clause));
            }
            if level.in_aggregate {
                return Err(nested_aggregates());
            }
            level.aggregates += 1;
            level.in_aggregate = true;
        }
        let inner = self.aggregate_parts(call);
        if let Some(level) = self.levels.last_mut()
            && !is_window
        {
            level.in_aggregate = false;
        }
        let (arguments, shape) = inner?;
        self.aggregate_of(name, arguments, shape)
    }

    /// The query around this one that an aggregate is over, if it is not over this one's rows: the innermost of which
    /// its arguments name columns (SQL:2016, 6.10, syntax rule 5).
    fn level_of_aggregate(&mut self, call: &WrittenCall<'_>) -> Result<Option<usize>> {
        if self.levels.len() < 2 || call.arguments.is_empty() {
            return Ok(None);
        }
        let own = self.levels.len() - 1;
        let was_inside = self.levels.last_mut().map(|level| std::mem::replace(&mut level.in_aggregate, true));
        let parts = self.aggregate_parts(call);
        if let (Some(level), Some(was_inside)) = (self.levels.last_mut(), was_inside) {
            level.in_aggregate = was_inside;
        }
        let (arguments, shape) = parts?;
        let keys = shape.order_by.iter().map(|sort| &sort.expr);
        let parts = arguments.iter().map(|typed| &typed.expr).chain(keys).chain(shape.filter.as_deref());
        // Whole rows that are there whatever happens are no expression.
        let of_whole_rows = call.arguments.iter().filter_map(|argument| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(relation)) => {
                let relation = parts_of(relation).pop()?;
                self.levels.iter().rposition(|level| level.scope.has_relation(&relation))
            }
            _ => None,
        });
        let (mut innermost, mut innermost_aggregate) = (of_whole_rows.max(), None);
        for part in parts {
            let mut named = asked_within(part);
            part.apply(|part| {
                match part {
                    Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => {
                        named.push(column.clone())
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .map_err(inbound)?;
            for column in named {
                let level = self.levels.iter().rposition(|level| level.scope.has_column(&column));
                innermost = innermost.max(level);
                let of_aggregate = self.levels.iter().rposition(|level| level.has_aggregate_column(&column));
                innermost_aggregate = innermost_aggregate.max(of_aggregate);
            }
        }
        if innermost_aggregate.is_some() && innermost_aggregate >= innermost {
            return Err(nested_aggregates());
        }
        Ok(innermost.max(innermost_aggregate).filter(|level| *level < own))
    }

    /// An aggregate over the rows of a query around this one, for which it is a value.
    fn aggregate_within(&mut self, outer: usize, name: &str, call: &WrittenCall<'_>) -> Result<Typed> {
        let inner = self.levels.split_off(outer + 1);
        let bound = self.aggregate(name, call);
        let typed = bound.map(|typed| self.seen_within(outer, typed));
        self.levels.extend(inner);
        typed.map(outward)
    }

    /// What has aggregates over a query's rows, as a column that queries within it see.
    pub(super) fn seen_within(&mut self, level: usize, typed: Typed) -> Typed {
        let fresh = self.fresh_column();
        let Some(level) = self.levels.get_mut(level) else {
            return Typed { expr: Expr::Column(fresh), ..typed };
        };
        // The same aggregate is the same column: a key of GROUP BY within has to be found again.
        let known = level.aggregates_within.iter().find(|(known, _)| known.expr == typed.expr);
        let column = known.map(|(_, column)| column.clone()).unwrap_or_else(|| {
            level.aggregates_within.push((typed.clone(), fresh.clone()));
            fresh
        });
        Typed { expr: Expr::Column(column), ..typed }
    }

    fn aggregate_parts<'c>(&mut self, call: &WrittenCall<'c>) -> Result<(Vec<Typed>, Shape<'c>)> {
        let mut order_by = each_once(self.sort_keys(call.order_by)?);
        let arguments = match call.arguments {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)] => Vec::new(),
            // Whole rows: those that an outer join has not found are none.
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(relation))] => {
                let relation = parts_of(relation).pop().unwrap_or_default();
                self.presence(&relation)?.into_iter().collect()
            }
            list => self.arguments(list)?,
        };
        let mut ordered = None;
        if let [key] = call.within_group {
            let typed = self.expression(&key.expr)?;
            ordered = Some(self.known(typed)?);
            order_by = self.sort_keys(call.within_group)?;
        } else if !call.within_group.is_empty() {
            return Err(unsupported("WITHIN GROUP with several keys is not supported"));
        }
        let filter = match call.filter {
            Some(filter) => Some(Box::new(self.truth(filter, "FILTER")?)),
            None => None,
        };
        Ok((arguments, Shape { over: call.over, distinct: call.is_distinct, filter, order_by, ordered }))
    }

    /// Values once each, in order: by the shape's order, else ascending.
    fn distinct_array(&mut self, value: Typed, shape: Shape<'_>) -> Result<Typed> {
        let (is_ascending, nulls_first) =
            shape.order_by.first().map_or((true, false), |sort| (sort.asc, sort.nulls_first));
        if shape.order_by.iter().any(|sort| sort.expr != value.expr) {
            return Err(Error::new(
                SqlState(*b"42P10"),
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
            ));
        }
        let values =
            self.sorted_array(value, Shape { order_by: Vec::new(), ..shape }, is_ascending, nulls_first)?;
        self.function("fabius_once_each", vec![values])
    }

    /// The values of an aggregate as an array in order.
    fn sorted_array(
        &mut self,
        value: Typed,
        shape: Shape<'_>,
        is_ascending: bool,
        nulls_first: bool,
    ) -> Result<Typed> {
        let sql_type = SqlType::Array(Box::new(value.sql_type));
        let array = self.make(aggregate::array_agg::array_agg_udaf(), vec![value.expr], shape)?;
        let truth = |value| Typed::literal(ScalarValue::Boolean(Some(value)), SqlType::Boolean);
        let arguments = vec![Typed::new(array, sql_type), truth(is_ascending), truth(nulls_first)];
        self.function("fabius_sorted", arguments)
    }

    /// `percentile_cont`, `percentile_disc` and `mode`, over values that are gathered first.
    fn ordered_set(&mut self, name: &str, arguments: Vec<Typed>, mut shape: Shape<'_>) -> Result<Typed> {
        let [sort] = shape.order_by.as_slice() else { return Err(self.no_function(name, &arguments)) };
        let is_ascending = sort.asc;
        let Some(value) = shape.ordered.take() else { return Err(self.no_function(name, &arguments)) };
        let value = if name == "percentile_cont" && value.sql_type != SqlType::Interval {
            self.coerce(value, &SqlType::Double)?
        } else {
            value
        };
        let mut shape = Shape { order_by: Vec::new(), ..shape };
        let value = without_nulls(value, &mut shape);
        let array = self.sorted_array(value, shape, is_ascending, false)?;
        let mut all = vec![array];
        for fraction in arguments {
            let to = match &fraction.sql_type {
                SqlType::Array(_) => SqlType::Array(Box::new(SqlType::Double)),
                _ => SqlType::Double,
            };
            all.push(self.coerce(fraction, &to)?);
        }
        self.function(&format!("fabius_{name}"), all)
    }

    /// `json_object_agg`
    fn json_object(&mut self, is_binary: bool, key: Typed, value: Typed, shape: Shape<'_>) -> Result<Typed> {
        let key = match key.sql_type {
            SqlType::Char(_) => key,
            _ => self.cast(key, &SqlType::Text)?,
        };
        let key = self.function("fabius_json", vec![key])?;
        let value = self.function(if is_binary { "fabius_jsonb" } else { "fabius_json" }, vec![value])?;
        let colon = if is_binary { ": " } else { " : " };
        let pair = concatenated(concatenated(key.expr, text_literal(colon)), value.expr);
        let arguments = vec![pair, text_literal(", ")];
        let joined = self.joined(arguments, shape)?;
        let (open, close) = if is_binary { ("{", "}") } else { ("{ ", " }") };
        let object = enclosed(open, joined, close);
        match is_binary {
            // A key is there once, and keys are in the order of jsonb.
            true => self.cast(Typed::new(object, SqlType::Text), &SqlType::JsonB),
            false => Ok(Typed::new(object, SqlType::Json)),
        }
    }

    fn aggregate_of(&mut self, name: &str, arguments: Vec<Typed>, mut shape: Shape<'_>) -> Result<Typed> {
        use SqlType as T;
        if matches!(name, "percentile_cont" | "percentile_disc" | "mode") {
            return self.ordered_set(name, arguments, shape);
        }
        let wrong = |binder: &Self, arguments: &[Typed]| Err(binder.no_function(name, arguments));
        let mut arguments = arguments;
        if name == "count" {
            let argument = match arguments.pop() {
                None => Expr::Literal(ScalarValue::Int64(Some(1)), None),
                Some(typed) if shape.distinct => {
                    let typed = self.known(typed)?;
                    self.compared_by(typed)?.expr
                }
                Some(typed) => self.known(typed)?.expr,
            };
            let count = self.make(aggregate::count::count_udaf(), vec![argument], shape)?;
            return Ok(Typed::new(count, T::BigInt));
        }
        if name == "grouping" {
            let columns = arguments.into_iter().map(|typed| typed.expr).collect();
            let grouping = self.make(aggregate::grouping::grouping_udaf(), columns, shape)?;
            return Ok(Typed::new(grouping, T::Int));
        }
        let second = if arguments.len() > 1 { arguments.pop() } else { None };
        let Some(mut first) = arguments.pop() else { return wrong(self, &[]) };
        if first.sql_type == T::Interval
            && let Some(aggregate) = IntervalAggregate::named(name)
        {
            return Ok(Typed::new(self.make(aggregate.function(), vec![first.expr], shape)?, T::Interval));
        }
        match name {
            "sum" | "avg" => {
                first = match &first.sql_type {
                    T::Unknown => self.coerce(first, &T::Double)?,
                    _ => first,
                };
                let (as_type, returns) = match (&first.sql_type, name) {
                    (T::SmallInt | T::Int, "sum") => (T::BigInt, T::BigInt),
                    (T::SmallInt | T::Int | T::BigInt, _) => {
                        (T::Numeric(Some((38, 0))), T::Numeric(Some((38, 0))))
                    }
                    (T::Numeric(_), _) => {
                        let numeric = T::computed(first.sql_type.scale(), first.sql_type.is_free());
                        (numeric.clone(), numeric)
                    }
                    (T::Real, "sum") => (T::Double, T::Real),
                    (T::Real | T::Double, _) => (T::Double, T::Double),
                    _ => return wrong(self, &[first]),
                };
                let first = self.coerce(first, &as_type)?.expr;
                if name == "avg" && as_type == T::Double {
                    let mean = self.make(aggregate::average::avg_udaf(), vec![first], shape)?;
                    return Ok(Typed::new(mean, T::Double));
                }
                let sum = self.make(aggregate::sum::sum_udaf(), vec![first.clone()], shape.clone())?;
                if name == "sum" {
                    return Ok(Typed::new(sum, returns));
                }
                let count = self.make(aggregate::count::count_udaf(), vec![first], shape)?;
                let count = self.coerce(Typed::new(count, T::BigInt), &T::Numeric(Some((38, 0))))?;
                Ok(Typed::new(
                    Arithmetic::expression(Operation::Divide, sum, count.expr, &QUOTIENT),
                    QUOTIENT,
                ))
            }
            "min" | "max" => {
                let first = self.known(first)?;
                if matches!(first.sql_type, T::Boolean | T::Json | T::JsonB | T::Uuid | T::Bytea) {
                    return wrong(self, &[first]);
                }
                let sql_type =
                    if let T::VarChar(_) | T::Name = first.sql_type { T::Text } else { first.sql_type };
                let function = if name == "min" {
                    aggregate::min_max::min_udaf()
                } else {
                    aggregate::min_max::max_udaf()
                };
                Ok(Typed::new(self.make(function, vec![first.expr], shape)?, sql_type))
            }
            "bool_and" | "every" | "bool_or" => {
                if !matches!(first.sql_type, T::Boolean | T::Unknown) {
                    return wrong(self, &[first]);
                }
                let first = self.coerce(first, &T::Boolean)?.expr;
                let function = if name == "bool_or" {
                    aggregate::bool_and_or::bool_or_udaf()
                } else {
                    aggregate::bool_and_or::bool_and_udaf()
                };
                Ok(Typed::new(self.make(function, vec![first], shape)?, T::Boolean))
            }
            "array_agg" if shape.distinct && shape.over.is_none() => {
                let first = self.known(first)?;
                self.distinct_array(first, shape)
            }
            "string_agg" if shape.distinct && shape.over.is_none() && second.is_some() => {
                let (first, separator) =
                    (self.coerce(first, &T::Text)?, second.unwrap_or_else(|| unknown("")));
                let separator = self.coerce(separator, &T::Text)?;
                if !matches!(separator.expr, Expr::Literal(..)) {
                    return Err(unsupported("DISTINCT with a separator that is computed is not supported"));
                }
                let array = self.distinct_array(without_nulls(first, &mut shape), shape)?;
                self.function("array_to_string", vec![array, separator])
            }
            "array_agg" => {
                let first = match first.flavor {
                    Flavor::Named(_) => self.cast(first, &T::Text)?,
                    _ => self.known(first)?,
                };
                let sql_type = T::Array(Box::new(first.sql_type));
                Ok(Typed::new(
                    self.make(aggregate::array_agg::array_agg_udaf(), vec![first.expr], shape)?,
                    sql_type,
                ))
            }
            "string_agg" => {
                let Some(separator) = second else { return wrong(self, &[first]) };
                let to = if is_bytes(&first) || is_bytes(&separator) { T::Bytea } else { T::Text };
                let (first, separator) = (self.coerce(first, &to)?, self.coerce(separator, &to)?);
                if to == T::Text && matches!(separator.expr, Expr::Literal(..)) {
                    let arguments = vec![first.expr, separator.expr];
                    return Ok(Typed::new(self.joined(arguments, shape)?, to));
                }
                if shape.distinct {
                    let message = "string_agg (DISTINCT) of bytea or with a separator that is computed";
                    return Err(unsupported(format!("{message} is not supported")));
                }
                let first = without_nulls(first, &mut shape);
                let arrays = [first, separator].map(|typed| {
                    let gather = aggregate::array_agg::array_agg_udaf();
                    let array = self.make(gather, vec![typed.expr], shape.clone())?;
                    Ok(Typed::new(array, T::Array(Box::new(to.clone()))))
                });
                let name = if to == T::Text { "fabius_joined" } else { "fabius_joined_bytes" };
                self.function(name, arrays.into_iter().collect::<Result<_>>()?)
            }
            "json_agg" | "jsonb_agg" => {
                let to = if name == "json_agg" { "fabius_json" } else { "fabius_jsonb" };
                // PostgreSQL begins a line with each row or array.
                let is_row = matches!(&first.expr, Expr::ScalarFunction(call) if call.name() == WHOLE_ROW);
                let has_lines = name == "json_agg" && (is_row || matches!(first.sql_type, T::Array(_)));
                let separator = if has_lines { ", \n " } else { ", " };
                let item = self.function(to, vec![first])?;
                let sql_type = item.sql_type.clone();
                let arguments = vec![item.expr, text_literal(separator)];
                let joined = self.joined(arguments, shape)?;
                Ok(Typed::new(enclosed("[", joined, "]"), sql_type))
            }
            "json_object_agg" | "jsonb_object_agg" => match second {
                Some(value) => self.json_object(name.starts_with("jsonb"), first, value, shape),
                None => wrong(self, &[first]),
            },
            "bit_and" | "bit_or" | "bit_xor" => {
                if !is_integer(&first.sql_type) {
                    return wrong(self, &[first]);
                }
                let function = match name {
                    "bit_and" => aggregate::bit_and_or_xor::bit_and_udaf(),
                    "bit_or" => aggregate::bit_and_or_xor::bit_or_udaf(),
                    _ => aggregate::bit_and_or_xor::bit_xor_udaf(),
                };
                Ok(Typed::new(self.make(function, vec![first.expr], shape)?, first.sql_type))
            }
            _ => {
                if !is_number(&first.sql_type) {
                    return wrong(self, &[first]);
                }
                let function = match name {
                    "stddev" | "stddev_samp" => aggregate::stddev::stddev_udaf(),
                    "stddev_pop" => aggregate::stddev::stddev_pop_udaf(),
                    "variance" | "var_samp" => aggregate::variance::var_samp_udaf(),
                    "var_pop" => aggregate::variance::var_pop_udaf(),
                    "corr" => aggregate::correlation::corr_udaf(),
                    "covar_samp" => aggregate::covariance::covar_samp_udaf(),
                    "regr_count" => aggregate::regr::regr_count_udaf(),
                    "regr_slope" => aggregate::regr::regr_slope_udaf(),
                    "regr_intercept" => aggregate::regr::regr_intercept_udaf(),
                    "regr_r2" => aggregate::regr::regr_r2_udaf(),
                    "regr_avgx" => aggregate::regr::regr_avgx_udaf(),
                    "regr_avgy" => aggregate::regr::regr_avgy_udaf(),
                    "regr_sxx" => aggregate::regr::regr_sxx_udaf(),
                    "regr_syy" => aggregate::regr::regr_syy_udaf(),
                    "regr_sxy" => aggregate::regr::regr_sxy_udaf(),
                    _ => aggregate::covariance::covar_pop_udaf(),
                };
                let mut arguments = vec![self.coerce(first, &T::Double)?.expr];
                if let Some(second) = second {
                    arguments.push(self.coerce(second, &T::Double)?.expr);
                }
                let spreads =
                    matches!(name, "stddev" | "stddev_samp" | "stddev_pop") || name.starts_with("var");
                let infinite = arguments.first().filter(|_| spreads).cloned();
                let mut result = Typed::new(self.make(function, arguments, shape.clone())?, T::Double);
                if let Some(value) = infinite {
                    // One value that is infinite or no number leaves no number.
                    let zero = Expr::Literal(ScalarValue::Float64(Some(0.0)), None);
                    let nothing = super::operator::plain_binary(
                        value,
                        datafusion::logical_expr::Operator::Multiply,
                        zero,
                    );
                    let nothing = self.make(aggregate::sum::sum_udaf(), vec![nothing], shape)?;
                    result.expr = super::operator::plain_binary(
                        result.expr,
                        datafusion::logical_expr::Operator::Plus,
                        nothing,
                    );
                }
                if name != "regr_count" {
                    return Ok(result);
                }
                // DataFusion counts without a sign.
                let counted = Cast::new(Box::new(result.expr), crate::arrow_column::arrow_type(&T::BigInt));
                Ok(Typed::new(Expr::Cast(counted), T::BigInt))
            }
        }
    }

    fn make(&mut self, function: Arc<AggregateUDF>, arguments: Vec<Expr>, shape: Shape<'_>) -> Result<Expr> {
        match shape.over {
            Some(window) => {
                let function = WindowFunctionDefinition::AggregateUDF(function);
                self.over(function, arguments, window, shape.filter, shape.distinct)
            }
            None if self.has_another_order(function.name(), &shape) => {
                self.gather(function.name(), arguments, shape)
            }
            None => Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
                function,
                arguments,
                shape.distinct,
                shape.filter,
                shape.order_by,
                None,
            ))),
        }
    }

    /// Texts in one, with what stands between them. DataFusion makes it a large text, which no column of ours is.
    fn joined(&mut self, arguments: Vec<Expr>, shape: Shape<'_>) -> Result<Expr> {
        let joined = self.make(aggregate::string_agg::string_agg_udaf(), arguments, shape)?;
        Ok(Expr::Cast(Cast::new(Box::new(joined), datafusion::arrow::datatypes::DataType::Utf8)))
    }

    /// Whether an aggregate wants its values in another order than one before it.
    fn has_another_order(&mut self, name: &str, shape: &Shape<'_>) -> bool {
        if shape.order_by.is_empty() || !matches!(name, "array_agg" | "string_agg") {
            return false;
        }
        let Some(level) = self.levels.last_mut() else { return false };
        *level.ordering.get_or_insert_with(|| shape.order_by.clone()) != shape.order_by
    }

    /// `array_agg` or `string_agg` of values that are sorted once they are gathered.
    fn gather(&mut self, name: &str, mut arguments: Vec<Expr>, mut shape: Shape<'_>) -> Result<Expr> {
        let order_by = std::mem::take(&mut shape.order_by);
        let separator = if name == "string_agg" { arguments.pop() } else { None };
        let Some(value) = arguments.pop() else { return Err(self.no_function(name, &[])) };
        if let Some(separator) = &separator {
            if !matches!(separator, Expr::Literal(..)) {
                return Err(unsupported(
                    "aggregates in different orders with a separator that is computed are not supported",
                ));
            }
            without_nulls(Typed::new(value.clone(), SqlType::Text), &mut shape);
        }
        let array = aggregate::array_agg::array_agg_udaf();
        let mut keys = Vec::new();
        for Sort { expr, asc, nulls_first } in order_by {
            let gathered = self.make(array.clone(), vec![expr], shape.clone())?;
            keys.push((gathered, SortOptions { descending: !asc, nulls_first }));
        }
        let sorted = in_order(self.make(array, vec![value], shape)?, keys);
        let Some(separator) = separator else { return Ok(sorted) };
        let texts = Typed::new(sorted, SqlType::Array(Box::new(SqlType::Text)));
        Ok(self.function("array_to_string", vec![texts, Typed::new(separator, SqlType::Text)])?.expr)
    }

    /// A call of a function that is only one over a window.
    pub(super) fn window_call(
        &mut self,
        name: &str,
        call: &WrittenCall<'_>,
        over: &ast::WindowType,
    ) -> Result<Typed> {
        let arguments = self.arguments(call.arguments)?;
        if call.is_distinct {
            return Err(unsupported("DISTINCT is not implemented for window functions"));
        }
        if call.filter.is_some() {
            return Err(unsupported("FILTER is not implemented for non-aggregate window functions"));
        }
        let rank = match (name, arguments.len()) {
            ("row_number", 0) => Some((window::row_number::row_number_udwf(), SqlType::BigInt)),
            ("rank", 0) => Some((window::rank::rank_udwf(), SqlType::BigInt)),
            ("dense_rank", 0) => Some((window::rank::dense_rank_udwf(), SqlType::BigInt)),
            ("percent_rank", 0) => Some((window::rank::percent_rank_udwf(), SqlType::Double)),
            ("cume_dist", 0) => Some((window::cume_dist::cume_dist_udwf(), SqlType::Double)),
            _ => None,
        };
        if let Some((function, sql_type)) = rank {
            let mut expr =
                self.over(WindowFunctionDefinition::WindowUDF(function), Vec::new(), over, None, false)?;
            if sql_type == SqlType::BigInt {
                // DataFusion counts without a sign.
                let counted = crate::arrow_column::arrow_type(&sql_type);
                expr = Expr::Cast(Cast::new(Box::new(expr), counted));
            }
            return Ok(Typed::new(expr, sql_type));
        }
        let (function, arguments, sql_type) = self.window_value(name, arguments)?;
        let arguments = arguments.into_iter().map(|typed| typed.expr).collect();
        let function = WindowFunctionDefinition::WindowUDF(function);
        Ok(Typed::new(self.over(function, arguments, over, None, false)?, sql_type))
    }

    /// A function over a window that has arguments, these in their types, and the type of its result.
    fn window_value(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
    ) -> Result<(Arc<WindowUDF>, Vec<Typed>, SqlType)> {
        let count = arguments.len();
        let mut parts = arguments.clone().into_iter();
        let whole =
            |typed: &Typed| matches!(typed.sql_type, SqlType::SmallInt | SqlType::Int | SqlType::Unknown);
        if name != "ntile"
            && count < 3
            && arguments.first().is_some_and(|typed| typed.sql_type == SqlType::Unknown)
        {
            return Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                "could not determine polymorphic type because input has type unknown",
            ));
        }
        match (name, parts.next(), parts.next(), parts.next()) {
            ("ntile", Some(tiles), None, None) if whole(&tiles) => {
                let tiles = self.coerce(tiles, &SqlType::Int)?;
                Ok((Window::Tile.function(count), vec![tiles], SqlType::Int))
            }
            ("first_value" | "last_value", Some(value), None, None) => {
                let value = self.known(value)?;
                let function = match name {
                    "first_value" => window::nth_value::first_value_udwf(),
                    _ => window::nth_value::last_value_udwf(),
                };
                let sql_type = value.sql_type.clone();
                Ok((function, vec![value], sql_type))
            }
            ("nth_value", Some(value), Some(place), None) if whole(&place) => {
                let value = self.known(value)?;
                let place = self.coerce(place, &SqlType::Int)?;
                let sql_type = value.sql_type.clone();
                Ok((Window::Nth.function(count), vec![value, place], sql_type))
            }
            ("lag" | "lead", Some(value), offset, default)
                if count < 4 && offset.as_ref().is_none_or(whole) =>
            {
                let window = if name == "lag" { Window::Lag } else { Window::Lead };
                let one = Typed::literal(ScalarValue::Int32(Some(1)), SqlType::Int);
                let offset = self.coerce(offset.unwrap_or(one), &SqlType::Int)?;
                let Some(default) = default else {
                    let value = self.known(value)?;
                    let sql_type = value.sql_type.clone();
                    return Ok((window.function(2), vec![value, offset], sql_type));
                };
                let common = self.common_of([&value, &default], name);
                let common = common.map_err(|_| self.no_function(name, &arguments))?;
                let (value, default) = (self.coerce(value, &common)?, self.coerce(default, &common)?);
                Ok((window.function(3), vec![value, offset, default], common))
            }
            _ => Err(self.no_function(name, &arguments)),
        }
    }
}

/// What stands around an aggregate's arguments.
#[derive(Clone)]
struct Shape<'a> {
    over: Option<&'a ast::WindowType>,
    distinct: bool,
    filter: Option<Box<Expr>>,
    order_by: Vec<Sort>,
    /// What `WITHIN GROUP` orders.
    ordered: Option<Typed>,
}

/// A value whose nulls an aggregate leaves out.
fn without_nulls(value: Typed, shape: &mut Shape<'_>) -> Typed {
    let is_there = Expr::IsNotNull(Box::new(value.expr.clone()));
    shape.filter = Some(Box::new(match shape.filter.take() {
        Some(filter) => {
            super::operator::plain_binary(*filter, datafusion::logical_expr::Operator::And, is_there)
        }
        None => is_there,
    }));
    value
}

fn is_bytes(typed: &Typed) -> bool {
    typed.sql_type == SqlType::Bytea
}

fn text_literal(text: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8(Some(text.to_string())), None)
}

fn concatenated(left: Expr, right: Expr) -> Expr {
    super::operator::plain_binary(left, datafusion::logical_expr::Operator::StringConcat, right)
}

fn enclosed(open: &str, inner: Expr, close: &str) -> Expr {
    concatenated(concatenated(text_literal(open), inner), text_literal(close))
}
