//! The typed intermediate representation of a program.
//!
//! A program is a tree of steps over variables. Every access to the database is a step of its own,
//! so that analyses see which row, which columns and which phase without looking into expressions:
//!
//! ```text
//! accounts[src].balance -= amount
//!
//! Locate     r0 := accounts[src]            // one index lookup; the row may be missing
//! RequireRow r0                             // abort if it is
//! Read       v3 := r0.balance
//! Update     r0 { balance: cast(v3 - v2) }
//! ```
//!
//! Invariants (the verifier establishes them, everything later relies on them):
//! - every variable has one type; it is assigned on every path before it is used;
//! - a row handle is located (or bound by a scan or insert) before it is used, and is not used after
//!   an insert into its table may have changed what its key finds;
//! - both operands of a comparison or of `+`, `-`, `%` have one type (casts are explicit); `*` and
//!   `/` on numerics take any scales;
//! - the value stored to a column has exactly the column's type (again by explicit cast);
//! - a loop over a table does not insert into that table or update columns of the index it scans;
//! - `Return` is the last step of the body, or absent.

use fabius_value::{ColumnId, DataType, DateField, IndexId, SqlState, TableId, Value};
use std::sync::Arc;

/// A variable of a program: parameters come first, then locals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableId(pub u16);

/// A row handle of a program: the outcome of one index lookup, scan position or insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u16);

/// A step's number, in the order of the text (pre-order); analyses key their answers by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u16);

/// A scalar type and whether null is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScalarType {
    /// The SQL type.
    pub data_type: DataType,
    /// Whether null can occur.
    pub nullable: bool,
}

/// The type of a variable, parameter or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// One value.
    Scalar(ScalarType),
    /// A list of rows of values. A list of plain values has one field with an empty name.
    List(Vec<Field>),
}

/// A named scalar inside a list or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name; empty for the values of a plain list.
    pub name: String,
    /// The field's type.
    pub scalar: ScalarType,
}

/// A variable: its name in the text (or the text of the read that fills it), and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// For messages and `explain`: `amount`, `accounts[src].balance`.
    pub name: String,
    /// The variable's type.
    pub ty: Type,
}

/// A row handle: its name for messages, and its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowVariable {
    /// For messages and `explain`: `accounts[src]`, `line`.
    pub name: String,
    /// The table.
    pub table: TableId,
}

/// A verified program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The program's name, lower-case.
    pub name: String,
    /// How many of `variables` are parameters.
    pub parameter_count: usize,
    /// Parameters, then locals.
    pub variables: Vec<Variable>,
    /// Row handles.
    pub rows: Vec<RowVariable>,
    /// What it returns, in order.
    pub results: Vec<(String, Type)>,
    /// What it does.
    pub body: Block,
    /// How many steps there are in all.
    pub step_count: usize,
    /// The canonical text, which is also the stable serialised form.
    pub text: Arc<str>,
}

impl Program {
    /// Whether any of its steps inserts, updates or deletes a row.
    pub fn writes_anything(&self) -> bool {
        fn writes(block: &Block) -> bool {
            block.iter().any(|step| match &step.kind {
                StepKind::Insert { .. } | StepKind::Update { .. } | StepKind::Delete { .. } => true,
                StepKind::If { then, otherwise, .. } => writes(then) || writes(otherwise),
                StepKind::ForList { body, .. }
                | StepKind::ForRange { body, .. }
                | StepKind::ForScan { body, .. } => writes(body),
                _ => false,
            })
        }
        writes(&self.body)
    }
}

/// Steps in order.
pub type Block = Vec<Step>;

/// One step and where it stands in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The step's number.
    pub id: StepId,
    /// The step's line in the text, 1-based.
    pub line: u32,
    /// What it does.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "programs are small, and built once")]
