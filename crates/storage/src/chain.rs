//! Reading a chain at a seq.
//!
//! Reading column `c` walks from the newest version that the reader may see down to the first one
//! that has a plain value for `c`, and applies the deltas met on the way, oldest first. A sticky on
//! the way ends the walk: whoever asks has to have it filled first.

use crate::{Version, slot};
use fabius_env::schedule;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, DeltaOperator};
use std::sync::atomic::{Ordering::Acquire, fence};

/// The newest version of a row that a reader sees; null if the row is missing. Readable as long as the
/// reader's epoch is pinned.
#[derive(Clone, Copy, Debug)]
pub struct Visible(pub *const Version);

impl Default for Visible {
    fn default() -> Visible {
        Visible(std::ptr::null())
    }
}

/// What a walk found.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// The value.
    Value(Datum<'a>),
    /// A sticky of this deferred call.
    Pending(*mut ()),
    /// No version has the column: the row did not exist.
    Absent,
}

/// Whether a row whose newest visible version is `version` is there.
///
/// # Safety
/// `version` is null or readable.
#[inline]
pub unsafe fn is_present(version: *const Version) -> bool {
    // SAFETY: null or readable, as whoever calls this sees to.
    unsafe { version.as_ref() }.is_some_and(|version| !version.is_tombstone())
}

/// Reads a column from `version` downwards.
///
/// `own` is the deferred call that reads while it fills its own stickies (null for everyone else):
/// of its own version it sees the columns filled so far, and what was below for the others.
///
/// # Safety
/// `version` and what is below stay readable during `'a` (an epoch is pinned).
#[inline]
pub unsafe fn read<'a>(
    version: *const Version,
    column: ColumnId,
    data_type: DataType,
    own: *mut (),
) -> Cell<'a> {
    // SAFETY: pinned: `version` stays readable during `'a`, as whoever calls this sees to.
    if let Some(version) = unsafe { version.as_ref() }
        && let Some(value) = unsafe { version.plain_value(column, data_type) }
    {
        return Cell::Value(value);
    }
    // SAFETY: pinned, for what is below too.
    unsafe { read_below(version, column, data_type, own) }
}

/// Continues [`read`] where the first version may not have the value.
///
/// # Safety
/// As [`read`].
unsafe fn read_below<'a>(
    version: *const Version,
    column: ColumnId,
    data_type: DataType,
    own: *mut (),
) -> Cell<'a> {
    let mut at = version;
    // SAFETY: pinned: whoever calls this keeps all versions on the way readable during `'a`.
    while let Some(mut version) = unsafe { at.as_ref() } {
        if let Some(base) = version.shortcut(ColumnMask::of(column)) {
            version = base;
        }
        if version.columns().contains(column) {
            if version.sticky().contains(column) {
                if version.deferred() != own {
                    return Cell::Pending(version.deferred());
                }
                if version.filled().contains(column) {
                    // SAFETY: filled by this very call.
                    return Cell::Value(unsafe { version.value(column, data_type) });
                }
            } else if version.deltas().contains(column) {
                // SAFETY: pinned: the version is readable during `'a`.
                if let Some(first) = unsafe { Operand::of(version, column, data_type) } {
                    // SAFETY: pinned: what is below it is, too.
                    return unsafe { read_delta(first, column, data_type, own) };
                }
                // It has been resolved meanwhile, or is about to be: it is looked at again.
                at = version;
                continue;
            } else {
                // SAFETY: a plain value, or a settled sticky.
                return Cell::Value(unsafe { version.value(column, data_type) });
            }
        } else if version.is_tombstone() {
            return Cell::Absent;
        }
        at = version.next();
    }
    Cell::Absent
}

/// What a delta says.
struct Operand<'a> {
    operator: DeltaOperator,
    operand: Datum<'a>,
    /// The version below.
    next: *const Version,
}

impl<'a> Operand<'a> {
    /// What a column says that has been seen to be a delta; `None` if it is not one any more, or not for long.
    ///
    /// # Safety
    /// As [`read`].
    #[inline]
    unsafe fn of(version: &Version, column: ColumnId, data_type: DataType) -> Option<Operand<'a>> {
        let (operator, next) = (version.operator(column), version.next());
        // SAFETY: pinned: the version is readable during `'a`; whether its slot was filled again is looked at below.
        let operand = unsafe { version.value(column, data_type) };
        // If this was the value already, or what is below had gone because of that, then the sticky shows, or that it
        // is no delta: see `Version::begin_resolving`.
        fence(Acquire);
        let is_delta = !version.sticky().contains(column) && version.deltas().contains(column);
        is_delta.then_some(Operand { operator, operand, next })
    }
}

