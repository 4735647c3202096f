//! What clients were told.
//!
//! Every call of `work` adds one to a counter and returns it, so that the results say in which order calls came. A
//! call that began after another one had been answered must have come behind it, and a reader must see it: strict
//! serializability (Herlihy and Wing, "Linearizability", 1990), with nothing left to search.

use std::collections::BTreeMap;

/// The programs of the simulation, one definition each.
pub(super) const DEFINITIONS: [&str; 5] = [
    "table counter { id: int, value: bigint, primary key (id) }",
    "table done { at: bigint, op: bigint, pad: text, primary key (at) }",
    "procedure begin() { insert counter { id: 0, value: 0 } }",
    "procedure work(op: bigint, pad: text) -> bigint {
    counter[0].value += 1
    insert done { at: counter[0].value, op: op, pad: pad }
    return counter[0].value
}",
    "procedure see() -> bigint { return counter[0].value }",
];

/// What clients were told.
#[derive(Default)]
pub(super) struct Ledger {
    /// The newest value of the counter that anybody was told.
    told: i64,
    /// The value that each acknowledged call returned.
    acknowledged: BTreeMap<i64, i64>,
    /// Calls that were handed in, whatever became of them.
    handed_in: i64,
    /// What clients were told may be lost with a leader: replication is asynchronous.
    pub(super) forgives: bool,
}

/// When something began, for what it must see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(i64);

impl Ledger {
    /// A number for a call that nobody has had.
    pub(super) fn next_op(&mut self) -> i64 {
        self.handed_in += 1;
        self.handed_in
    }

    /// Somebody begins.
    pub(super) fn begin(&self) -> Begun {
        Begun(self.told)
    }

    /// A call has returned.
    pub(super) fn returned(&mut self, op: i64, begun: Begun, value: i64) -> Result<(), String> {
        if self.forgives {
            return Ok(());
        }
        if let Some(before) = self.acknowledged.insert(op, value).filter(|before| *before != value) {
            return Err(format!("call {op} has returned {before}, and now {value}"));
        }
        if value <= begun.0 {
            return Err(format!("call {op} has place {value}, and began when {} had been told", begun.0));
        }
        self.told = self.told.max(value);
        Ok(())
    }

    /// A reader has read.
    pub(super) fn read(&mut self, begun: Begun, value: i64) -> Result<(), String> {
        if self.forgives {
            return Ok(());
        }
        if value < begun.0 {
            return Err(format!("a reader has seen {value}, and began when {} had been told", begun.0));
        }
        self.told = self.told.max(value);
        Ok(())
    }

    /// What is there in the end: places, and the calls that have them.
    pub(super) fn check(&self, there: &[(i64, i64)]) -> Result<(), String> {
        let mut done = BTreeMap::new();
        for (at, op) in there {
            if let Some(other) = done.insert(*op, *at) {
                return Err(format!("call {op} was run twice, at {other} and at {at}"));
            }
        }
        for (op, value) in &self.acknowledged {
            match done.get(op) {
                Some(found) if found == value => {}
                found => return Err(format!("call {op} was told {value}, and is there as {found:?}")),
            }
        }
        let mut places: Vec<i64> = done.values().copied().collect();
        places.sort_unstable();
        if places.iter().zip(1..).any(|(found, expected)| *found != expected) {
            return Err("the calls that are there do not have the places from one on".into());
        }
        match done.keys().find(|op| !(1..=self.handed_in).contains(*op)) {
            Some(op) => Err(format!("call {op} is there, and nobody has handed it in")),
            None => Ok(()),
        }
    }

    /// How many calls were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.len() as u64
    }
}
