//! Writes of rows that were computed before: by a query, or sent by a client.
//!
//! The rows come as one list argument, [`Argument::Rows`] with one field per column; the program has all of the
//! table's constraints. Whoever calls fills the argument in: the lists that are given here are empty.

use super::binder::Binder;
use super::bound::Bound;
use super::insert::{Target, Touched};
use super::key_change::Moving;
use super::row_body::Gathered;
use super::scope::{Relation, Row, key_types};
use super::stop::Bind;
use super::tree;
use super::write::Afterwards;
use crate::lowered::{Argument, Fate, Lowered};
use fabius_program::syntax::Source;
use fabius_program::syntax::tree::{ColumnDefinition, Expression};
use fabius_sql_meaning::analysis::{InsertTargets, Sight};
use fabius_sql_meaning::catalog::ObjectName;
use fabius_sql_meaning::catalog::{Catalog, Table};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::without_modifiers;
use fabius_sql_syntax::part;
use fabius_value::DataType;
use sqlparser::ast;
use std::sync::Arc;

/// What rows are written, and what is wanted back.
pub struct RowsOf<'s> {
    /// The table.
    pub table: &'s Arc<Table>,
    /// The name that `RETURNING` and `ON CONFLICT` know it by, if not its own.
    pub alias: Option<String>,
    /// The columns that are given, as places in the table.
    pub columns: &'s [usize],
    /// The types of the values that are given for them; the same number.
    pub types: &'s [SqlType],
    /// `ON CONFLICT`, of an INSERT.
    pub conflict: Option<&'s ast::OnInsert>,
    /// The types of values that are given besides, which `ON CONFLICT` knows as columns of [`FOUND`].
    pub found: &'s [SqlType],
    /// `RETURNING`.
    pub returning: Option<&'s [ast::SelectItem]>,
}

/// The relation of what was found for a row besides its values; no table is named so. Its columns are named
/// [`given_column`](fabius_sql_syntax::part::given_column).
pub const FOUND: &str = " found";

/// Inserts rows: the argument's rows have a value for each of `columns`, then one for each column of [`counted`]: the
/// next value of its sequence; then what was found besides.
///
/// `RETURNING` and `ON CONFLICT` may have the statement's parameters, which are the program's other arguments.
///
/// # Errors
/// What is wrong with `RETURNING` or `ON CONFLICT`, or values that the columns do not take; or what no program can do.
pub fn lower_insert_rows(
    rows: &RowsOf<'_>,
    source: &Arc<Source>,
    catalog: &Catalog,
    types: &mut ParameterTypes,
) -> Bind<Lowered> {
    let mut with_nulls = types.clone();
    with_nulls.allow_nulls();
    let binder = Binder::new(catalog, &source.text, &mut with_nulls);
    if let Ok(lowered) = binder.insert_rows(rows, source) {
        types.learn(with_nulls);
        return Ok(lowered);
    }
    // Not everything can be done with a parameter that may be null: arrays of programs are not.
    let mut with_some = types.clone();
    with_nulls.scalars().for_each(|index| with_some.allow_null(index));
    let binder = Binder::new(catalog, &source.text, &mut with_some);
    if let Ok(lowered) = binder.insert_rows(rows, source) {
        types.learn(with_some);
        return Ok(lowered);
    }
    let binder = Binder::new(catalog, &source.text, types);
    binder.insert_rows(rows, source)
}

/// Updates rows: the argument's rows have the primary key's values (or the hidden row number), then a value for each
/// of `columns`. No row is there twice.
///
/// # Errors
/// As [`lower_insert_rows`].
pub fn lower_update_rows(rows: &RowsOf<'_>, source: &Arc<Source>, catalog: &Catalog) -> Bind<Lowered> {
    let mut types = ParameterTypes::default();
    let binder = Binder::new(catalog, &source.text, &mut types);
    binder.update_rows_given(rows, source)
}

/// Deletes rows: the argument's rows have the primary key's values (or the hidden row number).
///
/// # Errors
/// As [`lower_insert_rows`].
pub fn lower_delete_rows(rows: &RowsOf<'_>, source: &Arc<Source>, catalog: &Catalog) -> Bind<Lowered> {
    let mut types = ParameterTypes::default();
    let binder = Binder::new(catalog, &source.text, &mut types);
    binder.delete_rows_given(rows, source)
}

