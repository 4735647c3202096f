//! The syntax tree: what a text says, before names and types are looked up.
//!
//! Every node keeps the [`Span`] it was read from. Spans do not take part in comparison: two trees
//! are equal if they say the same. Front ends other than the text form build these trees directly;
//! their spans point into the [`Source`] they give, so that errors are shown in the user's own text.

use super::diagnostic::{Source, Span};
use fabius_value::{ColumnId, DataType, Decimal, SqlState, TableSchema};
use std::sync::Arc;

/// A name and where it stands. Names are lower-case unless they were written in backquotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

impl Name {
    /// A name that stands nowhere: of a program that is built, not read.
    pub fn new(text: impl Into<String>) -> Name {
        Name { text: text.into(), span: Span::default() }
    }
}

/// A table or a procedure.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// `table ...`
    Table(TableDefinition),
    /// `procedure ...`
    Procedure(ProcedureDefinition),
    /// `drop table name`, `drop procedure name`
    Drop(DropDefinition),
}

/// `drop table name`, `drop procedure name`
#[derive(Clone, Debug)]
pub struct DropDefinition {
    /// The text it was read from.
    pub source: Arc<Source>,
    /// What is dropped.
    pub what: Dropped,
    /// The name of what is dropped.
    pub name: Name,
}

impl PartialEq for DropDefinition {
    fn eq(&self, other: &DropDefinition) -> bool {
        self.what == other.what && self.name == other.name
    }
}

/// What can be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// A table, and with it the procedures that name it.
    Table,
    /// The newest procedure of the name.
    Procedure,
}

/// `table name { ... }`
#[derive(Clone, Debug)]
pub struct TableDefinition {
    /// The text it was read from.
    pub source: Arc<Source>,
    /// The table's name.
    pub name: Name,
    /// Columns, in order.
    pub columns: Vec<ColumnDefinition>,
    /// The primary key's columns, most significant first.
    pub primary_key: Vec<Name>,
    /// `using hash`.
    pub hash: bool,
    /// Secondary indexes, in order.
    pub indexes: Vec<IndexDefinition>,
}

impl PartialEq for TableDefinition {
    fn eq(&self, other: &TableDefinition) -> bool {
        self.name == other.name
            && self.columns == other.columns
            && self.primary_key == other.primary_key
            && self.hash == other.hash
            && self.indexes == other.indexes
    }
}

impl From<&TableSchema> for TableDefinition {
    /// The definition of a table that is there.
    fn from(schema: &TableSchema) -> TableDefinition {
        let name = |text: &str| Name { text: text.into(), span: Span::default() };
        let column = |column: &ColumnId| name(&schema.columns[usize::from(column.0)].name);
        TableDefinition {
            source: Arc::new(Source::new("", "")),
            name: name(&schema.name),
            columns: schema
                .columns
                .iter()
                .map(|column| ColumnDefinition {
                    name: name(&column.name),
                    scalar: ScalarName {
                        data_type: column.data_type,
                        nullable: column.nullable,
                        span: Span::default(),
                    },
                })
                .collect(),
            primary_key: schema.primary_key.iter().map(column).collect(),
            hash: schema.hash,
            indexes: schema
                .indexes
                .iter()
                .map(|index| IndexDefinition {
                    name: name(&index.name),
                    columns: index.columns.iter().map(column).collect(),
                    unique: index.unique,
                })
                .collect(),
        }
    }
}

/// `name: type`, in a table, a parameter list, a list type or a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// The column's name.
    pub name: Name,
    /// The column's type.
    pub scalar: ScalarName,
}

/// `index name (a, b)` or `unique index name (a, b)`
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    /// The index's name.
    pub name: Name,
    /// The index's columns, most significant first.
    pub columns: Vec<Name>,
    /// `unique`.
    pub unique: bool,
}

/// `procedure name(parameters) -> results { ... }`
#[derive(Clone, Debug)]
pub struct ProcedureDefinition {
    /// The text it was read from.
    pub source: Arc<Source>,
    /// The procedure's name.
    pub name: Name,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// What it returns.
    pub results: Results,
    /// What it does.
    pub body: Block,
}

impl PartialEq for ProcedureDefinition {
    fn eq(&self, other: &ProcedureDefinition) -> bool {
        self.name == other.name
            && self.parameters == other.parameters
            && self.results == other.results
            && self.body == other.body
    }
}

/// A named value of any type: a parameter or a named result.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The parameter's name.
    pub name: Name,
    /// The parameter's type.
    pub ty: TypeName,
}

