//! Which statement a call of the log was a run of.

use super::Connection;
use super::plan::Body;
use super::prepared::Prepared;
use crate::lock::LockMode;
use fabius::LoggedCall;
use fabius_sql_program::lowered::Argument;
use fabius_value::{Result, Value};
use std::sync::Arc;

/// Parameters that may be null, of which all combinations are tried, at most.
const OPTIONAL: usize = 8;

impl Connection {
    /// The parameters that a statement was run with, if a call of the log was a run of it. Parameters that its program
    /// has no use for are null. `optional` says which may have been null.
    ///
    /// # Errors
    /// As preparing the statement.
    pub async fn parameters_of(
        &mut self,
        prepared: &Arc<Prepared>,
        optional: &[usize],
        call: &LoggedCall,
    ) -> Result<Option<Vec<Value>>> {
        let (catalog, ready) = self.hold_plan(prepared, LockMode::AccessShare).await?;
        self.release_statement_locks();
        let (Some(wanted), Body::Program(program)) = (call.statement(), &ready.plan.body) else {
            return Ok(None);
        };
        let optional = &optional[..optional.len().min(OPTIONAL)];
        for combination in 0..1usize << optional.len() {
            let mut nulls = vec![false; ready.plan.parameters.len()];
            for (bit, index) in optional.iter().enumerate() {
                if let Some(null) = nulls.get_mut(*index) {
                    *null = combination >> bit & 1 == 1;
                }
            }
            let Ok(program) = program.for_nulls(self.database.database(), &catalog, &nulls) else { continue };
            if program.statement.id() != wanted {
                continue;
            }
            let mut values = vec![Value::Null; nulls.len()];
            for (argument, value) in program.lowered.arguments.iter().zip(&call.arguments) {
                if let Argument::Parameter(index) = argument {
                    values[*index] = value.clone();
                }
            }
            return Ok(Some(values));
        }
        Ok(None)
    }
}
