//! How a measurement is told to end early: by the user's Ctrl-C, through whoever handles signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A flag that is raised once and stays up. Cloned handles share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Raises it.
    pub fn raise(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it was raised.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Relaxed)
    }
}
