//! How things are told: output, and errors.

use fabius::{Error, SqlState};
use fabius_bench::{server_process, temporary};
use std::io::{ErrorKind, Write};

/// Prints to the standard output. Ends the program when that cannot be: quietly when nobody reads it any more
/// (`fabius bench list | head`).
pub fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        if error.kind() == ErrorKind::BrokenPipe {
            end_at_once(0);
        }
        print(&Error::new(SqlState::IO_ERROR, "the output cannot be written").with_detail(error.to_string()));
        end_at_once(1);
    }
}

/// Prints to the standard error, if anybody reads it.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints an error to the standard error: the fact, and its detail and hint on lines of their own.
pub fn print(error: &Error) {
    tell(&text(error));
}

/// Ends the program with this exit code, and leaves no server and no temporary database behind.
pub fn end_at_once(code: i32) -> ! {
    server_process::end_all();
    temporary::delete_all();
    std::process::exit(code)
}

fn text(error: &Error) -> String {
    format!("error: {}", told(error))
}

/// An error's fact, detail and hint, without the word that it is one.
pub fn told(error: &Error) -> String {
    let mut text = format!("{}\n", error.message());
    if let Some(detail) = error.detail() {
        // Snippets of source have lines of their own already.
        text += &if detail.contains('\n') { format!("{detail}\n") } else { format!("  detail: {detail}\n") };
    }
    if let Some(hint) = error.hint() {
        text += &format!("  hint: {hint}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: fact, detail and hint are told apart.
    #[test]
    fn detail_and_hint_have_lines_of_their_own() {
        let error = Error::new(SqlState::IN_USE, "the directory is in use")
            .with_detail("/data")
            .with_hint("stop the other");
        assert_eq!(text(&error), "error: the directory is in use\n  detail: /data\n  hint: stop the other\n");
    }
}
