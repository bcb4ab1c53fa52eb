//! Compaction rules: creating and deleting them, and their open buckets.

use crate::base::error::Result;
use crate::db::Db;
use crate::format::rule::RuleSpec;
use crate::log::Position;
use latewood_model::Sample;

impl Db {
    /// The open bucket of the rule that writes to the series under `key`, as the
    /// sample it would become if it closed now. `None` if no rule writes to the
    /// series, or no sample arrived since the rule was created.
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
    /// `NoSuchKey`; `Invalid` if a parameter is out of range or a rule between
    /// the two series is not allowed; errors of the log.
    pub fn create_rule(
        &self,
        source: &[u8],
        destination: &[u8],
        spec: RuleSpec,
    ) -> Result<Position> {
        self.rules.create_rule(source, destination, spec)
    }

    /// Deletes a rule; the samples of the destination stay.
    ///
    /// # Errors
    /// `NoSuchKey` if the source does not exist, `NoSuchRule`, errors of the log.
    pub fn delete_rule(&self, source: &[u8], destination: &[u8]) -> Result<Position> {
        self.rules.delete_rule(source, destination)
    }
}
