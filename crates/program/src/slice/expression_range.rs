//! The interval of an expression, and whether evaluating it can fail.
//!
//! Every operation that can abort a call is listed here, next to what proves that it cannot:
//!
//! | operation | proof |
//! |---|---|
//! | `+ - * /`, `abs`, `-x`, `sum`, `avg` on exact numbers and dates | the result's interval fits its type |
//! | `/`, `%` | the divisor's interval is without zero |
//! | a cast between numbers, dates, timestamps | the interval fits |
//! | a cast to bounded text, `\|\|`, `overlay`, `lower`, `upper` | the length's interval fits |
//! | a cast of text to something else | only of a constant |
//! | `like`, `ilike` | the pattern is known and does not end with its escape character |
//! | other functions that can fail | none |
//! | `substring`, `overlay` | the count is not negative, the position at least 1 |
//! | `+ - * / %`, `sum`, `avg` on doubles | none: they overflow, so they never count as proven |
//!
//! Conditions narrow what follows them: in `if left >= 10 then left else left + 91` the second
//! `left` is at most 9.

use super::interval::Interval;
use super::knowledge::{Knowledge, type_range};
use super::outline::draws_random;
use super::proof::Prover;
use crate::ir::{Aggregate, BinaryOperator, Expression, ExpressionKind, Function, UnaryOperator};
use crate::operation::FunctionOperation;
use crate::operation::function::pattern;
use fabius_value::data_type::Family;
use fabius_value::{DataType, Value, calendar, limit};

/// Expressions whose intervals are kept, at most: they are looked through for each expression.
const FACTS: usize = 256;

