//! Settings of a session: `SET`, `SHOW`, `RESET`, and what of them ends with a transaction.

use fabius::Priority;
use fabius_sql_meaning::text_format::TextStyle;
use fabius_value::{Error, Result, SqlState};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// `on`, `off`
    Boolean,
    /// A whole number, from and to.
    Integer(i64, i64),
    /// A time; a number without a unit is of milliseconds.
    Time,
    /// A size; shown as it was given.
    Size,
    /// A number.
    Real,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// `DateStyle`
    DateStyle,
    /// A time zone.
    Zone,
    /// An encoding: UTF-8.
    Encoding,
    /// It cannot be changed.
    Fixed,
}

/// A setting that there is.
struct Definition {
    name: &'static str,
    default: &'static str,
    kind: Kind,
    /// Whether clients are told of its value (`ParameterStatus`).
    is_reported: bool,
    description: &'static str,
}

const LEVELS: Kind = Kind::Choice(&["serializable", "repeatable read", "read committed", "read uncommitted"]);
const MESSAGES: Kind = Kind::Choice(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error",
]);
/// The version of PostgreSQL whose behaviour is followed.
const SERVER_VERSION: &str = "15.0 (Fabius)";

const fn known(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Definition {
    Definition { name, default, kind, is_reported: false, description }
}

const fn told(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Definition {
    Definition { name, default, kind, is_reported: true, description }
}

/// Every setting. What is here without a description is accepted because it cannot change an answer.
const DEFINITIONS: &[Definition] = &[
    told("application_name", "", Kind::Text, "Name of the client program."),
    told("client_encoding", "UTF8", Kind::Encoding, "Encoding of texts on the wire."),
    told("DateStyle", "ISO, MDY", Kind::DateStyle, "How dates are shown and read."),
    told("default_transaction_read_only", "off", Kind::Boolean, "Whether transactions only read."),
    told("in_hot_standby", "off", Kind::Fixed, "Whether this is a standby."),
    told("integer_datetimes", "on", Kind::Fixed, "Whether times are integers."),
    told("IntervalStyle", "postgres", Kind::Choice(&["postgres"]), "How intervals are shown."),
    told("is_superuser", "on", Kind::Fixed, "Whether the user may do everything."),
    told("server_encoding", "UTF8", Kind::Fixed, "Encoding of stored texts."),
    told("server_version", SERVER_VERSION, Kind::Fixed, "Version."),
    told("session_authorization", "", Kind::Text, "The user."),
    told("standard_conforming_strings", "on", Kind::Choice(&["on"]), "Backslashes in '...' are themselves."),
    told("TimeZone", "UTC", Kind::Zone, "Time zone of timestamps with time zone."),
    known(
        "fabius.priority",
        "normal",
        Kind::Choice(&["low", "normal", "high"]),
        "Which calls come first of those that wait.",
    ),
    known(
        "fabius.concurrency",
        "optimistic",
        Kind::Choice(&[
            "optimistic",
            "pessimistic",
            "speculative",
            "conventional_optimistic",
            "conventional_pessimistic",
            "conventional_optimistic_by_column",
            "conventional_pessimistic_by_column",
        ]),
        "How transactions go about what others do meanwhile.",
    ),
    known(
        "fabius.as_of",
        "",
        Kind::Text,
        "Queries read what was at this time, or after the call of this sequence number.",
    ),
    known(
        "fabius.reads",
        "newest",
        Kind::Choice(&["newest", "snapshot"]),
        "In a cluster: whether reads wait for what was committed anywhere, or show at once what this node has.",
    ),
    known("fabius.idempotency_key", "", Kind::Text, "The next commit is done once under this key."),
    known("search_path", "\"$user\", public", Kind::Text, "Schemas of names without one."),
    known("statement_timeout", "0", Kind::Time, "Longest time of a statement."),
    known("lock_timeout", "0", Kind::Time, "Longest wait for a lock."),
    known("idle_in_transaction_session_timeout", "0", Kind::Time, "Longest idle time within a transaction."),
    known("idle_session_timeout", "0", Kind::Time, "Longest idle time."),
    known("deadlock_timeout", "1s", Kind::Time, ""),
    known(
        "transaction_isolation",
        "serializable",
        LEVELS,
        "Level of this transaction; all are serializable.",
    ),
    known(
        "default_transaction_isolation",
        "serializable",
        LEVELS,
        "Level of transactions; all are serializable.",
    ),
    known("transaction_read_only", "off", Kind::Boolean, "Whether this transaction only reads."),
    known("transaction_deferrable", "off", Kind::Boolean, ""),
    known("default_transaction_deferrable", "off", Kind::Boolean, ""),
    known("client_min_messages", "notice", MESSAGES, "Least severity of notices that are sent."),
    known("log_min_messages", "warning", MESSAGES, ""),
    known("log_min_error_statement", "error", MESSAGES, ""),
    known("log_statement", "none", Kind::Choice(&["none", "ddl", "mod", "all"]), ""),
    known("log_min_duration_statement", "-1", Kind::Integer(-1, i32::MAX as i64), ""),
    known("extra_float_digits", "1", Kind::Integer(-15, 3), "Digits of floating-point numbers."),
    known("bytea_output", "hex", Kind::Choice(&["hex", "escape"]), "How bytea is shown."),
    known("role", "none", Kind::Text, "The role."),
    known("server_version_num", "150000", Kind::Fixed, "Version, as a number."),
    known("max_identifier_length", "63", Kind::Fixed, "Most bytes of a name."),
    known("max_index_keys", "32", Kind::Fixed, "Most columns of an index."),
    known("max_connections", "1000", Kind::Fixed, ""),
    known("block_size", "8192", Kind::Fixed, ""),
    known("server_name", "fabius", Kind::Fixed, ""),
    known("lc_collate", "C", Kind::Fixed, "Order of texts."),
    known("lc_ctype", "C", Kind::Fixed, ""),
    known("lc_messages", "C", Kind::Text, ""),
    known("lc_monetary", "C", Kind::Text, ""),
    known("lc_numeric", "C", Kind::Text, ""),
    known("lc_time", "C", Kind::Text, ""),
    known("array_nulls", "on", Kind::Boolean, ""),
    known("backslash_quote", "safe_encoding", Kind::Text, ""),
    known("check_function_bodies", "on", Kind::Boolean, ""),
    known("constraint_exclusion", "partition", Kind::Text, ""),
    known("cursor_tuple_fraction", "0.1", Kind::Real, ""),
    known("default_statistics_target", "100", Kind::Integer(1, 10000), ""),
    known("default_table_access_method", "heap", Kind::Text, ""),
    known("default_tablespace", "", Kind::Text, ""),
    known("default_text_search_config", "pg_catalog.simple", Kind::Text, ""),
    known("effective_cache_size", "4GB", Kind::Size, ""),
    known("effective_io_concurrency", "1", Kind::Integer(0, 1000), ""),
    known("enable_bitmapscan", "on", Kind::Boolean, ""),
    known("enable_hashagg", "on", Kind::Boolean, ""),
    known("enable_hashjoin", "on", Kind::Boolean, ""),
    known("enable_indexonlyscan", "on", Kind::Boolean, ""),
    known("enable_indexscan", "on", Kind::Boolean, ""),
    known("enable_material", "on", Kind::Boolean, ""),
    known("enable_mergejoin", "on", Kind::Boolean, ""),
    known("enable_nestloop", "on", Kind::Boolean, ""),
    known("enable_seqscan", "on", Kind::Boolean, ""),
    known("enable_sort", "on", Kind::Boolean, ""),
    known("enable_tidscan", "on", Kind::Boolean, ""),
    known("escape_string_warning", "on", Kind::Boolean, ""),
    known("force_parallel_mode", "off", Kind::Text, ""),
    known("from_collapse_limit", "8", Kind::Integer(1, i32::MAX as i64), ""),
    known("geqo", "on", Kind::Boolean, ""),
    known("geqo_threshold", "12", Kind::Integer(2, i32::MAX as i64), ""),
    known("gin_fuzzy_search_limit", "0", Kind::Integer(0, i32::MAX as i64), ""),
    known("jit", "off", Kind::Boolean, ""),
    known("join_collapse_limit", "8", Kind::Integer(1, i32::MAX as i64), ""),
    known("maintenance_work_mem", "64MB", Kind::Size, ""),
    known("max_parallel_workers_per_gather", "0", Kind::Integer(0, 1024), ""),
    known("parallel_setup_cost", "1000", Kind::Real, ""),
    known("parallel_tuple_cost", "0.1", Kind::Real, ""),
    known("password_encryption", "scram-sha-256", Kind::Text, ""),
    known("plan_cache_mode", "auto", Kind::Text, ""),
    known("quote_all_identifiers", "off", Kind::Boolean, ""),
    known("random_page_cost", "4", Kind::Real, ""),
    known("row_security", "on", Kind::Boolean, ""),
    known("seq_page_cost", "1", Kind::Real, ""),
    known("session_replication_role", "origin", Kind::Choice(&["origin"]), ""),
    known("shared_buffers", "128MB", Kind::Fixed, ""),
    known("synchronize_seqscans", "on", Kind::Boolean, ""),
    known(
        "synchronous_commit",
        "on",
        Kind::Choice(&["on", "local", "remote_write", "remote_apply"]),
        "Commits are durable before they are answered.",
    ),
    known("temp_buffers", "8MB", Kind::Size, ""),
    known("temp_tablespaces", "", Kind::Text, ""),
    known("timezone_abbreviations", "Default", Kind::Text, ""),
    known("tcp_keepalives_idle", "0", Kind::Integer(0, i32::MAX as i64), ""),
    known("tcp_keepalives_interval", "0", Kind::Integer(0, i32::MAX as i64), ""),
    known("tcp_keepalives_count", "0", Kind::Integer(0, i32::MAX as i64), ""),
    known("transform_null_equals", "off", Kind::Choice(&["off"]), ""),
    known("vacuum_cost_delay", "0", Kind::Time, ""),
    known("wal_level", "logical", Kind::Fixed, ""),
    known("work_mem", "4MB", Kind::Size, ""),
    known("xmlbinary", "base64", Kind::Text, ""),
    known("xmloption", "content", Kind::Text, ""),
];

fn definition(name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.name.eq_ignore_ascii_case(name))
}

/// Names to values.
type Values = Arc<BTreeMap<String, String>>;

/// A session's settings at one moment: what a rollback goes back to.
#[derive(Clone, Debug, Default)]
pub struct SettingsMark {
    session: Values,
    local: Values,
}

/// A session's settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    now: SettingsMark,
    /// What the client gave when it started: what `RESET` goes back to.
    started: BTreeMap<String, String>,
    /// Values that the client knows of.
    reported: BTreeMap<&'static str, String>,
    /// Whether those are still the values: nothing has been set since.
    is_reported: bool,
    style: TextStyle,
    /// What every statement asks for, so that it is not looked up each time.
    asked: Asked,
}

