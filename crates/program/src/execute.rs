//! Runs compiled code over a context.
//!
//! A [`Frame`] is one run's state: registers, row handles, lists, open scans, and the place in the
//! code. Starting one decodes the call's arguments into it; running it goes on until the code ends,
//! aborts, or the context cannot answer yet:
//!
//! ```text
//! frame.start(&code, arguments, &arena)?;
//! loop {
//!     match run(&mut frame, &code, &mut context, &arena) {
//!         Ok(()) => break frame.results(&code),
//!         Err(Stop::Blocked) => compute_what_the_context_lacks(),   // then repeat the request
//!         Err(other) => return Err(other),
//!     }
//! }
//! ```
//!
//! A frame that is suspended owns all its state, so any number can wait at once. Text and bytes are
//! borrowed: from the arguments, from the context, or from the arena, all for `'a`. A frame's
//! buffers are kept from run to run, and [`recycle`](Frame::recycle) carries them over to the next
//! arena; no instruction allocates other than in the arena, and lists in their buffers.
//!
//! Invariant: an instruction that blocks has changed nothing, so the place is all there is to resume.

use crate::abort;
mod frame;

pub use frame::{ElementPlace, Frame, FrameFor, emptied};

use crate::arguments::list_value;
use crate::compile::Code;
use crate::compile::code::{FailureMessage, Mention};
use crate::compile::instruction::{Instruction, Register, Truth};
use crate::context::{Context, Deltas, Joins, ScanRange, Stop, WriteSet};
use crate::operation::{BinaryOperation, FunctionOperation, aggregate, sort};
use bumpalo::Bump;
use fabius_value::{Datum, Error, Result, Value};

/// Runs a frame until its code ends.
///
/// # Errors
/// [`Stop::Abort`] with the line of the step; [`Stop::Blocked`] and [`Stop::Restart`] as the context
/// gave them. After `Blocked`, running the frame again repeats the request that blocked.
pub fn run<'a, C: Context<'a>>(
    frame: &mut FrameFor<'a, C>,
    code: &Code,
    context: &mut C,
    arena: &'a Bump,
) -> Result<(), Stop> {
    let mut at = frame.at as usize;
    let outcome = go(frame, code, context, arena, &mut at);
    frame.at = at as u32;
    outcome.map_err(|stop| match stop {
        Stop::Abort(error) => {
            let error = about_operands(error, code, at, &frame.registers, &frame.lists);
            Stop::Abort(abort::at_line(error, code.lines[at]))
        }
        other => other,
    })
}

