//! Numbers by patterns: `to_char(-5, '999PR')`.
//!
//! ```text
//! value --round, split--> whole and part --a place each--> "  12"  "50"  --sign, separators, words--> shown
//! pattern --parse--> Pattern (how many places, where zeros begin, which sign) and its items in order
//! ```

use super::moment_pattern::ordinal_ending;
use super::{Call, Definition, define, text_at};
use fabius_value::{Decimal, Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    vec![
        define("to_char(int, text) text", to_char),
        define("to_char(bigint, text) text", to_char),
        define("to_char(numeric, text) text", to_char),
        define("to_char(real, text) text", to_char),
        define("to_char(float8, text) text", to_char),
        define("to_number(text, text) numeric", to_number),
    ]
}

fn to_char(a: &[Value], _: &Call) -> Result<Value> {
    let pattern = Pattern::parse(text_at(a, 1))?;
    Ok(Value::Text(pattern.show(&a[0])))
}

fn to_number(a: &[Value], call: &Call) -> Result<Value> {
    let number = Pattern::parse(text_at(a, 1))?.read(text_at(a, 0))?;
    let decimal = Decimal::parse(&number).and_then(|decimal| decimal.rescale(call.returns.scale()));
    decimal.map(Value::Numeric).ok_or_else(|| {
        // PostgreSQL shows the place that it keeps for a sign.
        let message = format!("invalid input syntax for type numeric: \"{number:1}\"");
        Error::new(SqlState::INVALID_TEXT, message)
    })
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// `9` or `0`
    Digit { is_zero: bool },
    /// `.` or `D`
    Point,
    /// `,` or `G`
    Separator,
    /// `L`: there is no currency.
    Currency,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Sign,
    /// `TH`, `th`
    Ordinal { is_upper: bool },
    /// `RN`, `rn`
    Roman { is_upper: bool },
    /// What is shown as it is.
    Literal(String),
}

/// How the sign is shown where no item of its own says so.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SignStyle {
    /// A minus before the first digit, a blank in its place for others.
    Usual,
    /// `PR`: `<5>`
    Brackets,
    /// `S` before the digits.
    Before,
    /// `S` behind them.
    Behind,
    /// `MI` or `SG` say it.
    Apart,
}

#[derive(Debug)]
struct Pattern {
    items: Vec<Item>,
    /// Digits before the point, and behind it.
    whole: usize,
    part: usize,
    /// `V`: digits that the value is shifted by.
    shift: usize,
    /// The first place from which on there are zeros instead of blanks.
    zeros_from: Option<usize>,
    /// Places up to the last `0`, those behind the point included.
    zeros_to: usize,
    has_point: bool,
    /// `FM`: nothing is filled up.
    is_bare: bool,
    sign: SignStyle,
    has_plus: bool,
    is_scientific: bool,
}