impl Prover<'_> {
    /// The interval of an expression's value; notes what could fail.
    pub(super) fn range(&mut self, known: &Knowledge, expression: &Expression) -> Interval {
        let interval = self.range_of_kind(known, expression);
        let fact = known.facts.iter().find(|(fact, _)| fact == expression);
        fact.map_or(interval, |(_, fact)| interval.meet(*fact))
    }

    fn range_of_kind(&mut self, known: &Knowledge, expression: &Expression) -> Interval {
        let data_type = expression.ty.data_type;
        match &expression.kind {
            ExpressionKind::Constant(value) => constant_range(value),
            ExpressionKind::Variable(variable) => known.get(self.cells.variable(*variable)),
            ExpressionKind::Unary(operator, operand) => {
                let interval = self.range(known, operand);
                match operator {
                    UnaryOperator::Negate if data_type.is_exact() => self.fit(expression, interval.negated()),
                    UnaryOperator::Negate | UnaryOperator::Not | UnaryOperator::IsNull => Interval::EVERY,
                }
            }
            ExpressionKind::Binary(operator, left, right) => {
                self.range_of_binary(known, expression, *operator, left, right)
            }
            ExpressionKind::Cast(operand) => {
                let interval = self.range(known, operand);
                self.range_of_cast(expression, operand, interval)
            }
            ExpressionKind::Case { arms, otherwise } => {
                let mut rest = known.clone();
                let mut all = Interval::EMPTY;
                for (condition, value) in arms {
                    if !rest.reachable {
                        return all;
                    }
                    self.range(&rest, condition);
                    if !self.learns() {
                        all = all.hull(self.range(&rest, value));
                        continue;
                    }
                    let mut taken = rest.clone();
                    self.assume_true(&mut taken, condition);
                    if taken.reachable {
                        all = all.hull(self.range(&taken, value));
                    }
                    self.assume_not_true(&mut rest, condition);
                }
                if rest.reachable { all.hull(self.range(&rest, otherwise)) } else { all }
            }
            ExpressionKind::Call(function, arguments) => {
                let ranges: Vec<Interval> =
                    arguments.iter().map(|argument| self.range(known, argument)).collect();
                self.range_of_call(expression, *function, arguments, &ranges)
            }
            ExpressionKind::Aggregate { aggregate, list, field } => {
                let length = known.get(self.cells.length(*list));
                let values = known.get(self.cells.field(*list, *field));
                let field = self.field_type(*list, *field);
                self.range_of_aggregate(expression, *aggregate, field, length, values)
            }
            ExpressionKind::Element { list, index, field } => {
                self.range(known, index);
                known.get(self.cells.field(*list, *field))
            }
            ExpressionKind::Now => type_range(DataType::Timestamp),
            ExpressionKind::Random => Interval::EVERY,
        }
    }

    fn range_of_binary(
        &mut self,
        known: &Knowledge,
        expression: &Expression,
        operator: BinaryOperator,
        left: &Expression,
        right: &Expression,
    ) -> Interval {
        use BinaryOperator as Op;
        let data_type = expression.ty.data_type;
        let a = self.range(known, left);
        if matches!(operator, Op::And | Op::Or) {
            if !self.learns() {
                self.range(known, right);
                return Interval::EVERY;
            }
            let mut rest = known.clone();
            match operator {
                Op::And => self.assume_not_false(&mut rest, left),
                _ => self.assume_not_true(&mut rest, left),
            }
            if rest.reachable {
                self.range(&rest, right);
            }
            return Interval::EVERY;
        }
        let b = self.range(known, right);
        let (from, with) = (left.ty.data_type.scale(), right.ty.data_type.scale());
        let to = data_type.scale();
        let numeric = data_type.family() == Family::Numeric;
        match operator {
            Op::And | Op::Or | Op::Equal | Op::NotEqual => Interval::EVERY,
            Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual => Interval::EVERY,
            Op::IsDistinct | Op::IsNotDistinct => Interval::EVERY,
            Op::Concatenate => {
                let bytes = byte_length(left, a) + byte_length(right, b);
                self.fit_length(expression, a.plus(b), bytes)
            }
            _ if data_type == DataType::Double => self.unproven_double(expression),
            Op::Divide | Op::Modulo if b.has(0) && !a.is_empty() => {
                self.fails(|p| format!("{} could divide by zero", p.text(expression)));
                type_range(data_type)
            }
            Op::Add => self.fit(expression, a.plus(b)),
            Op::Subtract => self.fit(expression, a.minus(b)),
            Op::Multiply if numeric => {
                let product = self.fit_wide(expression, a.times(b));
                self.fit(expression, product.rescaled(from + with, to))
            }
            Op::Multiply => self.fit(expression, a.times(b)),
            Op::Divide if numeric && to + with >= from => {
                // The dividend is scaled up first, so that the quotient has the result's scale.
                let shift = to + with - from;
                let scaled = if shift > 38 { Interval::EVERY } else { a.rescaled(0, shift) };
                let scaled = self.fit_wide(expression, scaled);
                self.fit(expression, scaled.over(b))
            }
            Op::Divide if numeric => self.fit(expression, a.over(b).hull(Interval::only(0))),
            Op::Divide => self.fit(expression, a.over(b)),
            Op::Modulo => a.modulo(b),
        }
    }

    fn range_of_cast(&mut self, expression: &Expression, operand: &Expression, a: Interval) -> Interval {
        let (from, to) = (operand.ty.data_type, expression.ty.data_type);
        if let ExpressionKind::Constant(value) = &operand.kind {
            return match value.cast(to) {
                Ok(value) => constant_range(&value),
                Err(_) => self.unproven_cast(expression),
            };
        }
        if a.is_empty() {
            return a;
        }
        match (from.family(), to.family()) {
            _ if from == to => a,
            (Family::Integer | Family::Numeric, Family::Integer | Family::Numeric) => {
                let scaled = self.fit_wide(expression, a.rescaled(from.scale(), to.scale()));
                self.fit(expression, scaled)
            }
            (_, Family::Text) => {
                let length = text_length(from, a);
                let most = type_range(to);
                if length.high > most.high {
                    self.fails(|p| format!("{} could be too long for {to}", p.text(expression)));
                }
                Interval::new(0, length.high.min(most.high))
            }
            (Family::Integer | Family::Numeric, Family::Double) => Interval::EVERY,
            (Family::Timestamp, Family::Date) => {
                let day = i128::from(calendar::DAY_MICROS);
                Interval::new(a.low.div_euclid(day), a.high.div_euclid(day))
            }
            (Family::Date, Family::Timestamp) => {
                self.fit(expression, a.times(Interval::only(calendar::DAY_MICROS.into())))
            }
            _ => self.unproven_cast(expression),
        }
    }

    fn range_of_call(
        &mut self,
        expression: &Expression,
        function: Function,
        arguments: &[Expression],
        ranges: &[Interval],
    ) -> Interval {
        match (function, ranges) {
            (Function::Abs, [a]) if expression.ty.data_type.is_exact() => self.fit(expression, a.magnitude()),
            (Function::Length, [a]) => *a,
            (Function::Lower | Function::Upper, [a]) => {
                // Some characters become three, or three bytes longer ('ffi' ligature, dotted I).
                let bytes = byte_length(&arguments[0], *a).saturating_mul(3);
                self.fit_length(expression, a.times(Interval::only(3)), bytes)
            }
            (Function::Substring, [a, _, count]) => {
                if count.low < 0 && !count.is_empty() {
                    self.fails(|p| format!("the count of {} could be negative", p.text(expression)));
                }
                Interval::new(0, a.high.min(count.high).max(0))
            }
            (Function::Overlay, [a, by, from]) => {
                if !from.is_empty() && from.low < 1 {
                    self.fails(|p| format!("the position of {} could be below 1", p.text(expression)));
                }
                // The replacement ends inside the text, or its own length behind where the text ends or
                // the position is. In bytes, text may also grow by replacing short characters.
                let reach = a.high.min(from.high.saturating_sub(1)).max(0).saturating_add(by.high);
                let longest = a.high.max(reach);
                let bytes = match expression.ty.data_type {
                    DataType::Bytea => longest,
                    _ => byte_length(&arguments[0], *a) + byte_length(&arguments[1], *by),
                };
                self.fit_length(expression, Interval::new(0, longest), bytes)
            }
            // What is known of text is its length, which says nothing of its order.
            (Function::Least | Function::Greatest, _)
                if matches!(expression.ty.data_type.family(), Family::Text | Family::Bytea) =>
            {
                ranges.iter().fold(Interval::EMPTY, |all, range| all.hull(*range))
            }
            (Function::Least, _) => {
                let flipped: Vec<Interval> = ranges.iter().map(|range| range.negated()).collect();
                greatest(arguments, &flipped).negated()
            }
            (Function::Greatest, _) => greatest(arguments, ranges),
            (Function::Concat, _) => {
                let bytes =
                    arguments.iter().zip(ranges).map(|(argument, range)| byte_length(argument, *range)).sum();
                let length = ranges.iter().fold(Interval::only(0), |sum, range| {
                    Interval::new(0, sum.high.saturating_add(range.high.max(0)))
                });
                self.fit_length(expression, length, bytes)
            }
            (Function::Bits(_) | Function::BitNot | Function::Sign | Function::Extract(_), _) => {
                type_range(expression.ty.data_type)
            }
            (Function::Like | Function::ILike, _) => {
                if !is_sound_pattern(arguments) {
                    self.fails(|p| {
                        format!("the pattern of {} could end with its escape", p.text(expression))
                    });
                }
                Interval::EVERY
            }
            (Function::Trim | Function::TrimLeft | Function::TrimRight | Function::Reverse, [a, ..])
            | (Function::Left | Function::Right, [a, ..]) => Interval::new(0, a.high.max(0)),
            (Function::Coalesce, _) => ranges.iter().fold(Interval::EMPTY, |all, range| all.hull(*range)),
            (function, _) => {
                let data_type = expression.ty.data_type;
                let first = arguments.first().map_or(data_type, |argument| argument.ty.data_type);
                let operation = FunctionOperation::of(function, first, data_type);
                if operation.is_ok_and(FunctionOperation::can_fail) {
                    self.fails(|p| format!("{} could fail", p.text(expression)));
                }
                type_range(data_type)
            }
        }
    }

    fn range_of_aggregate(
        &mut self,
        expression: &Expression,
        aggregate: Aggregate,
        field: DataType,
        length: Interval,
        values: Interval,
    ) -> Interval {
        let count = length.high.max(0).cast_unsigned();
        let to = expression.ty.data_type;
        match aggregate {
            Aggregate::Count | Aggregate::CountDistinct => length.hull(Interval::only(0)),
            Aggregate::Min | Aggregate::Max => values,
            Aggregate::Sum | Aggregate::Average if count == 0 => Interval::EMPTY,
            _ if to == DataType::Double => self.unproven_double(expression),
            Aggregate::Sum => self.fit(expression, values.repeated(count)),
            Aggregate::Average => {
                let sum = self.fit_wide(expression, values.repeated(count));
                self.fit_wide(expression, sum.rescaled(field.scale(), to.scale()));
                // Rounding can reach one unit beyond the extremes.
                let average = values.rescaled(field.scale(), to.scale());
                self.fit(expression, average.plus(Interval::new(-1, 1)))
            }
        }
    }

    /// The part of an interval that fits the expression's type; fails if not all of it does.
    fn fit(&mut self, expression: &Expression, interval: Interval) -> Interval {
        let data_type = expression.ty.data_type;
        let most = match data_type {
            DataType::Date => {
                let (first, last) = calendar::DATE_RANGE;
                Interval::new(first.into(), last.into())
            }
            data_type => type_range(data_type),
        };
        if !most.covers(interval) {
            self.fails(|p| format!("{} is not proven to fit {data_type}", p.text(expression)));
        }
        most.meet(interval)
    }

    /// Likewise for what is computed on the way: 128 bits.
    fn fit_wide(&mut self, expression: &Expression, interval: Interval) -> Interval {
        if interval.low == i128::MIN || interval.high == i128::MAX {
            self.fails(|p| format!("{} is not proven to fit 128 bits on the way", p.text(expression)));
        }
        interval
    }

    /// Likewise for text that an operation makes, of at most so many bytes.
    fn fit_length(&mut self, expression: &Expression, length: Interval, bytes: i128) -> Interval {
        const MOST: i128 = limit::BLOB_BYTES as i128;
        if bytes > MOST {
            self.fails(|p| format!("{} could be longer than {MOST} bytes", p.text(expression)));
        }
        Interval::new(0, length.high.clamp(0, MOST))
    }

    fn unproven_double(&mut self, expression: &Expression) -> Interval {
        self.fails(|p| format!("{} could overflow double precision", p.text(expression)));
        Interval::EVERY
    }

    fn unproven_cast(&mut self, expression: &Expression) -> Interval {
        let to = expression.ty.data_type;
        self.fails(|p| format!("{} may not convert to {to}", p.text(expression)));
        type_range(to)
    }

    /// What is known where a condition is true.
    pub(super) fn assume_true(&mut self, known: &mut Knowledge, condition: &Expression) {
        match &condition.kind {
            ExpressionKind::Constant(value) => known.reachable &= *value == Value::Boolean(true),
            ExpressionKind::Unary(UnaryOperator::Not, operand) => self.assume_false(known, operand),
            ExpressionKind::Binary(BinaryOperator::And, left, right) => {
                self.assume_true(known, left);
                self.assume_true(known, right);
            }
            ExpressionKind::Binary(BinaryOperator::Or, left, right) => {
                if !self.learns() {
                    return;
                }
                let mut other = known.clone();
                self.assume_true(known, left);
                self.assume_true(&mut other, right);
                *known = known.clone().join(other);
            }
            ExpressionKind::Binary(operator, left, right) => self.compare(known, *operator, left, right),
            _ => {}
        }
    }

    /// What is known where a condition is false, not null.
    fn assume_false(&mut self, known: &mut Knowledge, condition: &Expression) {
        match &condition.kind {
            ExpressionKind::Constant(value) => known.reachable &= *value == Value::Boolean(false),
            ExpressionKind::Unary(UnaryOperator::Not, operand) => self.assume_true(known, operand),
            ExpressionKind::Binary(BinaryOperator::Or, left, right) => {
                self.assume_false(known, left);
                self.assume_false(known, right);
            }
            ExpressionKind::Binary(BinaryOperator::And, left, right) => {
                if !self.learns() {
                    return;
                }
                let mut other = known.clone();
                self.assume_false(known, left);
                self.assume_false(&mut other, right);
                *known = known.clone().join(other);
            }
            ExpressionKind::Binary(operator, left, right) => {
                if let Some(opposite) = opposite(*operator) {
                    self.compare(known, opposite, left, right);
                }
            }
            _ => {}
        }
    }

    /// What is known where a condition is false or null.
    pub(super) fn assume_not_true(&mut self, known: &mut Knowledge, condition: &Expression) {
        if !condition.ty.nullable {
            self.assume_false(known, condition);
        }
    }

    /// What is known where a condition is true or null.
    fn assume_not_false(&mut self, known: &mut Knowledge, condition: &Expression) {
        if !condition.ty.nullable {
            self.assume_true(known, condition);
        }
    }

    fn compare(
        &mut self,
        known: &mut Knowledge,
        operator: BinaryOperator,
        left: &Expression,
        right: &Expression,
    ) {
        // Two values are the same, or not, as in `=`; where both may be null, nothing follows.
        let operator = match (operator, left.ty.nullable, right.ty.nullable) {
            (BinaryOperator::IsNotDistinct, false, _) | (BinaryOperator::IsNotDistinct, _, false) => {
                BinaryOperator::Equal
            }
            (BinaryOperator::IsDistinct, false, false) => BinaryOperator::NotEqual,
            (operator, ..) => operator,
        };
        let ordered = |ty: DataType| ty.is_exact() || matches!(ty, DataType::Date | DataType::Timestamp);
        let comparison = matches!(
            operator,
            BinaryOperator::Equal
                | BinaryOperator::NotEqual
                | BinaryOperator::Less
                | BinaryOperator::LessEqual
                | BinaryOperator::Greater
                | BinaryOperator::GreaterEqual
        );
        if !comparison || !ordered(left.ty.data_type) || !ordered(right.ty.data_type) {
            return;
        }
        // They have been looked at once as parts of the condition; twice at each level would be for ever.
        if has_conditions(left) || has_conditions(right) {
            return;
        }
        let (a, b) = self.silently(|prover| (prover.range(known, left), prover.range(known, right)));
        self.narrow(known, left, a.meet(allowed(operator, a, b)));
        self.narrow(known, right, b.meet(allowed(mirrored(operator), b, a)));
    }

    fn narrow(&mut self, known: &mut Knowledge, expression: &Expression, to: Interval) {
        known.reachable &= !to.is_empty();
        match &expression.kind {
            ExpressionKind::Variable(variable) => known.narrow(&self.cells, *variable, to),
            ExpressionKind::Constant(_) => {}
            ExpressionKind::Aggregate { aggregate: Aggregate::Count, list, .. } => {
                let length = self.cells.length(*list);
                known.set(length, known.get(length).meet(to));
            }
            ExpressionKind::Cast(operand)
                if operand.ty.data_type.is_exact()
                    && expression.ty.data_type.is_exact()
                    && operand.ty.data_type.scale() <= expression.ty.data_type.scale() =>
            {
                let scales = (operand.ty.data_type.scale(), expression.ty.data_type.scale());
                self.narrow(known, operand, to.unscaled(scales.0, scales.1));
            }
            // Another draw is another number.
            _ if draws_random(expression) => {}
            _ => {
                known.facts.retain(|(fact, _)| fact != expression);
                if known.facts.len() < FACTS {
                    known.facts.push((expression.clone(), to));
                }
            }
        }
    }
}

