//! Waiting for a statement, with an eye on everything else.
//!
//! While a statement waits, what was answered before is sent if it is much, and the statement can be given up: by a
//! cancel request, when its time is over, when the server ends, when the client is gone. Giving up is dropping its
//! future; that is not done once the statement is past recall (`Connection::recall`).

use super::{Client, Failure, Outcome};
use crate::registry::{Ending, Session};
use crate::wire::socket::Socket;
use fabius::Recall;
use fabius_sql::connection::Connection;
use fabius_value::{Error, Result, SqlState};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};

/// Why a statement was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    Cancelled,
    TimedOut,
    Ending,
    Gone,
}

/// Ends when a statement is to be given up, also if the statement has used up what its task may do in one turn.
pub(super) async fn is_due(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => unconstrained(sleep_until(deadline)).await,
        None => std::future::pending().await,
    }
}

/// Why a program that reads is to end before it is done, if it is: no turn of the thread comes in between.
pub(super) fn over(session: &Session) -> Option<Error> {
    match () {
        () if session.ending() == Ending::Now => Some(shutdown()),
        () if session.is_cancelled() => Some(cancelled()),
        () if session.is_timed_out() => Some(timed_out()),
        () => None,
    }
}

fn cancelled() -> Error {
    Error::new(SqlState::CANCELED, "canceling statement due to user request")
}

fn timed_out() -> Error {
    Error::new(SqlState::CANCELED, "canceling statement due to statement timeout")
}

/// What a server that is told to stop tells its clients.
pub(super) fn shutdown() -> Error {
    Error::new(SqlState::SHUTDOWN, "terminating connection due to administrator command")
}

impl Client {
    /// When the statement that begins now is to be given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let limit = self.sql.timeouts().statement;
        (limit > Duration::ZERO).then(|| Instant::now() + limit)
    }

    /// Runs something of the session's to its end, unless it is given up.
    ///
    /// # Errors
    /// The statement's own, or why it was given up.
    pub(super) async fn attend<T>(
        &mut self,
        deadline: Option<Instant>,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Outcome<T> {
        let sight =
            Sight { session: &self.session, recall: &self.recall, deadline, socket: &mut self.socket };
        let attended = sight.attend(work(&mut self.sql)).await;
        attended.map_err(|interruption| self.interrupted(interruption))?.map_err(|error| self.failed(error))
    }

    /// Runs something to its end, unless it is given up, that does not need the session: rows of a result.
    ///
    /// # Errors
    /// As [`Client::attend`].
    pub(super) async fn attend_rows<T>(
        &mut self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T>>,
    ) -> Outcome<T> {
        let sight =
            Sight { session: &self.session, recall: &self.recall, deadline, socket: &mut self.socket };
        let attended = sight.attend(work).await;
        attended.map_err(|interruption| self.interrupted(interruption))?.map_err(|error| self.failed(error))
    }

    /// The next row if it is there without waiting: `Some(None)` at the end.
    ///
    /// # Errors
    /// The row's.
    pub(super) async fn ready_row<T>(
        &mut self,
        deadline: Option<Instant>,
        rows: &mut BoxStream<'static, Result<T>>,
    ) -> Outcome<Option<Option<T>>> {
        let _until = Until::of(&self.session, deadline);
        poll_fn(|cx| match rows.poll_next_unpin(cx) {
            Poll::Ready(row) => Poll::Ready(row.transpose().map(Some)),
            Poll::Pending => Poll::Ready(Ok(None)),
        })
        .await
        .map_err(|error| self.failed(error))
    }

    /// `57014` if it was asked for since the query or the batch began: the next statement does not begin.
    ///
    /// # Errors
    /// That.
    pub(super) fn refuse_if_cancelled(&mut self) -> Outcome {
        if self.session.is_cancelled() { Err(self.interrupted(Interruption::Cancelled)) } else { Ok(()) }
    }

    /// Sends what waits in the midst of a statement.
    ///
    /// # Errors
    /// Why the statement was given up; what has not been sent yet is sent before the client is told. One that has
    /// committed already cannot fail: it ends with the connection if the client does not take its rows in time.
    pub(super) async fn send_within(&mut self, deadline: Option<Instant>) -> Outcome {
        let is_final = self.sql.has_committed();
        let session = &self.session;
        let mut timer = pin!(is_due(deadline));
        let sent = poll_fn(|cx| -> Poll<std::io::Result<Option<Interruption>>> {
            session.listen(cx.waker());
            if self.socket.poll_send(cx)?.is_ready() {
                return Poll::Ready(Ok(None));
            }
            let is_timed_out = timer.as_mut().poll(cx).is_ready();
            match () {
                () if session.ending() == Ending::Now => Poll::Ready(Ok(Some(Interruption::Gone))),
                () if is_final && is_timed_out => Poll::Ready(Ok(Some(Interruption::Gone))),
                () if is_final => Poll::Pending,
                () if session.is_cancelled() => Poll::Ready(Ok(Some(Interruption::Cancelled))),
                () if is_timed_out => Poll::Ready(Ok(Some(Interruption::TimedOut))),
                () => Poll::Pending,
            }
        });
        sent.await?.map_or(Ok(()), |interruption| Err(self.interrupted(interruption)))
    }

    /// Sends what waits while no statement runs: the client may take its time.
    ///
    /// # Errors
    /// If the client is gone, or the session has to end.
    pub(super) async fn send_between(&mut self) -> Outcome {
        let session = &self.session;
        let sent = poll_fn(|cx| -> Poll<std::io::Result<()>> {
            session.listen(cx.waker());
            match self.socket.poll_send(cx)? {
                Poll::Pending if session.ending() == Ending::Now => {
                    Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()))
                }
                sent => sent.map(Ok),
            }
        });
        Ok(sent.await?)
    }

    /// A statement's own error, unless the session is to end for it.
    fn failed(&self, error: Error) -> Failure {
        match self.session.ending() {
            Ending::Now if error.state() == SqlState::SHUTDOWN => Failure::Fatal(error),
            _ => Failure::Statement(error),
        }
    }

    pub(super) fn interrupted(&mut self, interruption: Interruption) -> Failure {
        self.sql.interrupted();
        match interruption {
            Interruption::Cancelled => cancelled().into(),
            Interruption::TimedOut => timed_out().into(),
            Interruption::Ending => Failure::Fatal(shutdown()),
            Interruption::Gone => Failure::Gone,
        }
    }
}

