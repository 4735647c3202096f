//! The tokens of a statement with their places; syntax errors in PostgreSQL's words.

use crate::dialect::{self, Bounded};
use fabius_sql_planning::{SHORT_BYTES, heed_bytes};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Visit};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

/// The tokens of a text, without blanks and comments, and a place among them.
pub struct Tokens<'t> {
    text: &'t str,
    tokens: Vec<TokenWithSpan>,
    lines: Vec<Line>,
    at: usize,
}

/// A line of a text.
struct Line {
    /// The line's first byte, among the text's.
    start: usize,
    /// Where its characters begin, each [`STRIDE`]th of them, if they are not bytes.
    wide: Vec<usize>,
}

/// Characters between those whose places are known.
const STRIDE: usize = 64;

impl Line {
    fn all(text: &str) -> Vec<Line> {
        let mut start = 0;
        let line = |line: &str| {
            let places = line.char_indices().step_by(STRIDE).map(|(at, _)| start + at);
            let wide = if line.is_ascii() { Vec::new() } else { places.collect() };
            let line = Line { start, wide };
            start = start + text[start..].find('\n').map_or(text.len() - start, |end| end + 1);
            line
        };
        text.split('\n').map(line).collect()
    }
}

/// How many tokens a text has, about.
pub fn estimate(text: &str) -> usize {
    let (mut tokens, mut is_quoted, mut is_word) = (0, false, false);
    for byte in text.bytes() {
        let continues = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        if byte == b'\'' {
            is_quoted = !is_quoted;
            tokens += usize::from(is_quoted);
        } else if !is_quoted && !byte.is_ascii_whitespace() {
            tokens += usize::from(!(continues && is_word));
        }
        is_word = continues && !is_quoted;
    }
    tokens
}

/// What a token takes while a text is read, about: it is there twice, with its text.
const TOKEN_BYTES: usize = 2 * size_of::<TokenWithSpan>() + 32;

/// What reading a text takes, about. Each blank is a token too, as long as all are looked for.
fn bytes_to_read(text: &str) -> usize {
    let (mut blanks, mut lines) = (0, 1);
    for byte in text.bytes() {
        blanks += usize::from(byte.is_ascii_whitespace());
        lines += usize::from(byte == b'\n');
    }
    let tokens = estimate(text).saturating_mul(TOKEN_BYTES);
    text.len() + tokens + blanks * size_of::<TokenWithSpan>() + lines * size_of::<Line>()
}

