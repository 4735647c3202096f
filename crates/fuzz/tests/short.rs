//! Every fuzz target on its seeds, on random changes of them, and on random bytes.
//!
//! A failure names the target and the number of the input: `FABIUS_TARGET=arguments FABIUS_SEED=123
//! cargo test -p fabius-fuzz` runs that one alone; `FABIUS_SEEDS=1000000` runs that many of each, and with
//! `FABIUS_KEEP_GOING=1` all of them, whatever is found on the way.

use fabius_env::Random;
use fabius_fuzz::{TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// One seed of the target with a few random changes; now and then random bytes instead.
fn input(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if random.chance(1, 10) {
        let mut bytes = vec![0; random.index(200)];
        random.fill(&mut bytes);
        return bytes;
    }
    let mut bytes = seeds[random.index(seeds.len())].clone();
    for _ in 0..random.index(6) {
        change(&mut bytes, seeds, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.index(bytes.len() + 1);
    let end = (at + random.index(9)).min(bytes.len());
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, random.next_u64() as u8),
        2 => drop(bytes.drain(at..end)),
        3 => bytes[at..end].iter_mut().for_each(|byte| *byte = random.next_u64() as u8),
        4 => bytes[at..end].iter_mut().for_each(|byte| *byte ^= 1 << random.below(8)),
        5 => {
            const EDGES: [u8; 5] = [0, 1, 0x7f, 0x80, 0xff];
            bytes[at..end].iter_mut().for_each(|byte| *byte = EDGES[random.index(EDGES.len())]);
        }
        _ => {
            let other = &seeds[random.index(seeds.len())];
            let from = random.index(other.len() + 1);
            let to = (from + random.index(60)).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
    }
}

fn run(name: &str, inputs: u64) {
    let target: &Target = fabius_fuzz::target(name).expect("a target");
    if std::env::var("FABIUS_TARGET").is_ok_and(|wanted| wanted != name) {
        return;
    }
    let seeds = (target.seeds)();
    let keeps_going = std::env::var_os("FABIUS_KEEP_GOING").is_some();
    let mut failures = 0;
    let mut try_one = |what: &str, bytes: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))) {
            eprintln!("target {name}, {what}: {bytes:02x?}\n{}", String::from_utf8_lossy(bytes));
            failures += 1;
            if !keeps_going {
                std::panic::resume_unwind(panic);
            }
        }
    };
    let one = number("FABIUS_SEED");
    if one.is_none() {
        seeds.iter().enumerate().for_each(|(at, seed)| try_one(&format!("seed {at}"), seed));
    }
    let all = match one {
        Some(seed) => seed..seed + 1,
        None => 0..number("FABIUS_SEEDS").unwrap_or(inputs),
    };
    for seed in all {
        try_one(&format!("input {seed}"), &input(&seeds, &mut Random::seeded(seed)));
    }
    assert_eq!(failures, 0, "inputs of {name} fail");
}

/// Goal: no test of a target is missing.
#[test]
fn every_target_is_run() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let run = [
        "program_text",
        "value_text",
        "arguments",
        "log_entry",
        "log_segment",
        "checkpoint_file",
        "protocol",
        "agreement",
        "sql_text",
        "sql_agreement",
    ];
    assert_eq!(names, run);
}

#[test]
fn protocol() {
    run("protocol", 5_000);
}

#[test]
fn program_text() {
    run("program_text", 1_000);
}

#[test]
fn value_text() {
    run("value_text", 20_000);
}

#[test]
fn arguments() {
    run("arguments", 10_000);
}

#[test]
fn log_entry() {
    run("log_entry", 20_000);
}

#[test]
fn log_segment() {
    run("log_segment", 3_000);
}

#[test]
fn agreement() {
    run("agreement", 300);
}

#[test]
fn checkpoint_file() {
    run("checkpoint_file", 3_000);
}

#[test]
fn sql_text() {
    run("sql_text", 100);
}

#[test]
fn sql_agreement() {
    run("sql_agreement", 60);
}
