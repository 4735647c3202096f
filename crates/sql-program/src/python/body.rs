//! Statements of a function: its variables and their classes, rows by key, what is assigned where.

use super::class::Class;
use super::hint;
use super::lowering::{Lowering, NullableResults, column_variable, found_variable, key_variable, variable};
use super::presence::facts;
use super::value::{self, Value, cast, nested, number};
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_program::syntax::tree::Name;
use fabius_sql_meaning::catalog::{Catalog, FunctionParameter, Returns};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_planning::heed;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{
    Block, Declaration, DeclarationKind, Level, Loop, LoopKind, Nulls, Statement as Done,
    StatementKind as Kind, TypeReference,
};
use fabius_sql_syntax::python::tree::{
    Constant, Expression, ExpressionKind, Function, Statement, StatementKind,
};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Expr};
use std::collections::{BTreeMap, BTreeSet};

/// A function's body as a block, with the places of what it gives that may be `None`; `nullable_results_of` says them
/// of programs that it calls.
///
/// # Errors
/// `0A000` for what programs do not express, with its place and what to write instead; what is wrong with its names.
pub fn lower(
    (source, function): (&Source, &Function),
    catalog: &Catalog,
    parameters: &[FunctionParameter],
    returns: &Returns,
    nullable_results_of: &NullableResults<'_>,
) -> Result<(Block, BTreeSet<usize>)> {
    let given = match returns {
        Returns::Scalar(returns) => std::slice::from_ref(returns).to_vec(),
        Returns::Record(columns) => columns.iter().map(|(_, sql_type)| sql_type.clone()).collect(),
        Returns::Table(_) => {
            let message = "a function in python returns values, not a table";
            return Err(Error::new(SqlState::NOT_SUPPORTED, message));
        }
    };
    // Globals come behind what it returns.
    let (returns, given_back) = given.split_at(given.len().saturating_sub(function.given_back.len()));
    let returns = if returns.is_empty() { &[SqlType::Void] } else { returns };
    let mut nullable: BTreeSet<String> = function.optional.iter().cloned().collect();
    let (mut classes, mut is_last, mut wanted) = (BTreeMap::new(), false, BTreeMap::new());
    let mut programs = BTreeMap::new();
    loop {
        let count = nullable.len();
        let mut lowering = Lowering {
            source,
            function,
            catalog,
            returns,
            given_back,
            variables: BTreeMap::new(),
            rows: BTreeMap::new(),
            results: BTreeMap::new(),
            assigned: BTreeSet::new(),
            known: classes,
            is_last,
            present: BTreeSet::new(),
            nullable,
            wanted,
            nullable_keys: BTreeSet::new(),
            nullable_results: BTreeSet::new(),
            programs,
            nullable_results_of,
            wants_more: false,
            loops: 0,
            tests: Vec::new(),
            conditions: 0,
            tries: 0,
            handling: Vec::new(),
        };
        for parameter in parameters.iter().filter(|parameter| parameter.is_input()) {
            let name = parameter.name.strip_prefix("py ").unwrap_or(&parameter.name).to_string();
            let class = Class::of_parameter(&parameter.sql_type);
            let class = if function.spans.contains(&name) { class.spanned() } else { class };
            lowering.variables.insert(name.clone(), class);
            lowering.assigned.insert(name);
        }
        let given = lowering.assigned.clone();
        lowering.note_wanted(&function.body);
        let mut statements = lowering.block(&function.body)?;
        if !leaves(&statements) {
            lowering.come_to_the_end(&mut statements)?;
        }
        // Whether a variable may be `None`, and what it is, is known once all that is assigned to it has been seen.
        let is_known =
            lowering.nullable.len() == count && lowering.known == lowering.variables && !lowering.wants_more;
        let is_pending = lowering.variables.values().any(Class::is_pending);
        if is_known && (!is_pending || is_last) {
            let block = Block {
                label: None,
                declarations: declarations(&lowering, &given, function.span)?,
                begin: function.span,
                statements,
                catches: Vec::new(),
            };
            return Ok((block, lowering.nullable_results));
        }
        (nullable, classes, wanted) = (lowering.nullable, lowering.variables, lowering.wanted);
        programs = lowering.programs;
        is_last = is_known;
    }
}

