//! When what this node reads is the newest that anybody was told of.
//!
//! A reader asks the leader up to where the log is agreed on, and reads once this node has taken so much. The leader
//! answers only after a majority has told it that it still leads, so that one who was deposed and does not know it
//! answers nothing (Ongaro, 2014, section 6.4). All who come while a request is on its way go with the next one.

use fabius_engine::Batch;
use fabius_value::Error;
use std::collections::VecDeque;
use std::sync::Arc;

/// Ticks after which a request of which nothing was heard is made again.
const AGAIN_TICKS: u64 = 4;

/// Who waits to read.
pub(crate) struct Reads {
    node: u64,
    life: u64,
    next: u64,
    /// Have not asked yet.
    waiting: Vec<Arc<Batch>>,
    asked: Option<Asked>,
    /// May read once the entry with this index is taken; in ascending order of it.
    answered: VecDeque<(u64, Vec<Arc<Batch>>)>,
    /// How many requests were made again, so far.
    pub(crate) asked_again: u64,
}

struct Asked {
    request: u64,
    tick: u64,
    readers: Vec<Arc<Batch>>,
}

impl Reads {
    /// Nobody yet.
    pub(crate) fn new(node: u64, life: u64) -> Reads {
        let (waiting, answered) = (Vec::new(), VecDeque::new());
        Reads { node, life, next: 0, waiting, asked: None, answered, asked_again: 0 }
    }

    /// Somebody wants to read: this batch, which has no calls, is complete once it may.
    pub(crate) fn wait(&mut self, reader: Arc<Batch>) {
        self.waiting.push(reader);
    }

    /// The request to be made now, if there is one.
    pub(crate) fn request(&mut self, tick: u64) -> Option<Vec<u8>> {
        match &mut self.asked {
            Some(asked) if tick < asked.tick + AGAIN_TICKS => return None,
            // Under another name, and for those who have come since too.
            Some(asked) => {
                self.asked_again += 1;
                self.waiting.append(&mut asked.readers);
            }
            None => {}
        }
        self.asked = None;
        if self.waiting.is_empty() {
            return None;
        }
        self.next += 1;
        let readers = std::mem::take(&mut self.waiting);
        self.asked = Some(Asked { request: self.next, tick, readers });
        let name = [self.node, self.life, self.next];
        Some(name.iter().flat_map(|number| number.to_le_bytes()).collect())
    }

    /// A request was answered: those who made it may read behind an index.
    pub(crate) fn answer(&mut self, request: &[u8], index: u64) {
        let name = |at: usize| request.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        if (name(0), name(8)) != (Some(self.node), Some(self.life)) {
            return;
        }
        if let Some(asked) = self.asked.take_if(|asked| name(16) == Some(asked.request)) {
            // What a later request is told is never less.
            let index = self.answered.back().map_or(index, |(before, _)| index.max(*before));
            self.answered.push_back((index, asked.readers));
        }
    }

    /// Those who may read, since everything up to an index was handed out.
    pub(crate) fn reached(&mut self, index: u64) -> Vec<Arc<Batch>> {
        let mut readers = Vec::new();
        while let Some((_, reached)) = self.answered.pop_front_if(|(at, _)| *at <= index) {
            readers.extend(reached);
        }
        readers
    }

    /// Tells everybody who waits why nothing will come of it.
    pub(crate) fn fail(&mut self, error: &Error, now_ns: u64) {
        let answered = self.answered.drain(..).flat_map(|(_, readers)| readers);
        let asked = self.asked.take().into_iter().flat_map(|asked| asked.readers);
        answered
            .chain(asked)
            .chain(self.waiting.drain(..))
            .for_each(|reader| reader.fail(error.clone(), now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one request is on its way at a time, all who come meanwhile share the next, one of which nothing is
    /// heard is made again under another name, and only its own answer counts.
    #[test]
    fn requests_are_shared_and_repeated() {
        let reader = || Batch::of(Vec::new(), 0);
        let mut reads = Reads::new(1, 9);
        reads.wait(reader());
        let first = reads.request(0).expect("a request");
        reads.wait(reader());
        reads.wait(reader());
        assert!(reads.request(AGAIN_TICKS - 1).is_none());
        let second = reads.request(AGAIN_TICKS).expect("the same again");
        reads.answer(&first, 5);
        assert!(reads.reached(100).is_empty(), "an answer to a request that was given up");
        reads.answer(&second, 7);
        assert!(reads.reached(6).is_empty());
        assert_eq!(reads.reached(7).len(), 3);
        reads.wait(reader());
        let third = reads.request(AGAIN_TICKS).expect("a request");
        let mut other_life = third.clone();
        other_life[8] ^= 1;
        reads.answer(&other_life, 8);
        assert!(reads.reached(100).is_empty());
        reads.answer(&third, 8);
        assert_eq!(reads.reached(100).len(), 1);
    }
}
