//! The grammar of statements by their first word.

use crate::command::Command;
use crate::tokens::Tokens;
use crate::{definition, session};
use fabius_value::Result;
use sqlparser::ast::{self, helpers::stmt_create_table::CreateTableBuilder};
use sqlparser::tokenizer::Token;

/// Reads a statement.
pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Command> {
    let Some(first) = tokens.word() else {
        return match tokens.token(0) {
            Token::EOF => Ok(Command::Empty),
            Token::LParen => Ok(Command::Sql(Box::new(tokens.sql()?))),
            _ => Err(tokens.unexpected()),
        };
    };
    match first.as_str() {
        "SELECT" | "WITH" | "VALUES" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "EXPLAIN" | "CALL" => {
            row_locks(tokens);
            Ok(Command::Sql(Box::new(into_table(tokens.sql()?))))
        }
        "TABLE" => definition::read_table_query(tokens),
        "CREATE" | "ALTER" | "DROP" | "TRUNCATE" | "COMMENT" | "GRANT" | "REVOKE" | "IMPORT" | "SECURITY"
        | "REASSIGN" | "REFRESH" => definition::read(tokens, &first),
        "COPY" => crate::copy::read(tokens).map(|copy| Command::Copy(Box::new(copy))),
        "DO" => Ok(Command::Do),
        _ => session::read(tokens, &first),
    }
}

/// Leaves out what makes `FOR UPDATE` and `FOR SHARE` weaker: keys are locked with their rows.
fn row_locks(tokens: &mut Tokens<'_>) {
    for at in 0..tokens.len() {
        tokens.go_to(at);
        if tokens.sees(&["FOR", "NO", "KEY", "UPDATE"]) {
            tokens.remove(at + 1, 2);
        } else if tokens.sees(&["FOR", "KEY", "SHARE"]) {
            tokens.remove(at + 1, 1);
        }
    }
    tokens.go_to(0);
}

/// `SELECT ... INTO name`, which is `CREATE TABLE name AS`.
fn into_table(mut statement: ast::Statement) -> ast::Statement {
    let ast::Statement::Query(query) = &mut statement else { return statement };
    let ast::SetExpr::Select(select) = query.body.as_mut() else { return statement };
    let Some(into) = select.into.take() else { return statement };
    CreateTableBuilder::new(into.name).temporary(into.temporary).query(Some(query.clone())).build().into()
}
