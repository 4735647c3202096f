//! How a call comes to its place in the order.

use crate::eager::sequencer::Taken;
use crate::eager::shared::Shared;
use fabius_value::{Result, Seq};

/// A call's place in the order, and in the log.
#[derive(Clone, Copy, Debug)]
pub enum Place<'p> {
    /// The next, with this entry in the log.
    Next(&'p [u8]),
    /// The next, whose entry is in the log already.
    Logged,
    /// This one, which it has already, in the log too.
    At(Seq),
    /// It needs none, because it leaves nothing behind.
    None,
}

/// What a control gives a call its place with: it is taken if the question that goes with it is answered by yes.
pub type Take<'t> = dyn FnMut(&mut dyn FnMut() -> bool) -> Result<Option<Seq>> + 't;

impl Place<'_> {
    /// Takes the place if `is_valid` holds: whoever has a lower seq has made known what it writes before it is asked,
    /// and whoever has a higher one makes it known later. Without a place of its own the call gets a seq that is at or
    /// after everything that it may have read before. A call that is refused may leave a seq void.
    ///
    /// # Errors
    /// What ended the log.
    pub fn take(self, shared: &Shared, is_valid: &mut dyn FnMut() -> bool) -> Result<Taken> {
        let mut with =
            |seq: &dyn Fn() -> Seq| Ok(if is_valid() { Taken::At(seq()) } else { Taken::Refused(None) });
        match self {
            Place::Next(entry) => shared.sequencer.append_if(&shared.foundation, entry, is_valid),
            Place::Logged => with(&|| shared.sequencer.take()),
            Place::At(seq) => with(&|| seq),
            Place::None => with(&|| shared.sequencer.issued()),
        }
    }
}
