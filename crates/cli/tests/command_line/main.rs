//! The program `fabius` as one sees it who types: what it prints, what it refuses in which words, and its exit code.

mod demo;
mod explain;
mod interrupt;
mod log;
mod numbers;
mod serve;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What became of a command.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

fn fabius(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabius"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command that ends by itself.
fn run(arguments: &[&str]) -> Ended {
    let Output { status, stdout, stderr } = fabius(arguments).output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// Runs a command that has to fail with this code, print nothing but its error, and say this.
fn refused(arguments: &[&str], code: i32, error: &str) {
    let ended = run(arguments);
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (Some(code), "", error),
        "fabius {}",
        arguments.join(" ")
    );
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}
