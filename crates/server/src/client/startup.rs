//! From the first byte to a session: encryption, who it is, what it wants.

use super::extended::Extended;
use super::{Client, Failure, Outcome, attendance, authentication};
use crate::registry::Session;
use crate::shared::Shared;
use crate::wire::backend;
use crate::wire::frontend::{Opening, violation};
use crate::wire::socket::Socket;
use crate::wire::stream::Stream;
use fabius_sql::connection::{Connection, TransactionStatus};
use fabius_value::{Error, SqlState};
use std::sync::Arc;

/// Requests for encryption that a client may make before it begins.
const NEGOTIATIONS_MAX: usize = 4;
/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;
/// Lengths of secrets: up to version 3.0 of the protocol, and from 3.2 on.
const SECRET_BYTES: (usize, usize) = (4, 32);
/// Options of the startup packet that begin so are for the protocol, not for the session.
const PROTOCOL_OPTION: &str = "_pq_.";

/// A session that can begin.
pub(super) struct Begun {
    sql: Connection,
    session: Arc<Session>,
}

impl Begun {
    pub(super) fn into_client(self, mut socket: Socket, shared: Arc<Shared>) -> Client {
        socket.message_bytes_max = shared.configuration.max_message_bytes as usize;
        shared.metrics.connections.increment(1.0);
        let (recall, session) = (self.sql.recall(), self.session.clone());
        recall.ask(move || attendance::over(&session));
        Client {
            socket,
            recall,
            sql: self.sql,
            session: self.session,
            shared,
            extended: Extended::default(),
            place: None,
        }
    }
}

/// What a startup packet asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wishes {
    minor: u16,
    user: String,
    database: Option<String>,
    settings: Vec<(String, String)>,
    unknown_options: Vec<String>,
}

/// Brings a client to its session; none for a cancel request, which is done.
pub(super) async fn begin(socket: &mut Socket, shared: &Arc<Shared>) -> Outcome<Option<Begun>> {
    let Some(wishes) = negotiate(socket, shared).await? else { return Ok(None) };
    let minor = if wishes.minor == 2 { 2 } else { 0 };
    if minor != wishes.minor || !wishes.unknown_options.is_empty() {
        let unknown: Vec<&str> = wishes.unknown_options.iter().map(String::as_str).collect();
        backend::negotiate_protocol_version(&mut socket.output, (3, minor), &unknown);
    }
    check(&wishes, shared, socket.is_tls())?;
    if let Some(users) = &shared.users {
        let role = shared.sql.role_of_user(&wishes.user).await.map_err(Failure::Fatal)?;
        let secret = users.secret(&wishes.user, role.as_deref());
        authentication::authenticate(socket, &wishes.user, secret, shared.tls.as_ref()).await?;
    }
    let secret_bytes = if minor == 2 { SECRET_BYTES.1 } else { SECRET_BYTES.0 };
    let session = enter(shared, &wishes.user, secret_bytes)?;
    // From here on the session has to be taken out again, whatever happens.
    match greet(socket, shared, &wishes, &session).await {
        Ok(sql) => Ok(Some(Begun { sql, session })),
        Err(error) => {
            shared.registry.leave(&session);
            Err(Failure::Fatal(error))
        }
    }
}

/// Answers requests for encryption until the client begins.
async fn negotiate(socket: &mut Socket, shared: &Shared) -> Outcome<Option<Wishes>> {
    if let Some(tls) = &shared.tls
        && socket.first_byte().await? == TLS_HANDSHAKE
    {
        socket.encrypt(&tls.acceptor).await?;
    }
    for _ in 0..NEGOTIATIONS_MAX {
        let bytes = socket.opening().await?;
        match Opening::read(&bytes)? {
            Opening::Cancel { process, secret } => {
                let found = shared.registry.cancel(process, secret);
                tracing::debug!(process, found, "cancel request");
                return Ok(None);
            }
            Opening::Tls => match &shared.tls {
                Some(tls) if !socket.is_tls() => {
                    socket.output.push(b'S');
                    socket.send().await?;
                    socket.encrypt(&tls.acceptor).await?;
                }
                _ => refuse_encryption(socket).await?,
            },
            Opening::Gss => refuse_encryption(socket).await?,
            Opening::Startup { version: (_, minor), parameters } => {
                return wishes(minor, &parameters).map(Some);
            }
        }
    }
    Err(Failure::Fatal(violation("too many requests for encryption")))
}

