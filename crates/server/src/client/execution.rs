//! What a statement gives, sent to the client.

use super::values::write_row;
use super::{Client, Failure, Outcome};
use crate::wire::backend::{self, CopyDirection};
use crate::wire::frontend::Formats;
use crate::wire::socket::OUTPUT_BYTES;
use fabius_sql::connection::Response;
use fabius_sql_meaning::output::OutputColumn;
use fabius_value::{Result, Value};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::task::yield_now;
use tokio::time::Instant;

/// What is said when a statement is done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// There was no statement.
    Empty,
    /// This tag.
    Tag(String),
    /// A tag with a count of rows.
    Rows(&'static str, u64),
}

impl Completion {
    /// The tag's words.
    pub(super) fn tag(&self) -> &str {
        match self {
            Completion::Empty => "",
            Completion::Tag(tag) => tag,
            Completion::Rows(tag, _) => tag,
        }
    }
}

/// Rows that are on their way.
pub(super) struct Rows {
    pub(super) columns: Vec<OutputColumn>,
    pub(super) rows: BoxStream<'static, Result<Vec<Value>>>,
    pub(super) tag: &'static str,
}

impl Client {
    /// Sends everything a response has, in the simple protocol.
    pub(super) async fn give(
        &mut self,
        response: Response,
        formats: &Formats,
        deadline: Option<Instant>,
    ) -> Outcome<Completion> {
        match response {
            Response::Rows { columns, rows, tag } => {
                backend::row_description(&mut self.socket.output, &columns, formats);
                let mut rows = Rows { columns, rows, tag };
                let (count, _) = self.give_rows(&mut rows, formats, u64::MAX, deadline).await?;
                Ok(Completion::Rows(tag, count))
            }
            other => self.give_rest(other, deadline).await,
        }
    }

    /// Sends a response that has no rows.
    pub(super) async fn give_rest(
        &mut self,
        response: Response,
        deadline: Option<Instant>,
    ) -> Outcome<Completion> {
        match response {
            Response::Empty => Ok(Completion::Empty),
            Response::Done { tag } => Ok(Completion::Tag(tag)),
            Response::CopyIn(copy) => Box::pin(self.copy_in(&copy, deadline)).await,
            Response::CopyOut { columns, is_binary, has_header, data } => {
                backend::copy_response(&mut self.socket.output, CopyDirection::Out, columns, is_binary);
                Box::pin(self.copy_out(data, is_binary, has_header, deadline)).await
            }
            Response::Rows { .. } => Err(Failure::Statement(fabius_value::Error::new(
                fabius_value::SqlState(*b"XX000"),
                "rows where none were described",
            ))),
        }
    }

    /// Sends so many rows at most; how many they were, and whether those were all.
    pub(super) async fn give_rows(
        &mut self,
        rows: &mut Rows,
        formats: &Formats,
        most: u64,
        deadline: Option<Instant>,
    ) -> Outcome<(u64, bool)> {
        let style = self.sql.text_style();
        let mut count = 0;
        while count < most {
            let row = match self.ready_row(deadline, &mut rows.rows).await? {
                Some(row) => row,
                None => {
                    let next = async {
                        // Instead of the pause that the query was about to make.
                        yield_now().await;
                        rows.rows.next().await.transpose()
                    };
                    self.attend_rows(deadline, next).await?
                }
            };
            let Some(row) = row else { return Ok((count, true)) };
            write_row(&mut self.socket.output, &row, &rows.columns, formats, &style)?;
            count += 1;
            if self.socket.output.len() > OUTPUT_BYTES {
                self.send_within(deadline).await?;
            }
        }
        Ok((count, false))
    }

    /// Says that a statement is done.
    pub(super) fn complete(&mut self, completion: &Completion) {
        self.tell_notices();
        let out = &mut self.socket.output;
        match completion {
            Completion::Empty => backend::empty_query_response(out),
            Completion::Tag(tag) => backend::command_complete(out, tag),
            Completion::Rows(tag, rows) => backend::command_complete_rows(out, tag, *rows),
        }
    }
}
