//! The words of a PL/pgSQL text, with their places.
//!
//! Only what the structure of blocks needs is told apart; expressions and SQL statements in between are cut out as
//! they stand and read by the SQL parser ([`super::piece`]). PostgreSQL's lexical rules: its documentation, 4.1.

use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_value::{Error, Result, SqlState};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word that is not quoted; it means its lower-case form.
    Word,
    /// `"Name"`.
    QuotedName,
    /// `'text'`, `E'text'`, `$tag$text$tag$` and the like.
    Text,
    /// `12`, `1.5`, `1e3`.
    Number,
    /// `$1`.
    Parameter,
    /// `:=`, `..`, `<<`, `>>`, `::`, `=>`, or one character.
    Symbol,
    /// After the last token.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// The token's place in the text.
    pub span: Span,
}

/// Divides a text into tokens; the last is [`TokenKind::End`].
///
/// # Errors
/// `42601`: a quote or comment that does not end.
pub fn tokens(source: &Source) -> Result<Vec<Token>> {
    let mut lexer = Lexer { source, text: &source.text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token()?;
        tokens.push(token);
        if token.kind == TokenKind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a Source,
    text: &'a str,
    at: usize,
}

const LONG_SYMBOLS: [&str; 6] = [":=", "..", "<<", ">>", "::", "=>"];

impl Lexer<'_> {
    fn token(&mut self) -> Result<Token> {
        self.skip_blanks()?;
        let start = self.at;
        let kind = self.scan()?;
        Ok(Token { kind, span: Span { start: start as u32, end: self.at as u32 } })
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !accept(c)).unwrap_or(rest.len());
    }

    fn scan(&mut self) -> Result<TokenKind> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        let prefix_length = text_prefix(rest);
        if prefix_length > 0 || first == '\'' {
            let escapes = rest.starts_with(['e', 'E']);
            self.at += prefix_length;
            self.quoted('\'', escapes, "unterminated quoted string")?;
            return Ok(TokenKind::Text);
        }
        if first == '"' {
            self.quoted('"', false, "unterminated quoted identifier")?;
            return Ok(TokenKind::QuotedName);
        }
        if first.is_alphabetic() || first == '_' {
            self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '$');
            return Ok(TokenKind::Word);
        }
        if first == '$' {
            return self.dollar();
        }
        let next_is_digit = rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || (first == '.' && next_is_digit) {
            self.number();
            return Ok(TokenKind::Number);
        }
        let length = LONG_SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)).map(|symbol| symbol.len());
        self.at += length.unwrap_or(first.len_utf8());
        Ok(TokenKind::Symbol)
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("--") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                self.comment()?;
            } else {
                return Ok(());
            }
        }
    }

    /// `/* ... */`, nested.
    fn comment(&mut self) -> Result<()> {
        let start = self.at;
        let mut depth = 0;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return Ok(());
                }
            } else if let Some(c) = rest.chars().next() {
                self.at += c.len_utf8();
            } else {
                return Err(self.error(start, "unterminated /* comment"));
            }
        }
    }

    /// From the opening quote to behind the closing one; a doubled quote stands for itself.
    fn quoted(&mut self, quote: char, escapes: bool, unterminated: &str) -> Result<()> {
        let start = self.at;
        self.at += 1;
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            if escapes && c == '\\' {
                self.at += self.peek().map_or(0, char::len_utf8);
            } else if c == quote {
                if self.peek() != Some(quote) {
                    return Ok(());
                }
                self.at += 1;
            }
        }
        Err(self.error(start, unterminated))
    }

    /// `$1`, or `$tag$...$tag$`.
    fn dollar(&mut self) -> Result<TokenKind> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if digits > 0 {
            self.at += 1 + digits;
            return Ok(TokenKind::Parameter);
        }
        let tag = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if !rest[tag..].starts_with('$') {
            self.at += 1;
            return Ok(TokenKind::Symbol);
        }
        let delimiter = &self.text[start..start + tag + 2];
        let body = start + delimiter.len();
        let Some(length) = self.text[body..].find(delimiter) else {
            return Err(self.error(start, "unterminated dollar-quoted string"));
        };
        self.at = body + length + delimiter.len();
        Ok(TokenKind::Text)
    }

    /// Digits, perhaps with a point and an exponent; `1..2` is a number and two points.
    fn number(&mut self) {
        self.take_while(|c| c.is_ascii_digit());
        if self.rest().starts_with('.') && !self.rest().starts_with("..") {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        let rest = self.rest();
        if rest.starts_with(['e', 'E']) {
            let sign = usize::from(rest[1..].starts_with(['+', '-']));
            if rest[1 + sign..].starts_with(|c: char| c.is_ascii_digit()) {
                self.at += 1 + sign;
                self.take_while(|c| c.is_ascii_digit());
            }
        }
    }

    fn error(&self, at: usize, message: &str) -> Error {
        let line = self.source.line(at as u32);
        let shown: String = self.text[at..].chars().take(20).collect();
        Error::new(SqlState::SYNTAX_ERROR, format!("{message} at or near \"{shown}\"")).at_line(line)
    }
}

