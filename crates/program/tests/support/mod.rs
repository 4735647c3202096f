//! What the tests of this crate run programs over.

#![allow(dead_code)] // each test uses a part of it

pub mod memory;
pub mod ways;
