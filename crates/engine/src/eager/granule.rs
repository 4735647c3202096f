//! Words for what is not a record: parts of indexes, unique values, idempotency keys.
//!
//! A scan must not be overtaken by rows that come into its range, or leave it, before its call ends
//! (phantoms). So it tells its control of its *granule*: the part of the index that its equal leading
//! columns name, whatever bounds the next column has besides.
//!
//! ```text
//! index orders(warehouse, district, order)         for order in orders[w, d, 10 ..]
//!
//! prefix of 0 columns     whole index              scans of a prefix of 2 read (w, d)
//! prefix of 1 column      (w)                      an insert of (w, d, 17) changes,
//! prefix of 2 columns     (w, d)                   if only 2 are scanned: (w, d)
//! ```
//!
//! Whoever inserts or deletes a row, or changes a column that an index holds, changes the granules
//! around the entry, of every prefix by which some known program scans (see [`crate::eager::plan`]). A
//! definition that brings a new prefix comes into force while no call runs. As long as a control lets
//! nobody change a granule, the set of rows in its range is still; the values of these rows are theirs.
//!
//! A unique value is claimed by whoever inserts, deletes or changes it, so that looking for it in the
//! index gives an answer that stays true. An idempotency key is claimed by its call.
//!
//! What a word holds is the control's business: a lock ([`Control::scans`] shared, [`Control::changes`]
//! shared among each other, [`Control::claims`] alone), or a count of changes. The words are in one
//! table, found by hash. Two granules that share a word only make calls wait that need not.
//!
//! [`Control::scans`]: crate::eager::Control::scans
//! [`Control::changes`]: crate::eager::Control::changes
//! [`Control::claims`]: crate::eager::Control::claims

use std::sync::atomic::AtomicU64;

/// Words, a power of two: 2 MiB, which the system provides as they are touched.
const WORDS: usize = 1 << 18;

/// The words of all granules.
pub struct Granules {
    words: Box<[AtomicU64]>,
}

/// A kind of granule in some table, or of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space(u64);

impl Space {
    /// The idempotency keys.
    pub const KEYS: Space = Space(1);

    /// Prefixes of an index; secondary indexes count from 1, the primary key is 0.
    pub fn prefixes(table: u32, index: u16) -> Space {
        Space(u64::from(table) << 20 | u64::from(index) << 3 | 2)
    }

    /// The values of a unique index, likewise.
    pub fn unique(table: u32, index: u16) -> Space {
        Space(u64::from(table) << 20 | u64::from(index) << 3 | 3)
    }
}

impl Default for Granules {
    fn default() -> Granules {
        Granules { words: (0..WORDS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Granules {
    /// The word of the granule that `bytes` name in a space.
    pub fn word(&self, space: Space, bytes: &[u8]) -> &AtomicU64 {
        let mut hash = mix(space.0, bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix(hash, u64::from_be_bytes(word));
        }
        &self.words[hash as usize & (WORDS - 1)]
    }
}

impl Granules {
    /// The place of a granule's word among all, for controls that keep what they know elsewhere.
    pub fn place(&self, word: &AtomicU64) -> usize {
        (std::ptr::from_ref(word).addr() - self.words.as_ptr().addr()) / size_of::<AtomicU64>()
    }
}

/// One round of multiply-fold mixing (the core of wyhash).
fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left ^ 0x9e37_79b9_7f4a_7c15) * u128::from(right ^ 0xd6e8_feb8_6659_fd93);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_spread_over_the_words() {
        let granules = Granules::default();
        let word = |space, bytes: &[u8]| std::ptr::from_ref(granules.word(space, bytes));
        assert_eq!(word(Space::KEYS, b"k"), word(Space::KEYS, b"k"));
        assert_ne!(word(Space::KEYS, b"k"), word(Space::KEYS, b"k\0"));
        assert_ne!(word(Space::prefixes(1, 0), b""), word(Space::prefixes(2, 0), b""));
        let mut seen: Vec<_> = (0..1000u64).map(|n| word(Space::prefixes(1, 1), &n.to_be_bytes())).collect();
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 990, "{} of 1000 differ", seen.len());
    }
}
