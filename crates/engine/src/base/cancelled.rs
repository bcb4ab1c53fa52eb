//! Reads that end early because nobody wants their result any more.
//!
//! A loop that can take long looks at the flag in each of its rounds. What it has then
//! is a part, which the caller must not use. Tested by `tests/db_labels.rs` and `tests/query_many.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether nobody wants the result any more, if that can be.
pub type Cancelled<'a> = Option<&'a AtomicBool>;

/// Whether nobody wants the result any more.
pub(crate) fn is_cancelled(cancelled: Cancelled<'_>) -> bool {
    cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
}
