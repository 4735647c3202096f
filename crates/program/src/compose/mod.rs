//! The statements of a transaction as one program.
//!
//! An interactive transaction has run its statements one by one, each ahead of its place in the order, and
//! has shown what they returned. Committing it is a call of a program that runs them all, in order, and
//! requires after each that it returns what was shown:
//!
//! ```text
//! procedure statement(id: int) -> bigint { ...  return count }        run with 7, has shown 1
//!
//! procedure transaction(s1_id: int, e1_1: bigint null) {
//!     ...                                                              // its names with s1_ before them
//!     let r1_1: bigint null = s1_count
//!     require r1_1 is not distinct from e1_1, "...", sqlstate '40001'
//! }
//! ```
//!
//! What was shown is a parameter, so transactions of the same statements are one program, whatever they
//! read. A list is compared element by element.
//!
//! Statements that repeat are a loop over a list with one element per turn, so that a transaction of a
//! thousand `INSERT`s is as small a program as one of two ([`Part::Repeated`]). Lists that they return are
//! one after the other in a list of their own; a turn knows from where on, and how many.

mod rename;

use crate::syntax::tree::{
    BinaryOperator, Block, ColumnDefinition, Expression, ExpressionKind, Failure, Literal, Name, Parameter,
    ProcedureDefinition, Results, RowReference, ScalarName, Scan, Statement, StatementKind, TypeKind,
    TypeName,
};
use crate::syntax::{Source, Span};
use fabius_value::{DataType, Error, Result, SqlState, Value, limit};
use rename::{Renaming, prefixed};
use std::sync::Arc;

/// What a call aborts with whose statements do not return what was shown.
pub const CHANGED: &str = "could not serialize access due to concurrent update";

/// Statements of a transaction, next to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part<S> {
    /// One, once.
    Once(S),
    /// Some, one after the other, several times. All their parameters are scalars.
    Repeated(Vec<S>),
}

/// A statement as it was run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'r, S> {
    /// The statement.
    pub statement: S,
    /// With what.
    pub arguments: &'r [Value],
    /// What it returned.
    pub results: &'r [Value],
}

/// Statements that repeat together, at most.
const PERIOD_MAX: usize = 16;

/// Divides a transaction's statements into parts; `may_repeat` says whether a statement
/// [can](is_repeatable) be part of a loop.
pub fn parts<S: Clone + PartialEq>(
    statements: &[S],
    may_repeat: impl Fn(&S) -> bool,
) -> Vec<(Part<S>, usize)> {
    let mut parts = Vec::new();
    let mut at = 0;
    let mut repeatable = 0;
    while at < statements.len() {
        let rest = &statements[at..];
        if repeatable == 0 {
            repeatable = rest.iter().take_while(|statement| may_repeat(statement)).count();
        }
        let turns = |period: usize| {
            let first = &rest[..period];
            rest[..repeatable].chunks_exact(period).take_while(|turn| *turn == first).count()
        };
        // The most statements in one loop; of two that take as many, the shorter.
        let best = (1..=PERIOD_MAX.min(repeatable / 2))
            .map(|period| (period, turns(period)))
            .filter(|(_, turns)| *turns >= 2)
            .max_by_key(|(period, turns)| (period * turns, std::cmp::Reverse(*period)));
        let (part, count) = match best {
            Some((period, turns)) => (Part::Repeated(rest[..period].to_vec()), period * turns),
            None => (Part::Once(rest[0].clone()), 1),
        };
        parts.push((part, count));
        at += count;
        repeatable = repeatable.saturating_sub(count);
    }
    parts
}

/// Whether a statement can be part of a loop.
pub fn is_repeatable(definition: &ProcedureDefinition) -> bool {
    let is_scalar = |ty: &TypeName| matches!(ty.kind, TypeKind::Scalar(_));
    definition.parameters.iter().all(|parameter| is_scalar(&parameter.ty))
        && definition.parameters.len() + result_types(definition).len() > 0
}

/// The program of a transaction, none of whose names hides one of `tables`.
///
/// # Errors
/// `54000` if it is too large.
pub fn compose<'t>(
    name: &str,
    parts: &[Part<&ProcedureDefinition>],
    tables: impl Iterator<Item = &'t str>,
) -> Result<ProcedureDefinition> {
    let mut composition = Composition::beside(tables);
    for part in parts {
        match part {
            Part::Once(statement) => composition.once(statement),
            Part::Repeated(statements) => composition.repeated(statements),
        }
    }
    composition.program(name, Results::None)
}

