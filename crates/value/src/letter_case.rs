//! Upper and lower case, letter by letter, as PostgreSQL has it: a letter that would become several, as `ß` does, stays
//! what it is.

/// A text in upper case.
pub fn upper(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(upper_letter).collect() }
}

/// A text in lower case.
pub fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(lower_letter).collect() }
}

/// A text whose words begin with upper case and go on in lower case.
pub fn capital(text: &str) -> String {
    let mut is_within = false;
    let mut capital = String::with_capacity(text.len());
    for letter in text.chars() {
        capital.push(if is_within { lower_letter(letter) } else { upper_letter(letter) });
        is_within = letter.is_alphanumeric();
    }
    capital
}

fn upper_letter(letter: char) -> char {
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ => letter,
    }
}

fn lower_letter(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stay_as_many_as_they_are() {
        assert_eq!(upper("éß ŉ ﬁ"), "Éß ŉ ﬁ");
        assert_eq!(lower("ÀİΣ"), "àiσ");
        assert_eq!(capital("éCOLE ßa x1Y"), "École ßa X1y");
    }
}
