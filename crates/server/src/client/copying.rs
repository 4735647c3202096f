//! `COPY ... FROM STDIN` and `COPY ... TO STDOUT`.

use super::execution::Completion;
use super::{Client, Failure, Outcome};
use crate::wire::backend::{self, CopyDirection};
use crate::wire::frontend::{read_text, violation};
use crate::wire::socket::OUTPUT_BYTES;
use fabius_sql::connection::{CopyIn, Response};
use fabius_value::{Error, Result};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::Instant;

/// How a copy in binary begins and ends; no row begins so, as that would be its count of columns.
const BINARY_SIGNATURE: &[u8] = b"PGCOPY\n";
const BINARY_TRAILER: &[u8] = &[0xff, 0xff];

impl Client {
    /// Takes in what the client copies.
    pub(super) async fn copy_in(&mut self, copy: &CopyIn, deadline: Option<Instant>) -> Outcome<Completion> {
        backend::copy_response(&mut self.socket.output, CopyDirection::In, copy.columns, copy.is_binary);
        self.send_within(deadline).await?;
        let failure = loop {
            let frame = self.next_of_copy(deadline).await?;
            match frame.kind {
                b'd' => {
                    self.attend(deadline, async |sql| sql.copy_data(&frame.body).await).await?;
                }
                b'c' => break None,
                b'f' => {
                    let reason = read_text(&frame.body).unwrap_or("the client gave no reason");
                    break Some(format!("COPY from stdin failed: {reason}"));
                }
                // Clients may ask for answers while there are none.
                b'H' | b'S' => {}
                b'X' => return Err(Failure::Gone),
                other => {
                    let what = format!("unexpected message type 0x{other:02X} during COPY from stdin");
                    return self.give_up_copy(violation(what)).await;
                }
            }
        };
        match self.attend(deadline, async |sql| sql.copy_end(failure).await).await? {
            Response::Done { tag } => Ok(Completion::Tag(tag)),
            _ => Ok(Completion::Empty),
        }
    }

    async fn give_up_copy(&mut self, error: Error) -> Outcome<Completion> {
        let reason = error.message().to_string();
        match self.attend(None, async |sql| sql.copy_end(Some(reason)).await).await {
            Ok(_) | Err(Failure::Statement(_)) => Err(error.into()),
            Err(failure) => Err(failure),
        }
    }

    /// Sends what the statement copies out, one row in each message.
    pub(super) async fn copy_out(
        &mut self,
        mut data: BoxStream<'static, Result<Vec<u8>>>,
        is_binary: bool,
        has_header: bool,
        deadline: Option<Instant>,
    ) -> Outcome<Completion> {
        let mut rows = 0;
        let mut is_header = has_header;
        // What begins a binary copy comes in one message with what follows, as drivers expect.
        let mut beginning = Vec::new();
        while let Some(row) = self.attend_rows(deadline, async { data.next().await.transpose() }).await? {
            if is_binary && rows == 0 && row.starts_with(BINARY_SIGNATURE) {
                beginning = row;
                continue;
            }
            if beginning.is_empty() {
                backend::copy_data(&mut self.socket.output, &row);
            } else {
                beginning.extend(&row);
                backend::copy_data(&mut self.socket.output, &std::mem::take(&mut beginning));
            }
            let is_frame = is_binary && row == BINARY_TRAILER;
            rows += u64::from(!is_frame && !is_header);
            is_header = false;
            if self.socket.output.len() > OUTPUT_BYTES {
                self.send_within(deadline).await?;
            }
        }
        backend::copy_done(&mut self.socket.output);
        Ok(Completion::Rows("COPY", rows))
    }
}
