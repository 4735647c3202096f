//! Syntax to IR.