/// Bytes before the quote of `E'...'`, `B'...'`, `X'...'`, `N'...'`, `U&'...'`.
fn text_prefix(rest: &str) -> usize {
    let mut bytes = rest.bytes();
    match (bytes.next(), bytes.next(), bytes.next()) {
        (Some(b'e' | b'E' | b'b' | b'B' | b'x' | b'X' | b'n' | b'N'), Some(b'\''), _) => 1,
        (Some(b'u' | b'U'), Some(b'&'), Some(b'\'')) => 2,
        _ => 0,
    }
}

/// What a [`TokenKind::Text`] token of a source stands for, if it needs no more than quotes undone.
pub fn text_value(written: &str) -> Option<String> {
    if let Some(tag) = written.strip_prefix('$') {
        let length = tag.find('$')? + 2;
        return written.get(length..written.len().checked_sub(length)?).map(str::to_string);
    }
    if let Some(escaped) = written.strip_prefix(['e', 'E']) {
        return unescape(escaped.strip_prefix('\'')?.strip_suffix('\'')?);
    }
    Some(written.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'"))
}

/// Undoes the escapes of `E'...'`.
fn unescape(escaped: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = escaped.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\'' => {
                characters.next();
                text.push('\'');
            }
            '\\' => match characters.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'x' | 'u' | 'U' | '0'..='7' => return None,
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let source = Source::new(text, "");
        let tokens = tokens(&source).expect("tokens");
        let shown = |token: &Token| text[token.span.start as usize..token.span.end as usize].to_string();
        tokens.iter().filter(|token| token.kind != TokenKind::End).map(shown).collect()
    }

    /// Goal: ranges, labels, quotes, comments and parameters are told apart.
    #[test]
    fn texts_are_divided() {
        assert_eq!(words("1..10"), ["1", "..", "10"]);
        assert_eq!(words("1.5..x"), ["1.5", "..", "x"]);
        assert_eq!(
            words("<<outer>> a:=b.c%TYPE"),
            ["<<", "outer", ">>", "a", ":=", "b", ".", "c", "%", "TYPE"]
        );
        assert_eq!(
            words("'it''s' E'a\\'b' $$x;y$$ $t$ $$ $t$ $12"),
            ["'it''s'", "E'a\\'b'", "$$x;y$$", "$t$ $$ $t$", "$12"]
        );
        assert_eq!(words("a -- b\n /* c /* d */ e */ f::int"), ["a", "f", "::", "int"]);
        assert_eq!(text_value("'it''s'").as_deref(), Some("it's"));
        assert_eq!(text_value("$t$a'b$t$").as_deref(), Some("a'b"));
        assert_eq!(text_value("E'a\\n\\'b'").as_deref(), Some("a\n'b"));
    }

    /// Goal: what does not end is an error with its line.
    #[test]
    fn open_quotes_are_refused() {
        let error = tokens(&Source::new("a\n'b", "")).expect_err("open");
        assert_eq!((error.state().as_str(), error.line()), ("42601", Some(2)));
        assert!(tokens(&Source::new("/* /* */", "")).is_err());
        assert!(tokens(&Source::new("$a$ b $a", "")).is_err());
    }
}
