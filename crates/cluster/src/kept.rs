//! The checkpoints of a node whose place in the agreed log is known: what another node can be filled from.

use crate::Point;
use fabius_env::Disk;
use fabius_storage::checkpoint::file_name;
use fabius_value::Seq;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Bytes of a checkpoint in one message.
pub(crate) const PART_BYTES: u64 = 1 << 20;

/// The checkpoints that a node keeps.
pub struct KeptCheckpoints {
    disk: Arc<dyn Disk>,
    points: Mutex<BTreeMap<u64, Known>>,
}

/// What is known of a checkpoint.
#[derive(Clone, Copy)]
struct Known {
    point: Point,
    /// Whether it is one that others can be filled from: a majority has the same.
    is_confirmed: bool,
}

/// A part of a checkpoint's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The place in the log of which it has the state.
    pub(crate) point: Point,
    /// Bytes of the whole file.
    pub(crate) total: u64,
    /// Where in it the bytes stand.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl KeptCheckpoints {
    /// Those in a directory, of which none is known yet.
    pub fn new(disk: Arc<dyn Disk>) -> KeptCheckpoints {
        KeptCheckpoints { disk, points: Mutex::default() }
    }

    /// The directory that they are in.
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// There is one of the state at a place.
    pub fn note(&self, point: Point) {
        self.points.lock().insert(point.seq, Known { point, is_confirmed: false });
    }

    /// A majority has the same as the one with this sequence number.
    pub(crate) fn confirm(&self, seq: Seq) {
        if let Some(known) = self.points.lock().get_mut(&seq.0) {
            known.is_confirmed = true;
        }
    }

    /// Where the one with this sequence number stands in the log, if it is known.
    pub fn point(&self, seq: Seq) -> Option<Point> {
        self.points.lock().get(&seq.0).map(|known| known.point)
    }

    /// Which of these, newest first, stay: so many of the newest, and the newest that others can be filled from. The rest is not known
    /// any more.
    pub fn retain(&self, newest_first: &[Seq], count: usize) -> Vec<Seq> {
        let mut points = self.points.lock();
        let filling = points.iter().rfind(|(_, known)| known.is_confirmed).map(|(seq, _)| Seq(*seq));
        let (newest, older) = newest_first.split_at(count.min(newest_first.len()));
        let older = older.iter().copied().filter(|seq| Some(*seq) == filling);
        let kept: Vec<Seq> = newest.iter().copied().chain(older).collect();
        points.retain(|seq, _| kept.contains(&Seq(*seq)));
        kept
    }

    /// Whether others can be filled from one that goes at least to a sequence number.
    pub(crate) fn can_fill(&self, seq: Seq) -> bool {
        self.points.lock().range(seq.0..).any(|(_, known)| known.is_confirmed)
    }

    /// A part of one that others can be filled from, or of the newest such; nothing if there is none.
    ///
    /// # Errors
    /// As the disk fails, or the file is no longer there.
    pub(crate) fn part(&self, seq: Option<u64>, offset: u64) -> io::Result<Option<Part>> {
        let point = {
            let points = self.points.lock();
            let confirmed = |known: &&Known| known.is_confirmed;
            let known = match seq {
                Some(seq) => points.get(&seq).filter(confirmed),
                None => points.values().rfind(confirmed),
            };
            known.map(|known| known.point)
        };
        let Some(point) = point else { return Ok(None) };
        let file = self.disk.open_read(&file_name(Seq(point.seq)))?;
        let total = file.len()?;
        let mut bytes = vec![0; total.saturating_sub(offset).min(PART_BYTES) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(Some(Part { point, total, offset, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::SimulatedDisk;

    /// Goal: the newest checkpoint that others can be filled from stays beside newer ones of which that is not known yet.
    #[test]
    fn one_to_fill_from_is_kept() {
        let kept = KeptCheckpoints::new(Arc::new(SimulatedDisk::new(1)));
        let seqs = |numbers: &[u64]| numbers.iter().map(|number| Seq(*number)).collect::<Vec<Seq>>();
        for seq in [10, 20, 30] {
            kept.note(Point { seq, index: seq, term: 1 });
        }
        kept.confirm(Seq(10));
        assert_eq!(kept.retain(&seqs(&[30, 20, 10]), 2), seqs(&[30, 20, 10]));
        assert!(kept.can_fill(Seq(10)) && !kept.can_fill(Seq(20)));
        kept.confirm(Seq(20));
        assert_eq!(kept.retain(&seqs(&[30, 20, 10]), 2), seqs(&[30, 20]));
        assert!(kept.can_fill(Seq(10)) && kept.can_fill(Seq(20)) && !kept.can_fill(Seq(30)));
    }
}
