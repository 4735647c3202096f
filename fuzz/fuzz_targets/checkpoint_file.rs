//! The target `checkpoint_file` of `crates/fuzz`, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fabius_fuzz::run("checkpoint_file", bytes));
