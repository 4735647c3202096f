//! Lazy evaluation of transactions: stickies, now-phase, substantiation.
