//! How many bytes somebody may hold, within what all may hold together.
//!
//! ```text
//! all sessions  2 GB
//!   session     1 GB    <-- what its transaction keeps, rows that wait for the client, operators of its query
//!   session     1 GB
//! ```
//!
//! What is held is counted where it is held, about: values and their text, not what the allocator adds.

use fabius_value::{Error, Result, SqlState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that somebody may hold.
#[derive(Debug)]
pub struct Allowance {
    /// The setting that says how many: errors name it.
    name: &'static str,
    limit: usize,
    used: AtomicUsize,
    within: Option<Arc<Allowance>>,
}

impl Allowance {
    /// So many bytes, by a setting of this name.
    pub fn new(name: &'static str, limit: usize) -> Arc<Allowance> {
        Arc::new(Allowance { name, limit, used: AtomicUsize::new(0), within: None })
    }

    /// So many bytes for one of several, as far as they all have some left.
    pub fn share(self: &Arc<Self>, name: &'static str, limit: usize) -> Arc<Allowance> {
        Arc::new(Allowance { name, limit, used: AtomicUsize::new(0), within: Some(self.clone()) })
    }

    /// Bytes that are held.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Bytes that may be held besides.
    pub fn left(&self) -> usize {
        let own = self.limit.saturating_sub(self.used());
        self.within.as_ref().map_or(own, |within| own.min(within.left()))
    }

    /// Holds more.
    ///
    /// # Errors
    /// `53200` if that is more than is left: then nothing is held besides.
    pub fn take(&self, bytes: usize) -> Result<()> {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        if self.used.fetch_update(Relaxed, Relaxed, more).is_err() {
            return Err(self.refusal());
        }
        let Some(within) = &self.within else { return Ok(()) };
        within.take(bytes).inspect_err(|_| {
            self.used.fetch_sub(bytes, Relaxed);
        })
    }

    /// Holds more, be it allowed or not: it is there already.
    pub fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        if let Some(within) = &self.within {
            within.add(bytes);
        }
    }

    /// Holds less.
    pub fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        if let Some(within) = &self.within {
            within.give_back(bytes);
        }
    }

    /// What somebody is told who wants to hold more.
    pub fn refusal(&self) -> Error {
        match &self.within {
            Some(within) if within.left() < self.limit.saturating_sub(self.used()) => within.refusal(),
            _ => Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                .with_detail(format!("{} allows {} bytes, of which {} are held", self.name, self.limit, self.used()))
                .with_hint(format!(
                    "ask for less at a time, read what is large before the transaction writes or outside of it, or raise {}",
                    self.name
                )),
        }
    }
}

/// Bytes that are held, and given back when this is dropped.
#[derive(Debug)]
pub struct Held {
    allowance: Option<Arc<Allowance>>,
    bytes: usize,
}

impl Held {
    /// Nothing yet. Without an allowance, as much as there is may be held.
    pub fn new(allowance: Option<Arc<Allowance>>) -> Held {
        Held { allowance, bytes: 0 }
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that may be held besides; `usize::MAX` if as many as there are.
    pub fn left(&self) -> usize {
        self.allowance.as_ref().map_or(usize::MAX, |allowance| allowance.left())
    }

    /// Holds more.
    ///
    /// # Errors
    /// `53200`, as [`Allowance::take`].
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        if let Some(allowance) = &self.allowance {
            allowance.take(bytes)?;
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Holds more, be it allowed or not: it is there already.
    pub fn add(&mut self, bytes: usize) {
        if let Some(allowance) = &self.allowance {
            allowance.add(bytes);
        }
        self.bytes += bytes;
    }

    /// Holds no more than so many.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if let Some(allowance) = &self.allowance {
            allowance.give_back(less);
        }
        self.bytes -= less;
    }

    /// What somebody is told who has met the allowance's bound elsewhere.
    pub fn refusal(&self, error: Error) -> Error {
        match &self.allowance {
            Some(allowance) if error.state() == SqlState::OUT_OF_MEMORY => allowance.refusal(),
            _ => error,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: nobody holds more than is allowed, alone or together, and the error names which bound it was.
    #[test]
    fn bounds_are_kept_and_named() {
        let all = Allowance::new("all_memory", 100);
        let (one, two) = (all.share("own_memory", 80), all.share("own_memory", 80));
        let mut held = Held::new(Some(one.clone()));
        held.take(70).unwrap();
        let error = held.take(20).unwrap_err();
        assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
        assert!(error.detail().unwrap().starts_with("own_memory allows 80 bytes, of which 70"), "{error:?}");
        let error = two.take(40).unwrap_err();
        assert!(error.hint().unwrap().ends_with("raise all_memory"), "{error:?}");
        assert_eq!((two.used(), two.left(), all.used()), (0, 30, 70));
        drop(held);
        two.take(80).unwrap();
        assert_eq!((one.left(), all.left()), (20, 20));
    }
}
