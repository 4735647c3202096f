//! Loops. Each goes over a range, a list or a query, and so ends; of `WHILE` and `LOOP` the turns are bounded.

use super::Compiler;
use super::assignment::{Destination, path_of};
use super::counting::{Counting, assigned_names, counting};
use super::query::{table_name, written_tables};
use super::scope::{Entity, Scope};
use super::sequence::{Flow, Target, none_of};
use crate::bind::{Binder, Bound, tree as build};
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{self as program, BinaryOperator as Op, Block, StatementKind};
use fabius_sql_meaning::catalog::{ForeignKey, ReferentialAction};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::Path;
use fabius_sql_syntax::plpgsql::tree::{self, Expression, Loop, LoopKind, Query, Statement};
use fabius_value::{DataType, Result, SqlState};
use sqlparser::ast;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Rounds of a loop whose turns are not known when it begins: the nth has n * n turns at most.
const ROUNDS: i128 = 200;

/// The flags of one loop.
struct Flags {
    exit: String,
    next: String,
    /// Whether there was a turn, for `FOUND`.
    any: String,
}

impl<'c> Compiler<'c> {
    /// `LOOP`, `WHILE`, `FOR`, `FOREACH`
    pub(super) fn repeat(
        &mut self,
        repeat: &Loop,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Flow> {
        let flags = Flags { exit: self.flag("exit"), next: self.flag("next"), any: self.flag("any") };
        block.push(build::declare(&flags.exit, true, None, build::boolean(false)));
        block.push(build::declare(&flags.any, true, None, build::boolean(false)));
        let flow = match &repeat.kind {
            LoopKind::Forever | LoopKind::While(_) => {
                let known = counting(repeat).filter(|counting| self.counts(counting, scope));
                return match known {
                    Some(counting) => self.counted(repeat, counting, &flags, span, scope, block),
                    None => self.unbounded(repeat, &flags, scope, block),
                };
            }
            LoopKind::Range { .. } => self.range(repeat, &flags, scope, block)?,
            LoopKind::Array { target, array } => self.array(repeat, (target, array), &flags, scope, block)?,
            LoopKind::Query { targets, query } => {
                let destination = self.destination(targets, scope)?;
                self.over_query(repeat, (targets, &destination), query, &flags, (span, scope), block)?
            }
        };
        if self.counts_rows {
            block.push(build::assign(&self.found, build::variable(&flags.any)));
        }
        Ok(flow)
    }

    /// One turn; `begin` binds what the turn is about. The flow is that of the loop.
    fn turn(
        &mut self,
        repeat: &Loop,
        body: &[Statement],
        flags: &Flags,
        scope: &Scope<'_>,
        begin: impl FnOnce(&mut Self, &mut Block) -> Result<()>,
    ) -> Result<(Block, Flow)> {
        let mut turn = Block::new();
        begin(self, &mut turn)?;
        turn.push(build::declare(&flags.next, true, None, build::boolean(false)));
        turn.push(build::assign(&flags.any, build::boolean(true)));
        self.targets.push(Target {
            label: repeat.label.as_ref().map(|label| label.text.clone()),
            exit: flags.exit.clone(),
            next: Some(flags.next.clone()),
        });
        let statements: Vec<&Statement> = body.iter().collect();
        let inner = Scope::within(scope, repeat.label.as_ref().map(|label| label.text.as_str()));
        let flow = self.statements(&statements, &inner, &mut turn);
        self.targets.pop();
        let mut flow = flow?;
        flow.flags.remove(&flags.next);
        if !flow.flags.is_empty() {
            turn = vec![build::when(none_of(&flow.flags), turn, None)];
        }
        flow.flags.remove(&flags.exit);
        flow.leaves = false;
        Ok((turn, flow))
    }

    /// `FOR n IN a .. b`
    fn range(&mut self, repeat: &Loop, flags: &Flags, scope: &Scope<'_>, block: &mut Block) -> Result<Flow> {
        let LoopKind::Range { variable, is_big, is_reverse, from, to, by } = &repeat.kind else {
            return Ok(Flow::default());
        };
        let (sql_type, data_type) = match is_big {
            true => (SqlType::BigInt, DataType::BigInt),
            false => (SqlType::Int, DataType::Int),
        };
        let types = (&sql_type, data_type);
        let low = self.bound_of_range(from, "lower bound", types, (scope, block))?;
        let high = self.bound_of_range(to, "upper bound", types, (scope, block))?;
        let by = match by {
            None => None,
            Some(by) => {
                let step = self.bound_of_range(by, "BY value", types, (scope, block))?;
                let message = "BY value of FOR loop must be greater than zero".to_string();
                let positive = build::binary(Op::Greater, step.clone(), build::integer(0));
                block.push(build::require(positive, b"22023", message, None));
                Some(step)
            }
        };
        let counter = self.name("n");
        let turns = build::variable(&counter);
        let wide = |value: &program::Expression| build::cast(value.clone(), DataType::BigInt);
        let (first, last, value) = match (is_reverse, by) {
            (false, None) => (low, high, turns),
            (true, None) => {
                let sum = build::binary(Op::Add, wide(&low), wide(&high));
                (high, low, build::binary(Op::Subtract, sum, turns))
            }
            (is_reverse, Some(step)) => {
                let (less, more) = if *is_reverse { (&high, &low) } else { (&low, &high) };
                let distance = build::binary(Op::Subtract, wide(more), wide(less));
                let count = build::binary(Op::Divide, distance, step.clone());
                let none = build::binary(Op::Greater, less.clone(), more.clone());
                let last = build::choice(none, build::cast(build::integer(-1), DataType::BigInt), count);
                let moved = build::binary(Op::Multiply, turns, step);
                let operator = if *is_reverse { Op::Subtract } else { Op::Add };
                (build::integer(0), last, build::binary(operator, wide(&low), moved))
            }
        };
        self.depth += 1;
        let inner = Scope::within(scope, repeat.label.as_ref().map(|label| label.text.as_str()));
        let counted = Bound::computed(build::cast(value, data_type), sql_type.clone(), false);
        let done = self.turn(repeat, &repeat.body, flags, &inner, |compiler, turn| {
            let number = compiler.variable(&variable.text, sql_type.clone());
            compiler.introduce(&number, 0, counted, turn);
            inner.declare(&variable.text, Entity::Variable(Rc::new(number)));
            Ok(())
        });
        self.depth -= 1;
        let (body, flow) = done?;
        let kind = StatementKind::ForRange { variable: build::name(&counter), from: first, to: last, body };
        block.push(build::statement(kind));
        Ok(flow)
    }

    /// An integer that is not null, as a variable.
    fn bound_of_range(
        &mut self,
        value: &Expression,
        what: &str,
        (sql_type, data_type): (&SqlType, DataType),
        (scope, block): (&Scope<'_>, &mut Block),
    ) -> Result<program::Expression> {
        let bound = self.bind(scope, value.span, block, |_, binder| {
            let bound = binder.expression(&value.tree, Some(sql_type))?;
            binder.coerced(bound, sql_type)
        })?;
        if bound.nullable {
            let message = format!("{what} of FOR loop cannot be null");
            let there = build::is_null(bound.expression.clone(), true);
            block.push(build::require(there, b"22004", message, None));
        }
        let value = match bound.nullable {
            true => {
                build::call("coalesce", vec![bound.expression, build::cast(build::integer(0), data_type)])
            }
            false => bound.expression,
        };
        let name = self.name("bound");
        let ty = Some(build::scalar_type(data_type, false));
        block.push(build::declare(&name, false, ty, value));
        Ok(build::variable(&name))
    }

    /// `FOREACH x IN ARRAY a`
    fn array(
        &mut self,
        repeat: &Loop,
        (target, array): (&Path, &Expression),
        flags: &Flags,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Flow> {
        let list = self.bind(scope, array.span, block, |_, binder| binder.list(&array.tree))?;
        let destination = self.destination(std::slice::from_ref(target), scope)?;
        let element = self.name("element");
        self.depth += 1;
        let value = Bound::computed(build::variable(&element), list.element.clone(), true);
        let done = self.turn(repeat, &repeat.body, flags, scope, |compiler, turn| {
            let column = super::assignment::output("", &value);
            compiler.store_row(&destination, vec![(column, value)], target.span, scope, turn)
        });
        self.depth -= 1;
        let (body, flow) = done?;
        block.push(build::for_list(&element, &list.name, body));
        Ok(flow)
    }

    /// `FOR r IN query`: in the loop over the rows if the body leaves its tables alone, else over a list of them.
    fn over_query(
        &mut self,
        repeat: &Loop,
        (targets, destination): (&[Path], &Destination),
        query: &Query,
        flags: &Flags,
        (span, scope): (Span, &Scope<'_>),
        block: &mut Block,
    ) -> Result<Flow> {
        if !self.disturbs(repeat, targets, query) {
            let mut flow = Flow::default();
            self.rows(query, None, scope, block, &mut |compiler, row, inner| {
                let (mut turn, one) =
                    compiler.turn(repeat, &repeat.body, flags, scope, |compiler, turn| {
                        compiler.row_of_loop(destination, row, span, scope, turn)
                    })?;
                inner.append(&mut turn);
                flow.flags.extend(one.flags);
                Ok(())
            })?;
            return Ok(flow);
        }
        let list = self.name("rows");
        let mut columns: Vec<(OutputColumn, Bound)> = Vec::new();
        let at = block.len();
        self.rows(query, None, scope, block, &mut |_, row, inner| {
            let nullable = |at: usize| columns.get(at).is_some_and(|(_, bound)| bound.nullable);
            let merged = row.iter().enumerate().map(|(at, (column, bound))| {
                let nullable = bound.nullable || nullable(at);
                let expression = bound.expression.clone();
                (
                    column.clone(),
                    Bound::held_as(expression, bound.sql_type.clone(), nullable, bound.data_type),
                )
            });
            let merged = merged.collect();
            columns = merged;
            inner.push(build::append(&list, row.into_iter().map(|(_, bound)| bound.expression).collect()));
            Ok(())
        })?;
        let field = |at: usize| format!("c{}", at + 1);
        let fields = columns
            .iter()
            .enumerate()
            .map(|(at, (_, bound))| build::field(&field(at), bound.data_type, bound.nullable));
        block.insert(at, build::declare_list(&list, fields.collect()));
        let element = self.name("row");
        let row = columns
            .into_iter()
            .enumerate()
            .map(|(at, (column, bound))| {
                let expression = build::column(build::loop_row(&element), &field(at), false);
                (column, Bound::held_as(expression, bound.sql_type, bound.nullable, bound.data_type))
            })
            .collect();
        self.depth += 1;
        let done = self.turn(repeat, &repeat.body, flags, scope, |compiler, turn| {
            compiler.row_of_loop(destination, row, span, scope, turn)
        });
        self.depth -= 1;
        let (body, flow) = done?;
        block.push(build::for_list(&element, &list, body));
        Ok(flow)
    }

    /// The row of a turn: into variables, or as a record of its own.
    fn row_of_loop(
        &mut self,
        destination: &Destination,
        row: Vec<(OutputColumn, Bound)>,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let Destination::Record(record) = destination else {
            return self.store_row(destination, row, span, scope, block);
        };
        let known = record.fields.borrow().clone();
        let mut fields = Vec::new();
        for (at, (column, value)) in row.into_iter().enumerate() {
            // A record with a type of its own keeps its fields' names.
            let name = known.as_ref().and_then(|known| known.get(at)).map(|field| field.name.clone());
            let field = self.variable(&name.unwrap_or(column.name), column.sql_type);
            self.introduce(&field, 0, value, block);
            fields.push(Rc::new(field));
        }
        record.fields.replace(Some(fields));
        Ok(())
    }

    /// Whether a turn may change what the query reads: rows, or variables that it names.
    fn disturbs(&self, repeat: &Loop, targets: &[Path], query: &Query) -> bool {
        if super::query::is_write(&query.tree) {
            return true;
        }
        let mut assigned = assigned_names(&repeat.body);
        let turns = targets.iter().flat_map(|path| [path.parts.first(), path.parts.last()]);
        assigned.extend(turns.flatten().cloned());
        let names = |part: &ast::Expr| {
            let named = path_of(part).into_iter().flatten().any(|name| assigned.contains(&name));
            if named { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let Some(written) = written_tables(&repeat.body) else { return true };
        let changed = self.changed_with(written);
        let is_table = |name: &str| self.catalog.tables.keys().any(|table| table.name.to_lowercase() == name);
        let reads = |table: &ast::ObjectName| {
            // What is no table may be a view of one.
            let is_changed = |name: String| changed.contains(&name) || !is_table(&name);
            match !changed.is_empty() && table_name(table).is_none_or(is_changed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        ast::visit_expressions(&*query.tree, names).is_break()
            || ast::visit_relations(&*query.tree, reads).is_break()
    }

    /// Tables of these names, and those whose rows follow when theirs are changed.
    fn changed_with(&self, written: Vec<String>) -> BTreeSet<String> {
        let mut changed: BTreeSet<String> = written.iter().cloned().collect();
        let mut pending = written;
        while let Some(parent) = pending.pop() {
            let acts = |action| !matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict);
            let follows = |key: &ForeignKey| {
                key.parent.name.to_lowercase() == parent && (acts(key.on_delete) || acts(key.on_update))
            };
            for (name, table) in &self.catalog.tables {
                let name = name.name.to_lowercase();
                if table.foreign_keys.iter().any(follows) && changed.insert(name.clone()) {
                    pending.push(name);
                }
            }
        }
        changed
    }

    /// Whether what a loop counts with, and up to, are integers.
    fn counts(&self, counting: &Counting, scope: &Scope<'_>) -> bool {
        let Some(Entity::Variable(variable)) = scope.find(std::slice::from_ref(&counting.variable)) else {
            return false;
        };
        let mut types = ParameterTypes::default();
        let mut binder = Binder::within(self.catalog, "", &mut types, scope, self.next_name);
        let limit = binder.expression(&counting.limit, Some(&SqlType::BigInt));
        is_integer(&variable.sql_type) && limit.is_ok_and(|limit| is_integer(&limit.sql_type))
    }

    /// A loop that counts: its turns are computed when it begins.
    fn counted(
        &mut self,
        repeat: &Loop,
        counting: Counting,
        flags: &Flags,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Flow> {
        let Some(Entity::Variable(variable)) = scope.find(std::slice::from_ref(&counting.variable)) else {
            return self.unbounded(repeat, flags, scope, block);
        };
        let limit = self.bind(scope, span, block, |_, binder| {
            binder.expression(&counting.limit, Some(&SqlType::BigInt))
        })?;
        // From the variable to the limit, in steps; null begins no turn.
        let wide = |value: program::Expression| build::cast(value, DataType::BigInt);
        let (now, limit) = (wide(variable.bound().expression), wide(limit.expression));
        let distance = match counting.step > 0 {
            true => build::binary(Op::Subtract, limit, now),
            false => build::binary(Op::Subtract, now, limit),
        };
        let strict = matches!(counting.operator, ast::BinaryOperator::Lt | ast::BinaryOperator::Gt);
        let distance = match strict {
            true => build::binary(Op::Subtract, distance, build::integer(1)),
            false => distance,
        };
        let left = self.name("distance");
        let ty = Some(build::scalar_type(DataType::BigInt, true));
        block.push(build::declare(&left, false, ty, distance));
        let step = i128::from(counting.step.unsigned_abs());
        let turns = build::binary(Op::Divide, build::variable(&left), wide(build::integer(step)));
        let none = build::binary(Op::Less, build::variable(&left), build::integer(0));
        let least = if counting.runs_once { 0 } else { -1 };
        let last = build::choice(none, wide(build::integer(least)), turns);
        let last = match counting.runs_once {
            true => build::call("coalesce", vec![last, wide(build::integer(0))]),
            false => last,
        };
        let counter = self.name("n");
        self.depth += 1;
        let done = self.turn(repeat, &repeat.body[counting.body], flags, scope, |_, _| Ok(()));
        self.depth -= 1;
        let (body, flow) = done?;
        let kind = StatementKind::ForRange {
            variable: build::name(&counter),
            from: build::integer(0),
            to: last,
            body,
        };
        block.push(build::statement(kind));
        Ok(flow)
    }

    /// A loop whose turns are not known when it begins: in rounds that become longer, each of them empty once the
    /// loop has been left. So the call ends, and a loop of a few turns is as good as one.
    fn unbounded(
        &mut self,
        repeat: &Loop,
        flags: &Flags,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Flow> {
        let mut body = Vec::new();
        if let LoopKind::While(condition) = &repeat.kind {
            let fails = ast::Expr::IsNotTrue(Box::new(ast::Expr::Nested(Box::new(condition.tree.clone()))));
            let when = Some(Expression { tree: fails, span: condition.span });
            let kind = tree::StatementKind::Leave { is_continue: false, label: None, when };
            body.push(Statement { kind, span: condition.span });
        }
        body.extend(repeat.body.iter().cloned());
        let (round, counter) = (self.name("round"), self.name("n"));
        self.depth += 1;
        let done = self.turn(repeat, &body, flags, scope, |_, _| Ok(()));
        self.depth -= 1;
        let (turn, flow) = done?;
        let mut left = flow.flags.clone();
        left.insert(flags.exit.clone());
        let has_left = build::any(left.iter().map(build::variable));
        let length = build::binary(Op::Multiply, build::variable(&round), build::variable(&round));
        let inner = StatementKind::ForRange {
            variable: build::name(&counter),
            from: build::integer(1),
            to: build::choice(has_left.clone(), build::cast(build::integer(0), DataType::BigInt), length),
            body: turn,
        };
        block.push(build::statement(StatementKind::ForRange {
            variable: build::name(&round),
            from: build::integer(1),
            to: build::integer(ROUNDS),
            body: vec![build::statement(inner)],
        }));
        let most: i128 = (1..=ROUNDS).map(|round| round * round).sum();
        let failure = program::Failure {
            message: program::Message::Fixed(format!("a loop has not ended after {most} turns")),
            state: Some(SqlState::PROGRAM_LIMIT),
            detail: Some(build::typed_null(DataType::TEXT)),
            hint: Some(build::text("Every call ends: divide the work among several calls.")),
        };
        block.push(build::statement(StatementKind::Require { condition: has_left, failure }));
        Ok(flow)
    }
}

fn is_integer(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::SmallInt | SqlType::Int | SqlType::BigInt)
}
