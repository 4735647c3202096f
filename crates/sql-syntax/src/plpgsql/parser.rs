//! Reads PL/pgSQL blocks (PostgreSQL's documentation, chapter 43).
//!
//! Blocks, control structures and declarations are read here; statements that are neither in
//! [`super::statement`]. What no program could do, because it would not end, not repeat, or undo a part of itself,
//! is refused by name and line.

use super::cursor::Cursor;
use super::piece;
use super::tree::{
    Block, Declaration, DeclarationKind, Expression, Loop, LoopKind, Nulls, Query, Statement, StatementKind,
    TypeReference,
};
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_program::syntax::tree::Name;
use fabius_value::{Error, Result, SqlState};

/// Blocks and loops within each other.
const DEPTH_MAX: usize = 60;

/// Reads the body of a function.
///
/// # Errors
/// `42601` for what is not PL/pgSQL, `0A000` for what is refused.
pub fn parse(source: &Source) -> Result<Block> {
    let mut parser = Parser { cursor: Cursor::new(source)?, depth: 0 };
    parser.options()?;
    let label = parser.label()?;
    if !(parser.cursor.is_keyword("declare") || parser.cursor.is_keyword("begin")) {
        return Err(parser.cursor.unexpected());
    }
    let block = parser.block(label)?;
    parser.cursor.accept_symbol(";");
    if parser.cursor.is_at_end() { Ok(block) } else { Err(parser.cursor.unexpected()) }
}

pub(super) struct Parser<'a> {
    pub(super) cursor: Cursor<'a>,
    depth: usize,
}

