//! `RAISE` and `ASSERT`.

use super::scope::Scope;
use super::sequence::Flow;
use super::{Compiler, NOTICES};
use crate::bind::{Bind, Binder, Bound, tree as build};
use fabius_program::syntax::tree::{self as program, BinaryOperator, Block, Failure, Message};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::condition;
use fabius_sql_syntax::plpgsql::condition::is_state;
use fabius_sql_syntax::plpgsql::tree::{Expression, Level, Raise, RaiseOption};
use fabius_value::{DataType, Result, SqlState};
use sqlparser::ast;

impl Compiler<'_> {
    /// `RAISE`
    pub(super) fn raise(&mut self, raise: &Raise, scope: &Scope<'_>, block: &mut Block) -> Result<Flow> {
        let severity = match raise.level {
            Level::Exception => None,
            Level::Notice(None) => return Ok(Flow::default()),
            Level::Notice(Some(severity)) => Some(severity),
        };
        let state = self.state_of(raise, severity)?;
        let option =
            |wanted| raise.options.iter().find(|(option, _)| *option == wanted).map(|(_, value)| value);
        let message = match (&raise.format, option(RaiseOption::Message)) {
            (Some(parts), _) => self.formatted(parts, &raise.arguments, scope, block)?,
            (None, Some(message)) => Text::Computed(self.text(message, scope, block)?),
            (None, None) => {
                let code = std::str::from_utf8(&state.0).unwrap_or("P0001").to_string();
                Text::Fixed(raise.condition.clone().unwrap_or(code))
            }
        };
        let class = raise.class.as_deref();
        if let Some((class, catching)) =
            class.and_then(|class| Some((class, self.catches.of(class)?.clone())))
        {
            block.push(build::assign(&catching.message, message.into_expression()));
            if let (Some((to_class, to_detail)), Some(detail)) =
                (&catching.again, option(RaiseOption::Detail))
            {
                let detail = self.text(detail, scope, block)?;
                block.push(build::assign(to_class, build::text(class)));
                block.push(build::assign(to_detail, detail));
            }
            block.push(build::assign(&catching.caught, build::boolean(true)));
            block.push(build::assign(&catching.exit, build::boolean(true)));
            return Ok(Flow { leaves: true, flags: [catching.exit].into() });
        }
        let mut extra = |compiler: &mut Self, wanted| match option(wanted) {
            Some(value) => compiler.text(value, scope, block).map(Some),
            None => Ok(None),
        };
        let detail = extra(self, RaiseOption::Detail)?;
        let hint = extra(self, RaiseOption::Hint)?;
        let Some(severity) = severity else {
            let message = match message {
                Text::Fixed(text) => Message::Fixed(text),
                Text::Computed(expression) => Message::Computed(expression),
            };
            let detail = detail.or_else(no_detail);
            let failure = Failure { message, state: Some(state), detail, hint };
            let kind = program::StatementKind::Require { condition: build::boolean(false), failure };
            block.push(build::statement(kind));
            return Ok(Flow { leaves: true, ..Flow::default() });
        };
        self.notices = true;
        let message = message.into_expression();
        let absent = || build::typed_null(DataType::TEXT);
        block.push(build::append(
            NOTICES,
            vec![
                build::text(severity),
                build::text(state.as_str()),
                build::call("coalesce", vec![message, build::text("")]),
                detail.unwrap_or_else(absent),
                hint.unwrap_or_else(absent),
            ],
        ));
        Ok(Flow::default())
    }

    /// The code; it has to be known beforehand.
    fn state_of(&self, raise: &Raise, severity: Option<&str>) -> Result<SqlState> {
        let option = raise.options.iter().find(|(option, _)| *option == RaiseOption::State);
        let code = match (&raise.state, option) {
            (Some(code), _) => code.clone(),
            (None, None) => match severity {
                None => "P0001".to_string(),
                Some("WARNING") => "01000".to_string(),
                Some(_) => "00000".to_string(),
            },
            (None, Some((_, value))) => {
                let written = match &value.tree {
                    ast::Expr::Value(value) => match &value.value {
                        ast::Value::SingleQuotedString(text) => Some(text.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                let Some(written) = written else {
                    let message = "an ERRCODE that is not a literal is not supported in a function";
                    return Err(self.error(b"0A000", value.span, message));
                };
                if is_state(&written) {
                    written
                } else if let Some(code) = condition::state(&written) {
                    code.to_string()
                } else {
                    let message = format!("unrecognized exception condition \"{written}\"");
                    return Err(self.error(b"42704", value.span, message));
                }
            }
        };
        let bytes: Result<[u8; 5], _> = code.as_bytes().try_into();
        Ok(bytes.map_or(SqlState::RAISED, SqlState))
    }

    fn formatted(
        &mut self,
        parts: &[String],
        arguments: &[Expression],
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Text> {
        let mut parts = parts.iter();
        let first = parts.next().cloned().unwrap_or_default();
        if arguments.is_empty() {
            return Ok(Text::Fixed(first));
        }
        let mut all = (!first.is_empty()).then(|| build::text(first));
        for (argument, part) in arguments.iter().zip(parts) {
            let shown = self.bind(scope, argument.span, block, |_, binder| shown(binder, &argument.tree))?;
            let pieces = [Some(shown), (!part.is_empty()).then(|| build::text(part.clone()))];
            for piece in pieces.into_iter().flatten() {
                all = Some(match all {
                    None => piece,
                    Some(all) => build::binary(BinaryOperator::Concatenate, all, piece),
                });
            }
        }
        Ok(Text::Computed(all.unwrap_or_else(|| build::text(""))))
    }

    /// An option's value as text.
    fn text(
        &mut self,
        value: &Expression,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<program::Expression> {
        self.bind(scope, value.span, block, |_, binder| {
            let bound = binder.expression(&value.tree, Some(&SqlType::Text))?;
            Ok(binder.coerced(bound, &SqlType::Text)?.expression)
        })
    }

    /// `ASSERT`
    pub(super) fn assertion(
        &mut self,
        condition: &Expression,
        message: Option<&Expression>,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let (holds, _) = self.condition(condition, scope, block)?;
        let message = match message {
            None => Message::Fixed("assertion failed".into()),
            Some(message) => Message::Computed(self.text(message, scope, block)?),
        };
        let state = Some(SqlState(*b"P0004"));
        let failure = Failure { message, state, detail: no_detail(), hint: None };
        let kind = program::StatementKind::Require { condition: holds, failure };
        block.push(build::statement(kind));
        Ok(())
    }
}

/// The detail of a failure that has none: not the values that its condition mentions.
fn no_detail() -> Option<program::Expression> {
    Some(build::typed_null(DataType::TEXT))
}

/// A message.
enum Text {
    Fixed(String),
    Computed(program::Expression),
}

impl Text {
    fn into_expression(self) -> program::Expression {
        match self {
            Text::Fixed(text) => build::text(text),
            Text::Computed(expression) => expression,
        }
    }
}

/// A value as `RAISE` shows it: as its type prints, `<NULL>` for null.
fn shown(binder: &mut Binder<'_>, tree: &ast::Expr) -> Bind<program::Expression> {
    let bound = binder.expression(tree, None)?;
    let nullable = bound.nullable;
    let text = if bound.sql_type == SqlType::Boolean {
        let value = bound.expression;
        let otherwise = match nullable {
            true => build::choice(
                build::is_null(value.clone(), false),
                build::typed_null(DataType::TEXT),
                build::text("f"),
            ),
            false => build::text("f"),
        };
        build::choice(value, build::text("t"), otherwise)
    } else {
        let cast: Bound = binder.coerced(bound, &SqlType::Text)?;
        cast.expression
    };
    Ok(match nullable {
        true => build::call("coalesce", vec![text, build::text("<NULL>")]),
        false => text,
    })
}
