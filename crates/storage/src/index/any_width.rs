//! An ordered index over keys of any width.
//!
//! Keys that have at most 32 bytes are held in index nodes as words; longer or unbounded ones through
//! [`LongKey`].

use super::{Cursor, Direction, LongKey, OrderedIndex, Pointer};
use crossbeam_epoch::Guard;
use fabius_value::Key;
use std::ops::Bound;

/// An ordered index for some width of keys.
pub(crate) enum AnyIndex {
    One(OrderedIndex<[u64; 1]>),
    Two(OrderedIndex<[u64; 2]>),
    Three(OrderedIndex<[u64; 3]>),
    Four(OrderedIndex<[u64; 4]>),
    Long(OrderedIndex<LongKey<'static>>),
}

macro_rules! with_index {
    ($self:expr, $key:expr, |$index:ident, $words:ident| $body:expr) => {
        match $self {
            AnyIndex::One($index) => {
                let $words = &$key.words::<1>();
                $body
            }
            AnyIndex::Two($index) => {
                let $words = &$key.words::<2>();
                $body
            }
            AnyIndex::Three($index) => {
                let $words = &$key.words::<3>();
                $body
            }
            AnyIndex::Four($index) => {
                let $words = &$key.words::<4>();
                $body
            }
            AnyIndex::Long($index) => {
                let $words = &LongKey::new($key.bytes());
                $body
            }
        }
    };
}

impl AnyIndex {
    /// For keys of at most so many bytes; `None` for keys without a bound.
    pub(crate) fn for_width(bytes: Option<usize>) -> AnyIndex {
        match bytes {
            Some(0..=8) => AnyIndex::One(OrderedIndex::new()),
            Some(9..=16) => AnyIndex::Two(OrderedIndex::new()),
            Some(17..=24) => AnyIndex::Three(OrderedIndex::new()),
            Some(25..=32) => AnyIndex::Four(OrderedIndex::new()),
            _ => AnyIndex::Long(OrderedIndex::new()),
        }
    }

    /// See [`OrderedIndex::len`].
    pub(crate) fn len(&self) -> usize {
        match self {
            AnyIndex::One(index) => index.len(),
            AnyIndex::Two(index) => index.len(),
            AnyIndex::Three(index) => index.len(),
            AnyIndex::Four(index) => index.len(),
            AnyIndex::Long(index) => index.len(),
        }
    }

    /// See [`OrderedIndex::get`].
    pub(crate) fn get(&self, key: &Key, guard: &Guard) -> Option<Pointer> {
        with_index!(self, key, |index, words| index.get(words, guard))
    }

    /// See [`OrderedIndex::insert`].
    pub(crate) fn insert(&self, key: &Key, pointer: Pointer, guard: &Guard) -> Result<(), Pointer> {
        with_index!(self, key, |index, words| index.insert(words, pointer, guard))
    }

    /// See [`OrderedIndex::remove`].
    pub(crate) fn remove(&self, key: &Key, guard: &Guard) -> Option<Pointer> {
        with_index!(self, key, |index, words| index.remove(words, guard))
    }

    /// The entries between two keys: from the first, included, to the second, excluded. Without bounds
    /// there is none.
    pub(crate) fn scan<'g>(
        &'g self,
        bounds: Option<(Key, Option<Key>)>,
        direction: Direction,
        guard: &'g Guard,
    ) -> AnyCursor<'g> {
        let is_empty = bounds.is_none();
        let bounds = Box::new(bounds.unwrap_or_default());
        macro_rules! words {
            ($index:expr, $w:literal, $variant:ident) => {{
                let lower = Bound::Included(bounds.0.words::<$w>());
                let upper = match &bounds.1 {
                    Some(upper) => Bound::Excluded(upper.words::<$w>()),
                    None => Bound::Unbounded,
                };
                Width::$variant($index.scan(lower, upper, direction, guard))
            }};
        }
        let cursor = match self {
            _ if is_empty => Width::Empty,
            AnyIndex::One(index) => words!(index, 1, One),
            AnyIndex::Two(index) => words!(index, 2, Two),
            AnyIndex::Three(index) => words!(index, 3, Three),
            AnyIndex::Four(index) => words!(index, 4, Four),
            AnyIndex::Long(index) => {
                // SAFETY: the bounds are boxed and dropped after the cursor (field order).
                let bounds: &'g (Key, Option<Key>) = unsafe { &*std::ptr::from_ref(&*bounds) };
                let lower = Bound::Included(LongKey::new(bounds.0.bytes()));
                let upper = match &bounds.1 {
                    Some(upper) => Bound::Excluded(LongKey::new(upper.bytes())),
                    None => Bound::Unbounded,
                };
                Width::Long(index.scan(lower, upper, direction, guard))
            }
        };
        AnyCursor { cursor: Box::new(cursor), _bounds: bounds }
    }
}

/// A scan over an [`AnyIndex`], with the bounds that it goes between.
pub(crate) struct AnyCursor<'g> {
    cursor: Box<Width<'g>>,
    /// A cursor over long keys refers to them; dropped after it.
    _bounds: Box<(Key, Option<Key>)>,
}

enum Width<'g> {
    One(Cursor<'g, [u64; 1]>),
    Two(Cursor<'g, [u64; 2]>),
    Three(Cursor<'g, [u64; 3]>),
    Four(Cursor<'g, [u64; 4]>),
    Long(Cursor<'g, LongKey<'static>>),
    Empty,
}

impl AnyCursor<'_> {
    /// Where the next entry leads.
    pub(crate) fn next_pointer(&mut self) -> Option<Pointer> {
        Some(match &mut *self.cursor {
            Width::One(cursor) => cursor.next()?.1,
            Width::Two(cursor) => cursor.next()?.1,
            Width::Three(cursor) => cursor.next()?.1,
            Width::Four(cursor) => cursor.next()?.1,
            Width::Long(cursor) => cursor.next()?.1,
            Width::Empty => return None,
        })
    }

    /// The next entry: its key, and where it leads.
    pub(crate) fn next_entry(&mut self) -> Option<(Key, Pointer)> {
        let mut key = Key::new();
        macro_rules! take {
            ($cursor:expr) => {{
                let (words, pointer) = $cursor.next()?;
                words.iter().for_each(|word| key.extend(&word.to_be_bytes()));
                pointer
            }};
        }
        let pointer = match &mut *self.cursor {
            Width::One(cursor) => take!(cursor),
            Width::Two(cursor) => take!(cursor),
            Width::Three(cursor) => take!(cursor),
            Width::Four(cursor) => take!(cursor),
            Width::Long(cursor) => {
                let (long, pointer) = cursor.next()?;
                key.extend(long.bytes());
                pointer
            }
            Width::Empty => return None,
        };
        Some((key, pointer))
    }
}
