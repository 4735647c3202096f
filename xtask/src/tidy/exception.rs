//! Where a rule does not hold, and why. An exception that is not needed any more is a finding.

/// Files that may be longer than the rule allows: path and reason.
pub const LONG_FILES: &[(&str, &str)] = &[];

/// Dependencies on a crate of the same floor: from, to, and reason.
pub const SAME_FLOOR: &[(&str, &str, &str)] = &[
    ("cli", "bench", "`fabius bench` and `fabius demo` are faces of the measurements, not another copy"),
    ("fuzz", "bench", "a PostgreSQL is found, started and ended in one place"),
];