/// How long things may take; zero is for ever. Settings of these names, as PostgreSQL has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// `statement_timeout`
    pub statement: Duration,
    /// `idle_in_transaction_session_timeout`
    pub idle_in_transaction: Duration,
    /// `idle_session_timeout`
    pub idle_session: Duration,
}

/// Values that every statement asks for.
#[derive(Clone, Debug, Default)]
struct Asked {
    timeouts: Timeouts,
    lock_timeout: Option<Duration>,
    idempotency_key: Option<Arc<str>>,
    as_of: Option<Arc<str>>,
    reads_only: bool,
    reads_snapshot: bool,
    concurrency: Arc<str>,
    priority: Priority,
}

impl Settings {
    /// The settings of a user's new session.
    pub fn new(user: &str, is_standby: bool, is_superuser: bool) -> Settings {
        let mut settings = Settings::default();
        if !is_superuser {
            settings.started.insert("is_superuser".into(), "off".into());
        }
        if is_standby {
            settings.started.insert("in_hot_standby".into(), "on".into());
        }
        settings.started.insert("session_authorization".into(), user.into());
        settings
    }

    /// A setting's value.
    ///
    /// # Errors
    /// `42704` for one that does not exist.
    pub fn show(&self, name: &str) -> Result<String> {
        self.get(name).ok_or_else(|| unknown(name))
    }

