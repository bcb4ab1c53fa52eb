//! Metadata of metrics.

use crate::db::Db;
use crate::storage::metadata::Metadata;
use latewood_model::Told;

impl Db {
    /// Notes what a sender says of `metric`. It is on disk within about a second, after
    /// [`Db::backup`] and [`Db::close`]. Names and texts of more than 4 KiB, and what comes
    /// after 65,536 metrics or 16 MiB, are left out. Logarithmic in the metrics.
    pub fn note_metadata(&self, metric: &str, told: Told<'_>) {
        self.parts.core.metadata.note(metric, told);
    }

    /// The metadata of `metric`, or of all metrics by their names.
    pub fn metadata(&self, metric: Option<&str>) -> Vec<(Box<str>, Metadata)> {
        self.parts.core.metadata.list(metric)
    }
}
