//! Reads that end early because nobody wants their result any more.
//!
//! A loop that can take long looks in each of its rounds. What it has then is a part, which
//! the caller must not use. Tested by `tests/db_labels.rs` and `tests/query_many.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether nobody wants the result of a read any more.
pub trait Cancel: Sync {
    /// Asked again and again while the read is under way.
    fn is_cancelled(&self) -> bool;
}

impl Cancel for AtomicBool {
    fn is_cancelled(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

/// Lets a test cancel at a certain look.
impl<F: Fn() -> bool + Sync> Cancel for F {
    fn is_cancelled(&self) -> bool {
        self()
    }
}

/// Who says that a read is cancelled, if anybody can.
pub type Cancelled<'a> = Option<&'a dyn Cancel>;

/// Whether nobody wants the result any more.
pub fn is_cancelled(cancelled: Cancelled<'_>) -> bool {
    cancelled.is_some_and(Cancel::is_cancelled)
}
