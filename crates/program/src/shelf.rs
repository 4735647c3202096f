//! A list that grows at its end, whose versions share what they have in common.
//!
//! ```text
//! version 7   [ chunk 0 ][ chunk 1 ][ chunk 2  ]
//!                 |          |
//! version 8   [ chunk 0 ][ chunk 1 ][ chunk 2' ]      one item more, or another one in its place
//! ```
//!
//! Copying it copies one pointer per chunk; changing a copy copies one chunk.

use std::sync::Arc;

/// Items of a chunk.
const CHUNK: usize = 128;

/// A list that is cheap to copy with a change.
#[derive(Debug)]
pub struct Shelf<T> {
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Shelf<T> {
        Shelf { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Shelf<T> {
    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An item by its place.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// The items from a place on.
    pub fn iter_from(&self, at: usize) -> impl Iterator<Item = &T> {
        let chunks = self.chunks.get(at / CHUNK..).unwrap_or_default();
        chunks.iter().flat_map(|chunk| chunk.iter()).skip(at % CHUNK)
    }

    /// All items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_from(0)
    }
}

impl<T: Clone> Shelf<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::new(Vec::new()));
        }
        let last = self.chunks.last_mut().expect("the last chunk has room");
        Arc::make_mut(last).push(item);
        self.len += 1;
    }

    /// Puts another item in a place that has one.
    pub fn set(&mut self, at: usize, item: T) {
        Arc::make_mut(&mut self.chunks[at / CHUNK])[at % CHUNK] = item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: versions do not see each other's changes, and share what neither has changed.
    #[test]
    fn versions_share() {
        let mut first = Shelf::default();
        (0..300).for_each(|number| first.push(number));
        let mut second = first.clone();
        second.push(300);
        second.set(130, -1);
        assert_eq!(first.iter().copied().collect::<Vec<_>>(), (0..300).collect::<Vec<_>>());
        assert_eq!(second.iter_from(129).take(3).copied().collect::<Vec<_>>(), [129, -1, 131]);
        assert_eq!((second.len(), second.get(300), second.get(301)), (301, Some(&300), None));
        assert!(Arc::ptr_eq(&first.chunks[0], &second.chunks[0]));
        assert_eq!(second.iter_from(301).count() + second.iter_from(900).count(), 0);
    }
}
