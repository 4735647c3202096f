//! The PostgreSQL wire protocol, metrics, configuration.
