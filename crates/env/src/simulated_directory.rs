//! The names in a simulated directory now, and which of them a power loss would leave.
//!
//! Names are journalled, as real file systems do: of the changes since the last sync of the
//! directory a crash keeps the first few, never a later one without an earlier one.

use std::collections::BTreeMap;

use crate::Random;

/// A file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) u64);

/// The names in one directory, live and durable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directory {
    /// The names as they are seen now.
    pub(crate) live: BTreeMap<String, FileId>,
    durable: BTreeMap<String, FileId>,
    pending: Vec<NameChange>,
}

/// One change of a directory's names.
#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Create(String, FileId),
    Rename(String, String),
    Delete(String),
}

fn apply(names: &mut BTreeMap<String, FileId>, change: &NameChange) {
    match change {
        NameChange::Create(name, id) => {
            names.insert(name.clone(), *id);
        }
        NameChange::Rename(from, to) => {
            if let Some(id) = names.remove(from) {
                names.insert(to.clone(), id);
            }
        }
        NameChange::Delete(name) => {
            names.remove(name);
        }
    }
}

impl Directory {
    pub(crate) fn change(&mut self, change: NameChange) {
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    pub(crate) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    /// The names as found after a power loss: those synced, and any prefix of the changes since.
    pub(crate) fn after_crash(&self, random: &mut Random) -> Self {
        let mut names = self.durable.clone();
        let kept = random.index(self.pending.len() + 1);
        for change in &self.pending[..kept] {
            apply(&mut names, change);
        }
        Self { live: names.clone(), durable: names, pending: Vec::new() }
    }
}
