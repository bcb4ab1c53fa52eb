//! The newest sample that the retention of a series counts from.
//!
//! A sample more than a day ahead of the trusted time ([`Horizon`]) does not count: one
//! sender whose clock is years ahead must not delete the history of its series. Once
//! the time has come near such a sample, it counts. Hardly a series has such samples,
//! so only those that do keep a [`Far`]; without it the newest sample counts.
//!
//! A replay does not know what counted when, so nothing expires by it until it is over
//! ([`Series::end_replay`]). Deletions that also remove what has expired say in the log
//! up to where.
//!
//! Invariant: the sample that counts may be assumed too old, never too new, so that
//! samples are kept too long at worst. Nothing of it is stored: a start does not know the
//! sample, and looks it up after the replay ([`Series::find_counted`]). Tested by
//! `tests/merge/far.rs` and the model test.

use super::merge::MergeSource;
use super::moment::Moment;
use super::state::Replay;
use super::{Sealer, Series};
use crate::base::error::Result;
use crate::io::trusted::Horizon;
use crate::io::waiting::no_wait;
use latewood_model::Timestamp;

/// Of a series whose newest samples are ahead of the horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Far {
    /// The newest sample that counts, if it is known.
    counted: Moment,
    /// The oldest sample that was ahead of the horizon when it came.
    next: Timestamp,
}

impl Far {
    fn note(&mut self, timestamp: Timestamp, horizon: Timestamp) {
        if timestamp > horizon {
            self.next = self.next.min(timestamp);
        } else if timestamp > self.counted.or_min() {
            self.counted = timestamp.into();
        }
        if self.next <= horizon {
            self.counted = self.next.max(self.counted.or_min()).into();
            self.next = Timestamp::MAX;
        }
    }
}

impl Series {
    /// The newest sample that counts; the smallest timestamp if it is not known.
    #[inline]
    pub(super) fn counted(&self, newest: Timestamp) -> Timestamp {
        let far = self.rare.as_ref().and_then(|rare| rare.far);
        far.map_or(newest, |far| far.counted.or_min())
    }

    /// Notes a sample that will be the newest, or is late.
    #[cold]
    pub(super) fn note_horizon(&mut self, timestamp: Timestamp, horizon: &mut Horizon) {
        if self.retention_ms == 0 {
            return;
        }
        let horizon = horizon.now();
        if !self.counts() {
            return;
        }
        let newest = self.newest.max(timestamp.into());
        if let Some(far) = self.far_mut() {
            far.note(timestamp, horizon);
            if newest.or_min() <= horizon {
                self.set_far(None);
            }
        } else if timestamp > horizon {
            self.set_far(Some(Far {
                counted: self.newest,
                next: timestamp,
            }));
        }
    }

    /// Forgets what is not ahead of the horizon any more.
    pub(super) fn pass_horizon(&mut self, horizon: &mut Horizon) {
        if let Some(newest) = self.newest()
            && self.far_mut().is_some()
        {
            self.note_horizon(newest, horizon);
        }
    }

    /// Whether its newest sample is ahead of the horizon.
    pub(crate) fn is_far(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.far.is_some())
    }

    /// The log is applied to it from now on.
    pub(crate) fn begin_replay(&mut self) {
        self.replay = Replay::Unsaid;
    }

    /// Applies from the log that everything before `floor` has expired.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn expire_logged(&mut self, floor: Timestamp, sealer: &mut Sealer) -> Result<()> {
        self.settle_now(sealer)?;
        if self.replay == Replay::Unsaid {
            self.replay = Replay::Said;
        }
        self.delete_before(floor, sealer)
    }

    /// Before what a deletion must expire samples, if that is not done.
    pub(super) fn expired_before(&self) -> Option<Timestamp> {
        let newest = self.newest().filter(|_| self.retention_ms != 0)?;
        match self.replay {
            Replay::Over => Some(self.floor(newest)),
            Replay::Unsaid => Some(self.floor_below(newest)),
            Replay::Said | Replay::Follows => None,
        }
    }

    /// Whether it is known which samples count.
    fn counts(&self) -> bool {
        matches!(self.replay, Replay::Over | Replay::Follows)
    }

    /// The log is applied as far as the files need it: readers look from now on, and it goes on.
    pub(crate) fn begin_following(&mut self, sealer: &mut Sealer) {
        self.replay = Replay::Follows;
        self.find_counted(sealer);
    }

    /// The log is applied: samples expire again. Whether some did at once.
    pub(crate) fn end_replay(&mut self, sealer: &mut Sealer) -> bool {
        self.replay = Replay::Over;
        self.find_counted(sealer);
        self.drop_expired()
    }

    /// Notes that it is not known what counts, if the newest sample is ahead of the
    /// horizon. Returns whether it is.
    pub(crate) fn assume_far(&mut self, horizon: &mut Horizon) -> bool {
        let newest = self.newest_or_min();
        let counts = self.retention_ms != 0 && self.counts();
        let is_far = counts && newest > horizon.now();
        self.set_far(is_far.then_some(Far {
            counted: Moment::NONE,
            next: newest,
        }));
        is_far
    }

    /// Looks up which sample counts, if the newest one is ahead of the horizon. Where
    /// it cannot be read, nothing expires until the next sample that counts.
    pub(super) fn find_counted(&mut self, sealer: &mut Sealer) {
        if !self.assume_far(&mut sealer.horizon) {
            return;
        }
        let _locked = no_wait();
        let horizon = sealer.horizon.known();
        let snapshot = self.snapshot_held(Timestamp::MIN, horizon);
        let read = || -> Result<_> { MergeSource::new(snapshot, true)?.last_sample() };
        if let (Ok(Some(found)), Some(far)) = (read(), self.far_mut()) {
            far.counted = found.timestamp.into();
        }
    }

    fn far_mut(&mut self) -> Option<&mut Far> {
        self.rare.as_mut()?.far.as_mut()
    }

    fn set_far(&mut self, far: Option<Far>) {
        self.change_rare(|rare| rare.far = far);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::{DuplicatePolicy, Sample, SeriesOptions};

    /// A series that keeps 10 ms, replayed up to samples from 0 to 29.
    fn replayed(sealer: &mut Sealer) -> Series {
        let options = SeriesOptions {
            retention_ms: 10,
            ..SeriesOptions::default()
        };
        let mut series = Series::new(b"key"[..].into(), &options);
        series.begin_replay();
        for at in 0..30 {
            let sample = Sample::new(at, 1.0);
            let fate = series.put_logged(sample, DuplicatePolicy::Last, sealer);
            fate.unwrap();
        }
        series
    }

    fn oldest_after_a_deletion(said: Option<Timestamp>) -> Timestamp {
        let sealer = &mut Sealer::default();
        let mut series = replayed(sealer);
        if let Some(floor) = said {
            series.expire_logged(floor, sealer).unwrap();
        }
        series.delete_logged(25, 29, sealer).unwrap();
        series.end_replay(sealer);
        let snapshot = series.snapshot(Timestamp::MIN, Timestamp::MAX);
        let source = MergeSource::new(snapshot, false).unwrap();
        source.first_sample().unwrap().unwrap().timestamp
    }

    #[test]
    fn a_logged_deletion_expires_what_the_log_says() {
        // The newest sample that is left is 24.
        assert_eq!(oldest_after_a_deletion(Some(17)), 17);
        assert_eq!(oldest_after_a_deletion(Some(Timestamp::MIN)), 14);
    }

    #[test]
    fn a_logged_deletion_of_an_earlier_version_expires_by_the_newest_sample() {
        assert_eq!(oldest_after_a_deletion(None), 19);
    }
}
