//! The parts of a source whose buckets must be recomputed.
//!
//! A late sample adds its timestamp, 8 bytes, and nothing else; its buckets are
//! determined when the timestamps are taken. Timestamps in the same bucket are
//! reduced to one each time their number has doubled.

use crate::base::window::{Bucket, Window};
use crate::series::rules::Rule;
use latewood_model::Timestamp;

/// Timestamps below which none are removed as duplicates.
const DEDUP_MIN: usize = 4096;

/// Timestamps and spans whose buckets must be recomputed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirtyBuckets {
    pub(crate) timestamps: Vec<Timestamp>,
    /// Spans of deletions, both ends included.
    pub(crate) spans: Vec<(Timestamp, Timestamp)>,
    /// Timestamps left when duplicates were last removed.
    pub(crate) deduped_len: usize,
    pub(crate) oldest: Option<Timestamp>,
}

impl DirtyBuckets {
    pub(crate) fn is_empty(&self) -> bool {
        self.timestamps.is_empty() && self.spans.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.timestamps.len() + self.spans.len()
    }

    pub(crate) fn push(&mut self, timestamp: Timestamp) {
        self.timestamps.push(timestamp);
        self.note_oldest(timestamp);
    }

    pub(crate) fn push_span(&mut self, from: Timestamp, to: Timestamp) {
        self.spans.push((from, to));
        self.note_oldest(from);
    }

    #[inline]
    fn note_oldest(&mut self, timestamp: Timestamp) {
        if self.oldest.is_none_or(|oldest| timestamp < oldest) {
            self.oldest = Some(timestamp);
        }
    }

    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.oldest
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        self.timestamps.append(&mut other.timestamps);
        self.spans.append(&mut other.spans);
        if let Some(oldest) = other.oldest {
            self.note_oldest(oldest);
        }
        *other = Self::default();
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.timestamps.extend_from_slice(&other.timestamps);
        self.spans.extend_from_slice(&other.spans);
        if let Some(oldest) = other.oldest {
            self.note_oldest(oldest);
        }
    }

    /// Whether duplicates should be removed.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.timestamps.len() >= (2 * self.deduped_len).max(DEDUP_MIN)
    }

    /// Keeps one timestamp of those that are in the same bucket of every rule.
    pub(crate) fn dedup(&mut self, rules: &[Rule]) {
        self.timestamps.sort_unstable();
        self.timestamps.dedup_by(|later, kept| {
            let same = |rule: &Rule| rule.window().containing(*kept).contains(*later);
            rules.iter().all(same)
        });
        self.deduped_len = self.timestamps.len();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Timestamp>() * (self.timestamps.capacity() + 2 * self.spans.capacity())
    }

    /// The dirty buckets of `window`. Timestamps from `open` on are skipped: their
    /// bucket becomes dirty when it closes.
    pub(crate) fn spans(&self, window: Window, open: Timestamp, out: &mut Vec<Bucket>) {
        let closed = self.timestamps.iter().filter(|&&at| at < open);
        out.extend(closed.map(|&at| window.containing(at)));
        out.extend(self.spans.iter().map(|&(from, to)| Bucket {
            first: window.containing(from).first,
            last: window.containing(to).last,
        }));
    }

    pub(crate) fn touches(&self, bucket: Bucket) -> bool {
        let spans = self.spans.iter();
        self.timestamps.iter().any(|&at| bucket.contains(at))
            || spans
                .into_iter()
                .any(|&(from, to)| from <= bucket.last && to >= bucket.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::window::join_spans;

    #[test]
    fn marks_of_one_bucket_become_one() {
        let rules = [Rule::sample(10, 0), Rule::sample(15, 0)];
        let mut dirty = DirtyBuckets::default();
        for at in [31, 3, 7, 11, 12, 16, 30, 29, 31] {
            dirty.push(at);
        }
        dirty.dedup(&rules);
        assert_eq!(dirty.timestamps, [3, 11, 16, 29, 30]);
        let mut spans = Vec::new();
        dirty.spans(rules[0].window(), 30, &mut spans);
        join_spans(&mut spans);
        assert_eq!(spans, [Bucket { first: 0, last: 29 }]);
    }

    #[test]
    fn marks_that_are_never_worked_off_stay_few() {
        let mut source = crate::series::rules::Source::default();
        source.add(Rule::sample(10, 0));
        for round in 0..1_000 {
            for at in 0..200 {
                source.touched(at + round % 7, false);
            }
            source.take(crate::series::rules::Take::Prompt, Some(1_000));
        }
        assert!(source.has_work() && source.memory_bytes() < 256 * 1024);
    }

    #[test]
    fn spans_join_where_they_meet() {
        let of = |first, last| Bucket { first, last };
        let mut spans = vec![of(20, 29), of(0, 9), of(30, 39), of(60, 69), of(5, 6)];
        join_spans(&mut spans);
        assert_eq!(spans, [of(0, 9), of(20, 39), of(60, 69)]);
        let mut ends = vec![of(i64::MIN, i64::MAX), of(i64::MAX, i64::MAX)];
        join_spans(&mut ends);
        assert_eq!(ends.len(), 1);
    }
}
