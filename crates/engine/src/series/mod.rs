//! One series: chunks, a raw tail, and late operations on their way.
//!
//! A sample newer than all before goes to the *tail*, which seals into a frame
//! of the last chunk when full. A sample older than that but newer than what
//! is sealed goes into the tail at its place. Anything else is late: it waits
//! in [`late`] until a settle folds it into chunks. Nothing is decoded on the
//! way, except one frame's timestamps where BLOCK must know whether a sample
//! exists.
//!
//! Invariants:
//! 1. Chunks ascend and do not overlap; the tail ascends and lies wholly after
//!    `sealed_last`; late operations lie at or before `sealed_last`.
//! 2. `newest` is the timestamp of the newest sample, expired or not.
//! 3. Chunks a settle works on change in no other way: whatever else must
//!    change them cancels the settle first ([`Series::cancel_settle`]).
//!
//! Tested by `series/tests.rs` against a naive map and by the model test.

pub(crate) mod chunk;
mod delete;
pub(crate) mod late;
pub(crate) mod settle;
pub(crate) mod slab;
mod snapshot;
mod sort;
#[cfg(test)]
mod tests;

pub(crate) use snapshot::Snapshot;

use crate::append::Refusal;
use crate::error::Result;
use chunk::{Chunk, Shape};
use late::{Late, LateOp};
use latewood_codec::{Encoder, Hint};
use latewood_model::{DuplicatePolicy, Ignore, Labels, Sample, SeriesOptions, Timestamp};
use settle::{SettleJob, Settled, is_full};
use std::sync::Arc;

/// Late operations below which a settle waits for idleness.
const SETTLE_MIN: usize = 512;
/// Up to this many waiting, a settle folds at least one operation for each
/// sample it rewrites.
const SETTLE_EVEN_MAX: usize = 256 * 1024;
/// Beyond, one operation for this many: late operations take 24 bytes each.
const SETTLE_REWRITE_MAX: usize = 4;
/// With this many waiting, and twice what would pay, the writer settles itself.
const SETTLE_OVERDUE_MIN: usize = 64 * 1024;

/// Buffers for encoding, one per shard.
#[derive(Default)]
pub(crate) struct Sealer {
    pub(crate) encoder: Encoder,
    timestamps: Vec<Timestamp>,
    values: Vec<f64>,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// Newer than all before.
    InOrder,
    /// Older, and kept: in the tail or among the late.
    Late,
    /// It met a sample at its timestamp and was resolved by policy.
    Duplicate,
    /// Dropped by the IGNORE rule; answered with the newest timestamp.
    Ignored(Timestamp),
    /// Not kept.
    Refused(Refusal),
}

/// How much a series wants its late operations settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// Nothing waits, or too little to pay.
    None,
    /// Settling pays.
    Ready,
    /// The writer should settle before it goes on.
    Overdue,
}

/// One series. See the module's invariants.
pub(crate) struct Series {
    newest: Option<Timestamp>,
    sealed_last: Option<Timestamp>,
    tail: Vec<Sample>,
    frame_samples: usize,
    retention_ms: u64,
    policy: Option<DuplicatePolicy>,
    holds_nan: bool,
    /// The last chunk may still grow.
    last_open: bool,
    /// The series stands in its shard's queue of settles.
    pub(crate) queued: bool,
    ignore: Ignore,
    hint: Hint,
    late: Option<Box<Late>>,
    chunks: Vec<Arc<Chunk>>,
    shape: Shape,
    /// Settles begun so far; a result with another number is out of date.
    settles_begun: u64,
    settling: bool,
    pub(crate) key: Arc<[u8]>,
    labels: Labels,
}

impl Series {
    pub(crate) fn new(key: Arc<[u8]>, options: SeriesOptions) -> Self {
        let shape = Shape {
            encoding: options.encoding,
            chunk_size_bytes: options.chunk_size_bytes,
        };
        Self {
            newest: None,
            sealed_last: None,
            tail: Vec::new(),
            frame_samples: shape.frame_samples(),
            retention_ms: options.retention_ms,
            policy: options.duplicate_policy,
            holds_nan: false,
            last_open: false,
            queued: false,
            ignore: options.ignore,
            hint: Hint::default(),
            late: None,
            chunks: Vec::new(),
            shape,
            settles_begun: 0,
            settling: false,
            key,
            labels: options.labels,
        }
    }