pub enum StepKind {
    /// Computes a scalar variable. A variable may be assigned more than once.
    Assign {
        /// The variable.
        variable: VariableId,
        /// What the variable becomes.
        value: Expression,
    },
    /// Makes a list variable empty.
    Clear {
        /// The list.
        list: VariableId,
    },
    /// Appends a row of values to a list variable (never a parameter).
    Append {
        /// The list.
        list: VariableId,
        /// One value per field.
        values: Vec<Expression>,
    },
    /// Sorts the rows of a list variable (never a parameter); equal rows stay as they are to each other.
    Sort {
        /// The list.
        list: VariableId,
        /// What its rows are compared by, most significant first.
        keys: Vec<SortKey>,
    },
    /// Looks a row up by its whole primary key. The row may be missing; a null key value finds none.
    Locate {
        /// Set to what was found.
        row: RowId,
        /// Key columns in the order of the primary key.
        key: Vec<Expression>,
    },
    /// Aborts the call (P0002) if the row is missing or deleted.
    RequireRow {
        /// The row.
        row: RowId,
    },
    /// Sets a boolean: whether the row is there.
    Exists {
        /// The boolean.
        variable: VariableId,
        /// The row.
        row: RowId,
    },
    /// Reads columns of a row into variables; all null if the row is missing.
    Read {
        /// The row.
        row: RowId,
        /// Which columns, and where to.
        columns: Vec<(ColumnId, VariableId)>,
    },
    /// Aborts the call unless the condition is true (false and null abort).
    Require {
        /// The condition.
        condition: Expression,
        /// What the caller is told otherwise.
        failure: Failure,
    },
    /// Runs one of two blocks; null counts as false.
    If {
        /// The condition.
        condition: Expression,
        /// If true.
        then: Block,
        /// Otherwise.
        otherwise: Block,
    },
    /// Runs the body once per list element, in order. The body does not append to the list.
    ForList {
        /// The list.
        list: VariableId,
        /// One scalar variable per field.
        fields: Vec<VariableId>,
        /// The body.
        body: Block,
    },
    /// Runs the body for each integer from `from` to `to`, both included, as `bigint`. No turn if
    /// `from > to` or either is null.
    ForRange {
        /// The counter.
        variable: VariableId,
        /// First value.
        from: Expression,
        /// Last value.
        to: Expression,
        /// The body.
        body: Block,
    },
    /// Runs the body once per row of a range of an index, in index order.
    ForScan {
        /// The handle of the current row.
        row: RowId,
        /// The range.
        scan: Scan,
        /// The body.
        body: Block,
    },
    /// Adds a row; aborts (23505) if its primary key or a unique index has it already.
    Insert {
        /// Set to the new row.
        row: RowId,
        /// A value for every column, in order.
        values: Vec<Expression>,
    },
    /// Writes columns of a row that is there (`RequireRow` or a scan came before). Never key columns.
    Update {
        /// The row.
        row: RowId,
        /// Columns and values, each column once. All values are computed before any is written.
        sets: Vec<(ColumnId, Expression)>,
    },
    /// Deletes a row that is there.
    Delete {
        /// The row.
        row: RowId,
    },
    /// Ends the program with its results.
    Return {
        /// In the order of [`Program::results`].
        values: Vec<Returned>,
    },
}

/// What the caller is told when a `require` is not met.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// P0001 unless the text says another; 23502 where null is kept out of a column.
    pub state: SqlState,
    /// The short fact.
    pub message: Message,
    /// The particulars, as text; without them and with a fixed message, the values of the variables
    /// that the condition mentions. Null is none.
    pub detail: Option<Expression>,
    /// What to do about it, as text. Null is none.
    pub hint: Option<Expression>,
}

/// The message of a [`Failure`].
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// One text, every time.
    Fixed(String),
    /// A text that is computed when the condition does not hold.
    Computed(Expression),
}

