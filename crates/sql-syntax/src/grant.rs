//! The grammar of `GRANT`, `REVOKE`, `ALTER DEFAULT PRIVILEGES` and `ALTER ... OWNER TO`.

use crate::command::{Command, Granting, Objects, RoleCommand, RoleName, Securable};
use crate::foreign::not_supported;
use crate::privilege::{Class, Privilege};
use crate::role::role_name;
use crate::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::tokenizer::Token;

/// `GRANT` or `REVOKE`, from behind the first word.
pub(super) fn read(tokens: &mut Tokens<'_>, gives: bool) -> Result<Command> {
    let option = !gives && tokens.accept(&["GRANT", "OPTION", "FOR"]);
    if !gives && tokens.accept(&["ADMIN", "OPTION", "FOR"]) {
        return membership(tokens, gives, true);
    }
    // A list without ON is one of roles.
    if !(tokens.at()..tokens.len()).any(|at| tokens.word_at(at).as_deref() == Some("ON")) {
        return membership(tokens, gives, false);
    }
    let privileges = privileges(tokens)?;
    tokens.expect(&["ON"])?;
    let (class, objects) = objects(tokens)?;
    let granting =
        Granting { gives, privileges, class, objects, grantees: Vec::new(), option, cascades: false };
    rest(tokens, granting)
}

/// From `TO` or `FROM` on.
fn rest(tokens: &mut Tokens<'_>, granting: Granting) -> Result<Command> {
    tokens.expect(&[if granting.gives { "TO" } else { "FROM" }])?;
    let grantees = tokens.listed(role_name)?;
    let with = granting.gives && tokens.accept(&["WITH", "GRANT", "OPTION"]);
    granted_by(tokens)?;
    let cascades = !granting.gives && tokens.accept(&["CASCADE"]);
    if !granting.gives {
        tokens.accept(&["RESTRICT"]);
    }
    tokens.finish()?;
    for privilege in granting.privileges.iter().flatten() {
        // A table's name may be one of a sequence.
        let may_be_sequence =
            matches!((granting.class, &granting.objects), (Class::Table, Objects::Named(_)));
        let has = |class: Class| class.privileges().has(*privilege);
        if !(has(granting.class) || may_be_sequence && has(Class::Sequence)) {
            let message =
                format!("invalid privilege type {} for {}", privilege.word(), granting.class.word());
            return Err(Error::new(SqlState(*b"0LP01"), message));
        }
    }
    let option = granting.option || with;
    Ok(Command::Grant(Box::new(Granting { grantees, option, cascades, ..granting })))
}

fn granted_by(tokens: &mut Tokens<'_>) -> Result<()> {
    if tokens.accept(&["GRANTED", "BY"]) {
        let by = role_name(tokens)?;
        if !matches!(by, RoleName::Current) {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "grantor must be current user"));
        }
    }
    Ok(())
}

/// `GRANT role, ... TO member, ...` and what takes it back, from the roles on.
fn membership(tokens: &mut Tokens<'_>, gives: bool, admin: bool) -> Result<Command> {
    let roles = tokens.listed(Tokens::name)?;
    tokens.expect(&[if gives { "TO" } else { "FROM" }])?;
    let members = tokens.listed(role_name)?;
    let with = gives && tokens.accept(&["WITH", "ADMIN", "OPTION"]);
    granted_by(tokens)?;
    let _ = !gives && (tokens.accept(&["CASCADE"]) || tokens.accept(&["RESTRICT"]));
    tokens.finish()?;
    Ok(Command::Role(Box::new(RoleCommand::Membership { gives, roles, members, admin: admin || with })))
}

/// `ALL [PRIVILEGES]`, or a list.
fn privileges(tokens: &mut Tokens<'_>) -> Result<Option<Vec<Privilege>>> {
    let of_columns = |tokens: &Tokens<'_>| match tokens.token(tokens.at()) {
        Token::LParen => Err(not_supported("privileges on columns")
            .with_hint("grant them on a view that has only these columns")),
        _ => Ok(()),
    };
    if tokens.accept(&["ALL"]) {
        tokens.accept(&["PRIVILEGES"]);
        return of_columns(tokens).map(|()| None);
    }
    let mut all = Vec::new();
    loop {
        let word = tokens.word().ok_or_else(|| tokens.unexpected())?;
        all.push(Privilege::of_word(&word).ok_or_else(|| {
            let message = format!("unrecognized privilege type \"{}\"", word.to_lowercase());
            Error::new(SqlState::SYNTAX_ERROR, message)
        })?);
        tokens.pass();
        of_columns(tokens)?;
        if !tokens.accept_token(&Token::Comma) {
            return Ok(Some(all));
        }
    }
}

/// The objects' kind in the plural, as `ALL ... IN SCHEMA` and `ALTER DEFAULT PRIVILEGES` name it.
fn plural(tokens: &mut Tokens<'_>) -> Result<Class> {
    let classes = [
        ("TABLES", Class::Table),
        ("SEQUENCES", Class::Sequence),
        ("FUNCTIONS", Class::Function),
        ("PROCEDURES", Class::Function),
        ("ROUTINES", Class::Function),
        ("TYPES", Class::Type),
        ("SCHEMAS", Class::Schema),
    ];
    match classes.into_iter().find(|(word, _)| tokens.accept(&[word])) {
        Some((_, class)) => Ok(class),
        None => Err(tokens.unexpected()),
    }
}

