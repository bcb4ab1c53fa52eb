//! Reads of one series under its shard's lock, after its rules are up to date.

use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::format::rule::RuleInfo;
use crate::io::waiting::fetching;
use crate::query::{RangeQuery, Sink};
use crate::rules::backfill::Wanted;
use crate::series::Series;
use crate::series::rules::failed::FailedBuckets;
use latewood_model::{Sample, SeriesId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Series that a scan visits before the locks of their shards are released.
const SERIES_PER_LOCK_MAX: usize = 256;

impl Db {
    /// Reads the series with `key` under its shard's lock. The rows that rules
    /// write to it are up to date, but for a history that is still to be computed.
    pub(crate) fn read<T>(&self, key: &[u8], read: impl FnOnce(&mut Series) -> T) -> Result<T> {
        self.read_numbered(key, |series, _| read(series))
    }

    /// As `read`, with the id of the series.
    pub(crate) fn read_numbered<T>(
        &self,
        key: &[u8],
        read: impl FnOnce(&mut Series, SeriesId) -> T,
    ) -> Result<T> {
        self.read_rows(key, Wanted::Nothing, |series, id, _| read(series, id))
    }

    /// As `read`, for reads of samples: checks for the failed buckets of a rule, and computes the
    /// rows `wanted` of its history first.
    pub(crate) fn read_rows<T>(
        &self,
        key: &[u8],
        wanted: Wanted,
        read: impl FnOnce(&mut Series, SeriesId, &FailedBuckets) -> T,
    ) -> Result<T> {
        let found = self.core.lock_series(key);
        let counter = if found.is_ok() {
            &self.reads_found
        } else {
            &self.reads_missed
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let (mut state, mut id) = found?;
        let mut failed = FailedBuckets::default();
        let series = state.series(id);
        if series.and_then(Series::source).is_some() {
            drop(state);
            failed = self.rules.bring_up(id, wanted)?;
            (state, id) = self.core.lock_series(key)?;
        }
        match state.series_mut(id) {
            Some(series) => Ok(read(series, id, &failed)),
            None => Err(Error::new(ErrorKind::NoSuchKey, "the key does not exist")),
        }
    }

    /// Whether a series exists under `key`; also if it may be one that is parked and cannot be read.
    pub fn contains(&self, key: &[u8]) -> bool {
        match self.core.shards.expiring.load(Ordering::Relaxed) {
            0 => !matches!(self.core.find(key), Ok(None)),
            _ => !matches!(self.core.lock_if_there(key), Ok(None)),
        }
    }

    /// The newest sample of a series.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn last_sample(&self, key: &[u8]) -> Result<Option<Sample>> {
        let newest = |series: &mut Series, _, failed: &FailedBuckets| failed.newest_of(series);
        let last = fetching(|| self.read_rows(key, Wanted::Newest, newest)?)?;
        Ok(last.filter(|last| last.timestamp >= self.core.store.blocks.floor()))
    }

    /// Evaluates a range query over one series and passes the rows to `sink`.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`; `Invalid` if a parameter of the query is out of range.
    pub fn range(&self, key: &[u8], query: &RangeQuery, sink: &mut dyn Sink) -> Result<()> {
        self.view(key, query)?.run(query, sink)
    }

    /// Calls `visit` with the keys of about `count` series, starting at `cursor`.
    /// Returns the cursor for the next call, 0 at the end. A series that exists
    /// during the whole scan is visited. None wakes.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if what is kept in files of one of them cannot be read.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8])) -> Result<u64> {
        let (mut next, mut left) = (Some(SeriesId(cursor)), count.max(1));
        while let Some(from) = next {
            if left == 0 {
                return Ok(from.0);
            }
            let ids;
            (ids, next) = self.there_from(from, left.min(SERIES_PER_LOCK_MAX));
            left -= self.visit_keys(&ids, visit)?;
        }
        Ok(0)
    }

    /// The next ids of series that are there, `count` at most, and the one behind them. They
    /// ascend over all shards: series whose rows are in one page come together.
    fn there_from(&self, from: SeriesId, count: usize) -> (Vec<SeriesId>, Option<SeriesId>) {
        let shards = &self.core.shards;
        let (each, first) = (count.div_ceil(shards.len()), shards.place_of(from));
        let (mut ids, mut next) = (Vec::new(), None);
        for (shard, state) in shards.iter().enumerate() {
            // The shards before its own have the id after it in the next place.
            let place = first + usize::from(shard < shards.shard_of(from));
            let state = state.lock();
            let there = self.core.there(&state, place).take(each + 1);
            let before = ids.len();
            ids.extend(there.map(|place| shards.id_of(shard, place)));
            if ids.len() - before > each
                && let Some(behind) = ids.pop()
            {
                next = Some(next.map_or(behind, |next| behind.min(next)));
            }
        }
        ids.sort_unstable();
        ids.truncate(ids.partition_point(|id| next.is_none_or(|next| *id < next)));
        if let Some(&cut) = ids.get(count) {
            ids.truncate(count);
            next = Some(cut);
        }
        (ids, next)
    }

    /// Calls `visit` with the keys of those of `ids` that are there and readers may see. Returns
    /// how many.
    pub(super) fn visit_keys(
        &self,
        ids: &[SeriesId],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize> {
        self.core.bring_or_leave(ids)?;
        let mut visited = 0;
        for (shard, state) in self.core.shards.iter().enumerate() {
            let is_here = |id: &&SeriesId| self.core.shards.shard_of(**id) == shard;
            let mut here = ids.iter().filter(is_here).peekable();
            if here.peek().is_none() {
                continue;
            }
            let state = state.lock();
            let overdue_ms = self.core.overdue_ms(&state);
            for &id in here {
                let place = self.core.shards.place_of(id);
                if overdue_ms.is_some_and(|now_ms| state.expiries.is_due(place, now_ms))
                    || state.unnamed.contains(&id)
                {
                    continue;
                }
                if let Some(key) = self.core.key_in(&state, id)? {
                    visit(&key);
                    visited += 1;
                }
            }
        }
        Ok(visited)
    }

    /// The timestamps in `from..=to`, ascending, of late samples of the series under `key` that
    /// are neither folded into chunks nor written into blocks. Logarithmic in those elsewhere.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn late_timestamps(
        &self,
        key: &[u8],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<Timestamp>> {
        let late = self.read(key, |series| series.late_in(from, to))?;
        let ops = late.iter().flat_map(|late| late.collect(from, to));
        let mut timestamps: Vec<Timestamp> = ops.map(|op| op.timestamp).collect();
        timestamps.sort_unstable();
        timestamps.dedup();
        Ok(timestamps)
    }

    /// The rules of the series under `key`, in order of their creation.
    ///
    /// # Errors
    /// `NoSuchKey`; `Corrupt`, `Io` if what is kept in files of a destination cannot be read.
    pub fn rules_of(&self, key: &[u8]) -> Result<Vec<RuleInfo>> {
        let rules = self.read(key, |series| {
            let source = series.rules();
            source.map_or_else(Vec::new, |source| source.rules().to_vec())
        })?;
        let named = rules.into_iter().filter_map(|rule| {
            let destination = self.rules.key_of(rule.destination).transpose()?;
            Some(destination.map(|destination| RuleInfo {
                destination,
                spec: rule.spec,
            }))
        });
        named.collect()
    }

    /// The key of the source whose rule writes to the series under `key`.
    ///
    /// # Errors
    /// `NoSuchKey`; `Corrupt`, `Io` if what is kept in files of the source cannot be read.
    pub fn source_of(&self, key: &[u8]) -> Result<Option<Arc<[u8]>>> {
        let source = self.read(key, |series| series.source())?;
        source.map_or(Ok(None), |id| self.rules.key_of(id))
    }

    /// As [`Db::last_sample`] with LATEST: for the destination of a rule, the open
    /// bucket.
    ///
    /// # Errors
    /// Those of [`Db::last_sample`].
    pub fn last_sample_latest(&self, key: &[u8]) -> Result<Option<Sample>> {
        match self.rules.open_bucket_of(key)? {
            Some(open) => Ok(Some(open)),
            None => self.last_sample(key),
        }
    }
}
