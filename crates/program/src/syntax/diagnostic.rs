//! What is wrong with a text, and where: facts with places, shown with their source line.
//!
//! ```text
//! error: table accounts has no column balanse
//!  --> bank.fab:12:19
//!    |
//! 12 |     accounts[src].balanse -= amount
//!    |                   ^^^^^^^
//!    = hint: did you mean balance?
//! ```

use fabius_value::{Error, SqlState};
use std::fmt;
use std::sync::Arc;

/// Byte offsets into a source. All spans are equal, so that trees compare by what they say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// After the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of this one to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.start) }
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

/// A text and the name of its file.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// For messages.
    pub file: String,
    /// The text.
    pub text: String,
    /// Where each line begins.
    lines: Vec<u32>,
    /// Whether every character is one byte.
    is_ascii: bool,
}

impl Source {
    /// A text of at most 4 GiB.
    pub fn new(text: impl Into<String>, file: impl Into<String>) -> Source {
        let text = text.into();
        let after_breaks =
            text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at as u32 + 1);
        let lines = std::iter::once(0).chain(after_breaks).collect();
        let is_ascii = text.is_ascii();
        Source { file: file.into(), text, lines, is_ascii }
    }

    /// The 1-based line of a byte offset.
    pub fn line(&self, offset: u32) -> u32 {
        self.lines.partition_point(|&start| start <= offset) as u32
    }

    /// The byte offset at which a 1-based line begins; `None` if there is none of this number.
    pub fn start_of_line(&self, line: u32) -> Option<u32> {
        self.lines.get(line.checked_sub(1)? as usize).copied()
    }

    /// The 1-based line and column (in characters) of a byte offset, and the line's text.
    pub fn place(&self, offset: u32) -> (u32, u32, &str) {
        let line = self.line(offset);
        let start = self.lines[line as usize - 1] as usize;
        let end = self.lines.get(line as usize).map_or(self.text.len(), |next| *next as usize - 1);
        let text = &self.text[start..end];
        let before = (offset as usize).saturating_sub(start).min(text.len());
        let column = match self.is_ascii {
            true => before,
            false => text.char_indices().take_while(|&(at, _)| at < before).count(),
        } as u32
            + 1;
        (line, column, text.trim_end_matches('\r'))
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The diagnostic's SQLSTATE.
    pub state: SqlState,
    /// A short lower-case fact.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to do about it, if known.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A fact with its code and place.
    pub fn new(state: SqlState, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { state, message: message.into(), span, hint: None }
    }

    /// Adds what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    /// Adds `did you mean ...?` if one of the candidates looks like `wrong`; otherwise the hint that
    /// `otherwise` gives, if it gives one.
    pub fn did_you_mean<'a>(
        mut self,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> Option<String>,
    ) -> Diagnostic {
        // Any letter looks like any other: nothing is guessed of names that have only one.
        let is_word = |name: &str| name.chars().nth(1).is_some();
        let most = (wrong.chars().count() / 3).max(1);
        let best = candidates
            .into_iter()
            .filter(|candidate| is_word(wrong) && is_word(candidate))
            .map(|candidate| (strsim::osa_distance(wrong, candidate), candidate))
            .filter(|&(distance, _)| distance <= most)
            .min();
        self.hint = best.map(|(_, candidate)| format!("did you mean {candidate}?")).or_else(otherwise);
        self
    }
}

/// How many facts are shown of one text: later ones are often consequences of earlier ones. One more
/// is kept, which says that there are more.
pub const DIAGNOSTICS_MAX: usize = 20;

/// What is said of the others.
const MORE: &str = "and more: the others are shown when these are mended";

/// Everything found wrong with a text; never empty.
#[derive(Clone)]
pub struct Diagnostics {
    /// The text.
    pub source: Arc<Source>,
    /// What is wrong, in the order it was found.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// One fact with its source, as `file:line:column` and a marked line, without the hint.
    pub fn snippet(&self, diagnostic: &Diagnostic) -> String {
        let (line, column, text) = self.source.place(diagnostic.span.start);
        let (shown, before) = window(text, column as usize - 1);
        let width = (diagnostic.span.end.saturating_sub(diagnostic.span.start) as usize).max(1);
        let marked = self
            .source
            .text
            .get(diagnostic.span.start as usize..diagnostic.span.start as usize + width)
            .map_or(1, |marked| marked.lines().next().unwrap_or("").chars().count().max(1));
        let carets = "^".repeat(marked.min(shown.chars().count().saturating_sub(before).max(1)));
        let margin = " ".repeat(line.to_string().len());
        // Tabs are kept in the padding, so that the caret stands below its text in any tab width.
        let padding: String =
            shown.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!(
            "{margin}--> {}:{line}:{column}\n{margin} |\n{line} | {shown}\n{margin} | {padding}{carets}",
            self.source.file
        )
    }
}

/// At most 160 characters of a line around the character at `at`, and how many of them come before it.
fn window(line: &str, at: usize) -> (&str, usize) {
    const SHOWN: usize = 160;
    let from = if at > SHOWN / 2 && line.chars().count() > SHOWN { at - SHOWN / 2 } else { 0 };
    let offset = |index: usize| line.char_indices().nth(index).map_or(line.len(), |(offset, _)| offset);
    (&line[offset(from)..offset(from + SHOWN)], at - from)
}

impl fmt::Display for Diagnostics {
    /// Each fact with its snippet and hint, a blank line between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, diagnostic) in self.list.iter().take(DIAGNOSTICS_MAX).enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            let (line, _, _) = self.source.place(diagnostic.span.start);
            writeln!(f, "error: {}\n{}", diagnostic.message, self.snippet(diagnostic))?;
            if let Some(hint) = &diagnostic.hint {
                writeln!(f, "{} = hint: {hint}", " ".repeat(line.to_string().len()))?;
            }
        }
        if self.list.len() > DIAGNOSTICS_MAX {
            writeln!(f, "\n{MORE}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostics> for Error {
    /// The first fact; its detail is the snippet, followed by the further facts if there are any.
    fn from(diagnostics: Diagnostics) -> Error {
        let Some(first) = diagnostics.list.first() else {
            return Error::new(SqlState::INVALID_DEFINITION, "invalid definition");
        };
        let mut detail = diagnostics.snippet(first);
        for further in diagnostics.list.iter().take(DIAGNOSTICS_MAX).skip(1) {
            let (line, _, _) = diagnostics.source.place(further.span.start);
            detail += &format!("\nalso: {} (line {line})", further.message);
        }
        if diagnostics.list.len() > DIAGNOSTICS_MAX {
            detail += &format!("\n{MORE}");
        }
        let error = Error::new(first.state, first.message.clone())
            .with_detail(detail)
            .at_line(diagnostics.source.place(first.span.start).0);
        match &first.hint {
            Some(hint) => error.with_hint(hint.clone()),
            None => error,
        }
    }
}