    /// A setting's value, if it exists.
    pub fn get(&self, name: &str) -> Option<String> {
        let key = name.to_lowercase();
        let set = self.now.local.get(&key).or_else(|| self.now.session.get(&key));
        set.cloned().or_else(|| self.initial(name))
    }

    fn initial(&self, name: &str) -> Option<String> {
        let started = self.started.get(&name.to_lowercase()).cloned();
        started.or_else(|| definition(name).map(|definition| definition.default.to_string()))
    }

    /// The name that a setting is shown with: `TimeZone` for `timezone`.
    pub fn name(name: &str) -> String {
        definition(name).map_or_else(|| name.to_lowercase(), |definition| definition.name.to_string())
    }

    /// Name, value, initial value and description of all.
    pub fn all(&self) -> Vec<(String, String, String, String)> {
        let mut names: Vec<&str> = DEFINITIONS.iter().map(|definition| definition.name).collect();
        names.sort_by_key(|name| name.to_lowercase());
        let row = |name: &str| {
            let description = definition(name).map_or("", |definition| definition.description);
            let initial = self.initial(name).unwrap_or_default();
            (name.to_string(), self.get(name).unwrap_or_default(), initial, description.to_string())
        };
        names.into_iter().map(row).collect()
    }

    /// `SET`; without a value to the initial one. `is_local` until the transaction ends.
    ///
    /// # Errors
    /// `42704` for one that does not exist, `22023` for a value that it does not take, `55P02` if it is fixed.
    pub fn set(&mut self, name: &str, value: Option<&str>, is_local: bool) -> Result<()> {
        let key = name.to_lowercase();
        let value = match value {
            Some(value) => Some(checked(name, value)?),
            None if definition(name).is_none() && !name.contains('.') => return Err(unknown(name)),
            None => self.initial(name),
        };
        let values = if is_local { &mut self.now.local } else { &mut self.now.session };
        match value {
            Some(value) => drop(Arc::make_mut(values).insert(key.clone(), value)),
            None => drop(Arc::make_mut(values).remove(&key)),
        }
        if !is_local && self.now.local.contains_key(&key) {
            Arc::make_mut(&mut self.now.local).remove(&key);
        }
        self.restyle();
        Ok(())
    }

