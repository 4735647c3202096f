//! Programs that were made lately, by what they were made of.

use crate::Statement;
use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

/// Programs that are kept.
const KEPT: usize = 1024;

/// The newest programs of a kind.
pub(crate) struct Recent<K> {
    by_origin: HashMap<K, Arc<Statement>>,
    /// In the order in which they were made.
    order: VecDeque<K>,
}

impl<K> Default for Recent<K> {
    fn default() -> Recent<K> {
        Recent { by_origin: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash> Recent<K> {
    /// The program that was made of this, if it is still kept.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, origin: &Q) -> Option<Arc<Statement>>
    where
        K: Borrow<Q>,
    {
        self.by_origin.get(origin).cloned()
    }

    /// Keeps a program; the oldest goes when there are too many.
    pub(crate) fn keep(&mut self, origin: K, program: Arc<Statement>) {
        if self.by_origin.insert(origin.clone(), program).is_none() {
            self.order.push_back(origin);
        }
        while self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_origin.remove(&oldest);
        }
    }
}
