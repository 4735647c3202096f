//! What PostgreSQL writes and sqlparser does not read, in other words that mean the same.
//!
//! | written | read |
//! |---|---|
//! | `'a'` newline `'b'` | `'ab'` |
//! | `FOR NO KEY UPDATE`, `FOR KEY SHARE` | `FOR UPDATE`, `FOR SHARE` |
//! | `trim(LEADING FROM x)` | `trim(LEADING ' ' FROM x)` |
//! | `FOR UPDATE SKIP LOCKED LIMIT 1` | `LIMIT 1 FOR UPDATE SKIP LOCKED` |
//! | `FOR UPDATE OF a, b NOWAIT` | `FOR UPDATE OF a NOWAIT FOR UPDATE OF b NOWAIT` |
//! | `FETCH FIRST (1 + 1) ROWS ONLY` | `LIMIT (1 + 1)` |
//! | `FETCH FIRST (1 + 1) ROWS WITH TIES` | `LIMIT (1 + 1) FETCH FIRST NULL ROWS WITH TIES` |
//! | `a OPERATOR(pg_catalog.=) b` | `a = b`: operators of the system have no other names |
//! | `FROM ONLY t`, `MERGE INTO ONLY t` | `FROM t`, `MERGE INTO t`: there is no inheritance |
//! | `ROW (a, b)` | `(a, b)` |
//! | `a JOIN b JOIN c ON x ON y` | `a JOIN (b JOIN c ON x) ON y` |
//! | `= ANY (VALUES (1))` | `= ANY (SELECT * FROM (VALUES (1)) AS "values")` |
//! | `= ANY ((SELECT 1))` | `= ANY (SELECT 1)`: a query, however often it is enclosed |
//! | `ROLLUP ((SELECT 1), (a) + 1)` | `ROLLUP (((SELECT 1)), ((a) + 1))` |
//! | `j ->-1` | `j -> -1` |
//! | `integer ARRAY` | `integer[]` |
//! | `ON CONFLICT (lower(a)) WHERE b` | `ON CONFLICT ("fabius target (lower(a)) WHERE b")`: see [`TARGET`] |
//! | `IDENTITY (START 5 INCREMENT 2)` | `IDENTITY (INCREMENT 2 START 5)`: an order that is fixed |
//! | `INSERT INTO t (a) OVERRIDING SYSTEM VALUE` | `INSERT OVERWRITE INTO TABLE t (a)`: words that no system has together |
//! | `WHEN MATCHED THEN DO NOTHING` | `... THEN UPDATE SET "fabius nothing" = NULL`: see [`NOTHING`] |
//! | `WHEN NOT MATCHED THEN DO NOTHING` | `... THEN INSERT ("fabius nothing") VALUES (NULL)` |
//! | `THEN INSERT DEFAULT VALUES` | `THEN INSERT VALUES (DEFAULT)`: columns that are left out have their defaults |
//! | `CREATE TABLE t (a, b) AS query` | `CREATE TABLE t AS SELECT * FROM (query) AS query (a, b)` |
//! | `CREATE TABLE t AS query WITH NO DATA` | `CREATE TABLE t AS SELECT * FROM (query) AS query LIMIT 0` |

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

/// The place of two literals of which the second has nothing to do with the first: a syntax error.
pub(super) struct Adjacent(pub usize);

