//! Whether all nodes have computed the same.
//!
//! Replicas stay alike because each runs the same calls in the same order (Calvin, section 2). Should one compute
//! something else all the same, by a fault of its memory, its disk or its build, nobody would notice. So every node
//! takes its checkpoints at the same places of the order, and tells the others the digests that come with them:
//!
//! ```text
//!   seq     node 1              node 2              node 3
//!   900     a: 17  b: 40        a: 17  b: 40        a: 17  b: 41     two have the same: node 3 stops, and names b
//!   1500    a: 21  b: 44        a: 21  b: 44
//! ```
//!
//! Of two who differ neither knows who is right; a majority of the voters that has the same is.

use fabius_engine::checkpoint::{Digest, differences};
use fabius_value::{Error, Result, Seq, SqlState};
use std::collections::BTreeMap;

/// States whose digests are kept, the newest.
const KEPT: usize = 4;

/// What a node knows of the digests of all.
#[derive(Default)]
pub(crate) struct Digests {
    /// By seq, then node.
    states: BTreeMap<Seq, BTreeMap<u64, Vec<Digest>>>,
}

/// The newest state that this node has compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// That after the entry with this seq.
    pub seq: Seq,
    /// The nodes that have the same, this one among them, by number.
    pub same: Vec<u64>,
    /// The nodes that have something else.
    pub differ: Vec<u64>,
}

impl Digests {
    /// Notes what a node has computed.
    pub(crate) fn note(&mut self, node: u64, seq: Seq, digests: Vec<Digest>) {
        self.states.entry(seq).or_default().insert(node, digests);
        while self.states.len() > KEPT {
            self.states.pop_first();
        }
    }

    /// What a node has computed of the state at a seq, if it has told.
    pub(crate) fn of(&self, node: u64, seq: Seq) -> Option<&Vec<Digest>> {
        self.states.get(&seq)?.get(&node)
    }

    /// What a node has computed last.
    pub(crate) fn newest(&self, node: u64) -> Option<(Seq, &Vec<Digest>)> {
        self.states.iter().rev().find_map(|(seq, of_all)| Some((*seq, of_all.get(&node)?)))
    }

    /// Judges what node `me` has computed of the state at a seq.
    ///
    /// # Errors
    /// `XX001` if a majority of the voters has computed something else: the node must not go on.
    pub(crate) fn judge(&self, me: u64, seq: Seq, voters: &[u64]) -> Result<()> {
        let Some((of_all, ours)) = self.states.get(&seq).and_then(|of_all| Some((of_all, of_all.get(&me)?)))
        else {
            return Ok(());
        };
        for theirs in of_all.values() {
            let parts = differences(ours, theirs);
            let have_it =
                |node: &&u64| of_all.get(*node).is_some_and(|other| differences(other, theirs).is_empty());
            if !parts.is_empty() && 2 * voters.iter().filter(have_it).count() > voters.len() {
                return Err(differs(seq, &parts.join(", ")));
            }
        }
        Ok(())
    }

    /// Whether a majority of the voters has computed the same as node `me` of the state at a seq.
    pub(crate) fn is_confirmed(&self, me: u64, seq: Seq, voters: &[u64]) -> bool {
        let same = |node: &&u64| {
            self.of(me, seq).zip(self.of(**node, seq)).is_some_and(|(a, b)| differences(a, b).is_empty())
        };
        2 * voters.iter().filter(same).count() > voters.len()
    }

    /// The newest state that node `me` and another one have told of.
    pub(crate) fn compared(&self, me: u64) -> Option<Compared> {
        let (seq, of_all) =
            self.states.iter().rfind(|(_, of_all)| of_all.len() > 1 && of_all.contains_key(&me))?;
        let ours = of_all.get(&me)?;
        let is_same = |(_, theirs): &(&u64, &Vec<Digest>)| differences(ours, theirs).is_empty();
        let (same, differ): (Vec<_>, Vec<_>) = of_all.iter().partition(is_same);
        let nodes = |of: Vec<(&u64, &Vec<Digest>)>| of.into_iter().map(|(node, _)| *node).collect();
        Some(Compared { seq: *seq, same: nodes(same), differ: nodes(differ) })
    }
}

/// Why a node stays out that has computed something else after a seq.
pub(crate) fn differs(seq: Seq, parts: &str) -> Error {
    let fact = "this node has computed something else than the majority of its cluster";
    Error::new(SqlState::DATA_CORRUPTED, fact)
        .with_detail(format!("after the entry with seq {seq}: {parts}"))
        .with_hint("it stays out; remove it from the cluster, add a new node, and report this")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(values: [u64; 2]) -> Vec<Digest> {
        let digest = |(part, value): (&str, u64)| Digest { part: part.into(), value };
        ["table a", "table b"].into_iter().zip(values).map(digest).collect()
    }

    /// Goal: whoever differs from a majority stops, and nobody else, in whatever order they tell; what differs is
    /// named.
    #[test]
    fn the_minority_stops() {
        let tellings = [[1, 2, 3], [3, 2, 1], [2, 3, 1], [3, 1, 2]];
        for nodes in tellings {
            let mut digests = Digests::default();
            for node in nodes {
                digests.note(node, Seq(9), state(if node == 3 { [1, 3] } else { [1, 2] }));
            }
            assert_eq!(digests.judge(1, Seq(9), &[1, 2, 3]), Ok(()));
            let error = digests.judge(3, Seq(9), &[1, 2, 3]).expect_err("it differs from two");
            assert_eq!(error.detail(), Some("after the entry with seq 9: table b"));
            let compared = Compared { seq: Seq(9), same: vec![1, 2], differ: vec![3] };
            assert_eq!(digests.compared(1), Some(compared));
        }
    }

    /// Goal: of two who differ neither stops; who has no vote does not make a majority, and is held to it.
    #[test]
    fn a_majority_decides() {
        let mut digests = Digests::default();
        digests.note(1, Seq(9), state([1, 2]));
        digests.note(4, Seq(9), state([1, 3]));
        digests.note(5, Seq(9), state([1, 3]));
        for voters in [&[1, 2, 3][..], &[1, 4], &[1, 4, 2]] {
            assert_eq!(digests.judge(1, Seq(9), voters), Ok(()), "{voters:?}");
            assert_eq!(digests.judge(4, Seq(9), voters), Ok(()), "{voters:?}");
        }
        digests.note(2, Seq(9), state([1, 2]));
        assert!(digests.judge(4, Seq(9), &[1, 2, 3]).is_err());
        assert_eq!(digests.judge(1, Seq(9), &[1, 2, 3]), Ok(()));
        assert_eq!(digests.judge(3, Seq(9), &[1, 2, 3]), Ok(()), "it has told nothing yet");
    }

    /// Goal: the newest that can be compared is shown, and old ones go.
    #[test]
    fn the_newest_are_kept() {
        let mut digests = Digests::default();
        assert_eq!(digests.compared(1), None);
        for seq in 1..=10 {
            digests.note(1, Seq(seq), state([seq, 2]));
            if seq != 10 {
                digests.note(2, Seq(seq), state([seq, 2]));
            }
        }
        assert_eq!(digests.compared(1), Some(Compared { seq: Seq(9), same: vec![1, 2], differ: vec![] }));
        assert_eq!(digests.states.len(), KEPT);
    }
}
