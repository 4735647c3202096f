//! Functions that are about the session or about numbers outside of transactions, called alone: `SELECT setval(...)`.

use super::result::rows_response;
use super::{Connection, Response};
use fabius::KeyedCall;
use fabius_sql_meaning::catalog::{Catalog, Relation, Sequence, folded};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::index_of;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit};
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::interval::{self, Interval};
use fabius_value::{Error, Result, Seq, SqlState, Value};
use sqlparser::ast;
use std::sync::Arc;
use std::time::Duration;

/// A call of one.
pub(super) struct SessionCall {
    function: &'static str,
    name: String,
    sql_type: SqlType,
    arguments: Vec<ast::Expr>,
}

/// Schema, name, and type of the result.
const FUNCTIONS: &[(&str, &str, SqlType)] = &[
    ("pg_catalog", "nextval", SqlType::BigInt),
    ("pg_catalog", "currval", SqlType::BigInt),
    ("pg_catalog", "setval", SqlType::BigInt),
    ("pg_catalog", "lastval", SqlType::BigInt),
    ("pg_catalog", "pg_sleep", SqlType::Void),
    ("fabius", "outcome", SqlType::Text),
    ("fabius", "outcome_seq", SqlType::BigInt),
    ("fabius", "snapshot_age", SqlType::Interval),
    ("fabius", "last_seq", SqlType::BigInt),
    ("fabius", "last_call", SqlType::BigInt),
    ("fabius", "seq", SqlType::BigInt),
];

impl SessionCall {
    pub fn columns(&self) -> Vec<OutputColumn> {
        vec![OutputColumn { name: self.name.clone(), sql_type: self.sql_type.clone(), origin: (0, 0) }]
    }
}

/// A place in the order as a value.
fn place(seq: Option<Seq>) -> Value {
    seq.and_then(|seq| i64::try_from(seq.0).ok()).map_or(Value::Null, Value::BigInt)
}

