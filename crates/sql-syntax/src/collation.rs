//! Collations: texts are sorted by their bytes, so that there are only those that say so.

use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

/// Refuses a collation that sorts texts in another way.
///
/// # Errors
/// `42704`
pub fn require_known(name: &ast::ObjectName) -> Result<()> {
    let last =
        name.0.last().and_then(|part| part.as_ident()).map(|part| part.value.as_str()).unwrap_or_default();
    match last {
        "C" | "POSIX" | "C.UTF-8" | "C.utf8" | "default" | "ucs_basic" => Ok(()),
        _ => Err(Error::new(
            SqlState(*b"42704"),
            format!("collation \"{last}\" for encoding \"UTF8\" does not exist"),
        )
        .with_hint("texts are sorted by their bytes, as by the collation \"C\"")),
    }
}