/// Whether conditions are evaluated within a value.
fn has_conditions(value: &Expression) -> bool {
    value.ty.data_type == DataType::Boolean
        || match &value.kind {
            ExpressionKind::Case { .. } => true,
            ExpressionKind::Unary(_, operand) | ExpressionKind::Cast(operand) => has_conditions(operand),
            ExpressionKind::Binary(_, left, right) => has_conditions(left) || has_conditions(right),
            ExpressionKind::Call(_, arguments) => arguments.iter().any(has_conditions),
            ExpressionKind::Element { index, .. } => has_conditions(index),
            ExpressionKind::Constant(_)
            | ExpressionKind::Variable(_)
            | ExpressionKind::Aggregate { .. }
            | ExpressionKind::Now
            | ExpressionKind::Random => false,
        }
}

/// What `a op b` allows for `a`.
fn allowed(operator: BinaryOperator, a: Interval, b: Interval) -> Interval {
    if b.is_empty() {
        return Interval::EMPTY;
    }
    match operator {
        BinaryOperator::Equal => b,
        BinaryOperator::NotEqual if b.low == b.high && a.low == b.low => {
            Interval::new(a.low.saturating_add(1), i128::MAX)
        }
        BinaryOperator::NotEqual if b.low == b.high && a.high == b.low => {
            Interval::new(i128::MIN, a.high.saturating_sub(1))
        }
        BinaryOperator::Less => Interval::new(i128::MIN, b.high.saturating_sub(1)),
        BinaryOperator::LessEqual => Interval::new(i128::MIN, b.high),
        BinaryOperator::Greater => Interval::new(b.low.saturating_add(1), i128::MAX),
        BinaryOperator::GreaterEqual => Interval::new(b.low, i128::MAX),
        _ => Interval::EVERY,
    }
}

