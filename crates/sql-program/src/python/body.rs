//! Statements of a function: its variables and their classes, rows by key, what is assigned where.

use super::lowering::{Lowering, Row, column_variable, key_variable, variable};
use super::value::{self, Class, Value, cast, nested, number};
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_program::syntax::tree::Name;
use fabius_sql_meaning::catalog::{Catalog, FunctionParameter, Returns};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_planning::heed;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{
    Block, Declaration, DeclarationKind, Loop, LoopKind, Statement as Done, StatementKind as Kind,
    TypeReference,
};
use fabius_sql_syntax::python::tree::{
    Constant, Expression, ExpressionKind, Function, Statement, StatementKind,
};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Expr};
use std::collections::{BTreeMap, BTreeSet};

/// A function's body as a block.
///
/// # Errors
/// `0A000` for what programs do not express, with its place and what to write instead; what is wrong with its names.
pub fn lower(
    (source, function): (&Source, &Function),
    catalog: &Catalog,
    parameters: &[FunctionParameter],
    returns: &Returns,
) -> Result<Block> {
    let Returns::Scalar(returns) = returns else {
        return Err(Error::new(SqlState::NOT_SUPPORTED, "a function in python returns one value, or none"));
    };
    let mut nullable = BTreeSet::new();
    loop {
        let known = nullable.len();
        let mut lowering = Lowering {
            source,
            function,
            catalog,
            returns,
            variables: BTreeMap::new(),
            rows: BTreeMap::new(),
            assigned: BTreeSet::new(),
            nullable,
            wanted: BTreeMap::new(),
            loops: 0,
        };
        for parameter in parameters {
            let name = parameter.name.strip_prefix("py ").unwrap_or(&parameter.name).to_string();
            lowering.variables.insert(name.clone(), Class::of(&parameter.sql_type));
            lowering.assigned.insert(name);
        }
        let given = lowering.assigned.clone();
        lowering.note_wanted(&function.body);
        let statements = lowering.block(&function.body)?;
        nullable = lowering.nullable;
        // Whether a variable may be `None` is known once all that is assigned to it has been seen.
        if nullable.len() == known {
            return Ok(Block {
                label: None,
                declarations: declarations(&lowering.variables, &lowering.rows, &given, function.span)?,
                begin: function.span,
                statements,
            });
        }
    }
}

fn declarations(
    variables: &BTreeMap<String, Class>,
    rows: &BTreeMap<String, Row>,
    given: &BTreeSet<String>,
    span: Span,
) -> Result<Vec<Declaration>> {
    let own = variables.iter().filter(|(name, _)| !given.contains(*name));
    let mut all: Vec<(String, SqlType)> =
        own.map(|(name, class)| (variable(name), class.sql_type())).collect();
    for (name, row) in rows {
        for (at, column) in row.key().iter().enumerate() {
            all.push((key_variable(name, at), row.sql_type(column)));
        }
        all.extend(row.wanted.iter().map(|column| (column_variable(name, column), row.sql_type(column))));
    }
    let declaration = |(text, sql_type): (String, SqlType)| {
        let data_type = Tokens::of(&sql_type.written())?.read(|parser| parser.parse_data_type())?;
        Ok(Declaration {
            name: Name { text, span },
            kind: DeclarationKind::Variable {
                is_constant: false,
                ty: TypeReference::Named(data_type),
                is_not_null: false,
                default: None,
            },
        })
    };
    all.into_iter().map(declaration).collect()
}

