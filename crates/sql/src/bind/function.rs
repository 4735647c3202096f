//! Functions, as calls and in the forms that have words of their own.

use super::binder::{Binder, path};
use super::bound::{Bound, Known};
use super::constant::{Constant, Quoted};
use super::expression::held_by_all;
use super::stop::{Bind, Place, beyond};
use super::tree;
use crate::analysis::{BackEnd, Like};
use crate::functions::Kind;
use crate::functions::operator::like_symbol;
use crate::functions::resolution::is_exact;
use crate::sql_type::SqlType;
use crate::type_rules::{self, Category, Context, category, is_number};
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::Expression;
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
    pub(super) fn written_call(&mut self, function: &ast::Function, place: Place) -> Bind<Bound> {
        if let Some(called) = crate::plpgsql::scalar(self, function)? {
            return Ok(called.at(place));
        }
        let path = path(&function.name)?;
        let name = match path.as_slice() {
            [name] => name.as_str(),
            [schema, name] if schema == "pg_catalog" => name.as_str(),
            _ => return beyond("a function of a schema"),
        };
        if function.over.is_some()
            || function.filter.is_some()
            || !function.within_group.is_empty()
            || function.null_treatment.is_some()
        {
            return beyond("a window function");
        }
        let arguments = match &function.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::Subquery(_) => return beyond("a subquery as an argument"),
            FunctionArguments::List(list) => {
                if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                    return beyond("an aggregate");
                }
                if name.starts_with("array_") || name == "cardinality" {
                    let plain: Vec<&Expr> = list.args.iter().filter_map(unnamed).collect();
                    if let Some(bound) = self.array_function(name, &plain)? {
                        return Ok(bound.at(place));
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
        self.named_function(name, arguments, place)
    }

    /// A function of PostgreSQL's that programs have.
    pub(super) fn named_function(
        &mut self,
        name: &str,
        mut arguments: Vec<Bound>,
        place: Place,
    ) -> Bind<Bound> {
        let count = arguments.len();
        match (name, count) {
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
                let (moment, zone) = (arguments.remove(1), arguments.remove(0));
                self.at_time_zone(moment, &zone)
            }
            ("extract", 2) => {
                let (moment, field) = (arguments.remove(1), arguments.remove(0));
                match &field.known {
                    Known::Literal(Some(field)) => self.extract(field.text(), moment, place),
                    _ => beyond("a computed field"),
                }
            }
            ("position", 2) => {
                if arguments.iter().any(|argument| argument.sql_type == SqlType::Bytea) {
                    return beyond("a place in bytes");
                }
                arguments.reverse();
                self.builtin("strpos", arguments, place)
            }
            ("random", 0) => Ok(self.random()),
            ("gen_random_uuid" | "uuid_generate_v4", 0) => Ok(self.random_uuid()),
            ("nextval", 1) => self.nextval(&arguments[0], place),
            ("coalesce", 1..) => self.coalesce(arguments),
            ("greatest" | "least", 1..) => {
                let what = if name == "least" { "LEAST" } else { "GREATEST" };
                let (values, sql_type) = self.unify(arguments, what)?;
                if matches!(category(&sql_type), Category::Interval | Category::Array | Category::Json) {
                    return beyond(format!("{what} of values of type {sql_type}"));
                }
                let nullable = values.iter().all(|value| value.nullable);
                let data_type = held_by_all(&values);
                let settled = self.all_settled(values)?;
                Ok(Bound::held_as(tree::call(name, settled), sql_type, nullable, data_type))
            }
            ("nullif", 2) => {
                let (second, first) = (arguments.remove(1), arguments.remove(0));
                // Its type is that of the left side of `=`.
                let operator = self.resolved("=", &[&first, &second], place)?;
                let (first, second) = self.comparable(first, "=", second, place)?;
                let (first, second) = (self.settle(first)?, self.settle(second)?);
                let equal = tree::binary(Op::Equal, first.expression.clone(), second.expression);
                let first = match &operator.parameters[0] {
                    Kind::Is(sql_type) if is_exact(sql_type, &first.sql_type) => first,
                    // No type has characters of any length that are padded to none.
                    Kind::Is(SqlType::Char(_)) => self.explicit_cast(first, &SqlType::Text)?,
                    Kind::Is(sql_type) => self.explicit_cast(first, sql_type)?,
                    _ => first,
                };
                let null = tree::typed_null(first.data_type);
                let value = tree::choice(equal, null, first.expression.clone());
                Ok(Bound { expression: value, nullable: true, origin: (0, 0), ..first })
            }
            ("abs", 1) if arguments[0].is_unknown() || is_number(&arguments[0].sql_type) => {
                let value = self.typed(arguments.remove(0), &SqlType::Double)?;
                let value = self.settle(value)?;
                let sql_type = type_rules::without_modifiers(&value.sql_type);
                Ok(Bound {
                    expression: tree::call("abs", vec![value.expression]),
                    sql_type,
                    origin: (0, 0),
                    ..value
                })
            }
            ("mod", 2) => {
                let right = arguments.remove(1);
                let left = arguments.remove(0);
                self.calculate(left, "%", right, place)
            }
            ("concat", 1..) => {
                let mut joined = Bound::constant(Value::Text(String::new()), SqlType::Text, DataType::TEXT);
                for argument in arguments {
                    if argument.is_null() {
                        continue;
                    }
                    if argument.sql_type == SqlType::Boolean {
                        return beyond("a truth as it is shown");
                    }
                    let text = self.typed(argument, &SqlType::Text)?;
                    let text = self.convert(text, &SqlType::Text, Context::Assignment)?;
                    let text = self.coalesce(vec![text, Bound::literal(Some(Quoted::new("")))])?;
                    joined = self.concatenate(joined, text, place)?;
                }
                Ok(joined)
            }
            _ => self.builtin(name, arguments, place),
        }
    }

    fn typed(&mut self, bound: Bound, to: &SqlType) -> Bind<Bound> {
        if bound.is_unknown() { self.resolve(bound, to) } else { Ok(bound) }
    }

    fn all_settled(&mut self, bounds: Vec<Bound>) -> Bind<Vec<Expression>> {
        bounds.into_iter().map(|bound| self.settled(bound)).collect()
    }

    pub(super) fn coalesce(&mut self, arguments: Vec<Bound>) -> Bind<Bound> {
        let (values, sql_type) = self.unify(arguments, "COALESCE")?;
        let nullable = values.iter().all(|value| value.nullable);
        let data_type = held_by_all(&values);
        let settled = self.all_settled(values)?;
        Ok(Bound::held_as(tree::call("coalesce", settled), sql_type, nullable, data_type))
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

    fn nextval(&mut self, argument: &Bound, place: Place) -> Bind<Bound> {
        let text = match &argument.known {
            Known::Literal(Some(quoted)) => quoted.text().to_string(),
            Known::Constant(constant) => match constant.value() {
                Value::Text(text) => text.clone(),
                _ => return beyond("nextval of what is no text"),
            },
            _ => return beyond("nextval of what is computed"),
        };
        let sequence = self.catalog.sequence_of_text(&text).map_err(|error| self.error(error, place))?;
        let name = sequence.name.clone();
        Ok(self.next_value(name))
    }

    /// LIKE and ILIKE.
    pub(super) fn matched(&mut self, bound: Bound, like: Like<Bound>, place: Place) -> Bind<Bound> {
        let Like { pattern, escape, ignores_case: ignoring_case, is_negated: negated } = like;
        let symbol = like_symbol(ignoring_case, negated);
        self.resolved(symbol, &[&bound, &pattern], place)?;
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