fn mirrored(operator: BinaryOperator) -> BinaryOperator {
    match operator {
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessEqual => BinaryOperator::GreaterEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterEqual => BinaryOperator::LessEqual,
        same => same,
    }
}

fn opposite(operator: BinaryOperator) -> Option<BinaryOperator> {
    Some(match operator {
        BinaryOperator::Equal => BinaryOperator::NotEqual,
        BinaryOperator::NotEqual => BinaryOperator::Equal,
        BinaryOperator::Less => BinaryOperator::GreaterEqual,
        BinaryOperator::LessEqual => BinaryOperator::Greater,
        BinaryOperator::Greater => BinaryOperator::LessEqual,
        BinaryOperator::GreaterEqual => BinaryOperator::Less,
        BinaryOperator::IsDistinct => BinaryOperator::IsNotDistinct,
        BinaryOperator::IsNotDistinct => BinaryOperator::IsDistinct,
        _ => return None,
    })
}

/// At least what every argument that cannot be null has; at most what any has.
fn greatest(arguments: &[Expression], ranges: &[Interval]) -> Interval {
    let all = ranges.iter().fold(Interval::EMPTY, |all, range| all.hull(*range));
    let certain =
        arguments.iter().zip(ranges).filter(|(argument, range)| !argument.ty.nullable && !range.is_empty());
    let low = certain.map(|(_, range)| range.low).fold(all.low, i128::max);
    if all.is_empty() { all } else { Interval::new(low, all.high) }
}

