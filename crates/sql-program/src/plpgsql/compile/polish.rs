//! What is taken out of a compiled body again: flags that nobody reads, `var` where `let` is enough.

use super::result::Returned;
use fabius_program::syntax::tree::{
    Block, Expression, ExpressionKind, Literal, RowReference, Scan, Statement, StatementKind, Target,
};
use std::collections::BTreeSet;

/// Takes out flags that are only set and first values that nobody sees, and says `let` of what is never assigned to.
pub fn polish(block: &mut Block, flags: &BTreeSet<String>, returned: &Returned) {
    let names = |block: &Block| {
        let mut used = Names::default();
        used.block(block);
        if let Returned::Row(row) = returned {
            row.iter().for_each(|(_, value)| used.expression(&value.expression));
        }
        used
    };
    let used = names(block);
    drop_flags(block, &|name| flags.contains(name) && !used.read.contains(name));
    let used = names(block);
    drop_unseen(block, &|name| !used.read.contains(name) && !used.written.contains(name));
    let used = names(block);
    settle(block, &used.written);
}

fn drop_flags(block: &mut Block, is_dropped: &impl Fn(&str) -> bool) {
    block.retain(|statement| match &statement.kind {
        StatementKind::Let { name, .. } => !is_dropped(&name.text),
        StatementKind::Assign { target: Target::Variable(name), .. } => !is_dropped(&name.text),
        _ => true,
    });
    inner_blocks(block, &mut |inner| drop_flags(inner, is_dropped));
    block.retain(|statement| match &statement.kind {
        StatementKind::If { arms, otherwise } => {
            let is_empty = arms.iter().all(|(_, then)| then.is_empty());
            !is_empty || otherwise.as_ref().is_some_and(|otherwise| !otherwise.is_empty())
        }
        _ => true,
    });
}

/// Takes out variables that nobody uses, if their values are plain.
fn drop_unseen(block: &mut Block, is_unseen: &impl Fn(&str) -> bool) {
    block.retain(|statement| match &statement.kind {
        StatementKind::Let { name, value, .. } => !(is_plain(value) && is_unseen(&name.text)),
        _ => true,
    });
    inner_blocks(block, &mut |inner| drop_unseen(inner, is_unseen));
}

/// Whether a value cannot fail.
fn is_plain(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Literal(_) | ExpressionKind::Variable(_) => true,
        ExpressionKind::Cast { operand, .. } => {
            matches!(operand.kind, ExpressionKind::Literal(Literal::Null))
        }
        _ => false,
    }
}

fn settle(block: &mut Block, written: &BTreeSet<String>) {
    for statement in block.iter_mut() {
        if let StatementKind::Let { name, mutable, value, .. } = &mut statement.kind {
            *mutable = written.contains(&name.text) || matches!(value.kind, ExpressionKind::EmptyList);
        }
    }
    inner_blocks(block, &mut |inner| settle(inner, written));
}

fn inner_blocks(block: &mut Block, act: &mut impl FnMut(&mut Block)) {
    for statement in block {
        match &mut statement.kind {
            StatementKind::If { arms, otherwise } => {
                arms.iter_mut().for_each(|(_, then)| act(then));
                otherwise.iter_mut().for_each(&mut *act);
            }
            StatementKind::ForRange { body, .. } | StatementKind::ForEach { body, .. } => act(body),
            _ => {}
        }
    }
}

/// Names of variables that are read and assigned to.
#[derive(Default)]
pub struct Names {
    /// Read.
    pub read: BTreeSet<String>,
    /// Assigned or appended to.
    pub written: BTreeSet<String>,
}

impl Names {
    /// Those of a block.
    pub fn block(&mut self, block: &[Statement]) {
        block.iter().for_each(|statement| self.statement(&statement.kind));
    }

    fn statement(&mut self, statement: &StatementKind) {
        match statement {
            StatementKind::Let { value, .. } => self.expression(value),
            StatementKind::Assign { target, operator, value } => {
                match target {
                    Target::Variable(name) => {
                        self.written.insert(name.text.clone());
                        if operator.is_some() {
                            self.read.insert(name.text.clone());
                        }
                    }
                    Target::Column { row, .. } => self.row(row),
                }
                self.expression(value);
            }
            StatementKind::Require { condition, failure } => {
                self.expression(condition);
                failure.expressions().for_each(|expression| self.expression(expression));
            }
            StatementKind::Insert { columns, .. } => {
                columns.iter().for_each(|(_, value)| self.expression(value));
            }
            StatementKind::Update { row, columns } => {
                self.row(row);
                columns.iter().for_each(|(_, value)| self.expression(value));
            }
            StatementKind::Delete { row } => self.row(row),
            StatementKind::Append { list, values } => {
                self.written.insert(list.text.clone());
                values.iter().for_each(|value| self.expression(value));
            }
            StatementKind::If { arms, otherwise } => {
                for (condition, then) in arms {
                    self.expression(condition);
                    self.block(then);
                }
                otherwise.iter().for_each(|otherwise| self.block(otherwise));
            }
            StatementKind::ForRange { from, to, body, .. } => {
                self.expression(from);
                self.expression(to);
                self.block(body);
            }
            StatementKind::ForEach { scan, body, .. } => {
                self.scan(scan);
                self.block(body);
            }
            StatementKind::Return { values } => values.iter().for_each(|value| self.expression(value)),
            #[allow(unreachable_patterns, reason = "statements that the language gets later")]
            _ => {}
        }
    }

    fn scan(&mut self, scan: &Scan) {
        self.read.insert(scan.name.text.clone());
        if let Some(range) = &scan.range {
            range.equal.iter().for_each(|value| self.expression(value));
            for bound in range.lower.iter().chain(&range.upper) {
                self.expression(&bound.value);
            }
        }
        scan.filter.iter().chain(&scan.limit).for_each(|expression| self.expression(expression));
    }

    fn row(&mut self, row: &RowReference) {
        self.read.insert(row.name.text.clone());
        row.key.iter().flatten().for_each(|value| self.expression(value));
    }

    fn expression(&mut self, expression: &Expression) {
        match &expression.kind {
            ExpressionKind::Variable(name) => {
                self.read.insert(name.clone());
            }
            ExpressionKind::Column { row, .. } | ExpressionKind::Exists(row) => self.row(row),
            ExpressionKind::Element { list, index } => {
                self.read.insert(list.text.clone());
                self.expression(index);
            }
            ExpressionKind::Call { arguments, .. } => {
                arguments.iter().for_each(|argument| self.expression(argument));
            }
            ExpressionKind::Negate(operand) | ExpressionKind::Not(operand) => self.expression(operand),
            ExpressionKind::IsNull { operand, .. } | ExpressionKind::Cast { operand, .. } => {
                self.expression(operand);
            }
            ExpressionKind::Between { operand, low, high, .. } => {
                [operand, low, high].into_iter().for_each(|part| self.expression(part));
            }
            ExpressionKind::Binary(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
            ExpressionKind::If { arms, otherwise } => {
                for (condition, value) in arms {
                    self.expression(condition);
                    self.expression(value);
                }
                self.expression(otherwise);
            }
            ExpressionKind::Literal(_) | ExpressionKind::EmptyList => {}
            #[allow(unreachable_patterns, reason = "expressions that the language gets later")]
            _ => {}
        }
    }
}
