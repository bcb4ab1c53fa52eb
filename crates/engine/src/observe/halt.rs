//! Why writes have stopped, if they have. Clones share it.
//!
//! They stop for good, until the next start, where the database can no longer keep
//! what it promises: a write or sync of the log failed, it is unknown which manifest is
//! in force, a background thread panicked, or a thread panicked while it changed a
//! shard. Reads continue. The first reason counts and is told to the operator.
//!
//! Tested by `tests/db_panics.rs`, `tests/db_faults.rs` and `tests/notices.rs`.

use super::notices::{About, Notices};
use crate::base::error::{Error, ErrorKind, Result};
use std::fmt::Display;
use std::sync::{Arc, OnceLock};

/// Why writes have stopped, if they have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Halt {
    first: Arc<OnceLock<Reason>>,
    notices: Notices,
}

#[derive(Debug)]
struct Reason {
    /// What failed, such as "the log failed".
    what: &'static str,
    text: String,
}

impl Halt {
    pub(crate) fn new(notices: &Notices) -> Self {
        Self {
            first: Arc::default(),
            notices: notices.clone(),
        }
    }

    /// Stops all writes since `what` happened, which `why` says more of.
    #[cold]
    pub(crate) fn stop(&self, what: &'static str, why: impl Display) {
        let text = why.to_string();
        let mut is_first = false;
        let reason = self.first.get_or_init(|| {
            is_first = true;
            Reason { what, text }
        });
        // Writers are stopped before anybody takes time to hear of it.
        if is_first {
            let text = &reason.text;
            self.notices.tell(
                About::Halt,
                format_args!("writes are refused from now on, reads continue: {text}"),
            );
        }
    }

    /// Refuses a write once writes have stopped.
    ///
    /// # Errors
    /// `Halted`.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.first.get() {
            None => Ok(()),
            Some(reason) => Err(reason.error()),
        }
    }

    /// What failed first, if anything did.
    pub(crate) fn what(&self) -> Option<&'static str> {
        self.first.get().map(|reason| reason.what)
    }

    /// Why writes have stopped, if they have.
    pub(crate) fn reason(&self) -> Option<String> {
        self.first.get().map(|reason| reason.text.clone())
    }
}

impl Reason {
    #[cold]
    fn error(&self) -> Error {
        let (what, text) = (self.what, &self.text);
        let sentence = format!("writes are stopped since {what}: {text}");
        Error::new(ErrorKind::Halted, sentence)
    }
}
