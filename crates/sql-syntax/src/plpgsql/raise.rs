//! Reads `RAISE` (PostgreSQL's documentation, 43.9).

use super::condition::{self, is_state};
use super::parser::Parser;
use super::token::{TokenKind, text_value};
use super::tree::{Level, Raise, RaiseOption};
use fabius_program::syntax::diagnostic::Span;
use fabius_value::{Error, Result, SqlState};

impl Parser<'_> {
    /// `RAISE [level] [message or condition] [USING ...]`
    pub(super) fn raise(&mut self) -> Result<Raise> {
        let span = self.cursor.take().span;
        if self.cursor.is_symbol(";") {
            let message = "RAISE without parameters cannot be used outside an exception handler";
            return Err(self.cursor.error(SqlState(*b"0Z002"), span, message));
        }
        let level = self.level();
        let (mut state, mut condition, mut format) = (None, None, None);
        let mut arguments = Vec::new();
        let first = self.cursor.peek();
        if first.kind == TokenKind::Text {
            let parts = parts(&self.text()?);
            while self.cursor.accept_symbol(",") {
                arguments.push(self.expression(&[",", "using"])?);
            }
            if arguments.len() + 1 != parts.len() {
                let few = if arguments.len() + 1 < parts.len() { "few" } else { "many" };
                let message = format!("too {few} parameters specified for RAISE");
                return Err(self.cursor.error(SqlState::SYNTAX_ERROR, first.span, message));
            }
            format = Some(parts);
        } else if self.cursor.accept("sqlstate") {
            let code = self.text()?;
            if !is_state(&code) {
                let message = format!("invalid SQLSTATE code \"{code}\"");
                return Err(self.cursor.error(SqlState::SYNTAX_ERROR, first.span, message));
            }
            condition = Some(code.clone());
            state = Some(code);
        } else if !(self.cursor.is_keyword("using") || self.cursor.is_symbol(";")) {
            let name = self.cursor.name()?;
            let code =
                condition::state(&name.text).ok_or_else(|| self.no_condition(&name.text, name.span))?;
            state = Some(code.to_string());
            condition = Some(name.text);
        }
        let options = if self.cursor.accept("using") { self.options_of_raise()? } else { Vec::new() };
        let has_state = state.is_some();
        let twice = |option: RaiseOption, given: bool| {
            options.iter().filter(|(known, _)| *known == option).count() + usize::from(given) > 1
        };
        let doubled = [
            (RaiseOption::Message, format.is_some()),
            (RaiseOption::Detail, false),
            (RaiseOption::Hint, false),
            (RaiseOption::State, has_state),
        ];
        if let Some((option, _)) = doubled.into_iter().find(|(option, given)| twice(*option, *given)) {
            let name = match option {
                RaiseOption::Message => "MESSAGE",
                RaiseOption::Detail => "DETAIL",
                RaiseOption::Hint => "HINT",
                RaiseOption::State => "ERRCODE",
            };
            let message = format!("RAISE option already specified: {name}");
            return Err(self.cursor.error(SqlState::SYNTAX_ERROR, span, message));
        }
        Ok(Raise { level, state, condition, format, arguments, options, class: None })
    }

    fn level(&mut self) -> Level {
        const LEVELS: [(&str, Level); 6] = [
            ("exception", Level::Exception),
            ("warning", Level::Notice(Some("WARNING"))),
            ("notice", Level::Notice(Some("NOTICE"))),
            ("info", Level::Notice(Some("INFO"))),
            ("log", Level::Notice(None)),
            ("debug", Level::Notice(None)),
        ];
        let found = LEVELS.iter().find(|(word, _)| self.cursor.is_keyword(word));
        found.map_or(Level::Exception, |(_, level)| {
            self.cursor.take();
            *level
        })
    }

    /// A text in quotes.
    fn text(&mut self) -> Result<String> {
        let token = self.cursor.peek();
        let text =
            (token.kind == TokenKind::Text).then(|| text_value(self.cursor.text(token.span))).flatten();
        let text = text.ok_or_else(|| self.cursor.unexpected())?;
        self.cursor.take();
        Ok(text)
    }

    fn options_of_raise(&mut self) -> Result<Vec<(RaiseOption, super::tree::Expression)>> {
        let mut options = Vec::new();
        loop {
            let name = self.cursor.name()?;
            let option = match name.text.as_str() {
                "message" => RaiseOption::Message,
                "detail" => RaiseOption::Detail,
                "hint" => RaiseOption::Hint,
                "errcode" => RaiseOption::State,
                "column" | "constraint" | "datatype" | "table" | "schema" => {
                    let what = format!("RAISE ... USING {}", name.text.to_uppercase());
                    let hint = "MESSAGE, DETAIL, HINT and ERRCODE are.";
                    return Err(self.cursor.refuse(name.span, &what, hint));
                }
                other => {
                    let message = format!("unrecognized RAISE statement option at or near \"{other}\"");
                    return Err(self.cursor.error(SqlState::SYNTAX_ERROR, name.span, message));
                }
            };
            if !(self.cursor.accept_symbol("=") || self.cursor.accept_symbol(":=")) {
                return Err(self.cursor.unexpected());
            }
            options.push((option, self.expression(&[","])?));
            if !self.cursor.accept_symbol(",") {
                return Ok(options);
            }
        }
    }

    fn no_condition(&self, name: &str, span: Span) -> Error {
        let message = format!("unrecognized exception condition \"{name}\"");
        self.cursor.error(SqlState(*b"42704"), span, message)
    }
}

/// A format divided at each `%`; `%%` is one percent sign.
fn parts(format: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = format.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '%' && characters.next_if_eq(&'%').is_none() {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}