/// The columns besides `columns` that take a sequence's next value for each row, with the sequences; at the end, with
/// no column, the hidden row number of a table without a primary key.
pub fn counted(table: &Table, columns: &[usize]) -> Vec<(Option<usize>, ObjectName)> {
    let missing = (0..table.columns.len()).filter(|at| !columns.contains(at));
    let mut counted: Vec<_> = missing
        .filter_map(|at| super::insert::sequence_of(&table.columns[at]).map(|sequence| (Some(at), sequence)))
        .collect();
    if table.primary_key.is_none() {
        counted.push((None, super::insert::row_numbers(table)));
    }
    counted
}

fn field(each: &str, at: usize) -> Expression {
    tree::column(tree::loop_row(each), &format!("c{}", at + 1), false)
}

impl<'a> Binder<'a> {
    /// A list parameter for the rows: fields in the types that programs hold them as.
    fn given_list(&mut self, fields: impl Iterator<Item = (DataType, bool)>) -> String {
        let fields: Vec<ColumnDefinition> = fields
            .enumerate()
            .map(|(at, (data_type, nullable))| tree::field(&format!("c{}", at + 1), data_type, nullable))
            .collect();
        self.add_list(tree::records(fields), Argument::Rows(Vec::new()))
    }

    /// A given value for a column.
    fn given_value(&mut self, rows: &RowsOf<'_>, at: usize, value: Expression) -> Bind<Bound> {
        let definition = rows.table.columns[rows.columns[at]].clone();
        let sql_type = without_modifiers(&rows.types[at]);
        let value = Bound::held_as(value, sql_type, true, given_type(&rows.types[at]));
        self.stored(value, &definition.name, &definition.sql_type)
    }

    fn insert_rows(mut self, rows: &RowsOf<'_>, source: &Arc<Source>) -> Bind<Lowered> {
        self.writes.insert(rows.table.name.clone());
        let counted = counted(rows.table, rows.columns);
        let held = |sql_type: &SqlType| (given_type(sql_type), true);
        let numbers = counted.iter().map(|_| (DataType::BigInt, false));
        let fields = rows.types.iter().map(held).chain(numbers).chain(rows.found.iter().map(held));
        let list = self.given_list(fields);
        let touched = match rows.conflict {
            Some(ast::OnInsert::OnConflict(conflict)) => self.touched_rows(rows.table, conflict)?,
            _ => None,
        };
        let written = touched.clone();
        self.finish_rows(
            rows,
            "INSERT",
            source,
            |binder, after| {
                binder.second_pass(&list, |binder, each| {
                    let mut values = Vec::new();
                    for at in 0..rows.columns.len() {
                        values.push(binder.given_value(rows, at, field(each, at))?);
                    }
                    let mut columns = rows.columns.to_vec();
                    for (at, (column, _)) in counted.iter().enumerate() {
                        let Some(column) = column else { continue };
                        columns.push(*column);
                        let definition = &rows.table.columns[*column];
                        let number =
                            Bound::computed(field(each, rows.columns.len() + at), SqlType::BigInt, false);
                        values.push(binder.stored(number, &definition.name, &definition.sql_type)?);
                    }
                    let numbered = columns.len();
                    let mut target = Target {
                        table: rows.table.clone(),
                        alias: rows.alias.clone(),
                        columns: InsertTargets::named(columns),
                        conflict: rows.conflict,
                        found: found(rows, counted.len(), each),
                        touched,
                        after,
                    };
                    binder.in_list = Some((each.to_string(), numbered));
                    let inserted = binder.insert_row(&mut target, values);
                    binder.in_list = None;
                    inserted
                })
            },
            written,
        )
    }

