//! Observing a database: notices of finished work, durations of its stages, metadata of metrics.

use crate::db::Db;
use crate::observe::observer::Work;
use crate::observe::stages::Stages;
use crate::storage::metadata::Metadata;
use latewood_model::Told;
use std::sync::Arc;

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

    /// Notes what a sender says of `metric`. It is on disk within a second, or a second for each
    /// MiB of metadata if that is longer, and after [`Db::backup`] and [`Db::close`]. Names and
    /// texts of more than 4 KiB, and what comes after 65,536 metrics or 16 MiB, are left out;
    /// metrics without series then give way to others. Logarithmic in the metrics.
    pub fn note_metadata(&self, metric: &str, told: Told<'_>) {
        self.core.metadata.note(metric, told);
    }

    /// The metadata of `metric`.
    pub fn metadata(&self, metric: &str) -> Option<Arc<Metadata>> {
        self.core.metadata.get(metric)
    }

    /// The metadata of the first `count` metrics whose names are greater than `name`, by name.
    /// Texts are shared, not copied.
    pub fn metadata_after(&self, name: &str, count: usize) -> Vec<(Arc<str>, Arc<Metadata>)> {
        self.core.metadata.after(name, count)
    }
}
