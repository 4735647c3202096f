//! Text to statements.
//!
//! ```text
//! text --split--> one text per statement --tokens--> a command of a session, or SQL for sqlparser
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`tokens`] | the tokens of a statement with their places; syntax errors in PostgreSQL's words |
//! | [`command`] | what a statement asks for |
//! | [`session`] | the grammar of what concerns the session: transactions, settings, cursors, prepared statements |
//! | [`definition`] | the grammar of definitions that sqlparser does not read as PostgreSQL does |
//! | [`copy`] | the grammar of `COPY` |
//!
//! Nothing here knows what names mean.

pub mod command;
pub mod copy;
pub mod definition;
pub mod session;
pub mod tokens;

pub use command::Command;
use fabius_value::{Error, Result, SqlState};
use sqlparser::tokenizer::Token;
use tokens::Tokens;

/// Most bytes of one text: what it is parsed into takes many times as much memory.
pub const TEXT_BYTES: usize = 256 << 20;

/// One statement of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementText {
    /// Its text, without the semicolon and without blanks around it.
    pub text: String,
    /// Where it begins in the whole text: characters before it.
    pub offset: u32,
}

/// Divides a text into its statements. Empty ones are left out, so that a lone `;` is none.
///
/// # Errors
/// `42601` for a quote or comment without an end.
pub fn split(text: &str) -> Result<Vec<StatementText>> {
    if text.len() > TEXT_BYTES {
        return Err(Error::new(SqlState::PROGRAM_LIMIT, "the text is too long")
            .with_detail(format!("it has {} bytes, at most {TEXT_BYTES} are allowed", text.len())));
    }
    let trimmed = text.trim().trim_end_matches(';').trim_end();
    if !trimmed.contains(';') && !trimmed.contains("--") && !trimmed.contains("/*") {
        let before = text.len() - text.trim_start().len();
        let only = StatementText { text: trimmed.to_string(), offset: text[..before].chars().count() as u32 };
        return Ok(if trimmed.is_empty() { Vec::new() } else { vec![only] });
    }
    let tokens = Tokens::of(text)?;
    let mut statements = Vec::new();
    let mut first = None;
    let mut last = 0;
    let mut depth = 0i32;
    let mut end = |first: &mut Option<usize>, last: usize| {
        if let Some(start) = first.take() {
            let offset = text[..start].chars().count() as u32;
            statements.push(StatementText { text: text[start..last].to_string(), offset });
        }
    };
    for at in 0..tokens.len() {
        let (start, stop) = tokens.bytes(at);
        match tokens.token(at) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::SemiColon if depth <= 0 => {
                end(&mut first, last);
                continue;
            }
            _ => {}
        }
        first.get_or_insert(start);
        last = stop;
    }
    end(&mut first, last);
    Ok(statements)
}

/// Reads one statement.
///
/// # Errors
/// `42601`, with the position; `0A000` for what PostgreSQL has and Fabius has not.
pub fn parse(text: &str) -> Result<Command> {
    let mut tokens = Tokens::of(text)?;
    command::read(&mut tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_divided_at_semicolons_outside_of_quotes() {
        let texts = |text: &str| -> Vec<(String, u32)> {
            split(text).unwrap().into_iter().map(|one| (one.text, one.offset)).collect()
        };
        assert_eq!(texts(" ; "), []);
        assert_eq!(texts("-- nothing\n;"), []);
        assert_eq!(
            texts("select ';' ; select 2"),
            [("select ';'".to_string(), 0), ("select 2".to_string(), 13)]
        );
        assert_eq!(texts(" select 1; "), [("select 1".to_string(), 1)]);
        assert_eq!(texts("do $$ a; b; $$; x").len(), 2);
        assert_eq!(split("select 'a").unwrap_err().state(), SqlState::SYNTAX_ERROR);
    }
}
