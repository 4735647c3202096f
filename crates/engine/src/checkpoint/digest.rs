//! Digests of a state: a number for each of its parts, by which replicas see whether they have the same.

use twox_hash::XxHash3_64;

/// The digest of definitions, of keys, or of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// A table's name behind `table`; `definitions`; `keys`.
    pub part: String,
    /// XXH3-64 of each item as a checkpoint has it, added up: the order in which a table is walked does not count.
    pub value: u64,
}

impl Digest {
    /// Of a part in which there is nothing yet.
    pub(super) fn of(part: String) -> Digest {
        Digest { part, value: 0 }
    }

    /// Counts an item in.
    pub(super) fn add(&mut self, item: &[u8]) {
        self.value = self.value.wrapping_add(XxHash3_64::oneshot(item));
    }

    /// Counts in all that others, of the same part, have counted.
    pub(super) fn merge(&mut self, other: &Digest) {
        self.value = self.value.wrapping_add(other.value);
    }
}

/// The names of the parts in which two states differ, or that only one of them has.
pub fn differences<'d>(ours: &'d [Digest], theirs: &'d [Digest]) -> Vec<&'d str> {
    let missing = |of: &'d [Digest], among: &'d [Digest]| {
        of.iter().filter(move |digest| !among.contains(digest)).map(|digest| digest.part.as_str())
    };
    let mut parts: Vec<&str> = missing(ours, theirs).chain(missing(theirs, ours)).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(part: &str, items: &[&[u8]]) -> Digest {
        let mut digest = Digest::of(part.into());
        items.iter().for_each(|item| digest.add(item));
        digest
    }

    /// Goal: the order of items does not count, and everything else does; what differs is named.
    #[test]
    fn what_differs_is_named() {
        let ours = [digest("table a", &[b"1", b"2"]), digest("table b", &[b"1"]), digest("keys", &[])];
        let same = [digest("keys", &[]), digest("table a", &[b"2", b"1"]), digest("table b", &[b"1"])];
        assert!(differences(&ours, &same).is_empty());
        let other =
            [digest("table a", &[b"1", b"2", b"2"]), digest("table b", &[b"1"]), digest("table c", &[])];
        assert_eq!(differences(&ours, &other), ["keys", "table a", "table c"]);
    }

    /// Goal: the numbers are the same in every build: nodes of different ones compare them.
    #[test]
    fn the_numbers_stay() {
        assert_eq!(digest("table a", &[b"fabius"]).value, XXH3_OF_FABIUS);
    }

    const XXH3_OF_FABIUS: u64 = 0x4102_6467_f48d_00c9;
}
