//! Scripts of SQL: what each statement gives, as text.
//!
//! A script is statements with what they are expected to give. `>` begins a statement (further lines are indented);
//! rows, a tag or an error follow; `connection NAME` goes on as another client. `UPDATE_SCRIPTS=1` writes what came.

use fabius::{Database, Options};
use fabius_sql::connection::{Connection, Response, SqlDatabase};
use fabius_sql_meaning::text_format;
use futures::StreamExt;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

async fn answer(connection: &mut Connection, text: &str) -> String {
    let mut out = String::new();
    let outcome: fabius::Result<()> = async {
        for bytes in connection.split(text).await? {
            let prepared = connection.prepare(&text[bytes], &[]).await?;
            match connection.execute(&prepared, &[]).await? {
                Response::Empty => out.push_str("nothing\n"),
                Response::Done { tag } => drop(writeln!(out, "{tag}")),
                Response::Rows { columns, mut rows, tag } => {
                    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                    let _ = writeln!(out, "{}", names.join(" | "));
                    let mut count = 0;
                    while let Some(row) = rows.next().await {
                        let style = connection.text_style();
                        let row = row?;
                        let cells = row.iter().zip(&columns).map(|(value, column)| {
                            text_format::text(value, &column.sql_type, &style).unwrap_or_else(|| "~".into())
                        });
                        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join(" | "));
                        count += 1;
                    }
                    let _ = writeln!(out, "{tag} {count}");
                }
                Response::CopyIn(_) => {
                    out.push_str("copy in\n");
                }
                Response::CopyOut { mut data, .. } => {
                    while let Some(part) = data.next().await {
                        out.push_str(&String::from_utf8_lossy(&part?));
                    }
                    out.push_str("COPY\n");
                }
            }
        }
        Ok(())
    }
    .await;
    if let Err(error) = outcome {
        let _ = writeln!(out, "{} {}", error.state(), error.message());
    }
    for notice in connection.take_notices() {
        let _ = writeln!(out, "{}: {}", notice.severity, notice.error.message());
    }
    out
}

async fn run(script: &str) -> String {
    let database = Arc::new(Database::in_memory(Options::default()));
    let database = SqlDatabase::open(database).await.unwrap();
    let mut connections = BTreeMap::new();
    let mut current = "main".to_string();
    let mut out = String::new();
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("connection ") {
            current = name.to_string();
            let _ = writeln!(out, "{line}");
        } else if let Some(first) = line.strip_prefix("> ") {
            let mut text = first.to_string();
            let _ = writeln!(out, "{line}");
            while let Some(more) = lines.next_if(|line| line.starts_with("  ")) {
                let _ = write!(text, "\n{more}");
                let _ = writeln!(out, "{more}");
            }
            let connection = connections
                .entry(current.clone())
                .or_insert_with(|| Connection::new(database.clone(), "fabius"));
            out.push_str(&answer(connection, &text).await);
        } else if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_give_what_they_say() {
    let mut different = Vec::new();
    let mut paths: Vec<_> =
        std::fs::read_dir("tests/scripts").unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let expected = std::fs::read_to_string(&path).unwrap();
        let got = run(&expected).await;
        if got != expected {
            if std::env::var_os("UPDATE_SCRIPTS").is_some() {
                std::fs::write(&path, &got).unwrap();
            } else {
                different.push(path);
            }
        }
    }
    assert!(different.is_empty(), "other answers than expected, see UPDATE_SCRIPTS: {different:?}");
}
