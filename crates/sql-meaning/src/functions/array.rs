//! Functions of arrays.

use super::regular_expression::like_pattern;
use super::{Definition, array_of, define, elements_at, integer_at, text_at, truth_at};
use crate::sql_type::SqlType;
use fabius_program::operation::function::regular_expression::pattern;
use fabius_value::interval::Interval;
use fabius_value::value_text::numeric_overflow;
use fabius_value::{Decimal, Error, Result, SqlState, Value};
use std::cmp::Ordering;

/// Most elements of an array that a function makes.
const ELEMENTS: i64 = 10_000_000;

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        define("array_length(anyarray, int) int", |a, _| Ok(extent(a))),
        define("array_upper(anyarray, int) int", |a, _| Ok(extent(a))),
        define("array_lower(anyarray, int) int", |a, _| {
            Ok(if extent(a).is_null() { Value::Null } else { Value::Int(1) })
        }),
        define("array_ndims(anyarray) int", |a, _| {
            let count = dimensions(&a[0]).len() as i32;
            Ok(if count == 0 { Value::Null } else { Value::Int(count) })
        }),
        define("cardinality(anyarray) int", |a, _| Ok(Value::Int(flat(&a[0]).len() as i32))),
        define("fabius_flat(anyarray) any", |a, _| Ok(array_of(flat(&a[0])))),
        define("array_to_string(anyarray, text, text?) text null", |a, call| {
            if a.iter().take(2).any(Value::is_null) {
                return Ok(Value::Null);
            }
            let element = call.types.first().unwrap_or(&SqlType::Text).innermost();
            let mut arguments = a.to_vec();
            arguments[0] = array_of(flat(&a[0]));
            Ok(Value::Text(super::text::join_elements(&arguments, element, &call.environment.style)))
        }),
        define("array_append(anycompatiblearray, anycompatible) anycompatiblearray null", |a, _| {
            let mut elements = elements_at(a, 0);
            elements.push(a[1].clone());
            Ok(array_of(elements))
        }),
        define("array_prepend(anycompatible, anycompatiblearray) anycompatiblearray null", |a, _| {
            let mut elements = elements_at(a, 1);
            elements.insert(0, a[0].clone());
            Ok(array_of(elements))
        }),
        define("array_cat(anycompatiblearray, anycompatiblearray) anycompatiblearray null", |a, _| {
            if a.iter().all(Value::is_null) {
                return Ok(Value::Null);
            }
            Ok(array_of(elements_at(a, 0).into_iter().chain(elements_at(a, 1))))
        }),
        define("array_remove(anycompatiblearray, anycompatible) anycompatiblearray null", |a, _| {
            if a[0].is_null() {
                return Ok(Value::Null);
            }
            Ok(array_of(elements_at(a, 0).into_iter().filter(|element| !are_same(element, &a[1]))))
        }),
        define(
            "array_replace(anycompatiblearray, anycompatible, anycompatible) anycompatiblearray null",
            |a, _| {
                if a[0].is_null() {
                    return Ok(Value::Null);
                }
                let new = |element: Value| if are_same(&element, &a[1]) { a[2].clone() } else { element };
                Ok(array_of(elements_at(a, 0).into_iter().map(new)))
            },
        ),
        define("array_position(anycompatiblearray, anycompatible, int?) int null", |a, _| {
            let from = (integer_at(a, 2) - 1).max(0) as usize;
            let found = elements_at(a, 0).iter().skip(from).position(|element| are_same(element, &a[1]));
            Ok(found.map_or(Value::Null, |at| Value::Int((at + from + 1) as i32)))
        }),
        define("array_positions(anycompatiblearray, anycompatible) int[] null", |a, _| {
            let elements = elements_at(a, 0);
            let places = elements.iter().enumerate().filter(|(_, element)| are_same(element, &a[1]));
            Ok(array_of(places.map(|(at, _)| Value::Int(at as i32 + 1))))
        }),
        define("array_fill(anyelement, int[]) anyarray null", |a, _| {
            let extents = elements_at(a, 1);
            if extents.len() > 1 {
                let message = "array_fill of several dimensions is not supported";
                return Err(Error::new(SqlState::NOT_SUPPORTED, message));
            }
            Ok(array_of((0..checked(integer_at(&extents, 0))?).map(|_| a[0].clone())))
        }),
        define("trim_array(anyarray, int) anyarray", trimmed),
        define("array_dims(anyarray) text", |a, _| {
            let extents = dimensions(&a[0]).into_iter().map(|extent| format!("[1:{extent}]"));
            let shown: String = extents.collect();
            Ok(if shown.is_empty() { Value::Null } else { Value::Text(shown) })
        }),
        // Behind `array[i]`, `array[a:b]`, `= ANY (array)`, `@>`, `<@` and `&&`.
        define("fabius_element(anyarray, bigint) anyelement", |a, _| {
            let at = usize::try_from(integer_at(a, 1) - 1).ok();
            Ok(at.and_then(|at| elements_at(a, 0).get(at).cloned()).unwrap_or_default())
        }),
        define("fabius_slice(anyarray, bigint, bigint) anyarray", |a, _| {
            let (from, to) = (integer_at(a, 1).max(1), integer_at(a, 2));
            let count = usize::try_from(to - from + 1).unwrap_or(0);
            Ok(array_of(elements_at(a, 0).into_iter().skip(from as usize - 1).take(count)))
        }),
        // `LEAST` and `GREATEST` of what is not ordered as it is kept.
        define("fabius_least(anyelement...) anyelement null", |a, _| Ok(extreme(a, Ordering::Less))),
        define("fabius_greatest(anyelement...) anyelement null", |a, _| Ok(extreme(a, Ordering::Greater))),
        define("fabius_any(anyelement, text, anyarray) bool null", |a, _| quantified(a, true)),
        define("fabius_all(anyelement, text, anyarray) bool null", |a, _| quantified(a, false)),
        // What arrays are compared and sorted by.
        define("fabius_array_order(anyarray) bytea", |a, _| {
            let mut key = Vec::new();
            elements_at(a, 0).iter().for_each(|element| order(element, &mut key));
            key.push(0);
            Ok(Value::Bytea(key))
        }),
        define("@>(anyarray, anyarray) bool", |a, _| Ok(contains(&a[0], &a[1]))),
        define("<@(anyarray, anyarray) bool", |a, _| Ok(contains(&a[1], &a[0]))),
        define("&&(anyarray, anyarray) bool", |a, _| {
            let left = elements_at(a, 0);
            let has = |element: &Value| !element.is_null() && left.iter().any(|of| are_same(of, element));
            Ok(Value::Boolean(elements_at(a, 1).iter().any(has)))
        }),
        define("fabius_array(any...) any null", |a, _| Ok(array_of(a.iter().cloned()))),
        // Behind `generate_series` and its like, which are unnested.
        define("fabius_series(bigint, bigint, bigint?) bigint[]", |a, _| {
            let (from, to) = (integer_at(a, 0), integer_at(a, 1));
            let step = if a.len() > 2 { integer_at(a, 2) } else { 1 };
            if step == 0 {
                return Err(Error::new(SqlState::INVALID_PARAMETER, "step size cannot equal zero"));
            }
            let count = checked(
                ((i128::from(to) - i128::from(from)) / i128::from(step) + 1).clamp(0, i64::MAX.into()) as i64,
            )?;
            let is_empty = (step > 0 && from > to) || (step < 0 && from < to);
            Ok(array_of((0..if is_empty { 0 } else { count }).map(|n| Value::BigInt(from + n * step))))
        }),
        define("fabius_no_oids(oid) oid[]", |_, _| Ok(array_of([]))),
        define("fabius_series(numeric, numeric, numeric?) numeric[]", |a, _| numeric_series(a)),
        define("fabius_subscripts(anyarray, int) int[]", |a, _| {
            let base = integer_at(a, 1) as i32;
            Ok(array_of((0..elements_at(a, 0).len() as i32).map(|at| Value::Int(base + at))))
        }),
    ];
    all.extend(ordered_sets());
    all
}

