//! The ways of running a call over a [`Memory`] that have to give the same: the interpreter, and compiled
//! code, whole or in phases.

use crate::memory::{Call, Handle, Memory, Phase, View};
use bumpalo::Bump;
use fabius_program::catalog::Catalog;
use fabius_program::compile::Code;
use fabius_program::context::Stop;
use fabius_program::execute::{Frame, run};
use fabius_program::interpret::interpret;
use fabius_program::ir::Program;
use fabius_value::Value;

/// The results, or the error as text.
pub type Outcome = Result<Vec<Value>, String>;

/// An abort as text.
fn told(stop: Stop) -> String {
    match stop {
        Stop::Abort(error) => format!("{error:?}"),
        other => panic!("nothing stops a call for good: {other:?}"),
    }
}

/// Runs a whole call with the interpreter; undoes what it did if it aborts.
pub fn run_reference(
    program: &Program,
    catalog: &Catalog,
    memory: &mut Memory,
    seq: u64,
    bytes: &[u8],
) -> Outcome {
    let arena = Bump::new();
    let mut call = Call::new(seq);
    let mut view = View { memory, call: &mut call, phase: Phase::Whole, arena: &arena };
    let outcome = interpret(program, catalog, bytes, &mut view, &arena).map_err(told);
    if outcome.is_err() {
        memory.undo(seq);
    }
    outcome
}

/// Runs code for one call; undoes what it did if it aborts. `unblock` does what a call waits for.
pub fn run_code(
    code: &Code,
    memory: &mut Memory,
    call: &mut Call,
    phase: Phase,
    bytes: &[u8],
    mut unblock: impl FnMut(&mut Memory, u64),
) -> Result<Option<Vec<Value>>, String> {
    let arena = Bump::new();
    let mut frame: Frame<'_, Handle, _> = Frame::new();
    frame.start(code, bytes, &arena).map_err(|error| format!("{error:?}"))?;
    loop {
        let mut view = View { memory, call, phase, arena: &arena };
        match run(&mut frame, code, &mut view, &arena) {
            Ok(()) => return Ok(frame.results(code)),
            Err(Stop::Blocked) => match call.blocked_by {
                Some(0) => {}
                Some(seq) => unblock(memory, seq),
                None => panic!("blocked by nobody"),
            },
            Err(stop) => {
                assert_ne!(phase, Phase::Later, "a later-phase aborts: {stop:?}");
                memory.undo(call.seq);
                return Err(told(stop));
            }
        }
    }
}

/// For calls that wait for nothing.
pub fn never(_: &mut Memory, seq: u64) {
    panic!("blocked by {seq}");
}
