//! Calls of functions, aggregates and window functions.

use super::coerce::{cost, is_integer, is_number};
use super::expression::unknown;
use super::{Binder, Flavor, Typed, parts_of};
use crate::query::arrow_column::{QUOTIENT, scale_of};
use crate::query::failure::unsupported;
use crate::query::functions::operator::{Arithmetic, Operation};
use crate::query::functions::{Call, Definition, FUNCTIONS, Kind, RowFunction};
use crate::sql_type::SqlType;
use datafusion::functions_aggregate as aggregate;
use datafusion::functions_window as window;
use datafusion::logical_expr::expr::Unnest;
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::{AggregateUDF, Case, Cast, Expr, WindowFunctionDefinition, WindowUDF};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::sync::Arc;

impl Binder<'_> {
    /// A call as it is written.
    pub(super) fn call(&mut self, call: &ast::Function) -> Result<Typed> {
        let path = parts_of(&call.name);
        let (schema, name) = match path.as_slice() {
            [name] => (None, name.clone()),
            [schema, name] => (Some(schema.clone()), name.clone()),
            _ => return Err(unsupported(format!("the function {} is not supported", call.name))),
        };
        if !matches!(call.parameters, ast::FunctionArguments::None) {
            return Err(unsupported(format!("parameters of {name} are not supported")));
        }
        let list = match &call.args {
            ast::FunctionArguments::None => &[][..],
            ast::FunctionArguments::List(list) => list.args.as_slice(),
            ast::FunctionArguments::Subquery(query) if name == "array" => return self.array_subquery(query),
            ast::FunctionArguments::Subquery(_) => {
                return Err(unsupported(format!("a subquery as the arguments of {name} is not supported")));
            }
        };
        let is_builtin = schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
        if is_builtin && is_aggregate(&name) {
            return self.aggregate(&name, call, list);
        }
        if is_builtin && let Some(function) = window_function(&name) {
            let Some(over) = &call.over else {
                return Err(Error::new(
                    SqlState(*b"42809"),
                    format!("window function {name} requires an OVER clause"),
                ));
            };
            return self.window_call(&name, function, list, over);
        }
        if call.over.is_some() {
            return Err(Error::new(
                SqlState(*b"42809"),
                format!("OVER specified, but {name} is not a window function nor an aggregate function"),
            ));
        }
        let arguments = self.arguments(list)?;
        if let [schema, name] = path.as_slice()
            && schema == "information_schema"
            && name == "_pg_expandarray"
        {
            let array = self.set_returning("unnest", arguments)?;
            let SqlType::Array(element) = array.sql_type else { return Ok(array) };
            let row = Typed::new(Expr::Unnest(Unnest::new(array.expr)), *element);
            return Ok(Typed { flavor: Flavor::Expanded, ..row });
        }
        if !is_builtin {
            return Err(self.no_function(&path.join("."), &arguments));
        }
        match name.as_str() {
            "coalesce" | "greatest" | "least" => self.choice(&name, arguments),
            "nullif" => self.null_if(arguments),
            _ if is_set_returning(&name) => {
                let array = self.set_returning(&name, arguments)?;
                let SqlType::Array(element) = array.sql_type.clone() else { return Ok(array) };
                Ok(Typed::new(Expr::Unnest(Unnest::new(array.expr)), *element))
            }
            _ => self.function(&name, arguments),
        }
    }

    fn arguments(&mut self, list: &[ast::FunctionArg]) -> Result<Vec<Typed>> {
        list.iter()
            .map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expression)) => {
                    match self.whole_row(expression)? {
                        Some(row) => Ok(row),
                        None => self.expression(expression),
                    }
                }
                ast::FunctionArg::Named { .. } | ast::FunctionArg::ExprNamed { .. } => {
                    Err(unsupported("arguments by name are not supported in this query"))
                }
                other => Err(unsupported(format!("the argument {other} is not supported"))),
            })
            .collect()
    }

    /// A relation's row, by the relation's name, as JSON.
    fn whole_row(&mut self, expression: &ast::Expr) -> Result<Option<Typed>> {
        let ast::Expr::Identifier(name) = expression else { return Ok(None) };
        let name = super::name_of(name);
        if self.find_column(std::slice::from_ref(&name))?.is_some() {
            return Ok(None);
        }
        let level = self.levels.iter().rev().find(|level| level.scope.has_relation(&name));
        let Some(level) = level else { return Ok(None) };
        let own = level.scope.columns.iter().filter(|column| column.relation == name && !column.is_hidden);
        let names: Vec<String> = own.map(|column| column.output.name.clone()).collect();
        let keys = names.iter().map(|name| vec![Value::Text(name.clone())]).collect();
        let keys_type = SqlType::Array(Box::new(SqlType::Text));
        let keys = crate::query::arrow_column::scalar(&Value::List(keys), &keys_type)?;
        let mut arguments = vec![Typed::literal(keys, keys_type)];
        for column in names {
            let path = [name.clone(), column];
            arguments.push(self.find_column(&path)?.ok_or_else(|| self.no_column(&path))?);
        }
        self.function("fabius_row_json", arguments).map(Some)
    }

    fn no_function(&self, name: &str, arguments: &[Typed]) -> Error {
        let types: Vec<String> = arguments.iter().map(|typed| typed.sql_type.to_string()).collect();
        let is_defined = self.environment.catalog.functions.keys().any(|key| key.name == *name);
        if is_defined {
            return unsupported(format!("the function {name} is not supported in this query"))
                .with_detail("functions of the database can be called by queries that are programs");
        }
        Error::new(SqlState::UNDEFINED_FUNCTION, format!("function {name}({}) does not exist", types.join(", ")))
            .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
    }

    /// A call of a function of the table, by the overload that fits best.
    pub(super) fn function(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let (definition, returns) = self.resolve(name, &arguments)?;
        self.apply(definition, arguments, returns)
    }

    /// A call of a function whose result type is said.
    pub(super) fn function_returning(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        returns: SqlType,
    ) -> Result<Typed> {
        let (definition, _) = self.resolve(name, &arguments)?;
        self.apply(definition, arguments, Some(returns))
    }

    fn resolve(&self, name: &str, arguments: &[Typed]) -> Result<(&'static Definition, Option<SqlType>)> {
        let all = FUNCTIONS.get(name).map(Vec::as_slice).unwrap_or_default();
        let fitting = all.iter().filter_map(|definition| {
            let total = fit(definition, arguments)?;
            Some((total, definition))
        });
        let best = fitting.min_by_key(|(total, _)| *total);
        best.map(|(_, definition)| (definition, None)).ok_or_else(|| self.no_function(name, arguments))
    }

    fn apply(
        &mut self,
        definition: &'static Definition,
        arguments: Vec<Typed>,
        returns: Option<SqlType>,
    ) -> Result<Typed> {
        let kinds = (0..arguments.len()).map(|at| {
            definition.parameters.get(at).or_else(|| definition.parameters.last()).unwrap_or(&Kind::Any)
        });
        let kinds: Vec<&Kind> = kinds.collect();
        // What `anyelement` stands for: the type that all its arguments have in common.
        let mut element = SqlType::Unknown;
        for (argument, kind) in arguments.iter().zip(&kinds) {
            let sql_type = match (kind, &argument.sql_type) {
                (Kind::Element, sql_type) => sql_type,
                (Kind::Array, SqlType::Array(inner)) => inner,
                _ => continue,
            };
            element = super::coerce::common_type(&element, sql_type)
                .ok_or_else(|| self.no_function(&definition.name, &arguments))?;
        }
        if element == SqlType::Unknown {
            element = SqlType::Text;
        }
        let mut settled = Vec::with_capacity(arguments.len());
        for (argument, kind) in arguments.into_iter().zip(kinds) {
            settled.push(match kind {
                // Numerics keep their scales, moments their zones; what is the same underneath stays.
                Kind::Is(SqlType::Numeric(None)) if matches!(argument.sql_type, SqlType::Numeric(_)) => {
                    argument
                }
                Kind::Is(SqlType::Numeric(None)) if is_integer(&argument.sql_type) => {
                    self.coerce(argument, &SqlType::Numeric(Some((38, 0))))?
                }
                Kind::Is(SqlType::Text) if matches!(argument.sql_type, SqlType::Json | SqlType::JsonB) => {
                    super::operator::as_text(argument)
                }
                Kind::Is(sql_type) => self.coerce(argument, sql_type)?,
                Kind::Any => self.known(argument)?,
                Kind::Element => self.coerce(argument, &element)?,
                Kind::Array => self.coerce(argument, &SqlType::Array(Box::new(element.clone())))?,
            });
        }
        let returns = returns.unwrap_or_else(|| match &definition.returns {
            Kind::Is(SqlType::Numeric(None)) => numeric_returned(&definition.name, &settled),
            Kind::Is(sql_type) => sql_type.clone(),
            Kind::Element | Kind::Any => element.clone(),
            Kind::Array => SqlType::Array(Box::new(element.clone())),
        });
        let call = Call {
            types: settled.iter().map(|typed| typed.sql_type.clone()).collect(),
            returns: returns.clone(),
            environment: self.environment.clone(),
        };
        let arguments = settled.into_iter().map(|typed| typed.expr).collect();
        Ok(Typed::new(RowFunction::expression(definition, call, arguments), returns))
    }

    pub(super) fn choice(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let common = self.common_of(arguments.iter().map(|typed| &typed.sql_type), &name.to_uppercase())?;
        let arguments =
            arguments.into_iter().map(|typed| self.coerce(typed, &common).map(|typed| typed.expr));
        let arguments: Vec<Expr> = arguments.collect::<Result<_>>()?;
        use datafusion::functions::core::expr_fn;
        let expr = match (name, arguments.len()) {
            (_, 0) => return Err(Error::new(SqlState::SYNTAX_ERROR, format!("{name} needs an argument"))),
            (_, 1) => arguments.into_iter().next().unwrap_or_default(),
            ("coalesce", _) => expr_fn::coalesce(arguments),
            ("greatest", _) => expr_fn::greatest(arguments),
            _ => expr_fn::least(arguments),
        };
        Ok(Typed::new(expr, common))
    }

    fn null_if(&mut self, arguments: Vec<Typed>) -> Result<Typed> {
        let mut arguments = arguments.into_iter();
        let (Some(value), Some(other), None) = (arguments.next(), arguments.next(), arguments.next()) else {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "NULLIF has two arguments"));
        };
        let value = match (&value.sql_type, &other.sql_type) {
            (SqlType::Unknown, SqlType::Unknown) => self.known(value)?,
            _ => value,
        };
        let equal = self.comparison(value.clone(), "=", other)?;
        let null = crate::query::arrow_column::scalar(&fabius_value::Value::Null, &value.sql_type)?;
        let case = Case::new(
            None,
            vec![(Box::new(equal.expr), Box::new(Expr::Literal(null, None)))],
            Some(Box::new(value.expr)),
        );
        Ok(Typed::new(Expr::Case(case), value.sql_type))
    }

    /// The array that a set-returning function's rows come from.
    pub(super) fn set_returning(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let truth = |value| Typed::literal(ScalarValue::Boolean(Some(value)), SqlType::Boolean);
        let mut arguments = arguments;
        match name {
            "unnest" => match arguments.pop() {
                Some(array) if arguments.is_empty() => match array.sql_type {
                    SqlType::Array(_) => Ok(array),
                    SqlType::Unknown => self.coerce(array, &SqlType::Array(Box::new(SqlType::Text))),
                    _ => Err(self.no_function("unnest", &[array])),
                },
                _ => Err(self.no_function("unnest", &arguments)),
            },
            "generate_series" => {
                let is_whole = arguments
                    .iter()
                    .all(|typed| is_integer(&typed.sql_type) || typed.sql_type == SqlType::Unknown);
                if arguments.iter().any(|typed| matches!(typed.sql_type, SqlType::Numeric(_))) {
                    return Err(unsupported("generate_series of numeric is not supported"));
                }
                if !is_whole {
                    let has_zone = arguments.iter().any(|typed| typed.sql_type == SqlType::TimestampTz)
                        || arguments.iter().any(|typed| typed.sql_type == SqlType::Date);
                    let to = if has_zone { SqlType::TimestampTz } else { SqlType::Timestamp };
                    let coerced = arguments
                        .into_iter()
                        .enumerate()
                        .map(|(at, typed)| self.coerce(typed, if at < 2 { &to } else { &SqlType::Interval }));
                    let arguments = coerced.collect::<Result<_>>()?;
                    return self.function("fabius_series", arguments);
                }
                let is_big = arguments.iter().any(|typed| typed.sql_type == SqlType::BigInt);
                let series = self.function("fabius_series", arguments)?;
                if is_big {
                    return Ok(series);
                }
                self.cast(series, &SqlType::Array(Box::new(SqlType::Int)))
            }
            "generate_subscripts" => {
                arguments.truncate(1);
                let flavor = arguments.first().map(|typed| typed.flavor);
                let places = self.function("fabius_subscripts", arguments)?;
                if flavor == Some(Flavor::Vector) {
                    // Vectors are counted from 0.
                    return Ok(places);
                }
                Ok(places)
            }
            // There are no partitions.
            "pg_partition_ancestors" | "pg_partition_tree" => {
                let relation = match arguments.pop() {
                    Some(text) if text.unknown_text().is_some() => {
                        self.function("fabius_class_oid", vec![text])?
                    }
                    Some(relation) => relation,
                    None => return Err(self.no_function(name, &[])),
                };
                self.function("fabius_no_oids", vec![relation])
            }
            "regexp_split_to_table" => self.function("regexp_split_to_array", arguments),
            "string_to_table" => self.function("string_to_array", arguments),
            "regexp_matches" => {
                let found = self.function("fabius_matches_of", arguments)?;
                let groups = SqlType::Array(Box::new(SqlType::Array(Box::new(SqlType::Text))));
                self.cast(found, &groups)
            }
            "json_array_elements"
            | "jsonb_array_elements"
            | "json_array_elements_text"
            | "jsonb_array_elements_text" => {
                let as_text_value = name.ends_with("text");
                let json = if name.starts_with("jsonb") { SqlType::JsonB } else { SqlType::Json };
                let document = self.coerce_first(arguments, &json)?;
                let elements = self.function(
                    "fabius_json_elements",
                    vec![super::operator::as_text(document), truth(as_text_value)],
                )?;
                let element = if as_text_value { SqlType::Text } else { json };
                Ok(Typed::new(elements.expr, SqlType::Array(Box::new(element))))
            }
            "json_object_keys" | "jsonb_object_keys" => {
                let json = if name.starts_with("jsonb") { SqlType::JsonB } else { SqlType::Json };
                let document = self.coerce_first(arguments, &json)?;
                self.function("fabius_json_keys", vec![super::operator::as_text(document)])
            }
            other => Err(self.no_function(other, &arguments)),
        }
    }

    pub(super) fn coerce_first(&mut self, arguments: Vec<Typed>, to: &SqlType) -> Result<Typed> {
        match arguments.into_iter().next() {
            Some(first) => self.coerce(first, to),
            None => Err(Error::new(SqlState::UNDEFINED_FUNCTION, "the function needs an argument")),
        }
    }

    fn aggregate(&mut self, name: &str, call: &ast::Function, list: &[ast::FunctionArg]) -> Result<Typed> {
        let is_window = call.over.is_some();
        if let Some(level) = self.levels.last_mut()
            && !is_window
        {
            if let Some(clause) = level.clause {
                return Err(Error::new(
                    SqlState(*b"42803"),
                    format!("aggregate functions are not allowed in {clause}"),
                ));
            }
            if level.in_aggregate {
                return Err(Error::new(SqlState(*b"42803"), "aggregate function calls cannot be nested"));
            }
            level.has_aggregate = true;
            level.in_aggregate = true;
        }
        let inner = self.aggregate_parts(call, list);
        if let Some(level) = self.levels.last_mut()
            && !is_window
        {
            level.in_aggregate = false;
        }
        let (arguments, shape) = inner?;
        self.aggregate_of(name, arguments, shape)
    }

    fn aggregate_parts<'c>(
        &mut self,
        call: &'c ast::Function,
        list: &[ast::FunctionArg],
    ) -> Result<(Vec<Typed>, Shape<'c>)> {
        let (mut distinct, mut order_by) = (false, Vec::new());
        if let ast::FunctionArguments::List(whole) = &call.args {
            distinct = whole.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
            for clause in &whole.clauses {
                match clause {
                    ast::FunctionArgumentClause::OrderBy(keys) => order_by = self.sort_keys(keys)?,
                    other => return Err(unsupported(format!("{other} in an aggregate is not supported"))),
                }
            }
        }
        let is_all = matches!(
            list,
            [ast::FunctionArg::Unnamed(
                ast::FunctionArgExpr::Wildcard | ast::FunctionArgExpr::QualifiedWildcard(_)
            )]
        );
        let arguments = if is_all { Vec::new() } else { self.arguments(list)? };
        let mut ordered = None;
        if let [key] = call.within_group.as_slice() {
            let typed = self.expression(&key.expr)?;
            ordered = Some(self.known(typed)?.sql_type);
            order_by = self.sort_keys(&call.within_group)?;
        } else if !call.within_group.is_empty() {
            return Err(unsupported("WITHIN GROUP with several keys is not supported"));
        }
        let filter = match &call.filter {
            Some(filter) => {
                let typed = self.expression(filter)?;
                Some(Box::new(self.condition(typed, "FILTER")?))
            }
            None => None,
        };
        Ok((arguments, Shape { over: call.over.as_ref(), distinct, filter, order_by, ordered }))
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
        self.sorted_array(value, Shape { order_by: Vec::new(), ..shape }, is_ascending, nulls_first)
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
    fn ordered_set(&mut self, name: &str, arguments: Vec<Typed>, shape: Shape<'_>) -> Result<Typed> {
        let [sort] = shape.order_by.as_slice() else { return Err(self.no_function(name, &arguments)) };
        let (is_ascending, sql_type) = (sort.asc, shape.ordered.clone().unwrap_or(SqlType::Text));
        let value = Typed::new(sort.expr.clone(), sql_type);
        let value = if name == "percentile_cont" {
            self.coerce(value, &SqlType::Double)?
        } else {
            self.known(value)?
        };
        let mut shape = Shape { order_by: Vec::new(), ..shape };
        let value = without_nulls(value, &mut shape);
        let array = self.sorted_array(value, shape, is_ascending, false)?;
        let mut all = vec![array];
        for fraction in arguments {
            all.push(self.coerce(fraction, &SqlType::Double)?);
        }
        self.function(&format!("fabius_{name}"), all)
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
                        let numeric = T::Numeric(Some((38, scale_of(&first.sql_type))));
                        (numeric.clone(), numeric)
                    }
                    (T::Real, "sum") => (T::Double, T::Real),
                    (T::Real | T::Double, _) => (T::Double, T::Double),
                    (T::Interval, _) => {
                        let first = without_nulls(first, &mut shape);
                        let array = self.sorted_array(first, shape, true, false)?;
                        let is_average = Expr::Literal(ScalarValue::Boolean(Some(name == "avg")), None);
                        let is_average = Typed::new(is_average, T::Boolean);
                        return self.function("fabius_interval_sum", vec![array, is_average]);
                    }
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
                if first.sql_type == T::Interval {
                    let first = without_nulls(first, &mut shape);
                    let array = self.sorted_array(first, shape, name == "min", false)?;
                    let one = Typed::literal(ScalarValue::Int64(Some(1)), T::BigInt);
                    return self.function("fabius_element", vec![array, one]);
                }
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
                let first = self.condition(first, name)?;
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
                let first = self.coerce(first, &T::Text)?;
                let separator = self.coerce(separator, &T::Text)?;
                let arguments = vec![first.expr, separator.expr];
                Ok(Typed::new(
                    self.make(aggregate::string_agg::string_agg_udaf(), arguments, shape)?,
                    T::Text,
                ))
            }
            "json_agg" | "jsonb_agg" => {
                let to = if name == "json_agg" { "to_json" } else { "to_jsonb" };
                // PostgreSQL begins a line with each row.
                let separator = if name == "json_agg" && first.sql_type == T::Json { ", \n " } else { ", " };
                let item = self.function(to, vec![first])?;
                let sql_type = item.sql_type.clone();
                let arguments = vec![item.expr, text_literal(separator)];
                let joined = self.make(aggregate::string_agg::string_agg_udaf(), arguments, shape)?;
                Ok(Typed::new(enclosed("[", joined, "]"), sql_type))
            }
            "json_object_agg" | "jsonb_object_agg" => {
                let Some(value) = second else { return wrong(self, &[first]) };
                let key = self.cast(first, &T::Text)?;
                let key = self.function("to_json", vec![key])?;
                let value = self
                    .function(if name.starts_with("jsonb") { "to_jsonb" } else { "to_json" }, vec![value])?;
                let is_binary = name.starts_with("jsonb");
                let colon = if is_binary { ": " } else { " : " };
                let pair = concatenated(concatenated(key.expr, text_literal(colon)), value.expr);
                let arguments = vec![pair, text_literal(", ")];
                let joined = self.make(aggregate::string_agg::string_agg_udaf(), arguments, shape)?;
                let (open, close) = if is_binary { ("{", "}") } else { ("{ ", " }") };
                let sql_type = if is_binary { T::JsonB } else { T::Json };
                Ok(Typed::new(enclosed(open, joined, close), sql_type))
            }
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
                let result = Typed::new(self.make(function, arguments, shape)?, T::Double);
                if name != "regr_count" {
                    return Ok(result);
                }
                // DataFusion counts without a sign.
                let counted =
                    Cast::new(Box::new(result.expr), crate::query::arrow_column::arrow_type(&T::BigInt));
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

    fn window_call(
        &mut self,
        name: &str,
        function: Arc<WindowUDF>,
        list: &[ast::FunctionArg],
        over: &ast::WindowType,
    ) -> Result<Typed> {
        let mut arguments = self.arguments(list)?.into_iter();
        let returns = match name {
            "row_number" | "rank" | "dense_rank" => SqlType::BigInt,
            "ntile" => SqlType::Int,
            "percent_rank" | "cume_dist" => SqlType::Double,
            _ => SqlType::Unknown,
        };
        let mut expressions = Vec::new();
        let mut sql_type = returns.clone();
        if returns == SqlType::Unknown || name == "ntile" {
            let Some(first) = arguments.next() else { return Err(self.no_function(name, &[])) };
            let first =
                if name == "ntile" { self.coerce(first, &SqlType::BigInt)? } else { self.known(first)? };
            if returns == SqlType::Unknown {
                sql_type = first.sql_type.clone();
            }
            expressions.push(first.expr);
            if let Some(place) = arguments.next() {
                expressions.push(self.coerce(place, &SqlType::BigInt)?.expr);
            }
            if let Some(default) = arguments.next() {
                expressions.push(self.coerce(default, &sql_type)?.expr);
            }
        }
        let function = WindowFunctionDefinition::WindowUDF(function);
        let mut expr = self.over(function, expressions, over, None, false)?;
        if matches!(sql_type, SqlType::BigInt | SqlType::Int) && returns != SqlType::Unknown {
            // DataFusion counts without a sign.
            expr = Expr::Cast(Cast::new(Box::new(expr), crate::query::arrow_column::arrow_type(&sql_type)));
        }
        Ok(Typed::new(expr, sql_type))
    }
}