/// Rewrites the tokens of a text.
pub(super) fn usual(tokens: &mut Vec<TokenWithSpan>) -> Result<(), Adjacent> {
    let mut at = 0;
    while at < tokens.len() {
        match word(tokens, at).as_deref() {
            None => {
                split_operator(tokens, at);
                joined(tokens, at)?;
            }
            Some("OPERATOR")
                if words(tokens, at + 2, &["PG_CATALOG"])
                    && is(tokens, at + 1, &Token::LParen)
                    && is(tokens, at + 3, &Token::Period)
                    && is(tokens, at + 5, &Token::RParen) =>
            {
                remove(tokens, at + 5, 1);
                remove(tokens, at, 4);
            }
            Some("FOR") if words(tokens, at + 1, &["NO", "KEY", "UPDATE"]) => remove(tokens, at + 1, 2),
            Some("FOR") if words(tokens, at + 1, &["KEY", "SHARE"]) => remove(tokens, at + 1, 1),
            Some("LIMIT" | "OFFSET" | "FETCH") => {
                limit_of_fetch(tokens, at);
                let mut lock = at;
                while let Some(before) = lock_before(tokens, lock) {
                    lock = before;
                }
                let end = clause_end(tokens, at);
                tokens[lock..end].rotate_right(end - at);
            }
            Some("OF") if at >= 2 && is_lock(tokens, at - 2) => one_for_each(tokens, at),
            Some("LEADING" | "TRAILING" | "BOTH") if words(tokens, at + 1, &["FROM"]) => {
                put(tokens, at + 1, [Token::SingleQuotedString(" ".into())]);
            }
            Some(before @ ("FROM" | "JOIN" | "UPDATE" | "TRUNCATE" | "TABLE" | "USING" | "INTO"))
                if words(tokens, at + 1, &["ONLY"])
                    && is_word(tokens, at + 2)
                    && (before != "INTO" || at > 0 && words(tokens, at - 1, &["MERGE"])) =>
            {
                remove(tokens, at + 1, 1);
            }
            Some("ROW") if is(tokens, at + 1, &Token::LParen) && has_comma(tokens, at + 1) => {
                remove(tokens, at, 1);
            }
            Some("ARRAY") if is_array_type(tokens, at) => {
                remove(tokens, at, 1);
                put(tokens, at, [Token::LBracket, Token::RBracket]);
            }
            Some("ANY" | "ALL" | "SOME")
                if is(tokens, at + 1, &Token::LParen) && words(tokens, at + 2, &["VALUES"]) =>
            {
                if let Some(close) = closing(tokens, at + 1) {
                    put(tokens, close, read(") AS \"values\""));
                    put(tokens, at + 2, read("SELECT * FROM ("));
                }
            }
            Some("ANY" | "ALL" | "SOME") => bare_query(tokens, at + 1),
            Some("ROLLUP" | "CUBE" | "SETS") if is(tokens, at + 1, &Token::LParen) => {
                enclosed_elements(tokens, at + 1);
            }
            Some("CONFLICT") if is(tokens, at + 1, &Token::LParen) => conflict_target(tokens, at + 1),
            Some("IDENTITY") if is(tokens, at + 1, &Token::LParen) => ordered(tokens, at + 1),
            Some("OVERRIDING")
                if (words(tokens, at + 1, &["SYSTEM", "VALUE"])
                    || words(tokens, at + 1, &["USER", "VALUE"]))
                    && !is_in_merge(tokens, at) =>
            {
                overriding(tokens, at);
                continue;
            }
            Some("THEN") if words(tokens, at + 1, &["DO", "NOTHING"]) => {
                let is_new = is_of_new_row(tokens, at);
                let means = match is_new {
                    true => format!("INSERT (\"{NOTHING}\") VALUES (NULL)"),
                    false => format!("UPDATE SET \"{NOTHING}\" = NULL"),
                };
                remove(tokens, at + 1, 2);
                put(tokens, at + 1, read(&means));
            }
            Some("THEN") if words(tokens, at + 1, &["INSERT", "DEFAULT", "VALUES"]) => {
                remove(tokens, at + 2, 2);
                put(tokens, at + 2, read("VALUES (DEFAULT)"));
            }
            Some("CREATE") if at == 0 => table_of_query(tokens),
            _ => {}
        }
        at += 1;
    }
    nested_joins(tokens);
    Ok(())
}

/// The column that stands for `DO NOTHING` of `MERGE`.
pub const NOTHING: &str = "fabius nothing";

/// How the one name begins that stands for a target of `ON CONFLICT` that is not made of columns alone; what was
/// written follows.
pub const TARGET: &str = "fabius target ";

/// Makes a name of a target of `ON CONFLICT` that has expressions, or a condition.
fn conflict_target(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let Some(close) = closing(tokens, open) else { return };
    let is_plain = |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::Comma);
    let has_condition = words(tokens, close + 1, &["WHERE"]);
    if tokens[open + 1..close].iter().all(is_plain) && !has_condition {
        return;
    }
    let mut depth = 0;
    let is_action = |at: &usize| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && words(tokens, *at, &["DO"])
    };
    let Some(end) = (close + 1..tokens.len()).find(is_action) else { return };
    let text: Vec<String> = tokens[open..end].iter().map(|token| token.token.to_string()).collect();
    let name = Word {
        value: format!("{TARGET}{}", text.join(" ")),
        quote_style: Some('"'),
        keyword: sqlparser::keywords::Keyword::NoKeyword,
    };
    let span = tokens[open].span;
    tokens.drain(open + 1..end);
    for token in [Token::Word(name), Token::RParen].into_iter().rev() {
        tokens.insert(open + 1, TokenWithSpan { token, span });
    }
}