/// Continues [`read`] below a delta: collects operations down to a value, then applies them.
///
/// # Safety
/// As [`read`].
unsafe fn read_delta<'a>(
    first: Operand<'a>,
    column: ColumnId,
    data_type: DataType,
    own: *mut (),
) -> Cell<'a> {
    // Sums are by far the most common and need no list; a change of operator starts one.
    let Operand { operator, operand: mut sum, next: mut at } = first;
    let mut others: Vec<(DeltaOperator, Datum<'a>)> = Vec::new();
    let base = loop {
        // SAFETY: pinned: whoever calls this keeps all versions on the way readable during `'a`.
        let Some(mut version) = (unsafe { at.as_ref() }) else { return Cell::Absent };
        if let Some(base) = version.shortcut(ColumnMask::of(column)) {
            version = base;
        }
        if version.is_tombstone() {
            return Cell::Absent;
        }
        if !version.columns().contains(column) {
            at = version.next();
            continue;
        }
        let is_sticky = version.sticky().contains(column);
        if is_sticky && version.deferred() != own {
            return Cell::Pending(version.deferred());
        }
        if is_sticky && !version.filled().contains(column) {
            at = version.next();
            continue;
        }
        if is_sticky || !version.deltas().contains(column) {
            // SAFETY: not an open sticky of someone else.
            break unsafe { version.value(column, data_type) };
        }
        // SAFETY: pinned: the version is readable during `'a`.
        let Some(delta) = (unsafe { Operand::of(version, column, data_type) }) else {
            at = version;
            continue;
        };
        let is_alike = others.is_empty() && delta.operator == operator;
        match is_alike.then(|| operator.combine(delta.operand, sum)).flatten() {
            Some(combined) => sum = combined,
            None => others.push((delta.operator, delta.operand)),
        }
        at = delta.next;
    };
    if base.is_null() {
        return Cell::Value(Datum::Null);
    }
    let value = others
        .into_iter()
        .rev()
        .fold(base, |value, (operator, operand)| operator.apply(value, operand, data_type));
    Cell::Value(operator.apply(value, sum, data_type))
}

/// Gives the delta columns of a version the values that they come to, where what is below says so, and they are not
/// long: for whoever has filled all stickies of the version and is about to settle it, so that it shadows what is
/// below.
///
/// # Safety
/// The version has open stickies, which the caller has claimed, and is linked; an epoch is pinned.
pub unsafe fn resolve(version: &Version, types: &[DataType]) {
    let is_short = |column: &ColumnId| !slot::may_allocate(types[usize::from(column.0)]);
    let deltas: ColumnMask = version.deltas().iter().filter(is_short).collect();
    if deltas.is_empty() {
        return;
    }
    version.begin_resolving(deltas);
    schedule::point("resolving");
    let mut resolved = ColumnMask::EMPTY;
    for column in deltas.iter() {
        let data_type = types[usize::from(column.0)];
        // SAFETY: pinned: the version is linked, and what is below it is readable.
        let below = unsafe { read(version.next(), column, data_type, std::ptr::null_mut()) };
        if let Cell::Value(base) = below
            && !base.is_null()
        {
            // SAFETY: nobody else writes the slot.
            let operand = unsafe { version.value(column, data_type) };
            version.resolve(column, version.operator(column).apply(base, operand, data_type), data_type);
            resolved.insert(column);
            schedule::point("resolved");
        }
    }
    version.end_resolving(deltas, resolved);
}