    /// The options as CREATE would take them.
    pub(crate) fn options(&self) -> SeriesOptions {
        SeriesOptions {
            retention_ms: self.retention_ms,
            chunk_size_bytes: self.shape.chunk_size_bytes,
            encoding: self.shape.encoding,
            duplicate_policy: self.policy,
            ignore: self.ignore,
            labels: self.labels.clone(),
        }
    }

    /// Sets all options; what is already encoded stays as it is.
    pub(crate) fn set_options(&mut self, options: SeriesOptions) {
        self.shape = Shape {
            encoding: self.shape.encoding,
            chunk_size_bytes: options.chunk_size_bytes,
        };
        self.frame_samples = self.shape.frame_samples();
        self.retention_ms = options.retention_ms;
        self.policy = options.duplicate_policy;
        self.ignore = options.ignore;
        self.labels = options.labels;
        self.drop_expired();
    }

    /// The timestamp of the newest sample.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    /// The policy for a sample that brings none of its own.
    pub(crate) fn policy_or(&self, default: DuplicatePolicy) -> DuplicatePolicy {
        self.policy.unwrap_or(default)
    }

    /// Takes a sample. Constant time when it is newer than all before;
    /// amortised logarithmic when late.
    pub(crate) fn append(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        if let Some(newest) = self.newest {
            if policy == DuplicatePolicy::Last && self.ignores(sample, newest)? {
                return Ok(Fate::Ignored(newest));
            }
            if sample.timestamp <= newest {
                return self.append_late(sample, policy, newest, sealer);
            }
        }
        self.newest = Some(sample.timestamp);
        self.holds_nan |= sample.value.is_nan();
        self.push_tail(sample, sealer)?;
        Ok(Fate::InOrder)
    }

    #[inline]
    fn push_tail(&mut self, sample: Sample, sealer: &mut Sealer) -> Result<()> {
        self.tail.push(sample);
        if self.tail.len() >= self.frame_samples {
            self.seal_tail(sealer)?;
        }
        Ok(())
    }

    fn ignores(&self, sample: Sample, newest: Timestamp) -> Result<bool> {
        let Ignore {
            max_time_diff_ms,
            max_value_diff,
        } = self.ignore;
        if max_time_diff_ms == 0 && max_value_diff == 0.0 {
            return Ok(false);
        }
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
        match self.sealed_last {
            Some(sealed_last) if sample.timestamp <= sealed_last => {
                self.append_sealed(sample, policy)
            }
            _ => self.append_into_tail(sample, policy, sealer),
        }
    }

    fn append_into_tail(
        &mut self,
        sample: Sample,
        policy: DuplicatePolicy,
        sealer: &mut Sealer,
    ) -> Result<Fate> {
        let place = self
            .tail
            .partition_point(|held| held.timestamp < sample.timestamp);
        if let Some(held) = self.tail.get_mut(place)
            && held.timestamp == sample.timestamp
        {
            let Some(value) = policy.resolve(held.value, sample.value) else {
                return Ok(Fate::Refused(Refusal::Duplicate));
            };
            held.value = value;
            return Ok(Fate::Duplicate);
        }
        self.holds_nan |= sample.value.is_nan();
        self.tail.insert(place, sample);
        if self.tail.len() >= self.frame_samples {
            self.seal_tail(sealer)?;
        }
        Ok(Fate::Late)
    }

    /// Stages a sample at or before `sealed_last`.
    fn append_sealed(&mut self, sample: Sample, policy: DuplicatePolicy) -> Result<Fate> {
        let refused = match policy {
            DuplicatePolicy::Block => self.exists_sealed(sample.timestamp)?,
            DuplicatePolicy::First | DuplicatePolicy::Last => false,
            _ if sample.value.is_nan() || self.holds_nan => self
                .value_at(sample.timestamp)?
                .is_some_and(|old| policy.resolve(old, sample.value).is_none()),
            _ => false,
        };
        if refused {
            return Ok(Fate::Refused(Refusal::Duplicate));
        }
        self.holds_nan |= sample.value.is_nan();
        let late = self.late.get_or_insert_default();
        late.push(LateOp {
            timestamp: sample.timestamp,
            value: sample.value,
            policy,
        });
        Ok(Fate::Late)
    }

    fn exists_sealed(&mut self, timestamp: Timestamp) -> Result<bool> {
        if let Some(late) = &mut self.late
            && late.exists(timestamp)
        {
            return Ok(true);
        }
        match self.chunk_at(timestamp) {
            Some(chunk) => chunk.exists(timestamp),
            None => Ok(false),
        }
    }

