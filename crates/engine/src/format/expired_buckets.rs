//! Which buckets of a rule may have rows in the destination, and which of these can
//! no longer be recomputed.
//!
//! A bucket is *touched* once one of its samples arrives or changes after the rule
//! is created. If the limit of a retention moves back (the retention becomes
//! longer, or the newest samples are deleted), the expired samples are deleted for
//! good, since readers saw them disappear. The touched buckets that lose samples
//! this way are *lost*: their rows never change again. All other buckets follow the
//! source, also those from before the old limit, because none of their samples are
//! missing.
//!
//! Both kinds are kept as spans of whole buckets. A source with regular samples has
//! one span. If a source has many gaps, old gaps are filled in, and the buckets
//! inside count as touched.
//!
//! Like dirty buckets, this state follows from the source's records in the log. If
//! late dirty buckets stay while others are taken, a replay may count a bucket as
//! touched that a later deletion emptied.

use crate::base::window::{Bucket, Window, join_spans};
use latewood_model::Timestamp;

/// Spans of each kind that are kept apart.
const SPANS_MAX: usize = 64;

/// The expired buckets of one rule. The spans of each kind ascend and do not meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExpiredBuckets {
    /// Buckets with samples that arrived or changed, without the lost ones.
    pub(crate) touched: Vec<Bucket>,
    /// Touched buckets with samples that were deleted as expired.
    pub(crate) lost: Vec<Bucket>,
}

impl ExpiredBuckets {
    /// Records that samples at these times arrived or changed.
    pub(crate) fn touch(&mut self, window: Window, times: impl Iterator<Item = Timestamp>) {
        let known = self.touched.len();
        for at in times {
            let newest = self.touched.last();
            if !holds(&self.touched[..known], at) && !newest.is_some_and(|span| span.contains(at)) {
                self.touched.push(window.containing(at));
            }
        }
        if self.touched.len() > known {
            tidy(&mut self.touched);
        }
    }

    /// Records that `from..=to` was deleted, and the newest sample that is left:
    /// buckets wholly inside the span or newer have no samples.
    pub(crate) fn deleted(
        &mut self,
        window: Window,
        from: Timestamp,
        to: Timestamp,
        newest: Option<Timestamp>,
    ) {
        let Some(newest) = newest else {
            self.touched.clear();
            return;
        };
        let edges = [window.containing(from), window.containing(to)];
        self.touched.extend(edges);
        tidy(&mut self.touched);
        let first = if edges[0].first == from {
            from
        } else {
            edges[0].end()
        };
        let last = if edges[1].last == to {
            to
        } else {
            edges[1].first.saturating_sub(1)
        };
        if first <= last {
            subtract(&mut self.touched, &[Bucket { first, last }]);
        }
        let last = window.containing(newest).last;
        self.touched.retain_mut(|span| {
            span.last = span.last.min(last);
            span.first <= last
        });
        tidy(&mut self.touched);
    }

    /// Records that all samples older than `floor` are gone. The bucket of the
    /// newest sample is still open: its row is computed from the samples that are
    /// left.
    pub(crate) fn lose(&mut self, window: Window, floor: Timestamp, newest: Timestamp) {
        let reached = window.containing(floor.saturating_sub(1)).last;
        let closed = window.containing(newest).first.saturating_sub(1);
        let gone = Bucket {
            first: Timestamp::MIN,
            last: reached.min(closed),
        };
        let taken = self.touched.iter().filter(|span| span.first <= gone.last);
        self.lost.extend(taken.map(|span| Bucket {
            first: span.first,
            last: span.last.min(gone.last),
        }));
        tidy(&mut self.lost);
        subtract(&mut self.touched, &[gone]);
    }

    /// Whether the bucket of `at` is lost.
    pub(crate) fn is_lost(&self, at: Timestamp) -> bool {
        holds(&self.lost, at)
    }

    /// Removes lost buckets from `dirty`; returns whether there were any.
    pub(crate) fn leave_alone(&self, dirty: &mut Vec<Bucket>) -> bool {
        if self.lost.is_empty() {
            return false;
        }
        let whole = dirty.clone();
        subtract(dirty, &self.lost);
        *dirty != whole
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Bucket>() * (self.touched.capacity() + self.lost.capacity())
    }
}

