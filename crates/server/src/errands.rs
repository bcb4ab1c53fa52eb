//! Work that takes long, on a thread of its own: backups.
//!
//! A command hands it over and answers at once; INFO says how it went. Tested
//! by `tests/tools`.

use crate::outside::require_outside;
use crate::shared::Shared;
use latewood_engine::tools::staging_dir;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// One piece of work.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Copy the database into this folder.
    Backup(PathBuf),
    /// No more.
    End,
}

/// The backup under way, and the last one.
#[derive(Debug, Default)]
pub(crate) struct Backups {
    is_running: AtomicBool,
    last: Mutex<Option<LastBackup>>,
}

/// How a backup ended.
#[derive(Clone, Debug)]
pub(crate) struct LastBackup {
    /// Where it was to go.
    pub(crate) path: PathBuf,
    /// `ok`, or why it failed.
    pub(crate) status: String,
    /// How long it took.
    pub(crate) duration_ms: u64,
}

impl Backups {
    /// Whether this call may begin one.
    pub(crate) fn begin(&self) -> bool {
        !self.is_running.swap(true, Ordering::AcqRel)
    }

    /// Whether one is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// The last one that ended.
    pub(crate) fn last(&self) -> Option<LastBackup> {
        self.last.lock().clone()
    }

    fn end(&self, last: LastBackup) {
        *self.last.lock() = Some(last);
        self.is_running.store(false, Ordering::Release);
    }
}

/// Runs errands until the last.
pub(crate) fn run(shared: &Shared, to_do: &Receiver<Errand>) {
    while let Ok(errand) = to_do.recv() {
        match errand {
            Errand::Backup(path) => back_up(shared, path),
            Errand::End => return,
        }
    }
}

/// Refuses a folder that is none for backups of the data in `dir`: one inside
/// of it, but for that which an upload takes it from.
///
/// # Errors
/// Says where it lies.
pub(crate) fn require_backup_place(dir: &Path, path: &Path) -> Result<(), String> {
    let dir = std::path::absolute(dir).map_err(|error| error.to_string())?;
    if path == staging_dir(&dir) {
        return Ok(());
    }
    require_outside(&dir, path)
}

fn back_up(shared: &Shared, path: PathBuf) {
    let begun = Instant::now();
    let outcome = shared.db.backup(&path);
    let duration_ms = begun.elapsed().as_millis() as u64;
    let status = match outcome {
        Ok(backup) => {
            tracing::info!(
                path = %path.display(),
                files = backup.files,
                segments = backup.segments,
                copied_bytes = backup.copied_bytes,
                duration_ms,
                "backup done"
            );
            "ok".to_owned()
        }
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "backup failed");
            error.to_string()
        }
    };
    shared.backups.end(LastBackup {
        path,
        status,
        duration_ms,
    });
}