impl<'t> Tokens<'t> {
    /// The tokens of a text.
    ///
    /// # Errors
    /// `42601` for a quote or comment without an end; `53200` if there is no room for them.
    pub fn of(text: &'t str) -> Result<Tokens<'t>> {
        let is_short = text.len() <= SHORT_BYTES;
        heed_bytes(if is_short { text.len() } else { bytes_to_read(text) })?;
        let mut tokens = Tokens { text, tokens: Vec::new(), lines: Line::all(text), at: 0 };
        let all = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().map_err(|error| {
            let start = tokens.byte(error.location);
            let message = error.message.to_lowercase();
            let what = match &message {
                m if m.contains("comment") => "unterminated /* comment",
                m if m.contains("dollar") || m.contains('$') => "unterminated dollar-quoted string",
                m if m.contains("identifier") || m.contains("delimited") || m.contains("close delimiter") => {
                    "unterminated quoted identifier"
                }
                m if m.contains("string") || m.contains("literal") => "unterminated quoted string",
                _ => "syntax error",
            };
            let near = text.get(start..).unwrap_or_default();
            Error::new(SqlState::SYNTAX_ERROR, format!("{what} at or near \"{near}\""))
                .at_position(tokens.position(start))
        })?;
        tokens.tokens = all
            .into_iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
            .collect();
        match crate::spelling::usual(&mut tokens.tokens) {
            Ok(()) => Ok(tokens),
            Err(crate::spelling::Adjacent(at)) => Err(tokens.error_at(at)),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The place among the tokens.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes back, or on, to a place.
    pub fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The token at a place; [`Token::EOF`] behind the last.
    pub fn token(&self, at: usize) -> &Token {
        self.tokens.get(at).map_or(&Token::EOF, |token| &token.token)
    }

    /// The bytes of the token at a place: its first, and the one after its last.
    pub fn bytes(&self, at: usize) -> (usize, usize) {
        match self.tokens.get(at) {
            Some(token) => (self.byte(token.span.start), self.byte(token.span.end)),
            None => (self.text.len(), self.text.len()),
        }
    }

    /// Line and column of the token at a place.
    #[cfg(test)]
    pub(super) fn location(&self, at: usize) -> Location {
        self.tokens[at].span.start
    }

    /// The byte of a line and column.
    fn byte(&self, location: Location) -> usize {
        let line = usize::try_from(location.line.saturating_sub(1)).unwrap_or_default();
        let Some(line) = self.lines.get(line) else { return self.text.len() };
        let column = usize::try_from(location.column.saturating_sub(1)).unwrap_or_default();
        if line.wide.is_empty() {
            // Nearly all text is ASCII, where columns are bytes.
            return (line.start + column).min(self.text.len());
        }
        let start = line.wide.get(column / STRIDE).copied().unwrap_or(self.text.len());
        let rest = self.text.get(start..).unwrap_or_default();
        rest.char_indices().nth(column % STRIDE).map_or(self.text.len(), |(at, _)| start + at)
    }

    /// A byte as a client counts it: characters, from 1.
    fn position(&self, byte: usize) -> u32 {
        self.text.get(..byte).map_or(0, |before| before.chars().count()) as u32 + 1
    }

    /// The word here, upper-case, if there is one without quotes.
    pub fn word(&self) -> Option<String> {
        self.word_at(self.at)
    }

    /// The word at a place, upper-case, if there is one without quotes.
    pub fn word_at(&self, at: usize) -> Option<String> {
        match self.token(at) {
            Token::Word(Word { value, quote_style: None, .. }) => Some(value.to_uppercase()),
            _ => None,
        }
    }

    /// Whether the words here are these.
    pub fn sees(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(offset, word)| {
            matches!(self.token(self.at + offset), Token::Word(Word { value, quote_style: None, .. })
                if value.eq_ignore_ascii_case(word))
        })
    }

    /// Goes past these words if they stand here.
    pub fn accept(&mut self, words: &[&str]) -> bool {
        let found = self.sees(words);
        if found {
            self.at += words.len();
        }
        found
    }

    /// Goes past a token if it stands here.
    pub fn accept_token(&mut self, token: &Token) -> bool {
        let found = self.token(self.at) == token;
        self.at += usize::from(found);
        found
    }

    /// Goes past these words.
    ///
    /// # Errors
    /// `42601` if they are not there.
    pub fn expect(&mut self, words: &[&str]) -> Result<()> {
        for word in words {
            if !self.accept(&[word]) {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }

    /// Goes past a token.
    ///
    /// # Errors
    /// `42601` if it is not there.
    pub fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.accept_token(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Whether all have been read.
    pub fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Nothing more may follow.
    ///
    /// # Errors
    /// `42601` if something does.
    pub fn finish(&mut self) -> Result<()> {
        self.accept_token(&Token::SemiColon);
        if self.is_done() { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The next token, gone past.
    pub fn pass(&mut self) -> Token {
        let token = self.token(self.at).clone();
        self.at += 1;
        token
    }

    /// A name: lower-case unless it is quoted.
    ///
    /// # Errors
    /// `42601` if there is none.
    pub fn name(&mut self) -> Result<String> {
        match self.token(self.at) {
            Token::Word(word) => {
                let name = match word.quote_style {
                    Some(_) => word.value.clone(),
                    None => word.value.to_lowercase(),
                };
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A name with its schema, if it says one.
    ///
    /// # Errors
    /// `42601` if there is none.
    pub fn object_name(&mut self) -> Result<ast::ObjectName> {
        let mut parts = Vec::new();
        loop {
            match self.pass() {
                Token::Word(word) => {
                    let ident = match word.quote_style {
                        Some(quote) => ast::Ident::with_quote(quote, word.value),
                        None => ast::Ident::new(word.value),
                    };
                    parts.push(ast::ObjectNamePart::Identifier(ident));
                }
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected());
                }
            }
            if !self.accept_token(&Token::Period) {
                return Ok(ast::ObjectName(parts));
            }
        }
    }

    /// One or more, with commas between them.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn listed<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.accept_token(&Token::Comma) {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// A text in quotes.
    ///
    /// # Errors
    /// `42601` if there is none.
    pub fn string(&mut self) -> Result<String> {
        let text = match self.token(self.at) {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(text)
    }

    /// An integer, with its sign.
    ///
    /// # Errors
    /// `42601` if there is none.
    pub fn integer(&mut self) -> Result<i64> {
        let negative = self.accept_token(&Token::Minus);
        if !negative {
            self.accept_token(&Token::Plus);
        }
        let Token::Number(digits, _) = self.token(self.at) else { return Err(self.unexpected()) };
        let number = if negative { format!("-{digits}").parse() } else { digits.parse() };
        let number = number.map_err(|_| self.unexpected())?;
        self.at += 1;
        Ok(number)
    }

    /// The text from here to the end.
    pub fn rest(&self) -> &'t str {
        self.text.get(self.bytes(self.at).0..).unwrap_or_default().trim_end().trim_end_matches(';')
    }

    /// `syntax error at or near`, about the token here.
    pub fn unexpected(&self) -> Error {
        self.error_at(self.at)
    }

    /// `syntax error at or near`, about the token at a place.
    pub fn wrong_at(&self, at: usize) -> Error {
        self.error_at(at)
    }

    fn error_at(&self, at: usize) -> Error {
        let (start, end) = self.bytes(at);
        let message = match self.text.get(start..end) {
            Some(near) if !near.is_empty() => format!("syntax error at or near \"{near}\""),
            _ => "syntax error at end of input".to_string(),
        };
        Error::new(SqlState::SYNTAX_ERROR, message).at_position(self.position(start))
    }

    /// Leaves out tokens: a hint that sqlparser does not know.
    pub fn remove(&mut self, from: usize, count: usize) {
        self.tokens.drain(from..from + count);
    }

    /// Reads all of it as SQL.
    ///
    /// # Errors
    /// `42601`, with the position.
    pub fn sql(&self) -> Result<ast::Statement> {
        self.read_with(0, |parser| parser.parse_statement())
    }

    /// Reads what begins here with a rule of sqlparser's grammar; it has to take in all that is left.
    ///
    /// # Errors
    /// `42601`, with the position.
    pub fn read<T: Visit>(&self, rule: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>) -> Result<T> {
        self.read_with(self.at, rule)
    }

    fn read_with<T: Visit>(
        &self,
        from: usize,
        rule: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
    ) -> Result<T> {
        let tokens = self.tokens.get(from..).unwrap_or_default().to_vec();
        dialect::refuse_depth(&tokens)?;
        if let Some(at) = dialect::repeated(&tokens) {
            return Err(self.error_at(from + at));
        }
        self.refuse_tokens(from)?;
        let bounded = Bounded::of(tokens.len());
        let mut parser = bounded.parser(tokens);
        let read = rule(&mut parser)
            .map_err(|error| bounded.exceeded(&error).unwrap_or_else(|| self.explain(&error)))?;
        while parser.consume_token(&Token::SemiColon) {}
        let next = parser.peek_token();
        if next.token != Token::EOF {
            let start = self.byte(next.span.start);
            return Err(self.error_at(self.place_of(start)));
        }
        self.refuse_foreign(&read)?;
        Ok(read)
    }

    /// Reads one part with a rule of sqlparser's grammar, and goes on behind it.
    ///
    /// # Errors
    /// `42601`, with the position.
    pub fn take<T: Visit>(
        &mut self,
        rule: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
    ) -> Result<T> {
        let tokens = self.tokens.get(self.at..).unwrap_or_default().to_vec();
        dialect::refuse_depth(&tokens)?;
        if let Some(at) = dialect::repeated(&tokens) {
            return Err(self.error_at(self.at + at));
        }
        let bounded = Bounded::of(tokens.len());
        let mut parser = bounded.parser(tokens);
        let read = rule(&mut parser)
            .map_err(|error| bounded.exceeded(&error).unwrap_or_else(|| self.explain(&error)))?;
        let next = parser.peek_token();
        self.at = if next.token == Token::EOF {
            self.tokens.len()
        } else {
            self.place_of(self.byte(next.span.start))
        };
        self.refuse_foreign(&read)?;
        Ok(read)
    }

    /// Refuses tokens that sqlparser takes for others: `==` for `=`, and `0x1F` for `X'1F'`.
    fn refuse_tokens(&self, from: usize) -> Result<()> {
        for at in from..self.len() {
            let token = self.token(at);
            if !matches!(token, Token::DoubleEq | Token::HexStringLiteral(_)) {
                continue;
            }
            let (start, end) = self.bytes(at);
            let error = match token {
                Token::DoubleEq => Error::new(SqlState::UNDEFINED_FUNCTION, "operator does not exist: ==")
                    .with_hint("equality is ="),
                Token::HexStringLiteral(_) if self.text[start..].starts_with('0') => {
                    let near = self.text.get(start..end).unwrap_or_default();
                    let message = format!("trailing junk after numeric literal at or near \"{near}\"");
                    Error::new(SqlState::SYNTAX_ERROR, message)
                }
                _ => continue,
            };
            return Err(error.at_position(self.position(start)));
        }
        Ok(())
    }

    /// Refuses what sqlparser reads and PostgreSQL does not have, or not so much of.
    fn refuse_foreign(&self, tree: &impl Visit) -> Result<()> {
        if let Some(error) = crate::limits::exceeded(tree) {
            return Err(error);
        }
        let Some(found) = crate::foreign::find(tree) else { return Ok(()) };
        let is_near = |at: &usize| {
            found.near().is_some_and(|near| self.token(*at).to_string().eq_ignore_ascii_case(near))
        };
        let mut places = (0..self.len()).filter(is_near);
        let error = found.error();
        match (places.next(), places.next()) {
            // Of several such words, nobody knows here which it is.
            (Some(at), None) if !found.is_known => Err(error.at_position(self.position(self.bytes(at).0))),
            _ => Err(error),
        }
    }

    /// The token that begins at a byte.
    fn place_of(&self, byte: usize) -> usize {
        (0..self.tokens.len()).find(|at| self.bytes(*at).0 >= byte).unwrap_or(self.tokens.len())
    }

    /// What sqlparser says, in PostgreSQL's words.
    fn explain(&self, error: &ParserError) -> Error {
        let message = match error {
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
            ParserError::RecursionLimitExceeded => "",
        };
        let place = message.rsplit_once("at Line: ").and_then(|(_, place)| {
            let (line, column) = place.split_once(", Column: ")?;
            Some(Location { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? })
        });
        match place {
            Some(location) if location.line > 0 => self.error_at(self.place_of(self.byte(location))),
            _ => self.error_at(self.tokens.len()),
        }
    }
}
