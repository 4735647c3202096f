//! Names of columns: the relations that an expression can see.

use super::bound::Bound;
use super::held::held;
use super::list::List;
use super::query_facts::QueryFacts;
use super::stop::Bind;
use super::tree;
use fabius_program::syntax::tree::Expression;
use fabius_sql_meaning::analysis::{self, ScopeColumn, Sight};
use fabius_sql_meaning::catalog::{ROW_NUMBER, Table};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::DataType;
use sqlparser::ast;
use std::sync::Arc;

/// A column by its place.
#[derive(Clone, Debug)]
pub(super) struct ColumnAt {
    name: String,
    /// Which relation, and which of its columns.
    at: (usize, usize),
}

impl ColumnAt {
    /// Gives the column another name.
    pub(super) fn rename(&mut self, name: String) {
        self.name = name;
    }
}

impl analysis::Column for ColumnAt {
    type Value = (usize, usize);

    fn name(&self) -> &str {
        &self.name
    }

    fn value(&self) -> (usize, usize) {
        self.at
    }
}

/// What names mean: which relation of a scope, and which of its columns.
pub(super) type Names = analysis::Scope<ColumnAt>;

/// The relations of one `FROM`, or what stands for them in a `CHECK`, `RETURNING` or `ON CONFLICT`.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) relations: Vec<Relation>,
    pub(super) names: Names,
}

impl Scope {
    /// The scope of relations that nothing joins.
    pub(super) fn of(relations: Vec<Relation>) -> Scope {
        let names = relations.iter().enumerate().map(|(at, relation)| relation.names(at));
        let names = names.reduce(Names::join).unwrap_or_default();
        Scope { relations, names }
    }
}

/// A table, or anything else with columns.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// The relation's alias, or the table's name.
    pub(super) name: String,
    /// The table's schema, if it has no alias.
    pub(super) schema: Option<String>,
    /// The table, if it is one.
    pub(super) table: Option<Arc<Table>>,
    /// The relation's own columns' names and types.
    pub(super) columns: Vec<(String, SqlType)>,
    /// Where its columns are seen.
    pub(super) sight: Sight,
    /// Where the values are.
    pub(super) row: Row,
}

/// Where a relation's values are.
#[derive(Clone, Debug)]
pub(super) enum Row {
    /// Nowhere yet: the relation has not been reached.
    Absent,
    /// In the current row of a loop.
    Loop(String),
    /// In the row of a key; if `optional`, null where there is none.
    Key { key: Vec<Expression>, optional: bool },
    /// These.
    Values(Vec<Bound>),
    /// Computed, once they are reached.
    Virtual(Box<Virtual>),
    /// In the rows of a query, once they are reached.
    Derived(Arc<Derived>),
    /// All null: the other side of an outer join has no partner.
    Nulls,
}

/// Rows that are computed: one for each number of a range.
#[derive(Clone, Debug)]
pub(super) struct Virtual {
    pub(super) from: Expression,
    pub(super) to: Expression,
    /// Lists whose elements the rows have, one a column; else the numbers themselves are the rows.
    pub(super) lists: Vec<List>,
    /// Whether the number is a column too, the last.
    pub(super) is_numbered: bool,
}

/// A query in a `FROM`.
#[derive(Debug)]
pub(super) struct Derived {
    pub(super) query: ast::Query,
    /// What it can name of the `FROM` that it stands in.
    pub(super) names: Names,
    /// The relations that have to be reached before it, as bits.
    pub(super) behind: u64,
    pub(super) facts: QueryFacts,
    /// Whether queries around its `FROM` give the values that its rows are reached by.
    pub(super) is_asked_around: bool,
}

impl Derived {
    /// Whether it can be reached once these relations are.
    pub(super) fn is_ready(&self, reached: u64) -> bool {
        self.behind & !reached == 0
    }
}

impl Relation {
    /// A table whose rows have not been reached yet.
    pub(super) fn table(table: &Arc<Table>, alias: Option<String>) -> Relation {
        Relation {
            schema: alias.is_none().then(|| table.name.schema.clone()),
            name: alias.unwrap_or_else(|| table.name.name.clone()),
            columns: table
                .columns
                .iter()
                .map(|column| (column.name.clone(), column.sql_type.of_values()))
                .collect(),
            table: Some(table.clone()),
            sight: Sight::Everywhere,
            row: Row::Absent,
        }
    }

