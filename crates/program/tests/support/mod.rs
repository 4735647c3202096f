//! What the tests of this crate run programs over.

pub mod memory;
