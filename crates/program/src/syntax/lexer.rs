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

/// All tokens of a text, the last being [`TokenKind::End`].
///
/// # Errors
/// The first character that starts no token, an unclosed quote, a number with too many digits, a
/// name that is too long.
pub fn tokens(text: &str) -> Result<Vec<Token>, Diagnostic> {
    let mut tokens = Vec::new();
    let mut at = 0;
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
        let (kind, length) = token(rest, first).map_err(|mut diagnostic| {
            diagnostic.span.start += at as u32;
            diagnostic.span.end += at as u32;
            diagnostic
        })?;
        tokens.push(Token { kind, span: Span { start: at as u32, end: (at + length) as u32 } });
        at += length;
    }
    let end = text.len() as u32;
    tokens.push(Token { kind: TokenKind::End, span: Span { start: end, end } });
    Ok(tokens)
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
        _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => Ok((TokenKind::Symbol(symbol), symbol.len())),
            None => Err(unexpected(rest, first)),
        },
    }
}

fn error(length: usize, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(SqlState::SYNTAX_ERROR, Span { start: 0, end: length as u32 }, message)
}

fn unexpected(rest: &str, first: char) -> Diagnostic {
    let diagnostic = error(first.len_utf8(), format!("unexpected character {first:?}"));
    match first {
        ';' => diagnostic.with_hint("statements end by themselves; leave the ; out"),
        '!' if rest.starts_with("!=") => diagnostic.with_hint("write <> for not equal"),
        '&' => diagnostic.with_hint("write and"),
        '|' => diagnostic.with_hint("write or, or || to join texts"),
        '#' => diagnostic.with_hint("comments start with //"),
        _ => diagnostic,
    }
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
