//! Binding: a query's names, types, operators and functions as PostgreSQL means them, as a logical plan.
//!
//! Every column of every relation has a name of its own in the plan (`t3.price`, `c17`), so that names that are
//! the same to SQL never meet. A [`Scope`] says what SQL calls them.
//!
//! | module | concept |
//! |---|---|
//! | [`aggregate`] | calls of aggregates, and of functions over windows |
//! | [`call`] | calls of functions |
//! | [`chain`] | long chains of `AND` and `OR` |
//! | [`coerce`] | types that have to become others |
//! | [`expression`] | expressions |
//! | [`from`], `from_function` | `FROM` and joins; functions in it |
//! | [`grouping`] | `GROUP BY` |
//! | [`input_order`] | the order of a subquery's rows in aggregates over them |
//! | [`lateral_row`] | `LATERAL` of one row that is computed of the row beside it |
//! | [`operator`] | operators |
//! | [`list`] | values in lists: `IN`, `ANY`, `ALL` |
//! | [`query`] | queries: `WITH`, set operations, `VALUES`, `ORDER BY`, `LIMIT` |
//! | [`period`] | periods that overlap |
//! | [`representative`] | values that are equal and look different |
//! | [`scope`] | names in scope |
//! | [`select`] | `SELECT` |
//! | [`subquery`] | queries within expressions |
//! | [`window`] | windows and their frames |

mod aggregate;
mod call;
mod chain;
mod coerce;
mod expression;
mod from;
mod from_function;
mod grouping;
mod input_order;
mod lateral_row;
mod list;
mod operator;
mod period;
mod plan_part;
mod query;
mod representative;
mod scope;
mod select;
mod subquery;
mod wildcard;
mod window;

pub(super) use fabius_sql_meaning::analysis::Sight;
pub(super) use operator::plain_binary;
pub(super) use scope::{Flavor, Output, Scope, ScopeColumn, Typed};
pub(super) use wildcard::Wildcard;

use datafusion::common::Column;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, LogicalPlan};
use fabius_sql_meaning::analysis::Sense;
use fabius_sql_meaning::catalog::{ObjectName, Oid, folded};
use fabius_sql_meaning::functions::Environment;
use fabius_sql_meaning::output::RowLock;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::HashSet;
use std::sync::Arc;

/// How deep queries may be nested in each other.
const DEPTH: usize = 64;

/// A query's plan and the columns that it gives.
#[derive(Clone)]
pub(super) struct Relation {
    pub(super) plan: LogicalPlan,
    pub(super) columns: Vec<Output>,
}

impl Relation {
    /// The columns, each that is a literal as what it is.
    fn given(&self) -> Vec<Typed> {
        let made = match &self.plan {
            LogicalPlan::Projection(projection) => projection.expr.as_slice(),
            _ => &[],
        };
        let given = self.columns.iter().map(|output| {
            let expr = made.iter().find_map(|expr| match expr {
                Expr::Alias(alias) if alias.name == output.column.name => Some(&*alias.expr),
                _ => None,
            });
            match expr {
                Some(literal @ Expr::Literal(..)) => Typed { expr: literal.clone(), ..output.typed() },
                _ => output.typed(),
            }
        });
        given.collect()
    }
}

/// One `SELECT` while it is bound.
#[derive(Default)]
struct Level {
    scope: Scope,
    /// What aggregates are not allowed in here: `WHERE`, `JOIN conditions`.
    clause: Option<&'static str>,
    /// Aggregates over this query's rows that were met so far, in it or in queries within it.
    aggregates: usize,
    /// Whether this is inside of an aggregate's arguments.
    in_aggregate: bool,
    windows: Vec<ast::NamedWindowDefinition>,
    /// Expressions with subqueries as they have been bound: one text is one expression, which `GROUP BY` asks for.
    subqueries: Vec<Asked>,
    /// The order that the first aggregate with one wants its values in.
    ordering: Option<Vec<Sort>>,
    /// Aggregates over this query's rows that queries within it ask for, and the columns that these see.
    aggregates_within: Vec<(Typed, Column)>,
}

/// An expression with a subquery as it has been bound.
struct Asked {
    expression: ast::Expr,
    /// What it is used for.
    sense: Sense,
    typed: Typed,
    /// Whether there are aggregates in it over the rows of the query that it stands in.
    has_aggregate: bool,
}