/// The program of a statement that runs only where another one still returns what it did: its parameters are those of
/// the other, what that has to return, and its own; it returns what the statement does. None of its names hides one
/// of `tables`.
///
/// # Errors
/// `54000` if it is too large.
pub fn requiring<'t>(
    name: &str,
    required: &ProcedureDefinition,
    statement: &ProcedureDefinition,
    tables: impl Iterator<Item = &'t str>,
) -> Result<ProcedureDefinition> {
    let mut composition = Composition::beside(tables);
    composition.once(required);
    let prefix = composition.next(statement);
    let body = Renaming::of(statement, &prefix).block(&statement.body);
    composition.body.extend(body);
    composition.program(name, statement.results.clone())
}

/// What stands between letter and number in the names of lists, so that no table has such a name: mostly nothing.
fn mark<'t>(tables: impl Iterator<Item = &'t str>) -> String {
    let underscores = tables.filter_map(|table| {
        let rest = table.strip_prefix(['s', 'e', 't'])?;
        let number = rest.trim_start_matches('_');
        number.starts_with(|first: char| first.is_ascii_digit()).then(|| rest.len() - number.len())
    });
    underscores.max().map_or_else(String::new, |most| "_".repeat(most + 1))
}

/// The arguments of the call that commits a transaction; `parts` are those of its program, with how many
/// statements each stands for.
pub fn arguments<S>(parts: &[(Part<S>, usize)], runs: &[Run<'_, S>]) -> Vec<Value> {
    let mut values = Vec::new();
    let mut runs = runs.iter();
    for (part, count) in parts {
        let next = runs.by_ref().take(*count);
        match part {
            Part::Once(_) => {
                next.for_each(|run| values.extend(run.arguments.iter().chain(run.results).cloned()))
            }
            Part::Repeated(statements) => {
                let all: Vec<&Run<'_, S>> = next.collect();
                values.extend(of_loop(all.chunks(statements.len())));
            }
        }
    }
    values
}

/// The list of a loop's turns; then for each list that its statements return, the elements of all turns.
fn of_loop<'r, S: 'r>(turns: impl Iterator<Item = &'r [&'r Run<'r, S>]>) -> Vec<Value> {
    let mut elements: Vec<Vec<Vec<Value>>> = Vec::new();
    let mut list = Vec::new();
    for turn in turns {
        let mut fields = Vec::new();
        let mut lists = 0;
        for run in turn {
            fields.extend(run.arguments.iter().cloned());
            for result in run.results {
                let Value::List(rows) = result else {
                    fields.push(result.clone());
                    continue;
                };
                if elements.len() == lists {
                    elements.push(Vec::new());
                }
                let all = &mut elements[lists];
                lists += 1;
                fields.extend([Value::BigInt(all.len() as i64), Value::BigInt(rows.len() as i64)]);
                all.extend(rows.iter().cloned());
            }
        }
        list.push(fields);
    }
    std::iter::once(list).chain(elements).map(Value::List).collect()
}

/// What a result has to be.
enum Expected {
    /// This value.
    Scalar(Expression),
    /// So many elements of a list, those after an offset.
    List { list: String, offset: Option<Expression>, count: Expression },
}

struct Composition {
    parameters: Vec<Parameter>,
    body: Block,
    /// Of the last statement.
    number: usize,
    /// See [`mark`].
    mark: String,
}

impl Composition {
    /// Nothing yet, whose names will be none of `tables`.
    fn beside<'t>(tables: impl Iterator<Item = &'t str>) -> Composition {
        Composition { parameters: Vec::new(), body: Vec::new(), number: 0, mark: mark(tables) }
    }

    fn program(self, name: &str, results: Results) -> Result<ProcedureDefinition> {
        let definition = ProcedureDefinition {
            source: Arc::new(Source::new("", name)),
            name: Name::new(name),
            parameters: self.parameters,
            results,
            body: self.body,
        };
        let bytes = definition.to_string().len();
        if bytes > limit::PROGRAM_BYTES {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "transaction too large")
                .with_detail(format!(
                    "its statements form a program of {bytes} bytes, at most {} are allowed",
                    limit::PROGRAM_BYTES
                ))
                .with_hint("divide it among several transactions, or write several rows in one statement"));
        }
        Ok(definition)
    }

    /// Takes in a statement's parameters: what comes before its names.
    fn next(&mut self, statement: &ProcedureDefinition) -> String {
        self.number += 1;
        let prefix = format!("s{}{}_", self.mark, self.number);
        for parameter in &statement.parameters {
            let name = Name::new(prefixed(&prefix, &parameter.name.text));
            self.parameters.push(Parameter { name, ty: parameter.ty.clone() });
        }
        prefix
    }

    fn once(&mut self, statement: &ProcedureDefinition) {
        let prefix = self.next(statement);
        let mut expected = Vec::new();
        for (at, ty) in result_types(statement).into_iter().enumerate() {
            let name = format!("e{}{}_{}", self.mark, self.number, at + 1);
            self.parameters.push(Parameter { name: Name::new(&name), ty: nullable(ty) });
            expected.push(match ty.kind {
                TypeKind::Scalar(_) => Expected::Scalar(Expression::variable(&name)),
                _ => Expected::List { count: count(&name), list: name, offset: None },
            });
        }
        self.inline(statement, &prefix, &expected);
    }

    fn repeated(&mut self, statements: &[&ProcedureDefinition]) {
        let first = self.number + 1;
        let (list, turn) = (format!("t{}{first}", self.mark), format!("u{first}"));
        let (mut fields, mut elements) = (Vec::new(), Vec::new());
        let outer = std::mem::take(&mut self.body);
        for statement in statements {
            self.number += 1;
            let prefix = format!("s{}{}_", self.mark, self.number);
            for parameter in &statement.parameters {
                let name = prefixed(&prefix, &parameter.name.text);
                fields.extend(
                    scalar(&parameter.ty).map(|scalar| ColumnDefinition { name: Name::new(&name), scalar }),
                );
                self.body.push(declare(&name, parameter.ty.clone(), field(&turn, &name)));
            }
            let mut expected = Vec::new();
            for (at, ty) in result_types(statement).into_iter().enumerate() {
                let name = format!("e{}{}_{}", self.mark, self.number, at + 1);
                if let Some(scalar) = scalar(&nullable(ty)) {
                    fields.push(ColumnDefinition { name: Name::new(&name), scalar });
                    expected.push(Expected::Scalar(field(&turn, &name)));
                    continue;
                }
                let (offset, count) =
                    (format!("o{}_{}", self.number, at + 1), format!("c{}_{}", self.number, at + 1));
                let scalar =
                    ScalarName { data_type: DataType::BigInt, nullable: false, span: Span::default() };
                fields
                    .extend([&offset, &count].map(|name| ColumnDefinition { name: Name::new(name), scalar }));
                elements.push(Parameter { name: Name::new(&name), ty: nullable(ty) });
                let (offset, count) = (Some(field(&turn, &offset)), field(&turn, &count));
                expected.push(Expected::List { list: name, offset, count });
            }
            self.inline(statement, &prefix, &expected);
        }
        let body = std::mem::replace(&mut self.body, outer);
        let ty = TypeName { kind: TypeKind::Records(fields), span: Span::default() };
        self.parameters.push(Parameter { name: Name::new(&list), ty });
        self.parameters.extend(elements);
        let scan = Scan::all(&list);
        self.push(StatementKind::ForEach { variable: Name::new(&turn), scan: Box::new(scan), body });
    }

    fn push(&mut self, kind: StatementKind) {
        self.body.push(Statement { kind, span: Span::default() });
    }

    /// A statement's body under new names, and what it requires of its results.
    fn inline(&mut self, statement: &ProcedureDefinition, prefix: &str, expected: &[Expected]) {
        let mut body = Renaming::of(statement, prefix).block(&statement.body);
        let returned = match body.pop() {
            Some(Statement { kind: StatementKind::Return { values }, .. }) => values,
            other => {
                body.extend(other);
                Vec::new()
            }
        };
        self.body.extend(body);
        let types = result_types(statement);
        for (at, ((value, ty), expected)) in returned.into_iter().zip(types).zip(expected).enumerate() {
            match (expected, &ty.kind) {
                (Expected::Scalar(expected), _) => {
                    let name = format!("r{}_{}", self.number, at + 1);
                    self.body.push(declare(&name, nullable(ty), value));
                    self.body.push(require_same(Expression::variable(&name), expected.clone()));
                }
                (Expected::List { list, offset, count }, TypeKind::Records(fields)) => {
                    let fields: Vec<_> = fields.iter().map(|field| Some(&field.name)).collect();
                    self.require_list(at, &value, list, offset.as_ref(), count, &fields);
                }
                (Expected::List { list, offset, count }, _) => {
                    self.require_list(at, &value, list, offset.as_ref(), count, &[None]);
                }
            }
        }
    }

    /// Two lists have as many elements, and the same ones.
    fn require_list(
        &mut self,
        at: usize,
        value: &Expression,
        expected: &str,
        offset: Option<&Expression>,
        expected_count: &Expression,
        fields: &[Option<&Name>],
    ) {
        let ExpressionKind::Variable(value) = &value.kind else {
            // The verifier says what is wrong with a list that is not a variable.
            return self.body.push(require_same(value.clone(), Expression::variable(expected)));
        };
        self.body.push(require_same(count(value), expected_count.clone()));
        let turn = format!("n{}_{}", self.number, at + 1);
        let there = match offset {
            None => Expression::variable(&turn),
            Some(offset) => binary(BinaryOperator::Add, offset.clone(), Expression::variable(&turn)),
        };
        let body = fields
            .iter()
            .map(|name| {
                require_same(
                    element(value, Expression::variable(&turn), *name),
                    element(expected, there.clone(), *name),
                )
            })
            .collect();
        let from = Expression::from(ExpressionKind::Literal(Literal::Integer(1)));
        self.push(StatementKind::ForRange { variable: Name::new(&turn), from, to: count(value), body });
    }
}

