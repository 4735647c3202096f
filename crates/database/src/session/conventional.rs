//! Conventional transactions: every row looked at counts as shown.
//!
//! A database that knows only reads and writes has to take every value that a statement has looked at for one
//! that the client depends on. Here that is a statement more for each such row, which shows all of it:
//!
//! ```text
//! update stock set quantity = quantity - 1 where item = 5      looks at stock[5]
//!   ->  show stock[5]: (5, 'pen', 42)                           observed; pessimistic: locked for update
//!       the update itself: 1 row
//! ```

use super::hold::Hold;
use super::recall::{is_given_up, room};
use super::transaction::Transaction;
use super::transaction_options::Concurrency;
use crate::Statement;
use fabius_program::compose::scalar_type;
use fabius_program::syntax::tree::{
    Expression, ExpressionKind, Name, Parameter, ProcedureDefinition, Results, RowReference,
    Statement as TreeStatement, StatementKind,
};
use fabius_program::syntax::{Source, Span};
use fabius_value::{Result, TableId, TableSchema, Value, key};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Transaction {
    /// Shows every row that a statement is going to look at, held as the statement's own rows are, or for update
    /// if it writes them.
    pub(super) async fn show_rows(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        wanted: Hold,
    ) -> Result<()> {
        let encoded = statement.encode(arguments)?;
        let at = self.reading_at().await?;
        let begin = self.overlay.mark();
        let procedure = statement.procedure();
        // If it fails there is nothing to show; it fails again when it is run.
        let room = room(self.held.left(), self.options.recall.as_ref());
        let run = self.database.engine().speculate(at, procedure, &encoded, &mut self.overlay, room);
        let run = match run {
            Ok(run) => run,
            Err(error) if is_given_up(&error) => return Err(error),
            Err(_) => return Ok(()),
        };
        let written: BTreeSet<_> =
            self.overlay.written_since(begin).map(|(table, key)| (table, key.clone())).collect();
        self.overlay.undo_to(begin);
        for row in run.footprint.rows {
            let hold = match self.options.concurrency {
                Concurrency::Pessimistic if written.contains(&row) => Hold::LockForUpdate,
                _ => wanted,
            };
            let definitions = self.database.definitions();
            let schema = definitions.table(row.0).schema();
            let types: Vec<_> = schema.primary_key.iter().map(|column| schema.data_type(*column)).collect();
            if let Some(key) = key::decode(&row.1, &types) {
                let show = self.show(row.0)?;
                self.run_held(&show, &key, (hold, usize::MAX)).await?;
            }
        }
        Ok(())
    }

    /// The statement that shows a row of a table.
    fn show(&self, table: TableId) -> Result<Arc<Statement>> {
        self.database.interned(&show_row(self.database.definitions().table(table).schema()))
    }
}

/// `procedure show(k1: type, ...) -> (c0: boolean null, c1: type null, ...)`
fn show_row(schema: &TableSchema) -> ProcedureDefinition {
    let named = |text: String| Name { text, span: Span::default() };
    let expression = |kind| Expression { kind, span: Span::default() };
    let keys: Vec<String> = (1..=schema.primary_key.len()).map(|at| format!("k{at}")).collect();
    let row = || RowReference {
        name: named(schema.name.clone()),
        key: Some(keys.iter().map(|key| expression(ExpressionKind::Variable(key.clone()))).collect()),
        span: Span::default(),
    };
    let parameters = keys.iter().zip(&schema.primary_key).map(|(key, column)| Parameter {
        name: named(key.clone()),
        ty: scalar_type(schema.data_type(*column), false),
    });
    let mut results =
        vec![Parameter { name: named("c0".into()), ty: scalar_type(fabius_value::DataType::Boolean, true) }];
    let mut values = vec![expression(ExpressionKind::Exists(row()))];
    for (at, column) in schema.columns.iter().enumerate() {
        results
            .push(Parameter { name: named(format!("c{}", at + 1)), ty: scalar_type(column.data_type, true) });
        let column = named(column.name.clone());
        values.push(expression(ExpressionKind::Column { row: row(), optional: true, column }));
    }
    let shown = TreeStatement { kind: StatementKind::Return { values }, span: Span::default() };
    ProcedureDefinition {
        source: Arc::new(Source::new("", "show")),
        name: named("show".into()),
        parameters: parameters.collect(),
        results: Results::Named(results),
        body: vec![shown],
    }
}
