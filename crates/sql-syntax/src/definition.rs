//! The grammar of definitions that sqlparser does not read as PostgreSQL does.

use crate::command::{Command, Identity, Securable, SequenceChange, SequenceOptions};
use crate::foreign::not_supported;
use crate::grant::{self, owner};
use crate::tokens::Tokens;
use crate::written::written_name;
use crate::{database, domain, materialized_view, role};
use fabius_value::Result;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// Options of a sequence, as many as there are.
pub fn sequence_options(tokens: &mut Tokens<'_>) -> Result<SequenceOptions> {
    let mut options = SequenceOptions::default();
    loop {
        if tokens.accept(&["AS"]) {
            options.sql_type = Some(tokens.take(|parser| parser.parse_data_type())?);
        } else if tokens.accept(&["START"]) {
            tokens.accept(&["WITH"]);
            options.start = Some(tokens.integer()?);
        } else if tokens.accept(&["RESTART"]) {
            tokens.accept(&["WITH"]);
            let is_number = matches!(tokens.token(tokens.at()), Token::Number(..) | Token::Minus);
            options.restart = Some(if is_number { Some(tokens.integer()?) } else { None });
        } else if tokens.accept(&["INCREMENT"]) {
            tokens.accept(&["BY"]);
            options.increment = Some(tokens.integer()?);
        } else if tokens.accept(&["NO", "MINVALUE"]) {
            options.minimum = Some(None);
        } else if tokens.accept(&["NO", "MAXVALUE"]) {
            options.maximum = Some(None);
        } else if tokens.accept(&["NO", "CYCLE"]) {
            options.cycle = Some(false);
        } else if tokens.accept(&["MINVALUE"]) {
            options.minimum = Some(Some(tokens.integer()?));
        } else if tokens.accept(&["MAXVALUE"]) {
            options.maximum = Some(Some(tokens.integer()?));
        } else if tokens.accept(&["CYCLE"]) {
            options.cycle = Some(true);
        } else if tokens.accept(&["CACHE"]) {
            tokens.integer()?;
        } else if tokens.accept(&["SEQUENCE", "NAME"]) {
            options.name = Some(tokens.object_name()?);
        } else if tokens.accept(&["OWNED", "BY"]) {
            options.owner = Some(if tokens.accept(&["NONE"]) { None } else { Some(tokens.object_name()?) });
        } else {
            return Ok(options);
        }
    }
}

/// `TABLE name`, which is `SELECT * FROM name`.
pub(super) fn read_table_query(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.go_to(1);
    let name = tokens.object_name()?;
    let text = format!("SELECT * FROM {} {}", written_name(&name), tokens.rest());
    Ok(Command::Sql(Box::new(Tokens::of(&text)?.sql()?)))
}

/// Reads a statement that begins with `first`.
pub(super) fn read(tokens: &mut Tokens<'_>, first: &str) -> Result<Command> {
    tokens.go_to(1);
    match first {
        "CREATE" => create(tokens),
        "ALTER" => alter(tokens),
        "DROP" => drop(tokens),
        "COMMENT" => comment(tokens),
        "GRANT" => grant::read(tokens, true),
        "REVOKE" => grant::read(tokens, false),
        "REASSIGN" => role::reassign(tokens),
        "REFRESH" => materialized_view::refresh(tokens),
        "TRUNCATE" => Ok(Command::Sql(Box::new(tokens.sql()?))),
        _ => Err(not_supported(first)),
    }
}