    fn update_rows_given(mut self, rows: &RowsOf<'_>, source: &Arc<Source>) -> Bind<Lowered> {
        self.writes.insert(rows.table.name.clone());
        let keys = key_types(rows.table);
        let width = keys.len();
        let key_names = Relation::key_columns(rows.table);
        let moves = rows.columns.iter().any(|at| key_names.contains(&rows.table.columns[*at].name));
        let types = keys.into_iter().map(|data_type| (data_type, false));
        let list =
            self.given_list(types.chain(rows.types.iter().map(|sql_type| (given_type(sql_type), true))));
        let key = |each: &str| -> Vec<Expression> { (0..width).map(|at| field(each, at)).collect() };
        let assignments = |binder: &mut Binder<'a>, each: &str| {
            let values = rows.columns.iter().enumerate();
            values
                .map(|(at, column)| Ok((*column, binder.given_value(rows, at, field(each, width + at))?)))
                .collect()
        };
        let (table, alias) = (rows.table, rows.alias.clone());
        if moves {
            let moving =
                Moving { table, list: &list, alias, key: &key, assignments: &assignments, along: None };
            return self.finish_rows(
                rows,
                "UPDATE",
                source,
                |binder, mut after| binder.move_rows(&moving, &mut after),
                None,
            );
        }
        self.finish_rows(
            rows,
            "UPDATE",
            source,
            |binder, mut after| {
                binder.second_pass(&list, |binder, each| {
                    let relation = Binder::keyed(table, alias, key(each));
                    let assignments = assignments(binder, each)?;
                    let (block, ()) = binder.nested(|binder| {
                        binder.with_scope(vec![relation.clone()], |binder| {
                            binder.change_row(table, &relation, assignments, None)?;
                            binder.afterwards(&mut after)
                        })
                    })?;
                    let row = tree::keyed_row(&table.storage, key(each));
                    binder.emit(tree::when(tree::exists(row), block, None));
                    Ok(())
                })
            },
            None,
        )
    }

    fn delete_rows_given(mut self, rows: &RowsOf<'_>, source: &Arc<Source>) -> Bind<Lowered> {
        self.writes.insert(rows.table.name.clone());
        let keys = key_types(rows.table);
        let width = keys.len();
        let list = self.given_list(keys.into_iter().map(|data_type| (data_type, false)));
        self.finish_rows(
            rows,
            "DELETE",
            source,
            |binder, mut after| {
                binder.second_pass(&list, |binder, each| {
                    let key: Vec<Expression> = (0..width).map(|at| field(each, at)).collect();
                    let relation = Binder::keyed(rows.table, rows.alias.clone(), key.clone());
                    let (block, ()) = binder.nested(|binder| {
                        binder.with_scope(vec![relation.clone()], |binder| {
                            binder.delete_row(rows.table, &relation, &mut after)
                        })
                    })?;
                    let row = tree::keyed_row(&rows.table.storage, key);
                    binder.emit(tree::when(tree::exists(row), block, None));
                    Ok(())
                })
            },
            None,
        )
    }

    /// What is done to the rows, with what counts and returns them.
    fn finish_rows(
        mut self,
        rows: &RowsOf<'_>,
        tag: &'static str,
        source: &Arc<Source>,
        act: impl FnOnce(&mut Binder<'a>, Afterwards<'_, '_, 'a>) -> Bind<()>,
        touched: Option<Touched>,
    ) -> Bind<Lowered> {
        let returned = self.name("returned");
        let mut gathered = Gathered::default();
        let of = if tag == "DELETE" { Fate::Gone } else { Fate::New };
        let (block, ()) = self.nested(|binder| {
            binder.await_own(rows.table, of)?;
            let all = |binder: &mut Binder<'a>| {
                let mut body = |binder: &mut Binder<'a>, columns: &[OutputColumn], values: Vec<Bound>| {
                    gathered.add(binder, &returned, columns, values)
                };
                act(binder, Afterwards { count: Some("count"), items: rows.returning, body: &mut body })
            };
            binder.with_followed(|binder| match tag {
                "DELETE" => binder.with_circle(rows.table, all),
                _ => all(binder),
            })?;
            binder.check_own(rows.table)?;
            if let Some(touched) = touched {
                binder.refuse_twice(&touched);
            }
            Ok(())
        })?;
        self.finish_write(block, rows.returning.is_some().then_some((returned, gathered)), tag, source)
    }
}

/// What was found for a row, behind its values and so many numbers, as `ON CONFLICT` sees it.
fn found(rows: &RowsOf<'_>, numbers: usize, each: &str) -> Option<Relation> {
    let values = rows.found.iter().enumerate().map(|(at, sql_type)| {
        let value = field(each, rows.columns.len() + numbers + at);
        Bound::held_as(value, without_modifiers(sql_type), true, given_type(sql_type))
    });
    let columns = rows.found.iter().enumerate();
    (!rows.found.is_empty()).then(|| Relation {
        name: FOUND.to_string(),
        table: None,
        columns: columns.map(|(at, sql_type)| (part::given_column(at), sql_type.clone())).collect(),
        schema: None,
        sight: Sight::OfRelation,
        row: Row::Values(values.collect()),
    })
}

/// How a program holds given values of a type.
fn given_type(sql_type: &SqlType) -> DataType {
    super::held::held(sql_type)
}
