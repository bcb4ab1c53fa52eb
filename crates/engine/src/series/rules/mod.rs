//! Compaction rules: buckets of one series kept as samples of another.
//!
//! A write to a source costs one comparison: whether the sample is outside the open
//! buckets. A change of a closed bucket makes the bucket dirty ([`dirty`]). Dirty
//! buckets are recomputed in batches from the samples of the source
//! (`rules/recompute.rs`, `rules/compute.rs`): by a background thread, before every
//! read of a destination, and before every write of a user to one. One late sample
//! thus recomputes one bucket for each rule, and recomputing a bucket twice is
//! harmless.
//!
//! Invariants:
//! 1. A destination has one source, and may be the source of others: rules make trees, of at most
//!    [`CHAIN_MAX`] rules in a row. What a rule writes is a write to the next source.
//! 2. A bucket is *open* while it holds the source's newest sample. When no bucket
//!    is dirty, a destination holds for every closed bucket touched since its rule
//!    was created the result of a range query over all samples of that bucket, and
//!    no sample for a bucket without a row. Rows of buckets whose samples were
//!    deleted as expired do not change ([`crate::format::expired_buckets`]).
//! 3. Samples of a bucket stay in memory while it may become dirty, also after they
//!    have expired ([`Source::hold`]).
//! 4. Dirty buckets are a function of the source's records in the log, so a replay
//!    restores them. A TAKE record moves them to those in flight, and a DONE record
//!    drops these.
//! 5. The *history* of a rule with BACKFILL, the buckets that were closed when it was made, is
//!    computed in slices. What is left of it is neither dirty nor up to date: a read of a row in
//!    it computes it first ([`history`]).
//! 6. A bucket whose samples cannot be read is *failed*, not dirty, so that it does
//!    not block others; a read of its row returns an error ([`failed`]).
//!
//! Tested by `tests/db_rules` and the model test.

pub(crate) mod dirty;
pub(crate) mod failed;
pub(crate) mod history;
mod links;
mod report;
mod stored;
pub(crate) mod work;

use crate::base::window::{Bucket, Window};
use crate::format::expired_buckets::ExpiredBuckets;
use crate::format::rule::RuleSpec;
use dirty::DirtyBuckets;
use latewood_model::{Aggregator, SeriesId, Timestamp};

/// Number of late dirty timestamps that are recomputed while the source still gets
/// late samples.
const LATE_DIRTY_MAX: usize = 64 * 1024;

/// Which dirty buckets to recompute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Those near the newest samples, and those in flight.
    Prompt,
    /// All.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) take: Take,
    /// Whether anything was, beside what was in flight before.
    pub(crate) is_new: bool,
}

/// Rules in a row, at most.
pub(crate) const CHAIN_MAX: usize = 8;

/// The links of a series to others, of which there is one at least.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The rules from it.
    pub(super) source: Option<Box<Source>>,
    /// The source of the rule that writes to it.
    link: Option<SeriesId>,
}

/// A rule as its source keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) destination: SeriesId,
    pub(crate) spec: RuleSpec,
    /// Older samples do not count: they were expired when the rule was created. The
    /// start of time once the expired samples are deleted.
    pub(crate) since: Timestamp,
    /// The bucket of the newest sample, if a sample arrived after the rule was
    /// created.
    pub(crate) open: Option<Bucket>,
    /// Dirty buckets of this rule alone.
    own: DirtyBuckets,
    own_in_flight: DirtyBuckets,
    pub(crate) expired: ExpiredBuckets,
    /// Failed buckets, as spans that ascend without meeting.
    pub(crate) failed: Vec<Bucket>,
    /// Closed buckets of the history that are still to be computed ([`history`]).
    pub(crate) backfill: Vec<Bucket>,
    /// When buckets were last recomputed since the start.
    pub(crate) recomputed_ms: Option<i64>,
}

impl Rule {
    pub(crate) fn window(&self) -> Window {
        Window::grid(self.spec.bucket_ms, self.spec.align)
    }

    /// Whether a bucket depends on samples outside it.
    pub(crate) fn interpolates(&self) -> bool {
        self.spec.aggregator == Aggregator::Twa
    }

