//! Functions of `json` and `jsonb`.
//!
//! | module | concept |
//! |---|---|
//! | `change` | changes of a `jsonb` at a path |
//! | `compare` | how `jsonb` is compared, sorted and searched |
//! | `part` | documents and parts of them, as they are written |

mod change;
mod compare;
mod part;

use super::{Call, Definition, define, elements_at, integer_at, text_at, truth_at};
use crate::sql_type::SqlType;
use crate::text_format::{
    self, TextStyle, cast_text, parse_json, print_json, print_json_pretty, quoted_json,
};
use change::Change;
use compare::{contains, has_key, order};
use fabius_value::{Error, Result, SqlState, Value};
use part::{Kind, Part, place};
use serde_json::Value as Json;

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        define("to_json(any) json", |a, call| {
            Ok(Value::Text(literal(&a[0], type_at(call, 0), &call.environment.style)))
        }),
        define("to_jsonb(any) jsonb", |a, call| {
            jsonb(literal(&a[0], type_at(call, 0), &call.environment.style))
        }),
        // The elements of `json_agg`: null is one of them.
        define("fabius_json(any) json null", |a, call| {
            Ok(Value::Text(literal(&a[0], type_at(call, 0), &call.environment.style)))
        }),
        define("fabius_jsonb(any) jsonb null", |a, call| {
            jsonb(literal(&a[0], type_at(call, 0), &call.environment.style))
        }),
        define("json_build_object(any...) json null", |a, call| object(a, call).map(Value::Text)),
        define("jsonb_build_object(any...) jsonb null", |a, call| jsonb(object(a, call)?)),
        define("json_build_object() json", |_, _| Ok("{}".into())),
        define("jsonb_build_object() jsonb", |_, _| Ok("{}".into())),
        define("json_build_array(any...) json null", |a, call| Ok(Value::Text(array(a, call)))),
        define("jsonb_build_array(any...) jsonb null", |a, call| jsonb(array(a, call))),
        define("json_object(text[]) json", |a, _| object_of_pairs(elements_at(a, 0)).map(Value::Text)),
        define("jsonb_object(text[]) jsonb", |a, _| jsonb(object_of_pairs(elements_at(a, 0))?)),
        define("jsonb_object(text[], text[]) jsonb", |a, _| {
            jsonb(object_of_texts(elements_at(a, 0), elements_at(a, 1))?)
        }),
        define("json_object(text[], text[]) json", |a, _| {
            object_of_texts(elements_at(a, 0), elements_at(a, 1)).map(Value::Text)
        }),
        define("json_typeof(json) text", |a, _| Ok(document(a).kind().name().into())),
        define("jsonb_typeof(jsonb) text", |a, _| Ok(document(a).kind().name().into())),
        define("json_array_length(json) int", array_length),
        define("jsonb_array_length(jsonb) int", array_length),
        define("jsonb_pretty(jsonb) text", |a, _| print_json_pretty(&parsed(a, 0)?).map(Value::Text)),
        define("json_strip_nulls(json) json", |a, _| document(a).stripped().map(Value::Text)),
        define("jsonb_strip_nulls(jsonb) jsonb", |a, _| jsonb(document(a).stripped()?)),
        // What jsonb is compared and sorted by.
        define("fabius_json_order(text) bytea", |a, _| {
            let mut key = Vec::new();
            order(&parsed(a, 0)?, true, &mut key);
            Ok(Value::Bytea(key))
        }),
        define("row_to_json(json) json", |a, _| Ok(a[0].clone())),
        // Behind `json_to_record` and `json_to_recordset`: a field of each document, for a column of a type.
        define("fabius_json_field(text[], text, text) text[]", |a, _| {
            let values = elements_at(a, 0).into_iter().map(|document| {
                let Value::Text(document) = document else { return Ok(Value::Null) };
                let document = Part::of(&document);
                if document.kind() != Kind::Object {
                    return Err(not_an("object"));
                }
                let Some(field) = document.member(text_at(a, 1))? else { return Ok(Value::Null) };
                match text_at(a, 2) {
                    "json" => Ok(field.as_json()),
                    "array" => field.as_array(),
                    _ => field.as_text(),
                }
            });
            Ok(super::array_of(values.collect::<Result<Vec<_>>>()?))
        }),
        define("array_to_json(anyarray) json", |a, call| {
            Ok(Value::Text(literal(&a[0], type_at(call, 0), &call.environment.style)))
        }),
        // Behind the set-returning ones, which are unnested.
        define("fabius_json_elements(text, bool) text[]", |a, _| {
            let document = document(a);
            if document.kind() != Kind::Array {
                return Err(not_an("array"));
            }
            let items = document.items()?.into_iter().map(|item| taken(Some(item), truth_at(a, 1)));
            Ok(super::array_of(items.collect::<Result<Vec<_>>>()?))
        }),
        define("fabius_json_keys(text) text[]", |a, _| {
            Ok(super::array_of(object_at(a)?.into_iter().map(|(key, _)| key.into())))
        }),
        define("fabius_json_values(text, bool) text[]", |a, _| {
            let values = object_at(a)?.into_iter().map(|(_, value)| taken(Some(value), truth_at(a, 1)));
            Ok(super::array_of(values.collect::<Result<Vec<_>>>()?))
        }),
        define("fabius_row_json(text[], any...) json null", |a, call| {
            let fields = elements_at(a, 0).into_iter().zip(a.iter().zip(&call.types).skip(1)).map(
                |(name, (value, sql_type))| {
                    format!(
                        "{}:{}",
                        quoted_json(text_at(&[name], 0)),
                        literal(value, sql_type, &call.environment.style)
                    )
                },
            );
            Ok(Value::Text(format!("{{{}}}", fields.collect::<Vec<_>>().join(","))))
        }),
    ];
    all.extend(parts());
    all.extend(changes());
    all
}

