//! What one client saw: outcomes by operation, latencies by kind.

use crate::operation::Operation;
use fabius_value::Error;
use hdrhistogram::Histogram;

/// Latencies in nanoseconds, to two digits, up to two minutes.
pub type Latencies = Histogram<u64>;

/// An empty histogram.
pub fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, 120_000_000_000, 2).expect("bounds that the crate takes")
}

/// Aborts for one reason.
#[derive(Clone, Debug)]
pub struct Abort {
    /// The first of them; the others have its SQLSTATE.
    pub first: Error,
    /// How many.
    pub count: u64,
}

/// What one client saw, or several together.
#[derive(Clone)]
pub struct Recorder {
    /// The kinds of operations, in the order of the workload.
    pub kinds: Vec<&'static str>,
    kind_of: Vec<usize>,
    /// From handing in to the outcome, by kind.
    pub commit: Vec<Latencies>,
    /// From handing in to the returned values, by kind: queries, and calls that wait for their result.
    pub result: Vec<Latencies>,
    /// Committed calls and answered queries, by operation.
    pub committed: Vec<u64>,
    /// Calls and queries that their own program aborted, by operation.
    pub aborted: Vec<u64>,
    /// Calls that the engine gave up.
    pub conflicts: u64,
    /// Why calls and queries were aborted.
    pub aborts: Vec<Abort>,
}

impl Recorder {
    /// An empty one.
    pub fn new(operations: &[Operation]) -> Recorder {
        let mut kinds: Vec<&'static str> = Vec::new();
        let mut kind_of = Vec::new();
        for operation in operations {
            let at = kinds.iter().position(|kind| *kind == operation.kind).unwrap_or_else(|| {
                kinds.push(operation.kind);
                kinds.len() - 1
            });
            kind_of.push(at);
        }
        Recorder {
            commit: kinds.iter().map(|_| latencies()).collect(),
            result: kinds.iter().map(|_| latencies()).collect(),
            committed: vec![0; operations.len()],
            aborted: vec![0; operations.len()],
            conflicts: 0,
            aborts: Vec::new(),
            kinds,
            kind_of,
        }
    }

    /// Counts decided calls of one operation with one latency.
    pub fn decided(&mut self, operation: usize, latency_ns: u64, committed: u64, aborted: u64) {
        self.committed[operation] += committed;
        self.aborted[operation] += aborted;
        self.commit[self.kind_of[operation]].saturating_record_n(latency_ns.max(1), committed + aborted);
    }

    /// Notes why a call or a query was aborted.
    pub fn note_abort(&mut self, error: &Error) {
        self.note_aborts(error, 1);
    }

    fn note_aborts(&mut self, first: &Error, count: u64) {
        match self.aborts.iter_mut().find(|abort| abort.first.state() == first.state()) {
            Some(abort) => abort.count += count,
            None => self.aborts.push(Abort { first: first.clone(), count }),
        }
    }

    /// Notes how long returned values took.
    pub fn returned(&mut self, operation: usize, latency_ns: u64) {
        self.result[self.kind_of[operation]].saturating_record(latency_ns.max(1));
    }

    /// Takes in what another client saw.
    pub fn merge(&mut self, other: &Recorder) {
        let add = |to: &mut [Latencies], from: &[Latencies]| {
            for (to, from) in to.iter_mut().zip(from) {
                to.add(from).expect("histograms of equal bounds");
            }
        };
        add(&mut self.commit, &other.commit);
        add(&mut self.result, &other.result);
        let count = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        count(&mut self.committed, &other.committed);
        count(&mut self.aborted, &other.aborted);
        self.conflicts += other.conflicts;
        other.aborts.iter().for_each(|abort| self.note_aborts(&abort.first, abort.count));
    }

    /// Committed calls and answered queries in all.
    pub fn committed_total(&self) -> u64 {
        self.committed.iter().sum()
    }

    /// Those that their own programs aborted.
    pub fn aborted_total(&self) -> u64 {
        self.aborted.iter().sum()
    }

    /// Commit latencies of all kinds.
    pub fn all_commits(&self) -> Latencies {
        sum(&self.commit)
    }

    /// Result latencies of all kinds.
    pub fn all_results(&self) -> Latencies {
        sum(&self.result)
    }

    /// Commit and result latencies of one kind.
    ///
    /// # Panics
    /// If there is no such kind.
    pub fn of_kind(&self, kind: &str) -> (&Latencies, &Latencies) {
        let at = self.kinds.iter().position(|name| *name == kind).expect("a kind of the workload");
        (&self.commit[at], &self.result[at])
    }
}

fn sum(list: &[Latencies]) -> Latencies {
    let mut all = latencies();
    for one in list {
        all.add(one).expect("histograms of equal bounds");
    }
    all
}
