//! How `jsonb` is compared, sorted and searched.

use crate::text_format::{order_json_number, sorted_members};
use serde_json::Value as Json;

/// Appends bytes that compare as jsonb does: null, texts, numbers, truths, arrays, objects; what is larger has more
/// elements, or its first element that differs is larger. An empty array by itself comes before everything.
pub fn order(json: &Json, is_whole: bool, key: &mut Vec<u8>) {
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
            order_json_number(number, key);
        }
        Json::Bool(truth) => key.extend([4, u8::from(*truth)]),
        Json::Array(items) => {
            key.push(5);
            key.extend((items.len() as u32).to_be_bytes());
            items.iter().for_each(|item| order(item, false, key));
        }
        Json::Object(members) => {
            key.push(6);
            key.extend((members.len() as u32).to_be_bytes());
            for (name, value) in sorted_members(members) {
                order_text(name, key);
                order(value, false, key);
            }
        }
    }
}

/// Whether a document contains another: `@>`.
pub fn contains(left: &Json, right: &Json) -> bool {
    match (left, right) {
        // An array contains an element that stands by itself, but only here.
        (Json::Array(left), right) if is_scalar(right) => left.iter().any(|left| is_same(left, right)),
        _ => contains_part(left, right),
    }
}

fn contains_part(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Object(left), Json::Object(right)) => {
            right.iter().all(|(key, value)| left.get(key).is_some_and(|left| contains_part(left, value)))
        }
        (Json::Array(left), Json::Array(right)) => {
            right.iter().all(|right| left.iter().any(|left| contains_part(left, right)))
        }
        (left, right) => is_scalar(right) && is_same(left, right),
    }
}

fn is_scalar(json: &Json) -> bool {
    !matches!(json, Json::Array(_) | Json::Object(_))
}

fn is_same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            let key = |number| {
                let mut key = Vec::new();
                order_json_number(number, &mut key);
                key
            };
            key(left) == key(right)
        }
        (left, right) => left == right,
    }
}

/// Whether a text is a key, an element or the whole: `?`.
pub fn has_key(json: &Json, key: &str) -> bool {
    match json {
        Json::Object(members) => members.contains_key(key),
        Json::Array(items) => items.iter().any(|item| item.as_str() == Some(key)),
        other => other.as_str() == Some(key),
    }
}
