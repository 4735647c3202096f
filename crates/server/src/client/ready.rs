//! The session's main loop: one message after another.

use super::attendance::{Interruption, is_due, shutdown};
use super::{Client, Failure, Outcome, part};
use crate::registry::{Ending, Session};
use crate::wire::backend;
use crate::wire::frontend::{read_text, violation};
use crate::wire::socket::{Frame, Socket};
use fabius_sql::connection::TransactionStatus;
use fabius_value::{Error, SqlState};
use futures::FutureExt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// How long a client may take to read why its connection ends.
pub(super) const PARTING: Duration = Duration::from_secs(2);

/// Bytes of a message that are logged.
const LOGGED_BYTES: usize = 2000;

/// Does something to its end; what a panic says, if there is one.
async fn unless_panicking<T>(work: impl Future<Output = T>) -> std::result::Result<T, String> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}

/// Waits for something, unless the session has to end.
pub(super) async fn unless_ending<T>(session: &Session, work: impl Future<Output = T>) -> Outcome<T> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        session.listen(cx.waker());
        match session.ending() {
            Ending::No => Poll::Pending,
            _ => Poll::Ready(Err(Failure::Fatal(shutdown()))),
        }
    })
    .await
}

/// Serves the session until it ends.
pub(super) async fn run(mut client: Client) {
    tracing::debug!(process = client.session.process, user = client.sql.user(), "session begins");
    let failure = match client.converse().await {
        Ok(()) => Failure::Gone,
        Err(failure) => failure,
    };
    // Its transaction is rolled back when its connection is dropped.
    let socket = client.retire();
    part(socket, failure).await;
}

impl Client {
    /// Ends the session; what is left is the connection.
    fn retire(mut self) -> Socket {
        self.socket.detach()
    }

    async fn converse(&mut self) -> Outcome {
        loop {
            let frame = self.next().await?;
            if frame.kind == b'X' {
                return Ok(());
            }
            if let Some(place) = &self.place {
                place.asked();
            }
            let answered = unless_panicking(self.answer(&frame)).await;
            answered.unwrap_or_else(|panic| Err(self.panicked(&frame, &panic)))?;
            self.keep_place().await?;
            let is_idle = self.extended.is_quiet() && self.sql.status() == TransactionStatus::Idle;
            if self.session.ending() > Ending::No && is_idle {
                return Err(Failure::Fatal(shutdown()));
            }
        }
    }

    /// A transaction that goes over several messages has a place among those under way; a new one waits for it.
    async fn keep_place(&mut self) -> Outcome {
        match (self.sql.status(), &self.place) {
            (TransactionStatus::Idle, _) => self.place = None,
            (_, Some(place)) => place.answered(),
            (_, None) if self.extended.is_quiet() => {
                let database = self.sql.database().database();
                let entered = self.shared.admission.enter(|| database.has_waits());
                self.place = Some(unless_ending(&self.session, entered).await?);
            }
            (_, None) => {}
        }
        Ok(())
    }

    async fn answer(&mut self, frame: &Frame) -> Outcome {
        match frame.kind {
            b'Q' => self.simple_query(frame).await,
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' | b'S' => self.extended_message(frame).await,
            // What a client still sends of a copy that has failed.
            b'd' | b'c' | b'f' => Ok(()),
            b'F' => self.function_call(),
            other => Err(Failure::Fatal(violation(format!("invalid frontend message type {other}")))),
        }
    }

    /// Something has panicked that was done for this session: it ends, as nobody knows what state it is in, and no
    /// other does.
    fn panicked(&self, frame: &Frame, panic: &str) -> Failure {
        let text = String::from_utf8_lossy(&frame.body[..frame.body.len().min(LOGGED_BYTES)]);
        let (process, user, kind) = (self.session.process, self.sql.user(), char::from(frame.kind));
        let statement = self.sql.statement();
        tracing::error!(process, user, %kind, message = %text.escape_debug(), statement, panic, "a session panicked");
        let error = Error::new(SqlState(*b"XX000"), "internal error: the session ends");
        Failure::Fatal(error.with_detail("the server's log says what happened"))
    }

    /// The next message. When none is there what waits is sent, and the time without one is counted.
    async fn next(&mut self) -> Outcome<Frame> {
        if !self.socket.has_frame() {
            if self.extended.is_quiet() {
                self.send_between().await?;
            }
            self.socket.shrink();
        }
        let timeouts = self.sql.timeouts();
        let (limit, message, state) = match self.sql.status() {
            _ if !self.extended.is_quiet() => (Duration::ZERO, "", *b"00000"),
            TransactionStatus::Idle => {
                (timeouts.idle_session, "terminating connection due to idle-session timeout", *b"57P05")
            }
            TransactionStatus::Open | TransactionStatus::Failed => (
                timeouts.idle_in_transaction,
                "terminating connection due to idle-in-transaction timeout",
                *b"25P03",
            ),
        };
        let session = self.session.clone();
        let frame = self.frame();
        let frame = unless_ending(&session, async {
            match limit {
                Duration::ZERO => Ok(frame.await),
                limit => tokio::time::timeout(limit, frame).await,
            }
        });
        match frame.await? {
            Ok(frame) => frame,
            Err(_) => Err(Failure::Fatal(Error::new(SqlState(state), message))),
        }
    }

