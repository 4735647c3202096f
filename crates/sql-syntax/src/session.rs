//! The grammar of what concerns the session: transactions, settings, cursors, prepared statements.

use crate::command::{Characteristics, Command, Discard, Scroll, Step};
use crate::foreign::not_supported;
use crate::lock_mode::LockMode;
use crate::tokens::Tokens;
use fabius_value::Result;
use sqlparser::tokenizer::Token;

/// Reads a statement that begins with `first`.
pub(super) fn read(tokens: &mut Tokens<'_>, first: &str) -> Result<Command> {
    tokens.go_to(1);
    let command = match first {
        "BEGIN" => {
            let _ = tokens.accept(&["WORK"]) || tokens.accept(&["TRANSACTION"]);
            Command::Begin(characteristics(tokens)?)
        }
        "START" => {
            tokens.expect(&["TRANSACTION"])?;
            Command::Begin(characteristics(tokens)?)
        }
        "COMMIT" if tokens.sees(&["PREPARED"]) => return Err(not_supported("COMMIT PREPARED")),
        "COMMIT" | "END" => Command::Commit { chain: chain(tokens)? },
        "ROLLBACK" if tokens.sees(&["PREPARED"]) => return Err(not_supported("ROLLBACK PREPARED")),
        "ROLLBACK" | "ABORT" => {
            let _ = tokens.accept(&["WORK"]) || tokens.accept(&["TRANSACTION"]);
            if first == "ROLLBACK" && tokens.accept(&["TO"]) {
                tokens.accept(&["SAVEPOINT"]);
                Command::RollbackTo(tokens.name()?)
            } else {
                Command::Rollback { chain: chain(tokens)? }
            }
        }
        "SAVEPOINT" => Command::Savepoint(tokens.name()?),
        "RELEASE" => {
            tokens.accept(&["SAVEPOINT"]);
            Command::Release(tokens.name()?)
        }
        "SET" => set(tokens)?,
        "SHOW" => Command::Show(setting_or_all(tokens)?),
        "RESET" => Command::Reset(setting_or_all(tokens)?),
        "DISCARD" => Command::Discard(match tokens.word().as_deref() {
            Some("ALL") => Discard::All,
            Some("PLANS") => Discard::Plans,
            Some("SEQUENCES") => Discard::Sequences,
            Some("TEMP" | "TEMPORARY") => Discard::Temporary,
            _ => return Err(tokens.unexpected()),
        })
        .past(tokens),
        "LISTEN" => Command::Listen(tokens.name()?),
        "UNLISTEN" => {
            Command::Unlisten(if tokens.accept_token(&Token::Mul) { None } else { Some(tokens.name()?) })
        }
        "NOTIFY" => Command::Notify {
            channel: tokens.name()?,
            payload: if tokens.accept_token(&Token::Comma) { tokens.string()? } else { String::new() },
        },
        "PREPARE" => return prepare(tokens),
        "EXECUTE" => execute(tokens)?,
        "DEALLOCATE" => {
            tokens.accept(&["PREPARE"]);
            Command::Deallocate(if tokens.accept(&["ALL"]) { None } else { Some(tokens.name()?) })
        }
        "DECLARE" => return declare(tokens),
        "FETCH" | "MOVE" => fetch(tokens, first == "MOVE")?,
        "CLOSE" => Command::Close(if tokens.accept(&["ALL"]) { None } else { Some(tokens.name()?) }),
        "LOCK" => lock(tokens)?,
        "VACUUM" | "ANALYZE" | "ANALYSE" => maintenance(tokens, first)?,
        "REINDEX" => reindex(tokens)?,
        "CLUSTER" => {
            tokens.accept(&["VERBOSE"]);
            let tables = if tokens.is_done() { Vec::new() } else { vec![tokens.object_name()?] };
            if tokens.accept(&["USING"]) {
                tokens.name()?;
            }
            Command::Maintenance("CLUSTER", tables)
        }
        "CHECKPOINT" => Command::Checkpoint,
        "LOAD" => return Err(not_supported("LOAD")),
        _ => {
            tokens.go_to(0);
            return Err(tokens.unexpected());
        }
    };
    tokens.finish()?;
    Ok(command)
}

impl Command {
    /// Goes past the word that said so.
    fn past(self, tokens: &mut Tokens<'_>) -> Command {
        tokens.pass();
        self
    }
}

fn chain(tokens: &mut Tokens<'_>) -> Result<bool> {
    let _ = tokens.accept(&["WORK"]) || tokens.accept(&["TRANSACTION"]);
    if !tokens.accept(&["AND"]) {
        return Ok(false);
    }
    let no = tokens.accept(&["NO"]);
    tokens.expect(&["CHAIN"])?;
    Ok(!no)
}