impl Level {
    /// Whether a column is what queries within this one see of an aggregate over its rows.
    fn has_aggregate_column(&self, column: &Column) -> bool {
        self.aggregates_within.iter().any(|(_, seen)| seen == column)
    }

    /// The type of a column that this query's rows have, or that queries within it see.
    fn type_of(&self, column: &Column) -> Option<&SqlType> {
        let own = self.scope.columns.iter().find(|own| own.column.column == *column);
        let within = || self.aggregates_within.iter().find(|(_, seen)| seen == column);
        own.map(|own| &own.column.sql_type).or_else(|| within().map(|(typed, _)| &typed.sql_type))
    }
}

/// A common table expression.
#[derive(Clone)]
struct Common {
    name: String,
    relation: Relation,
    /// Nodes of its plan, which stands wherever it is named.
    nodes: usize,
}

/// Binds one statement.
pub(super) struct Binder<'a> {
    pub(super) environment: Arc<Environment>,
    pub types: &'a mut ParameterTypes,
    /// Tables that are read.
    pub(super) reads: Vec<ObjectName>,
    /// Whether rows are locked.
    pub(super) locks_rows: bool,
    levels: Vec<Level>,
    commons: Vec<Common>,
    /// `FOR UPDATE` and its like in the query that is bound: all tables, or those of these names.
    locking: Vec<(Option<Vec<String>>, RowLock)>,
    /// Whose privileges count within a view: those of the view's owner.
    reader: Option<Oid>,
    /// Whether the `SELECT` that comes is a side of a set operation, where bare literals have no type yet.
    is_operand: bool,
    /// Whether the `SELECT` that comes is a relation to what is around it, which may have conditions on its columns.
    is_relation: bool,
    /// Whether the `FROM` that is bound has to tell which rows outer joins have not found.
    has_whole_rows: bool,
    /// Names of columns that relations of queries within the outermost one have.
    names_within: HashSet<String>,
    next: usize,
    depth: usize,
    /// Conditions in chains that DataFusion sees, so far.
    conditions: usize,
    /// Nodes of common table expressions, wherever the query that is bound has named them so far.
    named_nodes: usize,
    /// What each `*` of the text stands for, if that is asked.
    wildcards: Option<Vec<Wildcard>>,
}

impl<'a> Binder<'a> {
    pub(super) fn new(environment: Arc<Environment>, types: &'a mut ParameterTypes) -> Binder<'a> {
        Binder {
            environment,
            types,
            reads: Vec::new(),
            locks_rows: false,
            reader: None,
            levels: Vec::new(),
            commons: Vec::new(),
            locking: Vec::new(),
            is_operand: false,
            is_relation: false,
            has_whole_rows: false,
            names_within: HashSet::new(),
            next: 0,
            depth: 0,
            conditions: 0,
            named_nodes: 0,
            wildcards: None,
        }
    }

    /// A name that nothing in the plan has yet.
    fn fresh(&mut self, prefix: &str) -> String {
        self.next += 1;
        // DataFusion reads some names as SQL would: only these stay as they are.
        let plain = prefix.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '?'));
        format!("{}{}", plain.collect::<String>().to_ascii_lowercase(), self.next)
    }

    /// A name for a column that nothing in the plan has yet. It begins with a mark: rules that look a column up by
    /// its name alone would else find one that a user has called so.
    fn fresh_name(&mut self) -> String {
        self.fresh("?c")
    }

    /// A column that nothing in the plan has yet.
    fn fresh_column(&mut self) -> Column {
        Column::new_unqualified(self.fresh_name())
    }

    /// Runs with queries one deeper.
    fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH {
            return Err(Error::new(SqlState(*b"54001"), "stack depth limit exceeded")
                .with_detail(format!("queries are nested more than {DEPTH} deep")));
        }
        self.depth += 1;
        let result = bind(self);
        self.depth -= 1;
        result
    }
}

/// The rows that a statement has written, where `RETURNING` is asked for as a query about them. No table is named so,
/// and subqueries find the tables.
pub const WRITTEN: &str = " written";

/// Whether a `SELECT` is `RETURNING`.
fn reads_written(select: &ast::Select) -> bool {
    let relation = select.from.first().map(|from| &from.relation);
    matches!(relation, Some(ast::TableFactor::Table { name, .. }) if parts_of(name) == [WRITTEN])
}

/// The parts of a name.
pub(super) fn parts_of(name: &ast::ObjectName) -> Vec<String> {
    name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect()
}
