//! What a rule gives, against what is stored of a series.
//!
//! At a step a series has its value if the rule gives one; else a stale mark if it has a value at
//! the step before; else nothing. So what changes at a step may change the mark at the next one.
//! Tested below against that sentence.

use super::steps::StepGrid;
use latewood_promql::source::{STALE_BITS, is_stale};

/// A time in milliseconds and a value, which may be a stale mark.
pub type Pair = (i64, f64);

/// Steps that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// All steps of the rule.
    pub grid: StepGrid,
    /// The first one that is compared.
    pub from: i64,
    /// The last one.
    pub to: i64,
    /// The newest one that was evaluated: of the one behind it nothing is known.
    pub newest: i64,
    /// The first one that the rule may touch: whether it marks there what others wrote before is
    /// left as it is.
    pub since: i64,
    /// What stands between steps is removed: nobody else writes these series.
    pub removes_between: bool,
}

/// A row that is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Milliseconds.
    pub at_ms: i64,
    /// What is stored; may be a stale mark.
    pub stored: Option<f64>,
    /// What must be; may be a stale mark.
    pub wanted: Option<f64>,
}

impl Difference {
    /// The row to write, if one is missing or wrong.
    pub fn row(&self) -> Option<Pair> {
        Some((self.at_ms, self.wanted?))
    }
}

/// Whether two rows are the same: all numbers that are none are, but stale marks are apart.
pub fn is_same(a: f64, b: f64) -> bool {
    let is_mark = (is_stale(a), is_stale(b));
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() && is_mark.0 == is_mark.1
}

impl Compared {
    /// What must be read of what is stored, both ends included: the step before and the one after.
    pub fn reach(&self) -> (i64, i64) {
        let before = self.from.saturating_sub(self.grid.interval_ms);
        (before, self.after().unwrap_or(self.to))
    }

    /// The step after the compared ones, if it was evaluated.
    fn after(&self) -> Option<i64> {
        let after = self.to.checked_add(self.grid.interval_ms)?;
        (after <= self.newest).then_some(after)
    }

    /// Compares one series: what the rule gives at the compared steps, and what is stored within
    /// [`Compared::reach`]; both ascending.
    pub fn series(&self, given: &[Pair], stored: &[Pair]) -> Vec<Difference> {
        let mut found = Vec::new();
        let (mut given, mut stored) = (Walk(given), Walk(stored));
        let (before_ms, _) = self.reach();
        let before = stored.at(before_ms);
        let mut has_before = before.is_some_and(|value| !is_stale(value));
        let mut from = before_ms;
        let mut at_ms = self.from;
        while at_ms <= self.to {
            self.between(&mut stored, from, at_ms, &mut found);
            let is = stored.at(at_ms);
            let given = given.at(at_ms);
            let mark = has_before.then_some(f64::from_bits(STALE_BITS));
            let is_free = at_ms == self.since && is.is_none_or(is_stale);
            if given.is_some() || !is_free {
                note(at_ms, is, given.or(mark), &mut found);
            }
            has_before = given.is_some();
            from = at_ms;
            let Some(next) = at_ms.checked_add(self.grid.interval_ms) else {
                return found;
            };
            at_ms = next;
        }
        if let Some(after_ms) = self.after() {
            self.between(&mut stored, from, after_ms, &mut found);
            let is = stored.at(after_ms);
            if is.is_none_or(is_stale) {
                let mark = has_before.then_some(f64::from_bits(STALE_BITS));
                note(after_ms, is, mark, &mut found);
            }
        }
        found
    }

    /// Rows between two steps are none.
    fn between(&self, stored: &mut Walk<'_>, from: i64, to: i64, found: &mut Vec<Difference>) {
        while let Some(&(at_ms, value)) = stored.0.first().filter(|pair| pair.0 < to) {
            stored.0 = &stored.0[1..];
            if self.removes_between && at_ms > from.max(self.since) {
                note(at_ms, Some(value), None, found);
            }
        }
    }
}

fn note(at_ms: i64, stored: Option<f64>, wanted: Option<f64>, found: &mut Vec<Difference>) {
    let same = match (stored, wanted) {
        (None, None) => true,
        (Some(stored), Some(wanted)) => is_same(stored, wanted),
        _ => false,
    };
    if !same {
        found.push(Difference {
            at_ms,
            stored,
            wanted,
        });
    }
}

/// Pairs, ascending, that are asked for in their order.
struct Walk<'a>(&'a [Pair]);

impl Walk<'_> {
    fn at(&mut self, at_ms: i64) -> Option<f64> {
        self.0 = &self.0[self.0.partition_point(|pair| pair.0 < at_ms)..];
        let (first, rest) = self.0.split_first().filter(|(first, _)| first.0 == at_ms)?;
        self.0 = rest;
        Some(first.1)
    }
}

