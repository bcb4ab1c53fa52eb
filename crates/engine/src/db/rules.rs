//! Compaction rules: creating and deleting them, and their open buckets.

use crate::base::error::Result;
use crate::db::Db;
use crate::format::rule::RuleSpec;
use crate::index::SeriesRef;
use crate::log::Position;
use crate::query::RangeQuery;
use crate::rules::backfill::Wanted;
use latewood_model::Sample;

impl Db {
    /// The open bucket of the rule that writes to the series under `key`, as the
    /// sample it would become if it closed now; the newest one where the source is
    /// the destination of a rule and has open buckets itself. `None` if no rule writes
    /// to the series, or no sample arrived since the rule was created.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn open_bucket(&self, key: &[u8]) -> Result<Option<Sample>> {
        self.rules.open_bucket_of(key)
    }

    /// Creates a rule: from now on, buckets of `source` are written as samples to
    /// `destination`. Buckets that closed before the first sample after the call
    /// are not computed.
    ///
    /// # Errors
    /// `NoSuchKey`; `Invalid` if a parameter is out of range, a rule between
    /// the two series is not allowed ([`crate::Defaults::chained_rules`]), it would make a
    /// circle or too long a chain, or somebody owns the destination; errors of the log; `Away`.
    pub fn create_rule(
        &self,
        source: &[u8],
        destination: &[u8],
        spec: RuleSpec,
    ) -> Result<Position> {
        self.core.check_not_owned(destination)?;
        self.rules.create_rule(source, destination, spec, false)
    }

    /// As [`Db::create_rule`], and the buckets that are closed already are computed too: in the
    /// background, and before they are read.
    ///
    /// # Errors
    /// Those of [`Db::create_rule`].
    pub fn create_rule_with_history(
        &self,
        source: &[u8],
        destination: &[u8],
        spec: RuleSpec,
    ) -> Result<Position> {
        self.core.check_not_owned(destination)?;
        self.rules.create_rule(source, destination, spec, true)
    }

    /// Computes what `query` needs of the history of rules that write to `series`, up to the
    /// deadline of this thread ([`crate::io::waiting::until`]): for callers that take views under
    /// a lock of their own. What could not be computed is an error of its view.
    pub fn prepare(&self, series: &[SeriesRef], query: &RangeQuery) {
        if self.rules.is_filling() {
            for one in series {
                self.rules.prepare(one.id, Wanted::of(query));
            }
        }
    }

    /// Computes a part of the history of some rule, as the background thread does. Returns whether
    /// more may be left.
    ///
    /// # Errors
    /// Errors of the log; `Away`.
    pub fn backfill_step(&self) -> Result<bool> {
        self.rules.fill_step()
    }

    /// Deletes a rule; the samples of the destination stay.
    ///
    /// # Errors
    /// `NoSuchKey` if the source does not exist, `NoSuchRule`, errors of the log.
    pub fn delete_rule(&self, source: &[u8], destination: &[u8]) -> Result<Position> {
        self.rules.delete_rule(source, destination)
    }
}
