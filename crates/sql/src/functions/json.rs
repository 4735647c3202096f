//! Functions of `json` and `jsonb`.

use super::{Call, Definition, define, elements_at, integer_at, text_at, truth_at};
pub(crate) use crate::text_format::shown_json as printed;

use crate::sql_type::SqlType;
use crate::text_format::TextStyle;
use crate::text_format::cast_text;
use fabius_value::{Error, Result, SqlState, Value};
use serde_json::Value as Json;

/// All of them.
pub fn definitions() -> Vec<Definition> {
    vec![
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
        define("json_object(text[]) json", |a, _| {
            let texts = elements_at(a, 0);
            if !texts.len().is_multiple_of(2) {
                return Err(Error::new(SqlState(*b"2202E"), "array must have even number of elements"));
            }
            let (keys, values) = texts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
            object_of_texts(keys, values).map(Value::Text)
        }),
        define("json_object(text[], text[]) json", |a, _| {
            object_of_texts(elements_at(a, 0), elements_at(a, 1)).map(Value::Text)
        }),
        define("json_typeof(json) text", |a, _| Ok(kind(&parsed(a, 0)?).into())),
        define("jsonb_typeof(jsonb) text", |a, _| Ok(kind(&parsed(a, 0)?).into())),
        define("json_array_length(json) int", array_length),
        define("jsonb_array_length(jsonb) int", array_length),
        define("jsonb_pretty(jsonb) text", |a, _| {
            serde_json::to_string_pretty(&parsed(a, 0)?)
                .map(Value::Text)
                .map_err(|error| Error::new(SqlState(*b"XX000"), error.to_string()))
        }),
        define("json_strip_nulls(json) json", |a, _| Ok(Value::Text(stripped(parsed(a, 0)?).to_string()))),
        define("jsonb_strip_nulls(jsonb) jsonb", |a, _| Ok(Value::Text(printed(&stripped(parsed(a, 0)?))))),
        // What jsonb is compared and sorted by.
        define("fabius_json_order(text) bytea", |a, _| {
            let mut key = Vec::new();
            order(&parsed(a, 0)?, true, &mut key);
            Ok(Value::Bytea(key))
        }),
        // `->` and `#>` give JSON, `->>` and `#>>` its text.
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
            Ok(Value::Text(printed(&joined)))
        }),
        define("-(jsonb, text) jsonb", |a, _| {
            let mut json = parsed(a, 0)?;
            match &mut json {
                Json::Object(fields) => {
                    fields.shift_remove(text_at(a, 1));
                }
                Json::Array(items) => items.retain(|item| item.as_str() != Some(text_at(a, 1))),
                _ => {}
            }
            Ok(Value::Text(printed(&json)))
        }),
        define("-(jsonb, int) jsonb", |a, _| {
            let mut json = parsed(a, 0)?;
            let items = json.as_array_mut().ok_or_else(|| {
                Error::new(SqlState::INVALID_PARAMETER, "cannot delete from object using integer index")
            })?;
            if let Some(at) = place(items.len(), integer_at(a, 1)) {
                items.remove(at);
            }
            Ok(Value::Text(printed(&json)))
        }),
        define("-(jsonb, text[]) jsonb", |a, _| {
            let mut json = parsed(a, 0)?;
            for key in elements_at(a, 1) {
                let key = text_at(std::slice::from_ref(&key), 0);
                match &mut json {
                    Json::Object(fields) => drop(fields.shift_remove(key)),
                    Json::Array(items) => items.retain(|item| item.as_str() != Some(key)),
                    _ => {}
                }
            }
            Ok(Value::Text(printed(&json)))
        }),
        define("#-(jsonb, text[]) jsonb", |a, _| {
            let mut json = parsed(a, 0)?;
            change(&mut json, &path_at(a, 1), &mut |_| None, false);
            Ok(Value::Text(printed(&json)))
        }),
        define("jsonb_set(jsonb, text[], jsonb, bool?) jsonb", |a, _| {
            let (mut json, new) = (parsed(a, 0)?, parsed(a, 2)?);
            let makes_new = a.len() < 4 || truth_at(a, 3);
            change(&mut json, &path_at(a, 1), &mut |_| Some(new.clone()), makes_new);
            Ok(Value::Text(printed(&json)))
        }),
        define("jsonb_set_lax(jsonb, text[], jsonb, bool?, text?) jsonb null", set_lax),
        define("jsonb_insert(jsonb, text[], jsonb, bool?) jsonb", |a, _| {
            let (mut json, new) = (parsed(a, 0)?, parsed(a, 2)?);
            insert(&mut json, &path_at(a, 1), new, truth_at(a, 3))?;
            Ok(Value::Text(printed(&json)))
        }),
        define("json_extract_path(json, text...) json", |a, _| extracted(a, false)),
        define("jsonb_extract_path(jsonb, text...) jsonb", |a, _| extracted(a, false)),
        define("json_extract_path_text(json, text...) text", |a, _| extracted(a, true)),
        define("jsonb_extract_path_text(jsonb, text...) text", |a, _| extracted(a, true)),
        define("row_to_json(json) json", |a, _| Ok(a[0].clone())),
        // Behind `json_to_record` and `json_to_recordset`: a field of each document.
        define("fabius_json_field(text[], text) text[]", |a, _| {
            let mut values = Vec::new();
            for document in elements_at(a, 0) {
                values.push(taken(parsed(&[document], 0)?.get(text_at(a, 1)), true));
            }
            Ok(super::array_of(values))
        }),
        define("array_to_json(anyarray) json", |a, call| {
            Ok(Value::Text(literal(&a[0], type_at(call, 0), &call.environment.style)))
        }),
        // Behind the set-returning ones, which are unnested.
        define("fabius_json_elements(text, bool) text[]", |a, _| {
            let json = parsed(a, 0)?;
            let items = json.as_array().ok_or_else(|| not_an("array"))?;
            Ok(super::array_of(items.iter().map(|item| taken(Some(item), truth_at(a, 1)))))
        }),
        define("fabius_json_keys(text) text[]", |a, _| {
            let json = parsed(a, 0)?;
            let fields = json.as_object().ok_or_else(|| not_an("object"))?;
            Ok(super::array_of(fields.keys().map(|key| Value::from(key.as_str()))))
        }),
        define("fabius_json_values(text, bool) text[]", |a, _| {
            let json = parsed(a, 0)?;
            let fields = json.as_object().ok_or_else(|| not_an("object"))?;
            Ok(super::array_of(fields.values().map(|value| taken(Some(value), truth_at(a, 1)))))
        }),
        define("fabius_row_json(text[], any...) json null", |a, call| {
            let fields = elements_at(a, 0).into_iter().zip(a.iter().zip(&call.types).skip(1)).map(
                |(name, (value, sql_type))| {
                    format!(
                        "{}:{}",
                        quoted(text_at(&[name], 0)),
                        literal(value, sql_type, &call.environment.style)
                    )
                },
            );
            Ok(Value::Text(format!("{{{}}}", fields.collect::<Vec<_>>().join(","))))
        }),
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
    let mut json = parsed(a, 0)?;
    let makes_new = a.len() < 4 || truth_at(a, 3);
    let new = match (a[2].is_null(), treatment) {
        (false, _) => Some(parsed(a, 2)?),
        (true, "use_json_null") => Some(serde_json::Value::Null),
        (true, "delete_key") => None,
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
    let makes_new = makes_new && new.is_some();
    change(&mut json, &path_at(a, 1), &mut |_| new.clone(), makes_new);
    Ok(Value::Text(printed(&json)))
}

