//! The history of a source: the buckets that were closed when a rule with BACKFILL was made.
//!
//! They are computed in slices, each from start to end under one turn of the source: by the
//! background thread from the oldest on, and before a read of their rows. A RULE_HISTORY record
//! behind that of the rule says what there is to compute, a RULE_FILLED record behind the rows of a
//! slice takes it away. A slice that is computed twice does no harm, so a crash between the two
//! costs a slice. What is left is part of the row of a source.
//!
//! Samples of the history stay in memory while they are needed, also when they have expired
//! ([`Source::hold`]). Tested by `tests/db_rules/backfill.rs`.

use crate::base::window::{Bucket, Window};
use crate::format::expired_buckets::subtract;
use crate::series::Series;
use crate::series::rules::work::Work;
use crate::series::rules::{Rule, Source};
use latewood_model::{SeriesId, Timestamp};

/// Which part of a history is to be computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    /// Of the rule to this series; of any rule without.
    pub(crate) destination: Option<SeriesId>,
    /// The first and the last timestamp of the rows.
    pub(crate) rows: (Timestamp, Timestamp),
    /// The newest buckets first.
    pub(crate) from_end: bool,
    /// Samples that one slice reads, about; one bucket is never cut.
    pub(crate) samples_max: u64,
}

/// A part of the history, detached from its source.
pub(crate) struct Slice {
    pub(crate) work: Work,
    /// Its buckets.
    pub(crate) span: Bucket,
    /// All that was picked and is left.
    pub(crate) left: Bucket,
}

impl Slice {
    /// Whether nothing of what was picked is left behind it.
    pub(crate) fn is_last(&self) -> bool {
        self.span == self.left
    }
}

impl Rule {
    /// Has the buckets of the samples from `first` on, which may be older than the oldest one, to
    /// `newest` computed. Nothing has touched the rule before.
    fn backfill(&mut self, first: Timestamp, newest: Timestamp) {
        let window = self.window();
        let open = window.containing(newest);
        let begins = window.containing(first).first;
        self.open = Some(open);
        if begins < open.first {
            let closed = Bucket {
                first: begins,
                last: open.first - 1,
            };
            self.backfill = vec![closed];
            self.expired.touched = vec![closed];
        }
    }

    /// What is left of the history for rows of a span: from the first to the last bucket.
    pub(crate) fn history_of(&self, (from, to): (Timestamp, Timestamp)) -> Option<Bucket> {
        let (first, last) = (self.backfill.first()?, self.backfill.last()?);
        if from > to {
            return None;
        }
        let window = self.window();
        let rows = Bucket {
            first: window.containing(from.max(first.first)).first,
            last: window.containing(to.min(last.last)).last,
        };
        let met = |span: &&Bucket| span.first <= rows.last && rows.first <= span.last;
        let mut met = self.backfill.iter().filter(met);
        let oldest = met.next()?;
        let newest = met.next_back().unwrap_or(oldest);
        Some(Bucket {
            first: oldest.first.max(rows.first),
            last: newest.last.min(rows.last),
        })
    }
}

impl Source {
    /// Where the history of the rule to `destination` begins, whose oldest sample that is left is
    /// `first`: a bucket that begins before `floor` may lack samples, and its row, if there is one
    /// from before, may have them.
    pub(crate) fn first_whole(
        &self,
        destination: SeriesId,
        first: Timestamp,
        floor: Timestamp,
    ) -> Timestamp {
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.destination == destination);
        let bucket = rule.map(|rule| rule.window().containing(first));
        match bucket {
            // Time begins at 0: no sample before it has expired.
            Some(bucket) if floor > 0 && bucket.first < floor => bucket.end(),
            _ => first,
        }
    }

    /// Has the history computed for the rule to `destination`, which was just made.
    pub(crate) fn backfill(&mut self, destination: SeriesId, first: Timestamp, newest: Timestamp) {
        let mut rules = self.rules.iter_mut();
        if let Some(rule) = rules.find(|rule| rule.destination == destination) {
            rule.backfill(first, newest);
        }
        self.note_open();
    }

    /// The buckets of a slice are in the destination.
    pub(crate) fn filled(&mut self, destination: SeriesId, span: Bucket) {
        let mut rules = self.rules.iter_mut();
        if let Some(rule) = rules.find(|rule| rule.destination == destination) {
            subtract(&mut rule.backfill, &[span]);
            subtract(&mut rule.failed, &[span]);
        }
    }

    /// Whether some of a history is still to be computed.
    pub(crate) fn has_history(&self) -> bool {
        self.rules.iter().any(|rule| !rule.backfill.is_empty())
    }

    /// What is left of the history for rows of a span, of the rule to a destination or of any.
    pub(crate) fn history_of(
        &self,
        destination: Option<SeriesId>,
        rows: (Timestamp, Timestamp),
    ) -> Option<(&Rule, Bucket)> {
        let wanted = |rule: &&Rule| destination.is_none_or(|wanted| wanted == rule.destination);
        let mut rules = self.rules.iter().filter(wanted);
        rules.find_map(|rule| Some((rule, rule.history_of(rows)?)))
    }
}

