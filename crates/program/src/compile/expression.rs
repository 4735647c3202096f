//! Expressions to instructions.
//!
//! An expression is evaluated left to right, each operand into a register: a variable's or a
//! constant's own, or a temporary. What can be computed at once is; `and`, `or`, `case` and
//! `coalesce` become jumps where something must not be evaluated.
//!
//! Nothing writes the register that an expression is computed into before everything that it
//! mentions has been read: `x = coalesce(y, x)` is as good as any other.

use super::builder::Builder;
use super::code::AggregatePlan;
use super::instruction::{Instruction, Register, Truth};
use crate::abort::Operation;
use crate::ir::{BinaryOperator, Expression, ExpressionKind, Function, Type};
use crate::operation::{BinaryOperation, Cast, FunctionOperation, UnaryOperation};
use bumpalo::Bump;
use fabius_value::{DataType, Datum, Result, Value};

impl Builder<'_> {
    /// The register that holds the expression's value, computing it if need be.
    pub fn operand(&mut self, expression: &Expression) -> Result<Register> {
        match &expression.kind {
            ExpressionKind::Variable(variable) => {
                let register = self.variable(*variable);
                if let Some(read) = self.late_read(*variable) {
                    self.read(read, register);
                }
                Ok(register)
            }
            ExpressionKind::Constant(value) => Ok(self.constant(value)),
            ExpressionKind::Cast(inner)
                if Cast::of(inner.ty.data_type, expression.ty.data_type).is_identity() =>
            {
                self.operand(inner)
            }
            _ => match fold(expression) {
                Some(value) => Ok(self.constant(&value)),
                None => {
                    let to = self.temporaries(1);
                    self.compute(expression, to)?;
                    Ok(to)
                }
            },
        }
    }

    /// Computes the expression into a register.
    pub fn compute(&mut self, expression: &Expression, to: Register) -> Result<()> {
        if let Some(value) = fold(expression) {
            let from = self.constant(&value);
            self.emit(Instruction::Move { to, from });
            return Ok(());
        }
        let mark = self.mark();
        let data_type = expression.ty.data_type;
        match &expression.kind {
            ExpressionKind::Variable(variable) if let Some(read) = self.late_read(*variable) => {
                self.read(read, to);
            }
            ExpressionKind::Constant(_) | ExpressionKind::Variable(_) => {
                let from = self.operand(expression)?;
                self.emit(Instruction::Move { to, from });
            }
            ExpressionKind::Unary(operator, inner) => {
                let operation = UnaryOperation::of(*operator, inner.ty.data_type)?;
                let from = self.operand(inner)?;
                if operation.can_fail() {
                    self.note(Operation::Negation, &[inner]);
                }
                self.emit(Instruction::Unary { operation, to, from });
            }
            ExpressionKind::Binary(operator, left, right) => {
                let operation =
                    BinaryOperation::of(*operator, left.ty.data_type, right.ty.data_type, data_type)?;
                let deciding = match operator {
                    BinaryOperator::And if can_fail(right) => Some((Truth::False, false)),
                    BinaryOperator::Or if can_fail(right) => Some((Truth::True, true)),
                    _ => None,
                };
                let operands = [&**left, &**right];
                let left = self.operand(left)?;
                match deciding {
                    None => {
                        let right = self.operand(right)?;
                        if operation.can_fail() {
                            self.note(Operation::Binary(*operator), &operands);
                        }
                        self.emit(Instruction::binary(operation, to, left, right));
                    }
                    Some((truth, decided)) => {
                        let (decides, end) = (self.label(), self.label());
                        self.emit(Instruction::JumpTruth { truth, condition: left, target: decides });
                        let right = self.operand(right)?;
                        self.emit(Instruction::binary(operation, to, left, right));
                        self.emit(Instruction::Jump { target: end });
                        self.place(decides);
                        let from = self.constant(&Value::Boolean(decided));
                        self.emit(Instruction::Move { to, from });
                        self.place(end);
                    }
                }
            }
            ExpressionKind::Cast(inner) => {
                let from = self.operand(inner)?;
                if Cast::of(inner.ty.data_type, data_type).is_identity() {
                    self.emit(Instruction::Move { to, from });
                } else {
                    let cast = self.cast(inner.ty.data_type, data_type);
                    if Cast::of(inner.ty.data_type, data_type).can_fail() {
                        self.note(Operation::Cast(data_type), &[inner]);
                    }
                    self.emit(Instruction::Cast { cast, to, from });
                }
            }
            ExpressionKind::Case { arms, otherwise } => {
                let end = self.label();
                for (condition, value) in arms {
                    let next = self.label();
                    self.jump(condition, Truth::NotTrue, next)?;
                    self.compute(value, to)?;
                    self.emit(Instruction::Jump { target: end });
                    self.place(next);
                }
                self.compute(otherwise, to)?;
                self.place(end);
            }
            ExpressionKind::Call(Function::Coalesce, arguments) => {
                let end = self.label();
                for argument in arguments {
                    let next = self.label();
                    let from = self.operand(argument)?;
                    self.emit(Instruction::JumpNull { when: true, value: from, target: next });
                    self.emit(Instruction::Move { to, from });
                    self.emit(Instruction::Jump { target: end });
                    self.place(next);
                }
                let from = self.constant(&Value::Null);
                self.emit(Instruction::Move { to, from });
                self.place(end);
            }
            ExpressionKind::Call(function, arguments) => {
                let operation =
                    FunctionOperation::of(*function, first_type(arguments, data_type), data_type)?;
                let first = self.block(arguments)?;
                let count = self.number(arguments.len());
                if operation.can_fail() {
                    self.note(Operation::Call(*function), &arguments.iter().collect::<Vec<_>>());
                }
                self.emit(Instruction::Function { operation, to, first, count });
            }
            ExpressionKind::Aggregate { aggregate, list, field } => {
                let fields = match &self.program.variables[usize::from(list.0)].ty {
                    Type::List(fields) => fields,
                    Type::Scalar(_) => unreachable!("aggregates are over lists"),
                };
                let plan = AggregatePlan {
                    aggregate: *aggregate,
                    field: *field,
                    width: fields.len() as u16,
                    field_type: fields[usize::from(*field)].scalar.data_type,
                    result_type: data_type,
                };
                let at = self.number(self.code.aggregates.len());
                self.code.aggregates.push(plan);
                let list = self.list(*list);
                self.emit(Instruction::Aggregate { plan: at, to, list });
            }
            ExpressionKind::Element { list, index, field } => {
                let width = match &self.program.variables[usize::from(list.0)].ty {
                    Type::List(fields) => fields.len() as u16,
                    Type::Scalar(_) => unreachable!("elements are of lists"),
                };
                let index = self.operand(index)?;
                let list = self.list(*list);
                self.emit(Instruction::Element { to, list, index, field: *field, width });
            }
            ExpressionKind::Now => self.emit(Instruction::Now { to }),
            ExpressionKind::Random => self.emit(Instruction::Random { to }),
        }
        self.release(mark);
        Ok(())
    }

    /// Computes expressions into neighbouring temporaries; a single operand stays where it is.
    pub fn block(&mut self, expressions: &[Expression]) -> Result<Register> {
        if let [only] = expressions {
            return self.operand(only);
        }
        let first = self.temporaries(expressions.len());
        for (at, expression) in expressions.iter().enumerate() {
            self.compute(expression, Register(first.0.saturating_add(at as u16)))?;
        }
        Ok(first)
    }
}

