//! A segment file: two copies of its header, then groups to the end.
//!
//! The header is written when the segment is taken into use, into a file that
//! was zero-filled or recycled ahead. Its salt goes into every group's
//! checksum, so what a recycled file still holds never passes for a group of
//! this segment. The two copies stand in different pages: one bad page does
//! not take the segment with it. Layout in `docs/format/wal.md`.

use crate::io::File;
use crate::log::group::HEADER_BYTES as GROUP_HEADER_BYTES;
use crate::log::options::SEQUENCE_MAX;
use crc_fast::crc32_iscsi;
use latewood_model::limits::LOG_GROUP_BYTES_MAX;
use std::io;

/// Where groups begin.
pub(crate) const DATA_OFFSET: u64 = 8192;
/// Where the copies of the header stand.
const COPY_OFFSETS: [u64; 2] = [0, 4096];
/// What a copy has for itself.
const PAGE_BYTES: usize = 4096;
const HEADER_BYTES: usize = 64;
const CHECKED_BYTES: usize = 60;
const MAGIC: [u8; 8] = *b"LWOODWAL";
/// The format that is written; earlier ones are read.
pub(crate) const VERSION: u16 = 3;

/// The smallest segment a log may be given.
pub(crate) const SEGMENT_BYTES_MIN: u64 = 64 * 1024;

/// The longest payload that fits segments of `segment_bytes`.
pub(crate) fn payload_bytes_max(segment_bytes: u64) -> usize {
    let group_bytes = segment_bytes - DATA_OFFSET - GROUP_HEADER_BYTES as u64;
    LOG_GROUP_BYTES_MAX.min(usize::try_from(group_bytes).unwrap_or(usize::MAX))
}

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The format of what follows.
    pub(crate) version: u16,
    /// Goes into the checksum of every group.
    pub(crate) salt: u32,
    /// The number in the file's name.
    pub(crate) number: u64,
    /// The sequence of the first group.
    pub(crate) first_sequence: u64,
    /// The newest group that was durable when the segment was started.
    pub(crate) synced: u64,
    /// The oldest group that the log still needs.
    pub(crate) start: u64,
    /// When the segment was started, for people who read dumps.
    pub(crate) created_ms: i64,
}

/// What a file shows where its header should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderState {
    /// All zeros, or too short: prepared and never started.
    Blank,
    /// Neither zeros nor a header: damaged, or a header that was cut short
    /// before any sync.
    Broken,
    /// Bytes where nothing ever writes any: damaged.
    Garbage,
    /// A valid header of another number: recycled and never started.
    Other,
    /// A later version's.
    Unknown(u16),
    /// Valid.
    Started(SegmentHeader),
}

impl SegmentHeader {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.salt.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.synced.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.start.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.created_ms.to_le_bytes());
        let checksum = crc32_iscsi(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn write_to(&self, file: &dyn File) -> io::Result<()> {
        let bytes = self.encode();
        COPY_OFFSETS
            .into_iter()
            .try_for_each(|offset| file.write_at(&bytes, offset))
    }
}

/// Reads the header of the file named as segment `number`: the first copy
/// that is valid, else what the first one shows.
pub(crate) fn read_header(file: &dyn File, number: u64) -> io::Result<HeaderState> {
    let (mut first, mut is_garbage) = (None, false);
    for offset in COPY_OFFSETS {
        let page = read_page(file, offset)?;
        let (header, rest) = page.split_at(HEADER_BYTES);
        is_garbage |= rest.iter().any(|&byte| byte != 0);
        match classify(header, number) {
            started @ HeaderState::Started(_) => return Ok(started),
            // A page of zeros beside a damaged or foreign one tells nothing.
            HeaderState::Blank => {}
            state => first = first.or(Some(state)),
        }
    }
    Ok(match first.unwrap_or(HeaderState::Blank) {
        HeaderState::Blank | HeaderState::Broken if is_garbage => HeaderState::Garbage,
        state => state,
    })
}

/// Whether a copy of `header` is damaged. Where no sync has covered them yet,
/// a copy that was never written is in order.
pub(crate) fn has_damaged_copy(
    file: &dyn File,
    header: &SegmentHeader,
    is_synced: bool,
) -> io::Result<bool> {
    for offset in COPY_OFFSETS {
        let page = read_page(file, offset)?;
        let bytes = &page[..HEADER_BYTES];
        let is_unwritten = matches!(
            classify(bytes, header.number),
            HeaderState::Blank | HeaderState::Other
        );
        if *bytes != header.encode() && (is_synced || !is_unwritten) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The page of a header copy; zeros where the file ends before.
fn read_page(file: &dyn File, offset: u64) -> io::Result<[u8; PAGE_BYTES]> {
    let mut page = [0; PAGE_BYTES];
    match file.read_at(&mut page, offset) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        read => read?,
    }
    Ok(page)
}

fn classify(bytes: &[u8], number: u64) -> HeaderState {
    if bytes.iter().all(|&byte| byte == 0) {
        return HeaderState::Blank;
    }
    let version = u16::from_le_bytes([bytes[8], bytes[9]]);
    if bytes[..8] == MAGIC && version > VERSION {
        return HeaderState::Unknown(version);
    }
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let header = SegmentHeader {
        version,
        salt: word(12),
        number: long(16),
        first_sequence: long(24),
        synced: long(32),
        start: long(40),
        created_ms: long(48) as i64,
    };
    let sequences = [header.first_sequence, header.synced, header.start];
    let is_sound = version > 0
        && header.first_sequence > 0
        && sequences.iter().all(|&sequence| sequence <= SEQUENCE_MAX);
    // Encoding again checks magic, padding and checksum at once.
    if header.encode() != *bytes || !is_sound {
        HeaderState::Broken
    } else if header.number == number {
        HeaderState::Started(header)
    } else {
        HeaderState::Other
    }
}
