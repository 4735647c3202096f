//! The contract every engine keeps, promises, counters, the serial oracle.
