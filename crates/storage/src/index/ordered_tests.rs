//! The ordered index against `BTreeMap`, alone and with readers beside the writer.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crossbeam_epoch as epoch;
use proptest::prelude::*;

use super::{Direction, LongKey, OrderedIndex, Pointer};

fn pointer(n: u64) -> Pointer {
    Pointer::new(n + 1).expect("small numbers are addresses")
}

/// What a script does with key number `n`.
#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    Remove(u16),
    /// Inserts this many keys from the first on, ascending.
    InsertRun(u16, u8),
    /// Removes this many keys from the first on.
    RemoveRun(u16, u8),
    Get(u16),
    Scan(Bound<u16>, Bound<u16>, bool, u8),
}

fn any_bound(keys: u16) -> impl Strategy<Value = Bound<u16>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        2 => (0..keys).prop_map(Bound::Included),
        2 => (0..keys).prop_map(Bound::Excluded),
    ]
}

fn any_script() -> impl Strategy<Value = Vec<Step>> {
    let (keys, steps, most) = if cfg!(miri) { (200_u16, 15, 40) } else { (1500, 200, u8::MAX) };
    let step = prop_oneof![
        4 => (0..keys).prop_map(Step::Insert),
        3 => (0..keys).prop_map(Step::Remove),
        3 => (0..keys, 0..=most).prop_map(|(n, run)| Step::InsertRun(n, run)),
        2 => (0..keys, 0..=most).prop_map(|(n, run)| Step::RemoveRun(n, run)),
        1 => (0..keys).prop_map(Step::Get),
        2 => (any_bound(keys), any_bound(keys), any::<bool>(), 1..40_u8)
            .prop_map(|(lower, upper, descending, limit)| Step::Scan(lower, upper, descending, limit)),
    ];
    prop::collection::vec(step, 1..steps)
}

/// The entries of `model` between the bounds; unlike `BTreeMap::range`, of crossed bounds too.
fn expected(model: &BTreeMap<u16, Pointer>, lower: Bound<u16>, upper: Bound<u16>) -> Vec<(u16, Pointer)> {
    let within = |n: &u16| {
        let above = match lower {
            Bound::Included(low) => *n >= low,
            Bound::Excluded(low) => *n > low,
            Bound::Unbounded => true,
        };
        let below = match upper {
            Bound::Included(high) => *n <= high,
            Bound::Excluded(high) => *n < high,
            Bound::Unbounded => true,
        };
        above && below
    };
    model.iter().filter(|(n, _)| within(n)).map(|(n, p)| (*n, *p)).collect()
}

/// Defines a test that runs a script on an index of one key type and on a model. `$key` is the key of a
/// number, in the order of numbers, and `$number` its inverse.
macro_rules! agrees_with_model {
    ($name:ident, $type:ty, $key:expr, $number:expr) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 96 }))]
            #[test]
            fn $name(script in any_script()) {
                let key = $key;
                let index = OrderedIndex::<$type>::new();
                let mut model = BTreeMap::new();
                for step in script {
                    let guard = &epoch::pin();
                    match step {
                        Step::Insert(n) => check_insert(&mut model, n, |p| index.insert(&key(n), p, guard))?,
                        Step::InsertRun(n, run) => {
                            for n in n..(n + u16::from(run)) {
                                check_insert(&mut model, n, |p| index.insert(&key(n), p, guard))?;
                            }
                        }
                        Step::Remove(n) => prop_assert_eq!(index.remove(&key(n), guard), model.remove(&n)),
                        Step::RemoveRun(n, run) => {
                            for n in n..(n + u16::from(run)) {
                                prop_assert_eq!(index.remove(&key(n), guard), model.remove(&n));
                            }
                        }
                        Step::Get(n) => prop_assert_eq!(index.get(&key(n), guard), model.get(&n).copied()),
                        Step::Scan(lower, upper, descending, limit) => {
                            let mut wanted = expected(&model, lower, upper);
                            if descending {
                                wanted.reverse();
                            }
                            let direction = if descending { Direction::Descending } else { Direction::Ascending };
                            let cursor = index.scan(lower.map(key), upper.map(key), direction, guard);
                            let found: Vec<_> = cursor.map(|(key, p)| ($number(key), p)).collect();
                            prop_assert_eq!(&found, &wanted);

                            let mut cursor = index.scan(lower.map(key), upper.map(key), direction, guard);
                            let mut found = Vec::new();
                            loop {
                                let batch = cursor.next_batch(usize::from(limit));
                                prop_assert!(batch.len() <= usize::from(limit));
                                if batch.is_empty() {
                                    break;
                                }
                                found.extend(batch.iter().map(|entry| ($number(entry.key()), entry.pointer())));
                            }
                            prop_assert_eq!(&found, &wanted);
                        }
                    }
                    prop_assert_eq!(index.len(), model.len());
                }
                let guard = &epoch::pin();
                for (n, p) in &model {
                    prop_assert_eq!(index.get(&key(*n), guard), Some(*p));
                }
                for n in model.keys() {
                    prop_assert!(index.remove(&key(*n), guard).is_some());
                }
                let mut empty = index.scan(Bound::Unbounded, Bound::Unbounded, Direction::Ascending, guard);
                prop_assert!(empty.next().is_none());
                prop_assert!(index.is_empty());
            }
        }
    };
}