fn characteristics(tokens: &mut Tokens<'_>) -> Result<Characteristics> {
    let mut all = Characteristics::default();
    while !tokens.is_done() && *tokens.token(tokens.at()) != Token::SemiColon {
        if tokens.accept(&["ISOLATION", "LEVEL"]) {
            let levels: [(&[&str], &str); 4] = [
                (&["SERIALIZABLE"], "serializable"),
                (&["REPEATABLE", "READ"], "repeatable read"),
                (&["READ", "COMMITTED"], "read committed"),
                (&["READ", "UNCOMMITTED"], "read uncommitted"),
            ];
            let Some((_, level)) = levels.iter().find(|(words, _)| tokens.accept(words)) else {
                return Err(tokens.unexpected());
            };
            all.isolation = Some(level);
        } else if tokens.accept(&["READ", "ONLY"]) {
            all.is_read_only = Some(true);
        } else if tokens.accept(&["READ", "WRITE"]) {
            all.is_read_only = Some(false);
        } else if tokens.accept(&["NOT", "DEFERRABLE"]) {
            all.is_deferrable = Some(false);
        } else if tokens.accept(&["DEFERRABLE"]) {
            all.is_deferrable = Some(true);
        } else {
            return Err(tokens.unexpected());
        }
        tokens.accept_token(&Token::Comma);
    }
    Ok(all)
}

fn setting_name(tokens: &mut Tokens<'_>) -> Result<String> {
    let mut name = tokens.name()?;
    while tokens.accept_token(&Token::Period) {
        name = format!("{name}.{}", tokens.name()?);
    }
    Ok(name)
}

fn set(tokens: &mut Tokens<'_>) -> Result<Command> {
    if tokens.accept(&["SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"]) {
        return Ok(Command::SetCharacteristics(characteristics(tokens)?));
    }
    if tokens.accept(&["CONSTRAINTS"]) {
        let names = match tokens.accept(&["ALL"]) {
            true => None,
            false => Some(tokens.listed(Tokens::object_name)?),
        };
        let is_deferred = tokens.accept(&["DEFERRED"]);
        if !is_deferred {
            tokens.expect(&["IMMEDIATE"])?;
        }
        return Ok(Command::SetConstraints { names, is_deferred });
    }
    let is_local = tokens.accept(&["LOCAL"]);
    if !is_local {
        tokens.accept(&["SESSION"]);
    }
    if tokens.accept(&["TRANSACTION"]) {
        if tokens.sees(&["SNAPSHOT"]) {
            return Err(not_supported("SET TRANSACTION SNAPSHOT"));
        }
        return Ok(Command::SetTransaction(characteristics(tokens)?));
    }
    let name = if tokens.accept(&["TIME", "ZONE"]) {
        let value = if tokens.accept(&["INTERVAL"]) {
            Some(zone_of_interval(tokens)?)
        } else {
            values(tokens, &["LOCAL", "DEFAULT"])?
        };
        return Ok(Command::Set { is_local, name: "timezone".into(), value });
    } else if tokens.accept(&["NAMES"]) {
        return Ok(Command::Set {
            is_local,
            name: "client_encoding".into(),
            value: values(tokens, &["DEFAULT"])?,
        });
    } else if tokens.accept(&["ROLE"]) {
        return Ok(Command::Set { is_local, name: "role".into(), value: values(tokens, &["DEFAULT"])? });
    } else if tokens.accept(&["AUTHORIZATION"]) {
        let name = "session_authorization".into();
        return Ok(Command::Set { is_local, name, value: values(tokens, &["DEFAULT"])? });
    } else {
        setting_name(tokens)?
    };
    if !tokens.accept_token(&Token::Eq) {
        tokens.expect(&["TO"])?;
    }
    Ok(Command::Set { is_local, name, value: values(tokens, &["DEFAULT"])? })
}

/// `SET name = value` as `ALTER ROLE` has it: the setting's name and value.
pub(super) fn set_to(tokens: &mut Tokens<'_>) -> Result<(String, Option<String>)> {
    tokens.expect(&["SET"])?;
    match set(tokens)? {
        Command::Set { is_local: false, name, value } => Ok((name, value)),
        _ => Err(tokens.unexpected()),
    }
}

/// `SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE`: so many hours to the east.
fn zone_of_interval(tokens: &mut Tokens<'_>) -> Result<String> {
    let text = tokens.string()?;
    if tokens.accept(&["HOUR"]) && tokens.accept(&["TO"]) {
        tokens.expect(&["MINUTE"])?;
    }
    let (hours, minutes) = text.split_once(':').unwrap_or((&text, "00"));
    match (hours.trim().parse::<i8>(), minutes) {
        (Ok(0), "00") => Ok("UTC".into()),
        (Ok(hours), "00") => Ok(hours.to_string()),
        _ => Err(not_supported(&format!("the time zone INTERVAL '{text}'"))),
    }
}