/// What stands behind `ON`.
fn objects(tokens: &mut Tokens<'_>) -> Result<(Class, Objects)> {
    if tokens.accept(&["ALL"]) {
        let class = plural(tokens)?;
        tokens.expect(&["IN", "SCHEMA"])?;
        return Ok((class, Objects::AllIn(tokens.listed(Tokens::name)?)));
    }
    for kind in ["FOREIGN", "LANGUAGE", "LARGE", "PARAMETER", "TABLESPACE"] {
        if tokens.sees(&[kind]) {
            return Err(not_supported(&format!("GRANT ... ON {kind}")));
        }
    }
    let (class, named) = if tokens.accept(&["SEQUENCE"]) {
        (Class::Sequence, tokens.listed(|tokens| tokens.object_name().map(Securable::Sequence))?)
    } else if tokens.accept(&["DATABASE"]) {
        (Class::Database, tokens.listed(|tokens| tokens.name().map(Securable::Database))?)
    } else if tokens.accept(&["SCHEMA"]) {
        (Class::Schema, tokens.listed(|tokens| tokens.name().map(Securable::Schema))?)
    } else if tokens.accept(&["TYPE"]) || tokens.accept(&["DOMAIN"]) {
        (Class::Type, tokens.listed(|tokens| tokens.object_name().map(Securable::Type))?)
    } else if ["FUNCTION", "PROCEDURE", "ROUTINE"].iter().any(|word| tokens.accept(&[word])) {
        (Class::Function, tokens.listed(function)?)
    } else {
        tokens.accept(&["TABLE"]);
        (Class::Table, tokens.listed(|tokens| tokens.object_name().map(Securable::Relation))?)
    };
    Ok((class, Objects::Named(named)))
}

/// `name [(type, ...)]`
fn function(tokens: &mut Tokens<'_>) -> Result<Securable> {
    let name = tokens.object_name()?;
    if !tokens.accept_token(&Token::LParen) {
        return Ok(Securable::Function(name, None));
    }
    let mut types = Vec::new();
    while !tokens.accept_token(&Token::RParen) {
        let is_out = tokens.accept(&["OUT"]);
        let _ = !is_out && ["IN", "INOUT", "VARIADIC"].iter().any(|mode| tokens.accept(&[mode]));
        let mut read = tokens.take(|parser| parser.parse_data_type())?;
        // What was read was the argument's name.
        if !matches!(tokens.token(tokens.at()), Token::Comma | Token::RParen) {
            read = tokens.take(|parser| parser.parse_data_type())?;
        }
        if !is_out {
            types.push(read);
        }
        if *tokens.token(tokens.at()) != Token::RParen {
            tokens.expect_token(&Token::Comma)?;
        }
    }
    Ok(Securable::Function(name, Some(types)))
}

/// `ALTER DEFAULT PRIVILEGES`, from `FOR` on.
pub(super) fn alter_default(tokens: &mut Tokens<'_>) -> Result<Command> {
    let (mut roles, mut within) = (Vec::new(), Vec::new());
    if tokens.accept(&["FOR", "ROLE"]) || tokens.accept(&["FOR", "USER"]) {
        roles = tokens.listed(role_name)?;
    }
    if tokens.accept(&["IN", "SCHEMA"]) {
        within = tokens.listed(Tokens::name)?;
    }
    let gives = tokens.accept(&["GRANT"]);
    if !gives {
        tokens.expect(&["REVOKE"])?;
    }
    let option = !gives && tokens.accept(&["GRANT", "OPTION", "FOR"]);
    let privileges = privileges(tokens)?;
    tokens.expect(&["ON"])?;
    let class = plural(tokens)?;
    let objects = Objects::Future(roles, within);
    rest(
        tokens,
        Granting { gives, privileges, class, objects, grantees: Vec::new(), option, cascades: false },
    )
}

/// `OWNER TO role`, if that is what is there, and all; `kind` is what the statement calls the object.
pub(super) fn owner(
    tokens: &mut Tokens<'_>,
    tag: &'static str,
    if_exists: bool,
    of: Securable,
) -> Result<Option<Command>> {
    if !tokens.accept(&["OWNER", "TO"]) {
        return Ok(None);
    }
    let to = role_name(tokens)?;
    tokens.finish()?;
    Ok(Some(Command::Owner { tag, if_exists, of: Box::new(of), to }))
}

/// `ALTER FUNCTION | PROCEDURE name(...) OWNER TO role`, from the name on, if it is that.
pub(super) fn function_owner(tokens: &mut Tokens<'_>, tag: &'static str) -> Result<Command> {
    let of = function(tokens)?;
    match owner(tokens, tag, false, of)? {
        Some(command) => Ok(command),
        None => Err(not_supported(tag)),
    }
}
