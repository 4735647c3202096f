//! The front door for development.
fn main() {}