/// The values of `SET`, joined by commas; `None` for one of the words that mean the default.
fn values(tokens: &mut Tokens<'_>, defaults: &[&str]) -> Result<Option<String>> {
    if defaults.iter().any(|word| tokens.accept(&[word])) {
        return Ok(None);
    }
    let mut all = Vec::new();
    loop {
        let one = match tokens.token(tokens.at()).clone() {
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => tokens.string()?,
            Token::Word(_) => tokens.name()?,
            Token::Number(..) | Token::Minus | Token::Plus => {
                let minus = tokens.accept_token(&Token::Minus);
                if !minus {
                    tokens.accept_token(&Token::Plus);
                }
                match tokens.pass() {
                    Token::Number(digits, _) if minus => format!("-{digits}"),
                    Token::Number(digits, _) => digits,
                    _ => return Err(tokens.unexpected()),
                }
            }
            _ => return Err(tokens.unexpected()),
        };
        all.push(one);
        if !tokens.accept_token(&Token::Comma) {
            return Ok(Some(all.join(", ")));
        }
    }
}

/// What `SHOW` and `RESET` name: a setting, perhaps by words of its own, or `None` for `ALL`.
fn setting_or_all(tokens: &mut Tokens<'_>) -> Result<Option<String>> {
    Ok(if tokens.accept(&["ALL"]) {
        None
    } else if tokens.accept(&["TIME", "ZONE"]) {
        Some("timezone".into())
    } else if tokens.accept(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
        Some("transaction_isolation".into())
    } else if tokens.accept(&["SESSION", "AUTHORIZATION"]) {
        Some("session_authorization".into())
    } else {
        Some(setting_name(tokens)?)
    })
}

fn prepare(tokens: &mut Tokens<'_>) -> Result<Command> {
    if tokens.sees(&["TRANSACTION"]) {
        return Err(not_supported("PREPARE TRANSACTION"));
    }
    let name = tokens.name()?;
    let mut types = Vec::new();
    if tokens.accept_token(&Token::LParen) {
        loop {
            types.push(tokens.take(|parser| parser.parse_data_type())?);
            if !tokens.accept_token(&Token::Comma) {
                break;
            }
        }
        tokens.expect_token(&Token::RParen)?;
    }
    tokens.expect(&["AS"])?;
    if tokens.is_done() {
        return Err(tokens.unexpected());
    }
    Ok(Command::Prepare { name, types, text: tokens.rest().to_string() })
}

fn execute(tokens: &mut Tokens<'_>) -> Result<Command> {
    let name = tokens.name()?;
    let mut arguments = Vec::new();
    if tokens.accept_token(&Token::LParen) {
        loop {
            arguments.push(tokens.take(|parser| parser.parse_expr())?);
            if !tokens.accept_token(&Token::Comma) {
                break;
            }
        }
        tokens.expect_token(&Token::RParen)?;
    }
    Ok(Command::Execute { name, arguments })
}

fn declare(tokens: &mut Tokens<'_>) -> Result<Command> {
    let name = tokens.name()?;
    let mut scroll = Scroll::Usual;
    loop {
        if tokens.accept(&["BINARY"]) {
            return Err(not_supported("DECLARE BINARY CURSOR"));
        }
        if tokens.accept(&["NO", "SCROLL"]) {
            scroll = Scroll::Forward;
        } else if tokens.accept(&["SCROLL"]) {
            scroll = Scroll::Both;
        } else if !tokens.accept(&["INSENSITIVE"]) && !tokens.accept(&["ASENSITIVE"]) {
            break;
        }
    }
    tokens.expect(&["CURSOR"])?;
    let is_held = tokens.accept(&["WITH", "HOLD"]);
    if !is_held {
        tokens.accept(&["WITHOUT", "HOLD"]);
    }
    tokens.expect(&["FOR"])?;
    if tokens.is_done() {
        return Err(tokens.unexpected());
    }
    Ok(Command::Declare { name, is_held, scroll, text: tokens.rest().to_string() })
}

