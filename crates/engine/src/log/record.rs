//! One record of the log.
//!
//! A record begins with a tag byte. Bit 0 clear is a sample: bit 1 says that
//! its timestamp equals the one before, bits 2-3 how its series follows (the
//! same; as far away as last time; a step given), bits 4-7 the value's form
//! ([`crate::format::value`]). Bit 0 set is a control record of the kind in bits 1-7;
//! one kind sets the duplicate policy of the samples that follow. Every group
//! starts from series 0, step 0, timestamp 0 and policy BLOCK, so it can be
//! read on its own. The bytes are described in `docs/format/wal.md`; writing
//! is in [`crate::log::group`], reading in [`read`], and both are tested together in
//! `tests/log_group.rs`.

pub(crate) mod ended;
mod read;

pub use ended::Ended;
pub use read::RecordIter;

use crate::base::partition::partition_of;
use crate::format::rule::RuleSpec;
use crate::format::varint::{take, unzigzag};
use latewood_model::{DuplicatePolicy, MadeBy, SeriesId, SeriesOptions, Timestamp};
use std::borrow::Cow;

/// The tag bit of control records; their kind stands above it.
pub(crate) const CONTROL: u8 = 1;
/// Where a control record's kind stands in its tag.
pub(crate) const CONTROL_SHIFT: u32 = 1;
/// The tag bit of a sample at the timestamp of the one before.
pub(crate) const SAME_TIMESTAMP: u8 = 1 << 1;
/// The two tag bits that say how a sample's series follows.
pub(crate) const SERIES_BITS: u8 = 3 << 2;
/// The series of the sample before.
pub(crate) const SERIES_SAME: u8 = 0;
/// As far from the series before as that was from its own.
pub(crate) const SERIES_STEP: u8 = 1 << 2;
/// A new step follows.
pub(crate) const SERIES_NEW_STEP: u8 = 2 << 2;
/// Where a sample's value form stands in its tag.
pub(crate) const FORM_SHIFT: u32 = 4;

/// The largest stride of the ids of a group: residues are 16 bits wide.
pub(crate) const STRIDE_LOG2_MAX: u8 = 16;

/// What the records of a group refer back to.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) id: u64,
    /// The newest step between two series; wraps.
    pub(crate) step: u64,
    pub(crate) timestamp: i64,
    pub(crate) policy: DuplicatePolicy,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            id: 0,
            step: 0,
            timestamp: 0,
            policy: DuplicatePolicy::Block,
        }
    }
}

/// How the records of a group are written, which its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupForm {
    /// Ids have 32 bits, and steps between them wrap there. Nothing says who made a series.
    /// No longer written.
    Narrow,
    /// Ids have [`SeriesId::BITS`].
    Wide,
}

impl GroupForm {
    /// The id at `number`, if there may be one.
    #[inline]
    pub(crate) fn id(self, number: u64) -> Option<u64> {
        let max = match self {
            Self::Narrow => u64::from(u32::MAX),
            Self::Wide => SeriesId::MAX.0,
        };
        (number <= max).then_some(number)
    }

    /// The id that is `step` from `id`.
    #[inline]
    pub(crate) fn step(self, id: u64, step: u64) -> Option<u64> {
        let to = id.wrapping_add(step);
        match self {
            Self::Narrow => Some(to & u64::from(u32::MAX)),
            Self::Wide => self.id(to),
        }
    }

    /// Reads a step.
    #[inline]
    pub(crate) fn take_step(self, bytes: &mut &[u8]) -> Option<u64> {
        let step = unzigzag(take(bytes)?);
        let fits = self == Self::Wide || i32::try_from(step).is_ok();
        fits.then_some(step as u64)
    }
}

