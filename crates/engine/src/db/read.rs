//! The reader side.

use crate::base::error::Result;
use crate::db::Db;
use crate::format::rule::RuleInfo;
use crate::index::SeriesRef;
use crate::query::Columns;
use crate::query::RangeQuery;
use crate::query::Sink;
use crate::read::listing::Listed;
use crate::read::listing::MaySee;
use crate::read::listing::Values;
use crate::read::many::Latest;
use crate::read::many::SeriesView;
use crate::read::many::View;
use crate::read::spread::Spread;
use latewood_model::Aggregator;
use latewood_model::Labels;
use latewood_model::Matcher;
use latewood_model::Sample;
use std::sync::Arc;

impl Db {
    /// Whether `key` holds a series.
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

    /// Evaluates a range query over one series; rows go to `sink`.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`, `Invalid` for a query out of its ranges.
    pub fn range(&self, key: &[u8], query: &RangeQuery, sink: &mut dyn Sink) -> Result<()> {
        self.reader.range(key, query, sink)
    }

    /// Calls `visit` with the keys of about `count` series from `cursor` on.
    /// The cursor to go on with, 0 at the end. A series that exists throughout
    /// a scan is visited.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8])) -> u64 {
        self.reader.scan(cursor, count, visit)
    }

    /// `series` by their value of the label `name`, in the order of the values'
    /// bytes; inside a group they keep their order. A series that carries the
    /// label several times goes by its first value; one without it, or gone
    /// meanwhile, is in no group. Linear in the labels of the series.
    pub fn group_by(
        &self,
        series: Vec<SeriesRef>,
        name: &[u8],
    ) -> Vec<(Box<[u8]>, Vec<SeriesRef>)> {
        self.reader.group_by(series, name)
    }

    /// The series that pass all `matchers`, in the order of their keys' bytes.
    /// Without a matcher, all series. Exact for everything acknowledged before
    /// the call. Linear in the series found and the label values asked for.
    pub fn select(&self, matchers: &[Matcher]) -> Vec<SeriesRef> {
        self.reader.select(matchers)
    }

    /// The labels of a series, in the order the client gave them; `None` once
    /// it is gone.
    pub fn labels(&self, series: &SeriesRef) -> Option<Labels> {
        self.reader.labels(series)
    }

    /// Runs `work`, which reads about `samples` samples, giving it threads to
    /// share them with where that pays.
    pub fn spread<T: Send>(&self, samples: u64, work: impl FnOnce(Spread) -> T + Send) -> T {
        self.reader.spread(samples, work)
    }

    /// Evaluates `query` over each of `series` and reduces their rows to one
    /// row for each timestamp, in the order of the query. Series that are gone
    /// are passed over.
    ///
    /// # Errors
    /// `Corrupt`; `Invalid` for a query out of its ranges or with several
    /// aggregators, and for a reducer that does not reduce; `Limit` where the
    /// rows are more than fit in a reply.
    pub fn reduce(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        reducer: Aggregator,
        spread: Spread,
    ) -> Result<Columns> {
        self.reader.reduce(series, query, reducer, spread)
    }

    /// A view of the series under `key`.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn view(&self, key: &[u8], query: &RangeQuery) -> Result<View> {
        self.reader.view(key, query)
    }

    /// About how many samples `query` reads of all `series`. Of many series
    /// some speak for all.
    pub fn samples_about(&self, series: &[SeriesRef], query: &RangeQuery) -> u64 {
        self.reader.samples_about(series, query)
    }

    /// Views of those of `series` that are still there, in their order.
    pub fn views(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        with_labels: bool,
    ) -> Vec<SeriesView> {
        self.reader.views(series, query, with_labels)
    }

    /// The newest samples of those of `series` that are still there, in their
    /// order.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn latest(&self, series: Vec<SeriesRef>, with_labels: bool) -> Result<Vec<Latest>> {
        self.reader.latest(series, with_labels)
    }

    /// The key of some series, every one about as likely; `None` where there
    /// is none. Constant time unless most series ever created are gone.
    pub fn random_key(&self) -> Option<Box<[u8]>> {
        self.reader.random_key()
    }

    /// The label names of the series that pass all `matchers` and whose keys
    /// pass `may_see`, in the order of their bytes, each once. Without either,
    /// looks at no series.
    ///
    /// # Errors
    /// `Limit` where they take more than `bytes_max` bytes,
    /// [`Listed::EACH_BYTES`] for each and its own.
    pub fn label_names(
        &self,
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        bytes_max: usize,
    ) -> Result<Listed> {
        self.reader.label_names(matchers, may_see, bytes_max)
    }

    /// The values of the label `name` of the same series, in that order, too.
    ///
    /// # Errors
    /// Those of [`Db::label_names`].
    pub fn label_values(
        &self,
        name: &[u8],
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        bytes_max: usize,
    ) -> Result<Listed> {
        self.reader.label_values(name, matchers, may_see, bytes_max)
    }

    /// Which values of the label `name` pass `test`. Each is looked at once,
    /// however many series carry it.
    pub fn label_values_where(&self, name: &[u8], test: impl Fn(&[u8]) -> bool) -> Values {
        self.reader.label_values_where(name, test)
    }

    /// The rules of the series under `key`, in the order they were made.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn rules_of(&self, key: &[u8]) -> Result<Vec<RuleInfo>> {
        self.reader.rules_of(key)
    }

    /// The key of the series that the one under `key` is a destination of.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn source_of(&self, key: &[u8]) -> Result<Option<Arc<[u8]>>> {
        self.reader.source_of(key)
    }

    /// [`Db::last_sample`] as LATEST has it: of a rule's destination, the open
    /// bucket.
    ///
    /// # Errors
    /// As [`Db::last_sample`].
    pub fn last_sample_latest(&self, key: &[u8]) -> Result<Option<Sample>> {
        self.reader.last_sample_latest(key)
    }
}
