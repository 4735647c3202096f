//! Values that calls have returned, of many calls in one buffer: results that are known when a call ends stay in memory
//! until its batch is answered, so that they are kept close together.

use fabius_storage::memory;
use fabius_value::Value;
use std::ops::Range;

/// What calls of one batch have returned.
#[derive(Default)]
pub struct Returned {
    calls: Vec<Span>,
    values: Vec<Value>,
    /// In the memory account.
    accounted_bytes: isize,
}

/// Where a call's values are.
struct Span {
    /// The call's place in the batch.
    place: u32,
    begin: u32,
    end: u32,
}

impl Returned {
    /// Adds what the call at this place has returned.
    pub fn push(&mut self, place: u32, values: impl Iterator<Item = Value>) {
        let begin = self.values.len() as u32;
        self.values.extend(values);
        self.calls.push(Span { place, begin, end: self.values.len() as u32 });
    }

    /// Adds what other calls have returned, and puts that into the memory account, where it stays until all of this is
    /// dropped.
    pub fn append(&mut self, mut other: Returned) {
        let bytes = (size_of_val(&other.calls[..]) + bytes(&other.values)) as isize;
        memory::add(bytes);
        self.accounted_bytes += bytes;
        let offset = self.values.len() as u32;
        self.values.append(&mut other.values);
        let moved = |span: Span| Span { begin: span.begin + offset, end: span.end + offset, ..span };
        self.calls.extend(other.calls.drain(..).map(moved));
    }

    /// Brings the calls into the order of their places: no others are going to be added.
    pub fn sort(&mut self) {
        self.calls.sort_unstable_by_key(|span| span.place);
    }

    /// Whether no call has returned anything.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The places of the calls that are in it.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.calls.iter().map(|span| span.place)
    }

    /// Moves out what calls at some places have returned, once, as those of a batch in which the first of these
    /// places is 0; it has to be sorted.
    pub fn split(&mut self, places: Range<u32>) -> Returned {
        let at = |place| self.calls.partition_point(|span| span.place < place);
        let mut split = Returned::default();
        for at in at(places.start)..at(places.end) {
            let Span { place, begin, end } = self.calls[at];
            let values = self.values[begin as usize..end as usize].iter_mut().map(std::mem::take);
            split.push(place - places.start, values);
        }
        split
    }

    /// Moves out what the call at this place has returned, once; it has to be sorted.
    pub fn take(&mut self, place: u32) -> Option<Vec<Value>> {
        let at = self.calls.binary_search_by_key(&place, |span| span.place).ok()?;
        let Span { begin, end, .. } = self.calls[at];
        Some(self.values[begin as usize..end as usize].iter_mut().map(std::mem::take).collect())
    }
}

impl Drop for Returned {
    fn drop(&mut self) {
        memory::add(-self.accounted_bytes);
    }
}

/// What values take in memory.
pub fn bytes(values: &[Value]) -> usize {
    let heap = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::List(rows) => rows.iter().map(|row| size_of::<Vec<Value>>() + bytes(row)).sum(),
        _ => 0,
    };
    size_of_val(values) + values.iter().map(heap).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each call's values are found by its place, whichever way they came together.
    #[test]
    fn values_are_found_by_place() {
        let ints = |values: &[i32]| values.iter().copied().map(Value::Int).collect::<Vec<_>>();
        let mut all = Returned::default();
        for calls in [[(7, &[1, 2][..]), (9, &[])], [(3, &[4]), (5, &[5, 6, 7])]] {
            let mut some = Returned::default();
            calls.iter().for_each(|(place, values)| some.push(*place, ints(values).into_iter()));
            all.append(some);
        }
        all.sort();
        assert_eq!(all.places().collect::<Vec<_>>(), [3, 5, 7, 9]);
        for (place, values) in [(5, &[5, 6, 7][..]), (7, &[1, 2]), (3, &[4]), (9, &[])] {
            assert_eq!(all.take(place), Some(ints(values)));
        }
        assert_eq!(all.take(4), None);
    }
}