impl Series {
    /// Whether some of the history of this source is still to be computed.
    pub(crate) fn has_history(&self) -> bool {
        self.rules().is_some_and(Source::has_history)
    }

    /// The next slice, if one is left. Samples before `floor` are gone.
    pub(crate) fn history_slice(&mut self, pick: &Pick, floor: Timestamp) -> Option<Slice> {
        let (rule, left) = self.rules()?.history_of(pick.destination, pick.rows)?;
        let rule = rule.light();
        let span = self.cut(rule.window(), left, pick);
        let mut dirty = vec![span];
        rule.expired.leave_alone(&mut dirty);
        let work = self.detach(vec![(rule, dirty)], floor);
        Some(Slice { work, span, left })
    }

    /// The buckets at an end of `left` with about as many samples as a slice may have.
    fn cut(&self, window: Window, left: Bucket, pick: &Pick) -> Bucket {
        // Those count in each span.
        let samples_max = pick.samples_max.saturating_add(self.unsealed() as u64);
        let mut span = left;
        while self.samples_about(span.first, span.last) > samples_max {
            let middle = window.containing(middle(span.first, span.last));
            let half = if pick.from_end {
                let first = middle.end();
                Bucket { first, ..span }
            } else {
                let last = middle.last.min(span.last);
                Bucket { last, ..span }
            };
            if half == span || half.first > half.last {
                break;
            }
            span = half;
        }
        span
    }
}

/// Rounded down, so that it is never the end of a longer span.
fn middle(first: Timestamp, last: Timestamp) -> Timestamp {
    (first & last) + ((first ^ last) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(first: i64, last: i64) -> Bucket {
        Bucket { first, last }
    }

    #[test]
    fn a_history_ends_before_the_open_bucket_and_shrinks_by_slices() {
        let mut source = Source::default();
        source.add(Rule::sample(10, 3));
        source.backfill(SeriesId(0), 15, 47);
        let left = |source: &Source, rows| {
            let left = source.history_of(None, rows);
            left.map(|(_, span)| span)
        };
        let all = (Timestamp::MIN, Timestamp::MAX);
        assert_eq!(source.rules()[0].open, Some(of(43, 52)));
        assert_eq!(left(&source, all), Some(of(13, 42)));
        assert_eq!(left(&source, (23, 23)), Some(of(23, 32)));
        assert_eq!(left(&source, (43, 99)), None);
        assert_eq!(left(&source, (9, 2)), None);
        source.filled(SeriesId(0), of(23, 32));
        assert_eq!(left(&source, (23, 30)), None);
        assert_eq!(left(&source, all), Some(of(13, 42)));
        source.filled(SeriesId(0), of(13, 22));
        source.filled(SeriesId(0), of(33, 42));
        assert!(!source.has_history());
    }

    #[test]
    fn a_history_of_the_open_bucket_alone_is_none() {
        let mut source = Source::default();
        source.add(Rule::sample(10, 0));
        source.backfill(SeriesId(0), 21, 27);
        assert!(!source.has_history());
        assert_eq!(source.rules()[0].open, Some(of(20, 29)));
    }

    #[test]
    fn the_middle_is_between_the_ends() {
        for (first, last) in [(0, 1), (-1, 0), (-4, -3), (i64::MIN, i64::MAX)] {
            let middle = middle(first, last);
            assert!(first <= middle && middle < last, "{first} {last}: {middle}");
        }
    }
}
