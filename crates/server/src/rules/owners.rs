//! Which rule writes which series: a series has one.
//!
//! Two rules that write the same series would overwrite each other's rows. The first one that
//! writes a series owns it until it marks it stale, or until it is gone; rows of another rule are
//! refused. What a removed rule left behind may be taken over. The engine hears of it, so that nobody
//! else writes to a series that has a rule.
//!
//! Tested below.

use latewood_promql::labels::Labels;
use latewood_promql::source::is_stale;
use latewood_rules::evaluate::{Refused, Row};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A rule as the owner of series. The same rule after a reload has the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RuleId(u64);

/// The owners of all series that rules write.
#[derive(Default)]
pub(super) struct Owners {
    last_id: AtomicU64,
    all: Mutex<All>,
    /// Held while changes are told.
    telling: Mutex<()>,
}

#[derive(Default)]
struct All {
    /// Names of the rules that are there.
    rules: HashMap<RuleId, Arc<str>>,
    series: HashMap<Labels, RuleId>,
    /// Series that got or lost their rule, in order, and its name.
    untold: Vec<(Labels, Option<Arc<str>>)>,
}

impl Owners {
    /// A new rule, called so in errors.
    pub(super) fn add(&self, name: &str) -> RuleId {
        let id = RuleId(self.last_id.fetch_add(1, Ordering::Relaxed));
        self.all.lock().rules.insert(id, name.into());
        id
    }

    /// Takes a rule out: others may take its series over.
    pub(super) fn remove(&self, id: RuleId) {
        self.all.lock().rules.remove(&id);
    }

    /// Takes the series of `rows` for a rule, and gives back those that it marks stale. Returns the
    /// rows of series that another one owns, in their order, and those that it did not own before.
    pub(super) fn claim(&self, id: RuleId, rows: &[Row]) -> (Vec<Refused>, Vec<Labels>) {
        let (mut refused, mut new) = (Vec::new(), Vec::new());
        let mut all = self.all.lock();
        let All {
            rules,
            series,
            untold,
        } = &mut *all;
        for (at, row) in rows.iter().enumerate() {
            let owner = series.get(&row.labels).copied();
            let other = owner.filter(|owner| *owner != id);
            if is_stale(row.value) {
                if owner == Some(id) {
                    // It is the rule's all the same: corrections may give it rows.
                    series.remove(&row.labels);
                } else if other.is_some() {
                    refused.push(Refused {
                        row: at,
                        why: "another rule has taken it over".to_owned(),
                    });
                }
                continue;
            }
            match other.and_then(|owner| rules.get(&owner)) {
                Some(name) => refused.push(Refused {
                    row: at,
                    why: format!("{}: {name} writes this series too", row.labels),
                }),
                None if owner == Some(id) => {}
                None => {
                    series.insert(row.labels.clone(), id);
                    untold.push((row.labels.clone(), rules.get(&id).cloned()));
                    new.push(row.labels.clone());
                }
            }
        }
        (refused, new)
    }

    /// Whether another rule that is there owns a series.
    pub(super) fn has_other(&self, id: RuleId, labels: &Labels) -> bool {
        let all = self.all.lock();
        let owner = all.series.get(labels);
        owner.is_some_and(|owner| *owner != id && all.rules.contains_key(owner))
    }

    /// Gives back those of `series` that a rule still owns, and returns them.
    pub(super) fn release(&self, id: RuleId, series: Vec<Labels>) -> Vec<Labels> {
        let mut all = self.all.lock();
        let is_owned = |labels: &Labels| all.series.get(labels) == Some(&id);
        let (owned, _): (Vec<_>, Vec<_>) = series.into_iter().partition(is_owned);
        for labels in &owned {
            all.series.remove(labels);
            all.untold.push((labels.clone(), None));
        }
        owned
    }

    /// Tells which series got a rule, with its name, or lost it since this was called last.
    pub(super) fn tell(&self, mut tell: impl FnMut(&Labels, Option<&str>)) {
        let _turn = self.telling.lock();
        let untold = std::mem::take(&mut self.all.lock().untold);
        for (labels, rule) in untold {
            tell(&labels, rule.as_deref());
        }
    }

    /// The labels of all series that rules write. Until the guard is dropped, nobody hears of others.
    pub(super) fn written(&self) -> (MutexGuard<'_, ()>, Vec<Labels>) {
        let turn = self.telling.lock();
        let all = self.all.lock();
        (turn, all.series.keys().cloned().collect())
    }

    /// The number of series that rules write.
    pub(super) fn series(&self) -> usize {
        self.all.lock().series.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_promql::source::STALE_BITS;

    fn row(name: &str, value: f64) -> Row {
        Row {
            labels: Labels::from_pairs([("__name__", name)]),
            at_ms: 1,
            value,
        }
    }

    fn refused(owners: &Owners, id: RuleId, row: Row) -> Option<String> {
        owners.claim(id, &[row]).0.pop().map(|one| one.why)
    }

    #[test]
    fn a_series_has_one_rule_until_it_is_stale() {
        let (owners, stale) = (Owners::default(), f64::from_bits(STALE_BITS));
        let (first, second) = (owners.add("first"), owners.add("second"));
        assert_eq!(refused(&owners, first, row("x", 1.0)), None);
        assert_eq!(
            refused(&owners, second, row("x", 2.0)),
            Some("{__name__=\"x\"}: first writes this series too".to_owned())
        );
        // Nor does the other one end it.
        assert!(refused(&owners, second, row("x", stale)).is_some());
        assert_eq!(refused(&owners, first, row("x", stale)), None);
        assert_eq!(refused(&owners, second, row("x", 2.0)), None);
        assert_eq!(owners.series(), 1);
        let mut told = Vec::new();
        owners.tell(|labels, rule| told.push((labels.to_string(), rule.map(str::to_owned))));
        let x = |rule: Option<&str>| ("{__name__=\"x\"}".to_owned(), rule.map(str::to_owned));
        assert_eq!(told, [x(Some("first")), x(Some("second"))]);
        owners.tell(|_, _| panic!("nothing changed"));
    }

    #[test]
    fn what_a_removed_rule_leaves_can_be_taken_over() {
        let owners = Owners::default();
        let (first, second) = (owners.add("first"), owners.add("second"));
        for name in ["x", "y"] {
            assert_eq!(refused(&owners, first, row(name, 1.0)), None);
        }
        owners.remove(first);
        assert_eq!(refused(&owners, second, row("x", 2.0)), None);
        let left = ["x", "y"].map(|name| row(name, 0.0).labels).to_vec();
        assert_eq!(owners.release(first, left), [row("y", 0.0).labels]);
        assert_eq!(owners.series(), 1);
    }
}
