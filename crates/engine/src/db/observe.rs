//! What an embedding program hears of a database, and how long its stages take.

use crate::db::Db;
use crate::observe::observer::Work;
use crate::observe::stages::Stages;

impl Db {
    /// From now on calls `notice` with each piece of [`Work`] and the
    /// nanoseconds it took, on the thread that did it. It must be quick and
    /// not call the database. Only the first call has an effect; the answer
    /// is whether this was it.
    pub fn observe(&self, notice: impl Fn(Work, u64) + Send + Sync + 'static) -> bool {
        self.parts
            .core
            .observe
            .observer
            .notice
            .set(Box::new(notice))
            .is_ok()
    }
}

impl Db {
    /// How long the stages of its writes take.
    pub fn stages(&self) -> &Stages {
        &self.parts.core.observe.stages
    }
}
