//! What tells statements apart.

use std::fmt;

/// What tells statements apart: made of their text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementId(pub(crate) u128);

impl StatementId {
    /// The name of its procedure; no user's name begins like that by accident.
    pub(crate) fn name(self) -> String {
        format!("{NAME_BEGIN}{self}")
    }

    /// The statement that a procedure of this name was defined for.
    pub(crate) fn of_name(name: &str) -> Option<StatementId> {
        let digits = name.strip_prefix(NAME_BEGIN).filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(StatementId)
    }
}

impl fmt::Display for StatementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// How the names of statements' procedures begin.
const NAME_BEGIN: &str = "statement ";
