//! The grammar of `COPY`: that of today, and those of PostgreSQL 8 and 7 that clients still write.

use crate::foreign::not_supported;
use crate::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// `COPY`
#[derive(Clone, Debug)]
pub struct CopyStatement {
    /// What is copied.
    pub subject: CopySubject,
    /// `FROM STDIN`, else `TO STDOUT`.
    pub is_from: bool,
    /// How.
    pub options: CopyOptions,
    /// `WHERE`, of `COPY ... FROM`.
    pub filter: Option<ast::Expr>,
}

/// What is copied.
#[derive(Clone, Debug)]
pub enum CopySubject {
    /// A table, perhaps with columns.
    Table(ast::ObjectName, Vec<String>),
    /// A query's rows.
    Query(String),
}

/// The form of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyFormat {
    /// Lines of fields with backslash escapes.
    #[default]
    Text,
    /// Comma-separated values.
    Csv,
    /// Fields with lengths.
    Binary,
}

/// Which columns an option is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CopyColumns {
    /// None.
    #[default]
    None,
    /// All, `*`.
    All,
    /// These.
    Named(Vec<String>),
}

impl CopyColumns {
    /// Whether it is about this one.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            CopyColumns::None => false,
            CopyColumns::All => true,
            CopyColumns::Named(names) => names.iter().any(|one| one == name),
        }
    }
}

/// What stands behind `WITH`.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyOptions {
    /// `FORMAT`
    pub format: CopyFormat,
    /// `DELIMITER`
    pub delimiter: u8,
    /// `NULL`
    pub null: String,
    /// `HEADER`
    pub header: bool,
    /// `HEADER MATCH`: the header has to have the columns' names.
    pub header_matches: bool,
    /// `QUOTE`
    pub quote: u8,
    /// `ESCAPE`
    pub escape: u8,
    /// `FORCE_QUOTE`
    pub force_quote: CopyColumns,
    /// `FORCE_NOT_NULL`
    pub force_not_null: CopyColumns,
    /// `FORCE_NULL`
    pub force_null: CopyColumns,
}

/// Reads `COPY`.
pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<CopyStatement> {
    tokens.go_to(1);
    let mut given = Given { is_binary_word: tokens.accept(&["BINARY"]), ..Given::default() };
    let subject = if *tokens.token(tokens.at()) == Token::LParen {
        CopySubject::Query(query_in_brackets(tokens)?)
    } else {
        let name = tokens.object_name()?;
        CopySubject::Table(name, columns(tokens)?)
    };
    let is_from = tokens.accept(&["FROM"]);
    if !is_from {
        tokens.expect(&["TO"])?;
    }
    if is_from && matches!(subject, CopySubject::Query(_)) {
        tokens.go_to(tokens.at() - 1);
        return Err(tokens.unexpected());
    }
    if !(tokens.accept(&["STDIN"]) || tokens.accept(&["STDOUT"])) {
        return Err(not_supported("COPY to or from a file of the server")
            .with_hint("copy from the client: STDIN, STDOUT, or psql's \\copy"));
    }
    tokens.accept(&["WITH"]);
    if tokens.accept_token(&Token::LParen) {
        modern(tokens, &mut given)?;
    } else {
        legacy(tokens, &mut given)?;
    }
    let filter = if is_from && tokens.accept(&["WHERE"]) {
        Some(tokens.take(|parser| parser.parse_expr())?)
    } else {
        None
    };
    tokens.finish()?;
    Ok(CopyStatement { options: given.decide(is_from)?, subject, is_from, filter })
}

fn query_in_brackets(tokens: &mut Tokens<'_>) -> Result<String> {
    tokens.expect_token(&Token::LParen)?;
    let start = tokens.bytes(tokens.at()).0;
    let mut depth = 1;
    loop {
        if tokens.is_done() {
            return Err(tokens.unexpected());
        }
        let end = tokens.bytes(tokens.at()).0;
        match tokens.pass() {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(tokens.text().get(start..end).unwrap_or_default().to_string());
        }
    }
}

