//! The row of a series in a series file: everything but its samples.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::window::Bucket;
use crate::format::expired_buckets::ExpiredBuckets;
use crate::format::rule::RuleSpec;
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::late_tally::LateTally;
use latewood_model::{MadeBy, SeriesId, SeriesOptions, Timestamp};
use std::sync::Arc;

/// One series as a series file keeps it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeriesRow {
    pub(crate) id: SeriesId,
    /// Its key; empty while `unnamed`.
    pub(crate) key: Arc<[u8]>,
    /// It is being built and has no key yet; see [`crate::db::write::copy`].
    pub(crate) unnamed: bool,
    /// Who made it.
    pub(crate) made_by: MadeBy,
    /// Its options, labels among them.
    pub(crate) options: SeriesOptions,
    /// Everything that the log says of this series in groups up to this sequence
    /// number is in the row or in blocks.
    pub(crate) position: u64,
    /// The timestamp of its newest sample, expired or not.
    pub(crate) newest: Option<Timestamp>,
    /// The value of its newest sample.
    pub(crate) last_value: Option<f64>,
    /// The newest timestamp of a base sample in blocks, deleted or not.
    pub(crate) flushed_last: Option<Timestamp>,
    /// Some value may be NaN.
    pub(crate) holds_nan: bool,
    /// What came late.
    pub(crate) late: LateTally,
    /// When it expires, milliseconds since the Unix epoch; above 0.
    pub(crate) expires_at_ms: Option<i64>,
    /// The rules it is the source of.
    pub(crate) source: Option<Box<SourceRow>>,
    /// The source of the rule that writes to it. Files of parked series say so; of an awake series
    /// the row of the source does.
    pub(crate) link: Option<SeriesId>,
}

impl SeriesRow {
    /// Refuses times that no series has, whatever the checksums say.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check(&self) -> Result<()> {
        let mut times = [self.newest, self.flushed_last].into_iter().flatten();
        times.try_for_each(|at| check_time(self.id, at))
    }

    /// The same of the row of a parked series. It says nothing that only an awake one can be: a start
    /// reads no rows of parked series, and could not know. When it expires the directory lists.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_parked(&self) -> Result<()> {
        let has_work = self.source.as_ref().is_some_and(|source| source.has_work());
        if has_work || self.unnamed {
            let what = format!("series {} is parked and cannot be", self.id.0);
            return Err(nonsense(&what));
        }
        self.check()
    }

    /// Whether it says of a series what `other` says, wherever both are in the log. The value of the newest
    /// sample may be known to one alone: blocks have it. So may be what came late.
    pub(crate) fn says_what(&self, other: &Self) -> bool {
        // A value may be NaN.
        let value = |row: &Self| row.last_value.map(f64::to_bits);
        let rest = |row: &Self| Self {
            position: 0,
            last_value: None,
            late: LateTally::default(),
            ..row.clone()
        };
        let values = value(self).zip(value(other));
        values.is_none_or(|(one, other)| one == other) && rest(self) == rest(other)
    }
}

/// Refuses a time of a sample that no series has.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn check_time(id: SeriesId, at: Timestamp) -> Result<()> {
    if at >= 0 {
        return Ok(());
    }
    Err(nonsense(&format!("series {} has a sample at {at}", id.0)))
}

#[cold]
fn nonsense(what: &str) -> Error {
    let text = format!("the series file makes no sense: {what}");
    Error::new(ErrorKind::Corrupt, text)
}

/// The rules of a source, and their pending work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceRow {
    /// In the order they were created.
    pub(crate) rules: Vec<RuleRow>,
    /// Dirty buckets near the newest samples.
    pub(crate) prompt: DirtyRow,
    /// Dirty buckets in the sealed part.
    pub(crate) late: DirtyRow,
    /// Dirty buckets that were being recomputed.
    pub(crate) in_flight: DirtyRow,
    /// Samples older than this may have been deleted as expired.
    pub(crate) lost_to: Timestamp,
    /// Number of dirty buckets that were skipped because samples of them are
    /// deleted.
    pub(crate) kept: u64,
}

impl SourceRow {
    /// Whether buckets are dirty or failed, or left of a history.
    pub(crate) fn has_work(&self) -> bool {
        let shared = [&self.prompt, &self.late, &self.in_flight];
        let own = self.rules.iter();
        let own = own.flat_map(|rule| [&rule.own, &rule.own_in_flight]);
        let has_spans = |rule: &RuleRow| !rule.failed.is_empty() || !rule.backfill.is_empty();
        !shared.into_iter().chain(own).all(DirtyRow::is_empty) || self.rules.iter().any(has_spans)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleRow {
    /// The series it writes to.
    pub(crate) destination: SeriesId,
    pub(crate) spec: RuleSpec,
    /// Older samples do not count.
    pub(crate) since: Timestamp,
    /// The bucket of the newest sample.
    pub(crate) open: Option<Bucket>,
    /// Dirty buckets of this rule alone.
    pub(crate) own: DirtyRow,
    /// Its dirty buckets that were being recomputed.
    pub(crate) own_in_flight: DirtyRow,
    /// The touched and the lost buckets; a row may omit them.
    pub(crate) expired: Option<ExpiredBuckets>,
    /// Spans of failed buckets, both ends included.
    pub(crate) failed: Vec<Bucket>,
    /// Spans of closed buckets of the history that are still to be computed.
    pub(crate) backfill: Vec<Bucket>,
}

/// Timestamps and spans whose buckets must be recomputed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirtyRow {
    /// Single timestamps, in any order.
    pub(crate) timestamps: Vec<Timestamp>,
    /// Spans, both ends included.
    pub(crate) spans: Vec<(Timestamp, Timestamp)>,
}

impl DirtyRow {
    fn is_empty(&self) -> bool {
        self.timestamps.is_empty() && self.spans.is_empty()
    }

    pub(super) fn put(&self, out: &mut Put) {
        out.number(self.timestamps.len() as u64);
        let mut before = 0;
        for &timestamp in &self.timestamps {
            out.step(before, timestamp);
            before = timestamp;
        }
        out.number(self.spans.len() as u64);
        for &(from, to) in &self.spans {
            out.step(before, from);
            out.step(from, to);
            before = from;
        }
    }

    pub(super) fn take(bytes: &mut Take<'_>) -> Option<Self> {
        let mut dirty = Self::default();
        let mut before = 0;
        for _ in 0..bytes.count()? {
            before = bytes.step(before)?;
            dirty.timestamps.push(before);
        }
        for _ in 0..bytes.count()? {
            before = bytes.step(before)?;
            dirty.spans.push((before, bytes.step(before)?));
        }
        Some(dirty)
    }
}
