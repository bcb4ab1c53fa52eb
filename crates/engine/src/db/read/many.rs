//! Reads of many series: a consistent view of each series for one query.
//!
//! A [`View`] is one series at one moment. It shares the chunks of the series and
//! does not copy them, so thousands of views are cheap and a reader may be slow.
//! The views of one query are taken one after the other; writers continue between
//! them, as they do between two commands.
//!
//! Tested by `tests/query_many.rs`.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, Result};
use crate::db::Db;
use crate::index::SeriesRef;
use crate::io::waiting::fetching;
use crate::query::{Neighbours, RangeQuery, Sink, nearest, run};
use crate::rules::backfill::Wanted;
use crate::series::merge::MergeSource;
use crate::series::rules::failed::FailedBuckets;
use crate::series::shard::ShardState;
use crate::series::stored::StoredSpan;
use crate::series::{Extent, Series, Snapshot};
use latewood_model::limits::FRAME_SAMPLES_MAX;
use latewood_model::{Labels, MadeBy, Sample, Timestamp};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Series read under one lock.
const SERIES_PER_LOCK_MAX: usize = 64;
/// Series whose sample counts are read for an estimate.
const SERIES_ESTIMATED_MAX: usize = 64;

/// The samples that one query needs of one series, at one moment.
#[derive(Clone)]
pub struct View {
    snapshot: Snapshot,
    /// The samples before and after the span, if the query interpolates.
    outside: Option<Box<(Snapshot, Snapshot)>>,
    /// The error of the query, if it is known already.
    fault: Option<Arc<Error>>,
}

/// The newest sample of a series, with its key and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// The series' key.
    pub key: Arc<[u8]>,
    /// Its labels; empty unless requested.
    pub labels: Labels,
    /// Its newest sample; `None` if the series is empty.
    pub sample: Option<Sample>,
}

/// A series found by a query, with the samples the query needs.
#[derive(Clone)]
pub struct SeriesView {
    /// The series' key.
    pub key: Arc<[u8]>,
    /// Its labels; empty unless requested.
    pub labels: Labels,
    /// Its samples.
    pub view: View,
}

impl View {
    /// Takes from `series` the samples `query` needs. Samples before `floor` are
    /// expired.
    fn of(
        series: &mut Series,
        query: &RangeQuery,
        floor: Timestamp,
        failed: &FailedBuckets,
    ) -> Self {
        let read = if query.needs_neighbours() {
            failed.check(Timestamp::MIN, Timestamp::MAX)
        } else {
            failed.check(query.from, query.to)
        };
        let outside = query.needs_neighbours().then(|| {
            let before = series.snapshot(floor, query.from.saturating_sub(1));
            let after = series.snapshot(floor.max(query.to.saturating_add(1)), Timestamp::MAX);
            Box::new((before, after))
        });
        Self {
            snapshot: series.snapshot(floor.max(query.from), query.to),
            outside,
            fault: read.err().map(Arc::new),
        }
    }

    /// Adds the open buckets of a rule's destination as more samples.
    fn with_open(mut self, open: Result<Vec<Sample>>) -> Self {
        match open {
            Ok(rows) => rows.into_iter().for_each(|open| {
                self.snapshot.add_open(open);
                if let Some(outside) = &mut self.outside {
                    outside.0.add_open(open);
                    outside.1.add_open(open);
                }
            }),
            Err(error) => self.fault = Some(Arc::new(error)),
        }
        self
    }

    /// Whether [`View::run`] may have to wait for blocks that are not on this machine.
    pub fn is_away(&self) -> bool {
        let is_away = |part: &Snapshot| part.stored.as_ref().is_some_and(StoredSpan::is_away);
        let outside = self.outside.as_ref();
        is_away(&self.snapshot)
            || outside.is_some_and(|outside| is_away(&outside.0) || is_away(&outside.1))
    }

    /// Estimated maximum of the samples that [`View::run`] reads.
    pub fn samples(&self) -> u64 {
        self.snapshot.samples()
    }

