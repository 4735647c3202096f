//! Optimistic concurrency control, as Silo does it (Tu, Zheng, Kohler, Liskov, Madden: Speedy transactions
//! in multicore in-memory databases; SOSP 2013, section 4).
//!
//! A call reads without locks and notes what it saw: its *read set* and *node set*. When it has run, it
//! locks its *write set*, and checks that all it saw still is as it was (*validation*).
//!
//! ```text
//! run                          | 1: lock          | take a seq | 2: validate              | 3: install   | unlock
//! read set: record, its TID    | write set, in    |            | read set: same TID, no   | new versions |
//! node set: granule, its count | order of address |            | lock of others           |              |
//! change set: granules         | raise change set |            | node set: same count     |              | count
//! claims: taken at once        |                  |            |                          |              | give back
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`validation`] | the sets, and the three phases |
//! | [`word`] | a record's lock, and a granule's count of changes |
//! | [`backoff`] | when to begin again |
//!
//! **TIDs.** Silo gives a record the identity of the transaction that wrote it. Here the newest version has
//! it: its seq. Versions are only ever put on top, and none is freed while a call that has seen it runs, so
//! comparing pointers to versions compares TIDs, without reading them. A record without versions (the key
//! was looked up and is not there) has a TID too: none.
//!
//! **Phantoms.** Silo puts the nodes of the index that a scan has passed into the node set. Here these are
//! *granules* ([`crate::eager::granule`]), whose words count changes, and the changes under way, like a
//! sequence lock. Entries are in the index before their call commits; scans pass over them because the
//! record does not have them yet.
//!
//! **Unique values and idempotency keys** are claimed while the call runs, and given back when it has ended:
//! what the index says of a claimed value stays true, so it needs no validation. A call that finds a value
//! claimed gives up at once.
//!
//! **The order.** Silo's TIDs tell which of two writes came first, and nothing of a call that read what another
//! overwrote (an anti-dependency). A log that is replayed one call after the other needs that too. So a call takes its
//! seq where Silo reads the epoch: between the phases 1 and 2, by one `fetch_add`, without a lock. Take two calls, `A`
//! with the lower seq, and anything that both touch:
//!
//! - `A` reads `x`, `B` writes `x`. `A` has seen the old version: it read before it took its seq, and `B` installs
//!   after it took its own.
//! - `A` writes `x`, `B` reads `x`. `A` had locked `x` before it took its seq, so when `B` validates, after its own, it
//!   finds the lock, or, once it is given back, the new version. If it had seen another, it is refused.
//! - Both write `x`: the lock is `A`'s from before its seq until the version is installed; and every write is of a row
//!   that was read, so the point above holds too.
//! - `A` changes a granule that `B` scans: raised before `A`'s seq, counted when all is installed: as a write.
//!
//! So each call has seen exactly what those before it in the log have written: the order of the log is a
//! serial order of the calls. It also respects real time, because a seq is taken between the call's begin and
//! its end. Calls that abort go the same way with an empty write set, so what they saw is true as well. Calls that
//! only read take no place: what has not changed when it is looked at again was so all at once, when the first of it
//! was looked at again; whoever took a seq before that had locked what it writes, and is seen.
//!
//! A call that is refused in phase 2 leaves its seq void ([`crate::eager::sequencer`]). So that this is rare, the sets
//! are validated once before the seq is taken as well.
//!
//! **A call that is going to be refused** sees each row as it was at some time ([`crate::eager::transaction`]),
//! but not all rows at the same time. Its program may then do what it never would: abort, or run into an
//! error. Neither counts before it is validated. Programs are total, so it ends.
//!
//! **Every call ends.** After [`ATTEMPTS_MAX`] refusals, or as many as an engine's policy says, it runs alone.
//!
//! **Epochs.** Silo's tell what is durable together, let garbage be freed, and order what TIDs do not. The
//! log does the first: it is written in groups, in the order of seqs, so what is durable is a prefix
//! (`fabius_log`). `crossbeam_epoch` and `collected` do the second, and seqs are one order for all. Read-only
//! calls on old snapshots, for which Silo has its snapshot epochs, read at `promised`.

pub mod backoff;
pub mod validation;
pub mod word;

pub use validation::Optimistic;

/// A call that was refused so often runs alone, unless a policy says otherwise.
pub const ATTEMPTS_MAX: u32 = 32;
