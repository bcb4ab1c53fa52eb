//! Simulated memory of a process: it holds what it is told.

use crate::io::Process;
use std::sync::atomic::{AtomicU64, Ordering};

/// A process whose memory a test sets. Until it does, it does not say.
#[derive(Debug)]
pub struct SimProcess(AtomicU64);

const SILENT: u64 = u64::MAX;

impl Default for SimProcess {
    fn default() -> Self {
        Self(AtomicU64::new(SILENT))
    }
}

impl SimProcess {
    /// Makes the process hold `bytes` from now on.
    pub fn set_anonymous_bytes(&self, bytes: u64) {
        self.0.store(bytes, Ordering::SeqCst);
    }
}

impl Process for SimProcess {
    fn anonymous_bytes(&self) -> Option<u64> {
        let bytes = self.0.load(Ordering::SeqCst);
        (bytes != SILENT).then_some(bytes)
    }

    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}
