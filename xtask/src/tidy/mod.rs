//! What the compiler does not check.
//!
//! | module | rule |
//! |---|---|
//! | [`module_doc`] | every Rust file begins by saying what it is |
//! | [`floor`] | crates use crates of lower floors only |
//! | [`named_path`] | documents name only files that exist |
//! | [`file_length`] | a file is one thing |
//! | [`function_length`] | a function is one thing |
//! | [`circle`] | files of a crate use each other one way |
//! | [`line_length`] | a line is read without turning the head |
//! | [`file_name`] | a file is named by what it answers for |
//! | [`marker`] | nothing is left for later in a comment or a macro |
//! | [`subject`] | documentation names its subject |
//! | [`safety`] | comments of unsafe code name what it stands on |
//! | [`compiler`] | rustfmt and clippy have nothing to say |
//! | [`exception`] | where a rule does not hold, and why |
//!
//! Each finding is one line: `file:line: what; what to do`.

mod circle;
mod compiler;
mod exception;
mod file_length;
mod file_name;
mod finding;
mod floor;
mod function_length;
mod line_length;
mod marker;
mod module_doc;
mod named_path;
mod safety;
mod subject;
mod tree;

use crate::cargo;
use finding::Finding;
use tree::Tree;

/// Which rules are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Those that compile nothing.
    Quick,
    /// All.
    Everything,
}

/// What it means that rustfmt or clippy is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A finding.
    Fails,
    /// A line that says so.
    IsSkipped,
}

/// Rules that need nothing but the files.
const CHECKS: &[fn(&Tree) -> Vec<Finding>] = &[
    module_doc::check,
    floor::check,
    named_path::check,
    file_length::check,
    line_length::check,
    function_length::check,
    circle::check,
    file_name::check,
    marker::check,
    safety::check,
    subject::check,
];

/// Checks rules and prints what is found; whether that was nothing.
pub fn run(extent: Extent, missing: Missing) -> bool {
    let tree = match Tree::read(&cargo::root()) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: the repository cannot be read: {error}");
            return false;
        }
    };
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    findings.extend(compiler::format(missing));
    if extent == Extent::Everything {
        findings.extend(compiler::lint(missing));
    }
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.len() {
        0 => println!("tidy: {} files, nothing to report", tree.files.len()),
        count => println!("tidy: {} files, {count} findings", tree.files.len()),
    }
    findings.is_empty()
}
