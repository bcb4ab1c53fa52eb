//! Tools for a database that no server is using: check it, inspect its files, count
//! its contents, copy it.
//!
//! All of them except [`restore`](fn@restore), [`adopt`] and [`release_log`] leave the files
//! unchanged. They hold the lock of the directory, so that no other process changes
//! it. Tested by `tests/tools.rs` on simulated disks and by the server's
//! tests on real directories.

mod arrival;
pub(crate) mod backup;
mod check;
mod copying;
mod inspect;
mod log;
mod read;
mod restore;
mod totals;

pub use crate::log::{CopiedLog, LogCopy, count_samples};
pub use arrival::{
    FORMAT, Reach, adopt, begin_format, clear_target, files_of, place_of, prepare_target,
    release_log, staging_dir,
};
pub use backup::Backup;
pub use check::{Checked, Finding, check};
pub use inspect::inspect;
pub use restore::{require_whole, restore};
pub use totals::totals;