impl Parser<'_> {
    /// `#variable_conflict error` and its like, before the block.
    fn options(&mut self) -> Result<()> {
        while self.cursor.is_symbol("#") {
            let span = self.cursor.take().span;
            let option = self.cursor.name()?;
            let value = self.cursor.name()?;
            let is_default = match (option.text.as_str(), value.text.as_str()) {
                ("variable_conflict", "error") => true,
                ("variable_conflict", "use_variable" | "use_column") => false,
                ("print_strict_params", "on" | "off") => true,
                _ => return Err(self.cursor.unexpected_token(self.cursor.peek())),
            };
            if !is_default {
                let what = format!("#variable_conflict {}", value.text);
                return Err(self.cursor.refuse(span, &what, "Qualify the names that are ambiguous."));
            }
        }
        Ok(())
    }

    /// `<<label>>`
    fn label(&mut self) -> Result<Option<Name>> {
        if !self.cursor.accept_symbol("<<") {
            return Ok(None);
        }
        let name = self.cursor.name()?;
        self.cursor.expect_symbol(">>")?;
        Ok(Some(name))
    }

    fn deeper<T>(&mut self, span: Span, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            let message = "blocks are nested too deeply";
            return Err(self.cursor.error(SqlState::PROGRAM_LIMIT, span, message));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// `[DECLARE ...] BEGIN ... END [label]`, without the semicolon.
    fn block(&mut self, label: Option<Name>) -> Result<Block> {
        let mut declarations = Vec::new();
        while self.cursor.accept("declare") {
            while !(self.cursor.is_keyword("begin") || self.cursor.is_keyword("declare")) {
                declarations.push(self.declaration()?);
            }
        }
        let begin = self.cursor.peek().span;
        self.cursor.expect("begin")?;
        let statements = self.deeper(begin, |parser| parser.statements(&["end", "exception"]))?;
        if self.cursor.is_keyword("exception") {
            let span = self.cursor.peek().span;
            let hint = "A call is undone as a whole. Test for the case beforehand (IF EXISTS, IF NOT FOUND, \
                        ON CONFLICT), or catch the error in the client.";
            return Err(self.cursor.refuse(span, "EXCEPTION", hint));
        }
        self.cursor.expect("end")?;
        self.end_label(label.as_ref())?;
        Ok(Block { label, declarations, begin, statements, catches: Vec::new() })
    }

    /// The label repeated behind `END` or `END LOOP`.
    fn end_label(&mut self, label: Option<&Name>) -> Result<()> {
        if self.cursor.is_symbol(";") || self.cursor.is_at_end() {
            return Ok(());
        }
        let name = self.cursor.name()?;
        let message = match label {
            Some(label) if label.text == name.text => return Ok(()),
            Some(label) => {
                format!("end label \"{}\" differs from block's label \"{}\"", name.text, label.text)
            }
            None => format!("end label \"{}\" specified for unlabeled block", name.text),
        };
        Err(self.cursor.error(SqlState::SYNTAX_ERROR, name.span, message))
    }

    /// One line of `DECLARE`.
    fn declaration(&mut self) -> Result<Declaration> {
        let name = self.cursor.name()?;
        if self.cursor.accept("alias") {
            self.cursor.expect("for")?;
            let of = self.cursor.path()?;
            self.cursor.expect_symbol(";")?;
            return Ok(Declaration { name, kind: DeclarationKind::Alias(of) });
        }
        if self.cursor.is_keyword("cursor")
            || self.cursor.is_keyword_at(1, "cursor")
            || self.cursor.is_keyword_at(2, "cursor")
        {
            return Err(self.cursor_refused(name.span));
        }
        let is_constant = self.cursor.accept("constant");
        let ty = self.type_reference(&["not", "default", ":=", "=", "collate"])?;
        if self.cursor.is_keyword("collate") {
            let span = self.cursor.peek().span;
            return Err(self.cursor.refuse(span, "COLLATE", "Text compares by its bytes."));
        }
        let is_not_null = self.cursor.accept("not");
        if is_not_null {
            self.cursor.expect("null")?;
        }
        let has_default = self.cursor.accept("default")
            || self.cursor.accept_symbol(":=")
            || self.cursor.accept_symbol("=");
        let default = if has_default { Some(self.expression(&[])?) } else { None };
        if is_not_null && default.is_none() {
            let message =
                format!("variable \"{}\" must have a default value, since it's declared NOT NULL", name.text);
            return Err(self.cursor.error(SqlState(*b"22004"), name.span, message));
        }
        self.cursor.expect_symbol(";")?;
        let nulls = if is_not_null { Nulls::Refused } else { Nulls::Taken };
        Ok(Declaration { name, kind: DeclarationKind::Variable { is_constant, ty, nulls, default } })
    }

    /// A type up to one of these words, or `;`.
    fn type_reference(&mut self, ends: &[&str]) -> Result<TypeReference> {
        let span = self.cursor.until(ends)?;
        let text = self.cursor.text(span);
        if text.eq_ignore_ascii_case("record") {
            return Ok(TypeReference::Record);
        }
        if text.eq_ignore_ascii_case("refcursor") {
            return Err(self.cursor_refused(span));
        }
        let Some(percent) = self.cursor.find(span, |cursor, token| cursor.text(token.span) == "%") else {
            return match piece::data_type(self.cursor.source, span)? {
                sqlparser::ast::DataType::Custom(_, modifiers) if !modifiers.is_empty() => {
                    let message = format!("type \"{text}\" does not exist");
                    Err(self.cursor.error(SqlState(*b"42704"), span, message))
                }
                data_type => Ok(TypeReference::Named(data_type)),
            };
        };
        let back = self.cursor.peek();
        self.cursor.go_to(span.start);
        let path = self.cursor.path()?;
        self.cursor.go_to(percent.span.end);
        let reference = match self.cursor.keyword_of(self.cursor.peek()).as_deref() {
            Some("type") => TypeReference::SameAs(path),
            Some("rowtype") => TypeReference::RowOf(path),
            _ => return Err(self.cursor.unexpected()),
        };
        self.cursor.take();
        if self.cursor.peek().span.start < back.span.start {
            return Err(self.cursor.unexpected());
        }
        Ok(reference)
    }

    /// Statements up to one of these words, which is not passed over.
    pub(super) fn statements(&mut self, ends: &[&str]) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        while !ends.iter().any(|end| self.cursor.is_keyword(end)) {
            let start = self.cursor.peek().span;
            let kind = self.statement()?;
            let end = self.cursor.peek().span;
            self.cursor.expect_symbol(";")?;
            statements.push(Statement { kind, span: Span { start: start.start, end: end.start } });
        }
        Ok(statements)
    }

    /// One statement, without its semicolon.
    fn statement(&mut self) -> Result<StatementKind> {
        let label = self.label()?;
        let first = self.cursor.peek();
        let is_assignment = self.cursor.is_symbol_at(1, ":=")
            || self.cursor.is_symbol_at(1, "=")
            || self.cursor.is_symbol_at(1, ".")
            || self.cursor.is_symbol_at(1, "[");
        let keyword = self.cursor.keyword_of(first).filter(|_| !is_assignment);
        match keyword.as_deref() {
            Some("declare" | "begin") => Ok(StatementKind::Block(self.block(label)?)),
            Some("loop" | "while" | "for" | "foreach") => {
                self.deeper(first.span, |parser| parser.repeat(label)).map(StatementKind::Loop)
            }
            _ if label.is_some() => Err(self.cursor.unexpected()),
            Some("if") => self.deeper(first.span, Parser::condition),
            Some("case") => self.deeper(first.span, Parser::case),
            Some("exit" | "continue") => self.leave(),
            Some("null") => {
                self.cursor.take();
                Ok(StatementKind::Nothing)
            }
            Some(_) => self.simple_statement(),
            None => self.assignment(),
        }
    }

    /// `IF`
    fn condition(&mut self) -> Result<StatementKind> {
        const ENDS: [&str; 4] = ["elsif", "elseif", "else", "end"];
        self.cursor.take();
        let mut arms = Vec::new();
        loop {
            let condition = self.expression(&["then"])?;
            self.cursor.expect("then")?;
            arms.push((condition, self.statements(&ENDS)?));
            if !(self.cursor.accept("elsif") || self.cursor.accept("elseif")) {
                break;
            }
        }
        let otherwise = if self.cursor.accept("else") { Some(self.statements(&["end"])?) } else { None };
        self.cursor.expect("end")?;
        self.cursor.expect("if")?;
        Ok(StatementKind::If { arms, otherwise })
    }

    /// `CASE`
    fn case(&mut self) -> Result<StatementKind> {
        self.cursor.take();
        let operand = if self.cursor.is_keyword("when") { None } else { Some(self.expression(&["when"])?) };
        let mut arms = Vec::new();
        while self.cursor.accept("when") {
            let mut values = vec![self.expression(&["then", ","])?];
            while operand.is_some() && self.cursor.accept_symbol(",") {
                values.push(self.expression(&["then", ","])?);
            }
            self.cursor.expect("then")?;
            arms.push((values, self.statements(&["when", "else", "end"])?));
        }
        if arms.is_empty() {
            return Err(self.cursor.unexpected());
        }
        let otherwise = if self.cursor.accept("else") { Some(self.statements(&["end"])?) } else { None };
        self.cursor.expect("end")?;
        self.cursor.expect("case")?;
        Ok(StatementKind::Case { operand, arms, otherwise })
    }

    /// `LOOP`, `WHILE`, `FOR`, `FOREACH`
    fn repeat(&mut self, label: Option<Name>) -> Result<Loop> {
        let word = self.cursor.keyword_of(self.cursor.peek()).unwrap_or_default();
        self.cursor.take();
        let kind = match word.as_str() {
            "while" => LoopKind::While(self.expression(&["loop"])?),
            "for" => self.for_loop()?,
            "foreach" => self.foreach()?,
            _ => LoopKind::Forever,
        };
        if word != "loop" {
            self.cursor.expect("loop")?;
        }
        let body = self.statements(&["end"])?;
        self.cursor.expect("end")?;
        self.cursor.expect("loop")?;
        self.end_label(label.as_ref())?;
        Ok(Loop { label, kind, body })
    }

    /// What is between `FOR` and `LOOP`.
    fn for_loop(&mut self) -> Result<LoopKind> {
        let targets = self.cursor.paths()?;
        self.cursor.expect("in")?;
        let start = self.cursor.peek();
        if self.cursor.is_keyword("execute") {
            return Err(self.execute_refused(start.span));
        }
        let over = self.cursor.until(&["loop"])?;
        let is_range = self.cursor.find(over, |cursor, token| cursor.text(token.span) == "..").is_some();
        self.cursor.go_to(start.span.start);
        if !is_range {
            let first = self.cursor.keyword_of(start).unwrap_or_default();
            if !matches!(first.as_str(), "select" | "with" | "values" | "insert" | "update" | "delete")
                && !self.cursor.is_symbol("(")
            {
                return Err(self.cursor_refused(start.span));
            }
            let query = self.query(&["loop"])?;
            return Ok(LoopKind::Query { targets, query });
        }
        let [target] = &targets[..] else {
            let message = "integer FOR loop must have only one target variable";
            return Err(self.cursor.error(SqlState::SYNTAX_ERROR, targets[0].span, message));
        };
        let [name] = &target.parts[..] else {
            let message = "loop variable of an integer FOR loop must be a simple name";
            return Err(self.cursor.error(SqlState::SYNTAX_ERROR, target.span, message));
        };
        let variable = Name { text: name.clone(), span: target.span };
        let is_reverse = self.cursor.accept("reverse");
        let from = self.expression(&[".."])?;
        self.cursor.expect_symbol("..")?;
        let to = self.expression(&["loop", "by"])?;
        let by = if self.cursor.accept("by") { Some(self.expression(&["loop"])?) } else { None };
        Ok(LoopKind::Range { variable, is_big: false, is_reverse, from, to, by })
    }

    /// What is between `FOREACH` and `LOOP`.
    fn foreach(&mut self) -> Result<LoopKind> {
        let target = self.cursor.path()?;
        if self.cursor.is_keyword("slice") {
            let span = self.cursor.peek().span;
            return Err(self.cursor.refuse(span, "FOREACH ... SLICE", "Arrays have one dimension."));
        }
        self.cursor.expect("in")?;
        self.cursor.expect("array")?;
        Ok(LoopKind::Array { target, array: self.expression(&["loop"])? })
    }

    /// `EXIT`, `CONTINUE`
    fn leave(&mut self) -> Result<StatementKind> {
        let is_continue = self.cursor.is_keyword("continue");
        self.cursor.take();
        let has_label = !self.cursor.is_symbol(";") && !self.cursor.is_keyword("when");
        let label = if has_label { Some(self.cursor.name()?) } else { None };
        let when = if self.cursor.accept("when") { Some(self.expression(&[])?) } else { None };
        Ok(StatementKind::Leave { is_continue, label, when })
    }

    /// An expression up to one of these words, or `;`.
    pub(super) fn expression(&mut self, ends: &[&str]) -> Result<Expression> {
        let span = self.cursor.until(ends)?;
        Ok(Expression { tree: piece::expression(self.cursor.source, span)?, span })
    }

    /// A statement that gives rows, up to one of these words, or `;`.
    pub(super) fn query(&mut self, ends: &[&str]) -> Result<Query> {
        let span = self.cursor.until(ends)?;
        Ok(Query { tree: Box::new(piece::statement(self.cursor.source, &[span])?), span })
    }

    pub(super) fn execute_refused(&self, span: Span) -> Error {
        let hint = "What a function does is known when it is created. Write the statement itself, with variables \
                    for its values.";
        self.cursor.refuse(span, "EXECUTE", hint)
    }

    pub(super) fn cursor_refused(&self, span: Span) -> Error {
        self.cursor.refuse(span, "a cursor", "Use FOR variable IN query LOOP.")
    }
}
