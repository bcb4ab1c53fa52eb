//! What stands before a group's records: 24 bytes.
//!
//! ```text
//! 0   u32  payload bytes         16  u32  sequence - durable sequence
//! 4   u32  checksum ^ salt       20  u8   stride, log2
//! 8   u64  sequence              21  u8   flags: 1 barrier, 2 clean close,
//!                                         4 wide
//!                                22  u16  residue of all ids under the stride
//! ```
//! The checksum is the crc32c of the header with the payload's own crc32c in
//! the place of the checksum: the payload is summed before the log's lock is
//! taken, the rest in the few nanoseconds under it.
//!
//! Invariant: a header never calls a group durable that may not be. Where the
//! newest durable one is too far away to name, it names none. Tested by the
//! builder's tests and `tests/log_group.rs`.

use crate::log::options::SEQUENCE_MAX;
use crate::log::record::GroupForm;
use crc_fast::crc32_iscsi;

pub(crate) const HEADER_BYTES: usize = 24;
/// The group is applied alone: after all before it, before all after it.
pub(crate) const FLAG_BARRIER: u8 = 1;
/// The log was closed in order: nothing follows in this segment.
pub(crate) const FLAG_CLOSED: u8 = 2;
/// Its records are [`GroupForm::Wide`].
pub(crate) const FLAG_WIDE: u8 = 4;
/// The distance of a group too far from the newest durable one to name it.
pub(crate) const NO_CLAIM: u32 = u32::MAX;
pub(crate) use crate::log::record::STRIDE_LOG2_MAX;

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
    pub(crate) fn closing_header(sequence: u64) -> Self {
        Self {
            payload_bytes: 0,
            sequence,
            unsynced: 1,
            stride_log2: 0,
            flags: FLAG_CLOSED,
            residue: 0,
        }
    }

    /// The header of the same group in another log, where groups up to `synced` are durable.
    pub(crate) fn at(&self, sequence: u64, synced: u64) -> Self {
        Self {
            sequence,
            unsynced: distance(sequence, synced),
            ..*self
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
            && header.sequence <= SEQUENCE_MAX
            && header.stride_log2 <= STRIDE_LOG2_MAX
            && header.flags & !(FLAG_BARRIER | FLAG_CLOSED | FLAG_WIDE) == 0
            && (header.payload_bytes > 0 || header.flags & FLAG_CLOSED != 0);
        sane.then_some(header)
    }

    /// Whether `bytes` are this header as stored before `payload`.
    pub(crate) fn verify(&self, bytes: &[u8; HEADER_BYTES], payload: &[u8], salt: u32) -> bool {
        self.encode(crc32_iscsi(payload), salt) == *bytes
    }

    /// How its records are written.
    pub(crate) fn form(&self) -> GroupForm {
        if self.flags & FLAG_WIDE != 0 {
            GroupForm::Wide
        } else {
            GroupForm::Narrow
        }
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

/// How far before a group the newest durable one is.
pub(super) fn distance(sequence: u64, synced: u64) -> u32 {
    u32::try_from(sequence - synced).unwrap_or(NO_CLAIM)
}
