//! Conditions to jumps.
//!
//! `require a > 0 and (b = 1 or c is null)` needs no booleans in registers:
//!
//! ```text
//!     jump unless a > 0 to fail
//!     jump if b = 1 to ok
//!     jump unless c is null to fail
//! ok: ...
//! ```
//!
//! SQL's `and` evaluates its right side when the left is null, because the whole is then null or
//! false. To a jump that only asks for true this makes no difference unless evaluating the right
//! side shows: unless it can fail. Only then is the value computed.

use super::builder::Builder;
use super::expression::{can_fail, fold};
use super::instruction::{Instruction, Target, Truth};
use crate::ir::{BinaryOperator, Expression, ExpressionKind, UnaryOperator};
use crate::operation::Comparison;
use fabius_value::{Result, Value};

impl Builder<'_> {
    /// Goes to `target` if the condition is as asked, else on.
    pub fn jump(&mut self, condition: &Expression, truth: Truth, target: Target) -> Result<()> {
        if let Some(value) = fold(condition) {
            let taken = match truth {
                Truth::True => value == Value::Boolean(true),
                Truth::NotTrue => value != Value::Boolean(true),
                Truth::False => value == Value::Boolean(false),
                Truth::NotFalse => value != Value::Boolean(false),
            };
            if taken {
                self.emit(Instruction::Jump { target });
            }
            return Ok(());
        }
        let mark = self.mark();
        match &condition.kind {
            ExpressionKind::Unary(UnaryOperator::Not, inner) => {
                let truth = match truth {
                    Truth::True => Truth::False,
                    Truth::NotTrue => Truth::NotFalse,
                    Truth::False => Truth::True,
                    Truth::NotFalse => Truth::NotTrue,
                };
                self.jump(inner, truth, target)?;
            }
            ExpressionKind::Unary(UnaryOperator::IsNull, inner) => {
                let value = self.operand(inner)?;
                let when = matches!(truth, Truth::True | Truth::NotFalse);
                self.emit(Instruction::JumpNull { when, value, target });
            }
            ExpressionKind::Binary(operator, left, right)
                if let Some(comparison) = Comparison::of(*operator) =>
            {
                let (comparison, when) = match truth {
                    Truth::True => (comparison, true),
                    Truth::NotTrue => (comparison, false),
                    Truth::False => (comparison.negated(), true),
                    Truth::NotFalse => (comparison.negated(), false),
                };
                let (left, right) = (self.operand(left)?, self.operand(right)?);
                self.emit(Instruction::JumpCompare { comparison, when, left, right, target });
            }
            ExpressionKind::Binary(BinaryOperator::And, left, right)
                if !skips(truth, Truth::True, left, right) =>
            {
                match truth {
                    // All of it needs both sides; the opposite needs one.
                    Truth::True | Truth::NotFalse => self.jump_if_both(left, right, truth, target)?,
                    Truth::NotTrue | Truth::False => {
                        self.jump(left, truth, target)?;
                        self.jump(right, truth, target)?;
                    }
                }
            }
            ExpressionKind::Binary(BinaryOperator::Or, left, right)
                if !skips(truth, Truth::False, left, right) =>
            {
                match truth {
                    Truth::False | Truth::NotTrue => self.jump_if_both(left, right, truth, target)?,
                    Truth::NotFalse | Truth::True => {
                        self.jump(left, truth, target)?;
                        self.jump(right, truth, target)?;
                    }
                }
            }
            _ => {
                let condition = self.operand(condition)?;
                self.emit(Instruction::JumpTruth { truth, condition, target });
            }
        }
        self.release(mark);
        Ok(())
    }

    fn jump_if_both(
        &mut self,
        left: &Expression,
        right: &Expression,
        truth: Truth,
        target: Target,
    ) -> Result<()> {
        let skip = self.label();
        self.jump(left, opposite(truth), skip)?;
        self.jump(right, truth, target)?;
        self.place(skip);
        Ok(())
    }
}

fn opposite(truth: Truth) -> Truth {
    match truth {
        Truth::True => Truth::NotTrue,
        Truth::NotTrue => Truth::True,
        Truth::False => Truth::NotFalse,
        Truth::NotFalse => Truth::False,
    }
}

/// Whether jumps would skip the right side after a left one that is null, and that would show.
/// A null left side settles only whether the whole is `asked` (true of `and`, false of `or`).
fn skips(truth: Truth, asked: Truth, left: &Expression, right: &Expression) -> bool {
    (truth == asked || truth == opposite(asked)) && left.ty.nullable && can_fail(right)
}