/// Operators and functions that change documents.
fn changes() -> Vec<Definition> {
    vec![
        define("||(jsonb, jsonb) jsonb", |a, _| {
            let joined = match (parsed(a, 0)?, parsed(a, 1)?) {
                (Json::Object(mut left), Json::Object(right)) => {
                    left.extend(right);
                    Json::Object(left)
                }
                (left, right) => {
                    let items = |json| if let Json::Array(items) = json { items } else { vec![json] };
                    Json::Array(items(left).into_iter().chain(items(right)).collect())
                }
            };
            shown(&joined)
        }),
        define("-(jsonb, text) jsonb", |a, _| {
            let mut json = container(a)?;
            remove_key(&mut json, text_at(a, 1));
            shown(&json)
        }),
        define("-(jsonb, int) jsonb", |a, _| {
            let mut json = container(a)?;
            let items = json.as_array_mut().ok_or_else(|| {
                Error::new(SqlState::INVALID_PARAMETER, "cannot delete from object using integer index")
            })?;
            if let Some(at) = place(items.len(), integer_at(a, 1)) {
                items.remove(at);
            }
            shown(&json)
        }),
        define("-(jsonb, text[]) jsonb", |a, _| {
            let mut json = container(a)?;
            for key in keys_at(a, 1) {
                remove_key(&mut json, &key);
            }
            shown(&json)
        }),
        define("#-(jsonb, text[]) jsonb", |a, _| changed(a, &Change::Remove)),
        define("jsonb_set(jsonb, text[], jsonb, bool?) jsonb", |a, _| {
            changed(a, &Change::Set { new: parsed(a, 2)?, makes_new: a.len() < 4 || truth_at(a, 3) })
        }),
        define("jsonb_set_lax(jsonb, text[], jsonb, bool?, text?) jsonb null", set_lax),
        define("jsonb_insert(jsonb, text[], jsonb, bool?) jsonb", |a, _| {
            changed(a, &Change::Insert { new: parsed(a, 2)?, is_after: truth_at(a, 3) })
        }),
    ]
}

