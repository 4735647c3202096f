//! The hash index against `HashMap`, alone and with readers beside the writer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crossbeam_epoch as epoch;
use proptest::prelude::*;

use super::{HashIndex, Pointer};

/// Keys are below this, and scripts not much longer.
const KEYS: u64 = if cfg!(miri) { 100 } else { 2000 };

fn pointer(n: u64) -> Pointer {
    Pointer::new(n + 1).expect("small numbers are addresses")
}

fn number(pointer: Pointer) -> u64 {
    pointer.address() - 1
}

/// A hash that leaves entries to be told apart by tag (`n` below 64) or only by `is_match`, in few buckets.
fn poor_hash(n: u64) -> u64 {
    (n % 64) << 48 | (n % 5)
}

fn good_hash(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn agrees(script: Vec<(bool, u64)>, hash: fn(u64) -> u64, reserve: usize) -> Result<(), TestCaseError> {
    let index = HashIndex::new();
    let guard = &epoch::pin();
    index.reserve(reserve, |p| hash(number(p)), guard);
    let mut model = HashMap::new();
    for (insert, n) in script {
        let found = index.get(hash(n), |p| p == pointer(n), guard);
        prop_assert_eq!(found, model.get(&n).copied());
        if !insert {
            prop_assert_eq!(index.remove(hash(n), pointer(n), guard), model.remove(&n).is_some());
        } else if found.is_none() {
            index.insert(hash(n), pointer(n), |p| hash(number(p)), guard);
            model.insert(n, pointer(n));
        }
        prop_assert_eq!(index.len(), model.len());
    }
    for n in 0..KEYS {
        prop_assert_eq!(index.get(hash(n), |p| p == pointer(n), guard), model.get(&n).copied());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

    #[test]
    fn agrees_with_a_model(
        script in prop::collection::vec((prop::bool::weighted(0.6), 0..KEYS), 1..KEYS as usize * 3 / 2),
        reserve in 0..500_usize,
    ) {
        agrees(script, good_hash, reserve)?;
    }

    #[test]
    fn agrees_with_a_model_when_hashes_collide(
        script in prop::collection::vec((prop::bool::weighted(0.6), 0..KEYS / 10), 1..KEYS as usize / 2),
    ) {
        agrees(script, poor_hash, 0)?;
    }
}

/// Goal: entries coming and going forever do not fill the table with deleted slots.
#[test]
fn churn_does_not_slow_down_misses() {
    let index = HashIndex::new();
    let guard = &epoch::pin();
    let hash_of = |p| good_hash(number(p));
    let turns = if cfg!(miri) { 500 } else { 100_000 };
    for n in 0..turns {
        index.insert(good_hash(n), pointer(n), hash_of, guard);
        if let Some(old) = n.checked_sub(40) {
            assert!(index.remove(good_hash(old), pointer(old), guard));
        }
    }
    assert_eq!(index.len(), 40);
    assert!(index.slots(guard) <= 256, "{} slots for 40 entries", index.slots(guard));
}

/// Goal: however the table grows and entries around them come and go, entries that stay are always found.
#[test]
fn entries_that_stay_are_always_found() {
    let (keys, rounds) = if cfg!(miri) { (200_u64, 2) } else { (50_000, 6) };
    let hash_of = |p| good_hash(number(p));
    for _ in 0..rounds {
        let index = HashIndex::new();
        for n in (0..keys).step_by(10) {
            index.insert(good_hash(n), pointer(n), hash_of, &epoch::pin());
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for reader in 0..2 {
                let (index, done) = (&index, &done);
                scope.spawn(move || {
                    let mut n = reader;
                    while !done.load(Relaxed) {
                        let guard = &epoch::pin();
                        for _ in 0..100 {
                            n = (n + 7919) % keys;
                            let found = index.get(good_hash(n), |p| p == pointer(n), guard);
                            assert!(found.is_some() || n % 10 != 0, "{n} is gone");
                        }
                    }
                });
            }
            for n in (0..keys).filter(|n| n % 10 != 0) {
                index.insert(good_hash(n), pointer(n), hash_of, &epoch::pin());
            }
            for n in (0..keys).filter(|n| n % 10 != 0) {
                assert!(index.remove(good_hash(n), pointer(n), &epoch::pin()));
            }
            done.store(true, Relaxed);
        });
    }
}
