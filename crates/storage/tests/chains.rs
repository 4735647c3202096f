//! Goal: readers at their seqs see what was written up to there, while the writer goes on, fills
//! stickies, and folds and frees behind them.
//!
//! Small under Miri, where each seed is another schedule.

use crossbeam_epoch as epoch;
use fabius_storage::chain::{self, Cell};
use fabius_storage::fold::{
    Retired, fold, fold_with_others, retire_record, shorten, shorten_alike, shorten_at,
};
use fabius_storage::snapshot::Snapshots;
use fabius_storage::version::{Contents, renew};
use fabius_storage::{Record, Version};
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, DeltaOperator, Deltas, Seq};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const SEQS: u64 = if cfg!(miri) { 40 } else { 20_000 };
const READERS: usize = if cfg!(miri) { 1 } else { 2 };
const TYPES: [DataType; 3] = [DataType::BigInt, DataType::TEXT, DataType::BigInt];
const NUMBER: ColumnId = ColumnId(0);
const NAME: ColumnId = ColumnId(1);
const SUM: ColumnId = ColumnId(2);

/// The row at a seq.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    number: i64,
    name: String,
    sum: i64,
}

/// What the call at a seq does: a whole row, a delta, a number and a sticky name, or a name.
fn row_after(seq: u64, before: &Row) -> Row {
    let name = || if seq.is_multiple_of(3) { format!("s{seq}") } else { format!("a name on the heap {seq}") };
    match seq % 8 {
        1 => Row { number: seq as i64, name: name(), sum: 0 },
        2 | 3 | 6 => Row { sum: before.sum + seq as i64, ..before.clone() },
        4 | 7 => Row { number: -(seq as i64), name: name(), ..before.clone() },
        _ => Row { name: name(), ..before.clone() },
    }
}

fn write(record: &Record, seq: u64, row: &Row) {
    let (number, name, sum) = (Datum::Int(row.number), Datum::Text(&row.name), Datum::Int(row.sum));
    let contents = Contents {
        seq: Seq(seq),
        values_mask: ColumnMask::EMPTY,
        values: &[],
        deltas: Deltas::default(),
        sticky: ColumnMask::EMPTY,
        deferred: std::ptr::null_mut(),
    };
    let mask = |columns: &[ColumnId]| columns.iter().copied().collect::<ColumnMask>();
    match seq % 8 {
        1 => {
            let (values_mask, values) = (mask(&[NUMBER, NAME, SUM]), &[number, name, sum]);
            record.push(Version::create(&Contents { values_mask, values, ..contents }, &TYPES));
        }
        2 | 3 | 6 => {
            let operands = [Datum::Int(seq as i64)];
            let deltas = Deltas { operations: &[(SUM, DeltaOperator::Add)], operands: &operands };
            record.push(Version::create(&Contents { deltas, ..contents }, &TYPES));
        }
        4 | 7 => {
            let (values_mask, values, sticky) = (mask(&[NUMBER]), &[number], mask(&[NAME]));
            let deferred = std::ptr::without_provenance_mut(8);
            let contents = Contents { values_mask, values, sticky, deferred, ..contents };
            let version = Version::create(&contents, &TYPES);
            record.push(version);
            // SAFETY: just pushed; nobody but this thread unlinks.
            let version = unsafe { version.as_ref() };
            assert!(version.fill(NAME, name, TYPES[1]).is_none());
            version.settle();
        }
        _ => {
            let (values_mask, values) = (mask(&[NAME]), &[name]);
            record.push(Version::create(&Contents { values_mask, values, ..contents }, &TYPES));
        }
    }
}

/// # Safety
/// `version` is readable: an epoch is pinned.
unsafe fn read(version: *const Version) -> Row {
    let cell = |column: ColumnId| {
        // SAFETY: the epoch is pinned, as whoever calls this sees to.
        match unsafe { chain::read(version, column, TYPES[column.0 as usize], std::ptr::null_mut()) } {
            Cell::Value(datum) => datum,
            other => panic!("{other:?}"),
        }
    };
    let Datum::Text(name) = cell(NAME) else { panic!("a name") };
    Row { number: cell(NUMBER).int(), name: name.into(), sum: cell(SUM).int() }
}

/// Reads at one seq after another, twice each, until all has been promised: finds the rows there were.
fn read_until_the_end(
    record: &Record,
    snapshots: &Snapshots,
    promised: &AtomicU64,
    row_at: impl Fn(u64) -> Row,
) {
    while promised.load(SeqCst) < SEQS {
        let _guard = epoch::pin();
        let reader = snapshots.begin(|| Seq(promised.load(SeqCst)));
        for _ in 0..2 {
            // SAFETY: the epoch is pinned.
            let found = unsafe { read(record.visible(reader.seq())) };
            assert_eq!(found, row_at(reader.seq().0), "{:?}", reader.seq());
        }
    }
}

