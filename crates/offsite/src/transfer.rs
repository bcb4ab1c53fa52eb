//! Shared by upload and download: limits of concurrency, and the runtime.

use crate::error::{Error, Result};

/// The size of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of files.
    pub files: u64,
    /// Total bytes.
    pub bytes: u64,
}

/// Files transferred concurrently.
pub(crate) const FILES_AT_ONCE: usize = 4;
/// Bytes read from or written to a file at a time.
pub(crate) const STEP_BYTES: usize = 1 << 20;

/// Runs a transfer to its end, on this thread.
pub(crate) fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Threads { source })?;
    runtime.block_on(work)
}