/// Takes the signs off the end of an operator, which ends with one only if it has a character that no operator of
/// arithmetic has (PostgreSQL 4.1.3).
fn split_operator(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let Some(Token::CustomBinaryOperator(operator)) = tokens.get(at).map(|token| &token.token) else {
        return;
    };
    let bare = operator.trim_end_matches(['+', '-']);
    if operator.contains(['~', '!', '@', '#', '%', '^', '&', '|', '`', '?']) || bare.is_empty() {
        return;
    }
    let spaced: Vec<String> =
        std::iter::once(bare.to_string()).chain(operator[bare.len()..].chars().map(String::from)).collect();
    let parts = read(&spaced.join(" "));
    let count = parts.len();
    put(tokens, at, parts);
    remove(tokens, at + count, 1);
}

/// Takes away all but the outermost of the parentheses that enclose nothing but a query.
fn bare_query(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let mut innermost = open;
    while is(tokens, innermost + 1, &Token::LParen) {
        let (Some(close), Some(within)) = (closing(tokens, innermost), closing(tokens, innermost + 1)) else {
            return;
        };
        if within + 1 != close {
            return;
        }
        innermost += 1;
    }
    let is_query = ["SELECT", "WITH", "VALUES"].iter().any(|query| words(tokens, innermost + 1, &[query]));
    if let (true, Some(close)) = (is_query && is(tokens, open, &Token::LParen), closing(tokens, innermost)) {
        let pairs = innermost - open;
        remove(tokens, close + 1, pairs);
        remove(tokens, open + 1, pairs);
    }
}

/// Puts another pair of parentheses around elements of a list that begin with one and are no lists themselves:
/// `(SELECT 1)`, `(a) + 1`.
fn enclosed_elements(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let (mut at, mut close) = (open + 1, closing(tokens, open));
    while let Some(end) = close.filter(|end| at < *end) {
        let element_end = comma_or(tokens, at, end);
        let is_list = closing(tokens, at).is_some_and(|closed| closed + 1 == element_end)
            && !["SELECT", "WITH", "VALUES"].iter().any(|query| words(tokens, at + 1, &[query]));
        if is(tokens, at, &Token::LParen) && !is_list {
            put(tokens, element_end, [Token::RParen]);
            put(tokens, at, [Token::LParen]);
            close = Some(end + 2);
            at = element_end + 3;
        } else {
            at = element_end + 1;
        }
    }
}

/// Where the element of a list ends that begins at a place: at a comma, or at the end of the list.
fn comma_or(tokens: &[TokenWithSpan], from: usize, end: usize) -> usize {
    let mut depth = 0;
    let found = (from..end).find(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && tokens[*at].token == Token::Comma
    });
    found.unwrap_or(end)
}

/// A join that waits for its condition.
struct WaitingJoin {
    /// Where its right side begins.
    from: usize,
    /// Whether that is a join itself.
    is_nested: bool,
}

/// Puts parentheses around joins that are the right side of another.
fn nested_joins(tokens: &mut Vec<TokenWithSpan>) {
    let mut inserted: Vec<(usize, Token)> = Vec::new();
    // By the parentheses around them.
    let mut waiting: Vec<Vec<WaitingJoin>> = vec![Vec::new()];
    for at in 0..tokens.len() {
        match tokens[at].token {
            Token::LParen => waiting.push(Vec::new()),
            Token::RParen => drop(waiting.pop()),
            _ => {}
        }
        if waiting.is_empty() {
            waiting.push(Vec::new());
        }
        let Some(joins) = waiting.last_mut() else { return };
        match (word(tokens, at).as_deref(), &tokens[at].token) {
            (Some("JOIN"), _) => {
                joins.iter_mut().last().into_iter().for_each(|join| join.is_nested = true);
                if !has_no_condition(tokens, at) {
                    joins.push(WaitingJoin { from: at + 1, is_nested: false });
                }
            }
            (Some("ON" | "USING"), _) => {
                if let Some(WaitingJoin { from, is_nested: true }) = joins.pop() {
                    inserted.extend([(from, Token::LParen), (at, Token::RParen)]);
                }
            }
            (Some("SELECT" | "FROM" | "WHERE" | "GROUP" | "ORDER" | "HAVING" | "WINDOW" | "SET"), _)
            | (_, Token::Comma | Token::SemiColon) => joins.clear(),
            _ => {}
        }
    }
    if inserted.is_empty() {
        return;
    }
    inserted.sort_by_key(|(at, _)| *at);
    let mut inserted = inserted.into_iter().peekable();
    let old = std::mem::take(tokens);
    for (at, token) in old.into_iter().enumerate() {
        while let Some((_, new)) = inserted.next_if(|(place, _)| *place <= at) {
            tokens.push(TokenWithSpan { token: new, span: token.span });
        }
        tokens.push(token);
    }
}

