//! The grammar of function bodies in PL/pgSQL.
//!
//! | module | concept |
//! |---|---|
//! | [`parser`] | blocks and control structures |
//! | `statement`, `raise` | the other statements |
//! | [`piece`] | SQL inside a body |
//! | [`tree`] | what has been read |
//! | [`token`], [`cursor`] | the words of a text |
//! | [`condition`] | names of SQLSTATE codes |

pub mod condition;
pub mod cursor;
pub mod parser;
pub mod piece;
mod raise;
mod statement;
pub mod token;
pub mod tree;
