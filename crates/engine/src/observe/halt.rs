//! Why writes have stopped, if they have. Clones share it.
//!
//! They stop for good, until the next start, where the database can no longer keep
//! what it promises: a write or sync of the log failed, it is unknown which manifest is
//! in force, a background thread panicked, or a thread panicked while it changed a
//! shard. Reads continue. The first reason counts and is told to the operator.
//!
//! A database that follows the log of another takes no writes either, until it owns the log: that
//! is no failure, and ends.
//!
//! Tested by `tests/db_panics.rs`, `tests/db_faults.rs` and `tests/notices.rs`.

use super::notices::{About, Notices};
use crate::base::error::{Error, ErrorKind, Result};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// Writes are taken.
const OPEN: u8 = 0;
/// They are not, as long as the database follows the log of another.
const FOLLOWS: u8 = 1;
/// They are not taken any more.
const STOPPED: u8 = 2;

/// Why writes have stopped, if they have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Halt {
    state: Arc<State>,
    notices: Notices,
}

#[derive(Debug, Default)]
struct State {
    /// What writers look at.
    level: AtomicU8,
    is_following: AtomicBool,
    first: OnceLock<Reason>,
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
            state: Arc::default(),
            notices: notices.clone(),
        }
    }

    /// Stops all writes since `what` happened, which `why` says more of.
    #[cold]
    pub(crate) fn stop(&self, what: &'static str, why: impl Display) {
        let text = why.to_string();
        let mut is_first = false;
        let reason = self.state.first.get_or_init(|| {
            is_first = true;
            Reason { what, text }
        });
        self.state.level.store(STOPPED, Ordering::Release);
        // Writers are stopped before anybody takes time to hear of it.
        if is_first {
            let text = &reason.text;
            self.notices.tell(
                About::Halt,
                format_args!("writes are refused from now on: {text}"),
            );
        }
    }

    /// Refuses a write once writes have stopped.
    ///
    /// # Errors
    /// `Halted`.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.state.level.load(Ordering::Acquire) == OPEN {
            Ok(())
        } else {
            Err(self.refusal())
        }
    }

    #[cold]
    fn refusal(&self) -> Error {
        match self.state.first.get() {
            Some(reason) => reason.error(),
            None => Error::new(ErrorKind::Halted, FOLLOWING),
        }
    }

    /// Refuses writes until [`Halt::end_following`]: the database follows the log of another.
    pub(crate) fn begin_following(&self) {
        self.state.is_following.store(true, Ordering::Release);
        self.change_level(OPEN, FOLLOWS);
    }

    /// Takes writes, unless they have stopped.
    pub(crate) fn end_following(&self) {
        self.state.is_following.store(false, Ordering::Release);
        self.change_level(FOLLOWS, OPEN);
    }

    /// Whether writes are refused as the database follows the log of another.
    pub(crate) fn is_following(&self) -> bool {
        self.state.is_following.load(Ordering::Acquire)
    }

    fn change_level(&self, from: u8, to: u8) {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        // Where it is another, writes have stopped.
        let _ = (self.state.level).compare_exchange(from, to, success, failure);
    }

    /// What failed first, if anything did.
    pub(crate) fn what(&self) -> Option<&'static str> {
        self.state.first.get().map(|reason| reason.what)
    }

    /// Why writes have stopped, if they have.
    pub(crate) fn reason(&self) -> Option<String> {
        self.state.first.get().map(|reason| reason.text.clone())
    }
}

const FOLLOWING: &str = "this node follows the log: only the node that owns it takes writes";

impl Reason {
    fn error(&self) -> Error {
        let (what, text) = (self.what, &self.text);
        let sentence = format!("writes are stopped since {what}: {text}");
        Error::new(ErrorKind::Halted, sentence)
    }
}
