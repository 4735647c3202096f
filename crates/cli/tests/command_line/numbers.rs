//! Numbers: what is none, or lies outside of its bounds, is refused with the flag and what it takes.

use crate::{refused, run};

/// Goal: one wording for every flag that takes a number; negative numbers are numbers.
#[test]
fn numbers_are_refused_with_their_bounds() {
    for (arguments, flag, value, bounds) in [
        (&["demo"][..], "seconds", "x", "a number from 2 to 3600"),
        (&["demo"], "seconds", "-1", "a number from 2 to 3600"),
        (&["demo"], "seconds", "nan", "a number from 2 to 3600"),
        (&["log", "dump", "d"], "from", "abc", "a whole number from 1 on"),
        (&["log", "dump", "d"], "from", "-1", "a whole number from 1 on"),
        (&["log", "dump", "d"], "limit", "0", "a whole number from 1 on"),
        (&["bench", "run", "hot"], "seconds", "-1", "a number from 0.01 to 86400"),
        (&["bench", "run", "hot"], "threads", "100000", "a whole number from 1 to 1024"),
        (&["bench", "compare", "hot"], "seconds", "soon", "a number from 0.01 to 86400"),
        (&["bench", "figure", "lazy-6"], "threads", "0", "a whole number from 1 to 1024"),
        (&["bench", "figure", "lsd-7"], "network-delay", "-2", "a whole number from 0 to 60000"),
        (&["bench", "run", "hot"], "reserved-memory", "much", "a size, such as 64MB"),
        (&["bench", "figure", "lazy-5"], "reserved-memory", "12XB", "a size, such as 64MB"),
        (&["bench", "peers"], "clients", "0", "a whole number from 1 to 10000"),
        (&["bench", "peers"], "rows", "1.5", "a whole number from 1 to 1000000000"),
    ] {
        let flagged = format!("--{flag}");
        let arguments = [arguments, &[&*flagged, value]].concat();
        refused(&arguments, 2, &format!("error: --{flag} cannot be \"{value}\"\n  hint: give {bounds}\n"));
    }
}

/// Goal: a list of engines that ends with a comma misses a name.
#[test]
fn a_missing_engine_is_told_as_missing() {
    let ended = run(&["bench", "run", "hot", "--engine", "lazy,"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.starts_with("error: the name of an engine is missing\n  hint: engines are lazy, "),
        "{}",
        ended.err
    );
}
