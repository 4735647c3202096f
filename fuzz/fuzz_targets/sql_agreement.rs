//! The target `sql_agreement` of `crates/fuzz`, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fabius_fuzz::run("sql_agreement", bytes));
