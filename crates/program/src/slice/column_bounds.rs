//! What values the columns of tables can have, by induction over calls, and which tables lose rows: what proofs may
//! assume before any call runs.
//!
//! Every value of a column was there when the engine began, or a call has written it. What a program writes is found
//! by an abstract run under the bounds that hold before ([`super::proof`]); they are widened until no program leaves
//! them. Additions do not widen a column at once: they move it, by so much for each call, and there are as many calls
//! as sequence numbers at most:
//!
//! ```text
//! insert counters { id: id, n: 0 }        n in [0, 0]
//! for id in ids { counters[id].n += 1 }   adds [0, 2^26] for each call       n in [0, 2^32 * 2^26]: fits bigint
//! records[key].sum = sum * 31 % 1000      sum in [0, 999], as it has been from the beginning
//! ```
//!
//! Nothing is assumed of arguments beyond their types.

use super::Assumptions;
use super::delta::delta_shapes;
use super::interval::Interval;
use super::knowledge::type_range;
use super::outline::Outline;
use super::proof::{LONG, Proofs, prove};
use crate::catalog::Catalog;
use crate::context::DeltaOperator;
use crate::ir::{Program, VariableId};
use fabius_value::{ColumnId, TableId};
use std::collections::BTreeSet;

/// Programs beyond which nothing is proven: whoever makes a program of each statement must not wait for proofs.
const PROGRAMS_MAX: usize = 128;
/// Rounds over all programs before bounds that still change are given up.
const PATIENCE: usize = 4;
/// Calls that bounds are made for at first,
const CALLS: u64 = 1 << 32;
/// and by how many times as many when there are more.
const MORE_CALLS: u64 = 1 << 8;

/// What is known of a column of exact numbers.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// What is written otherwise than by adding, or was there.
    values: Interval,
    /// What a call adds.
    added: Interval,
    limit: Interval,
}

/// What values columns can have.
#[derive(Debug)]
pub struct ColumnBounds {
    /// By table and column; `None` if it has no exact numbers.
    tables: Vec<Vec<Option<Bound>>>,
    /// By table: whether a program deletes rows.
    loses_rows: Vec<bool>,
    /// How many calls there are at most.
    calls: u64,
    /// How many programs have been taken in.
    programs: usize,
}

impl Default for ColumnBounds {
    fn default() -> ColumnBounds {
        ColumnBounds { tables: Vec::new(), loses_rows: Vec::new(), calls: CALLS, programs: 0 }
    }
}

impl ColumnBounds {
    /// Takes in which values are there, before any call.
    pub fn include(&mut self, catalog: &Catalog, table: TableId, column: ColumnId, values: Interval) {
        self.add_tables(catalog);
        if let Some(bound) = &mut self.tables[table.0 as usize][usize::from(column.0)] {
            bound.values = bound.values.hull(values);
        }
    }

    /// How many calls the bounds hold for.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Takes in what programs write, all that have been defined, and of which some may be called from now on, so that
    /// the bounds hold for so many calls; gives the tables whose bounds are wider than before, or which lose rows
    /// since.
    pub fn follow(&mut self, catalog: &Catalog, programs: &[&Program], calls: u64) -> BTreeSet<TableId> {
        self.add_tables(catalog);
        let has_more_calls = calls >= self.calls;
        let mut wider = BTreeSet::new();
        if has_more_calls {
            wider.extend(catalog.table_numbers().map(|(table, _)| table));
        }
        while calls >= self.calls && self.calls < u64::MAX {
            self.calls = self.calls.saturating_mul(MORE_CALLS);
        }
        let known = std::mem::replace(&mut self.programs, programs.len());
        if programs.len() > PROGRAMS_MAX {
            self.give_up(&mut wider);
            return wider;
        }
        // Those that have been taken in before stay within bounds that have not changed.
        let mut next = if has_more_calls { programs } else { &programs[known..] };
        for round in 0.. {
            let mut changes = BTreeSet::new();
            for program in next {
                self.widen(program, catalog, round >= PATIENCE, &mut changes);
            }
            if changes.is_empty() {
                break;
            }
            wider.append(&mut changes);
            next = programs;
        }
        wider
    }

