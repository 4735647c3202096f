//! Names of columns: the relations that an expression can see.

use super::binder::Binder;
use super::bound::Bound;
use super::held::held;
use super::stop::{Bind, Place, Stop};
use super::tree;
use crate::analysis;
use crate::catalog::{ROW_NUMBER, Table};
use crate::sql_type::SqlType;
use fabius_program::syntax::tree::Expression;
use fabius_value::DataType;
use std::sync::Arc;

/// The relations of one `FROM`, or what stands for them in a `CHECK`, `RETURNING` or `ON CONFLICT`.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) relations: Vec<Relation>,
}

/// A table, or anything else with columns.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// The relation's alias, or the table's name.
    pub(super) name: String,
    /// The table, if it is one.
    pub(super) table: Option<Arc<Table>>,
    /// The relation's columns' names and types.
    pub(super) columns: Vec<(String, SqlType)>,
    /// Columns that are found only with the relation's name: the second ones of a `USING`.
    pub(super) hidden: Vec<usize>,
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
    Virtual(Box<super::virtual_relation::Virtual>),
    /// All null: the other side of an outer join has no partner.
    Nulls,
}

impl Relation {
    /// A table whose rows have not been reached yet.
    pub(super) fn table(table: &Arc<Table>, alias: Option<String>) -> Relation {
        Relation {
            name: alias.unwrap_or_else(|| table.name.name.clone()),
            columns: table
                .columns
                .iter()
                .map(|column| (column.name.clone(), column.sql_type.clone()))
                .collect(),
            table: Some(table.clone()),
            hidden: Vec::new(),
            row: Row::Absent,
        }
    }

    /// The place of a column.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| column == name)
    }

    /// The value of a column.
    pub(super) fn value(&self, at: usize) -> Bind<Bound> {
        let Some((name, sql_type)) = self.columns.get(at) else {
            return super::stop::beyond("a column that is not there");
        };
        let bound = match &self.row {
            Row::Absent | Row::Virtual(_) => {
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

impl Binder<'_> {
    /// The innermost scope.
    pub(super) fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// Binds something with other relations in scope, outer ones behind them.
    pub(super) fn with_scope<T>(
        &mut self,
        relations: Vec<Relation>,
        act: impl FnOnce(&mut Self) -> Bind<T>,
    ) -> Bind<T> {
        self.scopes.push(Scope { relations });
        let done = act(self);
        self.scopes.pop();
        done
    }

    /// Binds something that sees these relations only: a `CHECK` or a `DEFAULT`.
    pub(super) fn with_only<T>(
        &mut self,
        relations: Vec<Relation>,
        act: impl FnOnce(&mut Self) -> Bind<T>,
    ) -> Bind<T> {
        let outer = std::mem::replace(&mut self.scopes, vec![Scope { relations }]);
        let variables = self.variables.take();
        let done = act(self);
        self.variables = variables;
        self.scopes = outer;
        done
    }

    /// What a name of one or more parts means; `None` if nothing has it.
    pub(super) fn lookup(&self, path: &[String], place: Place) -> Bind<Option<Found>> {
        for (out, scope) in self.scopes.iter().rev().enumerate() {
            let mut found = None;
            for (at, relation) in scope.relations.iter().enumerate() {
                let column = match path {
                    [column] => relation.column(column).filter(|column| !relation.hidden.contains(column)),
                    [name, column] if relation.name == *name => relation.column(column),
                    [schema, name, column] => match &relation.table {
                        Some(table) if table.name.schema == *schema && relation.name == *name => {
                            relation.column(column)
                        }
                        _ => None,
                    },
                    _ => None,
                };
                let Some(column) = column else { continue };
                if found.is_some() {
                    let message = format!("column reference \"{}\" is ambiguous", path.join("."));
                    return self.fail(b"42702", message, place);
                }
                found = Some(Found::Column { out, relation: at, column });
            }
            if let Some(found) = found {
                if self.variables.is_some_and(|variables| variables.variable(path).is_some()) {
                    let message = format!("column reference \"{}\" is ambiguous", path.join("."));
                    let detail = "It could refer to either a PL/pgSQL variable or a table column.";
                    return Err(self.error(super::stop::wrong(b"42702", message).with_detail(detail), place));
                }
                return Ok(Some(found));
            }
        }
        Ok(self.variables.and_then(|variables| variables.variable(path)).map(Found::Variable))
    }

    /// A name as an expression.
    pub(super) fn column_or_variable(&self, path: &[String]) -> Bind<Option<Bound>> {
        Ok(match self.lookup(path, Place::none())? {
            Some(Found::Variable(bound)) => Some(bound),
            Some(Found::Column { out, relation, column }) => {
                let scope = &self.scopes[self.scopes.len() - 1 - out];
                Some(scope.relations[relation].value(column)?)
            }
            None => None,
        })
    }

    /// That there is no such column.
    pub(super) fn unknown_column(&self, path: &[String]) -> Stop {
        let relations = || self.scopes.iter().flat_map(|scope| &scope.relations);
        if let [name] = path {
            if relations().any(|relation| relation.name == *name) {
                return Stop::Beyond("a whole row as a value".into());
            }
            if matches!(name.as_str(), "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid") {
                return Stop::Beyond(format!("system column {name}"));
            }
        }
        let is_of = |relation: &Relation, schema: &str| {
            relation.table.as_ref().is_some_and(|table| table.name.schema == schema)
        };
        let sees = |schema: Option<&str>, name: &str| {
            let mut named = relations().filter(|relation| relation.name == name);
            named.any(|relation| schema.is_none_or(|schema| is_of(relation, schema)))
        };
        analysis::no_column(path, sees).into()
    }
}