fn check_insert(
    model: &mut BTreeMap<u16, Pointer>,
    n: u16,
    insert: impl FnOnce(Pointer) -> Result<(), Pointer>,
) -> Result<(), TestCaseError> {
    let new = pointer(model.len() as u64 * 8);
    let wanted = match model.get(&n) {
        Some(old) => Err(*old),
        None => Ok(()),
    };
    prop_assert_eq!(insert(new), wanted);
    model.entry(n).or_insert(new);
    Ok(())
}

/// A key of `W` words, told apart by every word: the number's high byte in the first, its low in the last.
fn words<const W: usize>(n: u16) -> [u64; W] {
    if W == 1 {
        return [u64::from(n) << 48; W];
    }
    let mut words = [7; W];
    words[0] = u64::from(n >> 8);
    words[W - 1] = u64::from(n & 0xff) << 56;
    words
}

fn word_number<const W: usize>(words: [u64; W]) -> u16 {
    if W == 1 {
        return (words[0] >> 48) as u16;
    }
    (words[0] << 8) as u16 | (words[W - 1] >> 56) as u16
}

macro_rules! words_agree_with_model {
    ($($name:ident $width:literal),*) => {$(
        agrees_with_model!($name, [u64; $width], words::<$width>, word_number::<$width>);
    )*};
}

words_agree_with_model!(
    one_word_agrees_with_a_model 1, two_words_agree_with_a_model 2, three_words_agree_with_a_model 3,
    four_words_agree_with_a_model 4, five_words_agree_with_a_model 5, six_words_agree_with_a_model 6,
    seven_words_agree_with_a_model 7, eight_words_agree_with_a_model 8
);

/// Long keys in order: many with the same first 24 bytes, some that are prefixes of others, one empty.
static LONG_KEYS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut keys: Vec<Vec<u8>> = (0..if cfg!(miri) { 300_usize } else { 2000 })
        .map(|n| {
            let mut key =
                if n % 3 == 0 { Vec::new() } else { b"the first twenty-four bytes and more ".to_vec() };
            key.extend((n as u16).to_be_bytes());
            key.extend(std::iter::repeat_n(0, n % 5));
            key
        })
        .chain([Vec::new()])
        .collect();
    keys.sort();
    keys
});

agrees_with_model!(
    long_keys_agree_with_a_model,
    LongKey<'static>,
    |n: u16| LongKey::new(&LONG_KEYS[usize::from(n)]),
    |key: LongKey<'_>| LONG_KEYS.binary_search_by(|k| k[..].cmp(key.bytes())).expect("a known key") as u16
);

