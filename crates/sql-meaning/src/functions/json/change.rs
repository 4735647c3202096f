//! Changes of a `jsonb` at a path.

use super::part::place;
use fabius_value::{Error, Result, SqlState};
use serde_json::Value as Json;

/// What is done at the end of a path.
pub enum Change {
    /// Takes out what is there.
    Remove,
    /// Puts a value in place of what is there; where nothing is, only if `makes_new`.
    Set { new: Json, makes_new: bool },
    /// Puts a value before what is there, or behind it, where there is an array.
    Insert { new: Json, is_after: bool },
}

impl Change {
    /// Changes a document.
    ///
    /// # Errors
    /// `22023` if the document is neither an object nor an array, or a key is there that is to be inserted; `22P02` for
    /// a step to an element that is no number.
    pub fn apply(&self, json: &mut Json, path: &[String]) -> Result<()> {
        match json {
            Json::Object(_) | Json::Array(_) => {}
            _ => {
                let what = if let Change::Remove = self { "delete" } else { "set" };
                return Err(Error::new(SqlState::INVALID_PARAMETER, format!("cannot {what} path in scalar")));
            }
        }
        // What is empty has nothing that could be in the way.
        let is_empty = match json {
            Json::Object(members) => members.is_empty(),
            Json::Array(items) => items.is_empty(),
            _ => false,
        };
        let makes = matches!(self, Change::Set { makes_new: true, .. } | Change::Insert { .. });
        if is_empty && !makes { Ok(()) } else { self.descend(json, path, 0) }
    }

    fn descend(&self, json: &mut Json, path: &[String], depth: usize) -> Result<()> {
        let Some(step) = path.get(depth) else { return Ok(()) };
        let is_last = depth + 1 == path.len();
        match json {
            Json::Object(members) => {
                match (members.get_mut(step), self) {
                    (Some(found), _) if !is_last => return self.descend(found, path, depth + 1),
                    (Some(_), Change::Remove) => drop(members.shift_remove(step)),
                    (Some(found), Change::Set { new, .. }) => *found = new.clone(),
                    (Some(_), Change::Insert { .. }) => {
                        let error = Error::new(SqlState::INVALID_PARAMETER, "cannot replace existing key");
                        let hint = "Try using the function jsonb_set to replace key value.";
                        return Err(error.with_hint(hint));
                    }
                    (None, Change::Set { new, makes_new: true } | Change::Insert { new, .. }) if is_last => {
                        members.insert(step.clone(), new.clone());
                    }
                    (None, _) => {}
                }
                Ok(())
            }
            Json::Array(items) => {
                let number: i64 = step.trim_start().parse::<i32>().map(i64::from).map_err(|_| {
                    let message =
                        format!("path element at position {} is not an integer: \"{step}\"", depth + 1);
                    Error::new(SqlState::INVALID_TEXT, message)
                })?;
                let beyond = if number < 0 { 0 } else { items.len() };
                match (place(items.len(), number), self) {
                    (Some(at), _) if !is_last => return self.descend(&mut items[at], path, depth + 1),
                    (Some(at), Change::Remove) => drop(items.remove(at)),
                    (Some(at), Change::Set { new, .. }) => items[at] = new.clone(),
                    (Some(at), Change::Insert { new, is_after }) => {
                        items.insert(at + usize::from(*is_after), new.clone());
                    }
                    (None, Change::Set { new, makes_new: true } | Change::Insert { new, .. }) if is_last => {
                        items.insert(beyond, new.clone());
                    }
                    (None, _) => {}
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