/// The value of a key, as JSON or as its text.
fn field_of(a: &[Value], as_text: bool) -> Result<Value> {
    Ok(taken(parsed(a, 0)?.get(text_at(a, 1)), as_text))
}

/// The item at a place of an array, from its end if the place is negative.
fn item_of(a: &[Value], is_binary: bool, as_text: bool) -> Result<Value> {
    let json = parsed(a, 0)?;
    let items = match &json {
        Json::Array(items) => items.as_slice(),
        Json::Object(_) => &[],
        // `jsonb` keeps what is neither an array nor an object as an array of one.
        scalar if is_binary => std::slice::from_ref(scalar),
        _ => &[],
    };
    Ok(taken(place(items.len(), integer_at(a, 1)).map(|at| &items[at]), as_text))
}

/// What is reached by keys and places.
fn at_path(a: &[Value], as_text: bool) -> Result<Value> {
    let json = parsed(a, 0)?;
    let found = elements_at(a, 1).iter().try_fold(&json, |json, step| match (json, step) {
        (Json::Array(items), Value::Text(step)) => items.get(step.parse::<usize>().ok()?),
        (json, Value::Text(step)) => json.get(step),
        _ => None,
    });
    Ok(taken(found, as_text))
}

fn type_at(call: &Call, at: usize) -> &SqlType {
    call.types.get(at).unwrap_or(&SqlType::Text)
}

