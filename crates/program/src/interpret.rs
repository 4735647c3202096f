//! The reference interpreter: what a program means.
//!
//! It walks the IR step by step and expression by expression, with nothing between a rule of
//! [`ir`](crate::ir) and the lines that follow it. Whole programs only, and no suspension: it is
//! what faster ways of running a program are checked against, and it agrees with them on outcomes,
//! results, writes and errors.
//!
//! ```text
//! let results = interpret(&program, &catalog, &arguments, &mut context, &arena)?;
//! ```

use crate::abort::{self, Operation};
use crate::arguments::{Argument, decode, list_value};
use crate::catalog::Catalog;
use crate::compile::mentioned;
use crate::context::{Context, Deltas, Joins, ScanRange, Stop, WriteSet};
use crate::execute::element;
use crate::ir::{
    BinaryOperator, Block, Expression, ExpressionKind, Failure, Filter, Function, Message, Program, Returned,
    RowId, Scan, ScanBound, Step, StepKind, Type, VariableId,
};
use crate::operation::{BinaryOperation, Cast, FunctionOperation, UnaryOperation, aggregate, sort};
use crate::turns::Turns;
use bumpalo::Bump;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, Error, TableId, Value};

/// Runs a whole program and gives its results.
///
/// # Errors
/// [`Stop::Abort`] with the line of the step; anything else as the context gave it.
pub fn interpret<'a, C: Context<'a>>(
    program: &Program,
    catalog: &Catalog,
    arguments: &'a [u8],
    context: &mut C,
    arena: &'a Bump,
) -> Result<Vec<Value>, Stop> {
    let mut interpreter = Interpreter {
        program,
        catalog,
        context,
        arena,
        scalars: vec![Datum::Null; program.variables.len()],
        lists: vec![Vec::new(); program.variables.len()],
        rows: vec![C::Row::default(); program.rows.len()],
        keys: vec![None; program.rows.len()],
        results: Vec::new(),
        turns: Turns::default(),
    };
    for (at, argument) in decode(program, arguments)?.into_iter().enumerate() {
        match argument {
            Argument::Scalar(datum) => interpreter.scalars[at] = datum,
            Argument::List { values, .. } => interpreter.lists[at] = values,
        }
    }
    interpreter.block(&program.body)?;
    Ok(interpreter.results)
}

struct Interpreter<'p, 'c, 'a, C: Context<'a>> {
    program: &'p Program,
    catalog: &'p Catalog,
    context: &'c mut C,
    arena: &'a Bump,
    /// By variable; null for lists.
    scalars: Vec<Datum<'a>>,
    /// By variable: the values row by row; empty for scalars.
    lists: Vec<Vec<Datum<'a>>>,
    rows: Vec<C::Row>,
    /// By row handle: the key it was last located by.
    keys: Vec<Option<Vec<Datum<'a>>>>,
    results: Vec<Value>,
    turns: Turns,
}