const A_NAME: &str = "a name on the heap";

/// A record with a whole row of seq 1: the number 1, a name, this sum. To be freed.
fn record_with_row(sum: i64, types: &[DataType]) -> NonNull<Record> {
    let record = Record::create(b"key");
    let row = [Datum::Int(1), Datum::Text(A_NAME), Datum::Int(sum)];
    // SAFETY: just made.
    unsafe { record.as_ref() }.push(Version::of_values(Seq(1), ColumnMask::first(3), &row, types));
    record
}

/// Frees a record that nobody uses any more, and its chain.
fn free(record: NonNull<Record>, types: &Arc<[DataType]>) {
    let mut retired = Retired::default();
    // SAFETY: it is in no index, and nobody uses it any more.
    unsafe { retire_record(record, types, &mut retired) };
    retired.hand_over(&epoch::pin());
}

/// Shortens behind `collected` what the caller says how to, in one epoch after the other, until all has been promised.
fn shorten_until_the_end(promised: &AtomicU64, collected: &AtomicU64, shorten: impl Fn(Seq, &mut Retired)) {
    while promised.load(SeqCst) < SEQS {
        let guard = &epoch::pin();
        let mut retired = Retired::default();
        shorten(Seq(collected.load(SeqCst)), &mut retired);
        retired.hand_over(guard);
        std::thread::yield_now();
    }
}

#[test]
fn readers_see_their_seq_while_the_writer_goes_on() {
    let mut rows = vec![Row::default()];
    for seq in 1..=SEQS {
        rows.push(row_after(seq, &rows[seq as usize - 1]));
    }
    let types: Arc<[DataType]> = Arc::from(TYPES);
    let record = Record::create(b"key");
    // SAFETY: freed at the end.
    let shared = unsafe { record.as_ref() };
    write(shared, 1, &rows[1]);
    let (snapshots, promised) = (Snapshots::default(), AtomicU64::new(1));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                read_until_the_end(shared, &snapshots, &promised, |seq| rows[seq as usize].clone());
            });
        }
        let mut retired = Retired::default();
        for seq in 2..=SEQS {
            let guard = &epoch::pin();
            write(shared, seq, &rows[seq as usize]);
            promised.store(seq, SeqCst);
            let collected = snapshots.collect(Seq(seq));
            if shared.is_fold_due(collected) {
                // SAFETY: everything is settled, and no reader begins below `collected`.
                unsafe { fold(shared, collected, &types, &mut retired) };
                retired.hand_over(guard);
            }
        }
    });
    free(record, &types);
}

/// Goal: the same where several threads shorten the chain beside the writer, who only now and then merges what is at
/// its bottom.
#[test]
fn readers_see_their_seq_while_others_shorten() {
    let row_at = |seq: u64| Row {
        number: (seq - seq % 8) as i64,
        name: format!("a name on the heap {}", seq - seq % 2),
        sum: (seq - seq % 3) as i64,
    };
    let types: Arc<[DataType]> = Arc::from(TYPES);
    let record = Record::create(b"key");
    // SAFETY: freed at the end.
    let shared = unsafe { record.as_ref() };
    let write = |seq: u64| {
        let row = row_at(seq);
        let all = [Datum::Int(row.number), Datum::Text(&row.name), Datum::Int(row.sum)];
        let changed = [seq.is_multiple_of(8), seq.is_multiple_of(2), seq.is_multiple_of(3)];
        let is_changed = |column: &ColumnId| changed[usize::from(column.0)];
        let columns: ColumnMask = [NUMBER, NAME, SUM].into_iter().filter(is_changed).collect();
        let values: Vec<Datum<'_>> = columns.iter().map(|column| all[usize::from(column.0)]).collect();
        if !columns.is_empty() {
            shared.push(Version::of_values(Seq(seq), columns, &values, &types));
        }
    };
    write(24);
    let (snapshots, promised, collected) = (Snapshots::default(), AtomicU64::new(24), AtomicU64::new(24));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                read_until_the_end(shared, &snapshots, &promised, row_at);
            });
            scope.spawn(|| {
                // SAFETY: everything is settled, and no reader begins below `oldest`; an epoch is pinned.
                shorten_until_the_end(&promised, &collected, |oldest, retired| unsafe {
                    // Gone if the writer has got further since `oldest` was asked for, and merged what was there.
                    if let Some(version) = shared.visible(oldest).as_ref() {
                        std::thread::yield_now();
                        shorten_at(shared, version, &types, retired);
                    }
                    shorten(shared, oldest, &types, retired);
                });
            });
        }
        for seq in 25..=SEQS {
            let guard = &epoch::pin();
            write(seq);
            promised.store(seq, SeqCst);
            let oldest = snapshots.collect(Seq(seq));
            collected.store(oldest.0, SeqCst);
            let mut retired = Retired::default();
            // SAFETY: readers hold snapshots at or above `collected`; an epoch is pinned.
            unsafe {
                match seq % 16 {
                    0 => fold_with_others(shared, oldest, &types, &mut retired),
                    _ => shorten(shared, oldest, &types, &mut retired),
                }
            }
            retired.hand_over(guard);
        }
    });
    free(record, &types);
}

