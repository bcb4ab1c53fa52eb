//! A naive model of destinations, computed from all samples ever written to a
//! source with SUM rules.

use latewood_engine::RuleSpec;
use std::collections::{BTreeMap, BTreeSet};

/// A source and its rules.
#[derive(Default)]
pub(crate) struct Naive {
    /// Those past the retention, too, until they are deleted for good.
    samples: BTreeMap<i64, f64>,
    retention_ms: u64,
    rules: Vec<Rule>,
}

/// Buckets by the timestamp they begin at.
struct Rule {
    spec: RuleSpec,
    /// What was older when the rule was made does not count.
    since: i64,
    /// Those something happened in since the rule was made.
    touched: BTreeSet<i64>,
    /// Touched ones whose samples are gone for good, as they were then.
    lost: BTreeMap<i64, Option<f64>>,
    /// The first bucket of the history it was made with, and the one that was open.
    history: Option<(i64, i64)>,
    /// Lost ones of the history without samples: whether they count as touched depends on files.
    unsure: BTreeSet<i64>,
}

impl Rule {
    fn bucket(&self, at: i64) -> i64 {
        let spec = self.spec;
        (at - spec.align).div_euclid(spec.bucket_ms) * spec.bucket_ms + spec.align
    }

    fn sum(&self, samples: &BTreeMap<i64, f64>, first: i64) -> Option<f64> {
        let end = first + self.spec.bucket_ms;
        let values: Vec<f64> = samples
            .range(first.max(self.since.min(end))..end)
            .map(|(_, value)| *value)
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }
}

impl Naive {
    pub(crate) fn new(retention_ms: u64) -> Self {
        Self {
            retention_ms,
            ..Self::default()
        }
    }

    pub(crate) fn rules(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn newest(&self) -> Option<i64> {
        self.samples.last_key_value().map(|(at, _)| *at)
    }

    /// The oldest timestamp a reader sees.
    pub(crate) fn floor(&self) -> i64 {
        match (self.newest(), self.retention_ms) {
            (Some(newest), 1..) => newest - self.retention_ms as i64,
            _ => i64::MIN,
        }
    }

    pub(crate) fn add_rule(&mut self, spec: RuleSpec, with_history: bool) {
        let mut rule = Rule {
            spec,
            since: self.floor(),
            touched: BTreeSet::new(),
            lost: BTreeMap::new(),
            history: None,
            unsure: BTreeSet::new(),
        };
        if let Some(newest) = self.newest().filter(|_| with_history) {
            let visible = self.samples.range(self.floor()..);
            let (floor, open) = (self.floor().max(0), rule.bucket(newest));
            // Others may lack samples that have expired.
            let is_whole = |first: &i64| floor == 0 || *first >= floor || *first == open;
            let buckets = visible.map(|(at, _)| rule.bucket(*at));
            rule.touched = buckets.filter(is_whole).collect();
            rule.history = Some((rule.bucket(floor), open));
        }
        self.rules.push(rule);
    }

    /// Leaves the rows of a destination that the model knows.
    pub(crate) fn leave_sure(&self, rule: usize, rows: &mut Vec<(i64, f64)>) {
        let rule = &self.rules[rule];
        rows.retain(|row| !rule.unsure.contains(&rule.bucket(row.0)));
    }

    /// Whether a sample is taken. One of the same time gives way.
    pub(crate) fn append(&mut self, at: i64, value: f64) -> bool {
        if at < self.floor() {
            return false;
        }
        self.samples.insert(at, value);
        self.touch(at);
        true
    }

    fn touch(&mut self, at: i64) {
        for rule in &mut self.rules {
            let bucket = rule.bucket(at);
            rule.touched.insert(bucket);
        }
    }

    /// Whether a deletion is allowed: not from a bucket that begins before
    /// what the retention has left.
    pub(crate) fn delete(&mut self, from: i64, to: i64) -> bool {
        let floor = self.floor();
        let begins_before = |rule: &Rule| rule.bucket(from) < floor;
        if floor > 0 && self.rules.iter().any(begins_before) {
            return false;
        }
        let newest = self.newest();
        let takes_newest = newest.is_some_and(|newest| from <= newest && newest <= to);
        if takes_newest || self.rules.is_empty() {
            self.lose();
        }
        self.samples.retain(|at, _| *at < from || *at > to);
        let left = self.newest();
        for rule in &mut self.rules {
            for at in [from, to] {
                let first = rule.bucket(at);
                rule.touched.insert(first);
            }
            let width = rule.spec.bucket_ms;
            let Some(newest) = left.map(|newest| rule.bucket(newest)) else {
                rule.touched.clear();
                continue;
            };
            let is_inside = |first: i64| from <= first && first + width - 1 <= to;
            rule.touched
                .retain(|&first| first <= newest && !is_inside(first));
        }
        if let Some(left) = left.filter(|_| left != newest) {
            // Its bucket is open again and is written when it closes.
            self.touch(left);
        }
        true
    }

    pub(crate) fn alter(&mut self, retention_ms: u64) {
        if self.retention_ms != 0 && (retention_ms == 0 || retention_ms > self.retention_ms) {
            self.lose();
        }
        self.retention_ms = retention_ms;
    }

    /// Deletes for good what is past the retention.
    fn lose(&mut self) {
        let floor = self.floor();
        let Some(newest) = self.newest().filter(|_| floor > 0) else {
            return;
        };
        for rule in &mut self.rules {
            let open = rule.bucket(newest);
            let lost: Vec<i64> = rule.touched.range(..floor.min(open)).copied().collect();
            for first in lost {
                let sum = rule.sum(&self.samples, first);
                rule.lost.entry(first).or_insert(sum);
            }
            if let Some((first, end)) = rule.history {
                let width = rule.spec.bucket_ms as usize;
                let empty = (first..end.min(floor).min(open)).step_by(width);
                let empty = empty.filter(|first| !rule.touched.contains(first));
                rule.unsure.extend(empty);
            }
            rule.since = i64::MIN;
        }
        self.samples = self.samples.split_off(&floor);
    }

    /// What a reader of the source finds.
    pub(crate) fn visible(&self) -> Vec<(i64, f64)> {
        let visible = self.samples.range(self.floor()..);
        visible.map(|(at, value)| (*at, *value)).collect()
    }

    /// What the destination of a rule holds.
    pub(crate) fn expected(&self, index: usize) -> Vec<(i64, f64)> {
        let rule = &self.rules[index];
        let open = self.newest().map_or(i64::MIN, |newest| rule.bucket(newest));
        let closed = rule.touched.range(..open);
        let known = closed.filter(|first| !rule.lost.contains_key(first));
        let known = known.map(|&first| (first, rule.sum(&self.samples, first)));
        let lost = rule.lost.iter().map(|(first, sum)| (*first, *sum));
        let mut rows: Vec<(i64, f64)> = known
            .chain(lost)
            // A bucket before the epoch is kept at 0.
            .filter_map(|(first, sum)| sum.map(|sum| (first.max(0), sum)))
            .collect();
        rows.sort_by_key(|row| row.0);
        self.leave_sure(index, &mut rows);
        rows
    }
}
