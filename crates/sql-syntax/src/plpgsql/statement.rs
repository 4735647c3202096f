//! Reads the statements of PL/pgSQL that are not control structures.

use super::parser::Parser;
use super::piece;
use super::token::TokenKind;
use super::tree::{Into, Query, StatementKind};
use fabius_program::syntax::diagnostic::Span;
use fabius_value::{Result, SqlState};
use sqlparser::ast;

impl Parser<'_> {
    /// A statement that begins with a keyword of its own.
    pub(super) fn simple_statement(&mut self) -> Result<StatementKind> {
        let first = self.cursor.peek();
        let word = self.cursor.keyword_of(first).unwrap_or_default();
        match word.as_str() {
            "return" => self.return_statement(),
            "raise" => self.raise().map(StatementKind::Raise),
            "assert" => {
                self.cursor.take();
                let condition = self.expression(&[","])?;
                let message = if self.cursor.accept_symbol(",") { Some(self.expression(&[])?) } else { None };
                Ok(StatementKind::Assert { condition, message })
            }
            "perform" => {
                self.cursor.take();
                let span = self.cursor.until(&[])?;
                let tree = Box::new(piece::select(self.cursor.source, span)?);
                Ok(StatementKind::Perform(Query { tree, span }))
            }
            "call" => self.call(),
            "get" => self.diagnostics(),
            "execute" => Err(self.execute_refused(first.span)),
            "open" | "fetch" | "close" | "move" => Err(self.cursor_refused(first.span)),
            "commit" | "rollback" | "savepoint" | "start" | "release" => {
                let hint = "A call is one transaction: it commits as a whole, or not at all. End the transaction in \
                            the client.";
                Err(self.cursor.refuse(first.span, &word.to_uppercase(), hint))
            }
            "select" | "insert" | "update" | "delete" | "with" | "values" | "merge" => self.sql(),
            "create" | "drop" | "alter" | "truncate" | "copy" | "lock" | "set" | "reset" | "vacuum"
            | "analyze" | "grant" | "revoke" | "comment" | "listen" | "notify" | "prepare" | "explain"
            | "show" | "refresh" | "reindex" | "cluster" | "do" | "discard" => {
                let second = self.cursor.keyword_of(self.cursor.peek_at(1)).unwrap_or_default();
                let what = match word.as_str() {
                    "create" | "drop" | "alter" => format!("{word} {second}").trim_end().to_uppercase(),
                    _ => word.to_uppercase(),
                };
                let hint = "A function reads and writes rows. Run the statement outside of it.";
                Err(self.cursor.refuse(first.span, &what, hint))
            }
            _ => self.assignment(),
        }
    }

    /// `target := e`, `target = e`
    pub(super) fn assignment(&mut self) -> Result<StatementKind> {
        let first = self.cursor.peek();
        if !matches!(first.kind, TokenKind::Word | TokenKind::QuotedName | TokenKind::Parameter) {
            return Err(self.cursor.unexpected());
        }
        let target = self.cursor.path()?;
        if self.cursor.accept_symbol("[") {
            let index = self.expression(&["]"])?;
            self.cursor.expect_symbol("]")?;
            if !(self.cursor.accept_symbol(":=") || self.cursor.accept_symbol("=")) {
                return Err(self.cursor.unexpected());
            }
            let value = self.expression(&[])?;
            return Ok(StatementKind::AssignElement { target, index, value });
        }
        if !(self.cursor.accept_symbol(":=") || self.cursor.accept_symbol("=")) {
            return Err(self.cursor.unexpected_token(first));
        }
        Ok(StatementKind::Assign { target, value: self.expression(&[])? })
    }

    fn return_statement(&mut self) -> Result<StatementKind> {
        self.cursor.take();
        if self.cursor.is_symbol(";") {
            return Ok(StatementKind::Return(None));
        }
        if self.cursor.is_keyword("next") {
            self.cursor.take();
            let value = if self.cursor.is_symbol(";") { None } else { Some(self.expression(&[])?) };
            return Ok(StatementKind::ReturnNext(value));
        }
        if self.cursor.is_keyword("query") && !self.cursor.is_symbol_at(1, ";") {
            self.cursor.take();
            if self.cursor.is_keyword("execute") {
                return Err(self.execute_refused(self.cursor.peek().span));
            }
            return Ok(StatementKind::ReturnQuery(self.query(&[])?));
        }
        Ok(StatementKind::Return(Some(self.expression(&[])?)))
    }

    fn call(&mut self) -> Result<StatementKind> {
        let span = self.cursor.until(&[])?;
        match piece::statement(self.cursor.source, &[span])? {
            ast::Statement::Call(function) => Ok(StatementKind::Call(Box::new(function))),
            _ => Err(self.cursor.error(SqlState::SYNTAX_ERROR, span, "syntax error at or near \"CALL\"")),
        }
    }

    /// `GET [CURRENT] DIAGNOSTICS x = ROW_COUNT, ...`
    fn diagnostics(&mut self) -> Result<StatementKind> {
        self.cursor.take();
        if self.cursor.is_keyword("stacked") {
            let span = self.cursor.peek().span;
            let hint = "There are no exception handlers.";
            return Err(self.cursor.refuse(span, "GET STACKED DIAGNOSTICS", hint));
        }
        self.cursor.accept("current");
        self.cursor.expect("diagnostics")?;
        let mut targets = Vec::new();
        loop {
            targets.push(self.cursor.path()?);
            if !(self.cursor.accept_symbol(":=") || self.cursor.accept_symbol("=")) {
                return Err(self.cursor.unexpected());
            }
            let item = self.cursor.name()?;
            match item.text.as_str() {
                "row_count" => {}
                "pg_context" | "pg_routine_oid" => {
                    let what = format!("GET DIAGNOSTICS {}", item.text.to_uppercase());
                    return Err(self.cursor.refuse(item.span, &what, "ROW_COUNT is."));
                }
                other => {
                    let message = format!("unrecognized GET DIAGNOSTICS item at or near \"{other}\"");
                    return Err(self.cursor.error(SqlState::SYNTAX_ERROR, item.span, message));
                }
            }
            if !self.cursor.accept_symbol(",") {
                return Ok(StatementKind::RowCount(targets));
            }
        }
    }

    /// A statement of SQL, from which `INTO [STRICT] targets` is cut out.
    fn sql(&mut self) -> Result<StatementKind> {
        let start = self.cursor.peek();
        let span = self.cursor.until(&[])?;
        let end = self.cursor.peek();
        let mut before = start;
        let mut clause = None;
        let mut from = span;
        while let Some(token) =
            self.cursor.find(from, |cursor, token| cursor.text(token.span).eq_ignore_ascii_case("into"))
        {
            self.cursor.go_to(start.span.start);
            while self.cursor.peek().span.start < token.span.start {
                before = self.cursor.take();
            }
            let previous = self.cursor.keyword_of(before).unwrap_or_default();
            if token.kind == TokenKind::Word && !matches!(previous.as_str(), "insert" | "merge") {
                clause = Some(token);
                break;
            }
            from.start = token.span.end;
        }
        let Some(clause) = clause else {
            self.cursor.go_to(end.span.start);
            let statement = piece::statement(self.cursor.source, &[span])?;
            return self.sql_statement(span, statement, None);
        };
        self.cursor.take();
        let is_strict = self.cursor.accept("strict");
        let targets = self.cursor.paths()?;
        let after = self.cursor.peek().span.start;
        self.cursor.go_to(end.span.start);
        let parts = [
            Span { start: span.start, end: clause.span.start },
            Span { start: after.min(span.end), end: span.end },
        ];
        let statement = piece::statement(self.cursor.source, &parts)?;
        self.sql_statement(span, statement, Some(Into { is_strict, targets }))
    }

    fn sql_statement(
        &self,
        span: Span,
        statement: ast::Statement,
        into: Option<Into>,
    ) -> Result<StatementKind> {
        let is_query = matches!(&statement, ast::Statement::Query(query)
            if !matches!(*query.body, ast::SetExpr::Insert(_) | ast::SetExpr::Update(_) | ast::SetExpr::Delete(_)));
        if is_query && into.is_none() {
            let message = "query has no destination for result data";
            let error = self.cursor.error(SqlState::SYNTAX_ERROR, span, message);
            return Err(
                error.with_hint("If you want to discard the results of a SELECT, use PERFORM instead.")
            );
        }
        Ok(StatementKind::Sql { statement: Box::new(statement), into })
    }
}
