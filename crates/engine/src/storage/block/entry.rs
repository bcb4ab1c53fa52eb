//! The metadata of blocks and of their entries.

use crate::format::batches::BatchStats;
use latewood_codec::Stats;
use latewood_model::{DuplicatePolicy, SeriesId, Timestamp};

/// The list of its partition that a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    /// Resolved samples.
    Base,
    /// Operations and tombstones in arrival order.
    Late,
}

impl Family {
    /// The family as a number in files.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// The family of a number in a file.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Base, Self::Late].get(usize::from(number)).copied()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A chunk of resolved samples; in base blocks.
    Base,
    /// A chunk of operations that all have this policy; in late blocks.
    Overlay(DuplicatePolicy),
    /// Deletes everything older in arrival in `first..=last`; in late blocks. It
    /// has no bytes and no samples.
    Tombstone,
}

impl Kind {
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Base => Family::Base,
            Self::Overlay(_) | Self::Tombstone => Family::Late,
        }
    }
}

/// A chunk or tombstone of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) id: SeriesId,
    pub(crate) kind: Kind,
    /// Oldest timestamp, in milliseconds.
    pub(crate) first: Timestamp,
    /// Newest timestamp, in milliseconds, itself included.
    pub(crate) last: Timestamp,
    /// Number of samples; 0 for a tombstone.
    pub(crate) count: u32,
    /// Offset of its chunk in the file, in bytes.
    pub(crate) offset: u64,
    /// Length of its chunk; 0 for a tombstone.
    pub(crate) len_bytes: u32,
    /// crc32c of its chunk; 0 for a tombstone.
    pub(crate) checksum: u32,
    /// Statistics of all its values; only for larger base chunks, see
    /// [`Entry::stats`].
    pub(crate) values: Option<Stats>,
}

impl Entry {
    /// The statistics of the samples, without reading them. Only base chunks of at
    /// least 256 samples with a finite sum have them.
    pub(crate) fn stats(&self) -> Option<BatchStats> {
        self.values.map(|values| BatchStats {
            first: self.first,
            last: self.last,
            count: u64::from(self.count),
            nan_count: values.nan_count as u64,
            min: values.min,
            max: values.max,
            sum: values.sum,
            lost: 0.0,
            is_whole: None,
        })
    }

    /// Start and end of its chunk in the file, in bytes.
    pub(crate) fn bytes_span(&self) -> (u64, u64) {
        let end = self.offset.saturating_add(u64::from(self.len_bytes));
        (self.offset, end)
    }

    /// Whether it intersects `from..=to`.
    pub(crate) fn touches(&self, from: Timestamp, to: Timestamp) -> bool {
        self.first <= to && from <= self.last
    }
}

/// A block as the manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockMeta {
    /// The number in its file name.
    pub(crate) number: u64,
    /// The partition of all its series.
    pub(crate) partition: u32,
    pub(crate) family: Family,
    /// Length of the file.
    pub(crate) len_bytes: u64,
    /// Oldest timestamp of an entry, in milliseconds.
    pub(crate) first: Timestamp,
    /// Newest timestamp of an entry, in milliseconds.
    pub(crate) last: Timestamp,
    /// Number of samples in all entries.
    pub(crate) samples: u64,
    pub(crate) entries: u64,
    /// Number of series with entries.
    pub(crate) series: u64,
    /// crc32c of the footer, which covers every byte of the file through its
    /// checksums.
    pub(crate) checksum: u32,
}

impl BlockMeta {
    /// Whether it may have entries in `from..=to`.
    pub(crate) fn reaches(&self, from: Timestamp, to: Timestamp) -> bool {
        self.first <= to && from <= self.last
    }
}
