//! Ctrl-C, once and twice, and an end of output: nothing is left behind.

use crate::{fabius, text};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A run that has begun to make its database in this directory.
fn begun(arguments: &[&str], directory: &TempDir) -> Child {
    let run = fabius(arguments)
        .args(["--dir", text(directory.path())])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    while is_empty(directory) {
        pause();
    }
    run
}

fn is_empty(directory: &TempDir) -> bool {
    std::fs::read_dir(directory).expect("the directory").next().is_none()
}

fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

fn signal(run: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &run.id().to_string()]).stderr(Stdio::null()).status();
    sent.expect("a signal");
}

/// Goal: who does not want the rows any more need not wait for them.
#[test]
fn loading_is_given_up() {
    // Loading so many rows takes longer than anyone waits.
    for name in ["-INT", "-TERM"] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut run = begun(&["bench", "run", "rmw10", "--set", "records=1000000000"], &directory);
        signal(&run, name);
        let mut error = String::new();
        run.stderr.take().expect("its errors").read_to_string(&mut error).expect("text");
        assert_eq!(run.wait().expect("it ends").code(), Some(1), "{error}");
        assert!(error.ends_with("error: interrupted while rows were loaded\n"), "{error}");
        assert!(is_empty(&directory));
    }
}

/// Goal: a second Ctrl-C ends what the first one lets finish, and deletes its database too.
#[test]
fn a_second_interrupt_ends_it_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (load, call) = ("open_account(1..1000, null, 100)", "transfer(1..1000, 1..1000, 1)");
    let program = "../bench/programs/bank.fab";
    // The check runs all the calls once more, one at a time.
    let mut run =
        begun(&["bench", "run", program, "--load", load, "--call", call, "--seconds", "600"], &directory);
    let log_bytes = || {
        let databases = std::fs::read_dir(&directory).expect("the directory").flatten();
        let files = databases.filter_map(|database| std::fs::read_dir(database.path().join("log")).ok());
        files.flatten().flatten().filter_map(|file| Some(file.metadata().ok()?.len())).sum::<u64>()
    };
    // Far more than loading leaves.
    while log_bytes() < 10 << 20 {
        pause();
    }
    let ended = loop {
        if let Some(ended) = run.try_wait().expect("its state") {
            break ended;
        }
        signal(&run, "-INT");
        pause();
    };
    assert_eq!(ended.code(), Some(130));
    assert!(is_empty(&directory));
}

/// Goal: a demo whose reader goes away ends quietly and leaves no database.
#[test]
fn a_demo_without_a_reader_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut demo = fabius(&["demo", "--seconds", "20", "--dir", text(directory.path())])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the demo starts");
    let mut lines = BufReader::new(demo.stdout.take().expect("its output")).lines();
    while !lines.next().expect("it goes on").expect("text").contains("promised/s") {}
    drop(lines);
    assert!(demo.wait().expect("it ends").success());
    assert!(is_empty(&directory));
}
