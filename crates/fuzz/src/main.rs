//! `fabius-fuzz seeds TARGET DIR` writes a target's first inputs; `fabius-fuzz run TARGET FILE ...` runs
//! it on inputs, with an ordinary build. `cargo xtask fuzz` uses it.

use fabius_fuzz::sql_differential::{self, Settings};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "fabius-fuzz seeds TARGET DIR | fabius-fuzz run TARGET FILE ... | fabius-fuzz sql-differential \
                     [--seed N] [--cases N] [--statements N] [--jobs N] [--alone] [--out DIR]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(sql_differential::SERVE) => {
            return match sql_differential::serve() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => refuse(&format!("{error:?}")),
            };
        }
        Some("sql-differential") => {
            return match settings(&arguments[1..]) {
                Ok(settings) => compare(&settings),
                Err(why) => refuse(&why),
            };
        }
        _ => {}
    }
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

/// What `sql-differential` is told.
fn settings(arguments: &[String]) -> Result<Settings, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut settings = Settings {
        seed: 1,
        cases: None,
        statements: None,
        jobs: 2,
        with_postgres: true,
        folder: "target/sql-differential".into(),
        program,
    };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        if name == "--alone" {
            settings.with_postgres = false;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} needs a number, not {value}"));
        match name.as_str() {
            "--seed" => settings.seed = number()?,
            "--cases" => settings.cases = Some(number()?),
            "--statements" => settings.statements = Some(number()? as usize),
            "--jobs" => settings.jobs = number()? as usize,
            "--out" => settings.folder = value.into(),
            _ => return Err(format!("there is no {name}; {USAGE}")),
        }
    }
    if settings.cases.is_none() && settings.statements.is_none() {
        settings.statements = Some(5_000);
    }
    Ok(settings)
}

/// Compares Fabius with PostgreSQL; fails if they differ.
fn compare(settings: &Settings) -> ExitCode {
    match sql_differential::run(settings) {
        Ok(summary) => {
            println!("{}", summary.text);
            if summary.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
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