/// `->` and `#>` give JSON, `->>` and `#>>` its text; what a document contains.
fn parts() -> Vec<Definition> {
    vec![
        define("->(json, text) json", |a, _| field_of(a, false)),
        define("->(jsonb, text) jsonb", |a, _| field_of(a, false)),
        define("->>(json, text) text", |a, _| field_of(a, true)),
        define("->>(jsonb, text) text", |a, _| field_of(a, true)),
        define("->(json, int) json", |a, _| item_of(a, false, false)),
        define("->(jsonb, int) jsonb", |a, _| item_of(a, true, false)),
        define("->>(json, int) text", |a, _| item_of(a, false, true)),
        define("->>(jsonb, int) text", |a, _| item_of(a, true, true)),
        define("#>(json, text[]) json", |a, _| at_path(a, false)),
        define("#>(jsonb, text[]) jsonb", |a, _| at_path(a, false)),
        define("#>>(json, text[]) text", |a, _| at_path(a, true)),
        define("#>>(jsonb, text[]) text", |a, _| at_path(a, true)),
        define("@>(jsonb, jsonb) bool", |a, _| Ok(Value::Boolean(contains(&parsed(a, 0)?, &parsed(a, 1)?)))),
        define("<@(jsonb, jsonb) bool", |a, _| Ok(Value::Boolean(contains(&parsed(a, 1)?, &parsed(a, 0)?)))),
        define("?(jsonb, text) bool", |a, _| Ok(Value::Boolean(has_key(&parsed(a, 0)?, text_at(a, 1))))),
        define("?|(jsonb, text[]) bool", |a, _| Ok(Value::Boolean(has(a, false)?))),
        define("?&(jsonb, text[]) bool", |a, _| Ok(Value::Boolean(has(a, true)?))),
        define("json_extract_path(json, text...) json", |a, _| extracted(a, false)),
        define("jsonb_extract_path(jsonb, text...) jsonb", |a, _| extracted(a, false)),
        define("json_extract_path_text(json, text...) text", |a, _| extracted(a, true)),
        define("jsonb_extract_path_text(jsonb, text...) text", |a, _| extracted(a, true)),
    ]
}

/// `jsonb_set`, which is told what a null as the new value means.
fn set_lax(a: &[Value], _: &Call) -> Result<Value> {
    if a.iter().take(2).chain(a.get(3)).any(Value::is_null) {
        return Ok(Value::Null);
    }
    let treatment = match a.get(4) {
        Some(Value::Text(treatment)) => treatment.as_str(),
        Some(_) => "",
        None => "use_json_null",
    };
    let makes_new = a.len() < 4 || truth_at(a, 3);
    let change = match (a[2].is_null(), treatment) {
        (false, _) => Change::Set { new: parsed(a, 2)?, makes_new },
        (true, "use_json_null") => Change::Set { new: Json::Null, makes_new },
        (true, "delete_key") => Change::Remove,
        (true, "return_target") => return Ok(a[0].clone()),
        (true, "raise_exception") => {
            return Err(Error::new(SqlState(*b"22004"), "JSON value must not be null")
                .with_detail("Exception was raised because null_value_treatment is \"raise_exception\"."));
        }
        (true, _) => {
            let message = "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"";
            return Err(Error::new(SqlState::INVALID_PARAMETER, message));
        }
    };
    changed(a, &change)
}

/// The document that is the first argument, as it is written.
fn document(a: &[Value]) -> Part<'_> {
    Part::of(text_at(a, 0))
}

/// The members of the first argument.
fn object_at(a: &[Value]) -> Result<Vec<(String, Part<'_>)>> {
    let document = document(a);
    if document.kind() == Kind::Object { document.members() } else { Err(not_an("object")) }
}

/// The value of a key, as JSON or as its text.
fn field_of(a: &[Value], as_text: bool) -> Result<Value> {
    taken(document(a).member(text_at(a, 1))?, as_text)
}

