//! Lookups by the rows of a scan: index joins.
//!
//! ```text
//! for ol in order_line[w, d, 1 .. 20] {                    ScanOpen, and a join: stock [w, column ol_i_id] is
//!     if stock[w, ol.ol_i_id].s_quantity < threshold {     looked up for each row, and its s_quantity read
//! ```
//!
//! An engine that is told so can bring near what will be looked up for some rows, before it gives out the first of them. Only
//! what is looked up for every row is a join: in the filter if there is one, or else in the body, before it branches.

use super::code::{JoinPart, JoinPlan};
use super::{Compiler, Part};
use crate::ir::{Expression, ExpressionKind, RowId, Step, StepKind, VariableId};
use fabius_value::{ColumnId, ColumnMask};

impl<'p> Compiler<'p> {
    /// The joins of a scan. Phases have none: of what they look up, most is known from their arguments and brought near by that.
    pub(super) fn joins(&mut self, scan: &'p Step) -> Box<[JoinPlan]> {
        let StepKind::ForScan { row: scanned, scan: range, body } = &scan.kind else { return Box::default() };
        if self.part != Part::Whole {
            return Box::default();
        }
        let steps = range.filter.as_ref().map_or(body, |filter| &filter.steps);
        let mut columns: Vec<(VariableId, ColumnId)> = Vec::new();
        let mut joins: Vec<(RowId, JoinPlan)> = Vec::new();
        for step in steps {
            match &step.kind {
                StepKind::Read { row, columns: read } if row == scanned => {
                    columns.extend(read.iter().map(|&(column, variable)| (variable, column)));
                }
                StepKind::Read { row, columns: read } => {
                    if let Some((_, join)) = joins.iter_mut().find(|(found, _)| found == row) {
                        read.iter().for_each(|(column, _)| join.reads.insert(*column));
                    }
                }
                StepKind::Locate { row, key } => {
                    let key: Option<Box<[_]>> =
                        key.iter().map(|value| self.join_part(value, scan, &columns)).collect();
                    if let Some(key) = key
                        && key.iter().any(|part| matches!(part, JoinPart::Column(_)))
                    {
                        let table = self.outline.table(*row);
                        joins.push((*row, JoinPlan { table, key, reads: ColumnMask::EMPTY }));
                    }
                }
                StepKind::If { .. }
                | StepKind::ForList { .. }
                | StepKind::ForRange { .. }
                | StepKind::ForScan { .. } => break,
                _ => {}
            }
        }
        joins.into_iter().map(|(_, join)| join).collect()
    }

    /// A key column that is one of the scanned row, or does not change while the scan lasts.
    fn join_part(
        &mut self,
        value: &'p Expression,
        scan: &Step,
        columns: &[(VariableId, ColumnId)],
    ) -> Option<JoinPart> {
        match &value.kind {
            ExpressionKind::Constant(value) => Some(JoinPart::Register(self.builder.constant(value))),
            ExpressionKind::Variable(variable) => {
                let assigned = &self.outline.assignments[usize::from(variable.0)];
                if !assigned.iter().any(|step| self.outline.contains(scan.id, *step)) {
                    return Some(JoinPart::Register(self.builder.variable(*variable)));
                }
                let column = columns.iter().find(|(of, _)| of == variable)?.1;
                (assigned.len() == 1).then_some(JoinPart::Column(column))
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

    /// Of the joins of the only scan: the columns of its rows that are in the key, and what is read.
    fn joins(body: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let text = format!(
            "table t {{ a: int, b: int, c: int null, primary key (a, b) }}
            table u {{ d: int, e: int, f: int, primary key (d, e) using hash }}
            procedure p(x: int) -> int {{ var n = 0 {body} return n }}"
        );
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("it verifies");
        let (_, program) = catalog.procedures().next().expect("a procedure");
        let code = compile_whole(program, &catalog).expect("it is small");
        let columns = |join: &JoinPlan| {
            let column = |part: &JoinPart| match part {
                JoinPart::Column(column) => Some(column.0),
                JoinPart::Register(_) => None,
            };
            join.key.iter().filter_map(column).collect()
        };
        let reads = |join: &JoinPlan| join.reads.iter().map(|column| column.0).collect();
        code.scans[0].joins.iter().map(|join| (columns(join), reads(join))).collect()
    }

    /// Goal: joins are the lookups that are made for each row and follow from its columns and what does not change.
    #[test]
    fn what_every_row_leads_to_is_a_join() {
        let one = |columns: &[u8], reads: &[u8]| vec![(columns.to_vec(), reads.to_vec())];
        assert_eq!(joins("for r in t[x] { n += u[x, r.b].f }"), one(&[1], &[2]));
        assert_eq!(joins("for r in t[x] { if u[r.b, r.c].f > 3 { n += 1 } }"), one(&[1, 2], &[2]));
        assert_eq!(joins("for r in t[x] where u[7, r.c]?.f > 3 { n += u[9, r.b].f }"), one(&[2], &[2]));
        assert_eq!(joins("let y = x + 1 for r in t[x] { n += u[y, r.b].f }"), one(&[1], &[2]));
        // Not for every row; by what changes; by nothing of the row; by an operation.
        assert_eq!(joins("for r in t[x] { if r.b > 3 { n += u[x, r.b].f } }"), []);
        assert_eq!(joins("for r in t[x] { n += u[n, r.b].f }"), []);
        assert_eq!(joins("for r in t[x] { n += u[x, 3].f }"), []);
        assert_eq!(joins("for r in t[x] { n += u[x, r.b + 1].f }"), []);
    }
}
