//! What is asked for of names, anywhere in a function: the columns of its rows that are read.

use super::lowering::Lowering;
use fabius_sql_syntax::python::tree::{Expression, ExpressionKind, Statement, StatementKind};

impl Lowering<'_> {
    /// Notes which columns of which names something asks for.
    pub(super) fn note_wanted(&mut self, statements: &[Statement]) {
        for statement in statements {
            match &statement.kind {
                StatementKind::Assign(target, value) => {
                    self.note_target(target);
                    self.note(value);
                }
                StatementKind::Augment(target, _, value) => {
                    self.note_target(target);
                    self.note(value);
                }
                StatementKind::If(condition, ..) | StatementKind::While(condition, _) => self.note(condition),
                StatementKind::Range(_, arguments, _) => {
                    arguments.iter().for_each(|argument| self.note(argument));
                }
                StatementKind::Rows(_, _, selection, _) => {
                    selection.values().into_iter().for_each(|value| self.note(value));
                }
                StatementKind::Elements(_, list, ..) => self.note(list),
                StatementKind::Results(_, query, _) => {
                    query.arguments.iter().for_each(|argument| self.note(argument));
                }
                StatementKind::Append(_, value)
                | StatementKind::Receive(_, value)
                | StatementKind::Say(_, value)
                | StatementKind::Raise(_, value) => self.note(value),
                StatementKind::SetElement(_, place, value) => {
                    self.note(place);
                    self.note(value);
                }
                StatementKind::ReturnAll(values) => values.iter().for_each(|value| self.note(value)),
                StatementKind::Return(Some(value)) | StatementKind::Expression(value) => self.note(value),
                StatementKind::Delete(target) => self.note_target(target),
                StatementKind::Return(None)
                | StatementKind::Break
                | StatementKind::Continue
                | StatementKind::Declare(_)
                | StatementKind::Reraise(_)
                | StatementKind::Try(_)
                | StatementKind::Nothing => {}
            }
            statement.kind.branches().into_iter().for_each(|branch| self.note_wanted(branch));
        }
    }

    /// A column that is assigned is not asked for; what tells its row is.
    pub(super) fn note_target(&mut self, target: &Expression) {
        match &target.kind {
            ExpressionKind::Attribute(object, _) => self.note_target(object),
            ExpressionKind::Subscript(_, key) => key.iter().for_each(|key| self.note(key)),
            _ => {}
        }
    }

    pub(super) fn note(&mut self, expression: &Expression) {
        let kind = &expression.kind;
        if let ExpressionKind::Attribute(object, column) = kind
            && let ExpressionKind::Name(name) = &object.kind
        {
            self.wanted.entry(name.clone()).or_default().insert(column.clone());
            return;
        }
        match kind {
            ExpressionKind::Constant(_)
            | ExpressionKind::Name(_)
            | ExpressionKind::Empty
            | ExpressionKind::Zero => {}
            ExpressionKind::Attribute(value, _)
            | ExpressionKind::Negative(value)
            | ExpressionKind::Not(value) => self.note(value),
            ExpressionKind::Subscript(value, key) => {
                self.note(value);
                key.iter().for_each(|key| self.note(key));
            }
            ExpressionKind::Binary(_, left, right) | ExpressionKind::Element(left, right) => {
                self.note(left);
                self.note(right);
            }
            ExpressionKind::Program(call) => call.arguments.iter().for_each(|value| self.note(value)),
            ExpressionKind::Query(query) => query.arguments.iter().for_each(|value| self.note(value)),
            ExpressionKind::Joined(_, all) | ExpressionKind::Formatted(all) | ExpressionKind::Tuple(all) => {
                all.iter().for_each(|value| self.note(value));
            }
            ExpressionKind::Compare(first, others) => {
                self.note(first);
                others.iter().for_each(|(_, value)| self.note(value));
            }
            ExpressionKind::Conditional(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|part| self.note(part));
            }
            ExpressionKind::Call(function, arguments, named) => {
                self.note(function);
                arguments
                    .iter()
                    .chain(named.iter().map(|(_, value)| value))
                    .for_each(|value| self.note(value));
            }
        }
    }
}
