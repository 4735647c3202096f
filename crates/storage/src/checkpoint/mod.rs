//! A checkpoint: the state of a database at one seq, in one file.
//!
//! ```text
//! 00000000000000001234.checkpoint        named for its seq; ".new" behind it until it is whole
//!
//!   header | block | block | ... | end block        the file ends where the end block ends
//!
//! header
//! offset  bytes
//!      0      8  "FABIUSCP"
//!      8      4  format version, 2
//!     12      4  zero
//!     16     16  database id
//!     32      8  seq: the state is that after the entry with this seq
//!     40      8  when it was begun, microseconds since 1970
//!     48     12  zero
//!     60      4  crc32c of bytes 0..60; also seeds the checksum of every block
//!
//! block
//!      0      4  length of the payload
//!      4      4  number of items in it
//!      8      4  kind: 1 definitions, 2 keys, 3 rows, 4 end
//!     12      4  number of the rows' table; else zero
//!     16      4  crc32c of the payload
//!     20      4  crc32c, seeded by the header's checksum, of the block's offset in the file (8 bytes)
//!                and bytes 0..20
//!     24         payload: the items, one after the other
//!
//! payload of the end block: how many blocks, definitions, keys and rows came before it, 8 bytes each
//! ```
//!
//! Numbers are little-endian. In every future version the first 64 bytes keep the magic, the version and
//! this checksum at these places, so that "newer" can be told from "damaged". What is in an item is the
//! business of who writes it; blocks of one kind come together, definitions first, those of a table in any order.
//!
//! **Writing.** Under the temporary name, then synced, renamed, and the name synced: a file with a
//! checkpoint's name was whole. If it is not any more, that is damage, and the reader says where.
//!
//! **Reading.** No length is used before its checksum is known to be right; seed and offset keep the bytes
//! of another file or another place from passing for a block; the counts at the end, and that nothing
//! comes after them, tell that nothing is missing.

mod block;
mod directory;
mod fault;
mod reader;
mod rows;
mod writer;

pub use block::{BlockKind, Counts, Header};
pub use directory::{Found, delete, delete_unfinished, file_name, list};
pub use fault::{damaged, io_error};
pub use reader::{Block, CheckpointReader, Inspection, inspect};
pub use rows::{present, restore};
pub use writer::{BlockItems, CheckpointWriter};
