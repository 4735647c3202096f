//! What a check has found: where, what, and what to do about it.

use std::fmt;

/// One fact about one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the repository's root.
    pub path: String,
    /// The line, 1-based.
    pub line: usize,
    /// What is not as it should be.
    pub what: String,
    /// What to do about it.
    pub action: String,
}

impl Finding {
    /// A finding at a line.
    pub fn new(path: &str, line: usize, what: impl Into<String>, action: impl Into<String>) -> Finding {
        Finding { path: path.into(), line, what: what.into(), action: action.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.action)
    }
}
