//! INSERT, with RETURNING.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::constant::Constant;
use super::constraint::row_in_words;
use super::held::{held, unified};
use super::row_body::RowBody;
use super::scope::{Relation, Row};
use super::stop::{Bind, Place, beyond};
use super::tree;
use super::untyped::is_default;
use super::untyped::type_items;
use super::write::Afterwards;
use crate::lowered::{Argument, Fate};
use fabius_program::syntax::tree::Expression;
use fabius_sql_meaning::analysis::{self, InsertTargets};
use fabius_sql_meaning::catalog::ObjectName;
use fabius_sql_meaning::catalog::{Column, ROW_NUMBER, Table, folded};
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_meaning::type_rules::Context;
use fabius_sql_meaning::type_rules::without_modifiers;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr, SetExpr};
use std::sync::Arc;

/// More rows of `VALUES` than this are a list parameter, so that the program is the same for any number.
const UNROLLED: usize = 3;

/// A row of `VALUES` as arguments, with how programs hold them: data type and whether null.
type Cells = Vec<(Argument, DataType, bool)>;

impl<'a> Binder<'a> {
    pub(super) fn insert(
        &mut self,
        insert: &ast::Insert,
        count: Option<&str>,
        returning: &mut RowBody<'_, 'a>,
    ) -> Bind<bool> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return beyond("an INSERT of this form");
        };
        if insert.or.is_some()
            || insert.ignore
            || insert.replace_into
            || insert.partitioned.is_some()
            || !insert.after_columns.is_empty()
            || !insert.assignments.is_empty()
            || insert.insert_alias.is_some()
            || insert.output.is_some()
        {
            return beyond("an INSERT of this form");
        }
        let mut table = self.target(name, &analysis::needs_of_insert(insert))?;
        if insert.overwrite {
            // `OVERRIDING SYSTEM VALUE`, as `parse` spells it.
            let columns = Arc::make_mut(&mut table).columns.iter_mut();
            columns.for_each(|column| column.identity = None);
        }
        let alias = insert.table_alias.as_ref().map(|alias| folded(&alias.alias));
        if insert.columns.iter().any(|column| column.0.len() > 1) {
            return beyond("a field of a column");
        }
        let columns = InsertTargets::of(&table, &insert.columns)
            .map_err(|(error, name)| self.error(error, name.map_or(Place::none(), Place::of_ident)))?;
        let after = Afterwards { count, items: insert.returning.as_deref(), body: returning };
        let conflict = insert.on.as_ref();
        let touched = match conflict {
            Some(ast::OnInsert::OnConflict(conflict)) if has_several_rows(insert) => {
                self.touched_rows(&table, conflict)?
            }
            _ => None,
        };
        let mut target = Target { table, alias, columns, conflict, found: None, touched, after };
        if has_several_rows(insert) {
            self.await_own(&target.table, Fate::New)?;
        }
        self.insert_source(insert, &mut target)?;
        let table = target.table.clone();
        self.check_own(&table)?;
        if let Some(touched) = &target.touched {
            self.refuse_twice(touched);
        }
        Ok(!has_several_rows(insert))
    }

    fn insert_source(&mut self, insert: &ast::Insert, target: &mut Target<'_, '_, 'a>) -> Bind<()> {
        let Some(source) = &insert.source else {
            target.columns.places.clear();
            return self.insert_row(target, Vec::new());
        };
        match &*source.body {
            SetExpr::Values(values)
                if source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none() =>
            {
                self.insert_values(target, &values.rows)
            }
            _ => self.insert_query(target, source),
        }
    }

    fn check_width(&self, target: &mut Target<'_, '_, 'a>, width: usize, place: Place) -> Bind<()> {
        target.columns.take(width).map_err(|error| self.error(error, place))
    }

    // ---- VALUES ----

    fn insert_values(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        rows: &[ast::Parens<Vec<Expr>>],
    ) -> Bind<()> {
        let Some(first) = rows.first() else { return beyond("VALUES without rows") };
        for row in rows {
            if row.content.len() != first.content.len() {
                let place = row.content.first().map_or(Place::none(), Place::of);
                return self.fail(b"42601", "VALUES lists must all be the same length", place);
            }
        }
        let place = first.content.first().map_or(Place::none(), Place::of);
        self.check_width(target, first.content.len(), place)?;
        if rows.len() > UNROLLED && self.lifts {
            let mark = self.mark();
            if self.insert_list(target, rows)? {
                return Ok(());
            }
            self.back_to(mark);
            if rows.len() > 1000 {
                return beyond("an INSERT of so many rows that are computed");
            }
        }
        // Subqueries see the table as it was before the first row.
        let ask = rows.iter().skip(1).flat_map(|row| &row.content).any(super::write::asks);
        let mut waiting = Vec::new();
        for row in rows {
            let mut values = Vec::new();
            for (expression, &at) in row.content.iter().zip(&target.columns.places.clone()) {
                let column = target.table.columns[at].clone();
                values.push(self.given(expression, &column)?);
            }
            match ask {
                true => waiting.push(values),
                false => self.insert_row(target, values)?,
            }
        }
        waiting.into_iter().try_for_each(|values| self.insert_row(target, values))
    }

    /// A value of `VALUES` for a column.
    fn given(&mut self, expression: &Expr, column: &Column) -> Bind<Bound> {
        if is_default(expression) {
            return self.default_value(column);
        }
        if column.is_always_generated() {
            return self.refuse_given(column, Place::of(expression));
        }
        let value = self.operand(expression)?;
        self.stored(value, &column.name, &column.sql_type)
    }

    /// Rows as a list parameter; `false` if a value has to be computed by the program.
    fn insert_list(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        rows: &[ast::Parens<Vec<Expr>>],
    ) -> Bind<bool> {
        let table = target.table.clone();
        let given = target.columns.places.clone();
        // Columns that take numbers of a sequence get one for each row.
        let counted: Vec<usize> = (0..table.columns.len())
            .filter(|at| !given.contains(at) && sequence_of(&table.columns[*at]).is_some())
            .collect();
        let mut arguments: Vec<Vec<Argument>> = Vec::new();
        let mut types: Vec<(DataType, bool)> = Vec::new();
        for row in rows {
            let Some(cells) = self.cells(&table, &given, &counted, &row.content)? else { return Ok(false) };
            for (at, (_, data_type, nullable)) in cells.iter().enumerate() {
                match types.get_mut(at) {
                    None => types.push((*data_type, *nullable)),
                    Some((so_far, null)) => {
                        if so_far.family() != data_type.family() {
                            return Ok(false);
                        }
                        *so_far = unified(*so_far, *data_type);
                        *null |= nullable;
                    }
                }
            }
            arguments.push(cells.into_iter().map(|(argument, ..)| argument).collect());
        }
        let fields = types.iter().enumerate();
        let fields = fields
            .map(|(at, (data_type, nullable))| tree::field(&format!("c{}", at + 1), *data_type, *nullable));
        let list = self.add_list(tree::records(fields.collect()), Argument::Rows(arguments));
        let each = self.name("each");
        let (block, ()) = self.nested(|binder| {
            let field = |at: usize| tree::column(tree::loop_row(&each), &format!("c{}", at + 1), false);
            let mut values = Vec::new();
            for (at, &column) in given.iter().chain(&counted).enumerate() {
                let definition = &table.columns[column];
                let (data_type, nullable) = types[at];
                let sql_type = without_modifiers(&definition.sql_type);
                let value = Bound::held_as(field(at), sql_type, nullable, data_type);
                values.push(binder.stored(value, &definition.name, &definition.sql_type)?);
            }
            target.columns.places.extend(&counted);
            binder.in_list = Some((each.clone(), given.len() + counted.len()));
            let inserted = binder.repeated(|binder| binder.insert_row(target, values));
            binder.in_list = None;
            inserted
        })?;
        self.emit(tree::for_list(&each, &list, block));
        Ok(true)
    }

    /// The values of a row as arguments; `None` if one has to be computed.
    fn cells(
        &mut self,
        table: &Table,
        given: &[usize],
        counted: &[usize],
        row: &[Expr],
    ) -> Bind<Option<Cells>> {
        let mut cells = Vec::new();
        for (expression, &at) in row.iter().zip(given) {
            let column = &table.columns[at];
            let to = &column.sql_type;
            if matches!(to, SqlType::Array(_)) && parameter(expression).is_some() {
                return super::stop::beyond("an array that is given");
            }
            if is_default(expression)
                && let Some(sequence) = sequence_of(column)
            {
                cells.push((Argument::NextValue(sequence), DataType::BigInt, false));
                continue;
            }
            if let Some(index) = parameter(expression)
                && self.types.get(index)? == SqlType::Unknown
                && !column.is_always_generated()
            {
                self.types.infer(index, &without_modifiers(to))?;
            }
            let bare = parameter(expression).filter(|_| !column.is_always_generated());
            if let Some(index) = bare {
                let found = self.types.get(index)?;
                if type_rules::converts(&found, to, Context::Assignment)
                    && type_rules::category(&found) == type_rules::category(to)
                {
                    cells.push((Argument::Parameter(index), held(&found), self.types.may_be_null(index)));
                    continue;
                }
                return Ok(None);
            }
            if !is_default(expression) && !super::condition::is_given(expression) {
                return Ok(None);
            }
            let bound = self.given(expression, column)?;
            let constant = match bound.known {
                Known::Constant(constant) => constant,
                Known::Literal(None) => Constant::new(fabius_value::Value::Null),
                _ => return Ok(None),
            };
            let is_null = constant.is_null();
            let data_type = held(to);
            let data_type = match to {
                SqlType::Numeric(Some(_)) => to.storage().unwrap_or(data_type),
                _ => data_type,
            };
            cells.push((self.literals.argument(constant), data_type, is_null));
        }
        for &at in counted {
            let Some(sequence) = sequence_of(&table.columns[at]) else { return Ok(None) };
            cells.push((Argument::NextValue(sequence), DataType::BigInt, false));
        }
        if table.primary_key.is_none() {
            cells.push((Argument::NextValue(row_numbers(table)), DataType::BigInt, false));
        }
        Ok(Some(cells))
    }

    // ---- SELECT ----

    fn insert_query(&mut self, target: &mut Target<'_, '_, 'a>, source: &ast::Query) -> Bind<()> {
        let given_sequences = (0..target.table.columns.len()).any(|at| {
            !target.columns.places.contains(&at) && sequence_of(&target.table.columns[at]).is_some()
        });
        if self.lifts && (given_sequences || target.table.primary_key.is_none()) {
            // By itself, rows can be counted before they are written.
            return beyond("numbers of a sequence for each row of a query");
        }
        let reads_before = std::mem::take(&mut self.reads);
        let mut typed = source.clone();
        type_items(&mut typed.body, &target.columns.places, &target.table);
        let collected = self.collected(&typed)?;
        self.reads.extend(reads_before);
        self.check_width(target, collected.fields.len(), Place::of(source))?;
        let mut given = target.columns.places.iter().map(|at| &target.table.columns[*at]);
        if let Some(column) = given.find(|column| column.is_always_generated()) {
            return self.refuse_given(column, Place::of(source));
        }
        let fields = collected.fields;
        let types: Vec<_> = collected.columns.iter().map(|column| column.sql_type.clone()).collect();
        self.second_pass(&collected.list, |binder, each| {
            let mut values = Vec::new();
            for (at, &column) in target.columns.places.clone().iter().enumerate() {
                let definition = target.table.columns[column].clone();
                let field = &fields[at];
                let value = tree::column(tree::loop_row(each), &field.name.text, false);
                let scalar = field.scalar;
                let value = Bound::held_as(value, types[at].clone(), scalar.nullable, scalar.data_type);
                values.push(binder.stored(value, &definition.name, &definition.sql_type)?);
            }
            binder.insert_row(target, values)
        })
    }

    // ---- one row ----

    /// Inserts one row; `values` are those of the target's columns.
    pub(super) fn insert_row(&mut self, target: &mut Target<'_, '_, 'a>, values: Vec<Bound>) -> Bind<()> {
        let table = target.table.clone();
        let mut given: Vec<Option<Bound>> = vec![None; table.columns.len()];
        for (at, value) in target.columns.places.iter().zip(values) {
            given[*at] = Some(value);
        }
        let mut new = Vec::new();
        for (at, value) in given.into_iter().enumerate() {
            let column = &table.columns[at];
            if column.generated.is_some() {
                // In its turn, when the others are there.
                new.push(self.resolve(Bound::literal(None), &column.sql_type)?);
                continue;
            }
            let value = match value {
                Some(value) => value,
                None => {
                    let value = self.default_value(column)?;
                    self.stored(value, &column.name, &column.sql_type)?
                }
            };
            new.push(match value.is_null() {
                true => self.resolve(value, &column.sql_type)?,
                false => self.settle(value)?,
            });
        }
        let may_lack = |(value, column): (&Bound, &Column)| {
            !column.nullable && column.generated.is_none() && (value.nullable || value.is_null())
        };
        let is_shown =
            !table.checks.is_empty() || table.has_generated() || new.iter().zip(&table.columns).any(may_lack);
        // Keys, checks, conflicts and messages read values again.
        if is_shown || target.conflict.is_some() || target.after.items.is_some() {
            for value in new.iter_mut().filter(|value| !value.is_null()) {
                *value = self.named(value.clone(), "v")?;
            }
        }
        let mut changed = vec![true; new.len()];
        self.generate(&table, &mut new, &mut changed)?;
        let words = if is_shown { row_in_words(&table, &new) } else { None };
        for (at, column) in table.columns.iter().enumerate() {
            if !column.nullable {
                new[at] = self.not_null(&table, column, new[at].clone(), words.as_ref())?;
            }
        }
        self.check_conditions(&table, &new, &changed, words.as_ref())?;
        let mut columns: Vec<(String, Expression)> = table
            .columns
            .iter()
            .zip(&new)
            .filter(|(_, value)| !value.is_null())
            .map(|(column, value)| (column.name.clone(), value.expression.clone()))
            .collect();
        if table.primary_key.is_none() {
            let number = match &self.in_list {
                Some((each, at)) => tree::column(tree::loop_row(each), &format!("c{}", at + 1), false),
                None => {
                    let next = self.next_value(row_numbers(&table));
                    self.settled(next)?
                }
            };
            columns.push((ROW_NUMBER.into(), number));
        }
        match target.conflict {
            None => {
                self.check_parents(&table, &new, &changed)?;
                self.emit(tree::insert(&table.storage, columns));
                self.inserted(target, &new)
            }
            Some(ast::OnInsert::OnConflict(conflict)) => self.insert_or(target, conflict, new, columns),
            Some(_) => beyond("ON DUPLICATE KEY"),
        }
    }

    /// What is done with a row that is in.
    pub(super) fn inserted(&mut self, target: &mut Target<'_, '_, 'a>, new: &[Bound]) -> Bind<()> {
        let table = target.table.clone();
        self.note_late_keys(&table, new, &vec![true; new.len()])?;
        let mut values = Vec::new();
        for (at, (value, column)) in new.iter().zip(&table.columns).enumerate() {
            let origin = (table.oid, at as u16 + 1);
            let storage = column.sql_type.storage().unwrap_or(value.data_type);
            // What is returned is what is stored: with the column's digits.
            let expression = match value.data_type == storage || held(&column.sql_type) == value.data_type {
                true => value.expression.clone(),
                false => tree::cast(value.expression.clone(), storage),
            };
            let sql_type = column.sql_type.of_values();
            values.push(Bound { expression, sql_type, data_type: storage, origin, ..value.clone() });
        }
        let relation = Relation { row: Row::Values(values), ..Relation::table(&table, target.alias.clone()) };
        self.with_scope(vec![relation], |binder| binder.afterwards(&mut target.after))
    }
}

