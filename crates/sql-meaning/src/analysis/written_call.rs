//! Calls as they are written, taken apart.

use crate::catalog::folded;
use crate::functions::{Body, FUNCTIONS};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArguments};

/// A call as it is written.
#[derive(Clone, Copy)]
pub struct WrittenCall<'c> {
    /// All of it.
    pub whole: &'c ast::Function,
    /// What stands between its brackets.
    pub arguments: &'c [FunctionArg],
    /// `DISTINCT`
    pub is_distinct: bool,
    /// `ORDER BY` behind the arguments.
    pub order_by: &'c [ast::OrderByExpr],
    /// `WITHIN GROUP (ORDER BY ...)`
    pub within_group: &'c [ast::OrderByExpr],
    /// `FILTER (WHERE ...)`
    pub filter: Option<&'c Expr>,
    /// `OVER ...`
    pub over: Option<&'c ast::WindowType>,
}

impl<'c> WrittenCall<'c> {
    /// Takes a call apart.
    ///
    /// # Errors
    /// `0A000` for clauses that no function has here.
    pub fn of(whole: &'c ast::Function) -> Result<WrittenCall<'c>> {
        let unsupported = |what: String| {
            Error::new(SqlState::NOT_SUPPORTED, format!("{what} of {} are not supported", whole.name))
        };
        if !matches!(whole.parameters, FunctionArguments::None) {
            return Err(unsupported("parameters".into()));
        }
        if whole.null_treatment.is_some() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "IGNORE NULLS and RESPECT NULLS are not known")
                .with_hint("leave nulls out by FILTER or by a condition"));
        }
        let mut call = WrittenCall {
            whole,
            arguments: &[],
            is_distinct: false,
            order_by: &[],
            within_group: &whole.within_group,
            filter: whole.filter.as_deref(),
            over: whole.over.as_ref(),
        };
        if let FunctionArguments::List(list) = &whole.args {
            call.arguments = &list.args;
            call.is_distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
            for clause in &list.clauses {
                match clause {
                    ast::FunctionArgumentClause::OrderBy(keys) => call.order_by = keys,
                    other => return Err(unsupported(format!("clauses such as {other}"))),
                }
            }
        }
        Ok(call)
    }

    /// The parts of the function's name.
    pub fn path(&self) -> Vec<String> {
        self.whole.name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect()
    }

    /// A subquery that stands for the arguments: `ARRAY (SELECT ...)`.
    pub fn query(&self) -> Option<&'c ast::Query> {
        match &self.whole.args {
            FunctionArguments::Subquery(query) => Some(query),
            _ => None,
        }
    }

    /// What is called, unless it is of a schema of its own.
    pub fn called(&self) -> Option<Called> {
        match self.path().as_slice() {
            [name] => Some(Called::of(name)),
            [schema, name] if schema == "pg_catalog" => Some(Called::of(name)),
            _ => None,
        }
    }

    /// A clause that it has, and only functions of many rows have: what it is, and of which functions.
    pub fn clause_of_rows(&self) -> Option<(&'static str, &'static str)> {
        Some(match () {
            () if !self.within_group.is_empty() => ("WITHIN GROUP", "an ordered-set aggregate function"),
            () if self.is_distinct => ("DISTINCT", "an aggregate function"),
            () if !self.order_by.is_empty() => ("ORDER BY", "an aggregate function"),
            () if self.filter.is_some() => ("FILTER", "an aggregate function"),
            () if self.over.is_some() => ("OVER", "a window function nor an aggregate function"),
            () => return None,
        })
    }

    /// Whether `*` stands for its arguments.
    pub fn is_of_whole_rows(&self) -> bool {
        matches!(self.arguments, [FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)])
    }

    /// Whether it is about many rows: those of a group, or of a window.
    pub fn is_of_rows(&self) -> bool {
        self.over.is_some() || matches!(self.called(), Some(Called::Aggregate | Called::OverWindow))
    }
}

/// A kind of function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// A value of the rows of a group.
    Aggregate,
    /// A value of a row among those of its window.
    OverWindow,
    /// Rows of values.
    Set,
    /// A value of values.
    Scalar,
}

impl Called {
    /// What a function of PostgreSQL's is, by its name.
    pub fn of(name: &str) -> Called {
        let known = FUNCTIONS.get(name).and_then(|overloads| overloads.first());
        match known.map(|definition| definition.body) {
            Some(Body::Aggregate(_)) => Called::Aggregate,
            Some(Body::OverWindow(_)) => Called::OverWindow,
            _ if name == "grouping" => Called::Aggregate,
            _ if SETS.contains(&name) => Called::Set,
            _ => Called::Scalar,
        }
    }
}

const SETS: [&str; 15] = [
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_array_elements_text",
    "json_object_keys",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_object_keys",
    "pg_listening_channels",
    "pg_partition_ancestors",
    "pg_partition_tree",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "unnest",
];
