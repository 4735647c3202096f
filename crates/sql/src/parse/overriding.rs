//! `INSERT ... OVERRIDING SYSTEM VALUE`, `OVERRIDING USER VALUE`, which sqlparser does not know.
//!
//! It is taken out of the tokens, and noted in the tree where MySQL and Hive have words of their own that PostgreSQL
//! has not: `overwrite` for the system's values, `ignore` for the user's.

use super::Command;
use super::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{Insert, Statement};
use sqlparser::tokenizer::Token;

/// Which values a statement overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// `SYSTEM VALUE`: what is given for identity columns counts.
    System,
    /// `USER VALUE`: what is given for identity columns does not.
    User,
}

/// What a statement overrides.
pub fn of(insert: &Insert) -> Option<Overriding> {
    match (insert.overwrite, insert.ignore) {
        (true, _) => Some(Overriding::System),
        (_, true) => Some(Overriding::User),
        _ => None,
    }
}

/// Reads an `INSERT`, or an `EXPLAIN` of one.
pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Command> {
    let mut depth = 0;
    let mut found = None;
    for at in 0..tokens.len() {
        match tokens.token(at) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let words = [0, 1, 2].map(|offset| tokens.word_at(at + offset));
        match words.each_ref().map(Option::as_deref) {
            [Some("VALUES" | "SELECT"), ..] if depth == 0 => break,
            [Some("OVERRIDING"), Some(whose @ ("SYSTEM" | "USER")), Some("VALUE")] if depth == 0 => {
                let kind = if whose == "SYSTEM" { Overriding::System } else { Overriding::User };
                found = Some((at, kind));
                break;
            }
            _ => {}
        }
    }
    let Some((at, kind)) = found else { return Ok(Command::Sql(Box::new(tokens.sql()?))) };
    tokens.remove(at, 3);
    let mut statement = tokens.sql()?;
    mark(&mut statement, kind);
    Ok(Command::Sql(Box::new(statement)))
}

fn mark(statement: &mut Statement, kind: Overriding) {
    match statement {
        Statement::Insert(insert) => match kind {
            Overriding::System => insert.overwrite = true,
            Overriding::User => insert.ignore = true,
        },
        Statement::Explain { statement, .. } => mark(statement, kind),
        _ => {}
    }
}
