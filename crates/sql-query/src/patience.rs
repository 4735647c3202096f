//! Whom operators work for: what computes for long before it gives way asks whether anybody still waits.

use crate::row_source::RowSource;
use fabius_value::Result;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static WORKS_FOR: RefCell<Option<Arc<dyn RowSource>>> = const { RefCell::new(None) };
}

/// Puts back whom the thread worked for before.
struct Before(Option<Arc<dyn RowSource>>);

impl Drop for Before {
    fn drop(&mut self) {
        let before = self.0.take();
        WORKS_FOR.with_borrow_mut(|works_for| *works_for = before);
    }
}

/// Works for a query, which reads from a source.
pub(super) fn working_for<T>(source: Option<&Arc<dyn RowSource>>, work: impl FnOnce() -> T) -> T {
    let _before =
        Before(WORKS_FOR.with_borrow_mut(|works_for| std::mem::replace(works_for, source.cloned())));
    work()
}

/// Is called now and then by what computes for long.
///
/// # Errors
/// Why the work is to end: nobody waits for it any more.
pub(super) fn heed() -> Result<()> {
    let over = WORKS_FOR.with_borrow(|works_for| works_for.as_ref().and_then(|source| source.over()));
    over.map_or(Ok(()), Err)
}
