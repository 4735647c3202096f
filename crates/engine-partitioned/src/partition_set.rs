//! A set of partitions.

/// So many partitions there can be.
pub const PARTITIONS_MAX: usize = 64;

/// A set of partitions: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionSet(u64);

impl PartitionSet {
    /// None.
    pub const EMPTY: PartitionSet = PartitionSet(0);

    /// The first `count`.
    pub fn first(count: usize) -> PartitionSet {
        PartitionSet(if count >= PARTITIONS_MAX { u64::MAX } else { (1 << count) - 1 })
    }

    /// One alone.
    pub fn of(partition: usize) -> PartitionSet {
        PartitionSet(1 << partition)
    }

    /// Adds one.
    #[inline]
    pub fn insert(&mut self, partition: usize) {
        self.0 |= 1 << partition;
    }

    /// Whether it is in.
    #[inline]
    pub fn contains(self, partition: usize) -> bool {
        self.0 >> partition & 1 == 1
    }

    /// How many there are.
    #[inline]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The only one, if there is one.
    #[inline]
    pub fn single(self) -> Option<usize> {
        self.0.is_power_of_two().then(|| self.0.trailing_zeros() as usize)
    }

    /// All of them, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let partition = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                partition
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in() {
        let mut set = PartitionSet::of(5);
        assert_eq!((set.single(), set.len()), (Some(5), 1));
        set.insert(63);
        assert_eq!((set.iter().collect::<Vec<_>>(), set.single()), (vec![5, 63], None));
        assert!(set.contains(63) && !set.contains(6) && !set.is_empty());
        assert_eq!((PartitionSet::first(64).len(), PartitionSet::first(3).len()), (64, 3));
    }
}