async fn refuse_encryption(socket: &mut Socket) -> Outcome {
    socket.output.push(b'N');
    Ok(socket.send().await?)
}

fn wishes(minor: u16, parameters: &[(&str, &str)]) -> Outcome<Wishes> {
    let mut wishes = Wishes { minor, ..Wishes::default() };
    for (name, value) in parameters {
        match *name {
            "user" => wishes.user = value.to_string(),
            "database" => wishes.database = Some(value.to_string()).filter(|name| !name.is_empty()),
            "options" => wishes.settings.extend(options(value)?),
            "replication" if matches!(*value, "false" | "off" | "no" | "0") => {}
            "replication" => {
                let what = "replication connections are not supported";
                return Err(Failure::Fatal(Error::new(SqlState::NOT_SUPPORTED, what)));
            }
            name if name.starts_with(PROTOCOL_OPTION) => wishes.unknown_options.push(name.to_string()),
            name => wishes.settings.push((name.to_string(), value.to_string())),
        }
    }
    Ok(wishes)
}

/// Settings in the form of a command line: `-c name=value`, `-cname=value`, `--name=value`. A backslash takes
/// the meaning from the character behind it.
fn options(text: &str) -> Outcome<Vec<(String, String)>> {
    let mut words = words(text).into_iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("-c") {
            Some("") => words.next(),
            Some(rest) => Some(rest.to_string()),
            None => word.strip_prefix("--").map(str::to_string),
        };
        let pair = setting.as_deref().and_then(|setting| setting.split_once('='));
        let Some((name, value)) = pair else {
            let what = format!("invalid command-line argument for server process: {word}");
            return Err(Failure::Fatal(Error::new(SqlState::SYNTAX_ERROR, what)));
        };
        settings.push((name.trim().replace('-', "_"), value.to_string()));
    }
    Ok(settings)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            space if space.is_ascii_whitespace() => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// What can be refused before it is known who it is.
fn check(wishes: &Wishes, shared: &Shared, is_tls: bool) -> Outcome {
    let refuse =
        |state: &[u8; 5], message: String| Err(Failure::Fatal(Error::new(SqlState(*state), message)));
    if shared.is_closing() {
        return refuse(b"57P03", "the database system is shutting down".into());
    }
    if wishes.user.is_empty() {
        return refuse(b"28000", "no PostgreSQL user name specified in startup packet".into());
    }
    if shared.configuration.tls_required && !is_tls {
        return refuse(b"28000", "connections without TLS are refused".into());
    }
    Ok(())
}

/// Finds a place for the session.
fn enter(shared: &Shared, user: &str, secret_bytes: usize) -> Outcome<Arc<Session>> {
    let configuration = &shared.configuration;
    let is_administrator = configuration.administrators.iter().any(|name| name == user);
    let reserved = if is_administrator { 0 } else { configuration.reserved_connections };
    let most = configuration.max_connections - reserved;
    shared.registry.enter(secret_bytes, most).ok_or_else(|| {
        shared.metrics.rejected.increment(1);
        let message = match reserved > 0 && shared.registry.count() < configuration.max_connections {
            true => "remaining connection slots are reserved for administrators",
            false => "sorry, too many clients already",
        };
        Failure::Fatal(
            Error::new(SqlState(*b"53300"), message)
                .with_hint(format!("max_connections is {}", configuration.max_connections)),
        )
    })
}

