//! `fabius-fuzz seeds TARGET DIR` writes a target's first inputs; `fabius-fuzz run TARGET FILE ...` runs
//! it on inputs, with an ordinary build. `cargo xtask fuzz` uses it.

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "fabius-fuzz seeds TARGET DIR | fabius-fuzz run TARGET FILE ...";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, name, places @ ..] = arguments.as_slice() else { return refuse(USAGE) };
    let Some(target) = fabius_fuzz::target(name) else {
        let names: Vec<&str> = fabius_fuzz::TARGETS.iter().map(|target| target.name).collect();
        return refuse(&format!("there is no target {name}; there are {}", names.join(", ")));
    };
    let done = match (word.as_str(), places) {
        ("seeds", [folder]) => write_seeds(Path::new(folder), &(target.seeds)()),
        ("run", files) => files.iter().try_for_each(|file| {
            println!("{file}");
            std::fs::read(file).map(|bytes| (target.run)(&bytes))
        }),
        _ => return refuse(USAGE),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error.to_string()),
    }
}

fn write_seeds(folder: &Path, seeds: &[Vec<u8>]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    seeds
        .iter()
        .enumerate()
        .try_for_each(|(at, seed)| std::fs::write(folder.join(format!("seed-{at:03}")), seed))
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}
