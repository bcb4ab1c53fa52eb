//! Building one group: the records of one batch and the header before them.
//!
//! A group is what the log appends, checksums and replays as a whole: all of
//! its records are there after a crash, or none. Its header ([`header`]) can
//! only be written when it is appended; until then its bytes are reserved.
//!
//! Invariants: the records decode by themselves, without those of another
//! group; the header's residue is that of every series a record is about. Tested
//! below and in `tests/log_group.rs`.

mod control;
mod header;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::partition_of;
use crate::base::spread::Spread;
use crate::format::value::{FORM_RAW, put_value};
use crate::format::varint::{put, zigzag};
use crate::log::created::Created;
use crate::log::record::{
    Context, Cut, FORM_SHIFT, POLICY_TAG, SAME_TIMESTAMP, SERIES_NEW_STEP, SERIES_SAME, SERIES_STEP,
};
use crc_fast::crc32_iscsi;
use header::distance;
pub(crate) use header::{
    FLAG_BARRIER, FLAG_CLOSED, FLAG_WIDE, GroupHeader, HEADER_BYTES, STRIDE_LOG2_MAX,
};
use latewood_model::{DuplicatePolicy, SeriesId, Timestamp};

/// Under which the groups of a remote log are sealed.
pub(crate) const REMOTE_SALT: u32 = 0;
/// Words of touched partitions side by side: those of ids below 2^32.
const TOUCHED_WORDS_NEAR: usize = 1 << 10;
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
    first_id: Option<u64>,
    /// Bits in which any id differed from the first.
    different: u64,
    stride_log2: u8,
    barrier: bool,
    /// One bit for each partition of ids that a record names.
    touched: Spread<u64, TOUCHED_WORDS_NEAR>,
    /// The series that records change which are no samples; not those that come or go.
    changed: Vec<SeriesId>,
    /// The creation before, where there was one.
    created: Created,
    /// The newest cut, and where its record begins and ends.
    cut: Option<(usize, usize, Cut)>,
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
            touched: Spread::default(),
            changed: Vec::new(),
            created: Created::none(),
            cut: None,
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
        self.touched.reset_all();
        self.changed.clear();
        self.created.clear();
        self.cut = None;
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
            at = put(out, at, zigzag(step as i64));
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
        // The context begins with id 0, of which no record may be there.
        if step != 0 || id.0 == 0 {
            self.note_id(id);
        }
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
            unsynced: distance(sequence, synced),
            stride_log2,
            flags: FLAG_WIDE | if self.barrier { FLAG_BARRIER } else { 0 },
            // Sixteen bits at most under the largest stride.
            residue: (self.first_id.unwrap_or(0) & ((1 << stride_log2) - 1)) as u16,
        };
        self.buffer[..HEADER_BYTES].copy_from_slice(&header.encode(payload, salt));
        &self.buffer[..self.end]
    }

    /// The partitions whose series the records are about.
    pub(crate) fn touched(&self) -> impl Iterator<Item = u32> + '_ {
        self.touched.iter().flat_map(|(word, &bits)| {
            let set = (0..64).filter(move |bit| bits >> bit & 1 == 1);
            // Partitions have 32 bits.
            set.map(move |bit| word as u32 * 64 + bit)
        })
    }

    /// The series of the group's own shard that records change which are no samples. Those that
    /// come or go, which may be of another shard, are not among them.
    pub(crate) fn changed(&self) -> &[SeriesId] {
        &self.changed
    }

    /// Notes an id for what all ids of the group have in common.
    #[inline]
    fn note_alike(&mut self, id: SeriesId) {
        let first = *self.first_id.get_or_insert(id.0);
        self.different |= first ^ id.0;
    }

    #[inline]
    fn note_id(&mut self, id: SeriesId) {
        self.note_alike(id);
        let partition = partition_of(id);
        *self.touched.ensure(partition as usize / 64) |= 1 << (partition % 64);
    }

    #[cold]
    fn reserve(&mut self, more: usize) {
        let needed = self.end + more;
        if self.buffer.len() < needed {
            self.buffer.resize(needed.next_power_of_two(), 0);
        }
    }

    /// Writes the policy of the following samples; `sample` reserved the bytes.
    #[cold]
    fn put_policy(&mut self, policy: DuplicatePolicy) {
        self.buffer[self.end] = POLICY_TAG;
        self.buffer[self.end + 1] = policy as u8;
        self.end += 2;
        self.context.policy = policy;
    }
}

/// The first group of `bytes`, as a remote log keeps them, and what is behind it. `next` is the
/// number that is expected.
///
/// # Errors
/// `Corrupt` if there is no whole group.
pub(crate) fn split_remote(bytes: &[u8], next: u64) -> Result<(GroupHeader, &[u8], &[u8])> {
    let whole = bytes.split_first_chunk().and_then(|(first, rest)| {
        let header = GroupHeader::peek(first)?;
        let (payload, rest) = rest.split_at_checked(header.payload_bytes as usize)?;
        // A remote log has no group that closes it: what is behind one would not be read.
        let is_closing = header.flags & FLAG_CLOSED != 0;
        let is_intact = !is_closing && header.verify(first, payload, REMOTE_SALT);
        is_intact.then_some((header, payload, rest))
    });
    whole.ok_or_else(|| {
        let message = format!("group {next} of the remote log is damaged");
        Error::new(ErrorKind::Corrupt, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_the_first_id_is_noted_behind_a_record_of_another() {
        let mut group = GroupBuilder::new();
        group.expired(SeriesId(70_000), Some(1));
        group.sample(SeriesId(0), 1, 1.0, DuplicatePolicy::Last);
        assert!(group.touched().eq([0, 1]));
    }

    #[test]
    fn series_that_end_share_a_residue_and_wait_for_nothing() {
        let mut group = GroupBuilder::new();
        group.begin(2);
        group.end_series(&[6, 10, 70_002].map(SeriesId));
        assert!(group.touched().eq([0, 1]));
        assert!(group.changed().is_empty());
        let bytes = group.seal(1, 0, 0, 0);
        let header = bytes.first_chunk().and_then(GroupHeader::peek);
        let header = header.expect("sane");
        assert_eq!((header.stride_log2, header.residue), (2, 2));
        assert_eq!(header.flags & FLAG_BARRIER, 0);
    }

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
