//! Clock, random, disk, network, threads: the real ones and their seeded simulated twins.
//!
//! Everything nondeterministic that Fabius depends upon is passed in as one of these, so that a
//! simulation can replay any schedule, crash or failing disk from a seed.
//!
//! - [`Disk`] and [`DiskFile`]: one directory and the append-only files in it. [`RealDisk`] is the
//!   file system; [`SimulatedDisk`] keeps what was written apart from what was synced, fails on
//!   request ([`Fault`]), and can be [crashed](SimulatedDisk::crash).
//! - [`Network`]: messages between the nodes of a cluster, as one node sees them. [`RealNetwork`] is TCP;
//!   [`SimulatedNetwork`] loses, doubles and delays messages, is cut, and has nodes that crash.
//! - [`Clock`]: [`RealClock`] and [`SimulatedClock`].
//! - [`Random`]: one seeded generator whose sequence is fixed for ever, so a seed stays a
//!   reproduction.
//! - [`schedule`] and [`sync`]: threads that wait for each other; in a simulation one runs at a time, and
//!   a seed decides which.
//! - [`descriptors`]: how many files and sockets the process may have open.
//! - [`free_port`]: where a server that is started for a moment can listen.
//! - [`memory`]: what the system is told about memory.
//!
//! This crate does not know what the disk, the network, the clock, the numbers or the threads are used for.

mod clock;
pub mod descriptors;
mod disk;
mod free_port;
pub mod memory;
mod network;
mod random;
mod real_disk;
mod real_network;
pub mod schedule;
mod simulated_clock;
mod simulated_directory;
mod simulated_disk;
mod simulated_file;
mod simulated_network;
pub mod sync;

pub use clock::{Clock, ForwardClock, RealClock};
pub use disk::{DirectoryLock, Disk, DiskFile};
pub use free_port::free_port;
pub use network::{MAX_MESSAGE, Network, NodeId};
pub use random::Random;
pub use real_disk::RealDisk;
pub use real_network::{
    ClusterId, Connection, Direction, Incoming, NetworkSettings, PlainTransport, Problem, RealNetwork,
    Transport,
};
pub use simulated_clock::SimulatedClock;
pub use simulated_disk::{Fault, SimulatedDisk};
pub use simulated_network::{SimulatedNetwork, Weather};
