//! The one error type of Fabius: what went wrong, in the shape PostgreSQL clients know.

use std::fmt;

/// A five-character SQLSTATE code (SQL:2016 part 2, 24.1; PostgreSQL appendix A).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState { $( $(#[$doc])* pub const $name: SqlState = SqlState(*$code); )* }
    };
}
states! {
    /// A `require` that was not met, or `raise`.
    RAISED = b"P0001";
    /// A row that had to be there is not.
    NO_SUCH_ROW = b"P0002";
    /// A key that must be unique is there already.
    UNIQUE_VIOLATION = b"23505";
    /// Null where null is not allowed.
    NOT_NULL_VIOLATION = b"23502";
    /// A number outside its type's range.
    OUT_OF_RANGE = b"22003";
    /// Division by zero.
    DIVISION_BY_ZERO = b"22012";
    /// Text longer than its type allows.
    TOO_LONG = b"22001";
    /// Text that is not a value of the type asked for.
    INVALID_TEXT = b"22P02";
    /// A date or time that does not exist.
    INVALID_DATETIME = b"22007";
    /// A date or time beyond what its type holds.
    DATETIME_OVERFLOW = b"22008";
    /// An argument outside a function's domain.
    INVALID_PARAMETER = b"22023";
    /// The logarithm of what has none.
    INVALID_LOGARITHM = b"2201E";
    /// A power or root of what has none.
    INVALID_POWER = b"2201F";
    /// A pattern that ends with its escape character, or an escape of several.
    INVALID_ESCAPE = b"22025";
    /// An object that cannot be used as asked: a table without the order that is wanted.
    INVALID_OBJECT_DEFINITION = b"42P17";
    /// What is asked for needs another state than there is.
    NOT_IN_STATE = b"55000";
    /// Text that does not parse.
    SYNTAX_ERROR = b"42601";
    /// A table that does not exist.
    UNDEFINED_TABLE = b"42P01";
    /// A table, index or procedure that exists already.
    DUPLICATE_OBJECT = b"42710";
    /// A column or variable that does not exist.
    UNDEFINED_COLUMN = b"42703";
    /// A procedure or function that does not exist.
    UNDEFINED_FUNCTION = b"42883";
    /// Types that do not fit together.
    DATATYPE_MISMATCH = b"42804";
    /// Anything else that a program or schema may not do.
    INVALID_DEFINITION = b"42P13";
    /// A feature that Fabius does not have.
    NOT_SUPPORTED = b"0A000";
    /// A bound of `limit` was exceeded.
    PROGRAM_LIMIT = b"54000";
    /// The disk is full.
    DISK_FULL = b"53100";
    /// No memory within the configured bound.
    OUT_OF_MEMORY = b"53200";
    /// The database is closed, or closing.
    SHUTDOWN = b"57P01";
    /// The caller gave up waiting.
    CANCELED = b"57014";
    /// Reading or writing a file failed.
    IO_ERROR = b"58030";
    /// An error of Fabius itself.
    INTERNAL = b"XX000";
    /// A file is there but not what it should be.
    DATA_CORRUPTED = b"XX001";
    /// What a transaction has seen was changed by another before it committed.
    SERIALIZATION_FAILURE = b"40001";
    /// A lock was not granted in time.
    LOCK_NOT_AVAILABLE = b"55P03";
    /// More transactions, or more statements in one, than are kept.
    TOO_MANY = b"53400";
    /// Another process uses the directory.
    IN_USE = b"55006";
}

impl SqlState {
    /// Reads a code: five digits and capital letters, not `00000`, which is success.
    pub fn parse(text: &str) -> Option<SqlState> {
        let code: [u8; 5] = text.as_bytes().try_into().ok()?;
        let plain = code.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
        (plain && &code != b"00000").then_some(SqlState(code))
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("?????")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The result of anything that can fail for a reason the user should read.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: one pointer wide, so that the path without errors stays cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Body>);

#[derive(Clone, PartialEq, Eq)]
struct Body {
    state: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    line: Option<u32>,
    position: Option<u32>,
    place: Option<Box<Place>>,
}

/// What of the database an error is about, for clients that look at names instead of reading messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Schema of the table.
    pub schema: Option<String>,
    /// Table.
    pub table: Option<String>,
    /// Column of it.
    pub column: Option<String>,
    /// Constraint or index that was violated.
    pub constraint: Option<String>,
    /// Where in which function it arose, in words.
    pub context: Option<String>,
}

impl Error {
    /// An error with its code and a short lower-case fact.
    pub fn new(state: SqlState, message: impl Into<String>) -> Error {
        let message = message.into();
        Error(Box::new(Body {
            state,
            message,
            detail: None,
            hint: None,
            line: None,
            position: None,
            place: None,
        }))
    }

    /// Adds the particulars: values, places.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds what the user can do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the program's source line (1-based).
    pub fn at_line(mut self, line: u32) -> Error {
        self.0.line = Some(line);
        self
    }

    /// Adds where in the statement's text it is: the character, from 1.
    pub fn at_position(mut self, position: u32) -> Error {
        self.0.position = Some(position);
        self
    }

    /// Takes the place in the statement's text away: it was one in another text.
    pub fn without_position(mut self) -> Error {
        self.0.position = None;
        self
    }

    /// Takes the source line away: the program's text is not the caller's.
    pub fn without_line(mut self) -> Error {
        self.0.line = None;
        self
    }

    /// Adds the table it is about.
    pub fn with_table(mut self, schema: impl Into<String>, table: impl Into<String>) -> Error {
        let place = self.place_mut();
        (place.schema, place.table) = (Some(schema.into()), Some(table.into()));
        self
    }

    /// Adds the column it is about.
    pub fn with_column(mut self, column: impl Into<String>) -> Error {
        self.place_mut().column = Some(column.into());
        self
    }

    /// Adds the constraint that was violated.
    pub fn with_constraint(mut self, constraint: impl Into<String>) -> Error {
        self.place_mut().constraint = Some(constraint.into());
        self
    }

    /// Adds where in which function it arose, in words.
    pub fn with_context(mut self, context: impl Into<String>) -> Error {
        self.place_mut().context = Some(context.into());
        self
    }

    /// Adds all of what it is about.
    pub fn with_place(mut self, place: Place) -> Error {
        self.0.place = Some(Box::new(place));
        self
    }

    fn place_mut(&mut self) -> &mut Place {
        self.0.place.get_or_insert_default()
    }

    /// The SQLSTATE.
    pub fn state(&self) -> SqlState {
        self.0.state
    }

    /// The short fact.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The particulars, if any.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// What to do about it, if known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The source line (1-based) in the program, if the error arose in one.
    pub fn line(&self) -> Option<u32> {
        self.0.line
    }

    /// The character (from 1) of the statement's text, if it is about one.
    pub fn position(&self) -> Option<u32> {
        self.0.position
    }

    /// The table, column and constraint it is about, if known.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_deref()
    }

    /// Whether the same request can succeed later without a change by the caller.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.0.state,
            SqlState::DISK_FULL
                | SqlState::OUT_OF_MEMORY
                | SqlState::IN_USE
                | SqlState::SHUTDOWN
                | SqlState::SERIALIZATION_FAILURE
                | SqlState::LOCK_NOT_AVAILABLE
        )
    }
}

impl fmt::Display for Error {
    /// `message (line 3); detail; hint: ...`, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(line) = self.0.line {
            write!(f, " (line {line})")?;
        }
        if let Some(detail) = &self.0.detail {
            write!(f, "; {detail}")?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "; hint: {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {self}", self.0.state)
    }
}

impl std::error::Error for Error {}