/// The interval of a constant: the number, or the length of text.
fn constant_range(value: &Value) -> Interval {
    match value {
        Value::Null => Interval::EMPTY,
        Value::SmallInt(v) => Interval::only((*v).into()),
        Value::Int(v) | Value::Date(v) => Interval::only((*v).into()),
        Value::BigInt(v) | Value::Timestamp(v) => Interval::only((*v).into()),
        Value::Numeric(v) => Interval::only(v.mantissa),
        Value::Text(v) => Interval::only(v.chars().count() as i128),
        Value::Bytea(v) => Interval::only(v.len() as i128),
        Value::Boolean(_) | Value::Double(_) | Value::List(_) => Interval::EVERY,
    }
}

/// How many characters a value of a type has as text.
fn text_length(from: DataType, range: Interval) -> Interval {
    let most = match from.family() {
        Family::Text => return range,
        Family::Boolean => 5,
        Family::Integer => 20,
        Family::Numeric => 41,
        // Written out in full: 0.000... with 17 digits behind 323 zeros.
        Family::Double => 400,
        Family::Bytea => return range.times(Interval::only(2)).plus(Interval::only(2)),
        Family::Date => 24,
        Family::Timestamp => 48,
    };
    Interval::new(0, most)
}

/// Whether the arguments of a `like` are known never to be an error.
fn is_sound_pattern(arguments: &[Expression]) -> bool {
    let constant = |at: usize| match arguments.get(at).map(|argument| &argument.kind) {
        Some(ExpressionKind::Constant(Value::Text(text))) => Some(text.as_str()),
        _ => None,
    };
    let escape = match arguments.len() {
        2 => Some("\\"),
        _ => constant(2).filter(|escape| escape.chars().count() <= 1),
    };
    match (constant(1), escape) {
        (Some(pattern), Some(escape)) => pattern::is_sound(pattern, escape.chars().next()),
        _ => false,
    }
}

/// How many bytes text or bytea of this length has at most: four a character, and never more than a
/// value may have.
fn byte_length(expression: &Expression, length: Interval) -> i128 {
    let width = if expression.ty.data_type == DataType::Bytea { 1 } else { 4 };
    length.high.clamp(0, limit::BLOB_BYTES as i128).saturating_mul(width).min(limit::BLOB_BYTES as i128)
}
