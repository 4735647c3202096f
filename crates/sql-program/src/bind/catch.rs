//! Exceptions of Python that end a block of a function, wherever they are raised: in it, or in what it calls.

use std::collections::BTreeSet;

/// What a raise does that is caught.
#[derive(Clone, Debug)]
pub struct Catching {
    /// The classes of exceptions that are.
    pub classes: Vec<String>,
    /// The variable of the program that becomes true.
    pub caught: String,
    /// The variable of the program that gets the message.
    pub message: String,
    /// The variables of the program that get the class and the detail, if those are asked for.
    pub again: Option<(String, String)>,
    /// The flag that leaves the block.
    pub exit: String,
}

/// What is caught around a part of a function.
#[derive(Default)]
pub struct Catches {
    /// The innermost comes last.
    pub around: Vec<Catching>,
    /// Flags that a call within the part may have set: then the part is not gone on with.
    pub escapes: BTreeSet<String>,
}

impl Catches {
    /// What is done for an exception of a class; `None` if it ends the call.
    pub fn of(&self, class: &str) -> Option<&Catching> {
        self.around.iter().rev().find(|catching| catching.classes.iter().any(|caught| caught == class))
    }
}
