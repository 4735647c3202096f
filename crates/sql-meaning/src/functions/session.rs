//! Functions about the session, its settings and its advisory locks.

use super::{Call, Definition, define, integer_at, text_at, truth_at};
use crate::catalog::Relation;
use crate::catalog::role::{BOOTSTRAP, PUBLIC, SIGNAL_BACKEND};
use crate::session_facts::{AdvisoryKey, AdvisoryLock};
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::{Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        define("current_database() name stable", |_, c| Ok(Value::Text(c.environment.session.database()))),
        define("current_catalog() name stable", |_, c| Ok(Value::Text(c.environment.session.database()))),
        define("current_schema() name stable", |_, c| Ok(schemas_in_sight(c).into_iter().next().into())),
        define("current_schemas(bool) name[] stable", |a, c| {
            let path = schemas_in_sight(c);
            let implied = truth_at(a, 0).then(|| "pg_catalog".to_string());
            Ok(super::array_of(implied.into_iter().chain(path).map(Value::from)))
        }),
        define("version() text stable", |_, _| {
            Ok(Value::Text(format!("PostgreSQL 15.0 (Fabius {})", env!("CARGO_PKG_VERSION"))))
        }),
        define("pg_backend_pid() int stable", |_, c| Ok(Value::Int(c.environment.session.process()))),
        define("txid_current() bigint stable", |_, c| Ok(Value::BigInt(c.environment.session.transaction()))),
        define("pg_current_xact_id() bigint stable", |_, c| {
            Ok(Value::BigInt(c.environment.session.transaction()))
        }),
        define("txid_current_if_assigned() bigint stable", |_, c| {
            Ok(Value::BigInt(c.environment.session.transaction()))
        }),
        define("current_setting(text, bool?) text stable", |a, c| {
            match c.environment.session.setting(text_at(a, 0)) {
                Some(value) => Ok(Value::Text(value)),
                None if truth_at(a, 1) => Ok(Value::Null),
                None => Err(Error::new(
                    SqlState(*b"42704"),
                    format!("unrecognized configuration parameter \"{}\"", text_at(a, 0)),
                )),
            }
        }),
        define("nextval(text) bigint volatile", |a, c| {
            let sequence = c.environment.catalog.sequence_of_text(text_at(a, 0))?;
            c.environment.catalog.require_next(c.environment.catalog.role, sequence)?;
            c.environment.session.next_value(sequence).map(Value::BigInt)
        }),
        define("setval(text, bigint, bool?) bigint volatile", |a, c| {
            let sequence = c.environment.catalog.sequence_of_text(text_at(a, 0))?;
            c.environment.catalog.require(&Relation::Sequence(sequence), Privilege::Update)?;
            let is_called = a.len() < 3 || truth_at(a, 2);
            c.environment.session.set_sequence(sequence, integer_at(a, 1), is_called)?;
            Ok(Value::BigInt(integer_at(a, 1)))
        }),
        define("currval(text) bigint volatile", |a, c| {
            let sequence = c.environment.catalog.sequence_of_text(text_at(a, 0))?;
            c.environment.catalog.require_current(sequence)?;
            let value = c.environment.session.sequence_value(sequence.oid);
            value.map(Value::BigInt).ok_or_else(|| {
                let name = &sequence.name.name;
                not_ready(format!("currval of sequence \"{name}\" is not yet defined in this session"))
            })
        }),
        define("lastval() bigint volatile", |_, c| {
            let session = &c.environment.session;
            let value = session.last_sequence().and_then(|oid| session.sequence_value(oid));
            value
                .map(Value::BigInt)
                .ok_or_else(|| not_ready("lastval is not yet defined in this session".into()))
        }),
        define("set_config(text, text, bool) text volatile null", |a, c| {
            c.environment.session.set_setting(text_at(a, 0), text_at(a, 1), truth_at(a, 2)).map(Value::Text)
        }),
        define("pg_is_in_recovery() bool stable", |_, c| {
            Ok(Value::Boolean(c.environment.session.is_standby()))
        }),
        define("pg_is_wal_replay_paused() bool stable", |_, _| Ok(Value::Boolean(false))),
        define("pg_postmaster_start_time() timestamptz stable", |_, c| {
            let first = c.environment.session.activity().iter().map(|one| one.connected_us).min();
            Ok(Value::Timestamp(first.unwrap_or_else(|| c.environment.session.now_us())))
        }),
        define("pg_conf_load_time() timestamptz stable", |_, c| {
            Ok(Value::Timestamp(c.environment.session.now_us()))
        }),
        define("pg_cancel_backend(int) bool volatile", |a, c| interrupt(integer_at(a, 0), false, c)),
        define("pg_terminate_backend(int, bigint?) bool volatile", |a, c| {
            interrupt(integer_at(a, 0), true, c)
        }),
        define("pg_blocking_pids(int) int[] volatile", |a, c| {
            let blockers = c.environment.session.blockers(integer_at(a, 0) as i32);
            Ok(super::array_of(blockers.into_iter().map(Value::Int)))
        }),
        define("pg_client_encoding() name stable", |_, _| Ok("UTF8".into())),
        define("getdatabaseencoding() name stable", |_, _| Ok("UTF8".into())),
        define("inet_server_addr() inet stable", |_, _| Ok(Value::Null)),
        define("inet_server_port() int stable", |_, _| Ok(Value::Null)),
        define("inet_client_addr() inet stable", |_, _| Ok(Value::Null)),
        define("inet_client_port() int stable", |_, _| Ok(Value::Null)),
        define("pg_my_temp_schema() oid stable", |_, c| {
            let has_temporary = crate::pg_catalog::objects::has_temporary(&c.environment.catalog);
            let oid = if has_temporary { crate::pg_catalog::TEMPORARY_SCHEMA } else { 0 };
            Ok(Value::BigInt(oid.into()))
        }),
        define("pg_is_other_temp_schema(oid) bool stable", |_, _| Ok(Value::Boolean(false))),
        define("pg_sleep(float8) void volatile", |_, _| {
            Err(Error::new(SqlState::NOT_SUPPORTED, "pg_sleep is not supported in this query"))
        }),
        define("pg_advisory_unlock_all() void volatile", |_, c| {
            c.environment.session.give_back_all_advisory();
            Ok("".into())
        }),
    ];
    all.extend(notifications());
    for (signature, body) in ADVISORY {
        for parameters in ["bigint", "int, int"] {
            all.push(define(&signature.replace("key", parameters), *body));
        }
    }
    all
}

