//! Documents and parts of them, as they are written: what `json` gives as it is, and `jsonb` in its own form.

use crate::text_format::{json_failure, quoted_json, refuse_zero};
use fabius_value::{Result, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A document, or a part of one.
#[derive(Clone, Copy)]
pub struct Part<'d>(&'d str);

/// What a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    /// As `json_typeof` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "boolean",
            Kind::Number => "number",
            Kind::Text => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

/// The members of an object in the order in which they are written, each as often as it is.
struct Members<'d>(Vec<(String, &'d RawValue)>);

impl<'d> Deserialize<'d> for Members<'d> {
    fn deserialize<D: Deserializer<'d>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Gathering;

        impl<'d> Visitor<'d> for Gathering {
            type Value = Members<'d>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> std::result::Result<Members<'d>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(Gathering)
    }
}

/// The place of an element that is counted from the end if negative.
pub fn place(count: usize, at: i64) -> Option<usize> {
    let at = if at < 0 { count.checked_sub(at.unsigned_abs() as usize)? } else { at as usize };
    (at < count).then_some(at)
}

impl<'d> Part<'d> {
    /// All of a document.
    pub fn of(document: &'d str) -> Part<'d> {
        Part(document.trim_matches([' ', '\t', '\n', '\r']))
    }

    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::Text,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The members of an object in the order in which they are written; none of anything else.
    ///
    /// # Errors
    /// `22P02` if a key is no text.
    pub fn members(self) -> Result<Vec<(String, Part<'d>)>> {
        if self.kind() != Kind::Object {
            return Ok(Vec::new());
        }
        let Members(members) = serde_json::from_str(self.0).map_err(json_failure)?;
        Ok(members.into_iter().map(|(key, value)| (key, Part(value.get()))).collect())
    }

    /// The elements of an array; none of anything else.
    ///
    /// # Errors
    /// `22P02` if it is no JSON.
    pub fn items(self) -> Result<Vec<Part<'d>>> {
        if self.kind() != Kind::Array {
            return Ok(Vec::new());
        }
        let items: Vec<&RawValue> = serde_json::from_str(self.0).map_err(json_failure)?;
        Ok(items.into_iter().map(|item| Part(item.get())).collect())
    }

    /// The value of a key: of several, the last.
    ///
    /// # Errors
    /// As [`Part::members`].
    pub fn member(self, key: &str) -> Result<Option<Part<'d>>> {
        Ok(self.members()?.into_iter().rev().find_map(|(name, value)| (name == key).then_some(value)))
    }

    /// The element at a place, from the end if that is negative.
    ///
    /// # Errors
    /// As [`Part::items`].
    pub fn item(self, at: i64) -> Result<Option<Part<'d>>> {
        let items = self.items()?;
        Ok(place(items.len(), at).map(|at| items[at]))
    }

    /// What is reached by keys and places; nothing where a step is null.
    ///
    /// # Errors
    /// As [`Part::members`].
    pub fn at_path(self, path: &[Value]) -> Result<Option<Part<'d>>> {
        let mut part = self;
        for step in path {
            let Value::Text(step) = step else { return Ok(None) };
            let next = match (part.kind(), step.trim_start().parse()) {
                (Kind::Array, Ok(at)) => part.item(at)?,
                _ => part.member(step)?,
            };
            let Some(next) = next else { return Ok(None) };
            part = next;
        }
        Ok(Some(part))
    }

    /// What is written.
    pub fn as_json(self) -> Value {
        self.0.into()
    }

    /// The text of a value: a JSON null has none.
    ///
    /// # Errors
    /// `22P02`, `22P05` if it is none.
    pub fn as_text(self) -> Result<Value> {
        match self.kind() {
            Kind::Null => Ok(Value::Null),
            Kind::Text => self.unquoted().map(Value::Text),
            _ => Ok(self.as_json()),
        }
    }

    fn unquoted(self) -> Result<String> {
        let text: String = serde_json::from_str(self.0).map_err(json_failure)?;
        refuse_zero(&text)?;
        Ok(text)
    }

    /// The text of an array of SQL, if it is an array; otherwise its text.
    ///
    /// # Errors
    /// As [`Part::as_text`].
    pub fn as_array(self) -> Result<Value> {
        if self.kind() != Kind::Array {
            return self.as_text();
        }
        let items = self.items()?.into_iter().map(|item| match item.as_array()? {
            Value::Null => Ok("NULL".to_string()),
            Value::Text(text) if item.kind() == Kind::Array => Ok(text),
            value => Ok(format!("\"{}\"", value.to_string().replace('\\', "\\\\").replace('"', "\\\""))),
        });
        let items = items.collect::<Result<Vec<_>>>()?;
        Ok(Value::Text(format!("{{{}}}", items.join(","))))
    }

    /// Without members that are null, as `json_strip_nulls` writes it.
    ///
    /// # Errors
    /// As [`Part::as_text`].
    pub fn stripped(self) -> Result<String> {
        Ok(match self.kind() {
            Kind::Object => {
                let members = self.members()?.into_iter().filter(|(_, value)| value.kind() != Kind::Null);
                let members =
                    members.map(|(key, value)| Ok(format!("{}:{}", quoted_json(&key), value.stripped()?)));
                format!("{{{}}}", members.collect::<Result<Vec<_>>>()?.join(","))
            }
            Kind::Array => {
                let items = self.items()?.into_iter().map(Part::stripped);
                format!("[{}]", items.collect::<Result<Vec<_>>>()?.join(","))
            }
            Kind::Text => quoted_json(&self.unquoted()?),
            _ => self.0.into(),
        })
    }
}
