//! Drivers in their own languages, each with a program that uses it as its users do.

use crate::support::{Server, clients, has, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

fn program(name: &str) -> PathBuf {
    Path::new("tests/server/clients").join(name)
}

fn python() -> PathBuf {
    clients().join("python/bin/python")
}

/// Goal: psycopg 3 works: types in both formats, transactions, copies, pipelines, errors by class.
#[test]
fn psycopg() {
    if has("psycopg", &clients().join("python.psycopg")) {
        let server = Server::start(&[]);
        let command = &mut Command::new(python());
        succeed(command.arg(program("psycopg_client.py")).arg(server.conninfo()));
    }
}

/// Goal: asyncpg works: its own prepared statements, cursors, binary copies, resets.
#[test]
fn asyncpg() {
    if has("asyncpg", &clients().join("python.asyncpg")) {
        let server = Server::start(&[]);
        let command = &mut Command::new(python());
        succeed(command.arg(program("asyncpg_client.py")).args(["127.0.0.1", &server.port()]));
    }
}

/// Goal: node-postgres works: named statements, several statements at once, a pool of clients on few rows.
#[test]
fn node_postgres() {
    let modules = clients().join("node/node_modules");
    if has("node-postgres", &modules.join("pg")) {
        let server = Server::start(&[]);
        let mut command = Command::new("node");
        command
            .env("NODE_PATH", &modules)
            .arg(program("node_postgres.js"))
            .args(["127.0.0.1", &server.port()]);
        succeed(&mut command);
    }
}

/// Goal: JDBC works: batches, named statements after five uses, rows by portions, metadata.
#[test]
fn jdbc() {
    let jar = clients().join("postgresql.jar");
    if has("JDBC", &jar) {
        let server = Server::start(&[]);
        let classes = tempfile::tempdir().expect("a directory");
        succeed(Command::new("javac").arg("-d").arg(classes.path()).arg(program("Jdbc.java")));
        let path = format!("{}:{}", classes.path().display(), jar.display());
        let url = format!("jdbc:postgresql://127.0.0.1:{}/fabius?user=tester", server.port());
        succeed(Command::new("java").args(["-cp", &path, "Jdbc", &url]));
    }
}
