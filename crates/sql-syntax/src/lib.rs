//! Text to statements.
//!
//! ```text
//! text --split--> one text per statement --tokens--> a command of a session, or SQL for sqlparser
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`tokens`] | the tokens of a statement with their places; syntax errors in PostgreSQL's words |
//! | [`collation`] | which collations there are |
//! | [`command`] | what a statement asks for |
//! | [`session`] | the grammar of what concerns the session: transactions, settings, cursors, prepared statements |
//! | [`definition`] | the grammar of definitions that sqlparser does not read as PostgreSQL does |
//! | `database`, `domain` | the grammar of databases and domains |
//! | [`dialect`] | sqlparser's dialect, with bounds on what reading takes |
//! | [`foreign`] | clauses that sqlparser reads and PostgreSQL does not have: refused |
//! | [`limits`] | lists that are longer than PostgreSQL takes them: refused |
//! | [`spelling`] | what sqlparser does not read, in other words |
//! | `typed_literal` | texts behind the name of their type |
//! | [`written`] | parts of statements as text that reads back as the same |
//! | [`part`] | parts of statements that are made of others |
//! | [`normal_form`] | a statement's text without its literals |
//! | `statement` | the grammar of statements by their first word |
//! | [`copy`] | the grammar of `COPY` |
//! | [`plpgsql`] | the grammar of function bodies |
//! | [`identifier`], [`object_name`] | names as SQL writes them; full names |
//! | [`lock_mode`] | the modes of locks on tables |
//! | `role`, `grant` | the grammar of roles, and of what they may do |
//! | [`privilege`] | what may be done with objects |
//!
//! Nothing here knows what names mean.

pub mod collation;
pub mod command;
pub mod copy;
mod database;
pub mod definition;
pub mod dialect;
mod domain;
pub mod foreign;
mod grant;
pub mod identifier;
pub mod limits;
pub mod lock_mode;
mod materialized_view;
pub mod normal_form;
pub mod object_name;
pub mod part;
pub mod plpgsql;
pub mod privilege;
pub mod python;
mod role;
pub mod session;
pub mod spelling;
mod statement;
pub mod tokens;
mod typed_literal;
pub mod written;

pub use command::Command;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;
use std::ops::Range;
use tokens::Tokens;

/// Most bytes of one text: what it is parsed into takes many times as much memory.
pub const TEXT_BYTES: usize = 256 << 20;

/// Divides a text into its statements: the bytes of each, without the semicolon. Empty ones are left out, so that
/// a lone `;` is none.
///
/// # Errors
/// `42601` for a quote or comment without an end.
pub fn split(text: &str) -> Result<Vec<Range<usize>>> {
    if text.len() > TEXT_BYTES {
        return Err(Error::new(SqlState::PROGRAM_LIMIT, "the text is too long")
            .with_detail(format!("it has {} bytes, at most {TEXT_BYTES} are allowed", text.len())));
    }
    let trimmed = text.trim_start();
    let start = text.len() - trimmed.len();
    let trimmed = trimmed.trim_end().trim_end_matches(';').trim_end();
    if !trimmed.contains(';') && !trimmed.contains("--") && !trimmed.contains("/*") {
        let whole = (!trimmed.is_empty()).then(|| start..start + trimmed.len());
        return Ok(whole.into_iter().collect());
    }
    let tokens = Tokens::of(text)?;
    let mut statements = Vec::new();
    let mut current: Option<Range<usize>> = None;
    let mut depth = 0i32;
    for at in 0..tokens.len() {
        let (start, end) = tokens.bytes(at);
        match tokens.token(at) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::SemiColon if depth <= 0 => {
                statements.extend(current.take());
                continue;
            }
            _ => {}
        }
        current.get_or_insert(start..end).end = end;
    }
    statements.extend(current);
    Ok(statements)
}

/// Whether a word is a call of a function without parentheses, as PostgreSQL's grammar has some.
pub fn is_bare_function(ident: &ast::Ident) -> bool {
    const BARE: &[&str] = &[
        "current_user",
        "session_user",
        "user",
        "current_role",
        "current_catalog",
        "current_schema",
        "current_date",
        "current_time",
        "current_timestamp",
        "localtimestamp",
        "localtime",
    ];
    ident.quote_style.is_none() && BARE.iter().any(|bare| ident.value.eq_ignore_ascii_case(bare))
}

/// Reads one statement.
///
/// # Errors
/// `42601`, with the position; `0A000` for what PostgreSQL has and Fabius has not.
pub fn parse(text: &str) -> Result<Command> {
    let mut tokens = Tokens::of(text)?;
    statement::read(&mut tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_divided_at_semicolons_outside_of_quotes() {
        let texts = |text: &'static str| -> Vec<&str> {
            split(text).unwrap().into_iter().map(|bytes| &text[bytes]).collect()
        };
        assert_eq!(texts(" ; "), Vec::<&str>::new());
        assert_eq!(texts("-- nothing\n;"), Vec::<&str>::new());
        assert_eq!(texts("select ';' ; select 2"), ["select ';'", "select 2"]);
        assert_eq!(texts(" select 1; "), ["select 1"]);
        assert_eq!(texts("do $$ a; b; $$; x").len(), 2);
        assert_eq!(split("select 'a; x").unwrap_err().state(), SqlState::SYNTAX_ERROR);
    }
}
