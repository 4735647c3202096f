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
//! | [`query_plan`] | a query that is ready to run |
//! | [`row_source`] | where rows come from: scans of tables at one moment |
//! | `bind` | a syntax tree to a logical plan |
//! | [`functions`] | functions and operators |
//! | `leaf` | tables and catalog relations as DataFusion reads them |
//! | `comparisons` | comparisons of a column and a value, in one form |
//! | `amended_rule` | a rule of DataFusion's with something done before it or behind it |
//! | `dependencies` | groups and elements of arrays claim only what their columns determine |
//! | `rows_of_nothing` | conditions stay above aggregates that give a row for no rows |
//! | `key_range` | filters as ranges of a key |
//! | `lookup_join` | joins of few rows with a table, which look up what those ask for |
//! | `noted_keys` | which keys one side of such a join asks for |
//! | `apply` | correlated subqueries that no join can replace |
//! | `apply_operator` | those subqueries, run for each row |
//! | `claims` | what operators claim of their rows |
//! | `extent` | how large a plan is, and may be |
//! | `heeding` | DataFusion's rules, which end when nobody waits for them |
//! | `membership` | `IN` of a subquery as a value, by one join |
//! | `machine` | DataFusion as it is used here |
//! | `spelled_columns` | `*` as the columns that it stands for now |
//! | `pace` | long work gives way, and can be ended |
//! | `patience` | whom operators work for |
//! | `outer_reference` | what a subquery asks of the rows around it |
//! | `operator_memory` | what sorts, joins and groups may hold |
//! | [`arrow_column`] | values as Arrow columns and back |
//! | [`failure`] | errors of DataFusion as PostgreSQL's |

mod amended_rule;
mod apply;
mod apply_operator;
pub mod arrow_column;
mod bind;
mod claims;
mod comparisons;
mod dependencies;
mod extent;
pub mod failure;
pub mod functions;
mod heeding;
mod key_range;
mod leaf;
mod lookup_join;
mod machine;
mod membership;
mod noted_keys;
mod operator_memory;
mod outer_reference;
mod pace;
mod patience;
pub mod query_plan;
pub mod row_source;
mod rows_of_nothing;
mod spelled_columns;

pub use bind::WRITTEN;
pub use heeding::plan_as_written;
pub use query_plan::{QueryPlan, plan};
pub use row_source::{RowSource, TableScan};
pub use spelled_columns::with_spelled_columns;
