//! Reads: samples, queries, selection by labels, and listings.

use crate::base::cancelled::Cancelled;
use crate::base::error::Result;
use crate::db::Db;
use crate::format::rule::RuleInfo;
use crate::index::SeriesRef;
use crate::query::{Columns, RangeQuery, Sink};
use crate::read::listing::{Listed, MaySee, Values};
use crate::read::many::{Latest, SeriesView, View};
use crate::read::spread::Spread;
use crate::series::Extent;
use latewood_model::{Aggregator, Labels, Matcher, Sample, Timestamp};
use std::sync::Arc;

impl Db {
    /// Whether a series exists under `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.reader.contains(key)
    }

    /// The newest sample of a series.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn last_sample(&self, key: &[u8]) -> Result<Option<Sample>> {
        self.reader.last_sample(key)
    }

    /// Evaluates a range query over one series and passes the rows to `sink`.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`; `Invalid` if a parameter of the query is out of range.
    pub fn range(&self, key: &[u8], query: &RangeQuery, sink: &mut dyn Sink) -> Result<()> {
        self.reader.range(key, query, sink)
    }

    /// Calls `visit` with the keys of about `count` series, starting at `cursor`.
    /// Returns the cursor for the next call, 0 at the end. A series that exists
    /// during the whole scan is visited.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8])) -> u64 {
        self.reader.scan(cursor, count, visit)
    }

    /// Groups `series` by their value of the label `name`. Groups are in byte
    /// order of the values; within a group the series keep their order. A series
    /// that has the label several times is grouped by the first value. Series
    /// without the label and removed series are left out. Linear in the labels of
    /// the series. Once `cancelled` is true, it returns early, with any groups.
    pub fn group_by(
        &self,
        series: Vec<SeriesRef>,
        name: &[u8],
        cancelled: Cancelled<'_>,
    ) -> Vec<(Box<[u8]>, Vec<SeriesRef>)> {
        self.reader.group_by(series, name, cancelled)
    }

    /// The series that match all `matchers`, in byte order of their keys; all
    /// series if there is no matcher. Includes everything acknowledged before the
    /// call. Linear in the series selected and the label values tested.
    pub fn select(&self, matchers: &[Matcher]) -> Vec<SeriesRef> {
        self.select_until(matchers, None)
    }

    /// As [`Db::select`]. Once `cancelled` is true, it returns early, with any series.
    pub fn select_until(&self, matchers: &[Matcher], cancelled: Cancelled<'_>) -> Vec<SeriesRef> {
        self.reader.select_until(matchers, cancelled)
    }

    /// The labels of a series, in the order the client gave them; `None` if the
    /// series was removed.
    pub fn labels(&self, series: &SeriesRef) -> Option<Labels> {
        self.reader.labels(series)
    }

    /// Runs `work`, which reads about `samples` samples, and provides threads for
    /// it if parallel work pays and no other query has them: it waits for none.
    pub fn spread<T: Send>(&self, samples: u64, work: impl FnOnce(Spread) -> T + Send) -> T {
        self.reader.spread(samples, work)
    }

    /// Evaluates `query` over each of `series` and reduces their rows to one
    /// row for each timestamp, in the order of the query. Removed series are
    /// skipped. Once `cancelled` is true, it returns early, with any rows.
    ///
    /// # Errors
    /// `Corrupt`; `Invalid` if a parameter of the query is out of range, the query
    /// has several aggregators, or `reducer` is not a reducer; `Limit` if the rows
    /// do not fit in a reply.
    pub fn reduce(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        reducer: Aggregator,
        spread: Spread,
        cancelled: Cancelled<'_>,
    ) -> Result<Columns> {
        self.reader
            .reduce(series, query, reducer, spread, cancelled)
    }

    /// A view of the series under `key`.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn view(&self, key: &[u8], query: &RangeQuery) -> Result<View> {
        self.reader.view(key, query)
    }

    /// Estimates how many samples `query` reads from all `series`. If there are
    /// many, the estimate is extrapolated from some of them.
    pub fn samples_about(&self, series: &[SeriesRef], query: &RangeQuery) -> u64 {
        self.reader.samples_about(series, query)
    }

    /// Whether blocks that may have samples of `from..=to`, of any series, are not on this
    /// machine: reads of them may wait for long.
    pub fn is_away(&self, from: Timestamp, to: Timestamp) -> bool {
        self.parts.core.store.blocks.get().is_away(None, from, to)
    }

    /// Estimates how many samples the series under `key` has; `None` if there is no
    /// such series.
    pub fn samples_of(&self, key: &[u8]) -> Option<u64> {
        self.reader.samples_of(key, false)
    }

    /// Estimates how many samples [`Db::info`] decodes: few unless many late ones are
    /// pending; `None` if there is no such series.
    pub fn samples_of_info(&self, key: &[u8]) -> Option<u64> {
        self.reader.samples_of(key, true)
    }

    /// The number of distinct label pairs.
    pub fn label_pairs(&self) -> usize {
        self.parts.core.index.pair_count()
    }

    /// About the maximum number of series that match all `matchers`, by the lists of
    /// the matchers alone; the number of all series if there is no matcher. Changes that
    /// the index has not taken up yet do not count.
    pub fn series_about(&self, matchers: &[Matcher]) -> u64 {
        self.reader.series_about(matchers)
    }

    /// How far a series reaches, and how much of it is in memory; `None` if it was removed.
    pub fn extent(&self, series: &SeriesRef) -> Option<Extent> {
        self.reader.extent(series)
    }

    /// Views of `series`, in their order; removed series are skipped.
    pub fn views(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        with_labels: bool,
    ) -> Vec<SeriesView> {
        self.reader.views(series, query, with_labels)
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
        self.reader.latest(series, with_labels, cancelled)
    }

    /// The key of a random series, all about equally likely; `None` if there are
    /// no series. Constant time unless most series ever created were removed.
    pub fn random_key(&self) -> Option<Box<[u8]>> {
        self.reader.random_key()
    }

    /// The distinct label names of the series that match all `matchers` and whose
    /// keys pass `may_see`, in byte order. Without matchers and `may_see`, no
    /// series is read. Once `cancelled` is true, it returns early, with any names.
    ///
    /// # Errors
    /// `Limit` if the names take more than `bytes_max` bytes, counting
    /// [`Listed::EACH_BYTES`] for each name besides its own.
    pub fn label_names(
        &self,
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        self.reader
            .label_names(matchers, may_see, bytes_max, cancelled)
    }

    /// The distinct values of the label `name`, selected and ordered as in
    /// [`Db::label_names`].
    ///
    /// # Errors
    /// Those of [`Db::label_names`].
    pub fn label_values(
        &self,
        name: &[u8],
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        self.reader
            .label_values(name, matchers, may_see, bytes_max, cancelled)
    }

    /// The values of the label `name` that pass `test`. Each value is tested once,
    /// regardless of the number of its series.
    pub fn label_values_where(&self, name: &[u8], test: impl Fn(&[u8]) -> bool) -> Values {
        self.reader.label_values_where(name, test)
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
        self.reader.late_timestamps(key, from, to)
    }

    /// The rules of the series under `key`, in order of their creation.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn rules_of(&self, key: &[u8]) -> Result<Vec<RuleInfo>> {
        self.reader.rules_of(key)
    }

    /// The key of the source whose rule writes to the series under `key`.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn source_of(&self, key: &[u8]) -> Result<Option<Arc<[u8]>>> {
        self.reader.source_of(key)
    }

    /// As [`Db::last_sample`] with LATEST: for the destination of a rule, the open
    /// bucket.
    ///
    /// # Errors
    /// Those of [`Db::last_sample`].
    pub fn last_sample_latest(&self, key: &[u8]) -> Result<Option<Sample>> {
        self.reader.last_sample_latest(key)
    }
}
