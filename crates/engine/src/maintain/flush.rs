//! The flusher.

use crate::core::Core;
use crate::options::Options;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often memory and ages are looked at.
const TICK: Duration = Duration::from_millis(100);

/// What the flusher is asked to keep to, and what it has done.
#[derive(Debug)]
pub(crate) struct Flusher {
    age_ms: AtomicU64,
    log_bytes_max: AtomicU64,
    /// A thread flushes, and its last flush went well.
    works: AtomicBool,
}

impl Flusher {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            age_ms: options.flush_age_ms.into(),
            log_bytes_max: options.log_bytes_max.into(),
            works: AtomicBool::new(false),
        }
    }
}

impl Core {
    pub(crate) fn flusher_works(&self) -> bool {
        self.flusher.works.load(Ordering::Relaxed)
    }
}

pub(super) fn run(core: &Core) {
    while core.signals.wait_flush(TICK) {
        core.look_if_stale();
    }
}
