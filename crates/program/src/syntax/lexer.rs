//! Text to tokens.
//!
//! ```text
//! name      letter or _, then letters, digits, _ ; lower-cased     `Any Name` in backquotes, kept
//! number    42   1.50                                              no exponent: cast text for that
//! text      'it''s'                                                as in SQL: a quote is doubled
//! message   "not enough"                                           likewise
//! bytes     x'0aff'
//! comment   // to the end of the line
//! ```

use super::diagnostic::{Diagnostic, Span};
use fabius_value::{Decimal, SqlState, limit};

/// A token and where it stands.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    /// A name or word, lower-cased.
    Word(String),
    /// A name in backquotes: never a word of the language.
    Quoted(String),
    /// An integer.
    Integer(i128),
    /// A number with a point.
    Decimal(Decimal),
    /// `'...'`
    Text(String),
    /// `"..."`
    Message(String),
    /// `x'...'`
    Bytes(Vec<u8>),
    /// Punctuation or an operator.
    Symbol(&'static str),
    /// After the last token.
    End,
}

/// Longest first, so that the first match is the longest.
const SYMBOLS: &[&str] = &[
    "<..<", "<..", "..<", "..", "?.", "->", "::", "+=", "-=", "*=", "/=", "%=", "<>", "<=", ">=", "||", "(",
    ")", "[", "]", "{", "}", ",", ":", ".", "=", "<", ">", "+", "-", "*", "/", "%",
];

/// Whether a name reads back as itself without backquotes (if it is not reserved).
pub fn is_plain_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|c| starts_name(c) && !c.is_ascii_uppercase())
        && characters.all(|c| continues_name(c) && !c.is_ascii_uppercase())
}

fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn continues_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// What other languages write and this one does not: what it begins with, and what to write. None
/// of it can stand in a text that follows the grammar.
const FOREIGN: &[(&str, &str)] = &[
    ("!=", "write <> for not equal"),
    ("==", "write = for equal; a statement that begins with a name assigns"),
    ("=>", "write >= for greater or equal"),
    ("=+", "write += to add to what is there"),
    (":=", "write = to assign"),
    ("++", "write += 1 to add one"),
    ("/*", "each line of a comment starts with //"),
    ("#", "comments start with //"),
    ("!", "write not"),
    ("&", "write and"),
    ("|", "write or, or || to join texts"),
    ("?", "a choice is written if e then a else b, a row that may be missing table[key]?.column"),
    ("$", "parameters are named: procedure p(amount: int)"),
    ("^", "write power(a, b)"),
    ("\u{2018}", TEXTS),
    ("\u{2019}", TEXTS),
    ("\u{201a}", TEXTS),
    ("\u{201c}", TEXTS),
    ("\u{201d}", TEXTS),
    ("\u{201e}", TEXTS),
];

/// For quotes of other kinds.
const TEXTS: &str = "texts stand in straight single quotes: 'text'";

/// All tokens of a text, the last being [`TokenKind::End`]; if something in it is no token, those
/// before that, and what is wrong with it: a character that starts none, an unclosed quote, a number
/// with too many digits, a name that is too long.
pub fn tokens(text: &str) -> (Vec<Token>, Option<Diagnostic>) {
    let mut tokens = Vec::new();
    let (mut at, mut stray) = (0, None);
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().expect("the text goes on");
        if first.is_whitespace() || (at == 0 && first == '\u{feff}') {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let (kind, length) = match token(rest, first) {
            Ok(token) => token,
            Err(mut diagnostic) => {
                diagnostic.span.start += at as u32;
                diagnostic.span.end += at as u32;
                if first == ';' {
                    diagnostic = diagnostic.with_hint(without_semicolon(&tokens));
                }
                stray = Some(diagnostic);
                break;
            }
        };
        tokens.push(Token { kind, span: Span { start: at as u32, end: (at + length) as u32 } });
        at += length;
    }
    let end = at as u32;
    tokens.push(Token { kind: TokenKind::End, span: Span { start: end, end } });
    (tokens, stray)
}

/// What to write for a `;` after these tokens: in a table's braces a comma.
fn without_semicolon(tokens: &[Token]) -> &'static str {
    let begins = |token: &Token| matches!(&token.kind, TokenKind::Word(word) if word == "table" || word == "procedure");
    let definition = tokens.iter().rposition(begins).map_or(&[][..], |at| &tokens[at..]);
    let count = |symbol| definition.iter().filter(|token| token.kind == TokenKind::Symbol(symbol)).count();
    let is_table = definition.first().is_some_and(|token| token.kind == TokenKind::Word("table".into()));
    match is_table && count("{") > count("}") {
        true => "a comma stands between the parts of a table: table t { id: int, primary key (id) }",
        false => "statements end by themselves; leave the ; out",
    }
}

