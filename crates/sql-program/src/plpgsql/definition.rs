//! Reads `CREATE FUNCTION` and `CREATE PROCEDURE`: the header, and the body by its language.

use super::type_name::{self, Named};
use crate::python;
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_sql_meaning::catalog::{
    Catalog, Function, FunctionParameter, ObjectName, ParameterMode, Returns, Volatility,
};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_planning::heed;
use fabius_sql_syntax::limits::ARGUMENTS;
use fabius_sql_syntax::plpgsql::cursor::Cursor;
use fabius_sql_syntax::plpgsql::token::{TokenKind, text_value};
use fabius_sql_syntax::plpgsql::tree::{Body, SqlStatement};
use fabius_sql_syntax::plpgsql::{parser, piece};
use fabius_sql_syntax::python::reading as python_syntax;
use fabius_value::{Error, Result, SqlState};
use std::collections::BTreeSet;
use std::sync::Arc;

/// `CREATE FUNCTION ...`, read and with its types known.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `PROCEDURE`.
    pub is_procedure: bool,
    /// The function's name.
    pub name: ObjectName,
    /// Parameters, in order.
    pub parameters: Vec<FunctionParameter>,
    /// What it returns.
    pub returns: Returns,
    /// Whether the columns of what it returns are variables: `OUT` parameters, `RETURNS TABLE`.
    pub names_columns: bool,
    /// `STRICT`.
    pub is_strict: bool,
    /// `SECURITY DEFINER`: the privileges of the function's owner count, not those of who calls it.
    pub is_definers: bool,
    /// `IMMUTABLE`, `STABLE`, `VOLATILE`.
    pub volatility: Volatility,
    /// `sql` or `plpgsql`.
    pub language: String,
    /// The body's text; its lines are those that errors name.
    pub source: Arc<Source>,
    /// What it does.
    pub body: Body,
    /// Of a function in Python, the places of what it gives that may be null.
    pub nullable_results: BTreeSet<usize>,
}

/// What errors call a block that has no name.
pub const BLOCK: &str = "inline_code_block";

/// Whether a statement is `CREATE [OR REPLACE] FUNCTION` or `PROCEDURE`.
pub fn is_create(text: &str) -> bool {
    let source = Source::new(text, "");
    let Ok(mut cursor) = Cursor::new(&source) else { return false };
    if !cursor.accept("create") {
        return false;
    }
    if cursor.accept("or") {
        cursor.accept("replace");
    }
    cursor.is_keyword("function") || cursor.is_keyword("procedure")
}

/// Reads a definition.
///
/// # Errors
/// `42601` for what is not one, `42704` for types that do not exist, `42P13` for what does not fit together,
/// `0A000` for what is refused.
pub fn parse(text: &str, catalog: &Catalog) -> Result<Definition> {
    let source = Source::new(text, "");
    let mut header = Header::new(Cursor::new(&source)?, catalog);
    header.read()?;
    header.definition()
}

/// Reads `DO [LANGUAGE plpgsql] $$ ... $$`, as a procedure without a name.
///
/// # Errors
/// As [`parse`].
pub fn parse_do(text: &str) -> Result<Definition> {
    let source = Source::new(text, "");
    let mut cursor = Cursor::new(&source)?;
    cursor.expect("do")?;
    let mut body = None;
    let mut language = "plpgsql".to_string();
    while !(cursor.is_at_end() || cursor.is_symbol(";")) {
        let token = cursor.peek();
        if cursor.accept("language") {
            language = cursor.name()?.text;
        } else if token.kind == TokenKind::Text && body.is_none() {
            body = text_value(cursor.text(token.span));
            cursor.take();
        } else {
            return Err(cursor.unexpected());
        }
    }
    let body = body.ok_or_else(|| Error::new(SqlState::SYNTAX_ERROR, "no inline code specified"))?;
    if language != "plpgsql" {
        let message = format!("language \"{language}\" does not support inline code execution");
        return Err(Error::new(SqlState::NOT_SUPPORTED, message));
    }
    let source = Arc::new(Source::new(body, BLOCK));
    Ok(Definition {
        or_replace: false,
        is_procedure: true,
        name: ObjectName { schema: "public".into(), name: BLOCK.into() },
        parameters: Vec::new(),
        returns: Returns::Scalar(SqlType::Void),
        names_columns: false,
        is_strict: false,
        is_definers: false,
        volatility: Volatility::Volatile,
        language,
        body: Body::Block(parser::parse(&source)?),
        source,
        nullable_results: BTreeSet::new(),
    })
}

