//! Rows by their keys: named, read, written, inserted and deleted; what a function requires.

use super::class::Class;
use super::hint;
use super::lowering::{Lowering, NO_DATA, Place, Row, column_variable, found_variable, key_variable};
use super::message::{ABORTED, ROW_NOT_FOUND};
use super::statement;
use super::value::{self, Value, nested, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::catalog::{Column, Table};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{
    Into, Level, Loop, LoopKind, Query, Raise, RaiseOption, Statement as Done, StatementKind as Kind,
};
use fabius_sql_syntax::python::tree::{
    Comparison, Expression, ExpressionKind, Operator, Selection, Statement,
};
use fabius_value::Result;
use sqlparser::ast::{self, Expr};
use std::sync::Arc;

impl Lowering<'_> {
    /// `db.table[key]`, if an expression is one.
    pub(super) fn subscripted(&mut self, expression: &Expression) -> Result<Option<(Arc<Table>, Vec<Expr>)>> {
        let ExpressionKind::Subscript(object, key) = &expression.kind else { return Ok(None) };
        let Some(table) = self.table(object)? else { return Ok(None) };
        let values = self.key_values(&table, key, expression.span)?;
        Ok(Some((table, values)))
    }

    /// The values of a key.
    pub(super) fn key_values(&mut self, table: &Table, key: &[Expression], span: Span) -> Result<Vec<Expr>> {
        let Some(primary) = &table.primary_key else {
            let message = format!("table {} has no primary key: rows are not found by one", table.name.name);
            return self.wrong(span, b"42704", &message);
        };
        if primary.columns.len() != key.len() {
            let message = format!(
                "the key of {} is ({}), but {} values are given",
                table.name.name,
                primary.columns.join(", "),
                key.len()
            );
            return self.wrong(span, b"42601", &message);
        }
        let mut values = Vec::new();
        for (at, (part, column)) in key.iter().zip(&primary.columns).enumerate() {
            let value = self.value(part)?;
            if value.is_nullable || value.class == Class::None || value.class.is_pending() {
                self.nullable_keys.insert((table.oid, at));
            }
            let column_type = table.column(column).map(|column| &column.sql_type);
            let wanted = column_type.map_or(Class::Pending, Class::of);
            if wanted != value.class && !value.class.is_pending() {
                let what = format!(
                    "{} for {}.{column}, which is {}",
                    value.class.name(),
                    table.name.name,
                    wanted.name()
                );
                let instead = hint::conversion(self.text_of(part.span), &value.class, &wanted);
                return self.refused(part.span, &what, &instead);
            }
            values.push(match column_type {
                Some(sql_type) => value::given(value.tree, &value.class, sql_type)?,
                None => value.tree,
            });
        }
        Ok(values)
    }

    /// `db.table`, if an expression is one.
    pub(super) fn table(&self, expression: &Expression) -> Result<Option<Arc<Table>>> {
        let ExpressionKind::Attribute(database, name) = &expression.kind else { return Ok(None) };
        if !matches!(&database.kind, ExpressionKind::Name(name) if *name == self.function.database) {
            return Ok(None);
        }
        let parts = name.split('.').map(part::name_part).collect();
        let found = self.catalog.table(&ast::ObjectName(parts));
        match found {
            Ok(table) => Ok(Some(table.clone())),
            Err(error) => self.wrong(expression.span, &error.state().0, error.message()),
        }
    }

    /// `name = db.table[key]`: the row is there, and what is asked for of it is read.
    pub(super) fn bind_row(
        &mut self,
        name: &str,
        (table, key): (Arc<Table>, Vec<Expr>),
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        self.read_row(name, (&table, key), span, done)?;
        let key = self.key_of(name);
        self.require_found(&table, &key, span, done)?;
        self.there(name, span, done);
        Ok(())
    }

    /// A row that is asked for is there.
    fn there(&mut self, name: &str, span: Span, done: &mut Vec<Done>) {
        self.present.insert(name.to_string());
        self.is_read(name);
        if self.rows.get(name).is_some_and(|row| row.is_optional) {
            let target = self.path(found_variable(name), span);
            let value = self.written(value::boolean(true), span);
            done.push(Done { kind: Kind::Assign { target, value }, span });
        }
    }

    /// `name = db.table.get(key)`: the row, or `None`.
    fn ask_row(
        &mut self,
        name: &str,
        (table, key): (&Arc<Table>, Vec<Expr>),
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        self.read_row(name, (table, key), span, done)?;
        if let Some(row) = self.rows.get_mut(name) {
            row.is_optional = true;
        }
        self.present.remove(name);
        self.is_read(name);
        let target = self.path(found_variable(name), span);
        let value = self.written(Expr::Identifier(ast::Ident::new("found")), span);
        done.push(Done { kind: Kind::Assign { target, value }, span });
        Ok(())
    }

    fn read_row(
        &mut self,
        name: &str,
        (table, key): (&Arc<Table>, Vec<Expr>),
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        self.name_row(name, table, span)?;
        self.forget_columns(name);
        let wanted = self.rows.get(name).map(|row| row.wanted.clone()).unwrap_or_default();
        for (at, value) in key.into_iter().enumerate() {
            let target = self.path(key_variable(name, at), span);
            done.push(Done { kind: Kind::Assign { target, value: self.written(value, span) }, span });
        }
        self.assigned.insert(name.to_string());
        let key = self.key_of(name);
        let query = statement::select(table, &wanted, statement::has_key(table, &key))?;
        done.push(Done { kind: self.reading(query, name, &wanted, span), span });
        Ok(())
    }

    /// `name = db.table.get(key)`, `.insert(...)` or `.upsert(...)`, if a call is one of them.
    pub(super) fn bind_called(
        &mut self,
        name: &str,
        (function, arguments, named): (&Expression, &[Expression], &[(String, Expression)]),
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<bool> {
        let ExpressionKind::Attribute(object, method) = &function.kind else { return Ok(false) };
        if let ExpressionKind::Query(query) = &object.kind {
            return self.bind_result(name, (query, method), span, done);
        }
        let Some(table) = self.table(object)? else { return Ok(false) };
        match (method.as_str(), arguments, named) {
            ("get", [key], []) => {
                let key = self.key_values(&table, parts_of_key(key), key.span)?;
                self.ask_row(name, (&table, key), span, done)?;
            }
            ("insert" | "upsert", [], named) => {
                let is_upsert = method == "upsert";
                self.name_row(name, &table, span)?;
                self.forget_columns(name);
                let row = self.rows.get(name).cloned();
                let wanted = row.as_ref().map(|row| row.wanted.clone()).unwrap_or_default();
                let key = row.as_ref().map(|row| row.key().to_vec()).unwrap_or_default();
                let columns: Vec<String> = key.iter().chain(&wanted).cloned().collect();
                let keys = (0..key.len()).map(|at| self.path(key_variable(name, at), span));
                let read = wanted.iter().map(|column| self.path(column_variable(name, column), span));
                let targets: Vec<_> = keys.chain(read).collect();
                let insert = self.inserting(&table, named, is_upsert, &columns, span)?;
                self.is_written(&table, Some(name));
                let into = (!targets.is_empty()).then_some(Into { is_strict: false, targets });
                done.push(Done { kind: Kind::Sql { statement: Box::new(insert), into }, span });
                self.assigned.insert(name.to_string());
                self.there(name, span, done);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `for name in db.table`, or some rows of it: in the order of their key, as they are when the loop begins.
    pub(super) fn rows_of(
        &mut self,
        name: &str,
        table: &Expression,
        selection: &Selection,
        body: &[Statement],
        span: Span,
    ) -> Result<Kind> {
        let Some(found) = self.table(table)? else {
            return self.refused(table.span, "a loop over this", "loop over range(...) or over db.table");
        };
        if found.primary_key.is_none() {
            let message = format!("table {} has no primary key: its rows have no order", found.name.name);
            return self.wrong(table.span, b"42704", &message);
        }
        let condition = self.selected(&found, selection, span)?;
        self.name_row(name, &found, span)?;
        let wanted = self.rows.get(name).map(|row| row.wanted.clone()).unwrap_or_default();
        let key = found.primary_key.as_ref().map(|key| key.columns.clone()).unwrap_or_default();
        let columns: Vec<String> = key.iter().chain(&wanted).cloned().collect();
        let tree = statement::select_in_order(&found, &columns, condition, &key)?;
        let keys = (0..key.len()).map(|at| self.path(key_variable(name, at), span));
        let read = wanted.iter().map(|column| self.path(column_variable(name, column), span));
        let targets = keys.chain(read).collect();
        let before = self.assigned.clone();
        self.assigned.insert(name.to_string());
        self.forget_columns(name);
        self.present.insert(name.to_string());
        let body = self.repeated_of(name, body)?;
        // Where there is no row, Python's name is what it was before.
        self.assigned = before;
        self.assigned.remove(name);
        let query = Query { tree: Box::new(tree), span };
        Ok(Kind::Loop(Loop { label: None, kind: LoopKind::Query { targets, query }, body }))
    }

    /// What the rows of a selection satisfy.
    fn selected(&mut self, table: &Table, selection: &Selection, span: Span) -> Result<Option<Expr>> {
        let conditions: Vec<(&str, Comparison, &Expression)> = match selection {
            Selection::Equal(equal) => {
                equal.iter().map(|(column, value)| (column.as_str(), Comparison::Equal, value)).collect()
            }
            Selection::Range(range) => {
                let key = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
                let count = range.prefix.len();
                let Some(bounded) = key.get(count) else {
                    let name = &table.name.name;
                    let key = key.join(", ");
                    let message = format!(
                        "the key of {name} is ({key}), but a range of its part {} is given",
                        count + 1
                    );
                    return self.wrong(span, b"42601", &message);
                };
                let equal = key.iter().zip(&range.prefix);
                let lower = range.lower.iter().map(|bound| (bounded, Comparison::GreaterOrEqual, bound));
                let upper = range.upper.iter().map(|bound| (bounded, Comparison::Less, bound));
                let all = equal.map(|(column, value)| (column, Comparison::Equal, value));
                all.chain(lower)
                    .chain(upper)
                    .map(|(column, how, value)| (column.as_str(), how, value))
                    .collect()
            }
        };
        let mut holds: Option<Expr> = None;
        for (name, comparison, value) in conditions {
            let Some(column) = table.column(name).filter(|column| !column.is_hidden) else {
                return self.no_column(table, name, value.span);
            };
            let raw = statement::column(table, name);
            let value = self.value(value)?;
            // Texts are compared as SQL compares them, in the order in which the rows are.
            let of_sql = matches!(
                column.sql_type.of_values(),
                SqlType::Enumeration(_) | SqlType::Char(_) | SqlType::Name
            );
            let one = if of_sql && value.class == Class::Text {
                let tree = value::given(value.tree.clone(), &value.class, &column.sql_type)?;
                let own = Value::of(raw, Class::Text, span);
                self.accepted(
                    value.span,
                    value::compared(&own, comparison, &Value { tree, ..value.clone() }),
                )?
            } else {
                let own = value::taken(raw, &column.sql_type, span)?;
                self.accepted(value.span, value::compared(&own, comparison, &value))?
            };
            holds = Some(match holds {
                Some(all) => part::binary(nested(all), ast::BinaryOperator::And, nested(one)),
                None => one,
            });
        }
        Ok(holds)
    }

    /// A name that is a row of a table from here on.
    fn name_row(&mut self, name: &str, table: &Arc<Table>, span: Span) -> Result<()> {
        if self.variables.contains_key(name) || self.results.contains_key(name) {
            return self.refused(span, "a name that is a value and a row", "use two names");
        }
        if self.rows.get(name).is_some_and(|row| row.table.oid != table.oid) {
            return self.refused(span, "a name that is a row of two tables", "use two names");
        }
        let asked = self.wanted.get(name).cloned().unwrap_or_default();
        let is_column = |column: &String| table.column(column).is_some_and(|column| !column.is_hidden);
        let wanted = asked.into_iter().filter(is_column).collect();
        let is_optional = self.rows.get(name).is_some_and(|row| row.is_optional);
        self.rows.insert(name.to_string(), Row { table: table.clone(), wanted, is_optional });
        Ok(())
    }

    pub(super) fn key_of(&self, name: &str) -> Vec<Expr> {
        let key = self.rows.get(name).map_or(0, |row| row.key().len());
        (0..key).map(|at| Expr::Identifier(part::quoted(&key_variable(name, at)))).collect()
    }

    /// A statement whose columns become what is known of a row.
    pub(super) fn reading(
        &self,
        statement: ast::Statement,
        name: &str,
        columns: &[String],
        span: Span,
    ) -> Kind {
        if columns.is_empty() {
            return match &statement {
                ast::Statement::Query(_) => Kind::Perform(Query { tree: Box::new(statement), span }),
                _ => Kind::Sql { statement: Box::new(statement), into: None },
            };
        }
        let targets = columns.iter().map(|column| self.path(column_variable(name, column), span)).collect();
        Kind::Sql { statement: Box::new(statement), into: Some(Into { is_strict: false, targets }) }
    }

    /// Ends the transaction if the statement before found no row.
    pub(super) fn require_found(
        &self,
        table: &Table,
        key: &[Expr],
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        let columns = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
        let mut format = vec![format!("there is no row of {} with ", table.name.name)];
        let mut arguments = Vec::new();
        for (at, (column, value)) in columns.iter().zip(key).enumerate() {
            let sql_type =
                table.column(column).map_or(SqlType::Unknown, |column| column.sql_type.of_values());
            let value = value::taken(value.clone(), &sql_type, span)?;
            let between = if at == 0 { "" } else { ", " };
            if let Some(last) = format.last_mut() {
                last.push_str(&format!("{between}{column} = "));
            }
            let shown = match value.class {
                Class::Text => value::function("fabius_python_repr", vec![value.tree]),
                Class::Decimal => value.tree,
                // What has no text here is left out.
                Class::Other(SqlType::Bytea) => text("..."),
                _ => self.shown(Value { is_nullable: false, ..value })?,
            };
            format.push(String::new());
            arguments.push(self.written(shown, span));
        }
        let state = (RaiseOption::State, self.written(text(NO_DATA), span));
        let raise = Raise {
            level: Level::Exception,
            state: None,
            condition: None,
            format: Some(format),
            arguments,
            options: vec![state, self.place_of("", span)],
            class: Some(ROW_NOT_FOUND.into()),
        };
        let found = Expr::Identifier(ast::Ident::new("found"));
        let missing = Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(found) };
        let then = vec![Done { kind: Kind::Raise(raise), span }];
        done.push(Done {
            kind: Kind::If { arms: vec![(self.written(missing, span), then)], otherwise: None },
            span,
        });
        Ok(())
    }

    /// The row that is written.
    pub(super) fn place(&mut self, object: &Expression) -> Result<Place> {
        if let ExpressionKind::Name(name) = &object.kind
            && let Some(row) = self.rows.get(name)
        {
            let table = row.table.clone();
            self.require_assigned(name, object.span)?;
            self.require_present(name, object.span)?;
            return Ok(Place { table, key: self.key_of(name), name: Some(name.clone()) });
        }
        match self.subscripted(object)? {
            Some((table, key)) => Ok(Place { table, key, name: None }),
            None => {
                self.refused(object.span, "an attribute of anything but a row", "write db.table[key].column")
            }
        }
    }

    /// `row.column = value`, or `row.column += value`, which adds to what is there.
    pub(super) fn write(
        &mut self,
        place: &Place,
        (column, span): (&str, Span),
        value: &Value,
        operator: Option<Operator>,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        let Some(definition) = place.table.column(column).filter(|column| !column.is_hidden) else {
            return self.no_column(&place.table, column, span);
        };
        if place.table.primary_key.as_ref().is_some_and(|key| key.columns.iter().any(|name| name == column)) {
            return self.refused(span, "a change of a key", "delete the row, and insert another");
        }
        let value = match operator {
            // Python computes it whether the row is there or not.
            None if place.name.is_none() && value.can_fail => self.kept("value", value.clone(), done)?,
            None => value.clone(),
            Some(operator) => {
                let before = self.before(place, (column, span), definition)?;
                let before = self.sure(before);
                let value = self.sure(value.clone());
                self.calculated(operator, before, value, span)?
            }
        };
        self.require_fitting(&value, definition)?;
        let name = place.name.as_deref().unwrap_or_default();
        // A row that nothing else can have written is there, and has what was read of it.
        let is_fresh = self.is_fresh(name);
        let is_followed = place.table.columns.iter().any(|column| column.generated.is_some());
        let wanted = place.name.as_ref().and_then(|name| self.rows.get(name)).map(|row| row.wanted.clone());
        let mut read = wanted.unwrap_or_default();
        read.retain(|own| !is_fresh || is_followed || own == column);
        let condition = statement::has_key(&place.table, &place.key);
        let written = value::given(value.tree, &value.class, &definition.sql_type)?;
        let update = statement::update(&place.table, (column, written), condition, &read)?;
        self.forget_columns(name);
        self.is_written(&place.table, place.name.as_deref());
        if !name.is_empty() {
            self.is_read(name);
        }
        let mut kind = self.reading(update, name, &read, span);
        if is_fresh && self.tests.is_empty() {
            // Columns of one row that are written one after the other are written at once.
            if let Some(last) = done.last_mut() {
                match statement::join(&place.table, &mut last.kind, kind) {
                    None => return Ok(()),
                    Some(apart) => kind = apart,
                }
            }
        }
        done.push(Done { kind, span });
        if is_fresh { Ok(()) } else { self.require_found(&place.table, &place.key, span, done) }
    }

    /// What a column is before something is added to it: what the row has, so that nobody needs to read it; or what was
    /// read, if something else may have written the row since.
    fn before(&mut self, place: &Place, (column, span): (&str, Span), definition: &Column) -> Result<Value> {
        let is_nullable = definition.nullable
            && !place.name.as_ref().is_some_and(|name| self.present.contains(&format!("{name}.{column}")));
        // What may be `None` is looked at.
        let stale = place.name.as_ref().filter(|name| is_nullable || !self.is_fresh(name));
        let Some(name) = stale else {
            let own = value::taken(statement::column(&place.table, column), &definition.sql_type, span)?;
            // It is no value before its statement: nothing can be tested there.
            if is_nullable {
                let what = format!("a change of {column}, which may be None");
                let instead = "declare the column NOT NULL, or take the row first: row = db.table[key]";
                return self.refused(span, &what, instead);
            }
            return Ok(own);
        };
        let wanted = self.wanted.entry(name.clone()).or_default();
        if wanted.insert(column.to_string()) {
            self.wants_more = true;
            return Ok(Value::of(Expr::value(ast::Value::Null), Class::Pending, span));
        }
        let object = Expression { kind: ExpressionKind::Name(name.clone()), span };
        self.column(&object, column, span)
    }

    pub(super) fn no_column<T>(&self, table: &Table, column: &str, span: Span) -> Result<T> {
        let columns: Vec<&str> = table.visible().map(|column| column.name.as_str()).collect();
        let message =
            format!("table {} has no column '{column}': it has {}", table.name.name, columns.join(", "));
        self.wrong(span, b"42703", &message)
    }

    pub(super) fn delete(&mut self, target: &Expression, span: Span, done: &mut Vec<Done>) -> Result<()> {
        let place = self.place(target)?;
        let delete = statement::delete(&place.table, statement::has_key(&place.table, &place.key))?;
        // What refers to it may go, or change, too.
        self.forget_all_columns();
        if let Some(name) = &place.name {
            self.assigned.remove(name);
        }
        done.push(Done { kind: Kind::Sql { statement: Box::new(delete), into: None }, span });
        self.require_found(&place.table, &place.key, span, done)
    }

    /// A call that stands by itself.
    pub(super) fn call_alone(&mut self, call: &Expression, span: Span, done: &mut Vec<Done>) -> Result<()> {
        match &call.kind {
            ExpressionKind::Program(call) => return self.perform(call, span, done),
            ExpressionKind::Query(query) => return self.execute(query, span, done),
            _ => {}
        }
        let ExpressionKind::Call(function, arguments, named) = &call.kind else {
            return self.refused(span, "an expression that stands by itself", "assign it, or leave it out");
        };
        if let ExpressionKind::Attribute(object, name) = &function.kind {
            let is_package =
                matches!(&object.kind, ExpressionKind::Name(name) if *name == self.function.package);
            match (name.as_str(), arguments.as_slice()) {
                ("require", [condition, rest @ ..]) if is_package && rest.len() <= 1 && named.is_empty() => {
                    return self.require(condition, rest.first(), span, done);
                }
                ("delete", []) if named.is_empty() => return self.delete(object, span, done),
                ("insert" | "upsert", []) => {
                    if let Some(table) = self.table(object)? {
                        let insert = self.inserting(&table, named, name == "upsert", &[], span)?;
                        if name == "upsert" {
                            self.is_written(&table, None);
                        }
                        done.push(Done { kind: Kind::Sql { statement: Box::new(insert), into: None }, span });
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        let name = match &function.kind {
            ExpressionKind::Attribute(_, name) | ExpressionKind::Name(name) => name.as_str(),
            _ => "this",
        };
        let instead = hint::method(name).or_else(|| hint::function(name));
        let instead = instead.unwrap_or("call fabius.require, insert, upsert, delete and execute here");
        self.refused(span, &format!("a call of {name}"), instead)
    }

    pub(super) fn require(
        &mut self,
        condition: &Expression,
        message: Option<&Expression>,
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        let (mut condition, can_fail) = self.truth(condition)?;
        let message = match message {
            None => text("a requirement does not hold"),
            Some(message) => {
                let value = self.value(message)?;
                if value.class != Class::Text || value.is_nullable {
                    let what = match value.class {
                        Class::Text => "a message that may be None",
                        _ => "a message that is no str",
                    };
                    return self.refused(message.span, what, "write an f-string");
                }
                // Python makes it whether it is wanted or not, behind the condition.
                if value.can_fail {
                    if can_fail {
                        let holds = Value::of(condition, Class::Boolean, span);
                        condition = self.kept("requirement", holds, done)?.tree;
                    }
                    self.kept("message", value, done)?.tree
                } else {
                    value.tree
                }
            }
        };
        let raise = self.raising(
            (Level::Exception, Some(ABORTED.into())),
            message,
            vec![self.place_of("", span)],
            span,
        );
        let fails = Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(condition)) };
        let then = vec![Done { kind: raise, span }];
        done.push(Done {
            kind: Kind::If { arms: vec![(self.written(fails, span), then)], otherwise: None },
            span,
        });
        Ok(())
    }

    /// A value that is computed now, under a name of its own.
    fn kept(&mut self, what: &str, value: Value, done: &mut Vec<Done>) -> Result<Value> {
        self.loops += 1;
        let (name, span) = (format!("{what} of {}", self.loops), value.span);
        let kind = self.assign(&name, value, span)?;
        done.push(Done { kind, span });
        self.name(&name, span)
    }

    /// `INSERT` of named values; with `upsert`, what is there already of that key gets them.
    fn inserting(
        &mut self,
        table: &Table,
        named: &[(String, Expression)],
        is_upsert: bool,
        returning: &[String],
        span: Span,
    ) -> Result<ast::Statement> {
        let mut values = Vec::new();
        for (column, value) in named {
            let Some(definition) = table.column(column).filter(|column| !column.is_hidden) else {
                return self.no_column(table, column, value.span);
            };
            let value = self.value(value)?;
            self.require_fitting(&value, definition)?;
            values.push((column.clone(), value::given(value.tree, &value.class, &definition.sql_type)?));
        }
        let key = table.primary_key.as_ref().map(|key| key.columns.clone()).unwrap_or_default();
        let missing = key.iter().find(|column| !values.iter().any(|(name, _)| name == *column));
        if is_upsert && (missing.is_some() || key.is_empty()) {
            let name = &table.name.name;
            let what = missing.map_or_else(|| "there is none".to_string(), Clone::clone);
            return self.wrong(span, b"42601", &format!("upsert of {name} needs its key: {what}"));
        }
        let others: Vec<String> =
            values.iter().map(|(name, _)| name.clone()).filter(|name| !key.contains(name)).collect();
        statement::insert(table, values, is_upsert.then_some((key.as_slice(), others.as_slice())), returning)
    }

    /// Refuses a value that no column of this type is given.
    fn require_fitting(&self, value: &Value, column: &Column) -> Result<()> {
        let class = Class::of(&column.sql_type);
        let fits = value.class == class
            || value.class == Class::None
            || value.class.is_pending()
            || (value.class == Class::Whole && matches!(class, Class::Decimal | Class::Float))
            || (value.class == Class::Other(SqlType::JsonB) && column.sql_type == SqlType::Json)
            || (value.class == Class::Text && matches!(column.sql_type.of_values(), SqlType::Enumeration(_)))
            || (is_of_both(&value.class) && is_of_both(&class));
        if fits {
            return Ok(());
        }
        let what = format!("{} for column {}, which is {}", value.class.name(), column.name, class.name());
        let instead = hint::conversion(self.text_of(value.span), &value.class, &class);
        self.refused(value.span, &what, &instead)
    }

    /// Refuses a row that may be `None`.
    pub(super) fn require_present(&self, name: &str, span: Span) -> Result<()> {
        let is_optional = self.rows.get(name).is_some_and(|row| row.is_optional);
        if !is_optional || self.present.contains(name) {
            return Ok(());
        }
        let what = format!("{name} where it may be None");
        self.refused(span, &what, &format!("test it before: if {name} is None: ..."))
    }
}

/// Whether values are moments, which SQL stores with a time zone and without, by that of the session.
fn is_of_both(class: &Class) -> bool {
    matches!(class, Class::Other(SqlType::Timestamp | SqlType::TimestampTz))
}

/// The values of a key: one, or a tuple of several.
pub(super) fn parts_of_key(key: &Expression) -> &[Expression] {
    match &key.kind {
        ExpressionKind::Tuple(parts) => parts,
        _ => std::slice::from_ref(key),
    }
}
