//! A view: the samples that one query needs of one series, at one moment.
//!
//! It shares the chunks of the series and does not copy them, so thousands of views are cheap and a
//! reader may be slow. Where the series cannot be read, the view has the error. Tested by
//! `tests/query_many.rs`.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, Result};
use crate::query::{Neighbours, RangeQuery, Sink, nearest, run};
use crate::series::merge::MergeSource;
use crate::series::rules::failed::FailedBuckets;
use crate::series::stored::StoredSpan;
use crate::series::{Series, Snapshot};
use latewood_model::{Sample, Timestamp};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The samples that one query needs of one series, at one moment.
#[derive(Clone)]
pub struct View {
    /// Apart, since views are moved.
    snapshot: Box<Snapshot>,
    /// The samples before and after the span, if the query interpolates.
    outside: Option<Box<(Snapshot, Snapshot)>>,
    /// The error of the query, if it is known already.
    fault: Option<Arc<Error>>,
}

impl View {
    /// Takes from `series` the samples `query` needs. Samples before `floor` are
    /// expired.
    pub(super) fn of(
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
            snapshot: Box::new(series.snapshot(floor.max(query.from), query.to)),
            outside,
            fault: read.err().map(Arc::new),
        }
    }

    /// A view of a series that cannot be read.
    pub(super) fn failed(query: &RangeQuery, error: Error) -> Self {
        Self {
            snapshot: Box::new(Snapshot::empty(query.from, query.to)),
            outside: None,
            fault: Some(Arc::new(error)),
        }
    }

    /// Adds the open buckets of a rule's destination as more samples.
    pub(super) fn with_open(mut self, open: Result<Vec<Sample>>) -> Self {
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
        // Empty buckets go on to the end of the span if there may be a sample beyond it.
        let outside = self.outside.as_deref();
        let (before, after) = outside.map_or((None, None), |(before, after)| {
            (before.reach(), after.reach())
        });
        let within = self.snapshot.reach();
        let from = before.map(|_| query.from);
        let from = from.or(within.map(|(first, _)| first.max(query.from)));
        let to = after.map(|_| query.to);
        let to = to.or(within.map(|(_, last)| last.min(query.to)));
        let ends = from.zip(to);
        ends.map_or(0, |(from, to)| query.filled_rows_max_of(from, to))
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
        let mut source = MergeSource::new(*self.snapshot, query.reverse)?;
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

    /// Hands the samples of `spans`, ends included, ascending and apart, to `sink`, the oldest first, as
    /// [`View::run`] does for queries of those spans alone. Where nothing has to be merged, nothing of
    /// the view is copied, and what two spans share is decoded once, unless the sink takes statistics and
    /// there are some.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn samples_in(
        &self,
        spans: &mut dyn Iterator<Item = (Timestamp, Timestamp)>,
        takes_stats: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let is_plain = self.fault.is_none() && self.snapshot.is_plain();
        let mut passage = self.snapshot.passage();
        for (from, to) in spans {
            let gains = takes_stats && self.snapshot.has_frame_within(from, to);
            if is_plain && !gains {
                let passed = passage.pass(from, to, &mut |timestamps, values| {
                    if sink.is_cancelled() {
                        return ControlFlow::Break(());
                    }
                    sink.rows(timestamps, values, 1)
                });
                if passed?.is_break() {
                    break;
                }
                continue;
            }
            let query = RangeQuery {
                from,
                to,
                ..RangeQuery::default()
            };
            self.narrow(from, to).run(&query, sink)?;
        }
        Ok(())
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
        size_of::<Self>() + self.snapshot.memory_bytes() + outside
    }

    /// The part of the view in `from..=to`, for queries of that span without interpolation.
    fn narrow(&self, from: Timestamp, to: Timestamp) -> Self {
        Self {
            snapshot: Box::new(self.snapshot.narrow(from, to)),
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
