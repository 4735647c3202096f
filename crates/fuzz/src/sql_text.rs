//! Texts that clients send as SQL, on a database in memory.
//!
//! ```text
//! byte 0          printable: the input is the text itself
//! otherwise       edits of statements of the corpus, two bytes for each choice:
//!                 how many statements; of each, which, and how many edits; of each edit, which, where, and what
//! ```
//!
//! Every statement is prepared and run. Nothing panics or hangs, every error has an SQLSTATE that a client can be
//! shown, and afterwards the database serves another client, with all that is in it.

use crate::input::Input;
use crate::sql_rig::Rig;
use std::sync::OnceLock;

/// Statements as people write them; a blank line ends one.
const CORPUS: &str = include_str!("sql_corpus.sql");

/// What statements find.
pub(crate) const TABLES: &str = "
    CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, qty int DEFAULT 5, price numeric(10,2),
        made date, CHECK (qty >= 0));
    CREATE INDEX items_name ON items (name);
    CREATE TABLE orders (id bigserial PRIMARY KEY, item int NOT NULL REFERENCES items (id) ON DELETE CASCADE,
        client varchar(10), total double precision, at timestamp, paid boolean DEFAULT false, UNIQUE (item, client));
    CREATE TABLE notes (note text, at timestamptz, data jsonb);
    CREATE SEQUENCE numbers;
    CREATE VIEW cheap AS SELECT id, name FROM items WHERE price < 10;
    INSERT INTO items VALUES (1, 'pen', 10, 1.5, '2024-01-31'), (2, 'ink', 0, 20, NULL), (3, 'cap', NULL, NULL, '1999-12-31');
    INSERT INTO orders (item, client, total, at, paid) VALUES (1, 'a', 1.5, '2024-02-29 12:00:00', true), (1, 'b', 3, NULL, false),
        (2, NULL, NULL, '2024-03-01 00:00:00', NULL);
    INSERT INTO notes VALUES ('one', '2024-02-29 12:00:00+01', '{\"a\": [1, 2]}'), (NULL, NULL, NULL)";

pub(crate) fn run(bytes: &[u8]) {
    let text = match bytes.first() {
        None => return,
        Some(b'\t' | b'\n' | b' '..=b'~') => String::from_utf8_lossy(bytes).into_owned(),
        Some(_) => edited(&mut Input::new(&bytes[1..])),
    };
    let mut rig = Rig::new(TABLES);
    // What fails is checked there; what succeeds may give anything.
    drop(rig.run(&text));
    rig.check();
}

/// The corpus, each statement as its words.
fn corpus() -> &'static [Vec<String>] {
    static CORPUS_WORDS: OnceLock<Vec<Vec<String>>> = OnceLock::new();
    CORPUS_WORDS.get_or_init(|| CORPUS.split("\n\n").map(words).filter(|words| !words.is_empty()).collect())
}

/// A text divided where its tokens end, roughly: words, quoted texts, single signs, each with the blanks behind it.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            '$' => rest[1..].find(|c: char| !c.is_alphanumeric()).map_or(rest.len(), |at| at + 1),
            c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        let blanks = after.len() - after.trim_start().len();
        words.push(format!("{word}{}", if blanks > 0 { " " } else { "" }));
        rest = &after[blanks..];
    }
    words
}

fn edited(input: &mut Input<'_>) -> String {
    let corpus = corpus();
    let mut texts = Vec::new();
    for _ in 0..=input.below(4) {
        let mut words = corpus[input.below(corpus.len())].clone();
        for _ in 0..input.below(7) {
            let (at, other) = (input.below(words.len().max(1)), &corpus[input.below(corpus.len())]);
            let word = other[input.below(other.len())].clone();
            match input.below(9) {
                _ if words.is_empty() => words.push(word),
                0 => drop(words.remove(at)),
                1 => words.insert(at, word),
                2 => words[at] = word,
                3 => words[at] = EDGES[input.below(EDGES.len())].into(),
                4 => words.insert(at, words[at].clone()),
                5 => words.truncate(at + 1),
                6 => words.splice(at.., other.iter().skip(input.below(other.len())).cloned()).for_each(drop),
                7 => {
                    let end = at + input.below(words.len() - at + 1);
                    let part: Vec<String> = words[at..end].to_vec();
                    words.splice(at..at, part).for_each(drop);
                }
                _ => {
                    let end = input.below(words.len());
                    words.swap(at, end);
                }
            }
        }
        texts.push(words.concat());
    }
    texts.join(";\n")
}

/// Words that edges lie at.
const EDGES: &[&str] = &[
    "NULL ",
    "0 ",
    "-1 ",
    "2147483648 ",
    "9223372036854775807 ",
    "-9223372036854775808 ",
    "1e308 ",
    "0.0000000001 ",
    "99999999999999999999999999999999999999 ",
    "'' ",
    "'\u{e4}\u{1F600}' ",
    "'NaN' ",
    "'infinity' ",
    "'0001-01-01' ",
    "'9999-12-31' ",
    "$1 ",
    "$2 ",
    "* ",
    "( ",
    ") ",
    "\"\" ",
    "DEFAULT ",
    "::text ",
    "::int ",
    "::numeric ",
    "::timestamp ",
    "::jsonb ",
    "::interval ",
    "::int[] ",
    "ARRAY[1, NULL] ",
    "(SELECT NULL) ",
    "id ",
    "items ",
    "orders ",
    "numbers ",
    "pg_class ",
    "/* ",
    "-- ",
    "$$ ",
];

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = CORPUS.split("\n\n").map(|text| text.trim().as_bytes().to_vec());
    let choices = (0..64u8).map(|seed| {
        let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        std::iter::once(0).chain((0..120).map(|_| next())).collect()
    });
    texts.filter(|text| !text.is_empty()).chain(choices).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Goal: edits leave so much of the statements that they come far: some run, others fail in many ways.
    #[test]
    fn edited_statements_come_far() {
        let (mut ran, mut failed) = (0, BTreeSet::new());
        for seed in seeds().iter().filter(|seed| seed[0] == 0) {
            for answer in Rig::new(TABLES).run(&edited(&mut Input::new(&seed[1..]))) {
                match answer {
                    Ok(_) => ran += 1,
                    Err(error) => _ = failed.insert(error.state().as_str().to_string()),
                }
            }
        }
        assert!(ran >= 10, "{ran} ran");
        assert!(failed.len() >= 8, "{failed:?}");
    }
}
