//! The grammar of databases, which sqlparser does not read.

use crate::command::{Command, DatabaseChange, Securable};
use crate::foreign::not_supported;
use crate::grant;
use crate::tokens::Tokens;
use fabius_value::Result;
use sqlparser::tokenizer::Token;

/// Values of options that change nothing here; texts are sorted by their bytes.
const ORDERS: [&str; 6] = ["c", "posix", "c.utf-8", "c.utf8", "ucs_basic", "default"];

/// `CREATE DATABASE name [WITH] option ...`, from the name on.
pub(super) fn create(tokens: &mut Tokens<'_>) -> Result<Command> {
    let name = tokens.name()?;
    tokens.accept(&["WITH"]);
    let (mut template, mut owner) = (None, None);
    while !tokens.is_done() {
        let option = match tokens.accept(&["CONNECTION", "LIMIT"]) {
            true => "CONNECTION LIMIT".to_string(),
            false => tokens.word().ok_or_else(|| tokens.unexpected())?,
        };
        if option != "CONNECTION LIMIT" {
            tokens.pass();
        }
        tokens.accept_token(&Token::Eq);
        let value = value(tokens)?;
        let is_usual = match option.as_str() {
            "OWNER" => {
                owner = Some(value.clone()).filter(|name| name != "default");
                true
            }
            "TEMPLATE" => {
                template = Some(value.clone()).filter(|name| name != "default");
                true
            }
            "ENCODING" => {
                matches!(value.to_lowercase().as_str(), "utf8" | "utf-8" | "unicode" | "6" | "default")
            }
            "LOCALE" | "LC_COLLATE" | "LC_CTYPE" => ORDERS.contains(&value.to_lowercase().as_str()),
            "STRATEGY" => matches!(value.to_lowercase().as_str(), "wal_log" | "file_copy"),
            "LOCALE_PROVIDER" => matches!(value.to_lowercase().as_str(), "libc" | "default"),
            "TABLESPACE" => matches!(value.as_str(), "pg_default" | "default"),
            "CONNECTION LIMIT" => value == "-1" || value == "default",
            "ALLOW_CONNECTIONS" => matches!(value.to_lowercase().as_str(), "true" | "on" | "default"),
            "IS_TEMPLATE" => matches!(value.to_lowercase().as_str(), "false" | "off" | "default"),
            _ => false,
        };
        if !is_usual {
            return Err(not_supported(&format!("CREATE DATABASE ... {option} {value}")));
        }
    }
    tokens.finish()?;
    Ok(Command::CreateDatabase { name, template, owner })
}

/// A name, text or number behind an option.
fn value(tokens: &mut Tokens<'_>) -> Result<String> {
    match tokens.token(tokens.at()) {
        Token::SingleQuotedString(_) => tokens.string(),
        Token::Number(..) | Token::Minus => tokens.integer().map(|number| number.to_string()),
        _ => tokens.name(),
    }
}

/// `DROP DATABASE [IF EXISTS] name [[WITH] (FORCE)]`, from `IF` on.
pub(super) fn drop(tokens: &mut Tokens<'_>) -> Result<Command> {
    let if_exists = tokens.accept(&["IF", "EXISTS"]);
    let name = tokens.name()?;
    let has_with = tokens.accept(&["WITH"]);
    let is_forced = tokens.accept_token(&Token::LParen);
    if is_forced {
        tokens.expect(&["FORCE"])?;
        tokens.expect_token(&Token::RParen)?;
    } else if has_with {
        return Err(tokens.unexpected());
    }
    tokens.finish()?;
    Ok(Command::ChangeDatabase { name, change: DatabaseChange::Drop { if_exists, is_forced } })
}

/// `ALTER DATABASE name ...`, from the name on.
pub(super) fn alter(tokens: &mut Tokens<'_>) -> Result<Command> {
    let name = tokens.name()?;
    let of = Securable::Database(name.clone());
    if let Some(command) = grant::owner(tokens, "ALTER DATABASE", false, of)? {
        return Ok(command);
    }
    if !tokens.accept(&["RENAME", "TO"]) {
        return Err(not_supported("this ALTER DATABASE"));
    }
    let change = DatabaseChange::Rename(tokens.name()?);
    tokens.finish()?;
    Ok(Command::ChangeDatabase { name, change })
}
