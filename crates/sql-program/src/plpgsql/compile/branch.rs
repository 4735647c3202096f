//! `IF` and `CASE`.

use super::Compiler;
use super::scope::{Entity, Scope, Variable, VariablePlace};
use super::sequence::Flow;
use crate::bind::tree as build;
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{self as program, Block, ExpressionKind, Literal};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::{
    Expression, Level, Nulls, Raise, RaiseOption, Statement, StatementKind,
};
use fabius_value::Result;
use sqlparser::ast;
use std::cell::RefCell;
use std::rc::Rc;

/// What the operand of a `CASE` is called while it is compared.
const OPERAND: &str = "case operand";

/// The parts of a `CASE`: operand, branches with what they are for, `ELSE`.
type Case<'c> = (Option<&'c Expression>, &'c [(Vec<Expression>, Vec<Statement>)], Option<&'c Vec<Statement>>);

impl Compiler<'_> {
    /// A condition, and whether it can be null.
    pub(super) fn condition(
        &mut self,
        condition: &Expression,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<(program::Expression, bool)> {
        self.bind(scope, condition.span, block, |_, binder| {
            let bound = binder.expression(&condition.tree, Some(&SqlType::Boolean))?;
            let bound = binder.assigned(bound, &SqlType::Boolean)?;
            Ok((bound.expression, bound.nullable))
        })
    }

    /// `if a { ... } else if b { ... } else { ... }`
    #[recursive::recursive]
    pub(super) fn chain(
        &mut self,
        arms: &[(Expression, Vec<&Statement>)],
        otherwise: &[&Statement],
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Flow> {
        let Some(((condition, body), more)) = arms.split_first() else {
            return self.statements(otherwise, scope, block);
        };
        let (holds, nullable) = self.condition(condition, scope, block)?;
        self.depth += 1;
        let mut then = Block::new();
        let mut flow = self.statements(body, scope, &mut then)?;
        let mut other = Block::new();
        let other_flow = self.chain(more, otherwise, scope, &mut other)?;
        self.depth -= 1;
        flow.leaves &= other_flow.leaves;
        flow.flags.extend(other_flow.flags);
        if let [only] = &then[..]
            && let Some(failure) = always_fails(only)
        {
            // `IF c THEN RAISE ...; END IF` is `require not c`; null is not true.
            let holds = match nullable {
                true => build::call("coalesce", vec![holds, build::boolean(false)]),
                false => holds,
            };
            let kind = program::StatementKind::Require { condition: build::not(holds), failure };
            block.push(program::Statement { kind, span: only.span });
            // Names are never used twice: the blocks can be joined.
            block.append(&mut other);
            return Ok(flow);
        }
        let mut all = vec![(holds, then)];
        let mut last = (!other.is_empty()).then_some(other);
        if let Some([program::Statement { kind: program::StatementKind::If { arms, otherwise }, .. }]) =
            last.as_deref_mut()
        {
            all.append(arms);
            last = otherwise.take();
        }
        block.push(build::statement(program::StatementKind::If { arms: all, otherwise: last }));
        Ok(flow)
    }

    /// `CASE`: an `IF` whose last branch raises, if there is no `ELSE`.
    pub(super) fn case(
        &mut self,
        span: Span,
        (operand, arms, otherwise): Case<'_>,
        rest: &[&Statement],
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<(Flow, bool)> {
        let inner = Scope::within(scope, None);
        if let Some(operand) = operand {
            let bound =
                self.bind(scope, operand.span, block, |_, binder| binder.expression(&operand.tree, None))?;
            let program = self.name("case");
            let ty = build::scalar_type(bound.data_type, bound.nullable);
            block.push(build::declare(&program, false, Some(ty), bound.expression));
            let place = VariablePlace { program, nullable: bound.nullable, depth: self.depth, generation: 0 };
            let variable = Variable {
                name: OPERAND.into(),
                sql_type: bound.sql_type,
                is_constant: true,
                nulls: Nulls::Taken,
                number: 0,
                place: RefCell::new(place),
            };
            inner.declare(OPERAND, Entity::Variable(Rc::new(variable)));
        }
        let mut conditions = Vec::new();
        for (values, body) in arms {
            let tests = values.iter().map(|value| match operand {
                None => value.tree.clone(),
                Some(_) => ast::Expr::BinaryOp {
                    left: Box::new(ast::Expr::Identifier(ast::Ident::with_quote('"', OPERAND))),
                    op: ast::BinaryOperator::Eq,
                    right: Box::new(ast::Expr::Nested(Box::new(value.tree.clone()))),
                },
            });
            let any = tests.reduce(|left, right| ast::Expr::BinaryOp {
                left: Box::new(left),
                op: ast::BinaryOperator::Or,
                right: Box::new(right),
            });
            let Some(tree) = any else { continue };
            conditions.push((Expression { tree, span: values[0].span }, body));
        }
        let not_found;
        let otherwise = match otherwise {
            Some(otherwise) => otherwise,
            None => {
                not_found = vec![case_not_found(span)];
                &not_found
            }
        };
        self.branches(conditions, Some(otherwise), rest, &inner, block)
    }
}

/// The failure of `require false`.
fn always_fails(statement: &program::Statement) -> Option<program::Failure> {
    match &statement.kind {
        program::StatementKind::Require { condition, failure }
            if condition.kind == ExpressionKind::Literal(Literal::Boolean(false)) =>
        {
            Some(failure.clone())
        }
        _ => None,
    }
}

/// `RAISE` for a `CASE` that has no branch for a value.
fn case_not_found(span: Span) -> Statement {
    let hint = ast::Value::SingleQuotedString("CASE statement is missing ELSE part.".into());
    let raise = Raise {
        level: Level::Exception,
        state: Some("20000".into()),
        condition: None,
        format: Some(vec!["case not found".into()]),
        arguments: Vec::new(),
        options: vec![(RaiseOption::Hint, Expression { tree: ast::Expr::value(hint), span })],
        class: None,
    };
    Statement { kind: StatementKind::Raise(raise), span }
}
