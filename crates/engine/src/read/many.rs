//! Reads over many series: what a query takes from each of them.
//!
//! A [`View`] is one series at one moment: its chunks are shared with it, not
//! copied, so that thousands of views are cheap and a reader may take its
//! time. Views of one query are taken one after the other; between them
//! writers go on, as they do between two commands.
//!
//! Tested by `tests/query_many.rs`.

use crate::base::error::{Error, Result};
use crate::index::SeriesRef;
use crate::query::{Neighbours, RangeQuery, Sink, nearest, run};
use crate::read::Reader;
use crate::series::merge::MergeSource;
use crate::series::rules::failed::FailedBuckets;
use crate::series::shard::ShardState;
use crate::series::{Series, Snapshot};
use latewood_model::{Labels, Sample, Timestamp};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Series that are looked at under one lock.
const LOOKS_MAX: usize = 64;
/// Series that are asked how many samples they have.
const ASKED_MAX: usize = 64;

/// The samples that one query needs of one series, at one moment.
#[derive(Clone)]
pub struct View {
    snapshot: Snapshot,
    /// What lies before and after the span, where the query interpolates.
    outside: Option<Box<(Snapshot, Snapshot)>>,
    /// Why there are no rows to be had, where it is known already.
    fault: Option<Arc<Error>>,
}

/// The newest sample of a series, and who it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// The series' key.
    pub key: Arc<[u8]>,
    /// Its labels; none unless asked for.
    pub labels: Labels,
    /// Its newest sample, if it has any.
    pub sample: Option<Sample>,
}

/// A series found by a query, with what the query needs of it.
#[derive(Clone)]
pub struct SeriesView {
    /// The series' key.
    pub key: Arc<[u8]>,
    /// Its labels; none unless asked for.
    pub labels: Labels,
    /// Its samples.
    pub view: View,
}

impl View {
    /// Takes from `series` what `query` needs; nothing before `floor` is there.
    fn of(
        series: &mut Series,
        query: &RangeQuery,
        floor: Timestamp,
        failed: &FailedBuckets,
    ) -> Self {
        let read = match query.needs_neighbours() {
            true => failed.check(Timestamp::MIN, Timestamp::MAX),
            false => failed.check(query.from, query.to),
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

    /// The same with the open bucket of a rule's destination as one more sample.
    fn with_open(mut self, open: Result<Option<Sample>>) -> Self {
        match open {
            Ok(Some(open)) => {
                self.snapshot.add_open(open);
                if let Some(outside) = &mut self.outside {
                    outside.0.add_open(open);
                    outside.1.add_open(open);
                }
            }
            Ok(None) => {}
            Err(error) => self.fault = Some(Arc::new(error)),
        }
        self
    }

    /// About how many samples [`View::run`] reads, at most.
    pub fn samples(&self) -> u64 {
        self.snapshot.samples()
    }

    /// The most rows that empty buckets can make of it for `query`, however few
    /// samples it has.
    pub fn filled_rows_max(&self, query: &RangeQuery) -> u64 {
        // A line may lead to a sample outside of the span.
        if query.needs_neighbours() {
            return query.filled_rows_max();
        }
        self.snapshot.reach().map_or(0, |(from, to)| {
            query.filled_rows_max_of(from.max(query.from), to.min(query.to))
        })
    }

    /// Evaluates `query`, which must be the one the view was taken for.
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
        // Narrower than asked: nothing past the retention is there.
        let clipped = RangeQuery {
            from,
            ..query.clone()
        };
        run(&clipped, neighbours, &mut source, sink)
    }

    /// Whether `query` has no row; reads no further than the first.
    ///
    /// # Errors
    /// As [`View::run`].
    pub fn is_empty(&self, query: &RangeQuery) -> Result<bool> {
        struct Any(bool);
        impl Sink for Any {
            fn rows(&mut self, _: &[i64], _: &[f64], _: usize) -> ControlFlow<()> {
                self.0 = true;
                ControlFlow::Break(())
            }
        }
        let first = RangeQuery {
            count: Some(1),
            ..query.clone()
        };
        let mut any = Any(false);
        self.clone().run(&first, &mut any)?;
        Ok(!any.0)
    }
}

impl Reader {
    /// As [`crate::Db::view`].
    pub(crate) fn view(&self, key: &[u8], query: &RangeQuery) -> Result<View> {
        let open = match query.latest {
            true => self.rules.open_bucket_of(key)?,
            false => None,
        };
        let floor = self.core.store.blocks.floor();
        let view = self.read_rows(key, |series, _, failed| {
            View::of(series, query, floor, failed)
        })?;
        Ok(view.with_open(Ok(open)))
    }

