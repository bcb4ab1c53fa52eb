//! Reads of many series: a consistent view of each series for one query.
//!
//! The views ([`super::view`]) of one query are taken one after the other; writers continue between
//! them, as they do between two commands.
//!
//! Tested by `tests/query_many.rs`.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::db::read::view::View;
use crate::index::SeriesRef;
use crate::io::waiting::fetching;
use crate::query::RangeQuery;
use crate::rules::backfill::Wanted;
use crate::series::presence::{BROUGHT_MAX, Presence};
use crate::series::rules::failed::FailedBuckets;
use crate::series::shard::ShardState;
use crate::series::{Extent, Marks, Series};
use latewood_model::limits::FRAME_SAMPLES_MAX;
use latewood_model::{Labels, MadeBy, Sample, SeriesId, Timestamp};
use std::sync::Arc;

/// Series read under one lock.
const SERIES_PER_LOCK_MAX: usize = 64;
/// Series whose sample counts are read for an estimate.
const SERIES_ESTIMATED_MAX: usize = 64;

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
        let asked: Vec<_> = series.iter().step_by(apart).cloned().collect();
        let about = |held: &mut Series, _: &_| held.samples_about(query.from, query.to);
        let samples = self.look_at(&asked, Wanted::Nothing, |_, _| (), about);
        // Whoever reads one that cannot be read gets the error.
        let samples = samples.into_iter().filter_map(|samples| samples.ok()?);
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

    /// Views of `series`, in their order; removed series are skipped. Where many are parked, best in
    /// the order of their ids: then each page of a file is read once.
    pub fn views(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        with_labels: bool,
    ) -> Vec<SeriesView> {
        let mut found = Vec::with_capacity(series.len());
        for many in series.chunks(BROUGHT_MAX) {
            if self.parked_len() > 0 {
                let ids: Vec<SeriesId> = many.iter().map(|one| one.id).collect();
                // Of which a row cannot be read, a look at each tells.
                let _ = self.core.bring(&ids);
            }
            for some in many.chunks(SERIES_PER_LOCK_MAX) {
                let views = self.views_of(some, query);
                found.extend(some.iter().zip(views).filter_map(|(series, view)| {
                    let (view, labels) = match self.labels_if(with_labels, series) {
                        Ok(labels) => (view?, labels),
                        Err(error) => (View::failed(query, error), Labels::default()),
                    };
                    let key = series.key.clone();
                    Some(SeriesView { key, labels, view })
                }));
            }
        }
        found
    }

    /// How far a series reaches, and how much of it is in memory; `None` if it was removed.
    ///
    /// # Errors
    /// As [`Db::select`].
    pub fn extent(&self, series: &SeriesRef) -> Result<Option<Extent>> {
        let floor = self.core.store.blocks.floor();
        self.look(series, Wanted::Nothing, |held, _| held.extent(floor))
    }

    /// The same of many, best in the order of their ids: then what is kept in files of them is read
    /// once.
    pub fn extents(&self, series: &[SeriesRef]) -> Vec<Result<Option<Extent>>> {
        let floor = self.core.store.blocks.floor();
        let extent = |held: &mut Series, _: &_| held.extent(floor);
        self.look_at(series, Wanted::Nothing, |_, _| (), extent)
    }

    /// Whether a rule of the server made a series, or has it for itself ([`Db::own`]).
    ///
    /// # Errors
    /// As [`Db::select`].
    pub fn is_of_rule(&self, series: &SeriesRef) -> Result<bool> {
        let marks = self.look(series, Wanted::Nothing, |held, _| held.marks)?;
        let is_of_rule =
            |marks: Marks| self.core.owned.holds(&series.key) || marks.made_by() == MadeBy::Rule;
        Ok(marks.is_some_and(is_of_rule))
    }

    /// Where retention or the disk budget ends a series: older samples of it are not visible, and
    /// may have been; `None` if it was removed, or if all of it is kept.
    ///
    /// # Errors
    /// As [`Db::select`].
    pub fn floor_of(&self, series: &SeriesRef) -> Result<Option<Timestamp>> {
        let floor = self.core.store.blocks.floor();
        let own = self.look(series, Wanted::Nothing, |held, _| held.retention_floor())?;
        let floor = own.map(|own| own.max(floor));
        Ok(floor.filter(|floor| *floor > Timestamp::MIN))
    }

    /// The newest samples of `series`, in their order; removed series are skipped.
    /// Once `cancelled` is true, it returns early, with those of any series. With `label_bytes_max`
    /// their labels come too, which may take that many bytes together.
    ///
    /// # Errors
    /// `Limit` if the labels take more; `Corrupt`, `Io`.
    pub fn latest(
        &self,
        series: Vec<SeriesRef>,
        label_bytes_max: Option<usize>,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<Latest>> {
        let floor = self.core.store.blocks.floor();
        let order = self.order_of_reads(series.iter().map(|one| one.id));
        let mut found = vec![None; series.len()];
        let mut label_bytes = 0;
        'all: for many in order.chunks(BROUGHT_MAX) {
            let ids: Vec<SeriesId> = many.iter().map(|&at| series[at].id).collect();
            // Of which a row cannot be read, a look at each tells.
            let _ = self.core.bring(&ids);
            for part in many.chunks(SERIES_PER_LOCK_MAX) {
                if is_cancelled(cancelled) {
                    break 'all;
                }
                let some: Vec<SeriesRef> = part.iter().map(|&at| series[at].clone()).collect();
                let newest = |held: &mut Series, failed: &FailedBuckets| failed.newest_of(held);
                let samples = self.look_at(&some, Wanted::Newest, |_, _| (), newest);
                for ((&at, one), sample) in part.iter().zip(&some).zip(samples) {
                    let sample = match sample.and_then(Option::transpose) {
                        Err(error) if error.is_away() => fetching(|| {
                            let sample = self.look(one, Wanted::Newest, newest);
                            sample.and_then(Option::transpose)
                        }),
                        sample => sample,
                    };
                    let Some(sample) = sample? else {
                        continue;
                    };
                    let labels = self.labels_if(label_bytes_max.is_some(), one)?;
                    label_bytes += labels.as_bytes().len();
                    if label_bytes_max.is_some_and(|bytes_max| label_bytes > bytes_max) {
                        let text = "the labels take more than they may";
                        return Err(Error::new(ErrorKind::Limit, text));
                    }
                    found[at] = Some(Latest {
                        labels,
                        sample: sample.filter(|last: &Sample| last.timestamp >= floor),
                        key: one.key.clone(),
                    });
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// In which order series are read best, by their places: where some rest, in that of their ids, so
    /// that what is kept in files of many is read once.
    pub fn order_of_reads(&self, ids: impl Iterator<Item = SeriesId>) -> Vec<usize> {
        let ids: Vec<SeriesId> = ids.collect();
        let mut order: Vec<usize> = (0..ids.len()).collect();
        if self.parked_len() > 0 {
            order.sort_unstable_by_key(|&at| ids[at]);
        }
        order
    }

    /// Views of a few series; `None` if a series was removed.
    pub(crate) fn views_of(&self, series: &[SeriesRef], query: &RangeQuery) -> Vec<Option<View>> {
        let floor = self.core.store.blocks.floor();
        let touch = |state: &ShardState, places: &[usize]| state.touch_samples(places);
        let views = if query.latest {
            series.iter().map(|one| self.view_of(one, query)).collect()
        } else {
            self.look_at(series, Wanted::of(query), touch, |held, failed| {
                View::of(held, query, floor, failed)
            })
        };
        let views = views.into_iter();
        let read = views.map(|view| view.unwrap_or_else(|error| Some(View::failed(query, error))));
        read.collect()
    }

    /// A view of one series; `None` if it was removed.
    fn view_of(&self, series: &SeriesRef, query: &RangeQuery) -> Result<Option<View>> {
        let open = if query.latest {
            self.rules.open_rows(series.id)
        } else {
            Ok(Vec::new())
        };
        let floor = self.core.store.blocks.floor();
        let view = self.look(series, Wanted::of(query), |held, failed| {
            View::of(held, query, floor, failed)
        })?;
        Ok(view.map(|view| view.with_open(open)))
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
    ) -> Vec<Result<Option<T>>> {
        let core = &self.core;
        let mut found: Vec<Result<Option<T>>> = series.iter().map(|_| Ok(None)).collect();
        let shard_of = |at: usize| core.shards.shard_of(series[at].id);
        let mut order: Vec<usize> = (0..series.len()).collect();
        order.sort_unstable_by_key(|&at| (shard_of(at), at));
        let (mut behind, mut places) = (Vec::new(), Vec::with_capacity(series.len()));
        for here in order.chunk_by(|&a, &b| shard_of(a) == shard_of(b)) {
            places.clear();
            places.extend(here.iter().map(|&at| core.shards.place_of(series[at].id)));
            let mut state = core.shards.lock_of(series[here[0]].id);
            state.touch(places.iter().copied());
            touch(&state, &places);
            let overdue_ms = core.overdue_ms(&state);
            for (&at, &place) in here.iter().zip(&places) {
                if overdue_ms.is_some_and(|now_ms| state.expiries.is_due(place, now_ms)) {
                    continue;
                }
                // awake: the others are looked at one by one.
                match state.slab.get_mut(place) {
                    Some(held) if held.source().is_none() => {
                        found[at] = Ok(Some(read(held, &FailedBuckets::default())));
                    }
                    // Its rule may have dirty buckets, or it is not awake.
                    _ => behind.push(at),
                }
            }
        }
        let ids: Vec<SeriesId> = behind.iter().map(|&at| series[at].id).collect();
        // Of which series a row cannot be read, a look at each tells.
        let _ = core.bring(&ids);
        for at in behind {
            found[at] = self.look(&series[at], wanted, &read);
        }
        found
    }

    /// The labels of a series that was looked at, so that its row is at hand; none if it was removed.
    fn labels_if(&self, wanted: bool, series: &SeriesRef) -> Result<Labels> {
        if !wanted {
            return Ok(Labels::default());
        }
        Ok(self.labels(series)?.unwrap_or_default())
    }

    /// Reads a series under its shard's lock; `None` if it was removed. A parked one stays parked:
    /// what is read is made of its row.
    fn look<T>(
        &self,
        series: &SeriesRef,
        wanted: Wanted,
        read: impl FnOnce(&mut Series, &FailedBuckets) -> T,
    ) -> Result<Option<T>> {
        let (core, id) = (&self.core, series.id);
        core.bring(&[id])?;
        let mut state = core.shards.lock_of(id);
        let mut failed = FailedBuckets::default();
        if core.ends_in(&state, id).is_destination {
            drop(state);
            match self.rules.bring_up(id, wanted) {
                Ok(met) => failed = met,
                Err(away) => failed.away = Some(away),
            }
            state = core.shards.lock_of(id);
        }
        let place = core.shards.place_of(id);
        if core.is_expired(&state, place) {
            return Ok(None);
        }
        if let Presence::Parked(mut parked) = core.presence(&state, id)? {
            if !parked.is_far() {
                return Ok(Some(read(&mut parked, &failed)));
            }
            // Which of its samples are past its retention is looked up when it wakes.
            core.wake(&mut state, id)?;
        }
        // awake: it is, or gone.
        let held = state.slab.get_mut(place);
        Ok(held.map(|held| read(held, &failed)))
    }
}
