//! What happens to rows that refer to one that is deleted, or whose key changes: `CASCADE`, `SET NULL`, `SET DEFAULT`.
//!
//! Where the tables that a `DELETE` goes on to do not lead back to themselves, it is one loop in another. Where they do
//! (a tree of comments, say), the rows wait in lists, one for each table of the circle, and are taken turn by turn when
//! the statement has deleted its own:
//!
//! ```text
//! for round in 1..200 { for turn in 1..(something waits ? round * round : 0) {
//!     take the lists; for each of their rows that is still there { the rows that refer to it wait; delete it }
//! }}
//! require that nothing waits
//! ```

use super::binder::{Binder, Waiting};
use super::bound::Bound;
use super::constraint::{filtered, place, scan_for};
use super::key_change::Moving;
use super::scope::Relation;
use super::stop::Bind;
use super::tree;
use super::write::Afterwards;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, StatementKind};
use fabius_sql_meaning::catalog::{ForeignKey, ReferentialAction, Table};
use fabius_sql_meaning::output::OutputColumn;
use fabius_value::DataType;
use std::sync::Arc;

/// Actions other than deletes go this deep from a table to itself.
const DEPTH: usize = 8;
/// Rounds in which waiting rows are taken: the nth has n * n turns at most, and each turn goes one row deeper.
const ROUNDS: i128 = 200;

/// Fields for keys: `k1`, `k2` ...
fn key_field(at: usize) -> String {
    format!("k{}", at + 1)
}

/// A key of an element of a list of keys.
pub(super) fn key_of(child: &Table, element: &str) -> Vec<Expression> {
    let names = Relation::key_columns(child);
    (0..names.len()).map(|at| tree::column(tree::loop_row(element), &key_field(at), false)).collect()
}

impl<'a> Binder<'a> {
    /// Does to the rows of a child that refer to a row of its parent what the key says; with the values that they get
    /// by `ON UPDATE CASCADE`.
    pub(super) fn follow(
        &mut self,
        (parent, child): (&Table, &Arc<Table>),
        key: &ForeignKey,
        columns: &[(String, Expression)],
        (action, new): (ReferentialAction, Option<&[Bound]>),
    ) -> Bind<()> {
        self.writes.insert(child.name.clone());
        if action == ReferentialAction::Cascade && new.is_none() {
            return self.delete_referring(child, columns);
        }
        let again = self.following.iter().filter(|name| **name == child.name).count();
        if again >= DEPTH {
            // Deeper chains are refused when they are met, never cut short.
            let referred = self.row_exists(child, columns)?;
            let message = format!("references of \"{}\" are nested too deep", child.name.name);
            self.emit(tree::require(tree::not(referred), b"54001", message, None));
            return Ok(());
        }
        self.following.push(child.name.clone());
        let followed = self.change_referring(child, key, columns, (action, new));
        self.following.pop();
        followed?;
        // The default may be what is going.
        match action {
            ReferentialAction::SetDefault => self.refuse(parent, child, key, columns),
            _ => Ok(()),
        }
    }

    /// A list for keys of a table.
    pub(super) fn declare_keys(&mut self, table: &Table, stem: &str) -> String {
        let list = self.name(stem);
        let types = super::scope::key_types(table).into_iter().enumerate();
        let fields = types.map(|(at, data_type)| tree::field(&key_field(at), data_type, false)).collect();
        self.emit(tree::declare_list(&list, fields));
        list
    }

    /// Adds the keys of the rows that refer to a list; `any` says whether there is one.
    fn collect_referring(
        &mut self,
        child: &Table,
        columns: &[(String, Expression)],
        list: &str,
        any: Option<&str>,
    ) {
        let row = self.name("row");
        let names = Relation::key_columns(child);
        let found = names.iter().map(|name| tree::column(tree::loop_row(&row), name, false)).collect();
        let mut block = vec![tree::append(list, found)];
        block.extend(any.map(|any| tree::assign(any, tree::boolean(true))));
        let scan = filtered(scan_for(child, columns), &row);
        self.emit(tree::for_each(&row, scan, block));
    }

    fn delete_referring(&mut self, child: &Arc<Table>, columns: &[(String, Expression)]) -> Bind<()> {
        if let Some(waiting) = self.waiting.iter().find(|waiting| waiting.table == child.name) {
            let (list, any) = (waiting.list.clone(), waiting.any.clone());
            self.collect_referring(child, columns, &list, Some(&any));
            return Ok(());
        }
        if !self.is_in_circle(child) {
            let list = self.declare_keys(child, "referring");
            self.collect_referring(child, columns, &list, None);
            return self
                .second_pass(&list, |binder, each| binder.delete_if_there(child, key_of(child, each)));
        }
        self.with_circle(child, |binder| binder.delete_referring(child, columns))
    }

    /// Whether deletes of a table's rows lead back to it.
    pub(super) fn is_in_circle(&self, table: &Arc<Table>) -> bool {
        self.reached(table).iter().any(|it| it.name == table.name)
    }