/// Goal: the same where versions that are like those below them are pushed in turns, and those below taken out when a
/// turn ends, beside others who shorten the chain: at last nothing is left but the newest and the whole row.
#[test]
fn readers_see_their_seq_while_like_versions_replace_each_other() {
    const TURN: u64 = 5;
    let row_at = |seq: u64| Row { number: seq as i64, name: A_NAME.into(), sum: 7 };
    let types: Arc<[DataType]> = Arc::from(TYPES);
    let record = record_with_row(7, &types);
    // SAFETY: freed at the end.
    let shared = unsafe { record.as_ref() };
    let (snapshots, promised, collected) = (Snapshots::default(), AtomicU64::new(1), AtomicU64::new(1));
    let end_turn = |pushed: &[Option<NonNull<Version>>]| {
        let oldest = snapshots.collect(Seq(promised.load(SeqCst)));
        collected.store(oldest.0, SeqCst);
        let mut retired = Retired::default();
        for version in pushed {
            // SAFETY: everything is settled, no reader begins below `oldest`, and the epoch has been pinned since
            // before the versions were pushed.
            unsafe {
                let is_done = version
                    .is_some_and(|version| shorten_alike(shared, version, oldest, &types, &mut retired));
                if !is_done {
                    shorten(shared, oldest, &types, &mut retired);
                }
            }
        }
        retired
    };
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                read_until_the_end(shared, &snapshots, &promised, row_at);
            });
        }
        scope.spawn(|| {
            // SAFETY: readers hold snapshots at or above what is collected; an epoch is pinned.
            shorten_until_the_end(&promised, &collected, |oldest, retired| unsafe {
                shorten(shared, oldest, &types, retired);
            });
        });
        for begin in (2..=SEQS).step_by(TURN as usize) {
            let guard = &epoch::pin();
            let last = (begin + TURN - 1).min(SEQS);
            let pushed = (begin..=last).map(|seq| {
                let version =
                    Version::of_values(Seq(seq), ColumnMask::of(NUMBER), &[Datum::Int(seq as i64)], &types);
                let below = shared.head();
                shared.push(version);
                // SAFETY: linked.
                unsafe { version.as_ref().is_like(&*below) }.then_some(version)
            });
            let pushed: Vec<_> = pushed.collect();
            promised.store(last, SeqCst);
            end_turn(&pushed).hand_over(guard);
        }
    });
    end_turn(&[None]).hand_over(&epoch::pin());
    // SAFETY: nobody else is there any more.
    let (newest, below) = unsafe { (&*shared.head(), &*(*shared.head()).next()) };
    assert!(newest.seq() == Seq(SEQS) && below.is_whole(), "{:?} above {:?}", newest.seq(), below.seq());
    free(record, &types);
}

/// Goal: the same where numbers take turns in their block as long as nobody reads the older one, beside others who
/// shorten the chain.
#[test]
fn readers_see_their_seq_while_numbers_take_turns() {
    // Now and then another column is written besides, or all of the row.
    let sum_at = |seq: u64| seq - seq % 16;
    let row_at = |seq: u64| Row { number: seq as i64, name: A_NAME.into(), sum: sum_at(seq) as i64 };
    let types: Arc<[DataType]> = Arc::from(TYPES);
    let record = record_with_row(0, &types);
    // SAFETY: freed at the end.
    let shared = unsafe { record.as_ref() };
    let (snapshots, promised, collected) = (Snapshots::default(), AtomicU64::new(1), AtomicU64::new(1));
    let mut renewed = 0;
    let mut write = |seq: u64| {
        let guard = &epoch::pin();
        let (number, column) = ([Datum::Int(seq as i64)], ColumnMask::of(NUMBER));
        let oldest = Seq(collected.load(SeqCst));
        // SAFETY: linked; only this thread writes.
        unsafe {
            let newest = &*shared.head();
            if sum_at(seq) == seq {
                let row = [number[0], Datum::Text(A_NAME), number[0]];
                let all = ColumnMask::first(3);
                let (columns, values) = match seq % 32 {
                    0 => (all, &row[..]),
                    _ => (all.without(ColumnMask::of(NAME)), &[number[0]; 2][..]),
                };
                shared.push(Version::of_values(Seq(seq), columns, values, &types));
            } else if renew(shared, Seq(seq), column, seq as i64, oldest) {
                renewed += 1;
            } else if newest.may_be_followed_by_twins(column) {
                shared.push(Version::of_number_with_twin(Seq(seq), column, seq as i64, &types));
            } else {
                shared.push(Version::of_values(Seq(seq), column, &number, &types));
            }
        }
        if !seq.is_multiple_of(3) || seq == SEQS {
            promised.store(seq, SeqCst);
            collected.store(snapshots.collect(Seq(seq)).0, SeqCst);
        }
        let mut retired = Retired::default();
        if seq.is_multiple_of(8) {
            // SAFETY: readers hold snapshots at or above `collected`; an epoch is pinned.
            unsafe { fold_with_others(shared, Seq(collected.load(SeqCst)), &types, &mut retired) };
        }
        retired.hand_over(guard);
    };
    // Some by itself, since readers may stand still all the time later on.
    (2..8).for_each(&mut write);
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                read_until_the_end(shared, &snapshots, &promised, row_at);
            });
            scope.spawn(|| {
                // SAFETY: everything is settled, and no reader begins below `oldest`; an epoch is pinned.
                shorten_until_the_end(&promised, &collected, |oldest, retired| unsafe {
                    shorten(shared, oldest, &types, retired);
                });
            });
        }
        (8..=SEQS).for_each(&mut write);
    });
    assert!(renewed > 0);
    free(record, &types);
}