fn fetch(tokens: &mut Tokens<'_>, is_move: bool) -> Result<Command> {
    let is_number = |tokens: &Tokens<'_>| {
        matches!(tokens.token(tokens.at()), Token::Number(..) | Token::Minus | Token::Plus)
    };
    let directed = |tokens: &mut Tokens<'_>, sign: i64| -> Result<Step> {
        Ok(if tokens.accept(&["ALL"]) {
            if sign > 0 { Step::AllForward } else { Step::AllBackward }
        } else if is_number(tokens) {
            Step::By(tokens.integer()?.saturating_mul(sign))
        } else {
            Step::By(sign)
        })
    };
    let step = if tokens.accept(&["NEXT"]) {
        Step::By(1)
    } else if tokens.accept(&["PRIOR"]) {
        Step::By(-1)
    } else if tokens.accept(&["FIRST"]) {
        Step::Absolute(1)
    } else if tokens.accept(&["LAST"]) {
        Step::Absolute(-1)
    } else if tokens.accept(&["ABSOLUTE"]) {
        Step::Absolute(tokens.integer()?)
    } else if tokens.accept(&["RELATIVE"]) {
        Step::Relative(tokens.integer()?)
    } else if tokens.accept(&["FORWARD"]) {
        directed(tokens, 1)?
    } else if tokens.accept(&["BACKWARD"]) {
        directed(tokens, -1)?
    } else {
        directed(tokens, 1)?
    };
    let _ = tokens.accept(&["FROM"]) || tokens.accept(&["IN"]);
    Ok(Command::Fetch { name: tokens.name()?, step, is_move })
}

fn lock(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.accept(&["TABLE"]);
    let mut tables = Vec::new();
    loop {
        tokens.accept(&["ONLY"]);
        tables.push(tokens.object_name()?);
        tokens.accept_token(&Token::Mul);
        if !tokens.accept_token(&Token::Comma) {
            break;
        }
    }
    let mut mode = LockMode::AccessExclusive;
    if tokens.accept(&["IN"]) {
        let modes: [(&[&str], LockMode); 8] = [
            (&["ACCESS", "SHARE"], LockMode::AccessShare),
            (&["ROW", "SHARE"], LockMode::RowShare),
            (&["ROW", "EXCLUSIVE"], LockMode::RowExclusive),
            (&["SHARE", "UPDATE", "EXCLUSIVE"], LockMode::ShareUpdateExclusive),
            (&["SHARE", "ROW", "EXCLUSIVE"], LockMode::ShareRowExclusive),
            (&["SHARE"], LockMode::Share),
            (&["EXCLUSIVE"], LockMode::Exclusive),
            (&["ACCESS", "EXCLUSIVE"], LockMode::AccessExclusive),
        ];
        let Some((_, named)) = modes.iter().find(|(words, _)| tokens.accept(words)) else {
            return Err(tokens.unexpected());
        };
        mode = *named;
        tokens.expect(&["MODE"])?;
    }
    let no_wait = tokens.accept(&["NOWAIT"]);
    Ok(Command::Lock { tables, mode, no_wait })
}

/// `VACUUM` and `ANALYZE`: options in brackets or as words, then tables, perhaps with columns.
fn maintenance(tokens: &mut Tokens<'_>, first: &str) -> Result<Command> {
    if *tokens.token(tokens.at()) == Token::LParen {
        in_brackets(tokens)?;
    }
    while ["FULL", "FREEZE", "VERBOSE", "ANALYZE", "ANALYSE"].iter().any(|word| tokens.accept(&[word])) {}
    let mut tables = Vec::new();
    while !tokens.is_done() && *tokens.token(tokens.at()) != Token::SemiColon {
        tables.push(tokens.object_name()?);
        if *tokens.token(tokens.at()) == Token::LParen {
            in_brackets(tokens)?;
        }
        if !tokens.accept_token(&Token::Comma) {
            break;
        }
    }
    Ok(Command::Maintenance(if first == "VACUUM" { "VACUUM" } else { "ANALYZE" }, tables))
}

fn in_brackets(tokens: &mut Tokens<'_>) -> Result<()> {
    tokens.expect_token(&Token::LParen)?;
    while !tokens.accept_token(&Token::RParen) {
        if tokens.is_done() {
            return Err(tokens.unexpected());
        }
        tokens.pass();
    }
    Ok(())
}

fn reindex(tokens: &mut Tokens<'_>) -> Result<Command> {
    if *tokens.token(tokens.at()) == Token::LParen {
        in_brackets(tokens)?;
    }
    let is_table = tokens.accept(&["TABLE"]);
    let is_other =
        !is_table && ["INDEX", "SCHEMA", "DATABASE", "SYSTEM"].iter().any(|word| tokens.accept(&[word]));
    if !is_table && !is_other {
        return Err(tokens.unexpected());
    }
    tokens.accept(&["CONCURRENTLY"]);
    let name = if tokens.is_done() { None } else { Some(tokens.object_name()?) };
    Ok(Command::Maintenance("REINDEX", name.filter(|_| is_table).into_iter().collect()))
}
