//! Shared by upload and download: limits of concurrency, and the runtime.

use crate::error::Error;

/// The size of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of files.
    pub files: u64,
    /// Total bytes.
    pub bytes: u64,
}

/// Files transferred concurrently.
pub const FILES_AT_ONCE: usize = 4;
/// Bytes read from or written to a file at a time.
pub(crate) const STEP_BYTES: usize = 1 << 20;

/// Runs a transfer to its end, on this thread, which must not run a task of a tokio runtime.
///
/// # Errors
/// `Threads`, and those of the transfer.
pub fn run<T, E: From<Error>>(
    work: impl Future<Output = std::result::Result<T, E>>,
) -> std::result::Result<T, E> {
    let runtime = latewood_tls::runtime();
    let runtime = runtime.map_err(|source| E::from(Error::Threads { source }))?;
    runtime.block_on(work)
}
