//! Labels of series under their locks: into the index and out of it.

use crate::keyspace::core::Core;
use crate::observe::signals::Job;
use latewood_model::{Labels, SeriesId};

impl Core {
    /// Tells the index that a series has these labels now, or is gone. The
    /// lock of its shard is held.
    pub(crate) fn index_labels(&self, id: SeriesId, labels: Option<&Labels>) {
        if self.index.note(self.shards.shard_of(id), id, labels) {
            self.observe.signals.wake(Job::Index);
        }
    }

    /// The labels of a series; none of one that does not exist.
    pub(crate) fn labels_of(&self, id: SeriesId) -> Labels {
        let labels = self.index.labels(self.shards.shard_of(id), id);
        labels.unwrap_or_default()
    }
}