impl<'a, C: Context<'a>> Interpreter<'_, '_, 'a, C> {
    fn block(&mut self, block: &Block) -> Result<(), Stop> {
        for step in block {
            self.step(step).map_err(|stop| match stop {
                Stop::Abort(error) => Stop::Abort(abort::at_line(error, step.line)),
                other => other,
            })?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        match &step.kind {
            StepKind::Assign { variable, value } => {
                let value = self.evaluate(value)?;
                self.assign(*variable, value);
            }
            StepKind::Clear { list } => self.lists[usize::from(list.0)].clear(),
            StepKind::Append { list, values } => {
                let values = self.evaluate_all(values)?;
                self.lists[usize::from(list.0)].extend(values);
            }
            StepKind::Sort { list, keys } => {
                let (width, _) = self.list_field(*list, 0);
                sort(&mut self.lists[usize::from(list.0)], width, keys);
            }
            StepKind::Locate { row, key } => {
                let key = self.evaluate_all(key)?;
                let found = if key.iter().any(|datum| datum.is_null()) {
                    C::Row::default()
                } else {
                    self.context.locate(self.table(*row), &key)?
                };
                self.rows[usize::from(row.0)] = found;
                self.keys[usize::from(row.0)] = Some(key);
            }
            StepKind::RequireRow { row } => {
                if !self.there(*row)? {
                    return Err(self.no_such_row(*row));
                }
            }
            StepKind::Exists { variable, row } => {
                let there = self.there(*row)?;
                self.assign(*variable, Datum::Boolean(there));
            }
            StepKind::Read { row, columns } => {
                for (column, variable) in columns {
                    let value = if self.there(*row)? {
                        self.context.read(self.table(*row), self.rows[usize::from(row.0)], *column)?
                    } else {
                        Datum::Null
                    };
                    self.assign(*variable, value);
                }
            }
            StepKind::Require { condition, failure } => {
                if !self.evaluate(condition)?.is_true() {
                    return Err(self.failure(condition, failure)?.into());
                }
            }
            StepKind::If { condition, then, otherwise } => {
                let block = if self.evaluate(condition)?.is_true() { then } else { otherwise };
                self.block(block)?;
            }
            StepKind::ForList { list, fields, body } => {
                let elements = self.lists[usize::from(list.0)].clone();
                self.turns.enter_list(elements.len() / fields.len())?;
                for values in elements.chunks(fields.len()) {
                    fields.iter().zip(values).for_each(|(field, value)| self.assign(*field, *value));
                    self.block(body)?;
                }
            }
            StepKind::ForRange { variable, from, to, body } => {
                let (from, to) = (self.evaluate(from)?, self.evaluate(to)?);
                if let (Datum::Int(from), Datum::Int(to)) = (from, to) {
                    self.turns.enter_range(from, to)?;
                    for number in from..=to {
                        self.assign(*variable, Datum::Int(number));
                        self.block(body)?;
                    }
                }
            }
            StepKind::ForScan { row, scan, body } => self.scan(*row, scan, body)?,
            StepKind::Insert { row, values } => {
                let sets: Vec<(ColumnId, &Expression)> =
                    values.iter().enumerate().map(|(at, value)| (ColumnId(at as u8), value)).collect();
                let (columns, values) = self.write_values(self.table(*row), &sets)?;
                let write = WriteSet {
                    columns,
                    values: &values,
                    deltas: Deltas::default(),
                    sticky: ColumnMask::EMPTY,
                };
                self.rows[usize::from(row.0)] = self.context.insert(self.table(*row), write)?;
            }
            StepKind::Update { row, sets } => {
                let sets: Vec<(ColumnId, &Expression)> =
                    sets.iter().map(|(column, value)| (*column, value)).collect();
                let (columns, values) = self.write_values(self.table(*row), &sets)?;
                let write = WriteSet {
                    columns,
                    values: &values,
                    deltas: Deltas::default(),
                    sticky: ColumnMask::EMPTY,
                };
                self.context.update(self.table(*row), self.rows[usize::from(row.0)], write)?;
            }
            StepKind::Delete { row } => {
                self.context.delete(self.table(*row), self.rows[usize::from(row.0)])?;
            }
            StepKind::Return { values } => {
                for value in values {
                    let result = match value {
                        Returned::Scalar(value) => self.evaluate(value)?.to_value(value.ty.data_type),
                        Returned::List(list) => self.value(*list),
                    };
                    self.results.push(result);
                }
            }
        }
        Ok(())
    }

    fn scan(&mut self, row: RowId, scan: &Scan, body: &Block) -> Result<(), Stop> {
        let equal = self.evaluate_all(&scan.equal)?;
        let lower = self.bound(&scan.lower)?;
        let upper = self.bound(&scan.upper)?;
        let mut left = match &scan.limit {
            Some(limit) => match self.evaluate(limit)? {
                Datum::Null => None,
                limit if limit.int() < 0 => return Err(abort::negative_limit(limit.int()).into()),
                limit => Some(limit.int()),
            },
            None => None,
        };
        let bounds = equal.iter().copied().chain([lower, upper].into_iter().flatten().map(|bound| bound.0));
        if bounds.into_iter().any(Datum::is_null) {
            return Ok(());
        }
        let mut open = self.context.scan_open(ScanRange {
            table: self.table(row),
            index: scan.index,
            equal: &equal,
            lower,
            upper,
            descending: scan.descending,
            limit_hint: left.filter(|_| scan.filter.is_none()).map(i64::unsigned_abs),
            joins: Joins::default(),
        })?;
        while left != Some(0) {
            let Some(found) = self.context.scan_next(&mut open)? else { break };
            self.rows[usize::from(row.0)] = found;
            if !self.passes(&scan.filter)? {
                continue;
            }
            left = left.map(|left| left - 1);
            self.block(body)?;
        }
        Ok(())
    }

    fn passes(&mut self, filter: &Option<Filter>) -> Result<bool, Stop> {
        let Some(filter) = filter else { return Ok(true) };
        self.block(&filter.steps)?;
        Ok(self.evaluate(&filter.condition)?.is_true())
    }

    fn bound(&mut self, bound: &Option<ScanBound>) -> Result<Option<(Datum<'a>, bool)>, Stop> {
        bound.as_ref().map(|bound| Ok((self.evaluate(&bound.value)?, bound.inclusive))).transpose()
    }

    /// The values of a write in column order: computed in the order of the text, then checked.
    fn write_values(
        &mut self,
        table: TableId,
        sets: &[(ColumnId, &Expression)],
    ) -> Result<(ColumnMask, Vec<Datum<'a>>), Stop> {
        let mut values = Vec::with_capacity(sets.len());
        for (column, value) in sets {
            values.push((*column, self.evaluate(value)?));
        }
        let schema = self.catalog.table(table);
        for (column, value) in &values {
            let column = &schema.columns[usize::from(column.0)];
            if value.is_null() && !column.nullable {
                return Err(abort::null_in_column(&schema.name, &column.name).into());
            }
        }
        values.sort_by_key(|(column, _)| *column);
        let columns = values.iter().map(|(column, _)| *column).collect();
        Ok((columns, values.into_iter().map(|(_, value)| value).collect()))
    }

    fn failure(&mut self, condition: &Expression, failure: &Failure) -> Result<Error, Stop> {
        let mut text = |expression: &Expression| self.evaluate(expression).map(abort::text);
        let detail = failure.detail.as_ref().map(&mut text).transpose()?.flatten();
        let hint = failure.hint.as_ref().map(&mut text).transpose()?.flatten();
        Ok(match &failure.message {
            Message::Computed(message) => abort::raised(failure.state, text(message)?, detail, hint),
            Message::Fixed(message) if failure.detail.is_some() => {
                abort::raised(failure.state, Some(message), detail, hint)
            }
            Message::Fixed(message) => {
                let mentioned = mentioned(condition);
                let mentioned = mentioned.iter().map(|variable| {
                    (self.program.variables[usize::from(variable.0)].name.as_str(), self.value(*variable))
                });
                abort::require(failure.state, message, mentioned, hint)
            }
        })
    }

    fn evaluate_all(&mut self, expressions: &[Expression]) -> Result<Vec<Datum<'a>>, Stop> {
        expressions.iter().map(|expression| self.evaluate(expression)).collect()
    }

    fn evaluate(&mut self, expression: &Expression) -> Result<Datum<'a>, Stop> {
        let data_type = expression.ty.data_type;
        Ok(match &expression.kind {
            ExpressionKind::Constant(Value::Text(text)) => Datum::Text(self.arena.alloc_str(text)),
            ExpressionKind::Constant(Value::Bytea(bytes)) => Datum::Bytes(self.arena.alloc_slice_copy(bytes)),
            ExpressionKind::Constant(value) => plain(value),
            ExpressionKind::Variable(variable) => self.scalars[usize::from(variable.0)],
            ExpressionKind::Unary(operator, operand) => {
                let value = self.evaluate(operand)?;
                UnaryOperation::of(*operator, operand.ty.data_type)?
                    .apply(value)
                    .map_err(|error| failed(error, Operation::Negation, [&**operand], &[value]))?
            }
            ExpressionKind::Binary(operator, left, right) => {
                let operation =
                    BinaryOperation::of(*operator, left.ty.data_type, right.ty.data_type, data_type)?;
                let operands = [&**left, &**right];
                let left = self.evaluate(left)?;
                match (operator, left) {
                    (BinaryOperator::And, Datum::Boolean(false)) => left,
                    (BinaryOperator::Or, Datum::Boolean(true)) => left,
                    _ => {
                        let right = self.evaluate(right)?;
                        operation.apply(left, right, self.arena).map_err(|error| {
                            failed(error, Operation::Binary(*operator), operands, &[left, right])
                        })?
                    }
                }
            }
            ExpressionKind::Cast(operand) => {
                let value = self.evaluate(operand)?;
                Cast::of(operand.ty.data_type, data_type)
                    .apply(value, self.arena)
                    .map_err(|error| failed(error, Operation::Cast(data_type), [&**operand], &[value]))?
            }
            ExpressionKind::Case { arms, otherwise } => {
                for (condition, value) in arms {
                    if self.evaluate(condition)?.is_true() {
                        return self.evaluate(value);
                    }
                }
                self.evaluate(otherwise)?
            }
            ExpressionKind::Call(Function::Coalesce, arguments) => {
                for argument in arguments {
                    let value = self.evaluate(argument)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Datum::Null
            }
            ExpressionKind::Call(function, arguments) => {
                let first = arguments.first().map_or(data_type, |argument| argument.ty.data_type);
                let values = self.evaluate_all(arguments)?;
                FunctionOperation::of(*function, first, data_type)?
                    .apply(&values, self.arena)
                    .map_err(|error| failed(error, Operation::Call(*function), arguments, &values))?
            }
            ExpressionKind::Aggregate { aggregate: which, list, field } => {
                let (width, field_type) = self.list_field(*list, *field);
                let values =
                    self.lists[usize::from(list.0)].chunks(width).map(|row| row[usize::from(*field)]);
                let count = values.len();
                aggregate(*which, field_type, data_type, values, self.arena)
                    .map_err(|error| abort::in_aggregate(error, *which, count))?
            }
            ExpressionKind::Element { list, index, field } => {
                let index = self.evaluate(index)?;
                let (width, _) = self.list_field(*list, *field);
                element(&self.lists[usize::from(list.0)], index, *field, width as u16)
            }
            ExpressionKind::Now => Datum::Int(self.context.now()),
            ExpressionKind::Random => Datum::Double(self.context.random()),
        })
    }

    fn assign(&mut self, variable: VariableId, value: Datum<'a>) {
        self.scalars[usize::from(variable.0)] = value;
    }

    /// How many fields a list has, and the type of one of them.
    fn list_field(&self, list: VariableId, field: u16) -> (usize, DataType) {
        match &self.program.variables[usize::from(list.0)].ty {
            Type::List(fields) => (fields.len(), fields[usize::from(field)].scalar.data_type),
            Type::Scalar(_) => unreachable!("only lists have fields"),
        }
    }

    fn value(&self, variable: VariableId) -> Value {
        let at = usize::from(variable.0);
        match &self.program.variables[at].ty {
            Type::Scalar(scalar) => self.scalars[at].to_value(scalar.data_type),
            Type::List(fields) => list_value(fields, &self.lists[at]),
        }
    }

    fn table(&self, row: RowId) -> TableId {
        self.program.rows[usize::from(row.0)].table
    }

    fn there(&mut self, row: RowId) -> Result<bool, Stop> {
        let (table, row) = (self.table(row), self.rows[usize::from(row.0)]);
        if self.context.is_missing(row) { Ok(false) } else { self.context.exists(table, row) }
    }

    fn no_such_row(&self, row: RowId) -> Stop {
        let table = self.catalog.table(self.table(row));
        let types = table.primary_key.iter().map(|column| table.data_type(*column));
        let key = self.keys[usize::from(row.0)].as_ref();
        let key = key.map(|key| key.iter().zip(types).map(|(datum, ty)| datum.to_value(ty)).collect());
        abort::no_such_row(&table.name, key).into()
    }
}

/// An operation that could not be done with these values of its operands.
fn failed<'e>(
    error: Error,
    operation: Operation,
    operands: impl IntoIterator<Item = &'e Expression>,
    values: &[Datum<'_>],
) -> Error {
    let values = operands.into_iter().zip(values);
    let values: Vec<Value> = values.map(|(operand, value)| value.to_value(operand.ty.data_type)).collect();
    abort::in_operation(error, operation, &values)
}

/// A constant that owns nothing.
fn plain(value: &Value) -> Datum<'static> {
    match Datum::from_value(value) {
        Datum::Null | Datum::Text(_) | Datum::Bytes(_) => Datum::Null,
        Datum::Boolean(v) => Datum::Boolean(v),
        Datum::Int(v) => Datum::Int(v),
        Datum::Numeric(v) => Datum::Numeric(v),
        Datum::Double(v) => Datum::Double(v),
    }
}
