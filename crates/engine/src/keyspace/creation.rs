//! Creating a series: its id, its place, its record in the log.
//!
//! A new series belongs to the shard of its key's hash and is created under the
//! lock of that shard, so no key is created twice. Tested by
//! the database's tests and the model test.

use crate::base::partition::partition_of;
use crate::base::refusal::{Excess, Refusal};
use crate::keyspace::core::Core;
use crate::observe::stages::Stage;
use crate::series::shard::ShardState;
use crate::series::{Marks, Series};
use latewood_model::{Labels, MadeBy, SeriesId, SeriesOptions};
use std::borrow::Cow;
use std::result::Result;
use std::sync::Arc;

/// About what a series takes beside its key and labels: its place, its entry
/// in the map of keys, its share of the index, and what its flush needs.
const SERIES_BYTES: usize = 700;

/// About what a new series takes.
pub(crate) fn series_bytes(key: &[u8], options: &SeriesOptions) -> usize {
    SERIES_BYTES + 2 * key.len() + options.labels.as_bytes().len()
}

/// What to do if no series exists under the key of a sample.
#[derive(Clone, Copy, Debug)]
pub enum Create<'a> {
    /// Refuse the sample.
    Never,
    /// Create the series with the database's defaults.
    Defaults,
    /// Create the series with these options.
    With(&'a SeriesOptions),
    /// The same for a sample of a sender, such as of a line protocol.
    Sent(&'a SeriesOptions),
    /// The same for a row that a rule of the server makes.
    Derived(&'a SeriesOptions),
    /// Create the series with the database's defaults and the labels that the
    /// function parses from the bytes. Called only if a series is created.
    Labelled(&'a [u8], fn(&[u8]) -> Labels),
}

impl Create<'_> {
    /// Who makes a series that is made.
    pub(crate) fn made_by(&self) -> MadeBy {
        match self {
            Self::Sent(_) => MadeBy::Sender,
            Self::Derived(_) => MadeBy::Rule,
            _ => MadeBy::Add,
        }
    }

    /// The options of a series that is made, if it may be.
    pub(crate) fn options<'a>(
        &'a self,
        defaults: &'a SeriesOptions,
    ) -> Option<Cow<'a, SeriesOptions>> {
        match self {
            Self::Never => None,
            Self::Defaults => Some(Cow::Borrowed(defaults)),
            Self::With(options) | Self::Sent(options) | Self::Derived(options) => {
                Some(Cow::Borrowed(options))
            }
            Self::Labelled(bytes, read) => Some(Cow::Owned(SeriesOptions {
                labels: read(bytes),
                ..defaults.clone()
            })),
        }
    }
}

impl Core {
    /// Creates a series in the shard its hash names, whose lock is held, and
    /// puts the record of it into the shard's group.
    pub(crate) fn create_in(
        &self,
        state: &mut ShardState,
        key: &[u8],
        hash: u64,
        made_by: MadeBy,
        options: &SeriesOptions,
    ) -> Result<SeriesId, Refusal> {
        let id = self.enter_in(state, key, hash, made_by, options)?;
        if self.log().is_some() {
            state.group.create(id, key, made_by, options);
            state.sealer.timer.end(Stage::LogEncode);
        }
        Ok(id)
    }

    /// The same without the record, which must come into the log before the
    /// lock is given back.
    pub(crate) fn enter_in(
        &self,
        state: &mut ShardState,
        key: &[u8],
        hash: u64,
        made_by: MadeBy,
        options: &SeriesOptions,
    ) -> Result<SeriesId, Refusal> {
        self.check_key(key)?;
        self.check_fits_log(key, options)?;
        let id = self.next_id(state, self.shards.shard_of_hash(hash))?;
        state.heads.grew(series_bytes(key, options));
        let key = Arc::<[u8]>::from(key);
        state.next_place += 1;
        state.counters.created += 1;
        state.heads.know(partition_of(id));
        let mut series = Series::new(key.clone(), options);
        series.marks = Marks::new(made_by);
        if self.owned.holds(&key) {
            series.marks.set_owned(true);
            state.guarded += 1;
        }
        state.slab.insert(self.shards.place_of(id), series);
        state.watched.note_new_look(self.shards.place_of(id));
        state.sealer.timer.end(Stage::SeriesCreation);
        self.keys.add(hash, key, id);
        state.sealer.timer.end(Stage::TableInsert);
        self.index_labels(id, Some(&options.labels));
        state.sealer.timer.end(Stage::IndexInsert);
        Ok(id)
    }

    /// The number of the next new series of a shard, if there may be one more.
    pub(crate) fn next_id(&self, state: &ShardState, shard: usize) -> Result<SeriesId, Refusal> {
        self.check_series_max()?;
        // It may have become so since the series was admitted.
        if self.budget.crowd.is_crowded() {
            return Err(Refusal::OutOfMemory);
        }
        let id = SeriesId::new((state.next_place * self.shards.len() + shard) as u64);
        match id {
            Some(id) if id < SeriesId::MAX => Ok(id),
            _ => Err(self.limits.refuse_series(Excess::SeriesIds)),
        }
    }

    /// Refuses a series whose record might not fit behind a group that is
    /// not long enough yet to be handed over. Only tiny segments refuse any.
    pub(crate) fn check_fits_log(
        &self,
        key: &[u8],
        options: &SeriesOptions,
    ) -> Result<(), Refusal> {
        if key.len() + options.labels.as_bytes().len() > self.group_bytes_max() / 2 {
            return Err(self.limits.refuse_key(Excess::LogBytes));
        }
        Ok(())
    }

    /// Puts an empty series without a key into its shard.
    pub(crate) fn insert_unnamed(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        options: &SeriesOptions,
    ) {
        let series = Series::new(Arc::default(), options);
        state.heads.know(partition_of(id));
        state.slab.insert(self.shards.place_of(id), series);
        state.unnamed.push(id);
    }
}