    /// The last chunk that starts at or before `timestamp`.
    fn chunk_at(&self, timestamp: Timestamp) -> Option<&Chunk> {
        let index = self
            .chunks
            .partition_point(|chunk| chunk.first() <= timestamp)
            .checked_sub(1)?;
        self.chunks.get(index).map(|chunk| &**chunk)
    }

    /// The value at `timestamp` as a reader sees it, retention aside.
    pub(crate) fn value_at(&self, timestamp: Timestamp) -> Result<Option<f64>> {
        if self.sealed_last.is_none_or(|last| timestamp > last) {
            let found = self
                .tail
                .binary_search_by_key(&timestamp, |held| held.timestamp);
            return Ok(found.ok().map(|place| self.tail[place].value));
        }
        let base = match self.chunk_at(timestamp) {
            Some(chunk) => chunk.value_at(timestamp)?,
            None => None,
        };
        Ok(match &self.late {
            Some(late) => late.fold(timestamp, base),
            None => base,
        })
    }

    /// The newest sample.
    pub(crate) fn last_sample(&self) -> Result<Option<Sample>> {
        let Some(newest) = self.newest else {
            return Ok(None);
        };
        let value = self.value_at(newest)?;
        Ok(value.map(|value| Sample::new(newest, value)))
    }

    /// The oldest timestamp inside the retention of a series whose newest
    /// sample is at `newest`.
    fn floor(&self, newest: Timestamp) -> Timestamp {
        match i64::try_from(self.retention_ms) {
            Ok(0) | Err(_) => Timestamp::MIN,
            Ok(retention_ms) => newest.saturating_sub(retention_ms),
        }
    }

    fn retention_floor(&self) -> Timestamp {
        self.newest
            .map_or(Timestamp::MIN, |newest| self.floor(newest))
    }

    /// Encodes the tail as the next frame and drops chunks past the retention.
    fn seal_tail(&mut self, sealer: &mut Sealer) -> Result<()> {
        let Some(last) = self.tail.last() else {
            return Ok(());
        };
        let last = last.timestamp;
        sealer.timestamps.clear();
        sealer.values.clear();
        sealer
            .timestamps
            .extend(self.tail.iter().map(|sample| sample.timestamp));
        sealer
            .values
            .extend(self.tail.iter().map(|sample| sample.value));
        if !self.last_open {
            self.chunks.push(Arc::new(Chunk::default()));
        }
        self.last_open = true;
        let index = self.chunks.len() - 1;
        // A reader that holds the open chunk keeps its copy as it was.
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        chunk.push_samples(
            &mut sealer.encoder,
            self.shape,
            &mut self.hint,
            &sealer.timestamps,
            &sealer.values,
        )?;
        self.last_open = !is_full(chunk, self.shape);
        if !self.last_open {
            self.chunks[index] = chunk.finish();
        }
        self.tail.clear();
        self.sealed_last = Some(last);
        self.drop_expired();
        Ok(())
    }

    fn drop_expired(&mut self) {
        let floor = self.retention_floor();
        let expired = self.chunks.partition_point(|chunk| chunk.last() < floor);
        if expired > 0 {
            self.cancel_settle();
            self.chunks.drain(..expired);
            self.last_open &= !self.chunks.is_empty();
        }
    }

    /// Late operations that wait, whether worth a settle or not.
    pub(crate) fn late_pending(&self) -> usize {
        self.late.as_ref().map_or(0, |late| late.pending())
    }

    /// How much a settle would pay now. Constant time while little waits,
    /// logarithmic in the chunks else.
    pub(crate) fn pressure(&self) -> Pressure {
        let Some(late) = &self.late else {
            return Pressure::None;
        };
        let pending = late.pending();
        // Looked at only now and then: each look searches the chunks.
        if pending < SETTLE_MIN || pending % SETTLE_MIN != 0 {
            return Pressure::None;
        }
        let Some((first, last)) = late.span() else {
            return Pressure::None;
        };
        let place = self.touched(first, last);
        let rewritten: usize = self.chunks[place].iter().map(|chunk| chunk.count()).sum();
        let worth = rewritten.min(SETTLE_EVEN_MAX.max(rewritten / SETTLE_REWRITE_MAX));
        if pending < worth {
            Pressure::None
        } else if pending < (2 * worth).max(SETTLE_OVERDUE_MIN) {
            Pressure::Ready
        } else {
            Pressure::Overdue
        }
    }