/// What follows `->`.
#[derive(Clone, Debug, PartialEq)]
pub enum Results {
    /// No `->`.
    None,
    /// `-> type`
    One(TypeName),
    /// `-> (a: type, b: type)`
    Named(Vec<Parameter>),
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    /// What it is.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// What a type is.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `int`, `int null`
    Scalar(ScalarName),
    /// `list of int`
    List(ScalarName),
    /// `list of (a: int, b: text null)`
    Records(Vec<ColumnDefinition>),
}

/// A scalar type and whether `null` follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalarName {
    /// The type.
    pub data_type: DataType,
    /// Whether it may be null.
    pub nullable: bool,
    /// Where it stands.
    pub span: Span,
}

/// Statements in order.
pub type Block = Vec<Statement>;

/// A statement and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What it does.
    pub kind: StatementKind,
    /// Where it stands.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "trees are small, and built once")]
pub enum StatementKind {
    /// `let x: type = e` or `var x: type = e`
    Let {
        /// The new variable.
        name: Name,
        /// `var`.
        mutable: bool,
        /// The variable's type, if given.
        ty: Option<TypeName>,
        /// The variable's first value.
        value: Expression,
    },
    /// `target = e`, `target += e`
    Assign {
        /// What is assigned to.
        target: Target,
        /// The operator before `=`, if any.
        operator: Option<BinaryOperator>,
        /// The value, or the operator's right operand.
        value: Expression,
    },
    /// `require e, "message"`, `require e, 'made ' || of, sqlstate '23514', detail d, hint h`
    Require {
        /// What must hold.
        condition: Expression,
        /// What the caller is told if it does not.
        failure: Failure,
    },
    /// `insert t { a: e }` or `upsert t { a: e }`
    Insert {
        /// The table.
        table: Name,
        /// Columns and values.
        columns: Vec<(Name, Expression)>,
        /// `upsert`.
        upsert: bool,
    },
    /// `update row { a: e }`
    Update {
        /// The row.
        row: RowReference,
        /// Columns and values.
        columns: Vec<(Name, Expression)>,
    },
    /// `delete row`
    Delete {
        /// The row.
        row: RowReference,
    },
    /// `append list (a, b)`
    Append {
        /// The list.
        list: Name,
        /// One value per field.
        values: Vec<Expression>,
    },
    /// `sort list by a, b descending nulls last`; `sort list descending` of plain values
    Sort {
        /// The list.
        list: Name,
        /// What its rows are compared by, most significant first; at least one.
        keys: Vec<SortKey>,
    },
    /// `if c { ... } else if d { ... } else { ... }`
    If {
        /// Conditions and blocks; at least one.
        arms: Vec<(Expression, Block)>,
        /// The last `else`.
        otherwise: Option<Block>,
    },
    /// `for n in a to b { ... }`
    ForRange {
        /// The counter.
        variable: Name,
        /// First value.
        from: Expression,
        /// Last value.
        to: Expression,
        /// The body.
        body: Block,
    },
    /// `for x in list { ... }`, `for row in table by index[...] where e descending limit n { ... }`
    ForEach {
        /// The element or row.
        variable: Name,
        /// The list, or the range of a table.
        scan: Box<Scan>,
        /// The body.
        body: Block,
    },
    /// `return a, b`
    Return {
        /// The results.
        values: Vec<Expression>,
    },
}

/// What the caller is told when a `require` is not met.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The short fact.
    pub message: Message,
    /// `sqlstate '23514'`; P0001 if it is left out.
    pub state: Option<SqlState>,
    /// `detail e`: a text; null is none.
    pub detail: Option<Expression>,
    /// `hint e`: a text; null is none.
    pub hint: Option<Expression>,
}

/// The message of a [`Failure`].
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// `"message"`; the values that the condition mentions are the detail, unless one is given.
    Fixed(String),
    /// A text that is computed when the condition does not hold.
    Computed(Expression),
}

impl<M: Into<String>> From<M> for Failure {
    /// A fixed message, and nothing else.
    fn from(message: M) -> Failure {
        Failure { message: Message::Fixed(message.into()), state: None, detail: None, hint: None }
    }
}

impl Failure {
    /// This failure with a SQLSTATE.
    pub fn with_state(self, state: SqlState) -> Failure {
        Failure { state: Some(state), ..self }
    }

    /// The expressions it has.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let message = match &self.message {
            Message::Fixed(_) => None,
            Message::Computed(message) => Some(message),
        };
        message.into_iter().chain(&self.detail).chain(&self.hint)
    }
}

impl StatementKind {
    /// `require condition, failure`: `StatementKind::require(e, "not enough")`.
    pub fn require(condition: Expression, failure: impl Into<Failure>) -> StatementKind {
        StatementKind::Require { condition, failure: failure.into() }
    }
}

