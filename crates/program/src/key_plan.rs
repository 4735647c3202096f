//! Keys that are functions of a call's arguments alone, computed before the call runs.
//!
//! A scheduler that knows them can bring rows near before they are needed (the lazy engine prefetches
//! them into the cache for a whole batch), or request locks in advance. Only keys made of parameters,
//! list fields and constants are in the plan; others are found when the program runs.
//!
//! [`KeyPlan::prefixes`] is for a scheduler that has to know of *every* access: each one is in the plan, with
//! the known prefix of the primary key ([`crate::known_key`]), which has no columns at the worst.

use crate::argument_tuple::{ArgumentTuple, Origin, TuplePlanner};
use crate::arguments::Arguments;
use crate::catalog::Catalog;
use crate::ir::{Program, StepKind};
use crate::known_key::named_rows;
use crate::slice::outline::Outline;
use fabius_value::{ColumnMask, Datum, TableId};

/// The lookups of a program whose keys are functions of its arguments.
#[derive(Clone, Debug, Default)]
pub struct KeyPlan {
    keys: Vec<(TableId, ArgumentTuple)>,
    /// By table of the keys: the columns that the program reads of its rows.
    reads: Vec<(TableId, ColumnMask)>,
}

impl KeyPlan {
    /// The plan of a program.
    pub fn of(program: &Program) -> KeyPlan {
        let outline = Outline::of(program);
        let planner = TuplePlanner::new(program, &outline);
        let mut plan = KeyPlan::default();
        let mut read = Vec::new();
        for &step in &outline.order {
            match &outline.at(step).step.kind {
                StepKind::Locate { row, key } => {
                    planner.tuple(key.iter()).into_iter().for_each(|key| plan.add(outline.table(*row), key));
                }
                StepKind::Read { row, columns } => {
                    read.extend(columns.iter().map(|(column, _)| (outline.table(*row), *column)));
                }
                _ => {}
            }
        }
        for (table, columns) in &mut plan.reads {
            read.iter().filter(|(of, _)| of == table).for_each(|(_, column)| columns.insert(*column));
        }
        plan
    }

    /// The plan of all accesses of a program: lookups, inserts and scans, also those under conditions. Of
    /// each, the leading columns of the primary key that are functions of arguments.
    pub fn prefixes(program: &Program, catalog: &Catalog) -> KeyPlan {
        let mut plan = KeyPlan::default();
        named_rows(program, catalog)
            .into_iter()
            .for_each(|named| plan.add(named.table, named.prefix().clone()));
        plan
    }

    /// Adds a key, unless it is there.
    fn add(&mut self, table: TableId, key: ArgumentTuple) {
        let key = (table, key);
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
        if !self.reads.iter().any(|(of, _)| *of == table) {
            self.reads.push((table, ColumnMask::EMPTY));
        }
    }

    /// The columns that the program reads of the rows of a table, if the plan is [that of lookups](KeyPlan::of).
    #[inline]
    pub fn reads(&self, table: TableId) -> ColumnMask {
        self.reads.iter().find(|(of, _)| *of == table).map_or(ColumnMask::EMPTY, |(_, columns)| *columns)
    }

    /// The planned keys: the table, and how many columns.
    pub fn keys(&self) -> impl Iterator<Item = (TableId, usize)> + '_ {
        self.keys.iter().map(|(table, key)| (*table, key.len()))
    }

    /// The place of a key among the planned ones.
    pub fn position(&self, table: TableId, key: &ArgumentTuple) -> Option<usize> {
        self.keys.iter().position(|(of, planned)| *of == table && planned == key)
    }

    /// Where the first column of each planned key comes from, if that is known.
    pub fn first_columns(&self) -> impl Iterator<Item = (TableId, Option<Origin>)> + '_ {
        self.keys.iter().map(|(table, key)| (*table, key.first()))
    }

    /// The tables of the keys, one for each.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.keys.iter().map(|(table, _)| *table)
    }

    /// The list parameters whose elements keys vary with, in order, each of them once; `None` stands for keys that do
    /// not vary.
    pub fn lists(&self) -> Vec<Option<u16>> {
        let mut lists: Vec<_> = self.keys.iter().map(|(_, key)| key.list()).collect();
        lists.sort_unstable();
        lists.dedup();
        lists
    }

    /// Whether an element, or the scalars if there are no elements, tells which key is meant.
    pub fn has_one_for_each_element(&self) -> bool {
        let lists = self.lists();
        self.keys.len() == 1 || lists.len() == self.keys.len() && !lists.contains(&None)
    }

    /// Computes the keys of a call with these arguments.
    pub fn for_each<'k>(
        &'k self,
        arguments: Arguments<'k, '_>,
        mut visit: impl FnMut(TableId, &[Datum<'k>]),
    ) {
        self.for_each_element(arguments, |table, values, _| visit(table, values));
    }

    /// Computes the keys of a call with these arguments, with the element that each key varies with: the list's number
    /// among the parameters, and the row; whether no key was left out.
    #[inline]
    pub fn for_each_element<'k>(
        &'k self,
        arguments: Arguments<'k, '_>,
        mut visit: impl FnMut(TableId, &[Datum<'k>], Option<(u16, usize)>),
    ) -> bool {
        let mut has_all = true;
        for (table, key) in &self.keys {
            key.for_each(arguments, |values, element| {
                // A null finds no row.
                let is_whole = !values.iter().any(|value| value.is_null());
                has_all &= is_whole;
                if is_whole {
                    visit(*table, values, element);
                }
            });
        }
        has_all
    }
}