    /// The chunks that operations from `first` to `last` fall into, widened by
    /// small neighbours so that scraps disappear.
    fn touched(&self, first: Timestamp, last: Timestamp) -> std::ops::Range<usize> {
        let chunks = &self.chunks;
        let mut start = chunks.partition_point(|chunk| chunk.last() < first);
        let mut end = chunks.partition_point(|chunk| chunk.first() <= last);
        start = start.min(chunks.len().saturating_sub(1));
        end = end.clamp((start + 1).min(chunks.len()), chunks.len());
        let small =
            |index: usize| chunks[index].size_bytes() < self.shape.chunk_size_bytes as usize / 2;
        if start > 0 && small(start - 1) {
            start -= 1;
        }
        if end < chunks.len() && small(end) {
            end += 1;
        }
        start..end
    }

    /// Takes what a settle needs; `None` when nothing waits or one is running.
    pub(crate) fn begin_settle(&mut self) -> Option<SettleJob> {
        let late = self.late.as_mut()?;
        let runs = late.begin_settle()?;
        let (first, last) = late.span()?;
        let place = self.touched(first, last);
        if place.end == self.chunks.len() {
            // What is sealed meanwhile starts a new chunk.
            self.last_open = false;
        }
        self.settles_begun += 1;
        self.settling = true;
        Some(SettleJob {
            runs,
            chunks: self.chunks[place.clone()].to_vec(),
            place,
            number: self.settles_begun,
            floor: self.retention_floor(),
            shape: self.shape,
            hint: self.hint,
        })
    }

    /// Puts a settle's chunks in place; false when it was cancelled.
    pub(crate) fn finish_settle(&mut self, settled: Settled) -> bool {
        let Some(late) = &mut self.late else {
            return false;
        };
        if !self.settling || settled.number != self.settles_begun {
            return false;
        }
        self.settling = false;
        late.settled();
        if late.pending() == 0 {
            self.late = None;
        }
        let ends_series = settled.place.end == self.chunks.len();
        self.chunks.splice(settled.place, settled.chunks);
        if ends_series && let Some(last) = self.chunks.last() {
            self.last_open = !is_full(last, self.shape);
            self.hint = settled.hint;
        }
        self.drop_expired();
        true
    }

    /// Lets the operations of a running settle wait again; its result will be
    /// refused.
    fn cancel_settle(&mut self) {
        self.settling = false;
        if let Some(late) = &mut self.late {
            late.abandon_settle();
        }
    }

    /// Settles at once, whatever is waiting or running. The operations folded.
    pub(crate) fn settle_now(&mut self, sealer: &mut Sealer) -> Result<usize> {
        self.cancel_settle();
        let Some(job) = self.begin_settle() else {
            return Ok(0);
        };
        let settled = job.run(&mut sealer.encoder)?;
        let operations = settled.operations;
        self.finish_settle(settled);
        Ok(operations)
    }

    /// Bytes of memory by part.
    pub(crate) fn memory(&self) -> Memory {
        Memory {
            tail_bytes: self.tail.capacity() * size_of::<Sample>(),
            chunk_bytes: self.chunks.capacity() * size_of::<Arc<Chunk>>()
                + self
                    .chunks
                    .iter()
                    .map(|chunk| chunk.memory_bytes() + 16)
                    .sum::<usize>(),
            late_bytes: self.late.as_ref().map_or(0, |late| late.memory_bytes()),
            other_bytes: size_of::<Self>() + self.key.len() + self.labels.as_bytes().len(),
        }
    }
}

/// Bytes of memory of series, by what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Raw samples not yet sealed.
    pub tail_bytes: usize,
    /// Encoded chunks.
    pub chunk_bytes: usize,
    /// Late samples on their way into chunks.
    pub late_bytes: usize,
    /// Keys, labels and bookkeeping.
    pub other_bytes: usize,
}

impl Memory {
    /// All parts together.
    pub fn total_bytes(&self) -> usize {
        self.tail_bytes + self.chunk_bytes + self.late_bytes + self.other_bytes
    }
}

impl std::ops::AddAssign for Memory {
    fn add_assign(&mut self, other: Self) {
        self.tail_bytes += other.tail_bytes;
        self.chunk_bytes += other.chunk_bytes;
        self.late_bytes += other.late_bytes;
        self.other_bytes += other.other_bytes;
    }
}
