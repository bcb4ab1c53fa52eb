//! Taking a sample: in order, late into the tail, among the late operations, or
//! over what is stored.
//!
//! Nothing is decoded on the way, except what a policy must know of: BLOCK
//! whether a sample exists, and MIN, MAX and SUM what it is where NaN is about.
//! Invariants as in [`super`]; tested by `series/tests.rs` and the model test.

use super::late::LateOp;
use super::{Fate, Sealer, Series};
use crate::base::error::Result;
use crate::base::refusal::Refusal;
use crate::series::rules::Links;
use latewood_model::{DuplicatePolicy, Ignore, Sample, Timestamp};

impl Series {
    /// Takes a sample. Constant time when it is newer than all before;
    /// amortised logarithmic when late.
    pub(crate) fn append(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        if let Some(newest) = self.newest()
            && policy == DuplicatePolicy::Last
            && self.ignores(sample, newest)?
        {
            return Ok(Fate::Ignored(newest));
        }
        self.put(sample, policy, sealer)
    }

    /// Takes a sample whatever the IGNORE rule says.
    #[inline]
    pub(crate) fn put(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        if let Some(newest) = self.newest()
            && sample.timestamp <= newest
        {
            let fate = self.append_late(sample, policy, newest, sealer)?;
            if self.links.is_some() && fate.is_change() {
                self.note_touched(sample.timestamp);
            }
            return Ok(fate);
        }
        // Lines that led nowhere now lead here.
        let joins =
            self.links.is_some() && self.holds_nan && !sample.value.is_nan() && self.ends_in_nan();
        if let Some(links) = &mut self.links
            && let Links::Source(source) = &mut **links
        {
            source.in_order(sample.timestamp);
            if joins {
                source.joined(sample.timestamp);
            }
        }
        self.newest = sample.timestamp.into();
        self.holds_nan |= sample.value.is_nan();
        if self
            .sealed_last
            .get()
            .is_some_and(|last| sample.timestamp <= last)
        {
            return Ok(self.follow_deleted(sample, policy));
        }
        self.push_tail(sample, sealer)?;
        Ok(Fate::InOrder)
    }

    /// Takes a sample that the log holds, so that it was accepted: no policy
    /// looks for what is stored.
    pub(crate) fn put_logged(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        let is_deep = self.reaches_stored(sample.timestamp);
        let is_late = self
            .newest()
            .is_some_and(|newest| sample.timestamp <= newest);
        let fate = if is_deep && is_late {
            if self.links.is_some() {
                self.note_touched(sample.timestamp);
            }
            self.stage_stored(sample, policy)
        } else {
            self.put(sample, policy, sealer)?
        };
        if let Some(source) = self.source_mut() {
            source.keep_dirty();
        }
        Ok(fate)
    }

    fn ignores(&self, sample: Sample, newest: Timestamp) -> Result<bool> {
        let Some(Ignore {
            max_time_diff_ms,
            max_value_diff,
        }) = self.ignore.as_deref().copied()
        else {
            return Ok(false);
        };
        if sample.timestamp < newest || sample.timestamp.abs_diff(newest) > max_time_diff_ms {
            return Ok(false);
        }
        let last = self.value_at(newest)?;
        Ok(last.is_some_and(|last| (sample.value - last).abs() <= max_value_diff))
    }

    fn append_late(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        newest: Timestamp,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        if sample.timestamp < self.floor(newest) {
            return Ok(Fate::Refused(Refusal::OlderThanRetention));
        }
        match self.sealed_last.get() {
            Some(sealed_last) if sample.timestamp <= sealed_last => {
                self.append_sealed(sample, policy, sealer)
            }
            _ => self.append_into_tail(sample, policy, sealer),
        }
    }

    /// Takes a sample newer than all there are, but not than what was flushed:
    /// the newest ones were deleted.
    #[cold]
    fn follow_deleted(&mut self, sample: Sample, policy: DuplicatePolicy) -> Fate {
        if let Some(stored) = &mut self.stored {
            stored.push(LateOp::new(sample, policy));
            stored.set_newest_value(Some(sample.value));
        }
        Fate::Staged
    }

    /// Stages a sample at or before the end of what is stored.
    #[cold]
    fn stage_stored(&mut self, sample: Sample, policy: DuplicatePolicy) -> Fate {
        let op = LateOp::new(sample, policy);
        self.holds_nan |= op.may_leave_nan();
        let is_newest = self.newest() == Some(sample.timestamp);
        if let Some(stored) = &mut self.stored {
            if is_newest {
                let newest = stored.newest_value();
                stored.set_newest_value(newest.map(|old| op.apply(Some(old))));
            }
            stored.push(op);
        }
        Fate::Staged
    }

    /// Stages a sample at or before `sealed_last`.
    fn append_sealed(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        let begun = sealer.inner.begin();
        let refused = match policy {
            DuplicatePolicy::Block => {
                sealer.checks += 1;
                self.exists_sealed(sample.timestamp)?
            }
            DuplicatePolicy::First | DuplicatePolicy::Last => false,
            _ if sample.value.is_nan() || self.holds_nan => self
                .value_at(sample.timestamp)?
                .is_some_and(|old| policy.resolve(old, sample.value).is_none()),
            _ => false,
        };
        sealer.inner.end_check(begun.filter(|_| looks(policy)));
        if refused {
            return Ok(Fate::Refused(Refusal::Duplicate));
        }
        if self.reaches_stored(sample.timestamp) {
            return Ok(self.stage_stored(sample, policy));
        }
        let op = LateOp::new(sample, policy);
        self.holds_nan |= op.may_leave_nan();
        self.late.get_or_insert_default().push(op);
        Ok(Fate::Staged)
    }

    /// Whether a timestamp lies within what was flushed.
    pub(super) fn reaches_stored(&self, timestamp: Timestamp) -> bool {
        let stored = self.stored.as_ref();
        stored.is_some_and(|stored| timestamp <= stored.last())
    }

    /// Whether there is a sample at `timestamp`, at or before `sealed_last`.
    fn exists_sealed(&mut self, timestamp: Timestamp) -> Result<bool> {
        if let Some(stored) = &mut self.stored
            && timestamp <= stored.last()
        {
            return stored.exists(timestamp);
        }
        if let Some(late) = &mut self.late {
            late.prepare(timestamp, &self.chunks)?;
            if let Some(says) = late.says(timestamp) {
                return Ok(says);
            }
        }
        if let Some(chunk) = self.chunk_at(timestamp)
            && chunk.exists(timestamp)?
        {
            return Ok(true);
        }
        let late = self.late.as_mut();
        Ok(late.is_some_and(|late| late.holds(timestamp)))
    }
}

/// Whether the policy may ask for what is stored.
fn looks(policy: DuplicatePolicy) -> bool {
    !matches!(policy, DuplicatePolicy::First | DuplicatePolicy::Last)
}
