//! Tokens to definitions, by recursive descent. The grammar of statements is here too; they are read
//! in [`statement`](super::statement), expressions in [`expression`](super::expression).
//!
//! ```text
//! file       = { table | procedure | "drop" ( "table" | "procedure" ) name }
//! table      = "table" name "{" part { "," part } [ "," ] "}"
//! part       = name ":" scalar
//!            | "primary" "key" "(" names ")" [ "using" "hash" ]
//!            | [ "unique" ] "index" name "(" names ")"
//! procedure  = "procedure" name "(" [ fields ] ")" [ "->" ( type | "(" fields ")" ) ] block
//! fields     = name ":" type { "," name ":" type }
//! type       = scalar | "list" "of" ( scalar | "(" name ":" scalar { "," name ":" scalar } ")" )
//! scalar     = data-type [ "null" ]
//! block      = "{" { statement } "}"
//! statement  = ( "let" | "var" ) name [ ":" type ] "=" e
//!            | ( name | row "." name ) ( "=" | "+=" | "-=" | "*=" | "/=" | "%=" ) e
//!            | "require" e "," ( message | e ) [ "," "sqlstate" text ] [ "," "detail" e ] [ "," "hint" e ]
//!            | ( "insert" | "upsert" ) name columns
//!            | "update" row columns
//!            | "delete" row
//!            | "sort" name [ "by" name ] direction { "," name direction }
//!            | "append" name "(" e { "," e } ")"
//!            | "if" e block { "else" "if" e block } [ "else" block ]
//!            | "for" name "in" e "to" e block
//!            | "for" name "in" name [ "by" name ] [ range ]
//!              [ "where" e ] [ "descending" ] [ "limit" e ] block
//!            | "return" e { "," e }
//! direction  = [ "descending" ] [ "nulls" ( "first" | "last" ) ]
//! columns    = "{" name ":" e { "," name ":" e } [ "," ] "}"
//! row        = name | name "[" e { "," e } "]"
//! range      = "[" { e "," } ( e | [ e ] ( ".." | "<.." | "..<" | "<..<" ) [ e ] ) "]"
//! ```
//!
//! Statements need no separator: none begins with a token that can continue an expression. The words
//! in [`RESERVED`] name nothing unless they stand in backquotes, after a dot, or before a colon.

use super::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Diagnostics, Source, Span};
use super::lexer::{Token, TokenKind, tokens};
use super::tree::*;
use fabius_value::{DataType, SqlState, limit};
use std::sync::Arc;

/// Words that are no names of variables, tables or functions.
pub const RESERVED: &[&str] = &[
    "and",
    "append",
    "between",
    "delete",
    "else",
    "exists",
    "false",
    "for",
    "if",
    "in",
    "insert",
    "is",
    "let",
    "not",
    "null",
    "or",
    "procedure",
    "require",
    "return",
    "table",
    "then",
    "to",
    "true",
    "update",
    "upsert",
    "var",
    "where",
];

/// Reads every definition of a text. `file` is for messages.
///
/// # Errors
/// What does not follow the grammar: the first error of each definition, as far as the first thing
/// that is no token.
pub fn parse(text: &str, file: &str) -> Result<Vec<Definition>, Diagnostics> {
    let source = Arc::new(Source::new(text, file));
    let fail = |list| Diagnostics { source: source.clone(), list };
    if u32::try_from(text.len()).is_err() {
        let message = "a text of more than 4 GiB cannot be read";
        return Err(fail(vec![Diagnostic::new(SqlState::PROGRAM_LIMIT, Span::default(), message)]));
    }
    let (tokens, stray) = tokens(text);
    let mut parser = Parser { tokens, at: 0, depth: 0, chained: 0, source: source.clone() };
    let (mut definitions, mut errors) = (Vec::new(), Vec::new());
    while parser.peek() != &TokenKind::End {
        match parser.definition() {
            Ok(definition) => definitions.push(definition),
            Err(error) => {
                errors.push(parser.unless_comment(*error));
                parser.skip_to_definition();
            }
        }
        if errors.len() > DIAGNOSTICS_MAX {
            break;
        }
    }
    if let Some(stray) = stray {
        let stray = parser.unless_comment(stray);
        // Where the tokens end, the text does not.
        errors.retain(|error| error.span.end <= stray.span.start && error.span.start < stray.span.start);
        errors.push(stray);
    }
    if errors.is_empty() { Ok(definitions) } else { Err(fail(errors)) }
}

