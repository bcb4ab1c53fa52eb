//! The options of series created without options of their own. Tested by `tests/db_append.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::Defaults;
use latewood_model::{DuplicatePolicy, SeriesOptions};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

#[derive(Default)]
pub(crate) struct DefaultOptions {
    held: RwLock<Arc<Defaults>>,
    /// The duplicate policy again, for the write path.
    policy: AtomicU8,
    /// Whether there is any compaction policy, for the write path.
    compacts: AtomicBool,
}

impl DefaultOptions {
    pub(crate) fn get(&self) -> Arc<Defaults> {
        self.held.read().clone()
    }

    /// Changes the defaults. Concurrent changes are applied one after the other.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Defaults)) -> Result<()> {
        let mut held = self.held.write();
        let mut defaults = (**held).clone();
        change(&mut defaults);
        check_options(&defaults.series)?;
        let policy = defaults.duplicate_policy as u8;
        let compacts = !defaults.compactions.compactions().is_empty();
        *held = Arc::new(defaults);
        // Under the lock, so that they are of the same call.
        self.policy.store(policy, Ordering::Release);
        self.compacts.store(compacts, Ordering::Release);
        Ok(())
    }

    /// Whether series created by a write get compaction rules.
    pub(crate) fn compacts(&self) -> bool {
        self.compacts.load(Ordering::Acquire)
    }

    /// The duplicate policy of series without one of their own.
    pub(crate) fn policy(&self) -> DuplicatePolicy {
        let number = self.policy.load(Ordering::Acquire);
        DuplicatePolicy::from_number(number).unwrap_or(DuplicatePolicy::Block)
    }
}

/// Refuses options out of their ranges.
pub(crate) fn check_options(options: &SeriesOptions) -> Result<()> {
    options
        .check()
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
}