impl Failure {
    /// A failure with a fixed message.
    pub fn fixed(state: SqlState, message: impl Into<String>) -> Failure {
        Failure { state, message: Message::Fixed(message.into()), detail: None, hint: None }
    }

    /// What is computed only if the condition does not hold.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let message = match &self.message {
            Message::Fixed(_) => None,
            Message::Computed(message) => Some(message),
        };
        message.into_iter().chain(&self.detail).chain(&self.hint)
    }
}

/// A field that rows of a list are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The field.
    pub field: u16,
    /// Greatest first.
    pub descending: bool,
    /// Nulls before everything else, whatever the direction; otherwise behind it.
    pub nulls_first: bool,
}

/// A result: a scalar, or a whole list variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    /// A scalar.
    Scalar(Expression),
    /// A list variable.
    List(VariableId),
}

/// A range of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// A secondary index, or `None` for the primary key.
    pub index: Option<IndexId>,
    /// Values that the leading index columns equal; a null matches nothing.
    pub equal: Vec<Expression>,
    /// Bounds on the column after those; a null bound matches nothing.
    pub lower: Option<ScanBound>,
    /// Upper bound on the same column.
    pub upper: Option<ScanBound>,
    /// From the upper end down.
    pub descending: bool,
    /// Rows that do not meet this are skipped.
    pub filter: Option<Filter>,
    /// At most this many rows (after the filter); null is no bound, negative is an error.
    pub limit: Option<Expression>,
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanBound {
    /// The value.
    pub value: Expression,
    /// Whether the value itself is in the range.
    pub inclusive: bool,
}

/// A scan's filter: only `Read`, `Assign`, `Locate`, `Exists` steps, then a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Steps that compute what the condition needs, run per row.
    pub steps: Block,
    /// Null counts as false.
    pub condition: Expression,
}

/// An expression over variables: no access to the database, no effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// The expression's type.
    pub ty: ScalarType,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// A literal of exactly the expression's type (or null).
    Constant(Value),
    /// A scalar variable.
    Variable(VariableId),
    /// An operator on one operand.
    Unary(UnaryOperator, Box<Expression>),
    /// An operator on two operands. `And` and `Or` evaluate the right only if the left leaves it open.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// The operand converted to the expression's type, as [`Value::cast`] does.
    Cast(Box<Expression>),
    /// The value of the first arm whose condition is true; later arms are not evaluated.
    Case {
        /// Condition and value.
        arms: Vec<(Expression, Expression)>,
        /// If none is true.
        otherwise: Box<Expression>,
    },
    /// A built-in function.
    Call(Function, Vec<Expression>),
    /// An aggregate over one field of a list.
    Aggregate {
        /// Which.
        aggregate: Aggregate,
        /// The list.
        list: VariableId,
        /// Which field of it; 0 for `Count`.
        field: u16,
    },
    /// A field of the list's element at a 1-based index; null outside the list or for a null index.
    Element {
        /// The list.
        list: VariableId,
        /// Where, as `bigint`.
        index: Box<Expression>,
        /// Which field.
        field: u16,
    },
    /// The call's logged time, a `timestamp`.
    Now,
    /// The call's next random `double precision` in [0, 1), from a generator seeded by its seq.
    Random,
}

/// Operators on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    /// `-x`; overflows at the lowest integer.
    Negate,
    /// `not x`.
    Not,
    /// `x is null`; never null.
    IsNull,
}

/// Operators on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOperator {
    /// `+`: exact numbers overflow with 22003; `date + int` days gives a date.
    Add,
    /// `-`: likewise; `date - date` gives an `int` of days.
    Subtract,
    /// `*`: numerics add their scales.
    Multiply,
    /// `/`: integers truncate; numerics round to the result's scale; zero aborts with 22012.
    Divide,
    /// `%`: the remainder has the dividend's sign.
    Modulo,
    /// `=`.
    Equal,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `is distinct from`: two nulls are the same, null and a value are not; never null.
    IsDistinct,
    /// `is not distinct from`: the opposite.
    IsNotDistinct,
    /// Three-valued `and`.
    And,
    /// Three-valued `or`.
    Or,
    /// `||` on text or bytea.
    Concatenate,
}