/// The item at a place of an array, from its end if the place is negative.
fn item_of(a: &[Value], is_binary: bool, as_text: bool) -> Result<Value> {
    let (document, at) = (document(a), integer_at(a, 1));
    let item = match document.kind() {
        Kind::Array => document.item(at)?,
        Kind::Object => None,
        // `jsonb` keeps what is neither an array nor an object as an array of one.
        _ => (is_binary && place(1, at).is_some()).then_some(document),
    };
    taken(item, as_text)
}

/// What is reached by keys and places.
fn at_path(a: &[Value], as_text: bool) -> Result<Value> {
    taken(document(a).at_path(&elements_at(a, 1))?, as_text)
}

fn type_at(call: &Call, at: usize) -> &SqlType {
    call.types.get(at).unwrap_or(&SqlType::Text)
}

/// A value as JSON.
pub fn literal(value: &Value, sql_type: &SqlType, style: &TextStyle) -> String {
    match (value, sql_type) {
        (Value::Null, _) => "null".into(),
        (Value::List(rows), SqlType::Array(element)) => {
            let items = rows
                .iter()
                .map(|row| row.first().map_or("null".into(), |value| literal(value, element, style)));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        (Value::Text(text), SqlType::Json | SqlType::JsonB) => text.clone(),
        (Value::Boolean(value), _) => value.to_string(),
        (Value::SmallInt(_) | Value::Int(_) | Value::Numeric(_), _) => cast_text(value, sql_type, style),
        (Value::BigInt(_), SqlType::BigInt | SqlType::Oid) => value.to_string(),
        (Value::Double(number), _) if number.is_finite() => cast_text(value, sql_type, style),
        (Value::Timestamp(_), SqlType::TimestampTz) => {
            let text = cast_text(value, sql_type, style).replacen(' ', "T", 1);
            // The offset has minutes here.
            let has_minutes = text.rsplit(['+', '-']).next().is_some_and(|offset| offset.contains(':'));
            quoted_json(&if has_minutes { text } else { text + ":00" })
        }
        (Value::Timestamp(_), _) => quoted_json(&cast_text(value, sql_type, style).replacen(' ', "T", 1)),
        (value, sql_type) => quoted_json(&text_format::text(value, sql_type, style).unwrap_or_default()),
    }
}

fn object(a: &[Value], call: &Call) -> Result<String> {
    if !a.len().is_multiple_of(2) {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER,
            "argument list must have even number of elements",
        )
        .with_hint("The arguments of json_build_object() must consist of alternating keys and values."));
    }
    let fields = a.chunks(2).enumerate().map(|(at, pair)| {
        if pair[0].is_null() {
            return Err(Error::new(SqlState(*b"22004"), format!("argument {} cannot be null", 2 * at + 1)));
        }
        let (sql_type, style) = (type_at(call, 2 * at), &call.environment.style);
        let key = match sql_type {
            SqlType::Char(_) | SqlType::Inet => {
                text_format::text(&pair[0], sql_type, style).unwrap_or_default()
            }
            _ => cast_text(&pair[0], sql_type, style),
        };
        Ok(format!(
            "{} : {}",
            quoted_json(&key),
            literal(&pair[1], type_at(call, 2 * at + 1), &call.environment.style)
        ))
    });
    Ok(format!("{{{}}}", fields.collect::<Result<Vec<_>>>()?.join(", ")))
}

