//! Spans of time, and those of one series that changed.
//!
//! Tested with [`super`].

use latewood_model::Timestamp;

/// Spans of a mark. The closest ones are joined where a series has more: one very late sample
/// beside others that are a little late is not joined with them.
const SPANS_MAX: usize = 4;

/// A span of time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Span {
    fn join(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        }
    }

    /// Milliseconds between the two; 0 if they meet.
    pub(crate) fn gap(self, other: Self) -> u64 {
        let later = self.from.max(other.from);
        let earlier = self.to.min(other.to);
        if later > earlier {
            later.abs_diff(earlier)
        } else {
            0
        }
    }
}

/// The spans of one series that changed, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    spans: [Span; SPANS_MAX],
    count: u8,
    /// The distance of the closest two when there were too many, in milliseconds: others that are as
    /// close are joined at once.
    reach: u64,
    /// The position in the log of the newest change.
    pub(crate) newest: u64,
}

impl Mark {
    pub(crate) fn new(span: Span, at: u64) -> Self {
        Self {
            spans: [span; SPANS_MAX],
            count: 1,
            reach: 1,
            newest: at,
        }
    }

    /// The spans, in no order.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans[..usize::from(self.count)]
    }

    /// One of them.
    pub(crate) fn first(&self) -> Span {
        self.spans[0]
    }

    /// Whether a span overlaps or touches one of them.
    pub(crate) fn meets(&self, span: Span) -> bool {
        self.spans().iter().any(|held| held.gap(span) <= 1)
    }

    /// Each span as a mark.
    pub(crate) fn apart(&self) -> impl Iterator<Item = Self> {
        self.spans()
            .iter()
            .map(|&span| Self::new(span, self.newest))
    }

    /// What of it is at or before `end`.
    pub(crate) fn up_to(&self, end: Timestamp) -> Option<Self> {
        let spans = self.spans().iter().filter(|span| span.from <= end);
        let mut spans = spans.map(|&Span { from, to }| Span {
            from,
            to: to.min(end),
        });
        let mut mark = Self::new(spans.next()?, self.newest);
        spans.for_each(|span| mark.add(span, self.newest));
        Some(mark)
    }

    /// Adds a span; joins the closest two if there are too many.
    #[inline]
    pub(crate) fn add(&mut self, span: Span, at: u64) {
        self.newest = self.newest.max(at);
        let held = &mut self.spans[..usize::from(self.count)];
        // Most samples follow the one before.
        let mut newest_first = held.iter_mut().rev();
        match newest_first.find(|held| held.gap(span) <= self.reach) {
            Some(met) => *met = met.join(span),
            None => self.add_apart(span),
        }
    }

    #[cold]
    fn add_apart(&mut self, span: Span) {
        if let Some(free) = self.spans.get_mut(usize::from(self.count)) {
            *free = span;
            self.count += 1;
        } else {
            self.join_closest(span);
        }
    }

    /// Joins the closest two of its spans and `span`.
    fn join_closest(&mut self, span: Span) {
        let mut all = [span; SPANS_MAX + 1];
        all[..SPANS_MAX].copy_from_slice(&self.spans);
        all.sort_unstable_by_key(|span| span.from);
        let gaps = (1..all.len()).map(|at| (all[at - 1].gap(all[at]), at));
        let (gap, closest) = gaps.min().unwrap_or((0, 1));
        all[closest - 1] = all[closest - 1].join(all[closest]);
        all.copy_within(closest + 1.., closest);
        self.spans.copy_from_slice(&all[..SPANS_MAX]);
        self.reach = gap.max(1);
    }

    /// Adds all that `other` has.
    pub(crate) fn add_all(&mut self, other: &Self) {
        let spans = other.spans().iter();
        spans.for_each(|&span| self.add(span, other.newest));
    }
}
