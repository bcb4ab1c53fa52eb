//! The thread of background jobs. Tested by `tests/tools`.

use crate::state::{Job, LastBackup, Shared};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// Runs jobs until the last.
pub(super) fn run(shared: &Shared, queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        match job {
            Job::Backup(path) => back_up(shared, path),
            Job::End => return,
        }
    }
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
    shared.jobs.end_backup(LastBackup {
        path,
        status,
        duration_ms,
    });
}
