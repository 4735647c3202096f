//! What operators claim of the rows that they give: their order, constants, equal columns, how many there are.
//!
//! A sort is left out where rows are claimed to be in its order already, so that a claim that does not hold gives
//! wrong rows under `LIMIT`, and wrong sums over windows. Some operators of DataFusion claim more than they keep:
//!
//! | operator | claims | which does not hold |
//! |---|---|---|
//! | inner join | the order of the probed side, then that of the other | where the probed side has equal keys |
//! | outer join | constants of the side that may be missing | in rows where it is missing |
//! | groups by `ROLLUP`, `CUBE` | the order of the input | groups of one set follow those of another |
//! | `max(...) OVER` | ascending values | nulls that come first |
//! | union | orders of its inputs with constants | their rows put together |
//! | `nextval`, `random` of constants | one value | each row has its own |
//!
//! [`Modest`] stands over each of these and claims nothing but what its input has, if it gives the rows of that one
//! by one. In builds with assertions, [`check`] looks at every row that passes and refuses a plan that claims what is
//! not so.

pub(super) mod check;
mod modest;

pub(super) use modest::{Modest, ModestClaims};