impl Connection {
    /// The call that a statement is, if it is nothing else.
    pub(super) fn session_function(&self, statement: &ast::Statement) -> Option<SessionCall> {
        let ast::Statement::Query(query) = statement else { return None };
        let ast::SetExpr::Select(select) = &*query.body else { return None };
        if !select.from.is_empty() || select.selection.is_some() || query.with.is_some() {
            return None;
        }
        let [item] = select.projection.as_slice() else { return None };
        let (expression, alias) = match item {
            ast::SelectItem::UnnamedExpr(expression) => (expression, None),
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(folded(alias))),
            _ => return None,
        };
        let ast::Expr::Function(call) = expression else { return None };
        let parts: Vec<String> = call.name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect();
        let (schema, name) = match parts.as_slice() {
            [name] => ("pg_catalog", name.as_str()),
            [schema, name] => (schema.as_str(), name.as_str()),
            _ => return None,
        };
        let (_, function, sql_type) =
            FUNCTIONS.iter().find(|(of, function, _)| *of == schema && *function == name)?;
        let ast::FunctionArguments::List(list) = &call.args else { return None };
        let arguments = list.args.iter().map(|argument| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expression)) => Some(expression.clone()),
            _ => None,
        });
        Some(SessionCall {
            function,
            name: alias.unwrap_or_else(|| function.to_string()),
            sql_type: sql_type.clone(),
            arguments: arguments.collect::<Option<_>>()?,
        })
    }

    /// `nextval`, `currval`, `setval`
    async fn call_of_sequence(
        &mut self,
        catalog: &Catalog,
        function: &str,
        sequence: &Arc<Sequence>,
        rest: &[Value],
    ) -> Result<Value> {
        match (function, rest) {
            ("nextval", _) => {
                catalog.require_next(catalog.role, sequence)?;
                self.next_value(catalog, &sequence.name).await.map(Value::BigInt)
            }
            ("setval", [value, rest @ ..]) => {
                catalog.require(&Relation::Sequence(sequence), Privilege::Update)?;
                let number = value.as_integer().unwrap_or_default();
                let is_called = !matches!(rest, [Value::Boolean(false)]);
                self.database.sequences.set(sequence, number, is_called).await?;
                if is_called {
                    self.session.numbers.note(sequence.oid, number);
                }
                Ok(Value::BigInt(number))
            }
            _ => {
                catalog.require_current(sequence)?;
                self.session.numbers.of(sequence.oid).ok_or_else(|| {
                    let name = &sequence.name.name;
                    let message =
                        format!("currval of sequence \"{name}\" is not yet defined in this session");
                    Error::new(SqlState(*b"55000"), message)
                })
            }
        }
    }

    /// Answers it.
    pub(super) async fn call_session_function(
        &mut self,
        call: SessionCall,
        parameters: &[Value],
    ) -> Result<Response> {
        let argument_types: &[SqlType] = match call.function {
            "pg_sleep" => &[SqlType::Double],
            "setval" => &[SqlType::Text, SqlType::BigInt, SqlType::Boolean],
            _ => &[SqlType::Text],
        };
        let mut arguments = Vec::new();
        for (argument, sql_type) in call.arguments.iter().zip(argument_types) {
            // `'name'::regclass` names what its text names.
            let inner = match argument {
                ast::Expr::Cast { expr, data_type: ast::DataType::Regclass, .. } => expr,
                other => other,
            };
            let value = match inner {
                ast::Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
                    let ast::Value::Placeholder(name) = &value.value else { continue };
                    match parameters.get(index_of(name)?).cloned().unwrap_or_default() {
                        Value::Text(text) => {
                            text_format::read(&text, sql_type, self.session.settings.style(), Fit::Store)?
                        }
                        other => other,
                    }
                }
                other => self.evaluate(other, sql_type).await?,
            };
            arguments.push(value);
        }
        let wrong = || {
            Error::new(
                SqlState::UNDEFINED_FUNCTION,
                format!(
                    "function {}() with {} arguments does not exist",
                    call.function,
                    call.arguments.len()
                ),
            )
        };
        let catalog = self.catalog();
        let value = match (call.function, arguments.as_slice()) {
            (_, arguments) if arguments.iter().any(Value::is_null) => Value::Null,
            ("pg_sleep", [Value::Double(seconds)]) => {
                // Longer than any session lasts is as good as for ever.
                let time = Duration::try_from_secs_f64(seconds.clamp(0.0, 1e9)).unwrap_or_default();
                tokio::time::sleep(time).await;
                Value::Text(String::new())
            }
            ("nextval" | "currval" | "setval", [Value::Text(name), rest @ ..]) => {
                let sequence = catalog.sequence_of_text(name)?.clone();
                self.call_of_sequence(&catalog, call.function, &sequence, rest).await?
            }
            ("lastval", []) => {
                let last = self.session.numbers.last();
                last.ok_or_else(|| {
                    Error::new(SqlState(*b"55000"), "lastval is not yet defined in this session")
                })?
            }
            ("outcome", [Value::Text(key)]) => self.outcome(key),
            ("outcome_seq", [Value::Text(key)]) => {
                let first = self.database.database().first_outcome(key.as_bytes()).await?;
                place(first.and_then(Result::ok))
            }
            ("snapshot_age", []) => {
                let silence = self.database.database().silence().unwrap_or_default();
                let micros = i64::try_from(silence.as_micros()).unwrap_or(i64::MAX);
                Value::Text(interval::write(Interval { micros, ..Interval::default() }))
            }
            ("last_seq", []) => place(self.session.last_seq),
            ("last_call", []) => place(self.session.last_call),
            ("seq", []) => self.current_seq().await?,
            _ => return Err(wrong()),
        };
        Ok(rows_response(call.columns(), vec![vec![value]], "SELECT"))
    }

    /// What became of the call with an idempotency key.
    fn outcome(&self, key: &str) -> Value {
        let words = self.database.database().keyed_call(key.as_bytes()).map(|call| match call {
            KeyedCall::InProgress => "in progress",
            // Here alone, and lost if this node is lost now.
            KeyedCall::Committed if self.database.database().is_ahead() => "committed, not agreed on yet",
            KeyedCall::Committed => "committed",
            KeyedCall::Aborted => "aborted",
        });
        words.map_or(Value::Null, |words| Value::Text(words.into()))
    }
}