/// What stands around an aggregate's arguments.
#[derive(Clone)]
struct Shape<'a> {
    over: Option<&'a ast::WindowType>,
    distinct: bool,
    filter: Option<Box<Expr>>,
    order_by: Vec<Sort>,
    /// The type of what `WITHIN GROUP` orders.
    ordered: Option<SqlType>,
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

fn text_literal(text: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8(Some(text.to_string())), None)
}

fn concatenated(left: Expr, right: Expr) -> Expr {
    super::operator::plain_binary(left, datafusion::logical_expr::Operator::StringConcat, right)
}

fn enclosed(open: &str, inner: Expr, close: &str) -> Expr {
    concatenated(concatenated(text_literal(open), inner), text_literal(close))
}

/// How badly arguments fit a function; `None` if they do not.
fn fit(definition: &Definition, arguments: &[Typed]) -> Option<u32> {
    let (least, most) = match definition.is_variadic {
        true => (definition.parameters.len() - 1, usize::MAX),
        false => (definition.parameters.len() - definition.optional, definition.parameters.len()),
    };
    if !(least..=most).contains(&arguments.len()) {
        return None;
    }
    let mut total = 0;
    let mut element: Option<&SqlType> = None;
    for (at, argument) in arguments.iter().enumerate() {
        let kind = definition.parameters.get(at).or_else(|| definition.parameters.last())?;
        total += match kind {
            Kind::Is(SqlType::Text)
                if matches!(argument.sql_type, SqlType::Json | SqlType::JsonB)
                    && definition.name.starts_with("fabius_") =>
            {
                1
            }
            Kind::Is(SqlType::Text) if matches!(argument.flavor, Flavor::Named(_)) => return None,
            Kind::Is(sql_type) => cost(&argument.sql_type, sql_type)?,
            Kind::Any => 6,
            Kind::Element => 5,
            Kind::Array => match &argument.sql_type {
                SqlType::Array(inner) => {
                    element = Some(inner);
                    2
                }
                SqlType::Unknown => 5,
                _ => return None,
            },
        };
    }
    if let Some(element) = element {
        let agrees = arguments.iter().enumerate().all(|(at, argument)| {
            !matches!(definition.parameters.get(at), Some(Kind::Element))
                || super::coerce::common_type(element, &argument.sql_type).is_some()
        });
        if !agrees {
            return None;
        }
    }
    Some(total)
}

