//! Texts behind the name of their type, of those types that sqlparser has no words for: `inet '10.0.0.1'`,
//! `s.mood 'ok'` (PostgreSQL's documentation, 4.1.2.7).

use sqlparser::ast::{CastKind, DataType, Expr};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Reads such a text as a cast, if one stands there.
pub(super) fn typed_literal(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let token = |at: usize| &parser.peek_nth_token_ref(at).token;
    let is_name = |at: usize| match token(at) {
        Token::Word(word) => {
            word.quote_style.is_some() || matches!(word.keyword, Keyword::NoKeyword | Keyword::NAME)
        }
        _ => false,
    };
    let is_text = |at: usize| {
        matches!(
            token(at),
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_)
        )
    };
    let is_qualified =
        matches!(token(0), Token::Word(_)) && *token(1) == Token::Period && is_name(2) && is_text(3);
    let is_literal = is_qualified || is_name(0) && is_text(1);
    if !is_literal {
        return None;
    }
    Some(parser.parse_object_name(false).and_then(|name| {
        let text = Expr::Value(parser.parse_value()?);
        let data_type = DataType::Custom(name, Vec::new());
        let kind = CastKind::Cast;
        Ok(Expr::Cast { kind, expr: Box::new(text), data_type, array: false, format: None })
    }))
}