/// What a definition says before it is put together.
struct Header<'a> {
    cursor: Cursor<'a>,
    catalog: &'a Catalog,
    or_replace: bool,
    is_procedure: bool,
    name: Option<ObjectName>,
    parameters: Vec<FunctionParameter>,
    returns: Option<ReturnsClause>,
    is_strict: bool,
    is_definers: bool,
    volatility: Volatility,
    language: Option<String>,
    body: Option<BodyText>,
}

/// `RETURNS`, before `OUT` parameters are looked at.
enum ReturnsClause {
    One(Named),
    SetOf(Named),
    Table(Vec<(String, SqlType)>),
}

enum BodyText {
    /// `AS '...'`
    Quoted(String),
    /// `RETURN e`, `BEGIN ATOMIC ... END`: statements of SQL as they stand.
    Written(Span),
}

impl<'a> Header<'a> {
    fn new(cursor: Cursor<'a>, catalog: &'a Catalog) -> Header<'a> {
        Header {
            cursor,
            catalog,
            or_replace: false,
            is_procedure: false,
            name: None,
            parameters: Vec::new(),
            returns: None,
            is_strict: false,
            is_definers: false,
            volatility: Volatility::Volatile,
            language: None,
            body: None,
        }
    }

    fn read(&mut self) -> Result<()> {
        self.cursor.expect("create")?;
        if self.cursor.accept("or") {
            self.cursor.expect("replace")?;
            self.or_replace = true;
        }
        self.is_procedure = self.cursor.accept("procedure");
        if !self.is_procedure {
            self.cursor.expect("function")?;
        }
        self.name = Some(self.object_name()?);
        self.cursor.expect_symbol("(")?;
        while !self.cursor.accept_symbol(")") {
            if !self.parameters.is_empty() {
                self.cursor.expect_symbol(",")?;
            }
            heed()?;
            let parameter = self.parameter()?;
            self.parameters.push(parameter);
            if self.parameters.len() > ARGUMENTS {
                let message = format!("functions cannot have more than {ARGUMENTS} arguments");
                return Err(Error::new(SqlState(*b"54023"), message));
            }
        }
        self.check_parameters()?;
        if self.cursor.is_keyword("returns") && !self.cursor.is_keyword_at(1, "null") {
            self.returns_clause()?;
        }
        while !(self.cursor.is_at_end() || self.cursor.is_symbol(";")) {
            self.option()?;
        }
        self.cursor.accept_symbol(";");
        if self.cursor.is_at_end() { Ok(()) } else { Err(self.cursor.unexpected()) }
    }

    fn object_name(&mut self) -> Result<ObjectName> {
        let path = self.cursor.path()?;
        match &path.parts[..] {
            [name] => Ok(ObjectName { schema: "public".into(), name: name.clone() }),
            [schema, name] => Ok(ObjectName { schema: schema.clone(), name: name.clone() }),
            _ => Err(self.cursor.error(SqlState::SYNTAX_ERROR, path.span, "improper qualified name")),
        }
    }

    /// `[mode] [name] type [DEFAULT e]`, or `name mode type`.
    fn parameter(&mut self) -> Result<FunctionParameter> {
        let mut mode = self.mode();
        let start = self.cursor.peek().span;
        let all = self.cursor.until(&[",", ")", "default", "=", ":="])?;
        self.cursor.go_to(start.start);
        let alone = type_name::data_type(&self.cursor, all, self.catalog);
        let mut name = String::new();
        let sql_type = match alone {
            Ok(named) => {
                self.cursor.until(&[",", ")", "default", "=", ":="])?;
                named
            }
            Err(reason) => {
                let first = self.cursor.peek();
                if first.span.end >= all.end || self.cursor.is_symbol_at(1, ".") {
                    return Err(reason);
                }
                name = self.cursor.name()?.text;
                mode = mode.or_else(|| self.mode());
                let span = self.cursor.until(&[",", ")", "default", "=", ":="])?;
                type_name::data_type(&self.cursor, span, self.catalog)?
            }
        };
        let mode = mode.unwrap_or(ParameterMode::In);
        let Named::Scalar(sql_type) = sql_type else {
            let message = "a parameter that is a row is not supported";
            return Err(self
                .cursor
                .error(SqlState::NOT_SUPPORTED, all, message)
                .with_hint("Give its columns one by one."));
        };
        if mode == ParameterMode::Variadic && !matches!(sql_type, SqlType::Array(_)) {
            let message = "VARIADIC parameter must be an array";
            return Err(self.cursor.error(SqlState::INVALID_DEFINITION, all, message));
        }
        let has_default = self.cursor.accept("default")
            || self.cursor.accept_symbol("=")
            || self.cursor.accept_symbol(":=");
        let mut default = None;
        if has_default {
            let span = self.cursor.until(&[",", ")"])?;
            piece::expression(self.cursor.source, span)?;
            default = Some(self.cursor.text(span).to_string());
        }
        // Digits of a signature are none of the function's.
        Ok(FunctionParameter { name, sql_type: sql_type.of_values(), mode, default })
    }

    fn mode(&mut self) -> Option<ParameterMode> {
        // A word that is followed by the end of the parameter is a type's name.
        if self.cursor.is_symbol_at(1, ",") || self.cursor.is_symbol_at(1, ")") {
            return None;
        }
        if self.cursor.accept("in") {
            return Some(if self.cursor.accept("out") { ParameterMode::InOut } else { ParameterMode::In });
        }
        let modes = [
            ("out", ParameterMode::Out),
            ("inout", ParameterMode::InOut),
            ("variadic", ParameterMode::Variadic),
        ];
        modes.into_iter().find(|(word, _)| self.cursor.accept(word)).map(|(_, mode)| mode)
    }

    fn check_parameters(&self) -> Result<()> {
        let invalid = |message: &str| Err(Error::new(SqlState::INVALID_DEFINITION, message));
        let inputs: Vec<&FunctionParameter> =
            self.parameters.iter().filter(|parameter| parameter.is_input()).collect();
        let first_default = inputs.iter().position(|parameter| parameter.default.is_some());
        if first_default.is_some_and(|at| {
            inputs[at..]
                .iter()
                .any(|parameter| parameter.default.is_none() && parameter.mode != ParameterMode::Variadic)
        }) {
            return invalid("input parameters after one with a default value must also have defaults");
        }
        if self.parameters.iter().any(|parameter| !parameter.is_input() && parameter.default.is_some()) {
            return invalid("only input parameters can have default values");
        }
        let variadic = inputs.iter().position(|parameter| parameter.mode == ParameterMode::Variadic);
        if variadic.is_some_and(|at| at + 1 < inputs.len()) {
            return invalid("VARIADIC parameter must be the last input parameter");
        }
        for (at, parameter) in self.parameters.iter().enumerate() {
            let is_twice = self.parameters[..at].iter().any(|other| other.name == parameter.name);
            if !parameter.name.is_empty() && is_twice {
                return invalid(&format!("parameter name \"{}\" used more than once", parameter.name));
            }
        }
        Ok(())
    }

    fn returns_clause(&mut self) -> Result<()> {
        let start = self.cursor.take().span;
        if self.is_procedure {
            return Err(self.cursor.error(
                SqlState::SYNTAX_ERROR,
                start,
                "syntax error at or near \"RETURNS\"",
            ));
        }
        if self.cursor.accept("table") {
            self.cursor.expect_symbol("(")?;
            let mut columns = Vec::new();
            loop {
                let name = self.cursor.name()?;
                let span = self.cursor.until(&[",", ")"])?;
                let Named::Scalar(sql_type) = type_name::data_type(&self.cursor, span, self.catalog)? else {
                    return Err(self.cursor.error(
                        SqlState::NOT_SUPPORTED,
                        span,
                        "a column that is a row is not supported",
                    ));
                };
                columns.push((name.text, sql_type.of_values()));
                if !self.cursor.accept_symbol(",") {
                    break;
                }
            }
            self.cursor.expect_symbol(")")?;
            self.returns = Some(ReturnsClause::Table(columns));
            return Ok(());
        }
        let is_set = self.cursor.accept("setof");
        let first = self.cursor.peek();
        let ends = [
            "language",
            "as",
            "immutable",
            "stable",
            "volatile",
            "leakproof",
            "not",
            "called",
            "returns",
            "strict",
            "security",
            "external",
            "parallel",
            "cost",
            "rows",
            "support",
            "set",
            "return",
            "begin",
            "window",
            "transform",
        ];
        let mut span = first.span;
        while !(self.cursor.is_at_end()
            || self.cursor.is_symbol(";")
            || ends.iter().any(|end| self.cursor.is_keyword(end)))
        {
            span = span.to(self.cursor.take().span);
        }
        let text = self.cursor.text(span);
        if ["trigger", "event_trigger"].iter().any(|known| text.eq_ignore_ascii_case(known)) {
            let message = "trigger functions are not supported";
            return Err(self.cursor.error(SqlState::NOT_SUPPORTED, span, message));
        }
        let named = type_name::data_type(&self.cursor, span, self.catalog)?;
        self.returns = Some(if is_set { ReturnsClause::SetOf(named) } else { ReturnsClause::One(named) });
        Ok(())
    }

    /// One of what may follow the parameters, in any order.
    fn option(&mut self) -> Result<()> {
        let token = self.cursor.peek();
        let word = self.cursor.keyword_of(token).ok_or_else(|| self.cursor.unexpected())?;
        self.cursor.take();
        match word.as_str() {
            "language" => {
                let token = self.cursor.peek();
                let name = match token.kind {
                    TokenKind::Text => text_value(self.cursor.text(token.span)).unwrap_or_default(),
                    TokenKind::Word | TokenKind::QuotedName => {
                        self.cursor.text(token.span).trim_matches('"').to_string()
                    }
                    _ => return Err(self.cursor.unexpected()),
                };
                self.cursor.take();
                self.language = Some(name.to_lowercase());
            }
            "immutable" => self.volatility = Volatility::Immutable,
            "stable" => self.volatility = Volatility::Stable,
            "volatile" => self.volatility = Volatility::Volatile,
            "strict" => self.is_strict = true,
            "leakproof" => {}
            "not" => self.cursor.expect("leakproof")?,
            "called" => {
                self.null_input()?;
                self.is_strict = false;
            }
            "returns" => {
                self.cursor.expect("null")?;
                self.null_input()?;
                self.is_strict = true;
            }
            "external" => {
                self.cursor.expect("security")?;
                self.security()?;
            }
            "security" => self.security()?,
            "parallel" | "cost" | "rows" => {
                self.cursor.take();
            }
            "as" => self.quoted_body()?,
            "return" => {
                let start = self.cursor.peek().span;
                let mut span = start;
                while !(self.cursor.is_at_end() || self.cursor.is_symbol(";")) {
                    span = span.to(self.cursor.take().span);
                }
                self.body = Some(BodyText::Written(token.span.to(span)));
            }
            "begin" if self.cursor.is_keyword("atomic") => {
                let mut span = token.span;
                while !self.cursor.is_at_end() {
                    span = span.to(self.cursor.take().span);
                }
                self.body = Some(BodyText::Written(span));
            }
            "set" | "support" | "window" | "transform" => {
                let what = word.to_uppercase();
                return Err(self.cursor.error(
                    SqlState::NOT_SUPPORTED,
                    token.span,
                    format!("CREATE FUNCTION ... {what} is not supported"),
                ));
            }
            _ => return Err(self.cursor.unexpected_token(token)),
        }
        Ok(())
    }

    /// `ON NULL INPUT`
    fn null_input(&mut self) -> Result<()> {
        self.cursor.expect("on")?;
        self.cursor.expect("null")?;
        self.cursor.expect("input")
    }

    fn security(&mut self) -> Result<()> {
        self.is_definers = self.cursor.accept("definer");
        if self.is_definers || self.cursor.accept("invoker") {
            return Ok(());
        }
        Err(self.cursor.unexpected())
    }

    fn quoted_body(&mut self) -> Result<()> {
        let token = self.cursor.peek();
        let is_text = token.kind == TokenKind::Text;
        let text = is_text.then(|| text_value(self.cursor.text(token.span))).flatten();
        self.body = Some(BodyText::Quoted(text.ok_or_else(|| self.cursor.unexpected())?));
        self.cursor.take();
        if self.cursor.is_symbol(",") {
            return Err(self.cursor.error(
                SqlState::INVALID_DEFINITION,
                token.span,
                "only one AS item needed for language \"plpgsql\"",
            ));
        }
        Ok(())
    }

    fn definition(self) -> Result<Definition> {
        let invalid = |message: &str| Error::new(SqlState::INVALID_DEFINITION, message);
        let returns = self.result()?;
        let names_columns = matches!(self.returns, Some(ReturnsClause::Table(_)))
            || self.parameters.iter().any(|p| matches!(p.mode, ParameterMode::Out | ParameterMode::InOut));
        let body = self.body.as_ref().ok_or_else(|| invalid("no function body specified"))?;
        let language = match (&self.language, body) {
            (Some(language), _) => language.clone(),
            (None, BodyText::Written(_)) => "sql".to_string(),
            (None, BodyText::Quoted(_)) => return Err(invalid("no language specified")),
        };
        let name = self.name.clone().ok_or_else(|| invalid("no name"))?;
        let (text, is_written) = match body {
            BodyText::Quoted(text) => (text.clone(), false),
            BodyText::Written(span) => (self.cursor.text(*span).to_string(), true),
        };
        let mut source = Arc::new(Source::new(text, name.name.clone()));
        let mut nullable_results = BTreeSet::new();
        let body = match (language.as_str(), is_written) {
            ("python", false) => {
                let (own, function) = python_syntax::read(&source.text, &name.name)?;
                source = Arc::new(own);
                let of_called =
                    |called: &Function| Ok(parse(&called.definition, self.catalog)?.nullable_results);
                let own = (&*source, &function);
                let lowered = python::lower(own, self.catalog, &self.parameters, &returns, &of_called)?;
                let block;
                (block, nullable_results) = lowered;
                Body::Block(block)
            }
            ("sql", true) => Body::Sql(written_statements(&source)?),
            ("sql", false) => Body::Sql(statements(Cursor::new(&source)?)?),
            ("plpgsql", false) => {
                Body::Block(parser::parse(&source).map_err(|error| near(error, &name.name))?)
            }
            ("plpgsql" | "python", true) => {
                return Err(invalid("inline SQL function body only valid for language SQL"));
            }
            ("c" | "internal" | "plperl" | "plperlu" | "plpython3u" | "pltcl" | "plv8", _) => {
                return Err(Error::new(
                    SqlState::NOT_SUPPORTED,
                    format!("functions in language \"{language}\" are not supported"),
                )
                .with_hint("plpgsql and sql are."));
            }
            _ => {
                return Err(Error::new(
                    SqlState(*b"42704"),
                    format!("language \"{language}\" does not exist"),
                ));
            }
        };
        Ok(Definition {
            or_replace: self.or_replace,
            is_procedure: self.is_procedure,
            name,
            parameters: self.parameters,
            returns,
            names_columns,
            is_strict: self.is_strict,
            is_definers: self.is_definers,
            volatility: self.volatility,
            language,
            source,
            body,
            nullable_results,
        })
    }

    /// What it returns, by `RETURNS` and the `OUT` parameters together.
    fn result(&self) -> Result<Returns> {
        let invalid = |message: String| Err(Error::new(SqlState::INVALID_DEFINITION, message));
        let is_output = |mode: ParameterMode| matches!(mode, ParameterMode::Out | ParameterMode::InOut);
        let mut outputs: Vec<(String, SqlType)> = self
            .parameters
            .iter()
            .filter(|parameter| is_output(parameter.mode))
            .map(|parameter| (parameter.name.clone(), parameter.sql_type.clone()))
            .collect();
        for (at, (name, _)) in outputs.iter_mut().enumerate().filter(|(_, (name, _))| name.is_empty()) {
            *name = format!("column{}", at + 1);
        }
        if self.is_procedure {
            let nothing = outputs.is_empty();
            return Ok(if nothing { Returns::Scalar(SqlType::Void) } else { Returns::Record(outputs) });
        }
        let record_needed = |sql_type: &str| {
            invalid(format!("function result type must be {sql_type} because of OUT parameters"))
        };
        match (&self.returns, &outputs[..]) {
            (None, []) => invalid("function result type must be specified".into()),
            (None, [(_, only)]) => Ok(Returns::Scalar(only.clone())),
            (None, _) => Ok(Returns::Record(outputs)),
            (Some(ReturnsClause::Table(_)), [_, ..]) => {
                invalid("OUT and INOUT arguments aren't allowed in TABLE functions".into())
            }
            (Some(ReturnsClause::Table(columns)), []) => Ok(Returns::Table(columns.clone())),
            (Some(ReturnsClause::One(Named::Record) | ReturnsClause::SetOf(Named::Record)), []) => {
                Err(Error::new(
                    SqlState::NOT_SUPPORTED,
                    "a function that returns record without OUT parameters is not supported",
                )
                .with_hint("Use RETURNS TABLE (...) or OUT parameters, so that the columns are known."))
            }
            (Some(ReturnsClause::One(Named::Record)), _) => Ok(Returns::Record(outputs)),
            (Some(ReturnsClause::SetOf(Named::Record)), _) => Ok(Returns::Table(outputs)),
            (Some(ReturnsClause::One(Named::Row(columns))), []) => Ok(Returns::Record(columns.clone())),
            (Some(ReturnsClause::SetOf(Named::Row(columns))), []) => Ok(Returns::Table(columns.clone())),
            (Some(ReturnsClause::One(Named::Scalar(sql_type))), []) => {
                Ok(Returns::Scalar(sql_type.of_values()))
            }
            (Some(ReturnsClause::SetOf(Named::Scalar(sql_type))), []) => {
                let name = self.name.as_ref().map(|name| name.name.clone()).unwrap_or_default();
                Ok(Returns::Table(vec![(name, sql_type.of_values())]))
            }
            (Some(ReturnsClause::One(Named::Scalar(given))), [(_, only)]) if given == only => {
                Ok(Returns::Scalar(given.clone()))
            }
            (Some(ReturnsClause::SetOf(Named::Scalar(given))), [(_, only)]) if given == only => {
                Ok(Returns::Table(outputs))
            }
            (Some(_), [(_, only)]) => record_needed(&only.to_string()),
            (Some(_), _) => record_needed("record"),
        }
    }
}

