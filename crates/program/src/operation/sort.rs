//! The order of a list's rows.

use super::compare;
use crate::ir::SortKey;
use fabius_value::Datum;
use std::cmp::Ordering;

/// Sorts the rows of a list, each of `width` values, by some of their fields; rows that are equal there
/// stay as they are to each other.
pub fn sort(list: &mut Vec<Datum<'_>>, width: usize, keys: &[SortKey]) {
    let mut rows: Vec<&[Datum<'_>]> = list.chunks(width).collect();
    rows.sort_by(|left, right| {
        let orders =
            keys.iter().map(|key| order(key, left[usize::from(key.field)], right[usize::from(key.field)]));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    *list = rows.concat();
}

fn order(key: &SortKey, left: Datum<'_>, right: Datum<'_>) -> Ordering {
    match compare(left, right) {
        Some(order) if key.descending => order.reverse(),
        Some(order) => order,
        None => {
            let nulls_last = left.is_null().cmp(&right.is_null());
            if key.nulls_first { nulls_last.reverse() } else { nulls_last }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: several keys, both directions, nulls at either end, and equal rows as they were.
    #[test]
    fn rows_are_sorted() {
        let (null, int) = (Datum::Null, Datum::Int);
        let rows = [[int(2), int(1)], [null, int(2)], [int(1), int(3)], [int(2), int(4)], [null, int(5)]];
        let sorted = |keys: &[SortKey]| {
            let mut list = rows.concat();
            sort(&mut list, 2, keys);
            list.chunks(2).map(|row| row[1].int()).collect::<Vec<_>>()
        };
        let key = |field, descending, nulls_first| SortKey { field, descending, nulls_first };
        assert_eq!(sorted(&[key(0, false, false)]), [3, 1, 4, 2, 5]);
        assert_eq!(sorted(&[key(0, true, true)]), [2, 5, 1, 4, 3]);
        assert_eq!(sorted(&[key(0, false, true), key(1, true, true)]), [5, 2, 3, 4, 1]);
        assert_eq!(sorted(&[]), [1, 2, 3, 4, 5]);
    }
}