fn array(a: &[Value], call: &Call) -> String {
    let items =
        a.iter().enumerate().map(|(at, value)| literal(value, type_at(call, at), &call.environment.style));
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn parsed(a: &[Value], at: usize) -> Result<Json> {
    parse_json(text_at(a, at))
}

/// A document as `jsonb`.
fn shown(json: &Json) -> Result<Value> {
    print_json(json).map(Value::Text)
}

fn jsonb(text: String) -> Result<Value> {
    text_format::jsonb(&text).map(Value::Text)
}

/// A part of a document: as text if `as_text`, where a JSON null is none.
fn taken(part: Option<Part<'_>>, as_text: bool) -> Result<Value> {
    match part {
        None => Ok(Value::Null),
        Some(part) if as_text => part.as_text(),
        Some(part) => Ok(part.as_json()),
    }
}

/// A document of which something is taken away.
fn container(a: &[Value]) -> Result<Json> {
    match parsed(a, 0)? {
        json @ (Json::Object(_) | Json::Array(_)) => Ok(json),
        _ => Err(Error::new(SqlState::INVALID_PARAMETER, "cannot delete from scalar")),
    }
}

fn remove_key(json: &mut Json, key: &str) {
    match json {
        Json::Object(members) => drop(members.shift_remove(key)),
        Json::Array(items) => items.retain(|item| item.as_str() != Some(key)),
        _ => {}
    }
}

/// The texts of an array; nulls are no keys.
fn keys_at(a: &[Value], at: usize) -> impl Iterator<Item = String> {
    elements_at(a, at).into_iter().filter_map(|key| if let Value::Text(key) = key { Some(key) } else { None })
}

/// A document changed at the path that is the second argument.
fn changed(a: &[Value], change: &Change) -> Result<Value> {
    let step = |(at, step): (usize, Value)| match step {
        Value::Text(step) => Ok(step),
        _ => Err(Error::new(SqlState(*b"22004"), format!("path element at position {} is null", at + 1))),
    };
    let path = elements_at(a, 1).into_iter().enumerate().map(step).collect::<Result<Vec<_>>>()?;
    let mut json = parsed(a, 0)?;
    change.apply(&mut json, &path)?;
    shown(&json)
}

/// Whether some or all texts are keys or elements of a document.
fn has(a: &[Value], is_all: bool) -> Result<bool> {
    let json = parsed(a, 0)?;
    let mut found = keys_at(a, 1).map(|key| has_key(&json, &key));
    Ok(if is_all { found.all(|is_there| is_there) } else { found.any(|is_there| is_there) })
}

/// What is at the end of a path of keys and places.
fn extracted(a: &[Value], as_text: bool) -> Result<Value> {
    taken(document(a).at_path(&a[1..])?, as_text)
}

/// An object of texts and nulls.
/// An object of keys and values in turns.
fn object_of_pairs(texts: Vec<Value>) -> Result<String> {
    if !texts.len().is_multiple_of(2) {
        return Err(Error::new(SqlState(*b"2202E"), "array must have even number of elements"));
    }
    let (keys, values) = texts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
    object_of_texts(keys, values)
}

fn object_of_texts(keys: Vec<Value>, values: Vec<Value>) -> Result<String> {
    if keys.len() != values.len() {
        return Err(Error::new(SqlState(*b"2202E"), "mismatched array dimensions"));
    }
    let member = |(key, value): (Value, Value)| match (key, value) {
        (Value::Text(key), Value::Text(value)) => Ok(format!("{} : {}", Json::from(key), Json::from(value))),
        (Value::Text(key), _) => Ok(format!("{} : null", Json::from(key))),
        _ => Err(Error::new(SqlState(*b"22004"), "null value not allowed for object key")),
    };
    let members: Vec<String> = keys.into_iter().zip(values).map(member).collect::<Result<_>>()?;
    Ok(format!("{{{}}}", members.join(", ")))
}

fn array_length(a: &[Value], _: &Call) -> Result<Value> {
    let document = document(a);
    match document.kind() {
        Kind::Array => Ok(Value::Int(document.items()?.len() as i32)),
        Kind::Object => {
            Err(Error::new(SqlState::INVALID_PARAMETER, "cannot get array length of a non-array"))
        }
        _ => Err(Error::new(SqlState::INVALID_PARAMETER, "cannot get array length of a scalar")),
    }
}

fn not_an(what: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("cannot extract elements: the document is not an {what}"))
}
