//! Things on their way from one thread to others.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Release},
};

/// A queue; whether anything is in it can be seen without its mutex.
pub struct Queue<T> {
    items: Mutex<VecDeque<T>>,
    length: AtomicUsize,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { items: Mutex::default(), length: AtomicUsize::new(0) }
    }
}

impl<T> Queue<T> {
    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length.load(Acquire) == 0
    }

    /// Appends one thing.
    pub fn push(&self, item: T) {
        self.with(|items| items.push_back(item));
    }

    /// Appends some things, with nothing of others between them.
    pub fn extend(&self, more: impl IntoIterator<Item = T>) {
        self.with(|items| items.extend(more));
    }

    /// Takes the first thing.
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() { None } else { self.with(VecDeque::pop_front) }
    }

    /// Takes the first things: as many as `most` says of so many.
    pub fn take(&self, most: impl FnOnce(usize) -> usize) -> Vec<T> {
        if self.is_empty() {
            return Vec::new();
        }
        self.with(|items| {
            let count = most(items.len()).min(items.len());
            items.drain(..count).collect()
        })
    }

    /// Takes the first things, one after the other, as long as `goes_on` says so of the next one.
    pub fn take_while(&self, mut goes_on: impl FnMut(&T) -> bool) -> Vec<T> {
        if self.is_empty() {
            return Vec::new();
        }
        self.with(|items| {
            let count = items.iter().take_while(|item| goes_on(item)).count();
            items.drain(..count).collect()
        })
    }

    fn with<R>(&self, change: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        let mut items = self.items.lock();
        let result = change(&mut items);
        self.length.store(items.len(), Release);
        result
    }
}
