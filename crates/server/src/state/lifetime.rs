//! The life of the process: when it began, and how it ends.
//!
//! Any thread may ask for the end; the main thread carries it out. Tested by
//! `tests/resp/admin.rs` and `tests/kill`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

/// Why the server stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A signal or SHUTDOWN asked for it.
    Asked(&'static str),
    /// A thread panicked; its state cannot be trusted.
    Crashed(String),
    /// The log lacks acknowledged records, or may lose them, as this says; this process has them
    /// still.
    LogLost(String),
    /// The database could not be opened, for this reason.
    NotOpened(String),
    /// Another node owns the log now, as this says.
    Deposed(String),
    /// What is in memory is not what the log says, as this says: the same process begins anew.
    Anew(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::NotOpened(reason)
    }
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The process ends; it may be started again.
    Ends,
    /// The process ends. Another node owns the log: whoever starts this one again deposes it.
    Deposed,
    /// The process begins anew.
    Anew {
        /// It had all of the log once: what ended it is not what ends it each time.
        was_fresh: bool,
    },
}

/// Why the process failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// A sentence.
    pub(crate) reason: String,
    /// What follows.
    pub(crate) way: Way,
}

impl<T: Into<String>> From<T> for Failure {
    fn from(reason: T) -> Self {
        Self {
            reason: reason.into(),
            way: Way::Ends,
        }
    }
}

/// When the process began, and whether it ends.
#[derive(Debug)]
pub(crate) struct Lifetime {
    /// When the process began.
    pub(crate) started: Instant,
    /// Set once: loops finish their round and return.
    pub(crate) stopping: AtomicBool,
    /// Set before if what is in memory cannot be trusted.
    pub(crate) failed: AtomicBool,
    stop: Sender<Stop>,
}

impl Lifetime {
    /// A life that begins now; requests to end it go to `stop`.
    pub(crate) fn new(stop: Sender<Stop>) -> Self {
        Self {
            started: Instant::now(),
            stopping: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            stop,
        }
    }

    /// Asks the main thread to stop the server.
    pub(crate) fn stop(&self, why: Stop) {
        if !matches!(why, Stop::Asked(_) | Stop::LogLost(_)) {
            self.failed.store(true, Ordering::Release);
        }
        // The receiver is gone only when the server is stopping already.
        let _ = self.stop.send(why);
    }
}
