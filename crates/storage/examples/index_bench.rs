//! What the indexes cost, in nanoseconds per operation, on one thread.
//!
//! `cargo run --release -p fabius-storage --example index_bench [ENTRIES]`
//!
//! Each line is the best of three runs. Lookups are of random keys in random order and follow the pointer
//! to the record in the case of the hash index, which has to compare the key there.

use std::hint::black_box;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::time::Instant;

use crossbeam_epoch as epoch;
use fabius_storage::index::{Direction, HashIndex, LongKey, OrderedIndex, Pointer};

const RUNS: usize = 3;

struct Record {
    key: u64,
}

/// A bijection that looks random (the finaliser of SplitMix64).
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn key_of(pointer: Pointer) -> u64 {
    // SAFETY: all pointers in these indexes are to records that live until the end of `main`.
    unsafe { &*pointer.cast::<Record>() }.key
}

/// Prints the time `work` takes per operation; `work` returns the number of operations.
fn measure(name: &str, mut work: impl FnMut() -> usize) {
    let run = |_| {
        let start = Instant::now();
        let operations = work();
        start.elapsed().as_nanos() as f64 / operations as f64
    };
    let best = (0..RUNS).map(run).fold(f64::INFINITY, f64::min);
    println!("{name:<52}{best:8.1} ns");
}

fn main() {
    let entries: u64 = std::env::args().nth(1).map_or(1_000_000, |n| n.parse().expect("a number of entries"));
    let records: Vec<Record> = (0..entries).map(|n| Record { key: mix(n) }).collect();
    let pointers: Vec<Pointer> = records.iter().map(|record| Pointer::from_raw(record)).collect();
    // Visits every record once, without an order the hardware could guess.
    let order: Vec<usize> = {
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by_key(|n| mix(*n as u64 ^ 0x5555));
        order
    };
    println!("{entries} entries");
    hash(&records, &pointers, &order);
    ordered_random(&records, &pointers, &order);
    ordered_ascending(&pointers, &order);
    ordered_runs(&pointers);
    ordered_queue(&pointers);
    ordered_wide(&pointers, &order);
    ordered_long(&pointers, &order);
}

fn hash(records: &[Record], pointers: &[Pointer], order: &[usize]) {
    let guard = &epoch::pin();
    let mut index = HashIndex::new();
    let hash = |n: usize| mix(records[n].key);
    let hash_of = |pointer| mix(key_of(pointer));
    measure("hash: insert, growing", || {
        index = HashIndex::new();
        (0..records.len()).for_each(|n| index.insert(hash(n), pointers[n], hash_of, guard));
        records.len()
    });
    measure("hash: insert, reserved", || {
        index = HashIndex::new();
        index.reserve(records.len(), hash_of, guard);
        (0..records.len()).for_each(|n| index.insert(hash(n), pointers[n], hash_of, guard));
        records.len()
    });
    for _ in 0..RUNS {
        index = HashIndex::new();
        (0..records.len()).for_each(|n| index.insert(hash(n), pointers[n], hash_of, guard));
        let start = Instant::now();
        index.reserve(index.slots(guard), hash_of, guard);
        let each = start.elapsed().as_nanos() as f64 / records.len() as f64;
        println!("{:<52}{each:8.1} ns", "hash: grow once, per entry");
    }
    index = HashIndex::new();
    (0..records.len()).for_each(|n| index.insert(hash(n), pointers[n], hash_of, guard));
    measure("hash: get, key compared in the record", || {
        for &n in order {
            let key = mix(n as u64);
            black_box(index.get(mix(key), |found| key_of(found) == key, guard).expect("present"));
        }
        order.len()
    });
    measure("hash: get of absent keys", || {
        for &n in order {
            let key = mix(n as u64) ^ 1 << 60;
            black_box(index.get(mix(key), |found| key_of(found) == key, guard));
        }
        order.len()
    });
    measure("hash: get, eight prefetched together", || {
        for group in order.chunks(8) {
            let keys = |i: usize| mix(group[i] as u64);
            (0..group.len()).for_each(|i| index.prefetch(mix(keys(i)), guard));
            for i in 0..group.len() {
                let key = keys(i);
                black_box(index.get(mix(key), |found| key_of(found) == key, guard).expect("present"));
            }
        }
        order.len()
    });
    measure("hash: insert and remove", || {
        for &n in order {
            assert!(index.remove(mix(mix(n as u64)), pointers[n], guard));
            index.insert(mix(mix(n as u64)), pointers[n], hash_of, guard);
        }
        order.len()
    });
}

fn ordered_random(records: &[Record], pointers: &[Pointer], order: &[usize]) {
    let guard = &epoch::pin();
    let mut index = OrderedIndex::<[u64; 1]>::new();
    measure("ordered u64: insert, random", || {
        index = OrderedIndex::new();
        for (record, pointer) in records.iter().zip(pointers) {
            index.insert(&[record.key], *pointer, guard).expect("new");
        }
        records.len()
    });
    measure("ordered u64: get, random", || {
        for &n in order {
            black_box(index.get(&[mix(n as u64)], guard).expect("present"));
        }
        order.len()
    });
    measure("ordered u64: scan of 100 from random, per entry", || {
        let starts = order.len() / 100;
        let mut seen = 0;
        for &n in &order[..starts] {
            let from = Included([mix(n as u64)]);
            for (_, pointer) in index.scan(from, Unbounded, Direction::Ascending, guard).take(100) {
                black_box(pointer);
                seen += 1;
            }
        }
        seen
    });
}

