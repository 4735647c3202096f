//! Fuzz targets: what is done with untrusted bytes, as functions of bytes that must not panic.
//!
//! Each function is run in two ways:
//!
//! - by libFuzzer, which finds inputs by coverage: `cargo xtask fuzz TARGET --seconds 60`. The binaries
//!   in `fuzz/fuzz_targets` stand outside of the workspace, as they need a nightly compiler;
//! - by the tests of this crate, on random bytes and random changes of the seeds: `tests/short.rs`.
//!
//! | module | bytes | what must hold |
//! |---|---|---|
//! | `program_text.rs` | definitions | accepted text prints to itself, and can be sliced, compiled and explained |
//! | `value_text.rs` | a value's text | it reads back from what it prints; casts agree; keys order as values do |
//! | `arguments.rs` | a call's arguments | what decodes encodes to the same bytes, and all readers agree |
//! | `log_entry.rs` | a log entry | what decodes encodes to the same entry |
//! | `log_segment.rs` | files of a log | verifying and opening agree; what was opened reads back |
//! | `checkpoint_file.rs` | the file of a checkpoint | inspecting and loading agree; damage is refused with its place |
//! | `protocol.rs` | messages of PostgreSQL's protocol, binary values | what reads as a value is written so that it reads back |
//! | `agreement.rs` | seeds of programs and calls | compiled code and phases agree with the interpreter |
//! | `sql_text.rs` | SQL, or edits of statements | errors have their SQLSTATE; the database goes on serving |
//! | `sql_agreement.rs` | choices of a generator of SQL | programs and queries give the same answers |
//!
//! `sql_differential/mod.rs` is no function of bytes: it makes statements of its own, and compares what PostgreSQL and
//! Fabius say to them (`cargo xtask fuzz sql-differential`, `tests/sql_differential.rs`).
//!
//! It is not responsible for engines: `crates/testing/src/differential/mod.rs` compares those.

mod agreement;
mod arguments;
mod checkpoint_file;
mod input;
mod log_entry;
mod log_segment;
mod program_text;
mod protocol;
mod sql_agreement;
pub mod sql_differential;
mod sql_generator;
mod sql_rig;
mod sql_text;
mod value_text;

/// A function of untrusted bytes.
pub struct Target {
    /// The target's name: of the module, and of the binary.
    pub name: &'static str,
    /// Panics if anything does not hold.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "program_text", run: program_text::run, seeds: program_text::seeds },
    Target { name: "value_text", run: value_text::run, seeds: value_text::seeds },
    Target { name: "arguments", run: arguments::run, seeds: arguments::seeds },
    Target { name: "log_entry", run: log_entry::run, seeds: log_entry::seeds },
    Target { name: "log_segment", run: log_segment::run, seeds: log_segment::seeds },
    Target { name: "checkpoint_file", run: checkpoint_file::run, seeds: checkpoint_file::seeds },
    Target { name: "protocol", run: protocol::run, seeds: protocol::seeds },
    Target { name: "agreement", run: agreement::run, seeds: agreement::seeds },
    Target { name: "sql_text", run: sql_text::run, seeds: sql_text::seeds },
    Target { name: "sql_agreement", run: sql_agreement::run, seeds: sql_agreement::seeds },
];

/// The target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Runs one target on one input.
///
/// # Panics
/// If there is no such target, or something does not hold.
pub fn run(name: &str, bytes: &[u8]) {
    let target = target(name).unwrap_or_else(|| panic!("there is no target {name}"));
    (target.run)(bytes);
}