    /// As [`crate::Db::samples_about`].
    pub(crate) fn samples_about(&self, series: &[SeriesRef], query: &RangeQuery) -> u64 {
        let apart = series.len().div_ceil(ASKED_MAX).max(1);
        let asked = series.iter().step_by(apart);
        let samples = asked.filter_map(|series| {
            self.look(series, |held, _| held.samples_about(query.from, query.to))
        });
        samples.sum::<u64>().saturating_mul(apart as u64)
    }

    /// As [`crate::Db::views`].
    pub(crate) fn views(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        with_labels: bool,
    ) -> Vec<SeriesView> {
        let mut found = Vec::with_capacity(series.len());
        for some in series.chunks(LOOKS_MAX) {
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

    /// As [`crate::Db::latest`].
    pub(crate) fn latest(&self, series: Vec<SeriesRef>, with_labels: bool) -> Result<Vec<Latest>> {
        let floor = self.core.store.blocks.floor();
        let mut samples = Vec::with_capacity(series.len());
        for some in series.chunks(LOOKS_MAX) {
            let newest = |held: &mut Series, failed: &FailedBuckets| failed.newest_of(held);
            samples.extend(self.look_at(some, |_, _| (), newest));
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

    /// Views of a few series; `None` where one is gone.
    pub(crate) fn views_of(&self, series: &[SeriesRef], query: &RangeQuery) -> Vec<Option<View>> {
        if query.latest {
            return series.iter().map(|one| self.view_of(one, query)).collect();
        }
        let floor = self.core.store.blocks.floor();
        let touch = |state: &ShardState, places: &[usize]| state.touch_samples(places);
        self.look_at(series, touch, |held, failed| {
            View::of(held, query, floor, failed)
        })
    }

    /// A view of one series; `None` where it is gone.
    fn view_of(&self, series: &SeriesRef, query: &RangeQuery) -> Option<View> {
        let open = match query.latest {
            true => self.rules.open_bucket(series.id),
            false => Ok(None),
        };
        let floor = self.core.store.blocks.floor();
        let view = self.look(series, |held, failed| View::of(held, query, floor, failed))?;
        Some(view.with_open(open))
    }

    /// What `read` makes of each of a few series, `None` where it is gone: each
    /// shard is locked once, and the memory of its series fetched together;
    /// `touch` fetches what lies behind them.
    fn look_at<T>(
        &self,
        series: &[SeriesRef],
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
                match state.slab.get_mut(place) {
                    Some(held) if held.source().is_none() => {
                        found[at] = Some(read(held, &FailedBuckets::default()));
                    }
                    // Its rule may have work left.
                    Some(_) => behind.push(at),
                    None => {}
                }
            }
        }
        for at in behind {
            found[at] = self.look(&series[at], &read);
        }
        found
    }

    fn labels_if(&self, wanted: bool, series: &SeriesRef) -> Labels {
        match wanted {
            true => self.core.labels_of(series.id),
            false => Labels::default(),
        }
    }

    /// Reads a series under its shard's lock; `None` where it is gone.
    fn look<T>(
        &self,
        series: &SeriesRef,
        read: impl FnOnce(&mut Series, &FailedBuckets) -> T,
    ) -> Option<T> {
        let place = self.core.shards.place_of(series.id);
        let shard = &self.core.shards[self.core.shards.shard_of(series.id)];
        let mut state = shard.lock();
        let mut failed = FailedBuckets::default();
        if let Some(source) = state.slab.get(place)?.source() {
            drop(state);
            self.rules.recompute_for_reader(source);
            failed = self.rules.failed_buckets_of(source, series.id);
            state = shard.lock();
        }
        match self.core.is_expired(&state, place) {
            true => None,
            false => state.slab.get_mut(place).map(|held| read(held, &failed)),
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
