//! Building one group: the records of one batch and the header before them.
//!
//! A group is what the log appends, checksums and replays as a whole: all of
//! its records are there after a crash, or none. Its header is 24 bytes:
//!
//! ```text
//! 0   u32  payload bytes         16  u32  sequence - durable sequence
//! 4   u32  checksum ^ salt       20  u8   stride, log2
//! 8   u64  sequence              21  u8   flags: 1 barrier, 2 clean close
//!                                22  u16  residue of all ids under the stride
//! ```
//! The checksum is the crc32c of the header with the payload's own crc32c in
//! the place of the checksum: the payload is summed before the log's lock is
//! taken, the rest in the few nanoseconds under it. Tested below and in
//! `tests/wal_group.rs`.

pub(super) mod alike;

use super::record::{
    CONTROL, CONTROL_SHIFT, Context, FORM_SHIFT, POLICY_TAG, SAME_TIMESTAMP, SERIES_NEW_STEP,
    SERIES_SAME, SERIES_STEP, kind,
};
use super::value::{FORM_RAW, put_value};
use super::varint::{put, zigzag};
use crate::block::partition_of;
use crate::rules::RuleSpec;
use alike::Created;
use crc_fast::crc32_iscsi;
use latewood_model::{DuplicatePolicy, SeriesId, SeriesOptions, Timestamp};

/// Bytes of a group's header.
pub(crate) const HEADER_BYTES: usize = 24;
/// The group is applied alone: after all before it, before all after it.
pub(crate) const FLAG_BARRIER: u8 = 1;
/// The log was closed in order: nothing follows in this segment.
pub(crate) const FLAG_CLOSED: u8 = 2;
/// The distance of a group too far from the newest durable one to name it.
const NO_CLAIM: u32 = u32::MAX;
/// The largest stride: residues are 16 bits wide.
pub(crate) const STRIDE_LOG2_MAX: u8 = 16;

/// No sample record is longer: policy, tag, step, timestamp, value, and the
/// slack that whole-word stores need.
const SAMPLE_BYTES_MAX: usize = 48;

/// The records of one group, encoded as they are added. Reusable: once warm,
/// adding samples allocates nothing.
#[derive(Debug)]
pub struct GroupBuilder {
    /// Header space, records, and unused space; `end` is where records end.
    buffer: Vec<u8>,
    end: usize,
    context: Context,
    form: u8,
    /// The id of the first record that has one.
    first_id: Option<u32>,
    /// Bits in which any id differed from the first.
    different: u32,
    stride_log2: u8,
    barrier: bool,
    /// One bit for each partition of ids that a record names.
    touched: Vec<u64>,
    /// The creation before, where there was one.
    created: Created,
}

impl Default for GroupBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl GroupBuilder {
    /// An empty group whose ids promise nothing (stride 1).
    pub fn new() -> Self {
        Self {
            buffer: vec![0; 4096],
            end: HEADER_BYTES,
            context: Context::default(),
            form: FORM_RAW,
            first_id: None,
            different: 0,
            stride_log2: 0,
            barrier: false,
            touched: vec![0],
            created: Created::none(),
        }
    }

    /// Empties the group and says how its ids will be alike: all equal modulo
    /// 2^`stride_log2` (at most 16), so that replay can hand the group to one
    /// of as many workers. A group whose ids turn out not to be alike is
    /// written with the stride they do share; that costs replay some waiting,
    /// nothing else.
    pub fn begin(&mut self, stride_log2: u8) {
        self.clear();
        self.stride_log2 = stride_log2.min(STRIDE_LOG2_MAX);
    }

    /// Empties the group, keeping its stride and its memory.
    pub fn clear(&mut self) {
        self.end = HEADER_BYTES;
        self.context = Context::default();
        self.form = FORM_RAW;
        self.first_id = None;
        self.different = 0;
        self.barrier = false;
        self.touched.fill(0);
        self.created.clear();
    }

    /// Whether the group holds no record.
    pub fn is_empty(&self) -> bool {
        self.end == HEADER_BYTES
    }

