//! How much a program may take that runs for a reader: what it holds, which is the lists it fills and what it notes
//! of the rows it has met, and how long it runs.
//!
//! A query's result is a list, and as large as what it finds. Whoever runs it says what it may take, and is told when
//! that is not enough before it has taken more. It may go through many rows, there or not, and its reader be gone
//! meanwhile, so it asks now and then. Programs that are in the log are not bounded so: how they end must not depend
//! on who runs them.

use fabius_value::{Datum, Error, Result, SqlState, Value};
use std::sync::Arc;

/// Records between two questions whether the reader still waits: a fraction of a millisecond.
const ROWS: u32 = 1024;

/// Somebody who waits for what a program reads.
pub trait Patience: Send + Sync {
    /// Why nobody waits any more, if that is so.
    fn over(&self) -> Option<Error>;
}

/// Bytes that a run may hold, and those that it holds; and who waits for it.
pub struct Room {
    max: usize,
    used: usize,
    rows: u32,
    patience: Option<Arc<dyn Patience>>,
}

/// What values take as elements of a list in a result.
fn bytes(values: &[Datum<'_>]) -> usize {
    let blobs = values.iter().map(|value| match value {
        Datum::Text(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        _ => 0,
    });
    values.len() * Value::BYTES + blobs.sum::<usize>()
}

impl Room {
    /// Room for so many bytes.
    pub fn new(max: usize) -> Room {
        Room { max, used: 0, rows: 0, patience: None }
    }

    /// The room of a program that ends when nobody waits for it any more.
    #[must_use]
    pub fn with_patience(mut self, patience: Option<Arc<dyn Patience>>) -> Room {
        self.patience = patience;
        self
    }

    /// As much as there is.
    pub fn unbounded() -> Room {
        Room::new(usize::MAX)
    }

    /// An element comes into a list.
    ///
    /// # Errors
    /// `53200` if there is no room for it.
    #[inline]
    pub fn keep(&mut self, values: &[Datum<'_>]) -> Result<()> {
        if self.max == usize::MAX { Ok(()) } else { self.take(bytes(values)) }
    }

    /// A list is emptied.
    #[inline]
    pub fn let_go(&mut self, values: &[Datum<'_>]) {
        if self.max != usize::MAX {
            self.used = self.used.saturating_sub(bytes(values));
        }
    }

    /// A record of a range is looked at, whether its row is there or not.
    ///
    /// # Errors
    /// Why nobody waits for what comes of it.
    #[inline]
    pub fn look(&mut self) -> Result<()> {
        self.rows = self.rows.wrapping_add(1);
        if self.rows.is_multiple_of(ROWS) { self.ask() } else { Ok(()) }
    }

    #[cold]
    fn ask(&self) -> Result<()> {
        let over = self.patience.as_ref().and_then(|patience| patience.over());
        over.map_or(Ok(()), Err)
    }

    /// Something else is kept.
    ///
    /// # Errors
    /// `53200` if there is no room for it.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.max { Ok(()) } else { Err(self.full()) }
    }

    #[cold]
    fn full(&self) -> Error {
        Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail(format!("the result would take more than {} bytes", self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Goal: what is let go can be kept again; what is too much is refused.
    #[test]
    fn room_is_given_back() {
        let row = [Datum::Int(1), Datum::Text("twelve bytes")];
        let one = bytes(&row);
        let mut room = Room::new(2 * one);
        room.keep(&row).unwrap();
        room.keep(&row).unwrap();
        assert_eq!(room.keep(&row).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
        room.let_go(&row);
        room.let_go(&row);
        room.keep(&row).unwrap();
    }

    /// Goal: a program ends soon after nobody waits for it any more, and not before.
    #[test]
    fn rows_are_looked_at_while_somebody_waits() {
        struct Until(AtomicBool);
        impl Patience for Until {
            fn over(&self) -> Option<Error> {
                self.0.load(Relaxed).then(|| Error::new(SqlState::CANCELED, "given up"))
            }
        }
        let reader = Arc::new(Until(AtomicBool::new(false)));
        let mut room = Room::unbounded().with_patience(Some(reader.clone()));
        (0..10 * ROWS).for_each(|_| room.look().unwrap());
        reader.0.store(true, Relaxed);
        let error = (0..ROWS).find_map(|_| room.look().err());
        assert_eq!(error.unwrap().state(), SqlState::CANCELED);
    }
}
