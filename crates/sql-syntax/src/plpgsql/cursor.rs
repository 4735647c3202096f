//! A place in the tokens of a text, and what can be asked of the tokens there.

use super::token::{self, Token, TokenKind};
use super::tree::Path;
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_program::syntax::tree::Name;
use fabius_value::{Error, Result, SqlState};

/// A place in the tokens of a text.
pub struct Cursor<'a> {
    /// The text.
    pub source: &'a Source,
    tokens: Vec<Token>,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the text's first token.
    ///
    /// # Errors
    /// What [`token::tokens`] refuses.
    pub fn new(source: &'a Source) -> Result<Cursor<'a>> {
        Ok(Cursor { source, tokens: token::tokens(source)?, at: 0 })
    }

    /// The token here.
    pub fn peek(&self) -> Token {
        self.peek_at(0)
    }

    /// The token so many further on; the last one behind the end.
    pub fn peek_at(&self, ahead: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + ahead).min(last)]
    }

    /// The token here; the place moves on.
    pub fn take(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    /// What is written at a place.
    pub fn text(&self, span: Span) -> &'a str {
        self.source.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The keyword at a token, if it is not quoted.
    pub fn keyword_of(&self, token: Token) -> Option<String> {
        (token.kind == TokenKind::Word).then(|| self.text(token.span).to_lowercase())
    }

    /// Whether the token so many further on is this keyword.
    pub fn is_keyword_at(&self, ahead: usize, keyword: &str) -> bool {
        let token = self.peek_at(ahead);
        token.kind == TokenKind::Word && self.text(token.span).eq_ignore_ascii_case(keyword)
    }

    /// Whether this keyword is here.
    pub fn is_keyword(&self, keyword: &str) -> bool {
        self.is_keyword_at(0, keyword)
    }

    /// Whether this symbol is so many tokens further on.
    pub fn is_symbol_at(&self, ahead: usize, symbol: &str) -> bool {
        let token = self.peek_at(ahead);
        token.kind == TokenKind::Symbol && self.text(token.span) == symbol
    }

    /// Whether this symbol is here.
    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.is_symbol_at(0, symbol)
    }

    /// Passes over this keyword, if it is here.
    pub fn accept(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.take();
        }
        found
    }

    /// Passes over this symbol, if it is here.
    pub fn accept_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.take();
        }
        found
    }

    /// Passes over a keyword that has to be here.
    ///
    /// # Errors
    /// `42601`
    pub fn expect(&mut self, keyword: &str) -> Result<()> {
        if self.accept(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Passes over a symbol that has to be here.
    ///
    /// # Errors
    /// `42601`
    pub fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// A name.
    ///
    /// # Errors
    /// `42601`
    pub fn name(&mut self) -> Result<Name> {
        let token = self.peek();
        let written = self.text(token.span);
        let text = match token.kind {
            TokenKind::Word => written.to_lowercase(),
            TokenKind::QuotedName => written[1..written.len() - 1].replace("\"\"", "\""),
            _ => return Err(self.unexpected()),
        };
        self.take();
        Ok(Name { text, span: token.span })
    }

    /// Names with points between them, or `$1`.
    ///
    /// # Errors
    /// `42601`
    pub fn path(&mut self) -> Result<Path> {
        let first = self.peek();
        if first.kind == TokenKind::Parameter {
            self.take();
            return Ok(Path { parts: vec![self.text(first.span).to_string()], span: first.span });
        }
        let mut parts = vec![self.name()?.text];
        let mut span = first.span;
        while self.accept_symbol(".") {
            let name = self.name()?;
            span = span.to(name.span);
            parts.push(name.text);
        }
        Ok(Path { parts, span })
    }

    /// Paths with commas between them.
    ///
    /// # Errors
    /// `42601`
    pub fn paths(&mut self) -> Result<Vec<Path>> {
        let mut paths = vec![self.path()?];
        while self.accept_symbol(",") {
            paths.push(self.path()?);
        }
        Ok(paths)
    }

    /// Passes over everything up to one of these keywords or symbols, or a semicolon, outside brackets and
    /// `CASE ... END`; what was passed over.
    ///
    /// # Errors
    /// `42601` for brackets that do not fit, and the end of the text.
    pub fn until(&mut self, ends: &[&str]) -> Result<Span> {
        let start = self.peek().span;
        let mut span = Span { start: start.start, end: start.start };
        let mut brackets = 0usize;
        let mut cases = 0usize;
        loop {
            let token = self.peek();
            let text = self.text(token.span);
            if brackets == 0 && cases == 0 {
                let is_word = matches!(token.kind, TokenKind::Word | TokenKind::Symbol);
                if text == ";" || is_word && ends.iter().any(|end| text.eq_ignore_ascii_case(end)) {
                    return Ok(span);
                }
            }
            match (token.kind, text) {
                (TokenKind::End, _) | (TokenKind::Symbol, ";") => return Err(self.unexpected()),
                (TokenKind::Symbol, "(" | "[") => brackets += 1,
                (TokenKind::Symbol, ")" | "]") => {
                    brackets = brackets.checked_sub(1).ok_or_else(|| self.unexpected())?;
                }
                (TokenKind::Word, word) if word.eq_ignore_ascii_case("case") => cases += 1,
                (TokenKind::Word, word) if word.eq_ignore_ascii_case("end") && cases > 0 => cases -= 1,
                _ => {}
            }
            span.end = token.span.end;
            self.take();
        }
    }

    /// Where this symbol or keyword is first in a place, outside brackets.
    pub fn find(&self, place: Span, wanted: impl Fn(&Cursor<'_>, Token) -> bool) -> Option<Token> {
        let mut brackets = 0isize;
        let from = self.tokens.partition_point(|token| token.span.start < place.start);
        for token in self.tokens[from..].iter().take_while(|token| token.span.end <= place.end) {
            match (token.kind, self.text(token.span)) {
                (TokenKind::Symbol, "(" | "[") => brackets += 1,
                (TokenKind::Symbol, ")" | "]") => brackets -= 1,
                _ if brackets == 0 && wanted(self, *token) => return Some(*token),
                _ => {}
            }
        }
        None
    }

    /// Goes to the first token that begins at or after a byte.
    pub fn go_to(&mut self, offset: u32) {
        let at = self.tokens.partition_point(|token| token.span.start < offset);
        self.at = at.min(self.tokens.len() - 1);
    }

    /// The error that the token here has no place here.
    pub fn unexpected(&self) -> Error {
        self.unexpected_token(self.peek())
    }

    /// The error that a token has no place where it is.
    pub fn unexpected_token(&self, token: Token) -> Error {
        let message = match self.text(token.span) {
            "" => "syntax error at end of input".to_string(),
            text => format!("syntax error at or near \"{text}\""),
        };
        self.error(SqlState::SYNTAX_ERROR, token.span, message)
    }

    /// An error at a place.
    pub fn error(&self, state: SqlState, span: Span, message: impl Into<String>) -> Error {
        Error::new(state, message).at_line(self.source.line(span.start))
    }

    /// The refusal of something at a place, with what to do instead.
    pub fn refuse(&self, span: Span, what: &str, hint: &str) -> Error {
        let message = format!("{what} is not supported in a function");
        self.error(SqlState::NOT_SUPPORTED, span, message).with_hint(hint)
    }
}