/// Built-in functions. Null in, null out, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `abs(x)`.
    Abs,
    /// `length(text or bytea) -> int`: characters or bytes.
    Length,
    /// `lower(text)`.
    Lower,
    /// `upper(text)`.
    Upper,
    /// `substring(text or bytea, from: bigint, count: bigint)`, 1-based; a negative count aborts 22023.
    Substring,
    /// `overlay(text or bytea, replacement, from: bigint)`, 1-based: replaces as many characters (or
    /// bytes) as the replacement has; from < 1 aborts with 22023.
    Overlay,
    /// `least(a, b, ...)`: ignores nulls; null if all are.
    Least,
    /// `greatest(a, b, ...)`: likewise.
    Greatest,
    /// `coalesce(a, b, ...)`: the first that is not null.
    Coalesce,
    /// `concat(a, b, ...)`: the texts one after the other, ignoring nulls; never null.
    Concat,
    /// `round(x)`, `trunc`, `floor`, `ceil` of a numeric or double; of a numeric also with the digits
    /// after the point, as `bigint`. Halves go away from zero, of doubles to the even number.
    Round(Rounding),
    /// `sign(x)` of a numeric or double: -1, 0 or 1.
    Sign,
    /// `div(a, b)` of numerics of one scale: the quotient without digits after the point.
    DivideWhole,
    /// `bitand(a, b)` and its like, of integers of one type; shifts take an `int`.
    Bits(Bits),
    /// `bitnot(a)`.
    BitNot,
    /// `extract('field', date or timestamp)`, a numeric.
    Extract(DateField),
    /// `like(text, pattern[, escape])`.
    Like,
    /// `ilike(text, pattern[, escape])`: whatever the case of letters.
    ILike,
    /// `starts_with(text, start)`.
    StartsWith,
    /// `strpos(text, part)`: from 1; 0 if it is not in there.
    Position,
    /// `trim(text[, characters])`.
    Trim,
    /// `ltrim`.
    TrimLeft,
    /// `rtrim`.
    TrimRight,
    /// `replace(text, from, to)`.
    Replace,
    /// `translate(text, from, to)`: character by character.
    Translate,
    /// `left(text, n)`: all but the last -n, if n is negative.
    Left,
    /// `right(text, n)`: all but the first -n, if n is negative.
    Right,
    /// `lpad(text, length[, fill])`.
    PadLeft,
    /// `rpad(text, length[, fill])`.
    PadRight,
    /// `repeat(text, count)`.
    Repeat,
    /// `reverse(text)`.
    Reverse,
    /// `initcap(text)`.
    Capitalise,
    /// `ascii(text)`: the code point of its first character, 0 if it has none.
    CodeOf,
    /// `chr(code)`.
    CharacterOf,
    /// `regexp_like(text, pattern)` or `(text, pattern, flags)`: whether a regular expression is found in a text.
    Matches,
    /// `split_part(text, by, number)`.
    SplitPart,
    /// `octet_length(text)`.
    OctetLength,
    /// `md5(text)`: 32 hexadecimal digits.
    Md5,
    /// `nth_random(seed: bigint, n: bigint) -> double precision`: in [0, 1), the same for the same two.
    NthRandom,
    /// `nth_uuid(seed: bigint, n: bigint) -> bytea`: 16 bytes that look random, the same for the same two.
    NthUuid,
    /// `power(a, b)`.
    Power,
    /// `sqrt(x)`.
    SquareRoot,
    /// `cbrt(x)`.
    CubeRoot,
    /// `exp(x)`.
    Exponential,
    /// `ln(x)`.
    NaturalLogarithm,
    /// `log(x)`, to the base 10.
    DecimalLogarithm,
    /// `date_part(field, timestamp)`, a double.
    DatePart,
    /// `date_trunc(unit, timestamp)`.
    DateTruncate,
    /// `add_micros(timestamp, microseconds)`.
    AddMicros,
    /// `micros_between(timestamp, timestamp)`: from the second to the first, as `bigint`.
    MicrosBetween,
    /// `add_months(timestamp, months)`: the day is the last of its month if that has no such day.
    AddMonths,
    /// `round_single(number)`: to the nearest number of 32 bits.
    RoundSingle,
    /// `round_micros(microseconds, digits)`: to so many digits of a second.
    RoundMicros,
    /// `round_moment(timestamp, digits)`: to so many digits of a second.
    RoundMoment,
    /// `make_date(year, month, day)`; negative years are before Christ.
    MakeDate,
    /// `uuid_text(bytea)`: hexadecimal digits in five groups.
    UuidText,
    /// `time_text(microseconds)`: a time of the day.
    TimeText,
    /// `unknown_label(enumeration, text)`: fails, as a text that is no label of an enumeration does.
    UnknownLabel,
    /// `python_power(base, exponent)`: of integers, exact.
    PythonPower,
    /// `python_shift(value, count)`: to the left, exact.
    PythonShift,
    /// `python_moved(timestamp, microseconds)`: in the years 1 to 9999.
    PythonMoved,
    /// `python_timedelta(interval)`: microseconds; a year is 365 days, a month 30.
    PythonTimedelta,
    /// `python_timedelta_text(microseconds)`: as `str` of Python shows a `timedelta`.
    PythonTimedeltaText,
    /// `python_interval(microseconds)`: whole days, and the rest of a day, as text.
    PythonInterval,
    /// `python_round(double, digits)`: by its true value; of two that are as near the even one.
    PythonRound,
    /// `python_text(double)`: the fewest digits that tell it apart.
    PythonText,
    /// `python_divide(left, right)`: of integers, the nearest double.
    PythonDivide,
    /// `python_quotient(digits, digits)`: of decimals, 28 digits.
    PythonQuotient,
    /// `python_quantize(digits, places, rounding)`: so many digits behind the point.
    PythonQuantize,
    /// `python_has(text, property)`: whether all characters are of a kind.
    PythonHas,
    /// `python_repr(text)`: in quotes, with escapes.
    PythonRepr,
    /// `python_whole(text)`: the digits that `int` reads; an empty text if it reads none.
    PythonWhole,
    /// `python_double(text)`: the number that `float` reads; an empty text if it reads none.
    PythonDouble,
    /// `python_format_int(bigint, format)`.
    PythonFormatInt,
    /// `python_format_double(double, format)`.
    PythonFormatDouble,
    /// `python_format_decimal(digits, format)`.
    PythonFormatDecimal,
    /// `python_format_text(text, format)`.
    PythonFormatText,
}

/// Where a number without digits after the point lies from the one it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// As near as can be.
    Nearest,
    /// As near as can be, and of two as near to the even one, of 28 digits: as Python's `decimal` rounds.
    NearestEven,
    /// Toward zero.
    TowardZero,
    /// Below.
    Down,
    /// Above.
    Up,
}

/// Operators on the bits of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bits {
    /// `bitand`.
    And,
    /// `bitor`.
    Or,
    /// `bitxor`.
    Xor,
    /// `shift_left`.
    Left,
    /// `shift_right`, which keeps the sign.
    Right,
}

/// Aggregates over a list's field. Nulls are ignored; over no values all but counts give null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// Elements of the list, as `bigint`; nulls count.
    Count,
    /// Distinct values that are not null, as `bigint`.
    CountDistinct,
    /// The sum; of integers as `bigint`, of numerics with precision 38 and the same scale.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The average: numeric of scale 6 more than the field's (16 at most), or double precision.
    Average,
}
