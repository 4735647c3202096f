//! `fabius demo`, given up.

use crate::{fabius, run, text};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// Goal: on Ctrl-C the demo says at once what it still does, proves what was done, and claims nothing of what was not.
#[test]
fn an_interrupted_demo_says_what_was_not_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut demo = fabius(&["demo", "--seconds", "60", "--dir", text(directory.path())])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the demo starts");
    let mut lines = BufReader::new(demo.stdout.take().expect("its output")).lines();
    let mut out = String::new();
    while !out.contains("promised/s") {
        out += &lines.next().expect("it goes on").expect("text");
    }
    let status = Command::new("kill").args(["-INT", &demo.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "a signal");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    let mut err = String::new();
    demo.stderr.take().expect("its errors").read_to_string(&mut err).expect("text");
    assert!(demo.wait().expect("it ends").success(), "{err}");
    assert!(err.contains("Interrupted: no more calls are made."), "{err}");
    let about = |engine: &str| rest.iter().filter(|line| line.starts_with(engine)).collect::<Vec<_>>();
    assert_eq!(about("2pl"), ["2pl   not run: interrupted before its first call"], "{rest:?}");
    assert!(about("lazy").iter().any(|line| line.starts_with("lazy  yes: ")), "{rest:?}");
    assert!(rest.iter().any(|line| line.ends_with("nothing acknowledged is lost")), "{rest:?}");
}

/// Goal: a demo that nobody ends shows both engines side by side, proves both, and says where to go on.
#[test]
fn a_demo_goes_to_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let demo = run(&["demo", "--seconds", "2", "--dir", text(directory.path())]);
    assert_eq!((demo.code, demo.err.as_str()), (Some(0), ""));
    for part in ["eager 2PL", "\nlazy  yes: ", "\n2pl   yes: ", "\nWhere to go next:\n"] {
        assert!(demo.out.contains(part), "{part:?} is missing: {}", demo.out);
    }
    assert_eq!(demo.out.matches("nothing acknowledged is lost").count(), 2, "{}", demo.out);
}
