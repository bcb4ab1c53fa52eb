//! Series that ended together, as one record of the log has it.
//!
//! Ids are bits behind the first one, so a thousand neighbours that end take a bit each. Where ids
//! are far apart, several records are shorter than the zeros between. Tested by `tests/log_ended.rs`.

use crate::base::partition::partition_of;
use crate::log::record::STRIDE_LOG2_MAX;
use latewood_model::SeriesId;

/// Ids of a partition, and bits of the longest record.
const BITS_MAX: usize = 1 << 16;
/// Bits from one id to the next that take less than a record of their own.
const GAP_BITS_MAX: usize = 64;

/// Series of one partition that are gone because retention took all of their samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    /// The first id.
    pub first: SeriesId,
    /// Two to this power is the distance of the ids of two bits; at most 16.
    pub stride_log2: u8,
    /// Bit i, from the lowest of the first byte on, is set if the series i distances behind the
    /// first ended. The first bit is set, and so is one of the last byte.
    pub bits: &'a [u8],
}

impl<'a> Ended<'a> {
    /// The ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = SeriesId> + use<'a> {
        let Self {
            first,
            stride_log2,
            bits,
        } = *self;
        let places = 0..bits.len() * 8;
        let set = places.filter(|at| bits[at / 8] >> (at % 8) & 1 == 1);
        set.map(move |at| SeriesId(first.0 + ((at as u64) << stride_log2)))
    }

    /// Ids.
    pub(crate) fn count(&self) -> u64 {
        let ones = self.bits.iter().map(|byte| u64::from(byte.count_ones()));
        ones.sum()
    }

    /// Whether a writer may have written this.
    pub(crate) fn is_sane(&self) -> bool {
        let (Some(first), Some(&last)) = (self.bits.first(), self.bits.last()) else {
            return false;
        };
        if first & 1 == 0
            || last == 0
            || self.bits.len() > BITS_MAX / 8
            || self.stride_log2 > STRIDE_LOG2_MAX
        {
            return false;
        }
        let at = self.bits.len() as u64 * 8 - 1 - u64::from(last.leading_zeros());
        let last = SeriesId(self.first.0 + (at << self.stride_log2));
        partition_of(last) == partition_of(self.first)
    }
}

/// Sets the bits of one record that begins with the first of `ids`. Returns how many of them it has:
/// at least one, unless there is none.
pub(crate) fn gather(ids: &[SeriesId], stride_log2: u8, bits: &mut Vec<u8>) -> usize {
    bits.clear();
    let Some(&first) = ids.first() else { return 0 };
    let mut before = 0;
    for (count, id) in ids.iter().enumerate() {
        let away = id.0.wrapping_sub(first.0);
        let at = (away >> stride_log2) as usize;
        let is_near = count == 0 || (before + 1..=before + GAP_BITS_MAX).contains(&at);
        let is_alike = (at as u64) << stride_log2 == away;
        if !is_near || !is_alike || partition_of(*id) != partition_of(first) {
            return count;
        }
        bits.resize(at / 8 + 1, 0);
        bits[at / 8] |= 1 << (at % 8);
        before = at;
    }
    ids.len()
}