    /// Does something to rows of a table; if deletes of them lead back to it, deletes what refers to them then.
    pub(super) fn with_circle(
        &mut self,
        table: &Arc<Table>,
        act: impl FnOnce(&mut Self) -> Bind<()>,
    ) -> Bind<()> {
        let circle = self.circle(table);
        if circle.is_empty() {
            return act(self);
        }
        let any = self.name("waits");
        let boolean = Some(tree::scalar_type(DataType::Boolean, false));
        self.emit(tree::declare(&any, true, boolean, tree::boolean(false)));
        let before = self.waiting.len();
        for table in &circle {
            let list = self.declare_keys(table, "referring");
            self.waiting.push(Waiting { table: table.name.clone(), list, any: any.clone() });
        }
        act(self)?;
        let (turn, ()) = self.nested(|binder| {
            binder.emit(tree::assign(&any, tree::boolean(false)));
            circle.iter().try_for_each(|table| binder.take_waiting(table))
        })?;
        self.waiting.truncate(before);
        let (round, counter) = (self.name("round"), self.name("turn"));
        let turns = tree::binary(Op::Multiply, tree::variable(&round), tree::variable(&round));
        let none = tree::cast(tree::integer(0), DataType::BigInt);
        let turns = StatementKind::ForRange {
            variable: tree::name(&counter),
            from: tree::integer(1),
            to: tree::choice(tree::variable(&any), turns, none),
            body: vec![tree::when(tree::variable(&any), turn, None)],
        };
        self.emit(tree::statement(StatementKind::ForRange {
            variable: tree::name(&round),
            from: tree::integer(1),
            to: tree::integer(ROUNDS),
            body: vec![tree::statement(turns)],
        }));
        let message = format!("references of \"{}\" are nested too deep", table.name.name);
        self.emit(tree::require(tree::not(tree::variable(&any)), b"54001", message, None));
        Ok(())
    }

    /// The tables that deletes of a table's rows lead to and that lead back to it, with it; none if none do.
    fn circle(&self, table: &Arc<Table>) -> Vec<Arc<Table>> {
        let reached = self.reached(table);
        let leads_back = |other: &&Arc<Table>| self.reached(other).iter().any(|it| it.name == table.name);
        reached.iter().filter(leads_back).cloned().collect()
    }

    /// The tables to which deletes of a table's rows lead.
    fn reached(&self, table: &Arc<Table>) -> Vec<Arc<Table>> {
        let cascades = |key: &ForeignKey| key.on_delete == ReferentialAction::Cascade;
        self.catalog.followers(&table.name, cascades).into_iter().cloned().collect()
    }

    /// Deletes the rows that wait of a table; those that refer to them wait then.
    fn take_waiting(&mut self, table: &Arc<Table>) -> Bind<()> {
        let Some(waiting) = self.waiting.iter().find(|waiting| waiting.table == table.name) else {
            return super::stop::beyond("rows that nobody waits for");
        };
        let waiting = waiting.list.clone();
        let taken = self.declare_keys(table, "referring");
        let each = self.name("each");
        let moved = vec![tree::append(&taken, key_of(table, &each))];
        self.emit(tree::for_list(&each, &waiting, moved));
        self.emit(tree::assign(
            &waiting,
            tree::expression(fabius_program::syntax::tree::ExpressionKind::EmptyList),
        ));
        self.second_pass(&taken, |binder, each| binder.delete_if_there(table, key_of(table, each)))
    }

    /// Deletes a row, which may have gone by another way.
    fn delete_if_there(&mut self, table: &Arc<Table>, key: Vec<Expression>) -> Bind<()> {
        let relation = Binder::keyed(table, None, key.clone());
        let old = self.current(&relation)?;
        let row = tree::keyed_row(&table.storage, key);
        let (block, ()) = self.nested(|binder| {
            binder.before_delete(table, &old)?;
            binder.emit(tree::delete(row.clone()));
            Ok(())
        })?;
        self.emit(tree::when(tree::exists(row), block, None));
        Ok(())
    }

    fn change_referring(
        &mut self,
        child: &Arc<Table>,
        key: &ForeignKey,
        columns: &[(String, Expression)],
        (action, new): (ReferentialAction, Option<&[Bound]>),
    ) -> Bind<()> {
        let list = self.declare_keys(child, "referring");
        self.collect_referring(child, columns, &list, None);
        let assignments = |binder: &mut Binder<'a>, _: &str| {
            let mut assignments = Vec::new();
            for (at, name) in key.columns.iter().enumerate() {
                let column = place(child, name)?;
                let definition = child.columns[column].clone();
                let value = match (action, new) {
                    (ReferentialAction::Cascade, Some(new)) => Bound::computed(
                        new[at].expression.clone(),
                        definition.sql_type.clone(),
                        new[at].nullable,
                    ),
                    (ReferentialAction::SetDefault, _) => binder.default_value(&definition)?,
                    _ => Bound::literal(None),
                };
                let value = binder.stored(value, &definition.name, &definition.sql_type)?;
                assignments.push((column, value));
            }
            Ok(assignments)
        };
        // What is referred to changes with it, or nothing is: only a default is still to be looked up.
        let along = Some(key).filter(|_| action != ReferentialAction::SetDefault);
        if Relation::key_columns(child).iter().any(|name| key.columns.contains(name)) {
            let key = |each: &str| key_of(child, each);
            let moving = Moving {
                table: child,
                list: &list,
                alias: None,
                key: &key,
                assignments: &assignments,
                along,
            };
            let mut body = |_: &mut Binder<'a>, _: &[OutputColumn], _: Vec<Bound>| Ok(());
            return self.move_rows(&moving, &mut Afterwards { count: None, items: None, body: &mut body });
        }
        self.second_pass(&list, |binder, each| {
            let relation = Binder::keyed(child, None, key_of(child, each));
            let assignments = assignments(binder, each)?;
            binder.change_row(child, &relation, assignments, along)
        })
    }
}