/// An error of a body, with the function's name.
fn near(error: Error, name: &str) -> Error {
    match error.line() {
        Some(line) => {
            error.with_context(format!("compilation of PL/pgSQL function \"{name}\" near line {line}"))
        }
        None => error,
    }
}

/// `RETURN e`, or `BEGIN ATOMIC ... END`.
fn written_statements(source: &Source) -> Result<Vec<SqlStatement>> {
    let mut cursor = Cursor::new(source)?;
    if !cursor.is_keyword("return") {
        cursor.expect("begin")?;
        cursor.expect("atomic")?;
        let mut all = Vec::new();
        while !cursor.accept("end") {
            let span = cursor.until(&[])?;
            all.push(SqlStatement { statement: piece::statement(source, &[span])?, span });
            cursor.expect_symbol(";")?;
        }
        cursor.accept_symbol(";");
        return if cursor.is_at_end() { Ok(all) } else { Err(cursor.unexpected()) };
    }
    let start = cursor.take().span.end;
    let span = Span { start, end: source.text.len() as u32 };
    Ok(vec![SqlStatement { statement: piece::select(source, span)?, span }])
}

/// Statements with semicolons between them.
fn statements(mut cursor: Cursor<'_>) -> Result<Vec<SqlStatement>> {
    let mut all = Vec::new();
    while !cursor.is_at_end() {
        if cursor.accept_symbol(";") {
            continue;
        }
        let mut span = cursor.peek().span;
        while !(cursor.is_at_end() || cursor.is_symbol(";")) {
            span = span.to(cursor.take().span);
        }
        all.push(SqlStatement { statement: piece::statement(cursor.source, &[span])?, span });
    }
    Ok(all)
}
