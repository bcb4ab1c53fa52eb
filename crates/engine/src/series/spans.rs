//! Spans of time something was deleted from.
//!
//! Invariant: spans ascend, do not overlap and do not touch, so a look is a
//! binary search and a thousand deletions side by side are one span.

use latewood_model::Timestamp;

/// A set of timestamps as spans, both ends included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<(Timestamp, Timestamp)>);

impl Spans {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `from..=to`; nothing where `from` lies after `to`. Linear in the
    /// spans behind it.
    pub(crate) fn add(&mut self, from: Timestamp, to: Timestamp) {
        if from > to {
            return;
        }
        let start = self
            .0
            .partition_point(|span| span.1 < from.saturating_sub(1));
        let end = self
            .0
            .partition_point(|span| span.0 <= to.saturating_add(1));
        let mut joined = (from, to);
        if start < end {
            joined = (from.min(self.0[start].0), to.max(self.0[end - 1].1));
        }
        self.0.splice(start..end, [joined]);
    }

    /// Adds all spans of another set.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(from, to)| self.add(from, to));
    }

    /// Whether `timestamp` lies in one.
    pub(crate) fn covers(&self, timestamp: Timestamp) -> bool {
        self.covers_all(timestamp, timestamp)
    }

    /// Whether all of `from..=to` lies in one.
    pub(crate) fn covers_all(&self, from: Timestamp, to: Timestamp) -> bool {
        let place = self.0.partition_point(|span| span.1 < from);
        let span = self.0.get(place);
        span.is_some_and(|span| span.0 <= from && to <= span.1)
    }

    /// Whether any of `from..=to` lies in one.
    pub(crate) fn meets(&self, from: Timestamp, to: Timestamp) -> bool {
        self.meeting(from, to).next().is_some()
    }

    /// The spans that `from..=to` meets, whole, ascending. Logarithmic, and
    /// linear in them.
    pub(crate) fn meeting(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        let place = self.0.partition_point(|span| span.1 < from);
        let met = self.0[place..].iter().take_while(move |span| span.0 <= to);
        met.copied()
    }

    /// The spans, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        self.0.iter().copied()
    }

    /// Bytes of memory behind it.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<(Timestamp, Timestamp)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
