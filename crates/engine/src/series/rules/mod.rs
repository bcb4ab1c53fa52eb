//! Compaction rules: buckets of one series kept as samples of another.
//!
//! Writing to a source costs one comparison: whether the sample leaves the
//! buckets that are open. What changed a closed bucket leaves a mark
//! ([`marks`]); marked buckets are computed anew from the source's samples, in
//! batches ([`recompute`], [`compute`]): by a thread behind the writers, before
//! every read of a destination and before every write of a user to one. So one
//! late sample computes one bucket for each rule, and computing twice is no
//! harm.
//!
//! Invariants:
//! 1. A series is a source, a destination or neither, never both. A
//!    destination has one source.
//! 2. A bucket is *open* while it holds the source's newest sample. Once no
//!    mark is left, a destination holds for every closed bucket touched since
//!    its rule was made what a range query over all samples of that bucket
//!    gives, and nothing for buckets that are no row of it. Rows of buckets
//!    whose samples were deleted as expired stay as they are ([`past`]).
//! 3. Samples of a bucket stay in memory while it may still be marked, also
//!    past the retention ([`Source::hold`]).
//! 4. DirtyBuckets are a function of the source's records in the log, so replay makes
//!    them again; a TAKE record moves them to those in flight and a DONE record
//!    forgets these.
//! 5. A bucket whose samples cannot be read is no longer marked, so that it
//!    stops nothing else; who reads its row is told ([`unread`]).
//!
//! Tested by `tests/db_rules.rs` and the model test.

pub(crate) mod dirty;
pub(crate) mod failed;
mod links;
mod stored;
pub(crate) mod work;

use crate::base::window::{Bucket, Window};
use crate::format::expired_buckets::ExpiredBuckets;
use crate::format::rule::RuleSpec;
use dirty::DirtyBuckets;
use latewood_model::{Aggregator, SeriesId, Timestamp};

/// Late marks that are worked off though their source still gets late samples.
const LATE_DIRTY_MAX: usize = 64 * 1024;

/// Which marks to work off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Those near the newest samples, and what is in flight.
    Prompt,
    /// All.
    All,
}

/// How a series is tied to others.
#[derive(Debug)]
pub(crate) enum Links {
    Source(Box<Source>),
    Destination(Link),
}

impl Links {
    /// Bytes of memory of it and what is behind it.
    pub(crate) fn memory_bytes(&self) -> usize {
        let behind = match self {
            Self::Source(source) => source.memory_bytes(),
            Self::Destination(_) => 0,
        };
        size_of::<Self>() + behind
    }
}

/// A destination's end of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) source: SeriesId,
    /// Tells the rule from others between the same two.
    pub(crate) number: u64,
}

/// A source's end of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) destination: SeriesId,
    pub(crate) number: u64,
    pub(crate) spec: RuleSpec,
    /// Nothing older counts: it was past the retention when the rule was made.
    /// The start of time once what was past it is deleted.
    pub(crate) since: Timestamp,
    /// The bucket of the newest sample, once one came in since the rule was made.
    pub(crate) open: Option<Bucket>,
    /// Dirty buckets of this rule alone.
    own: DirtyBuckets,
    own_in_flight: DirtyBuckets,
    pub(crate) expired: ExpiredBuckets,
    /// Buckets that were computed in vain, as spans that ascend without meeting.
    pub(crate) failed: Vec<Bucket>,
}

impl Rule {
    pub(crate) fn window(&self) -> Window {
        Window::grid(self.spec.bucket_ms, self.spec.align)
    }

    /// Whether a bucket depends on samples outside of it.
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
        Self::new(SeriesId(0), 0, spec, Timestamp::MIN)
    }

    pub(crate) fn new(
        destination: SeriesId,
        number: u64,
        spec: RuleSpec,
        since: Timestamp,
    ) -> Self {
        Self {
            destination,
            number,
            spec,
            since,
            open: None,
            own: DirtyBuckets::default(),
            own_in_flight: DirtyBuckets::default(),
            expired: ExpiredBuckets::default(),
            failed: Vec::new(),
        }
    }
}

/// The rules of a source and what they have yet to do.
#[derive(Debug)]
pub(crate) struct Source {
    rules: Vec<Rule>,
    /// The oldest timestamp that changes open buckets only, and the newest one
    /// inside the open buckets of all rules.
    open: (Timestamp, Timestamp),
    /// Dirty buckets near the newest samples: cheap to work off.
    prompt: DirtyBuckets,
    /// Dirty buckets among what is sealed: they wait for the late samples to settle.
    late: DirtyBuckets,
    /// Dirty buckets somebody is working off, or was when the process ended.
    in_flight: DirtyBuckets,
    /// The late marks should be worked off, too.
    pub(crate) late_due: bool,
    /// What could not be read before the start is to be tried again.
    tries_again: bool,
    /// It stands in its shard's list of sources with work.
    pub(crate) queued: bool,
    /// Samples older than this may be gone, deleted as expired. Which buckets
    /// that concerns, each rule knows.
    lost_to: Timestamp,
    /// How often marked buckets were left alone, because samples of them are gone.
    pub(crate) kept: u64,
}

