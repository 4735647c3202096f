//! What callers are told: texts, and exceptions that end the transaction.

use super::class::Class;
use super::lowering::Lowering;
use super::value::text;
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_syntax::plpgsql::tree::{
    Expression as Written, Level, Raise, RaiseOption, StatementKind as Kind,
};
use fabius_sql_syntax::python::tree::Expression;
use fabius_value::Result;
use sqlparser::ast::Expr;

/// The SQLSTATE of an exception that a function raises; the detail has its class.
pub const RAISED: &str = "PY000";

/// The class of what `fabius.require` and `fabius.abort` raise.
pub const ABORTED: &str = "fabius.Aborted";

/// The class of what says that a row is not there.
pub const ROW_NOT_FOUND: &str = "fabius.RowNotFound";

/// What stands before the class of an exception without a text.
const BARE: &str = "bare ";

impl Lowering<'_> {
    /// A text for the caller.
    pub(super) fn say(&mut self, state: &str, value: &Expression) -> Result<Kind> {
        let span = value.span;
        let value = self.value(value)?;
        let shown = self.shown(value)?;
        Ok(self.notice(state, shown, span))
    }

    fn notice(&self, state: &str, message: Expr, span: Span) -> Kind {
        let state = (RaiseOption::State, self.written(text(state), span));
        self.raising((Level::Notice(Some("NOTICE")), None), message, vec![state], span)
    }

    /// `raise kind(message)`
    pub(super) fn raise(&mut self, kind: &str, message: &Expression, span: Span) -> Result<Kind> {
        let message = self.value(message)?;
        let is_kept = matches!(
            message.class,
            Class::None | Class::Pending | Class::Boolean | Class::Whole | Class::Decimal | Class::Text
        );
        if !is_kept {
            let what = format!("an exception of a {}", message.class.name());
            return self.refused(message.span, &what, "give it a text: str(...)");
        }
        let class = kind.strip_prefix(BARE).unwrap_or(kind).to_string();
        // What is no text stays what it is.
        let kind = match message.class {
            Class::Whole => format!("{kind}:int"),
            Class::Boolean => format!("{kind}:bool"),
            Class::None => format!("{kind}:None"),
            _ => kind.to_string(),
        };
        let message = self.shown(message)?;
        Ok(self.exception((&class, &kind), message, span))
    }

    /// An exception of a class, which callers are told as `kind`.
    pub(super) fn exception(&self, (class, kind): (&str, &str), message: Expr, span: Span) -> Kind {
        let state = (RaiseOption::State, self.written(text(RAISED), span));
        let options = vec![state, self.place_of(kind, span)];
        self.raising((Level::Exception, Some(class.into())), message, options, span)
    }

    /// Where an exception is raised, and of which class it is.
    pub(super) fn place_of(&self, kind: &str, span: Span) -> (RaiseOption, Written) {
        let place = text(&format!("{kind}@{}@{}", self.source.file, self.line(span)));
        (RaiseOption::Detail, self.written(place, span))
    }

    pub(super) fn raising(
        &self,
        (level, class): (Level, Option<String>),
        message: Expr,
        options: Vec<(RaiseOption, Written)>,
        span: Span,
    ) -> Kind {
        Kind::Raise(Raise {
            level,
            state: None,
            condition: None,
            format: Some(vec![String::new(), String::new()]),
            arguments: vec![self.written(message, span)],
            options,
            class,
        })
    }
}
