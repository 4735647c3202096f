//! How much a program may hold that runs for a reader: the lists it fills, and what it notes of the rows it has met.
//!
//! A query's result is a list, and as large as what it finds. Whoever runs it says what it may take, and is told when
//! that is not enough before it has taken more. Programs that are in the log are not bounded so: how they end must not
//! depend on who runs them.

use fabius_value::{Datum, Error, Result, SqlState, Value};

/// Bytes that a run may hold, and those that it holds.
#[derive(Debug)]
pub struct Room {
    max: usize,
    used: usize,
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
        Room { max, used: 0 }
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
}
