//! Ctrl-C twice.

use crate::{fabius, text};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Goal: a second Ctrl-C ends what does not heed the first one.
#[test]
fn a_second_interrupt_ends_it_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let is_empty = || std::fs::read_dir(&directory).expect("the directory").next().is_none();
    // Loading so many rows takes longer than anyone waits.
    let mut run = fabius(&["bench", "run", "rmw10", "--set", "records=1000000000"])
        .args(["--dir", text(directory.path())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let pause = || std::thread::sleep(Duration::from_millis(50));
    while is_empty() {
        pause();
    }
    let ended = loop {
        if let Some(ended) = run.try_wait().expect("its state") {
            break ended;
        }
        let sent = Command::new("kill").args(["-INT", &run.id().to_string()]).stderr(Stdio::null()).status();
        sent.expect("a signal");
        pause();
    };
    assert_eq!(ended.code(), Some(130));
}
