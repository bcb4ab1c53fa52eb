//! Reads over many series: what a query takes from each of them.
//!
//! A [`View`] is one series at one moment: its chunks are shared with it, not
//! copied, so that thousands of views are cheap and a reader may take its
//! time. Views of one query are taken one after the other; between them
//! writers go on, as they do between two commands.
//!
//! Tested by `tests/query_many.rs`.

use super::merge::MergeSource;
use super::{Neighbours, RangeQuery, Sink, run};
use crate::db::Db;
use crate::error::Result;
use crate::index::SeriesRef;
use crate::series::{Series, Snapshot};
use latewood_model::{Labels, Sample, Timestamp};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The samples that one query needs of one series, at one moment.
#[derive(Clone)]
pub struct View {
    snapshot: Snapshot,
    /// What lies before and after the span, where the query interpolates.
    outside: Option<Box<(Snapshot, Snapshot)>>,
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
pub struct Found {
    /// The series' key.
    pub key: Arc<[u8]>,
    /// Its labels; none unless asked for.
    pub labels: Labels,
    /// Its samples.
    pub view: View,
}

impl View {
    /// Takes from `series` what `query` needs; nothing before `floor` is there.
    pub(crate) fn of(series: &Series, query: &RangeQuery, floor: Timestamp) -> Self {
        let outside = query.needs_neighbours().then(|| {
            let before = series.snapshot(floor, query.from.saturating_sub(1));
            let after = series.snapshot(floor.max(query.to.saturating_add(1)), Timestamp::MAX);
            Box::new((before, after))
        });
        Self {
            snapshot: series.snapshot(floor.max(query.from), query.to),
            outside,
        }
    }

    /// The same with the open bucket of a rule's destination as one more sample.
    fn with_open(mut self, open: Option<Sample>) -> Self {
        if let Some(open) = open {
            self.snapshot.add_open(open);
            if let Some(outside) = &mut self.outside {
                outside.0.add_open(open);
                outside.1.add_open(open);
            }
        }
        self
    }

    /// About how many samples [`View::run`] reads, at most.
    pub fn samples(&self) -> u64 {
        self.snapshot.samples()
    }

    /// Evaluates `query`, which must be the one the view was taken for.
    ///
    /// # Errors
    /// `Corrupt`, and `Invalid` for a query out of its ranges.
    pub fn run(self, query: &RangeQuery, sink: &mut dyn Sink) -> Result<()> {
        let neighbours = match self.outside {
            Some(outside) => neighbours(query, outside.0, outside.1)?,
            None => Neighbours::default(),
        };
        // The span may be narrower than asked: nothing past the retention is there.
        let clipped = RangeQuery {
            from: self.snapshot.from,
            ..query.clone()
        };
        let mut source = MergeSource::new(self.snapshot, query.reverse)?;
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

impl Db {
    /// A view of the series under `key`.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn view(&self, key: &[u8], query: &RangeQuery) -> Result<View> {
        let open = match query.latest {
            true => self.open_bucket(key)?,
            false => None,
        };
        let floor = self.core.blocks.floor();
        let view = self
            .core
            .read(key, |series| View::of(series, query, floor))?;
        Ok(view.with_open(open))
    }

    /// About how many samples `query` reads of all `series`, at most.
    pub fn samples_about(&self, series: &[SeriesRef], query: &RangeQuery) -> u64 {
        let samples = series.iter().filter_map(|series| {
            self.look(series, |held| held.samples_about(query.from, query.to))
        });
        samples.sum()
    }

    /// Views of those of `series` that are still there, in their order.
    pub fn views(&self, series: &[SeriesRef], query: &RangeQuery, with_labels: bool) -> Vec<Found> {
        let found = series.iter().filter_map(|series| {
            Some(Found {
                view: self.view_of(series, query)?,
                key: series.key.clone(),
                labels: self.labels_if(with_labels, series),
            })
        });
        found.collect()
    }

    /// The newest samples of those of `series` that are still there, in their
    /// order.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn latest(&self, series: &[SeriesRef], with_labels: bool) -> Result<Vec<Latest>> {
        let floor = self.core.blocks.floor();
        let found = series.iter().filter_map(|series| {
            self.look(series, |held| {
                Ok(Latest {
                    key: series.key.clone(),
                    labels: self.labels_if(with_labels, series),
                    sample: held.last_sample()?.filter(|last| last.timestamp >= floor),
                })
            })
        });
        found.collect()
    }

    /// A view of one series; `None` where it is gone.
    pub(super) fn view_of(&self, series: &SeriesRef, query: &RangeQuery) -> Option<View> {
        let open = match query.latest {
            // Samples that cannot be read are reported by who reads them.
            true => self.core.open_bucket(series.id).unwrap_or_default(),
            false => None,
        };
        let floor = self.core.blocks.floor();
        let view = self.look(series, |held| View::of(held, query, floor))?;
        Some(view.with_open(open))
    }

    fn labels_if(&self, wanted: bool, series: &SeriesRef) -> Labels {
        match wanted {
            true => self.core.labels_of(series.id),
            false => Labels::default(),
        }
    }

    /// Reads a series under its shard's lock; `None` where it is gone.
    pub(super) fn look<T>(&self, series: &SeriesRef, read: impl FnOnce(&Series) -> T) -> Option<T> {
        let place = self.core.place_of(series.id);
        let shard = &self.core.shards[self.core.shard_of(series.id)];
        let mut state = shard.lock();
        if let Some(source) = state.slab.get(place)?.source() {
            drop(state);
            // Samples that cannot be read are reported by who reads them.
            let _ = self.core.freshen_for_reader(source);
            state = shard.lock();
        }
        match self.core.is_expired(&state, place) {
            true => None,
            false => state.slab.get(place).map(read),
        }
    }
}

fn neighbours(query: &RangeQuery, before: Snapshot, after: Snapshot) -> Result<Neighbours> {
    let mut found = Neighbours::default();
    if query.from > Timestamp::MIN {
        found.before = MergeSource::new(before, true)?.last_sample()?;
    }
    if query.to < Timestamp::MAX {
        found.after = MergeSource::new(after, false)?.first_sample()?;
    }
    Ok(found)
}
