//! The `fabius` program: see the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(fabius_cli::run(std::env::args_os()))
}