/// The scale of a function's numeric result.
fn numeric_returned(name: &str, arguments: &[Typed]) -> SqlType {
    let literal = |at: usize| match arguments.get(at).map(|typed| &typed.expr) {
        Some(Expr::Literal(value, _)) => match value {
            ScalarValue::Int32(Some(value)) => Some(i64::from(*value)),
            ScalarValue::Int64(Some(value)) => Some(*value),
            _ => None,
        },
        _ => None,
    };
    let own = arguments.first().map_or(0, |typed| scale_of(&typed.sql_type));
    let scale = match name {
        "round" | "trunc" if arguments.len() == 1 => 0,
        "round" | "trunc" => literal(1).map_or(own, |digits| digits.clamp(0, 30) as u8),
        "ceil" | "ceiling" | "floor" | "sign" | "div" | "fabius_span" => 0,
        "power" => 16,
        "to_number" => 10,
        "extract" => match arguments.first().map(|typed| &typed.expr) {
            Some(Expr::Literal(ScalarValue::Utf8(Some(field)), _)) => {
                crate::query::functions::moment::extract_scale(&field.to_lowercase())
            }
            _ => 6,
        },
        "mod" => arguments.iter().map(|typed| scale_of(&typed.sql_type)).max().unwrap_or(0),
        _ => own,
    };
    SqlType::Numeric(Some((38, scale)))
}