fn declarations(lowering: &Lowering<'_>, given: &BTreeSet<String>, span: Span) -> Result<Vec<Declaration>> {
    let nulls = |may_be_null: bool| if may_be_null { Nulls::Taken } else { Nulls::NeverRead };
    let own = lowering.variables.iter().filter(|(name, _)| !given.contains(*name));
    let mut all: Vec<(String, SqlType, Nulls)> = own
        .map(|(name, class)| (variable(name), class.sql_type(), nulls(lowering.nullable.contains(name))))
        .collect();
    for (name, row) in &lowering.rows {
        for (at, column) in row.key().iter().enumerate() {
            let may_be_null = lowering.nullable_keys.contains(&(row.table.oid, at));
            all.push((key_variable(name, at), row.key_type(column), nulls(may_be_null)));
        }
        for column in &row.wanted {
            let is_nullable = row.table.column(column).is_none_or(|column| column.nullable);
            all.push((column_variable(name, column), row.sql_type(column), nulls(is_nullable)));
        }
        if row.is_optional {
            all.push((found_variable(name), SqlType::Boolean, Nulls::NeverRead));
        }
    }
    for (name, fields) in &lowering.results {
        for field in fields {
            all.push((column_variable(name, &field.column), field.held.clone(), nulls(field.may_be_null)));
        }
    }
    let declaration = |(text, sql_type, nulls): (String, SqlType, Nulls)| {
        let data_type = Tokens::of(&sql_type.written())?.read(|parser| parser.parse_data_type())?;
        let ty = TypeReference::Named(data_type);
        let kind = DeclarationKind::Variable { is_constant: false, ty, nulls, default: None };
        Ok(Declaration { name: Name { text, span }, kind })
    };
    all.into_iter().map(declaration).collect()
}

