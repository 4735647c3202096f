//! Queries that are not programs: bound here as PostgreSQL means them, run by DataFusion over scans of tables.
//!
//! ```text
//! syntax tree --bind--> logical plan --optimize--> plan --> scans of a RowSource, by key range where one fits
//!               |
//!               names, types, operators and functions are PostgreSQL's: DataFusion's own SQL front end is not used
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`row_source`] | where rows come from: scans of tables at one moment |
//! | [`session_facts`] | what functions ask about the session |
//! | [`query_plan`] | a query that is ready to run |

pub mod query_plan;
pub mod row_source;
pub mod session_facts;

pub use query_plan::{QueryPlan, plan};
pub use row_source::{RowSource, TableScan};
pub use session_facts::SessionFacts;
