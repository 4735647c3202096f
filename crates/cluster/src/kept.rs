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

/// Times that older checkpoints are let go of, through which one stays that somebody is being filled from: what is
/// asked of it meanwhile begins this anew.
const STAYS: u32 = 2;

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
    /// Times that it stays for who is being filled from it.
    stays: u32,
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
        self.points.lock().insert(point.seq, Known { point, is_confirmed: false, stays: 0 });
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

    /// Somebody is being filled from the one with this sequence number, here or at another node.
    pub(crate) fn fill_from(&self, seq: Seq) {
        if let Some(known) = self.points.lock().get_mut(&seq.0) {
            known.stays = STAYS;
        }
    }

    /// Which of these, newest first, stay: so many of the newest, the newest that others can be filled from, and
    /// those that somebody is being filled from. The rest is not known any more.
    pub fn retain(&self, newest_first: &[Seq], count: usize) -> Vec<Seq> {
        let mut points = self.points.lock();
        let filling = points.iter().rfind(|(_, known)| known.is_confirmed).map(|(seq, _)| Seq(*seq));
        let (newest, older) = newest_first.split_at(count.min(newest_first.len()));
        let mut stays = |seq: &Seq| {
            let stays = points.get_mut(&seq.0).map(|known| &mut known.stays).filter(|stays| **stays > 0);
            stays.map(|stays| *stays -= 1).is_some()
        };
        let older = older.iter().copied().filter(|seq| stays(seq) || Some(*seq) == filling);
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
            let mut points = self.points.lock();
            let known = match seq {
                Some(seq) => points.get_mut(&seq).filter(|known| known.is_confirmed),
                None => points.values_mut().rfind(|known| known.is_confirmed),
            };
            known.map(|known| {
                known.stays = STAYS;
                known.point
            })
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

    /// Goal: the newest checkpoint that others can be filled from stays beside newer ones of which that is not known
    /// yet.
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

    /// Goal: one that a node is being filled from stays while parts of it are asked for, here or of another node, and
    /// goes some time later.
    #[test]
    fn one_that_somebody_is_filled_from_stays() {
        let disk = Arc::new(SimulatedDisk::new(1));
        let kept = KeptCheckpoints::new(disk.clone());
        disk.create(&file_name(Seq(10))).and_then(|mut file| file.append_all(&[7; 3])).expect("a file");
        let mut there = Vec::new();
        let mut take = |seq: u64| {
            kept.note(Point { seq, index: seq, term: 1 });
            kept.confirm(Seq(seq));
            there.insert(0, Seq(seq));
            there = kept.retain(&there, 2);
            there.iter().map(|seq| seq.0).collect::<Vec<u64>>()
        };
        take(10);
        assert_eq!(kept.part(None, 1).expect("it is read").expect("a part").bytes, [7; 2]);
        assert_eq!(take(20), [20, 10]);
        assert_eq!(take(30), [30, 20, 10]);
        kept.fill_from(Seq(10));
        assert_eq!(take(40), [40, 30, 10]);
        assert_eq!(take(50), [50, 40, 10]);
        assert_eq!(take(60), [60, 50]);
    }
}
