//! The first failure of a log, after which it can no longer be trusted, and who hears of it.

use crate::base::error::{Error, ErrorKind, Result};
use crate::observe::halt::Halt;
use crate::observe::observer::Observer;
use std::sync::OnceLock;

/// What failed where it is the log itself.
pub(crate) const LOG_FAILED: &str = "the log failed";

/// Open until the first failure.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    failed: OnceLock<String>,
    halt: Halt,
    /// Told how long syncs take and when more is durable.
    pub(crate) observer: Observer,
}

impl Latch {
    /// A failure stops all writes with `halt`.
    pub(crate) fn new(observer: Observer, halt: Halt) -> Self {
        Self {
            observer,
            halt,
            ..Self::default()
        }
    }

    /// Remembers the first failure and passes `error` on.
    pub(crate) fn fail(&self, error: Error) -> Error {
        self.fail_since(LOG_FAILED, error)
    }

    /// The same where it is `what` that failed.
    pub(crate) fn fail_since(&self, what: &'static str, error: Error) -> Error {
        self.failed.get_or_init(|| error.to_string());
        self.halt.stop(what, &error);
        error
    }

    /// Refuses once the log has failed. What is in it is synced whatever else stops
    /// writes.
    pub(crate) fn check(&self) -> Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(reason) => Err(Error::new(
                ErrorKind::Halted,
                format!("writes are stopped since the log failed: {reason}"),
            )),
        }
    }

    /// Why it failed, if it did.
    pub(crate) fn reason(&self) -> Option<String> {
        self.failed.get().cloned()
    }

    /// Tells those who wait without a thread that more is durable, or that the log
    /// failed.
    pub(crate) fn tell_durable(&self) {
        self.observer.tell_durable();
    }
}

/// Refuses a group of `len` bytes that is longer than `len_max`.
pub(crate) fn check_len(len: usize, len_max: usize) -> Result<()> {
    if len > len_max {
        let message = format!("a log group of {len} bytes is longer than {len_max}");
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(())
}
