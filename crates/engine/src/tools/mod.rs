//! What is done to a database that no server runs on: check it, look into its
//! files, count what it holds, copy it.
//!
//! Everything here but [`restore`](fn@restore) and [`adopt`] leaves the files as they are.
//! The directory's lock is held meanwhile, so nothing changes under the
//! reader. Tested by `tests/tools.rs` on simulated disks and by the server's
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

pub use arrival::{FORMAT, adopt, files_of, place_of, prepare_target, staging_dir};
pub use backup::Backup;
pub use check::{Checked, Finding, check};
pub use inspect::inspect;
pub use restore::{require_whole, restore};
pub use totals::totals;
