//! Labels of series, wherever they are: in the index ([`crate::index`]), or in files of parked series,
//! to which the index leads.
//!
//! Whoever wakes, parks, changes or removes a series tells the index under the lock of its shard. So
//! under that lock the index has the labels of a series exactly if no file has them, and without it
//! whoever is told that they are in a file asks once more under the lock.
//!
//! Tested by `tests/labels_model.rs`, `tests/labels_meanwhile.rs` and `recovery/tests`.

use crate::base::cancelled::Cancelled;
use crate::base::error::Result;
use crate::index::filed::Filed;
use crate::index::ids::Ids;
use crate::index::inverted::Inverted;
use crate::index::queue::Held;
use crate::keyspace::core::Core;
use crate::keyspace::rows::leave_rows;
use crate::observe::signals::Job;
use crate::series::shard::ShardState;
use crate::storage::block::PartitionBlocks;
use crate::storage::files::parked::{ParkedFiles, no_row};
use latewood_model::{Labels, Matcher, SeriesId, Timestamp};
use std::sync::Arc;

impl Core {
    /// Tells the index that a series has these labels now, or is gone. The
    /// lock of its shard is held.
    pub(crate) fn index_labels(&self, id: SeriesId, labels: Option<&Labels>) {
        self.index_held(id, labels.map_or(Held::Gone, Held::Here));
    }

    /// Tells the index that a file of parked series has the labels of a series from now on. The lock
    /// of its shard is held, and the index has the file.
    pub(super) fn index_filed(&self, id: SeriesId) {
        self.index_held(id, Held::Filed);
    }

    fn index_held(&self, id: SeriesId, held: Held<&Labels>) {
        if self.index.note(self.shards.shard_of(id), id, held) {
            self.observe.signals.wake(Job::Index);
        }
    }

    /// Puts files of parked series in force, for whoever looks for rows and for the index.
    pub(crate) fn set_parked_files(&self, files: ParkedFiles) {
        let files = Arc::new(files);
        self.store.parked.set(files.clone());
        self.index.set_files(files);
    }

    /// The labels of a series that is awake, under the lock of its shard; none of one that is not.
    pub(crate) fn labels_of(&self, id: SeriesId) -> Labels {
        match self.index.labels(self.shards.shard_of(id), id) {
            Held::Here(labels) => labels,
            held => {
                debug_assert_eq!(
                    held,
                    Held::Gone,
                    "the labels of a parked series are in a file"
                );
                Labels::default()
            }
        }
    }

    /// The labels of a series of this shard, awake or parked; none of one that is not there. Reads the
    /// row of a parked one, unless it is at hand.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if it cannot be read.
    pub(crate) fn labels_in(&self, state: &ShardState, id: SeriesId) -> Result<Labels> {
        let place = self.shards.place_of(id);
        if !state.parked.is_filed(place) {
            return Ok(self.labels_of(id));
        }
        match state.parked.held(place) {
            Some(parked) => Ok(parked.row.options.labels.clone()),
            None => Ok(self.read_parked(id)?.row.options.labels),
        }
    }

    /// The labels of a series; `None` if it is not there. No lock of a shard may be held.
    ///
    /// # Errors
    /// As [`Core::labels_in`]; `Away` if they have to be read and this thread leaves that to others.
    pub(crate) fn find_labels(&self, id: SeriesId) -> Result<Option<Labels>> {
        let shard = self.shards.shard_of(id);
        match self.index.labels(shard, id) {
            Held::Here(labels) => return Ok(Some(labels)),
            Held::Gone => return Ok(None),
            Held::Filed => {}
        }
        let file = {
            let (state, place) = (self.shards[shard].lock(), self.shards.place_of(id));
            match state.parked.held(place) {
                // It woke meanwhile, or went.
                _ if !state.parked.is_filed(place) => match self.index.labels(shard, id) {
                    Held::Here(labels) => return Ok(Some(labels)),
                    Held::Filed | Held::Gone => return Ok(None),
                },
                Some(parked) => return Ok(Some(parked.row.options.labels.clone())),
                None => self.store.parked.file_of(id),
            }
        };
        leave_rows()?;
        // Whatever becomes of the series, the file has what it was.
        self.store.parked.note_read();
        let file = file.ok_or_else(|| no_row(id))?;
        Ok(Some(self.row_in(&file, id)?.options.labels))
    }

    /// The index with all changes applied, for a read that goes on in [`Inverted::filed`].
    ///
    /// # Errors
    /// `Away` if this thread leaves rows to others, and there are any.
    pub(crate) fn whole_index(&self) -> Result<impl std::ops::Deref<Target = Inverted>> {
        let index = self.index.current();
        if !index.filed.is_empty() {
            leave_rows()?;
            self.store.parked.note_read();
        }
        Ok(index)
    }

    /// The series that pass all `matchers`, awake or parked; all series if there are none. Parked
    /// series without samples in `span` may be left out. Once `cancelled` is true, it returns early,
    /// with any series.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if the labels in a file cannot be read; `Away` as [`Core::whole_index`].
    pub(crate) fn select_ids(
        &self,
        matchers: &[Matcher],
        span: Option<(Timestamp, Timestamp)>,
        cancelled: Cancelled<'_>,
    ) -> Result<Ids> {
        let (mut found, filed): (Ids, Filed) = {
            let index = self.whole_index()?;
            (index.select(matchers), index.filed.clone())
        };
        if filed.is_empty() {
            return Ok(found);
        }
        let filed = self.filed_in(filed, span);
        found.add_all(&self.told(filed.select(matchers, cancelled))?);
        Ok(found)
    }

    /// Leaves out of `filed`, which was taken from the index before, partitions that have no sample in
    /// `span`. Series of which no sender made one stay: readers by label tell those that look the same
    /// apart, and of others the key says how they look.
    pub(crate) fn filed_in(&self, mut filed: Filed, span: Option<(Timestamp, Timestamp)>) -> Filed {
        if let Some((from, to)) = span.filter(|_| !self.lacks_blocks()) {
            // A series that parked before has its samples in these.
            let blocks = self.store.blocks.get();
            filed.retain(|partition, files| {
                let blocks = blocks.partitions.get(&partition).into_iter();
                let mut blocks = blocks.flat_map(PartitionBlocks::all);
                blocks.any(|block| block.meta().reaches(from, to))
                    || !files.iter().all(|file| file.all_sent())
            });
        }
        filed
    }

    /// Whether blocks may be missing: then nobody knows which series have samples in a span.
    fn lacks_blocks(&self) -> bool {
        !self.store.lost.lock().is_empty() || !self.store.doubts.lock().is_empty()
    }
}
