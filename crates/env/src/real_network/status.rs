//! What a network has done, and what has gone wrong, for whoever asks.

use crate::NodeId;
use crate::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::time::{Duration, Instant};

/// How many problems are kept apart; further nodes' problems count as those of strangers.
const PROBLEMS_MAX: usize = 256;

/// Which of two nodes has opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// This node connects to the other.
    Outgoing,
    /// The other node connects to this one.
    Incoming,
}

/// The last thing that went wrong with the connections to or from one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The other node; none if it was not known, or was refused.
    pub peer: Option<NodeId>,
    /// Whose connection it was.
    pub direction: Direction,
    /// What happened and where, in plain words.
    pub reason: String,
    /// How many times something went wrong there.
    pub count: u64,
    /// How long ago it was.
    pub age: Duration,
    /// Whether a connection was made since.
    pub is_over: bool,
}

impl Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.direction {
            Direction::Outgoing => formatter.write_str("to ")?,
            Direction::Incoming => formatter.write_str("from ")?,
        }
        match self.peer {
            Some(peer) => write!(formatter, "{peer}")?,
            None => formatter.write_str("a stranger")?,
        }
        let (reason, count, age) = (&self.reason, self.count, self.age.as_secs());
        write!(formatter, ": {reason} ({count} in all, the last {age} s ago")?;
        formatter.write_str(if self.is_over { ", connected since)" } else { ")" })
    }
}

/// Counters and problems of one network.
#[derive(Debug, Default)]
pub(super) struct Status {
    counters: Mutex<BTreeMap<&'static str, u64>>,
    problems: Mutex<BTreeMap<(Option<NodeId>, Direction), Noted>>,
}

#[derive(Debug)]
struct Noted {
    reason: String,
    count: u64,
    last: Instant,
    is_over: bool,
}

impl Status {
    pub(super) fn count(&self, what: &'static str, more: u64) {
        if more > 0 {
            *self.counters.lock().entry(what).or_default() += more;
        }
    }

    pub(super) fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.counters.lock().clone()
    }

    /// Notes that something went wrong.
    pub(super) fn note(&self, peer: Option<NodeId>, direction: Direction, reason: String) {
        let mut problems = self.problems.lock();
        let is_full = problems.len() >= PROBLEMS_MAX && !problems.contains_key(&(peer, direction));
        let peer = if is_full { None } else { peer };
        let count = problems.get(&(peer, direction)).map_or(0, |noted| noted.count) + 1;
        let noted = Noted { reason, count, last: Instant::now(), is_over: false };
        problems.insert((peer, direction), noted);
    }

    /// Notes that a connection was made.
    pub(super) fn mended(&self, peer: NodeId, direction: Direction) {
        if let Some(noted) = self.problems.lock().get_mut(&(Some(peer), direction)) {
            noted.is_over = true;
        }
    }

    /// Forgets the problems with nodes that are no peers any more.
    pub(super) fn keep(&self, peers: &BTreeSet<NodeId>) {
        self.problems.lock().retain(|(peer, _), _| peer.is_none_or(|peer| peers.contains(&peer)));
    }

    pub(super) fn problems(&self) -> Vec<Problem> {
        let problem = |(&(peer, direction), noted): (&(Option<NodeId>, Direction), &Noted)| Problem {
            peer,
            direction,
            reason: noted.reason.clone(),
            count: noted.count,
            age: noted.last.elapsed(),
            is_over: noted.is_over,
        };
        self.problems.lock().iter().map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the last problem of each peer and direction is kept, also after it is over, until the peer leaves.
    #[test]
    fn the_last_problem_is_kept() {
        let status = Status::default();
        let told = || -> Vec<(String, u64, bool)> {
            let problems = status.problems().into_iter();
            problems.map(|problem| (problem.reason, problem.count, problem.is_over)).collect()
        };
        let node = NodeId(2);
        status.note(Some(node), Direction::Outgoing, "first".to_owned());
        status.note(Some(node), Direction::Outgoing, "second".to_owned());
        status.note(None, Direction::Incoming, "garbage".to_owned());
        let stranger = ("garbage".to_owned(), 1, false);
        assert_eq!(told(), [stranger.clone(), ("second".to_owned(), 2, false)]);
        status.mended(node, Direction::Outgoing);
        assert_eq!(told(), [stranger.clone(), ("second".to_owned(), 2, true)]);
        status.keep(&BTreeSet::new());
        assert_eq!(told(), [stranger]);
    }

    /// Goal: a problem reads as a sentence.
    #[test]
    fn a_problem_is_printed() {
        let problem = Problem {
            peer: Some(NodeId(2)),
            direction: Direction::Outgoing,
            reason: "127.0.0.1:7002: refused".to_owned(),
            count: 12,
            age: Duration::from_millis(3_500),
            is_over: true,
        };
        let expected = "to node 2: 127.0.0.1:7002: refused (12 in all, the last 3 s ago, connected since)";
        assert_eq!(problem.to_string(), expected);
        let problem = Problem { peer: None, direction: Direction::Incoming, is_over: false, ..problem };
        let expected = "from a stranger: 127.0.0.1:7002: refused (12 in all, the last 3 s ago)";
        assert_eq!(problem.to_string(), expected);
    }

    /// Goal: strangers who claim to be many nodes do not fill the memory.
    #[test]
    fn problems_are_bounded() {
        let status = Status::default();
        for id in 0..10_000 {
            status.note(Some(NodeId(id)), Direction::Incoming, "bad".to_owned());
        }
        assert_eq!(status.problems().len(), PROBLEMS_MAX + 1);
    }
}
