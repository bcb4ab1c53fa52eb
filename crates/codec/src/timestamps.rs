//! The timestamps of a frame: strictly ascending `i64`, any unit.
//!
//! The first timestamp is in the frame's header. [`Regular`] spacing needs
//! only its step; [`Bitmap`] covers a grid with gaps; [`DeltaPfor`] and
//! [`Linear`] cover drift and jitter. All of them can find a timestamp without
//! decoding the frame. [`Gorilla`] is the field's reference, kept for
//! comparison; [`Raw`] always works.
//!
//! [`Regular`]: TimestampCoding::Regular
//! [`Bitmap`]: TimestampCoding::Bitmap
//! [`DeltaPfor`]: TimestampCoding::DeltaPfor
//! [`Linear`]: TimestampCoding::Linear
//! [`Gorilla`]: TimestampCoding::Gorilla
//! [`Raw`]: TimestampCoding::Raw

pub(crate) mod bitmap;
pub(crate) mod delta_pfor;
pub(crate) mod gorilla;
pub(crate) mod linear;
pub(crate) mod raw;
pub(crate) mod regular;

use crate::Error;
use crate::codings::{Found, codings};

codings! {
    "unknown timestamp coding";
    /// How the timestamps of a frame are written. The numbers are part of the format.
    pub enum TimestampCoding {
        /// Eight bytes each.
        Raw = 0,
        /// Equal spacing: the step alone.
        Regular = 1,
        /// Deltas over their common divisor, patched frame of reference, a restart every 128.
        DeltaPfor = 2,
        /// Distance from a straight line, packed at one width.
        Linear = 3,
        /// Double delta, as in the Gorilla paper. Reference; never chosen.
        Gorilla = 4,
        /// One bit for every place of a grid.
        Bitmap = 5,
    }
}

/// The timestamps of a parsed frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) coding: TimestampCoding,
    pub(crate) count: usize,
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Spacing, of [`TimestampCoding::Regular`] only.
    pub(crate) step: u64,
    pub(crate) bytes: &'a [u8],
}

impl Section<'_> {
    /// Fills `out`, whose length is the count.
    pub(crate) fn decode(&self, out: &mut [i64]) -> Result<(), Error> {
        match self.coding {
            TimestampCoding::Raw => raw::decode(self.bytes, out)?,
            TimestampCoding::Regular => regular::decode(self.first, self.step, out),
            TimestampCoding::DeltaPfor => delta_pfor::decode(self.bytes, self.first, out)?,
            TimestampCoding::Linear => linear::decode(self.bytes, self.first, out)?,
            TimestampCoding::Gorilla => gorilla::decode(self.bytes, self.first, out)?,
            TimestampCoding::Bitmap => {
                bitmap::decode(self.bytes, self.first, self.span(), out)?;
            }
        }
        if out.first() != Some(&self.first) || out.last() != Some(&self.last) {
            return Err(Error::Corrupt("timestamps disagree with the header"));
        }
        Ok(())
    }

    /// Index of the first timestamp at or after `t`; the count if there is none.
    pub(crate) fn lower_bound(&self, t: i64) -> Result<usize, Error> {
        Ok(self.search(t)?.0)
    }

    /// True if `t` is one of the timestamps.
    pub(crate) fn exists(&self, t: i64) -> Result<bool, Error> {
        if self.coding == TimestampCoding::Bitmap {
            if t < self.first || t > self.last {
                return Ok(false);
            }
            let distance = t.wrapping_sub(self.first) as u64;
            return bitmap::exists(self.bytes, self.span(), self.count, distance);
        }
        Ok(self.search(t)?.1)
    }

    fn span(&self) -> u64 {
        self.last.wrapping_sub(self.first) as u64
    }

    /// [`Self::lower_bound`], and whether that timestamp is `t` itself.
    fn search(&self, t: i64) -> Found {
        if t <= self.first {
            return Ok((0, t == self.first));
        }
        if t >= self.last {
            return Ok(if t == self.last {
                (self.count - 1, true)
            } else {
                (self.count, false)
            });
        }
        match self.coding {
            TimestampCoding::Raw => raw::search(self.bytes, self.count, t),
            TimestampCoding::Regular => Ok(regular::search(self.first, self.step, t)),
            TimestampCoding::DeltaPfor => delta_pfor::search(self.bytes, self.first, self.count, t),
            TimestampCoding::Linear => linear::search(self.bytes, self.first, self.count, t),
            TimestampCoding::Gorilla => gorilla::search(self.bytes, self.first, self.count, t),
            TimestampCoding::Bitmap => {
                let distance = t.wrapping_sub(self.first) as u64;
                bitmap::search(self.bytes, self.span(), self.count, distance)
            }
        }
    }
}

/// Test data shared by the codings and their twins.
#[cfg(test)]
pub(crate) mod samples {
    use proptest::prelude::*;

    /// 1 to 512 strictly ascending timestamps of many shapes, the extremes included.
    pub(crate) fn ascending() -> impl Strategy<Value = Vec<i64>> {
        let jitter = (
            any::<i64>(),
            1u64..100_000,
            0u64..50,
            prop::collection::vec(any::<u64>(), 0..511),
        )
            .prop_map(|(first, step, jitter, noise)| {
                let deltas = noise.iter().map(|n| step + n % (jitter + 1));
                build(first, deltas)
            });
        let gaps = (
            any::<i64>(),
            1u64..100_000,
            prop::collection::vec(0u8..40, 0..511),
        )
            .prop_map(|(first, step, gaps)| {
                build(
                    first,
                    gaps.iter().map(|g| step * if *g == 0 { 5 } else { 1 }),
                )
            });
        let wild = prop::collection::btree_set(
            prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), -10i64..10],
            1..100,
        )
        .prop_map(|set| set.into_iter().collect());
        prop_oneof![jitter, gaps, wild]
    }

    fn build(first: i64, deltas: impl Iterator<Item = u64>) -> Vec<i64> {
        let mut timestamps = vec![first];
        for delta in deltas {
            match timestamps[timestamps.len() - 1].checked_add_unsigned(delta) {
                Some(next) => timestamps.push(next),
                None => break,
            }
        }
        timestamps
    }

    /// The twin of every search: a scan.
    pub(crate) fn naive_search(timestamps: &[i64], t: i64) -> (usize, bool) {
        let index = timestamps
            .iter()
            .position(|at| *at >= t)
            .unwrap_or(timestamps.len());
        (index, timestamps.get(index) == Some(&t))
    }

    /// Checks what `decode` and `search` read of the coded `timestamps`.
    pub(crate) fn check(
        timestamps: &[i64],
        decode: impl FnOnce(&mut [i64]),
        search: impl Fn(i64) -> (usize, bool),
    ) {
        let mut back = vec![0; timestamps.len()];
        decode(&mut back);
        assert_eq!(back, timestamps);
        for t in probes(timestamps) {
            assert_eq!(search(t), naive_search(timestamps, t), "{t}");
        }
    }

    /// Timestamps worth looking for: all of them and their neighbours.
    pub(crate) fn probes(timestamps: &[i64]) -> Vec<i64> {
        let mut probes: Vec<i64> = timestamps
            .iter()
            .step_by(1 + timestamps.len() / 40)
            .flat_map(|t| [t.saturating_sub(1), *t, t.saturating_add(1)])
            .collect();
        probes.extend([i64::MIN, 0, i64::MAX]);
        probes
    }
}
