//! What goes wrong with a log, as told to its users.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The kinds of [`LogError`], for code that decides by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogErrorKind {
    /// Bytes that had been made durable are not what was written, or are gone.
    Damaged,
    /// The log was written by a newer version of Fabius.
    NewerFormat,
    /// The log belongs to another database.
    OtherDatabase,
    /// The log does not hold the sequence numbers the caller needs.
    MissingEntries,
    /// Another process has the directory.
    InUse,
    /// The disk is read-only, or its permissions forbid it.
    ReadOnly,
    /// The disk is full.
    DiskFull,
    /// Any other input or output error.
    Io,
    /// A batch is larger than the log takes.
    TooLarge,
    /// The log has been closed.
    Closed,
}

/// An error of the log: a short fact, where, and what helps. Cheap to clone, because a log that
/// has failed gives the same error to everyone from then on.
#[derive(Debug, Clone)]
pub struct LogError {
    details: Arc<Details>,
}

#[derive(Debug, Clone)]
struct Details {
    kind: LogErrorKind,
    fact: String,
    segment: Option<String>,
    offset: Option<u64>,
    last_good_seq: Option<u64>,
    hint: Option<String>,
    source: Option<Arc<io::Error>>,
}

impl LogError {
    pub(crate) fn new(kind: LogErrorKind, fact: impl Into<String>) -> Self {
        Self {
            details: Arc::new(Details {
                kind,
                fact: fact.into(),
                segment: None,
                offset: None,
                last_good_seq: None,
                hint: None,
                source: None,
            }),
        }
    }

    /// An input or output error met while `doing` (as in "writing").
    pub(crate) fn io(doing: &str, directory: &Path, error: io::Error) -> Self {
        let directory = directory.display();
        let (kind, fact, hint) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
                LogErrorKind::DiskFull,
                format!("disk full while {doing} in {directory}"),
                Some(
                    "free some space on that disk, then open the database again; everything \
                     acknowledged is safe",
                ),
            ),
            io::ErrorKind::PermissionDenied
                if doing.starts_with("reading") || doing.starts_with("listing") =>
            {
                (
                    LogErrorKind::ReadOnly,
                    format!("not permitted: {doing} in {directory}"),
                    Some("let this user read the files of the database"),
                )
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => (
                LogErrorKind::ReadOnly,
                format!("not permitted: {doing} in {directory}"),
                Some(
                    "make the directory writable, or only look at it with `fabius log verify` \
                     or `fabius log dump`",
                ),
            ),
            io::ErrorKind::ResourceBusy => (
                LogErrorKind::InUse,
                format!("directory {directory} is in use by another process"),
                Some("stop the other process, or connect to its server instead"),
            ),
            _ => (LogErrorKind::Io, format!("error while {doing} in {directory}"), None),
        };
        Self::new(kind, fact).with(|details| {
            details.hint = hint.map(str::to_owned);
            details.source = Some(Arc::new(error));
        })
    }

    pub(crate) fn closed() -> Self {
        Self::new(LogErrorKind::Closed, "the log is closed")
    }

    pub(crate) fn at(self, segment: impl Into<String>, offset: u64) -> Self {
        self.with(|details| {
            details.segment = Some(segment.into());
            details.offset = Some(offset);
        })
    }

    pub(crate) fn in_file(self, name: impl Into<String>) -> Self {
        self.with(|details| details.segment = Some(name.into()))
    }

    pub(crate) fn good_until(self, seq: u64) -> Self {
        self.with(|details| details.last_good_seq = Some(seq))
    }

    pub(crate) fn hint_is(self, hint: impl Into<String>) -> Self {
        self.with(|details| details.hint = Some(hint.into()))
    }

    fn with(mut self, change: impl FnOnce(&mut Details)) -> Self {
        change(Arc::make_mut(&mut self.details));
        self
    }

    /// What kind of error this is.
    #[must_use]
    pub fn kind(&self) -> LogErrorKind {
        self.details.kind
    }

    /// The fact alone, without place and hint.
    #[must_use]
    pub fn fact(&self) -> &str {
        &self.details.fact
    }

    /// The file the error is about.
    #[must_use]
    pub fn segment(&self) -> Option<&str> {
        self.details.segment.as_deref()
    }

    /// Where in the file, in bytes.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.details.offset
    }

    /// The last sequence number before the damage; everything up to it can be saved. Zero if
    /// nothing can.
    #[must_use]
    pub fn last_good_seq(&self) -> Option<u64> {
        self.details.last_good_seq
    }

    /// What the reader of the error can do.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.details.hint.as_deref()
    }

    /// The SQLSTATE of the error.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self.details.kind {
            LogErrorKind::Damaged | LogErrorKind::MissingEntries => "XX001",
            LogErrorKind::NewerFormat => "0A000",
            LogErrorKind::OtherDatabase | LogErrorKind::Closed => "55000",
            LogErrorKind::InUse => "55006",
            LogErrorKind::ReadOnly => "25006",
            LogErrorKind::DiskFull => "53100",
            LogErrorKind::Io => "58030",
            LogErrorKind::TooLarge => "54000",
        }
    }

    /// Whether the same request can succeed later without the log being opened anew.
    #[must_use]
    pub fn retry_helps(&self) -> bool {
        self.details.kind == LogErrorKind::InUse
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &*self.details;
        formatter.write_str(&details.fact)?;
        match (&details.segment, details.offset) {
            (Some(segment), Some(offset)) => write!(formatter, " ({segment}, offset {offset})")?,
            (Some(segment), None) => write!(formatter, " ({segment})")?,
            _ => {}
        }
        if let Some(seq) = details.last_good_seq {
            write!(formatter, "; good up to sequence number {seq}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.details.source.as_deref()?;
        Some(source)
    }
}
