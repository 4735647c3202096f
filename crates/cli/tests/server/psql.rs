//! psql, as people use it.

use crate::support::{Server, has, program, succeed};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

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

/// Goal: what psql asks to complete a word is answered; `\\timing` says how long a statement took.
#[test]
fn words_are_completed() {
    // Words are completed on terminals only.
    if !cfg!(target_os = "linux") || !has("psql", &program("psql")) || !has("script", &program("script")) {
        return;
    }
    let server = Server::start(&[]);
    succeed(&mut psql(
        &server,
        &["-c", "CREATE TABLE temperatures (id integer PRIMARY KEY, degrees integer)"],
    ));
    let mut terminal = Command::new("script")
        .args(["-qec", &format!("psql -X -d '{}'", server.conninfo()), "/dev/null"])
        .env("PAGER", "cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a terminal");
    let mut keys = terminal.stdin.take().expect("a keyboard");
    let mut screen = terminal.stdout.take().expect("a screen");
    let (sender, shown) = mpsc::channel();
    let watch = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = screen.read(&mut bytes) {
            let _ = sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
        }
    });
    let mut seen = String::new();
    let mut answers = |typed: &str, wanted: &str| {
        keys.write_all(typed.as_bytes()).expect("psql reads");
        while !seen.contains(wanted) {
            let more = shown.recv_timeout(Duration::from_secs(30));
            seen += &more.unwrap_or_else(|_| panic!("no {wanted:?} in {seen:?}"));
        }
        seen.clear();
    };
    answers("", "=# ");
    answers("\\timing\n", "Timing is on.");
    answers("ALTER TABLE temp\t", "temperatures ");
    answers("ALTER COLUMN deg\t", "degrees ");
    answers("SET NOT NULL;\n", "Time: ");
    answers("\\q\n", "");
    terminal.wait().expect("it ends");
    watch.join().expect("what it showed");
    let described =
        succeed(Command::new("psql").args(["-X", "-d", &server.conninfo(), "-c", "\\d temperatures"]));
    assert_eq!(described.matches("not null").count(), 2, "{described}");
}