/// Goal: however the writer splits and unlinks around them, keys that stay are always found by `get`, and
/// are returned exactly once and in order by scans in both directions.
#[test]
fn keys_that_stay_are_always_found() {
    let (keys, rounds, period) = if cfg!(miri) { (60_u64, 1, 20) } else { (20_000, 12, 1000) };
    let stays = |n: u64| n.is_multiple_of(7) && n % period > period / 2;
    let index = OrderedIndex::<[u64; 2]>::new();
    let key = |n: u64| [n / 100, n % 100];
    for n in (0..keys).filter(|n| stays(*n)) {
        index.insert(&key(n), pointer(n), &epoch::pin()).expect("a new key");
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (index, done) = (&index, &done);
            scope.spawn(move || {
                let mut n = reader;
                while !done.load(Relaxed) {
                    let guard = &epoch::pin();
                    for _ in 0..if cfg!(miri) { 10 } else { 2000 } {
                        n = (n + 7919) % keys;
                        let found = index.get(&key(n), guard);
                        assert!(found.is_none_or(|found| found == pointer(n)));
                        assert!(found.is_some() || !stays(n), "{n} is gone");
                    }
                    let (low, high) = (n.min(keys / 2), keys - n % 500);
                    for direction in [Direction::Ascending, Direction::Descending] {
                        let cursor = index.scan(
                            Bound::Included(key(low)),
                            Bound::Excluded(key(high)),
                            direction,
                            guard,
                        );
                        let mut found: Vec<u64> = cursor
                            .map(|(key, found)| {
                                let n = key[0] * 100 + key[1];
                                assert_eq!(found, pointer(n));
                                n
                            })
                            .collect();
                        if direction == Direction::Descending {
                            found.reverse();
                        }
                        assert!(found.is_sorted_by(|a, b| a < b));
                        let stayed: Vec<u64> = found.into_iter().filter(|n| stays(*n)).collect();
                        assert_eq!(stayed, (low..high).filter(|n| stays(*n)).collect::<Vec<_>>());
                    }
                }
            });
        }
        for round in 0..rounds {
            let spread = [1, 4_999, 10_007][round % 3];
            for i in 0..keys {
                let n = i * spread % keys;
                if !stays(n) {
                    let _ = index.insert(&key(n), pointer(n), &epoch::pin());
                }
            }
            for i in 0..keys {
                let n = i * spread % keys;
                if !stays(n) {
                    assert_eq!(index.remove(&key(n), &epoch::pin()), Some(pointer(n)));
                }
            }
        }
        done.store(true, Relaxed);
    });
}

/// Goal: readers of long keys never follow the address of a freed block, also while separators made from
/// removed keys are still in the tree.
#[test]
fn long_keys_are_read_while_they_come_and_go() {
    let (keys, rounds) = if cfg!(miri) { (40_u32, 1) } else { (3_000, 20) };
    let index = OrderedIndex::<LongKey<'static>>::new();
    let bytes = |n: u32| format!("a prefix that is longer than twenty-four bytes {n:08}").into_bytes();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut n = 1;
                while !done.load(Relaxed) {
                    let guard = &epoch::pin();
                    for _ in 0..if cfg!(miri) { 10 } else { 300 } {
                        n = (n * 31 + 17) % keys;
                        let found = index.get(&LongKey::new(&bytes(n)), guard);
                        assert!(found.is_none_or(|found| found == pointer(n.into())));
                    }
                    let all = index.scan(Bound::Unbounded, Bound::Unbounded, Direction::Descending, guard);
                    let found: Vec<_> = all.map(|(key, _)| key.bytes()).collect();
                    assert!(found.is_sorted_by(|a, b| a > b));
                }
            });
        }
        for round in 0..rounds {
            for i in 0..keys {
                let n = if round % 2 == 0 { i } else { i * 7 % keys };
                index.insert(&LongKey::new(&bytes(n)), pointer(n.into()), &epoch::pin()).expect("a new key");
            }
            for n in 0..keys {
                let removed = index.remove(&LongKey::new(&bytes(n)), &epoch::pin());
                assert_eq!(removed, Some(pointer(n.into())));
            }
        }
        done.store(true, Relaxed);
    });
}