fn trimmed(a: &[Value], _: &super::Call) -> Result<Value> {
    let mut elements = elements_at(a, 0);
    let trimmed = usize::try_from(integer_at(a, 1)).ok();
    let kept = trimmed.and_then(|trimmed| elements.len().checked_sub(trimmed)).ok_or_else(|| {
        let message = format!("number of elements to trim must be between 0 and {}", elements.len());
        Error::new(SqlState(*b"2202E"), message)
    })?;
    elements.truncate(kept);
    Ok(array_of(elements))
}

/// How many elements an array has in each of its dimensions.
fn dimensions(array: &Value) -> Vec<usize> {
    let mut extents = Vec::new();
    let mut elements = parts(array);
    while !elements.is_empty() {
        extents.push(elements.len());
        elements = parts(&elements[0]);
    }
    extents
}

/// The elements of an array of any number of dimensions, the last of which goes round fastest.
fn flat(array: &Value) -> Vec<Value> {
    let is_nested =
        |element: &Value| matches!(element, Value::List(_)) && Interval::of_value(element).is_none();
    let elements = parts(array).into_iter();
    elements.flat_map(|element| if is_nested(&element) { flat(&element) } else { vec![element] }).collect()
}

/// The elements of a value, if it is an array.
fn parts(value: &Value) -> Vec<Value> {
    match value {
        Value::List(_) if Interval::of_value(value).is_none() => elements_at(std::slice::from_ref(value), 0),
        _ => Vec::new(),
    }
}

