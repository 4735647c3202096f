//! Aggregates of intervals, which DataFusion has none of: their sum, mean, least and greatest, also over frames that
//! move.

use crate::arrow_column::{interval_of, native_interval};
use crate::failure::outbound;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::functions::aggregate::Aggregate;
use fabius_value::interval::Interval;
use fabius_value::{Error, SqlState};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What becomes of the intervals of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalAggregate {
    /// `sum(interval)`.
    Sum,
    /// `avg(interval)`.
    Average,
    /// `min(interval)`.
    Min,
    /// `max(interval)`.
    Max,
}

impl IntervalAggregate {
    /// What an aggregate is of intervals.
    pub fn of(aggregate: Aggregate) -> Option<IntervalAggregate> {
        Some(match aggregate {
            Aggregate::Sum => Self::Sum,
            Aggregate::Average => Self::Average,
            Aggregate::Minimum => Self::Min,
            Aggregate::Maximum => Self::Max,
            _ => return None,
        })
    }

    /// The function of one interval; null for no interval.
    pub fn function(self) -> Arc<AggregateUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(AggregateUDF::from(OfIntervals { aggregate: self, signature }))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Average => "avg",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    fn is_extreme(self) -> bool {
        matches!(self, Self::Min | Self::Max)
    }
}

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfIntervals {
    aggregate: IntervalAggregate,
    signature: Signature,
}

impl AggregateUDFImpl for OfIntervals {
    fn name(&self) -> &str {
        self.aggregate.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> FusionResult<DataType> {
        Ok(INTERVAL)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> FusionResult<Box<dyn Accumulator>> {
        Ok(match self.aggregate {
            extreme if extreme.is_extreme() => {
                Box::new(Extreme { is_max: extreme == IntervalAggregate::Max, ..Extreme::default() })
            }
            sum => Box::new(Sum {
                is_average: sum == IntervalAggregate::Average,
                distinct: arguments.is_distinct.then(HashMap::new),
                ..Sum::default()
            }),
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> FusionResult<Vec<FieldRef>> {
        let field = |name, data_type| Arc::new(Field::new(name, data_type, true));
        Ok(match self.aggregate {
            extreme if extreme.is_extreme() => vec![field("best", INTERVAL)],
            _ if arguments.is_distinct => {
                vec![Field::new_list("values", Field::new_list_field(INTERVAL, true), true).into()]
            }
            _ => ["months", "days", "micros", "count"].map(|name| field(name, DataType::Int64)).into(),
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The intervals of a column, row by row.
fn intervals(column: &ArrayRef) -> impl Iterator<Item = Option<Interval>> + '_ {
    column.as_primitive::<IntervalMonthDayNanoType>().iter().map(|value| value.map(interval_of))
}

fn scalar(interval: Option<Interval>) -> FusionResult<ScalarValue> {
    let native = interval.map(native_interval).transpose().map_err(outbound)?;
    Ok(ScalarValue::IntervalMonthDayNano(native))
}

/// A sum part by part. Parts may become too large in between.
#[derive(Debug, Default)]
struct Sum {
    is_average: bool,
    months: i64,
    days: i64,
    micros: i64,
    count: i64,
    /// What is in the sum, where equal intervals count once: by how long they are.
    distinct: Option<HashMap<i128, Interval>>,
}

impl Sum {
    fn add(&mut self, interval: Interval) {
        if let Some(distinct) = &mut self.distinct {
            match distinct.entry(interval.span()) {
                Entry::Vacant(vacant) => vacant.insert(interval),
                Entry::Occupied(_) => return,
            };
        }
        self.months += i64::from(interval.months);
        self.days += i64::from(interval.days);
        self.micros = self.micros.saturating_add(interval.micros);
        self.count += 1;
    }
}

impl Accumulator for Sum {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> FusionResult<()> {
        for interval in intervals(&columns[0]).flatten() {
            self.add(interval);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.distinct.is_none()
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> FusionResult<()> {
        for interval in intervals(&columns[0]).flatten() {
            self.months -= i64::from(interval.months);
            self.days -= i64::from(interval.days);
            self.micros = self.micros.saturating_sub(interval.micros);
            self.count -= 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> FusionResult<ScalarValue> {
        if self.count == 0 {
            return scalar(None);
        }
        let mut total = Interval::of_parts(self.months, self.days, self.micros);
        if self.is_average {
            total = total.and_then(|total| total.scaled(|part| part / self.count as f64));
        }
        match total {
            Some(_) => scalar(total),
            None => Err(outbound(Error::new(SqlState::DATETIME_OVERFLOW, "interval out of range"))),
        }
    }

    fn state(&mut self) -> FusionResult<Vec<ScalarValue>> {
        let Some(distinct) = &self.distinct else {
            let parts = [self.months, self.days, self.micros, self.count];
            return Ok(parts.map(ScalarValue::from).into());
        };
        let values: Vec<ScalarValue> =
            distinct.values().map(|each| scalar(Some(*each))).collect::<FusionResult<_>>()?;
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &INTERVAL))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> FusionResult<()> {
        if self.distinct.is_some() {
            for values in states[0].as_list::<i32>().iter().flatten() {
                self.update_batch(&[values])?;
            }
            return Ok(());
        }
        let parts: Vec<&Int64Array> = states.iter().map(|state| state.as_primitive::<Int64Type>()).collect();
        for at in 0..parts[0].len() {
            self.months += parts[0].value(at);
            self.days += parts[1].value(at);
            self.micros = self.micros.saturating_add(parts[2].value(at));
            self.count += parts[3].value(at);
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let distinct = self.distinct.as_ref().map_or(0, HashMap::capacity);
        size_of::<Self>() + distinct * size_of::<(i128, Interval)>()
    }
}

/// The greatest or the least interval of the rows of a frame; of equal ones the last.
#[derive(Debug, Default)]
struct Extreme {
    is_max: bool,
    /// How many rows have come, and how many have left.
    came: u64,
    left: u64,
    /// The best interval, then the best of those behind it, and so on, each with the number of its row: what is best
    /// once those before it have left.
    best: VecDeque<(u64, Interval)>,
}

impl Accumulator for Extreme {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> FusionResult<()> {
        for interval in intervals(&columns[0]) {
            self.came += 1;
            let Some(interval) = interval else { continue };
            let is_better = |other: Interval| match self.is_max {
                true => other.span() > interval.span(),
                false => other.span() < interval.span(),
            };
            while self.best.pop_back_if(|(_, last)| !is_better(*last)).is_some() {}
            self.best.push_back((self.came, interval));
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> FusionResult<()> {
        self.left += columns[0].len() as u64;
        while self.best.pop_front_if(|(row, _)| *row <= self.left).is_some() {}
        Ok(())
    }

    fn evaluate(&mut self) -> FusionResult<ScalarValue> {
        scalar(self.best.front().map(|(_, interval)| *interval))
    }

    fn state(&mut self) -> FusionResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> FusionResult<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.best.capacity() * size_of::<(u64, Interval)>()
    }
}
