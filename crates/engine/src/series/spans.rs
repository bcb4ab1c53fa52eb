//! A set of time spans, for deletions.
//!
//! Invariant: spans do not overlap and do not touch, so a lookup is one search, and
//! a thousand adjacent deletions are one span. The set is a tree, since a series
//! may have as many spans as samples, in any order. Tested below against a naive
//! set.

use latewood_model::Timestamp;
use std::collections::BTreeMap;

/// Estimated bytes of a span in a tree whose nodes are two thirds full.
const SPAN_BYTES: usize = 32;

/// A set of timestamps as spans, both ends included: first to last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(BTreeMap<Timestamp, Timestamp>);

impl Spans {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `from..=to`; no effect if `from` is after `to`. Amortised logarithmic.
    pub(crate) fn add(&mut self, from: Timestamp, to: Timestamp) {
        if from > to {
            return;
        }
        let mut joined = (from, to);
        let before = self.0.range(..from).next_back();
        if let Some((&first, &last)) = before
            && last >= from.saturating_sub(1)
        {
            joined = (first, last.max(to));
        }
        let reach = to.saturating_add(1);
        while let Some((&first, &last)) = self.0.range(from..=reach).next() {
            self.0.remove(&first);
            joined.1 = joined.1.max(last);
        }
        self.0.insert(joined.0, joined.1);
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(from, to)| self.add(from, to));
    }

    /// Whether a span contains `timestamp`.
    pub(crate) fn covers(&self, timestamp: Timestamp) -> bool {
        self.covers_all(timestamp, timestamp)
    }

    /// Whether one span contains all of `from..=to`.
    pub(crate) fn covers_all(&self, from: Timestamp, to: Timestamp) -> bool {
        let span = self.0.range(..=from).next_back();
        span.is_some_and(|(_, last)| to <= *last)
    }

    /// Whether a span intersects `from..=to`.
    pub(crate) fn meets(&self, from: Timestamp, to: Timestamp) -> bool {
        self.meeting(from, to).next().is_some()
    }

    /// The spans that intersect `from..=to`, whole, ascending. Logarithmic, and
    /// linear in them.
    pub(crate) fn meeting(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        let before = self.0.range(..from).next_back();
        let before = before.filter(|(_, last)| from <= **last);
        let inside = self.0.range(from..).take_while(move |span| *span.0 <= to);
        before.into_iter().chain(inside).map(own)
    }

    /// The spans that intersect `from..=to`, whole, as a set.
    pub(crate) fn met(&self, from: Timestamp, to: Timestamp) -> Self {
        Self(self.meeting(from, to).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        self.0.iter().map(own)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.len() * SPAN_BYTES
    }
}

fn own((first, last): (&Timestamp, &Timestamp)) -> (Timestamp, Timestamp) {
    (*first, *last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_are_a_set(
            begin in prop_oneof![Just(i64::MIN), Just(-50), Just(i64::MAX - 99)],
            added in prop::collection::vec((0i64..100, 0i64..12), 0..40),
            asked in prop::collection::vec((0i64..100, 0i64..100), 20),
        ) {
            let (mut spans, mut naive) = (Spans::default(), [false; 100]);
            for (from, len) in added {
                let to = (from + len).min(99);
                spans.add(begin + from, begin + to);
                naive[from as usize..=to as usize].fill(true);
            }
            let mut last = None;
            for (from, to) in spans.iter() {
                prop_assert!(from <= to && last.is_none_or(|last| last < from - 1));
                last = Some(to);
            }
            for (one, other) in asked {
                let (from, to) = (one.min(other), one.max(other));
                let wanted = &naive[from as usize..=to as usize];
                let (from, to) = (begin + from, begin + to);
                prop_assert_eq!(spans.meets(from, to), wanted.contains(&true));
                prop_assert_eq!(spans.covers_all(from, to), !wanted.contains(&false));
                let met = spans.met(from, to);
                for (at, held) in (from..=to).zip(wanted) {
                    prop_assert_eq!(spans.covers(at), *held);
                    prop_assert_eq!(met.covers(at), *held);
                }
                let all = spans.iter().filter(|span| span.0 <= to && from <= span.1);
                prop_assert!(met.iter().eq(all));
            }
        }
    }

    #[test]
    fn many_spans_come_in_any_order() {
        // If each addition moved the spans after it, the additions would take minutes
        // in total.
        let mut spans = Spans::default();
        for at in (0..1_000_000).rev() {
            spans.add(2 * at, 2 * at);
        }
        assert_eq!(spans.iter().count(), 1_000_000);
        assert_eq!(spans.met(101, 999).iter().count(), 449);
        spans.add(0, i64::MAX);
        assert!(spans.iter().eq([(0, i64::MAX)]));
    }

    #[test]
    fn spans_join_where_they_meet() {
        let mut spans = Spans::default();
        for (from, to) in [(10, 20), (40, 50), (30, 29), (i64::MAX - 1, i64::MAX)] {
            spans.add(from, to);
        }
        spans.add(21, 25);
        spans.add(48, 60);
        let all: Vec<_> = spans.iter().collect();
        assert_eq!(all, [(10, 25), (40, 60), (i64::MAX - 1, i64::MAX)]);
        assert!(spans.covers(25) && !spans.covers(26) && spans.covers(i64::MAX));
        assert!(spans.meets(26, 40) && !spans.meets(26, 39));
        assert!(spans.covers_all(41, 60) && !spans.covers_all(39, 41));
        spans.add(i64::MIN, 100);
        let all: Vec<_> = spans.iter().collect();
        assert_eq!(all, [(i64::MIN, 100), (i64::MAX - 1, i64::MAX)]);
    }
}
