//! Data as it arrives, divided into lines.

use fabius_value::{Error, Result, SqlState, limit};

/// Bytes that came and are not used yet.
#[derive(Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where the end of the line was looked for, and whether that is within quotes.
    seen: usize,
    in_quotes: bool,
    number: u64,
    has_ended: bool,
}

impl Lines {
    /// More bytes have come.
    pub fn push(&mut self, data: &[u8]) {
        if self.start > 0 && self.start * 2 > self.bytes.len() {
            self.bytes.drain(..self.start);
            self.seen = self.seen.saturating_sub(self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(data);
    }

    /// The number of the line that was last given, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line, without its end; within quotes, lines go on. `None` if it is not there yet, or nothing is left.
    pub fn next(&mut self, quote: Option<(u8, u8)>, is_last: bool) -> Result<Option<Vec<u8>>> {
        if self.has_ended {
            return Ok(None);
        }
        self.seen = self.seen.max(self.start);
        while self.seen < self.bytes.len() {
            let byte = self.bytes[self.seen];
            if let Some((quote, escape)) = quote {
                if self.in_quotes && byte == escape && escape != quote {
                    if self.seen + 1 >= self.bytes.len() && !is_last {
                        return Ok(None);
                    }
                    self.seen += 2;
                    continue;
                }
                if byte == quote {
                    self.in_quotes = !self.in_quotes;
                }
            } else if byte == b'\\' {
                // An escaped newline is data.
                if self.seen + 1 >= self.bytes.len() && !is_last {
                    return Ok(None);
                }
                self.seen += if self.bytes.get(self.seen + 1) == Some(&b'.') { 1 } else { 2 };
                continue;
            }
            self.seen += 1;
            if byte == b'\n' && !self.in_quotes {
                return Ok(self.cut(self.seen - 1));
            }
        }
        self.seen = self.bytes.len().min(self.seen);
        if self.bytes.len() - self.start > 4 * limit::BLOB_BYTES {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "a line of the copy is too long"));
        }
        if is_last && self.in_quotes {
            return Err(Error::new(SqlState(*b"22P04"), "unterminated CSV quoted field"));
        }
        if is_last && self.start < self.bytes.len() {
            let end = self.bytes.len();
            self.seen = end;
            return Ok(self.cut(end));
        }
        Ok(None)
    }

    fn cut(&mut self, end: usize) -> Option<Vec<u8>> {
        let line = &self.bytes[self.start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        self.start = self.seen;
        self.number += 1;
        if line == b"\\." {
            self.has_ended = true;
            return None;
        }
        Some(line)
    }

    /// The next bytes, if there are so many; they stay.
    pub fn look(&self, from: usize, count: usize) -> Option<&[u8]> {
        self.bytes.get(self.start + from..self.start.checked_add(from)?.checked_add(count)?)
    }

    /// Goes past bytes.
    pub fn skip(&mut self, count: usize) {
        self.start = (self.start + count).min(self.bytes.len());
        self.seen = self.start;
        self.number += 1;
    }
}
