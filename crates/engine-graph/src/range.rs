//! Ranges of a table's keys, for actions that are coarser than a record (LADS, section 3.3.2).
//!
//! A scan, or a call that knows only the first columns of a key beforehand, has its turn at a *range*: all keys with
//! these columns. Other calls have theirs at records in it. The range goes through *stretches*: queues of its records,
//! which are executed side by side, then the queue of the range itself, and so on; each begins when the queues of the
//! one before have ended, so what a range action does to any record comes after what was there before it.
//!
//! ```text
//! items[..]       stretch 0             stretch 1              stretch 2
//!                 items[3]  (1) (4)     items[..]  [5] [6]     items[3]  (7) (9)
//!                 items[7]  (2)                                items[8]  (8)
//! ```
//!
//! All range actions of a graph on one table have ranges of the same length, so ranges do not overlap. A call has its
//! turns in one stretch of a range only, as long as all that it names in the table is records, or ranges.

use fabius_program::execute::emptied;
use fabius_storage::Table;
use fabius_value::Key;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::iter::successors;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};

/// A range.
struct Range<'a> {
    hash: u64,
    table: &'a Arc<Table>,
    /// The leading columns of the primary key, encoded.
    key: Box<[u8]>,
    /// The stretch that has been begun last.
    last: Option<StretchId>,
}

/// Which stretch of all of a graph's ranges: its number, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StretchId(NonZeroU32);

impl StretchId {
    /// The stretch's place among all.
    pub fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A part of a range's actions: queues that are executed side by side.
struct Stretch {
    /// Whether it is the queue of the range, not queues of records.
    is_coarse: bool,
    /// Whether none comes before it.
    is_first: bool,
    /// The member that has been added last.
    last: Option<u32>,
    /// Queues that have not ended.
    open: AtomicU32,
    /// The stretch after it.
    next: Option<StretchId>,
}

/// A queue of a stretch.
struct Member {
    queue: u32,
    /// The member that was added before.
    before: Option<u32>,
}

/// The ranges of a graph.
#[derive(Default)]
pub struct Ranges<'a> {
    ranges: Vec<Range<'a>>,
    /// The ranges by table and key.
    map: HashTable<u32>,
    stretches: Vec<Stretch>,
    members: Vec<Member>,
}

impl<'a> Ranges<'a> {
    /// The stretch where the next action belongs that names this range, or a record in it; a new one if the last is of
    /// the other kind.
    #[inline(never)]
    pub fn stretch(&mut self, table: &'a Arc<Table>, key: &[u8], is_coarse: bool) -> StretchId {
        let Ranges { ranges, map, stretches, .. } = self;
        let mut whole = Key::new();
        whole.extend(key);
        let hash = whole.hash() ^ u64::from(table.id().0);
        let range = |number: &u32| &ranges[*number as usize];
        let is_it =
            |number: &u32| range(number).table.id() == table.id() && &*range(number).key == whole.bytes();
        let number = match map.entry(hash, is_it, |number| range(number).hash) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(free) => {
                let number = *free.insert(ranges.len() as u32).get();
                ranges.push(Range { hash, table, key: key.into(), last: None });
                number
            }
        };
        let new = NonZeroU32::new(stretches.len() as u32 + 1).expect("there are fewer than actions");
        let (new, last) = (StretchId(new), &mut ranges[number as usize].last);
        if let Some(last) = *last {
            let before = &mut stretches[last.place()];
            if before.is_coarse == is_coarse {
                return last;
            }
            before.next = Some(new);
        }
        let is_first = last.replace(new).is_none();
        stretches.push(Stretch { is_coarse, is_first, last: None, open: AtomicU32::new(0), next: None });
        new
    }

    /// Adds a queue to a stretch.
    pub fn add(&mut self, stretch: StretchId, queue: u32) {
        let stretch = &mut self.stretches[stretch.place()];
        *stretch.open.get_mut() += 1;
        let before = stretch.last.replace(self.members.len() as u32);
        self.members.push(Member { queue, before });
    }

    /// Whether a stretch comes after another one.
    pub fn is_later(&self, stretch: StretchId) -> bool {
        !self.stretches[stretch.place()].is_first
    }

    /// A queue of a stretch has ended; gives the queues of the stretch that begins by that.
    pub fn end(&self, stretch: StretchId) -> impl Iterator<Item = u32> {
        let stretch = &self.stretches[stretch.place()];
        let is_last = stretch.open.fetch_sub(1, AcqRel) == 1;
        let next = stretch.next.filter(|_| is_last);
        let member = |number: u32| &self.members[number as usize];
        let last = next.and_then(|next| self.stretches[next.place()].last).map(member);
        successors(last, move |one| one.before.map(member)).map(|one| one.queue)
    }

    /// No ranges, in the memory of these.
    pub fn emptied<'b>(mut self) -> Ranges<'b> {
        self.map.clear();
        let (stretches, members) = (emptied(self.stretches), emptied(self.members));
        Ranges { ranges: emptied(self.ranges), map: self.map, stretches, members }
    }
}