/// Spans of rows to delete, from differences of one series: those of neighbouring steps together
/// where it `joins`, as nothing that stays can be between them.
pub fn gaps(found: &[Difference], grid: &StepGrid, joins: bool) -> Vec<(i64, i64)> {
    let mut gaps: Vec<(i64, i64)> = Vec::new();
    let mut last = None;
    for one in found {
        if one.wanted.is_some() {
            last = None;
            continue;
        }
        match gaps.last_mut().filter(|gap| {
            // Nothing that stays is between them.
            joins
                && last == Some(gap.1)
                && one.at_ms.abs_diff(gap.1) <= grid.interval_ms.unsigned_abs()
        }) {
            Some(gap) => gap.1 = one.at_ms,
            None => gaps.push((one.at_ms, one.at_ms)),
        }
        last = Some(one.at_ms);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const GRID: StepGrid = StepGrid {
        some_ms: 0,
        interval_ms: 10,
    };

    fn mark() -> f64 {
        f64::from_bits(STALE_BITS)
    }

    /// What is stored once the rule has given `given` at all steps from 0 to `newest`.
    fn settled(given: &BTreeMap<i64, f64>, newest: i64) -> BTreeMap<i64, f64> {
        let mut all = BTreeMap::new();
        for at in (0..=newest).step_by(10) {
            match given.get(&at) {
                Some(value) => drop(all.insert(at, *value)),
                None if given.contains_key(&(at - 10)) => drop(all.insert(at, mark())),
                None => {}
            }
        }
        all
    }

    fn text(rows: &BTreeMap<i64, f64>) -> String {
        format!("{rows:?}")
    }

    #[test]
    fn differences_make_what_is_stored_what_it_must_be() {
        let mut state = 7_777_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2_000 {
            let newest = 100;
            let given = |random: &mut dyn FnMut(u64) -> u64| -> BTreeMap<i64, f64> {
                let steps = (0..=newest).step_by(10).filter(|_| random(3) > 0);
                steps
                    .collect::<Vec<i64>>()
                    .into_iter()
                    .map(|at| (at, random(3) as f64))
                    .collect()
            };
            let old = given(&mut random);
            let (from, to) = (random(11) as i64 * 10, random(11) as i64 * 10);
            let (from, to) = (from.min(to), from.max(to));
            // Only steps between them give something else.
            let mut new = given(&mut random);
            new.retain(|at, _| (from..=to).contains(at));
            new.extend(old.iter().filter(|(at, _)| !(from..=to).contains(*at)));
            let compared = Compared {
                grid: GRID,
                from,
                to,
                newest,
                since: 0,
                removes_between: true,
            };
            let mut rows = settled(&old, newest);
            rows.insert(from + 3, 9.0);
            let (first, last) = compared.reach();
            let wanted: Vec<Pair> = new.range(from..=to).map(|(at, v)| (*at, *v)).collect();
            let stored: Vec<Pair> = rows.range(first..=last).map(|(at, v)| (*at, *v)).collect();
            let found = compared.series(&wanted, &stored);
            for one in &found {
                assert_eq!(
                    rows.get(&one.at_ms).map(|v| v.to_bits()),
                    one.stored.map(f64::to_bits)
                );
            }
            for (a, b) in gaps(&found, &GRID, true) {
                rows.retain(|at, _| !(a..=b).contains(at));
            }
            rows.extend(found.iter().filter_map(Difference::row));
            // What stands behind the last read row is nobody's concern.
            let is_read = from + 3 <= last;
            if !is_read {
                rows.remove(&(from + 3));
            }
            assert_eq!(text(&rows), text(&settled(&new, newest)), "{from}..={to}");
        }
    }

    #[test]
    fn the_newest_step_has_none_behind_it_and_the_first_one_is_left() {
        let compared = Compared {
            grid: GRID,
            from: 20,
            to: 20,
            newest: 20,
            since: 0,
            removes_between: false,
        };
        assert_eq!(compared.reach(), (10, 20));
        assert_eq!(compared.series(&[], &[(20, 1.0)])[0].wanted, None);
        let found = compared.series(&[], &[(10, 2.0), (20, 1.0)]);
        assert!(found[0].wanted.is_some_and(is_stale));
        // Whoever began there may have marked what was before, or not.
        let first = Compared {
            since: 20,
            ..compared
        };
        assert_eq!(first.series(&[], &[(10, 2.0)]), []);
        assert_eq!(first.series(&[], &[(10, 2.0), (20, mark())]), []);
        assert_eq!(first.series(&[], &[(10, 2.0), (20, 1.0)]).len(), 1);
        // NaN is not a mark.
        assert_eq!(compared.series(&[(20, f64::NAN)], &[(20, mark())]).len(), 1);
        assert_eq!(compared.series(&[(20, f64::NAN)], &[(20, -f64::NAN)]), []);
    }
}
