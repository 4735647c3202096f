//! Looking at a log without changing it: `fabius log verify` and `fabius log dump`.
//!
//! Neither takes the directory's lock, so both work on a read-only disk. On a log that is being
//! written, the group in flight shows as a torn tail.

use fabius_env::Disk;

use crate::reading::{LogItem, Reading, TornTail, read_log};
use crate::segment::{SegmentHeader, file_name};
use crate::{LogError, LogErrorKind};

/// What an inspection found.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The segments, oldest first, up to the damage if there is any.
    pub segments: Vec<SegmentInspection>,
    /// The sequence number of the first entry; nothing if there is no log.
    pub first_seq: Option<u64>,
    /// The sequence number after the last good entry; nothing if there is no log.
    pub next_seq: Option<u64>,
    /// Whether the log was closed cleanly.
    pub closed_cleanly: bool,
    /// The tail that opening the log would cut off.
    pub torn_tail: Option<TornTail>,
    /// Why the log cannot be opened.
    pub damage: Option<LogError>,
}

/// What was found of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInspection {
    /// The file's name.
    pub name: String,
    /// What its header says.
    pub header: SegmentHeader,
    /// How many bytes of it are good.
    pub bytes: u64,
    /// How many batches it holds.
    pub batches: u64,
    /// How many entries they hold.
    pub entries: u64,
}

impl Inspection {
    /// Whether nothing is damaged. A torn tail is no damage.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_none()
    }

    fn of(reading: Reading, damage: Option<LogError>) -> Self {
        let segments: Vec<SegmentInspection> = reading
            .segments
            .into_iter()
            .map(|segment| SegmentInspection {
                name: file_name(segment.header.number),
                header: segment.header,
                bytes: segment.bytes,
                batches: segment.frames,
                entries: segment.entries,
            })
            .collect();
        Self {
            first_seq: segments.first().map(|segment| segment.header.first_seq),
            segments,
            next_seq: reading.next_seq,
            closed_cleanly: reading.closed.is_some(),
            torn_tail: reading.torn,
            damage,
        }
    }
}

/// Reads the whole log in `disk` and reports what is there and what is wrong with it.
///
/// # Errors
/// Only when the log cannot be read at all; damage is part of the report.
pub fn verify(disk: &dyn Disk) -> Result<Inspection, LogError> {
    dump(disk, |_| Ok(()))
}

/// Shows `visit` everything in the log in `disk`, in order, up to the end or the first damage, and
/// reports as [`verify`] does.
///
/// # Errors
/// The error of `visit`; or when the log cannot be read at all.
pub fn dump<E: From<LogError>>(
    disk: &dyn Disk,
    mut visit: impl FnMut(LogItem<'_>) -> Result<(), E>,
) -> Result<Inspection, E> {
    let mut reading = Reading::default();
    let result = read_log(disk, None, 0, false, &mut reading, &mut |item| visit(item).map_err(Stop::Visitor));
    match result {
        Ok(()) => Ok(Inspection::of(reading, None)),
        Err(Stop::Log(error)) => match error.kind() {
            LogErrorKind::Damaged | LogErrorKind::NewerFormat | LogErrorKind::OtherDatabase => {
                Ok(Inspection::of(reading, Some(error)))
            }
            _ => Err(error.into()),
        },
        Err(Stop::Visitor(error)) => Err(error),
    }
}

/// Who ended the reading.
enum Stop<E> {
    Log(LogError),
    Visitor(E),
}

impl<E> From<LogError> for Stop<E> {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}