fn syntax(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// Words of patterns, longer ones before those that they begin with.
const WORDS: &[&str] = &[
    "EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", "9", "0", ".", ",", "B", "C", "D", "G", "L", "S",
    "V",
];

impl Pattern {
    fn parse(text: &str) -> Result<Pattern> {
        let mut pattern = Pattern {
            items: Vec::new(),
            whole: 0,
            part: 0,
            shift: 0,
            zeros_from: None,
            zeros_to: 0,
            has_point: false,
            is_bare: false,
            sign: SignStyle::Usual,
            has_plus: false,
            is_scientific: false,
        };
        let (mut rest, mut has_shift, mut signed_at) = (text, false, None);
        while let Some(first) = rest.chars().next() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let mut literal = String::new();
                let mut characters = quoted.chars();
                while let Some(character) = characters.next().filter(|c| *c != '"') {
                    literal.push(if character == '\\' {
                        characters.next().unwrap_or('\\')
                    } else {
                        character
                    });
                }
                rest = characters.as_str();
                pattern.items.push(Item::Literal(literal));
                continue;
            }
            if let Some(behind) = rest.strip_prefix("\\\"") {
                pattern.items.push(Item::Literal("\"".into()));
                rest = behind;
                continue;
            }
            let word = WORDS
                .iter()
                .find(|word| rest.get(..word.len()).is_some_and(|s| s.eq_ignore_ascii_case(word)));
            let Some(word) = word else {
                pattern.items.push(Item::Literal(first.to_string()));
                rest = &rest[first.len_utf8()..];
                continue;
            };
            let written = &rest[..word.len()];
            rest = &rest[word.len()..];
            let is_upper = written.starts_with(|c: char| c.is_ascii_uppercase());
            if pattern.is_scientific {
                return Err(syntax("\"EEEE\" must be the last pattern used"));
            }
            let item = match *word {
                "9" | "0" if pattern.sign == SignStyle::Brackets => {
                    return Err(syntax(&format!("\"{word}\" must be ahead of \"PR\"")));
                }
                "9" | "0" => {
                    pattern.digit(*word == "0", has_shift);
                    Item::Digit { is_zero: *word == "0" }
                }
                "." | "D" if pattern.has_point => return Err(syntax("multiple decimal points")),
                "." | "D" if has_shift => {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                "." | "D" => {
                    pattern.has_point = true;
                    Item::Point
                }
                "V" if pattern.has_point => {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                "V" => {
                    has_shift = true;
                    continue;
                }
                "S" => {
                    if signed_at.is_some() {
                        return Err(syntax("cannot use \"S\" twice"));
                    }
                    if pattern.sign != SignStyle::Usual || pattern.has_plus {
                        return Err(syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                    }
                    signed_at = Some(pattern.whole);
                    pattern.sign = if pattern.has_point { SignStyle::Behind } else { SignStyle::Before };
                    continue;
                }
                "MI" | "PL" | "SG" if signed_at.is_some() => {
                    return Err(syntax(&format!("cannot use \"S\" and \"{word}\" together")));
                }
                "MI" => {
                    pattern.sign = SignStyle::Apart;
                    Item::Minus
                }
                "PL" => {
                    pattern.has_plus = true;
                    Item::Plus
                }
                "SG" => {
                    pattern.sign = SignStyle::Apart;
                    Item::Sign
                }
                "PR" if signed_at.is_some() || pattern.has_plus || pattern.sign == SignStyle::Apart => {
                    return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                "PR" => {
                    pattern.sign = SignStyle::Brackets;
                    continue;
                }
                "FM" => {
                    pattern.is_bare = true;
                    continue;
                }
                "EEEE" => {
                    pattern.is_scientific = true;
                    continue;
                }
                "TH" => Item::Ordinal { is_upper },
                "RN" => Item::Roman { is_upper },
                "," | "G" => Item::Separator,
                "L" => Item::Currency,
                _ => continue,
            };
            pattern.items.push(item);
        }
        let is_plain =
            pattern.sign == SignStyle::Usual && !pattern.has_plus && !pattern.is_bare && !has_shift;
        if pattern.is_scientific && !is_plain {
            return Err(syntax("\"EEEE\" is incompatible with other formats"));
        }
        if pattern.sign == SignStyle::Before && signed_at == Some(pattern.whole) {
            // No digit before the point follows it.
            pattern.sign = SignStyle::Behind;
        }
        Ok(pattern)
    }

    fn digit(&mut self, is_zero: bool, is_shifted: bool) {
        if is_zero && !self.has_point {
            self.zeros_from.get_or_insert(self.whole);
        }
        match (self.has_point, is_shifted) {
            (true, _) => self.part += 1,
            (false, shifted) => {
                self.whole += 1;
                self.shift += usize::from(shifted && !is_zero);
            }
        }
        if is_zero {
            self.zeros_to = self.whole + self.part;
        }
    }

    /// The digits of a number that a text has: a sign anywhere, as many digits as there are places for, and a point if
    /// there is one.
    fn read(&self, text: &str) -> Result<String> {
        let is_roman = self.items.iter().any(|item| matches!(item, Item::Roman { .. }));
        if is_roman || self.is_scientific {
            let word = if is_roman { "RN" } else { "EEEE" };
            return Err(Error::new(SqlState::NOT_SUPPORTED, format!("\"{word}\" not supported for input")));
        }
        let is_negative = text.contains('-') || self.sign == SignStyle::Brackets && text.contains('<');
        let mut places = self.whole + self.part;
        let mut number = String::from(if is_negative { "-" } else { "" });
        for character in text.chars() {
            match character {
                '0'..='9' if places > 0 => {
                    number.push(character);
                    places -= 1;
                }
                '.' if !self.has_point => break,
                '.' if !number.contains('.') => number.push('.'),
                _ => {}
            }
        }
        Ok(number)
    }

    fn show(&self, value: &Value) -> String {
        if let Some(Item::Roman { is_upper }) =
            self.items.iter().find(|item| matches!(item, Item::Roman { .. }))
        {
            return roman(value, *is_upper, self.is_bare);
        }
        if self.is_scientific {
            return scientific(value, self.part);
        }
        let number = Digits::of(value, self.part, self.shift);
        Writer::new(self, number).write()
    }
}

/// A number by its digits.
struct Digits {
    is_negative: bool,
    whole: String,
    part: String,
}

impl Digits {
    /// A value rounded to so many digits behind the point, shifted by so many before.
    fn of(value: &Value, part: usize, shift: usize) -> Digits {
        let (text, wanted) = match value {
            Value::Numeric(decimal) => {
                let shifted = (0..shift).try_fold(decimal.mantissa, |mantissa, _| mantissa.checked_mul(10));
                let decimal = Decimal { mantissa: shifted.unwrap_or(decimal.mantissa), ..*decimal };
                let kept = u8::try_from(part).unwrap_or(u8::MAX).min(decimal.scale);
                (decimal.rescale(kept).unwrap_or(decimal).to_string(), part)
            }
            Value::Double(double) => {
                let double = double * 10f64.powi(shift as i32);
                let whole = format!("{:.0}", double.abs()).len();
                // A double has no more digits that mean something.
                let wanted = part.min(15usize.saturating_sub(whole));
                (format!("{double:.wanted$}"), wanted)
            }
            other => {
                let zeros = if other.as_integer() == Some(0) { 0 } else { shift };
                (format!("{}{}", other.as_integer().unwrap_or_default(), "0".repeat(zeros)), part)
            }
        };
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        // Only a double has a zero below zero.
        let is_zero =
            !matches!(value, Value::Double(_)) && digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        Digits {
            is_negative: text.starts_with('-') && !is_zero,
            whole: whole.to_string(),
            part: format!("{fraction:0<wanted$}"),
        }
    }
}

/// Writes a number by a pattern.
struct Writer<'p> {
    pattern: &'p Pattern,
    is_negative: bool,
    is_beyond: bool,
    /// What stands at each place before the point; `None` is nothing yet.
    whole: Vec<Option<char>>,
    part: Vec<char>,
    /// How many digits behind the point are shown.
    shown: usize,
    out: String,
    has_part: bool,
    is_signed: bool,
    is_closed: bool,
}

impl Writer<'_> {
    fn new(pattern: &Pattern, digits: Digits) -> Writer<'_> {
        let is_beyond = digits.whole.len() > pattern.whole;
        let has_part = !digits.part.is_empty();
        let (whole, part) = match is_beyond {
            true => (vec![Some('#'); pattern.whole], vec!['#'; pattern.part]),
            false => {
                let blank = pattern.whole.saturating_sub(digits.whole.len());
                let is_bare_zero = digits.whole == "0" && pattern.part > 0 && pattern.zeros_from.is_none();
                let mut whole: Vec<Option<char>> = (0..blank)
                    .map(|at| pattern.zeros_from.filter(|from| *from <= at).map(|_| '0'))
                    .chain(digits.whole.chars().map(Some))
                    .collect();
                whole.drain(..whole.len().saturating_sub(pattern.whole));
                if is_bare_zero && let Some(last) = whole.last_mut() {
                    *last = None;
                }
                (whole, digits.part.chars().collect::<Vec<_>>())
            }
        };
        let mut shown = part.len();
        if pattern.is_bare && pattern.has_point {
            let used = part.iter().rposition(|digit| *digit != '0').map_or(0, |at| at + 1);
            shown = used.max(pattern.zeros_to.saturating_sub(pattern.whole)).min(part.len());
        }
        let mut writer = Writer {
            pattern,
            is_negative: digits.is_negative,
            is_beyond,
            whole,
            part,
            shown,
            out: String::new(),
            has_part,
            is_signed: false,
            is_closed: false,
        };
        // `FM9.9` of 0 is `0.`
        if pattern.is_bare
            && shown == 0
            && writer.whole.iter().all(Option::is_none)
            && let Some(last) = writer.whole.last_mut()
        {
            *last = Some('0');
        }
        writer
    }

    fn write(mut self) -> String {
        let (mut at, mut behind, mut is_in, mut is_past_point) = (0, 0, false, false);
        let places = self.pattern.whole + self.pattern.part;
        for item in &self.pattern.items {
            match item {
                Item::Digit { .. } if !is_past_point => {
                    let digit = self.whole.get(at).copied().flatten();
                    at += 1;
                    match digit {
                        Some(digit) => {
                            self.open();
                            self.out.push(digit);
                        }
                        None if !self.pattern.is_bare => self.out.push(' '),
                        None => {}
                    }
                    is_in = digit.is_some();
                }
                Item::Digit { .. } => {
                    self.open();
                    if let Some(digit) = self.part.get(behind).filter(|_| behind < self.shown) {
                        self.out.push(*digit);
                        is_in = true;
                    }
                    behind += 1;
                }
                Item::Point => {
                    self.open();
                    if self.has_part || self.is_beyond {
                        self.out.push('.');
                    }
                    is_past_point = true;
                }
                Item::Separator if is_in => self.out.push(','),
                Item::Separator | Item::Currency if !self.pattern.is_bare => self.out.push(' '),
                Item::Separator => {}
                Item::Currency => self.out.push(' '),
                Item::Minus if self.is_negative => self.out.push('-'),
                Item::Plus if !self.is_negative => self.out.push('+'),
                Item::Minus | Item::Plus if !self.pattern.is_bare => self.out.push(' '),
                Item::Minus | Item::Plus => {}
                Item::Sign => self.out.push(if self.is_negative { '-' } else { '+' }),
                Item::Ordinal { is_upper } => self.ordinal(*is_upper),
                Item::Roman { .. } => {}
                Item::Literal(text) => self.out += text,
            }
            if at + behind >= places && matches!(item, Item::Digit { .. } | Item::Point) {
                let is_open_point = self.pattern.has_point && !is_past_point;
                if !is_open_point {
                    self.close();
                }
            }
        }
        self.out
    }

    /// The sign before the first digit.
    fn open(&mut self) {
        if std::mem::replace(&mut self.is_signed, true) {
            return;
        }
        let is_bare = self.pattern.is_bare;
        match (self.pattern.sign, self.is_negative) {
            (SignStyle::Before, true) => self.out.push('-'),
            (SignStyle::Before, false) => self.out.push('+'),
            (SignStyle::Brackets, true) => self.out.push('<'),
            (SignStyle::Usual, true) => self.out.push('-'),
            (SignStyle::Usual | SignStyle::Brackets, false) if !is_bare => self.out.push(' '),
            _ => {}
        }
    }

    /// The sign behind the last digit.
    fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        match (self.pattern.sign, self.is_negative) {
            (SignStyle::Brackets, true) => self.out.push('>'),
            (SignStyle::Brackets, false) if !self.pattern.is_bare => self.out.push(' '),
            (SignStyle::Behind, true) => self.out.push('-'),
            (SignStyle::Behind, false) => self.out.push('+'),
            _ => {}
        }
    }

    fn ordinal(&mut self, is_upper: bool) {
        if self.is_beyond || self.is_negative || self.pattern.has_point {
            return;
        }
        let digits: String = self.whole.iter().flatten().collect();
        let last = &digits[digits.len().saturating_sub(2)..];
        let ending = ordinal_ending(last.parse().unwrap_or(0));
        self.out += &if is_upper { ending.to_uppercase() } else { ending.to_string() };
    }
}