/// The kinds of control records, as stored.
pub(crate) mod kind {
    pub(crate) const CREATE: u8 = 0;
    pub(crate) const ALTER: u8 = 1;
    pub(crate) const DELETE_RANGE: u8 = 2;
    pub(crate) const DELETE_SERIES: u8 = 3;
    pub(crate) const RENAME: u8 = 4;
    pub(crate) const FLUSH_ALL: u8 = 5;
    /// The duplicate policy of the samples that follow.
    pub(crate) const POLICY: u8 = 6;
    pub(crate) const CREATE_RULE: u8 = 7;
    pub(crate) const DELETE_RULE: u8 = 8;
    pub(crate) const RULE_TAKE: u8 = 9;
    pub(crate) const RULE_DONE: u8 = 10;
    pub(crate) const EXPIRE: u8 = 11;
    pub(crate) const BUILD: u8 = 12;
    /// A creation as its difference from the one before.
    pub(crate) const CREATE_ALIKE: u8 = 13;
    pub(crate) const RULE_LEFT: u8 = 14;
    pub(crate) const CUT: u8 = 15;
    pub(crate) const RULE_HISTORY: u8 = 16;
    pub(crate) const RULE_FILLED: u8 = 17;
    pub(crate) const FLOOR: u8 = 18;
    pub(crate) const HORIZON: u8 = 19;
    pub(crate) const DONE: u8 = 20;
    pub(crate) const PENDING: u8 = 21;
    pub(crate) const STEPS: u8 = 22;
    pub(crate) const SINCE: u8 = 23;
    pub(crate) const ENDED: u8 = 24;
}

/// The last timestamp of a deletion that is none but [`Record::Expired`]: versions that do
/// not know it find nothing to delete.
pub(crate) const EXPIRED: Timestamp = Timestamp::MIN;

/// The tag of a record that sets the policy.
pub(crate) const POLICY_TAG: u8 = CONTROL | kind::POLICY << CONTROL_SHIFT;

/// One thing that happened, as the log tells it.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    /// A sample arrived and was to be resolved under `policy`.
    Sample {
        /// Its series.
        id: SeriesId,
        /// When it was measured, milliseconds.
        timestamp: Timestamp,
        /// What was measured, bit for bit.
        value: f64,
        /// The rule for a second sample at this timestamp.
        policy: DuplicatePolicy,
    },
    /// A series came to be; before its first sample.
    Create {
        /// Its number from now on.
        id: SeriesId,
        /// Its key.
        key: Cow<'a, [u8]>,
        /// Who made it.
        made_by: MadeBy,
        /// Its options and labels.
        options: Box<SeriesOptions>,
    },
    /// A series got new options.
    Alter {
        /// The series.
        id: SeriesId,
        /// All its options from now on.
        options: Box<SeriesOptions>,
    },
    /// The samples of a span of time are gone.
    DeleteRange {
        /// The series.
        id: SeriesId,
        /// The first timestamp of the span.
        from: Timestamp,
        /// The last timestamp of the span.
        to: Timestamp,
    },
    /// The next deletion or change of options found older samples expired, and removed
    /// them.
    Expired {
        /// The series.
        id: SeriesId,
        /// The oldest timestamp that was left.
        before: Timestamp,
    },
    /// A series is gone.
    DeleteSeries {
        /// The series.
        id: SeriesId,
    },
    /// A series has another key.
    Rename {
        /// The series.
        id: SeriesId,
        /// Its key from now on.
        key: &'a [u8],
    },
    /// A series expires at another time than before, or not at all.
    Expire {
        /// The series.
        id: SeriesId,
        /// Milliseconds since the Unix epoch, above 0; `None` for never.
        at_ms: Option<i64>,
    },
    /// A compaction rule came to be.
    CreateRule {
        /// The series it reads.
        id: SeriesId,
        /// The series it writes.
        destination: SeriesId,
        /// What it does.
        spec: RuleSpec,
    },
    /// A compaction rule ended.
    DeleteRule {
        /// The series it read.
        id: SeriesId,
        /// The series it wrote.
        destination: SeriesId,
    },
    /// Recomputing the dirty buckets of a source began.
    RuleTake {
        /// The source.
        id: SeriesId,
        /// Whether dirty buckets of late samples are included.
        all: bool,
    },
    /// What was taken last is in the destinations.
    RuleDone {
        /// The source.
        id: SeriesId,
    },
    /// But for the buckets of a span, whose samples cannot be read.
    RuleLeft {
        /// The source.
        id: SeriesId,
        /// The destination of the rule.
        destination: SeriesId,
        /// Where the first of them begins.
        first: Timestamp,
        /// Where the last of them ends.
        last: Timestamp,
    },
    /// A rule that was just made is to be computed over the history of its source.
    RuleHistory {
        /// The source.
        id: SeriesId,
        /// The destination of the rule.
        destination: SeriesId,
        /// No sample that counts is older.
        first: Timestamp,
        /// The newest sample, whose bucket is open.
        newest: Timestamp,
    },
    /// The closed buckets of a part of that history are in the destination.
    RuleFilled {
        /// The source.
        id: SeriesId,
        /// The destination of the rule.
        destination: SeriesId,
        /// Where the first of them begins.
        first: Timestamp,
        /// Where the last of them ends.
        last: Timestamp,
    },
    /// A series without a key came to be. It takes samples, and is there for
    /// readers once a rename gives it a key; one that never gets one is dropped.
    Build {
        /// Its number from now on.
        id: SeriesId,
        /// Its options and labels.
        options: Box<SeriesOptions>,
    },
    /// Series are gone that nobody removed.
    Ended(Ended<'a>),
    /// Every series is gone.
    FlushAll,
    /// Series were frozen for a flush, as they were here. Only in the log of a database whose log
    /// is remote, for those that follow it.
    Cut(Cut),
    /// No sample before it is kept any more. Only in the log of a database whose log is remote, for
    /// those that follow it.
    Floor {
        /// The oldest timestamp that is kept, milliseconds, above 0.
        floor: Timestamp,
    },
    /// A reader uses samples up to a time: changes up to it are marked from here on.
    Horizon {
        /// The number of the reader.
        reader: u64,
        /// Milliseconds.
        at: Timestamp,
    },
    /// What follows from changes of groups up to `position` is written for a reader.
    Done {
        /// The number of the reader.
        reader: u64,
        /// The sequence number of the last of these groups.
        position: u64,
    },
    /// What is known of a reader, since the log before may go.
    Pending {
        /// The number of the reader.
        reader: u64,
        /// Its horizon, and what changed for it; its form is in `docs/format/wal.md`.
        state: &'a [u8],
    },
    /// Steps of a reader are to be computed again.
    Steps {
        /// The number of the reader.
        reader: u64,
        /// The first step, milliseconds.
        from: Timestamp,
        /// The last step, milliseconds.
        to: Timestamp,
    },
    /// Steps of a reader before a time are not to be touched.
    Since {
        /// The number of the reader.
        reader: u64,
        /// Milliseconds.
        at: Timestamp,
    },
}

