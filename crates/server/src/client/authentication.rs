//! SCRAM-SHA-256 (RFC 5802, RFC 7677): the client proves that it knows the password, and the server that it
//! knows of it, without either being told.
//!
//! Channel binding is offered to clients on TLS only: on plaintext there is no channel to bind to, and a client
//! that found the offer there would have to take it for an attack.

use super::{Failure, Outcome};
use crate::tls::Tls;
use crate::wire::backend;
use crate::wire::frontend::{Body, violation};
use crate::wire::socket::Socket;
use bytes::Bytes;
use fabius_value::{Error, SqlState};
use pgwire::api::auth::sasl::scram::{ScramSecret, ScramServerAuth};
use pgwire::error::PgWireError;

const PLAIN: &str = "SCRAM-SHA-256";
const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// Returns when the client has shown that it is this user.
pub(super) async fn authenticate(
    socket: &mut Socket,
    user: &str,
    secret: ScramSecret,
    tls: Option<&Tls>,
) -> Outcome {
    let mut scram = ScramServerAuth::new();
    if let Some(tls) = tls.filter(|_| socket.is_tls())
        && let Err(error) = scram.configure_certificate(&tls.certificate_pem)
    {
        // Some certificates have signatures that no hash is defined for.
        tracing::debug!(%error, "passwords cannot be bound to this certificate");
    }
    let offered: &[&str] = if scram.supports_channel_binding() { &[BOUND, PLAIN] } else { &[PLAIN] };
    backend::authentication_sasl(&mut socket.output, offered);
    let message = answer(socket).await?;
    let mut body = Body::new(&message);
    let mechanism = body.text()?;
    if !offered.contains(&mechanism) {
        return Err(Failure::Fatal(violation("client selected an invalid SASL authentication mechanism")));
    }
    if mechanism == PLAIN && scram.supports_channel_binding() {
        // The client may say that it could bind, but believes that we cannot: the state machine refuses that.
        tracing::trace!("no channel binding");
    }
    let first = body.value()?.unwrap_or_default();
    let refuse = |error| refused(user, &error);
    let (reply, state) = scram.on_client_first_message_with_secret(first, secret).map_err(refuse)?;
    backend::authentication_sasl_continue(&mut socket.output, reply.as_bytes());
    let last = answer(socket).await?;
    let reply = state.on_client_final_message(&last).map_err(refuse)?;
    backend::authentication_sasl_final(&mut socket.output, reply.as_bytes());
    Ok(())
}

async fn answer(socket: &mut Socket) -> Outcome<Bytes> {
    socket.send().await?;
    let frame = socket.frame().await?;
    match frame.kind {
        b'p' => Ok(frame.body),
        b'X' => Err(Failure::Gone),
        other => Err(Failure::Fatal(violation(format!("expected SASL response, got message type {other}")))),
    }
}

fn refused(user: &str, error: &PgWireError) -> Failure {
    // The user's name is not in the exchange; `error` would show none.
    tracing::debug!(user, ?error, "authentication failed");
    let error = match error {
        PgWireError::InvalidPassword(_) => {
            Error::new(SqlState(*b"28P01"), format!("password authentication failed for user \"{user}\""))
        }
        _ => violation("malformed SCRAM message"),
    };
    Failure::Fatal(error)
}
