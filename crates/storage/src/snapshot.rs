//! Who reads at which seq, and how far collection may go.
//!
//! A reader takes the newest promised seq, announces it in a slot, then checks that the *floor* has not
//! passed it meanwhile:
//!
//! ```text
//! reader                       collector
//! s := promised                floor := promised
//! slot := s                    for every slot: oldest := min(oldest, slot)
//! if floor > s: try again      nobody reads below `oldest`, now or later
//! ```
//!
//! Both sides write before they read, all in sequentially consistent order, so either the reader
//! sees the new floor or the collector sees the slot.

use crossbeam_utils::CachePadded;
use fabius_value::Seq;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};

/// Readers at one time; more wait for a slot.
pub const READERS_MAX: usize = 4096;

const FREE: u64 = u64::MAX;

/// The readers of one database.
pub struct Snapshots {
    slots: Box<[CachePadded<AtomicU64>]>,
    used: AtomicUsize,
    floor: AtomicU64,
}

/// A reader's claim on its seq; reading at that seq is safe until it is dropped.
pub struct Snapshot<'s> {
    snapshots: &'s Snapshots,
    slot: usize,
    seq: Seq,
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots {
            slots: (0..READERS_MAX).map(|_| CachePadded::new(AtomicU64::new(FREE))).collect(),
            used: AtomicUsize::new(0),
            floor: AtomicU64::new(0),
        }
    }
}

impl Snapshots {
    /// Begins to read at the newest promised seq, which `promised` tells.
    pub fn begin(&self, promised: impl Fn() -> Seq) -> Snapshot<'_> {
        loop {
            if let Some(snapshot) = self.try_begin(&promised) {
                return snapshot;
            }
            std::thread::yield_now();
        }
    }

    /// As [`Snapshots::begin`], if there is a place for one more reader.
    pub fn try_begin(&self, promised: impl Fn() -> Seq) -> Option<Snapshot<'_>> {
        for (slot, cell) in self.slots.iter().enumerate() {
            let seq = promised();
            if cell.load(Relaxed) != FREE || cell.compare_exchange(FREE, seq.0, SeqCst, SeqCst).is_err() {
                continue;
            }
            self.used.fetch_max(slot + 1, SeqCst);
            if self.floor.load(SeqCst) <= seq.0 {
                return Some(Snapshot { snapshots: self, slot, seq });
            }
            cell.store(FREE, SeqCst);
        }
        None
    }

    /// The oldest seq that anyone reads at, now or later, given that `promised` is published.
    pub fn collect(&self, promised: Seq) -> Seq {
        self.floor.fetch_max(promised.0, SeqCst);
        let (mut at, mut oldest) = (0, FREE);
        // A claim under another one takes a later slot: asked again each time, so that it is seen.
        while at < self.used.load(SeqCst) {
            oldest = oldest.min(self.slots[at].load(SeqCst));
            at += 1;
        }
        Seq(promised.0.min(oldest))
    }

    /// Claims a seq at or above that of a claim that goes on meanwhile.
    ///
    /// The collector looks at slots in their order, and this takes a later one than `under` has: if it finds
    /// that one free, then it has not come to this one yet.
    ///
    /// # Panics
    /// If the seq is below.
    pub fn claim_under(&self, under: &Claim, seq: Seq) -> Claim {
        assert!(under.seq <= seq, "what is below a claim may be gone");
        loop {
            for (slot, cell) in self.slots.iter().enumerate().skip(under.slot + 1) {
                if cell.load(Relaxed) == FREE && cell.compare_exchange(FREE, seq.0, SeqCst, SeqCst).is_ok() {
                    self.used.fetch_max(slot + 1, SeqCst);
                    return Claim { slot, seq };
                }
            }
            std::thread::yield_now();
        }
    }
}

/// A reader's claim that borrows nothing: whoever has it [ends](Snapshots::end) it.
#[derive(Debug)]
pub struct Claim {
    slot: usize,
    seq: Seq,
}

impl Claim {
    /// The seq that this reader sees.
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

impl Snapshots {
    /// Ends what [`Snapshot::into_claim`] gave.
    pub fn end(&self, claim: Claim) {
        self.slots[claim.slot].store(FREE, SeqCst);
    }
}

impl Snapshot<'_> {
    /// Whether it is one of these.
    pub fn is_of(&self, snapshots: &Snapshots) -> bool {
        std::ptr::eq(self.snapshots, snapshots)
    }

    /// The claim without its owner; it has to be ended.
    pub fn into_claim(self) -> Claim {
        let claim = Claim { slot: self.slot, seq: self.seq };
        std::mem::forget(self);
        claim
    }

    /// The seq that this reader sees.
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.snapshots.slots[self.slot].store(FREE, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no reader is ever below what the collector was told, however their steps interleave. Under
    /// Miri each seed is another schedule, with the stale values that the memory model allows.
    #[test]
    fn nobody_reads_below_what_is_collected() {
        let turns = if cfg!(miri) { 8 } else { 20_000 };
        let (snapshots, promised, collected) = (Snapshots::default(), AtomicU64::new(1), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..turns {
                        let reader = snapshots.begin(|| Seq(promised.load(SeqCst)));
                        for _ in 0..3 {
                            let collected = collected.load(SeqCst);
                            assert!(collected <= reader.seq().0, "{collected} above {:?}", reader.seq());
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for seq in 2..turns + 2 {
                promised.store(seq, SeqCst);
                collected.store(snapshots.collect(Seq(seq)).0, SeqCst);
            }
        });
    }

    #[test]
    fn a_reader_holds_collection_back() {
        let snapshots = Snapshots::default();
        let reader = snapshots.begin(|| Seq(5));
        assert_eq!(snapshots.collect(Seq(9)), Seq(5));
        let late = snapshots.begin(|| Seq(9));
        drop(reader);
        assert_eq!(snapshots.collect(Seq(12)), Seq(9));
        drop(late);
        assert_eq!(snapshots.collect(Seq(12)), Seq(12));
    }
}
