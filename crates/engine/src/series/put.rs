//! Adding a sample: in order, late into the tail, into the late operations, or over
//! stored samples.
//!
//! A write decodes nothing, except what a policy needs: BLOCK must know whether a
//! sample exists, and MIN, MAX and SUM must know the old value if NaN is involved.
//! Invariants as in [`super`]; tested by `series/tests.rs` and the model test.

use super::late::LateOp;
use super::{Fate, Sealer, Series};
use crate::base::error::Result;
use crate::base::refusal::Refusal;
use crate::observe::stages::Stage;
use latewood_model::{DuplicatePolicy, Ignore, Sample, Timestamp};

impl Series {
    /// Adds a sample. Constant time if it is newer than all before; amortised
    /// logarithmic if it is late.
    pub(crate) fn append(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        if let Some(newest) = self.newest()
            && policy == DuplicatePolicy::Last
            && self.ignores
            && self.is_ignored(sample, newest)?
        {
            return Ok(Fate::Ignored(newest));
        }
        self.put(sample, policy, sealer)
    }

    /// Adds a sample without the IGNORE rule.
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
            if (self.links.is_some() || self.is_far())
                && matches!(fate, Fate::Late | Fate::Staged | Fate::Duplicate)
            {
                self.note_late(sample.timestamp, sealer);
            }
            return Ok(fate);
        }
        if self.retention_ms != 0 && sample.timestamp > sealer.horizon.known() {
            self.note_horizon(sample.timestamp, &mut sealer.horizon);
        }
        // Interpolation lines without an end now lead here.
        let joins =
            self.links.is_some() && self.holds_nan && !sample.value.is_nan() && self.ends_in_nan();
        if let Some(links) = &mut self.links
            && let Some(source) = &mut links.source
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

    /// Adds a sample from the log. It was accepted, so no policy looks up stored
    /// samples.
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
            self.note_late(sample.timestamp, sealer);
            self.stage_stored(sample, policy)
        } else {
            self.put(sample, policy, sealer)?
        };
        if let Some(source) = self.source_mut() {
            source.keep_dirty();
        }
        Ok(fate)
    }

    /// Notes a late sample where that is needed.
    #[cold]
    fn note_late(&mut self, timestamp: Timestamp, sealer: &mut Sealer) {
        if self.is_far() {
            self.note_horizon(timestamp, &mut sealer.horizon);
        }
        if self.links.is_some() {
            self.note_touched(timestamp);
        }
    }

    #[cold]
    fn is_ignored(&self, sample: Sample, newest: Timestamp) -> Result<bool> {
        let Some(Ignore {
            max_time_diff_ms,
            max_value_diff,
        }) = self.rare.as_ref().map(|rare| rare.ignore)
        else {
            return Ok(false);
        };
        if sample.timestamp < newest || sample.timestamp.abs_diff(newest) > max_time_diff_ms {
            return Ok(false);
        }
        let last = self.value_at(newest)?;
        Ok(last.is_some_and(|last| (sample.value - last).abs() <= max_value_diff))
    }

    #[inline(always)]
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

    /// Adds a sample newer than all others, but not newer than the flushed ones:
    /// the newest samples were deleted.
    #[cold]
    fn follow_deleted(&mut self, sample: Sample, policy: DuplicatePolicy) -> Fate {
        if let Some(stored) = &mut self.stored {
            stored.push(LateOp::new(sample, policy));
            stored.set_newest_value(Some(sample.value));
        }
        Fate::Staged
    }

    /// Stages a sample at or before the end of the stored part.
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
    #[inline(always)]
    fn append_sealed(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        let begun = sealer.timer.begin_step().filter(|_| looks(policy));
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
        sealer.timer.end_step(Stage::DuplicateCheck, begun);
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

    /// Whether a timestamp is in the flushed part.
    pub(super) fn reaches_stored(&self, timestamp: Timestamp) -> bool {
        let stored = self.stored.as_ref();
        stored.is_some_and(|stored| timestamp <= stored.last())
    }

    /// Whether a sample exists at `timestamp`, at or before `sealed_last`.
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

/// Whether the policy may need the stored sample.
fn looks(policy: DuplicatePolicy) -> bool {
    !matches!(policy, DuplicatePolicy::First | DuplicatePolicy::Last)
}
