//! Calls of aggregates, and of functions over windows.

use super::call::WHOLE_ROW;
use super::grouping::asked_within;
use super::input_order::each_once;
use super::operator::plain_binary;
use super::scope::{has_column, outward};
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
use datafusion::logical_expr::{AggregateUDF, Cast, Expr, Operator, WindowFunctionDefinition};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::{self, WrittenCall};
use fabius_sql_meaning::functions::aggregate::{Aggregate, Bits, Regression, Statistic};
use fabius_sql_meaning::functions::operator::Operation;
use fabius_sql_meaning::functions::over_window::OverWindow;
use fabius_sql_meaning::functions::{Body, Definition, Kind};
use fabius_sql_meaning::sql_type::{QUOTIENT, SqlType};
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
        if name == "grouping" {
            let columns = arguments.into_iter().map(|typed| typed.expr).collect();
            let grouping = self.make(aggregate::grouping::grouping_udaf(), columns, shape)?;
            return Ok(Typed::new(grouping, SqlType::Int));
        }
        let definition = analysis::call_of_rows(self, name, call, &arguments)?;
        let Body::Aggregate(of) = definition.body else { return Err(self.no_function(name, &arguments)) };
        self.aggregate_of(of, definition, arguments, shape)
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
                self.levels.iter().rposition(|level| level.scope.has_relation(None, &relation))
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
                let level = self.levels.iter().rposition(|level| has_column(&level.scope, &column));
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
        let mut arguments = match call.arguments {
            _ if call.is_of_whole_rows() => Vec::new(),
            // Whole rows: those that an outer join has not found are none.
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(relation))] => {
                let relation = parts_of(relation).pop().unwrap_or_default();
                self.presence(&relation)?.into_iter().collect()
            }
            list => self.arguments(list)?,
        };
        if !call.within_group.is_empty() {
            for key in call.within_group {
                arguments.push(self.expression(&key.expr)?);
            }
            order_by = self.sort_keys(call.within_group)?;
        }
        let filter = match call.filter {
            Some(filter) => Some(Box::new(self.truth(filter, "FILTER")?)),
            None => None,
        };
        Ok((arguments, Shape { over: call.over, distinct: call.is_distinct, filter, order_by }))
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

    /// `percentile_cont`, `percentile_disc` and `mode`, over values that are gathered first; these are the last of the
    /// arguments.
    fn of_ordered(
        &mut self,
        definition: &'static Definition,
        arguments: Vec<Typed>,
        shape: Shape<'_>,
    ) -> Result<Typed> {
        let is_ascending = shape.order_by.first().is_none_or(|sort| sort.asc);
        let mut arguments = self.settled(definition, arguments)?.0;
        let Some(value) = arguments.pop() else { return Err(self.no_function(&definition.name, &[])) };
        let mut shape = Shape { order_by: Vec::new(), ..shape };
        let value = without_nulls(value, &mut shape);
        arguments.insert(0, self.sorted_array(value, shape, is_ascending, false)?);
        self.function(&format!("fabius_{}", definition.name), arguments)
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

    fn aggregate_of(
        &mut self,
        of: Aggregate,
        definition: &'static Definition,
        mut arguments: Vec<Typed>,
        shape: Shape<'_>,
    ) -> Result<Typed> {
        match of {
            Aggregate::Count => {
                let argument = match arguments.pop() {
                    None => Expr::Literal(ScalarValue::Int64(Some(1)), None),
                    Some(typed) if shape.distinct => {
                        let typed = self.known(typed)?;
                        self.compared_by(typed)?.expr
                    }
                    Some(typed) => self.known(typed)?.expr,
                };
                let count = self.make(aggregate::count::count_udaf(), vec![argument], shape)?;
                Ok(Typed::new(count, SqlType::BigInt))
            }
            Aggregate::OfOrdered(_) => self.of_ordered(definition, arguments, shape),
            Aggregate::Statistic(statistic) => {
                let arguments = self.settled(definition, arguments)?.0;
                self.statistic(statistic, arguments, shape)
            }
            Aggregate::JsonObject => match <[Typed; 2]>::try_from(arguments) {
                Ok([key, value]) => {
                    let is_binary = definition.returns == Kind::Is(SqlType::JsonB);
                    self.json_object(is_binary, key, value, shape)
                }
                Err(arguments) => Err(self.no_function(&definition.name, &arguments)),
            },
            Aggregate::Text => match <[Typed; 2]>::try_from(self.settled(definition, arguments)?.0) {
                Ok([value, separator]) => self.text_of_rows(value, separator, shape),
                Err(arguments) => Err(self.no_function(&definition.name, &arguments)),
            },
            _ => match <[Typed; 1]>::try_from(arguments) {
                Ok([value]) => self.aggregate_of_one(of, definition, value, shape),
                Err(arguments) => Err(self.no_function(&definition.name, &arguments)),
            },
        }
    }

    /// An aggregate of one value of each row.
    fn aggregate_of_one(
        &mut self,
        of: Aggregate,
        definition: &'static Definition,
        value: Typed,
        shape: Shape<'_>,
    ) -> Result<Typed> {
        let parameter = &definition.parameters[0];
        if let (Kind::Is(SqlType::Interval), Some(aggregate)) = (parameter, IntervalAggregate::of(of)) {
            let value = self.coerce(value, &SqlType::Interval)?;
            let interval = self.make(aggregate.function(), vec![value.expr], shape)?;
            return Ok(Typed::new(interval, SqlType::Interval));
        }
        let (function, value) = match of {
            Aggregate::Sum | Aggregate::Average => {
                return self.sum_of_rows(of == Aggregate::Average, definition, value, shape);
            }
            Aggregate::JsonArray => {
                return self.json_of_rows(definition.returns == Kind::Is(SqlType::JsonB), value, shape);
            }
            Aggregate::Minimum | Aggregate::Maximum => {
                let value = match parameter {
                    Kind::Is(SqlType::Text) => self.coerce(value, &SqlType::Text)?,
                    _ => self.known(value)?,
                };
                let function = match of {
                    Aggregate::Minimum => aggregate::min_max::min_udaf(),
                    _ => aggregate::min_max::max_udaf(),
                };
                (function, value)
            }
            Aggregate::Truth { is_of_all } => {
                let function = match is_of_all {
                    true => aggregate::bool_and_or::bool_and_udaf(),
                    false => aggregate::bool_and_or::bool_or_udaf(),
                };
                (function, self.coerce(value, &SqlType::Boolean)?)
            }
            Aggregate::Bits(bits) => {
                let function = match bits {
                    Bits::And => aggregate::bit_and_or_xor::bit_and_udaf(),
                    Bits::Or => aggregate::bit_and_or_xor::bit_or_udaf(),
                    Bits::Xor => aggregate::bit_and_or_xor::bit_xor_udaf(),
                };
                (function, value)
            }
            _ => return self.array_of_rows(value, shape),
        };
        Ok(Typed::new(self.make(function, vec![value.expr], shape)?, value.sql_type))
    }

    /// `sum` and `avg` of numbers.
    fn sum_of_rows(
        &mut self,
        is_average: bool,
        definition: &'static Definition,
        value: Typed,
        shape: Shape<'_>,
    ) -> Result<Typed> {
        const WHOLE: SqlType = SqlType::Numeric(Some((38, 0)));
        let (held, returns) = match (&definition.parameters[0], &definition.returns) {
            (Kind::Is(SqlType::Numeric(_)), _) => {
                let numeric = SqlType::computed(value.sql_type.scale(), value.sql_type.is_free());
                (numeric.clone(), numeric)
            }
            (_, Kind::Is(SqlType::Numeric(_))) => (WHOLE, WHOLE),
            (_, Kind::Is(SqlType::BigInt)) => (SqlType::BigInt, SqlType::BigInt),
            (_, Kind::Is(SqlType::Real)) => (SqlType::Double, SqlType::Real),
            _ => (SqlType::Double, SqlType::Double),
        };
        let value = self.coerce(value, &held)?.expr;
        if is_average && held == SqlType::Double {
            let mean = self.make(aggregate::average::avg_udaf(), vec![value], shape)?;
            return Ok(Typed::new(mean, SqlType::Double));
        }
        let sum = self.make(aggregate::sum::sum_udaf(), vec![value.clone()], shape.clone())?;
        if !is_average {
            return Ok(Typed::new(sum, returns));
        }
        let count = self.make(aggregate::count::count_udaf(), vec![value], shape)?;
        let count = self.coerce(Typed::new(count, SqlType::BigInt), &WHOLE)?;
        Ok(Typed::new(Arithmetic::expression(Operation::Divide, sum, count.expr, &QUOTIENT), QUOTIENT))
    }

    /// `array_agg`
    fn array_of_rows(&mut self, value: Typed, shape: Shape<'_>) -> Result<Typed> {
        if shape.distinct {
            let value = self.known(value)?;
            return self.distinct_array(value, shape);
        }
        let value = match value.flavor {
            Flavor::Named(_) => self.cast(value, &SqlType::Text)?,
            _ => self.known(value)?,
        };
        let array = self.make(aggregate::array_agg::array_agg_udaf(), vec![value.expr], shape)?;
        Ok(Typed::new(array, SqlType::Array(Box::new(value.sql_type))))
    }

    /// `string_agg`
    fn text_of_rows(&mut self, value: Typed, separator: Typed, mut shape: Shape<'_>) -> Result<Typed> {
        let sql_type = value.sql_type.clone();
        let is_text = sql_type == SqlType::Text;
        let is_known = matches!(separator.expr, Expr::Literal(..));
        if shape.distinct && !(is_text && is_known) {
            let message = "string_agg (DISTINCT) of bytea or with a separator that is computed";
            return Err(unsupported(format!("{message} is not supported")));
        }
        if shape.distinct {
            let array = self.distinct_array(without_nulls(value, &mut shape), shape)?;
            return self.function("array_to_string", vec![array, separator]);
        }
        if is_text && is_known {
            return Ok(Typed::new(self.joined(vec![value.expr, separator.expr], shape)?, sql_type));
        }
        let value = without_nulls(value, &mut shape);
        let arrays = [value, separator].map(|typed| {
            let array = self.make(aggregate::array_agg::array_agg_udaf(), vec![typed.expr], shape.clone())?;
            Ok(Typed::new(array, SqlType::Array(Box::new(sql_type.clone()))))
        });
        let name = if is_text { "fabius_joined" } else { "fabius_joined_bytes" };
        self.function(name, arrays.into_iter().collect::<Result<_>>()?)
    }

    /// `json_agg`
    fn json_of_rows(&mut self, is_binary: bool, value: Typed, shape: Shape<'_>) -> Result<Typed> {
        // PostgreSQL begins a line with each row or array.
        let is_row = matches!(&value.expr, Expr::ScalarFunction(call) if call.name() == WHOLE_ROW);
        let has_lines = !is_binary && (is_row || matches!(value.sql_type, SqlType::Array(_)));
        let separator = if has_lines { ", \n " } else { ", " };
        let item = self.function(if is_binary { "fabius_jsonb" } else { "fabius_json" }, vec![value])?;
        let joined = self.joined(vec![item.expr, text_literal(separator)], shape)?;
        Ok(Typed::new(enclosed("[", joined, "]"), item.sql_type))
    }

    /// A figure of statistics, of doubles.
    fn statistic(&mut self, statistic: Statistic, arguments: Vec<Typed>, shape: Shape<'_>) -> Result<Typed> {
        let function = match statistic {
            Statistic::DeviationOfSample => aggregate::stddev::stddev_udaf(),
            Statistic::DeviationOfPopulation => aggregate::stddev::stddev_pop_udaf(),
            Statistic::VarianceOfSample => aggregate::variance::var_samp_udaf(),
            Statistic::VarianceOfPopulation => aggregate::variance::var_pop_udaf(),
            Statistic::Correlation => aggregate::correlation::corr_udaf(),
            Statistic::CovarianceOfSample => aggregate::covariance::covar_samp_udaf(),
            Statistic::CovarianceOfPopulation => aggregate::covariance::covar_pop_udaf(),
            Statistic::Regression(of) => match of {
                Regression::Count => aggregate::regr::regr_count_udaf(),
                Regression::Slope => aggregate::regr::regr_slope_udaf(),
                Regression::Intercept => aggregate::regr::regr_intercept_udaf(),
                Regression::Determination => aggregate::regr::regr_r2_udaf(),
                Regression::AverageX => aggregate::regr::regr_avgx_udaf(),
                Regression::AverageY => aggregate::regr::regr_avgy_udaf(),
                Regression::SquaresX => aggregate::regr::regr_sxx_udaf(),
                Regression::SquaresY => aggregate::regr::regr_syy_udaf(),
                Regression::Products => aggregate::regr::regr_sxy_udaf(),
            },
        };
        let arguments: Vec<Expr> = arguments.into_iter().map(|typed| typed.expr).collect();
        let value = arguments.first().cloned();
        let mut figure = self.make(function, arguments, shape.clone())?;
        match (statistic, value) {
            (Statistic::Regression(Regression::Count), _) => {
                // DataFusion counts without a sign.
                let counted = crate::arrow_column::arrow_type(&SqlType::BigInt);
                return Ok(Typed::new(Expr::Cast(Cast::new(Box::new(figure), counted)), SqlType::BigInt));
            }
            (
                Statistic::DeviationOfSample
                | Statistic::DeviationOfPopulation
                | Statistic::VarianceOfSample
                | Statistic::VarianceOfPopulation,
                Some(value),
            ) => {
                // One value that is infinite or no number leaves no number.
                let zero = Expr::Literal(ScalarValue::Float64(Some(0.0)), None);
                let nothing = plain_binary(value, Operator::Multiply, zero);
                let nothing = self.make(aggregate::sum::sum_udaf(), vec![nothing], shape)?;
                figure = plain_binary(figure, Operator::Plus, nothing);
            }
            _ => {}
        }
        Ok(Typed::new(figure, SqlType::Double))
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
    pub(super) fn window_call(&mut self, name: &str, call: &WrittenCall<'_>) -> Result<Typed> {
        let arguments = match call.is_of_whole_rows() {
            true => Vec::new(),
            false => self.arguments(call.arguments)?,
        };
        let definition = analysis::call_of_rows(self, name, call, &arguments)?;
        let (Body::OverWindow(of), Some(over)) = (definition.body, call.over) else {
            return Err(self.no_function(name, &arguments));
        };
        let (mut arguments, sql_type) = self.settled(definition, arguments)?;
        if matches!(of, OverWindow::Lag | OverWindow::Lead) && arguments.len() == 1 {
            arguments.push(Typed::literal(ScalarValue::Int32(Some(1)), SqlType::Int));
        }
        let count = arguments.len();
        let function = match of {
            OverWindow::RowNumber => window::row_number::row_number_udwf(),
            OverWindow::Rank => window::rank::rank_udwf(),
            OverWindow::DenseRank => window::rank::dense_rank_udwf(),
            OverWindow::PercentRank => window::rank::percent_rank_udwf(),
            OverWindow::CumulativeDistribution => window::cume_dist::cume_dist_udwf(),
            OverWindow::First => window::nth_value::first_value_udwf(),
            OverWindow::Last => window::nth_value::last_value_udwf(),
            OverWindow::Tile => Window::Tile.function(count),
            OverWindow::Nth => Window::Nth.function(count),
            OverWindow::Lag => Window::Lag.function(count),
            OverWindow::Lead => Window::Lead.function(count),
        };
        let function = WindowFunctionDefinition::WindowUDF(function);
        let arguments = arguments.into_iter().map(|typed| typed.expr).collect();
        let value = self.over(function, arguments, over, None, false)?;
        if !matches!(of, OverWindow::RowNumber | OverWindow::Rank | OverWindow::DenseRank) {
            return Ok(Typed::new(value, sql_type));
        }
        // DataFusion counts without a sign.
        let counted = crate::arrow_column::arrow_type(&sql_type);
        Ok(Typed::new(Expr::Cast(Cast::new(Box::new(value), counted)), sql_type))
    }
}

/// What stands around an aggregate's arguments.
#[derive(Clone)]
struct Shape<'a> {
    over: Option<&'a ast::WindowType>,
    distinct: bool,
    filter: Option<Box<Expr>>,
    /// What `ORDER BY` says, also that of `WITHIN GROUP`.
    order_by: Vec<Sort>,
}

/// A value whose nulls an aggregate leaves out.
fn without_nulls(value: Typed, shape: &mut Shape<'_>) -> Typed {
    let is_there = Expr::IsNotNull(Box::new(value.expr.clone()));
    shape.filter = Some(Box::new(match shape.filter.take() {
        Some(filter) => plain_binary(*filter, Operator::And, is_there),
        None => is_there,
    }));
    value
}

fn text_literal(text: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8(Some(text.to_string())), None)
}

fn concatenated(left: Expr, right: Expr) -> Expr {
    plain_binary(left, Operator::StringConcat, right)
}

fn enclosed(open: &str, inner: Expr, close: &str) -> Expr {
    concatenated(concatenated(text_literal(open), inner), text_literal(close))
}
