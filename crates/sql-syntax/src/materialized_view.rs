//! The grammar of materialized views.

use crate::command::{Command, MaterializedView};
use crate::tokens::Tokens;
use fabius_value::Result;
use sqlparser::tokenizer::Token;

/// `CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(column, ...)] [...] AS query [WITH [NO] DATA]`, from the words of
/// the name on. How and where rows are kept is passed over: it cannot change an answer.
pub(super) fn create(tokens: &mut Tokens<'_>) -> Result<Command> {
    let if_not_exists = tokens.accept(&["IF", "NOT", "EXISTS"]);
    let name = tokens.object_name()?;
    let mut columns = Vec::new();
    if tokens.accept_token(&Token::LParen) {
        columns = tokens.listed(Tokens::name)?;
        tokens.expect_token(&Token::RParen)?;
    }
    if tokens.accept(&["USING"]) {
        tokens.name()?;
    }
    if tokens.accept(&["WITH"]) {
        tokens.expect_token(&Token::LParen)?;
        while !tokens.is_done() && !tokens.accept_token(&Token::RParen) {
            tokens.pass();
        }
    }
    if tokens.accept(&["TABLESPACE"]) {
        tokens.name()?;
    }
    tokens.expect(&["AS"])?;
    let with_data = take_data(tokens);
    let query = tokens.take(|parser| parser.parse_query())?;
    tokens.finish()?;
    Ok(Command::CreateMaterializedView(Box::new(MaterializedView {
        name,
        if_not_exists,
        columns,
        query,
        with_data,
    })))
}

/// Takes `WITH [NO] DATA` from the end: whether there is to be data.
fn take_data(tokens: &mut Tokens<'_>) -> bool {
    let from = tokens.at();
    let last = (from..tokens.len()).rev().find(|at| *tokens.token(*at) != Token::SemiColon);
    let end = last.map_or(from, |last| last + 1);
    for (written, with_data) in [(&["WITH", "NO", "DATA"][..], false), (&["WITH", "DATA"][..], true)] {
        let Some(start) = end.checked_sub(written.len()).filter(|start| *start > from) else { continue };
        tokens.go_to(start);
        let is_there = tokens.sees(written);
        tokens.go_to(from);
        if is_there {
            tokens.remove(start, written.len());
            return with_data;
        }
    }
    true
}

/// `REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]`, behind its first word.
pub(super) fn refresh(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.expect(&["MATERIALIZED", "VIEW"])?;
    let concurrently = tokens.accept(&["CONCURRENTLY"]);
    let name = tokens.object_name()?;
    let with_data = tokens.accept(&["WITH", "DATA"]) || !tokens.accept(&["WITH", "NO", "DATA"]);
    tokens.finish()?;
    Ok(Command::Refresh { name, concurrently, with_data })
}
