//! Observing a database: notices of finished work, and durations of its stages.

use crate::db::Db;
use crate::observe::observer::Work;
use crate::observe::stages::Stages;

impl Db {
    /// Registers `notice`, which is called with each piece of [`Work`] and its
    /// duration in nanoseconds, on the thread that did the work. It must return
    /// quickly and must not call the database. Only the first registration takes
    /// effect; returns whether this one did.
    pub fn observe(&self, notice: impl Fn(Work, u64) + Send + Sync + 'static) -> bool {
        self.core
            .observe
            .observer
            .notice
            .set(Box::new(notice))
            .is_ok()
    }

    /// Durations of the stages of writes.
    pub fn stages(&self) -> &Stages {
        &self.core.observe.stages
    }
}
