//! Enumerations: types whose values are words, in an order of their own (`CREATE TYPE ... AS ENUM`).
//!
//! A value is stored as the number of its label. Numbers lie far apart, so that a label that is added between two
//! others finds one, and no row has to change.

use fabius_sql_syntax::identifier::quote_qualified;
use fabius_value::{Error, Result, SqlState, value_text};
use serde::{Deserialize, Serialize};

/// What lies between the numbers of two labels that were defined together.
const GAP: i64 = 1 << 32;

/// An enumeration: a row of `pg_type`, and its labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Enumeration {
    /// `pg_type.oid`.
    pub oid: u32,
    /// The number of the type of its arrays.
    pub array_oid: u32,
    /// The schema that it is in.
    pub schema: String,
    /// The name within the schema.
    pub name: String,
    /// Labels, in order.
    pub labels: Vec<Label>,
}

/// A value of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Label {
    /// `pg_enum.oid`.
    pub oid: u32,
    /// What is stored for it: greater than those before it.
    pub number: i64,
    /// The word.
    pub name: String,
}

impl Enumeration {
    /// The number of a word.
    ///
    /// # Errors
    /// `22P02` if no label is that word.
    pub fn number(&self, word: &str) -> Result<i64> {
        let label = self.labels.iter().find(|label| label.name == word);
        label.map(|label| label.number).ok_or_else(|| value_text::no_label(word, &self.shown()))
    }

    /// The word of a number.
    pub fn word(&self, number: i64) -> Option<&str> {
        let at = self.labels.binary_search_by_key(&number, |label| label.number).ok()?;
        Some(&self.labels[at].name)
    }

    /// The name as messages and `format_type` show it: with its schema unless that is searched by default.
    pub fn shown(&self) -> String {
        quote_qualified(&self.schema, &self.name)
    }

    /// Adds a label at a place among the others.
    ///
    /// # Errors
    /// `54000` if so many labels were added there that no number is left.
    pub fn add(&mut self, place: usize, oid: u32, name: String) -> Result<()> {
        let before = place.checked_sub(1).map(|before| self.labels[before].number);
        let number = match (before, self.labels.get(place).map(|label| label.number)) {
            (None, None) => Some(GAP),
            (Some(before), None) => before.checked_add(GAP),
            (None, Some(after)) => after.checked_sub(GAP),
            (Some(before), Some(after)) => {
                Some(before + (after - before) / 2).filter(|number| *number > before)
            }
        };
        let number = number.ok_or_else(|| {
            let message = format!("no value can be added to enum {} there", self.shown());
            Error::new(SqlState::PROGRAM_LIMIT, message)
                .with_hint("add it elsewhere, or make a new type and change the columns to it")
        })?;
        self.labels.insert(place, Label { oid, number, name });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: labels keep their order and their numbers wherever others are added, 32 times at one place.
    #[test]
    fn labels_are_added_everywhere() {
        let mut mood = Enumeration {
            oid: 1,
            array_oid: 2,
            schema: "public".into(),
            name: "mood".into(),
            labels: Vec::new(),
        };
        mood.add(0, 3, "sad".into()).expect("a first label");
        mood.add(1, 4, "happy".into()).expect("a last label");
        mood.add(0, 5, "awful".into()).expect("a label before all");
        let ends = [mood.labels[0].number, mood.labels[2].number];
        for at in 0..32 {
            mood.add(1, 6 + at, format!("poor {at}")).expect("a label between two");
        }
        assert_eq!([mood.labels[0].number, mood.labels[34].number], ends);
        assert!(mood.labels.is_sorted_by_key(|label| label.number));
        assert_eq!(
            mood.add(1, 99, "one more".into()).map_err(|error| error.state()),
            Err(SqlState::PROGRAM_LIMIT)
        );
        let number = mood.number("poor 7").expect("it is there");
        assert_eq!(mood.word(number), Some("poor 7"));
        assert_eq!(mood.number("glad").map_err(|error| error.state()), Err(SqlState::INVALID_TEXT));
    }
}