/// Goal: the same where each version adds to a sum and leaves a number open, which is filled, and the sum resolved, a
/// few versions later: a reader finds the sum at its seq, or somebody at work on it. What is resolved shadows what is
/// below.
#[test]
fn readers_see_their_sum_while_it_is_resolved() {
    const BEHIND: usize = 3;
    let sum_at = |seq: Seq| (seq.0 * (seq.0 + 1) / 2) as i64 - 1;
    let types: Arc<[DataType]> = Arc::from(TYPES);
    let record = record_with_row(0, &types);
    // SAFETY: freed at the end.
    let shared = unsafe { record.as_ref() };
    let (snapshots, promised) = (Snapshots::default(), AtomicU64::new(1));
    let deferred = || std::ptr::without_provenance_mut(8);
    let settle = |version: NonNull<Version>, retired: &mut Retired| {
        // SAFETY: linked, and nobody else fills it; nobody reads below what has been settled; an epoch is pinned.
        unsafe {
            let version = version.as_ref();
            assert!(version.fill(NUMBER, Datum::Int(version.seq().0 as i64), TYPES[0]).is_none());
            chain::resolve(version, &types);
            version.settle();
            let collected = snapshots.collect(version.seq());
            if collected == version.seq() {
                shorten_at(shared, version, &types, retired);
            }
        }
    };
    let mut open = VecDeque::new();
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while promised.load(SeqCst) < SEQS {
                    let _guard = epoch::pin();
                    let reader = snapshots.begin(|| Seq(promised.load(SeqCst)));
                    // SAFETY: the epoch is pinned.
                    let found = unsafe {
                        chain::read(shared.visible(reader.seq()), SUM, TYPES[2], std::ptr::null_mut())
                    };
                    match found {
                        Cell::Value(sum) => assert_eq!(sum.int(), sum_at(reader.seq())),
                        Cell::Pending(of) => assert_eq!(of, deferred()),
                        Cell::Absent => panic!("the row is there"),
                    }
                }
            });
        }
        for seq in 2..=SEQS {
            let guard = &epoch::pin();
            let version = Version::create(
                &Contents {
                    seq: Seq(seq),
                    values_mask: ColumnMask::EMPTY,
                    values: &[],
                    deltas: Deltas {
                        operations: &[(SUM, DeltaOperator::Add)],
                        operands: &[Datum::Int(seq as i64)],
                    },
                    sticky: ColumnMask::of(NUMBER),
                    deferred: deferred(),
                },
                &types,
            );
            shared.push(version);
            promised.store(seq, SeqCst);
            open.push_back(version);
            let mut retired = Retired::default();
            if open.len() > BEHIND {
                open.drain(..1).for_each(|version| settle(version, &mut retired));
            }
            retired.hand_over(guard);
        }
    });
    let guard = &epoch::pin();
    let mut retired = Retired::default();
    open.drain(..).for_each(|version| settle(version, &mut retired));
    retired.hand_over(guard);
    // SAFETY: nobody else is there any more.
    let (newest, below) = unsafe { (&*shared.head(), &*(*shared.head()).next()) };
    assert_eq!(newest.deltas(), ColumnMask::EMPTY);
    assert!(below.is_whole(), "{:?} is shadowed", below.seq());
    // SAFETY: nobody else is there any more.
    let sum = unsafe { chain::read(newest, SUM, TYPES[2], std::ptr::null_mut()) };
    assert!(matches!(sum, Cell::Value(Datum::Int(sum)) if sum == sum_at(Seq(SEQS))));
    free(record, &types);
}
