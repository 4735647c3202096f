//! Statements one after another, and how control leaves them.

use super::Compiler;
use super::outcome::{Outcome, outcome};
use super::scope::{Entity, Scope};
use crate::bind::tree as build;
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{self as program, Block, Name};
use fabius_sql_syntax::plpgsql::tree::{Expression, Statement, StatementKind};
use fabius_value::Result;
use std::collections::BTreeSet;

/// How control may have left statements.
#[derive(Default)]
pub struct Flow {
    /// Whether it never goes on behind them.
    pub leaves: bool,
    /// Flags that may say that it went elsewhere.
    pub flags: BTreeSet<String>,
}

/// A loop or labelled block that `EXIT` or `CONTINUE` may mean.
pub struct Target {
    /// The loop's or block's label.
    pub label: Option<String>,
    /// The flag that leaves it.
    pub exit: String,
    /// The flag that goes to its next turn, if it is a loop.
    pub next: Option<String>,
}

impl Compiler<'_> {
    /// Statements in order.
    pub(super) fn statements(
        &mut self,
        list: &[&Statement],
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Flow> {
        let mut flow = Flow::default();
        for (at, statement) in list.iter().enumerate() {
            let rest = &list[at + 1..];
            let from = block.len();
            let (mut one, is_whole) = self.statement(statement, rest, scope, block)?;
            one.flags.append(&mut self.catches.escapes);
            let from = from.min(block.len());
            self.mark(&mut block[from..], statement);
            flow.leaves = one.leaves;
            let needs_guard = !one.flags.is_empty();
            let guards = one.flags.clone();
            flow.flags.extend(one.flags);
            if one.leaves || is_whole {
                return Ok(flow);
            }
            if needs_guard && !rest.is_empty() {
                let mut inner = Block::new();
                self.depth += 1;
                let tail = self.statements(rest, scope, &mut inner)?;
                self.depth -= 1;
                block.push(build::when(none_of(&guards), inner, None));
                flow.leaves = tail.leaves;
                flow.flags.extend(tail.flags);
                return Ok(flow);
            }
        }
        Ok(flow)
    }

    /// One statement; whether what follows it has been done with it.
    fn statement(
        &mut self,
        statement: &Statement,
        rest: &[&Statement],
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<(Flow, bool)> {
        let span = statement.span;
        let flow = match &statement.kind {
            StatementKind::Nothing => Flow::default(),
            StatementKind::Block(inner) => self.block(inner, scope, block)?,
            StatementKind::Assign { target, value } => {
                self.assign(target, value, scope, block)?;
                Flow::default()
            }
            StatementKind::AssignElement { target, index, value } => {
                match scope.find(&target.parts).ok_or_else(|| self.no_variable(target))? {
                    Entity::List(list) => self.assign_element(&list, (index, value), scope, block)?,
                    _ => {
                        return Err(self.error(b"42804", target.span, "what is subscripted is not an array"));
                    }
                }
                Flow::default()
            }
            StatementKind::If { arms, otherwise } => {
                let arms = arms.iter().map(|(condition, body)| (condition.clone(), body)).collect();
                return self.branches(arms, otherwise.as_ref(), rest, scope, block);
            }
            StatementKind::Case { operand, arms, otherwise } => {
                return self.case(span, (operand.as_ref(), arms, otherwise.as_ref()), rest, scope, block);
            }
            StatementKind::Loop(repeat) => self.repeat(repeat, span, scope, block)?,
            StatementKind::Leave { is_continue, label, when } => {
                return self.leave(*is_continue, label.as_ref(), when.as_ref(), (span, rest), scope, block);
            }
            StatementKind::Return(value) => self.return_value(value.as_ref(), span, scope, block)?,
            StatementKind::ReturnNext(value) => {
                self.return_next(value.as_ref(), span, scope, block)?;
                Flow::default()
            }
            StatementKind::ReturnQuery(query) => {
                self.return_query(query, scope, block)?;
                Flow::default()
            }
            StatementKind::Raise(raise) => self.raise(raise, scope, block)?,
            StatementKind::Assert { condition, message } => {
                self.assertion(condition, message.as_ref(), scope, block)?;
                Flow::default()
            }
            StatementKind::Perform(query) => {
                self.perform(query, scope, block)?;
                Flow::default()
            }
            StatementKind::Call(call) => {
                self.call(call, span, scope, block)?;
                Flow::default()
            }
            StatementKind::Sql { statement, into } => {
                self.sql(statement, into.as_ref(), span, scope, block)?;
                Flow::default()
            }
            StatementKind::RowCount(targets) => {
                self.take_row_count(targets, scope, block)?;
                Flow::default()
            }
        };
        Ok((flow, false))
    }

    /// `EXIT`, `CONTINUE`: with `WHEN`, an `IF`.
    fn leave(
        &mut self,
        is_continue: bool,
        label: Option<&Name>,
        when: Option<&Expression>,
        (span, rest): (Span, &[&Statement]),
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<(Flow, bool)> {
        if let Some(condition) = when {
            let kind = StatementKind::Leave { is_continue, label: label.cloned(), when: None };
            let body = vec![Statement { kind, span }];
            return self.branches(vec![(condition.clone(), &body)], None, rest, scope, block);
        }
        let word = if is_continue { "CONTINUE" } else { "EXIT" };
        let target = self.targets.iter().rev().find(|target| match label {
            Some(label) => target.label.as_deref() == Some(label.text.as_str()),
            None => target.next.is_some(),
        });
        let flag = match (target, is_continue) {
            (Some(target), false) => target.exit.clone(),
            (Some(Target { next: Some(next), .. }), true) => next.clone(),
            (Some(_), true) => {
                let label = label.map_or("", |label| label.text.as_str());
                let message = format!("block label \"{label}\" cannot be used in CONTINUE");
                return Err(self.error(b"42601", span, message));
            }
            (None, _) => {
                let message = match label {
                    Some(label) => {
                        format!(
                            "there is no label \"{}\" attached to any block or loop enclosing this statement",
                            label.text
                        )
                    }
                    None => format!("{word} cannot be used outside a loop, unless it has a label"),
                };
                return Err(self.error(b"42601", span, message));
            }
        };
        block.push(build::assign(&flag, build::boolean(true)));
        Ok((Flow { leaves: true, flags: [flag].into() }, false))
    }

    /// Branches, of which one at most runs. If only one of them goes on, what follows goes there too.
    pub(super) fn branches(
        &mut self,
        arms: Vec<(Expression, &Vec<Statement>)>,
        otherwise: Option<&Vec<Statement>>,
        rest: &[&Statement],
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<(Flow, bool)> {
        let mut ways: Vec<Vec<&Statement>> = arms.iter().map(|(_, body)| body.iter().collect()).collect();
        ways.push(otherwise.map(|otherwise| otherwise.iter().collect()).unwrap_or_default());
        let outcomes: Vec<Outcome> = ways.iter().map(|way| outcome(way.iter().copied())).collect();
        let going_on: Vec<usize> =
            (0..ways.len()).filter(|&way| outcomes[way] == Outcome::Continues).collect();
        let takes_rest = !rest.is_empty() && outcomes.contains(&Outcome::Leaves) && going_on.len() == 1;
        if takes_rest {
            ways[going_on[0]].extend(rest);
        }
        let otherwise = ways.pop().unwrap_or_default();
        let conditions = arms.into_iter().map(|(condition, _)| condition);
        let chain: Vec<(Expression, Vec<&Statement>)> = conditions.zip(ways).collect();
        let flow = self.chain(&chain, &otherwise, scope, block)?;
        Ok((flow, takes_rest))
    }
}

/// That none of the flags is set.
pub(super) fn none_of(flags: &BTreeSet<String>) -> program::Expression {
    build::not(build::any(flags.iter().map(build::variable)))
}
