//! The grammar of domains, which sqlparser reads in part only.

use crate::command::{Command, DomainChange, DomainPart, Securable};
use crate::grant;
use crate::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

fn expression(tokens: &mut Tokens<'_>) -> Result<ast::Expr> {
    tokens.take(|parser| parser.parse_expr())
}

/// `[CONSTRAINT name] NOT NULL | NULL | CHECK (condition)`
fn constraint(tokens: &mut Tokens<'_>) -> Result<DomainPart> {
    let name = if tokens.accept(&["CONSTRAINT"]) { Some(tokens.name()?) } else { None };
    if tokens.accept(&["NOT", "NULL"]) {
        return Ok(DomainPart::NotNull);
    }
    if tokens.accept(&["NULL"]) {
        return Ok(DomainPart::Null);
    }
    if !tokens.accept(&["CHECK"]) {
        return Err(tokens.unexpected());
    }
    tokens.expect_token(&Token::LParen)?;
    let condition = expression(tokens)?;
    tokens.expect_token(&Token::RParen)?;
    Ok(DomainPart::Check(name, condition))
}

/// `CREATE DOMAIN name [AS] type ...`, from the name on.
pub(super) fn create(tokens: &mut Tokens<'_>) -> Result<Command> {
    let name = tokens.object_name()?;
    tokens.accept(&["AS"]);
    let data_type = Box::new(tokens.take(|parser| parser.parse_data_type())?);
    if tokens.accept(&["COLLATE"]) {
        crate::collation::require_known(&tokens.object_name()?)?;
    }
    let mut parts = Vec::new();
    while !tokens.is_done() {
        parts.push(match tokens.accept(&["DEFAULT"]) {
            // What follows it is no part of the value.
            true => DomainPart::Default(tokens.take(|parser| parser.parse_subexpr(NOT_NULL))?),
            false => constraint(tokens)?,
        });
    }
    tokens.finish()?;
    Ok(Command::CreateDomain { name, data_type, parts })
}

/// How strongly `NOT NULL` and `IS NULL` bind: a default ends before them.
const NOT_NULL: u8 = 40;

/// `ALTER DOMAIN name ...`, from the name on.
pub(super) fn alter(tokens: &mut Tokens<'_>) -> Result<Command> {
    let name = tokens.object_name()?;
    let of = Securable::Type(name.clone());
    if let Some(command) = grant::owner(tokens, "ALTER DOMAIN", false, of)? {
        return Ok(command);
    }
    let change = if tokens.accept(&["ADD"]) {
        let part = constraint(tokens)?;
        tokens.accept(&["NOT", "VALID"]);
        DomainChange::Add(part)
    } else if tokens.accept(&["DROP", "CONSTRAINT"]) {
        let if_exists = tokens.accept(&["IF", "EXISTS"]);
        let constraint = tokens.name()?;
        let _ = tokens.accept(&["CASCADE"]) || tokens.accept(&["RESTRICT"]);
        DomainChange::Drop { constraint, if_exists }
    } else if tokens.accept(&["SET", "NOT", "NULL"]) {
        DomainChange::NotNull(true)
    } else if tokens.accept(&["DROP", "NOT", "NULL"]) {
        DomainChange::NotNull(false)
    } else if tokens.accept(&["SET", "DEFAULT"]) {
        DomainChange::Default(Some(expression(tokens)?))
    } else if tokens.accept(&["DROP", "DEFAULT"]) {
        DomainChange::Default(None)
    } else if tokens.accept(&["RENAME", "TO"]) {
        DomainChange::Rename(tokens.name()?)
    } else {
        return Err(tokens.unexpected());
    };
    tokens.finish()?;
    Ok(Command::AlterDomain { name, change: Box::new(change) })
}

/// `DROP DOMAIN [IF EXISTS] name, ... [CASCADE | RESTRICT]`, from `DOMAIN` on.
pub(super) fn drop(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.pass();
    let if_exists = tokens.accept(&["IF", "EXISTS"]);
    let names = tokens.listed(Tokens::object_name)?;
    let cascade = tokens.accept(&["CASCADE"]);
    if !cascade {
        tokens.accept(&["RESTRICT"]);
    }
    tokens.finish()?;
    Ok(Command::DropDomain { names, if_exists, cascade })
}
