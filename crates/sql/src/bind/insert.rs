//! INSERT, with ON CONFLICT and RETURNING.

use super::binder::{Binder, ident};
use super::bound::{Bound, Known};
use super::constant::Constant;
use super::scope::{Relation, Row};
use super::select::RowBody;
use super::stop::{Bind, Place, beyond, wrong};
use super::tree;
use super::typing::{held, unified, without_modifiers};
use super::untyped::type_items;
use super::write::Afterwards;
use crate::catalog::{Column, ROW_NUMBER, Table};
use crate::lowered::Argument;
use crate::parse::overriding::Overriding;
use fabius_program::syntax::tree::Expression;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr, SetExpr};
use std::sync::Arc;

/// More rows of `VALUES` than this are a list parameter, so that the program is the same for any number.
const UNROLLED: usize = 3;

/// What inserts the row, as a block of its own.
type Inserting<'i, 'a> =
    dyn Fn(&mut Binder<'a>, &mut Target<'_, '_, 'a>) -> Bind<(fabius_program::syntax::tree::Block, ())> + 'i;

/// A row of `VALUES` as arguments, with how programs hold them: data type and whether null.
type Cells = Vec<(Argument, DataType, bool)>;

impl<'a> Binder<'a> {
    pub(super) fn insert(
        &mut self,
        insert: &ast::Insert,
        count: Option<&str>,
        returning: &mut RowBody<'_, 'a>,
    ) -> Bind<()> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return beyond("an INSERT of this form");
        };
        if insert.or.is_some()
            || insert.replace_into
            || insert.partitioned.is_some()
            || !insert.after_columns.is_empty()
            || !insert.assignments.is_empty()
            || insert.insert_alias.is_some()
            || insert.output.is_some()
        {
            return beyond("an INSERT of this form");
        }
        let table = self.target(name)?;
        let alias = insert.table_alias.as_ref().map(|alias| ident(&alias.alias));
        let mut columns = Vec::new();
        for column in &insert.columns {
            let at = self.target_column(&table, column)?;
            if columns.contains(&at) {
                let message = format!("column \"{}\" specified more than once", table.columns[at].name);
                return self.fail(b"42701", message, Place::of(column));
            }
            columns.push(at);
        }
        let named = !columns.is_empty();
        if !named {
            columns = (0..table.columns.len()).collect();
        }
        let after = Afterwards { count, items: insert.returning.as_deref(), body: returning };
        let overriding = crate::parse::overriding::of(insert);
        let conflict = insert.on.as_ref();
        let touched = match conflict {
            Some(ast::OnInsert::OnConflict(conflict)) if has_several_rows(insert) => {
                self.touched_rows(&table, conflict)?
            }
            _ => None,
        };
        let mut target = Target { table, alias, columns, named, conflict, overriding, touched, after };
        self.insert_source(insert, &mut target)?;
        if let Some(touched) = &target.touched {
            self.refuse_twice(touched);
        }
        Ok(())
    }

    fn insert_source(&mut self, insert: &ast::Insert, target: &mut Target<'_, '_, 'a>) -> Bind<()> {
        let Some(source) = &insert.source else {
            target.columns.clear();
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
        if width > target.columns.len() {
            return self.fail(b"42601", "INSERT has more expressions than target columns", place);
        }
        if width < target.columns.len() {
            if target.named {
                return self.fail(b"42601", "INSERT has more target columns than expressions", place);
            }
            target.columns.truncate(width);
        }
        Ok(())
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
        if rows.len() > UNROLLED && self.lifts && target.overriding.is_none() {
            let mark = self.mark();
            if self.insert_list(target, rows)? {
                return Ok(());
            }
            self.back_to(mark);
            if rows.len() > 1000 {
                return beyond("an INSERT of so many rows that are computed");
            }
        }
        for row in rows {
            let mut values = Vec::new();
            for (expression, &at) in row.content.iter().zip(&target.columns.clone()) {
                let column = target.table.columns[at].clone();
                values.push(self.given(expression, &column, target.overriding)?);
            }
            self.insert_row(target, values)?;
        }
        Ok(())
    }

    /// A value of `VALUES` for a column.
    fn given(&mut self, expression: &Expr, column: &Column, overriding: Option<Overriding>) -> Bind<Bound> {
        let is_left_out = overriding == Some(Overriding::User) && column.sequence.is_some();
        if is_left_out || Binder::is_default(expression) {
            return self.default_value(column);
        }
        if column.is_identity_always && overriding.is_none() {
            let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
            let detail =
                format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name);
            let error = wrong(b"428C9", message)
                .with_detail(detail)
                .with_hint("Use OVERRIDING SYSTEM VALUE to override.");
            return Err(self.error(error, Place::of(expression)));
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
        let given = target.columns.clone();
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
            target.columns.extend(&counted);
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
            if Binder::is_default(expression)
                && let Some(sequence) = sequence_of(column)
            {
                cells.push((Argument::NextValue(sequence), DataType::BigInt, false));
                continue;
            }
            if let Some(index) = parameter(expression)
                && self.types.get(index)? == crate::sql_type::SqlType::Unknown
                && !column.is_identity_always
            {
                self.types.infer(index, &without_modifiers(to))?;
            }
            let bare = parameter(expression).filter(|_| !column.is_identity_always);
            if let Some(index) = bare {
                let found = self.types.get(index)?;
                if super::typing::converts(&found, to, super::typing::Conversion::Assignment)
                    && super::typing::category(&found) == super::typing::category(to)
                {
                    cells.push((Argument::Parameter(index), held(&found), self.types.may_be_null(index)));
                    continue;
                }
                return Ok(None);
            }
            if !Binder::is_default(expression) && !super::condition::is_given(expression) {
                return Ok(None);
            }
            let bound = self.given(expression, column, None)?;
            let constant = match bound.known {
                Known::Constant(constant) => constant,
                Known::Literal(None) => Constant::new(fabius_value::Value::Null),
                _ => return Ok(None),
            };
            let is_null = constant.is_null();
            let data_type = held(to);
            let data_type = match to {
                crate::sql_type::SqlType::Numeric(Some(_)) => to.storage().unwrap_or(data_type),
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
        let given_sequences = (0..target.table.columns.len())
            .any(|at| !target.columns.contains(&at) && sequence_of(&target.table.columns[at]).is_some());
        if self.lifts && (given_sequences || target.table.primary_key.is_none()) {
            // By itself, rows can be counted before they are written.
            return beyond("numbers of a sequence for each row of a query");
        }
        let reads_before = std::mem::take(&mut self.reads);
        let mut typed = source.clone();
        type_items(&mut typed.body, &target.columns, &target.table);
        let collected = self.collected(&typed)?;
        self.reads.extend(reads_before);
        self.check_width(target, collected.fields.len(), Place::of(source))?;
        let fields = collected.fields;
        let types: Vec<_> = collected.columns.iter().map(|column| column.sql_type.clone()).collect();
        self.second_pass(&collected.list, |binder, each| {
            let mut values = Vec::new();
            for (at, &column) in target.columns.clone().iter().enumerate() {
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
        for (at, value) in target.columns.iter().zip(values) {
            given[*at] = Some(value);
        }
        let mut new = Vec::new();
        for (at, value) in given.into_iter().enumerate() {
            let column = &table.columns[at];
            let value = match value {
                Some(value) => value,
                None => {
                    let value = self.default_value(column)?;
                    self.stored(value, &column.name, &column.sql_type)?
                }
            };
            if !column.nullable && value.is_null() {
                let message = super::update::not_null_message(&table, column);
                let error = wrong(b"23502", message)
                    .with_table(&table.name.schema, &table.name.name)
                    .with_column(&column.name);
                return Err(error.into());
            }
            if value.is_null() {
                let null = self.resolve(value, &column.sql_type)?;
                new.push(null);
                continue;
            }
            let value = self.settle(value)?;
            // Keys, checks and conflicts read values again.
            let again = target.conflict.is_some() || target.after.items.is_some() || !table.checks.is_empty();
            let value = if again { self.named(value, "v")? } else { value };
            new.push(self.not_null(&table, column, value)?);
        }
        self.check_row(&table, &new, &vec![true; new.len()])?;
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
                self.emit(tree::insert(&table.storage, columns));
                self.inserted(target, &new)
            }
            Some(ast::OnInsert::OnConflict(conflict)) => self.insert_or(target, conflict, new, columns),
            Some(_) => beyond("ON DUPLICATE KEY"),
        }
    }

    /// What is done with a row that is in.
    fn inserted(&mut self, target: &mut Target<'_, '_, 'a>, new: &[Bound]) -> Bind<()> {
        let table = target.table.clone();
        let mut values = Vec::new();
        for (at, (value, column)) in new.iter().zip(&table.columns).enumerate() {
            let origin = (table.oid, at as u16 + 1);
            let storage = column.sql_type.storage().unwrap_or(value.data_type);
            // What is returned is what is stored: with the column's digits.
            let expression = match value.data_type == storage || held(&column.sql_type) == value.data_type {
                true => value.expression.clone(),
                false => tree::cast(value.expression.clone(), storage),
            };
            let sql_type = column.sql_type.clone();
            values.push(Bound { expression, sql_type, data_type: storage, origin, ..value.clone() });
        }
        let relation = Relation { row: Row::Values(values), ..Relation::table(&table, target.alias.clone()) };
        self.with_scope(vec![relation], |binder| binder.afterwards(&mut target.after))
    }

    // ---- ON CONFLICT ----

    fn insert_or(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        conflict: &ast::OnConflict,
        new: Vec<Bound>,
        columns: Vec<(String, Expression)>,
    ) -> Bind<()> {
        let table = target.table.clone();
        self.reads.insert(table.name.clone());
        let keys = self.arbiters(&table, conflict)?;
        let insert = |binder: &mut Binder<'a>, target: &mut Target<'_, '_, 'a>| {
            binder.nested(|binder| {
                binder.emit(tree::insert(&table.storage, columns.clone()));
                binder.inserted(target, &new)
            })
        };
        match &conflict.action {
            ast::OnConflictAction::DoNothing => {
                let mut taken = Vec::new();
                for key in &keys {
                    let mut values = Vec::new();
                    for name in key {
                        let at = super::constraint::place(&table, name)?;
                        values.push((name.clone(), new[at].expression.clone()));
                    }
                    taken.push(self.row_exists(&table, &values)?);
                }
                let (block, ()) = insert(self, target)?;
                self.emit(tree::when(tree::not(tree::any(taken)), block, None));
                Ok(())
            }
            ast::OnConflictAction::DoUpdate(update) => {
                let [key] = keys.as_slice() else {
                    let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    return self.fail(b"42601", message, Place::none());
                };
                let primary = Relation::key_columns(&table);
                let by_primary = key.len() == primary.len() && primary.iter().all(|name| key.contains(name));
                if by_primary {
                    let place = self.key_among(&table, &new)?;
                    let row = tree::keyed_row(&table.storage, place.clone());
                    let existing = Binder::keyed(&table, target.alias.clone(), place);
                    let (update, ()) =
                        self.nested(|binder| binder.update_instead(target, existing, update, &new))?;
                    let (mut block, ()) = insert(self, target)?;
                    block.extend(target.touching(&new));
                    self.emit(tree::when(tree::exists(row), update, Some(block)));
                    return Ok(());
                }
                self.update_by_unique(target, key, update, &new, &insert)
            }
        }
    }

    /// DO UPDATE by a unique key that is not the primary one: the row's primary key is looked up first.
    fn update_by_unique(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        key: &[String],
        update: &ast::DoUpdate,
        new: &[Bound],
        insert: &Inserting<'_, 'a>,
    ) -> Bind<()> {
        let table = target.table.clone();
        let list = self.name("existing");
        let types = super::scope::key_types(&table);
        let fields = types.iter().enumerate();
        let fields =
            fields.map(|(at, data_type)| tree::field(&format!("k{}", at + 1), *data_type, false)).collect();
        self.emit(tree::declare_list(&list, fields));
        let row = self.name("row");
        let index = table.unique.iter().find(|unique| {
            unique.columns.len() == key.len() && unique.columns.iter().all(|name| key.contains(name))
        });
        let Some(index) = index.cloned() else { return beyond("a unique key that is not there") };
        let mut equal = Vec::new();
        for name in &index.columns {
            equal.push(new[super::constraint::place(&table, name)?].expression.clone());
        }
        let mut scan = tree::scan(&table.storage);
        scan.index = Some(tree::name(&index.name));
        scan.range = tree::range(equal, None, None);
        let names = Relation::key_columns(&table);
        let found = names.iter().map(|name| tree::column(tree::loop_row(&row), name, false)).collect();
        self.emit(tree::for_each(&row, scan, vec![tree::append(&list, found)]));
        self.second_pass(&list, |binder, each| {
            let field = |at: usize| tree::column(tree::loop_row(each), &format!("k{}", at + 1), false);
            let place = (0..types.len()).map(field).collect();
            let existing = Binder::keyed(&table, target.alias.clone(), place);
            binder.update_instead(target, existing, update, new)
        })?;
        let (mut block, ()) = insert(self, target)?;
        block.extend(target.touching(new));
        let none = tree::binary(
            fabius_program::ir::BinaryOperator::Equal,
            tree::call("count", vec![tree::variable(&list)]),
            tree::integer(0),
        );
        self.emit(tree::when(none, block, None));
        Ok(())
    }

    fn update_instead(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        existing: Relation,
        update: &ast::DoUpdate,
        new: &[Bound],
    ) -> Bind<()> {
        let table = target.table.clone();
        let excluded = Relation {
            name: "excluded".into(),
            row: Row::Values(new.to_vec()),
            hidden: (0..table.columns.len()).collect(),
            ..Relation::table(&table, None)
        };
        let mut targets = Vec::new();
        for assignment in &update.assignments {
            self.assignment(&table, assignment, &mut targets)?;
        }
        let key = Relation::key_columns(&table);
        if targets.iter().any(|(column, ..)| key.contains(&table.columns[*column].name)) {
            return beyond("ON CONFLICT DO UPDATE of the primary key");
        }
        self.with_scope(vec![existing.clone(), excluded], |binder| {
            let condition = match &update.selection {
                Some(selection) => Some(binder.condition(selection, "WHERE")?),
                None => None,
            };
            let (block, ()) = binder.nested(|binder| {
                let assignments = binder.assigned_values(&table, &targets)?;
                binder.change_row(&table, &existing, assignments, false)?;
                binder.block.extend(target.touching(new));
                binder.scope().relations.truncate(1);
                binder.afterwards(&mut target.after)
            })?;
            match condition {
                Some(condition) => binder.emit(tree::when(condition, block, None)),
                None => binder.block.extend(block),
            }
            Ok(())
        })
    }

    /// The keys whose conflicts an ON CONFLICT means.
    fn arbiters(&mut self, table: &Table, conflict: &ast::OnConflict) -> Bind<Vec<Vec<String>>> {
        let keys = || table.primary_key.iter().chain(&table.unique);
        match &conflict.conflict_target {
            None => Ok(keys().map(|key| key.columns.clone()).collect()),
            Some(ast::ConflictTarget::Columns(names)) => {
                let mut columns = Vec::new();
                for name in names {
                    let at = self.target_ident(table, name)?;
                    columns.push(table.columns[at].name.clone());
                }
                let same = |key: &Vec<String>| {
                    key.iter().all(|name| columns.contains(name))
                        && columns.iter().all(|name| key.contains(name))
                };
                match keys().map(|key| key.columns.clone()).find(same) {
                    Some(key) => Ok(vec![key]),
                    None => {
                        let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                        self.fail(b"42P10", message, Place::none())
                    }
                }
            }
            Some(ast::ConflictTarget::OnConstraint(name)) => {
                let wanted = super::binder::path(name)?.pop().unwrap_or_default();
                match keys().find(|key| key.name == wanted) {
                    Some(key) => Ok(vec![key.columns.clone()]),
                    None => {
                        let of = &table.name.name;
                        let message = format!("constraint \"{wanted}\" for table \"{of}\" does not exist");
                        self.fail(b"42704", message, Place::of(name))
                    }
                }
            }
        }
    }
}

/// Whether a statement may insert more than one row.
fn has_several_rows(insert: &ast::Insert) -> bool {
    match insert.source.as_ref().map(|source| &*source.body) {
        Some(SetExpr::Values(values)) => values.rows.len() > 1,
        other => other.is_some(),
    }
}

/// Rows that a statement has written, as the values of the key whose conflicts it resolves.
#[derive(Clone)]
pub(super) struct Touched {
    list: String,
    columns: Vec<usize>,
}

impl Target<'_, '_, '_> {
    /// Notes that a row is written.
    fn touching(&self, new: &[Bound]) -> Option<fabius_program::syntax::tree::Statement> {
        let touched = self.touched.as_ref()?;
        let values = touched.columns.iter().map(|at| new[*at].expression.clone()).collect();
        Some(tree::append(&touched.list, values))
    }
}

impl Binder<'_> {
    /// Declares the list of rows that `ON CONFLICT DO UPDATE` has written.
    pub(super) fn touched_rows(
        &mut self,
        table: &Table,
        conflict: &ast::OnConflict,
    ) -> Bind<Option<Touched>> {
        if !matches!(conflict.action, ast::OnConflictAction::DoUpdate(_)) {
            return Ok(None);
        }
        let keys = self.arbiters(table, conflict)?;
        let [key] = keys.as_slice() else { return Ok(None) };
        let list = self.name("touched");
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (at, name) in key.iter().enumerate() {
            let place = super::constraint::place(table, name)?;
            let data_type = held(&table.columns[place].sql_type);
            fields.push(tree::field(&format!("k{}", at + 1), data_type, true));
            columns.push(place);
        }
        self.emit(tree::declare_list(&list, fields));
        Ok(Some(Touched { list, columns }))
    }

    /// Refuses a statement that has written a row twice.
    pub(super) fn refuse_twice(&mut self, touched: &Touched) {
        use fabius_program::ir::BinaryOperator as Op;
        use fabius_program::syntax::tree::{Failure, Message, SortKey, StatementKind};
        let field = |at: usize| format!("k{}", at + 1);
        let keys = (0..touched.columns.len()).map(|at| SortKey {
            field: Some(tree::name(field(at))),
            descending: false,
            nulls_first: false,
        });
        let sort = StatementKind::Sort { list: tree::name(&touched.list), keys: keys.collect() };
        self.emit(tree::statement(sort));
        let (at, each) = (self.name("at"), self.name("row"));
        let bigint = || Some(tree::scalar_type(DataType::BigInt, false));
        self.emit(tree::declare(&at, true, bigint(), tree::cast(tree::integer(0), DataType::BigInt)));
        // Equal keys are next to each other; a key that is null is none.
        let same = (0..touched.columns.len()).map(|column| {
            let name = field(column);
            let before = tree::keyed_row(&touched.list, vec![tree::variable(&at)]);
            let before = tree::column(before, &name, false);
            tree::binary(Op::Equal, tree::column(tree::loop_row(&each), &name, false), before)
        });
        let is_new = tree::not(tree::call("coalesce", vec![tree::all(same), tree::boolean(false)]));
        let failure = Failure {
            message: Message::Fixed("ON CONFLICT DO UPDATE command cannot affect row a second time".into()),
            state: Some(fabius_value::SqlState(*b"21000")),
            detail: Some(tree::typed_null(DataType::TEXT)),
            hint: Some(tree::text(
                "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            )),
        };
        let require = tree::statement(StatementKind::Require { condition: is_new, failure });
        let next = tree::add(&at, tree::cast(tree::integer(1), DataType::BigInt));
        self.emit(tree::for_list(&each, &touched.list, vec![require, next]));
    }
}

/// What an INSERT fills.
pub(super) struct Target<'r, 'b, 'a> {
    pub(super) table: Arc<Table>,
    pub(super) alias: Option<String>,
    pub(super) columns: Vec<usize>,
    pub(super) named: bool,
    pub(super) conflict: Option<&'r ast::OnInsert>,
    pub(super) overriding: Option<Overriding>,
    /// The keys of the rows that the statement has written, if it may meet one of them again.
    pub(super) touched: Option<Touched>,
    pub(super) after: Afterwards<'r, 'b, 'a>,
}

/// The sequence that a column takes its values from.
pub(super) fn sequence_of(column: &Column) -> Option<crate::catalog::ObjectName> {
    column.sequence.clone()
}

/// The sequence of a table's hidden row numbers.
pub(super) fn row_numbers(table: &Table) -> crate::catalog::ObjectName {
    crate::catalog::ObjectName {
        schema: table.name.schema.clone(),
        name: format!("{} row number", table.oid),
    }
}

/// The parameter that an expression is.
fn parameter(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Nested(inner) => parameter(inner),
        Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(name) => crate::parameter_types::index_of(name).ok(),
            _ => None,
        },
        _ => None,
    }
}