/// `EEEE`
fn scientific(value: &Value, digits: usize) -> String {
    let text = match value {
        Value::Double(double) => format!("{double:.digits$e}"),
        Value::Numeric(decimal) => rounded_scientific(&decimal.to_string(), digits),
        other => rounded_scientific(&other.as_integer().unwrap_or_default().to_string(), digits),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if mantissa.starts_with('-') { "" } else { " " };
    format!("{sign}{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// A decimal number with one digit before the point: half of the last digit rounds away from zero.
fn rounded_scientific(text: &str, digits: usize) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all = format!("{whole}{part}");
    let Some(first) = all.find(|c| c != '0') else {
        let point = if digits == 0 { "" } else { "." };
        return format!("0{point}{}e0", "0".repeat(digits));
    };
    let mut exponent = whole.len() as i64 - first as i64 - 1;
    let mut kept: Vec<u8> = all.as_bytes()[first..].iter().copied().take(digits + 2).collect();
    kept.resize(digits + 2, b'0');
    let is_up = kept.pop().is_some_and(|next| next >= b'5');
    if is_up {
        let mut at = kept.len();
        while at > 0 {
            at -= 1;
            if kept[at] == b'9' {
                kept[at] = b'0';
            } else {
                kept[at] += 1;
                break;
            }
        }
        if kept.iter().all(|digit| *digit == b'0') {
            kept.insert(0, b'1');
            kept.pop();
            exponent += 1;
        }
    }
    let kept = String::from_utf8_lossy(&kept).into_owned();
    let (one, rest) = kept.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{one}{point}{rest}e{exponent}")
}

/// `RN`: 1 to 3999 in 15 places.
fn roman(value: &Value, is_upper: bool, is_bare: bool) -> String {
    const SIGNS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let digits = Digits::of(value, 0, 0);
    let mut rest: i64 = digits.whole.parse().unwrap_or(i64::MAX);
    if digits.is_negative || !(1..=3999).contains(&rest) {
        return "#".repeat(15);
    }
    let mut shown = String::new();
    for (number, sign) in SIGNS {
        while rest >= number {
            shown += sign;
            rest -= number;
        }
    }
    let shown = if is_upper { shown } else { shown.to_lowercase() };
    if is_bare { shown } else { format!("{shown:>15}") }
}
