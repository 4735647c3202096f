//! Values that calls have returned, of many calls in one buffer: results that are known when a call ends stay in memory
//! until its batch is answered, so that they are kept close together.

use fabius_storage::memory;
use fabius_value::Value;

/// What calls of one batch have returned.
#[derive(Default)]
pub struct Returned {
    /// By call: its place in the batch, and where its values end.
    calls: Vec<(u32, u32)>,
    values: Vec<Value>,
    /// In the memory account, once it is there.
    accounted_bytes: isize,
}

impl Returned {
    /// Adds what the call at this place has returned.
    pub fn push(&mut self, place: u32, values: impl Iterator<Item = Value>) {
        self.values.extend(values);
        self.calls.push((place, self.values.len() as u32));
    }

    /// Whether no call has returned anything.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The places of the calls that are in it.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.calls.iter().map(|(place, _)| *place)
    }

    /// Puts it into the memory account, where it stays until it is dropped.
    pub fn account(&mut self) {
        self.accounted_bytes = (size_of_val(&self.calls[..]) + bytes(&self.values)) as isize;
        memory::add(self.accounted_bytes);
    }

    /// Takes out what the call at this place has returned; it is not there any more then.
    pub fn take(&mut self, place: u32) -> Option<Vec<Value>> {
        let at = self.calls.iter().position(|(of, _)| *of == place)?;
        let begin = at.checked_sub(1).map_or(0, |before| self.calls[before].1);
        let values = self.values[begin as usize..self.calls[at].1 as usize].iter_mut().map(std::mem::take);
        let values = values.collect();
        // Its values stay behind as nulls of nobody.
        self.calls[at].0 = u32::MAX;
        Some(values)
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

    fn returned(calls: &[(u32, &[i32])]) -> Returned {
        let mut all = Returned::default();
        let values = |values: &[i32]| values.iter().copied().map(Value::Int).collect::<Vec<_>>();
        calls.iter().for_each(|(place, of)| all.push(*place, values(of).into_iter()));
        all
    }

    /// Goal: each call's values are found by its place, once.
    #[test]
    fn values_are_taken_by_place() {
        let mut all = returned(&[(7, &[1, 2]), (3, &[]), (5, &[3])]);
        all.account();
        assert_eq!(all.places().collect::<Vec<_>>(), [7, 3, 5]);
        assert_eq!(all.take(5), Some(vec![Value::Int(3)]));
        assert_eq!(all.take(7), Some(vec![Value::Int(1), Value::Int(2)]));
        assert_eq!(all.take(3), Some(vec![]));
        assert_eq!((all.take(7), all.take(4)), (None, None));
    }
}
