//! What a call will access, known before it runs (LADS, sections 3.1, 3.3.2 and 4.2.3).
//!
//! A call is decomposed into record actions by the keys that are functions of its arguments, both branches
//! of every condition included. Where a key depends on what is read, or a range is scanned, actions are
//! coarser: all calls of one graph name the records of a table by as many leading columns of its primary key
//! as all of them know beforehand, the table's *grain*:
//!
//! ```text
//! new_order(w, d, ..)   orders[w, d, ?]   \
//! delivery(w, ..)       orders[w, ?, ..]   >   grain 1: one queue for each warehouse's orders
//! payment(w, d, c, ..)  customer[w, d, c]      grain 3: a queue for each record
//! ```
//!
//! A unique index binds rows with other keys together: whoever writes into it needs a grain that its columns
//! determine. A table that no call of a round writes has no conflicts, hence no actions. One whose rows are
//! written, but neither come nor go, is *still*: whether a row is there is known without waiting for a turn.
//!
//! The actions of a call are *independent* if nothing that one of them reads decides the call's outcome, its
//! keys, or what another writes: they have no logical dependencies (definition 2), and need not know of each
//! other. The analysis of phases says so: the now-phase, which is the condition check of section 3.3.1, reads
//! nothing then.

use fabius_engine::Definitions;
use fabius_program::access::{Access, AccessKind, accesses};
use fabius_program::catalog::Catalog;
use fabius_program::ir::Program;
use fabius_program::key_plan::KeyPlan;
use fabius_program::slice::is_independent;
use fabius_value::TableId;
use std::sync::Arc;

/// A program's accesses.
pub struct Decomposition {
    /// The keys, as functions of arguments.
    pub keys: KeyPlan,
    /// By table accessed: how many leading columns of its primary key are always known.
    grains: Vec<(TableId, u8)>,
    /// Tables that may be written, and whether rows may come or go there.
    writes: Vec<(TableId, bool)>,
    /// Whether record actions are independent.
    is_independent: bool,
    has_results: bool,
}

impl Decomposition {
    fn of(program: &Program, catalog: &Catalog) -> Decomposition {
        let keys = KeyPlan::prefixes(program, catalog);
        let mut grains: Vec<(TableId, u8)> = keys.keys().map(|(table, known)| (table, known as u8)).collect();
        let mut writes = Vec::new();
        let accesses = accesses(program, catalog);
        for access in accesses.iter().filter(|access| access.writes_anything()) {
            writes.push((access.table, access.kind == AccessKind::Insert || access.deletes));
            let schema = catalog.table(access.table);
            let unique = schema.indexes.iter().filter(|index| index.unique);
            for index in unique.filter(|index| index.columns.iter().any(|c| access.writes.contains(*c))) {
                let bound = schema.primary_key.iter().take_while(|column| index.columns.contains(column));
                grains.push((access.table, bound.count() as u8));
            }
        }
        let is_independent = are_independent(program, catalog, &accesses);
        Decomposition { keys, grains, writes, is_independent, has_results: !program.results.is_empty() }
    }
}

/// Whether nothing that is read decides anything, or goes into what is written elsewhere.
fn are_independent(program: &Program, catalog: &Catalog, accesses: &[Access]) -> bool {
    // No index tells more rows apart than the primary key does, and no entry of one depends on a turn.
    let is_record = |access: &Access| {
        access.kind == AccessKind::Row && !access.deletes && catalog.table(access.table).indexes.is_empty()
    };
    accesses.iter().all(is_record) && is_independent(program, catalog)
}

/// The decompositions of all procedures, by number.
#[derive(Default)]
pub struct Decompositions(Vec<Arc<Decomposition>>);

impl Decompositions {
    /// Adds those of procedures that are new.
    pub fn follow(&mut self, definitions: &Definitions) {
        for procedure in definitions.procedures.iter_from(self.0.len()) {
            self.0.push(Arc::new(Decomposition::of(&procedure.program, &definitions.catalog)));
        }
    }

    /// That of a procedure, if there is one of this number.
    pub fn get(&self, procedure: usize) -> Option<&Decomposition> {
        self.0.get(procedure).map(|decomposition| &**decomposition)
    }
}

/// How the calls of one round tell records apart.
pub struct Grains {
    tables: Vec<Grain>,
    /// By procedure: whether a call's actions are executed independently.
    divisible: Vec<Divisible>,
}

/// What is known of a table.
#[derive(Clone, Copy)]
struct Grain {
    columns: u8,
    is_whole: bool,
    is_written: bool,
    is_still: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Divisible {
    Never,
    WithoutResult,
    Always,
}

impl Grains {
    /// The grains for calls of these procedures.
    pub fn of(
        decompositions: &Decompositions,
        procedures: impl Iterator<Item = usize>,
        definitions: &Definitions,
    ) -> Grains {
        let nothing = Grain { columns: u8::MAX, is_whole: false, is_written: false, is_still: true };
        let mut tables = vec![nothing; definitions.tables.len()];
        let mut called = vec![false; decompositions.0.len()];
        procedures.for_each(|procedure| {
            if let Some(called) = called.get_mut(procedure) {
                *called = true;
            }
        });
        let all = || decompositions.0.iter().zip(&called).filter(|(_, called)| **called);
        for (decomposition, _) in all() {
            for (table, columns) in &decomposition.grains {
                let grain = &mut tables[table.0 as usize];
                grain.columns = grain.columns.min(*columns);
                let key = &definitions.table(*table).schema().primary_key;
                grain.is_whole = usize::from(grain.columns) == key.len();
            }
            for (table, comes_or_goes) in &decomposition.writes {
                let grain = &mut tables[table.0 as usize];
                grain.is_written = true;
                grain.is_still &= !comes_or_goes;
            }
        }
        let mut divisible = vec![Divisible::Never; called.len()];
        for (at, decomposition) in decompositions.0.iter().enumerate().filter(|(at, _)| called[*at]) {
            let is_plain = |(table, _): &(TableId, u8)| {
                let grain = &tables[table.0 as usize];
                grain.is_still && (grain.is_whole || !grain.is_written)
            };
            if decomposition.is_independent && decomposition.grains.iter().all(is_plain) {
                divisible[at] = match decomposition.has_results {
                    true => Divisible::WithoutResult,
                    false => Divisible::Always,
                };
            }
        }
        Grains { tables, divisible }
    }

    /// By how many columns of its primary key a table's records are told apart; `None` if nothing in the
    /// round writes the table.
    #[inline]
    pub fn get(&self, table: TableId) -> Option<usize> {
        let grain = &self.tables[table.0 as usize];
        grain.is_written.then_some(usize::from(grain.columns))
    }

    /// Whether each record has a queue of its own, and a row, or none, from the round's beginning to its end.
    #[inline]
    pub fn is_still(&self, table: TableId) -> bool {
        let grain = &self.tables[table.0 as usize];
        grain.is_written && grain.is_still && grain.is_whole
    }

    /// Whether the actions of a call are executed independently of each other.
    #[inline]
    pub fn is_divisible(&self, procedure: usize, wants_result: bool) -> bool {
        match self.divisible.get(procedure) {
            Some(Divisible::Always) => true,
            Some(Divisible::WithoutResult) => !wants_result,
            Some(Divisible::Never) | None => false,
        }
    }
}