/// Nothing is inside the open buckets of all rules.
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

    /// A sample newer than all before came; `before` was the newest.
    #[inline]
    pub(crate) fn in_order(&mut self, timestamp: Timestamp) {
        if timestamp > self.open.1 {
            self.leave(timestamp);
        }
    }

    /// Opens the buckets of `timestamp` and marks those it left.
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

    /// A number in order came behind NaN: it ends the line of a bucket before
    /// its own, which may have closed long ago.
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
        // A late sample in an open bucket may change the line to the one before.
        if self.rules.iter().any(Rule::interpolates) {
            self.open.0 = Timestamp::MAX;
        }
    }

    /// A sample no newer than the newest was kept or changed one. `sealed`
    /// says that it lies among what is sealed.
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

    /// The samples of `from..=to` were deleted; `newest` is left, `newest_before` was.
    pub(crate) fn deleted(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        newest_before: Option<Timestamp>,
        newest: Option<Timestamp>,
    ) {
        self.prompt.push_span(from, to);
        for rule in &mut self.rules {
            rule.expired.deleted(rule.window(), (from, to), newest);
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

    /// What is older than `floor` was deleted as expired; `newest` is the newest
    /// sample.
    pub(crate) fn lost(&mut self, floor: Timestamp, newest: Timestamp) {
        self.lost_to = self.lost_to.max(floor);
        note_touched(
            &mut self.rules,
            &[&self.prompt, &self.late, &self.in_flight],
        );
        for rule in &mut self.rules {
            rule.since = Timestamp::MIN;
            // Time begins at 0: before that nothing was taken.
            if floor > 0 {
                rule.expired.lose(rule.window(), floor, newest);
                rule.forget_lost();
            }
        }
    }

    /// The late samples became part of chunks: looking at them is cheap now.
    pub(crate) fn settled(&mut self) {
        self.late_due |= !self.late.is_empty();
    }

    /// Whether there is work for the thread behind the writers.
    pub(crate) fn has_prompt_work(&self) -> bool {
        let own = |rule: &Rule| !rule.own.is_empty() || !rule.own_in_flight.is_empty();
        self.late_due
            || self.tries_again
            || !self.prompt.is_empty()
            || !self.in_flight.is_empty()
            || self.rules.iter().any(own)
    }

    /// Whether there is any mark.
    pub(crate) fn has_work(&self) -> bool {
        !self.late.is_empty() || self.has_prompt_work()
    }

    /// The oldest timestamp whose sample some rule may still need where those
    /// from `floor` on are kept for readers.
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
            rule.window().containing(oldest.min(own)).first.min(open)
        });
        needed.fold(floor, Timestamp::min)
    }

    /// Keeps marks from what is taken promptly: in a replay a sample may lie in
    /// the tail that was among what is sealed when the log was written, and its
    /// mark must outlive what was taken then. At worst a bucket is computed
    /// twice: see [`Source::take`].
    pub(crate) fn keep_dirty(&mut self) {
        if !self.prompt.is_empty() {
            self.late.append(&mut self.prompt);
            self.late_due = true;
        }
    }

    /// Moves marks to those in flight: all of them, or those near the newest.
    /// Says which, for the log: a replay, which cannot tell them apart, keeps
    /// all where late ones stay. What it keeps too long must not be about samples
    /// that may be gone by then, so none older than those that stay, which
    /// [`Source::hold`] them, is taken without these.
    pub(crate) fn take(&mut self, take: Take, newest: Option<Timestamp>) -> Take {
        let takes_all = match (self.prompt.oldest(), self.late.oldest()) {
            (_, None) => true,
            (prompt, Some(stays)) => prompt.is_some_and(|oldest| oldest < stays),
        };
        let take = if takes_all { Take::All } else { take };
        self.in_flight.append(&mut self.prompt);
        if take == Take::All {
            self.in_flight.append(&mut self.late);
            self.late_due = false;
        }
        if self.in_flight.is_long() {
            // Where they cannot be worked off, they come together here.
            self.in_flight.dedup(&self.rules);
        }
        for rule in &mut self.rules {
            rule.own_in_flight.append(&mut rule.own);
            if rule.open.is_none()
                && let Some(newest) = newest
            {
                let bucket = rule.window().containing(newest);
                // Those of before another rule was made are its own.
                let touched = self.in_flight.touches(bucket) || rule.own_in_flight.touches(bucket);
                rule.open = touched.then_some(bucket);
            }
        }
        self.note_open();
        take
    }

    /// Forgets the marks in flight.
    pub(crate) fn done(&mut self) {
        note_touched(&mut self.rules, &[&self.in_flight]);
        self.in_flight = DirtyBuckets::default();
        for rule in &mut self.rules {
            rule.own_in_flight = DirtyBuckets::default();
        }
    }

    /// Adds a rule. DirtyBuckets there are do not concern it.
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

    /// Takes the rule to `destination` away.
    pub(crate) fn remove(&mut self, destination: SeriesId) {
        self.rules.retain(|rule| rule.destination != destination);
        self.note_open();
    }

    /// Bytes of memory of it and what is behind it.
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
        let failed = self.rules.iter().map(|rule| rule.failed.capacity());
        let failed = failed.sum::<usize>() * size_of::<Bucket>();
        let expired: usize = self
            .rules
            .iter()
            .map(|rule| rule.expired.memory_bytes())
            .sum();
        self.rules.capacity() * size_of::<Rule>() + dirty + expired + failed
    }
}

/// Notes in the past of rules what their own marks and `shared` ones are about.
fn note_touched(rules: &mut [Rule], shared: &[&DirtyBuckets]) {
    for rule in rules {
        let window = rule.window();
        let own = [&rule.own, &rule.own_in_flight];
        let dirty = shared.iter().copied().chain(own);
        let times = dirty.flat_map(|dirty| dirty.timestamps.iter().copied());
        rule.expired.touch(window, times);
    }
}