impl Lowering<'_> {
    pub(super) fn block(&mut self, statements: &[Statement]) -> Result<Vec<Done>> {
        let mut done = Vec::new();
        for statement in statements {
            heed()?;
            self.statement(statement, &mut done)?;
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

    pub(super) fn statement(&mut self, statement: &Statement, done: &mut Vec<Done>) -> Result<()> {
        let span = statement.span;
        let mut emit = |kind: Kind| done.push(Done { kind, span });
        match &statement.kind {
            StatementKind::Nothing => {}
            StatementKind::Assign(target, value) => match &target.kind {
                ExpressionKind::Name(name) => {
                    if let Some((table, key)) = self.subscripted(value)? {
                        return self.bind_row(name, (table, key), span, done);
                    }
                    let value = self.value(value)?;
                    emit(self.assign(name, value, target.span)?);
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
                    let sum = value::calculated(*operator, before, by, span);
                    let sum = self.accepted(span, sum)?;
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
                let condition = self.condition(condition)?;
                let (then, after_then) = self.branch(then)?;
                let (otherwise, after_otherwise) = self.branch(otherwise)?;
                let both = |leaves: bool, other: &BTreeSet<String>, own: &BTreeSet<String>| match leaves {
                    true => other.clone(),
                    false => own.clone(),
                };
                let then_set = both(leaves(&then), &after_otherwise, &after_then);
                let otherwise_set = both(leaves(&otherwise), &after_then, &after_otherwise);
                self.assigned = then_set.intersection(&otherwise_set).cloned().collect();
                emit(Kind::If {
                    arms: vec![(self.written(condition, span), then)],
                    otherwise: (!otherwise.is_empty()).then_some(otherwise),
                });
            }
            StatementKind::While(condition, body) => {
                let condition = self.condition(condition)?;
                let (body, _) = self.branch(body)?;
                let kind = LoopKind::While(self.written(condition, span));
                emit(Kind::Loop(Loop { label: None, kind, body }));
            }
            StatementKind::Range(name, arguments, body) => {
                let kind = self.range(name, arguments, body, span)?;
                emit(kind);
            }
            StatementKind::Rows(name, table, equal, body) => {
                let kind = self.rows_of(name, table, equal, body, span)?;
                emit(kind);
            }
            StatementKind::Break | StatementKind::Continue => {
                let is_continue = matches!(statement.kind, StatementKind::Continue);
                emit(Kind::Leave { is_continue, label: None, when: None });
            }
            StatementKind::Return(value) => {
                let value = match value {
                    None => None,
                    Some(value) => Some(self.returned(value)?),
                };
                match (&value, self.returns) {
                    (None, SqlType::Void) => emit(Kind::Return(None)),
                    (None, _) => emit(Kind::Return(Some(self.written(Expr::value(ast::Value::Null), span)))),
                    (Some(value), _) => emit(Kind::Return(Some(self.written(value.clone(), span)))),
                }
            }
            StatementKind::Delete(target) => self.delete(target, span, done)?,
            StatementKind::Expression(call) => self.call_alone(call, span, done)?,
        }
        Ok(())
    }

    pub(super) fn returned(&mut self, value: &Expression) -> Result<Expr> {
        let (value, span) = (self.value(value)?, value.span);
        let wanted = Class::of(self.returns);
        match (&value.class, self.returns) {
            (Class::None, SqlType::Void) => Ok(Expr::value(ast::Value::Null)),
            (_, SqlType::Void) => self.refused(
                span,
                "a result that is not annotated",
                "write `-> int`, or what it is, behind its parameters",
            ),
            (class, _) if *class == wanted || *class == Class::None => cast(value.tree, self.returns),
            (Class::Whole, _) if wanted == Class::Decimal => cast(value.tree, self.returns),
            (class, _) => {
                let what = format!("a result of class {} where {} is annotated", class.name(), wanted.name());
                self.refused(span, &what, "annotate what it returns")
            }
        }
    }

    /// `name = value`
    pub(super) fn assign(&mut self, name: &str, value: Value, span: Span) -> Result<Kind> {
        if self.rows.contains_key(name) {
            return self.refused(span, "a name that is a row and a value", "use two names");
        }
        let class = match self.variables.get(name) {
            None => value.class.clone(),
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
            if value.class != Class::Whole || value.is_nullable {
                return self.refused(argument.span, "a range of anything but int", "convert it");
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
        block.extend(self.block(body)?);
        self.assigned = before;
        let by =
            (step.unsigned_abs() != 1).then(|| self.written(number(&step.unsigned_abs().to_string()), span));
        let kind = LoopKind::Range {
            variable: Name { text: counter, span },
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
fn leaves(statements: &[Done]) -> bool {
    statements.last().is_some_and(|last| match &last.kind {
        Kind::Return(_) | Kind::Leave { .. } => true,
        Kind::If { arms, otherwise: Some(otherwise) } => {
            leaves(otherwise) && arms.iter().all(|(_, then)| leaves(then))
        }
        _ => false,
    })
}