    /// Estimates how many samples [`View::run`] reads: fewer than [`View::samples`] if
    /// the span cuts chunks, or if the count of the query is small.
    pub fn samples_about(&self, query: &RangeQuery) -> u64 {
        let samples = self.snapshot.samples_about();
        // How many a filter passes over is not known.
        let Some(count) = query.count.filter(|_| query.filter_by_value.is_none()) else {
            return samples;
        };
        let Some(aggregation) = &query.aggregation else {
            return samples.min(count);
        };
        let span_ms = self
            .snapshot
            .reach()
            .map_or(0, |(from, to)| to.abs_diff(from));
        let buckets = span_ms / aggregation.bucket_ms.unsigned_abs().max(1) + 1;
        let read = u128::from(samples) * u128::from(count.min(buckets)) / u128::from(buckets);
        // It is a part of the samples.
        u64::try_from(read).unwrap_or(samples)
    }

    /// The maximum number of rows from empty buckets for `query`. It does not
    /// depend on the number of samples.
    pub fn filled_rows_max(&self, query: &RangeQuery) -> u64 {
        // Interpolation may reach a sample outside the span.
        if query.needs_neighbours() {
            return query.filled_rows_max();
        }
        self.snapshot.reach().map_or(0, |(from, to)| {
            query.filled_rows_max_of(from.max(query.from), to.min(query.to))
        })
    }

    /// Evaluates `query`, which must be the query the view was taken for.
    ///
    /// # Errors
    /// `Corrupt`, and `Invalid` for a query out of its ranges.
    pub fn run(self, query: &RangeQuery, sink: &mut dyn Sink) -> Result<()> {
        if let Some(fault) = self.fault {
            return Err(Error::new(fault.kind(), fault.to_string()));
        }
        let neighbours = match self.outside {
            Some(outside) => neighbours(query, outside.0, outside.1)?,
            None => Neighbours::default(),
        };
        let from = self.snapshot.from;
        let mut source = MergeSource::new(self.snapshot, query.reverse)?;
        if from == query.from {
            return run(query, neighbours, &mut source, sink);
        }
        // Narrower than requested: samples older than the retention do not exist.
        let clipped = RangeQuery {
            from,
            ..query.clone()
        };
        run(&clipped, neighbours, &mut source, sink)
    }

    /// Late samples and deletions in memory that a read of the view merges.
    pub fn late(&self) -> usize {
        self.snapshot.late.len()
    }

    /// Bytes of memory that it holds beside what it shares with the series.
    pub fn memory_bytes(&self) -> usize {
        let outside = self.outside.as_ref();
        let outside = outside.map_or(0, |outside| {
            outside.0.memory_bytes() + outside.1.memory_bytes()
        });
        size_of::<Self>() - size_of::<Snapshot>() + self.snapshot.memory_bytes() + outside
    }

    /// The part of the view in `from..=to`, for queries of that span without interpolation.
    pub fn narrow(&self, from: Timestamp, to: Timestamp) -> Self {
        Self {
            snapshot: self.snapshot.narrow(from, to),
            outside: None,
            fault: self.fault.clone(),
        }
    }

    /// Whether `query` has no rows. Stops at the first row; once `cancelled` is true,
    /// it returns early, with any answer.
    ///
    /// # Errors
    /// As [`View::run`].
    pub fn is_empty(&self, query: &RangeQuery, cancelled: Cancelled<'_>) -> Result<bool> {
        struct Any<'a>(bool, Cancelled<'a>);
        impl Sink for Any<'_> {
            fn rows(&mut self, _: &[i64], _: &[f64], _: usize) -> ControlFlow<()> {
                self.0 = true;
                ControlFlow::Break(())
            }

            fn is_cancelled(&self) -> bool {
                is_cancelled(self.1)
            }
        }
        let first = RangeQuery {
            count: Some(1),
            ..query.clone()
        };
        let mut any = Any(false, cancelled);
        self.clone().run(&first, &mut any)?;
        Ok(!any.0)
    }
}