fn create(tokens: &mut Tokens<'_>) -> Result<Command> {
    let replaces = tokens.accept(&["OR", "REPLACE"]);
    if tokens.sees(&["FUNCTION"]) || tokens.sees(&["PROCEDURE"]) {
        return Ok(Command::CreateFunction);
    }
    let kinds = [
        "AGGREGATE",
        "CAST",
        "COLLATION",
        "CONVERSION",
        "EVENT",
        "FOREIGN",
        "LANGUAGE",
        "OPERATOR",
        "POLICY",
        "PUBLICATION",
        "RULE",
        "SERVER",
        "STATISTICS",
        "SUBSCRIPTION",
        "TABLESPACE",
        "TEXT",
        "TRANSFORM",
        "TRIGGER",
        "CONSTRAINT",
        "TRUSTED",
        "PROCEDURAL",
        "ACCESS",
        "RECURSIVE",
    ];
    if let Some(kind) = kinds.iter().find(|kind| tokens.sees(&[kind])) {
        return Err(not_supported(&format!("CREATE {}", whole_kind(tokens, kind))));
    }
    if tokens.accept(&["DATABASE"]) {
        return database::create(tokens);
    }
    if let Some(kind) = ["ROLE", "USER", "GROUP"].iter().find(|kind| tokens.accept(&[kind])) {
        return role::create(tokens, *kind == "USER");
    }
    if tokens.accept(&["DOMAIN"]) {
        return domain::create(tokens);
    }
    if !replaces && tokens.accept(&["MATERIALIZED", "VIEW"]) {
        return materialized_view::create(tokens);
    }
    if tokens.accept(&["EXTENSION"]) {
        let if_not_exists = tokens.accept(&["IF", "NOT", "EXISTS"]);
        let name = tokens.name()?;
        tokens.accept(&["WITH"]);
        while !tokens.is_done() {
            if tokens.accept(&["SCHEMA"]) || tokens.accept(&["VERSION"]) {
                tokens.pass();
            } else if !tokens.accept(&["CASCADE"]) {
                return Err(tokens.unexpected());
            }
        }
        tokens.finish()?;
        return Ok(Command::CreateExtension(name, if_not_exists));
    }
    let before = tokens.at();
    let _ = tokens.accept(&["GLOBAL"]) || tokens.accept(&["LOCAL"]);
    let is_temporary = tokens.accept(&["TEMP"]) || tokens.accept(&["TEMPORARY"]);
    if tokens.accept(&["SEQUENCE"]) {
        let if_not_exists = tokens.accept(&["IF", "NOT", "EXISTS"]);
        let name = tokens.object_name()?;
        let options = sequence_options(tokens)?;
        tokens.finish()?;
        return Ok(Command::CreateSequence { name, if_not_exists, is_temporary, options });
    }
    tokens.go_to(before);
    // Where and how rows are kept cannot change an answer.
    if tokens.sees(&["UNLOGGED"]) {
        tokens.remove(before, 1);
    }
    let is_table = (before..before + 3).any(|at| tokens.word_at(at).as_deref() == Some("TABLE"));
    let is_index = (before..before + 2).any(|at| tokens.word_at(at).as_deref() == Some("INDEX"));
    if is_table || is_index {
        remove_placement(tokens, before, is_table);
    }
    if is_table {
        refuse_like(tokens, before)?;
        if let Some(at) = passed_over(tokens, 1) {
            return Err(tokens.wrong_at(at));
        }
    }
    if replaces && !tokens.sees(&["VIEW"]) && !tokens.sees(&["TEMP"]) && !tokens.sees(&["TEMPORARY"]) {
        return Err(tokens.unexpected());
    }
    Ok(Command::Sql(Box::new(tokens.sql()?)))
}

/// What is defined, in all its words: `EVENT TRIGGER`.
fn whole_kind(tokens: &Tokens<'_>, first: &str) -> String {
    let goes_on = matches!(
        first,
        "ACCESS" | "CONSTRAINT" | "EVENT" | "FOREIGN" | "PROCEDURAL" | "RECURSIVE" | "TEXT" | "TRUSTED"
    );
    match tokens.word_at(tokens.at() + 1).filter(|_| goes_on) {
        Some(second) => format!("{first} {second}"),
        None => first.to_string(),
    }
}

