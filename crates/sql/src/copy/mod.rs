//! `COPY`: rows in and out, as text, as comma-separated values, in binary.

use crate::connection::{Connection, Response};
use crate::parse::copy::CopyStatement;
use fabius_value::{Error, Result, SqlState};

/// A `COPY ... FROM STDIN` under way.
pub(crate) struct Copying;

impl Connection {
    pub(crate) async fn copy(&mut self, _copy: &CopyStatement) -> Result<Response> {
        Err(Error::new(SqlState::NOT_SUPPORTED, "COPY is not supported"))
    }

    /// Takes in a part of what the client copies.
    ///
    /// # Errors
    /// A line that does not fit, with its number. The copy has then failed.
    pub async fn copy_data(&mut self, _data: &[u8]) -> Result<()> {
        Err(Error::new(SqlState::NOT_SUPPORTED, "COPY is not supported"))
    }

    /// Ends the copy: `COPY n`.
    ///
    /// # Errors
    /// As [`Connection::copy_data`]; `failure` is the client's own reason to give it up.
    pub async fn copy_end(&mut self, _failure: Option<String>) -> Result<Response> {
        Err(Error::new(SqlState::NOT_SUPPORTED, "COPY is not supported"))
    }
}