/// How many elements an array has in the dimension of a number.
fn extent(a: &[Value]) -> Value {
    let place = usize::try_from(integer_at(a, 1) - 1).ok();
    let extent = place.and_then(|place| dimensions(&a[0]).get(place).copied());
    extent.map_or(Value::Null, |extent| Value::Int(extent as i32))
}

/// Behind aggregates of sorted values.
fn ordered_sets() -> Vec<Definition> {
    vec![
        // Behind aggregates: an array in order, ascending or not, nulls first or last.
        define("fabius_sorted(anyarray, bool, bool) anyarray", |a, _| {
            let (is_ascending, nulls_first) = (truth_at(a, 1), truth_at(a, 2));
            let mut elements = elements_at(a, 0);
            elements.sort_by(|left, right| match (left.is_null(), right.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) if nulls_first => Ordering::Less,
                (false, true) if !nulls_first => Ordering::Less,
                (true, false) | (false, true) => Ordering::Greater,
                (false, false) => {
                    let order = compare(left, right).unwrap_or(Ordering::Equal);
                    if is_ascending { order } else { order.reverse() }
                }
            });
            Ok(array_of(elements))
        }),
        define("fabius_once_each(anyarray) anyarray", |a, _| {
            let mut elements = elements_at(a, 0);
            elements.dedup_by(|one, other| are_same(one, other));
            Ok(array_of(elements))
        }),
        define("fabius_percentile_cont(float8[], float8) float8", |a, _| between(&elements_at(a, 0), &a[1])),
        define("fabius_percentile_cont(float8[], float8[]) float8[]", |a, _| each_share(a, between)),
        define("fabius_percentile_cont(interval[], float8) interval", |a, _| {
            between_intervals(&elements_at(a, 0), &a[1])
        }),
        define("fabius_percentile_cont(interval[], float8[]) interval[]", |a, _| {
            each_share(a, between_intervals)
        }),
        define("fabius_percentile_disc(anyarray, float8) anyelement", |a, _| {
            first_from(&elements_at(a, 0), &a[1])
        }),
        define("fabius_percentile_disc(anyarray, float8[]) anyarray", |a, _| each_share(a, first_from)),
        define("fabius_mode(anyarray) anyelement", |a, _| {
            // The values are in order: equal ones stand together.
            let (mut best, mut most, mut count) = (Value::Null, 0, 0);
            let mut before = Value::Null;
            for value in elements_at(a, 0) {
                count = if value == before { count + 1 } else { 1 };
                if count > most {
                    (best, most) = (value.clone(), count);
                }
                before = value;
            }
            Ok(best)
        }),
    ]
}

/// Numbers from one on to another, whose digits are those of all of them.
fn numeric_series(a: &[Value]) -> Result<Value> {
    let numeric = |at: usize| match a.get(at) {
        Some(Value::Numeric(decimal)) => *decimal,
        _ => Decimal { mantissa: 1, scale: 0 },
    };
    let (from, to, step) = (numeric(0), numeric(1), numeric(2));
    let scale = from.scale.max(to.scale).max(step.scale);
    let scaled = |decimal: Decimal| decimal.rescale(scale).map(|it| it.mantissa).ok_or_else(numeric_overflow);
    let (from, to, step) = (scaled(from)?, scaled(to)?, scaled(step)?);
    if step == 0 {
        return Err(Error::new(SqlState::INVALID_PARAMETER, "step size cannot equal zero"));
    }
    if (step > 0) == (from > to) && from != to {
        return Ok(array_of([]));
    }
    let count = to.checked_sub(from).ok_or_else(numeric_overflow)? / step + 1;
    let count = checked(count.try_into().unwrap_or(i64::MAX))?;
    Ok(array_of((0..count).map(|n| Value::Numeric(Decimal { mantissa: from + i128::from(n) * step, scale }))))
}