    #[cfg(test)]
    fn sample(bucket_ms: i64, align: i64) -> Self {
        let spec = RuleSpec {
            aggregator: Aggregator::Sum,
            bucket_ms,
            align,
        };
        Self::new(SeriesId(0), spec, Timestamp::MIN)
    }

    pub(crate) fn new(destination: SeriesId, spec: RuleSpec, since: Timestamp) -> Self {
        Self {
            destination,
            spec,
            since,
            open: None,
            own: DirtyBuckets::default(),
            own_in_flight: DirtyBuckets::default(),
            expired: ExpiredBuckets::default(),
            failed: Vec::new(),
            backfill: Vec::new(),
            recomputed_ms: None,
        }
    }
}

/// The rules of a source and their pending work.
#[derive(Debug)]
pub(crate) struct Source {
    rules: Vec<Rule>,
    /// The oldest timestamp that changes open buckets only, and the newest one
    /// inside the open buckets of all rules.
    open: (Timestamp, Timestamp),
    /// Dirty buckets near the newest samples: cheap to recompute.
    prompt: DirtyBuckets,
    /// Dirty buckets in the sealed part: they wait until the late samples are
    /// settled.
    late: DirtyBuckets,
    /// Dirty buckets that are being recomputed, or were when the process ended.
    in_flight: DirtyBuckets,
    /// The late dirty buckets should be recomputed too.
    pub(crate) late_due: bool,
    /// Failed buckets must be retried: those from before the start, and those whose blocks are
    /// back.
    tries_again: bool,
    /// The source is in its shard's list of sources with work.
    pub(crate) queued: bool,
    /// Older samples may have been deleted as expired. Each rule knows which of its
    /// buckets are affected.
    lost_to: Timestamp,
    /// Number of dirty buckets that were skipped because samples of them are
    /// deleted.
    pub(crate) kept: u64,
}

/// No timestamp is inside the open buckets of all rules.
const NONE_OPEN: (Timestamp, Timestamp) = (Timestamp::MAX, Timestamp::MIN);

impl Default for Source {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            open: NONE_OPEN,
            prompt: DirtyBuckets::default(),
            late: DirtyBuckets::default(),
            in_flight: DirtyBuckets::default(),
            late_due: false,
            tries_again: false,
            queued: false,
            lost_to: Timestamp::MIN,
            kept: 0,
        }
    }
}

impl Source {
    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Records a sample newer than all before; `before` was the newest.
    #[inline]
    pub(crate) fn in_order(&mut self, timestamp: Timestamp) {
        if timestamp > self.open.1 {
            self.leave(timestamp);
        }
    }

    /// Opens the buckets of `timestamp` and makes the buckets before them dirty.
    #[cold]
    fn leave(&mut self, timestamp: Timestamp) {
        for rule in &mut self.rules {
            match rule.open {
                Some(open) if open.contains(timestamp) => continue,
                Some(open) => rule.own.push(open.first),
                None => {}
            }
            rule.open = Some(rule.window().containing(timestamp));
        }
        self.note_open();
    }

    /// A number arrived in order after NaN: it ends the interpolation line of an
    /// older bucket, which may be closed.
    #[cold]
    pub(crate) fn joined(&mut self, timestamp: Timestamp) {
        if self.rules.iter().any(Rule::interpolates) {
            self.touched(timestamp, false);
        }
    }

    fn note_open(&mut self) {
        self.open =
            self.rules
                .iter()
                .fold((Timestamp::MIN, Timestamp::MAX), |open, rule| {
                    match rule.open {
                        Some(bucket) => (open.0.max(bucket.first), open.1.min(bucket.last)),
                        None => NONE_OPEN,
                    }
                });
        if self.rules.iter().any(|rule| rule.open.is_none()) {
            self.open = NONE_OPEN;
        }
        // A late sample in an open bucket may change the line into the bucket before.
        if self.rules.iter().any(Rule::interpolates) {
            self.open.0 = Timestamp::MAX;
        }
    }