/// Whether the `JOIN` at a place is `CROSS` or `NATURAL`.
fn has_no_condition(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = (1..=3).map_while(|back| word(tokens, at.checked_sub(back)?));
    let mut kinds = before.take_while(|kind| {
        matches!(kind.as_str(), "CROSS" | "NATURAL" | "INNER" | "LEFT" | "RIGHT" | "FULL" | "OUTER")
    });
    kinds.any(|kind| matches!(kind.as_str(), "CROSS" | "NATURAL"))
}

fn word(tokens: &[TokenWithSpan], at: usize) -> Option<String> {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(Word { value, quote_style: None, .. })) => Some(value.to_uppercase()),
        _ => None,
    }
}

fn is_word(tokens: &[TokenWithSpan], at: usize) -> bool {
    matches!(tokens.get(at), Some(TokenWithSpan { token: Token::Word(_), .. }))
}

fn words(tokens: &[TokenWithSpan], at: usize, wanted: &[&str]) -> bool {
    wanted.iter().enumerate().all(|(offset, wanted)| word(tokens, at + offset).as_deref() == Some(*wanted))
}

fn is(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|found| found.token == *token)
}

fn remove(tokens: &mut Vec<TokenWithSpan>, at: usize, count: usize) {
    tokens.drain(at..(at + count).min(tokens.len()));
}

/// Whether the word `ARRAY` stands behind a type, not before elements.
fn is_array_type(tokens: &[TokenWithSpan], at: usize) -> bool {
    let begins_elements = is(tokens, at + 1, &Token::LBracket) || is(tokens, at + 1, &Token::LParen);
    let Some(before) = at.checked_sub(1) else { return false };
    let is_behind_type = match word(tokens, before).as_deref() {
        Some("AS" | "SELECT" | "CREATE" | "COLUMN") => false,
        Some(_) => true,
        None => is_word(tokens, before) || is(tokens, before, &Token::RParen),
    };
    is_behind_type && !begins_elements
}

/// Puts tokens in before a place; they have its span.
fn put(tokens: &mut Vec<TokenWithSpan>, at: usize, new: impl IntoIterator<Item = Token>) {
    let span = tokens.get(at).or(tokens.last()).map(|token| token.span);
    let Some(span) = span else { return };
    tokens.splice(at..at, new.into_iter().map(|token| TokenWithSpan { token, span }));
}

/// The words of a text as tokens.
fn read(text: &str) -> Vec<Token> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().unwrap_or_default();
    tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect()
}

/// Where the `FOR UPDATE` or `FOR SHARE` begins that ends before a place, with its `OF`, `NOWAIT` or `SKIP LOCKED`.
fn lock_before(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    let mut at = end;
    if at >= 2 && words(tokens, at - 2, &["SKIP", "LOCKED"]) {
        at -= 2;
    } else if at >= 1 && words(tokens, at - 1, &["NOWAIT"]) {
        at -= 1;
    }
    let is_name =
        |at: usize| is_word(tokens, at) || is(tokens, at, &Token::Comma) || is(tokens, at, &Token::Period);
    // Names behind `OF` are passed backwards.
    let of = (0..at).rev().take_while(|at| is_name(*at)).find(|at| words(tokens, *at, &["OF"]));
    let lock = of.unwrap_or(at).checked_sub(2)?;
    is_lock(tokens, lock).then_some(lock)
}

/// Whether `FOR UPDATE` or `FOR SHARE` begins at a place.
fn is_lock(tokens: &[TokenWithSpan], at: usize) -> bool {
    words(tokens, at, &["FOR", "UPDATE"]) || words(tokens, at, &["FOR", "SHARE"])
}