/// Whether an array has all elements of another.
fn contains(array: &Value, part: &Value) -> Value {
    let elements = elements_at(std::slice::from_ref(array), 0);
    let has = |element: &Value| !element.is_null() && elements.iter().any(|of| are_same(of, element));
    Value::Boolean(elements_at(std::slice::from_ref(part), 0).iter().all(has))
}

/// The share that a percentile is of.
fn share(value: &Value) -> Result<f64> {
    let fraction = super::double_at(std::slice::from_ref(value), 0);
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    Err(Error::new(SqlState::OUT_OF_RANGE, format!("percentile value {fraction} is not between 0 and 1")))
}

/// The percentile of each share of an array.
fn each_share(a: &[Value], percentile: fn(&[Value], &Value) -> Result<Value>) -> Result<Value> {
    let elements = elements_at(a, 0);
    if elements.is_empty() {
        return Ok(Value::Null);
    }
    let shares = elements_at(a, 1);
    let of_each = shares.iter().map(|share| match share {
        Value::Null => Ok(Value::Null),
        share => percentile(&elements, share),
    });
    Ok(array_of(of_each.collect::<Result<Vec<_>>>()?))
}

/// The number that has a share of sorted numbers below it, between two of them if it falls there.
fn between(elements: &[Value], value: &Value) -> Result<Value> {
    let number = |value: &Value| super::double_at(std::slice::from_ref(value), 0);
    let found = neighbours(elements, value)?.map(|(low, high, part)| {
        let (low, high) = (number(low), number(high));
        Value::Double(low + (high - low) * part)
    });
    Ok(found.unwrap_or_default())
}

/// As [`between`], of intervals.
fn between_intervals(elements: &[Value], value: &Value) -> Result<Value> {
    let Some((low, high, part)) = neighbours(elements, value)? else { return Ok(Value::Null) };
    let (Some(low), Some(high)) = (Interval::of_value(low), Interval::of_value(high)) else {
        return Ok(Value::Null);
    };
    low.checked_neg()
        .and_then(|negated| high.checked_add(negated)?.scaled(|field| field * part)?.checked_add(low))
        .map(Interval::into_value)
        .ok_or_else(|| Error::new(SqlState::DATETIME_OVERFLOW, "interval out of range"))
}

/// The sorted values on both sides of a share of them, and how much of the way between them it is.
fn neighbours<'e>(elements: &'e [Value], value: &Value) -> Result<Option<(&'e Value, &'e Value, f64)>> {
    let place = share(value)? * (elements.len().max(1) - 1) as f64;
    let at = |place: f64| elements.get(place as usize);
    Ok(at(place.floor()).zip(at(place.ceil())).map(|(low, high)| (low, high, place.fract())))
}

/// The first of sorted values that has a share of them at or before it.
fn first_from(elements: &[Value], value: &Value) -> Result<Value> {
    let place = (share(value)? * elements.len() as f64).ceil() as usize;
    Ok(elements.get(place.saturating_sub(1)).cloned().unwrap_or_default())
}

fn checked(count: i64) -> Result<i64> {
    if count > ELEMENTS {
        return Err(Error::new(SqlState::PROGRAM_LIMIT, "array size exceeds the maximum allowed")
            .with_detail(format!("it would have {count} elements, at most {ELEMENTS} are allowed")));
    }
    Ok(count)
}

/// Whether two elements are the same: equal, or both null.
fn are_same(one: &Value, other: &Value) -> bool {
    one == other || compare(one, other) == Some(Ordering::Equal)
}

/// Compares two values of one type; `None` if one is null.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    use Value as V;
    Some(match (left, right) {
        (V::Null, _) | (_, V::Null) => return None,
        (V::List(_), V::List(_)) => {
            let span = |value| Interval::of_value(value).map(Interval::span);
            match (span(left), span(right)) {
                (Some(left), Some(right)) => left.cmp(&right),
                _ => return compare_arrays(left, right),
            }
        }
        (V::Boolean(a), V::Boolean(b)) => a.cmp(b),
        // Zero has no sign here, and NaN is the largest.
        (V::Double(a), V::Double(b)) => a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        (V::Text(a), V::Text(b)) => a.cmp(b),
        (V::Bytea(a), V::Bytea(b)) => a.cmp(b),
        (V::Date(a), V::Date(b)) => a.cmp(b),
        (V::Timestamp(a), V::Timestamp(b)) => a.cmp(b),
        (V::Numeric(a), V::Numeric(b)) => {
            let scale = a.scale.max(b.scale);
            match (a.rescale(scale), b.rescale(scale)) {
                (Some(a), Some(b)) => a.mantissa.cmp(&b.mantissa),
                _ => a.to_f64().total_cmp(&b.to_f64()),
            }
        }
        (a, b) => a.as_integer()?.cmp(&b.as_integer()?),
    })
}

