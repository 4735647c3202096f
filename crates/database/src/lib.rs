//! The embedded database: open, define, call, query, settle, close.
