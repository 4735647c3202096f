//! The target `log_segment` of `crates/fuzz`, for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fabius_fuzz::run("log_segment", bytes));