/// Whether one of `spans`, which ascend without meeting, holds `at`.
pub(crate) fn holds(spans: &[Bucket], at: Timestamp) -> bool {
    let behind = spans.partition_point(|span| span.first <= at);
    behind > 0 && spans[behind - 1].contains(at)
}

/// Joins spans that meet, and the oldest spans if there are too many.
pub(crate) fn tidy(spans: &mut Vec<Bucket>) {
    join_spans(spans);
    if let Some(excess) = spans.len().checked_sub(SPANS_MAX) {
        spans[excess].first = spans[0].first;
        spans.drain(..excess);
    }
    // Many dirty buckets at once are many spans before they are joined.
    spans.shrink_to(SPANS_MAX);
}

/// Removes the times in `taken` from `spans`; both ascend.
pub(crate) fn subtract(spans: &mut Vec<Bucket>, taken: &[Bucket]) {
    if taken.is_empty() {
        return;
    }
    let mut left = Vec::with_capacity(spans.len());
    for span in spans.iter() {
        let mut first = Some(span.first);
        let met = taken.partition_point(|taken| taken.last < span.first);
        let met = taken[met..].iter();
        for taken in met.take_while(|taken| taken.first <= span.last) {
            if let Some(first) = first.filter(|&first| first < taken.first) {
                let last = taken.first - 1;
                left.push(Bucket { first, last });
            }
            first = (taken.last < span.last).then(|| taken.end());
        }
        if let Some(first) = first {
            left.push(Bucket { first, ..*span });
        }
    }
    *spans = left;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spans: &[(i64, i64)]) -> Vec<Bucket> {
        let bucket = |&(first, last)| Bucket { first, last };
        spans.iter().map(bucket).collect()
    }

    fn touched(times: &[i64]) -> ExpiredBuckets {
        let mut expired = ExpiredBuckets::default();
        expired.touch(Window::grid(10, 0), times.iter().copied());
        expired
    }

    #[test]
    fn buckets_that_meet_are_one_span() {
        let mut expired = touched(&[35, 12, 17, 3, 60]);
        assert_eq!(expired.touched, of(&[(0, 19), (30, 39), (60, 69)]));
        expired.touch(Window::grid(10, 0), [5, 61, 20].into_iter());
        assert_eq!(expired.touched, of(&[(0, 39), (60, 69)]));
    }

    #[test]
    fn a_deletion_leaves_the_buckets_at_its_ends() {
        let window = Window::grid(10, 0);
        let mut expired = touched(&[0, 10, 20, 30, 40, 50]);
        expired.deleted(window, 12, 39, Some(50));
        assert_eq!(expired.touched, of(&[(0, 19), (40, 59)]));
        expired.deleted(window, 45, i64::MAX, Some(44));
        assert_eq!(expired.touched, of(&[(0, 19), (40, 49)]));
        expired.deleted(window, 0, i64::MAX, None);
        assert_eq!(expired.touched, []);
    }

    #[test]
    fn what_expired_is_lost_but_for_holes_and_the_open_bucket() {
        let window = Window::grid(10, 0);
        let mut expired = touched(&[0, 10, 40, 50, 60]);
        expired.lose(window, 45, 60);
        assert_eq!(expired.lost, of(&[(0, 19), (40, 49)]));
        assert_eq!(expired.touched, of(&[(50, 69)]));
        assert!(expired.is_lost(19) && !expired.is_lost(20) && !expired.is_lost(50));
        expired.lose(window, 65, 67);
        assert_eq!(expired.lost, of(&[(0, 19), (40, 59)]), "60 is open");
        let mut dirty = of(&[(10, 29), (50, i64::MAX)]);
        assert!(expired.leave_alone(&mut dirty));
        assert_eq!(dirty, of(&[(20, 29), (60, i64::MAX)]));
        assert!(!expired.leave_alone(&mut dirty));
    }

    #[test]
    fn holes_of_long_ago_are_filled_in() {
        let times: Vec<i64> = (0..100).map(|hole| hole * 20).collect();
        let expired = touched(&times);
        assert_eq!(expired.touched.len(), SPANS_MAX);
        assert_eq!(
            expired.touched[0],
            Bucket {
                first: 0,
                last: 729
            }
        );
        let newest = Bucket {
            first: 1980,
            last: 1989,
        };
        assert_eq!(expired.touched.last(), Some(&newest));
        assert!(expired.memory_bytes() <= SPANS_MAX * size_of::<Bucket>());
    }
}
