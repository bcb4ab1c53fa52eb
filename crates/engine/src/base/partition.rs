//! Partitions: neighbouring series ids that share block files.

use latewood_model::SeriesId;

/// Series ids of one partition differ in this many low bits.
pub(crate) const PARTITION_BITS: u32 = 16;

/// The partition a series belongs to.
pub(crate) fn partition_of(id: SeriesId) -> u32 {
    id.0 >> PARTITION_BITS
}