    /// The next message of a copy, unless it is given up.
    pub(super) async fn next_of_copy(&mut self, deadline: Option<Instant>) -> Outcome<Frame> {
        let session = &self.session;
        let (mut timer, mut frame) = (pin!(is_due(deadline)), Box::pin(self.socket.frame()));
        // A client that always has more to send is given up too.
        let next = poll_fn(|cx| {
            session.listen(cx.waker());
            match () {
                () if session.is_cancelled() => Poll::Ready(Err(Interruption::Cancelled)),
                () if timer.as_mut().poll(cx).is_ready() => Poll::Ready(Err(Interruption::TimedOut)),
                () => match frame.as_mut().poll(cx) {
                    Poll::Pending if session.ending() > Ending::No => Poll::Ready(Err(Interruption::Ending)),
                    next => next.map(Ok),
                },
            }
        })
        .await;
        drop(frame);
        match next {
            Ok(frame) => Ok(frame?),
            Err(interruption) => Err(self.interrupted(interruption)),
        }
    }

    /// The function call protocol, which nobody uses any more.
    fn function_call(&mut self) -> Outcome {
        let what = "function calls are not supported";
        let error = Error::new(SqlState::NOT_SUPPORTED, what).with_hint("use SELECT function(...)");
        self.refuse(&error);
        self.ready_for_query();
        Ok(())
    }

    /// Tells the client of a statement that failed.
    pub(super) fn refuse(&mut self, error: &Error) {
        tracing::debug!(state = %error.state(), %error, "statement failed");
        self.metrics().error(error.state().0);
        // Also if the session knows nothing of it: a parameter that does not read as its type, say.
        self.sql.interrupted();
        self.tell_notices();
        backend::error_response(&mut self.socket.output, "ERROR", error);
    }

    /// Sends notices and changed settings.
    pub(super) fn tell_notices(&mut self) {
        for notice in self.sql.take_notices() {
            backend::notice_response(&mut self.socket.output, notice.severity, &notice.error);
        }
        for (name, value) in self.sql.take_reported_settings() {
            backend::parameter_status(&mut self.socket.output, &name, &value);
        }
    }

    /// Sends what other sessions tell this one.
    fn tell_notifications(&mut self) {
        for told in self.sql.take_notifications() {
            backend::notification_response(
                &mut self.socket.output,
                told.process,
                &told.channel,
                &told.payload,
            );
        }
    }

    /// The next message. What other sessions tell this one meanwhile, while no transaction is open, is sent at once.
    async fn frame(&mut self) -> Outcome<Frame> {
        loop {
            let next = {
                let (mailbox, mut frame) = (self.sql.mailbox(), pin!(self.socket.frame()));
                poll_fn(|cx| match (frame.as_mut().poll(cx), &mailbox) {
                    (Poll::Pending, Some(mailbox)) if !mailbox.is_empty(cx.waker()) => Poll::Ready(None),
                    (frame, _) => frame.map(Some),
                })
                .await
            };
            if let Some(frame) = next {
                return Ok(frame?);
            }
            self.tell_notifications();
            self.send_between().await?;
        }
    }

    /// Ends the answer to a query or a batch.
    pub(super) fn ready_for_query(&mut self) {
        self.tell_notices();
        let status = self.sql.rest();
        self.tell_notifications();
        backend::ready_for_query(&mut self.socket.output, status);
    }

    async fn simple_query(&mut self, frame: &Frame) -> Outcome {
        // PostgreSQL forgets the statement and the portal without a name here.
        self.extended.forget_unnamed();
        match read_text(&frame.body) {
            Ok(text) => self.simple(text).await?,
            Err(error) => self.refuse(&error),
        }
        if !self.extended.is_quiet() {
            self.end_batch().await?;
        }
        self.after_statements();
        self.ready_for_query();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a panic ends what panics with its words, be it before or after it has waited, and nothing else.
    #[tokio::test]
    async fn a_panic_is_told() {
        assert_eq!(unless_panicking(async { 1 }).await, Ok(1));
        assert_eq!(unless_panicking(async { panic!("at once") }).await, Err::<(), _>("at once".to_string()));
        let later = async {
            tokio::task::yield_now().await;
            panic!("{} later", 1)
        };
        assert_eq!(unless_panicking(later).await, Err::<(), _>("1 later".to_string()));
    }
}
