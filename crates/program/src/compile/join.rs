//! Lookups by the rows of a scan: index joins.
//!
//! ```text
//! for ol in order_line[w, d, 1 .. 20] {                    ScanOpen, and a join: stock [w, column ol_i_id] is
//!     if stock[w, ol.ol_i_id].s_quantity < threshold {     looked up for each row
//! ```
//!
//! An engine that is told so can bring near what will be looked up for some rows, before it gives out the first of
//! them. Only what is looked up for every row is a join: in the filter if there is one, or else in the body, before it
//! branches. Of loops within each other the innermost has joins: it has most of the turns.

use super::code::{JoinPlan, KeyColumnPlan};
use super::{Compiler, Part};
use crate::ir::{Expression, ExpressionKind, Step, StepKind, VariableId};
use fabius_value::ColumnId;

/// Joins of one scan, at most: those of all rows that are taken together are to be found in any order
/// (`crates/engine/src/expected.rs`).
const JOINS_MAX: usize = 2;

impl<'p> Compiler<'p> {
    /// The joins of a scan. Phases have none: of what they look up, most is known from their arguments and brought
    /// near by that.
    pub(super) fn joins(&mut self, scan: &'p Step) -> Box<[JoinPlan]> {
        let StepKind::ForScan { row: scanned, scan: range, body } = &scan.kind else { return Box::default() };
        if !matches!(self.part, Part::Whole | Part::Effects) || self.has_inner_scan(scan) {
            return Box::default();
        }
        let steps = range.filter.as_ref().map_or(body, |filter| &filter.steps);
        let mut columns: Vec<(VariableId, ColumnId)> = Vec::new();
        let mut joins: Vec<JoinPlan> = Vec::new();
        for step in steps {
            match &step.kind {
                StepKind::Read { row, columns: read } if row == scanned => {
                    columns.extend(read.iter().map(|&(column, variable)| (variable, column)));
                }
                StepKind::Locate { row, key } if joins.len() < JOINS_MAX && self.concerns(step) => {
                    let table = self.outline.table(*row);
                    let key: Option<Box<[_]>> =
                        key.iter().map(|value| self.join_column(value, scan, &columns)).collect();
                    if let Some(key) = key
                        && key.iter().any(|column| matches!(column, KeyColumnPlan::OfRow(_)))
                        && self.catalog.table(table).hash
                    {
                        joins.push(JoinPlan { table, key });
                    }
                }
                StepKind::If { .. } | StepKind::ForList { .. } | StepKind::ForRange { .. } => break,
                _ => {}
            }
        }
        joins.into()
    }

    fn has_inner_scan(&self, scan: &Step) -> bool {
        let is_scan = |step| matches!(self.outline.at(step).step.kind, StepKind::ForScan { .. });
        self.outline.inside(scan.id).any(is_scan)
    }

    /// A column of a key that is one of the scanned row, or does not change while the scan lasts.
    fn join_column(
        &mut self,
        value: &'p Expression,
        scan: &Step,
        columns: &[(VariableId, ColumnId)],
    ) -> Option<KeyColumnPlan> {
        match &value.kind {
            ExpressionKind::Constant(value) => Some(KeyColumnPlan::Register(self.builder.constant(value))),
            ExpressionKind::Variable(variable) => {
                let assigned = &self.outline.assignments[usize::from(variable.0)];
                if !assigned.iter().any(|step| self.outline.contains(scan.id, *step)) {
                    return Some(KeyColumnPlan::Register(self.builder.variable(*variable)));
                }
                let column = columns.iter().find(|(of, _)| of == variable)?.1;
                (assigned.len() == 1).then_some(KeyColumnPlan::OfRow(column))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::compile::compile_whole;
    use crate::verify;

    /// Of each join of the first scan: the columns of its rows that are in the key.
    fn joins(body: &str) -> Vec<Vec<u8>> {
        let text = format!(
            "table t {{ a: int, b: int, c: int null, primary key (a, b) }}
            table u {{ d: int, e: int, f: int, primary key (d, e) using hash }}
            table v {{ d: int, e: int, f: int, primary key (d, e) }}
            procedure p(x: int) -> int {{ var n = 0 {body} return n }}"
        );
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("it verifies");
        let (_, program) = catalog.procedures().next().expect("a procedure");
        let code = compile_whole(program, &catalog).expect("it is small");
        let columns = |join: &JoinPlan| {
            let column = |column: &KeyColumnPlan| match column {
                KeyColumnPlan::OfRow(column) => Some(column.0),
                KeyColumnPlan::Register(_) => None,
            };
            join.key.iter().filter_map(column).collect()
        };
        code.scans[0].joins.iter().map(columns).collect()
    }

    /// Goal: joins are the lookups that are made for each row and follow from its columns and what does not change.
    #[test]
    fn what_every_row_leads_to_is_a_join() {
        assert_eq!(joins("for r in t[x] { n += u[x, r.b].f }"), [[1]]);
        assert_eq!(joins("for r in t[x] { if u[r.b, r.c].f > 3 { n += 1 } }"), [[1, 2]]);
        assert_eq!(joins("for r in t[x] where u[7, r.c]?.f > 3 { n += u[9, r.b].f }"), [[2]]);
        assert_eq!(joins("let y = x + 1 for r in t[x] { n += u[y, r.b].f }"), [[1]]);
        assert_eq!(joins("for r in t[x] { n += u[x, r.b].f + u[x, r.c].f + u[r.b, r.c].f }"), [[1], [2]]);
        // Not for every row; by what changes; by nothing of the row; by an operation; without a hash index; around
        // another.
        for none in [
            "for r in t[x] { if r.b > 3 { n += u[x, r.b].f } }",
            "for r in t[x] { n += u[n, r.b].f }",
            "for r in t[x] { n += u[x, 3].f }",
            "for r in t[x] { n += u[x, r.b + 1].f }",
            "for r in t[x] { n += v[x, r.b].f }",
            "for r in t[x] { n += u[x, r.b].f for s in v[x] { n += s.f } }",
        ] {
            assert_eq!(joins(none), [[0; 0]; 0], "{none}");
        }
    }
}