fn quoted(text: &str) -> String {
    Json::String(text.to_string()).to_string()
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
            quoted(&if has_minutes { text } else { text + ":00" })
        }
        (Value::Timestamp(_), _) => quoted(&cast_text(value, sql_type, style).replacen(' ', "T", 1)),
        (value, sql_type) => quoted(&cast_text(value, sql_type, style)),
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
        let key = cast_text(&pair[0], type_at(call, 2 * at), &call.environment.style);
        Ok(format!(
            "{} : {}",
            quoted(&key),
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
    serde_json::from_str(text_at(a, at)).map_err(|error| {
        Error::new(SqlState::INVALID_TEXT, "invalid input syntax for type json")
            .with_detail(error.to_string())
    })
}

/// Appends bytes that compare as jsonb does: null, texts, numbers, truths, arrays, objects; what is larger has more
/// elements, or its first element that differs is larger. An empty array by itself comes before everything.
fn order(json: &Json, is_whole: bool, key: &mut Vec<u8>) {
    let order_text = |text: &str, key: &mut Vec<u8>| {
        key.extend(text.bytes());
        key.push(0);
    };
    match json {
        Json::Array(items) if is_whole && items.is_empty() => key.push(0),
        Json::Null => key.push(1),
        Json::String(text) => {
            key.push(2);
            order_text(text, key);
        }
        Json::Number(number) => {
            key.push(3);
            // Negative zero is zero.
            let bits = (number.as_f64().unwrap_or_default() + 0.0).to_bits();
            let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
            key.extend(ordered.to_be_bytes());
            // Integers that are the same as floating point.
            let whole = match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => i128::from(whole),
                (None, Some(whole)) => i128::from(whole),
                (None, None) => number.as_f64().unwrap_or_default() as i128,
            };
            key.extend((whole as u128 ^ 1 << 127).to_be_bytes());
        }
        Json::Bool(truth) => key.extend([4, u8::from(*truth)]),
        Json::Array(items) => {
            key.push(5);
            key.extend((items.len() as u32).to_be_bytes());
            items.iter().for_each(|item| order(item, false, key));
        }
        Json::Object(fields) => {
            key.push(6);
            key.extend((fields.len() as u32).to_be_bytes());
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| (name.len(), *name));
            for (name, value) in fields {
                order_text(name, key);
                order(value, false, key);
            }
        }
    }
}

fn jsonb(text: String) -> Result<Value> {
    parsed(&[Value::Text(text)], 0).map(|json| Value::Text(printed(&json)))
}

/// A part of a document: as text if `as_text`, where a JSON null is none.
fn taken(json: Option<&Json>, as_text: bool) -> Value {
    match json {
        None => Value::Null,
        Some(Json::Null) if as_text => Value::Null,
        Some(Json::String(text)) if as_text => Value::Text(text.clone()),
        Some(json) => Value::Text(printed(json)),
    }
}

fn path_at(a: &[Value], at: usize) -> Vec<String> {
    let steps = elements_at(a, at).into_iter();
    steps.filter_map(|step| if let Value::Text(step) = step { Some(step) } else { None }).collect()
}

/// The place of an element that is counted from the end if negative.
fn place(count: usize, at: i64) -> Option<usize> {
    let at = if at < 0 { count.checked_sub(at.unsigned_abs() as usize)? } else { at as usize };
    (at < count).then_some(at)
}

