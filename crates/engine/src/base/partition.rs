//! Partitions: neighbouring series ids that share block files.

use latewood_model::SeriesId;

/// Series ids of one partition differ in this many low bits.
pub(crate) const PARTITION_BITS: u32 = 16;

/// The first series of a partition.
pub(crate) fn first_of(partition: u32) -> SeriesId {
    SeriesId(u64::from(partition) << PARTITION_BITS)
}

/// The partition a series belongs to.
pub(crate) fn partition_of(id: SeriesId) -> u32 {
    // Ids have 48 bits, and so this many fit.
    (id.0 >> PARTITION_BITS) as u32
}