/// Whether a statement may insert more than one row.
fn has_several_rows(insert: &ast::Insert) -> bool {
    match insert.source.as_ref().map(|source| &*source.body) {
        Some(SetExpr::Values(values)) => values.rows.len() > 1,
        other => other.is_some(),
    }
}

/// Rows that a statement has written or passed over, as the values of the key whose conflicts it resolves.
#[derive(Clone)]
pub(super) struct Touched {
    pub(super) list: String,
    pub(super) columns: Vec<usize>,
}

/// What an INSERT fills.
pub(super) struct Target<'r, 'b, 'a> {
    pub(super) table: Arc<Table>,
    pub(super) alias: Option<String>,
    pub(super) columns: InsertTargets,
    pub(super) conflict: Option<&'r ast::OnInsert>,
    /// What was found besides, for `ON CONFLICT`.
    pub(super) found: Option<Relation>,
    /// The keys of the rows that the statement has written, if it may meet one of them again.
    pub(super) touched: Option<Touched>,
    pub(super) after: Afterwards<'r, 'b, 'a>,
}

/// The sequence that a column takes its values from.
pub(super) fn sequence_of(column: &Column) -> Option<ObjectName> {
    column.sequence.clone()
}

/// The sequence of a table's hidden row numbers.
pub(super) fn row_numbers(table: &Table) -> ObjectName {
    ObjectName { schema: table.name.schema.clone(), name: format!("{} row number", table.oid) }
}

/// The parameter that an expression is.
fn parameter(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Nested(inner) => parameter(inner),
        Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(name) => parameter_types::index_of(name).ok(),
            _ => None,
        },
        _ => None,
    }
}