/// The types of what a procedure returns.
pub fn result_types(definition: &ProcedureDefinition) -> Vec<&TypeName> {
    match &definition.results {
        Results::None => Vec::new(),
        Results::One(ty) => vec![ty],
        Results::Named(results) => results.iter().map(|result| &result.ty).collect(),
    }
}

/// `turn.name`
fn field(turn: &str, name: &str) -> Expression {
    let row = RowReference { name: Name::new(turn), key: None, span: Span::default() };
    Expression::from(ExpressionKind::Column { row, optional: false, column: Name::new(name) })
}

/// `list[at]`, `list[at].name`
fn element(list: &str, at: Expression, name: Option<&Name>) -> Expression {
    Expression::from(match name {
        None => ExpressionKind::Element { list: Name::new(list), index: Box::new(at) },
        Some(column) => ExpressionKind::Column {
            row: RowReference { name: Name::new(list), key: Some(vec![at]), span: Span::default() },
            optional: false,
            column: column.clone(),
        },
    })
}

fn count(list: &str) -> Expression {
    let arguments = vec![Expression::variable(list)];
    Expression::from(ExpressionKind::Call { function: Name::new("count"), distinct: false, arguments })
}

fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    Expression::from(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)))
}

/// Requires that a result is what was shown.
fn require_same(left: Expression, right: Expression) -> Statement {
    require(binary(BinaryOperator::IsNotDistinct, left, right))
}