/// What sessions tell each other.
fn notifications() -> Vec<Definition> {
    vec![
        define("pg_notify(text, text) void volatile null", |a, c| {
            let text = |at: usize| if a[at].is_null() { "" } else { text_at(a, at) };
            c.environment.session.notify(text(0), text(1)).map(|()| "".into())
        }),
        // What `pg_listening_channels` gives, row by row.
        define("fabius_channels() text[] stable", |_, c| {
            Ok(super::array_of(c.environment.session.channels().into_iter().map(Value::Text)))
        }),
    ]
}

fn not_ready(message: String) -> Error {
    Error::new(SqlState(*b"55000"), message)
}

/// Ends the statement of a session, or the session: whether there is such a session.
///
/// # Errors
/// `42501` for a session of another role, unless it is one that the current role may act as.
fn interrupt(process: i64, ends: bool, call: &Call) -> Result<Value> {
    let (environment, roles) = (&call.environment, &call.environment.catalog.roles);
    let mut all = environment.session.activity().into_iter();
    let Some(other) = all.find(|session| i64::from(session.process) == process) else {
        return Ok(Value::Boolean(false));
    };
    let process = other.process;
    let current = environment.role_named(&environment.session.user()).unwrap_or(PUBLIC);
    let other = environment.role_named(&other.user).unwrap_or(BOOTSTRAP);
    let is_enough = match roles.is_superuser(other) {
        true => roles.is_superuser(current),
        false => roles.is_member(current, other) || roles.is_member(current, SIGNAL_BACKEND),
    };
    match is_enough {
        true => Ok(Value::Boolean(environment.session.interrupt(process, ends))),
        false if roles.is_superuser(other) => {
            Err(Error::new(SqlState(*b"42501"), "must be a superuser to end a superuser's query or session"))
        }
        false => {
            let message = "must be a member of the role whose query or session is ended";
            Err(Error::new(SqlState(*b"42501"), format!("{message}, or of pg_signal_backend")))
        }
    }
}

/// The schemas of the search path that are there.
fn schemas_in_sight(call: &Call) -> Vec<String> {
    let mut path = call.environment.session.search_path();
    path.retain(|schema| schema == "public" || call.environment.catalog.has_schema(schema));
    path
}

type Signature = (&'static str, super::Kernel);

const ADVISORY: &[Signature] = &[
    ("pg_advisory_lock(key) void volatile", |a, c| wait_for(c, lock(a, false, false))),
    ("pg_advisory_lock_shared(key) void volatile", |a, c| wait_for(c, lock(a, true, false))),
    ("pg_advisory_xact_lock(key) void volatile", |a, c| wait_for(c, lock(a, false, true))),
    ("pg_advisory_xact_lock_shared(key) void volatile", |a, c| wait_for(c, lock(a, true, true))),
    ("pg_try_advisory_lock(key) bool volatile", |a, c| take(c, lock(a, false, false))),
    ("pg_try_advisory_lock_shared(key) bool volatile", |a, c| take(c, lock(a, true, false))),
    ("pg_try_advisory_xact_lock(key) bool volatile", |a, c| take(c, lock(a, false, true))),
    ("pg_try_advisory_xact_lock_shared(key) bool volatile", |a, c| take(c, lock(a, true, true))),
    ("pg_advisory_unlock(key) bool volatile", |a, c| give_back(c, lock(a, false, false))),
    ("pg_advisory_unlock_shared(key) bool volatile", |a, c| give_back(c, lock(a, true, false))),
];

/// The lock that a function's arguments name: a number, or a pair of them.
fn lock(a: &[Value], is_shared: bool, is_of_transaction: bool) -> AdvisoryLock {
    let first = integer_at(a, 0);
    let key = match a.len() {
        1 => AdvisoryKey { database: 0, class: (first >> 32) as u32, object: first as u32, is_pair: false },
        _ => AdvisoryKey { database: 0, class: first as u32, object: integer_at(a, 1) as u32, is_pair: true },
    };
    AdvisoryLock { key, is_shared, is_of_transaction }
}

fn wait_for(call: &Call, lock: AdvisoryLock) -> Result<Value> {
    call.environment.session.wait_for_advisory(lock).map(|()| "".into())
}

fn take(call: &Call, lock: AdvisoryLock) -> Result<Value> {
    call.environment.session.take_advisory(lock).map(Value::Boolean)
}

fn give_back(call: &Call, lock: AdvisoryLock) -> Result<Value> {
    Ok(Value::Boolean(call.environment.session.give_back_advisory(lock)))
}