/// Appends an element of an array in bytes that are ordered as elements are: what has ended comes first, null last.
/// Elements of one array have one type.
fn order(element: &Value, key: &mut Vec<u8>) {
    use Value as V;
    if element.is_null() {
        return key.push(2);
    }
    key.push(1);
    let escaped = |bytes: &[u8], key: &mut Vec<u8>| {
        for &byte in bytes {
            key.push(byte);
            if byte == 0 {
                key.push(0xff);
            }
        }
        key.extend([0, 0]);
    };
    let whole = |number: i128, key: &mut Vec<u8>| key.extend((number as u128 ^ 1 << 127).to_be_bytes());
    match element {
        V::Null => {}
        V::Boolean(truth) => key.push((*truth).into()),
        V::Text(text) => escaped(text.as_bytes(), key),
        V::Bytea(bytes) => escaped(bytes, key),
        V::Double(number) => {
            let bits = if number.is_nan() { f64::NAN.to_bits() } else { (number + 0.0).to_bits() };
            let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
            key.extend(ordered.to_be_bytes());
        }
        V::Numeric(number) => whole(number.mantissa, key),
        V::Date(days) => whole(i128::from(*days), key),
        V::Timestamp(micros) => whole(i128::from(*micros), key),
        V::List(rows) => match Interval::of_value(element) {
            Some(interval) => whole(interval.span(), key),
            None => {
                rows.iter().flatten().for_each(|element| order(element, key));
                key.push(0);
            }
        },
        V::SmallInt(_) | V::Int(_) | V::BigInt(_) => {
            whole(element.as_integer().map_or(0, i128::from), key);
        }
    }
}

/// The value that lies on a side of all others that are not null; the first of equal ones.
fn extreme(values: &[Value], side: Ordering) -> Value {
    let mut best = &Value::Null;
    for value in values.iter().filter(|value| !value.is_null()) {
        if best.is_null() || compare(value, best) == Some(side) {
            best = value;
        }
    }
    best.clone()
}

/// Arrays by their first elements that differ, where null is larger than anything else; then by how many there are.
fn compare_arrays(left: &Value, right: &Value) -> Option<Ordering> {
    let elements = |value: &Value| elements_at(std::slice::from_ref(value), 0);
    let (left, right) = (elements(left), elements(right));
    for (one, other) in left.iter().zip(&right) {
        let order = match (one.is_null(), other.is_null()) {
            (false, false) => compare(one, other)?,
            (one, other) => one.cmp(&other),
        };
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(left.len().cmp(&right.len()))
}

/// `value operator ANY (array)` and `ALL`: null if only nulls stand in the way of an answer.
fn quantified(a: &[Value], is_any: bool) -> Result<Value> {
    let operator = text_at(a, 1);
    if a.get(2).is_none_or(Value::is_null) {
        return Ok(Value::Null);
    }
    let mut has_null = false;
    // Of no elements all hold, whatever the value is.
    for element in elements_at(a, 2) {
        let holds = match operator {
            "~~" | "~~*" | "!~~" | "!~~*" => match (&a[0], &element) {
                (Value::Text(text), Value::Text(like)) => {
                    let flags = if operator.ends_with('*') { "is" } else { "s" };
                    let found = pattern(&like_pattern(like), flags)?.is_match(text);
                    Some(found != operator.starts_with('!'))
                }
                _ => None,
            },
            "~" | "~*" | "!~" | "!~*" => match (&a[0], &element) {
                (Value::Text(text), Value::Text(regex)) => {
                    let flags = if operator.ends_with('*') { "i" } else { "" };
                    Some(pattern(regex, flags)?.is_match(text) != operator.starts_with('!'))
                }
                _ => None,
            },
            _ => compare(&a[0], &element).map(|order| match operator {
                "=" => order.is_eq(),
                "<>" => order.is_ne(),
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                _ => order.is_ge(),
            }),
        };
        match holds {
            Some(holds) if holds == is_any => return Ok(Value::Boolean(is_any)),
            Some(_) => {}
            None => has_null = true,
        }
    }
    Ok(if has_null { Value::Null } else { Value::Boolean(!is_any) })
}