fn require(condition: Expression) -> Statement {
    let failure = Failure::from(CHANGED).with_state(SqlState::SERIALIZATION_FAILURE);
    Statement { kind: StatementKind::require(condition, failure), span: Span::default() }
}

fn declare(name: &str, ty: TypeName, value: Expression) -> Statement {
    let kind = StatementKind::Let { name: Name::new(name), mutable: false, ty: Some(ty), value };
    Statement { kind, span: Span::default() }
}

fn scalar(ty: &TypeName) -> Option<ScalarName> {
    match ty.kind {
        TypeKind::Scalar(scalar) => Some(scalar),
        TypeKind::List(_) | TypeKind::Records(_) => None,
    }
}

/// The type with null wherever there was none: a result can be compared with any answer.
fn nullable(ty: &TypeName) -> TypeName {
    let kind = match &ty.kind {
        TypeKind::Scalar(scalar) => TypeKind::Scalar(ScalarName { nullable: true, ..*scalar }),
        TypeKind::List(scalar) => TypeKind::List(ScalarName { nullable: true, ..*scalar }),
        TypeKind::Records(fields) => {
            let field = |field: &ColumnDefinition| ColumnDefinition {
                name: field.name.clone(),
                scalar: ScalarName { nullable: true, ..field.scalar },
            };
            TypeKind::Records(fields.iter().map(field).collect())
        }
    };
    TypeName { kind, span: Span::default() }
}

/// The type of a scalar, for callers who build definitions.
pub fn scalar_type(data_type: DataType, nullable: bool) -> TypeName {
    let scalar = ScalarName { data_type, nullable, span: Span::default() };
    TypeName { kind: TypeKind::Scalar(scalar), span: Span::default() }
}
