//! The syntax of the blocks and statements of a function.
//!
//! Expressions and SQL statements are trees of the SQL parser, with places in the body.

use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::Name;
use sqlparser::ast;

/// What a function does.
#[derive(Clone, Debug)]
pub enum Body {
    /// Of a function in SQL: statements, the last of which gives its result.
    Sql(Vec<SqlStatement>),
    /// Of a function in PL/pgSQL.
    Block(Block),
}

/// A statement of a function in SQL.
#[derive(Clone, Debug)]
pub struct SqlStatement {
    /// What it does. `RETURN e` is `SELECT e`.
    pub statement: ast::Statement,
    /// Where it stands.
    pub span: Span,
}

/// `[<<label>>] [DECLARE ...] BEGIN ... END`
#[derive(Clone, Debug)]
pub struct Block {
    /// The block's label.
    pub label: Option<Name>,
    /// What it declares.
    pub declarations: Vec<Declaration>,
    /// Where `BEGIN` stands.
    pub begin: Span,
    /// What it does.
    pub statements: Vec<Statement>,
    /// Exceptions that end it instead of the call. PL/pgSQL has none of these: its own would undo what was done.
    pub catches: Vec<Catch>,
}

/// Exceptions of Python that end a block, which has a label, and not the call: what has been done stays.
#[derive(Clone, Debug)]
pub struct Catch {
    /// Their classes, as [`Raise::class`] says them.
    pub classes: Vec<String>,
    /// Becomes true.
    pub caught: Path,
    /// Gets the message.
    pub message: Path,
    /// Get the class, and the detail, which say what to raise once more; `None` where nothing does.
    pub again: Option<(Path, Path)>,
}

/// A line of `DECLARE`.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The name declared.
    pub name: Name,
    /// What it is.
    pub kind: DeclarationKind,
}

/// What a declared name is.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "trees are small, and built once")]
pub enum DeclarationKind {
    /// `name [CONSTANT] type [NOT NULL] [:= default]`
    Variable {
        /// `CONSTANT`.
        is_constant: bool,
        /// The variable's type.
        ty: TypeReference,
        /// Whether it may be null.
        nulls: Nulls,
        /// The variable's first value.
        default: Option<Expression>,
    },
    /// `name ALIAS FOR other`
    Alias(Path),
}

/// Whether a variable may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// It may.
    Taken,
    /// `NOT NULL`: assigning a null is an error.
    Refused,
    /// Who wrote the body knows that it is null only where it is not read: some value of its type stands for a null.
    NeverRead,
}

/// A type as a declaration says it.
#[derive(Clone, Debug)]
pub enum TypeReference {
    /// A type's name.
    Named(ast::DataType),
    /// `variable%TYPE`, `table.column%TYPE`
    SameAs(Path),
    /// `table%ROWTYPE`, or a table's name
    RowOf(Path),
    /// `RECORD`
    Record,
}

/// `x`, `record.field`, `label.x`, `$1`.
#[derive(Clone, Debug)]
pub struct Path {
    /// The path's parts, as they compare: lower-case unless quoted; a parameter by number is `$1`.
    pub parts: Vec<String>,
    /// Where it stands.
    pub span: Span,
}

/// An expression with where it stands.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What it is.
    pub tree: ast::Expr,
    /// Where it stands.
    pub span: Span,
}