/// Makes the session, and tells the client what it is.
async fn greet(
    socket: &mut Socket,
    shared: &Shared,
    wishes: &Wishes,
    session: &Session,
) -> fabius_value::Result<Connection> {
    let configuration = &shared.configuration;
    // Clients that name no database mean the one there is; PostgreSQL's would mean the user's name.
    let database = wishes.database.as_deref().unwrap_or(&configuration.database);
    let database = shared.sql.database_named(database).await?;
    let of_role = shared.sql.admit(&wishes.user, &database)?;
    let process = i32::try_from(session.process).unwrap_or(i32::MAX);
    let mut sql = Connection::to(shared.sql.clone(), database, &wishes.user, process);
    for (name, time) in [
        ("statement_timeout", configuration.statement_timeout),
        ("idle_in_transaction_session_timeout", configuration.idle_in_transaction_session_timeout),
        ("idle_session_timeout", configuration.idle_session_timeout),
    ] {
        if !time.is_zero() {
            sql.set(name, &format!("{}ms", time.as_millis()))?;
        }
    }
    for (name, value) in &of_role {
        // One that means nothing any more keeps nobody out.
        if let Err(error) = sql.set(name, value) {
            tracing::warn!(user = wishes.user, %error, "a setting of the role is passed over");
        }
    }
    for (name, value) in &wishes.settings {
        sql.set(name, value)?;
    }
    backend::authentication_ok(&mut socket.output);
    for (name, value) in sql.take_reported_settings() {
        backend::parameter_status(&mut socket.output, &name, &value);
    }
    backend::backend_key_data(&mut socket.output, session.process, &session.secret);
    backend::ready_for_query(&mut socket.output, TransactionStatus::Idle);
    Ok(sql)
}

impl Socket {
    /// Goes on through TLS.
    ///
    /// # Errors
    /// If the handshake fails, or bytes have come that were not encrypted: they could be anybody's.
    async fn encrypt(&mut self, acceptor: &tokio_rustls::TlsAcceptor) -> Outcome {
        let accepted = self
            .replace_stream(async |stream| match stream {
                Stream::Plain(stream) => {
                    acceptor.accept(stream).await.map(|stream| Stream::Tls(Box::new(stream)))
                }
                Stream::Tls(_) | Stream::Closed => Err(std::io::ErrorKind::InvalidInput.into()),
            })
            .await;
        accepted.map_err(|error| {
            tracing::info!(%error, "TLS could not be agreed on");
            Failure::Gone
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every way to write an option is read, and what is none is refused.
    #[test]
    fn options_are_settings() {
        let read = |text| options(text).ok();
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(
            read("-c geqo=off -cwork_mem=1MB  --statement-timeout=5s"),
            Some(vec![pair("geqo", "off"), pair("work_mem", "1MB"), pair("statement_timeout", "5s")])
        );
        assert_eq!(read(r"-c search_path=a,\ b\\c"), Some(vec![pair("search_path", r"a, b\c")]));
        assert_eq!(read(""), Some(vec![]));
        assert!(read("-c").is_none() && read("-x").is_none() && read("-c nothing").is_none());
    }

    /// Goal: what is for the protocol is kept apart from what is for the session.
    #[test]
    fn wishes_are_told_apart() {
        let parameters =
            [("user", "me"), ("database", ""), ("_pq_.x", "1"), ("DateStyle", "ISO"), ("options", "-c a=b")];
        let read = wishes(9999, &parameters).ok().expect("wishes");
        assert_eq!((read.minor, read.user.as_str(), read.database), (9999, "me", None));
        assert_eq!(read.unknown_options, ["_pq_.x"]);
        assert_eq!(read.settings, [("DateStyle".into(), "ISO".into()), ("a".into(), "b".into())]);
        assert!(wishes(0, &[("replication", "database")]).is_err());
    }
}