/// Whether a name is an aggregate's.
pub(super) fn is_aggregate(name: &str) -> bool {
    matches!(
        name,
        "count"
            | "sum"
            | "avg"
            | "min"
            | "max"
            | "bool_and"
            | "bool_or"
            | "every"
            | "array_agg"
            | "string_agg"
            | "json_agg"
            | "jsonb_agg"
            | "json_object_agg"
            | "jsonb_object_agg"
            | "bit_and"
            | "bit_or"
            | "bit_xor"
            | "stddev"
            | "stddev_samp"
            | "stddev_pop"
            | "variance"
            | "var_samp"
            | "var_pop"
            | "corr"
            | "covar_samp"
            | "covar_pop"
            | "grouping"
            | "percentile_cont"
            | "percentile_disc"
            | "mode"
            | "regr_count"
            | "regr_slope"
            | "regr_intercept"
            | "regr_r2"
            | "regr_avgx"
            | "regr_avgy"
            | "regr_sxx"
            | "regr_syy"
            | "regr_sxy"
    )
}

/// Whether a name is a set-returning function's.
pub(super) fn is_set_returning(name: &str) -> bool {
    matches!(
        name,
        "unnest"
            | "pg_partition_ancestors"
            | "pg_partition_tree"
            | "generate_series"
            | "generate_subscripts"
            | "regexp_split_to_table"
            | "string_to_table"
            | "regexp_matches"
            | "json_array_elements"
            | "jsonb_array_elements"
            | "json_array_elements_text"
            | "jsonb_array_elements_text"
            | "json_object_keys"
            | "jsonb_object_keys"
    )
}

fn window_function(name: &str) -> Option<Arc<WindowUDF>> {
    Some(match name {
        "row_number" => window::row_number::row_number_udwf(),
        "rank" => window::rank::rank_udwf(),
        "dense_rank" => window::rank::dense_rank_udwf(),
        "percent_rank" => window::rank::percent_rank_udwf(),
        "cume_dist" => window::cume_dist::cume_dist_udwf(),
        "ntile" => window::ntile::ntile_udwf(),
        "lag" => window::lead_lag::lag_udwf(),
        "lead" => window::lead_lag::lead_udwf(),
        "first_value" => window::nth_value::first_value_udwf(),
        "last_value" => window::nth_value::last_value_udwf(),
        "nth_value" => window::nth_value::nth_value_udwf(),
        _ => return None,
    })
}