/// What a list is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// The field; none for a list of plain values.
    pub field: Option<Name>,
    /// `descending`
    pub descending: bool,
    /// `nulls first`; what is left out is `nulls last`, but with `descending` it is `nulls first`.
    pub nulls_first: bool,
}

/// What an assignment stores to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A variable.
    Variable(Name),
    /// A column of a row.
    Column {
        /// The row.
        row: RowReference,
        /// The column.
        column: Name,
    },
}

/// `row`, bound by a `for`, or `table[key, ...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RowReference {
    /// The loop's variable, or the table.
    pub name: Name,
    /// The key, for a table.
    pub key: Option<Vec<Expression>>,
    /// Where it stands.
    pub span: Span,
}

/// What a `for` goes over.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// A list variable or a table.
    pub name: Name,
    /// `by index`
    pub index: Option<Name>,
    /// `[a, b, lo .. hi]`
    pub range: Option<Range>,
    /// `where e`
    pub filter: Option<Expression>,
    /// `descending`
    pub descending: bool,
    /// `limit n`
    pub limit: Option<Expression>,
    /// Where it stands.
    pub span: Span,
}

impl Scan {
    /// All of a list, or of a table by its primary key.
    pub fn all(of: impl Into<String>) -> Scan {
        Scan {
            name: Name::new(of),
            index: None,
            range: None,
            filter: None,
            descending: false,
            limit: None,
            span: Span::default(),
        }
    }
}

/// `[a, b, lo .. hi]`: what leading columns equal, and bounds on the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Values of the leading columns.
    pub equal: Vec<Expression>,
    /// Lower bound on the next column.
    pub lower: Option<Bound>,
    /// Upper bound on the same column.
    pub upper: Option<Bound>,
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The value.
    pub value: Expression,
    /// Whether the value itself is in the range: `lo ..` and `.. hi`, not `lo <..` and `..< hi`.
    pub inclusive: bool,
}

/// An expression and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Where it stands.
    pub span: Span,
}

impl From<ExpressionKind> for Expression {
    /// An expression that stands nowhere.
    fn from(kind: ExpressionKind) -> Expression {
        Expression { kind, span: Span::default() }
    }
}

impl Expression {
    /// A variable's value.
    pub fn variable(name: impl Into<String>) -> Expression {
        ExpressionKind::Variable(name.into()).into()
    }
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// A constant.
    Literal(Literal),
    /// A variable.
    Variable(String),
    /// `row.column`, `table[key].column`, `table[key]?.column`, `record.field`, `list[i].field`
    Column {
        /// The row, record or list element.
        row: RowReference,
        /// `?.`: null if the row is missing.
        optional: bool,
        /// The column or field.
        column: Name,
    },
    /// `list[i]` of a plain list.
    Element {
        /// The list.
        list: Name,
        /// Where, from 1.
        index: Box<Expression>,
    },
    /// `exists table[key]`
    Exists(RowReference),
    /// `function(a, b)`, `count(distinct list.field)`
    Call {
        /// The function.
        function: Name,
        /// `distinct`.
        distinct: bool,
        /// The call's arguments.
        arguments: Vec<Expression>,
    },
    /// `-e`
    Negate(Box<Expression>),
    /// `not e`
    Not(Box<Expression>),
    /// `e is null`, `e is not null`
    IsNull {
        /// What is asked about.
        operand: Box<Expression>,
        /// `not`.
        negated: bool,
    },
    /// `e between low and high`, `e not between low and high`
    Between {
        /// What is compared.
        operand: Box<Expression>,
        /// The least value.
        low: Box<Expression>,
        /// The greatest value.
        high: Box<Expression>,
        /// `not`.
        negated: bool,
    },
    /// `a + b`
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// `if c then a else b`
    If {
        /// Conditions and values; at least one.
        arms: Vec<(Expression, Expression)>,
        /// After the last `else`.
        otherwise: Box<Expression>,
    },
    /// `e::type`
    Cast {
        /// What is converted.
        operand: Box<Expression>,
        /// To what.
        data_type: DataType,
    },
    /// `[]`
    EmptyList,
}

/// A constant. Numbers are not negative; a minus sign is [`ExpressionKind::Negate`].
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// `42`
    Integer(i128),
    /// `1.50`, with at least one digit after the point
    Decimal(Decimal),
    /// `'text'`
    Text(String),
    /// `x'0a'`
    Bytea(Vec<u8>),
    /// `date '2026-01-01'`, as days since 1970-01-01
    Date(i32),
    /// `timestamp '2026-01-01 12:00:00'`, as microseconds since 1970-01-01
    Timestamp(i64),
}

pub use crate::ir::BinaryOperator;
