//! Workloads, measurements and the papers' figures.