fn ordered_ascending(pointers: &[Pointer], order: &[usize]) {
    let guard = &epoch::pin();
    let key = |n: usize| [n as u64 / 1000, n as u64 % 1000];
    let mut index = OrderedIndex::<[u64; 2]>::new();
    measure("ordered 2 words: insert, ascending", || {
        index = OrderedIndex::new();
        (0..pointers.len()).for_each(|n| index.insert(&key(n), pointers[n], guard).expect("new"));
        pointers.len()
    });
    measure("ordered 2 words: get, random", || {
        for &n in order {
            black_box(index.get(&key(n), guard).expect("present"));
        }
        order.len()
    });
    for (direction, name) in [(Direction::Ascending, "ascending"), (Direction::Descending, "descending")] {
        measure(&format!("ordered 2 words: scan of 100, {name}, per entry"), || {
            let mut seen = 0;
            for &n in order.iter().take(order.len() / 100).filter(|n| **n >= 100) {
                let (lower, upper) = (Excluded(key(n - 100)), Included(key(n)));
                for (_, pointer) in index.scan(lower, upper, direction, guard) {
                    black_box(pointer);
                    seen += 1;
                }
            }
            seen
        });
        measure(&format!("ordered 2 words: first entry, {name}, per scan"), || {
            for &n in order {
                let (lower, upper) = (Included(key(n)), Included(key(n)));
                black_box(index.scan(lower, upper, direction, guard).next());
            }
            order.len()
        });
    }
    measure("ordered 2 words: scan of all, per entry", || {
        let all = index.scan(Unbounded, Unbounded, Direction::Ascending, guard);
        all.inspect(|entry| _ = black_box(entry)).count()
    });
}

/// Order lines: runs of ten ascending keys, each behind the last of one of a hundred districts.
fn ordered_runs(pointers: &[Pointer]) {
    let guard = &epoch::pin();
    let mut index = OrderedIndex::<[u64; 2]>::new();
    measure("ordered 2 words: insert, runs of 10 in 100 places", || {
        index = OrderedIndex::new();
        for (n, pointer) in pointers.iter().enumerate() {
            let (order, line) = (n as u64 / 10, n as u64 % 10);
            index.insert(&[order % 100, (order / 100) << 8 | line], *pointer, guard).expect("new");
        }
        pointers.len()
    });
}

fn ordered_queue(pointers: &[Pointer]) {
    let guard = &epoch::pin();
    let index = OrderedIndex::<[u64; 2]>::new();
    measure("ordered 2 words: queue, push, first and pop", || {
        for (n, pointer) in pointers.iter().enumerate() {
            index.insert(&[1, n as u64], *pointer, guard).expect("new");
            if n >= 1000 {
                let (key, _) =
                    index.scan(Unbounded, Unbounded, Direction::Ascending, guard).next().expect("not empty");
                index.remove(&key, guard).expect("present");
            }
        }
        while let Some((key, _)) = index.scan(Unbounded, Unbounded, Direction::Ascending, guard).next() {
            index.remove(&key, guard);
        }
        pointers.len()
    });
}

fn ordered_wide(pointers: &[Pointer], order: &[usize]) {
    let guard = &epoch::pin();
    let key = |n: usize| [1, 2, 3, n as u64 >> 10, 5, mix(n as u64)];
    let mut index = OrderedIndex::<[u64; 6]>::new();
    measure("ordered 6 words: insert, nearly ascending", || {
        index = OrderedIndex::new();
        (0..pointers.len()).for_each(|n| index.insert(&key(n), pointers[n], guard).expect("new"));
        pointers.len()
    });
    measure("ordered 6 words: get, random", || {
        for &n in order {
            black_box(index.get(&key(n), guard).expect("present"));
        }
        order.len()
    });
}

fn ordered_long(pointers: &[Pointer], order: &[usize]) {
    let guard = &epoch::pin();
    let write = |bytes: &mut [u8; 40], n: usize| bytes[16..24].copy_from_slice(&mix(n as u64).to_be_bytes());
    let mut bytes = [b'k'; 40];
    let index = OrderedIndex::<LongKey<'static>>::new();
    let start = Instant::now();
    for (n, pointer) in pointers.iter().enumerate() {
        write(&mut bytes, n);
        index.insert(&LongKey::new(&bytes), *pointer, guard).expect("new");
    }
    let each = start.elapsed().as_nanos() as f64 / pointers.len() as f64;
    println!("{:<52}{each:8.1} ns", "ordered 40 bytes: insert, random");
    measure("ordered 40 bytes: get, random", || {
        for &n in order {
            write(&mut bytes, n);
            black_box(index.get(&LongKey::new(&bytes), guard).expect("present"));
        }
        order.len()
    });
}