impl Lowering<'_> {
    pub(super) fn block(&mut self, statements: &[Statement]) -> Result<Vec<Done>> {
        let mut done = Vec::new();
        for statement in statements {
            heed()?;
            let begin = done.len();
            let outer = std::mem::take(&mut self.tests);
            self.statement(statement, &mut done)?;
            let tests = std::mem::replace(&mut self.tests, outer);
            done.splice(begin..begin, tests);
        }
        Ok(done)
    }

    /// A block whose end may not be reached, or not be come from: what it assigns counts within.
    pub(super) fn branch(&mut self, statements: &[Statement]) -> Result<(Vec<Done>, BTreeSet<String>)> {
        let before = self.assigned.clone();
        let block = self.block(statements)?;
        let after = std::mem::replace(&mut self.assigned, before);
        Ok((block, after))
    }

    /// The body of a loop.
    pub(super) fn repeated(&mut self, statements: &[Statement]) -> Result<Vec<Done>> {
        self.forget_assigned(statements);
        let (block, _) = self.knowing(BTreeSet::new(), |lowering| lowering.branch(statements))?;
        Ok(block)
    }

    /// `if condition: then else: otherwise`
    fn condition_of(
        &mut self,
        condition: &Expression,
        (then, otherwise): (&[Statement], &[Statement]),
        span: Span,
    ) -> Result<Kind> {
        let (holds, fails) = facts(condition);
        let condition = self.condition(condition)?;
        let before = self.present.clone();
        self.present.extend(holds);
        let (then, after_then) = self.branch(then)?;
        let there_then = std::mem::replace(&mut self.present, before);
        self.present.extend(fails);
        let (otherwise, after_otherwise) = self.branch(otherwise)?;
        let there_otherwise = std::mem::take(&mut self.present);
        // Where one branch is left, what the other says holds behind both.
        let both =
            |one: &BTreeSet<String>, other: &BTreeSet<String>| match (leaves(&then), leaves(&otherwise)) {
                (true, false) => other.clone(),
                (false, true) => one.clone(),
                _ => one.intersection(other).cloned().collect(),
            };
        self.assigned = both(&after_then, &after_otherwise);
        self.present = both(&there_then, &there_otherwise);
        Ok(Kind::If {
            arms: vec![(self.written(condition, span), then)],
            otherwise: (!otherwise.is_empty()).then_some(otherwise),
        })
    }

    pub(super) fn statement(&mut self, statement: &Statement, done: &mut Vec<Done>) -> Result<()> {
        let span = statement.span;
        let mut emit = |kind: Kind| done.push(Done { kind, span });
        match &statement.kind {
            StatementKind::Nothing => {}
            StatementKind::Assign(target, value) => match &target.kind {
                ExpressionKind::Name(name) => {
                    return self.assign_name((name, target.span), value, span, done);
                }
                ExpressionKind::Attribute(object, column) => {
                    let place = self.place(object)?;
                    let value = self.value(value)?;
                    self.write(&place, (column, target.span), &value, None, done)?;
                }
                _ => {
                    return self.refused(target.span, "this target", "assign to a name or to a row's column");
                }
            },
            StatementKind::Augment(target, operator, value) => match &target.kind {
                ExpressionKind::Name(name) => {
                    let (before, by) = (self.name(name, target.span)?, self.value(value)?);
                    let (before, by) = (self.sure(before), self.sure(by));
                    let sum = self.calculated(*operator, before, by, span)?;
                    emit(self.assign(name, sum, target.span)?);
                }
                ExpressionKind::Attribute(object, column) => {
                    let place = self.place(object)?;
                    let value = self.value(value)?;
                    self.write(&place, (column, target.span), &value, Some(*operator), done)?;
                }
                _ => {
                    return self.refused(target.span, "this target", "assign to a name or to a row's column");
                }
            },
            StatementKind::If(condition, then, otherwise) => {
                emit(self.condition_of(condition, (then, otherwise), span)?);
            }
            StatementKind::While(condition, body) => {
                self.forget_assigned(body);
                let (holds, _) = facts(condition);
                let condition = self.condition(condition)?;
                let mut tests = std::mem::take(&mut self.tests);
                let body = self.knowing(holds, |lowering| lowering.branch(body))?.0;
                if tests.is_empty() {
                    let kind = LoopKind::While(self.written(condition, span));
                    emit(Kind::Loop(Loop { label: None, kind, body }));
                } else {
                    // What the condition needs is tested each time.
                    let ends =
                        Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(condition)) };
                    let when = Some(self.written(ends, span));
                    tests.push(Done { kind: Kind::Leave { is_continue: false, label: None, when }, span });
                    tests.extend(body);
                    emit(Kind::Loop(Loop { label: None, kind: LoopKind::Forever, body: tests }));
                }
            }
            StatementKind::Range(name, arguments, body) => emit(self.range(name, arguments, body, span)?),
            StatementKind::Elements(name, list, order, body) => {
                emit(self.elements((name, list), *order, body, span)?);
            }
            StatementKind::Rows(name, table, selection, body) => {
                emit(self.rows_of(name, table, selection, body, span)?);
            }
            StatementKind::Results(name, query, body) => emit(self.results_of(name, query, body, span)?),
            StatementKind::Append(list, value) => emit(self.append(list, value, span)?),
            StatementKind::SetElement(list, place, value) => {
                emit(self.set_element((list, place), value, span)?);
            }
            StatementKind::Receive(names, value) => self.receive(names, value, span, done)?,
            StatementKind::Say(state, value) => emit(self.say(state, value)?),
            StatementKind::Raise(kind, message) => emit(self.raise(kind, message, span)?),
            StatementKind::Reraise(depth) => emit(self.reraise(*depth, span)?),
            StatementKind::Try(tried) => return self.tried(tried, span, done),
            StatementKind::Declare(name) => drop(self.assigned.insert(name.clone())),
            StatementKind::Break | StatementKind::Continue => {
                let is_continue = matches!(statement.kind, StatementKind::Continue);
                emit(Kind::Leave { is_continue, label: None, when: None });
            }
            StatementKind::Return(value) => self.leave(value.as_ref(), span, done)?,
            StatementKind::ReturnAll(values) => self.leave_with(values, span, done)?,
            StatementKind::Delete(target) => self.delete(target, span, done)?,
            StatementKind::Expression(call) => self.call_alone(call, span, done)?,
        }
        Ok(())
    }

    /// `name = value`, where the value may be a row, or what a statement gives.
    fn assign_name(
        &mut self,
        (name, place): (&str, Span),
        value: &Expression,
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        if let Some((table, key)) = self.subscripted(value)? {
            return self.bind_row(name, (table, key), span, done);
        }
        let kind = match &value.kind {
            ExpressionKind::Empty => self.assign_open(name, true, place)?,
            ExpressionKind::Zero => self.assign_open(name, false, place)?,
            ExpressionKind::Call(function, arguments, named) => {
                if self.bind_called(name, (function, arguments, named), span, done)? {
                    return Ok(());
                }
                let value = self.value(value)?;
                self.assign(name, value, place)?
            }
            _ => {
                let value = self.value(value)?;
                self.assign(name, value, place)?
            }
        };
        done.push(Done { kind, span });
        Ok(())
    }

    /// A function that comes to its end gives `None`.
    fn come_to_the_end(&mut self, done: &mut Vec<Done>) -> Result<()> {
        let span = self.function.span;
        match self.returns {
            [_, _, ..] => {
                self.refused(span, "an end without return", "return as many values as are annotated")
            }
            _ => self.leave(None, span, done),
        }
    }

    /// `return value`
    fn leave(&mut self, value: Option<&Expression>, span: Span, done: &mut Vec<Done>) -> Result<()> {
        let own = match (value, self.returns) {
            (_, [_, _, ..]) => {
                return self.refused(span, "a result that is not as many values", "write return a, b");
            }
            (None, [SqlType::Void] | []) => Vec::new(),
            (None, _) => {
                self.nullable_results.insert(0);
                vec![Expr::value(ast::Value::Null)]
            }
            (Some(value), [SqlType::Void]) => {
                self.returned(value, 0, &SqlType::Void)?;
                Vec::new()
            }
            (Some(value), [wanted, ..]) => vec![self.returned(value, 0, wanted)?],
            (Some(_), []) => Vec::new(),
        };
        self.give(own, span, done)
    }

    /// `return a, b`
    fn leave_with(&mut self, values: &[Expression], span: Span, done: &mut Vec<Done>) -> Result<()> {
        let returns = self.returns;
        if returns.len() != values.len() || values.len() < 2 {
            let what = format!("a result of {} values", values.len());
            return self.refused(span, &what, "annotate it: -> tuple[int, str]");
        }
        let values = values.iter().zip(returns).enumerate();
        let own =
            values.map(|(at, (value, wanted))| self.returned(value, at, wanted)).collect::<Result<_>>()?;
        self.give(own, span, done)
    }

    /// Ends the function with these values, and globals that it gives back behind them.
    fn give(&mut self, mut values: Vec<Expr>, span: Span, done: &mut Vec<Done>) -> Result<()> {
        for (name, sql_type) in self.function.given_back.iter().zip(self.given_back) {
            let value = self.name(name, span)?;
            if value.is_nullable {
                self.nullable_results.insert(values.len());
            }
            values.push(cast(value.tree, sql_type)?);
        }
        let value = if values.len() > 1 {
            for (at, value) in values.into_iter().enumerate() {
                let target = self.path(format!("value {}", at + 1), span);
                done.push(Done { kind: Kind::Assign { target, value: self.written(value, span) }, span });
            }
            None
        } else {
            values.pop().map(|value| self.written(value, span))
        };
        done.push(Done { kind: Kind::Return(value), span });
        Ok(())
    }

    /// The class of a result.
    pub(super) fn class_of_result(&self, at: usize, returns: &SqlType) -> Class {
        let class = Class::of_parameter(returns);
        if self.function.gives_spans.contains(&at) { class.spanned() } else { class }
    }

    fn returned(&mut self, value: &Expression, at: usize, returns: &SqlType) -> Result<Expr> {
        let (value, span) = (self.value(value)?, value.span);
        let wanted = self.class_of_result(at, returns);
        if value.is_nullable || value.class == Class::None {
            self.nullable_results.insert(at);
        }
        match (&value.class, returns) {
            (Class::None, SqlType::Void) => Ok(Expr::value(ast::Value::Null)),
            (_, SqlType::Void) => self.refused(
                span,
                "a result that is not annotated",
                "write `-> int`, or what it is, behind its parameters",
            ),
            (class, _) if *class == wanted || *class == Class::None || class.is_pending() => {
                cast(value.tree, returns)
            }
            (Class::Whole, _) if wanted == Class::Decimal => cast(value.tree, returns),
            (class, _) => {
                let what = format!("a result of class {} where {} is annotated", class.name(), wanted.name());
                let instead = match class {
                    Class::Other(SqlType::Timestamp) => value::ZONE,
                    _ => "annotate what it returns",
                };
                self.refused(span, &what, instead)
            }
        }
    }

    /// `name = value`
    pub(super) fn assign(&mut self, name: &str, value: Value, span: Span) -> Result<Kind> {
        if self.rows.contains_key(name) || self.results.contains_key(name) {
            return self.refused(span, "a name that is a row and a value", "use two names");
        }
        let class = match self.variables.get(name).or_else(|| self.known.get(name)) {
            None => value.class.clone(),
            Some(class) if class.is_pending() => value.class.clone(),
            Some(class) if value.class.is_pending() => class.clone(),
            // What is `None` at first is what it becomes.
            Some(Class::None) => value.class.clone(),
            Some(class) if *class == value.class || value.class == Class::None => class.clone(),
            Some(class) => {
                let what = format!("a name that is {} and {}", class.name(), value.class.name());
                return self.refused(span, &what, "use two names");
            }
        };
        if value.is_nullable || value.class == Class::None {
            self.nullable.insert(name.to_string());
            self.present.remove(name);
        } else {
            self.present.insert(name.to_string());
        }
        let value = cast(value.tree, &class.sql_type())?;
        self.variables.insert(name.to_string(), class);
        self.assigned.insert(name.to_string());
        Ok(Kind::Assign { target: self.path(variable(name), span), value: self.written(value, span) })
    }

    /// `for name in range(arguments)`
    pub(super) fn range(
        &mut self,
        name: &str,
        arguments: &[Expression],
        body: &[Statement],
        span: Span,
    ) -> Result<Kind> {
        let mut bounds = Vec::new();
        for argument in arguments {
            let value = self.value(argument)?;
            let value = self.sure(value);
            if (value.class != Class::Whole && !value.class.is_pending()) || value.is_nullable {
                let instead = hint::conversion(self.text_of(argument.span), &value.class, &Class::Whole);
                return self.refused(argument.span, "a range of anything but int", &instead);
            }
            bounds.push(value);
        }
        let step = match arguments.get(2).map(|step| (&step.kind, step.span)) {
            None => 1,
            Some((kind, span)) => match step_of(kind) {
                Some(step) if step != 0 => step,
                _ => {
                    return self.refused(
                        span,
                        "a range whose step is not a literal, or 0",
                        "write the step out",
                    );
                }
            },
        };
        let (from, to) = match bounds.as_slice() {
            [to] => (number("0"), to.tree.clone()),
            [from, to, ..] if bounds.len() <= 3 => (from.tree.clone(), to.tree.clone()),
            _ => return self.wrong(span, b"42883", "range takes one to three arguments"),
        };
        let is_reverse = step < 0;
        let last = if is_reverse { ast::BinaryOperator::Plus } else { ast::BinaryOperator::Minus };
        let to = part::binary(nested(to), last, number("1"));
        self.loops += 1;
        let counter = format!("py loop {}", self.loops);
        let before = self.assigned.clone();
        let count = Value::of(Expr::Identifier(part::quoted(&counter)), Class::Whole, span);
        let first = self.assign(name, count, span)?;
        let mut block = vec![Done { kind: first, span }];
        block.extend(self.repeated(body)?);
        self.assigned = before;
        let by =
            (step.unsigned_abs() != 1).then(|| self.written(number(&step.unsigned_abs().to_string()), span));
        let kind = LoopKind::Range {
            variable: Name { text: counter, span },
            is_big: true,
            is_reverse,
            from: self.written(from, span),
            to: self.written(to, span),
            by,
        };
        Ok(Kind::Loop(Loop { label: None, kind, body: block }))
    }
}

