//! What clients of a workload do: a procedure, and how it is called.

/// How an operation is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A call; the client waits for the outcome only.
    Call,
    /// A call whose returned values the client waits for.
    CallForResult,
    /// Run on the client's thread at the newest promised state.
    Query,
}

/// Something that clients do.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The procedure it calls.
    pub procedure: &'static str,
    /// What it is counted as; several procedures may be one kind.
    pub kind: &'static str,
    /// How it is run.
    pub mode: Mode,
}

impl Operation {
    /// An operation counted under its procedure's name.
    pub const fn new(procedure: &'static str, mode: Mode) -> Operation {
        Operation { procedure, kind: procedure, mode }
    }
}
