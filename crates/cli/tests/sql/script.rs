//! A script: its records, checked one by one, or written anew.

use crate::client::{Client, Refused, Type};
use sqllogictest::harness::Failed;
use sqllogictest::{
    ExpectedError, Record, RecordOutput, Runner, StatementExpect, default_normalizer, default_validator,
    strict_column_validator, update_record_with_output,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How many differences are shown of one script.
const SHOWN: usize = 25;

/// A script.
pub struct Script {
    pub name: String,
    path: PathBuf,
}

impl Script {
    /// Those of a folder, by name.
    pub fn all(folder: &Path) -> Vec<Script> {
        let entries = std::fs::read_dir(folder).expect("the scripts").flatten();
        let mut scripts: Vec<Script> = entries
            .filter_map(|entry| {
                let name = entry.file_name().to_str()?.strip_suffix(".slt")?.to_string();
                Some(Script { name, path: entry.path() })
            })
            .collect();
        scripts.sort_by(|a, b| a.name.cmp(&b.name));
        scripts
    }

    fn records(&self) -> Result<Vec<Record<Type>>, Failed> {
        sqllogictest::parse_file(&self.path).map_err(|error| Failed::from(error.to_string()))
    }

    /// Runs it in sessions that `begin` gives.
    ///
    /// # Errors
    /// What differs, after all of it has run.
    pub fn check(&self, mut begin: impl FnMut() -> Result<Client, Refused>) -> Result<(), Failed> {
        let mut runner = Runner::new(move || std::future::ready(begin()));
        runner.with_column_validator(strict_column_validator);
        let mut differences = Vec::new();
        for record in self.records()? {
            if let Err(difference) = runner.run(record) {
                differences.push(difference.to_string());
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        let shown = differences.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n");
        Err(format!("{} differences\n\n{shown}", differences.len()).into())
    }

    /// Runs it, and writes what came as what is expected.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn update(&self, mut begin: impl FnMut() -> Result<Client, Refused>) -> Result<(), Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let mut runner = Runner::new(move || std::future::ready(begin()));
        let mut text = String::new();
        for record in self.records()? {
            let output = runtime.block_on(runner.apply_record(record.clone()));
            writeln!(text, "{}", updated(record, &output))?;
        }
        Ok(std::fs::write(&self.path, text.trim_end().to_string() + "\n")?)
    }
}

/// A record that expects what came.
fn updated(record: Record<Type>, output: &RecordOutput<Type>) -> Record<Type> {
    let error = match output {
        RecordOutput::Statement { error, .. } | RecordOutput::Query { error, .. } => error.as_ref(),
        _ => None,
    };
    match (error.and_then(|error| error.downcast_ref::<Refused>()), record) {
        (
            Some(refused),
            Record::Statement { loc, conditions, connection, sql, retry, .. }
            | Record::Query { loc, conditions, connection, sql, retry, .. },
        ) => {
            let expected = StatementExpect::Error(ExpectedError::SqlState(refused.state.clone()));
            Record::Statement { loc, conditions, connection, sql, retry, expected }
        }
        (_, record) => {
            let same_types = strict_column_validator;
            let new = update_record_with_output(
                &record,
                output,
                " ",
                default_validator,
                default_normalizer,
                same_types,
            );
            new.unwrap_or(record)
        }
    }
}
