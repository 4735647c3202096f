//! What a point of a figure was measured to be.

use crate::measured::{Measured, middle};
use crate::recorder::Latencies;
use crate::repeated::Repeated;

/// What was measured, in one run or several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Calls per second, all of their work done.
    pub throughput_tps: f64,
    /// Commit latency, in microseconds.
    pub commit_us: Percentiles,
    /// Latency of results, in microseconds.
    pub result_us: Percentiles,
    /// Calls that committed.
    pub committed: f64,
    /// Attempts of calls that the engine made again.
    pub retries: f64,
}

/// A distribution in brief.
#[derive(Clone, Copy, Debug, Default)]
pub struct Percentiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 9 of 10 are below.
    pub p90: f64,
    /// 99 of 100 are below.
    pub p99: f64,
}

impl Percentiles {
    /// Of latencies, in microseconds.
    pub fn of(latencies: &Latencies) -> Percentiles {
        let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
        Percentiles { mean: latencies.mean() / 1e3, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }
}

impl Sample {
    /// What some runs gave, at least one.
    fn of_runs(runs: &[Measured]) -> Sample {
        let mut seen = runs[0].seen.clone();
        runs[1..].iter().for_each(|run| seen.merge(&run.seen));
        let throughputs = runs.iter().map(Measured::throughput_tps).collect();
        Sample {
            throughput_tps: middle(throughputs, |throughput| *throughput),
            commit_us: Percentiles::of(&seen.all_commits()),
            result_us: Percentiles::of(&seen.all_results()),
            committed: seen.committed_total() as f64,
            retries: runs.iter().map(|run| run.counts.retries).sum::<u64>() as f64,
        }
    }
}

/// A point that was measured in several rounds.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// The throughput is the middle one, so that one slow second of the machine does not count; the rest is of all
    /// rounds together.
    pub all: Sample,
    /// One after the other.
    pub each: Vec<Sample>,
}

impl Rounds {
    /// What some runs gave; `None` if there was none.
    pub fn of_runs(runs: &[Measured]) -> Option<Rounds> {
        let each: Vec<Sample> = runs.chunks(1).map(Sample::of_runs).collect();
        (!runs.is_empty()).then(|| Rounds { all: Sample::of_runs(runs), each })
    }

    /// A number of it, and its spread.
    pub fn number(&self, number: impl Fn(&Sample) -> f64) -> Repeated {
        Repeated::together(number(&self.all), self.each.iter().map(number).collect())
    }
}

impl From<Sample> for Rounds {
    fn from(sample: Sample) -> Rounds {
        Rounds { all: sample, each: vec![sample] }
    }
}
