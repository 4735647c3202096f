//! PostgreSQL's clients, which tests of the server need: drivers of several languages, psql and pgbench.
//!
//! Drivers are kept outside of the repository, where the next clone finds them: `FABIUS_CLIENTS`, or
//! `~/.cache/fabius/clients`. What is there already is not fetched again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Versions, so that every machine tests with the same ones.
const PSYCOPG: &str = "psycopg[binary]==3.2.9";
const ASYNCPG: &str = "asyncpg==0.30.0";
const SQLALCHEMY: &str = "SQLAlchemy==2.0.43";
const PANDAS: &str = "pandas==2.3.3";
const FASTAPI: &str = "fastapi==0.165.0";
const HTTPX: &str = "httpx==0.28.1";
const PYTEST: &str = "pytest==9.2.0";
const NODE_POSTGRES: &str = "pg@8.16.0";
const JDBC: &str = "org.postgresql:postgresql:42.7.5";
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

/// Where they are kept.
pub fn folder() -> PathBuf {
    let usual = || {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        home.join(".cache/fabius/clients")
    };
    std::env::var_os("FABIUS_CLIENTS").map_or_else(usual, PathBuf::from)
}

/// Fetches what is not there; whether all are there now. Says which is not, and why.
pub fn fetch() -> bool {
    let folder = folder();
    if let Err(error) = std::fs::create_dir_all(&folder) {
        eprintln!("{} cannot be made: {error}; no driver can be tested", folder.display());
        return false;
    }
    let python = python_packages(&folder);
    let all = [
        ("psql and pgbench", programs()),
        ("psycopg, asyncpg, SQLAlchemy, pandas and FastAPI", python),
        ("node-postgres", node_postgres(&folder)),
        ("JDBC", jdbc(&folder)),
        ("pgx", pgx(&folder)),
    ];
    let missing: Vec<&str> = all.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        eprintln!("clients: all in {}", folder.display());
    } else {
        eprintln!(
            "clients: {} cannot be had (see above); tests with them are passed over",
            missing.join(", ")
        );
    }
    missing.is_empty()
}

fn programs() -> bool {
    let is_there = || ["psql", "pgbench"].iter().all(|name| succeeds(Command::new(name).arg("--version")));
    is_there()
        || (run(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends", "postgresql"]))
            && is_there())
}

fn python_packages(folder: &Path) -> bool {
    let home = folder.join("python");
    let python = home.join("bin/python");
    if !python.exists() && !run(Command::new("python3").args(["-m", "venv"]).arg(&home)) {
        return false;
    }
    // The tests look for these marks.
    let all = [
        ("psycopg", PSYCOPG),
        ("asyncpg", ASYNCPG),
        ("sqlalchemy", SQLALCHEMY),
        ("pandas", PANDAS),
        ("fastapi", FASTAPI),
        ("httpx", HTTPX),
        ("pytest", PYTEST),
    ];
    all.into_iter().fold(true, |all, (module, package)| {
        let mark = folder.join(format!("python.{module}"));
        let has = || succeeds(Command::new(&python).args(["-c", &format!("import {module}")]));
        let is_there =
            has() || (run(Command::new(&python).args(["-m", "pip", "install", "--quiet", package])) && has());
        let marked = is_there && std::fs::write(&mark, package).is_ok();
        if !marked {
            // A mark without its driver would make the test fail instead of passing it over.
            let _ = std::fs::remove_file(&mark);
        }
        all && marked
    })
}

fn node_postgres(folder: &Path) -> bool {
    let home = folder.join("node");
    let module = home.join("node_modules/pg");
    module.exists()
        || (std::fs::create_dir_all(&home).is_ok()
            && run(Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                .arg(&home)
                .arg(NODE_POSTGRES))
            && module.exists())
}

fn jdbc(folder: &Path) -> bool {
    let jar = folder.join("postgresql.jar");
    if !succeeds(Command::new("javac").arg("-version")) {
        eprintln!("there is no javac: install a JDK");
        return false;
    }
    let copy = || {
        let mut command = Command::new("mvn");
        command.args(["--quiet", "--batch-mode", MAVEN_COPY]).arg(format!("-Dartifact={JDBC}"));
        command.arg(format!("-DoutputDirectory={}", folder.display())).arg("-Dmdep.stripVersion=true");
        run(&mut command)
    };
    jar.exists() || (copy() && jar.exists())
}

/// A program of ours with pgx in it, which Go builds; its versions are in its go.mod.
fn pgx(folder: &Path) -> bool {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/server/clients/failover_pgx");
    if !succeeds(Command::new("go").arg("version")) {
        eprintln!("there is no go: install Go");
        return false;
    }
    run(Command::new("go")
        .args(["build", "-o"])
        .arg(folder.join("failover_pgx"))
        .arg(".")
        .current_dir(source))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Says what it runs, and runs it.
fn run(command: &mut Command) -> bool {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    eprintln!("== {} {}", command.get_program().to_string_lossy(), arguments.join(" "));
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("it does not start: {error}");
            false
        }
    }
}
