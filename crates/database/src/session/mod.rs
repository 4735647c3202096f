//! Interactive transactions (lazy state determination).
//!
//! A client that talks while its transaction is open sees results before anything has been ordered. It runs
//! its statements on a snapshot with its own writes laid over it; what they return is *observed*. Committing is
//! one call of the program that runs the statements again at their place in the order, and requires that each
//! returns what was observed:
//!
//! ```text
//! client            session                                             log
//! select qty  --->  run on snapshot + overlay; shown: 5
//! update ...  --->  run on snapshot + overlay; shown: 1 row
//! commit      --->  [select; require 5] [update; require 1 row]  --->   one call
//! ```
//!
//! So what counts as a conflict is what the client was shown, and nothing else. `qty = qty - 1 where qty >= 1`
//! shows one row, before and after others have bought too: a condition and an expression (IS-TRUE and WRITE
//! of the paper), not a read. A `select` shows a value, which has to stay.
//!
//! | module | concept |
//! |---|---|
//! | [`transaction`] | statements one by one, then commit or roll back |
//! | [`transaction_options`], [`hold`] | its settings; what becomes of what a statement has shown |
//! | [`reading`], `noted` | what is read without being kept, until the transaction writes |
//! | [`savepoint`] | going back to a point within a transaction |
//! | [`observation`] | what a statement has shown |
//! | [`compound`] | the program that a transaction is, kept for the next one alike |
//! | [`requirement`] | what a call requires besides |
//! | `recent` | programs that were made lately |
//! | [`conventional`] | transactions that see reads and writes only, to compare with |
//! | [`future`] | a transaction over values that are not known yet |
//! | `future_program` | the steps of such a transaction, and the programs that are made of them |
//! | [`row_range`] | rows that are not known yet |
//! | [`expression`] | arithmetic and comparison on such values |
//! | [`condition_lock`] | a statement with its answer, which others leave as it is |
//! | [`allowance`] | how many bytes a session may hold |
//! | [`admission`] | who may write past the locks of others |
//! | [`lock`], [`wait`] | someone who holds locks; someone who waits, and for whom |
//! | [`wound_wait`] | who gives way to whom |
//! | `request`, `queue` | asking for a lock; who waits for one, by age |
//! | [`conflict`] | why a transaction could not be committed |
//! | `row_name` | a row's name in messages |
//! | [`recall`] | whether a call can still be taken back |
//! | [`alarm`] | waking tasks at a time |
//! | [`block_on`](mod@block_on) | waiting for a future on a thread of one's own |
//! | `shared` | what the transactions of one database share |

pub mod admission;
pub mod alarm;
pub mod allowance;
pub mod block_on;
pub mod compound;
pub mod condition_lock;
pub mod conflict;
pub mod conventional;
pub mod expression;
pub mod future;
mod future_program;
pub mod hold;
pub mod lock;
mod noted;
pub mod observation;
mod queue;
pub mod reading;
pub mod recall;
pub(crate) mod recent;
mod request;
pub mod requirement;
mod row_name;
pub mod row_range;
pub mod savepoint;
pub(crate) mod shared;
pub mod transaction;
pub mod transaction_options;
pub mod wait;
pub mod wound_wait;