/// Whether any of `columns`, read from `version` downwards, meets a sticky of someone other than
/// `own`, which has not run; gives its deferred call.
///
/// The versions of `own` are those that name it and are open: one that is settled may name a call that is gone,
/// whose address `own` has now.
///
/// # Safety
/// As [`read`].
#[inline]
pub unsafe fn first_pending(version: *const Version, columns: ColumnMask, own: *mut ()) -> Option<*mut ()> {
    let mut open = columns;
    let mut at = version;
    while !open.is_empty() {
        // SAFETY: pinned: whoever calls this keeps all versions on the way readable.
        let mut version = unsafe { at.as_ref() }?;
        if let Some(base) = version.shortcut(open) {
            version = base;
        }
        let sticky = version.sticky();
        if sticky.is_empty() || version.deferred() != own {
            let here = version.columns().intersection(open);
            if here.intersects(sticky) {
                return Some(version.deferred());
            }
            if version.is_whole() {
                return None;
            }
            open = open.without(here.without(version.deltas()));
        }
        at = version.next();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{Retired, retire_record};
    use crate::{Record, version::Contents};
    use fabius_value::{Deltas, Seq};
    use std::ptr::NonNull;

    const TYPES: [DataType; 2] = [DataType::BigInt, DataType::BigInt];
    const COLUMN: ColumnId = ColumnId(1);

    fn sticky(seq: u64, deferred: *mut ()) -> NonNull<Version> {
        let sticky = ColumnMask::of(COLUMN);
        let contents = Contents {
            seq: Seq(seq),
            values_mask: ColumnMask::EMPTY,
            values: &[],
            deltas: Deltas::default(),
            sticky,
            deferred,
        };
        Version::create(&contents, &TYPES)
    }

    /// Goal: a call passes its own open version, but not one that was settled by a call whose address it has now.
    #[test]
    fn a_call_knows_its_own_versions() {
        let record = Record::create(b"key");
        // SAFETY: freed below.
        let shared = unsafe { record.as_ref() };
        let (mut here, mut there) = (0u8, 0u8);
        let (first, second): (*mut (), *mut ()) = ((&raw mut here).cast(), (&raw mut there).cast());
        let pending = |own| {
            // SAFETY: linked.
            unsafe { first_pending(shared.head(), ColumnMask::of(COLUMN), own) }
        };
        shared.push(Version::of_values(Seq(1), ColumnMask::first(2), &[Datum::Int(0); 2], &TYPES));
        shared.push(sticky(2, first));
        assert_eq!((pending(first), pending(second)), (None, Some(first)));
        shared.push(sticky(3, second));
        assert_eq!((pending(first), pending(second)), (Some(second), Some(first)));
        // SAFETY: linked.
        unsafe {
            _ = (*shared.head()).fill(COLUMN, Datum::Int(3), TYPES[1]);
            (*shared.head()).settle();
        }
        assert_eq!((pending(first), pending(second)), (None, None));
        let types = std::sync::Arc::from(TYPES);
        let mut retired = Retired::default();
        // SAFETY: it is in no index, and this test alone has it.
        unsafe { retire_record(record, &types, &mut retired) };
        retired.hand_over(&crossbeam_epoch::pin());
    }

    /// Goal: a table may have as many columns as a mask has bits: values, nulls, deltas and stickies beyond the
    /// narrow masks come back, from below a version that says nothing about them too.
    #[test]
    fn a_wide_table_has_all_its_columns() {
        let types: Vec<DataType> = vec![DataType::BigInt; 64];
        let (delta, open, number) = (ColumnId(63), ColumnId(40), ColumnId(33));
        let row: Vec<Datum<'_>> = (0..64).map(Datum::Int).collect();
        let record = Record::create(b"key");
        // SAFETY: freed below.
        let shared = unsafe { record.as_ref() };
        shared.push(Version::create_tombstone(Seq(1)));
        shared.push(Version::of_values(Seq(2), ColumnMask::first(64), &row, &types));
        shared.push(Version::of_number_with_twin(Seq(3), ColumnMask::of(number), 300, &types));
        let mut here = 0u8;
        let deferred: *mut () = (&raw mut here).cast();
        let contents = Contents {
            seq: Seq(4),
            values_mask: ColumnMask::EMPTY,
            values: &[],
            deltas: Deltas { operations: &[(delta, DeltaOperator::Add)], operands: &[Datum::Int(7)] },
            sticky: ColumnMask::of(open),
            deferred,
        };
        shared.push(Version::create(&contents, &types));
        shared.push(Version::of_values(Seq(5), ColumnMask::of(ColumnId(34)), &[Datum::Null], &types));
        // SAFETY: linked.
        let value = |column: u8| unsafe {
            match read(shared.head(), ColumnId(column), DataType::BigInt, std::ptr::null_mut()) {
                Cell::Value(value) => value,
                other => panic!("column {column}: {other:?}"),
            }
        };
        assert_eq!(
            [value(0), value(33), value(34), value(35)],
            [0, 300, -1, 35].map(|at| match at {
                -1 => Datum::Null,
                at => Datum::Int(at),
            })
        );
        assert_eq!(value(63), Datum::Int(70));
        // SAFETY: linked.
        unsafe {
            let pending = read(shared.head(), open, DataType::BigInt, std::ptr::null_mut());
            assert!(matches!(pending, Cell::Pending(address) if address == deferred));
            let version = &*(*shared.head()).next();
            _ = version.fill(open, Datum::Int(400), DataType::BigInt);
            version.settle();
        }
        assert_eq!(value(40), Datum::Int(400));
        let mut retired = Retired::default();
        // SAFETY: it is in no index, and this test alone has it.
        unsafe { retire_record(record, &types.into(), &mut retired) };
        retired.hand_over(&crossbeam_epoch::pin());
    }
}