fn columns(tokens: &mut Tokens<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if tokens.accept_token(&Token::LParen) {
        loop {
            names.push(tokens.name()?);
            if !tokens.accept_token(&Token::Comma) {
                break;
            }
        }
        tokens.expect_token(&Token::RParen)?;
    }
    Ok(names)
}

/// Options as they are given.
#[derive(Default)]
struct Given {
    is_binary_word: bool,
    format: Option<String>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    encoding: Option<String>,
    force_quote: CopyColumns,
    force_not_null: CopyColumns,
    force_null: CopyColumns,
}

fn modern(tokens: &mut Tokens<'_>, given: &mut Given) -> Result<()> {
    loop {
        let name = tokens.name()?;
        match name.as_str() {
            "format" => once(&mut given.format, word_or_string(tokens)?)?,
            "delimiter" => once(&mut given.delimiter, tokens.string()?)?,
            "null" => once(&mut given.null, tokens.string()?)?,
            "quote" => once(&mut given.quote, tokens.string()?)?,
            "escape" => once(&mut given.escape, tokens.string()?)?,
            "encoding" => once(&mut given.encoding, word_or_string(tokens)?)?,
            "header" => once(&mut given.header, optional_word(tokens)?)?,
            // Rows that are copied in are visible when the transaction commits, frozen or not.
            "freeze" => drop(optional_word(tokens)?),
            "force_quote" => given.force_quote = listed(tokens)?,
            "force_not_null" => given.force_not_null = listed(tokens)?,
            "force_null" => given.force_null = listed(tokens)?,
            other => return Err(syntax(format!("option \"{other}\" not recognized"))),
        }
        if !tokens.accept_token(&Token::Comma) {
            return tokens.expect_token(&Token::RParen);
        }
    }
}

fn listed(tokens: &mut Tokens<'_>) -> Result<CopyColumns> {
    if tokens.accept_token(&Token::Mul) {
        return Ok(CopyColumns::All);
    }
    columns(tokens).map(CopyColumns::Named)
}

fn legacy(tokens: &mut Tokens<'_>, given: &mut Given) -> Result<()> {
    loop {
        if tokens.accept(&["BINARY"]) {
            given.format = Some("binary".into());
        } else if tokens.accept(&["CSV"]) {
            given.format = Some("csv".into());
        } else if tokens.accept(&["HEADER"]) {
            given.header = Some("true".into());
        } else if tokens.accept(&["FREEZE"]) {
        } else if tokens.accept(&["DELIMITER"]) || tokens.accept(&["DELIMITERS"]) {
            tokens.accept(&["AS"]);
            given.delimiter = Some(tokens.string()?);
        } else if tokens.accept(&["NULL"]) {
            tokens.accept(&["AS"]);
            given.null = Some(tokens.string()?);
        } else if tokens.accept(&["QUOTE"]) {
            tokens.accept(&["AS"]);
            given.quote = Some(tokens.string()?);
        } else if tokens.accept(&["ESCAPE"]) {
            tokens.accept(&["AS"]);
            given.escape = Some(tokens.string()?);
        } else if tokens.accept(&["ENCODING"]) {
            given.encoding = Some(tokens.string()?);
        } else if tokens.accept(&["FORCE", "QUOTE"]) {
            given.force_quote = names_or_all(tokens)?;
        } else if tokens.accept(&["FORCE", "NOT", "NULL"]) {
            given.force_not_null = names_or_all(tokens)?;
        } else if tokens.accept(&["FORCE", "NULL"]) {
            given.force_null = names_or_all(tokens)?;
        } else {
            return Ok(());
        }
    }
}

fn names_or_all(tokens: &mut Tokens<'_>) -> Result<CopyColumns> {
    if tokens.accept_token(&Token::Mul) {
        return Ok(CopyColumns::All);
    }
    Ok(CopyColumns::Named(tokens.listed(Tokens::name)?))
}

fn word_or_string(tokens: &mut Tokens<'_>) -> Result<String> {
    match tokens.token(tokens.at()) {
        Token::Word(_) => tokens.name(),
        _ => tokens.string(),
    }
}

