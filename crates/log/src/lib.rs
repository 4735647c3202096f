//! What order calls came in: segments, group flush, recovery reading.
//!
//! The input log is the only truth of a database that must survive. It is a run of batches, each a
//! number of entries with consecutive sequence numbers; what an entry's bytes mean is the caller's
//! business. This crate answers for three things:
//!
//! - **Order**: batches are read back exactly as appended, without gaps, from 1 on (sequence
//!   number 0 is "nothing").
//! - **Durability**: [`Log::append`] only copies into memory; a flusher writes and syncs whatever
//!   has gathered as one group and then moves [`Log::durable_seq`]. An error there is final.
//! - **Honesty after a crash**: [`Log::open`] cuts off a tail that was never acknowledged, and says
//!   so; any other damage is an error that names segment and offset and loses nothing silently.
//!
//! It is *not* responsible for what entries mean, for checkpoints (it only forgets old segments
//! when told, [`Log::discard_before`]) or for copies on other machines.
//!
//! | file | one noun |
//! |---|---|
//! | `log.rs` | the [`Log`] a caller holds |
//! | `options.rs` | its settings |
//! | `worker_buffers.rs` | what is appended and not yet taken by the flusher, and putting it in order |
//! | `group_commit.rs` | the flusher: groups, adaptive size, idle marks |
//! | `watermark.rs` | how far the log is durable, and who waits for it |
//! | `segment.rs` | a file's name and header |
//! | `frame.rs` | a batch's bytes |
//! | `little_endian.rs` | numbers in bytes |
//! | `segment_writer.rs` | writing, syncing, rotating segments |
//! | `closing_mark.rs` | the record of a clean close |
//! | `reading.rs` | the one reader of all segments when a log is opened or inspected; torn tail or damage |
//! | `reader.rs` | [`Reader`]: batches of an open log, read again |
//! | `flipped_bit.rs` | telling a flipped bit from a torn write |
//! | `cut.rs` | cutting the end off a log, or all of it |
//! | `recovery.rs` | opening for writing: read, cut, continue |
//! | `inspection.rs` | [`verify`] and [`dump`] |
//! | `error.rs` | [`LogError`] |

mod closing_mark;
mod cut;
mod error;
mod flipped_bit;
mod frame;
mod group_commit;
mod inspection;
mod little_endian;
mod log;
mod options;
mod reader;
mod reading;
mod recovery;
mod segment;
mod segment_writer;
mod watermark;
mod worker_buffers;

pub use cut::delete;
pub use error::{LogError, LogErrorKind};
pub use frame::Frame;
pub use inspection::{Inspection, SegmentInspection, dump, verify};
pub use log::Log;
pub use options::{DatabaseId, Durability, Flusher, LogOptions};
pub use reader::{Batch, Reader};
pub use reading::{LogItem, TornTail};
pub use recovery::RecoveryReport;
pub use segment::SegmentHeader;
