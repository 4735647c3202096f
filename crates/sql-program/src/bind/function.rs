//! Functions, as calls and in the forms that have words of their own.

use super::binder::{Binder, path};
use super::bound::{Bound, Known};
use super::constant::{Constant, Quoted};
use super::expression::held_by_all;
use super::stop::{Bind, beyond};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::Expression;
use fabius_sql_meaning::analysis::{self, BackEnd, Choice, Like, WrittenCall};
use fabius_sql_meaning::functions::{Definition, Kind};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{self, Category, Context, category};
use fabius_value::{DataType, Value};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

/// The expression that an argument is, unless it has a name.
fn unnamed(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    }
}

impl Binder<'_> {
    /// A call as it is written.
    pub(super) fn written_call(&mut self, function: &ast::Function) -> Bind<Bound> {
        if let Some(called) = crate::plpgsql::scalar(self, function)? {
            return Ok(called);
        }
        let path = path(&function.name)?;
        let name = match path.as_slice() {
            [name] => name.as_str(),
            [schema, name] if schema == "pg_catalog" => name.as_str(),
            _ => return beyond("a function of a schema"),
        };
        let written = WrittenCall::of(function)?;
        if written.is_of_rows() || written.clause_of_rows().is_some() {
            return beyond("an aggregate or a window function");
        }
        let arguments = match &function.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::Subquery(_) => return beyond("a subquery as an argument"),
            FunctionArguments::List(list) => {
                if name.starts_with("array_") || name == "cardinality" {
                    let plain: Vec<&Expr> = list.args.iter().filter_map(unnamed).collect();
                    if let Some(bound) = self.array_function(name, &plain)? {
                        return Ok(bound);
                    }
                }
                let mut arguments = Vec::new();
                for argument in &list.args {
                    let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument else {
                        return beyond("named arguments");
                    };
                    // `nextval('s'::regclass)` is how PostgreSQL writes a default.
                    let argument = match argument {
                        Expr::Cast { expr, data_type: ast::DataType::Regclass, .. } if name == "nextval" => {
                            expr
                        }
                        other => other,
                    };
                    arguments.push(self.operand(argument)?);
                }
                arguments
            }
        };
        analysis::function(self, name, arguments)
    }

    /// A function or operator of the table, as programs compute it.
    pub(super) fn applied(
        &mut self,
        definition: &'static Definition,
        mut arguments: Vec<Bound>,
    ) -> Bind<Bound> {
        match (definition.name.as_str(), arguments.len()) {
            (symbol @ ("+" | "-" | "*"), 2) => {
                let right = arguments.remove(1);
                let left = self.as_operand(arguments.remove(0), &definition.parameters[0])?;
                let right = self.as_operand(right, &definition.parameters[1])?;
                self.moments(left, symbol, right)
            }
            ("-", 1) => self.minus(arguments.remove(0)),
            ("||", 2) => match &definition.parameters[0] {
                Kind::Is(bytes @ SqlType::Bytea) => {
                    let right = arguments.remove(1);
                    self.joined_end_to_end(arguments.remove(0), right, bytes)
                }
                _ => beyond("joining values of json or arrays"),
            },
            ("now" | "transaction_timestamp" | "current_timestamp", 0) => Ok(self.transaction_time()),
            ("localtimestamp", 0) => {
                let now = self.transaction_time();
                self.convert(now, &SqlType::Timestamp, Context::Explicit)
            }
            ("current_date", 0) => {
                let now = self.transaction_time();
                self.convert(now, &SqlType::Date, Context::Explicit)
            }
            ("timezone", 2) => {
                let moment = arguments.remove(1);
                self.at_time_zone(moment, &arguments[0])
            }
            ("extract", 2) => {
                let moment = arguments.remove(1);
                self.extract(&arguments[0], moment)
            }
            ("date_part", 2) => self.date_part(arguments),
            ("position", 2) if definition.parameters[0] == Kind::Is(SqlType::Text) => {
                arguments.reverse();
                analysis::function(self, "strpos", arguments)
            }
            (symbol @ ("~" | "~*" | "!~" | "!~*"), 2) => {
                if symbol.ends_with('*') {
                    let flags = Value::Text("i".into());
                    arguments.push(Bound::constant(flags, SqlType::Text, DataType::TEXT));
                }
                let matches = analysis::function(self, "regexp_like", arguments)?;
                if symbol.starts_with('!') { self.not(matches) } else { Ok(matches) }
            }
            ("random", 0) => Ok(self.random()),
            ("gen_random_uuid" | "uuid_generate_v4", 0) => Ok(self.random_uuid()),
            ("nextval", 1) => self.nextval(&arguments[0]),
            ("abs" | "@", 1) => {
                let value = self.as_operand(arguments.remove(0), &definition.parameters[0])?;
                let value = self.settle(value)?;
                let sql_type = type_rules::without_modifiers(&value.sql_type);
                let expression = tree::call("abs", vec![value.expression]);
                Ok(Bound { expression, sql_type, origin: (0, 0), ..value })
            }
            ("mod", 2) => {
                let right = arguments.remove(1);
                analysis::infix(self, arguments.remove(0), "%", right)
            }
            ("concat", _) => self.concat(arguments),
            ("round" | "trunc" | "floor" | "ceil" | "ceiling" | "sign" | "fabius_python_rounded", 1 | 2) => {
                self.rounded(definition, arguments)
            }
            _ => self.of_programs(definition, arguments),
        }
    }

    fn concat(&mut self, arguments: Vec<Bound>) -> Bind<Bound> {
        let mut joined = Bound::constant(Value::Text(String::new()), SqlType::Text, DataType::TEXT);
        for argument in arguments {
            if argument.is_null() {
                continue;
            }
            // A cast to text is not what is shown.
            if let SqlType::Boolean | SqlType::Char(_) | SqlType::Inet = argument.sql_type {
                return beyond(format!("{} as it is shown", argument.sql_type));
            }
            let text = self.typed(argument, &SqlType::Text)?;
            let text = self.convert(text, &SqlType::Text, Context::Assignment)?;
            let text = self.chosen(Choice::Coalesce, vec![text, Bound::literal(Some(Quoted::new("")))])?;
            joined = analysis::infix(self, joined, "||", text)?;
        }
        Ok(joined)
    }

    /// `COALESCE`, `GREATEST`, `LEAST`.
    pub(super) fn chosen(&mut self, choice: Choice, values: Vec<Bound>) -> Bind<Bound> {
        let (values, sql_type) = self.unify(values, choice.word())?;
        let is_ordered =
            !matches!(category(&sql_type), Category::Interval | Category::Array | Category::Json);
        if choice != Choice::Coalesce && !is_ordered {
            return beyond(format!("{} of values of type {sql_type}", choice.word()));
        }
        let nullable = values.iter().all(|value| value.nullable);
        let data_type = held_by_all(&values);
        let settled = self.all_settled(values)?;
        let function = choice.word().to_lowercase();
        Ok(Bound::held_as(tree::call(&function, settled), sql_type, nullable, data_type))
    }

    fn typed(&mut self, bound: Bound, to: &SqlType) -> Bind<Bound> {
        if bound.is_unknown() { self.resolve(bound, to) } else { Ok(bound) }
    }

    fn all_settled(&mut self, bounds: Vec<Bound>) -> Bind<Vec<Expression>> {
        bounds.into_iter().map(|bound| self.settled(bound)).collect()
    }

    fn at_time_zone(&mut self, bound: Bound, zone: &Bound) -> Bind<Bound> {
        let is_utc = match &zone.known {
            Known::Literal(Some(zone)) => {
                ["UTC", "GMT", "Z"].iter().any(|name| zone.text().eq_ignore_ascii_case(name))
            }
            _ => false,
        };
        if !is_utc {
            return beyond("a time zone");
        }
        let to = match bound.sql_type {
            SqlType::TimestampTz => SqlType::Timestamp,
            SqlType::Timestamp | SqlType::Date => SqlType::TimestampTz,
            _ => return beyond("a time zone of this type"),
        };
        self.convert(bound, &to, Context::Explicit)
    }

    // ---- sequences ----

    fn nextval(&mut self, argument: &Bound) -> Bind<Bound> {
        let text = match &argument.known {
            Known::Literal(Some(quoted)) => quoted.text().to_string(),
            Known::Constant(constant) => match constant.value() {
                Value::Text(text) => text.clone(),
                _ => return beyond("nextval of what is no text"),
            },
            _ => return beyond("nextval of what is computed"),
        };
        let sequence = self.catalog.sequence_of_text(&text)?;
        self.catalog.require_next(self.asker, sequence)?;
        let name = sequence.name.clone();
        Ok(self.next_value(name))
    }

    /// LIKE and ILIKE.
    pub(super) fn matched(&mut self, bound: Bound, like: Like<Bound>) -> Bind<Bound> {
        let Like { pattern, escape, ignores_case: ignoring_case, is_negated: negated } = like;
        let bound = self.typed(bound, &SqlType::Text)?;
        let shape = match (&pattern.known, &escape) {
            (Known::Literal(Some(pattern)), None) => Shape::of(pattern.text()),
            _ => None,
        };
        let Some(shape) = shape else {
            let like = self.any_like(bound, pattern, escape, ignoring_case)?;
            return if negated { self.not(like) } else { Ok(like) };
        };
        let bound = self.settle(bound)?;
        let mut value = self.named(bound, "text")?;
        let fold = |text: &str| if ignoring_case { text.to_lowercase() } else { text.to_string() };
        if ignoring_case {
            value.expression = tree::call("lower", vec![value.expression.clone()]);
        }
        let nullable = value.nullable;
        let value = value.expression;
        let length = |text: &str| tree::integer(text.chars().count() as i128);
        let holds = match shape {
            Shape::Equal(text) => tree::binary(Op::Equal, value, self.text_value(fold(&text))),
            Shape::Prefix(text) => {
                let start = tree::call("substring", vec![value, tree::integer(1), length(&text)]);
                tree::binary(Op::Equal, start, self.text_value(fold(&text)))
            }
            Shape::Suffix(text) => {
                let size = tree::call("length", vec![value.clone()]);
                let from = tree::binary(Op::Subtract, size.clone(), length(&text));
                let from = tree::binary(Op::Add, from, tree::integer(1));
                let end = tree::call("substring", vec![value, tree::cast(from, DataType::BigInt)]);
                let fits = tree::binary(Op::GreaterEqual, size, length(&text));
                tree::all([fits, tree::binary(Op::Equal, end, self.text_value(fold(&text)))])
            }
            Shape::Any => tree::binary(Op::GreaterEqual, tree::call("length", vec![value]), tree::integer(0)),
        };
        let bound = super::expression::logic(holds, nullable);
        if negated { self.not(bound) } else { Ok(bound) }
    }

    fn text_value(&mut self, text: String) -> Expression {
        self.constant(Constant::new(Value::Text(text)), DataType::TEXT)
    }
}

/// The patterns of LIKE that are a comparison.
enum Shape {
    Equal(String),
    Prefix(String),
    Suffix(String),
    Any,
}

impl Shape {
    fn of(pattern: &str) -> Option<Shape> {
        if pattern.contains(['_', '\\']) {
            return None;
        }
        let plain = |text: &str| (!text.contains('%')).then(|| text.to_string());
        if pattern == "%" {
            return Some(Shape::Any);
        }
        if let Some(prefix) = pattern.strip_suffix('%') {
            return plain(prefix).map(Shape::Prefix);
        }
        if let Some(suffix) = pattern.strip_prefix('%') {
            return plain(suffix).map(Shape::Suffix);
        }
        plain(pattern).map(Shape::Equal)
    }
}
