//! What a result says beside its values: warnings and information, with positions.
//!
//! Texts are those of Prometheus, since clients show and match them. The same text is kept once,
//! with the position at which Prometheus adds it last: that of the node evaluated last. Nodes are
//! evaluated children first and left before right, so that this is the one that ends last and,
//! among those, starts first. What was raised in histograms is added up instead.
//!
//! Tested here and by the differential test.

use crate::span::{self, Span};
use crate::{calendar, number};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How serious an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The result is probably not what was meant.
    Warning,
    /// The result may not be what was meant.
    Info,
}

/// One annotation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Annotation {
    /// Warning or information.
    pub level: Level,
    /// The text without its position, with its prefix (`PromQL warning: ...`).
    pub text: String,
    /// First and last byte of what it is about.
    pub at: (usize, usize),
}

impl Annotation {
    /// The text with the line and column of what it is about in `query`: `... (1:5)`.
    pub fn shown(&self, query: &str) -> String {
        let (text, start) = (&self.text, self.at.0);
        format!("{text} ({})", span::place(query, start))
    }
}

/// Texts of a query: more than a warning at each step of a range. The first in their order stay.
const TEXTS_MAX: usize = 16_384;

/// The annotations of a query, each once.
#[derive(Clone, Debug, Default)]
pub struct Annotations(BTreeMap<(Level, String), Note>);

/// Where an annotation stands, and the node that adds it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// What it is about.
    pub span: Span,
    /// The node: that one, or the one of which it is an argument.
    pub by: Span,
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Self { span, by: span }
    }
}

#[derive(Clone, Debug)]
struct Note {
    place: Place,
    raised: Option<Raised>,
}

/// Counts of buckets of histograms that were raised.
#[derive(Clone, Debug)]
pub(crate) struct Raised {
    /// Lowest and highest bound.
    pub(crate) bounds: (f64, f64),
    /// The most that a count was below its predecessor.
    pub(crate) by: f64,
    /// First and last time, milliseconds.
    pub(crate) times_ms: (i64, i64),
    /// How many histograms at how many steps.
    pub(crate) count: usize,
}

impl Annotations {
    /// Adds a warning; `text` without its prefix.
    pub fn warn(&mut self, text: impl std::fmt::Display, place: impl Into<Place>) {
        let (place, raised) = (place.into(), None);
        let text = format!("PromQL warning: {text}");
        self.add((Level::Warning, text), Note { place, raised });
    }

    /// Adds information; `text` without its prefix.
    pub fn info(&mut self, text: impl std::fmt::Display, place: impl Into<Place>) {
        let (place, raised) = (place.into(), None);
        let text = format!("PromQL info: {text}");
        self.add((Level::Info, text), Note { place, raised });
    }

    /// Adds that buckets of a histogram were raised; ` for metric name "..."` or nothing in `of`.
    pub(crate) fn info_raised(&mut self, of: &str, span: Span, raised: Raised) {
        let text = format!(
            "PromQL info: input to histogram_quantile needed to be fixed for monotonicity (see \
             https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)\
             {of}"
        );
        let (place, raised) = (span.into(), Some(raised));
        self.add((Level::Info, text), Note { place, raised });
    }

    fn add(&mut self, key: (Level, String), note: Note) {
        match self.0.entry(key) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(note);
            }
            std::collections::btree_map::Entry::Occupied(mut held) => held.get_mut().merge(note),
        }
        if self.0.len() > TEXTS_MAX {
            self.0.pop_last();
        }
    }

    /// Takes in those of another.
    pub fn merge(&mut self, other: Self) {
        for (key, note) in other.0 {
            self.add(key, note);
        }
    }

    /// All of them, warnings first.
    pub fn iter(&self) -> impl Iterator<Item = Annotation> {
        self.0.iter().map(|((level, text), note)| Annotation {
            level: *level,
            text: match &note.raised {
                Some(raised) => format!("{text}, {raised}"),
                None => text.clone(),
            },
            at: (note.place.span.start, note.place.span.end),
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Note {
    fn merge(&mut self, other: Self) {
        let order = |place: Place| (place.by.end, Reverse(place.by.start), place.span.start);
        let is_later = |a: Place, b: Place| order(a) > order(b);
        match (&mut self.raised, other.raised) {
            (Some(raised), Some(other_raised)) => {
                raised.merge(&other_raised);
                // Of these, the first position stays.
                if is_later(self.place, other.place) {
                    self.place = other.place;
                }
            }
            _ if is_later(other.place, self.place) => self.place = other.place,
            _ => {}
        }
    }
}

impl Raised {
    fn merge(&mut self, other: &Self) {
        let (min, max) = self.bounds;
        self.bounds = (min.min(other.bounds.0), max.max(other.bounds.1));
        self.by = self.by.max(other.by);
        let (first, last) = self.times_ms;
        self.times_ms = (first.min(other.times_ms.0), last.max(other.times_ms.1));
        self.count += other.count;
    }
}

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "from buckets {} to {}, with a max diff of {}, over {} samples from {} to {}",
            number::general(self.bounds.0),
            number::general(self.bounds.1),
            number::general_to(self.by, 2),
            self.count,
            calendar::rfc3339(self.times_ms.0 / 1000),
            calendar::rfc3339(self.times_ms.1 / 1000),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    #[test]
    fn texts_do_not_grow_without_end() {
        let mut annotations = Annotations::default();
        for number in (0..TEXTS_MAX * 2).rev() {
            annotations.info(number, at(0, 1));
            annotations.warn(format!("{number:06}"), at(0, 1));
        }
        assert_eq!(annotations.iter().count(), TEXTS_MAX);
        // The first ones, in whatever order they came.
        let last = annotations.iter().last().expect("it is not empty");
        let text = format!("PromQL warning: {:06}", TEXTS_MAX - 1);
        assert_eq!((last.level, last.text), (Level::Warning, text));
    }

    #[test]
    fn a_text_is_kept_once_where_it_was_evaluated_last() {
        let mut annotations = Annotations::default();
        annotations.warn("w", at(5, 9));
        annotations.warn("w", at(1, 4));
        annotations.warn("w", at(2, 9));
        annotations.info("w", at(1, 2));
        annotations.warn("v", at(5, 6));
        let (span, by) = (at(2, 3), at(0, 7));
        annotations.warn("v", Place { span, by });
        let found: Vec<_> = annotations
            .iter()
            .map(|found| (found.text, found.at))
            .collect();
        let expected = [
            ("PromQL warning: v", (2, 3)),
            ("PromQL warning: w", (2, 9)),
            ("PromQL info: w", (1, 2)),
        ];
        assert_eq!(found, expected.map(|(text, at)| (text.to_owned(), at)));
    }

    #[test]
    fn what_was_raised_is_added_up() {
        let mut annotations = Annotations::default();
        for (bound, by, time_ms) in [(0.5, 2.0, 1_000), (2.5e7, 12.34, -1_000)] {
            let raised = Raised {
                bounds: (bound, bound),
                by,
                times_ms: (time_ms, time_ms),
                count: 2,
            };
            annotations.info_raised(" for metric name \"x\"", at(1, 2), raised);
        }
        let text = annotations.iter().next().map(|found| found.text);
        let expected = "PromQL info: input to histogram_quantile needed to be fixed for \
            monotonicity (see \
            https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile) \
            for metric name \"x\", from buckets 0.5 to 2.5e+07, with a max diff of 12, over 4 \
            samples from 1969-12-31T23:59:59Z to 1970-01-01T00:00:01Z";
        assert_eq!(text.as_deref(), Some(expected));
    }
}