/// A literal step.
fn step_of(kind: &ExpressionKind) -> Option<i64> {
    match kind {
        ExpressionKind::Constant(Constant::Whole(digits)) => digits.parse().ok(),
        ExpressionKind::Negative(value) => step_of(&value.kind)?.checked_neg(),
        _ => None,
    }
}

/// Whether control never comes to the end of statements.
pub(super) fn leaves(statements: &[Done]) -> bool {
    statements.last().is_some_and(|last| match &last.kind {
        Kind::Return(_) | Kind::Leave { when: None, .. } => true,
        Kind::Raise(raise) => raise.level == Level::Exception,
        Kind::Loop(Loop { kind: LoopKind::While(condition), body, .. }) => {
            condition.tree == value::boolean(true) && !is_left(body)
        }
        Kind::If { arms, otherwise: Some(otherwise) } => {
            leaves(otherwise) && arms.iter().all(|(_, then)| leaves(then))
        }
        _ => false,
    })
}

/// Whether a loop of these statements may be left before its end.
fn is_left(statements: &[Done]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        Kind::Leave { is_continue: false, .. } => true,
        Kind::If { arms, otherwise } => {
            arms.iter().any(|(_, then)| is_left(then)) || otherwise.as_deref().is_some_and(is_left)
        }
        Kind::Block(block) => is_left(&block.statements),
        _ => false,
    })
}