    /// A setting that the client gives when it starts.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn start(&mut self, name: &str, value: &str) -> Result<()> {
        self.started.insert(name.to_lowercase(), checked(name, value)?);
        self.restyle();
        Ok(())
    }

    /// `RESET ALL`, which leaves who the session is.
    pub fn reset_all(&mut self) {
        let is_kept = |name: &str| matches!(name, "role" | "session_authorization");
        for values in [&mut self.now.session, &mut self.now.local] {
            Arc::make_mut(values).retain(|name, _| is_kept(name));
        }
        self.restyle();
    }

    /// The settings at this moment.
    pub fn mark(&self) -> SettingsMark {
        self.now.clone()
    }

    /// Goes back: a rollback.
    pub fn go_back(&mut self, mark: &SettingsMark) {
        self.now = mark.clone();
        self.restyle();
    }

    /// A transaction has ended: so has what was set for it.
    pub fn end_local(&mut self) {
        if !self.now.local.is_empty() {
            self.now.local = Values::default();
            self.restyle();
        }
    }

    /// Reported settings that have another value than when this was last asked.
    pub fn take_reported(&mut self) -> Vec<(String, String)> {
        let mut changed = Vec::new();
        if std::mem::replace(&mut self.is_reported, true) {
            return changed;
        }
        for definition in DEFINITIONS.iter().filter(|definition| definition.is_reported) {
            let value = self.get(definition.name).unwrap_or_default();
            if self.reported.get(definition.name) != Some(&value) {
                changed.push((definition.name.to_string(), value.clone()));
                self.reported.insert(definition.name, value);
            }
        }
        changed
    }

    /// How values are shown and read as text.
    pub fn style(&self) -> &TextStyle {
        &self.style
    }

    /// The timeouts in force.
    pub fn timeouts(&self) -> Timeouts {
        self.asked.timeouts
    }

    /// `lock_timeout`; `None` for no bound.
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.asked.lock_timeout
    }

    /// `fabius.idempotency_key`, if it is set.
    pub fn idempotency_key(&self) -> Option<Arc<str>> {
        self.asked.idempotency_key.clone()
    }

    /// `fabius.concurrency`
    pub fn concurrency(&self) -> &str {
        &self.asked.concurrency
    }

    /// `fabius.priority`
    pub fn priority(&self) -> Priority {
        self.asked.priority
    }

    /// `fabius.as_of`, if it is set.
    pub fn as_of(&self) -> Option<Arc<str>> {
        self.asked.as_of.clone()
    }

    /// `default_transaction_read_only`
    pub fn reads_only(&self) -> bool {
        self.asked.reads_only
    }

    /// Whether `fabius.reads` is `snapshot`.
    pub fn reads_snapshot(&self) -> bool {
        self.asked.reads_snapshot
    }

    fn restyle(&mut self) {
        self.is_reported = false;
        let time = |name| self.time(name).unwrap_or_default();
        self.asked = Asked {
            timeouts: Timeouts {
                statement: time("statement_timeout"),
                idle_in_transaction: time("idle_in_transaction_session_timeout"),
                idle_session: time("idle_session_timeout"),
            },
            lock_timeout: self.time("lock_timeout"),
            idempotency_key: self.get("fabius.idempotency_key").filter(|key| !key.is_empty()).map(Arc::from),
            as_of: self.get("fabius.as_of").filter(|moment| !moment.trim().is_empty()).map(Arc::from),
            reads_only: self.is_on("default_transaction_read_only"),
            reads_snapshot: self.get("fabius.reads").as_deref() == Some("snapshot"),
            concurrency: Arc::from(self.get("fabius.concurrency").unwrap_or_default()),
            priority: match self.get("fabius.priority").as_deref() {
                Some("high") => Priority::High,
                Some("low") => Priority::Low,
                _ => Priority::Normal,
            },
        };
        let value = |name| self.get(name).unwrap_or_default();
        self.style = TextStyle::new(
            &value("TimeZone"),
            &value("DateStyle"),
            value("extra_float_digits").parse().unwrap_or(1),
            value("bytea_output") == "escape",
        );
    }

    /// A time; `None` for zero, which is no bound.
    pub fn time(&self, name: &str) -> Option<Duration> {
        let micros = self.get(name).and_then(|text| micros(&text)).unwrap_or_default();
        Some(Duration::from_micros(micros)).filter(|time| !time.is_zero())
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).as_deref() == Some("on")
    }

    /// Schemas of `search_path`, `$user` being the user.
    pub fn search_path(&self, user: &str) -> Vec<String> {
        let path = self.get("search_path").unwrap_or_default();
        let name = |part: &str| match part.trim().strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => part.trim().to_lowercase(),
        };
        let names = path.split(',').map(name).filter(|name| !name.is_empty());
        names.map(|name| if name == "$user" { user.to_string() } else { name }).collect()
    }
}

