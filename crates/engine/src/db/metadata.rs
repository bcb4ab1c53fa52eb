//! Metadata of metrics.

use crate::db::Db;
use crate::storage::metadata::Metadata;
use latewood_model::Told;
use std::sync::Arc;

impl Db {
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
