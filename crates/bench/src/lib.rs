//! Workloads, measurements and the papers' figures.
//!
//! ```text
//! workload --load--> target (a database and what was done to it) --closed or open loop--> measured
//!    |                                                                                       |
//!    settings                                                        report: table, JSON, figures
//! ```
//!
//! | to add | write | and name it in |
//! |---|---|---|
//! | a workload | one file in `workloads` | [`workload_list::WORKLOADS`] |
//! | a figure | one file in `figures` | [`figure::FIGURES`] |
//!
//! Everything runs in one process on a given number of threads: making the calls, now-phases and
//! deferred work share them. This crate is *not* responsible for the command line, which is the
//! `fabius` program's, nor for what engines do inside.

pub mod arrivals;
pub mod chart;
pub mod claim;
pub mod closed_loop;
pub mod cluster_process;
pub mod compare;
pub mod depth;
pub mod figure;
pub mod figure_page;
pub mod figures;
pub mod history;
pub mod interactive;
pub mod interrupt;
pub mod link;
pub mod loader;
pub mod loading;
pub mod machine;
pub mod measured;
pub mod open_loop;
pub mod operation;
pub mod peers;
pub mod recorder;
pub mod repeated;
pub mod run;
pub mod sample;
pub mod sent;
pub mod server_process;
pub mod settings;
pub mod sites;
pub mod sweep;
pub mod table;
pub mod target;
pub mod temporary;
pub mod workload;
pub mod workload_list;
pub mod workloads;
pub mod zipf;