/// Writes a lock of several tables, whose `OF` stands at a place, as one of each.
fn one_for_each(tokens: &mut Vec<TokenWithSpan>, of: usize) {
    let lock = [tokens[of - 2].token.clone(), tokens[of - 1].token.clone(), tokens[of].token.clone()];
    let mut commas = Vec::new();
    let mut end = of + 1;
    loop {
        while is_word(tokens, end) && is(tokens, end + 1, &Token::Period) {
            end += 2;
        }
        end += 1;
        if !is(tokens, end, &Token::Comma) {
            break;
        }
        commas.push(end);
        end += 1;
    }
    let patience = match () {
        () if words(tokens, end, &["NOWAIT"]) => 1,
        () if words(tokens, end, &["SKIP", "LOCKED"]) => 2,
        () => 0,
    };
    let patience: Vec<Token> =
        tokens.iter().skip(end).take(patience).map(|token| token.token.clone()).collect();
    for comma in commas.into_iter().rev() {
        remove(tokens, comma, 1);
        put(tokens, comma, patience.iter().chain(&lock).cloned());
    }
}

/// Writes `FETCH FIRST (...) ROWS ONLY` at a place as `LIMIT (...)`, and `WITH TIES` with a `FETCH` behind it.
fn limit_of_fetch(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is_fetch = words(tokens, at, &["FETCH", "FIRST"]) || words(tokens, at, &["FETCH", "NEXT"]);
    if !is_fetch || !is(tokens, at + 2, &Token::LParen) {
        return;
    }
    let Some(close) = closing(tokens, at + 2) else { return };
    let ends_in =
        |end: &[&str]| ["ROW", "ROWS"].iter().any(|rows| words(tokens, close + 1, &[&[*rows], end].concat()));
    if ends_in(&["WITH", "TIES"]) {
        put(tokens, close + 1, read("FETCH FIRST NULL"));
    } else if ends_in(&["ONLY"]) {
        remove(tokens, close + 1, 2);
    } else {
        return;
    }
    remove(tokens, at, 2);
    put(tokens, at, read("LIMIT"));
}

/// The end of what begins at a place: of its parentheses, or of the statement.
fn clause_end(tokens: &[TokenWithSpan], from: usize) -> usize {
    let mut depth = 0;
    let rest = tokens[from..].iter().take_while(|token| {
        depth += match token.token {
            Token::LParen => 1,
            Token::RParen => -1,
            _ => 0,
        };
        depth >= 0 && token.token != Token::SemiColon
    });
    from + rest.count()
}

/// Joins literals that stand on lines below each other.
fn joined(tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<(), Adjacent> {
    loop {
        let (Some(first), Some(second)) = (tokens.get(at), tokens.get(at + 1)) else { return Ok(()) };
        let (
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text),
            Token::SingleQuotedString(more),
        ) = (&first.token, &second.token)
        else {
            return Ok(());
        };
        if first.span.end.line >= second.span.start.line {
            return Err(Adjacent(at + 1));
        }
        let (whole, end) = (format!("{text}{more}"), second.span.end);
        let is_escaped = matches!(first.token, Token::EscapedStringLiteral(_));
        tokens[at].token =
            if is_escaped { Token::EscapedStringLiteral(whole) } else { Token::SingleQuotedString(whole) };
        tokens[at].span.end = end;
        tokens.remove(at + 1);
    }
}

/// The place of the parenthesis that closes the one at a place.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0;
    (open..tokens.len()).find(|at| {
        depth += match tokens[*at].token {
            Token::LParen => 1,
            Token::RParen => -1,
            _ => 0,
        };
        depth == 0
    })
}

/// Whether parentheses have a comma that is not within others.
fn has_comma(tokens: &[TokenWithSpan], open: usize) -> bool {
    let Some(close) = closing(tokens, open) else { return false };
    let mut depth = 0;
    (open..close).any(|at| {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 1 && tokens[at].token == Token::Comma
    })
}

