//! What a block may do, found in its syntax before it is lowered: a loop's body must know what its
//! own later statements undo.

use super::known::Effects;
use super::scope::{Binding, Scope};
use crate::catalog::Catalog;
use crate::syntax::tree::{Block, RowReference, StatementKind, Target};
use fabius_value::{ColumnId, TableId};
use std::collections::HashMap;

/// Collects the effects of blocks. Names that do not resolve are skipped: lowering refuses them.
pub(super) struct EffectsOf<'a, 'b> {
    catalog: &'a Catalog,
    scope: &'a Scope,
    /// Rows of loops inside the block.
    rows: HashMap<&'b str, Option<TableId>>,
    effects: Effects,
}

impl<'a, 'b> EffectsOf<'a, 'b> {
    pub(super) fn blocks(
        blocks: impl IntoIterator<Item = &'b Block>,
        catalog: &'a Catalog,
        scope: &'a Scope,
    ) -> Effects {
        let mut of = EffectsOf { catalog, scope, rows: HashMap::new(), effects: Effects::default() };
        blocks.into_iter().for_each(|block| of.block(block));
        of.effects.simplify();
        of.effects
    }

    fn block(&mut self, block: &'b Block) {
        for statement in block {
            match &statement.kind {
                StatementKind::Assign { target: Target::Variable(name), .. } => self.assigned(&name.text),
                StatementKind::Assign { target: Target::Column { row, column }, .. } => {
                    self.updated(row, [column.text.as_str()]);
                }
                StatementKind::Append { list, .. } | StatementKind::Sort { list, .. } => {
                    self.assigned(&list.text)
                }
                StatementKind::Update { row, columns } => {
                    self.updated(row, columns.iter().map(|(name, _)| name.text.as_str()));
                }
                StatementKind::Delete { row } => {
                    let table = self.table(row);
                    self.effects.deleted.extend(table);
                }
                StatementKind::Insert { table, .. } => {
                    self.effects.inserted.extend(self.catalog.find_table(&table.text));
                }
                StatementKind::If { arms, otherwise } => {
                    arms.iter().for_each(|(_, block)| self.block(block));
                    otherwise.iter().for_each(|block| self.block(block));
                }
                StatementKind::ForRange { body, .. } => self.block(body),
                StatementKind::ForEach { variable, scan, body } => {
                    let table = match self.scope.get(&scan.name.text) {
                        Some(Binding::List { .. }) => None,
                        _ => self.catalog.find_table(&scan.name.text),
                    };
                    let outer = self.rows.insert(&variable.text, table);
                    self.block(body);
                    match outer {
                        Some(outer) => self.rows.insert(&variable.text, outer),
                        None => self.rows.remove(variable.text.as_str()),
                    };
                }
                StatementKind::Let { .. } | StatementKind::Require { .. } | StatementKind::Return { .. } => {}
            }
        }
    }

    fn assigned(&mut self, name: &str) {
        if let Some(Binding::Scalar { variable, .. } | Binding::List { variable, .. }) = self.scope.get(name)
        {
            self.effects.assigned.push(*variable);
        }
    }

    fn updated<'n>(&mut self, row: &RowReference, columns: impl IntoIterator<Item = &'n str>) {
        let Some(table) = self.table(row) else { return };
        let schema = self.catalog.table(table);
        let columns: Vec<ColumnId> = columns.into_iter().filter_map(|name| schema.column(name)).collect();
        self.effects.updated.extend(columns.into_iter().map(|column| (table, column)));
    }

    fn table(&self, row: &RowReference) -> Option<TableId> {
        let name = row.name.text.as_str();
        if row.key.is_some() {
            return self.catalog.find_table(name);
        }
        match (self.rows.get(name), self.scope.get(name)) {
            (Some(table), _) => *table,
            (None, Some(Binding::Row { table, .. })) => Some(*table),
            _ => None,
        }
    }
}
