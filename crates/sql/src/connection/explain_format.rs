//! The forms in which `EXPLAIN` shows a plan to programs (PostgreSQL's documentation, `EXPLAIN`, `FORMAT`).

use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Lines for people.
    Text,
    Json,
    Xml,
    Yaml,
}

impl Format {
    /// The form of a name.
    pub fn of_name(name: &str) -> Option<Format> {
        Some(match name {
            "text" => Format::Text,
            "json" => Format::Json,
            "xml" => Format::Xml,
            "yaml" => Format::Yaml,
            _ => return None,
        })
    }

    /// A plan, and what is said beside it, as text; `None` if it is shown in lines.
    pub fn write(self, whole: Map<String, Value>) -> Option<String> {
        let mut out = String::new();
        match self {
            Format::Text => return None,
            Format::Json => out = serde_json::to_string_pretty(&json!([whole])).unwrap_or_default(),
            Format::Xml => {
                out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n");
                xml("Query", &Value::Object(whole), 1, &mut out);
                out.push_str("</explain>");
            }
            Format::Yaml => {
                yaml_items(&[Value::Object(whole)], 0, &mut out);
                out.truncate(out.trim_end().len());
            }
        }
        Some(out)
    }
}

/// An element, with others within it.
fn xml(name: &str, value: &Value, depth: usize, out: &mut String) {
    let tag = name.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "-");
    let indent = "  ".repeat(depth);
    let mut within = |each: &mut dyn FnMut(&mut String)| {
        // A String takes whatever is written.
        let _ = writeln!(out, "{indent}<{tag}>");
        each(out);
        let _ = writeln!(out, "{indent}</{tag}>");
    };
    match value {
        Value::Object(fields) => {
            within(&mut |out| fields.iter().for_each(|(name, value)| xml(name, value, depth + 1, out)));
        }
        Value::Array(items) => {
            let item = name.strip_suffix('s').filter(|_| name == "Plans").unwrap_or("Item");
            within(&mut |out| items.iter().for_each(|value| xml(item, value, depth + 1, out)));
        }
        one => {
            let text = one.as_str().map_or_else(|| one.to_string(), escaped);
            let _ = writeln!(out, "{indent}<{tag}>{text}</{tag}>");
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The fields of a mapping, each on a line of its own.
fn yaml_fields(fields: &Map<String, Value>, depth: usize, out: &mut String) {
    for (at, (name, value)) in fields.iter().enumerate() {
        if at > 0 {
            out.push_str(&"  ".repeat(depth));
        }
        let _ = write!(out, "{name}: ");
        match value {
            Value::Object(fields) => {
                let _ = write!(out, "\n{}", "  ".repeat(depth + 1));
                yaml_fields(fields, depth + 1, out);
            }
            Value::Array(items) => {
                out.push('\n');
                yaml_items(items, depth + 1, out);
            }
            one => {
                let _ = writeln!(out, "{one}");
            }
        }
    }
}

/// The items of a list, each behind a dash.
fn yaml_items(items: &[Value], depth: usize, out: &mut String) {
    for item in items {
        let _ = write!(out, "{}- ", "  ".repeat(depth));
        match item {
            Value::Object(fields) => yaml_fields(fields, depth + 1, out),
            one => {
                let _ = writeln!(out, "{one}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a plan within a plan, lists, texts with signs that have a meaning.
    #[test]
    fn plans_are_shown_in_each_form() {
        let Value::Object(whole) = json!({
            "Plan": {"Node Type": "Sort", "Output": ["a < 'b\"'", "1"], "Plans": [{"Node Type": "Scan"}]},
            "Execution Time": 0.5,
        }) else {
            unreachable!("an object")
        };
        let xml = "\
<explain xmlns=\"http://www.postgresql.org/2009/explain\">
  <Query>
    <Plan>
      <Node-Type>Sort</Node-Type>
      <Output>
        <Item>a &lt; 'b&quot;'</Item>
        <Item>1</Item>
      </Output>
      <Plans>
        <Plan>
          <Node-Type>Scan</Node-Type>
        </Plan>
      </Plans>
    </Plan>
    <Execution-Time>0.5</Execution-Time>
  </Query>
</explain>";
        assert_eq!(Format::Xml.write(whole.clone()).as_deref(), Some(xml));
        let yaml = "\
- Plan: 
    Node Type: \"Sort\"
    Output: 
      - \"a < 'b\\\"'\"
      - \"1\"
    Plans: 
      - Node Type: \"Scan\"
  Execution Time: 0.5";
        assert_eq!(Format::Yaml.write(whole.clone()).as_deref(), Some(yaml));
        assert_eq!(Format::Text.write(whole), None);
    }
}
