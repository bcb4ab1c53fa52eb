//! Series as readers see them that know labels and no keys.
//!
//! To such a reader a series is its set of labels. What Latewood keeps fits that
//! by these rules:
//! - a series without the label `__name__` shows its key as one;
//! - of a name that a series has twice, the first value is shown, and a matcher
//!   must pass it; one that a missing label passes (`!=`, mostly) must pass the
//!   others too;
//! - what is no UTF-8 is shown with replacement characters;
//! - series that would look the same are told apart by `__key__`, the key.
//!
//! Since matchers see nothing but labels, they pass all series that look the
//! same or none of them: so `__key__` does not depend on the query.
//!
//! Tested by `tests.rs`.

mod select;
#[cfg(test)]
mod tests;

pub(crate) use select::select;

use latewood_engine::{Db, SeriesRef};
use latewood_model::Labels;
use latewood_wire::selector::Matcher;
use latewood_wire::series_name::METRIC;
use std::borrow::Cow;
use std::cmp::Ordering;

/// The label that tells apart what would look the same.
pub(crate) const KEY: &[u8] = b"__key__";

/// A series and how it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The series.
    pub(crate) series: SeriesRef,
    /// Its labels.
    pub(crate) labels: LabelSet,
}

/// Labels by ascending name, each name once, all of them UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSet(Box<[u8]>);

impl LabelSet {
    /// How a series with `labels` under `key` looks.
    pub(crate) fn of(labels: &Labels, key: &[u8]) -> Self {
        let mut pairs: Vec<_> = labels.iter().map(|(n, v)| (text(n), text(v))).collect();
        // Stable, so that the first of a name stays the first.
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, first| later.0 == first.0);
        with(pairs, METRIC, text(key), false)
    }

    /// The same with the label that holds the key.
    fn with_key(&self, key: &[u8]) -> Self {
        let pairs = self.iter().map(|(name, value)| (name.into(), value.into()));
        with(pairs.collect(), KEY, text(key), true)
    }

    /// Names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        self.bytes()
            .map(move |(name, value)| (text(name), text(value)))
    }

    /// The same as bytes.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        Labels::pairs_in(&self.0)
    }

    /// The value of a label; empty where it is not there.
    pub(crate) fn get(&self, name: &[u8]) -> &[u8] {
        let mut pairs = self.bytes();
        let found = pairs.find(|(held, _)| *held == name);
        found.map_or(b"", |(_, value)| value)
    }

    /// The same as PromQL has it.
    pub(crate) fn to_promql(&self) -> latewood_promql::labels::Labels {
        latewood_promql::labels::Labels::from_packed(&self.0)
    }

    /// Bytes of memory it takes beside its own place.
    pub(crate) fn len_bytes(&self) -> usize {
        self.0.len()
    }
}

impl Ord for LabelSet {
    /// Label by label, as Prometheus orders series.
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for LabelSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How `series` look, in the order of their labels; those that went meanwhile
/// are left out, and what is there twice stays once.
///
/// Linear in their labels, but for sorting.
pub(crate) fn named(db: &Db, series: Vec<SeriesRef>) -> Vec<Named> {
    let look = |series: SeriesRef| {
        let labels = LabelSet::of(&db.labels(&series)?, &series.key);
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
                one.labels = one.labels.with_key(&one.series.key);
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
    named.retain(|one| {
        let passes = |matcher: &Matcher| matcher.passes(one.labels.get(&matcher.name));
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

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The set of sorted pairs with one more, in its place; of one that is there
/// already `replace` sets the value. An empty value is none.
fn with(
    mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)>,
    name: &[u8],
    value: Cow<'_, str>,
    replace: bool,
) -> LabelSet {
    let name = text(name);
    match pairs.binary_search_by(|pair| pair.0.cmp(&name)) {
        Ok(at) if replace => pairs[at].1 = value.into_owned().into(),
        Err(at) if !value.is_empty() => {
            pairs.insert(at, (name.into_owned().into(), value.into_owned().into()));
        }
        _ => {}
    }
    let mut bytes = Vec::new();
    for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
        // The labels of a series and its key are far below 4 GiB.
        bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    LabelSet(bytes.into())
}
