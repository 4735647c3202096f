//! What a core has done to the split records in this phase: Doppel's per-core slices.
//!
//! Each operation can be summarised: however many were applied, one value per column stands for all. What is put in
//! an order is summarised by the put that came out on top: the highest, and of equal ones the first.

use crate::room::Room;
use fabius_program::slice::operation::Operation;
use fabius_value::{ColumnId, DataType, Datum, Seq, Value};

/// A split column of a record, the same for all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitColumn {
    /// Which.
    pub column: ColumnId,
    /// The column's type.
    pub data_type: DataType,
    /// What calls of this phase do to it.
    pub operation: Operation,
    /// What changes nothing: the column's value in the stand-in. Zero for columns that are put.
    pub identity: i128,
}

/// The operations of one core on one column, summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    column: SplitColumn,
    value: i128,
    /// The sum of the sizes of all operands added, or the product of those multiplied by.
    moved: i128,
    /// How far the core may go with that: what it has of the column's [`Room`].
    share: i128,
    /// When what is on top was put, of a column that gives an order.
    at: Option<Seq>,
    /// What was put, of a column that is put.
    put: Value,
}

impl Summary {
    /// Nothing done yet.
    pub fn new(column: SplitColumn) -> Summary {
        let moved = i128::from(column.operation == Operation::Multiply);
        Summary { column, value: column.identity, moved, share: 0, at: None, put: Value::Null }
    }

    /// What `moved` is with an operand; `None` if that is more than any room.
    #[inline]
    fn moved_by(&self, operand: Datum<'_>) -> Option<i128> {
        match self.column.operation {
            Operation::Add => operand.exact().checked_abs()?.checked_add(self.moved),
            Operation::Multiply => operand.exact().checked_abs()?.max(1).checked_mul(self.moved),
            Operation::Max | Operation::Min | Operation::Order(_) | Operation::Put(_) => Some(0),
        }
    }

    /// Sees to it that the core's share has room for an operand; whether it has.
    #[inline]
    pub fn makes_room(&mut self, operand: Datum<'_>, room: &Room) -> bool {
        let Some(moved) = self.moved_by(operand) else { return false };
        moved <= self.share || self.extends(moved, room)
    }

    /// Takes more of the room, so that the share is as much as is needed.
    #[cold]
    fn extends(&mut self, needed: i128, room: &Room) -> bool {
        let extended = match self.column.operation {
            Operation::Multiply => room.extend_product(self.share, needed),
            _ => room.extend_sum(self.share, needed),
        };
        self.share = extended.unwrap_or(self.share);
        extended.is_some()
    }

    /// Applies an operand that there is room for.
    #[inline]
    fn apply(&mut self, operand: Datum<'_>) {
        self.moved = self.moved_by(operand).expect("there is room");
        assert!(self.moved <= self.share, "there is room");
        self.value = combine(self.column.operation, self.value, operand.exact());
    }

    /// Forgets what was done, but not how much of the room it took.
    fn restart(&mut self) {
        (self.value, self.at, self.put) = (self.column.identity, None, Value::Null);
    }

    /// Whether another put comes out on top of this one.
    fn yields_to(&self, value: i128, at: Seq) -> bool {
        self.at.is_none_or(|own| value > self.value || value == self.value && at < own)
    }

    /// The column's value after all of this, if it was `before`; not of columns that are put.
    pub fn applied_to(&self, before: i128) -> i128 {
        combine(self.column.operation, before, self.value)
    }
}

fn combine(operation: Operation, one: i128, other: i128) -> i128 {
    match operation {
        Operation::Add => one + other,
        Operation::Multiply => one * other,
        Operation::Max | Operation::Order(_) => one.max(other),
        Operation::Min => one.min(other),
        Operation::Put(_) => unreachable!("what is put goes with what gives the order"),
    }
}

/// One core's part of a split record.
#[derive(Clone, Debug)]
pub struct Slice {
    /// By place among the record's split columns.
    pub columns: Vec<Summary>,
    /// Calls that have applied operations to it.
    pub applied: u64,
    /// Calls that were stashed because of it.
    pub stashed: u64,
}

impl Slice {
    /// A slice on which nothing was done.
    pub fn new(columns: impl Iterator<Item = SplitColumn>) -> Slice {
        Slice { columns: columns.map(Summary::new).collect(), applied: 0, stashed: 0 }
    }

    /// Sees to it that there is room for operands, by the places of their columns, which have this room; whether
    /// there is.
    #[inline]
    pub fn makes_room<'a>(
        &mut self,
        mut operands: impl Iterator<Item = (usize, Datum<'a>)>,
        rooms: &[Room],
    ) -> bool {
        operands.all(|(place, operand)| self.columns[place].makes_room(operand, &rooms[place]))
    }

