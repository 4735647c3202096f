//! Rows that a session holds, as far as it may.

use fabius::Held;
use fabius_value::{Result, Value};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

/// Rows that are counted.
pub(super) struct HeldRows {
    pub rows: Vec<Vec<Value>>,
    pub held: Held,
}

/// What a row takes in memory, about.
pub(super) fn size(row: &[Value]) -> usize {
    size_of::<Vec<Value>>() + row.iter().map(Value::bytes).sum::<usize>()
}

impl HeldRows {
    /// None yet.
    pub fn new(held: Held) -> HeldRows {
        HeldRows { rows: Vec::new(), held }
    }

    /// One more.
    ///
    /// # Errors
    /// `53200` if the session holds too much.
    pub fn push(&mut self, row: Vec<Value>) -> Result<()> {
        self.held.take(size(&row))?;
        self.rows.push(row);
        Ok(())
    }

    /// Takes rows of a stream until there are so many rows or bytes; whether these were all.
    ///
    /// # Errors
    /// As [`HeldRows::push`], and those of the stream.
    pub async fn fill(
        &mut self,
        from: &mut BoxStream<'static, Result<Vec<Value>>>,
        (rows, bytes): (usize, usize),
    ) -> Result<bool> {
        while self.rows.len() < rows && self.held.bytes() < bytes {
            let Some(row) = from.try_next().await? else { return Ok(true) };
            match bytes {
                usize::MAX => self.push(row)?,
                // A few rows on their way are counted, but not refused.
                _ => {
                    self.held.add(size(&row));
                    self.rows.push(row);
                }
            }
        }
        Ok(false)
    }

    /// Forgets so many rows from the front.
    pub fn forget(&mut self, count: usize) {
        let gone: usize = self.rows.drain(..count).map(|row| size(&row)).sum();
        self.held.shrink_to(self.held.bytes().saturating_sub(gone));
    }

    /// Gives them one by one; they are held until all are taken.
    pub fn stream(self) -> BoxStream<'static, Result<Vec<Value>>> {
        let held = self.held;
        let rows = self.rows.into_iter().map(move |row| {
            let _until_all_are_taken = &held;
            Ok(row)
        });
        futures::stream::iter(rows).boxed()
    }
}
