//! The grammar of roles: who there is, who belongs to whom, and what becomes of what they own.

use crate::command::{Command, RoleCommand, RoleName, RoleOptions};
use crate::foreign::not_supported;
use crate::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};

/// A role, or a word that means one.
///
/// # Errors
/// `42601`; `42939` for a name that no role has.
pub(super) fn role_name(tokens: &mut Tokens<'_>) -> Result<RoleName> {
    tokens.accept(&["GROUP"]);
    if tokens.accept(&["CURRENT_USER"]) || tokens.accept(&["CURRENT_ROLE"]) {
        return Ok(RoleName::Current);
    }
    if tokens.accept(&["SESSION_USER"]) {
        return Ok(RoleName::Session);
    }
    let name = tokens.name()?;
    match name.as_str() {
        "public" => Ok(RoleName::Public),
        "none" => Err(Error::new(SqlState(*b"42939"), "role name \"none\" is reserved")),
        _ => Ok(RoleName::Named(name)),
    }
}

/// A name for a role.
fn new_name(tokens: &mut Tokens<'_>) -> Result<String> {
    let name = match role_name(tokens)? {
        RoleName::Named(name) => name,
        RoleName::Public => {
            return Err(Error::new(SqlState(*b"42939"), "role name \"public\" is reserved"));
        }
        RoleName::Current | RoleName::Session => return Err(tokens.unexpected()),
    };
    match name.starts_with("pg_") {
        true => Err(Error::new(SqlState(*b"42939"), format!("role name \"{name}\" is reserved"))
            .with_detail("Role names starting with \"pg_\" are reserved.")),
        false => Ok(name),
    }
}

/// `CREATE ROLE | USER | GROUP name [WITH] option ...`, from the name on.
pub(super) fn create(tokens: &mut Tokens<'_>, is_user: bool) -> Result<Command> {
    let name = new_name(tokens)?;
    tokens.accept(&["WITH"]);
    let mut options = options(tokens, true)?;
    options.can_login = options.can_login.or(Some(is_user));
    tokens.finish()?;
    Ok(Command::Role(Box::new(RoleCommand::Create { name, options })))
}

/// The flags, each with the word for it; with `NO` before it, it is taken away.
type Flag = (&'static str, fn(&mut RoleOptions) -> &mut Option<bool>);
const FLAGS: [Flag; 7] = [
    ("SUPERUSER", |options| &mut options.is_superuser),
    ("CREATEDB", |options| &mut options.creates_databases),
    ("CREATEROLE", |options| &mut options.creates_roles),
    ("INHERIT", |options| &mut options.inherits),
    ("LOGIN", |options| &mut options.can_login),
    ("REPLICATION", |options| &mut options.replicates),
    ("BYPASSRLS", |options| &mut options.bypasses_row_security),
];

fn options(tokens: &mut Tokens<'_>, is_new: bool) -> Result<RoleOptions> {
    let mut options = RoleOptions::default();
    while !tokens.is_done() {
        let word = tokens.word().ok_or_else(|| tokens.unexpected())?;
        let flag = FLAGS.iter().find_map(|(name, place)| match word == *name {
            true => Some((true, place)),
            false => (word.strip_prefix("NO") == Some(name)).then_some((false, place)),
        });
        if let Some((is_on, place)) = flag {
            tokens.pass();
            once(place(&mut options), is_on)?;
        } else if tokens.accept(&["CONNECTION", "LIMIT"]) {
            once(&mut options.connection_limit, tokens.integer()?)?;
        } else if tokens.accept(&["ENCRYPTED", "PASSWORD"]) || tokens.accept(&["PASSWORD"]) {
            let password = if tokens.accept(&["NULL"]) { None } else { Some(tokens.string()?) };
            once(&mut options.password, password)?;
        } else if tokens.accept(&["VALID", "UNTIL"]) {
            once(&mut options.valid_until, tokens.string()?)?;
        } else if is_new && tokens.accept(&["SYSID"]) {
            tokens.integer()?;
        } else if is_new && (tokens.accept(&["IN", "ROLE"]) || tokens.accept(&["IN", "GROUP"])) {
            options.member_of.append(&mut tokens.listed(Tokens::name)?);
        } else if tokens.accept(&["ROLE"]) || tokens.accept(&["USER"]) {
            options.members.append(&mut tokens.listed(Tokens::name)?);
        } else if is_new && tokens.accept(&["ADMIN"]) {
            options.admins.append(&mut tokens.listed(Tokens::name)?);
        } else {
            let message = format!("unrecognized role option \"{}\"", word.to_lowercase());
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    }
    Ok(options)
}

/// # Errors
/// `42601` for what was said before.
fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")),
    }
}