    /// As [`Slice::apply`] if there is room; whether there is.
    #[inline]
    pub fn apply_within_room<'a>(
        &mut self,
        operands: impl Iterator<Item = (usize, Datum<'a>)> + Clone,
        rooms: &[Room],
        at: Seq,
    ) -> bool {
        let has_room = self.makes_room(operands.clone(), rooms);
        if has_room {
            self.apply(operands, at);
        }
        has_room
    }

    /// Applies the operands of a call that has this seq, by the places of their columns. There is room for them.
    #[inline]
    pub fn apply<'a>(&mut self, operands: impl Iterator<Item = (usize, Datum<'a>)> + Clone, at: Seq) {
        self.applied += 1;
        for (place, operand) in operands.clone() {
            let summary = &mut self.columns[place];
            match summary.column.operation {
                Operation::Order(_) if summary.yields_to(operand.exact(), at) => {
                    (summary.value, summary.at) = (operand.exact(), Some(at));
                    let put_with = Operation::Put(summary.column.column);
                    for (place, operand) in operands.clone() {
                        let summary = &mut self.columns[place];
                        if summary.column.operation == put_with {
                            summary.put = operand.to_value(summary.column.data_type);
                        }
                    }
                }
                Operation::Order(_) | Operation::Put(_) => {}
                _ => summary.apply(operand),
            }
        }
    }

    /// Takes in another core's slice of the same record.
    pub fn merge(&mut self, other: &Slice) {
        for (place, theirs) in other.columns.iter().enumerate() {
            let mine = &mut self.columns[place];
            match (mine.column.operation, theirs.at) {
                (Operation::Order(_), Some(at)) if mine.yields_to(theirs.value, at) => {
                    (mine.value, mine.at) = (theirs.value, Some(at));
                    let put_with = Operation::Put(mine.column.column);
                    for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
                        if mine.column.operation == put_with {
                            mine.put = theirs.put.clone();
                        }
                    }
                }
                (Operation::Order(_) | Operation::Put(_), _) => {}
                (operation, _) => mine.value = combine(operation, mine.value, theirs.value),
            }
        }
        self.applied += other.applied;
        self.stashed += other.stashed;
    }

    /// Begins anew after it was merged into another one, within the same phase: with the room that is left.
    pub fn restart(&mut self) {
        self.columns.iter_mut().for_each(Summary::restart);
        (self.applied, self.stashed) = (0, 0);
    }

    /// The columns' values after all of this, if they were `before`: by place, as the record's columns are stored.
    pub fn applied_to(&self, before: &[Value]) -> Vec<Value> {
        let exact = |value: &Value| Datum::from_value(value).exact();
        // A put counts if it is higher than what was there; one that is as high comes too late.
        let is_on_top = |order: ColumnId| {
            let mut places = self.columns.iter().zip(before);
            places.any(|(summary, before)| {
                summary.column.column == order && summary.at.is_some() && summary.value > exact(before)
            })
        };
        let after = |(summary, before): (&Summary, &Value)| match summary.column.operation {
            Operation::Put(order) if is_on_top(order) => summary.put.clone(),
            Operation::Put(_) => before.clone(),
            _ => value(summary.applied_to(exact(before)), summary.column.data_type),
        };
        self.columns.iter().zip(before).map(after).collect()
    }
}

/// An exact number in a type whose range it is in.
pub fn value(exact: i128, data_type: DataType) -> Value {
    datum(exact, data_type).to_value(data_type)
}

