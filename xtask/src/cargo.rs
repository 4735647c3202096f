//! Running cargo, in the repository's root, with what it prints left as it is.

use std::path::PathBuf;
use std::process::Command;

/// The repository's root: the folder above this crate's.
pub fn root() -> PathBuf {
    // `cargo run` says where the crate is now; the place it was compiled at may be another clone.
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let xtask = xtask.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    xtask.parent().expect("xtask is a folder of the repository").to_path_buf()
}

/// The cargo that runs this program, about to run `arguments`.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Says what it runs, runs it, and says whether it succeeded.
pub fn run(arguments: &[&str], environment: &[(&str, &str)]) -> bool {
    let settings: String = environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    eprintln!("\n== {settings}cargo {}", arguments.join(" "));
    let status = command(arguments).envs(environment.iter().copied()).status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo does not start: {error}; install Rust from https://rustup.rs");
            false
        }
    }
}