/// The options of an identity column in the order in which they are read.
fn ordered(tokens: &mut [TokenWithSpan], open: usize) {
    let Some(close) = closing(tokens, open) else { return };
    let rank = |at: usize| {
        let name =
            if word(tokens, at).as_deref() == Some("NO") { word(tokens, at + 1) } else { word(tokens, at) };
        Some(match name.as_deref()? {
            "INCREMENT" => 0,
            "MINVALUE" => 1,
            "MAXVALUE" => 2,
            "START" => 3,
            "CACHE" => 4,
            "CYCLE" => 5,
            _ => return None,
        })
    };
    let mut options: Vec<(i32, Vec<TokenWithSpan>)> = Vec::new();
    let mut at = open + 1;
    while at < close {
        let count = if word(tokens, at).as_deref() == Some("NO") { 2 } else { 1 };
        match (rank(at), options.last_mut()) {
            (Some(rank), _) => options.push((rank, tokens[at..(at + count).min(close)].to_vec())),
            (None, Some((_, option))) => option.extend_from_slice(&tokens[at..at + 1]),
            (None, None) => return,
        }
        at += if rank(at).is_some() { count } else { 1 };
    }
    options.sort_by_key(|(rank, _)| *rank);
    let all = options.into_iter().flat_map(|(_, option)| option);
    for (place, token) in (open + 1..close).zip(all.collect::<Vec<_>>()) {
        tokens[place] = token;
    }
}

/// Whether the `WHEN` of `MERGE` before this place is one of rows that are not matched.
fn is_of_new_row(tokens: &[TokenWithSpan], at: usize) -> bool {
    // Those of `CASE` are passed over.
    let mut depth = 0;
    for at in (0..at).rev() {
        match word(tokens, at).as_deref() {
            Some("END") => depth += 1,
            Some("CASE") => depth -= 1,
            Some("WHEN") if depth == 0 && words(tokens, at + 1, &["NOT", "MATCHED"]) => return true,
            Some("WHEN") if depth == 0 && words(tokens, at + 1, &["MATCHED"]) => return false,
            _ => {}
        }
    }
    false
}

/// Whether the `INSERT` before this place is one of `MERGE`.
fn is_in_merge(tokens: &[TokenWithSpan], at: usize) -> bool {
    let insert = (1..at).rev().find(|at| words(tokens, *at, &["INSERT"]));
    insert.is_some_and(|insert| words(tokens, insert - 1, &["THEN"]))
}

/// `OVERRIDING SYSTEM VALUE` before the rows, as a word behind `INSERT`.
fn overriding(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is_system = word(tokens, at + 1).as_deref() == Some("SYSTEM");
    remove(tokens, at, 3);
    let insert = (0..at).rev().find(|at| words(tokens, *at, &["INSERT", "INTO"]));
    if let (true, Some(insert)) = (is_system, insert) {
        put(tokens, insert + 2, read("TABLE"));
        put(tokens, insert + 1, read("OVERWRITE"));
    }
}