fn unknown(name: &str) -> Error {
    Error::new(SqlState(*b"42704"), format!("unrecognized configuration parameter \"{name}\""))
}

/// A value as it is kept.
fn checked(name: &str, value: &str) -> Result<String> {
    let Some(definition) = definition(name) else {
        return match name.split_once('.') {
            Some((prefix, _)) if !prefix.eq_ignore_ascii_case("fabius") => Ok(value.to_string()),
            _ => Err(unknown(name)),
        };
    };
    let invalid = || {
        Error::new(
            SqlState::INVALID_PARAMETER,
            format!("invalid value for parameter \"{}\": \"{value}\"", definition.name),
        )
    };
    let lower = value.trim().to_lowercase();
    match definition.kind {
        Kind::Boolean => {
            boolean(&lower).map(|on| if on { "on".into() } else { "off".into() }).ok_or_else(|| {
                Error::new(
                    SqlState::INVALID_PARAMETER,
                    format!("parameter \"{}\" requires a Boolean value", definition.name),
                )
            })
        }
        Kind::Integer(least, most) => match lower.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
            Ok(number) => Err(Error::new(
                SqlState::INVALID_PARAMETER,
                format!(
                    "{number} is outside the valid range for parameter \"{}\" ({least} .. {most})",
                    definition.name
                ),
            )),
            Err(_) => Err(invalid()),
        },
        Kind::Time => micros(&lower).map(|_| shown_time(&lower)).ok_or_else(invalid),
        Kind::Real => lower.parse::<f64>().map(|_| lower.clone()).map_err(|_| invalid()),
        Kind::Choice(choices) => {
            let lower = match boolean(&lower) {
                Some(true) if choices.contains(&"on") => "on".to_string(),
                Some(false) if choices.contains(&"off") => "off".to_string(),
                _ => lower,
            };
            if choices.contains(&lower.as_str()) {
                return Ok(lower);
            }
            Err(invalid().with_hint(format!("available values: {}", choices.join(", "))))
        }
        Kind::Text | Kind::Size => Ok(value.to_string()),
        Kind::DateStyle => date_style(&lower).ok_or_else(invalid),
        Kind::Zone => TextStyle::zone_name(value).ok_or_else(invalid),
        Kind::Encoding => match lower.replace(['-', '_', '\''], "").as_str() {
            "utf8" | "unicode" => Ok("UTF8".into()),
            // Whoever asks for bytes as they are gets UTF-8, which contains ASCII.
            "sqlascii" => Ok("SQL_ASCII".into()),
            _ => Err(invalid().with_hint("texts are UTF8")),
        },
        Kind::Fixed if lower == definition.default.to_lowercase() => Ok(definition.default.into()),
        Kind::Fixed => Err(Error::new(
            SqlState(*b"55P02"),
            format!("parameter \"{}\" cannot be changed", definition.name),
        )),
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// A time in microseconds: `1500`, `1.5s`, `2min`.
fn micros(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text.get(..digits)?.parse().ok()?;
    let unit = match text.get(digits..)?.trim() {
        "us" => 1.0,
        "" | "ms" => 1e3,
        "s" => 1e6,
        "min" => 60e6,
        "h" => 3600e6,
        "d" => 86400e6,
        _ => return None,
    };
    let micros = number * unit;
    (micros <= f64::from(i32::MAX) * 1e3).then_some(micros as u64)
}

/// A time in the largest unit that it is a whole number of, as PostgreSQL shows it.
fn shown_time(text: &str) -> String {
    let millis = micros(text).unwrap_or_default() / 1000;
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    match units.iter().find(|(size, _)| millis > 0 && millis.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", millis / size),
        None if millis == 0 => "0".into(),
        None => format!("{millis}ms"),
    }
}

/// `ISO, MDY` and its like; only the ISO style is there.
fn date_style(text: &str) -> Option<String> {
    let mut order = "MDY";
    for word in text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "iso" | "default" => {}
            "mdy" | "us" => order = "MDY",
            "dmy" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            _ => return None,
        }
    }
    Some(format!("ISO, {order}"))
}
