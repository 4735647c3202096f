//! Functions of Python, as Python's own `ast` module reads them.
//!
//! A body in the language `python` is JSON: the function's text, for messages, and its syntax tree, each node of which
//! has its class and place. The client makes it (`crates/python/python/fabius/compilation`), so that grammar is that of
//! its interpreter; here the tree is taken for what programs can express, and everything else refused by name.
//!
//! | module | concept |
//! |---|---|
//! | [`tree`] | the parts of a function that are understood |
//! | [`reading`] | JSON to that tree |

pub mod reading;
pub mod tree;
