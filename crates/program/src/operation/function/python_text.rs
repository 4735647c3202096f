//! What Python's `str` says of all characters of a text: `isalpha`, `isdigit` and their like.
//!
//! (Python's library reference, "String Methods"; classes of characters are Unicode's.)

use fabius_value::{Error, Result, SqlState};
use regex::Regex;
use std::sync::LazyLock;

/// Digits that stand in no decimal number: raised, lowered, circled and others.
const OTHER_DIGITS: &str = concat!(
    r"\u{b2}\u{b3}\u{b9}\u{1369}-\u{1371}\u{19da}\u{2070}\u{2074}-\u{2079}\u{2080}-\u{2089}",
    r"\u{2460}-\u{2468}\u{2474}-\u{247c}\u{2488}-\u{2490}\u{24ea}\u{24f5}-\u{24fd}\u{24ff}\u{2776}-\u{277e}",
    r"\u{2780}-\u{2788}\u{278a}-\u{2792}\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}",
    r"\u{1f100}-\u{1f10a}",
);

/// White space: that of Unicode, and what separates files, groups, records and units.
const WHITE: &str = r"\p{White_Space}\u{1c}-\u{1f}";

/// A text has a property if the one pattern is found in it, and the other is not.
struct Property {
    name: &'static str,
    wanted: Regex,
    unwanted: Option<Regex>,
}

static PROPERTIES: LazyLock<Vec<Property>> = LazyLock::new(|| {
    let all = |class: &str| (format!("^[{class}]+$"), None);
    let cased = |class: &str, other: &str| (format!("[{class}]"), Some(format!(r"[{other}\p{{Lt}}]")));
    let properties = [
        ("isalpha", all(r"\p{L}")),
        ("isdecimal", all(r"\p{Nd}")),
        ("isdigit", all(&format!(r"\p{{Nd}}{OTHER_DIGITS}"))),
        ("isalnum", all(r"\p{L}\p{N}")),
        ("isspace", all(WHITE)),
        ("isascii", (r"^[\x00-\x7f]*$".into(), None)),
        ("isupper", cased(r"\p{Uppercase}", r"\p{Lowercase}")),
        ("islower", cased(r"\p{Lowercase}", r"\p{Uppercase}")),
    ];
    let compiled = |pattern: &str| Regex::new(pattern).expect("the pattern is a constant");
    let property = |(name, (wanted, unwanted)): (&'static str, (String, Option<String>))| Property {
        name,
        wanted: compiled(&wanted),
        unwanted: unwanted.as_deref().map(compiled),
    };
    properties.into_iter().map(property).collect()
});

/// What the method of `str` of a name says of a text; `22023` if there is no such method here.
pub(super) fn has_property(text: &str, name: &str) -> Result<bool> {
    let unknown = || Error::new(SqlState::INVALID_PARAMETER, format!("'{name}' is no property of texts"));
    let property = PROPERTIES.iter().find(|property| property.name == name).ok_or_else(unknown)?;
    Ok(property.wanted.is_match(text)
        && !property.unwanted.as_ref().is_some_and(|unwanted| unwanted.is_match(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: texts have the properties that they have in Python 3.11.
    #[test]
    fn properties() {
        let of = |text: &str| -> String {
            let has = |property: &Property| has_property(text, property.name).unwrap();
            let names =
                PROPERTIES.iter().filter(|property| has(property)).map(|property| &property.name[2..]);
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(""), "ascii");
        assert_eq!(of("abc"), "alpha alnum ascii lower");
        assert_eq!(of("ÄB1"), "alnum upper");
        assert_eq!(of("12"), "decimal digit alnum ascii");
        assert_eq!(of("٣"), "decimal digit alnum");
        assert_eq!(of("²⑨"), "digit alnum");
        assert_eq!(of("½"), "alnum");
        assert_eq!(of("中ª"), "alpha alnum lower");
        assert_eq!(of("ǅ"), "alpha alnum");
        assert_eq!(of("Ⅷ"), "alnum upper");
        assert_eq!(of(" \u{1f}\u{85}\u{3000}\n"), "space");
        assert_eq!(of("a\n"), "ascii lower");
        assert_eq!(of("1\n"), "ascii");
        assert!(has_property("a", "istitle").is_err());
    }
}
