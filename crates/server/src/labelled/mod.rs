//! Series as readers see them that know labels and no keys.
//!
//! To such a reader a series is its set of labels. What Latewood keeps fits that
//! by these rules:
//! - a series without the label `__name__` shows its key as one;
//! - of a name that a series has twice, the first value is shown, and a matcher
//!   must pass it; one that a missing label passes (`!=`, mostly) must pass the
//!   others too;
//! - bytes that are no UTF-8 are shown as `\xff`, and matchers see that;
//! - series that would look the same are told apart by `__key__`, the key.
//!
//! Since matchers see nothing but labels, they pass all series that look the
//! same or none of them: so `__key__` does not depend on the query.
//!
//! Tested by `tests.rs`.

mod select;
#[cfg(test)]
mod tests;
mod views;

pub(crate) use select::select;
pub(crate) use views::{Reader, Views, raw};

use latewood_engine::{Db, SeriesRef};
use latewood_promql::labels::Labels;
use latewood_wire::selector::{Matcher, Test};
use latewood_wire::series_name::METRIC;
use std::borrow::Cow;
use std::fmt::Write;

/// The label that tells apart what would look the same.
pub(crate) const KEY: &str = "__key__";

/// A series and how it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The series.
    pub(crate) series: SeriesRef,
    /// Its labels.
    pub(crate) labels: Labels,
}

/// How a series with `labels` under `key` looks.
pub(crate) fn shown(labels: &latewood_model::Labels, key: &[u8]) -> Labels {
    // Most are in order and have a metric.
    let ready = Labels::from_packed(labels.as_bytes());
    if let Some(ready) = ready.filter(|ready| !ready.get_bytes(METRIC).is_empty()) {
        return ready;
    }
    let mut pairs: Vec<_> = labels.iter().map(|(n, v)| (text(n), text(v))).collect();
    // Stable, so that the first of a name stays the first.
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs.dedup_by(|later, first| later.0 == first.0);
    let (metric, key) = (text(METRIC), text(key));
    if let Err(at) = pairs.binary_search_by(|pair| pair.0.cmp(&metric)) {
        pairs.insert(at, (metric, key));
    }
    Labels::from_sorted(pairs.iter().map(|(name, value)| (&**name, &**value)))
}

/// How `series` look, in the order of their labels; those that went meanwhile
/// are left out, and what is there twice stays once.
///
/// Linear in their labels, but for sorting.
pub(crate) fn named(db: &Db, series: Vec<SeriesRef>) -> Vec<Named> {
    let look = |series: SeriesRef| {
        let labels = shown(&db.labels(&series)?, &series.key);
        Some(Named { series, labels })
    };
    let mut named: Vec<Named> = series.into_iter().filter_map(look).collect();
    sort(&mut named);
    named.dedup_by(|a, b| a.series.id == b.series.id);
    let mut collided = false;
    for same in named.chunk_by_mut(|a, b| a.labels == b.labels) {
        if same.len() > 1 {
            collided = true;
            for one in same {
                one.labels = one.labels.with(KEY, &text(&one.series.key));
            }
        }
    }
    if collided {
        sort(&mut named);
    }
    named
}

/// Leaves those that pass one of `selectors` as they are shown: [`select()`]
/// does not look at `__key__`, passes a series by any value of a name that it has
/// twice, and asks the values that a label had before it asks for the series,
/// which may have become more.
pub(crate) fn retain_matching(named: &mut Vec<Named>, selectors: &[Vec<Matcher>]) {
    let selectors: Vec<_> = selectors.iter().map(|one| on_shown(one)).collect();
    named.retain(|one| {
        let passes = |matcher: &Matcher| matcher.passes(one.labels.get_bytes(&matcher.name));
        selectors.iter().any(|matchers| matchers.iter().all(passes))
    });
}

fn sort(named: &mut [Named]) {
    // Mostly sorted already, in the order of keys, of which this sort makes use.
    named.sort_by(|a, b| {
        let by_labels = a.labels.cmp(&b.labels);
        by_labels.then_with(|| a.series.key.cmp(&b.series.key))
    });
}

/// Bytes as they are shown.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    let mut shown = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        shown.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown.into()
}

/// Whether bytes that are no UTF-8 may be shown as `shown`, too.
fn is_escaped(shown: &[u8]) -> bool {
    shown.windows(2).any(|pair| pair == b"\\x")
}

/// The same conditions on what is shown: a value that is no UTF-8 stands for how it is shown.
pub(crate) fn on_shown(matchers: &[Matcher]) -> Vec<Matcher> {
    let shown = |value: &[u8]| text(value).into_owned().into_bytes().into();
    let one = |matcher: &Matcher| {
        let mut matcher = matcher.clone();
        if let Test::Equal(value) | Test::NotEqual(value) = &mut matcher.test {
            *value = shown(value);
        }
        matcher
    };
    matchers.iter().map(one).collect()
}