impl Db {
    /// A view of the series under `key`.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn view(&self, key: &[u8], query: &RangeQuery) -> Result<View> {
        let open = if query.latest {
            self.rules.open_rows_of(key)?
        } else {
            Vec::new()
        };
        let floor = self.core.store.blocks.floor();
        let view = self.read_rows(key, Wanted::of(query), |series, _, failed| {
            View::of(series, query, floor, failed)
        })?;
        Ok(view.with_open(Ok(open)))
    }

    /// Estimates how many samples `query` reads from all `series`. If there are
    /// many, the estimate is extrapolated from some of them.
    pub fn samples_about(&self, series: &[SeriesRef], query: &RangeQuery) -> u64 {
        let apart = series.len().div_ceil(SERIES_ESTIMATED_MAX).max(1);
        let asked = series.iter().step_by(apart);
        let samples = asked.filter_map(|series| {
            self.look(series, Wanted::Nothing, |held, _| {
                held.samples_about(query.from, query.to)
            })
        });
        samples.sum::<u64>().saturating_mul(apart as u64)
    }

    /// Whether reads of samples of `from..=to` may wait for long: blocks that may have some, of any
    /// series, are not on this machine, or the history of a rule is being computed.
    pub fn is_away(&self, from: Timestamp, to: Timestamp) -> bool {
        self.rules.is_filling() || self.core.store.blocks.get().is_away(None, from, to)
    }

    /// Estimates how many samples the series under `key` has; `None` if there is no
    /// such series.
    pub fn samples_of(&self, key: &[u8]) -> Option<u64> {
        self.estimate_samples(key, false)
    }

    /// Estimates how many samples [`Db::info`] decodes: few unless many late ones are
    /// pending; `None` if there is no such series.
    pub fn samples_of_info(&self, key: &[u8]) -> Option<u64> {
        self.estimate_samples(key, true)
    }

    fn estimate_samples(&self, key: &[u8], is_counted: bool) -> Option<u64> {
        let (mut state, id) = self.core.lock_series(key).ok()?;
        let series = state.series_mut(id)?;
        let samples = series.samples_about(Timestamp::MIN, Timestamp::MAX);
        // Each pending sample has one frame decoded.
        let decoded = series.pending().saturating_mul(FRAME_SAMPLES_MAX) as u64;
        Some(if is_counted {
            samples.min(decoded)
        } else {
            samples
        })
    }

    /// Views of `series`, in their order; removed series are skipped.
    pub fn views(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        with_labels: bool,
    ) -> Vec<SeriesView> {
        let mut found = Vec::with_capacity(series.len());
        for some in series.chunks(SERIES_PER_LOCK_MAX) {
            let views = self.views_of(some, query);
            found.extend(some.iter().zip(views).filter_map(|(series, view)| {
                Some(SeriesView {
                    view: view?,
                    key: series.key.clone(),
                    labels: self.labels_if(with_labels, series),
                })
            }));
        }
        found
    }

    /// How far a series reaches, and how much of it is in memory; `None` if it was removed.
    pub fn extent(&self, series: &SeriesRef) -> Option<Extent> {
        let floor = self.core.store.blocks.floor();
        self.look(series, Wanted::Nothing, |held, _| held.extent(floor))
    }

    /// Whether a rule of the server made a series, or has it for itself ([`Db::own`]).
    pub fn is_of_rule(&self, series: &SeriesRef) -> bool {
        let marks = self.look(series, Wanted::Nothing, |held, _| held.marks);
        marks.is_some_and(|marks| marks.is_owned() || marks.made_by() == MadeBy::Rule)
    }

    /// Where retention or the disk budget ends a series: older samples of it are not visible, and
    /// may have been; `None` if it was removed, or if all of it is kept.
    pub fn floor_of(&self, series: &SeriesRef) -> Option<Timestamp> {
        let floor = self.core.store.blocks.floor();
        let own = self.look(series, Wanted::Nothing, |held, _| held.retention_floor())?;
        Some(own.max(floor)).filter(|floor| *floor > Timestamp::MIN)
    }

    /// The newest samples of `series`, in their order; removed series are skipped.
    /// Once `cancelled` is true, it returns early, with those of any series.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn latest(
        &self,
        series: Vec<SeriesRef>,
        with_labels: bool,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<Latest>> {
        let floor = self.core.store.blocks.floor();
        let mut samples = Vec::with_capacity(series.len());
        for some in series.chunks(SERIES_PER_LOCK_MAX) {
            if is_cancelled(cancelled) {
                break;
            }
            let newest = |held: &mut Series, failed: &FailedBuckets| failed.newest_of(held);
            let found = self.look_at(some, Wanted::Newest, |_, _| (), newest);
            samples.extend(some.iter().zip(found).map(|(one, sample)| match sample {
                Some(Err(error)) if error.is_away() => {
                    fetching(|| self.look(one, Wanted::Newest, newest).transpose()).transpose()
                }
                sample => sample,
            }));
        }
        let found = series.into_iter().zip(samples);
        let found = found.filter_map(|(series, sample)| {
            let sample = sample?.map(|sample| Latest {
                labels: self.labels_if(with_labels, &series),
                sample: sample.filter(|last| last.timestamp >= floor),
                key: series.key,
            });
            Some(sample)
        });
        found.collect()
    }

    /// Views of a few series; `None` if a series was removed.
    pub(crate) fn views_of(&self, series: &[SeriesRef], query: &RangeQuery) -> Vec<Option<View>> {
        if query.latest {
            return series.iter().map(|one| self.view_of(one, query)).collect();
        }
        let floor = self.core.store.blocks.floor();
        let touch = |state: &ShardState, places: &[usize]| state.touch_samples(places);
        self.look_at(series, Wanted::of(query), touch, |held, failed| {
            View::of(held, query, floor, failed)
        })
    }

    /// A view of one series; `None` if it was removed.
    fn view_of(&self, series: &SeriesRef, query: &RangeQuery) -> Option<View> {
        let open = if query.latest {
            self.rules.open_rows(series.id)
        } else {
            Ok(Vec::new())
        };
        let floor = self.core.store.blocks.floor();
        let view = self.look(series, Wanted::of(query), |held, failed| {
            View::of(held, query, floor, failed)
        })?;
        Some(view.with_open(open))
    }

    /// Calls `read` for each of a few series; `None` if a series was removed. Each
    /// shard is locked once, and the memory of its series is prefetched together;
    /// `touch` prefetches what the series point to.
    fn look_at<T>(
        &self,
        series: &[SeriesRef],
        wanted: Wanted,
        touch: impl Fn(&ShardState, &[usize]),
        read: impl Fn(&mut Series, &FailedBuckets) -> T,
    ) -> Vec<Option<T>> {
        let core = &self.core;
        let mut found: Vec<Option<T>> = series.iter().map(|_| None).collect();
        let (mut behind, mut here) = (Vec::new(), Vec::with_capacity(series.len()));
        let mut places = Vec::with_capacity(series.len());
        for (shard, lock) in core.shards.iter().enumerate() {
            let all = series.iter().enumerate();
            here.clear();
            here.extend(all.filter(|(_, one)| core.shards.shard_of(one.id) == shard));
            if here.is_empty() {
                continue;
            }
            places.clear();
            places.extend(here.iter().map(|(_, one)| core.shards.place_of(one.id)));
            let mut state = lock.lock();
            state.touch(places.iter().copied());
            touch(&state, &places);
            let overdue_ms = core.overdue_ms(&state);
            for (&(at, _), &place) in here.iter().zip(&places) {
                if overdue_ms.is_some_and(|now_ms| state.expiries.is_due(place, now_ms)) {
                    continue;
                }
                // awake: the others are looked at one by one.
                match state.slab.get_mut(place) {
                    Some(held) if held.source().is_none() => {
                        found[at] = Some(read(held, &FailedBuckets::default()));
                    }
                    // Its rule may have dirty buckets, or it is not awake.
                    _ => behind.push(at),
                }
            }
        }
        for at in behind {
            found[at] = self.look(&series[at], wanted, &read);
        }
        found
    }

    fn labels_if(&self, wanted: bool, series: &SeriesRef) -> Labels {
        if wanted {
            self.core.labels_of(series.id)
        } else {
            Labels::default()
        }
    }

    /// Reads a series under its shard's lock; `None` if it was removed.
    fn look<T>(
        &self,
        series: &SeriesRef,
        wanted: Wanted,
        read: impl FnOnce(&mut Series, &FailedBuckets) -> T,
    ) -> Option<T> {
        let place = self.core.shards.place_of(series.id);
        let shard = &self.core.shards[self.core.shards.shard_of(series.id)];
        let mut state = shard.lock();
        let mut failed = FailedBuckets::default();
        if state.is_parked(series.id) {
            self.core.wake(&mut state, series.id);
        }
        if state.slab.get(place)?.source().is_some() {
            drop(state);
            match self.rules.bring_up(series.id, wanted) {
                Ok(met) => failed = met,
                Err(away) => failed.away = Some(away),
            }
            state = shard.lock();
            self.core.wake(&mut state, series.id);
        }
        if self.core.is_expired(&state, place) {
            None
        } else {
            state.slab.get_mut(place).map(|held| read(held, &failed))
        }
    }
}

fn neighbours(query: &RangeQuery, before: Snapshot, after: Snapshot) -> Result<Neighbours> {
    let mut found = Neighbours::default();
    if query.from > Timestamp::MIN {
        found.before = nearest::newest(before, query)?;
    }
    if query.to < Timestamp::MAX {
        found.after = nearest::oldest(after, query)?;
    }
    Ok(found)
}