/// Refuses what a table takes over from another besides columns and defaults, and columns beside it.
fn refuse_like(tokens: &Tokens<'_>, from: usize) -> Result<()> {
    let Some(open) = (from..tokens.len()).find(|at| *tokens.token(*at) == Token::LParen) else {
        return Ok(());
    };
    let mut depth = 0;
    for at in open..tokens.len() {
        let before = at.checked_sub(1).map(|before| tokens.token(before));
        match (tokens.token(at), tokens.word_at(at).as_deref()) {
            (Token::LParen, _) => depth += 1,
            (Token::RParen, _) => depth -= 1,
            (_, Some("LIKE")) if depth == 1 && before == Some(&Token::Comma) => {
                return Err(not_supported("LIKE beside columns in CREATE TABLE"));
            }
            (_, Some(word @ ("INCLUDING" | "EXCLUDING")))
                if depth == 1
                    && tokens.word_at(open + 1).as_deref() == Some("LIKE")
                    && tokens.word_at(at + 1).is_some_and(|what| what != "DEFAULTS") =>
            {
                let what = tokens.word_at(at + 1).unwrap_or_default();
                return Err(not_supported(&format!("LIKE ... {word} {what} in CREATE TABLE")));
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    Ok(())
}

/// The place of a word behind a column's type that sqlparser passes over and PostgreSQL does not have.
fn passed_over(tokens: &Tokens<'_>, level: i32) -> Option<usize> {
    let mut depth = 0;
    for at in 0..tokens.len() {
        match tokens.token(at) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let before = at.checked_sub(1).and_then(|before| tokens.word_at(before));
        let is_query =
            matches!(tokens.word_at(at + 1).as_deref(), Some("SELECT" | "WITH" | "VALUES" | "TABLE"));
        let is_wrong = match tokens.word_at(at).as_deref() {
            Some("AS") if is_query && before.as_deref() != Some("ALWAYS") => return None,
            Some("AUTOINCREMENT" | "AUTO_INCREMENT" | "SRID") => !matches!(
                before.as_deref(),
                None | Some(
                    "ADD"
                        | "ALTER"
                        | "COLUMN"
                        | "CONSTRAINT"
                        | "DROP"
                        | "EXISTS"
                        | "REFERENCES"
                        | "RENAME"
                        | "TABLE"
                        | "TO"
                )
            ),
            Some("ASC" | "DESC") => true,
            Some("IDENTITY") => before.as_deref() != Some("AS"),
            Some("AS") => !matches!(before.as_deref(), Some("ALWAYS" | "DEFAULT")),
            _ => false,
        };
        if is_wrong && depth == level {
            return Some(at);
        }
    }
    None
}

/// Takes out `TABLESPACE name`, `USING INDEX TABLESPACE name`, and a table's `USING heap` and `WITHOUT OIDS`.
fn remove_placement(tokens: &mut Tokens<'_>, from: usize, is_table: bool) {
    let mut at = from;
    let mut depth = 0;
    while at < tokens.len() {
        match tokens.token(at) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let words: [Option<String>; 3] = [0, 1, 2].map(|offset| tokens.word_at(at + offset));
        let count = match words.each_ref().map(Option::as_deref) {
            [Some("USING"), Some("INDEX"), Some("TABLESPACE")] => 4,
            [Some("TABLESPACE"), ..] if depth == 0 => 2,
            [Some("USING"), Some("HEAP"), _] if is_table && depth == 0 => 2,
            [Some("WITHOUT"), Some("OIDS"), _] if is_table && depth == 0 => 2,
            [Some("AS"), Some("SELECT" | "WITH" | "VALUES"), _] => return,
            _ => 0,
        };
        if count > 0 && at + count <= tokens.len() {
            tokens.remove(at, count);
        } else {
            at += 1;
        }
    }
}

fn alter(tokens: &mut Tokens<'_>) -> Result<Command> {
    let Some(kind) = tokens.word() else { return Err(tokens.unexpected()) };
    tokens.pass();
    let kind = match kind.as_str() {
        "MATERIALIZED" if tokens.accept(&["VIEW"]) => "MATERIALIZED VIEW".to_string(),
        _ => kind,
    };
    let if_exists = kind != "TABLE" && tokens.accept(&["IF", "EXISTS"]);
    match kind.as_str() {
        "TABLE" => alter_table(tokens),
        "SEQUENCE" => {
            let name = tokens.object_name()?;
            let change = if tokens.accept(&["RENAME", "TO"]) {
                SequenceChange::Rename(tokens.name()?)
            } else if let Some(command) =
                owner(tokens, "ALTER SEQUENCE", if_exists, Securable::Sequence(name.clone()))?
            {
                return Ok(command);
            } else {
                SequenceChange::Options(sequence_options(tokens)?)
            };
            tokens.finish()?;
            Ok(Command::AlterSequence { name, if_exists, change })
        }
        "INDEX" | "VIEW" | "MATERIALIZED VIEW" => {
            let from = tokens.object_name()?;
            let (kind, tag) = match kind.as_str() {
                "INDEX" => ("INDEX", "ALTER INDEX"),
                "VIEW" => ("VIEW", "ALTER VIEW"),
                _ => ("MATERIALIZED VIEW", "ALTER MATERIALIZED VIEW"),
            };
            if let Some(command) = owner(tokens, tag, if_exists, Securable::Relation(from.clone()))? {
                return Ok(command);
            }
            if tokens.sees(&["SET", "SCHEMA"]) {
                return Err(not_supported(&format!("{tag} ... SET SCHEMA")));
            }
            if tokens.sees(&["SET"]) || tokens.sees(&["RESET"]) || tokens.sees(&["CLUSTER", "ON"]) {
                return Ok(Command::Maintenance(tag, if if_exists { Vec::new() } else { vec![from] }));
            }
            tokens.expect(&["RENAME", "TO"])?;
            let to = tokens.name()?;
            tokens.finish()?;
            Ok(Command::Rename { kind, if_exists, from, to })
        }
        "DOMAIN" => domain::alter(tokens),
        "TYPE" => {
            let name = tokens.object_name()?;
            if let Some(command) = owner(tokens, "ALTER TYPE", false, Securable::Type(name))? {
                return Ok(command);
            }
            Ok(Command::Sql(Box::new(tokens.sql()?)))
        }
        "SCHEMA" => {
            let from = tokens.name()?;
            if let Some(command) = owner(tokens, "ALTER SCHEMA", false, Securable::Schema(from.clone()))? {
                return Ok(command);
            }
            tokens.expect(&["RENAME", "TO"])?;
            let to = tokens.name()?;
            tokens.finish()?;
            Ok(Command::RenameSchema { from, to })
        }
        "DATABASE" => database::alter(tokens),
        "FUNCTION" | "ROUTINE" => grant::function_owner(tokens, "ALTER FUNCTION"),
        "PROCEDURE" => grant::function_owner(tokens, "ALTER PROCEDURE"),
        "ROLE" | "USER" | "GROUP" => role::alter(tokens, &kind),
        "DEFAULT" => {
            tokens.expect(&["PRIVILEGES"])?;
            grant::alter_default(tokens)
        }
        _ => Err(not_supported(&format!("ALTER {kind}"))),
    }
}

/// `ALTER TABLE`, but for what says only where and how rows are kept.
fn alter_table(tokens: &mut Tokens<'_>) -> Result<Command> {
    let if_exists = tokens.accept(&["IF", "EXISTS"]);
    tokens.accept(&["ONLY"]);
    let name = tokens.object_name()?;
    tokens.accept_token(&Token::Mul);
    if let Some(command) = owner(tokens, "ALTER TABLE", if_exists, Securable::Relation(name.clone()))? {
        return Ok(command);
    }
    let is_hint = tokens.sees(&["CLUSTER", "ON"])
        || tokens.sees(&["SET", "WITHOUT", "CLUSTER"])
        || tokens.sees(&["SET", "TABLESPACE"])
        || tokens.sees(&["SET", "LOGGED"])
        || tokens.sees(&["SET", "UNLOGGED"])
        || tokens.sees(&["REPLICA", "IDENTITY"])
        || (tokens.word().as_deref() == Some("SET") && *tokens.token(tokens.at() + 1) == Token::LParen)
        || (tokens.word().as_deref() == Some("RESET") && *tokens.token(tokens.at() + 1) == Token::LParen);
    if is_hint {
        return Ok(Command::Maintenance("ALTER TABLE", if if_exists { Vec::new() } else { vec![name] }));
    }
    if let Some(command) = add_identity(tokens, &name)? {
        return Ok(command);
    }
    if tokens.sees(&["ALTER"]) {
        let statistics = (tokens.at()..tokens.len()).any(|at| {
            matches!(tokens.word_at(at).as_deref(), Some("STATISTICS" | "STORAGE" | "COMPRESSION"))
        });
        if statistics {
            return Ok(Command::Maintenance("ALTER TABLE", vec![name]));
        }
    }
    let adds = (tokens.at()..tokens.len()).any(|at| tokens.word_at(at).as_deref() == Some("ADD"));
    if let Some(at) = passed_over(tokens, 0).filter(|_| adds) {
        return Err(tokens.wrong_at(at));
    }
    Ok(Command::Sql(Box::new(tokens.sql()?)))
}

/// `ALTER COLUMN name ADD GENERATED ... AS IDENTITY (options)`, if that is what is there, and all.
fn add_identity(tokens: &mut Tokens<'_>, table: &ast::ObjectName) -> Result<Option<Command>> {
    let from = tokens.at();
    if tokens.accept(&["ALTER"]) {
        tokens.accept(&["COLUMN"]);
        let column = tokens.name()?;
        let identity = if tokens.accept(&["ADD", "GENERATED", "ALWAYS", "AS", "IDENTITY"]) {
            Some(Identity::Always)
        } else if tokens.accept(&["ADD", "GENERATED", "BY", "DEFAULT", "AS", "IDENTITY"]) {
            Some(Identity::ByDefault)
        } else {
            None
        };
        if let Some(identity) = identity {
            let mut options = SequenceOptions::default();
            if tokens.accept_token(&Token::LParen) {
                options = sequence_options(tokens)?;
                tokens.expect_token(&Token::RParen)?;
            }
            if *tokens.token(tokens.at()) != Token::Comma {
                tokens.finish()?;
                return Ok(Some(Command::AddIdentity { table: table.clone(), column, identity, options }));
            }
        }
    }
    tokens.go_to(from);
    Ok(None)
}

fn drop(tokens: &mut Tokens<'_>) -> Result<Command> {
    match tokens.word().as_deref() {
        Some("MATERIALIZED") if tokens.word_at(tokens.at() + 1).as_deref() == Some("VIEW") => {}
        Some("TABLE" | "INDEX" | "VIEW" | "SEQUENCE" | "SCHEMA" | "FUNCTION" | "PROCEDURE" | "TYPE") => {}
        Some("ROUTINE") => return Err(not_supported("DROP ROUTINE")),
        Some("EXTENSION") => return drop_extension(tokens),
        Some("DOMAIN") => return domain::drop(tokens),
        Some("DATABASE") => {
            tokens.pass();
            return database::drop(tokens);
        }
        Some("ROLE" | "USER" | "GROUP") => {
            tokens.pass();
            return role::drop(tokens);
        }
        Some("OWNED") => {
            tokens.pass();
            return role::drop_owned(tokens);
        }
        Some(
            kind @ ("TRIGGER" | "RULE" | "POLICY" | "AGGREGATE" | "OPERATOR" | "CAST" | "COLLATION"
            | "FOREIGN" | "SERVER" | "LANGUAGE" | "TABLESPACE" | "PUBLICATION" | "SUBSCRIPTION"
            | "STATISTICS" | "EVENT"),
        ) => return Err(not_supported(&format!("DROP {}", whole_kind(tokens, kind)))),
        _ => return Err(tokens.unexpected()),
    }
    let concurrently = (1..4).find(|at| tokens.word_at(*at).as_deref() == Some("CONCURRENTLY"));
    if let Some(at) = concurrently {
        tokens.remove(at, 1);
    }
    Ok(Command::Sql(Box::new(tokens.sql()?)))
}

/// `DROP EXTENSION [IF EXISTS] name, ... [CASCADE | RESTRICT]`
fn drop_extension(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.pass();
    let if_exists = tokens.accept(&["IF", "EXISTS"]);
    let names = tokens.listed(Tokens::name)?;
    let _ = tokens.accept(&["CASCADE"]) || tokens.accept(&["RESTRICT"]);
    tokens.finish()?;
    Ok(Command::DropExtension { names, if_exists })
}

fn comment(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.expect(&["ON"])?;
    let Some(kind) = tokens.word() else { return Err(tokens.unexpected()) };
    tokens.pass();
    let kind = match kind.as_str() {
        "MATERIALIZED" if tokens.accept(&["VIEW"]) => "MATERIALIZED VIEW".to_string(),
        _ => kind,
    };
    match kind.as_str() {
        "MATERIALIZED VIEW" | "TABLE" | "COLUMN" | "VIEW" | "INDEX" | "SEQUENCE" | "SCHEMA" | "FUNCTION"
        | "PROCEDURE" | "ROUTINE" | "DATABASE" | "CONSTRAINT" | "EXTENSION" | "TYPE" | "DOMAIN" | "ROLE" => {}
        "ACCESS" | "AGGREGATE" | "CAST" | "COLLATION" | "CONVERSION" | "EVENT" | "FOREIGN" | "LANGUAGE"
        | "LARGE" | "OPERATOR" | "POLICY" | "PROCEDURAL" | "PUBLICATION" | "RULE" | "SERVER"
        | "STATISTICS" | "SUBSCRIPTION" | "TABLESPACE" | "TEXT" | "TRANSFORM" | "TRIGGER" => {
            return Err(not_supported(&format!("COMMENT ON {kind}")));
        }
        _ => return Err(tokens.unexpected()),
    }
    let mut name = tokens.object_name()?;
    if kind == "CONSTRAINT" {
        tokens.expect(&["ON"])?;
        if tokens.accept(&["DOMAIN"]) {
            return Err(not_supported("COMMENT ON CONSTRAINT ... ON DOMAIN"));
        }
        let mut table = tokens.object_name()?;
        table.0.append(&mut name.0);
        name = table;
    }
    if *tokens.token(tokens.at()) == Token::LParen {
        while !tokens.is_done() && !tokens.accept_token(&Token::RParen) {
            tokens.pass();
        }
    }
    tokens.expect(&["IS"])?;
    let comment = if tokens.accept(&["NULL"]) { None } else { Some(tokens.string()?) };
    tokens.finish()?;
    Ok(Command::Comment { kind, name, comment })
}
