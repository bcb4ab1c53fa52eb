//! Making directories durably, the same steps on every disk.
//!
//! Invariant: no directory is made in one whose own name may not be durable, so
//! the parent of the first directory that exists is all there is to sync. Tested by
//! `tests/disk_sim.rs`, with the power cut and the process killed at each step.

use std::io;
use std::path::Path;

/// What a disk does to make directories.
pub(super) trait Directories {
    fn is_dir(&self, path: &Path) -> bool;

    /// Creates one directory in a directory that exists. Its name is not durable yet.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
}

/// Creates a directory and those it lies in; `sync_dir` makes the names in one durable.
pub(super) fn create_dir_all(
    disk: &impl Directories,
    path: &Path,
    sync_dir: &impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    if disk.is_dir(path) {
        // A process that was killed may have created it and synced nothing.
        // Where that cannot be synced it was not created here.
        use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
        let fixed = [
            InvalidInput,
            PermissionDenied,
            ReadOnlyFilesystem,
            Unsupported,
        ];
        return match sync_dir(parent) {
            Err(error) if fixed.contains(&error.kind()) => Ok(()),
            synced => synced,
        };
    }
    create_dir_all(disk, parent, sync_dir)?;
    match disk.create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_dir(parent),
    }
}
