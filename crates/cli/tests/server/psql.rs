//! psql, as people use it.

use crate::support::{Server, has, program, succeed};
use std::process::Command;

fn psql(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new("psql");
    command.args(["-X", "-v", "ON_ERROR_STOP=1", "-A", "-t", "-d", &server.conninfo()]).args(arguments);
    command
}

/// Goal: statements, several of them, errors, `\d` and its family, `\copy`.
#[test]
fn psql_works() {
    if !has("psql", &program("psql")) {
        return;
    }
    let server = Server::start(&[]);
    let run = |text: &str| succeed(&mut psql(&server, &["-c", text]));
    assert_eq!(run("SELECT 1 + 1"), "2\n");
    run("CREATE TABLE items (id integer PRIMARY KEY, name text NOT NULL, price numeric(10, 2) DEFAULT 0)");
    assert_eq!(run("INSERT INTO items VALUES (1, 'one', 1.5), (2, 'two', 2.5)"), "INSERT 0 2\n");
    assert_eq!(run("SELECT name, price FROM items ORDER BY id"), "one|1.50\ntwo|2.50\n");
    assert_eq!(
        run("UPDATE items SET price = 3 WHERE id = 1; SELECT price FROM items WHERE id = 1"),
        "UPDATE 1\n3.00\n"
    );
    // One of several fails: none has happened.
    let failed = psql(&server, &["-c", "DELETE FROM items; SELECT 1 / 0"]).output().expect("psql runs");
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("division by zero"), "{failed:?}");
    assert_eq!(run("SELECT count(*) FROM items"), "2\n");

    // Without -t: what stands below the table is wanted too.
    let described = succeed(Command::new("psql").args(["-X", "-d", &server.conninfo(), "-c", "\\d items"]));
    assert!(described.contains("| not null |"), "{described}");
    assert!(described.contains("\"items_pkey\" PRIMARY KEY"), "{described}");
    assert!(run("\\dt").contains("public|items|table"), "a table in the list");
    run("\\df");
    run("\\l");

    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("items.csv").display().to_string();
    assert_eq!(run(&format!("\\copy items TO '{file}' WITH (FORMAT csv, HEADER)")), "COPY 2\n");
    run("CREATE TABLE copies (id integer PRIMARY KEY, name text, price numeric(10, 2))");
    assert_eq!(run(&format!("\\copy copies FROM '{file}' WITH (FORMAT csv, HEADER)")), "COPY 2\n");
    assert_eq!(run("SELECT sum(price) FROM copies"), "5.50\n");
}
