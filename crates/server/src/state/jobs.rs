//! Background jobs: work that takes long, on a thread of its own.
//!
//! A command queues a job and answers at once; INFO says how it went. The thread
//! runs one job after the other (`start/jobs.rs`). Tested by `tests/tools`.

use crate::base::clock::now_ms;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::Sender;

/// One background job.
#[derive(Debug)]
pub(crate) enum Job {
    /// Copy the database into this folder.
    Backup(PathBuf),
    /// No more.
    End,
}

/// The way to the thread of background jobs, and what its work left.
#[derive(Debug)]
pub(crate) struct Jobs {
    queue: Sender<Job>,
    is_backing_up: AtomicBool,
    last_backup: Mutex<Option<LastBackup>>,
    /// Seconds since the epoch of the last SAVE, or of the start.
    pub(crate) last_save_s: AtomicI64,
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

impl Jobs {
    /// No job yet; those to come go to `queue`.
    pub(crate) fn new(queue: Sender<Job>) -> Self {
        Self {
            queue,
            is_backing_up: AtomicBool::new(false),
            last_backup: Mutex::default(),
            last_save_s: AtomicI64::new(now_ms() / 1000),
        }
    }

    /// Queues a job; jobs run one after the other.
    pub(crate) fn queue(&self, job: Job) {
        // The receiver is gone only when the server is stopping already.
        let _ = self.queue.send(job);
    }

    /// Whether this call may begin a backup.
    pub(crate) fn begin_backup(&self) -> bool {
        !self.is_backing_up.swap(true, Ordering::AcqRel)
    }

    /// Whether a backup is under way.
    pub(crate) fn is_backing_up(&self) -> bool {
        self.is_backing_up.load(Ordering::Acquire)
    }

    /// The last backup that ended.
    pub(crate) fn last_backup(&self) -> Option<LastBackup> {
        self.last_backup.lock().clone()
    }

    /// Notes how a backup ended.
    pub(crate) fn end_backup(&self, last: LastBackup) {
        *self.last_backup.lock() = Some(last);
        self.is_backing_up.store(false, Ordering::Release);
    }
}
