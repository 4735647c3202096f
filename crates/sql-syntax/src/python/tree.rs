//! The parts of a function of Python that are understood.

use fabius_program::syntax::diagnostic::Span;
use std::sync::Arc;

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Parameters that may be `None`.
    pub optional: Vec<String>,
    /// Parameters that are times between moments (`timedelta`), in microseconds.
    pub spans: Vec<String>,
    /// Places of its results that are.
    pub gives_spans: Vec<usize>,
    /// Names whose values callers get back once the call has committed.
    pub given_back: Vec<String>,
    /// The name that it knows its database by: `db`.
    pub database: String,
    /// The name that it knows the package by: `fabius`.
    pub package: String,
    /// What it does.
    pub body: Arc<[Statement]>,
    /// Where it stands.
    pub span: Span,
}

/// A statement and where it stands.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it does.
    pub kind: StatementKind,
    /// Where it stands.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `target = value`
    Assign(Expression, Expression),
    /// `target += value`
    Augment(Expression, Operator, Expression),
    /// `if`; `elif` is an `if` in the other branch.
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// `while`
    While(Expression, Vec<Statement>),
    /// `for variable in range(arguments)`
    Range(String, Vec<Expression>, Vec<Statement>),
    /// `for variable in list`; with an order, sorted: upwards, or downwards.
    Elements(String, Expression, Option<Order>, Vec<Statement>),
    /// `for variable in db.execute(text, arguments)`
    Results(String, Query, Vec<Statement>),
    /// A list grows by an element.
    Append(Expression, Expression),
    /// The element of a list at a place from 0, which is there, becomes another.
    SetElement(Expression, Expression, Expression),
    /// Names become the values of a row of SQL, or those that a program gives.
    Receive(Vec<String>, Expression),
    /// A text for the caller, under an SQLSTATE.
    Say(String, Expression),
    /// The end of the transaction by an exception of a class, with a text, unless something around catches it.
    Raise(String, Expression),
    /// `raise` of what a handler around has caught: the innermost, or as many farther out.
    Reraise(usize),
    /// `try`
    Try(Try),
    /// A name has a value wherever it is used from here on.
    Declare(String),
    /// `return a, b`
    ReturnAll(Vec<Expression>),
    /// `for variable in db.table`, some of whose rows are gone through
    Rows(String, Expression, Selection, Vec<Statement>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `return [value]`
    Return(Option<Expression>),
    /// `del target`
    Delete(Expression),
    /// An expression that stands by itself.
    Expression(Expression),
    /// `pass`, and texts that say what a function does.
    Nothing,
}