    /// Bytes of memory it holds, used or not.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Bytes of the records, without the header.
    pub fn len_bytes(&self) -> usize {
        self.end - HEADER_BYTES
    }

    /// Adds a sample.
    #[inline]
    pub fn sample(
        &mut self,
        id: SeriesId,
        timestamp: Timestamp,
        value: f64,
        policy: DuplicatePolicy,
    ) {
        if self.buffer.len() - self.end < SAMPLE_BYTES_MAX {
            self.reserve(SAMPLE_BYTES_MAX);
        }
        if policy != self.context.policy {
            self.put_policy(policy);
        }
        let start = self.end;
        let context = &mut self.context;
        // The reservation above makes the slice long enough for every write.
        let out = &mut self.buffer[start..start + SAMPLE_BYTES_MAX - 2];
        let mut at = 1;
        let step = id.0.wrapping_sub(context.id);
        let mut tag = if step == 0 {
            SERIES_SAME
        } else if step == context.step {
            SERIES_STEP
        } else {
            at = put(out, at, zigzag(i64::from(step as i32)));
            context.step = step;
            SERIES_NEW_STEP
        };
        if timestamp == context.timestamp {
            tag |= SAME_TIMESTAMP;
        } else {
            at = put(out, at, zigzag(timestamp.wrapping_sub(context.timestamp)));
        }
        let (form, at) = put_value(out, at, value, self.form);
        out[0] = tag | (form << FORM_SHIFT);
        self.end = start + at;
        context.id = id.0;
        context.timestamp = timestamp;
        self.form = form;
        self.note_id(id);
    }

    /// Adds a series' new options, all of them.
    pub fn alter(&mut self, id: SeriesId, options: &SeriesOptions) {
        self.control(kind::ALTER, id);
        self.put_options(options);
        self.note_id(id);
    }

    /// Adds the deletion of the samples from `from` to `to`, both included.
    pub fn delete_range(&mut self, id: SeriesId, from: Timestamp, to: Timestamp) {
        self.control(kind::DELETE_RANGE, id);
        self.put_varint(zigzag(from));
        self.put_varint(zigzag(to));
        self.note_id(id);
    }