/// The token that `rest` begins with, and its length in bytes. Spans of errors count from `rest`.
fn token(rest: &str, first: char) -> Result<(TokenKind, usize), Diagnostic> {
    if let Some(hex) = rest.strip_prefix("x'").or_else(|| rest.strip_prefix("X'")) {
        return bytes(hex);
    }
    if starts_name(first) {
        let length = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        return Ok((TokenKind::Word(checked_name(rest[..length].to_ascii_lowercase(), length)?), length));
    }
    if first.is_ascii_digit() {
        return number(rest);
    }
    match first {
        '\'' => quoted(rest, '\'').map(|(text, length)| (TokenKind::Text(text), length)),
        '"' => quoted(rest, '"').map(|(text, length)| (TokenKind::Message(text), length)),
        '`' => {
            let (name, length) = quoted(rest, '`')?;
            Ok((TokenKind::Quoted(checked_name(name, length)?), length))
        }
        _ => symbol(rest, first),
    }
}

fn symbol(rest: &str, first: char) -> Result<(TokenKind, usize), Diagnostic> {
    let found = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    let length = found.map_or(0, |symbol| symbol.len());
    let foreign = FOREIGN.iter().find(|(foreign, _)| foreign.len() > length && rest.starts_with(foreign));
    match (foreign, found) {
        (Some((foreign, hint)), _) => {
            let what = if foreign.len() > first.len_utf8() {
                format!("`{foreign}`")
            } else {
                format!("character {first:?}")
            };
            Err(error(foreign.len(), format!("unexpected {what}")).with_hint(*hint))
        }
        (None, Some(symbol)) => Ok((TokenKind::Symbol(symbol), length)),
        (None, None) => Err(error(first.len_utf8(), format!("unexpected character {first:?}"))),
    }
}

fn error(length: usize, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(SqlState::SYNTAX_ERROR, Span { start: 0, end: length as u32 }, message)
}

fn checked_name(name: String, length: usize) -> Result<String, Diagnostic> {
    if name.is_empty() || name.len() > limit::NAME_BYTES {
        return Err(error(
            length,
            format!("a name has 1 to {} bytes, this one {}", limit::NAME_BYTES, name.len()),
        ));
    }
    Ok(name)
}

/// The content between quotes, a doubled quote standing for one, and the length with the quotes.
fn quoted(rest: &str, quote: char) -> Result<(String, usize), Diagnostic> {
    let mut content = String::new();
    let mut at = 1;
    loop {
        let Some(length) = rest[at..].find(quote) else {
            let line = rest.find('\n').unwrap_or(rest.len());
            return Err(error(line, format!("{quote} is not closed"))
                .with_hint(format!("a {quote} inside is written twice: {quote}{quote}")));
        };
        content += &rest[at..at + length];
        at += length + 1;
        if !rest[at..].starts_with(quote) {
            return Ok((content, at));
        }
        content.push(quote);
        at += 1;
    }
}

fn bytes(hex: &str) -> Result<(TokenKind, usize), Diagnostic> {
    let Some(length) = hex.find('\'') else {
        return Err(error(2, "' is not closed"));
    };
    let digits = hex.as_bytes()[..length].chunks(2).map(|pair| match pair {
        [high, low] => {
            let nibble = |digit: &u8| (*digit as char).to_digit(16).map(|nibble| nibble as u8);
            Some(nibble(high)? << 4 | nibble(low)?)
        }
        _ => None,
    });
    match digits.collect() {
        Some(bytes) => Ok((TokenKind::Bytes(bytes), length + 3)),
        None => Err(error(length + 3, "bytes are not pairs of hexadecimal digits")
            .with_hint("two digits make a byte: x'0aff'")),
    }
}

fn number(rest: &str) -> Result<(TokenKind, usize), Diagnostic> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut length = digits(rest);
    // `1 .. 5` may be written `1..5`, so a point belongs to the number only before a digit.
    let fraction = rest[length..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 {
        length += 1 + fraction;
    }
    if rest[length..].starts_with(starts_name) {
        let end = rest[length..].find(|c| !continues_name(c)).map_or(rest.len(), |at| length + at);
        return Err(error(end, format!("{} is neither a number nor a name", &rest[..end.min(60)]))
            .with_hint("an exponent is written as text: '1e6'::double precision"));
    }
    let decimal = Decimal::parse(&rest[..length]).ok_or_else(|| {
        error(length, format!("a number has at most {} digits", limit::NUMERIC_PRECISION))
            .with_hint("one that need not be exact is written as text: '1e40'::double precision")
    })?;
    let kind = if fraction > 0 { TokenKind::Decimal(decimal) } else { TokenKind::Integer(decimal.mantissa) };
    Ok((kind, length))
}