    /// What its columns are called, as the relation at a place of a scope.
    pub(super) fn names(&self, at: usize) -> Names {
        let columns = self.columns.iter().enumerate().map(|(column, (name, _))| {
            let named = ColumnAt { name: name.clone(), at: (at, column) };
            let sight = if self.is_unseen(column) { Sight::OfSystem } else { self.sight };
            ScopeColumn { schema: self.schema.clone(), ..ScopeColumn::new(&self.name, named, sight) }
        });
        Names { columns: columns.collect(), ..Names::default() }
    }

    /// Whether a column is one that no user sees.
    fn is_unseen(&self, at: usize) -> bool {
        self.table.as_ref().and_then(|table| table.columns.get(at)).is_some_and(|column| column.is_hidden)
    }

    /// The value of a column.
    pub(super) fn value(&self, at: usize) -> Bind<Bound> {
        let Some((name, sql_type)) = self.columns.get(at) else {
            return super::stop::beyond("a column that is not there");
        };
        let bound = match &self.row {
            Row::Absent | Row::Virtual(_) | Row::Derived(_) => {
                return super::stop::beyond(format!("column {name} before its row is reached"));
            }
            Row::Values(values) => {
                let Some(value) = values.get(at) else {
                    return super::stop::beyond("a value that is not there");
                };
                return Ok(value.clone());
            }
            Row::Nulls => Bound::constant(fabius_value::Value::Null, sql_type.clone(), held(sql_type)),
            Row::Loop(row) => self.stored(tree::column(tree::loop_row(row), name, false), at, false),
            Row::Key { key, optional } => {
                let storage = self.table.as_ref().map_or("", |table| table.storage.as_str());
                let row = tree::keyed_row(storage, key.clone());
                self.stored(tree::column(row, name, *optional), at, *optional)
            }
        };
        Ok(bound)
    }

    fn stored(&self, expression: Expression, at: usize, optional: bool) -> Bound {
        let (_, sql_type) = &self.columns[at];
        let column = self.table.as_ref().and_then(|table| table.columns.get(at));
        let nullable = optional || column.is_none_or(|column| column.nullable);
        let data_type = sql_type.storage().unwrap_or(DataType::TEXT);
        let oid = self.table.as_ref().map_or(0, |table| table.oid);
        let bound = Bound::held_as(expression, sql_type.clone(), nullable, data_type);
        Bound { origin: (oid, at as u16 + 1), ..bound }
    }

    /// The columns of the primary key, or the hidden row number.
    pub(super) fn key_columns(table: &Table) -> Vec<String> {
        match &table.primary_key {
            Some(key) => key.columns.clone(),
            None => vec![ROW_NUMBER.to_string()],
        }
    }

    /// The current row's key; it is in a loop or found by it.
    pub(super) fn key(&self) -> Bind<Vec<Expression>> {
        let Some(table) = &self.table else { return super::stop::beyond("the key of what is not a table") };
        match &self.row {
            // What finds a row may be null; the row's own columns are not.
            Row::Key { key, .. } => Ok(Relation::key_columns(table)
                .iter()
                .map(|column| tree::column(tree::keyed_row(&table.storage, key.clone()), column, false))
                .collect()),
            Row::Loop(row) => Ok(Relation::key_columns(table)
                .iter()
                .map(|column| tree::column(tree::loop_row(row), column, false))
                .collect()),
            _ => super::stop::beyond("the key of a row that is not reached"),
        }
    }
}

/// How a table holds its key's columns.
pub(super) fn key_types(table: &Table) -> Vec<DataType> {
    let of = |name: &String| {
        let column = table.columns.iter().find(|column| column.name == *name);
        column.and_then(|column| column.sql_type.storage()).unwrap_or(DataType::BigInt)
    };
    Relation::key_columns(table).iter().map(of).collect()
}

/// What a name turned out to be.
#[allow(clippy::large_enum_variant, reason = "it lives briefly")]
pub(super) enum Found {
    /// A column of a relation: how many scopes out, which relation, which column.
    Column { out: usize, relation: usize, column: usize },
    /// A variable of a procedure.
    Variable(Bound),
}
