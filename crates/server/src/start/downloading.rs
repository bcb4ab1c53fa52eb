//! How much of a checkpoint is on this machine, for INFO and the log of the server, while a database
//! beyond the machine is opened. Tested by `tests/clients/test_cluster.py` with brokers.

use crate::state::Shared;
use latewood_cluster::checkpoint::Progress;
use latewood_engine::LoadProgress;
use std::sync::Weak;

/// Takes note of it for `shared`.
pub(super) fn downloading(shared: Weak<Shared>) -> impl FnMut(Progress) {
    move |progress| {
        if let Some(shared) = shared.upgrade() {
            shared.db.loading.note(LoadProgress {
                bytes_done: progress.done_bytes,
                bytes_total: progress.total_bytes,
                samples: 0,
            });
        }
    }
}
