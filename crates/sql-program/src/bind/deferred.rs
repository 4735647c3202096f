//! Constraints that are checked when their transaction ends (ISO/IEC 9075-2, constraint mode; `SET CONSTRAINTS` in
//! PostgreSQL's documentation).
//!
//! A program looks when it writes a row, as always. What holds then holds at the end, unless a later statement, which
//! looks as well, hurts it. So a program gives back only the values that do not hold: its transaction keeps them, and
//! looks once more when it ends.
//!
//! Where a statement has several parts that write (`WITH`), all that references ask for, `CASCADE` too, waits until
//! they have run: none sees what another has set off.

use super::binder::Binder;
use super::constraint::place;
use super::held::held;
use super::stop::Bind;
use super::tree;
use crate::lowered::{Doubtful, Fate, Lowered};
use fabius_program::syntax::tree::{Expression, Parameter, Results, Statement, StatementKind};
use fabius_sql_meaning::catalog::{ForeignKey, Table};

impl Binder<'_> {
    /// Keeps the values of a constraint's columns if it does not hold now.
    pub(super) fn doubt(
        &mut self,
        table: &Table,
        constraint: &str,
        of: Fate,
        (fails, values): (Expression, Vec<Expression>),
    ) -> Bind<()> {
        let number = table.late_constraints().position(|(name, ..)| name == constraint).unwrap_or_default();
        let fate = match of {
            Fate::New => "new",
            Fate::Gone => "gone",
            Fate::Deleted => "deleted",
            Fate::Changed => "changed",
            Fate::Shared => "shared",
        };
        let list = format!("doubtful_{}_{number}_{fate}", table.oid);
        let append = tree::append(&list, values);
        self.emit(tree::when(fails, vec![append], None));
        let (table, constraint) = (table.name.clone(), constraint.to_string());
        self.doubtful.insert(Doubtful { table, constraint, of, list });
        Ok(())
    }

    /// As [`Binder::doubt`], before a row is gone that these columns mean.
    pub(super) fn doubt_referring(
        &mut self,
        child: &std::sync::Arc<Table>,
        key: &ForeignKey,
        columns: &[(String, Expression)],
    ) -> Bind<()> {
        let referred = self.row_exists(child, columns)?;
        let values = columns.iter().map(|(_, value)| value.clone()).collect();
        self.doubt(child, &key.name, Fate::Gone, (referred, values))
    }

    /// Keeps what `CASCADE`, `SET NULL` or `SET DEFAULT` is about until all parts of the statement have run.
    pub(super) fn postpone(
        &mut self,
        child: &Table,
        key: &ForeignKey,
        of: Fate,
        columns: &[(String, Expression)],
    ) -> Bind<()> {
        let values = columns.iter().map(|(_, value)| value.clone()).collect();
        self.doubt(child, &key.name, of, (tree::boolean(true), values))
    }

    /// The lists of what is doubtful, as the last results of the program.
    pub(super) fn with_doubtful(&mut self, mut results: Results) -> Results {
        for doubtful in self.doubtful.clone() {
            let Ok(declaration) = self.declared(&doubtful) else { continue };
            let StatementKind::Let { ty: Some(ty), .. } = &declaration.kind else { continue };
            let last = Parameter { name: tree::name(&doubtful.list), ty: ty.clone() };
            self.block.insert(0, declaration);
            let value = tree::variable(&doubtful.list);
            results = super::inputs::with_result(&mut self.block, results, last, value);
        }
        results
    }

    fn declared(&self, doubtful: &Doubtful) -> Bind<Statement> {
        let Some(table) = self.catalog.tables.get(&doubtful.table) else {
            return super::stop::beyond("a table that is gone");
        };
        let of = table.late_constraints().find(|(name, ..)| **name == doubtful.constraint);
        let mut fields = Vec::new();
        let columns = || of.iter().flat_map(|(_, columns, _)| *columns);
        let new = columns().filter(|_| doubtful.of == Fate::Changed);
        for (at, column) in columns().chain(new).enumerate() {
            let sql_type = &table.columns[place(table, column)?].sql_type;
            fields.push(tree::field(&format!("d{}", at + 1), held(sql_type), true));
        }
        Ok(tree::declare_list(&doubtful.list, fields))
    }
}

impl Lowered {
    /// Takes the lists of what is doubtful off the results of the program.
    pub fn take_doubtful(&self, results: &mut Vec<fabius_value::Value>) -> Vec<fabius_value::Value> {
        results.split_off(results.len().saturating_sub(self.doubtful.len()))
    }
}