    fn add_tables(&mut self, catalog: &Catalog) {
        for (_, table) in catalog.table_numbers().skip(self.tables.len()) {
            let columns = table.columns.iter().map(|column| {
                let zero = Interval::only(0);
                let bound = Bound { values: zero, added: zero, limit: type_range(column.data_type) };
                column.data_type.is_exact().then_some(bound)
            });
            self.tables.push(columns.collect());
            self.loses_rows.push(false);
        }
    }

    fn give_up(&mut self, wider: &mut BTreeSet<TableId>) {
        for (table, columns) in (0..).map(TableId).zip(&mut self.tables) {
            for bound in columns.iter_mut().flatten().filter(|bound| bound.values != bound.limit) {
                bound.values = bound.limit;
                wider.insert(table);
            }
        }
        for (table, loses_rows) in (0..).map(TableId).zip(&mut self.loses_rows) {
            if !std::mem::replace(loses_rows, true) {
                wider.insert(table);
            }
        }
    }

    /// Widens the bounds by what a program writes, or gives them up where it leaves them; notes the tables.
    fn widen(
        &mut self,
        program: &Program,
        catalog: &Catalog,
        gives_up: bool,
        changes: &mut BTreeSet<TableId>,
    ) {
        let outline = Outline::of(program);
        let shapes = delta_shapes(&outline, catalog);
        let is_long = program.step_count > LONG;
        let proofs = if is_long { Proofs::default() } else { prove(&outline, catalog, &shapes, self) };
        for (_, table, _) in outline.existence_changes.iter().filter(|(_, _, is_insert)| !is_insert) {
            if !std::mem::replace(&mut self.loses_rows[table.0 as usize], true) {
                changes.insert(*table);
            }
        }
        for site in &outline.writes {
            let at = usize::from(site.step.0);
            let Some(bound) = &mut self.tables[site.table.0 as usize][usize::from(site.column.0)] else {
                continue;
            };
            let shape = shapes.iter().position(|shape| shape.site == *site);
            let adds =
                |shape: &usize| shapes[*shape].operator == DeltaOperator::Add && !proofs.operands[*shape].1;
            let (kept, more) = match shape.filter(|_| !is_long).filter(adds) {
                Some(shape) => {
                    let column = (site.table, site.column);
                    let sites = outline.writes.iter().filter(|other| (other.table, other.column) == column);
                    let turns = proofs.turns[at].saturating_mul(sites.count() as u128);
                    (&mut bound.added, proofs.operands[shape].0.repeated(turns))
                }
                None if is_long => (&mut bound.values, bound.limit),
                None => {
                    let value = proofs.values[at].get(site.index);
                    (&mut bound.values, value.copied().unwrap_or(Interval::EMPTY))
                }
            };
            let more = more.meet(bound.limit);
            if !kept.covers(more) {
                *kept = if gives_up { bound.limit } else { kept.hull(more) };
                changes.insert(site.table);
            }
        }
    }
}

