//! What `EXPLAIN` is asked for.

use super::explain_format::Format;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

/// What `EXPLAIN` is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub analyze: bool,
    pub(super) verbose: bool,
    pub(super) timing: bool,
    pub(super) summary: bool,
    pub(super) format: Format,
}

impl Wanted {
    /// Reads the options of a statement.
    ///
    /// # Errors
    /// `42601` for unknown ones, `22023` for unknown formats and what does not fit together.
    pub fn of(statement: &ast::Statement) -> Result<Wanted> {
        let (format, timing) = (Format::Text, true);
        let mut wanted = Wanted { analyze: false, verbose: false, timing, summary: false, format };
        let ast::Statement::Explain { analyze, verbose, options, .. } = statement else { return Ok(wanted) };
        (wanted.analyze, wanted.verbose) = (*analyze, *verbose);
        let mut summary = None;
        let mut timing = None;
        let mut wal = false;
        for option in options.iter().flatten() {
            let name = option.name.value.to_lowercase();
            let value = option.arg.as_ref().map(|value| value.to_string().trim_matches('\'').to_lowercase());
            if name == "format" {
                let value = value.unwrap_or_default();
                wanted.format = Format::of_name(&value).ok_or_else(|| {
                    let message = format!("unrecognized value for EXPLAIN option \"format\": \"{value}\"");
                    Error::new(SqlState::INVALID_PARAMETER, message)
                })?;
                continue;
            }
            let on = match value.as_deref() {
                None | Some("on" | "true" | "1") => true,
                Some("off" | "false" | "0") => false,
                Some(_) => {
                    let message = format!("{name} requires a Boolean value");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            };
            match name.as_str() {
                "analyze" => wanted.analyze = on,
                "verbose" => wanted.verbose = on,
                "summary" => summary = Some(on),
                "timing" => timing = Some(on),
                "wal" => wal = on,
                // There are no estimates of costs, no pages and no such settings to be shown.
                "costs" | "buffers" | "settings" => {}
                _ => {
                    let message = format!("unrecognized EXPLAIN option \"{name}\"");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        if wal && !wanted.analyze {
            return Err(needs_analyze("WAL"));
        }
        if timing == Some(true) && !wanted.analyze {
            return Err(needs_analyze("TIMING"));
        }
        wanted.timing = timing.unwrap_or(true);
        wanted.summary = summary.unwrap_or(wanted.analyze);
        Ok(wanted)
    }

    /// The column of the result.
    pub fn column(self) -> OutputColumn {
        let sql_type = if self.format == Format::Json { SqlType::Json } else { SqlType::Text };
        OutputColumn { name: "QUERY PLAN".into(), sql_type, origin: (0, 0) }
    }
}

fn needs_analyze(option: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("EXPLAIN option {option} requires ANALYZE"))
}