/// Replaces what is at the end of a path, or takes it out if there is nothing new; what is not there is made only at
/// the end, and if `makes_new`.
fn change(json: &mut Json, path: &[String], new: &mut dyn FnMut(&Json) -> Option<Json>, makes_new: bool) {
    let Some((step, rest)) = path.split_first() else { return };
    match json {
        Json::Object(fields) => match (fields.get_mut(step), rest) {
            (Some(found), []) => match new(found) {
                Some(value) => *found = value,
                None => drop(fields.shift_remove(step)),
            },
            (Some(found), rest) => change(found, rest, new, makes_new),
            (None, []) if makes_new => {
                if let Some(value) = new(&Json::Null) {
                    fields.insert(step.clone(), value);
                }
            }
            (None, _) => {}
        },
        Json::Array(items) => {
            let Ok(number) = step.parse::<i64>() else { return };
            match (place(items.len(), number), rest) {
                (Some(at), []) => match new(&items[at]) {
                    Some(value) => items[at] = value,
                    None => drop(items.remove(at)),
                },
                (Some(at), rest) => change(&mut items[at], rest, new, makes_new),
                (None, []) if makes_new => {
                    if let Some(value) = new(&Json::Null) {
                        let at = if number < 0 { 0 } else { items.len() };
                        items.insert(at, value);
                    }
                }
                (None, _) => {}
            }
        }
        _ => {}
    }
}

/// Puts a value before the end of a path, or behind it.
fn insert(json: &mut Json, path: &[String], new: Json, is_after: bool) -> Result<()> {
    let Some((step, rest)) = path.split_first() else { return Ok(()) };
    match (json, rest) {
        (Json::Object(fields), []) if fields.contains_key(step) => {
            Err(Error::new(SqlState::INVALID_PARAMETER, "cannot replace existing key")
                .with_hint("Try using the function jsonb_set to replace key value."))
        }
        (Json::Object(fields), []) => {
            fields.insert(step.clone(), new);
            Ok(())
        }
        (Json::Object(fields), rest) => {
            fields.get_mut(step).map_or(Ok(()), |found| insert(found, rest, new, is_after))
        }
        (Json::Array(items), rest) => {
            let Ok(number) = step.parse::<i64>() else { return Ok(()) };
            match (place(items.len(), number), rest) {
                (Some(at), []) => items.insert(at + usize::from(is_after), new),
                (Some(at), rest) => return insert(&mut items[at], rest, new, is_after),
                (None, []) => items.insert(if number < 0 { 0 } else { items.len() }, new),
                (None, _) => {}
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether some or all texts are keys or elements of a document.
fn has(a: &[Value], is_all: bool) -> Result<bool> {
    let json = parsed(a, 0)?;
    let is_there = |key: &String| has_key(&json, key);
    let keys = path_at(a, 1);
    Ok(if is_all { keys.iter().all(is_there) } else { keys.iter().any(is_there) })
}

/// Whether a text is a key, an element or the whole.
fn has_key(json: &Json, key: &str) -> bool {
    match json {
        Json::Object(fields) => fields.contains_key(key),
        Json::Array(items) => items.iter().any(|item| item.as_str() == Some(key)),
        other => other.as_str() == Some(key),
    }
}

/// What is at the end of a path of keys and places.
fn extracted(a: &[Value], as_text: bool) -> Result<Value> {
    let json = parsed(a, 0)?;
    let found = a.iter().skip(1).try_fold(&json, |json, step| match (json, step) {
        (Json::Array(items), Value::Text(step)) => items.get(place(items.len(), step.parse().ok()?)?),
        (json, Value::Text(step)) => json.get(step),
        _ => None,
    });
    Ok(taken(found, as_text))
}

fn stripped(json: Json) -> Json {
    match json {
        Json::Object(fields) => Json::Object(
            fields
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, stripped(value)))
                .collect(),
        ),
        Json::Array(items) => Json::Array(items.into_iter().map(stripped).collect()),
        other => other,
    }
}

fn contains(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Object(left), Json::Object(right)) => {
            right.iter().all(|(key, value)| left.get(key).is_some_and(|left| contains(left, value)))
        }
        (Json::Array(left), Json::Array(right)) => {
            right.iter().all(|right| left.iter().any(|left| contains(left, right)))
        }
        (Json::Array(left), right) if !right.is_object() => left.contains(right),
        (left, right) => left == right,
    }
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// An object of texts and nulls.
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
    let json = parsed(a, 0)?;
    json.as_array()
        .map(|items| Value::Int(items.len() as i32))
        .ok_or_else(|| Error::new(SqlState::INVALID_PARAMETER, "cannot get array length of a non-array"))
}

fn not_an(what: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("cannot extract elements: the document is not an {what}"))
}
