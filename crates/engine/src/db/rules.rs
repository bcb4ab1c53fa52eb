//! The rules side.

use crate::base::error::Result;
use crate::db::Db;
use crate::format::rule::RuleSpec;
use crate::log::Position;
use latewood_model::Sample;

impl Db {
    /// The open bucket of the rule to the series under `key`, as the sample it
    /// would be if it closed now. `None` where there is no such rule, or no
    /// sample came in since it was made.
    ///
    /// # Errors
    /// `NoSuchKey`, `Corrupt`.
    pub fn open_bucket(&self, key: &[u8]) -> Result<Option<Sample>> {
        self.parts.rules.open_bucket_of(key)
    }

    /// Keeps buckets of `source` as samples of `destination` from now on.
    /// Buckets that are full already, and those the next sample is past, are
    /// not made up for.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` for a rule out of its ranges or between series
    /// that cannot have one, and those of the log.
    pub fn create_rule(
        &self,
        source: &[u8],
        destination: &[u8],
        spec: RuleSpec,
    ) -> Result<Position> {
        self.parts.rules.create_rule(source, destination, spec)
    }

    /// Ends a rule; what the destination holds stays.
    ///
    /// # Errors
    /// `NoSuchKey` where there is no source, `NoSuchRule`, and those of the log.
    pub fn delete_rule(&self, source: &[u8], destination: &[u8]) -> Result<Position> {
        self.parts.rules.delete_rule(source, destination)
    }
}