/// A statement that gives rows, a query or one with `RETURNING`, with where it stands.
#[derive(Clone, Debug)]
pub struct Query {
    /// What it is.
    pub tree: Box<ast::Statement>,
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
#[allow(clippy::large_enum_variant, reason = "trees are small, and built once")]
pub enum StatementKind {
    /// A block within.
    Block(Block),
    /// `target := e`
    Assign {
        /// What is assigned to.
        target: Path,
        /// The value.
        value: Expression,
    },
    /// `target[index] := e`
    AssignElement {
        /// The array.
        target: Path,
        /// Which element.
        index: Expression,
        /// The value.
        value: Expression,
    },
    /// `IF`
    If {
        /// Conditions with their statements.
        arms: Vec<(Expression, Vec<Statement>)>,
        /// `ELSE`
        otherwise: Option<Vec<Statement>>,
    },
    /// `CASE`
    Case {
        /// What is compared, of a simple one.
        operand: Option<Expression>,
        /// `WHEN a, b THEN`
        arms: Vec<(Vec<Expression>, Vec<Statement>)>,
        /// `ELSE`
        otherwise: Option<Vec<Statement>>,
    },
    /// `LOOP`, `WHILE`, `FOR`, `FOREACH`
    Loop(Loop),
    /// `EXIT`, `CONTINUE`
    Leave {
        /// `CONTINUE`.
        is_continue: bool,
        /// Which loop or block.
        label: Option<Name>,
        /// `WHEN`
        when: Option<Expression>,
    },
    /// `RETURN [e]`
    Return(Option<Expression>),
    /// `RETURN NEXT [e]`
    ReturnNext(Option<Expression>),
    /// `RETURN QUERY`
    ReturnQuery(Query),
    /// `RAISE`
    Raise(Raise),
    /// `ASSERT condition [, message]`
    Assert {
        /// What must hold.
        condition: Expression,
        /// What is said if it does not.
        message: Option<Expression>,
    },
    /// `PERFORM`
    Perform(Query),
    /// `CALL p(...)`
    Call(Box<ast::Function>),
    /// Any other SQL statement.
    Sql {
        /// What it does.
        statement: Box<ast::Statement>,
        /// `INTO`
        into: Option<Into>,
    },
    /// `GET DIAGNOSTICS x = ROW_COUNT`: where the counts go.
    RowCount(Vec<Path>),
    /// `NULL`
    Nothing,
}

/// `INTO [STRICT] a, b`
#[derive(Clone, Debug)]
pub struct Into {
    /// `STRICT`
    pub is_strict: bool,
    /// Variables, or one record.
    pub targets: Vec<Path>,
}

/// A loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The loop's label.
    pub label: Option<Name>,
    /// What it goes over.
    pub kind: LoopKind,
    /// What it does each time.
    pub body: Vec<Statement>,
}

/// What a loop goes over.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "trees are small, and built once")]
pub enum LoopKind {
    /// `LOOP`
    Forever,
    /// `WHILE`
    While(Expression),
    /// `FOR n IN [REVERSE] a .. b [BY s]`
    Range {
        /// The counter.
        variable: Name,
        /// Whether it is a `bigint`, as for Python, not an `integer`.
        is_big: bool,
        /// `REVERSE`
        is_reverse: bool,
        /// First value.
        from: Expression,
        /// Last value.
        to: Expression,
        /// `BY`
        by: Option<Expression>,
    },
    /// `FOR r IN query`
    Query {
        /// A record, or variables.
        targets: Vec<Path>,
        /// The query.
        query: Query,
    },
    /// `FOREACH x IN ARRAY a`
    Array {
        /// The variable.
        target: Path,
        /// The array.
        array: Expression,
    },
}

/// How loud a `RAISE` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `EXCEPTION`: aborts.
    Exception,
    /// A notice with this severity; `None` for `DEBUG` and `LOG`, which clients are not told by default.
    Notice(Option<&'static str>),
}

/// `RAISE [level] ['format', ...] [USING ...]`
#[derive(Clone, Debug)]
pub struct Raise {
    /// How loud.
    pub level: Level,
    /// The code, from a condition's name or `SQLSTATE '...'`.
    pub state: Option<String>,
    /// The condition's name, which is the message if there is no other.
    pub condition: Option<String>,
    /// The message, divided where its arguments go.
    pub format: Option<Vec<String>>,
    /// The arguments: one fewer than the parts of the format.
    pub arguments: Vec<Expression>,
    /// `USING option = e`.
    pub options: Vec<(RaiseOption, Expression)>,
    /// The class of an exception of Python, which a [`Catch`] may be for.
    pub class: Option<String>,
}

/// What `USING` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    /// `MESSAGE`
    Message,
    /// `DETAIL`
    Detail,
    /// `HINT`
    Hint,
    /// `ERRCODE`
    State,
}