impl Assumptions for ColumnBounds {
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        let bound = self.tables.get(table.0 as usize)?.get(usize::from(column.0))?.as_ref()?;
        Some(bound.values.plus(bound.added.repeated(self.calls.into())).meet(bound.limit))
    }

    fn parameter(&self, _: VariableId, _: u16) -> Option<Interval> {
        None
    }

    fn loses_rows(&self, table: TableId) -> bool {
        self.loses_rows.get(table.0 as usize).is_none_or(|loses_rows| *loses_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;
    use fabius_value::DataType;

    const INSERT: &str = "procedure add(a: int, m: bigint) { insert t { a: a, n: 7, m: m } }";

    /// What is assumed of `n` after these procedures, for so many calls.
    fn assumed(procedures: &str, calls: u64) -> Interval {
        let text =
            format!("table t {{ a: int, n: bigint, m: bigint, primary key (a) }} {INSERT} {procedures}");
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("it verifies");
        let mut bounds = ColumnBounds::default();
        follow(&mut bounds, &catalog, calls);
        bounds.column(TableId(0), ColumnId(1)).expect("it has exact numbers")
    }

    fn follow(bounds: &mut ColumnBounds, catalog: &Catalog, calls: u64) -> usize {
        let programs: Vec<&Program> = catalog.procedures().map(|(_, program)| &**program).collect();
        bounds.follow(catalog, &programs, calls).len()
    }

    /// Goal: bounds are what programs write; additions move them by what all calls add.
    #[test]
    fn bounds_are_what_programs_write() {
        let whole = Interval::new(i64::MIN.into(), i64::MAX.into());
        let calls = i128::from(CALLS);
        assert_eq!(assumed("", 0), Interval::new(0, 7));
        assert_eq!(assumed("procedure p(x: int) { t[x].n = x }", 0), type_range(DataType::Int));
        assert_eq!(assumed("procedure p(x: bigint) { t[1].n = x }", 0), whole);
        assert_eq!(assumed("procedure p(x: int) { t[x].n = t[x].m }", 0), whole, "an argument is in m");
        assert_eq!(assumed("procedure p(x: int) { t[x].n = t[x].n * 31 % 1000 }", 0), Interval::new(0, 999));
        assert_eq!(assumed("procedure p(x: int) { t[x].n += 3 }", 0), Interval::new(0, 7 + 3 * calls));
        assert_eq!(assumed("procedure p(x: int) { t[x].n -= 2 t[x].n += 1 }", 0).low, -4 * calls);
        assert_eq!(assumed("procedure p(x: int) { t[x].n += 3 }", CALLS).high, 7 + 3 * 256 * calls);
        assert_eq!(assumed("procedure p(x: int) { t[x].n = t[x].n * 3 }", 0), whole, "it grows and grows");
        let turns = assumed("procedure p(l: list of int) { for x in l { t[x].n += 1 } }", 0);
        assert!(turns.high > calls && !turns.covers(whole), "{turns}");
        let long = "t[1].m = 1 ".repeat(LONG);
        assert_eq!(assumed(&format!("procedure p(x: int) {{ t[x].n = 1 {long} }}"), 0), whole);
    }

    /// Goal: whoever follows is told of tables whose bounds are wider; rows that were there count; too many programs
    /// prove nothing.
    #[test]
    fn bounds_grow_with_programs() {
        let text = format!(
            "table t {{ a: int, n: bigint, m: int, primary key (a) }} {}",
            INSERT.replace("m: big", "m: ")
        );
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("it verifies");
        let mut bounds = ColumnBounds::default();
        bounds.include(&catalog, TableId(0), ColumnId(1), Interval::new(-5, -4));
        assert_eq!(follow(&mut bounds, &catalog, 0), 1);
        assert_eq!(bounds.column(TableId(0), ColumnId(1)), Some(Interval::new(-5, 7)));
        assert_eq!(follow(&mut bounds, &catalog, 0), 0);
        let calls = bounds.calls();
        assert_eq!(follow(&mut bounds, &catalog, calls), 1);
        let more =
            verify::load("procedure set(x: int) { t[x].n = 9 }", "test", &catalog).expect("it verifies");
        assert_eq!(follow(&mut bounds, &more, 0), 1);
        assert_eq!(bounds.column(TableId(0), ColumnId(1)), Some(Interval::new(-5, 9)));
        let many: String =
            (0..PROGRAMS_MAX).map(|at| format!("procedure p{at}(x: int) {{ t[x].n = 1 }} ")).collect();
        let many = verify::load(&many, "test", &more).expect("it verifies");
        assert_eq!(follow(&mut bounds, &many, 0), 1);
        assert_eq!(bounds.column(TableId(0), ColumnId(1)), Some(type_range(DataType::BigInt)));
        assert_eq!(follow(&mut bounds, &many, 0), 0);
    }
}
