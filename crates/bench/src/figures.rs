//! The figures, one file each, with the axes and the claims of the paper's.
//!
//! Those of one paper share what its evaluation has in common: `lads.rs`, `doppel.rs`; interactive transactions are
//! in `crates/bench/src/interactive`. Where two figures show the same runs, one file makes both.

pub mod calvin_10;
pub mod calvin_2;
pub mod doppel;
pub mod doppel_adapt;
pub mod doppel_incr_cores;
pub mod doppel_incr_share;
pub mod doppel_like;
pub mod doppel_phase;
pub mod doppel_rubis;
pub mod lads;
pub mod lads_10;
pub mod lads_11;
pub mod lads_12;
pub mod lads_13;
pub mod lads_14;
pub mod lads_15;
pub mod lads_17;
pub mod lads_18;
pub mod lads_8;
pub mod lads_9;
pub mod lazy_3;
pub mod lazy_4;
pub mod lazy_5;
pub mod lazy_6;
pub mod lazy_7;
pub mod lazy_8;
pub mod lsd_7;
pub mod lsd_8;
