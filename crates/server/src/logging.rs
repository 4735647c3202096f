//! Logs, as text or as JSON, on the standard error.

use crate::configuration::{Configuration, LogFormat};
use fabius_value::{Error, Result, SqlState};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Sends the process's logs where the configuration wants them, and panics with them. The first call decides; later
/// ones change nothing.
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
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let backtrace = std::backtrace::Backtrace::force_capture();
        tracing::error!(thread = thread.name().unwrap_or_default(), %panic, %backtrace, "panic");
    }));
    Ok(())
}

/// What is logged.
///
/// # Errors
/// `22023` for text that does not read as a filter.
pub fn filter(text: &str) -> Result<EnvFilter> {
    let refused = |why: String| {
        let expected =
            "expected levels (error, warn, info, debug, trace) or MODULE=LEVEL, separated by commas";
        Error::new(SqlState::INVALID_PARAMETER, format!("{expected}: {why}"))
    };
    // A word alone would be taken for a module of which all is logged, and nothing of the others.
    let is_no_level = |word: &&str| !word.is_empty() && word.parse::<LevelFilter>().is_err();
    let mut words = text.split(',').filter(|part| !part.contains(['=', '[']));
    if let Some(word) = words.find(is_no_level) {
        return Err(refused(format!("{word:?} is no level")));
    }
    EnvFilter::try_new(text).map_err(|error| refused(error.to_string()))
}

/// Colours are for people who watch, and not for those who ask for none (<https://no-color.org>).
fn is_coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what reads as a filter is one; a level that is misspelt is none.
    #[test]
    fn levels_are_known() {
        for text in ["warn", "info,fabius_sql=debug", "off", "error,fabius_server::client=trace", ""] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for text in ["wran", "nonsense", "info,wran", "fabius_sql=wran"] {
            let error = filter(text).expect_err(text);
            assert!(error.message().starts_with("expected levels"), "{text}: {error}");
        }
    }
}
