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
//! determine. A table that no call of the graph writes has no conflicts, hence no actions.

use fabius_engine::Definitions;
use fabius_program::access::accesses;
use fabius_program::catalog::Catalog;
use fabius_program::ir::Program;
use fabius_program::key_plan::KeyPlan;
use fabius_value::TableId;
use std::sync::Arc;

/// A program's accesses.
pub struct Decomposition {
    /// The keys, as functions of arguments.
    pub keys: KeyPlan,
    /// By table accessed: how many leading columns of its primary key are always known.
    grains: Vec<(TableId, u8)>,
    /// Tables that may be written.
    writes: Vec<TableId>,
}

impl Decomposition {
    fn of(program: &Program, catalog: &Catalog) -> Decomposition {
        let keys = KeyPlan::prefixes(program, catalog);
        let mut grains: Vec<(TableId, u8)> = keys.keys().map(|(table, known)| (table, known as u8)).collect();
        let mut writes = Vec::new();
        for access in accesses(program, catalog).iter().filter(|access| access.writes_anything()) {
            writes.push(access.table);
            let schema = catalog.table(access.table);
            let unique = schema.indexes.iter().filter(|index| index.unique);
            for index in unique.filter(|index| index.columns.iter().any(|c| access.writes.contains(*c))) {
                let bound = schema.primary_key.iter().take_while(|column| index.columns.contains(column));
                grains.push((access.table, bound.count() as u8));
            }
        }
        Decomposition { keys, grains, writes }
    }
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

/// The grains of one graph, by table.
pub struct Grains(Vec<Option<u8>>);

impl Grains {
    /// The grains for calls of these procedures.
    pub fn of(
        decompositions: &Decompositions,
        procedures: impl Iterator<Item = usize>,
        tables: usize,
    ) -> Grains {
        let mut seen = vec![false; decompositions.0.len()];
        let mut grains = vec![u8::MAX; tables];
        let mut written = vec![false; tables];
        for procedure in procedures {
            if seen.get(procedure).copied() != Some(false) {
                continue;
            }
            seen[procedure] = true;
            let decomposition = &decompositions.0[procedure];
            for (table, grain) in &decomposition.grains {
                let at = &mut grains[table.0 as usize];
                *at = (*at).min(*grain);
            }
            decomposition.writes.iter().for_each(|table| written[table.0 as usize] = true);
        }
        let both = grains.into_iter().zip(written);
        Grains(both.map(|(grain, written)| written.then_some(grain)).collect())
    }

    /// By how many columns of its primary key a table's records are told apart; `None` if nothing in the
    /// graph writes the table.
    #[inline]
    pub fn get(&self, table: TableId) -> Option<usize> {
        self.0[table.0 as usize].map(usize::from)
    }
}