fn go<'a, C: Context<'a>>(
    frame: &mut FrameFor<'a, C>,
    code: &Code,
    context: &mut C,
    arena: &'a Bump,
    place: &mut usize,
) -> Result<(), Stop> {
    // In a local variable, so that it lives in a machine register.
    let mut at = *place;
    let Frame { registers, rows, lists, scans, turns, .. } = frame;
    let registers = &mut registers[..code.register_count];
    let instructions = code.instructions.as_slice();

    macro_rules! get {
        ($register:expr) => {
            registers[usize::from($register.0)]
        };
    }
    macro_rules! row {
        ($row:expr) => {
            rows[usize::from($row.0)]
        };
    }
    macro_rules! jump {
        ($target:expr) => {{
            at = $target.0 as usize;
            continue;
        }};
    }

    macro_rules! attempt {
        ($result:expr) => {
            match $result {
                Ok(value) => value,
                Err(error) => break Err(Stop::from(error)),
            }
        };
    }

    let outcome = loop {
        match instructions[at] {
            Instruction::Move { to, from } => move_to(registers, to, from),
            Instruction::Binary { operation, to, left, right } => {
                copy(&attempt!(binary(operation, &get!(left), &get!(right), arena)), &mut get!(to));
            }
            // A result is stored in its parts: a datum made elsewhere and copied here would have to wait
            // for the stores that made it (it is read back in other widths), five times the addition.
            Instruction::AddIntegers { width, to, left, right } => match (get!(left), get!(right)) {
                (Datum::Int(l), Datum::Int(r)) => get!(to) = Datum::Int(attempt!(width.add(l, r))),
                (l, r) => get!(to) = attempt!(binary(BinaryOperation::AddIntegers(width), &l, &r, arena)),
            },
            Instruction::SubtractIntegers { width, to, left, right } => match (get!(left), get!(right)) {
                (Datum::Int(l), Datum::Int(r)) => get!(to) = Datum::Int(attempt!(width.subtract(l, r))),
                (l, r) => {
                    get!(to) = attempt!(binary(BinaryOperation::SubtractIntegers(width), &l, &r, arena))
                }
            },
            Instruction::MultiplyIntegers { width, to, left, right } => match (get!(left), get!(right)) {
                (Datum::Int(l), Datum::Int(r)) => get!(to) = Datum::Int(attempt!(width.multiply(l, r))),
                (l, r) => {
                    get!(to) = attempt!(binary(BinaryOperation::MultiplyIntegers(width), &l, &r, arena))
                }
            },
            Instruction::AddNumerics { digits, to, left, right } => match (get!(left), get!(right)) {
                (Datum::Numeric(l), Datum::Numeric(r)) => {
                    get!(to) = Datum::Numeric(attempt!(digits.add(l, r)))
                }
                (l, r) => get!(to) = attempt!(binary(BinaryOperation::AddNumerics(digits), &l, &r, arena)),
            },
            Instruction::SubtractNumerics { digits, to, left, right } => match (get!(left), get!(right)) {
                (Datum::Numeric(l), Datum::Numeric(r)) => {
                    get!(to) = Datum::Numeric(attempt!(digits.subtract(l, r)));
                }
                (l, r) => {
                    get!(to) = attempt!(binary(BinaryOperation::SubtractNumerics(digits), &l, &r, arena))
                }
            },
            Instruction::Unary { operation, to, from } => {
                get!(to) = attempt!(operation.apply(get!(from)));
            }
            Instruction::Cast { cast, to, from } => {
                let cast = &code.casts[usize::from(cast)];
                if cast.keeps(&get!(from)) {
                    move_to(registers, to, from);
                } else {
                    get!(to) = attempt!(cast.apply(get!(from), arena));
                }
            }
            Instruction::Function { operation, to, first, count } => {
                let arguments = &registers[block(first, count.into())];
                match (operation, arguments) {
                    (FunctionOperation::Greatest, &[Datum::Int(l), Datum::Int(r)]) => {
                        get!(to) = Datum::Int(l.max(r));
                    }
                    (FunctionOperation::Least, &[Datum::Int(l), Datum::Int(r)]) => {
                        get!(to) = Datum::Int(l.min(r));
                    }
                    _ => copy(&attempt!(operation.apply(arguments, arena)), &mut get!(to)),
                }
            }
            Instruction::Aggregate { plan, to, list } => {
                let plan = &code.aggregates[usize::from(plan)];
                let values = lists[usize::from(list.0)].iter();
                let values = values.skip(plan.field.into()).step_by(plan.width.into()).copied();
                get!(to) =
                    attempt!(aggregate(plan.aggregate, plan.field_type, plan.result_type, values, arena));
            }
            Instruction::Element { to, list, index, field, width } => {
                copy(&element(&lists[usize::from(list.0)], get!(index), field, width), &mut get!(to));
            }
            Instruction::Now { to } => get!(to) = Datum::Int(context.now()),
            Instruction::Random { to } => get!(to) = Datum::Double(context.random()),

            Instruction::Jump { target } => jump!(target),
            Instruction::JumpCompare { comparison, when, left, right, target } => {
                let holds = match (&get!(left), &get!(right)) {
                    (Datum::Int(l), Datum::Int(r)) => comparison.has(l.cmp(r)),
                    (l, r) => comparison.holds(*l, *r) == Some(true),
                };
                if holds == when {
                    jump!(target);
                }
            }
            Instruction::JumpTruth { truth, condition, target } => {
                let condition = get!(condition);
                let taken = match truth {
                    Truth::True => condition == Datum::Boolean(true),
                    Truth::NotTrue => condition != Datum::Boolean(true),
                    Truth::False => condition == Datum::Boolean(false),
                    Truth::NotFalse => condition != Datum::Boolean(false),
                };
                if taken {
                    jump!(target);
                }
            }
            Instruction::JumpNull { when, value, target } => {
                if get!(value).is_null() == when {
                    jump!(target);
                }
            }
            Instruction::CheckNotNull { value, column } => {
                if get!(value).is_null() {
                    let (table, column) = &code.columns[usize::from(column)];
                    break Err(abort::null_in_column(table, column).into());
                }
            }
            Instruction::Fail { failure } => break Err(failed(code, failure, registers, lists).into()),
            Instruction::RangeStart { next, last, target } => {
                if get!(next).is_null() || get!(last).is_null() {
                    jump!(target);
                }
            }
            Instruction::EnterRange { next, last } => {
                attempt!(turns.enter_range(get!(next).int(), get!(last).int()));
            }
            Instruction::EnterList { list, width } => {
                attempt!(turns.enter_list(lists[usize::from(list.0)].len() / usize::from(width)));
            }
            Instruction::RangeNext { to, next, last, target } => {
                let (now, end) = (get!(next).int(), get!(last).int());
                if now > end {
                    jump!(target);
                }
                get!(to) = Datum::Int(now);
                match now.checked_add(1) {
                    Some(after) => get!(next) = Datum::Int(after),
                    // Nothing comes after the highest number: an empty range is left.
                    None => get!(last) = Datum::Int(i64::MIN),
                }
            }
            Instruction::ListNext { list, cursor, fields, target } => {
                let fields = &code.list_fields[usize::from(fields)];
                let start = get!(cursor).int() as usize;
                let Some(values) = lists[usize::from(list.0)].get(start..start + fields.len()) else {
                    jump!(target);
                };
                for (field, value) in fields.iter().zip(values) {
                    copy(value, &mut get!(field));
                }
                get!(cursor) = Datum::Int((start + fields.len()) as i64);
            }
            Instruction::Clear { list } => {
                let list = &mut lists[usize::from(list.0)];
                context.let_go(list);
                list.clear();
            }
            Instruction::Sort { list, plan } => {
                let plan = &code.sorts[usize::from(plan)];
                sort(&mut lists[usize::from(list.0)], plan.width, &plan.keys);
            }
            Instruction::Append { list, first, count } => {
                let element = &registers[block(first, count.into())];
                attempt!(context.keep(element));
                lists[usize::from(list.0)].extend_from_slice(element);
            }

            Instruction::Locate { row, key, count, table } => {
                let key = &registers[block(key, count.into())];
                row!(row) = if key.iter().any(|datum| datum.is_null()) {
                    C::Row::default()
                } else {
                    attempt!(context.locate(table, key))
                };
            }
            Instruction::RequireRow { row, failure, table } => {
                if !attempt!(there(context, table, row!(row))) {
                    break Err(missing(code, failure, registers).into());
                }
            }
            Instruction::Exists { to, row, table } => {
                get!(to) = Datum::Boolean(attempt!(there(context, table, row!(row))));
            }
            Instruction::Read { column, to, row, table } => {
                copy(&attempt!(context.read(table, row!(row), column)), &mut get!(to));
            }
            Instruction::ReadIfThere { column, to, row, table } => {
                if attempt!(there(context, table, row!(row))) {
                    copy(&attempt!(context.read(table, row!(row), column)), &mut get!(to));
                } else {
                    get!(to) = Datum::Null;
                }
            }
            Instruction::LimitStart { limit } => match get!(limit) {
                Datum::Null => get!(limit) = Datum::Int(i64::MAX),
                given if given.int() < 0 => break Err(abort::negative_limit(given.int()).into()),
                _ => {}
            },
            Instruction::LimitCheck { limit, target } => {
                if get!(limit).int() == 0 {
                    jump!(target);
                }
            }
            Instruction::LimitTake { limit } => get!(limit) = Datum::Int(get!(limit).int() - 1),
            Instruction::ScanOpen { scan, target } => {
                let plan = &code.scans[usize::from(scan)];
                let equal = &registers[block(plan.equal, plan.equal_count.into())];
                let bound = |bound: (Register, bool)| (get!(bound.0), bound.1);
                let (lower, upper) = (plan.lower.map(bound), plan.upper.map(bound));
                let mut bounds =
                    equal.iter().copied().chain([lower, upper].into_iter().flatten().map(|b| b.0));
                if bounds.any(Datum::is_null) {
                    jump!(target);
                }
                let hint = plan.limit_hint.map(|limit| get!(limit).int()).filter(|limit| *limit != i64::MAX);
                scans.push(attempt!(context.scan_open(ScanRange {
                    table: plan.table,
                    index: plan.index,
                    equal,
                    lower,
                    upper,
                    descending: plan.descending,
                    limit_hint: hint.map(i64::unsigned_abs),
                    joins: Joins { plans: &plan.joins, registers },
                })));
            }
            Instruction::ScanNext { row, target } => {
                let scan = scans.last_mut().expect("a scan is open");
                match attempt!(context.scan_next(scan)) {
                    Some(found) => row!(row) = found,
                    None => jump!(target),
                }
            }
            Instruction::ScanClose => {
                scans.pop();
            }
            Instruction::Insert { row, write, table } => {
                row!(row) = attempt!(context.insert(table, write_set(code, write, registers)));
            }
            Instruction::Update { row, write, table } => {
                attempt!(context.update(table, row!(row), write_set(code, write, registers)));
            }
            Instruction::Delete { row, table } => attempt!(context.delete(table, row!(row))),

            Instruction::Fill { row, write, table } => {
                attempt!(context.fill(table, row!(row), write_set(code, write, registers)));
            }
            Instruction::Capture { value } => context.capture(get!(value)),
            Instruction::CaptureRow { row } => context.capture_row(row!(row)),
            Instruction::CaptureEnd => context.capture_row(C::Row::default()),
            Instruction::Restore { to } => get!(to) = context.restore(),
            Instruction::RestoreRow { row } => row!(row) = context.restore_row(),
            Instruction::ReplayNext { row, target } => {
                row!(row) = context.restore_row();
                if context.is_missing(row!(row)) {
                    jump!(target);
                }
            }
            Instruction::Turn { to, cursor, width } => {
                get!(to) = Datum::Int(get!(cursor).int() / i64::from(width) - 1);
            }
            Instruction::Give { value, number, turn } => {
                context.give(number, get!(turn).int() as u32, get!(value));
            }
            Instruction::Take { to, number, turn } => {
                get!(to) = context.take(number, get!(turn).int() as u32);
            }
            Instruction::Disable { action } => context.disable(action),
            Instruction::Done => break Ok(()),
        }
        at += 1;
    };
    *place = at;
    outcome
}

