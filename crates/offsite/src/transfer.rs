//! What both directions share: how much moves at a time, and the runtime that moves it.

use crate::error::{Error, Result};

/// How much went over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files of the database.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Files that are under way at a time.
pub(crate) const FILES_AT_ONCE: usize = 4;
/// Bytes read from a file at a time, and written to one.
pub(crate) const STEP_BYTES: usize = 1 << 20;

/// Runs what speaks to a store to its end, on this thread.
pub(crate) fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Threads { source })?;
    runtime.block_on(work)
}
