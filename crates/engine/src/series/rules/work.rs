//! The work of a source: the dirty buckets of each rule and their samples, detached
//! from the series so that no lock is held meanwhile.

use crate::base::window::{Bucket, join_spans};
use crate::series::rules::dirty::DirtyBuckets;
use crate::series::rules::{Rule, Source, Take};
use crate::series::{Series, Snapshot};
use latewood_model::Timestamp;

/// The work of a source, detached from it.
pub(crate) struct Work {
    pub(crate) rules: Vec<(Rule, Vec<Bucket>)>,
    pub(crate) snapshot: Snapshot,
    pub(crate) newest: Option<Timestamp>,
    pub(crate) floor: Timestamp,
}

impl Series {
    pub(crate) fn has_rule_work(&self, take: Take) -> bool {
        self.rules().is_some_and(|source| match take {
            Take::All => source.has_work(),
            Take::Prompt => source.has_prompt_work(),
        })
    }

    /// The dirty buckets in flight, and their samples. Samples before `floor` are
    /// gone, in memory too.
    pub(crate) fn rule_work(&mut self, floor: Timestamp) -> Option<Work> {
        let newest = self.newest();
        let kept_from = self.retention_floor().max(floor);
        let rules = self.source_mut()?.work(newest, kept_from);
        Some(self.detach(rules, floor))
    }

    /// Buckets of rules, and their samples. Samples before `floor` are gone, in memory too.
    pub(super) fn detach(&mut self, rules: Vec<(Rule, Vec<Bucket>)>, floor: Timestamp) -> Work {
        let newest = self.newest();
        let kept_from = self.retention_floor().max(floor);
        let starts = rules.iter().filter_map(|(_, dirty)| dirty.first());
        let ends = rules.iter().filter_map(|(_, dirty)| dirty.last());
        let span = starts
            .map(|span| span.first)
            .min()
            .zip(ends.map(|span| span.last).max());
        let (mut from, mut to) = span.unwrap_or((Timestamp::MAX, Timestamp::MIN));
        for (rule, dirty) in &rules {
            if let (true, Some(first), Some(last)) =
                (rule.interpolates(), dirty.first(), dirty.last())
            {
                let beside = self.lines_of(rule, first.first, last.last);
                from = from.min(self.reach_before(beside.first));
                to = to.max(self.reach_after(beside.last));
            }
        }
        let from = from.max(floor);
        let mut snapshot = self.snapshot_held(from, to.max(from));
        let late = std::mem::take(&mut snapshot.late);
        snapshot.late = late.gathered(snapshot.from, snapshot.to);
        Work {
            rules,
            snapshot,
            newest,
            floor: kept_from,
        }
    }
}

impl Series {
    /// From the first to the last sample that rows from `from` to `to` of a rule are made of,
    /// about: none is left out.
    pub(crate) fn samples_behind(
        &mut self,
        rule: &Rule,
        from: Timestamp,
        to: Timestamp,
    ) -> (Timestamp, Timestamp) {
        let window = rule.window();
        let (first, last) = (window.containing(from).first, window.containing(to).last);
        if !rule.interpolates() {
            return (first, last);
        }
        let beside = self.lines_of(rule, first, last);
        (
            self.reach_before(beside.first),
            self.reach_after(beside.last),
        )
    }

    /// The buckets of the rows that samples from `from` to `to` count in, about: none is left out.
    pub(crate) fn buckets_of(&mut self, rule: &Rule, from: Timestamp, to: Timestamp) -> Bucket {
        let window = rule.window();
        let (first, last) = (window.containing(from).first, window.containing(to).last);
        if !rule.interpolates() {
            return Bucket { first, last };
        }
        self.lines_of(rule, first, last)
    }

    /// The buckets of a span, with those at the other ends of lines that lead out of it.
    fn lines_of(&mut self, rule: &Rule, first: Timestamp, last: Timestamp) -> Bucket {
        let window = rule.window();
        Bucket {
            first: window.containing(self.reach_before(first)).first,
            last: window.containing(self.reach_after(last)).last,
        }
    }
}

impl Source {
    /// Each rule with its dirty spans. Samples before `kept_from` may be gone.
    fn work(
        &mut self,
        newest: Option<Timestamp>,
        kept_from: Timestamp,
    ) -> Vec<(Rule, Vec<Bucket>)> {
        let mut work = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let window = rule.window();
            let mut dirty = Vec::new();
            // A change in the open bucket affects the bucket before, if an
            // interpolation line joins them.
            let open = newest
                .filter(|_| !rule.interpolates())
                .map_or(Timestamp::MAX, |newest| window.containing(newest).first);
            self.in_flight.spans(window, open, &mut dirty);
            rule.own_in_flight.spans(window, open, &mut dirty);
            if self.tries_again {
                dirty.extend(rule.whole_failed(kept_from));
            }
            join_spans(&mut dirty);
            self.kept += u64::from(rule.expired.leave_alone(&mut dirty));
            work.push((rule.light(), dirty));
        }
        work
    }
}

impl Rule {
    /// The rule without what is to be done.
    pub(crate) fn light(&self) -> Self {
        Self {
            own: DirtyBuckets::default(),
            own_in_flight: DirtyBuckets::default(),
            expired: self.expired.clone(),
            failed: Vec::new(),
            backfill: Vec::new(),
            ..*self
        }
    }
}
