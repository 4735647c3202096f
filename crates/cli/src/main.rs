//! The `fabius` program.
fn main() {}
