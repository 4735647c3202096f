//! Why something was not bound: it is wrong, or no program can express it.

use fabius_value::{Error, SqlState};
use sqlparser::ast::Spanned;
use sqlparser::tokenizer::Location;

/// Why binding stops.
#[derive(Debug)]
pub enum Stop {
    /// The statement is wrong.
    Wrong(Error),
    /// A program cannot express it; what it was, for a message where there is no other way.
    Beyond(String),
}

/// What binding gives.
pub type Bind<T> = Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Wrong(error)
    }
}

impl Stop {
    /// The error, where there is no other way: `0A000` for what a program cannot express.
    pub fn into_error(self) -> Error {
        match self {
            Stop::Wrong(error) => error,
            Stop::Beyond(what) => {
                Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported here"))
            }
        }
    }
}

/// Not expressible.
pub(super) fn beyond<T>(what: impl Into<String>) -> Bind<T> {
    Err(Stop::Beyond(what.into()))
}

/// An error of a SQLSTATE.
pub(super) fn wrong(state: &[u8; 5], message: impl Into<String>) -> Error {
    Error::new(SqlState(*state), message)
}

/// A place in the statement's text, to be turned into characters when there is an error there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(Location);

impl Place {
    /// Where a part of the syntax tree begins.
    pub(super) fn of(part: &impl Spanned) -> Place {
        Place(part.span().start)
    }

    /// Where an identifier begins.
    pub(super) fn of_ident(ident: &sqlparser::ast::Ident) -> Place {
        Place(ident.span.start)
    }

    /// Nowhere in particular.
    pub(super) fn none() -> Place {
        Place(Location { line: 0, column: 0 })
    }

    /// The error with this place, in characters from the beginning of the text.
    pub(super) fn mark(self, error: Error, text: &str) -> Error {
        if self.0.line == 0 || error.position().is_some() {
            return error;
        }
        let before = text.split('\n').take(self.0.line as usize - 1).map(|line| line.chars().count() + 1);
        error.at_position((before.sum::<usize>() + self.0.column as usize) as u32)
    }
}