fn first_type(arguments: &[Expression], otherwise: DataType) -> DataType {
    arguments.first().map_or(otherwise, |argument| argument.ty.data_type)
}

/// The expression's value, if it is the same in every run and no error.
pub(super) fn fold(expression: &Expression) -> Option<Value> {
    let data_type = expression.ty.data_type;
    match &expression.kind {
        ExpressionKind::Constant(value) => Some(value.clone()),
        ExpressionKind::Cast(inner) => fold(inner)?.cast(data_type).ok(),
        ExpressionKind::Unary(operator, inner) => {
            let operand = fold(inner)?;
            let operation = UnaryOperation::of(*operator, inner.ty.data_type).ok()?;
            Some(operation.apply(Datum::from_value(&operand)).ok()?.to_value(data_type))
        }
        ExpressionKind::Binary(operator, left, right) => {
            let operands = (fold(left)?, fold(right)?);
            let operation =
                BinaryOperation::of(*operator, left.ty.data_type, right.ty.data_type, data_type).ok()?;
            let (left, right) = (Datum::from_value(&operands.0), Datum::from_value(&operands.1));
            Some(operation.apply(left, right, &Bump::new()).ok()?.to_value(data_type))
        }
        ExpressionKind::Call(function, arguments) if *function != Function::Coalesce => {
            let values = arguments.iter().map(fold).collect::<Option<Vec<Value>>>()?;
            let operation =
                FunctionOperation::of(*function, first_type(arguments, data_type), data_type).ok()?;
            let arguments: Vec<Datum<'_>> = values.iter().map(Datum::from_value).collect();
            Some(operation.apply(&arguments, &Bump::new()).ok()?.to_value(data_type))
        }
        _ => None,
    }
}

/// Whether evaluating the expression can abort or have an effect (taking a random number).
pub(super) fn can_fail(expression: &Expression) -> bool {
    let data_type = expression.ty.data_type;
    match &expression.kind {
        ExpressionKind::Constant(_) | ExpressionKind::Variable(_) | ExpressionKind::Now => false,
        ExpressionKind::Random | ExpressionKind::Aggregate { .. } => true,
        ExpressionKind::Element { index, .. } => can_fail(index),
        ExpressionKind::Unary(operator, inner) => {
            can_fail(inner)
                || UnaryOperation::of(*operator, inner.ty.data_type).is_ok_and(UnaryOperation::can_fail)
        }
        ExpressionKind::Binary(operator, left, right) => {
            can_fail(left)
                || can_fail(right)
                || BinaryOperation::of(*operator, left.ty.data_type, right.ty.data_type, data_type)
                    .is_ok_and(BinaryOperation::can_fail)
        }
        ExpressionKind::Cast(inner) => can_fail(inner) || Cast::of(inner.ty.data_type, data_type).can_fail(),
        ExpressionKind::Case { arms, otherwise } => {
            can_fail(otherwise)
                || arms.iter().any(|(condition, value)| can_fail(condition) || can_fail(value))
        }
        ExpressionKind::Call(Function::Coalesce, arguments) => arguments.iter().any(can_fail),
        ExpressionKind::Call(function, arguments) => {
            arguments.iter().any(can_fail)
                || FunctionOperation::of(*function, first_type(arguments, data_type), data_type)
                    .is_ok_and(FunctionOperation::can_fail)
        }
    }
}