    /// Records that a late sample was kept or changed a sample. `sealed` means that
    /// it is in the sealed part.
    #[inline]
    pub(crate) fn touched(&mut self, timestamp: Timestamp, sealed: bool) {
        if timestamp >= self.open.0 {
            return;
        }
        let dirty = if sealed {
            &mut self.late
        } else {
            &mut self.prompt
        };
        dirty.push(timestamp);
        if dirty.is_long() {
            dirty.dedup(&self.rules);
            self.late_due |= self.late.len() > LATE_DIRTY_MAX;
        }
    }

    /// Records that the samples of `from..=to` were deleted; `newest` is the newest
    /// sample left, `newest_before` the one before the deletion.
    pub(crate) fn deleted(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        newest_before: Option<Timestamp>,
        newest: Option<Timestamp>,
    ) {
        self.prompt.push_span(from, to);
        for rule in &mut self.rules {
            rule.expired.deleted(rule.window(), from, to, newest);
        }
        if newest == newest_before {
            return;
        }
        // The bucket that is open now was closed before.
        if let Some(newest) = newest {
            self.prompt.push_span(newest, newest);
        }
        for rule in &mut self.rules {
            let reopened = newest.map(|newest| rule.window().containing(newest));
            rule.open = rule.open.and(reopened);
            rule.expired.touch(rule.window(), newest.into_iter());
        }
        self.note_open();
    }

    /// Records that samples older than `floor` were deleted as expired; `newest` is
    /// the newest sample.
    pub(crate) fn lost(&mut self, floor: Timestamp, newest: Timestamp) {
        self.lost_to = self.lost_to.max(floor);
        note_touched(
            &mut self.rules,
            &[&self.prompt, &self.late, &self.in_flight],
        );
        for rule in &mut self.rules {
            rule.since = Timestamp::MIN;
            // Time begins at 0: no sample before it has expired.
            if floor > 0 {
                rule.expired.lose(rule.window(), floor, newest);
                rule.forget_lost();
            }
        }
    }

    /// The late samples are in chunks now: reading them is cheap.
    pub(crate) fn settled(&mut self) {
        self.late_due |= !self.late.is_empty();
    }

    /// Whether there is work for the background thread.
    pub(crate) fn has_prompt_work(&self) -> bool {
        let own = |rule: &Rule| !rule.own.is_empty() || !rule.own_in_flight.is_empty();
        self.late_due
            || self.tries_again
            || !self.prompt.is_empty()
            || !self.in_flight.is_empty()
            || self.rules.iter().any(own)
    }

    /// Whether a row of a destination may be out of date, but for failed buckets.
    pub(crate) fn is_dirty(&self) -> bool {
        let shared = [&self.prompt, &self.late, &self.in_flight];
        let own = self.rules.iter();
        let own = own.flat_map(|rule| [&rule.own, &rule.own_in_flight]);
        !shared.into_iter().chain(own).all(DirtyBuckets::is_empty)
    }

    /// Whether any bucket is dirty.
    pub(crate) fn has_work(&self) -> bool {
        !self.late.is_empty() || self.has_prompt_work()
    }

    /// The oldest timestamp whose sample a rule may still need, if readers need
    /// those from `floor` on.
    pub(crate) fn hold(&self, floor: Timestamp) -> Timestamp {
        if floor == Timestamp::MIN {
            return floor;
        }
        let shared = [&self.prompt, &self.late, &self.in_flight];
        let oldest_of = |dirty: &DirtyBuckets| dirty.oldest().unwrap_or(Timestamp::MAX);
        let oldest = shared
            .into_iter()
            .map(oldest_of)
            .fold(floor, Timestamp::min);
        let needed = self.rules.iter().map(|rule| {
            let own = oldest_of(&rule.own).min(oldest_of(&rule.own_in_flight));
            let open = rule.open.map_or(Timestamp::MAX, |open| open.first);
            let history = rule.backfill.first().map_or(open, |span| span.first);
            rule.window()
                .containing(oldest.min(own))
                .first
                .min(open)
                .min(history)
        });
        needed.fold(floor, Timestamp::min)
    }

    /// Moves the prompt dirty buckets to the late ones, so that a prompt take leaves
    /// them. In a replay a sample may be in the tail that was sealed when the log was
    /// written, and its dirty bucket must outlive that take. At worst a bucket is
    /// recomputed twice: see [`Source::take`].
    pub(crate) fn keep_dirty(&mut self) {
        if !self.prompt.is_empty() {
            self.late.append(&mut self.prompt);
            self.late_due = true;
        }
    }