/// What reading a part of a text gives.
pub type Parsed<T> = Result<T, Box<Diagnostic>>;

/// The error, with the form of what was being read unless it says already what to do.
pub(super) fn formed(mut error: Box<Diagnostic>, what: &str, form: &str) -> Box<Diagnostic> {
    error.hint.get_or_insert_with(|| format!("{what} is written: {form}"));
    error
}

/// A place in the tokens.
#[derive(Debug)]
pub struct Parser {
    tokens: Vec<Token>,
    pub(super) at: usize,
    /// Blocks and parentheses around the current token.
    pub(super) depth: usize,
    /// How many of them are branches of the same `if`, each an `else if` of the one before.
    pub(super) chained: usize,
    source: Arc<Source>,
}

impl Parser {
    // ---- tokens ----

    pub(super) fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    pub(super) fn peek_after(&self, count: usize) -> &TokenKind {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// From `start` to the end of the token before this one.
    pub(super) fn span_from(&self, start: Span) -> Span {
        start.to(self.tokens[self.at.saturating_sub(1)].span)
    }

    /// The current token, which is left behind unless it is the last.
    pub(super) fn advance(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    pub(super) fn at_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), TokenKind::Symbol(found) if *found == symbol)
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Word(found) if found == word)
    }

    pub(super) fn eat_symbol(&mut self, symbol: &str) -> bool {
        let found = self.at_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> Parsed<Span> {
        let span = self.span();
        if self.eat_symbol(symbol) { Ok(span) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    pub(super) fn word(&mut self, word: &str) -> Parsed<Span> {
        let span = self.span();
        if self.eat_word(word) { Ok(span) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// The line that a place is in.
    pub(super) fn line(&self, span: Span) -> u32 {
        self.source.line(span.start)
    }

    pub(super) fn expected(&self, what: &str) -> Box<Diagnostic> {
        let found = match self.peek() {
            TokenKind::Word(word) => format!("`{word}`"),
            TokenKind::Quoted(name) => format!("`{name}`"),
            TokenKind::Integer(number) => number.to_string(),
            TokenKind::Decimal(number) => number.to_string(),
            TokenKind::Text(_) => "a text".into(),
            TokenKind::Message(_) => "a message in double quotes".into(),
            TokenKind::Bytes(_) => "bytes".into(),
            TokenKind::Symbol(symbol) => format!("`{symbol}`"),
            TokenKind::End => "the end of the text".into(),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(SqlState::SYNTAX_ERROR, self.span(), message))
    }

    /// Runs `inner` one level deeper, so that no text can exhaust the stack.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Parser) -> Parsed<T>) -> Parsed<T> {
        if self.depth == limit::NESTING {
            let hint = match self.chained > limit::NESTING / 2 {
                true => {
                    "every else if is one level deeper; choose in two steps, if n < 30 { ... } else { ... }, \
                     or keep what is chosen in a table"
                }
                false => "compute parts of it before, in variables of their own",
            };
            return Err(Box::new(
                Diagnostic::new(
                    SqlState::PROGRAM_LIMIT,
                    self.span(),
                    format!("more than {} nested blocks and parentheses", limit::NESTING),
                )
                .with_hint(hint),
            ));
        }
        self.depth += 1;
        let parsed = inner(self);
        self.depth -= 1;
        parsed
    }

    /// One or more `item`s with commas between them, and perhaps one after the last, up to and with
    /// the `close` symbol.
    pub(super) fn listed<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Parser) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_symbol(",") && !self.at_symbol(close) {
            items.push(item(self)?);
        }
        if !self.eat_symbol(close) {
            return Err(self.expected(&format!("`,` or `{close}`")));
        }
        Ok(items)
    }

    fn skip_to_definition(&mut self) {
        let begins = |parser: &Parser| {
            let opens = |symbol| *parser.peek_after(2) == TokenKind::Symbol(symbol);
            (parser.at_word("table") && opens("{")) || (parser.at_word("procedure") && opens("("))
        };
        (self.depth, self.chained) = (0, 0);
        while self.peek() != &TokenKind::End && (self.at == 0 || !begins(self)) {
            self.at += 1;
        }
    }

    /// The error, or two dashes if they stand before it, in its line or that of the token before, and
    /// what is behind them was meant as a comment: at the beginning of a line, several words, or nothing
    /// that has a sign.
    fn unless_comment(&self, error: Diagnostic) -> Diagnostic {
        let line = |token: &Token| self.source.line(token.span.start);
        let next = self.tokens.partition_point(|token| token.span.start <= error.span.start);
        let first = line(&self.tokens[next.saturating_sub(2)]);
        let is_dash = |token: &Token| token.kind == TokenKind::Symbol("-");
        let is_word = |token: &Token| matches!(token.kind, TokenKind::Word(_));
        let has_sign = |token: &Token| match &token.kind {
            TokenKind::Symbol(symbol) => *symbol == "(",
            kind => *kind != TokenKind::End,
        };
        let is_comment = |at: usize| {
            let [one, other] = [at, at + 1].map(|at| &self.tokens[at]);
            let behind: Vec<&Token> =
                self.tokens[at + 2..].iter().take_while(|token| line(token) == line(one)).take(2).collect();
            is_dash(one)
                && is_dash(other)
                && one.span.end == other.span.start
                && (at == 0
                    || line(&self.tokens[at - 1]) < line(one)
                    || behind.first().is_none_or(|token| !has_sign(token))
                    || behind.len() == 2 && behind.iter().all(|token| is_word(token)))
        };
        let near = 0..next.min(self.tokens.len() - 1);
        let dashes = near.rev().take_while(|&at| line(&self.tokens[at]) >= first).find(|&at| is_comment(at));
        match dashes {
            Some(at) if error.state == SqlState::SYNTAX_ERROR => {
                let span = self.tokens[at].span.to(self.tokens[at + 1].span);
                Diagnostic::new(SqlState::SYNTAX_ERROR, span, "unexpected `--`")
                    .with_hint("a comment starts with //; one less is a -= 1")
            }
            _ => error,
        }
    }

    // ---- names and types ----

    /// A name that is not a reserved word.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        if let TokenKind::Word(word) = self.peek()
            && RESERVED.contains(&word.as_str())
        {
            let mut error = self.expected(what);
            error.hint = Some(format!(
                "{word} is a word of the language; as a name it stands in backquotes: `{word}`"
            ));
            return Err(error);
        }
        self.any_name(what)
    }

    /// A name where reserved words cannot be meant: after a dot or before a colon.
    pub(super) fn any_name(&mut self, what: &str) -> Parsed<Name> {
        match self.peek() {
            TokenKind::Word(_) | TokenKind::Quoted(_) => {
                let Token { kind, span } = self.advance();
                let (TokenKind::Word(text) | TokenKind::Quoted(text)) = kind else { unreachable!() };
                Ok(Name { text, span })
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn ty(&mut self) -> Parsed<TypeName> {
        let start = self.span();
        let kind = if self.at_word("list") && *self.peek_after(1) == TokenKind::Word("of".into()) {
            self.at += 2;
            if self.eat_symbol("(") {
                TypeKind::Records(self.listed(")", Parser::column_definition)?)
            } else {
                TypeKind::List(self.scalar()?)
            }
        } else {
            TypeKind::Scalar(self.scalar()?)
        };
        Ok(TypeName { kind, span: self.span_from(start) })
    }

    fn scalar(&mut self) -> Parsed<ScalarName> {
        let start = self.span();
        let data_type = self.data_type()?;
        let nullable = self.eat_word("null");
        Ok(ScalarName { data_type, nullable, span: self.span_from(start) })
    }

    /// A type by any of its SQL names.
    pub(super) fn data_type(&mut self) -> Parsed<DataType> {
        const NAMES: &[&str] = &[
            "boolean",
            "smallint",
            "int",
            "bigint",
            "numeric",
            "double",
            "text",
            "varchar",
            "char",
            "bytea",
            "date",
            "timestamp",
        ];
        let start = self.span();
        let name = self.any_name("a type")?;
        let data_type = match name.text.as_str() {
            "boolean" | "bool" => DataType::Boolean,
            "smallint" | "int2" => DataType::SmallInt,
            "int" | "integer" | "int4" => DataType::Int,
            "bigint" | "int8" => DataType::BigInt,
            "double" => {
                self.eat_word("precision");
                DataType::Double
            }
            "float8" => DataType::Double,
            "text" => DataType::TEXT,
            "bytea" => DataType::Bytea,
            "date" => DataType::Date,
            "timestamp" => DataType::Timestamp,
            "numeric" | "decimal" => return self.numeric(start),
            "varchar" => DataType::Text { limit: Some(self.length("varchar")?) },
            "char" => DataType::Char { length: self.length("char")? },
            "list" => {
                let message = "only parameters, variables and results are lists";
                let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, start, message);
                return Err(Box::new(error.with_hint(
                    "in a list, give its rows fields: list of (a: int, b: int); rows that belong to a row \
                     have a table of their own",
                )));
            }
            unknown => {
                let error =
                    Diagnostic::new(SqlState::DATATYPE_MISMATCH, start, format!("unknown type {unknown}"));
                return Err(Box::new(error.did_you_mean(unknown, NAMES.iter().copied(), || {
                    Some(format!("types are {}", NAMES.join(", ")))
                })));
            }
        };
        Ok(data_type)
    }

    fn numeric(&mut self, start: Span) -> Parsed<DataType> {
        if !self.eat_symbol("(") {
            let error = Diagnostic::new(SqlState::SYNTAX_ERROR, start, "numeric needs its digits");
            return Err(Box::new(
                error.with_hint("say how many in all and how many after the point: numeric(12, 2)"),
            ));
        }
        let precision = self.count("the digits of a numeric", 1, limit::NUMERIC_PRECISION.into())?;
        let scale = match self.eat_symbol(",") {
            true => self.count("the digits after the point", 0, precision)?,
            false => 0,
        };
        self.symbol(")")?;
        Ok(DataType::Numeric { precision: precision as u8, scale: scale as u8 })
    }

    fn length(&mut self, ty: &str) -> Parsed<u32> {
        if !self.at_symbol("(") {
            let mut error = self.expected(&format!("the length of {ty}"));
            error.hint = Some(format!("write {ty}(20), or text if there is no bound"));
            return Err(error);
        }
        self.at += 1;
        let length = self.count("the length", 1, limit::BLOB_BYTES as u32)?;
        self.symbol(")")?;
        Ok(length)
    }

    fn count(&mut self, what: &str, least: u32, most: u32) -> Parsed<u32> {
        match *self.peek() {
            TokenKind::Integer(number) if (i128::from(least)..=i128::from(most)).contains(&number) => {
                self.at += 1;
                Ok(number as u32)
            }
            _ => {
                let mut error = self.expected(&format!("{what}, {least} to {most}"));
                error.hint = match what {
                    "the length" => Some("longer ones have no bound of their own: text".into()),
                    _ => Some("say how many in all and how many after the point: numeric(12, 2)".into()),
                };
                Err(error)
            }
        }
    }

    fn column_definition(&mut self) -> Parsed<ColumnDefinition> {
        let name = self.any_name("a name")?;
        self.symbol(":")?;
        Ok(ColumnDefinition { name, scalar: self.scalar()? })
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        let name = self.name("a name")?;
        self.symbol(":")?;
        Ok(Parameter { name, ty: self.ty()? })
    }

    // ---- definitions ----

    fn definition(&mut self) -> Parsed<Definition> {
        const TABLE: &str = "table accounts { id: bigint, owner: text null, primary key (id) }";
        const PROCEDURE: &str = "procedure name(a: int, l: list of int) -> bigint { ... }";
        if self.eat_word("table") {
            self.table().map(Definition::Table).map_err(|error| formed(error, "a table", TABLE))
        } else if self.eat_word("procedure") {
            self.procedure()
                .map(Definition::Procedure)
                .map_err(|error| formed(error, "a procedure", PROCEDURE))
        } else if self.eat_word("drop") {
            let what = match (self.eat_word("table"), self.at_word("procedure")) {
                (true, _) => Dropped::Table,
                (false, true) => {
                    self.advance();
                    Dropped::Procedure
                }
                (false, false) => return Err(self.expected("`table` or `procedure`")),
            };
            let name = self.name("its name")?;
            Ok(Definition::Drop(DropDefinition { source: self.source.clone(), what, name }))
        } else {
            let mut error = self.expected("`table` or `procedure`");
            error.hint = Some(format!("a text has tables and procedures: {TABLE}"));
            Err(error)
        }
    }

    fn table(&mut self) -> Parsed<TableDefinition> {
        let mut table = TableDefinition {
            source: self.source.clone(),
            name: self.name("the table's name")?,
            columns: Vec::new(),
            primary_key: Vec::new(),
            hash: false,
            indexes: Vec::new(),
        };
        self.symbol("{")?;
        self.listed("}", |parser| parser.table_part(&mut table))?;
        Ok(table)
    }

    fn table_part(&mut self, table: &mut TableDefinition) -> Parsed<()> {
        if *self.peek_after(1) == TokenKind::Symbol(":") {
            table.columns.push(self.column_definition()?);
        } else if self.at_word("primary") {
            if !table.primary_key.is_empty() {
                let mut error = self.error(format!("table {} has two primary keys", table.name.text));
                error.hint = Some(
                    "one key can have several columns: primary key (a, b); other keys are unique indexes"
                        .into(),
                );
                return Err(error);
            }
            self.at += 1;
            self.word("key")?;
            self.symbol("(")?;
            table.primary_key = self.listed(")", |parser| parser.any_name("a column"))?;
            table.hash = self.eat_word("using");
            if table.hash {
                self.word("hash")?;
            }
        } else if self.at_word("index") || self.at_word("unique") {
            let unique = self.eat_word("unique");
            self.word("index")?;
            let name = self.any_name("the index's name")?;
            self.symbol("(")?;
            let columns = self.listed(")", |parser| parser.any_name("a column"))?;
            table.indexes.push(IndexDefinition { name, columns, unique });
        } else {
            let mut error = self.expected("a column, primary key or index");
            error.hint = Some("a column is written name: type".into());
            return Err(error);
        }
        Ok(())
    }

    fn procedure(&mut self) -> Parsed<ProcedureDefinition> {
        let name = self.name("the procedure's name")?;
        self.symbol("(")?;
        let parameters = match self.eat_symbol(")") {
            true => Vec::new(),
            false => self.listed(")", Parser::parameter)?,
        };
        let results = if !self.eat_symbol("->") {
            Results::None
        } else if self.eat_symbol("(") {
            Results::Named(self.listed(")", Parser::result)?)
        } else {
            Results::One(self.ty()?)
        };
        let body = self.block()?;
        Ok(ProcedureDefinition { source: self.source.clone(), name, parameters, results, body })
    }

    /// Results are never referred to by name in the text, so reserved words can name them.
    fn result(&mut self) -> Parsed<Parameter> {
        let name = self.any_name("a name")?;
        self.symbol(":")?;
        Ok(Parameter { name, ty: self.ty()? })
    }
}
