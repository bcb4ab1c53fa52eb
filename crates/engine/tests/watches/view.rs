//! What a reader sees, and which of it changed: the truth that drained changes are compared with.

use crate::db_support::read;
use latewood_engine::{Change, Db};
use latewood_model::Labels;
use std::collections::BTreeMap;

/// What a series looks like: its key, the bytes of its labels, and whether another one shows the same
/// labels, so that it shows its key too.
type Look = (Vec<u8>, Vec<u8>, bool);

/// The labels that a reader by label sees, with the key in the place of a name.
fn shown(labels: &Labels, key: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let pairs = labels
        .iter()
        .map(|(name, value)| (name.to_vec(), value.to_vec()));
    let mut shown: BTreeMap<_, _> = pairs.collect();
    shown
        .entry(b"__name__".to_vec())
        .or_insert_with(|| key.to_vec());
    shown
}

/// Samples by look and time, the values as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View(BTreeMap<(Look, i64), u64>);

/// All samples up to `at` of series that `selects` says.
pub(super) fn view(db: &Db, at: i64, selects: impl Fn(&Labels, &[u8]) -> bool) -> View {
    let mut rows = BTreeMap::new();
    let all = db.select(&[]).unwrap();
    let mut alike: BTreeMap<_, usize> = BTreeMap::new();
    for series in &all {
        let labels = db.labels(series).unwrap().unwrap_or_default();
        *alike.entry(shown(&labels, &series.key)).or_default() += 1;
    }
    for series in all {
        let labels = db.labels(&series).unwrap().unwrap_or_default();
        let has_twin = alike.get(&shown(&labels, &series.key)) > Some(&1);
        if !selects(&labels, &series.key) {
            continue;
        }
        let look = (series.key.to_vec(), labels.as_bytes().to_vec(), has_twin);
        // Gone since it was selected, if other threads write.
        for sample in read(db, &series.key).unwrap_or_default() {
            if sample.timestamp <= at {
                let bits = sample.value.to_bits();
                rows.insert((look.clone(), sample.timestamp), bits);
            }
        }
    }
    View(rows)
}

impl View {
    /// Takes from `newer` what is after `at`.
    pub(super) fn extend_behind(&mut self, at: i64, newer: &Self) {
        let after = newer.0.iter().filter(|((_, time), _)| *time > at);
        self.0.extend(after.map(|(row, &bits)| (row.clone(), bits)));
    }

    /// The samples that are only in one of the two, or have another value.
    pub(super) fn changed(&self, after: &Self) -> Vec<(Look, i64)> {
        let other =
            |(at, value): &(&(Look, i64), &u64), rows: &Self| rows.0.get(*at) != Some(*value);
        let gone = self.0.iter().filter(|row| other(row, after));
        let new = after.0.iter().filter(|row| other(row, self));
        gone.chain(new).map(|(at, _)| at.clone()).collect()
    }
}

/// The first of the samples that no change covers.
pub(super) fn uncovered(changed: &[(Look, i64)], changes: &[Change]) -> Option<(Look, i64)> {
    let covers = |change: &Change, (look, at): &(Look, i64)| {
        let is_it = change
            .series
            .as_ref()
            .is_none_or(|series| *series.key == *look.0 && series.labels.as_bytes() == &look.1[..]);
        is_it && (change.from..=change.to).contains(at)
    };
    let is_lost = |row: &&(Look, i64)| !changes.iter().any(|change| covers(change, row));
    changed.iter().find(is_lost).cloned()
}