/// `CREATE TABLE ... AS` with names for its columns, or without rows.
fn table_of_query(tokens: &mut Vec<TokenWithSpan>) {
    let Some(table) = (1..5).find(|at| word(tokens, *at).as_deref() == Some("TABLE")) else { return };
    let mut at = table + 1;
    if words(tokens, at, &["IF", "NOT", "EXISTS"]) {
        at += 3;
    }
    while is_word(tokens, at) && is(tokens, at + 1, &Token::Period) {
        at += 2;
    }
    at += 1;
    let names = match closing(tokens, at) {
        Some(close) if is(tokens, at, &Token::LParen) => {
            let is_names = (at + 1..close).all(|place| {
                let is_name = (place - at) % 2 == 1;
                if is_name { is_word(tokens, place) } else { is(tokens, place, &Token::Comma) }
            });
            if !is_names || word(tokens, close + 1).as_deref() != Some("AS") {
                return;
            }
            Some(at..close + 1)
        }
        _ => None,
    };
    let start = names.as_ref().map_or(at, |names| names.end);
    let Some(query) = (start..tokens.len()).find(|at| word(tokens, *at).as_deref() == Some("AS")) else {
        return;
    };
    if (start..query).any(|at| is(tokens, at, &Token::LParen)) && names.is_none() {
        return;
    }
    while is(tokens, tokens.len() - 1, &Token::SemiColon) {
        tokens.pop();
    }
    let mut is_empty = false;
    for (written, means) in [(&["WITH", "NO", "DATA"][..], true), (&["WITH", "DATA"][..], false)] {
        let end = tokens.len().saturating_sub(written.len());
        if end > query && words(tokens, end, written) {
            tokens.truncate(end);
            is_empty = means;
        }
    }
    if names.is_none() && !is_empty {
        return;
    }
    let mut behind = read(") AS query");
    if let Some(names) = &names {
        behind.extend(tokens[names.clone()].iter().map(|token| token.token.clone()));
    }
    if is_empty {
        behind.extend(read("LIMIT 0"));
    }
    let end = tokens.len();
    put(tokens, end, behind);
    put(tokens, query + 1, read("SELECT * FROM ("));
    if let Some(names) = names {
        tokens.drain(names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respelled(text: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
        let mut tokens: Vec<TokenWithSpan> = tokens
            .into_iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
            .collect();
        match usual(&mut tokens) {
            Ok(()) => tokens.iter().map(|token| token.token.to_string()).collect::<Vec<_>>().join(" "),
            Err(Adjacent(at)) => format!("adjacent {at}"),
        }
    }

    /// Goal: each form comes out in the words that are read, and nothing else changes.
    #[test]
    fn forms_are_respelled() {
        assert_eq!(respelled("SELECT 'a'\n 'b'\n'c'"), "SELECT 'abc'");
        assert_eq!(respelled("SELECT 'a' 'b'"), "adjacent 2");
        assert_eq!(respelled("SELECT 1 FOR NO KEY UPDATE"), "SELECT 1 FOR UPDATE");
        assert_eq!(
            respelled("SELECT 1 FOR SHARE OF a, b.c NOWAIT LIMIT 1"),
            "SELECT 1 LIMIT 1 FOR SHARE OF a NOWAIT FOR SHARE OF b . c NOWAIT"
        );
        assert_eq!(respelled("OFFSET 2 ROWS FETCH NEXT (1 + 1) ROWS ONLY"), "OFFSET 2 ROWS LIMIT ( 1 + 1 )");
        assert_eq!(
            respelled("FETCH FIRST (2) ROWS WITH TIES"),
            "LIMIT ( 2 ) FETCH FIRST NULL ROWS WITH TIES"
        );
        assert_eq!(respelled("trim(leading from x)"), "trim ( leading ' ' from x )");
        assert_eq!(respelled("UPDATE ONLY t"), "UPDATE t");
        assert_eq!(respelled("a = ANY (((SELECT 1)))"), "a = ANY ( SELECT 1 )");
        assert_eq!(
            respelled("= ANY ((SELECT 1) UNION (SELECT 2))"),
            "= ANY ( ( SELECT 1 ) UNION ( SELECT 2 ) )"
        );
        assert_eq!(respelled("= ALL ((SELECT b)::int[])"), "= ALL ( ( SELECT b ) :: int [ ] )");
        assert_eq!(respelled("FETCH FIRST 2 ROWS ONLY"), "FETCH FIRST 2 ROWS ONLY");
        assert_eq!(respelled("ROW(1, f(2)), row(3)"), "( 1 , f ( 2 ) ) , row ( 3 )");
        assert_eq!(
            respelled("IDENTITY (START WITH 5 NO CYCLE INCREMENT BY 2)"),
            "IDENTITY ( INCREMENT BY 2 START WITH 5 NO CYCLE )"
        );
        assert_eq!(
            respelled("INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES (1)"),
            "INSERT OVERWRITE INTO TABLE t ( a ) VALUES ( 1 )"
        );
        assert_eq!(
            respelled("CREATE TABLE t (a, b) AS VALUES (1, 2)"),
            "CREATE TABLE t AS SELECT * FROM ( VALUES ( 1 , 2 ) ) AS query ( a , b )"
        );
        assert_eq!(
            respelled("CREATE TEMP TABLE t AS SELECT 1 WITH NO DATA"),
            "CREATE TEMP TABLE t AS SELECT * FROM ( SELECT 1 ) AS query LIMIT 0"
        );
        assert_eq!(respelled("CREATE TABLE t (a int)"), "CREATE TABLE t ( a int )");
        assert_eq!(
            respelled("WHEN MATCHED AND a THEN DO NOTHING WHEN NOT MATCHED THEN INSERT DEFAULT VALUES"),
            format!(
                "WHEN MATCHED AND a THEN UPDATE SET \"{NOTHING}\" = NULL WHEN NOT MATCHED THEN INSERT VALUES ( DEFAULT )"
            )
        );
        assert_eq!(
            respelled("WHEN NOT MATCHED AND CASE WHEN matched THEN b END THEN DO NOTHING"),
            format!(
                "WHEN NOT MATCHED AND CASE WHEN matched THEN b END THEN INSERT ( \"{NOTHING}\" ) VALUES ( NULL )"
            )
        );
    }
}
