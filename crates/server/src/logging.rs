//! Logs, as text or as JSON, on the standard error.

use crate::configuration::{Configuration, LogFormat};
use fabius_value::{Error, Result, SqlState};
use tracing_subscriber::EnvFilter;

/// Sends the process's logs where the configuration wants them. The first call decides; later ones change nothing.
///
/// # Errors
/// `22023` for a filter that does not read as one.
pub fn begin(configuration: &Configuration) -> Result<()> {
    let filter = EnvFilter::try_new(&configuration.log).map_err(|error| {
        Error::new(SqlState::INVALID_PARAMETER, format!("log cannot be {:?}", configuration.log))
            .with_detail(error.to_string())
            .with_hint("give a level (error, warn, info, debug, trace), or MODULE=LEVEL, separated by commas")
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Tests begin several servers in one process.
    let _ = match configuration.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}
