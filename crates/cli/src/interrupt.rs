//! Ctrl-C, and the other signals that ask the program to end: the first lets what was begun be finished, the second
//! does not.

use crate::message::{end_at_once, tell};
use fabius_bench::interrupt::Interrupt;

/// Raises `interrupt` at the first signal, after saying this; ends the program at the second.
pub fn handle(interrupt: &Interrupt, notice: &'static str) {
    let raised = interrupt.clone();
    let is_kept = hang_up_is_ignored();
    let handled = ctrlc::set_handler(move || {
        if raised.is_raised() {
            tell("stopped at once\n");
            end_at_once(130);
        }
        tell(notice);
        raised.raise();
    });
    if let Err(error) = handled {
        tell(&format!("warning: Ctrl-C ends the program at once: {error}\n"));
    }
    if is_kept {
        ignore_hang_up();
    }
}

/// Whether whoever started the program wants it to outlive its terminal, as `nohup` does.
fn hang_up_is_ignored() -> bool {
    // SAFETY: an action that is all zeros is one, and only read into.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

fn ignore_hang_up() {
    // SAFETY: no handler is installed that could run.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}
