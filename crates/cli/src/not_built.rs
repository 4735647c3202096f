//! Commands that a program without the feature `serve` does not have.

use clap::Args;
use fabius::{Error, Result, SqlState};
use std::ffi::OsString;
use std::process::ExitCode;

/// `fabius serve ...` and `fabius cluster ...`
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// Says how to come by what is missing.
pub fn refuse() -> Result<ExitCode> {
    Err(Error::new(SqlState::NOT_SUPPORTED, "this program was built without SQL and its server")
        .with_hint("build it with them: `cargo build --release`, without --no-default-features"))
}
