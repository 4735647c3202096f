//! The calls of a run as the log has them: what a check replays in its own way.

use crate::target::Target;
use fabius::Result;
use fabius_engine::entry::{self, Call, Entries};
use fabius_engine::foundation::log_error;
use fabius_log::{LogError, LogItem};
use fabius_value::Error;

/// Shows `visit` every call in the log of a target, in order.
///
/// # Errors
/// Those of `visit`; damage in the log.
pub fn calls(target: &Target, visit: &mut dyn FnMut(&Call<'_>) -> Result<()>) -> Result<()> {
    let disk = target.written_log()?;
    let inspection = fabius_log::dump(&disk, |item| {
        let LogItem::Frame(frame) = item else { return Ok(()) };
        if let Entries::Calls { bytes, .. } = entry::decode(frame.payload).map_err(Ended::Call)? {
            for call in entry::calls(bytes) {
                call.and_then(|call| visit(&call)).map_err(Ended::Call)?;
            }
        }
        Ok(())
    });
    match inspection {
        Ok(inspection) => inspection.damage.map_or(Ok(()), |damage| Err(log_error(&damage))),
        Err(Ended::Call(error)) => Err(error),
        Err(Ended::Log(error)) => Err(log_error(&error)),
    }
}

enum Ended {
    Call(Error),
    Log(LogError),
}

impl From<LogError> for Ended {
    fn from(error: LogError) -> Ended {
        Ended::Log(error)
    }
}