    /// Moves dirty buckets to those in flight: all of them, or those near the
    /// newest sample. Returns which, for the log. A replay cannot tell the two
    /// kinds apart and keeps all of them if late ones stay. What it keeps must not
    /// be about samples that may be deleted by then. So buckets older than those
    /// that stay, which [`Source::hold`] their samples, are only taken together
    /// with those.
    pub(crate) fn take(&mut self, take: Take, newest: Option<Timestamp>) -> Taken {
        let takes_all = match (self.prompt.oldest(), self.late.oldest()) {
            (_, None) => true,
            (prompt, Some(stays)) => prompt.is_some_and(|oldest| oldest < stays),
        };
        let take = if takes_all { Take::All } else { take };
        let mut is_new = !self.prompt.is_empty() || take == Take::All && !self.late.is_empty();
        self.in_flight.append(&mut self.prompt);
        if take == Take::All {
            self.in_flight.append(&mut self.late);
            self.late_due = false;
        }
        if self.in_flight.is_long() {
            // If they cannot be recomputed, they accumulate here.
            self.in_flight.dedup(&self.rules);
        }
        for rule in &mut self.rules {
            is_new |= !rule.own.is_empty();
            rule.own_in_flight.append(&mut rule.own);
            if rule.open.is_none()
                && let Some(newest) = newest
            {
                let bucket = rule.window().containing(newest);
                // Those from before another rule was created are its own.
                let touched = self.in_flight.touches(bucket) || rule.own_in_flight.touches(bucket);
                rule.open = touched.then_some(bucket);
                is_new |= touched;
            }
        }
        self.note_open();
        Taken { take, is_new }
    }

    /// Drops the dirty buckets in flight.
    pub(crate) fn done(&mut self) {
        note_touched(&mut self.rules, &[&self.in_flight]);
        self.in_flight = DirtyBuckets::default();
        self.tries_again = false;
        for rule in &mut self.rules {
            rule.own_in_flight = DirtyBuckets::default();
        }
    }

    /// Adds a rule. Existing dirty buckets do not apply to it.
    pub(crate) fn add(&mut self, rule: Rule) {
        for old in &mut self.rules {
            old.own.extend(&self.prompt);
            old.own.extend(&self.late);
            old.own_in_flight.extend(&self.in_flight);
        }
        self.prompt = DirtyBuckets::default();
        self.late = DirtyBuckets::default();
        self.in_flight = DirtyBuckets::default();
        self.rules.push(rule);
        self.note_open();
    }

    /// Removes the rule to `destination`.
    pub(crate) fn remove(&mut self, destination: SeriesId) {
        self.rules.retain(|rule| rule.destination != destination);
        self.note_open();
    }

    /// Bytes of memory it holds, its own size included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let shared = [&self.prompt, &self.late, &self.in_flight];
        let own = self
            .rules
            .iter()
            .flat_map(|rule| [&rule.own, &rule.own_in_flight]);
        let dirty: usize = shared
            .into_iter()
            .chain(own)
            .map(DirtyBuckets::memory_bytes)
            .sum();
        let spans = |rule: &Rule| rule.failed.capacity() + rule.backfill.capacity();
        let failed = self.rules.iter().map(spans);
        let failed = failed.sum::<usize>() * size_of::<Bucket>();
        let expired: usize = self
            .rules
            .iter()
            .map(|rule| rule.expired.memory_bytes())
            .sum();
        self.rules.capacity() * size_of::<Rule>() + dirty + expired + failed
    }
}

/// Records in the expired buckets of rules the timestamps of their own and of the
/// `shared` dirty buckets.
fn note_touched(rules: &mut [Rule], shared: &[&DirtyBuckets]) {
    for rule in rules {
        let window = rule.window();
        let own = [&rule.own, &rule.own_in_flight];
        let dirty = shared.iter().copied().chain(own);
        let times = dirty.flat_map(|dirty| dirty.timestamps.iter().copied());
        rule.expired.touch(window, times);
    }
}
