//! The rules of a series: those from it, and the one that writes to it.

use crate::base::error::{Error, ErrorKind, Result};
use crate::series::Series;
use crate::series::rules::{Links, Rule, Source};
use latewood_model::{SeriesId, Timestamp};

impl Links {
    /// Bytes of memory it holds, its own size included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let source = self.source.as_ref();
        size_of::<Self>() + source.map_or(0, |source| source.memory_bytes())
    }
}

impl Series {
    /// Refuses a deletion from `from` on if a bucket of a rule would then lack
    /// samples that have expired.
    pub(crate) fn check_rules_keep(&self, from: Timestamp) -> Result<()> {
        let floor = self.retention_floor();
        let Some(source) = self.rules() else {
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

    /// Whether it is part of a rule.
    #[inline]
    pub(crate) fn is_linked(&self) -> bool {
        self.links.is_some()
    }

    /// Its rules, if it is a source.
    pub(crate) fn rules(&self) -> Option<&Source> {
        self.links.as_deref()?.source.as_deref()
    }

    /// The destinations of these.
    pub(crate) fn destinations(&self) -> Vec<SeriesId> {
        let rules = self.rules().map_or(&[][..], Source::rules);
        rules.iter().map(|rule| rule.destination).collect()
    }

    /// The same, to change them.
    pub(crate) fn source_mut(&mut self) -> Option<&mut Source> {
        self.links.as_deref_mut()?.source.as_deref_mut()
    }

    pub(crate) fn source_mut_or_new(&mut self) -> &mut Source {
        let links = self.links.get_or_insert_default();
        links.source.get_or_insert_default()
    }

    /// Gives it the rules that a file has of it.
    pub(crate) fn set_rules(&mut self, source: Source) {
        *self.source_mut_or_new() = source;
    }

    pub(crate) fn remove_rule(&mut self, destination: SeriesId) {
        let Some(source) = self.source_mut() else {
            return;
        };
        source.remove(destination);
        if source.rules().is_empty() {
            self.change_links(|links| links.source = None);
        }
    }

    /// The source of the rule whose destination it is.
    pub(crate) fn source(&self) -> Option<SeriesId> {
        self.links.as_deref()?.link
    }

    pub(in crate::series) fn set_link(&mut self, source: Option<SeriesId>) {
        self.change_links(|links| links.link = source);
    }

    fn change_links(&mut self, change: impl FnOnce(&mut Links)) {
        let mut links = self.links.take().unwrap_or_default();
        change(&mut links);
        self.links = Some(links).filter(|links| links.source.is_some() || links.link.is_some());
    }
}
