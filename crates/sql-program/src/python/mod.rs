//! Functions of Python, lowered onto what functions in PL/pgSQL are (Calvin, section 4.1).
//!
//! ```text
//! JSON of Python's ast --read--> tree of Python --here--> blocks of PL/pgSQL --compile--> a part of a program
//! ```
//!
//! | module | concept |
//! |---|---|
//! | `body` | statements: variables and their classes, branches, loops, what is assigned where |
//! | `attempt` | `try`: exceptions that do not end the transaction |
//! | `row` | rows by their keys, and what is required |
//! | `expression` | names, columns, conditions |
//! | `call` | functions of Python |
//! | `text` | methods of texts |
//! | `decimal` | decimals, formats |
//! | `moment` | moments, days, and times between them |
//! | `called` | other programs, statements of SQL |
//! | `received` | values that come several at once |
//! | `list` | lists |
//! | `message` | exceptions, and what callers are told |
//! | `hint` | what to write instead of what is refused |
//! | `presence` | what is not `None` where control has come to |
//! | `class` | classes of Python, and types of SQL |
//! | `value` | operators in Python's meaning: floor division, `None`, truthiness |
//! | `statement` | statements of SQL for rows |
//! | `lowering`, `wanted` | what is known of a function meanwhile; which columns it asks for |
//!
//! What a body means is what it means in Python. Where SQL means something else (integer division, comparisons with
//! null), what Python means is written out; where that cannot be, the part is refused with its place and what to write
//! instead. Constraints, generated columns and types are those of the statements that come of it.

mod attempt;
mod body;
mod call;
mod called;
mod class;
mod decimal;
mod expression;
mod hint;
mod list;
mod lowering;
mod message;
mod moment;
mod presence;
mod received;
mod row;
mod statement;
mod text;
mod value;
mod wanted;

pub use body::lower;
