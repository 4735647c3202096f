//! Logs, as text or as JSON, on the standard error.

use crate::configuration::{Configuration, LogFormat};
use fabius_value::{Error, Result, SqlState};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Sends the process's logs where the configuration wants them. The first call decides; later ones change nothing.
///
/// # Errors
/// `22023` for a filter that does not read as one.
pub fn begin(configuration: &Configuration) -> Result<()> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(&configuration.log)?)
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured());
    // Tests begin several servers in one process.
    let _ = match configuration.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}

/// What is logged.
///
/// # Errors
/// `22023` for text that does not read as a filter.
pub fn filter(text: &str) -> Result<EnvFilter> {
    EnvFilter::try_new(text).map_err(|error| {
        Error::new(
            SqlState::INVALID_PARAMETER,
            format!("expected levels (error, warn, info, debug, trace) or MODULE=LEVEL, separated by commas: {error}"),
        )
    })
}

/// Colours are for people who watch, and not for those who ask for none (<https://no-color.org>).
fn is_coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