impl StatementKind {
    /// The statements within it, a list for each branch.
    pub fn branches(&self) -> Vec<&[Statement]> {
        match self {
            StatementKind::If(_, then, otherwise) => vec![then, otherwise],
            StatementKind::While(_, body)
            | StatementKind::Range(_, _, body)
            | StatementKind::Elements(_, _, _, body)
            | StatementKind::Results(_, _, body)
            | StatementKind::Rows(_, _, _, body) => vec![body],
            StatementKind::Try(tried) => {
                let handlers = tried.handlers.iter().map(|handler| handler.body.as_slice());
                [tried.body.as_slice(), tried.otherwise.as_slice()].into_iter().chain(handlers).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// `try: body except classes as name: ... else: otherwise`
#[derive(Clone, Debug)]
pub struct Try {
    /// What is tried. What it has done stays done.
    pub body: Vec<Statement>,
    /// The first that is for a class counts.
    pub handlers: Vec<Handler>,
    /// What follows if the body comes to its end.
    pub otherwise: Vec<Statement>,
}

/// `except classes as name: body`
#[derive(Clone, Debug)]
pub struct Handler {
    /// The classes of exceptions that it is for, as what raises them says them.
    pub classes: Vec<String>,
    /// The name that gets the exception's text.
    pub name: Option<String>,
    /// What is done.
    pub body: Vec<Statement>,
    /// Whether that may raise it once more.
    pub is_reraised: bool,
}

/// The order of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The least first.
    Upwards,
    /// The greatest first.
    Downwards,
}

/// A call of another program.
#[derive(Clone, Debug)]
pub struct Call {
    /// What it is called in the database.
    pub program: String,
    /// In the order of its parameters.
    pub arguments: Vec<Expression>,
    /// Places of those that may be `None`.
    pub optional: Vec<usize>,
    /// Places of those that are times between moments.
    pub spans: Vec<usize>,
    /// Places of those of its results that may be `None`.
    pub may_be_none: Vec<usize>,
    /// Places of those of its results that are times between moments.
    pub gives_spans: Vec<usize>,
}

/// A statement of SQL with its arguments.
#[derive(Clone, Debug)]
pub struct Query {
    /// What it says, with parameters `$1`, `$2`, ...
    pub text: String,
    /// What they are.
    pub arguments: Vec<Expression>,
}

/// Which rows of a table a loop goes through.
#[derive(Clone, Debug)]
pub enum Selection {
    /// `db.table.where(column=value)`; all, if nothing is given.
    Equal(Vec<(String, Expression)>),
    /// `db.table[first, lower:upper]`: those whose key begins with values, and goes on within bounds.
    Range(Box<KeyRange>),
}

/// Keys that begin alike.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// What the first columns are.
    pub prefix: Vec<Expression>,
    /// What the next column is at least.
    pub lower: Option<Expression>,
    /// What the next column is below.
    pub upper: Option<Expression>,
}

impl Selection {
    /// The values that it names.
    pub fn values(&self) -> Vec<&Expression> {
        match self {
            Selection::Equal(equal) => equal.iter().map(|(_, value)| value).collect(),
            Selection::Range(range) => range.prefix.iter().chain(&range.lower).chain(&range.upper).collect(),
        }
    }
}

/// An expression and where it stands.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Where it stands.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    /// A literal.
    Constant(Constant),
    /// A name.
    Name(String),
    /// `object.name`
    Attribute(Box<Expression>, String),
    /// `object[key]`, `object[key, key]`
    Subscript(Box<Expression>, Vec<Expression>),
    /// `left op right`
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// `-value`
    Negative(Box<Expression>),
    /// `not value`
    Not(Box<Expression>),
    /// `a and b and c`, or `or`.
    Joined(bool, Vec<Expression>),
    /// `first < second <= third`
    Compare(Box<Expression>, Vec<(Comparison, Expression)>),
    /// `then if condition else otherwise`
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
    /// `f"..."`
    Formatted(Vec<Expression>),
    /// A list without elements.
    Empty,
    /// The number 0, of the class that is added to it, or that is compared with it.
    Zero,
    /// The element of a list at a place from 0, which is there.
    Element(Box<Expression>, Box<Expression>),
    /// A call of another program.
    Program(Call),
    /// `a, b`
    Tuple(Vec<Expression>),
    /// A statement of SQL.
    Query(Query),
    /// `function(arguments, name=value)`
    Call(Box<Expression>, Vec<Expression>, Vec<(String, Expression)>),
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// `None`
    None,
    /// `True`, `False`
    Boolean(bool),
    /// A whole number, in digits.
    Whole(String),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
}

/// An operator on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `//`
    FloorDivide,
    /// `%`
    Modulo,
    /// `**`
    Power,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    ExclusiveOr,
    /// `<<`, by a number that is not negative.
    ShiftLeft,
    /// `>>`, by a number that is not negative.
    ShiftRight,
}

impl Operator {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::FloorDivide => "//",
            Operator::Modulo => "%",
            Operator::Power => "**",
            Operator::And => "&",
            Operator::Or => "|",
            Operator::ExclusiveOr => "^",
            Operator::ShiftLeft => "<<",
            Operator::ShiftRight => ">>",
        }
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `is`
    Is,
    /// `is not`
    IsNot,
    /// `in`
    In,
    /// `not in`
    NotIn,
}

impl Comparison {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
            Comparison::Is => "is",
            Comparison::IsNot => "is not",
            Comparison::In => "in",
            Comparison::NotIn => "not in",
        }
    }
}