/// The series that one flush of their owner froze between two groups of its shard: those of
/// `count` ids from the first on, which are 2^`stride_log2` apart. Ids without a series may be
/// among them.
///
/// Without ids it says that files of flushes up to this one hold what no cut told of: whoever
/// follows the log cannot take these over, and opens them anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The number of the flush, from 1. One that failed is tried again under the same number.
    pub flush: u64,
    /// The first id.
    pub first: SeriesId,
    /// Two to this power is the distance of two ids; at most 16.
    pub stride_log2: u8,
    /// Ids.
    pub count: u64,
}

impl Cut {
    /// One without ids.
    pub(crate) fn untold(flush: u64) -> Self {
        Self {
            flush,
            first: SeriesId(0),
            stride_log2: 0,
            count: 0,
        }
    }

    /// The id behind the last one, as if there were one more.
    pub(crate) fn end(&self) -> u64 {
        let ids = u128::from(self.count) << self.stride_log2;
        u64::try_from(u128::from(self.first.0) + ids).unwrap_or(u64::MAX)
    }

    /// The ids.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SeriesId> + use<> {
        let ids = self.first.0..self.end();
        ids.step_by(1 << self.stride_log2).map(SeriesId)
    }

    /// Whether the ids are a range that a flush can have.
    pub(crate) fn is_sane(&self) -> bool {
        if self.count == 0 {
            return *self == Self::untold(self.flush) && self.flush > 0;
        }
        if self.flush == 0 || self.stride_log2 > STRIDE_LOG2_MAX {
            return false;
        }
        let last = self.end() - (1 << self.stride_log2);
        last <= SeriesId::MAX.0 && partition_of(self.first) == partition_of(SeriesId(last))
    }
}