    /// Adds the deletion of a series; the group becomes a barrier.
    pub fn delete_series(&mut self, id: SeriesId) {
        self.control(kind::DELETE_SERIES, id);
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds a series' new key; the group becomes a barrier.
    pub fn rename(&mut self, id: SeriesId, key: &[u8]) {
        self.control(kind::RENAME, id);
        self.put_bytes(key);
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds a series' new expiry time, milliseconds since the Unix epoch and
    /// above 0; `None` takes it away.
    pub fn expire(&mut self, id: SeriesId, at_ms: Option<i64>) {
        self.control(kind::EXPIRE, id);
        self.put_varint(at_ms.map_or(0, i64::unsigned_abs));
        self.note_id(id);
    }

    /// Adds a compaction rule; the group becomes a barrier.
    pub fn create_rule(&mut self, id: SeriesId, destination: SeriesId, spec: RuleSpec) {
        self.control(kind::CREATE_RULE, id);
        self.put_varint(u64::from(destination.0));
        self.put_varint(spec.aggregator as u64);
        self.put_varint(zigzag(spec.bucket_ms));
        self.put_varint(zigzag(spec.align));
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds the end of a compaction rule; the group becomes a barrier.
    pub fn delete_rule(&mut self, id: SeriesId, destination: SeriesId) {
        self.control(kind::DELETE_RULE, id);
        self.put_varint(u64::from(destination.0));
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds that the marks of a source are being worked off.
    pub fn rule_take(&mut self, id: SeriesId, all: bool) {
        self.control(kind::RULE_TAKE, id);
        self.put_varint(u64::from(all));
        self.note_id(id);
    }

    /// Adds that they have been.
    pub fn rule_done(&mut self, id: SeriesId) {
        self.control(kind::RULE_DONE, id);
        self.note_id(id);
    }

    /// Adds the coming of a series that has no key yet.
    pub fn build(&mut self, id: SeriesId, options: &SeriesOptions) {
        self.control(kind::BUILD, id);
        self.put_options(options);
        self.note_id(id);
    }

    /// Adds the deletion of everything; the group becomes a barrier.
    pub fn flush_all(&mut self) {
        self.reserve(1);
        self.buffer[self.end] = CONTROL | (kind::FLUSH_ALL << CONTROL_SHIFT);
        self.end += 1;
        self.barrier = true;
    }

    /// The records as bytes, for a reader.
    pub fn payload(&self) -> &[u8] {
        &self.buffer[HEADER_BYTES..self.end]
    }

    /// The checksum of the records; taken before the log's lock.
    pub(crate) fn payload_checksum(&self) -> u32 {
        crc32_iscsi(self.payload())
    }

    /// Writes the header and gives the whole group.
    pub(crate) fn seal(&mut self, sequence: u64, synced: u64, salt: u32, payload: u32) -> &[u8] {
        // Alike in as many low bits as no id ever differed in.
        let alike_log2 = self.different.trailing_zeros().min(32) as u8;
        let stride_log2 = self.stride_log2.min(alike_log2);
        let header = GroupHeader {
            // Append refuses payloads over LOG_GROUP_BYTES_MAX, which fits.
            payload_bytes: self.len_bytes() as u32,
            sequence,
            unsynced: u32::try_from(sequence - synced).unwrap_or(NO_CLAIM),
            stride_log2,
            flags: if self.barrier { FLAG_BARRIER } else { 0 },
            // Sixteen bits at most under the largest stride.
            residue: (self.first_id.unwrap_or(0) & ((1_u32 << stride_log2) - 1)) as u16,
        };
        self.buffer[..HEADER_BYTES].copy_from_slice(&header.encode(payload, salt));
        &self.buffer[..self.end]
    }

    /// The partitions whose series the records are about.
    pub(crate) fn touched(&self) -> impl Iterator<Item = u32> + '_ {
        self.touched.iter().zip(0..).flat_map(|(&bits, word)| {
            let set = (0..64).filter(move |bit| bits >> bit & 1 == 1);
            set.map(move |bit| word * 64 + bit)
        })
    }

    #[inline]
    fn note_id(&mut self, id: SeriesId) {
        let first = *self.first_id.get_or_insert(id.0);
        self.different |= first ^ id.0;
        let partition = partition_of(id);
        let word = partition as usize / 64;
        if word >= self.touched.len() {
            self.touch_far(word);
        }
        self.touched[word] |= 1 << (partition % 64);
    }

    #[cold]
    fn touch_far(&mut self, word: usize) {
        self.touched.resize(word + 1, 0);
    }

    #[cold]
    fn reserve(&mut self, more: usize) {
        let needed = self.end + more;
        if self.buffer.len() < needed {
            self.buffer.resize(needed.next_power_of_two(), 0);
        }
    }

    /// The policy of the samples that follow; `sample` made room.
    #[cold]
    fn put_policy(&mut self, policy: DuplicatePolicy) {
        self.buffer[self.end] = POLICY_TAG;
        self.buffer[self.end + 1] = policy as u8;
        self.end += 2;
        self.context.policy = policy;
    }

    fn control(&mut self, kind: u8, id: SeriesId) {
        self.reserve(1);
        self.buffer[self.end] = CONTROL | (kind << CONTROL_SHIFT);
        self.end += 1;
        self.put_varint(u64::from(id.0));
    }

    fn put_varint(&mut self, value: u64) {
        self.reserve(super::varint::VARINT_BYTES_MAX);
        self.end = put(&mut self.buffer, self.end, value);
    }

    fn put_raw(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.buffer[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put_raw(bytes);
    }

    fn put_options(&mut self, options: &SeriesOptions) {
        self.put_varint(options.retention_ms);
        self.put_varint(u64::from(options.chunk_size_bytes));
        let policy = options
            .duplicate_policy
            .map_or(0, |policy| policy as u8 + 1);
        self.put_raw(&[options.encoding as u8, policy]);
        self.put_varint(options.ignore.max_time_diff_ms);
        self.put_raw(&options.ignore.max_value_diff.to_le_bytes());
        self.put_bytes(options.labels.as_bytes());
    }
}

/// What stands before a group's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) payload_bytes: u32,
    pub(crate) sequence: u64,
    /// How far before `sequence` the newest group known durable was, or
    /// [`NO_CLAIM`].
    pub(crate) unsynced: u32,
    pub(crate) stride_log2: u8,
    pub(crate) flags: u8,
    pub(crate) residue: u16,
}

impl GroupHeader {
    /// The header of the empty group that ends a log closed in order:
    /// everything before it is durable.
    pub(crate) fn closing_mark(sequence: u64) -> Self {
        Self {
            payload_bytes: 0,
            sequence,
            unsynced: 1,
            stride_log2: 0,
            flags: FLAG_CLOSED,
            residue: 0,
        }
    }

    /// The stored form; `payload` is the records' checksum.
    pub(crate) fn encode(&self, payload: u32, salt: u32) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&payload.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.unsynced.to_le_bytes());
        bytes[20] = self.stride_log2;
        bytes[21] = self.flags;
        bytes[22..24].copy_from_slice(&self.residue.to_le_bytes());
        let checksum = crc32_iscsi(&bytes) ^ salt;
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header as stored, before its checksum is known to be right, or
    /// `None` where no group can begin so.
    pub(crate) fn peek(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let sequence = u64::from(word(8)) | u64::from(word(12)) << 32;
        let header = Self {
            payload_bytes: word(0),
            sequence,
            unsynced: word(16),
            stride_log2: bytes[20],
            flags: bytes[21],
            residue: u16::from_le_bytes([bytes[22], bytes[23]]),
        };
        let sane = (header.unsynced == NO_CLAIM || header.sequence >= u64::from(header.unsynced))
            && header.stride_log2 <= STRIDE_LOG2_MAX
            && header.flags & !(FLAG_BARRIER | FLAG_CLOSED) == 0
            && (header.payload_bytes > 0 || header.flags & FLAG_CLOSED != 0);
        sane.then_some(header)
    }

    /// Whether `bytes` are this header as stored before `payload`.
    pub(crate) fn verify(&self, bytes: &[u8; HEADER_BYTES], payload: &[u8], salt: u32) -> bool {
        self.encode(crc32_iscsi(payload), salt) == *bytes
    }

    /// The newest group known to be durable when this one was written; 0
    /// where it says nothing about that.
    pub(crate) fn synced(&self) -> u64 {
        match self.unsynced {
            NO_CLAIM => 0,
            distance => self.sequence - u64::from(distance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(synced: u64) -> GroupHeader {
        let mut group = GroupBuilder::new();
        group.begin(4);
        for id in [5, 21, 37] {
            group.sample(SeriesId(id), 1, 1.0, DuplicatePolicy::Last);
        }
        let sum = group.payload_checksum();
        let bytes = group.seal(1 << 40, synced, 7, sum);
        let (header, payload) = bytes.split_first_chunk().expect("a header");
        let peeked = GroupHeader::peek(header).expect("sane");
        assert!(peeked.verify(header, payload, 7));
        assert!(!peeked.verify(header, payload, 8), "the salt counts");
        peeked
    }

    #[test]
    fn headers_name_the_durable_group_or_none() {
        let sequence = 1 << 40;
        assert_eq!(sealed(sequence - 1).synced(), sequence - 1);
        assert_eq!(sealed(sequence - 1000).synced(), sequence - 1000);
        // Too far away to name: claiming a later one would be a lie.
        assert_eq!(sealed(1).synced(), 0);
    }

    #[test]
    fn ids_that_are_alike_share_a_residue() {
        let header = sealed(1);
        assert_eq!((header.stride_log2, header.residue), (4, 5));
        let mut group = GroupBuilder::new();
        group.begin(4);
        group.sample(SeriesId(5), 1, 1.0, DuplicatePolicy::Last);
        group.sample(SeriesId(7), 1, 1.0, DuplicatePolicy::Last);
        let bytes = group.seal(1, 0, 0, 0);
        let header = bytes.first_chunk().and_then(GroupHeader::peek);
        let header = header.expect("sane");
        assert_eq!((header.stride_log2, header.residue), (1, 1));
    }
}
