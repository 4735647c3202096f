//! Expressions and statements of SQL inside a body, read by the SQL parser with places in the body.

use crate::dialect::{self, Bounded};
use crate::foreign;
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Visit};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

const DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

/// An expression.
///
/// # Errors
/// `42601`, with the line.
pub fn expression(source: &Source, span: Span) -> Result<ast::Expr> {
    whole(source, tokens(source, &[span])?, span, |parser| parser.parse_expr())
}

/// The name of a type.
///
/// # Errors
/// `42601`, with the line.
pub fn data_type(source: &Source, span: Span) -> Result<ast::DataType> {
    whole(source, tokens(source, &[span])?, span, |parser| parser.parse_data_type())
}

/// A statement, of one or more parts of the text: what is between them has been cut out.
///
/// # Errors
/// `42601`, with the line.
pub fn statement(source: &Source, parts: &[Span]) -> Result<ast::Statement> {
    let span = parts.first().copied().unwrap_or_default();
    whole(source, tokens(source, parts)?, span, |parser| parser.parse_statement())
}

/// The query `SELECT ...` of what follows `PERFORM` or `RETURN`.
///
/// # Errors
/// `42601`, with the line.
pub fn select(source: &Source, span: Span) -> Result<ast::Statement> {
    let mut all = vec![TokenWithSpan::at(
        Token::Word(Word { value: "SELECT".into(), quote_style: None, keyword: Keyword::SELECT }),
        location(source, span.start),
        location(source, span.start),
    )];
    all.extend(tokens(source, &[span])?);
    whole(source, all, span, |parser| parser.parse_statement())
}

/// The place of a byte of a source, as the SQL parser says it.
pub fn location(source: &Source, offset: u32) -> Location {
    let (line, column, _) = source.place(offset);
    Location { line: u64::from(line), column: u64::from(column) }
}

/// What a parser reads of tokens, all of them.
fn whole<T: Visit>(
    source: &Source,
    mut tokens: Vec<TokenWithSpan>,
    span: Span,
    read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T> {
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    if tokens.is_empty() {
        let near = near(source, span.start);
        return Err(Error::new(SqlState::SYNTAX_ERROR, format!("missing expression {near}"))
            .at_line(source.line(span.start)));
    }
    dialect::refuse_depth(&tokens).map_err(|error| error.at_line(source.line(span.start)))?;
    if let Some(at) = dialect::repeated(&tokens) {
        let token = &tokens[at];
        let message = format!("syntax error at or near \"{}\"", token.token);
        let line = u32::try_from(token.span.start.line).unwrap_or_default();
        return Err(Error::new(SqlState::SYNTAX_ERROR, message).at_line(line));
    }
    let bounded = Bounded::of(tokens.len());
    let mut parser = bounded.parser(tokens);
    let result = read(&mut parser).and_then(|tree| {
        let next = parser.peek_token();
        if next.token == Token::EOF { Ok(tree) } else { parser.expected("end of statement", next) }
    });
    let tree = result.map_err(|error| match bounded.exceeded(&error) {
        Some(exceeded) => exceeded.at_line(source.line(span.start)),
        None => syntax_error(source, span, error),
    })?;
    match foreign::find(&tree) {
        Some(found) => Err(found.error().at_line(source.line(span.start))),
        None => Ok(tree),
    }
}

/// `at or near "word"`, for a message.
fn near(source: &Source, offset: u32) -> String {
    let rest = source.text.get(offset as usize..).unwrap_or("").trim_start();
    let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let first = rest.chars().next().map_or(0, char::len_utf8);
    match &rest[..length.max(first)] {
        "" => "at end of input".into(),
        word => format!("at or near \"{word}\""),
    }
}

fn tokens(source: &Source, parts: &[Span]) -> Result<Vec<TokenWithSpan>> {
    let mut all = Vec::new();
    for part in parts {
        let text = source.text.get(part.start as usize..part.end as usize).unwrap_or("");
        let from = location(source, part.start);
        let shifted = |at: Location| Location {
            line: from.line + at.line - 1,
            column: if at.line == 1 { from.column + at.column - 1 } else { at.column },
        };
        let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location().map_err(|error| {
            Error::new(SqlState::SYNTAX_ERROR, error.message).at_line(shifted(error.location).line as u32)
        })?;
        all.extend(tokens.into_iter().map(|token| {
            let span = token.span;
            TokenWithSpan::at(token.token, shifted(span.start), shifted(span.end))
        }));
    }
    Ok(all)
}

/// The SQL parser's error, worded as PostgreSQL does.
fn syntax_error(source: &Source, span: Span, error: ParserError) -> Error {
    let text = match error {
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text,
        ParserError::RecursionLimitExceeded => "nested too deep".into(),
    };
    let (fact, place) = text.rsplit_once(" at Line: ").unwrap_or((&text, ""));
    let line = place.split(',').next().and_then(|line| line.trim().parse().ok());
    let line = line.filter(|line| *line > 0).unwrap_or_else(|| source.line(span.start));
    let message = match fact.strip_prefix("Expected: ").and_then(|fact| fact.rsplit_once(", found: ")) {
        Some((_, "EOF")) => "syntax error at end of input".to_string(),
        Some((_, found)) => format!("syntax error at or near \"{found}\""),
        None => fact.to_string(),
    };
    let error = Error::new(SqlState::SYNTAX_ERROR, message).at_line(line);
    match fact.strip_prefix("Expected: ").and_then(|fact| fact.split_once(", found: ")) {
        Some((expected, _)) => error.with_detail(format!("Expected {expected}.")),
        None => error,
    }
}