/// `ALTER ROLE | USER | GROUP`, from the name on.
pub(super) fn alter(tokens: &mut Tokens<'_>, kind: &str) -> Result<Command> {
    if kind != "GROUP" && tokens.accept(&["ALL"]) {
        return Err(not_supported("ALTER ROLE ALL"));
    }
    let role = role_name(tokens)?;
    let command = if kind == "GROUP" && (tokens.sees(&["ADD"]) || tokens.sees(&["DROP"])) {
        let gives = tokens.accept(&["ADD"]) || !tokens.accept(&["DROP"]);
        tokens.expect(&["USER"])?;
        let RoleName::Named(name) = role else { return Err(tokens.unexpected()) };
        let members = tokens.listed(role_name)?;
        RoleCommand::Membership { gives, roles: vec![name], members, admin: false }
    } else if tokens.accept(&["RENAME", "TO"]) {
        let RoleName::Named(from) = role else { return Err(tokens.unexpected()) };
        RoleCommand::Rename { from, to: new_name(tokens)? }
    } else if tokens.sees(&["IN", "DATABASE"]) {
        return Err(not_supported("ALTER ROLE ... IN DATABASE"));
    } else if tokens.accept(&["RESET"]) {
        let name = if tokens.accept(&["ALL"]) { None } else { Some(tokens.name()?) };
        RoleCommand::Setting { role, name, value: None }
    } else if tokens.sees(&["SET"]) {
        let (name, value) = crate::session::set_to(tokens)?;
        RoleCommand::Setting { role, name: Some(name), value }
    } else {
        tokens.accept(&["WITH"]);
        RoleCommand::Alter { role, options: options(tokens, false)? }
    };
    tokens.finish()?;
    Ok(Command::Role(Box::new(command)))
}

/// `DROP ROLE | USER | GROUP [IF EXISTS] name, ...`, from `IF` on.
pub(super) fn drop(tokens: &mut Tokens<'_>) -> Result<Command> {
    let if_exists = tokens.accept(&["IF", "EXISTS"]);
    let names = tokens.listed(role_name)?;
    tokens.finish()?;
    Ok(Command::Role(Box::new(RoleCommand::Drop { names, if_exists })))
}

/// `REASSIGN OWNED BY role, ... TO role`, from `OWNED` on.
pub(super) fn reassign(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.expect(&["OWNED", "BY"])?;
    let from = tokens.listed(role_name)?;
    tokens.expect(&["TO"])?;
    let to = role_name(tokens)?;
    tokens.finish()?;
    Ok(Command::Role(Box::new(RoleCommand::Reassign { from, to })))
}

/// `DROP OWNED BY role, ... [CASCADE | RESTRICT]`, from `BY` on.
pub(super) fn drop_owned(tokens: &mut Tokens<'_>) -> Result<Command> {
    tokens.expect(&["BY"])?;
    let by = tokens.listed(role_name)?;
    let cascades = tokens.accept(&["CASCADE"]);
    tokens.accept(&["RESTRICT"]);
    tokens.finish()?;
    Ok(Command::Role(Box::new(RoleCommand::DropOwned { by, cascades })))
}
