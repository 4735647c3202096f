//! Clock, random, disk: the real ones and their seeded simulated twins.
