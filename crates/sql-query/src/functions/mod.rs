//! Functions and operators as DataFusion calls them.
//!
//! | module | concept |
//! |---|---|
//! | [`row_function`] | a function of the [table](fabius_sql_meaning::functions) |
//! | [`cast`] | conversions between types |
//! | [`in_order`] | behind aggregates: values in an order of their own |
//! | [`interval`] | aggregates of intervals |
//! | [`moving`] | aggregates over frames that move |
//! | [`operator`] | behind operators: arithmetic that fails instead of wrapping around |
//! | [`window`] | over windows, with arguments that are computed |

pub mod cast;
pub mod in_order;
pub mod interval;
pub mod moving;
pub mod operator;
pub mod row_function;
pub mod window;

pub use row_function::RowFunction;