/// The operators without an instruction of their own, and nulls. Not inlined: the common instructions
/// would have to save machine registers for it.
#[inline(never)]
fn binary<'a>(
    operation: BinaryOperation,
    left: &Datum<'a>,
    right: &Datum<'a>,
    arena: &'a Bump,
) -> Result<Datum<'a>> {
    operation.apply(*left, *right, arena)
}

/// Copies a datum, an integer in its parts, for the reason above. (Of a datum that is handed over by value the compiler
/// makes a copy of its own first.)
#[inline(always)]
fn copy<'a>(from: &Datum<'a>, to: &mut Datum<'a>) {
    match from {
        Datum::Int(v) => *to = Datum::Int(*v),
        other => copy_other(other, to),
    }
}

/// Copies a datum from one register to another, an integer in its parts.
#[inline(always)]
fn move_to(registers: &mut [Datum<'_>], to: Register, from: Register) {
    match registers[usize::from(from.0)] {
        Datum::Int(v) => registers[usize::from(to.0)] = Datum::Int(v),
        _ => move_other(registers, to, from),
    }
}

#[inline(never)]
fn move_other(registers: &mut [Datum<'_>], to: Register, from: Register) {
    registers[usize::from(to.0)] = registers[usize::from(from.0)];
}

/// Not inlined: the compiler would make one copy of it and of the above.
#[inline(never)]
fn copy_other<'a>(from: &Datum<'a>, to: &mut Datum<'a>) {
    *to = *from;
}

#[inline]
fn block(first: Register, count: usize) -> std::ops::Range<usize> {
    usize::from(first.0)..usize::from(first.0) + count
}

/// Whether a row is there. A handle that is known to be missing is not asked about.
#[inline]
fn there<'a, C: Context<'a>>(
    context: &mut C,
    table: fabius_value::TableId,
    row: C::Row,
) -> Result<bool, Stop> {
    if context.is_missing(row) { Ok(false) } else { context.exists(table, row) }
}

#[inline]
fn write_set<'r, 'a>(code: &'r Code, write: u16, registers: &'r [Datum<'a>]) -> WriteSet<'r, 'a> {
    let plan = &code.writes[usize::from(write)];
    let values = block(plan.first, plan.values.into());
    let operands = &registers[values.end..values.end + plan.deltas.len()];
    WriteSet {
        columns: plan.columns,
        values: &registers[values],
        deltas: Deltas { operations: &plan.deltas, operands },
        sticky: plan.sticky,
    }
}

/// A field of the list's element at a 1-based index.
pub(crate) fn element<'a>(list: &[Datum<'a>], index: Datum<'a>, field: u16, width: u16) -> Datum<'a> {
    let Datum::Int(index) = index else { return Datum::Null };
    let element = usize::try_from(index).ok().and_then(|index| index.checked_sub(1));
    let place = element.and_then(|element| element.checked_mul(width.into()));
    place.and_then(|place| list.get(place + usize::from(field))).copied().unwrap_or_default()
}

#[cold]
fn failed(code: &Code, failure: u16, registers: &[Datum<'_>], lists: &[Vec<Datum<'_>>]) -> Error {
    let failure = &code.failures[usize::from(failure)];
    let text = |register: &Register| abort::text(registers[usize::from(register.0)]);
    let (detail, hint) = (failure.detail.as_ref().and_then(text), failure.hint.as_ref().and_then(text));
    let (message, mentioned) = match &failure.message {
        FailureMessage::Fixed(message, mentioned) if failure.detail.is_none() => (message, mentioned),
        FailureMessage::Fixed(message, _) => {
            return abort::raised(failure.state, Some(message), detail, hint);
        }
        FailureMessage::Computed(message) => {
            return abort::raised(failure.state, text(message), detail, hint);
        }
    };
    let mentioned = mentioned.iter().map(|mention| match mention {
        Mention::Scalar { name, data_type, register } => {
            (name.as_str(), registers[usize::from(register.0)].to_value(*data_type))
        }
        Mention::List { name, fields, list } => {
            (name.as_str(), list_value(fields, &lists[usize::from(list.0)]))
        }
    });
    abort::require(failure.state, message, mentioned, hint)
}

/// The error, with the operands of the instruction that failed if it computes something.
#[cold]
fn about_operands(
    error: Error,
    code: &Code,
    at: usize,
    registers: &[Datum<'_>],
    lists: &[Vec<Datum<'_>>],
) -> Error {
    let operands = match code.instructions[at] {
        Instruction::Binary { left, right, .. }
        | Instruction::AddIntegers { left, right, .. }
        | Instruction::SubtractIntegers { left, right, .. }
        | Instruction::MultiplyIntegers { left, right, .. }
        | Instruction::AddNumerics { left, right, .. }
        | Instruction::SubtractNumerics { left, right, .. } => vec![left, right],
        Instruction::Unary { from, .. } | Instruction::Cast { from, .. } => vec![from],
        Instruction::Function { first, count, .. } => (0..count).map(|at| Register(first.0 + at)).collect(),
        Instruction::Aggregate { plan, list, .. } => {
            let plan = &code.aggregates[usize::from(plan)];
            let values = lists[usize::from(list.0)].len() / usize::from(plan.width);
            return abort::in_aggregate(error, plan.aggregate, values);
        }
        _ => return error,
    };
    let Ok(noted) = code.operations.binary_search_by_key(&at, |(at, ..)| *at as usize) else { return error };
    let (_, operation, types) = &code.operations[noted];
    let values = operands.iter().zip(types);
    let values: Vec<Value> =
        values.map(|(register, ty)| registers[usize::from(register.0)].to_value(*ty)).collect();
    abort::in_operation(error, *operation, &values)
}

#[cold]
fn missing(code: &Code, failure: u16, registers: &[Datum<'_>]) -> Error {
    let missing = &code.missing_rows[usize::from(failure)];
    let key = missing.key.as_ref().map(|(first, types)| {
        let values = &registers[block(*first, types.len())];
        values.iter().zip(types).map(|(datum, data_type)| datum.to_value(*data_type)).collect()
    });
    abort::no_such_row(&missing.table, key)
}
