//! Backups in object stores: upload of a database at rest, and its way back.
//!
//! The object store knows no directories, links or renames, so a backup there
//! is one object for each file and `BACKUP.json`, which names every one with
//! its length and SHA-256 and is written last: without it there is no backup.
//! The way back takes nothing that does not match it, and what comes of it is a
//! database only when every checksum of the database itself is right, too.
//! Memory is bounded by parts and files in flight, not by what a file holds.
//! Tested by `tests/` on folders with a store that fails at every request, and
//! by the client tests over S3.

mod crypto;
mod digest;
mod download;
mod error;
mod listing;
mod place;
mod upload;

pub use download::download;
pub use error::{Error, Result};
pub use listing::{Entry, LISTING, Listing};
pub use place::{Place, is_url};
pub use upload::{UNFINISHED, upload};

/// How much went over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files of the database.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Files that are under way at a time.
const FILES_AT_ONCE: usize = 4;
/// Bytes read from a file at a time, and written to one.
const STEP_BYTES: usize = 1 << 20;

/// Runs what speaks to a store to its end, on this thread.
fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Threads { source })?;
    runtime.block_on(work)
}
