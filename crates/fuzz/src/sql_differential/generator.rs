//! What random statements are made of: choices from a seed, and what is in scope.
//!
//! Every expression has a type and every name is in scope, so that most statements are accepted. A statement is as
//! large as its budget: each expression takes from it, and when it is used up only columns and values are left.

use super::literal::Literal;
use super::schema::{Column, Schema};
use super::tree::Node;
use super::value_type::ValueType;
use fabius_env::Random;

/// What rows come from: a table, a view, a common table expression.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<Column>,
    /// Columns that tell all rows apart, if there are some.
    pub key: Vec<String>,
    pub rows: usize,
}

/// An expression that is in scope: a column, or what a query is grouped by.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub node: Node,
    pub of: ValueType,
    /// Whether queries within see something else under this name.
    pub is_local: bool,
}

/// What one query sees of its `FROM`.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub leaves: Vec<Leaf>,
    /// Names of the tables in it.
    pub sources: Vec<String>,
    /// Expressions that tell all rows apart, as far as that matters; `None` if there are none.
    pub total: Option<Vec<String>>,
    /// Whether its rows are those of several sets of groups.
    pub has_sets: bool,
    /// In a query with groups, the scope of what is in aggregates.
    pub ungrouped: Option<Box<Scope>>,
    /// Rows of all tables in it, multiplied.
    pub rows: usize,
}

/// A column of a query's result.
#[derive(Clone, Debug)]
pub struct Output {
    pub name: String,
    pub of: ValueType,
}

/// How large a statement is.
const BUDGET: i32 = 36;

/// Names of a view have larger numbers.
const VIEW_NAMES: usize = 900;

/// Makes statements.
pub struct Generator<'s> {
    pub random: Random,
    pub schema: &'s Schema,
    /// Everything that can stand in `FROM`: tables, views, common table expressions in scope.
    pub relations: Vec<Relation>,
    pub scopes: Vec<Scope>,
    pub budget: i32,
    pub depth: usize,
    pub query_depth: usize,
    /// Whether no columns of queries around are chosen.
    pub is_own_only: bool,
    /// Whether values have to say their type, as nothing around them does.
    pub is_typed: bool,
    names: usize,
    groups: u32,
}

/// Groups of lists of tables have smaller numbers.
const GROUPS: u32 = 1000;

impl<'s> Generator<'s> {
    pub fn new(random: Random, schema: &'s Schema) -> Generator<'s> {
        let relation = |table: &super::schema::Table| Relation {
            name: table.name.clone(),
            columns: table.columns.clone(),
            key: table.key.iter().map(|at| table.columns[*at].name.clone()).collect(),
            rows: table.rows,
        };
        let relations = schema.tables.iter().map(relation).collect();
        let scopes = Vec::new();
        Generator {
            random,
            schema,
            relations,
            scopes,
            budget: BUDGET,
            depth: 0,
            query_depth: 0,
            is_own_only: false,
            is_typed: false,
            names: 0,
            groups: GROUPS,
        }
    }

    /// Begins a view, whose columns no other query has the names of.
    pub fn begin_view(&mut self) {
        self.begin();
        self.names = VIEW_NAMES;
    }

    /// Begins a statement: names are given anew.
    pub fn begin(&mut self) {
        self.scopes.clear();
        (self.budget, self.depth, self.query_depth, self.names) = (BUDGET, 0, 0, 0);
        // One in a few is small, so that what does not need much is seen alone.
        if self.chance(1, 3) {
            self.budget = 8;
        }
    }

    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.random.chance(numerator, denominator)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.random.index(bound)
    }

    pub fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.random.index(choices.len())].clone()
    }

    /// A name that this statement does not have.
    pub fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// A group of lists that lose elements together.
    pub fn group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    /// A type, more often one of those that most columns have.
    pub fn any_type(&mut self) -> ValueType {
        // Groups are counted, and shares of them taken, more often than the types of that come up.
        if self.scopes.last().is_some_and(|scope| scope.ungrouped.is_some()) && self.chance(1, 5) {
            return if self.chance(1, 5) { ValueType::Ints } else { ValueType::BigInt };
        }
        // What is in scope is worth more than what is not.
        if self.chance(2, 3)
            && let Some(scope) = self.scopes.last()
            && !scope.leaves.is_empty()
        {
            let at = self.random.index(scope.leaves.len());
            return self.scopes[self.scopes.len() - 1].leaves[at].of;
        }
        match self.chance(2, 3) {
            true => self.one_of(&ValueType::FREQUENT),
            false => self.one_of(&ValueType::ALL),
        }
    }

    /// A type for which something holds.
    pub fn type_with(&mut self, holds: impl Fn(ValueType) -> bool) -> ValueType {
        loop {
            let of = self.any_type();
            if holds(of) {
                return of;
            }
        }
    }

    /// A value.
    pub fn literal(&mut self, of: ValueType) -> Node {
        let null = self.chance(1, 8);
        let value = (!null).then(|| self.one_of(of.values()));
        let can_be_bare = of == ValueType::Text && value.is_some() && !self.is_typed;
        let literal = match can_be_bare && self.chance(1, 2) {
            true => Literal::bare(of, value),
            false => Literal::new(of, value),
        };
        Node::literal(of, literal)
    }

    /// A column that is in scope, or another expression that can stand for one.
    pub fn column(&mut self, of: ValueType) -> Option<Node> {
        let innermost = self.scopes.len().checked_sub(1)?;
        let outer = innermost > 0 && !self.is_own_only && self.chance(1, 4);
        let level = if outer { self.random.index(innermost) } else { innermost };
        let fitting: Vec<&Leaf> = self.scopes[level]
            .leaves
            .iter()
            .filter(|leaf| leaf.of == of && (level == innermost || !leaf.is_local))
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let at = self.random.index(fitting.len());
        Some(fitting[at].node.clone())
    }

    pub fn scope(&self) -> &Scope {
        self.scopes.last().expect("a query is being made")
    }

    /// The leaf that a column is.
    pub fn leaf_of(text: String, of: ValueType) -> Leaf {
        Leaf { node: Node::raw(of, text), of, is_local: false }
    }
}