/// What a session runs is to be done by then, as long as this lives.
struct Until<'s>(&'s Session);

impl Until<'_> {
    fn of(session: &Session, deadline: Option<Instant>) -> Until<'_> {
        session.set_deadline(deadline.map(Instant::into_std));
        Until(session)
    }
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.set_deadline(None);
    }
}

/// What is looked at while something is waited for.
struct Sight<'c> {
    session: &'c Session,
    recall: &'c Recall,
    deadline: Option<Instant>,
    socket: &'c mut Socket,
}

impl Sight<'_> {
    async fn attend<T>(self, work: impl Future<Output = T>) -> std::result::Result<T, Interruption> {
        let _until = Until::of(self.session, self.deadline);
        let mut work = pin!(work);
        let mut timer = pin!(is_due(self.deadline));
        let mut is_timed_out = false;
        let mut is_gone = false;
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            self.session.listen(cx.waker());
            if self.deadline.is_some() && !is_timed_out {
                is_timed_out = timer.as_mut().poll(cx).is_ready();
            }
            if self.socket.is_full() && !is_gone {
                let sending = unconstrained(poll_fn(|cx| self.socket.poll_send(cx)));
                is_gone = matches!(pin!(sending).poll(cx), Poll::Ready(Err(_)));
            }
            let interruption = match () {
                () if is_gone => Interruption::Gone,
                () if self.session.ending() == Ending::Now => Interruption::Ending,
                () if self.session.is_cancelled() => Interruption::Cancelled,
                () if is_timed_out => Interruption::TimedOut,
                () => return Poll::Pending,
            };
            // Past recall: it is polled again when it is done.
            if self.recall.give_up() { Poll::Ready(Err(interruption)) } else { Poll::Pending }
        })
        .await
    }
}