/// An exact number in a type whose range it is in, as a program has it.
pub fn datum<'a>(exact: i128, data_type: DataType) -> Datum<'a> {
    match data_type {
        DataType::Numeric { .. } => Datum::Numeric(exact),
        _ => Datum::Int(i64::try_from(exact).expect("cores stay within their room")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::ColumnMask;

    fn column(operation: Operation, identity: i128) -> SplitColumn {
        SplitColumn { column: ColumnId(0), data_type: DataType::BigInt, operation, identity }
    }

    #[test]
    fn sums_stop_where_the_room_ends() {
        let (mut one, room) = (Summary::new(column(Operation::Add, 0)), Room::new(10));
        for operand in [4, -3] {
            assert!(one.makes_room(Datum::Int(operand), &room));
            one.apply(Datum::Int(operand));
        }
        assert!(!one.makes_room(Datum::Int(-4), &room) && one.makes_room(Datum::Int(3), &room));
        assert_eq!(one.applied_to(100), 101);
    }

    #[test]
    fn what_was_merged_still_takes_room() {
        let sums = || Slice::new([column(Operation::Add, 0)].into_iter());
        let (mut own, mut all, rooms) = (sums(), sums(), [Room::new(10)]);
        for operand in [6, 4] {
            assert!(own.apply_within_room([(0, Datum::Int(operand))].into_iter(), &rooms, Seq::ZERO));
            all.merge(&own);
            own.restart();
        }
        assert_eq!((own.applied, all.applied), (0, 2));
        assert_eq!(all.applied_to(&[Value::BigInt(100)]), [Value::BigInt(110)]);
        assert!(!own.columns[0].makes_room(Datum::Int(1), &rooms[0]));
    }

    #[test]
    fn products_stop_where_the_room_ends() {
        let (mut one, room) = (Summary::new(column(Operation::Multiply, 1)), Room::new(12));
        for operand in [-3, 1, 4] {
            assert!(one.makes_room(Datum::Int(operand), &room));
            one.apply(Datum::Int(operand));
        }
        assert!(!one.makes_room(Datum::Int(2), &room) && one.makes_room(Datum::Int(0), &room));
        assert_eq!(one.applied_to(5), -60);
        one.apply(Datum::Int(0));
        assert_eq!(one.applied_to(5), 0);
    }

    /// Multiplies by a factor, on each of so many cores in turn, until one has no room; gives how often, and the
    /// value that began with 1.
    fn multiply_in_turn(cores: usize, factor: i64, whole: i128) -> (u32, i128) {
        let room = Room::new(whole);
        let mut summaries = vec![Summary::new(column(Operation::Multiply, 1)); cores];
        let mut times = 0;
        while summaries[times as usize % cores].makes_room(Datum::Int(factor), &room) {
            summaries[times as usize % cores].apply(Datum::Int(factor));
            times += 1;
        }
        assert!(summaries.iter_mut().all(|summary| !summary.makes_room(Datum::Int(factor), &room)));
        (times, summaries.iter().fold(1, |value, summary| summary.applied_to(value)))
    }

    /// Goal: how many factors split depends on the room alone, not on how many cores multiply, and goes as far as the
    /// type does; a factor that could leave it does not split on any core.
    #[test]
    fn factors_split_on_any_number_of_cores() {
        let largest = i128::from(i64::MAX);
        for cores in [1, 2, 8, 64, 255] {
            assert_eq!(multiply_in_turn(cores, 2, largest), (62, 1 << 62), "{cores} cores");
            assert_eq!(multiply_in_turn(cores, -2, largest), (62, 1 << 62), "{cores} cores");
            assert_eq!(multiply_in_turn(cores, 3, largest), (39, 3i128.pow(39)), "{cores} cores");
            assert_eq!(multiply_in_turn(cores, 2, 1), (0, 1), "{cores} cores, and the value is the largest");
            assert_eq!(multiply_in_turn(cores, 1, 0), (0, 1), "{cores} cores, and the value is the lowest");
        }
    }

    /// Goal: on all cores together sums go as far as the type does, but for what others have taken to be ready.
    #[test]
    fn sums_split_on_any_number_of_cores() {
        for cores in [2, 8, 64, 255] {
            let room = Room::new(32_767);
            let mut summaries = vec![Summary::new(column(Operation::Add, 0)); cores];
            let mut in_vain = 0;
            for core in (0..cores).cycle() {
                let summary = &mut summaries[core];
                let has_room = summary.makes_room(Datum::Int(10), &room);
                in_vain = if has_room { 0 } else { in_vain + 1 };
                if has_room {
                    summary.apply(Datum::Int(10));
                }
                if in_vain == cores {
                    break;
                }
            }
            let sum = summaries.iter().fold(0, |sum, summary| summary.applied_to(sum));
            assert!(sum <= 32_767 && sum > 32_767 - 10 * (cores as i128 + 1), "{sum} on {cores} cores");
        }
    }

    #[test]
    fn extremes_keep_the_furthest() {
        let mut summary = Summary::new(column(Operation::Max, i64::MIN.into()));
        assert_eq!(summary.applied_to(5), 5);
        [3, 9, 7].iter().for_each(|operand| summary.apply(Datum::Int(*operand)));
        assert_eq!((summary.applied_to(5), summary.applied_to(50)), (9, 50));
    }

    #[test]
    fn of_puts_the_highest_stays_and_of_equal_ones_the_first() {
        let order = Operation::Order(ColumnMask::first(2));
        let columns = [
            column(order, i64::MIN.into()),
            SplitColumn {
                column: ColumnId(1),
                data_type: DataType::TEXT,
                ..column(Operation::Put(ColumnId(0)), 0)
            },
        ];
        let put = |slice: &mut Slice, order: i64, text: &'static str, at: u64| {
            slice.apply([(0, Datum::Int(order)), (1, Datum::Text(text))].into_iter(), Seq(at));
        };
        let before = [Value::BigInt(5), Value::Text("before".into())];
        let (mut one, mut other) = (Slice::new(columns.into_iter()), Slice::new(columns.into_iter()));
        put(&mut one, 5, "as high", 1);
        assert_eq!(one.applied_to(&before), before);
        put(&mut one, 9, "late", 4);
        put(&mut one, 9, "later", 5);
        put(&mut other, 9, "first", 3);
        put(&mut other, 8, "lower", 6);
        for slices in [(&one, &other), (&other, &one)] {
            let mut merged = slices.0.clone();
            merged.merge(slices.1);
            assert_eq!(merged.applied_to(&before), [Value::BigInt(9), Value::Text("first".into())]);
        }
    }
}
