//! A line on the terminal that says what is going on; nothing where there is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// A line on the standard error.
pub struct Line {
    bar: Option<ProgressBar>,
}

impl Line {
    /// A line, if the standard error is a terminal.
    pub fn new() -> Line {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a template of our own"));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Line { bar }
    }

    /// Whether there is a terminal to show it on.
    pub fn is_shown(&self) -> bool {
        self.bar.is_some()
    }

    /// Says something else.
    pub fn say(&self, text: impl Into<String>) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.into());
        }
    }

    /// Makes room for other output.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
