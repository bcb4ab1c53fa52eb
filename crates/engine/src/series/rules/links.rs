//! The rules of a series: whether it is a source, a destination or neither.

use crate::base::error::{Error, ErrorKind, Result};
use crate::series::Series;
use crate::series::rules::{Links, Rule, Source};
use latewood_model::{SeriesId, Timestamp};

impl Series {
    /// Refuses a deletion from `from` on if a bucket of a rule would then lack
    /// samples that have expired.
    pub(crate) fn check_rules_keep(&self, from: Timestamp) -> Result<()> {
        let floor = self.retention_floor();
        let Some(Links::Source(source)) = self.links() else {
            return Ok(());
        };
        let begins = |rule: &Rule| rule.window().containing(from).first;
        // Time begins at 0: no sample before it has expired.
        if floor > 0 && source.rules().iter().any(|rule| begins(rule) < floor) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "When a series has compactions, deleting samples or compaction buckets \
                 beyond the series retention period is not possible",
            ));
        }
        Ok(())
    }

    /// The source of the rule whose destination this series is.
    pub(crate) fn source(&self) -> Option<SeriesId> {
        match self.links() {
            Some(Links::Destination(link)) => Some(link.source),
            _ => None,
        }
    }

    pub(crate) fn source_mut_or_new(&mut self) -> &mut Source {
        if self.source_mut().is_none() {
            self.set_links(Some(Links::Source(Box::default())));
        }
        self.source_mut().expect("it was just set")
    }

    pub(crate) fn remove_rule(&mut self, destination: SeriesId) {
        if let Some(source) = self.source_mut() {
            source.remove(destination);
            if source.rules().is_empty() {
                self.set_links(None);
            }
        }
    }
}