/// A value that may be left out, and is true then.
fn optional_word(tokens: &mut Tokens<'_>) -> Result<String> {
    match tokens.token(tokens.at()) {
        Token::Comma | Token::RParen => Ok("true".into()),
        Token::Number(digits, _) => {
            let digits = digits.clone();
            tokens.pass();
            Ok(digits)
        }
        _ => word_or_string(tokens),
    }
}

fn once(place: &mut Option<String>, value: String) -> Result<()> {
    if place.replace(value).is_some() {
        return Err(syntax("conflicting or redundant options"));
    }
    Ok(())
}

fn syntax(message: impl Into<String>) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message)
}

impl Given {
    fn decide(self, is_from: bool) -> Result<CopyOptions> {
        let format = match self.format.as_deref() {
            None if self.is_binary_word => CopyFormat::Binary,
            None | Some("text") => CopyFormat::Text,
            Some("csv") => CopyFormat::Csv,
            Some("binary") => CopyFormat::Binary,
            Some(other) => return Err(invalid(format!("COPY format \"{other}\" not recognized"))),
        };
        let is_csv = format == CopyFormat::Csv;
        let is_binary = format == CopyFormat::Binary;
        if is_binary && self.delimiter.is_some() {
            return Err(syntax("cannot specify DELIMITER in BINARY mode"));
        }
        if is_binary && self.null.is_some() {
            return Err(syntax("cannot specify NULL in BINARY mode"));
        }
        if let Some(encoding) = &self.encoding
            && !matches!(
                encoding.to_lowercase().replace(['-', '_'], "").as_str(),
                "utf8" | "unicode" | "sqlascii"
            )
        {
            return Err(not_supported(&format!("encoding \"{encoding}\"")));
        }
        let (header, header_matches) = match self.header.as_deref() {
            None | Some("false" | "off" | "0") => (false, false),
            Some("true" | "on" | "1") => (true, false),
            Some("match") if is_from => (true, true),
            Some("match") => return Err(not_supported("HEADER MATCH with COPY TO")),
            Some(_) => return Err(syntax("header requires a Boolean value or \"match\"")),
        };
        if is_binary && header {
            return Err(not_supported("HEADER in BINARY mode"));
        }
        let byte = |name: &str, given: Option<String>, usual: u8| match given.as_deref().map(str::as_bytes) {
            None => Ok(usual),
            Some([byte]) if !matches!(byte, b'\r' | b'\n') => Ok(*byte),
            Some(_) => Err(not_supported(&format!("COPY {name} of other than a single one-byte character"))),
        };
        let only_csv = [
            (self.quote.is_some(), "quote"),
            (self.escape.is_some(), "escape"),
            (self.force_quote != CopyColumns::None, "force quote"),
            (self.force_not_null != CopyColumns::None, "force not null"),
            (self.force_null != CopyColumns::None, "force null"),
        ];
        if let Some((_, name)) = only_csv.iter().find(|(given, _)| *given && !is_csv) {
            return Err(not_supported(&format!("COPY {name} outside of CSV mode")));
        }
        let quote = byte("quote", self.quote, b'"')?;
        let options = CopyOptions {
            format,
            delimiter: byte("delimiter", self.delimiter, if is_csv { b',' } else { b'\t' })?,
            null: self.null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".into() }),
            header,
            header_matches,
            quote,
            escape: byte("escape", self.escape, quote)?,
            force_quote: self.force_quote,
            force_not_null: self.force_not_null,
            force_null: self.force_null,
        };
        if !is_csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&options.delimiter) {
            let delimiter = char::from(options.delimiter);
            return Err(invalid(format!("COPY delimiter cannot be \"{delimiter}\"")));
        }
        if is_csv && options.delimiter == options.quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if options.null.contains(['\r', '\n']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        if options.null.as_bytes().contains(&options.delimiter) {
            return Err(invalid("COPY delimiter must not appear in the NULL specification"));
        }
        Ok(options)
    }
}
