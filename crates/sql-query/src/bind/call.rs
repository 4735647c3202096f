//! Calls of functions.

use super::coerce::beside_unknown;
use super::{Binder, Flavor, Typed};
use crate::failure::{inbound, unsupported};
use crate::functions::RowFunction;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::expr::Unnest;
use datafusion::logical_expr::{Case, Expr};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::{self, BackEnd, Called, Choice, Named, Sense, WrittenCall};
use fabius_sql_meaning::functions::moment;
use fabius_sql_meaning::functions::resolution::{self, Argument, Unresolved};
use fabius_sql_meaning::functions::{Call, Definition, Kind};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{Candidate, is_integer};
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;

/// The function that makes JSON of a whole row.
pub(super) const WHOLE_ROW: &str = "fabius_row_json";

impl Binder<'_> {
    /// A call as it is written.
    pub(super) fn call(&mut self, call: &ast::Function) -> Result<Typed> {
        let written = WrittenCall::of(call)?;
        let path = written.path();
        let (schema, name) = match path.as_slice() {
            [name] => (None, name.clone()),
            [schema, name] => (Some(schema.clone()), name.clone()),
            _ => return Err(unsupported(format!("the function {} is not supported", call.name))),
        };
        // There is no time with a time zone.
        if name == "current_time" && schema.is_none() && matches!(call.args, ast::FunctionArguments::None) {
            return self.function("localtime", Vec::new());
        }
        if let Some(query) = written.query() {
            if name != "array" {
                return Err(unsupported(format!("a subquery as the arguments of {name} is not supported")));
            }
            let expression = ast::Expr::Function(call.clone());
            return self.once(&expression, Sense::Value, |binder| binder.array_subquery(query));
        }
        let called = written.called();
        if called == Some(Called::Aggregate) {
            return self.aggregate(&name, &written);
        }
        if called == Some(Called::OverWindow) {
            return self.window_call(&name, &written);
        }
        let mut arguments = self.arguments(written.arguments)?;
        if let Some((clause, of)) = written.clause_of_rows() {
            // What is sorted by counts as arguments.
            for key in written.within_group {
                arguments.push(self.expression(&key.expr)?);
            }
            if called == Some(Called::Scalar) {
                resolution::resolve(&name, &given(&arguments))
                    .map_err(|why| self.unresolved(&name, why, &arguments))?;
            }
            let message = format!("{clause} specified, but {name} is not {of}");
            return Err(Error::new(SqlState(*b"42809"), message));
        }
        if let [schema, name] = path.as_slice()
            && schema == "information_schema"
            && name == "_pg_expandarray"
        {
            let array = self.set_returning("unnest", arguments)?;
            let SqlType::Array(element) = array.sql_type else { return Ok(array) };
            let row = Typed::new(Expr::Unnest(Unnest::new(array.expr)), *element);
            return Ok(Typed { flavor: Flavor::Expanded, ..row });
        }
        match called {
            None => Err(self.no_function(&path.join("."), &arguments)),
            Some(Called::Set) => {
                self.refuse_set_here()?;
                let array = self.set_returning(&name, arguments)?;
                let SqlType::Array(element) = array.sql_type.clone() else { return Ok(array) };
                Ok(Typed::new(Expr::Unnest(Unnest::new(array.expr)), *element))
            }
            _ => {
                let named = name.strip_prefix("to_").and_then(Named::of_name);
                let typed = self.function(&name, arguments)?;
                Ok(named.map_or(typed.clone(), |named| Typed { flavor: Flavor::Named(named), ..typed }))
            }
        }
    }

    /// Refuses a function that returns a set where there can be none.
    fn refuse_set_here(&self) -> Result<()> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        if level.in_aggregate {
            return Err(unsupported("aggregate function calls cannot contain set-returning function calls"));
        }
        match level.clause {
            Some(clause @ ("WHERE" | "JOIN conditions")) => Err(no_sets_in(clause)),
            _ => Ok(()),
        }
    }

    pub(super) fn arguments(&mut self, list: &[ast::FunctionArg]) -> Result<Vec<Typed>> {
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
        let name = super::folded(name);
        if self.find_column(std::slice::from_ref(&name))?.is_some() {
            return Ok(None);
        }
        let Some(columns) = self.columns_of(None, &name) else { return Ok(None) };
        let keys = columns.iter().map(|(name, _)| vec![Value::Text(name.clone())]).collect();
        let keys_type = SqlType::Array(Box::new(SqlType::Text));
        let keys = crate::arrow_column::scalar(&Value::List(keys), &keys_type)?;
        let mut arguments = vec![Typed::literal(keys, keys_type)];
        arguments.extend(columns.into_iter().map(|(_, typed)| typed));
        let row = self.function(WHOLE_ROW, arguments)?;
        let Some(present) = self.presence(&name)? else { return Ok(Some(row)) };
        let there = Expr::IsNotNull(Box::new(present.expr));
        let case = Case::new(None, vec![(Box::new(there), Box::new(row.expr))], None);
        Ok(Some(Typed { expr: Expr::Case(case), ..row }))
    }

    pub(super) fn no_function(&self, name: &str, arguments: &[Typed]) -> Error {
        let is_defined = self.environment.catalog.functions.keys().any(|key| key.name == *name);
        if is_defined {
            return unsupported(format!("the function {name} is not supported in this query"))
                .with_detail("functions of the database can be called by queries that are programs");
        }
        Unresolved::Missing.error(name, &given(arguments))
    }

    /// A call of a function of the table, by the overload that fits best.
    pub(super) fn function(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        analysis::function(self, name, arguments)
    }

    /// A call of a function whose result type is said.
    pub(super) fn function_returning(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        returns: SqlType,
    ) -> Result<Typed> {
        let definition = resolution::resolve(name, &given(&arguments));
        let definition = definition.map_err(|why| self.unresolved(name, why, &arguments))?;
        Binder::apply(self, definition, arguments, Some(returns))
    }

    pub(super) fn apply(
        &mut self,
        definition: &'static Definition,
        arguments: Vec<Typed>,
        returns: Option<SqlType>,
    ) -> Result<Typed> {
        let (settled, own) = self.settled(definition, arguments)?;
        let returns = returns.unwrap_or(own);
        let call = Call {
            types: settled.iter().map(|typed| typed.sql_type.clone()).collect(),
            returns: returns.clone(),
            environment: self.environment.clone(),
        };
        let arguments = settled.into_iter().map(|typed| typed.expr).collect();
        Ok(Typed::new(RowFunction::expression(definition, call, arguments), returns))
    }

    /// Arguments in the types of a function's parameters, and the type of its result.
    pub(super) fn settled(
        &mut self,
        definition: &'static Definition,
        arguments: Vec<Typed>,
    ) -> Result<(Vec<Typed>, SqlType)> {
        let kinds = (0..arguments.len()).map(|at| definition.parameter(at).unwrap_or(&Kind::Any));
        let kinds: Vec<&Kind> = kinds.collect();
        // What `anyelement` stands for: the type that all its arguments have in common.
        let mut element = SqlType::Unknown;
        for (argument, kind) in arguments.iter().zip(&kinds) {
            let sql_type = match (kind, &argument.sql_type) {
                (Kind::Element | Kind::Enumeration | Kind::Compatible, sql_type) => sql_type,
                (Kind::Array | Kind::CompatibleArray, SqlType::Array(inner)) => inner,
                _ => continue,
            };
            element = super::coerce::common_type(&element, sql_type)
                .ok_or_else(|| self.no_function(&definition.name, &arguments))?;
        }
        for (argument, kind) in arguments.iter().zip(&kinds) {
            let candidate = argument.candidate();
            element = match kind {
                _ if *candidate.sql_type != SqlType::Unknown => element,
                Kind::Element | Kind::Enumeration | Kind::Compatible => beside_unknown(element, &candidate),
                // What an array's text says of its elements is known when it is read.
                Kind::Array | Kind::CompatibleArray => {
                    beside_unknown(element, &Candidate { text: None, ..candidate })
                }
                _ => element,
            };
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
                Kind::Any | Kind::NonArray => self.known(argument)?,
                Kind::Element | Kind::Enumeration | Kind::Compatible => self.coerce(argument, &element)?,
                Kind::Array | Kind::CompatibleArray => {
                    self.coerce(argument, &SqlType::Array(Box::new(element.clone())))?
                }
            });
        }
        let returns = match &definition.returns {
            Kind::Is(SqlType::Numeric(None)) => numeric_returned(&definition.name, &settled),
            Kind::Is(sql_type) => sql_type.clone(),
            Kind::Element | Kind::Enumeration | Kind::Compatible | Kind::Any | Kind::NonArray => element,
            Kind::Array | Kind::CompatibleArray => SqlType::Array(Box::new(element)),
        };
        Ok((settled, returns))
    }

    /// `COALESCE`, `GREATEST`, `LEAST`.
    pub(super) fn chosen(&mut self, choice: Choice, values: Vec<Typed>) -> Result<Typed> {
        let common = self.common_of(&values, choice.word())?;
        let values = values.into_iter().map(|typed| self.coerce(typed, &common));
        let values: Vec<Typed> = values.collect::<Result<_>>()?;
        if matches!(common, SqlType::Interval | SqlType::Array(_)) && choice != Choice::Coalesce {
            let function = if choice == Choice::Least { "fabius_least" } else { "fabius_greatest" };
            return self.function_returning(function, values, common);
        }
        let mut values: Vec<Expr> = values.into_iter().map(|typed| typed.expr).collect();
        if choice == Choice::Coalesce {
            refuse_sets(&values, choice.word())?;
        }
        use datafusion::functions::core::expr_fn;
        let expr = match (choice, values.len()) {
            (_, 1) => values.remove(0),
            (Choice::Coalesce, _) => expr_fn::coalesce(values),
            (Choice::Greatest, _) => expr_fn::greatest(values),
            (Choice::Least, _) => expr_fn::least(values),
        };
        Ok(Typed::new(expr, common))
    }

    /// The array that a set-returning function's rows come from.
    pub(super) fn set_returning(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let truth = |value| Typed::literal(ScalarValue::Boolean(Some(value)), SqlType::Boolean);
        let mut arguments = arguments;
        match name {
            "unnest" => match arguments.pop() {
                Some(array) if arguments.is_empty() => match array.sql_type {
                    SqlType::Array(ref element) if matches!(**element, SqlType::Array(_)) => {
                        let flat = SqlType::Array(Box::new(element.innermost().clone()));
                        self.function_returning("fabius_flat", vec![array], flat)
                    }
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
                    let scale = arguments.iter().map(|typed| typed.sql_type.scale()).max().unwrap_or(0);
                    let to = SqlType::computed(scale, arguments.iter().any(|typed| typed.sql_type.is_free()));
                    let coerced = arguments.into_iter().map(|typed| self.coerce(typed, &to));
                    let arguments = coerced.collect::<Result<_>>()?;
                    return self.function_returning("fabius_series", arguments, SqlType::Array(Box::new(to)));
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
                // Vectors are counted from 0.
                let is_vector = arguments.first().is_some_and(|typed| typed.flavor == Flavor::Vector);
                let base = ScalarValue::Int32(Some(i32::from(!is_vector)));
                arguments.push(Typed::literal(base, SqlType::Int));
                self.function("fabius_subscripts", arguments)
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
            "pg_listening_channels" => self.function("fabius_channels", arguments),
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
}

/// Arguments as far as they have a say in what is called.
pub(super) fn given(arguments: &[Typed]) -> Vec<Argument<'_>> {
    arguments.iter().map(Binder::argument_of).collect()
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
    let own = arguments.first().map_or(0, |typed| typed.sql_type.scale());
    let mut is_free = false;
    let scale = match name {
        "round" | "trunc" if arguments.len() == 1 => 0,
        "round" | "trunc" => literal(1).map_or(own, |digits| digits.clamp(0, 30) as u8),
        "ceil" | "ceiling" | "floor" | "sign" | "div" | "fabius_span" => 0,
        "power" | "^" => 16,
        "to_number" => 10,
        "extract" => match arguments.first().map(|typed| &typed.expr) {
            Some(Expr::Literal(ScalarValue::Utf8(Some(field)), _)) => {
                let is_date = arguments.get(1).is_some_and(|typed| typed.sql_type == SqlType::Date);
                moment::extract_scale(field, is_date)
            }
            _ => 6,
        },
        "mod" | "gcd" | "lcm" => {
            is_free = arguments.iter().any(|typed| typed.sql_type.is_free());
            arguments.iter().map(|typed| typed.sql_type.scale()).max().unwrap_or(0)
        }
        _ => {
            is_free = arguments.first().is_some_and(|typed| typed.sql_type.is_free());
            own
        }
    };
    SqlType::computed(scale, is_free)
}

/// `0A000` for a function that returns a set where there can be none.
fn no_sets_in(place: &str) -> Error {
    unsupported(format!("set-returning functions are not allowed in {place}"))
}

/// Refuses expressions with functions that return sets.
pub(super) fn refuse_sets<'e>(expressions: impl IntoIterator<Item = &'e Expr>, place: &str) -> Result<()> {
    for expression in expressions {
        let has_set = expression.exists(|expr| Ok(matches!(expr, Expr::Unnest(_)))).map_err(inbound)?;
        if has_set {
            return Err(no_sets_in(place));
        }
    }
    Ok(())
}
